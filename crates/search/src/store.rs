//! The set of states seen: exact, append-only, numbered in the order of arrival.
//!
//! States of a fixed number of words lie one after the other in chunks; an [`Index`] finds a state's
//! number by its hash. Each state has one word for its parent.

use crate::batch::Batch;
use crate::index::{Index, Stripe, prefetch, tag};

/// The parent of an initial state.
pub const ROOT: u32 = u32::MAX;

/// States per chunk.
const CHUNK: usize = 1 << 14;

pub struct Store {
    words: usize,
    chunks: Vec<Vec<u64>>,
    parents: Vec<Vec<u32>>,
    index: Index,
    count: usize,
}

/// What the store is told of a state besides the state.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub hash: u64,
    pub parent: u32,
}

/// Where a state is, and whether it was not there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    pub index: u32,
    pub new: bool,
}

/// Folds each word into the hash with a wide multiplication.
#[inline]
pub fn hash(state: &[u64]) -> u64 {
    let mut h = 0x9e37_79b9_7f4a_7c15_u64;
    for w in state {
        let wide =
            u128::from(h ^ w) * 0xa076_1d64_78bd_642f_9e37_79b9_7f4a_7c15_u128 as u64 as u128;
        h = (wide as u64) ^ ((wide >> 64) as u64);
        h = h.rotate_left(23).wrapping_add(0xe703_7ed1_a0b4_28db);
    }
    let wide = u128::from(h) * 0xd6e8_feb8_6659_fd93_u128;
    (wide as u64) ^ ((wide >> 64) as u64)
}

