//! What happened before what in the run at hand, as rows of bits: one bit for each move of the run.

/// Rows of bits of one length.
pub struct Rows {
    words: usize,
    bits: Vec<u64>,
}

impl Rows {
    pub fn new(words: usize) -> Self {
        let bits = Vec::new();
        Rows { words, bits }
    }

    /// The row, which may not be there yet, with nothing in it.
    pub fn need(&mut self, row: usize) {
        let end = (row + 1) * self.words;
        if self.bits.len() < end {
            self.bits.resize(end, 0);
        }
    }

    #[inline]
    pub fn row(&self, row: usize) -> &[u64] {
        &self.bits[row * self.words..(row + 1) * self.words]
    }

    #[inline]
    pub fn row_mut(&mut self, row: usize) -> &mut [u64] {
        &mut self.bits[row * self.words..(row + 1) * self.words]
    }

    #[inline]
    pub fn set(&mut self, row: usize, bit: usize) {
        self.bits[row * self.words + bit / 64] |= 1 << (bit % 64);
    }

    #[inline]
    pub fn clear(&mut self, row: usize, bit: usize) {
        self.bits[row * self.words + bit / 64] &= !(1 << (bit % 64));
    }

    /// Longer rows with the same bits.
    pub fn widen(&mut self, words: usize) {
        let rows = self.bits.len() / self.words;
        let mut bits = vec![0; rows * words];
        for row in 0..rows {
            let new = &mut bits[row * words..row * words + self.words];
            new.copy_from_slice(&self.bits[row * self.words..(row + 1) * self.words]);
        }
        self.words = words;
        self.bits = bits;
    }

    pub fn bytes(&self) -> u64 {
        self.bits.capacity() as u64 * 8
    }
}

#[inline]
pub fn has(row: &[u64], bit: usize) -> bool {
    row[bit / 64] >> (bit % 64) & 1 == 1
}

#[inline]
pub fn put(row: &mut [u64], bit: usize) {
    row[bit / 64] |= 1 << (bit % 64);
}

#[inline]
pub fn drop(row: &mut [u64], bit: usize) {
    row[bit / 64] &= !(1 << (bit % 64));
}

#[inline]
pub fn join(row: &mut [u64], other: &[u64]) {
    for (a, b) in row.iter_mut().zip(other) {
        *a |= b;
    }
}

#[inline]
pub fn meet(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

/// The first bit that both have.
#[inline]
pub fn first(a: &[u64], b: &[u64]) -> Option<usize> {
    for (w, (a, b)) in a.iter().zip(b).enumerate() {
        let both = a & b;
        if both != 0 {
            return Some(w * 64 + both.trailing_zeros() as usize);
        }
    }
    None
}

/// The bits of a row, in order.
pub fn bits(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(w, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(w * 64 + bit)
        })
    })
}
