//! A set of pairs of small numbers that keeps of each no more than where it lies does not say.
//!
//! There are [`SETS`] sets, and which one a pair belongs to says the lowest bits of its right number, given the left one.
//! The other bits are one number of `left + right` bits; a reversible mixing makes it evenly distributed. The range of mixed
//! numbers is cut into as many equal pieces as there are buckets, and what is stored in a bucket is the place in the
//! bucket's piece (Cleary's quotients): the more buckets, the shorter the entries. A full bucket's entries go to
//! the next one, so an entry also says how many buckets it is from home: 0 is a free entry, otherwise the lowest four bits are the
//! distance and one. The lowest bytes of a bucket's entries lie together, so that all of them are looked at at once.
//!
//! *Why a search may stop at the first bucket that is not full:* an entry lies away from home only if all
//! buckets in between were full when it came, and nothing is ever taken out.

use crate::index::{Index, prefetch};

/// Sets there are.
pub const SETS: usize = Index::MOST_SHARES;
/// Bits of a right number that say which.
const SET: u32 = SETS.trailing_zeros();
/// Entries of a bucket.
const ROOM: usize = 16;
/// Bits for the distance from home.
const AWAY: u32 = 4;
/// An entry is less than so many buckets from home.
const FARTHEST: usize = (1 << AWAY) - 1;
/// The fullest that a set gets, in hundredths.
const FULL: usize = 90;
/// At first so many bits for each number of a pair.
const FIRST_BITS: u32 = 8;
/// And at most so many.
pub const MOST_BITS: u32 = 29;

pub struct Pairs {
    /// Which set.
    number: usize,
    left: u32,
    right: u32,
    /// Homes; behind the last one there is room for what does not find any there.
    buckets: u64,
    /// Bytes of an entry.
    width: usize,
    bytes: Vec<u8>,
    count: usize,
}

/// Where an entry was looked for.
enum Probed {
    Here,
    /// It was not there; this place, so far from home, is free.
    Free {
        away: usize,
        at: usize,
    },
    /// It was not there, and all the places where it might be are taken.
    None,
}

const FACTORS: [u64; 3] = [
    0x9e37_79b9_7f4a_7c15,
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_78bd_642f,
];

/// The inverse modulo any power of two: each round doubles the number of bits that are right.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut round = 0;
    while round < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        round += 1;
    }
    x
}

const INVERSES: [u64; 3] = [
    inverse(FACTORS[2]),
    inverse(FACTORS[1]),
    inverse(FACTORS[0]),
];

/// Mixes a number of so many bits. With the factors' inverses it is its own inverse, as shifting by half the bits or more and
/// adding is.
#[inline]
fn mix(mut x: u64, bits: u32, factors: &[u64; 3]) -> u64 {
    let mask = (1 << bits) - 1;
    let half = bits.div_ceil(2);
    x = x.wrapping_mul(factors[0]) & mask;
    x ^= x >> half;
    x = x.wrapping_mul(factors[1]) & mask;
    x ^= x >> half;
    x.wrapping_mul(factors[2]) & mask
}

/// A pair as one word.
#[inline]
pub fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// Which set a pair with this left number and these last bits is in; and with the set instead of the bits, the bits.
#[inline]
fn turned(left: u64, bits: u64) -> u64 {
    (bits ^ left.wrapping_mul(FACTORS[0]) >> (u64::BITS - SET)) & (SETS as u64 - 1)
}

/// The set that a pair belongs to.
#[inline]
pub fn set_of(pair: u64) -> usize {
    turned(pair >> 32, pair) as usize
}

/// The numbers of a pair, without what its set says.
#[inline]
fn stored(pair: u64) -> (u64, u64) {
    (pair >> 32, (pair & u64::from(u32::MAX)) >> SET)
}

/// A high bit in each byte that is 0.
#[inline]
fn zeros(bytes: u128) -> u128 {
    const LOW: u128 = u128::from_le_bytes([0x7f; ROOM]);
    !(((bytes & LOW) + LOW) | bytes | LOW)
}

/// Calls a method with the number of an entry's bytes as its first parameter.
macro_rules! for_width {
    ($self:ident, $method:ident $arguments:tt) => {
        for_width!(@ [2, 3, 4, 5, 6, 7] $self, $method, $arguments)
    };
    (@ [$($n:literal),*] $self:ident, $method:ident, $arguments:tt) => {
        match $self.width {
            $($n => $self.$method::<$n> $arguments,)*
            _ => $self.$method::<8> $arguments,
        }
    };
}

impl Pairs {
    /// The set of this number, without pairs.
    pub fn new(number: usize) -> Self {
        Pairs::sized(number, (FIRST_BITS, FIRST_BITS - SET), 1)
    }

