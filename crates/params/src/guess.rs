//! Over-approximation from small instances (after BRAB): a cube that no view of a small instance
//! satisfies is replaced by a part of its constraints that none satisfies either. A guess that turns
//! out reachable is refuted, the run that refutes it joins the samples, and the search starts again.
//!
//! Unlike BRAB the guesses speak of open reads too, and the samples are taken under the real memory
//! model, in the order of steps that the search follows ([`crate::view`]).

use crate::build::drop_idle_parts;
use crate::compile::Compiled;
use crate::cover::covers;
use crate::cube::Cube;
use crate::lin::{Lin, Op};
use crate::machine::Machine;
use crate::memory::Open;
use crate::sample::{Sample, Sieve};
use crate::slot::Slot;
use crate::view::View;
use rustc_hash::FxHashMap;

/// Makes guesses; without samples it makes none.
#[derive(Default)]
pub struct Guesser<'a> {
    samples: Vec<Sample<'a>>,
    made: Vec<Cube>,
    refuted: Vec<Cube>,
    /// Whether a view of the samples satisfies a cube.
    met: FxHashMap<Cube, bool>,
}

/// Parts of a cube of up to this size are all tried as guesses.
const PARTS: usize = 3;

/// Most constraints of a cube of which all small parts are tried, one by one and with sieves.
const MANY: usize = 16;
const SIEVED: usize = 40;

/// Which constraints of a cube a guess keeps, in the order doms, rels, ints, reals.
type Kept = u64;

impl<'a> Guesser<'a> {
    pub fn add_sample(&mut self, machine: Machine<'a>, views: Vec<View>) {
        let threads = machine.threads;
        let place = self
            .samples
            .iter()
            .position(|s| s.machine.threads == threads);
        let place = place.unwrap_or_else(|| {
            self.samples.push(Sample::new(machine));
            self.samples.len() - 1
        });
        self.samples[place].add(views);
        self.met.retain(|_, met| *met);
    }

    /// Whether a view of the samples satisfies the cube.
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

    /// A smaller conjunction that no known view satisfies.
    pub fn guess(&mut self, compiled: &Compiled<'_>, cube: &Cube) -> Option<(usize, Cube)> {
        if self.samples.is_empty() {
            return None;
        }
        let rich = Self::enriched(cube);
        let cube = &rich;
        let parts = parts_of(cube);
        if parts.is_empty() || parts.len() > 60 {
            return None;
        }
        let sieves = self.sieves(compiled, cube, &parts);
        let found = self.small_part(compiled, cube, &parts, &sieves);
        let found = found.or_else(|| self.least_part(compiled, cube, &parts))?;
        self.made.push(found.clone());
        Some((self.made.len() - 1, found))
    }

    /// The same cube with what follows from its equations between numbers: their two halves, and the
    /// equations that two of them imply. A guess may keep these alone.
    fn enriched(cube: &Cube) -> Cube {
        let mut out = cube.clone();
        for (list, integer) in [(&mut out.ints, true), (&mut out.reals, false)] {
            let equations: Vec<Lin> = list.iter().filter(|l| l.op == Op::Eq).cloned().collect();
            let scaled = |l: &Lin, k: i64| l.terms.iter().map(move |(s, c)| (*s, k * c)).collect();
            for (i, l) in equations.iter().enumerate() {
                let halves =
                    [1, -1].map(|k| Lin::new(scaled(l, k), k * l.constant, Op::Le, integer));
                list.extend(halves.into_iter().flatten());
                for m in &equations[..i] {
                    let both = [1, -1].map(|k| {
                        let mut terms: Vec<_> = scaled(m, k);
                        terms.extend(l.terms.iter().copied());
                        Lin::new(terms, l.constant + k * m.constant, Op::Eq, integer)
                    });
                    let shorter = |n: &Lin| n.terms.len() <= l.terms.len().max(m.terms.len());
                    list.extend(both.into_iter().flatten().filter(shorter));
                }
            }
            // The weaker ones are tried first.
            list.sort_by_key(|l| l.op == Op::Eq);
            let mut seen = Vec::new();
            list.retain(|l| {
                !seen.contains(l) && {
                    seen.push(l.clone());
                    true
                }
            });
        }
        out
    }

    /// Without open reads most parts are seen to be met at once.
    fn sieves(&mut self, compiled: &Compiled<'_>, cube: &Cube, parts: &[u64]) -> Vec<Sieve> {
        if !cube.memory.events.is_empty() || !cube.memory.pending.is_empty() {
            return Vec::new();
        }
        let numbers: Vec<usize> = parts.iter().map(|p| p.trailing_zeros() as usize).collect();
        let samples = self.samples.iter_mut();
        samples
            .filter_map(|s| s.sieve(compiled, cube, &numbers))
            .collect()
    }

