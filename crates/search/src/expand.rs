//! Making the successors of states, some dozens at a time.
//!
//! What a thread can do varies from state to state in ways no processor foresees. Work is therefore laid
//! out in rows first (menus to look for, then moves to make) and each row is worked off by a loop that
//! hardly branches.
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
//!
//! Where the machine can say which events are enough in a state ([`Machine::choose`]), only these are made, and
//! nobody sleeps; the search is told, for it has to see that nobody is put off for ever.

use crate::batch::Batch;
use crate::crew::Share;
use crate::explore::Order;
use crate::store::{Key, hash};
use std::ops::Range;
use wattle_memory::compiled::{Found, Machine, Menus, Notes, Offer, Sink, UNKNOWN, disjoint};

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
    /// For so many states in a row, up to this one, some events were left out.
    pub streak: u32,
}

/// After so many in a row all events are taken: where there is no end of states the others shall have a
/// chance as well.
const LONGEST: u32 = 96;

impl Default for Known {
    fn default() -> Self {
        Known::NOTHING
    }
}

impl Known {
    pub const NOTHING: Known = Known {
        asleep: 0,
        menus: [UNKNOWN; HANDED_ON],
        streak: 0,
    };

    /// What is known besides menus, as a word.
    pub fn to_word(self) -> u64 {
        u64::from(self.asleep) << 32 | u64::from(self.streak)
    }

    pub fn from_word(word: u64) -> Known {
        Known {
            asleep: (word >> 32) as Asleep,
            streak: word as u32,
            ..Known::NOTHING
        }
    }

    /// Only who is asleep in both is.
    pub fn meet(&mut self, other: Known) {
        self.asleep &= other.asleep;
    }

    /// What is still known after the menus are gone.
    pub fn without_menus(self) -> Known {
        Known {
            asleep: self.asleep,
            streak: self.streak,
            ..Known::NOTHING
        }
    }
}

/// The states before this one are expanded; this one is not.
pub type Cut = (usize, Found);

/// As many successors as are enough at a time.
const ENOUGH: usize = 1 << 11;

