//! What a thread can do next, remembered.
//!
//! The successors a thread's events lead to depend on few bits of a state: what is the thread's own
//! and the cells that are touched while they are made. A *menu* is those bits (a mask and a key) with
//! the successors as differences to the state: it holds for every state `s` with `s & mask == key`,
//! and there the successors are `s ^ delta`. Touched bits include those written, so a difference is
//! the same wherever the menu holds. Most states of a search differ only in what other threads do, so
//! nearly all menus are found, not made.
//!
//! A menu is looked for under the thread's own bits: they lead to a hint (the cells touched by any
//! menu seen with such bits), and the bits of own and hint together to the menu. Hints may be shared
//! or stale: a menu found is checked against the state, so a wrong hint costs time and nothing else.

use super::persistent::Offer;
use super::run::{Found, Notes, Sink};
use super::{Field, Machine};

/// Slots of hints per thread.
const HINTS: usize = 1 << 9;
/// Menus of all threads and successors in them before all are forgotten.
const MOST: usize = 1 << 17;
const FIRST_SLOTS: usize = 1 << 6;
/// As many at most are the same for all workers, and their numbers are less than that.
const SHARED: usize = 1 << 13;
const SHARED_NUMBERS: u32 = 1 << 24;
/// A memory that answers fewer than half of the questions is no help.
const PATIENCE: u64 = 1 << 16;

/// The successors of all states that agree with the key on the mask.
#[derive(Clone, Copy, Debug)]
pub struct Menu<const W: usize> {
    /// What is the thread's own, and the cells touched.
    pub mask: [u64; W],
    key: [u64; W],
    /// Bits that differ in some successor.
    pub changes: [u64; W],
    /// The first successor's place among the differences, and how many there are.
    pub first: u32,
    pub count: u32,
    /// The same by steps (which come first) and drains.
    pub offer: Offer,
}

impl<const W: usize> Menu<W> {
    const EMPTY: Menu<W> = Menu {
        mask: [0; W],
        key: [0; W],
        changes: [0; W],
        first: 0,
        count: 0,
        offer: Offer::NOTHING,
    };

    #[inline]
    fn holds(&self, state: &[u64; W]) -> bool {
        (0..W).all(|w| state[w] & self.mask[w] == self.key[w])
    }
}

/// One thread's menus, by number.
#[derive(Clone)]
struct Remembered<const W: usize> {
    own: [u64; W],
    hints: Vec<[u64; W]>,
    /// A menu's number + 1 and part of its hash; number 0 is empty. A power of two of them.
    slots: Vec<(u32, u32)>,
    used: usize,
}

/// The menus of all threads of a machine whose states have `W` words.
pub struct Menus<const W: usize> {
    threads: Vec<Remembered<W>>,
    menus: Vec<Menu<W>>,
    deltas: Vec<[u64; W]>,
    scratch: [u64; W],
    asked: u64,
    made: u64,
    /// The number of the first menu: forgotten ones had smaller numbers.
    base: u32,
    /// So many menus are the same for all workers.
    shared: usize,
    /// Where the numbers begin that no other worker gives, until they are used.
    apart: Option<u32>,
    /// Numbers that were never given to menus that are remembered begin here, and end there.
    unsteady: (u32, u32),
    /// Nothing is remembered beyond one state.
    hopeless: bool,
}

/// No menu has this number.
pub const UNKNOWN: u32 = u32::MAX;

/// Gathers one menu.
struct Gather<'d, const W: usize> {
    state: [u64; W],
    mask: [u64; W],
    changes: [u64; W],
    deltas: &'d mut Vec<[u64; W]>,
}

impl<const W: usize> Sink for Gather<'_, W> {
    #[inline]
    fn touch(&mut self, cell: Field) {
        let (word, bits) = cell.bits();
        self.mask[word] |= bits;
    }

    #[inline]
    fn next(&mut self, state: &[u64]) {
        let delta = std::array::from_fn(|w| state[w] ^ self.state[w]);
        // A step that changes nothing leads nowhere new.
        if delta != [0; W] {
            self.changes = or(&self.changes, &delta);
            self.deltas.push(delta);
        }
    }
}

