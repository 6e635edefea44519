//! States of the attack search, as flat words, and the store that keeps them.
//!
//! Layout of a working state: header, first delayed cell, lock, locations (with the flag "after the
//! load"), registers, memory, the attacker's private map, marks and footprint (four bits a cell).
//! What a phase does not use is cut off before the state is stored.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use wattle_model::Instance;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Everybody runs under SC.
    Before,
    /// The attacker's stores stay private.
    Delaying,
    /// The attacker has overtaken its first delayed store and is frozen.
    Committed,
    /// The attack is complete once the thread inside has left its atomic block.
    Leaving,
}

/// How a cell was touched after the load.
pub(super) const READ: u32 = 1;
pub(super) const WRITTEN: u32 = 2;

const FLAG: u32 = 1 << 31;
const NONE: u32 = u32::MAX;
/// Values from here to [`NONE`] (as words) are table indices.
const TABLE: u32 = 0x8000_0000;
const TABLE_END: u32 = 0x8100_0000;

/// Where the parts of a state begin.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    threads: usize,
    cells: usize,
    registers: Vec<usize>,
    memory: usize,
    private: usize,
    marks: usize,
    words: usize,
}

const HEADER: usize = 0;
const DELAYED: usize = 1;
const HOLDER: usize = 2;
const LOCATIONS: usize = 3;

impl Shape {
    pub fn new(instance: &Instance) -> Self {
        let threads = instance.threads.len();
        let cells = instance.cells.len();
        let mut registers = Vec::new();
        let mut at = LOCATIONS + threads;
        for t in &instance.threads {
            registers.push(at);
            at += t.registers.len();
        }
        let memory = at;
        let private = memory + cells;
        let marks = private + cells;
        Shape {
            threads,
            cells,
            registers,
            memory,
            private,
            marks,
            words: marks + cells.div_ceil(8),
        }
    }
}

/// Values that do not fit a word.
#[derive(Default)]
pub(super) struct Values {
    list: Vec<i64>,
    index: FxHashMap<i64, u32>,
    pub full: bool,
}

impl Values {
    pub fn encode(&mut self, v: i64) -> u32 {
        if let Ok(small) = i32::try_from(v) {
            let word = small as u32;
            if !(TABLE..TABLE_END).contains(&word) && word != NONE - 1 && word != NONE {
                return word;
            }
        }
        let next = self.list.len() as u32;
        let at = *self.index.entry(v).or_insert(next);
        if at == next {
            self.list.push(v);
            self.full |= TABLE + next + 1 >= TABLE_END;
        }
        TABLE + at.min(TABLE_END - TABLE - 1)
    }

