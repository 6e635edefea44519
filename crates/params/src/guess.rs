//! Over-approximation from small instances (after BRAB): a cube that no state of a small instance
//! satisfies is replaced by a part of its constraints that none satisfies either. A guess that turns
//! out reachable is refuted, the run that refutes it joins the samples, and the search starts again.

use crate::compile::Compiled;
use crate::cube::{Cube, OTHER};
use crate::lin::{Lin, Op};
use crate::machine::{Machine, State};
use crate::slot::Slot;
use rustc_hash::{FxHashMap, FxHashSet};

/// States of one small instance, with the set of states for each constraint looked up so far.
struct Sample<'a> {
    machine: Machine<'a>,
    states: Vec<State>,
    known: FxHashSet<State>,
    sets: FxHashMap<Test, Vec<u64>>,
}

/// One constraint on the cells of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Test {
    In(usize, u128),
    Same(usize, usize, bool),
    Number(Vec<(usize, i64)>, i64, Op),
}

/// One constraint of a cube.
#[derive(Clone, Debug)]
enum Part {
    Dom(Slot, u128),
    Rel(Slot, Slot, bool),
    Int(Lin),
    Real(Lin),
}

/// Makes guesses; without samples it makes none.
#[derive(Default)]
pub struct Guesser<'a> {
    samples: Vec<Sample<'a>>,
    made: Vec<Cube>,
    refuted: Vec<Cube>,
}

/// Largest part of a cube tried as a guess.
const PARTS: usize = 3;

impl<'a> Guesser<'a> {
    pub fn add_sample(&mut self, machine: Machine<'a>, states: Vec<State>) {
        let threads = machine.threads;
        let place = match self
            .samples
            .iter()
            .position(|s| s.machine.threads == threads)
        {
            Some(i) => i,
            None => {
                self.samples.push(Sample {
                    machine,
                    states: Vec::new(),
                    known: FxHashSet::default(),
                    sets: FxHashMap::default(),
                });
                self.samples.len() - 1
            }
        };
        let sample = &mut self.samples[place];
        sample.sets.clear();
        for s in states {
            if sample.known.insert(s.clone()) {
                sample.states.push(s);
            }
        }
    }

    /// Whether a state of the samples satisfies the cube.
    pub fn some_state(&mut self, compiled: &Compiled<'_>, cube: &Cube) -> bool {
        self.samples.iter_mut().any(|s| s.satisfied(compiled, cube))
    }

    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The guess with this number leads to an initial state.
    pub fn refute(&mut self, number: usize) {
        self.refuted.push(self.made[number].clone());
    }

    /// A smaller conjunction that no known state satisfies.
    pub fn guess(&mut self, compiled: &Compiled<'_>, cube: &Cube) -> Option<(usize, Cube)> {
        if self.samples.is_empty() {
            return None;
        }
        let parts = parts_of(compiled, cube);
        let all = cube.size();
        for size in 1..=PARTS.min(parts.len()) {
            if size >= all {
                break;
            }
            let mut chosen: Vec<usize> = (0..size).collect();
            loop {
                let part = assemble(cube, chosen.iter().map(|i| &parts[*i]));
                if let Some(guess) = self.try_part(compiled, part) {
                    self.made.push(guess.clone());
                    return Some((self.made.len() - 1, guess));
                }
                if !next_choice(&mut chosen, parts.len()) {
                    break;
                }
            }
        }
        None
    }

    fn try_part(&mut self, compiled: &Compiled<'_>, mut part: Cube) -> Option<Cube> {
        let is_thread = |c: &Cube, s: Slot| compiled.is_thread(c, s);
        let used = part.used_threads(&is_thread);
        part.keep_threads(used, &is_thread);
        if self.refuted.contains(&part) {
            return None;
        }
        let mut seen = false;
        for sample in &mut self.samples {
            if part.threads() > usize::from(sample.machine.threads) {
                continue;
            }
            seen = true;
            if sample.satisfied(compiled, &part) {
                return None;
            }
        }
        seen.then_some(part)
    }
}

/// The constraints on cells; what is said of open reads has no meaning in a state.
fn parts_of(compiled: &Compiled<'_>, cube: &Cube) -> Vec<Part> {
    let cells = |l: &Lin| l.terms.iter().all(|(s, _)| s.is_cell());
    let doms = cube
        .doms
        .iter()
        .filter(|(s, _)| s.is_cell() && compiled.full(cube, *s).is_some());
    let rels = cube
        .rels
        .iter()
        .filter(|(a, b, _)| a.is_cell() && b.is_cell());
    doms.map(|(s, m)| Part::Dom(*s, *m))
        .chain(rels.map(|(a, b, e)| Part::Rel(*a, *b, *e)))
        .chain(
            cube.ints
                .iter()
                .filter(|l| cells(l))
                .cloned()
                .map(Part::Int),
        )
        .chain(
            cube.reals
                .iter()
                .filter(|l| cells(l))
                .cloned()
                .map(Part::Real),
        )
        .collect()
}