#[inline]
fn or<const W: usize>(a: &[u64; W], b: &[u64; W]) -> [u64; W] {
    std::array::from_fn(|w| a[w] | b[w])
}

/// Whether two sets of bits have none in common.
#[inline]
pub fn disjoint<const W: usize>(a: &[u64; W], b: &[u64; W]) -> bool {
    (0..W).fold(0, |common, w| common | a[w] & b[w]) == 0
}

/// A hash of the state's bits in the mask.
#[inline]
fn mix<const W: usize>(state: &[u64; W], mask: &[u64; W]) -> u32 {
    let mut h = 0u64;
    for w in 0..W {
        let k = state[w] & mask[w];
        h = (h.rotate_left(29) ^ k ^ k >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (h >> 32) as u32
}

impl<const W: usize> Menus<W> {
    /// The menus of one of several workers: those who [agree](Menus::agree) have the same.
    pub fn new(machine: &Machine<'_>, worker: usize, of: usize) -> Self {
        let share = UNKNOWN / (of + 1) as u32;
        let apart = share * (worker + 1) as u32;
        let threads = (0..machine.threads.len()).map(|t| {
            let own = machine.own(t);
            let own = std::array::from_fn(|w| own.get(w).copied().unwrap_or(0));
            Remembered {
                own,
                hints: vec![own; HINTS],
                slots: vec![(0, 0); FIRST_SLOTS],
                used: 0,
            }
        });
        Menus {
            threads: threads.collect(),
            menus: vec![Menu::EMPTY],
            deltas: Vec::new(),
            scratch: [0; W],
            asked: 0,
            made: 0,
            base: 0,
            shared: 1,
            apart: Some(apart),
            unsteady: (apart + share / 2, apart + share),
            hopeless: false,
        }
    }

    /// Gives all workers the same menus under the same numbers, as long as these are few: what one of them knows of a state the
    /// others need not find out. Who learnt most since the last time is followed; where several learnt, what they
    /// say about states until now is forgotten. Where menus are many each has its own, under numbers of its own.
    pub fn agree(all: &mut [&mut Self]) {
        let learnt = |menus: &&mut Self| menus.menus.len() > menus.shared;
        let several = all.iter().filter(|m| learnt(m)).count() > 1;
        let most = all.iter().map(|m| m.menus.len()).max().unwrap_or(0);
        let parted = |m: &&mut Self| m.apart.is_none() || m.base > SHARED_NUMBERS;
        if most > SHARED || all.iter().any(parted) {
            all.iter_mut().for_each(|m| m.part());
            return;
        }
        let Some(first) = all.iter().position(|m| learnt(m) && m.menus.len() == most) else {
            return;
        };
        let (before, rest) = all.split_at_mut(first);
        let Some((first, after)) = rest.split_first_mut() else {
            return;
        };
        first.shared = most;
        if several {
            first.base += most as u32;
        }
        for other in before.iter_mut().chain(after) {
            other.threads.clone_from(&first.threads);
            other.menus.clone_from(&first.menus);
            other.deltas.clone_from(&first.deltas);
            (other.base, other.shared) = (first.base, first.shared);
        }
    }

    /// From now on no other worker has these numbers.
    fn part(&mut self) {
        if let Some(apart) = self.apart.take() {
            self.forget();
            self.base = apart;
        }
    }

    /// Forgets all menus if they have become too many.
    #[inline]
    pub fn tidy(&mut self) {
        if self.hopeless || self.menus.len() + self.deltas.len() > MOST {
            self.part();
            self.forget();
        }
    }

    #[cold]
    fn forget(&mut self) {
        // Numbers are not given twice.
        self.base += self.menus.len() as u32;
        let (from, to) = self.unsteady;
        self.hopeless |= self.base > from;
        if self.base > to - 2 * MOST as u32 {
            self.base = from;
        }
        self.menus.truncate(1);
        self.deltas.clear();
        for t in &mut self.threads {
            if t.used > 0 {
                t.slots.fill((0, 0));
                t.used = 0;
            }
        }
    }

    /// Whether the number still means what it meant.
    #[inline]
    pub fn knows(&self, number: u32) -> bool {
        (number.wrapping_sub(self.base) as usize) < self.menus.len()
    }

    /// The number of a menu with nothing in it.
    pub fn empty(&self) -> u32 {
        self.base
    }

    /// The number of the menu for a thread in a state.
    #[inline]
    pub fn find(
        &mut self,
        machine: &Machine<'_>,
        t: usize,
        state: &[u64; W],
        notes: &mut Notes,
    ) -> Result<u32, Found> {
        self.asked += 1;
        let thread = &self.threads[t];
        let hint = mix(state, &thread.own) as usize % HINTS;
        let hash = mix(state, &thread.hints[hint]);
        let last = thread.slots.len() - 1;
        let mut slot = hash as usize & last;
        loop {
            let (n, h) = thread.slots[slot & last];
            if n == 0 {
                return self.make(machine, t, state, hint, notes);
            }
            if h == hash && self.menus[n as usize - 1].holds(state) {
                return Ok(self.base + n - 1);
            }
            slot += 1;
        }
    }

    #[inline]
    pub fn menu(&self, number: u32) -> &Menu<W> {
        &self.menus[(number - self.base) as usize]
    }

    /// How a successor differs from the state.
    #[inline]
    pub fn delta(&self, at: u32) -> &[u64; W] {
        &self.deltas[at as usize]
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let slots: usize = self.threads.iter().map(|t| t.slots.capacity() * 8).sum();
        let hints = self.threads.len() * HINTS * W * 8;
        let menus = self.menus.capacity() * size_of::<Menu<W>>();
        (slots + hints + menus + self.deltas.capacity() * W * 8) as u64
    }

    #[cold]
    #[inline(never)]
    fn make(
        &mut self,
        machine: &Machine<'_>,
        t: usize,
        state: &[u64; W],
        hint: usize,
        notes: &mut Notes,
    ) -> Result<u32, Found> {
        let first = self.deltas.len();
        let thread = &mut self.threads[t];
        let mut gather = Gather {
            state: *state,
            mask: thread.own,
            changes: [0; W],
            deltas: &mut self.deltas,
        };
        machine.expand_steps(state, t, &mut self.scratch, notes, &mut gather)?;
        let steps = gather.deltas.len();
        machine.expand_drains(state, t, &mut self.scratch, notes, &mut gather)?;
        let seen = |deltas: &[[u64; W]]| {
            let after = |d: &[u64; W]| -> [u64; W] { std::array::from_fn(|w| state[w] ^ d[w]) };
            deltas.iter().any(|d| machine.is_seen(t, state, &after(d)))
        };
        let offer = Offer {
            steps: (steps - first) as u32,
            drains: (gather.deltas.len() - steps) as u32,
            seen_steps: seen(&gather.deltas[first..steps]),
            seen_drains: seen(&gather.deltas[steps..]),
        };
        let (mask, changes) = (gather.mask, gather.changes);
        let hint = &mut thread.hints[hint];
        *hint = or(hint, &mask);
        let menu = Menu {
            mask,
            key: std::array::from_fn(|w| state[w] & mask[w]),
            changes,
            first: first as u32,
            count: (self.deltas.len() - first) as u32,
            offer,
        };
        let hash = mix(state, hint);
        let number = self.menus.len() as u32;
        self.menus.push(menu);
        self.made += 1;
        if self.made >= PATIENCE && self.made * 2 > self.asked {
            self.hopeless = true;
        }
        if !self.hopeless {
            thread.remember(number, hash);
        }
        Ok(self.base + number)
    }
}

impl<const W: usize> Remembered<W> {
    fn remember(&mut self, number: u32, hash: u32) {
        self.used += 1;
        if self.used * 2 > self.slots.len() {
            let larger = vec![(0, 0); self.slots.len() * 2];
            for (n, hash) in std::mem::replace(&mut self.slots, larger) {
                if n != 0 {
                    self.place(n, hash);
                }
            }
        }
        self.place(number + 1, hash);
    }

    fn place(&mut self, entry: u32, hash: u32) {
        let last = self.slots.len() - 1;
        let mut slot = hash as usize & last;
        while self.slots[slot].0 != 0 {
            slot = (slot + 1) & last;
        }
        self.slots[slot] = (entry, hash);
    }
}
