//! The set of states seen, compressed: each state is a pair of numbers, and the parts that these stand for are kept
//! once.
//!
//! A state's bits are cut into two halves, about half of the threads and the rest ([`halves`]). The distinct values of each half are
//! numbered as they come; only the pairs of numbers are as many as there are states, and they are in sets that
//! need a few bytes for each ([`Pairs`]). A successor mostly has one of its halves from the state it comes from, so that
//! is not looked up.
//!
//! States are numbered as they are in a [`crate::store::Store`], but not found by number: the states to be
//! expanded are kept in a row, and for each state there is a byte about its *birth* ([`Births`]), from which a run is made again.
//!
//! Several workers: parts are looked up by all of them at once while nobody adds any; the missing ones, which are few,
//! are added by one. Then each share of the sets belongs to one worker.

use crate::batch::Batch;
use crate::births::Births;
use crate::index::prefetch;
use crate::pairs::{MOST_BITS, Pairs, SETS, pair, set_of};
use crate::row::Row;
use crate::store::ROOT;
use wattle_memory::Start;
use wattle_memory::compiled::{Machine, Sink};

/// The distinct values of some bits of states, numbered.
struct Parts {
    /// The words that have such bits, and which.
    masks: Vec<(usize, u64)>,
    /// Those words of each value, one after the other.
    values: Vec<u64>,
    /// Numbers plus one; 0 is free. As many as a power of two.
    slots: Vec<u32>,
    count: usize,
}

impl Parts {
    fn new(mask: &[u64]) -> Self {
        let masks = mask.iter().copied().enumerate();
        Parts {
            masks: masks.filter(|(_, mask)| *mask != 0).collect(),
            values: Vec::new(),
            slots: vec![0; 16],
            count: 0,
        }
    }

    #[inline]
    fn home(&self, words: impl Iterator<Item = u64>) -> usize {
        let mut h = 0xa076_1d64_78bd_642f_u64;
        for word in words {
            let wide = u128::from(h ^ word) * 0x9e37_79b9_7f4a_7c15_u128;
            h = (wide as u64) ^ ((wide >> 64) as u64).rotate_left(17);
        }
        (h ^ h >> 32) as usize & (self.slots.len() - 1)
    }

    /// The words of a state's value.
    #[inline]
    fn of<'s>(&'s self, state: &'s [u64]) -> impl Iterator<Item = u64> + 's {
        self.masks.iter().map(|(word, mask)| state[*word] & mask)
    }

    #[inline]
    fn value(&self, number: u32) -> &[u64] {
        let words = self.masks.len();
        &self.values[number as usize * words..][..words]
    }

    #[inline]
    fn are_same(&self, one: &[u64], other: &[u64]) -> bool {
        let mut all = self.masks.iter();
        all.all(|(word, mask)| (one[*word] ^ other[*word]) & mask == 0)
    }

