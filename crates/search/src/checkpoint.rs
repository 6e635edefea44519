//! What a search writes down at the ends of levels, and how another one goes on from there.
//!
//! The log has all states with their parents, in the order of their numbers; it only grows. The head has the rest: how
//! fields and buffers came to be as wide as they are (see [`crate::rounds`]), what was counted and noticed, and
//! what is known about the states to be expanded next. All is in words of 64 bits. Who keeps them, and where, is not this
//! crate's business ([`Keep`]).

use crate::expand::Known;
use crate::explore::{Count, Search};
use crate::row::Row;
use crate::store::{ROOT, hash};
use std::io::Read;
use wattle_memory::compiled::{Notes, Slot};
use wattle_model::{StepId, ThreadId};

/// Keeps what a search needs to go on. A search writes a log that only grows, and from time to time a *head* that
/// says what to make of the log so far; what was written after the last head is not there.
///
/// A search has a name that says all that it depends on, and is never given what another one left.
pub trait Keep: Sync {
    /// What the search of this name left.
    fn open(&self, name: &str) -> Option<Kept>;

    /// Whether it is time to write something down.
    fn is_due(&self) -> bool;

    /// What follows begins a new log.
    fn begin(&self, name: &str);

    /// More for the log.
    fn append(&self, bytes: &[u8]);

    /// The log up to here is to be read with this head.
    fn commit(&self, head: &[u8]);
}

/// What a search left: the log up to the head, and the head.
pub struct Kept {
    pub log: Box<dyn Read>,
    pub head: Vec<u8>,
}

/// What made a search pack its states anew or begin again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    Narrow(Slot, i64),
    Short(ThreadId),
    /// Longer buffers for these threads.
    Grow(Vec<bool>),
    /// Nothing is left out any more.
    Idle,
}

/// Who keeps a search, and what is kept of it.
pub struct Keeper<'k> {
    keep: &'k dyn Keep,
    name: String,
    pub turns: Vec<Turn>,
    /// So many states are in the log.
    logged: usize,
}

/// What a search left, as far as it must be known before there is a machine.
pub struct Left {
    pub turns: Vec<Turn>,
    rest: Words,
    log: Box<dyn Read>,
}

/// Words, read one after the other.
pub(crate) struct Words {
    words: Vec<u64>,
    next: usize,
}

impl Words {
    fn new(bytes: &[u8]) -> Self {
        let words = bytes.as_chunks::<8>().0.iter();
        Words::of(words.map(|w| u64::from_le_bytes(*w)).collect())
    }

    pub fn of(words: Vec<u64>) -> Self {
        Words { words, next: 0 }
    }

    pub fn next(&mut self) -> Option<u64> {
        let word = self.words.get(self.next)?;
        self.next += 1;
        Some(*word)
    }

    pub fn number(&mut self) -> Option<usize> {
        usize::try_from(self.next()?).ok()
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.next()? != 0)
    }

    fn flags(&mut self) -> Option<Vec<bool>> {
        let count = self.number()?;
        (0..count).map(|_| self.flag()).collect()
    }
}

fn write_flags(to: &mut Vec<u64>, flags: &[bool]) {
    to.push(flags.len() as u64);
    to.extend(flags.iter().map(|f| u64::from(*f)));
}

impl Turn {
    pub fn write(&self, to: &mut Vec<u64>) {
        match self {
            Turn::Narrow(Slot::Cell(cell), value) => {
                to.extend([0, u64::from(*cell), *value as u64]);
            }
            Turn::Narrow(Slot::Register { thread, register }, value) => {
                to.extend([1, u64::from(*thread), u64::from(*register), *value as u64]);
            }
            Turn::Short(thread) => to.extend([2, thread.index() as u64]),
            Turn::Grow(full) => {
                to.push(3);
                write_flags(to, full);
            }
            Turn::Idle => to.push(4),
        }
    }

    pub(crate) fn read(from: &mut Words) -> Option<Turn> {
        let small = |from: &mut Words| u32::try_from(from.next()?).ok();
        Some(match from.next()? {
            0 => Turn::Narrow(Slot::Cell(small(from)?), from.next()? as i64),
            1 => {
                let (thread, register) = (small(from)?, small(from)?);
                Turn::Narrow(Slot::Register { thread, register }, from.next()? as i64)
            }
            2 => Turn::Short(ThreadId::new(from.number()?)),
            3 => Turn::Grow(from.flags()?),
            4 => Turn::Idle,
            _ => return None,
        })
    }
}