    fn sized(number: usize, (left, right): (u32, u32), buckets: u64) -> Self {
        let largest = (1u64 << (left + right)) / buckets + 1;
        let bits = u64::BITS - largest.leading_zeros() + AWAY;
        let width = (bits as usize).div_ceil(8).clamp(2, 8);
        Pairs {
            number,
            left,
            right,
            buckets,
            width,
            bytes: vec![0; (buckets as usize + FARTHEST) * ROOM * width],
            count: 0,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }

    #[inline]
    fn bits(&self) -> u32 {
        self.left + self.right
    }

    #[inline]
    fn key(&self, (left, right): (u64, u64)) -> u64 {
        mix(left << self.right | right, self.bits(), &FACTORS)
    }

    /// The home of a mixed number, and its place in the home's piece.
    ///
    /// With `key · buckets = home · 2^bits + low`, `low` grows by `buckets` from one number of the piece to the next and is
    /// less than that for the first one.
    #[inline]
    fn home(&self, key: u64) -> (usize, u64) {
        let bits = self.bits();
        let product = u128::from(key) * u128::from(self.buckets);
        let low = product as u64 & ((1 << bits) - 1);
        ((product >> bits) as usize, low / self.buckets)
    }

    /// The first number of a home's piece.
    fn first(&self, home: usize) -> u64 {
        let all = (home as u128) << self.bits();
        all.div_ceil(u128::from(self.buckets)) as u64
    }

    #[inline]
    fn place<const N: usize>(&self, home: usize, rest: u64) -> Probed {
        let buckets = self.bytes[home * ROOM * N..].chunks_exact(ROOM * N);
        for (away, bucket) in buckets.take(FARTHEST).enumerate() {
            let Some((low, others)) = bucket.split_first_chunk::<ROOM>() else {
                break;
            };
            let low = u128::from_le_bytes(*low);
            let wanted = entry(rest, away).to_le_bytes();
            let mut alike = zeros(low ^ u128::from_le_bytes([wanted[0]; ROOM]));
            while alike != 0 {
                let at = alike.trailing_zeros() as usize / 8;
                if others[at * (N - 1)..][..N - 1] == wanted[1..N] {
                    return Probed::Here;
                }
                alike &= alike - 1;
            }
            let free = zeros(low);
            if free != 0 {
                let at = free.trailing_zeros() as usize / 8;
                return Probed::Free { away, at };
            }
        }
        Probed::None
    }

    #[inline]
    fn write<const N: usize>(&mut self, bucket: usize, at: usize, entry: u64) {
        let bytes = entry.to_le_bytes();
        let bucket = &mut self.bytes[bucket * ROOM * N..][..ROOM * N];
        bucket[at] = bytes[0];
        bucket[ROOM + at * (N - 1)..][..N - 1].copy_from_slice(&bytes[1..N]);
        self.count += 1;
    }

    /// Puts a mixed number in; nothing if there is no room.
    #[inline]
    fn put<const N: usize>(&mut self, key: u64) -> Option<bool> {
        let (home, rest) = self.home(key);
        match self.place::<N>(home, rest) {
            Probed::Here => Some(false),
            Probed::None => None,
            Probed::Free { away, at } => {
                self.write::<N>(home + away, at, entry(rest, away));
                Some(true)
            }
        }
    }

    /// Adds a pair of this set; whether it is new.
    #[inline]
    pub fn insert(&mut self, pair: u64) -> bool {
        debug_assert_eq!(set_of(pair), self.number);
        let both = stored(pair);
        if both.0 >> self.left != 0 || both.1 >> self.right != 0 {
            self.widen(both);
        }
        loop {
            let key = self.key(both);
            if let Some(new) = for_width!(self, put(key)) {
                if self.count * 100 > self.buckets as usize * ROOM * FULL {
                    self.grow();
                }
                return new;
            }
            self.grow();
        }
    }

    /// Asks the processor to fetch where the pair will be looked for.
    #[inline]
    pub fn prefetch(&self, pair: u64) {
        let both = stored(pair);
        if both.0 >> self.left == 0 && both.1 >> self.right == 0 {
            let product = u128::from(self.key(both)) * u128::from(self.buckets);
            let home = (product >> self.bits()) as usize;
            let bucket = &self.bytes[home * ROOM * self.width..][..ROOM * self.width];
            prefetch(&bucket[0]);
            prefetch(&bucket[bucket.len() - 1]);
        }
    }

    /// A sixth more buckets.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let more = match self.buckets {
            0..64 => self.buckets,
            large => large / 6,
        };
        self.become_sized((self.left, self.right), self.buckets + more);
    }

    /// Makes room for larger numbers.
    #[cold]
    #[inline(never)]
    fn widen(&mut self, (left, right): (u64, u64)) {
        let bits = |n: u64, now: u32| match n >> now {
            0 => now,
            _ => u64::BITS - n.leading_zeros() + 1,
        };
        let both = (bits(left, self.left), bits(right, self.right));
        self.become_sized(both, self.buckets);
    }

    fn become_sized(&mut self, bits: (u32, u32), mut buckets: u64) {
        // Seldom more than once: there may be no room near home though the set is not full.
        *self = loop {
            let mut larger = Pairs::sized(self.number, bits, buckets);
            let mut used = vec![0; buckets as usize + FARTHEST];
            let same = bits == (self.left, self.right);
            let all = self.each_key(|key| {
                let key = match same {
                    true => key,
                    false => larger.key(self.both(key)),
                };
                for_width!(larger, add(key, &mut used))
            });
            if all {
                break larger;
            }
            buckets += buckets / 6 + 1;
        };
    }

    /// Puts in a mixed number known to be new, where so many entries of each bucket are used; `false` if there is no room.
    #[inline]
    fn add<const N: usize>(&mut self, key: u64, used: &mut [u8]) -> bool {
        let (home, rest) = self.home(key);
        for (away, used) in used[home..].iter_mut().take(FARTHEST).enumerate() {
            if usize::from(*used) < ROOM {
                self.write::<N>(home + away, usize::from(*used), entry(rest, away));
                *used += 1;
                return true;
            }
        }
        false
    }

    /// What is stored of the pair with this mixed number.
    #[inline]
    fn both(&self, key: u64) -> (u64, u64) {
        let both = mix(key, self.bits(), &INVERSES);
        (both >> self.right, both & ((1 << self.right) - 1))
    }

    /// All mixed numbers, nearly in order, while they are wanted; whether all were.
    fn each_key(&self, wanted: impl FnMut(u64) -> bool) -> bool {
        for_width!(self, each_key_in(wanted))
    }

    fn each_key_in<const N: usize>(&self, mut wanted: impl FnMut(u64) -> bool) -> bool {
        let mut firsts = [0; FARTHEST + 1];
        for (number, bucket) in self.bytes.chunks_exact(ROOM * N).enumerate() {
            firsts[number % (FARTHEST + 1)] = self.first(number);
            let (low, others) = bucket.split_at(ROOM);
            let used = low.iter().take_while(|low| **low != 0);
            for (low, others) in used.zip(others.chunks_exact(N - 1)) {
                let mut bytes = [0; 8];
                bytes[0] = *low;
                bytes[1..N].copy_from_slice(others);
                let entry = u64::from_le_bytes(bytes);
                let away = (entry & ((1 << AWAY) - 1)) as usize - 1;
                let first = firsts[(number - away) % (FARTHEST + 1)];
                if !wanted(first + (entry >> AWAY)) {
                    return false;
                }
            }
        }
        true
    }

    /// All pairs, in no order that means anything, while they are wanted; whether all were.
    pub fn each(&self, mut wanted: impl FnMut(u64) -> bool) -> bool {
        self.each_key(|key| {
            let (left, right) = self.both(key);
            let last = turned(left, self.number as u64);
            wanted(left << 32 | right << SET | last)
        })
    }
}

