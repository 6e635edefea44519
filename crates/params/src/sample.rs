//! Views of one small instance, with the set of views for each constraint looked up so far.

use crate::compile::Compiled;
use crate::cube::Cube;
use crate::machine::Machine;
use crate::meets::{First, Part, Test, choose, in_order, moments, reads_possible};
use crate::view::View;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

type Set = Rc<Vec<u64>>;

/// The views in which a thread sees a value at some moment, and for each view these moments.
type Seen = (Vec<u64>, Vec<u16>);

pub struct Sample<'a> {
    pub machine: Machine<'a>,
    views: Vec<View>,
    known: FxHashSet<View>,
    tests: FxHashMap<Test, Set>,
    /// For each view the moments at which a thread sees a cell have one of some values.
    parts: FxHashMap<Part, Rc<Seen>>,
    /// For each view the earliest moment after something.
    firsts: FxHashMap<First, Rc<Vec<u8>>>,
}

impl<'a> Sample<'a> {
    pub fn new(machine: Machine<'a>) -> Self {
        Sample {
            machine,
            views: Vec::new(),
            known: FxHashSet::default(),
            tests: FxHashMap::default(),
            parts: FxHashMap::default(),
            firsts: FxHashMap::default(),
        }
    }

    pub fn add(&mut self, views: Vec<View>) {
        self.tests.clear();
        self.parts.clear();
        self.firsts.clear();
        for v in views {
            if self.known.insert(v.clone()) {
                self.views.push(v);
            }
        }
    }

    /// Whether some view satisfies the cube for some choice of threads.
    pub fn satisfied(&mut self, compiled: &Compiled<'_>, cube: &Cube) -> bool {
        let k = cube.threads();
        let mut env = vec![1u8; k];
        loop {
            let fits = (0..k).all(|i| {
                let right = match cube.fixed[i] {
                    0 => u16::from(env[i]) > compiled.constants,
                    f => u16::from(env[i]) == f,
                };
                let order = (0..k).all(|j| cube.before[i] & 1 << j == 0 || env[i] < env[j]);
                right && order && !env[..i].contains(&env[i])
            });
            if fits && self.satisfied_by(compiled, cube, &env) {
                return true;
            }
            if !crate::machine::advance(&mut env, self.machine.threads) {
                return false;
            }
        }
    }

    fn satisfied_by(&mut self, compiled: &Compiled<'_>, cube: &Cube, env: &[u8]) -> bool {
        let chosen = choose(compiled, &self.machine, cube, env);
        let views = &self.views;
        let mut sets: Vec<Set> = Vec::with_capacity(chosen.cells.len());
        for t in &chosen.cells {
            let set = || collect(views, &|v| t.holds_in(v));
            sets.push(lookup(&mut self.tests, t.clone(), set));
        }
        let mut reads = Vec::with_capacity(chosen.reads.len());
        for r in &chosen.reads {
            let parts: Vec<_> = r
                .parts
                .iter()
                .map(|p| {
                    lookup(&mut self.parts, *p, || {
                        let bits: Vec<u16> = views.iter().map(|v| moments(v, *p)).collect();
                        let mut set = vec![0u64; views.len().div_ceil(64)];
                        let seen = bits.iter().enumerate().filter(|(_, b)| **b != 0);
                        seen.for_each(|(i, _)| set[i / 64] |= 1 << (i % 64));
                        (set, bits)
                    })
                })
                .collect();
            let firsts: Vec<_> = r
                .firsts
                .iter()
                .map(|f| {
                    lookup(&mut self.firsts, *f, || {
                        views.iter().map(|v| f.moment(v) as u8).collect()
                    })
                })
                .collect();
            reads.push((parts, firsts));
        }
        let order = in_order(&chosen.reads);
        let words = views.len().div_ceil(64);
        let last = match views.len() % 64 {
            0 => u64::MAX,
            n => (1 << n) - 1,
        };
        let mut fits: Vec<(u16, usize)> = Vec::with_capacity(reads.len());
        (0..words).any(|w| {
            let all = if w + 1 == words { last } else { u64::MAX };
            let mut left = sets.iter().fold(all, |x, s| x & s[w]);
            for (parts, _) in &reads {
                left = parts.iter().fold(left, |x, p| x & p.0[w]);
            }
            if reads.is_empty() {
                return left != 0;
            }
            while left != 0 {
                let i = w * 64 + left.trailing_zeros() as usize;
                fits.clear();
                fits.extend(reads.iter().map(|(parts, firsts)| {
                    let bits = parts.iter().fold(u16::MAX, |b, p| b & p.1[i]);
                    let first = firsts.iter().map(|f| usize::from(f[i])).max();
                    (bits, first.unwrap_or(0))
                }));
                if reads_possible(&views[i], &chosen, &order, &fits) {
                    return true;
                }
                left &= left - 1;
            }
            false
        })
    }
}

fn lookup<K: std::hash::Hash + Eq, V>(
    known: &mut FxHashMap<K, Rc<V>>,
    key: K,
    make: impl FnOnce() -> V,
) -> Rc<V> {
    known.entry(key).or_insert_with(|| Rc::new(make())).clone()
}

fn collect(views: &[View], holds: &dyn Fn(&View) -> bool) -> Vec<u64> {
    let mut set = vec![0u64; views.len().div_ceil(64)];
    for (i, v) in views.iter().enumerate() {
        if holds(v) {
            set[i / 64] |= 1 << (i % 64);
        }
    }
    set
}
