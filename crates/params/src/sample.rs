//! Views of one small instance, with the set of views for each constraint looked up so far.

use crate::compile::Compiled;
use crate::cube::{Cube, OTHER};
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

    /// What is needed to see at once which parts of a cube without open reads some view satisfies; the
    /// parts are given by their numbers in the order of the cube's constraints. `None` if one of them speaks of
    /// more than three threads.
    pub fn sieve(
        &mut self,
        compiled: &Compiled<'_>,
        cube: &Cube,
        parts: &[usize],
    ) -> Option<Sieve> {
        let n = self.machine.threads;
        let mut rows = Vec::with_capacity(parts.len());
        for part in parts {
            let alone = only(cube, *part);
            let mut used = alone.used_threads(&|c, s| compiled.is_thread(c, s));
            for (s, m) in &alone.doms {
                // It may be one of these, or differ from the others.
                if compiled.is_thread(&alone, *s) {
                    used |= if *m & OTHER == 0 { *m } else { !*m } as u16;
                }
            }
            let own = (0..cube.threads() as u8).filter(|t| used & 1 << t != 0);
            let own: Vec<u8> = own.collect();
            if own.len() > 3 {
                return None;
            }
            let mut chosen = vec![1u8; own.len()];
            let mut sets = Vec::new();
            loop {
                // Who is not spoken of is nobody's number.
                let mut env = vec![u8::MAX; cube.threads()];
                own.iter()
                    .zip(&chosen)
                    .for_each(|(t, c)| env[usize::from(*t)] = *c);
                let tests = choose(compiled, &self.machine, &alone, &env).cells;
                let views = &self.views;
                sets.push(match tests.first() {
                    Some(t) => lookup(&mut self.tests, t.clone(), || {
                        collect(views, &|v| t.holds_in(v))
                    }),
                    None => Rc::new(collect(views, &|_| true)),
                });
                if own.is_empty() || !crate::machine::advance(&mut chosen, n) {
                    break;
                }
            }
            rows.push((own, sets));
        }
        Some(Sieve {
            threads: n,
            least: compiled.constants,
            words: self.views.len().div_ceil(64),
            rows,
        })
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

/// The cube with one of its constraints, in the order doms, rels, ints, reals.
fn only(cube: &Cube, part: usize) -> Cube {
    let mut out = cube.clone();
    let mut number = 0;
    let mut keep = || {
        number += 1;
        number - 1 == part
    };
    out.doms.retain(|_| keep());
    out.rels.retain(|_| keep());
    out.ints.retain(|_| keep());
    out.reals.retain(|_| keep());
    out
}

/// For parts of one cube the views that satisfy each, by the threads it speaks of.
pub struct Sieve {
    threads: u8,
    /// Threads up to here are constants.
    least: u16,
    words: usize,
    rows: Vec<(Vec<u8>, Vec<Set>)>,
}

impl Sieve {
    /// Whether some view satisfies these parts together, for some choice of threads. `None` if there are
    /// not so many threads.
    pub fn passes(&self, cube: &Cube, parts: &[usize]) -> Option<bool> {
        let mut threads: Vec<u8> = parts
            .iter()
            .flat_map(|p| &self.rows[*p].0)
            .copied()
            .collect();
        threads.sort_unstable();
        threads.dedup();
        if threads.len() > usize::from(self.threads) {
            return None;
        }
        let mut env = vec![0u8; cube.threads()];
        Some(self.chosen(cube, parts, &threads, &mut env))
    }

    fn chosen(&self, cube: &Cube, parts: &[usize], left: &[u8], env: &mut Vec<u8>) -> bool {
        let Some((t, left)) = left.split_first() else {
            return self.some_view(parts, env);
        };
        let t = usize::from(*t);
        for c in 1..=self.threads {
            let right = match cube.fixed[t] {
                0 => u16::from(c) > self.least,
                f => u16::from(c) == f,
            };
            let order = env.iter().enumerate().all(|(u, d)| {
                *d == 0
                    || (*d != c
                        && (cube.before[u] & 1 << t == 0 || *d < c)
                        && (cube.before[t] & 1 << u == 0 || c < *d))
            });
            if right && order {
                env[t] = c;
                let found = self.chosen(cube, parts, left, env);
                env[t] = 0;
                if found {
                    return true;
                }
            }
        }
        false
    }

    fn some_view(&self, parts: &[usize], env: &[u8]) -> bool {
        let set = |p: &usize| {
            let (own, sets) = &self.rows[*p];
            let n = usize::from(self.threads);
            let place = own
                .iter()
                .fold(0, |o, t| o * n + usize::from(env[usize::from(*t)]) - 1);
            &sets[place]
        };
        let sets: Vec<&Set> = parts.iter().map(set).collect();
        (0..self.words).any(|w| sets.iter().fold(u64::MAX, |x, s| x & s[w]) != 0)
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
