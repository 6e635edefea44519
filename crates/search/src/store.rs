//! The set of states seen: exact, append-only, numbered in the order of arrival.
//!
//! States of a fixed number of words lie one after the other in chunks; an [`Index`] finds a state's
//! number by its hash. Each state has one word for its parent.

use crate::batch::Batch;
use crate::index::{Index, Stripe, prefetch, tag};
use crate::row::deal;

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
            self.add_chunk();
        }
        let at = self.count % CHUNK;
        if let (Some(chunk), Some(parents)) = (self.chunks.last_mut(), self.parents.last_mut()) {
            match chunk.get_mut(at * words..(at + 1) * words) {
                Some(to) => {
                    copy(to, state);
                    parents[at] = parent;
                }
                None => {
                    append(chunk, state);
                    parents.push(parent);
                }
            }
        }
        self.count += 1;
        Inserted { index, new: true }
    }

    /// The first chunk grows as it fills: most searches are tiny. The memory of others is not touched before it is
    /// used.
    fn add_chunk(&mut self) {
        let room = if self.count == 0 { 0 } else { CHUNK };
        self.chunks.push(vec![0; room * self.words]);
        self.parents.push(vec![0; room]);
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

    /// Makes room for so many more states, and gives each of the counts its part to be filled in, and the index, which is
    /// to be told the numbers.
    pub fn make_room(&mut self, counts: &[usize]) -> (Vec<Room<'_>>, &Index) {
        let (words, first) = (self.words, self.count);
        let end = first + counts.iter().sum::<usize>();
        while self.count < end {
            if self.count.is_multiple_of(CHUNK) {
                self.add_chunk();
            }
            let to = end.min((self.count / CHUNK + 1) * CHUNK);
            let used = (to - 1) % CHUNK + 1;
            if let (Some(chunk), Some(parents)) = (self.chunks.last_mut(), self.parents.last_mut())
                && parents.len() < used
            {
                chunk.resize(used * words, 0);
                parents.resize(used, 0);
            }
            self.count = to;
        }
        let chunk = first / CHUNK;
        let from = |number: usize| if number == 0 { first % CHUNK } else { 0 };
        let states = self.chunks[chunk..].iter_mut().enumerate();
        let states = states.map(|(n, states)| &mut states[from(n) * words..]);
        let parents = self.parents[chunk..].iter_mut().enumerate();
        let parents = parents.map(|(n, parents)| &mut parents[from(n)..]);
        let states = deal(states, counts.iter().map(|count| count * words));
        let parents = deal(parents, counts.iter().copied());
        let both = states.into_iter().zip(parents);
        let rooms = both.map(|(states, parents)| Room {
            words,
            states,
            parents,
        });
        (rooms.collect(), &self.index)
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

/// Where some of the new states go.
pub struct Room<'s> {
    words: usize,
    states: Vec<&'s mut [u64]>,
    parents: Vec<&'s mut [u32]>,
}

impl Room<'_> {
    /// None at all.
    pub fn nowhere() -> Self {
        Room {
            words: 1,
            states: Vec::new(),
            parents: Vec::new(),
        }
    }

    /// Fills in states and their parents, as many as there is room for.
    pub fn fill<'r>(self, rows: impl Iterator<Item = (&'r [u64], u32)>) {
        let states = self.states.into_iter();
        let states = states.flat_map(|states| states.chunks_exact_mut(self.words));
        let parents = self.parents.into_iter().flatten();
        for ((to, to_parent), (state, parent)) in states.zip(parents).zip(rows) {
            copy(to, state);
            *to_parent = parent;
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
fn copy(to: &mut [u64], state: &[u64]) {
    match (to, state) {
        ([to], [a]) => *to = *a,
        ([to, and], [a, b]) => (*to, *and) = (*a, *b),
        ([to, and, last], [a, b, c]) => (*to, *and, *last) = (*a, *b, *c),
        (to, state) => to.copy_from_slice(state),
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