/// Makes successors.
pub trait Expand: Send {
    /// One of several, for a search in this order.
    fn new(machine: &Machine<'_>, order: Order, share: Share) -> Self;

    /// Puts the successors of the states into the batch, which is emptied first, state by state and in the order of
    /// threads, until there are enough. Says how many states are expanded, at least one; where it is cut short the
    /// batch has the successors of those before. Nothing is left out if the batch is to be whole.
    fn expand(
        &mut self,
        machine: &Machine<'_>,
        states: &[u64],
        numbers: &[u32],
        known: &[Known],
        notes: &mut Notes,
        batch: &mut Batch,
    ) -> Result<usize, Cut>;

    /// What one of them has learnt all of them know. To be called before several expand states, and after.
    fn agree(all: &mut [&mut Self])
    where
        Self: Sized;

    /// Bytes held.
    fn bytes(&self) -> u64;
}

/// Successors, each made by running steps.
pub struct Plain {
    scratch: Vec<u64>,
    kept: Vec<u64>,
    made: Made,
    offers: Vec<Offer>,
}

/// Puts into a batch, of states that differ in who is who, the one that is stored.
pub struct Kept<'a, 'i> {
    machine: &'a Machine<'i>,
    batch: &'a mut Batch,
    scratch: &'a mut [u64],
}

impl<'a, 'i> Kept<'a, 'i> {
    pub fn new(machine: &'a Machine<'i>, batch: &'a mut Batch, scratch: &'a mut [u64]) -> Self {
        Kept {
            machine,
            batch,
            scratch,
        }
    }
}

impl Sink for Kept<'_, '_> {
    fn next(&mut self, state: &[u64]) {
        if !self.machine.is_symmetric() {
            return self.batch.next(state);
        }
        self.scratch.copy_from_slice(state);
        self.machine.canonical(self.scratch, None);
        self.batch.next(self.scratch);
    }
}

/// The successors of one state.
#[derive(Default)]
struct Made {
    state: Vec<u64>,
    next: Vec<u64>,
}

impl Sink for Made {
    fn next(&mut self, state: &[u64]) {
        // A step that changes nothing leads nowhere new.
        if self.state != state {
            self.next.extend_from_slice(state);
        }
    }
}

impl Plain {
    /// The successors of a state by the events that are enough.
    fn choose(
        &mut self,
        machine: &Machine<'_>,
        state: &[u64],
        notes: &mut Notes,
        batch: &mut Batch,
    ) -> Result<(), Found> {
        let made = &mut self.made;
        made.state.clear();
        made.state.extend_from_slice(state);
        made.next.clear();
        self.offers.clear();
        let words = machine.words;
        let seen = |t: usize, next: &[u64]| {
            let mut next = next.chunks_exact(words);
            next.any(|next| machine.is_seen(t, state, next))
        };
        for t in 0..machine.thread_count() {
            let first = made.next.len();
            machine.expand_steps(state, t, &mut self.scratch, notes, made)?;
            let steps = made.next.len();
            machine.expand_drains(state, t, &mut self.scratch, notes, made)?;
            self.offers.push(Offer {
                steps: ((steps - first) / words) as u32,
                drains: ((made.next.len() - steps) / words) as u32,
                seen_steps: seen(t, &made.next[first..steps]),
                seen_drains: seen(t, &made.next[steps..]),
            });
        }
        let chosen = machine.choose(state, &self.offers);
        let from = batch.waiting();
        let mut next = made.next.chunks_exact(words);
        for (t, offer) in self.offers.iter().enumerate() {
            let steps = chosen.is_none_or(|c| c.steps_of(t));
            let drains = chosen.is_none_or(|c| c.drains_of(t));
            let kinds = [(offer.steps, steps), (offer.drains, drains)];
            for (count, wanted) in kinds {
                for next in next.by_ref().take(count as usize).filter(|_| wanted) {
                    Kept::new(machine, batch, &mut self.scratch).next(next);
                }
            }
        }
        if chosen.is_some() {
            batch.chosen(from);
        }
        Ok(())
    }
}

impl Expand for Plain {
    fn new(machine: &Machine<'_>, _: Order, _: Share) -> Self {
        Plain {
            scratch: vec![0; machine.words],
            kept: vec![0; machine.words],
            made: Made::default(),
            offers: Vec::new(),
        }
    }

    fn expand(
        &mut self,
        machine: &Machine<'_>,
        states: &[u64],
        numbers: &[u32],
        known: &[Known],
        notes: &mut Notes,
        batch: &mut Batch,
    ) -> Result<usize, Cut> {
        batch.clear();
        let all = batch.whole || !machine.leaves_out();
        for (i, state) in states.chunks_exact(machine.words).enumerate() {
            batch.parent = numbers[i];
            let streak = known[i].streak;
            let all = all || streak >= LONGEST || machine.inside_atomic(state).is_some();
            let from = batch.waiting();
            let expanded = match all {
                true => {
                    let mut kept = Kept::new(machine, batch, &mut self.kept);
                    machine.expand(state, &mut self.scratch, notes, &mut kept)
                }
                false => self.choose(machine, state, notes, batch),
            };
            if let Err(found) = expanded {
                batch.truncate(from);
                return Err((i, found));
            }
            if batch
                .chosen
                .last()
                .is_some_and(|(of, _)| *of == batch.parent)
            {
                batch.set_streak(from..batch.waiting(), streak + 1);
            }
            if batch.waiting() >= ENOUGH {
                return Ok(i + 1);
            }
        }
        Ok(states.len() / machine.words)
    }

    fn agree(_: &mut [&mut Self]) {}