    pub fn decode(&self, word: u32) -> i64 {
        if (TABLE..TABLE_END).contains(&word) {
            return self.list[(word - TABLE) as usize];
        }
        i64::from(word as i32)
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Work {
    words: Vec<u32>,
}

impl Work {
    pub fn new(shape: &Shape) -> Self {
        let mut words = vec![0; shape.words];
        words[shape.private..shape.marks].fill(NONE);
        Work { words }
    }

    pub fn phase(&self) -> Phase {
        match self.words[HEADER] & 3 {
            0 => Phase::Before,
            1 => Phase::Delaying,
            2 => Phase::Committed,
            _ => Phase::Leaving,
        }
    }

    pub fn attacker(&self) -> usize {
        (self.words[HEADER] >> 2) as usize
    }

    pub fn start(&mut self, attacker: usize, cell: usize) {
        self.words[HEADER] = 1 | (attacker as u32) << 2;
        self.words[DELAYED] = cell as u32;
    }

    /// Freezes the attacker and forgets what no longer matters of it.
    pub fn commit(&mut self, shape: &Shape) {
        let attacker = self.attacker();
        self.words[HEADER] = 2 | (attacker as u32) << 2;
        self.set_location(attacker, 0);
        let first = shape.registers[attacker];
        let last = shape.registers.get(attacker + 1).unwrap_or(&shape.memory);
        self.words[first..*last].fill(0);
        self.words[shape.private..shape.marks].fill(NONE);
    }

    /// Nothing is left but to leave the atomic block.
    pub fn leave(&mut self, shape: &Shape) {
        self.words[HEADER] |= 3;
        self.set_debt(false);
        for word in &mut self.words[LOCATIONS..LOCATIONS + shape.threads] {
            *word &= !FLAG;
        }
        self.words[shape.marks..].fill(0);
    }

    /// The cell of the first delayed store.
    pub fn delayed(&self) -> usize {
        (self.words[DELAYED] & !FLAG) as usize
    }

    /// A store fence lies behind the first delayed store: later stores may not overtake it.
    pub fn ordered(&self) -> bool {
        self.words[DELAYED] & FLAG != 0
    }

    pub fn set_ordered(&mut self) {
        self.words[DELAYED] |= FLAG;
    }

    pub fn holder(&self) -> Option<usize> {
        ((self.words[HOLDER] >> 1) as usize).checked_sub(1)
    }

    pub fn set_holder(&mut self, t: Option<usize>) {
        let word = t.map_or(0, |t| t as u32 + 1);
        self.words[HOLDER] = word << 1 | (self.words[HOLDER] & 1);
    }

    /// The current unit has yet to show that it comes after the load.
    pub fn debt(&self) -> bool {
        self.words[HOLDER] & 1 != 0
    }

    pub fn set_debt(&mut self, debt: bool) {
        self.words[HOLDER] = self.words[HOLDER] & !1 | u32::from(debt);
    }

    pub fn location(&self, t: usize) -> usize {
        (self.words[LOCATIONS + t] & !FLAG) as usize
    }

    pub fn set_location(&mut self, t: usize, l: usize) {
        let word = &mut self.words[LOCATIONS + t];
        *word = *word & FLAG | l as u32;
    }

    /// Whether the thread has had an event after the load.
    pub fn flag(&self, t: usize) -> bool {
        self.words[LOCATIONS + t] & FLAG != 0
    }

    pub fn set_flag(&mut self, t: usize) {
        self.words[LOCATIONS + t] |= FLAG;
    }

    pub fn register(&self, shape: &Shape, t: usize, r: usize) -> u32 {
        self.words[shape.registers[t] + r]
    }

    pub fn set_register(&mut self, shape: &Shape, t: usize, r: usize, v: u32) {
        self.words[shape.registers[t] + r] = v;
    }

    pub fn memory(&self, shape: &Shape, c: usize) -> u32 {
        self.words[shape.memory + c]
    }

    pub fn set_memory(&mut self, shape: &Shape, c: usize, v: u32) {
        self.words[shape.memory + c] = v;
    }

    pub fn private(&self, shape: &Shape, c: usize) -> Option<u32> {
        let v = self.words[shape.private + c];
        (v != NONE).then_some(v)
    }

    pub fn set_private(&mut self, shape: &Shape, c: usize, v: u32) {
        self.words[shape.private + c] = v;
    }

    pub fn mark(&self, shape: &Shape, c: usize) -> u32 {
        self.words[shape.marks + c / 8] >> (c % 8 * 4) & 3
    }

    pub fn raise_mark(&mut self, shape: &Shape, c: usize, to: u32) {
        let now = self.mark(shape, c).max(to);
        let word = &mut self.words[shape.marks + c / 8];
        let shift = c % 8 * 4;
        *word = *word & !(3 << shift) | now << shift;
    }

    /// How the current unit, in debt, touched the cell.
    pub fn foot(&self, shape: &Shape, c: usize) -> u32 {
        self.words[shape.marks + c / 8] >> (c % 8 * 4 + 2) & 3
    }

    pub fn raise_foot(&mut self, shape: &Shape, c: usize, to: u32) {
        let now = self.foot(shape, c).max(to);
        let word = &mut self.words[shape.marks + c / 8];
        let shift = c % 8 * 4 + 2;
        *word = *word & !(3 << shift) | now << shift;
    }

    pub fn clear_foot(&mut self, shape: &Shape) {
        for word in &mut self.words[shape.marks..] {
            *word &= 0x3333_3333;
        }
    }

    /// The footprint becomes marks; says whether it had the cell.
    pub fn merge_foot(&mut self, shape: &Shape, cell: usize) -> bool {
        let hit = self.foot(shape, cell) != 0;
        for c in 0..shape.cells {
            let foot = self.foot(shape, c);
            self.raise_mark(shape, c, foot);
        }
        self.clear_foot(shape);
        hit
    }

    /// The part of the words that the phase uses.
    fn stored<'w>(&'w self, shape: &Shape, buffer: &'w mut Vec<u32>) -> &'w [u32] {
        let marks_used = self.words[shape.marks..].iter().any(|w| *w != 0);
        let private_used = self.phase() == Phase::Delaying;
        if !marks_used {
            let end = if private_used {
                shape.marks
            } else {
                shape.private
            };
            return &self.words[..end];
        }
        if private_used {
            return &self.words;
        }
        buffer.clear();
        buffer.extend_from_slice(&self.words[..shape.private]);
        buffer.extend_from_slice(&self.words[shape.marks..]);
        buffer
    }

    fn restore(shape: &Shape, stored: &[u32]) -> Self {
        let mut work = Work::new(shape);
        let common = stored.len().min(shape.private);
        work.words[..common].copy_from_slice(&stored[..common]);
        let private_used = work.phase() == Phase::Delaying;
        let rest = &stored[common..];
        let (private, marks) = rest.split_at(if private_used { shape.cells } else { 0 });
        work.words[shape.private..shape.private + private.len()].copy_from_slice(private);
        work.words[shape.marks..shape.marks + marks.len()].copy_from_slice(marks);
        work
    }
}

/// Every state seen, with where it came from.
pub(super) struct Store<L> {
    shape: Shape,
    arena: Vec<u32>,
    /// End of each state in the arena.
    ends: Vec<usize>,
    pub parents: Vec<Option<(u32, L)>>,
    table: Vec<u32>,
    buffer: Vec<u32>,
}

impl<L: Copy> Store<L> {
    pub fn new(shape: Shape) -> Self {
        Store {
            shape,
            arena: Vec::new(),
            ends: Vec::new(),
            parents: Vec::new(),
            table: vec![NONE; 1 << 10],
            buffer: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn bytes(&self) -> u64 {
        let parents = self.parents.capacity() * size_of::<Option<(u32, L)>>();
        (self.arena.capacity() * 4 + self.ends.capacity() * 8 + parents + self.table.len() * 4)
            as u64
    }

    pub fn get(&self, i: usize) -> Work {
        Work::restore(&self.shape, self.slice(i))
    }

    fn slice(&self, i: usize) -> &[u32] {
        let from = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.arena[from..self.ends[i]]
    }

    /// Adds the state unless it is there already.
    pub fn insert(&mut self, work: &Work, parent: Option<(u32, L)>) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let words = work.stored(&self.shape, &mut buffer);
        let mask = self.table.len() - 1;
        let mut slot = hash(words) as usize & mask;
        let fresh = loop {
            match self.table[slot] {
                NONE => break true,
                i if self.slice(i as usize) == words => break false,
                _ => slot = (slot + 1) & mask,
            }
        };
        if fresh {
            self.table[slot] = self.ends.len() as u32;
            self.arena.extend_from_slice(words);
            self.ends.push(self.arena.len());
            self.parents.push(parent);
        }
        self.buffer = buffer;
        if fresh && self.ends.len() * 2 > self.table.len() {
            self.grow();
        }
        fresh
    }

    fn grow(&mut self) {
        let size = self.table.len() * 2;
        let mut table = vec![NONE; size];
        for i in 0..self.ends.len() {
            let mut slot = hash(self.slice(i)) as usize & (size - 1);
            while table[slot] != NONE {
                slot = (slot + 1) & (size - 1);
            }
            table[slot] = i as u32;
        }
        self.table = table;
    }
}

fn hash(words: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    for pair in words.chunks(2) {
        let high = pair.get(1).copied().unwrap_or(0);
        hasher.write_u64(u64::from(pair[0]) | u64::from(high) << 32);
    }
    let h = hasher.finish();
    h ^ (h >> 29)
}
