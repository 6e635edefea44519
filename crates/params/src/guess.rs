//! Over-approximation from small instances (after BRAB): a cube that no state of a small instance
//! satisfies is replaced by a part of its constraints that none satisfies either. A guess that turns
//! out reachable is refuted and the search starts again without it.

use crate::compile::Compiled;
use crate::cube::{Cube, OTHER};
use crate::machine::{Machine, State};
use crate::slot::Slot;
use rustc_hash::FxHashMap;

/// States of one small instance, with the set of states for each constraint looked up so far.
struct Sample<'a> {
    machine: Machine<'a>,
    states: Vec<State>,
    sets: FxHashMap<(usize, u128), Vec<u64>>,
}

/// Makes guesses; without samples it makes none.
#[derive(Default)]
pub struct Guesser<'a> {
    samples: Vec<Sample<'a>>,
    made: Vec<Cube>,
    refuted: Vec<Cube>,
}

/// Largest part of a cube tried as a guess.
const LITERALS: usize = 3;

impl<'a> Guesser<'a> {
    pub fn add_sample(&mut self, machine: Machine<'a>, states: Vec<State>) {
        self.samples.push(Sample {
            machine,
            states,
            sets: FxHashMap::default(),
        });
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
        let locals: Vec<(Slot, u128)> = cube
            .doms
            .iter()
            .copied()
            .filter(|(s, _)| s.is_cell() && compiled.full(cube, *s).is_some())
            .collect();
        let all = cube.size();
        for size in 1..=LITERALS.min(locals.len()) {
            if size >= all {
                break;
            }
            let mut chosen: Vec<usize> = (0..size).collect();
            loop {
                let mut part = Cube::default();
                for f in &cube.fixed {
                    part.add_thread(*f);
                }
                part.before = cube.before.clone();
                part.doms = chosen.iter().map(|i| locals[*i]).collect();
                if let Some(guess) = self.try_part(compiled, part) {
                    self.made.push(guess.clone());
                    return Some((self.made.len() - 1, guess));
                }
                if !next_choice(&mut chosen, locals.len()) {
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

impl Sample<'_> {
    /// Whether some state satisfies the cube for some choice of threads.
    fn satisfied(&mut self, compiled: &Compiled<'_>, cube: &Cube) -> bool {
        let k = cube.threads();
        let mut env = vec![1u8; k];
        loop {
            let fits = (0..k).all(|i| {
                let fixed = cube.fixed[i];
                let constant = compiled.constants;
                let right = match fixed {
                    0 => u16::from(env[i]) > constant,
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
        let words = self.states.len().div_ceil(64);
        let mut keys = Vec::with_capacity(cube.doms.len());
        for (s, m) in &cube.doms {
            let args: Vec<u8> = s.args().map(|a| env[usize::from(a)]).collect();
            let position = self.machine.position(s.array(), &args);
            let mask = match compiled.is_thread(cube, *s) {
                true => (0..=self.machine.threads).fold(0u128, |out, t| {
                    let allowed = match env.iter().position(|e| *e == t) {
                        Some(i) => m & 1 << i != 0,
                        None => m & OTHER != 0,
                    };
                    if allowed { out | 1 << t } else { out }
                }),
                false => *m,
            };
            keys.push((position, mask));
        }
        for key in &keys {
            if !self.sets.contains_key(key) {
                let mut set = vec![0u64; words];
                for (i, s) in self.states.iter().enumerate() {
                    let v = s.values[key.0];
                    if (0..128).contains(&v) && key.1 & 1 << v != 0 {
                        set[i / 64] |= 1 << (i % 64);
                    }
                }
                self.sets.insert(*key, set);
            }
        }
        let sets: Vec<&Vec<u64>> = keys.iter().map(|k| &self.sets[k]).collect();
        (0..words)
            .any(|w| sets.iter().fold(!0u64, |x, s| x & s[w]) & valid(w, self.states.len()) != 0)
    }
}

/// The bits of a word that stand for states.
fn valid(word: usize, states: usize) -> u64 {
    match states - word * 64 {
        n if n >= 64 => !0,
        n => (1 << n) - 1,
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
