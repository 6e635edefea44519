//! Successors on their way to the store.

use crate::expand::Known;
use crate::index::{Index, tag};
use crate::store::{Key, ROOT, append, hash};
use std::ops::Range;
use wattle_memory::compiled::Sink;

/// Successors waiting for the store.
pub struct Batch {
    words: usize,
    pub states: Vec<u64>,
    pub keys: Vec<Key>,
    pub known: Vec<Known>,
    /// Those that the store did not have.
    pub new: Vec<u32>,
    /// States whose events were not all taken: their numbers, and which successors are theirs.
    pub chosen: Vec<(u32, Range<usize>)>,
    /// All events are wanted.
    pub whole: bool,
    /// The parent of what comes one by one.
    pub parent: u32,
    /// The successors sorted by their shares of the store's index, and where each share ends.
    by_share: Vec<u32>,
    ends: Vec<u32>,
}

impl Batch {
    pub fn new(words: usize) -> Self {
        Batch {
            words,
            states: Vec::new(),
            keys: Vec::new(),
            known: Vec::new(),
            new: Vec::new(),
            chosen: Vec::new(),
            whole: false,
            parent: ROOT,
            by_share: Vec::new(),
            ends: Vec::new(),
        }
    }

    #[inline]
    pub fn state(&self, at: usize) -> &[u64] {
        &self.states[at * self.words..(at + 1) * self.words]
    }

    /// Forgets what waits from this place on.
    pub fn truncate(&mut self, from: usize) {
        self.states.truncate(from * self.words);
        self.keys.truncate(from);
        self.known.truncate(from);
    }

    /// Sorts what waits by its shares of the store's index.
    pub fn sort(&mut self, shares: usize) {
        self.ends.clear();
        self.ends.resize(shares, 0);
        let share = |key: &Key| Index::share(tag(key.hash), shares);
        for key in &self.keys {
            self.ends[share(key)] += 1;
        }
        let mut from = 0;
        for end in &mut self.ends {
            from += std::mem::replace(end, from);
        }
        self.by_share.resize(self.keys.len(), 0);
        for (i, key) in (0..).zip(&self.keys) {
            let at = &mut self.ends[share(key)];
            self.by_share[*at as usize] = i;
            *at += 1;
        }
    }

    /// What waits for this share, in the order it came.
    pub fn of_share(&self, share: usize) -> &[u32] {
        let from = if share == 0 { 0 } else { self.ends[share - 1] };
        &self.by_share[from as usize..self.ends[share] as usize]
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let each = 8 * self.words + size_of::<Key>() + size_of::<Known>() + 8;
        (self.keys.capacity() * each) as u64
    }

    /// What waits from this place on is not all that the parent could do.
    pub fn chosen(&mut self, from: usize) {
        self.chosen.push((self.parent, from..self.keys.len()));
    }

    /// Successors waiting.
    pub fn waiting(&self) -> usize {
        self.keys.len()
    }

    /// These come after so many states of which events were left out.
    pub fn set_streak(&mut self, waiting: Range<usize>, streak: u32) {
        self.known[waiting]
            .iter_mut()
            .for_each(|k| k.streak = streak);
    }

    pub fn clear(&mut self) {
        self.states.clear();
        self.keys.clear();
        self.known.clear();
        self.chosen.clear();
    }

    /// Room for so many states in the empty batch, to be filled in: the states, and what comes with
    /// them.
    pub fn make_room<const W: usize>(
        &mut self,
        count: usize,
    ) -> (&mut [[u64; W]], &mut [Key], &mut [Known]) {
        self.states.resize(count * W, 0);
        self.keys.resize(
            count,
            Key {
                hash: 0,
                parent: ROOT,
            },
        );
        self.known.resize(count, Known::NOTHING);
        (
            self.states.as_chunks_mut::<W>().0,
            &mut self.keys,
            &mut self.known,
        )
    }
}

impl Sink for Batch {
    #[inline]
    fn next(&mut self, state: &[u64]) {
        append(&mut self.states, state);
        self.keys.push(Key {
            hash: hash(state),
            parent: self.parent,
        });
        self.known.push(Known::NOTHING);
    }
}
