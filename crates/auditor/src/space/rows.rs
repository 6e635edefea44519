//! Rows of small numbers, packed, and the set of them: one flat table.
//!
//! A row has a number in every column. A column is as wide as the largest number it has held: where
//! one does not fit, all rows are packed anew. Columns lie in words of 64 bits, none across two. The
//! table holds a row's position and part of its hash, with linear probing.

use crate::AuditError;

/// Where a column lies in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    word: u32,
    shift: u32,
    mask: u64,
}

#[derive(Debug)]
pub struct Rows {
    words: usize,
    columns: Vec<Column>,
    rows: Vec<u64>,
    count: usize,
    table: Vec<u64>,
}

/// A number that does not fit its column.
#[derive(Clone, Copy, Debug)]
pub struct Narrow {
    pub column: usize,
    pub number: u32,
}

/// Why a state could not be dealt with.
pub enum Stuck {
    Narrow(Narrow),
    No(AuditError),
}

impl From<Narrow> for Stuck {
    fn from(narrow: Narrow) -> Self {
        Stuck::Narrow(narrow)
    }
}

impl From<AuditError> for Stuck {
    fn from(error: AuditError) -> Self {
        Stuck::No(error)
    }
}

const FIRST_SLOTS: usize = 64;
/// As many words as are tried for a column: many columns must not cost their square.
const NEAR: usize = 4;

