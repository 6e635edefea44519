//! The set of states seen: exact, append-only, numbered in the order of arrival.
//!
//! States of a fixed number of words lie one after the other in chunks; a table of 64-bit slots with
//! linear probing holds a state's number and 24 bits of its hash, so that a probe rarely touches a
//! state that is not the one. A slot's place comes from the hash by multiplication, so the table need
//! not be a power of two and can grow by half. Each state has one word for its parent.

/// The parent of an initial state.
pub const ROOT: u32 = u32::MAX;

const TAG: u32 = 24;
const TAG_MASK: u64 = (1 << TAG) - 1;
/// States per chunk.
const CHUNK: usize = 1 << 14;
const FIRST_SLOTS: usize = 256;
/// As many slots as are near.
const NEAR_SLOTS: usize = 1 << 16;

pub struct Store {
    words: usize,
    chunks: Vec<Vec<u64>>,
    parents: Vec<Vec<u32>>,
    table: Vec<u64>,
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
            table: vec![0; FIRST_SLOTS],
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
        (states + parents + self.table.len() * 8) as u64
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

    #[inline]
    fn slot(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.table.len() as u128) >> 64) as usize
    }

    /// The table is too large for the processor's nearer caches: slots had better be fetched early.
    #[inline]
    pub fn is_far(&self) -> bool {
        self.table.len() > NEAR_SLOTS
    }

    /// Asks the processor to fetch the slot where the hash will be looked for.
    #[inline]
    pub fn prefetch_slot(&self, hash: u64) {
        prefetch(&self.table[self.slot(hash)]);
    }

    /// Asks the processor to fetch the state that is most likely equal to the one with this hash.
    #[inline]
    pub fn prefetch_state(&self, hash: u64) {
        let entry = self.table[self.slot(hash)];
        if entry != 0 && entry & TAG_MASK == hash & TAG_MASK {
            let index = (entry >> TAG) as usize - 1;
            prefetch(&self.chunks[index / CHUNK][index % CHUNK * self.words]);
        }
    }

    /// Whether `more` states need a larger table, and how many bytes that would take.
    pub fn growth(&self, more: usize) -> Option<u64> {
        let full = (self.count + more) * 10 > self.table.len() * 7;
        full.then(|| self.next_size(more) as u64 * 8)
    }

    fn next_size(&self, more: usize) -> usize {
        let mut size = self.table.len();
        while (self.count + more) * 10 > size * 7 {
            size = if size < 1 << 14 {
                size * 2
            } else {
                size + size / 2
            };
        }
        size
    }

    /// Makes room in the table for `more` states.
    pub fn reserve(&mut self, more: usize) {
        if self.growth(more).is_none() {
            return;
        }
        let size = self.next_size(more);
        // The old table is not needed to fill the new one: states are visited in order.
        self.table = Vec::new();
        self.table = vec![0; size];
        const AHEAD: usize = 16;
        let mut pending = [(0u64, 0u64); AHEAD];
        let mut index = 0u64;
        for c in 0..self.chunks.len() {
            for at in 0..self.chunks[c].len() / self.words {
                let state = &self.chunks[c][at * self.words..(at + 1) * self.words];
                let h = hash(state);
                self.prefetch_slot(h);
                let p = &mut pending[index as usize % AHEAD];
                let (old, entry) = *p;
                *p = (h, (index + 1) << TAG | (h & TAG_MASK));
                if entry != 0 {
                    self.place(old, entry);
                }
                index += 1;
            }
        }
        for (h, entry) in pending {
            if entry != 0 {
                self.place(h, entry);
            }
        }
    }

    /// Puts an entry known to be new into the first free slot.
    #[inline]
    fn place(&mut self, hash: u64, entry: u64) {
        let mut slot = self.slot(hash);
        while self.table[slot] != 0 {
            slot += 1;
            if slot == self.table.len() {
                slot = 0;
            }
        }
        self.table[slot] = entry;
    }

    /// Adds the state if it is not there. Call [`Store::reserve`] before.
    #[inline]
    pub fn insert(&mut self, state: &[u64], hash: u64, parent: u32) -> Inserted {
        self.put(self.words, state, Key { hash, parent })
    }

    /// Adds those of the states that are not there, and says which these were. Call
    /// [`Store::reserve`] before.
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
        let mut slot = self.slot(hash);
        loop {
            let entry = self.table[slot];
            if entry == 0 {
                break;
            }
            if entry & TAG_MASK == hash & TAG_MASK {
                let index = ((entry >> TAG) - 1) as u32;
                let (chunk, at) = (index as usize / CHUNK, index as usize % CHUNK);
                if same(&self.chunks[chunk][at * words..(at + 1) * words], state) {
                    return Inserted { index, new: false };
                }
            }
            slot += 1;
            if slot == self.table.len() {
                slot = 0;
            }
        }
        let index = self.count;
        self.table[slot] = (index as u64 + 1) << TAG | (hash & TAG_MASK);
        if index.is_multiple_of(CHUNK) {
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
        Inserted {
            index: index as u32,
            new: true,
        }
    }

    /// The number of a state that is there.
    pub fn find(&self, state: &[u64]) -> Option<u32> {
        let hash = hash(state);
        let mut slot = self.slot(hash);
        loop {
            let entry = self.table[slot];
            if entry == 0 {
                return None;
            }
            let index = (entry >> TAG).wrapping_sub(1) as u32;
            if entry & TAG_MASK == hash & TAG_MASK && self.state(index) == state {
                return Some(index);
            }
            slot = (slot + 1) % self.table.len();
        }
    }

    /// The store cannot number more states.
    pub fn is_full(&self) -> bool {
        self.count >= ROOT as usize - (1 << 20)
    }
}

/// States are a few words: calls to compare or copy them would cost more than doing it.
#[inline]
fn same(a: &[u64], b: &[u64]) -> bool {
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

#[inline]
fn prefetch<T>(p: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint; it reads nothing and the address comes from a reference.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_prefetch(std::ptr::from_ref(p).cast::<i8>(), _MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_states_in_order_of_arrival() {
        let mut store = Store::new(2);
        for i in 0..200_000u64 {
            let state = [i % 70_000, (i % 70_000).wrapping_mul(0x9e37_79b9)];
            store.reserve(1);
            let found = store.insert(&state, hash(&state), i as u32);
            assert_eq!(found.new, i < 70_000);
            assert_eq!(u64::from(found.index), i % 70_000);
        }
        assert_eq!(store.len(), 70_000);
        assert_eq!(store.state(69_999)[0], 69_999);
        assert_eq!(store.parent(12_345), 12_345);
    }
}
