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
    /// If states are compressed, what is stored of each.
    pub pairs: Vec<u64>,
    /// Those that the store did not have.
    pub new: Vec<u32>,
    /// States whose events were not all taken: their numbers, and which successors are theirs.
    pub chosen: Vec<(u32, Range<usize>)>,
    /// So many states were expanded into it.
    pub expanded: usize,
    /// All events are wanted.
    pub whole: bool,
    /// The parent of what comes one by one.
    pub parent: u32,
    /// The successors sorted by their shares of the store's index, and where each share ends.
    by_share: Vec<Waiting>,
    ends: Vec<u32>,
    /// A bit for each successor that is new.
    marks: Vec<u64>,
}

/// A successor by its place, with the tag that says where it belongs.
#[derive(Clone, Copy, Default)]
pub struct Waiting {
    pub at: u32,
    pub tag: u32,
}

impl Batch {
    pub fn new(words: usize) -> Self {
        Batch {
            words,
            states: Vec::new(),
            keys: Vec::new(),
            known: Vec::new(),
            pairs: Vec::new(),
            new: Vec::new(),
            chosen: Vec::new(),
            expanded: 0,
            whole: false,
            parent: ROOT,
            by_share: Vec::new(),
            ends: Vec::new(),
            marks: Vec::new(),
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
        self.sort_by(shares, |batch, at| tag(batch.keys[at].hash));
    }

    /// Sorts what waits by the shares that its tags are in.
    pub fn sort_by(&mut self, shares: usize, tag: impl Fn(&Batch, usize) -> u32) {
        let mut ends = std::mem::take(&mut self.ends);
        let mut by_share = std::mem::take(&mut self.by_share);
        ends.clear();
        ends.resize(shares, 0);
        let waiting = self.keys.len();
        for at in 0..waiting {
            ends[Index::share(tag(self, at), shares)] += 1;
        }
        let mut from = 0;
        for end in &mut ends {
            from += std::mem::replace(end, from);
        }
        by_share.resize(waiting, Waiting::default());
        for at in 0..waiting {
            let tag = tag(self, at);
            let to = &mut ends[Index::share(tag, shares)];
            by_share[*to as usize] = Waiting { at: at as u32, tag };
            *to += 1;
        }
        (self.ends, self.by_share) = (ends, by_share);
    }

    /// These were new, told in any order.
    pub fn set_new(&mut self, new: impl Iterator<Item = u32>) {
        self.marks.clear();
        self.marks.resize(self.keys.len().div_ceil(64), 0);
        for at in new {
            self.marks[at as usize / 64] |= 1 << (at % 64);
        }
        self.new.clear();
        for (i, word) in (0..).zip(&self.marks) {
            let mut word = *word;
            while word != 0 {
                self.new.push(64 * i + word.trailing_zeros());
                word &= word - 1;
            }
        }
    }

    /// What waits for this share, in the order it came.
    pub fn of_share(&self, share: usize) -> &[Waiting] {
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
        self.pairs.clear();
        self.chosen.clear();
    }

    /// Empties the batch, and makes room for so many states, all of them to be filled in, as what comes with them is.
    pub fn begin<const W: usize>(
        &mut self,
        count: usize,
    ) -> (&mut [[u64; W]], &mut [Key], &mut [Known]) {
        self.pairs.clear();
        self.chosen.clear();
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
