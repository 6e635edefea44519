//! Bit fields in packed states.

/// A bit field of a packed state: no field crosses a word. The bits count from `lo` in strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    word: u32,
    shift: u32,
    mask: u64,
    lo: i64,
    stride: i64,
}

impl Default for Field {
    /// No bits: always 0.
    fn default() -> Self {
        Field {
            word: 0,
            shift: 0,
            mask: 0,
            lo: 0,
            stride: 1,
        }
    }
}

impl Field {
    #[inline]
    pub fn raw(self, state: &[u64]) -> u64 {
        (state[self.word as usize] >> self.shift) & self.mask
    }

    #[inline]
    pub fn get(self, state: &[u64]) -> i64 {
        self.decode(self.raw(state))
    }

    #[inline]
    pub fn index(self, state: &[u64]) -> usize {
        self.raw(state) as usize
    }

    /// The bits of a value, if the field is wide enough for it.
    #[inline]
    pub fn encode(self, value: i64) -> Option<u64> {
        let mut raw = value.wrapping_sub(self.lo) as u64;
        if self.stride != 1 {
            let stride = self.stride as u64;
            if !raw.is_multiple_of(stride) {
                return None;
            }
            raw /= stride;
        }
        (raw <= self.mask).then_some(raw)
    }

    #[inline]
    pub fn decode(self, raw: u64) -> i64 {
        self.lo.wrapping_add((raw as i64).wrapping_mul(self.stride))
    }

    /// Bits that do not fit are a bug of the caller; they are masked so that no other field suffers.
    #[inline]
    pub fn set_raw(self, state: &mut [u64], raw: u64) {
        debug_assert!(raw <= self.mask);
        let word = &mut state[self.word as usize];
        *word = (*word & !(self.mask << self.shift)) | ((raw & self.mask) << self.shift);
    }

    /// The word the field is in, and its bits there.
    pub fn bits(self) -> (usize, u64) {
        (self.word as usize, self.mask << self.shift)
    }
}

/// What a field must hold: `bits` wide, counting from `lo` in strides of at least one.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub bits: u32,
    pub lo: i64,
    pub stride: i64,
}

impl Request {
    /// Room for every value from `lo` to `hi`.
    pub fn range(lo: i64, hi: i64) -> Self {
        let width = hi.wrapping_sub(lo) as u64;
        let bits = 64 - width.leading_zeros();
        Request {
            bits,
            lo,
            stride: 1,
        }
    }

    /// Room for the values from `lo` to `hi` that are whole strides away from `lo`.
    pub fn strided(lo: i64, hi: i64, stride: i64) -> Self {
        let steps = hi.wrapping_sub(lo) as u64 / stride as u64;
        Request {
            bits: 64 - steps.leading_zeros(),
            lo,
            stride,
        }
    }

    /// Room for `n` different indices.
    pub fn count(n: usize) -> Self {
        Request::range(0, n.saturating_sub(1) as i64)
    }
}

/// Lays out the fields, widest first, each in the first word with room. Gives the fields in the order
/// of the requests, and the number of words.
pub fn pack(requests: &[Request]) -> (Vec<Field>, usize) {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(requests[*i].bits));
    let mut used: Vec<u32> = vec![0];
    let mut fields = vec![Field::default(); requests.len()];
    // Words before this one are full; keeps large layouts from quadratic work.
    let mut first = 0;
    for i in order {
        let Request { bits, lo, stride } = requests[i];
        if bits == 0 {
            fields[i].lo = lo;
            fields[i].stride = stride;
            continue;
        }
        while first < used.len() && used[first] == 64 {
            first += 1;
        }
        let window = used.len().min(first + 64);
        let found = (first..window).find(|w| used[*w] + bits <= 64);
        let word = found.unwrap_or(used.len());
        if word == used.len() {
            used.push(0);
        }
        fields[i] = Field {
            word: word as u32,
            shift: used[word],
            mask: u64::MAX >> (64 - bits),
            lo,
            stride,
        };
        used[word] += bits;
    }
    (fields, used.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_values_apart() {
        let ranges = [(0, 1), (-3, 9), (i64::MIN, i64::MAX), (5, 5), (0, 1000)];
        let requests: Vec<_> = ranges.map(|(lo, hi)| Request::range(lo, hi)).to_vec();
        let (fields, words) = pack(&requests);
        let mut state = vec![0; words];
        for pick_hi in [false, true] {
            for (f, (lo, hi)) in fields.iter().zip(ranges) {
                let v = if pick_hi { hi } else { lo };
                f.set_raw(&mut state, f.encode(v).unwrap());
            }
            for (f, (lo, hi)) in fields.iter().zip(ranges) {
                assert_eq!(f.get(&state), if pick_hi { hi } else { lo });
            }
        }
        assert_eq!(fields[0].encode(2), None);
        assert_eq!(fields[1].encode(-4), None);
        assert_eq!(fields[3].encode(6), None);
    }
}