impl Rows {
    pub fn new(columns: usize) -> Self {
        Rows {
            words: 1,
            columns: vec![Column::default(); columns],
            rows: Vec::new(),
            count: 0,
            table: vec![0; FIRST_SLOTS],
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Words of a row.
    pub fn words(&self) -> usize {
        self.words
    }

    pub fn bytes(&self) -> u64 {
        8 * (self.rows.capacity() + self.table.len()) as u64
    }

    #[inline]
    pub fn row(&self, index: usize) -> &[u64] {
        &self.rows[index * self.words..(index + 1) * self.words]
    }

    #[inline]
    pub fn get(&self, row: &[u64], column: usize) -> u32 {
        let c = self.columns[column];
        ((row[c.word as usize] >> c.shift) & c.mask) as u32
    }

    #[inline]
    pub fn set(&self, row: &mut [u64], column: usize, number: u32) -> Result<(), Narrow> {
        let c = self.columns[column];
        if u64::from(number) > c.mask {
            return Err(Narrow { column, number });
        }
        let word = &mut row[c.word as usize];
        *word = *word & !(c.mask << c.shift) | u64::from(number) << c.shift;
        Ok(())
    }

    /// Where the row is, and whether it was not there before.
    #[inline]
    pub fn insert(&mut self, row: &[u64]) -> (usize, bool) {
        self.reserve(1);
        self.put(row, hash(row))
    }

    /// The same for many rows, one after the other. Tables are large and far away: all places are
    /// looked up before any is needed, so that the ways there overlap.
    pub fn insert_all(&mut self, rows: &[u64], found: &mut Vec<(usize, bool)>) {
        let words = self.words;
        self.reserve(rows.len() / words);
        let hashes: Vec<u64> = rows.chunks_exact(words).map(hash).collect();
        let entries = hashes.iter().map(|h| self.table[self.slot(*h)]);
        let entries: Vec<u64> = entries.collect();
        let mut near = 0;
        for (entry, hash) in entries.iter().zip(&hashes) {
            if *entry != 0 && entry >> 32 == hash & u64::from(u32::MAX) {
                near ^= self.rows[((entry & u64::from(u32::MAX)) as usize - 1) * words];
            }
        }
        std::hint::black_box(near);
        found.clear();
        for (row, hash) in rows.chunks_exact(words).zip(hashes) {
            found.push(self.put(row, hash));
        }
    }

    fn reserve(&mut self, more: usize) {
        let mut size = self.table.len();
        while (self.count + more) * 3 > size * 2 {
            size *= 2;
        }
        if size > self.table.len() {
            self.rehash(size);
        }
    }

    #[inline]
    fn put(&mut self, row: &[u64], hash: u64) -> (usize, bool) {
        let mut slot = self.slot(hash);
        loop {
            let entry = self.table[slot];
            if entry == 0 {
                break;
            }
            let at = (entry & u64::from(u32::MAX)) as usize - 1;
            if entry >> 32 == hash & u64::from(u32::MAX) && same(self.row(at), row) {
                return (at, false);
            }
            slot = (slot + 1) & (self.table.len() - 1);
        }
        self.table[slot] = hash << 32 | (self.count as u64 + 1);
        self.rows.extend_from_slice(row);
        self.count += 1;
        (self.count - 1, true)
    }

    /// The table cannot number more rows.
    pub fn is_full(&self) -> bool {
        self.count >= (1 << 31)
    }

    #[inline]
    fn slot(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.table.len() - 1)
    }

    fn rehash(&mut self, size: usize) {
        self.table = Vec::new();
        self.table = vec![0; size];
        for i in 0..self.count {
            let hash = hash(self.row(i));
            let mut slot = self.slot(hash);
            while self.table[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.table[slot] = hash << 32 | (i as u64 + 1);
        }
    }

    /// Makes room for the number, and for some more if there are many; rows keep their positions.
    pub fn widen(&mut self, Narrow { column, number }: Narrow) {
        let bits = |n: u64| 64 - n.leading_zeros();
        let needed = bits(u64::from(number));
        let mut widths: Vec<u32> = self.columns.iter().map(|c| bits(c.mask)).collect();
        widths[column] = (needed + u32::from(needed > 3)).min(32);
        let (columns, words) = lay_out(&widths);
        let mut rows = Vec::with_capacity((self.count + self.count / 4 + 1) * words);
        let moved: Vec<usize> = (0..widths.len()).filter(|c| widths[*c] > 0).collect();
        for i in 0..self.count {
            let start = rows.len();
            rows.resize(start + words, 0);
            let old = self.row(i);
            for &c in &moved {
                let new = columns[c];
                rows[start + new.word as usize] |= u64::from(self.get(old, c)) << new.shift;
            }
        }
        self.columns = columns;
        self.words = words;
        self.rows = rows;
        self.rehash(self.table.len());
    }
}

fn lay_out(widths: &[u32]) -> (Vec<Column>, usize) {
    let mut used: Vec<u32> = vec![0];
    let place = |width: &u32| {
        if *width == 0 {
            return Column::default();
        }
        let near = used.len().saturating_sub(NEAR);
        let fits = (near..used.len()).find(|w| used[*w] + width <= 64);
        let word = fits.unwrap_or_else(|| {
            used.push(0);
            used.len() - 1
        });
        let shift = used[word];
        used[word] += width;
        Column {
            word: word as u32,
            shift,
            mask: (1 << width) - 1,
        }
    };
    let columns = widths.iter().map(place).collect();
    (columns, used.len())
}

/// Rows are a few words: a call would cost more than the comparison.
#[inline]
fn same(a: &[u64], b: &[u64]) -> bool {
    match (a, b) {
        ([a], [b]) => a == b,
        ([a, c], [b, d]) => a == b && c == d,
        (a, b) => a == b,
    }
}

#[inline]
fn hash(row: &[u64]) -> u64 {
    let mut h = 0x9e37_79b9_7f4a_7c15_u64;
    for w in row {
        let wide = u128::from(h ^ w) * 0xd6e8_feb8_6659_fd93_u128;
        h = (wide as u64) ^ ((wide >> 64) as u64).rotate_left(29);
    }
    h ^ h >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_numbers_and_places_while_columns_grow() {
        let mut rows = Rows::new(5);
        let number = |i: u32, c: u32| i.wrapping_mul(2_654_435_761).rotate_left(c) % (1 << (3 * c));
        let write = |rows: &mut Rows, i: u32| loop {
            let mut row = vec![0; rows.words()];
            let full = (0..5).try_for_each(|c| rows.set(&mut row, c as usize, number(i, c)));
            match full {
                Ok(()) => break row,
                Err(narrow) => rows.widen(narrow),
            }
        };
        let mut places = Vec::new();
        for i in 0..5000 {
            let row = write(&mut rows, i);
            places.push(rows.insert(&row).0);
        }
        for i in 0..5000 {
            let row = write(&mut rows, i);
            assert_eq!(rows.insert(&row), (places[i as usize], false));
            for c in 0..5 {
                assert_eq!(rows.get(&row, c as usize), number(i, c));
            }
        }
        let distinct: std::collections::BTreeSet<_> = places.iter().collect();
        assert_eq!(distinct.len(), rows.len());
    }
}