    fn bytes(&self) -> u64 {
        0
    }
}

/// From menus, for states of `W` words and `T` threads, or any number of them if `T` is 0.
pub struct Remembering<const W: usize, const T: usize> {
    menus: Menus<W>,
    /// The menu of each thread in each of the states being expanded, state by state.
    found: Vec<u32>,
    /// The menus to look for.
    sought: Vec<Sought>,
    /// The moves to make.
    moves: Vec<Move>,
    /// Threads may sleep.
    diamonds: bool,
    offers: Vec<Offer>,
    /// States whose events are not all made: position, and their moves.
    chosen: Vec<(usize, Range<usize>)>,
}

#[derive(Clone, Copy, Default)]
struct Sought {
    state: u32,
    thread: u32,
}

#[derive(Clone, Copy, Default)]
struct Move {
    state: u16,
    thread: u16,
    delta: u32,
}

/// Moves name no more threads.
pub const MOST_THREADS: usize = u16::MAX as usize;

/// Menus seldom have more.
const USUAL: usize = 2;

impl<const W: usize, const T: usize> Remembering<W, T> {
    #[inline]
    fn threads(machine: &Machine<'_>) -> usize {
        if T == 0 { machine.thread_count() } else { T }
    }

    /// Finds the menus of all threads in all states.
    #[inline]
    fn find(
        &mut self,
        machine: &Machine<'_>,
        states: &[[u64; W]],
        known: &[Known],
        notes: &mut Notes,
    ) -> Result<(), Cut> {
        let threads = Self::threads(machine);
        let rows = states.len() * threads;
        if self.found.len() < rows {
            self.found.resize(rows, UNKNOWN);
            self.sought.resize(rows, Sought::default());
        }
        let found = self.found.chunks_exact_mut(threads);
        let mut sought = 0;
        for (s, ((row, known), state)) in found.zip(known).zip(states).enumerate() {
            for (t, number) in row.iter_mut().enumerate() {
                *number = if t < HANDED_ON {
                    known.menus[t]
                } else {
                    UNKNOWN
                };
            }
            if let Some(alone) = machine.inside_atomic(state) {
                row.fill(self.menus.empty());
                row[alone] = UNKNOWN;
            }
            for (t, number) in row.iter().enumerate() {
                self.sought[sought] = Sought {
                    state: s as u32,
                    thread: t as u32,
                };
                sought += usize::from(!self.menus.knows(*number));
            }
        }
        for at in &self.sought[..sought] {
            let (s, t) = (at.state as usize, at.thread as usize);
            let found = self.menus.find(machine, t, &states[s], notes);
            let number = found.map_err(|found| (s, found))?;
            self.found[s * threads + t] = number;
        }
        Ok(())
    }

    /// Lists the moves of threads that are awake, or those that are enough, until there are enough of
    /// them: of how many states, and how many.
    #[inline]
    fn list(
        &mut self,
        machine: &Machine<'_>,
        states: &[[u64; W]],
        known: &[Known],
        all: bool,
    ) -> (usize, usize) {
        let threads = Self::threads(machine);
        // Two are written before it is known whether there are any.
        let spare = known.len() * threads * USUAL;
        if self.moves.len() < spare {
            self.moves.resize(spare, Move::default());
        }
        self.chosen.clear();
        let leaves_out = !all && machine.leaves_out();
        let mut count = 0;
        for (s, (row, known)) in self.found.chunks_exact(threads).zip(known).enumerate() {
            let mut asleep = known.asleep;
            let mut chosen = None;
            let may = leaves_out && known.streak < LONGEST;
            if may && machine.inside_atomic(&states[s]).is_none() {
                self.offers.clear();
                let offers = row.iter().map(|number| self.menus.menu(*number).offer);
                self.offers.extend(offers);
                chosen = machine.choose(&states[s], &self.offers);
            }
            let from = count;
            for (t, number) in row.iter().enumerate() {
                let menu = self.menus.menu(*number);
                let awake = asleep & 1 == 0;
                let (mut first, mut made) = (menu.first, if awake { menu.count } else { 0 });
                asleep >>= 1;
                if let Some(chosen) = chosen {
                    let (steps, drains) = (chosen.steps_of(t), chosen.drains_of(t));
                    first += if steps { 0 } else { menu.offer.steps };
                    made = if steps { menu.offer.steps } else { 0 };
                    made += if drains { menu.offer.drains } else { 0 };
                }
                let a_move = |i| Move {
                    state: s as u16,
                    thread: t as u16,
                    delta: first + i,
                };
                if let Some([first, second]) = self.moves[count..].first_chunk_mut::<USUAL>() {
                    *first = a_move(0);
                    *second = a_move(1);
                }
                if made as usize > USUAL {
                    self.moves.truncate(count);
                    self.moves.extend((0..made).map(a_move));
                    self.moves
                        .resize(count + made as usize + spare, Move::default());
                }
                count += made as usize;
            }
            if chosen.is_some() {
                self.chosen.push((s, from..count));
            }
            if count >= ENOUGH {
                return (s + 1, count);
            }
        }
        (known.len(), count)
    }