/// A cube of the same threads with some of the constraints.
fn assemble<'p>(cube: &Cube, parts: impl Iterator<Item = &'p Part>) -> Cube {
    let mut out = Cube::default();
    for f in &cube.fixed {
        out.add_thread(*f);
    }
    out.before = cube.before.clone();
    for p in parts {
        match p {
            Part::Dom(s, m) => out.doms.push((*s, *m)),
            Part::Rel(a, b, e) => out.rels.push((*a, *b, *e)),
            Part::Int(l) => out.ints.push(l.clone()),
            Part::Real(l) => out.reals.push(l.clone()),
        }
    }
    out
}

impl Sample<'_> {
    /// Whether some state satisfies the cube for some choice of threads.
    fn satisfied(&mut self, compiled: &Compiled<'_>, cube: &Cube) -> bool {
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

    fn tests(&self, compiled: &Compiled<'_>, cube: &Cube, env: &[u8]) -> Vec<Test> {
        let position = |s: Slot| {
            let mut args = [0u8; 2];
            let mut n = 0;
            for a in s.args() {
                args[n] = env[usize::from(a)];
                n += 1;
            }
            self.machine.position(s.array(), &args[..n])
        };
        let mask = |s: Slot, m: u128| match compiled.is_thread(cube, s) {
            true => (0..=self.machine.threads).fold(0u128, |out, t| {
                let allowed = match env.iter().position(|e| *e == t) {
                    Some(i) => m & 1 << i != 0,
                    None => m & OTHER != 0,
                };
                if allowed { out | 1 << t } else { out }
            }),
            false => m,
        };
        let doms = cube
            .doms
            .iter()
            .map(|(s, m)| Test::In(position(*s), mask(*s, *m)));
        let rels = cube
            .rels
            .iter()
            .map(|(a, b, e)| Test::Same(position(*a), position(*b), *e));
        let lins = cube.ints.iter().chain(&cube.reals).map(|l| {
            let terms = l.terms.iter().map(|(s, c)| (position(*s), *c)).collect();
            Test::Number(terms, l.constant, l.op)
        });
        doms.chain(rels).chain(lins).collect()
    }

    fn satisfied_by(&mut self, compiled: &Compiled<'_>, cube: &Cube, env: &[u8]) -> bool {
        let words = self.states.len().div_ceil(64);
        let tests = self.tests(compiled, cube, env);
        for test in &tests {
            if !self.sets.contains_key(test) {
                let mut set = vec![0u64; words];
                for (i, s) in self.states.iter().enumerate() {
                    if holds(test, s) {
                        set[i / 64] |= 1 << (i % 64);
                    }
                }
                self.sets.insert(test.clone(), set);
            }
        }
        let sets: Vec<&Vec<u64>> = tests.iter().map(|k| &self.sets[k]).collect();
        match &sets[..] {
            [] => !self.states.is_empty(),
            [first, rest @ ..] => {
                (0..words).any(|w| rest.iter().fold(first[w], |x, s| x & s[w]) != 0)
            }
        }
    }
}

fn holds(test: &Test, state: &State) -> bool {
    match test {
        Test::In(p, mask) => {
            let v = state.values[*p];
            (0..128).contains(&v) && mask & 1 << v != 0
        }
        Test::Same(p, q, equal) => (state.values[*p] == state.values[*q]) == *equal,
        Test::Number(terms, constant, op) => {
            let sum = terms.iter().fold(*constant, |sum, (p, c)| {
                sum.saturating_add(state.values[*p].saturating_mul(*c))
            });
            match op {
                Op::Le => sum <= 0,
                Op::Lt => sum < 0,
                Op::Eq => sum == 0,
                Op::Ne => sum != 0,
            }
        }
    }
}

/// The next subset of the same size in lexicographic order.
fn next_choice(chosen: &mut [usize], n: usize) -> bool {
    let k = chosen.len();
    for i in (0..k).rev() {
        if chosen[i] < n - (k - i) {
            chosen[i] += 1;
            for j in i + 1..k {
                chosen[j] = chosen[j - 1] + 1;
            }
            return true;
        }
    }
    false
}