    /// The number of a state's value, or the slot for it.
    #[inline]
    fn find(&self, state: &[u64]) -> Result<u32, usize> {
        let mut slot = self.home(self.of(state));
        loop {
            match self.slots[slot] {
                0 => return Err(slot),
                n if self.of(state).eq(self.value(n - 1).iter().copied()) => return Ok(n - 1),
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    fn number(&mut self, state: &[u64]) -> u32 {
        let slot = match self.find(state) {
            Ok(number) => return number,
            Err(slot) => slot,
        };
        let number = self.count as u32;
        for (word, mask) in &self.masks {
            self.values.push(state[*word] & mask);
        }
        self.count += 1;
        self.slots[slot] = number + 1;
        if self.count * 3 > self.slots.len() * 2 {
            self.slots = vec![0; self.slots.len() * 2];
            for number in 0..self.count as u32 {
                let mut slot = self.home(self.value(number).iter().copied());
                while self.slots[slot] != 0 {
                    slot = (slot + 1) & (self.slots.len() - 1);
                }
                self.slots[slot] = number + 1;
            }
        }
        number
    }

    /// Puts the value of this number into a state without these bits.
    #[inline]
    fn unfold(&self, number: u32, state: &mut [u64]) {
        for ((word, _), value) in self.masks.iter().zip(self.value(number)) {
            state[*word] |= value;
        }
    }

    fn bytes(&self) -> u64 {
        8 * self.values.capacity() as u64 + 4 * self.slots.capacity() as u64
    }
}

/// A state with a half that is not numbered yet.
const MISSING: u64 = u64::MAX;

/// The numbered halves of states.
struct Dictionary {
    words: usize,
    left: Parts,
    right: Parts,
}

impl Dictionary {
    /// With these bits in the left half.
    fn new(left: &[u64]) -> Self {
        let right: Vec<u64> = left.iter().map(|mask| !mask).collect();
        Dictionary {
            words: left.len(),
            left: Parts::new(left),
            right: Parts::new(&right),
        }
    }

    /// The pair of a state, given another one with its pair that may have a half in common.
    #[inline]
    fn find(&self, state: &[u64], near: Option<(&[u64], u64)>) -> u64 {
        let half = |parts: &Parts, shift: u32| match near {
            Some((other, pair)) if parts.are_same(state, other) => Some((pair >> shift) as u32),
            _ => parts.find(state).ok(),
        };
        match (half(&self.left, 32), half(&self.right, 0)) {
            (Some(left), Some(right)) => pair(left, right),
            _ => MISSING,
        }
    }

    /// Asks the processor to fetch what the pair will be found by.
    #[inline]
    fn prefetch(&self, state: &[u64], near: &[u64]) {
        for parts in [&self.left, &self.right] {
            if !parts.are_same(state, near) {
                prefetch(&parts.slots[parts.home(parts.of(state))]);
            }
        }
    }

    fn number(&mut self, state: &[u64]) -> u64 {
        pair(self.left.number(state), self.right.number(state))
    }

    fn state(&self, pair: u64, state: &mut [u64]) {
        state.fill(0);
        self.left.unfold((pair >> 32) as u32, state);
        self.right.unfold(pair as u32, state);
    }

    fn parts(&self) -> [&Parts; 2] {
        [&self.left, &self.right]
    }
}

/// The bits that about half of the threads have for themselves, as some random runs show them: those that change
/// when such a thread moves and never when another one does. Any bits would do; these make few distinct halves.
pub fn halves(machine: &Machine<'_>, starts: &[Start]) -> Vec<u64> {
    let (words, threads) = (machine.words, machine.thread_count());
    let mut changes = vec![vec![0; words]; threads];
    let mut notes = machine.notes();
    let (mut scratch, mut state) = (vec![0; words], vec![0; words]);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for walk in 0..WALKS {
        let Some(start) = starts.get(walk % starts.len().max(1)) else {
            break;
        };
        let mut first = Rows::default();
        let begun = machine.begin(start, &mut scratch, &mut notes, &mut first);
        match (begun, first.0.get(..words)) {
            (Ok(()), Some(first)) => state.copy_from_slice(first),
            _ => break,
        }
        for _ in 0..STEPS {
            let mut next = Rows::default();
            let alone = machine.inside_atomic(&state);
            for (t, changes) in changes.iter_mut().enumerate() {
                if alone.is_some_and(|alone| alone != t) {
                    continue;
                }
                let from = next.0.len();
                // What is cut short has shown something all the same.
                let _ = machine.expand_steps(&state, t, &mut scratch, &mut notes, &mut next);
                let _ = machine.expand_drains(&state, t, &mut scratch, &mut notes, &mut next);
                for row in next.0[from..].chunks_exact(words) {
                    for (change, (a, b)) in changes.iter_mut().zip(row.iter().zip(&state)) {
                        *change |= a ^ b;
                    }
                }
            }
            let count = next.0.len() / words.max(1);
            if count == 0 {
                break;
            }
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let chosen = (random % count as u64) as usize;
            state.copy_from_slice(&next.0[chosen * words..(chosen + 1) * words]);
        }
    }
    let bits = |mask: &[u64]| mask.iter().map(|w| w.count_ones()).sum::<u32>();
    let all = |changes: &[Vec<u64>]| {
        let word = |w: usize| changes.iter().fold(0, |all, c| all | c[w]);
        (0..words).map(word).collect::<Vec<u64>>()
    };
    let whole = bits(&all(&changes));
    let mut left = vec![0; words];
    for t in 0..threads {
        if bits(&left) * 2 >= whole {
            break;
        }
        let others = [&changes[..t], &changes[t + 1..]].concat();
        for (left, (own, others)) in left.iter_mut().zip(changes[t].iter().zip(all(&others))) {
            *left |= own & !others;
        }
    }
    left
}

const WALKS: usize = 24;
const STEPS: usize = 200;

/// States, one after the other.
#[derive(Default)]
struct Rows(Vec<u64>);

impl Sink for Rows {
    fn next(&mut self, state: &[u64]) {
        self.0.extend_from_slice(state);
    }
}

pub struct Tree {
    dictionary: Dictionary,
    sets: Vec<Pairs>,
    count: usize,
    pub births: Births,
    /// The first states, one after the other.
    pub roots: Vec<u64>,
    /// The pairs of the states to be expanded, as in the search's queue.
    pub row: Row<u64>,
    /// The pairs of the states that are owed.
    pub owed: Vec<u64>,
}

/// States with their pairs, the first of which has this number.
#[derive(Clone, Copy)]
pub struct Parents<'p> {
    pub first: u32,
    pub states: &'p [u64],
    pub pairs: &'p [u64],
}

impl Tree {
    /// For states with these bits in the left half.
    pub fn new(left: &[u64]) -> Self {
        Tree {
            dictionary: Dictionary::new(left),
            sets: (0..SETS).map(Pairs::new).collect(),
            count: 0,
            births: Births::default(),
            roots: Vec::new(),
            row: Row::default(),
            owed: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let sets: u64 = self.sets.iter().map(Pairs::bytes).sum();
        let parts: u64 = self.dictionary.parts().map(Parts::bytes).iter().sum();
        let others = self.owed.capacity() + self.roots.capacity();
        sets + parts + self.births.bytes() + self.row.bytes() + 8 * others as u64
    }

    /// Bytes that growing takes for a moment: sets grow one by one.
    pub fn growth(&self) -> u64 {
        self.sets.iter().map(Pairs::bytes).max().unwrap_or(0) * 2
    }

    /// No more can be numbered.
    pub fn is_full(&self) -> bool {
        let most = 1 << (MOST_BITS - 1);
        self.dictionary.parts().iter().any(|p| p.count > most)
    }

    /// The states of these pairs.
    pub fn states(&self, pairs: &[u64], states: &mut Vec<u64>) {
        let words = self.dictionary.words;
        states.resize(pairs.len() * words, 0);
        for (pair, state) in pairs.iter().zip(states.chunks_exact_mut(words)) {
            self.dictionary.state(*pair, state);
        }
    }

    /// Every state, in no order that means anything, until there is a reason to end.
    pub fn all_until(&self, mut look: impl FnMut(&[u64]) -> bool) {
        let mut state = vec![0; self.dictionary.words];
        let mut goes_on = |pair| {
            self.dictionary.state(pair, &mut state);
            !look(&state)
        };
        self.sets.iter().all(|set| set.each(&mut goes_on));
    }

    /// Looks up the pairs of a batch, whose states come from these.
    pub fn look_up(&self, batch: &mut Batch, parents: Option<Parents<'_>>) {
        let words = self.dictionary.words;
        let dictionary = &self.dictionary;
        let Batch {
            states,
            keys,
            pairs,
            ..
        } = batch;
        let parent = |number: u32| {
            let parents = parents?;
            let at = number.checked_sub(parents.first)? as usize;
            let state = parents.states.get(at * words..(at + 1) * words)?;
            Some((state, *parents.pairs.get(at)?))
        };
        pairs.clear();
        for (state, key) in states.chunks_exact(words).zip(&*keys) {
            if let Some((near, _)) = parent(key.parent) {
                dictionary.prefetch(state, near);
            }
        }
        let rows = states.chunks_exact(words).zip(&*keys);
        pairs.extend(rows.map(|(state, key)| dictionary.find(state, parent(key.parent))));
    }

    /// Adds the parts of a batch that were missing.
    pub fn add_missing(&mut self, batch: &mut Batch) {
        if batch.pairs.len() < batch.keys.len() {
            batch.pairs.clear();
            batch.pairs.resize(batch.keys.len(), MISSING);
        }
        let words = self.dictionary.words;
        let rows = batch.states.chunks_exact(words).zip(&mut batch.pairs);
        for (state, pair) in rows.filter(|(_, pair)| **pair == MISSING) {
            *pair = self.dictionary.number(state);
        }
    }

    /// Adds those of the states that are not there, and says which these were.
    pub fn insert_all(&mut self, batch: &mut Batch) {
        self.add_missing(batch);
        let sets = &mut self.sets;
        if self.count > FEW {
            for pair in &batch.pairs {
                sets[set_of(*pair)].prefetch(*pair);
            }
        }
        batch.new.clear();
        for (i, pair) in (0..).zip(&batch.pairs) {
            if sets[set_of(*pair)].insert(*pair) {
                batch.new.push(i);
            }
        }
        let pairs = batch.new.iter().map(|i| batch.pairs[*i as usize]);
        pairs.for_each(|pair| self.row.push(pair));
        self.number(batch);
    }

    /// The new ones of a batch have the next numbers.
    pub fn number(&mut self, batch: &Batch) {
        self.count += batch.new.len();
        for at in &batch.new {
            let parent = batch.keys[*at as usize].parent;
            if parent == ROOT {
                self.roots.extend(batch.state(*at as usize));
            }
            let before = batch.keys[..*at as usize].iter().rev();
            let place = before.take_while(|k| k.parent == parent).count();
            self.births.push(parent, place as u32, batch.whole);
        }
    }

    /// Its first bits say which set a pair belongs to.
    #[inline]
    pub fn tag(pair: u64) -> u32 {
        (set_of(pair) as u32) << (u32::BITS - SETS.trailing_zeros())
    }

    pub fn sets(&mut self) -> &mut [Pairs] {
        &mut self.sets
    }
}

/// So many states are near without being fetched.
const FEW: usize = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn states_of_any_size() {
        for words in 1..8 {
            let left: Vec<u64> = (0..words).map(|w| 0x00ff_0f0f_5555_3333 << w).collect();
            let mut tree = Tree::new(&left);
            let mut batch = Batch::new(words);
            let mut all = BTreeSet::new();
            let mut x = 7u64;
            for round in 0..40 {
                batch.clear();
                let mut new = Vec::new();
                for i in 0..100 {
                    let state: Vec<u64> = (0..words)
                        .map(|_| {
                            x ^= x << 13;
                            x ^= x >> 7;
                            x ^= x << 17;
                            (x % 7) << (x % 61) & 0x000f_f000_0f0f_000f
                        })
                        .collect();
                    batch.parent = 100 * round + i;
                    batch.next(&state);
                    if all.insert(state) {
                        new.push(i);
                    }
                }
                tree.look_up(&mut batch, None);
                tree.insert_all(&mut batch);
                assert_eq!(batch.new, new, "{words}");
            }
            let mut seen = BTreeSet::new();
            tree.all_until(|state| {
                seen.insert(state.to_vec());
                false
            });
            assert_eq!(seen, all);
            assert_eq!(tree.len(), all.len());
            let mut states = Vec::new();
            tree.states(tree.row.some(0, tree.len()), &mut states);
            let row: BTreeSet<Vec<u64>> = states.chunks(words).map(<[u64]>::to_vec).collect();
            assert_eq!(row, all);
        }
    }
}