impl Store {
    pub fn new(words: usize) -> Self {
        Store {
            words,
            chunks: Vec::new(),
            parents: Vec::new(),
            index: Index::new(),
            count: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes held: states, parents and table.
    pub fn bytes(&self) -> u64 {
        let states: usize = self.chunks.iter().map(|c| c.capacity() * 8).sum();
        let parents: usize = self.parents.iter().map(|c| c.capacity() * 4).sum();
        (states + parents) as u64 + self.index.bytes()
    }

    #[inline]
    pub fn state(&self, index: u32) -> &[u64] {
        let (chunk, at) = (index as usize / CHUNK, index as usize % CHUNK);
        &self.chunks[chunk][at * self.words..(at + 1) * self.words]
    }

    /// How many states from this one on lie together.
    pub fn together(&self, index: u32) -> usize {
        CHUNK - index as usize % CHUNK
    }

    /// That many states from this one on, which lie together.
    #[inline]
    pub fn states(&self, index: u32, count: usize) -> &[u64] {
        let (chunk, at) = (index as usize / CHUNK, index as usize % CHUNK);
        &self.chunks[chunk][at * self.words..(at + count) * self.words]
    }

    /// The state it was reached from, or [`ROOT`].
    pub fn parent(&self, index: u32) -> u32 {
        self.parents[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// The index is too large for the processor's nearer caches: slots had better be fetched early.
    #[inline]
    pub fn is_far(&self) -> bool {
        self.index.is_far()
    }

    /// Asks the processor to fetch the slot where the hash will be looked for.
    #[inline]
    pub fn prefetch_slot(&self, hash: u64) {
        self.index.stripe(tag(hash)).prefetch(tag(hash));
    }

    /// Asks the processor to fetch the state that is most likely equal to the one with this hash.
    #[inline]
    pub fn prefetch_state(&self, hash: u64) {
        if let Some(number) = self.index.stripe(tag(hash)).likely(tag(hash)) {
            prefetch(&self.state(number)[0]);
        }
    }

    /// Bytes that the index will take in addition if it has to grow for `more` states.
    pub fn growth(&self, more: usize) -> u64 {
        self.index.growth(self.count + more)
    }

    /// Adds the state if it is not there.
    #[inline]
    pub fn insert(&mut self, state: &[u64], hash: u64, parent: u32) -> Inserted {
        self.put(self.words, state, Key { hash, parent })
    }

    /// Adds those of the states that are not there, and says which these were.
    pub fn insert_all(&mut self, states: &[u64], keys: &[Key], new: &mut Vec<u32>) {
        match self.words {
            1 => self.put_all::<1>(states, keys, new),
            2 => self.put_all::<2>(states, keys, new),
            3 => self.put_all::<3>(states, keys, new),
            4 => self.put_all::<4>(states, keys, new),
            words => {
                new.clear();
                for (i, key) in (0..).zip(keys) {
                    let state = &states[i as usize * words..][..words];
                    if self.put(words, state, *key).new {
                        new.push(i);
                    }
                }
            }
        }
    }

    fn put_all<const W: usize>(&mut self, states: &[u64], keys: &[Key], new: &mut Vec<u32>) {
        new.resize(keys.len(), 0);
        let mut count = 0;
        for ((i, state), key) in (0..).zip(states.as_chunks::<W>().0).zip(keys) {
            // Which are new is hard to foresee.
            new[count] = i;
            count += usize::from(self.put(W, state, *key).new);
        }
        new.truncate(count);
    }

    /// With the number of words given once more, which the compiler may know.
    #[inline(always)]
    fn put(&mut self, words: usize, state: &[u64], Key { hash, parent }: Key) -> Inserted {
        let tag = tag(hash);
        let chunks = &self.chunks;
        let is_it = |index: u32| {
            let (chunk, at) = (index as usize / CHUNK, index as usize % CHUNK);
            same(&chunks[chunk][at * words..(at + 1) * words], state)
        };
        let stripe = self.index.stripe_mut(tag);
        let slot = match stripe.find(tag, is_it) {
            Ok(index) => return Inserted { index, new: false },
            Err(slot) => slot,
        };
        let index = self.count as u32;
        stripe.set(slot, index, tag);
        if stripe.is_full() {
            self.index.grow(tag);
        }
        if self.count.is_multiple_of(CHUNK) {
            // The first chunk grows as it fills: most searches are tiny.
            let room = if index == 0 { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room * words));
            self.parents.push(Vec::with_capacity(room));
        }
        if let (Some(chunk), Some(parents)) = (self.chunks.last_mut(), self.parents.last_mut()) {
            append(chunk, state);
            parents.push(parent);
        }
        self.count += 1;
        Inserted { index, new: true }
    }

    /// The parent is this one if it is less.
    pub(crate) fn lower_parent(&mut self, index: u32, parent: u32) {
        let at = &mut self.parents[index as usize / CHUNK][index as usize % CHUNK];
        *at = parent.min(*at);
    }

    /// Looks at every state with this tag.
    pub(crate) fn each_with_tag(&self, tag: u32, mut look: impl FnMut(u32)) {
        let never = |number| {
            look(number);
            false
        };
        let _ = self.index.stripe(tag).find(tag, never);
    }

    /// The number of a state that is there.
    pub fn find(&self, state: &[u64]) -> Option<u32> {
        let tag = tag(hash(state));
        let is_it = |index| self.state(index) == state;
        self.index.stripe(tag).find(tag, is_it).ok()
    }

    /// The index in shares of its stripes, and the states beside it.
    pub fn shared(&mut self) -> (&mut [Stripe], Stored<'_>) {
        let stored = Stored {
            words: self.words,
            chunks: &self.chunks,
        };
        (self.index.split(), stored)
    }

    /// Makes room for so many more states, and gives each of the counts its part to be filled in. The index
    /// is not told.
    pub fn make_room(&mut self, counts: &[usize]) -> Vec<Room<'_>> {
        let (words, first) = (self.words, self.count);
        self.count += counts.iter().sum::<usize>();
        let mut at = first;
        while at < self.count {
            if at.is_multiple_of(CHUNK) {
                self.chunks.push(Vec::with_capacity(CHUNK * words));
                self.parents.push(Vec::with_capacity(CHUNK));
            }
            let end = self.count.min((at / CHUNK + 1) * CHUNK);
            self.chunks[at / CHUNK].resize((end - 1) % CHUNK * words + words, 0);
            self.parents[at / CHUNK].resize((end - 1) % CHUNK + 1, ROOT);
            at = end;
        }
        let chunk = first / CHUNK;
        let mut skip = first % CHUNK;
        let parts = self.chunks[chunk..]
            .iter_mut()
            .zip(&mut self.parents[chunk..]);
        let mut parts = parts.map(|(states, parents)| {
            let skip = std::mem::take(&mut skip);
            (&mut states[skip * words..], &mut parents[skip..])
        });
        let mut free: Piece<'_> = Default::default();
        let room = |count: &usize| {
            let mut pieces = Vec::with_capacity(1);
            let mut left = *count;
            while left > 0 {
                if free.1.is_empty() {
                    let Some(next) = parts.next() else { break };
                    free = next;
                }
                let (states, parents) = std::mem::take(&mut free);
                let n = left.min(parents.len());
                let (states, more_states) = states.split_at_mut(n * words);
                let (parents, more_parents) = parents.split_at_mut(n);
                pieces.push((states, parents));
                free = (more_states, more_parents);
                left -= n;
            }
            Room { words, pieces }
        };
        counts.iter().map(room).collect()
    }

    /// More states cannot be numbered.
    pub const MOST: usize = ROOT as usize - (1 << 27);

    /// The store cannot number more states.
    pub fn is_full(&self) -> bool {
        self.count >= Store::MOST
    }

    /// Adds the states of a batch, and says there which were new.
    pub(crate) fn take_in(&mut self, batch: &mut Batch) {
        if self.is_far() {
            for key in &batch.keys {
                self.prefetch_slot(key.hash);
            }
            for key in &batch.keys {
                self.prefetch_state(key.hash);
            }
        }
        self.insert_all(&batch.states, &batch.keys, &mut batch.new);
    }
}

/// States and parents next to each other.
type Piece<'s> = (&'s mut [u64], &'s mut [u32]);

/// Where some of the new states go.
pub struct Room<'s> {
    words: usize,
    pieces: Vec<Piece<'s>>,
}

impl Room<'_> {
    /// None at all.
    pub fn nowhere() -> Self {
        Room {
            words: 1,
            pieces: Vec::new(),
        }
    }

