//! How each state came about, in a byte: of which state it is a successor, and the how manieth.
//!
//! Breadth-first states are numbered in the order of their parents, so a parent is told by how far it is from the parent
//! of the state before: four bits mostly, and four for the place among the parent's successors. What does not fit is
//! written down apart.

use crate::store::ROOT;

/// States whose bytes lie together. The first one's parent is written down apart, so no more have to be
/// looked at.
const TOGETHER: usize = 1 << 14;
/// It is written down apart.
const APART: u8 = u8::MAX;

/// How a state came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth {
    /// [`ROOT`] for a first state.
    pub parent: u32,
    /// Its place among the successors that the parent offered.
    pub place: u32,
    /// The parent was expanded again, with all its events.
    pub whole: bool,
}

#[derive(Default)]
pub struct Births {
    rows: Vec<Vec<u8>>,
    /// By number.
    apart: Vec<(u32, Birth)>,
    count: usize,
    last: u32,
}

impl Births {
    /// The next state.
    #[inline]
    pub fn push(&mut self, parent: u32, place: u32, whole: bool) {
        if self.count.is_multiple_of(TOGETHER) {
            let room = if self.count == 0 { 0 } else { TOGETHER };
            self.rows.push(Vec::with_capacity(room));
        }
        let first = self.count.is_multiple_of(TOGETHER);
        let byte = match parent.checked_sub(self.last) {
            Some(step @ 0..15) if place < 16 && !whole && !first && parent != ROOT => {
                (step << 4 | place) as u8
            }
            _ => {
                let birth = Birth {
                    parent,
                    place,
                    whole,
                };
                self.apart.push((self.count as u32, birth));
                APART
            }
        };
        if let Some(row) = self.rows.last_mut() {
            row.push(byte);
        }
        self.count += 1;
        self.last = if parent == ROOT { 0 } else { parent };
    }

    /// How the state of this number came about.
    pub fn of(&self, number: u32) -> Birth {
        let row = &self.rows[number as usize / TOGETHER];
        let mut at = number as usize % TOGETHER;
        let mut steps = 0;
        while row[at] != APART {
            steps += u32::from(row[at] >> 4);
            at -= 1;
        }
        let from = (number as usize / TOGETHER * TOGETHER + at) as u32;
        let apart = self.apart.partition_point(|(n, _)| *n < from);
        let birth = self.apart[apart].1;
        if from == number {
            return birth;
        }
        let parent = if birth.parent == ROOT {
            0
        } else {
            birth.parent
        };
        Birth {
            parent: parent + steps,
            place: u32::from(row[number as usize % TOGETHER] & 15),
            whole: false,
        }
    }

    pub fn bytes(&self) -> u64 {
        let rows: usize = self.rows.iter().map(Vec::capacity).sum();
        (rows + self.apart.capacity() * size_of::<(u32, Birth)>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_birth_is_remembered() {
        let mut births = Births::default();
        let mut all = Vec::new();
        let mut x = 1u64;
        let mut parent = 0;
        for i in 0..100_000u32 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let birth = match i {
                0..3 => Birth {
                    parent: ROOT,
                    place: i,
                    whole: false,
                },
                _ => {
                    parent = match x % 1000 {
                        0 => parent / 2,
                        1 => parent + 1000,
                        n => parent + (n % 3) as u32,
                    };
                    Birth {
                        parent,
                        place: (x >> 32) as u32 % 17,
                        whole: x.is_multiple_of(5000),
                    }
                }
            };
            births.push(birth.parent, birth.place, birth.whole);
            all.push(birth);
        }
        for (i, birth) in (0..).zip(&all) {
            assert_eq!(births.of(i), *birth, "{i}");
        }
        assert!(births.bytes() < 300_000);
    }
}