    /// What is known after a move: whose menus are as before, and which of these need not be offered.
    #[inline]
    fn known_after(&self, found: &[u32], at: &Move, delta: &[u64; W], asleep: Asleep) -> Known {
        let t = at.thread as usize;
        let mut known = Known::NOTHING;
        let mask = &self.menus.menu(found[t]).mask;
        let candidates = asleep | before(t);
        // Which threads are touched is hard to foresee: nothing here branches on it. The thread
        // itself is never untouched, what it did is its own.
        for (i, number) in found.iter().enumerate().take(Asleep::BITS as usize) {
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

impl<const W: usize, const T: usize> Expand for Remembering<W, T> {
    fn new(machine: &Machine<'_>, order: Order, share: Share) -> Self {
        Remembering {
            menus: Menus::new(machine, share.number, share.of),
            found: Vec::new(),
            sought: Vec::new(),
            moves: Vec::new(),
            // A thread inside an atomic block keeps the others from what their menus say.
            diamonds: order == Order::BreadthFirst
                && !machine.has_atomic_states()
                && !machine.leaves_out()
                && !machine.is_symmetric(),
            offers: Vec::new(),
            chosen: Vec::new(),
        }
    }

    fn expand(
        &mut self,
        machine: &Machine<'_>,
        states: &[u64],
        numbers: &[u32],
        known: &[Known],
        notes: &mut Notes,
        batch: &mut Batch,
    ) -> Result<usize, Cut> {
        let (states, _) = states.as_chunks::<W>();
        self.menus.tidy();
        let found = self.find(machine, states, known, notes);
        let all = match &found {
            Ok(()) => states.len(),
            Err((before, _)) => *before,
        };
        let threads = Self::threads(machine);
        let (done, moves) = self.list(machine, states, &known[..all], batch.whole);
        let (next, keys, after) = batch.begin::<W>(moves);
        let moves = &self.moves[..moves];
        let symmetric = machine.is_symmetric();
        for (((at, next), key), after) in moves.iter().zip(next).zip(keys).zip(after) {
            let s = at.state as usize;
            let delta = self.menus.delta(at.delta);
            *next = std::array::from_fn(|w| states[s][w] ^ delta[w]);
            if symmetric {
                machine.canonical(next, None);
            }
            *key = Key {
                hash: hash(next),
                parent: numbers[s],
            };
            if self.diamonds {
                let row = &self.found[s * threads..(s + 1) * threads];
                *after = self.known_after(row, at, delta, known[s].asleep);
            }
        }
        for (s, moves) in &self.chosen {
            batch.set_streak(moves.clone(), known[*s].streak + 1);
            batch.chosen.push((numbers[*s], moves.clone()));
        }
        match found {
            Err(cut) if done == all => Err(cut),
            _ => Ok(done),
        }
    }

    fn agree(all: &mut [&mut Self]) {
        let mut menus: Vec<&mut Menus<W>> = all.iter_mut().map(|e| &mut e.menus).collect();
        Menus::agree(&mut menus);
    }

    fn bytes(&self) -> u64 {
        self.menus.bytes()
    }
}