/// What was noticed, in words.
pub(crate) fn write_notes(notes: &Notes, to: &mut Vec<u64>) {
    let Notes {
        full,
        overflow,
        fault,
    } = notes;
    write_flags(to, full);
    to.push(u64::from(*fault));
    match overflow {
        None => to.push(0),
        Some((t, s)) => to.extend([1, t.index() as u64, s.index() as u64]),
    }
}

pub(crate) fn read_notes(from: &mut Words) -> Option<Notes> {
    Some(Notes {
        full: from.flags()?,
        fault: from.flag()?,
        overflow: match from.flag()? {
            false => None,
            true => Some((ThreadId::new(from.number()?), StepId::new(from.number()?))),
        },
    })
}

impl<'k> Keeper<'k> {
    pub fn new(keep: &'k dyn Keep, name: String) -> Self {
        Keeper {
            keep,
            name,
            turns: Vec::new(),
            logged: 0,
        }
    }

    /// What a search of the same name left.
    pub fn open(&self) -> Option<Left> {
        let Kept { log, head } = self.keep.open(&self.name)?;
        let mut rest = Words::new(&head);
        let count = rest.number()?;
        let turns = (0..count).map(|_| Turn::read(&mut rest));
        let turns = turns.collect::<Option<Vec<Turn>>>()?;
        Some(Left { turns, rest, log })
    }

    pub fn is_due(&self) -> bool {
        self.keep.is_due()
    }

    /// States are packed in another way from now on.
    pub fn turn(&mut self, turn: Turn) {
        self.turns.push(turn);
        self.logged = 0;
    }

    /// Writes down a search that is at the end of a level.
    pub fn save(&mut self, search: &Search<'_, '_>) {
        if self.logged == 0 {
            self.keep.begin(&self.name);
        }
        let store = &search.store;
        let mut bytes: Vec<u8> = Vec::new();
        for number in self.logged..store.len() {
            let number = number as u32;
            let state = store.state(number).iter();
            bytes.extend(state.flat_map(|w| w.to_le_bytes()));
            bytes.extend(store.parent(number).to_le_bytes());
            if bytes.len() > 1 << 20 {
                self.keep.append(&bytes);
                bytes.clear();
            }
        }
        self.keep.append(&bytes);
        self.logged = store.len();
        let mut head = vec![self.turns.len() as u64];
        self.turns.iter().for_each(|t| t.write(&mut head));
        let count = search.count.to_words();
        head.extend([search.machine.words as u64, store.len() as u64]);
        head.extend(count);
        head.push(u64::from(search.impatient));
        write_notes(&search.notes, &mut head);
        let known = search.queue.after(search.count.expanded);
        head.extend(known.map(Known::to_word));
        let bytes: Vec<u8> = head.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.keep.commit(&bytes);
    }
}

impl Left {
    /// Puts what was left into a search that has not begun. `None` if it does not fit, and then the search is of no
    /// use.
    pub fn load(mut self, search: &mut Search<'_, '_>) -> Option<()> {
        let from = &mut self.rest;
        let (words, states) = (from.number()?, from.number()?);
        if words != search.machine.words || states >= ROOT as usize {
            return None;
        }
        let mut bytes = vec![0; 8 * words + 4];
        let mut state = vec![0; words];
        for _ in 0..states {
            self.log.read_exact(&mut bytes).ok()?;
            let (packed, parent) = bytes.split_at(8 * words);
            for (word, bytes) in state.iter_mut().zip(packed.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            let parent = u32::from_le_bytes(parent.try_into().ok()?);
            let inserted = search.store.insert(&state, hash(&state), parent);
            inserted.new.then_some(())?;
        }
        let mut count = [0; Count::WORDS];
        for word in &mut count {
            *word = from.next()?;
        }
        search.count = Count::from_words(count);
        search.impatient = from.flag()?;
        let notes = read_notes(from)?;
        if notes.full.len() != search.notes.full.len() || search.count.level_end != states {
            return None;
        }
        search.notes = notes;
        let left = states.checked_sub(search.count.expanded)?;
        let known = (0..left).map(|_| from.next().map(Known::from_word));
        let known = known.collect::<Option<Vec<Known>>>()?;
        search.queue = Row::from(search.count.expanded, known.into_iter());
        Some(())
    }
}
