//! What belongs to states that are to be expanded, by their numbers.
//!
//! It comes at one end and goes at the other, in pieces: nothing is copied as there gets more of it, and what is over is given
//! back, all but a few pieces for what comes next.

use std::collections::VecDeque;

/// Entries of a piece.
pub const PIECE: usize = 1 << 14;
/// So many pieces wait to be used again.
const SPARE: usize = 8;

pub struct Row<T> {
    /// As long as they were ever needed; only what is before `end` means anything.
    pieces: VecDeque<Vec<T>>,
    /// Pieces that are gone.
    gone: usize,
    end: usize,
    spare: Vec<Vec<T>>,
}

impl<T> Default for Row<T> {
    fn default() -> Self {
        Row {
            pieces: VecDeque::new(),
            gone: 0,
            end: 0,
            spare: Vec::new(),
        }
    }
}

impl<T: Copy + Default> Row<T> {
    /// The entries for the states from this number on.
    pub fn from(number: usize, entries: impl Iterator<Item = T>) -> Self {
        let mut row = Row {
            gone: number / PIECE,
            end: number / PIECE * PIECE,
            ..Row::default()
        };
        (0..number % PIECE).for_each(|_| row.push(T::default()));
        entries.for_each(|entry| row.push(entry));
        row
    }

    fn add_piece(&mut self) {
        // The first one grows as it fills: most searches are tiny.
        let room = if self.end == 0 { 0 } else { PIECE };
        let piece = self.spare.pop();
        self.pieces
            .push_back(piece.unwrap_or_else(|| Vec::with_capacity(room)));
    }

    #[inline]
    pub fn push(&mut self, entry: T) {
        let at = self.end % PIECE;
        if at == 0 {
            self.add_piece();
        }
        self.end += 1;
        if let Some(piece) = self.pieces.back_mut() {
            match piece.get_mut(at) {
                Some(to) => *to = entry,
                None => piece.push(entry),
            }
        }
    }

    /// So many entries from this number on. They are of one piece, as those between two multiples of a power of two
    /// are that is no greater than [`PIECE`].
    #[inline]
    pub fn some(&self, number: u32, count: usize) -> &[T] {
        let number = number as usize;
        &self.pieces[number / PIECE - self.gone][number % PIECE..][..count]
    }

    /// All entries from this number on.
    pub fn after(&self, number: usize) -> impl Iterator<Item = T> {
        (number..self.end).map(|n| self.pieces[n / PIECE - self.gone][n % PIECE])
    }

    /// Changes all entries.
    pub fn change(&mut self, change: impl Fn(T) -> T) {
        let all = self.pieces.iter_mut().flatten();
        all.for_each(|entry| *entry = change(*entry));
    }

    /// What comes before this number may go.
    pub fn forget(&mut self, number: usize) {
        while self.gone < number / PIECE
            && let Some(piece) = self.pieces.pop_front()
        {
            self.gone += 1;
            if self.spare.len() < SPARE {
                self.spare.push(piece);
            }
        }
    }

    /// Makes room at the end, and gives each of the counts its part to be filled in.
    pub fn make_room(&mut self, counts: &[usize]) -> Vec<Vec<&mut [T]>> {
        let first = self.end;
        let end = first + counts.iter().sum::<usize>();
        while self.end < end {
            if self.end.is_multiple_of(PIECE) {
                self.add_piece();
            }
            let to = end.min((self.end / PIECE + 1) * PIECE);
            let used = (to - 1) % PIECE + 1;
            if let Some(piece) = self.pieces.back_mut()
                && piece.len() < used
            {
                piece.resize(used, T::default());
            }
            self.end = to;
        }
        let mut from = first % PIECE;
        let mut left = end - first;
        let free = self.pieces.iter_mut().skip(first / PIECE - self.gone);
        let free = free.map(|piece| {
            let from = std::mem::take(&mut from);
            let count = left.min(PIECE - from);
            left -= count;
            &mut piece[from..from + count]
        });
        deal(free, counts.iter().copied())
    }

    pub fn bytes(&self) -> u64 {
        let all = self.pieces.iter().chain(&self.spare);
        (all.map(Vec::capacity).sum::<usize>() * size_of::<T>()) as u64
    }
}

/// Gives each of the counts as many entries of the pieces, one after the other.
pub fn deal<'s, T>(
    mut pieces: impl Iterator<Item = &'s mut [T]>,
    counts: impl Iterator<Item = usize>,
) -> Vec<Vec<&'s mut [T]>> {
    let mut free: &mut [T] = &mut [];
    let part = |count: usize| {
        let mut part = Vec::with_capacity(1);
        let mut left = count;
        while left > 0 {
            if free.is_empty() {
                let Some(next) = pieces.next() else { break };
                free = next;
                continue;
            }
            let all = std::mem::take(&mut free);
            let (mine, rest) = all.split_at_mut(left.min(all.len()));
            left -= mine.len();
            part.push(mine);
            free = rest;
        }
        part
    };
    counts.map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_there_until_it_is_forgotten() {
        for begin in [0, 5, PIECE - 1, 3 * PIECE + 7] {
            let mut row = Row::from(begin, begin as u64..begin as u64 + 3);
            let mut end = begin + 3;
            let mut taken = begin;
            for round in 0..400usize {
                let counts = [round % 7 * 100, 0, 1, round * 37 % 3000];
                let mut next = end as u64;
                for part in row.make_room(&counts) {
                    for to in part.into_iter().flatten() {
                        *to = next;
                        next += 1;
                    }
                }
                assert_eq!(next as usize, end + counts.iter().sum::<usize>());
                row.push(next);
                end = next as usize + 1;
                assert!(row.after(taken).eq(taken as u64..end as u64));
                taken += (end - taken) * 2 / 3;
                row.forget(taken);
                let count = (PIECE - taken % PIECE).min(end - taken);
                let some = row.some(taken as u32, count).iter().copied();
                assert!(some.eq(taken as u64..(taken + count) as u64));
            }
            assert!(row.bytes() < 8 * (16 * PIECE as u64));
        }
    }
}