    /// The first of the small parts that fits, smaller ones first.
    fn small_part(
        &mut self,
        compiled: &Compiled<'_>,
        cube: &Cube,
        parts: &[u64],
        sieves: &[Sieve],
    ) -> Option<Cube> {
        let n = parts.len();
        let many = if sieves.is_empty() { MANY } else { SIEVED };
        for size in 1..=PARTS.min(n) {
            if size > 1 && n > many {
                break;
            }
            let mut chosen: Vec<usize> = (0..size).collect();
            loop {
                if sieves.iter().any(|s| s.passes(cube, &chosen) == Some(true)) {
                    if !next_choice(&mut chosen, n) {
                        break;
                    }
                    continue;
                }
                let kept = chosen.iter().fold(0, |k, i| k | parts[*i]);
                let bare = self.fits(compiled, assemble(compiled, cube, kept, true));
                let found = bare.or_else(|| match cube.memory.events.is_empty() {
                    true => None,
                    false => self.fits(compiled, assemble(compiled, cube, kept, false)),
                });
                if let Some(guess) = found.filter(|g| g != cube) {
                    return Some(guess);
                }
                if !next_choice(&mut chosen, n) {
                    break;
                }
            }
        }
        None
    }

    /// Drops one constraint after the other as long as what is left fits.
    fn least_part(&mut self, compiled: &Compiled<'_>, cube: &Cube, parts: &[u64]) -> Option<Cube> {
        let mut kept: Kept = parts.iter().fold(0, |k, p| k | p);
        let mut best = self.fits(compiled, assemble(compiled, cube, kept, false))?;
        for p in parts {
            if kept & !p != 0
                && let Some(less) = self.fits(compiled, assemble(compiled, cube, kept & !p, false))
            {
                kept &= !p;
                best = less;
            }
        }
        let bare = self.fits(compiled, assemble(compiled, cube, kept, true));
        Some(bare.unwrap_or(best)).filter(|g| g != cube)
    }

    /// The cube, if samples large enough for it do not meet it and it was not refuted.
    fn fits(&mut self, compiled: &Compiled<'_>, cube: Cube) -> Option<Cube> {
        // With no thread left to act the sample says little.
        let threads = cube.threads().max(1);
        let free = |s: &Sample<'_>| match compiled.system.threads {
            Some(n) if n <= u32::from(s.machine.threads) => 0,
            _ => usize::from(threads > 1),
        };
        let large = |s: &Sample<'_>| threads <= usize::from(s.machine.threads);
        let telling = |s: &Sample<'_>| threads + free(s) <= usize::from(s.machine.threads);
        if !self.samples.iter().any(telling) {
            return None;
        }
        let met = match self.met.get(&cube) {
            Some(met) => *met,
            None => {
                let mut samples = self.samples.iter_mut().filter(|s| large(s));
                let met = samples.any(|s| s.satisfied(compiled, &cube));
                self.met.insert(cube.clone(), met);
                met
            }
        };
        if met {
            return None;
        }
        let wrong = |r: &Cube| covers(&compiled.kinds, &cube, r);
        (!self.refuted.iter().any(wrong)).then_some(cube)
    }
}

/// The constraints that a view can satisfy, one bit each.
fn parts_of(cube: &Cube) -> Vec<Kept> {
    let fine = |s: &Slot| s.as_pending().is_none();
    let doms = cube.doms.iter().map(|(s, _)| fine(s));
    let rels = cube.rels.iter().map(|(a, b, _)| fine(a) && fine(b));
    let lins = cube.ints.iter().chain(&cube.reals);
    let lins = lins.map(|l| l.terms.iter().all(|(s, _)| fine(s)));
    let all = doms.chain(rels).chain(lins).enumerate();
    all.filter(|(i, fine)| *fine && *i < 64)
        .map(|(i, _)| 1 << i)
        .collect()
}

/// A cube with some of the constraints; `bare` forgets the order of new events before open reads.
fn assemble(compiled: &Compiled<'_>, cube: &Cube, kept: Kept, bare: bool) -> Cube {
    let mut out = cube.clone();
    let mut number = 0;
    let mut keep = || {
        number += 1;
        kept & 1 << (number - 1) != 0
    };
    out.doms.retain(|_| keep());
    out.rels.retain(|_| keep());
    out.ints.retain(|_| keep());
    out.reals.retain(|_| keep());
    out.ints.sort_unstable();
    out.reals.sort_unstable();
    out.memory.pending.clear();
    drop_idle_parts(&mut out);
    let is_thread = |c: &Cube, s: Slot| compiled.is_thread(c, s);
    let memory = &mut out.memory;
    let order = (memory.read_first.clone(), memory.write_first.clone());
    let last = memory.last;
    memory.read_first.iter_mut().for_each(|s| *s = last);
    memory.write_first.iter_mut().for_each(|s| *s = 0);
    if bare {
        memory.cell_first.clear();
        memory.others_first.clear();
    }
    let used = out.used_threads(&is_thread);
    if bare {
        // Program order among a thread's reads always holds.
        for (t, before) in order.0.iter().enumerate() {
            let own = |o: &Open| o.parts.iter().any(|p| usize::from(p.reader) == t);
            let events = out.memory.events.iter().enumerate();
            let own = events.filter(|(e, o)| own(o) && before & 1 << e != 0);
            let own = own.fold(0, |m, (_, o)| m | o.after);
            out.memory.read_first[t] |= own;
        }
    } else {
        (out.memory.read_first, out.memory.write_first) = order;
    }
    out.keep_threads(used, &is_thread);
    out.drop_trivial(&|c, s| compiled.full(c, s));
    out
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
