//! Making the successors of a state.
//!
//! States of a few words are expanded from remembered [`Menus`], and breadth-first every diamond is
//! closed once: where two threads' events do not touch what the other one needs, both orders lead to
//! the same state, and only one of them is offered to the store. This is Godefroid's sleep sets. A
//! state has a set of threads *asleep*, whose events need not be offered: for the state that `p`
//! reaches by thread `j` these are the threads before `j`, and those asleep in `p`, whose menu in `p`
//! is independent of what `j` did.
//!
//! Sleep sets and a store of states do not go together in general (a state reached again with fewer
//! threads asleep would have to be expanded again). Breadth-first they do, and more: the states, their
//! numbers and their parents are exactly those of the search that offers everything. Proof, by
//! induction on the distance `d` of a state `T` from the start. Let `q` be the predecessor of `T` with
//! the least number among all at distance `d - 1`, and `a` a thread with `q·a = T`. If `a` were asleep
//! in `q`, then the tree path to `q` ends in `r·x1⋯xm = q`, where `a` comes before `x1`, is not asleep
//! in `r` and is independent of all of `x1⋯xm`; so `T = r·a·x1⋯xm`. Compare `u_k = r·x1⋯xk` with
//! `v_k = r·a·x1⋯xk`, which is as far from the start as `u_(k+1)`. Since `r` offers `v_0` before its
//! child `u_1`, `v_0` has the smaller number; and if `v_(k-1)` has a smaller number than `u_k`, then
//! the parent of `v_k`, by induction its least predecessor and so no later than `v_(k-1)`, is expanded
//! before `u_k`, and `v_k` has a smaller number than `u_(k+1)`. So `v_(m-1)` is a predecessor of `T`
//! with a number smaller than that of `u_m = q`: a contradiction. Hence `q` offers `T`, and is the
//! first to do so.

use crate::explore::Batch;
use wattle_memory::compiled::{Found, Machine, Menus, Notes, UNKNOWN, disjoint};

/// Threads whose events need not be offered, as bits; later threads than these are always awake.
type Asleep = u32;

/// Threads whose menus are handed on to the next state.
const HANDED_ON: usize = 4;

/// What is known about a state before it is expanded.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    asleep: Asleep,
    /// Menus of the first threads.
    menus: [u32; HANDED_ON],
}

impl Known {
    pub const NOTHING: Known = Known {
        asleep: 0,
        menus: [UNKNOWN; HANDED_ON],
    };

    /// What is still known after the menus are gone.
    pub fn without_menus(self) -> Known {
        Known {
            asleep: self.asleep,
            ..Known::NOTHING
        }
    }
}

/// Makes successors.
pub trait Expand {
    /// Puts the successors of a state into the batch, in the order of threads.
    fn expand(
        &mut self,
        machine: &Machine<'_>,
        state: &[u64],
        known: Known,
        notes: &mut Notes,
        batch: &mut Batch,
    ) -> Result<(), Found>;

    /// Bytes held.
    fn bytes(&self) -> u64;
}

/// All successors, each made by running steps.
pub struct Plain {
    scratch: Vec<u64>,
}

impl Plain {
    pub fn new(machine: &Machine<'_>) -> Self {
        Plain {
            scratch: vec![0; machine.words],
        }
    }
}

impl Expand for Plain {
    fn expand(
        &mut self,
        machine: &Machine<'_>,
        state: &[u64],
        _: Known,
        notes: &mut Notes,
        batch: &mut Batch,
    ) -> Result<(), Found> {
        machine.expand(state, &mut self.scratch, notes, batch)
    }

    fn bytes(&self) -> u64 {
        0
    }
}

/// From menus, for states of `W` words.
pub struct Remembering<const W: usize> {
    menus: Menus<W>,
    /// The menu of each thread in the state being expanded.
    found: Vec<u32>,
    /// Threads may sleep.
    diamonds: bool,
}

impl<const W: usize> Remembering<W> {
    pub fn new(machine: &Machine<'_>, breadth_first: bool) -> Self {
        Remembering {
            menus: Menus::new(machine),
            found: Vec::new(),
            // A thread inside an atomic block keeps the others from what their menus say.
            diamonds: breadth_first && !machine.has_atomic_states(),
        }
    }

    /// What is known after `delta` of thread `t`: whose menus are as before, and which of these need
    /// not be offered.
    #[inline]
    fn known_after(&self, t: usize, delta: &[u64; W], asleep: Asleep) -> Known {
        let mut known = Known::NOTHING;
        let mask = &self.menus.menu(self.found[t]).mask;
        let candidates = asleep | before(t);
        // Which threads are touched is hard to foresee: nothing here branches on it. The thread
        // itself is never untouched, what it did is its own.
        for (i, number) in self.found.iter().enumerate().take(Asleep::BITS as usize) {
            let menu = self.menus.menu(*number);
            let untouched = disjoint(&menu.mask, delta);
            if let Some(same) = known.menus.get_mut(i) {
                *same = if untouched { *number } else { UNKNOWN };
            }
            let sleeps = untouched & disjoint(&menu.changes, mask);
            known.asleep |= (Asleep::from(sleeps) << i) & candidates;
        }
        known
    }
}

/// The threads before one, as far as there are bits.
#[inline]
fn before(t: usize) -> Asleep {
    match 1u32.checked_shl(t as u32) {
        Some(bit) => bit - 1,
        None => Asleep::MAX,
    }
}

impl<const W: usize> Expand for Remembering<W> {
    fn expand(
        &mut self,
        machine: &Machine<'_>,
        state: &[u64],
        known: Known,
        notes: &mut Notes,
        batch: &mut Batch,
    ) -> Result<(), Found> {
        let Ok(state) = <&[u64; W]>::try_from(state) else {
            return Ok(());
        };
        self.menus.tidy();
        self.found.clear();
        let alone = machine.inside_atomic(state);
        for t in 0..machine.thread_count() {
            if alone.is_some_and(|a| a != t) {
                continue;
            }
            let number = match known.menus.get(t) {
                Some(number) if self.menus.knows(*number) => *number,
                _ => self.menus.find(machine, t, state, notes)?,
            };
            self.found.push(number);
        }
        for (t, number) in self.found.iter().enumerate() {
            if known.asleep.checked_shr(t as u32).unwrap_or(0) & 1 == 1 {
                continue;
            }
            for delta in self.menus.deltas(self.menus.menu(*number)) {
                let next: [u64; W] = std::array::from_fn(|w| state[w] ^ delta[w]);
                let after = if self.diamonds {
                    self.known_after(t, delta, known.asleep)
                } else {
                    Known::NOTHING
                };
                batch.offer(&next, after);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.menus.bytes()
    }
}
