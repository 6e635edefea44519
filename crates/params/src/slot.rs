//! What a cube's constraints speak of: a cell named by the cube's threads, the value an open read
//! will have, or a value to be eliminated.

use wattle_model::array::ArrayIndex;

/// Packed so that cubes are small and compare fast: kind or cell, and up to three threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

/// No thread: a cube has fewer.
const NONE: u8 = 31;
/// Bits of a thread.
const BITS: u32 = 5;
const PLACES: [u32; 3] = [2 * BITS, BITS, 0];
const READ: u32 = 0xffff;
const TEMP: u32 = 0xfffe;
const PENDING: u32 = 0xfffd;

impl Slot {
    pub fn cell(cell: ArrayIndex, args: &[u8]) -> Slot {
        let arg = |i: usize| u32::from(args.get(i).copied().unwrap_or(NONE));
        let args = PLACES.iter().enumerate();
        let packed = args.fold(0, |all, (i, at)| all | arg(i) << at);
        Slot(u32::from(cell) << 16 | packed)
    }

    /// The value of a part of an open event.
    pub fn read(event: usize, part: usize) -> Slot {
        Slot(READ << 16 | (event as u32) << 8 | part as u32)
    }

    /// The value of a store whose drain is known and whose issue is not.
    pub fn pending(number: usize) -> Slot {
        Slot(PENDING << 16 | (number as u32 & 0xff))
    }

    pub fn as_pending(self) -> Option<usize> {
        (self.0 >> 16 == PENDING).then_some((self.0 & 0xff) as usize)
    }

    pub fn temp(number: usize) -> Slot {
        Slot(TEMP << 16 | (number as u32 & 0xffff))
    }

    pub fn is_cell(self) -> bool {
        self.0 >> 16 < PENDING
    }

    pub fn is_temp(self) -> bool {
        self.0 >> 16 == TEMP
    }

    /// Event and part of a read.
    pub fn as_read(self) -> Option<(usize, usize)> {
        (self.0 >> 16 == READ).then_some(((self.0 >> 8 & 0xff) as usize, (self.0 & 0xff) as usize))
    }

    /// The cell's number, for cells only.
    pub fn array(self) -> ArrayIndex {
        (self.0 >> 16) as ArrayIndex
    }

    pub fn args(self) -> impl Iterator<Item = u8> {
        let all = PLACES.map(|at| (self.0 >> at) as u8 & NONE);
        all.into_iter().take_while(|a| *a != NONE)
    }

    /// A set of the threads that name the cell.
    pub fn threads(self) -> u16 {
        match self.is_cell() {
            true => self.args().fold(0, |m, a| m | 1 << a),
            false => 0,
        }
    }

    /// The same cell of other threads.
    pub fn rename(self, threads: &[u8]) -> Slot {
        if !self.is_cell() {
            return self;
        }
        let mut renamed = self.0 & 0xffff_0000;
        for at in PLACES {
            renamed |= match (self.0 >> at) as u8 & NONE {
                NONE => u32::from(NONE) << at,
                a => u32::from(threads[usize::from(a)]) << at,
            };
        }
        Slot(renamed)
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.as_read() {
            Some((e, p)) => write!(f, "read{e}.{p}"),
            None if self.is_temp() => write!(f, "temp{}", self.0 & 0xffff),
            None => write!(f, "c{}{:?}", self.array(), self.args().collect::<Vec<_>>()),
        }
    }
}