    /// Fills in states and their parents, as many as there is room for.
    pub fn fill<'r>(self, mut rows: impl Iterator<Item = (&'r [u64], u32)>) {
        for (states, parents) in self.pieces {
            let room = states.chunks_exact_mut(self.words).zip(parents);
            for ((to, to_parent), (state, parent)) in room.zip(rows.by_ref()) {
                to.copy_from_slice(state);
                *to_parent = parent;
            }
        }
    }
}

/// The states of a store, to be read.
#[derive(Clone, Copy)]
pub struct Stored<'s> {
    words: usize,
    chunks: &'s [Vec<u64>],
}

impl<'s> Stored<'s> {
    #[inline]
    pub fn state(&self, index: u32) -> &'s [u64] {
        let (chunk, at) = (index as usize / CHUNK, index as usize % CHUNK);
        &self.chunks[chunk][at * self.words..(at + 1) * self.words]
    }
}

/// States are a few words: calls to compare or copy them would cost more than doing it.
#[inline]
pub(crate) fn same(a: &[u64], b: &[u64]) -> bool {
    match (a, b) {
        ([a], [b]) => a == b,
        ([a, c], [b, d]) => a == b && c == d,
        ([a, c, e], [b, d, f]) => a == b && c == d && e == f,
        (a, b) => a == b,
    }
}

#[inline]
pub(crate) fn append(to: &mut Vec<u64>, state: &[u64]) {
    match *state {
        [a] => to.push(a),
        [a, b] => {
            to.push(a);
            to.push(b);
        }
        _ => to.extend_from_slice(state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_states_in_order_of_arrival() {
        let mut store = Store::new(2);
        for i in 0..200_000u64 {
            let state = [i % 70_000, (i % 70_000).wrapping_mul(0x9e37_79b9)];
            let found = store.insert(&state, hash(&state), i as u32);
            assert_eq!(found.new, i < 70_000);
            assert_eq!(u64::from(found.index), i % 70_000);
        }
        assert_eq!(store.len(), 70_000);
        assert_eq!(store.state(69_999)[0], 69_999);
        assert_eq!(store.parent(12_345), 12_345);
    }
}
