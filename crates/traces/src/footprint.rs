//! What a move touches, and which moves depend on each other by it.
//!
//! Two moves of different processes depend on each other if both access a cell and one of them writes
//! it, or if one is a load served by a pending store and the other that store's drain. Beside the
//! memory cells there are two more: who holds the lock (read by whatever must wait for it, written by
//! lock and unlock), and what the question sees (written by whatever may change it). Footprints are
//! kept once each and known by number.

use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Read,
    Write,
    /// Read from the pending store whose serial the access has.
    Forward,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    pub cell: u32,
    pub kind: Kind,
    /// Of a drain or a load served by a pending store: which store; else [`NO_STORE`].
    pub store: u64,
}

pub const NO_STORE: u64 = u64::MAX;

/// The name of a thread's store.
pub fn store(thread: u32, serial: u32) -> u64 {
    u64::from(thread) << 32 | u64::from(serial)
}

impl Access {
    #[inline]
    pub fn conflicts(&self, other: &Access) -> bool {
        self.cell == other.cell
            && match (self.kind, other.kind) {
                (Kind::Read, Kind::Read) => false,
                (Kind::Forward, Kind::Write) | (Kind::Write, Kind::Forward) => {
                    self.store == other.store
                }
                (Kind::Forward, Kind::Read | Kind::Forward) | (Kind::Read, Kind::Forward) => false,
                (Kind::Read, Kind::Write) | (Kind::Write, Kind::Read | Kind::Write) => true,
            }
    }
}

/// All footprints met. Number 0 is the empty one.
pub struct Footprints {
    numbers: FxHashMap<Box<[Access]>, u32>,
    all: Vec<Box<[Access]>>,
}

impl Footprints {
    pub fn new() -> Self {
        let mut new = Footprints {
            numbers: FxHashMap::default(),
            all: Vec::new(),
        };
        new.number(&mut Vec::new());
        new
    }

    /// The number of a set of accesses.
    pub fn number(&mut self, accesses: &mut Vec<Access>) -> u32 {
        if accesses.len() > 1 {
            accesses.sort_unstable();
            accesses.dedup();
        }
        if let Some(n) = self.numbers.get(accesses.as_slice()) {
            return *n;
        }
        let n = self.all.len() as u32;
        let accesses: Box<[Access]> = accesses.as_slice().into();
        self.all.push(accesses.clone());
        self.numbers.insert(accesses, n);
        n
    }

    #[inline]
    pub fn accesses(&self, number: u32) -> &[Access] {
        &self.all[number as usize]
    }

    #[inline]
    pub fn conflict(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.accesses(a), self.accesses(b));
        a.iter().any(|x| b.iter().any(|y| x.conflicts(y)))
    }
}