/// What is stored of a number with this place in its home's piece, so far from home.
#[inline]
fn entry(rest: u64, away: usize) -> u64 {
    rest << AWAY | (away as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn mixing_can_be_undone() {
        for bits in [2, 3, 16, 31, 48, 58] {
            for i in 0..1000u64 {
                let x = i.wrapping_mul(0x1234_5678_9abc_def1) & ((1 << bits) - 1);
                assert_eq!(mix(mix(x, bits, &FACTORS), bits, &INVERSES), x);
            }
        }
    }

    #[test]
    fn bytes_that_are_zero() {
        for at in 0..ROOM {
            for other in [1, 0x7f, 0x80, 0x81, 0xff] {
                let mut bytes = [other; ROOM];
                bytes[at] = 0;
                assert_eq!(zeros(u128::from_le_bytes(bytes)), 0x80 << (8 * at));
            }
        }
    }

    #[test]
    fn a_set_is_a_set() {
        let mut sets: Vec<Pairs> = (0..SETS).map(Pairs::new).collect();
        let mut all = BTreeSet::new();
        let mut x = 1u64;
        for i in 0..1_000_000u64 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // Numbers get larger as dictionaries do; many pairs come twice.
            let most = 4 + i / 50;
            let both = pair((x % most) as u32, ((x >> 32) % (1 + most / 9)) as u32);
            assert_eq!(sets[set_of(both)].insert(both), all.insert(both));
        }
        assert_eq!(sets.iter().map(|s| s.count).sum::<usize>(), all.len());
        let mut seen = BTreeSet::new();
        assert!(sets.iter().all(|s| s.each(|both| seen.insert(both))));
        assert_eq!(seen, all);
        assert!(all.iter().all(|both| !sets[set_of(*both)].insert(*both)));
        // About 25 bits, of which set and bucket say 16.
        let bytes: u64 = sets.iter().map(Pairs::bytes).sum();
        assert!(bytes < 4 * all.len() as u64, "{bytes} for {}", all.len());
    }
}
