//! Cubes: conjunctions of predicates and negated predicates, as bits. A three-valued state is one too.

/// No more predicates than this at a time.
pub const MOST_PREDICATES: usize = 64 * WORDS;
const WORDS: usize = 5;

/// A set of predicates, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits([u64; WORDS]);

impl Bits {
    pub fn get(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    pub fn set(&mut self, i: usize, value: bool) {
        let bit = 1 << (i % 64);
        match value {
            true => self.0[i / 64] |= bit,
            false => self.0[i / 64] &= !bit,
        }
    }

    fn zip(self, other: Bits, f: impl Fn(u64, u64) -> u64) -> Bits {
        let mut out = [0; WORDS];
        for (o, (a, b)) in out.iter_mut().zip(self.0.iter().zip(other.0)) {
            *o = f(*a, b);
        }
        Bits(out)
    }

    pub fn and(self, other: Bits) -> Bits {
        self.zip(other, |a, b| a & b)
    }

    pub fn or(self, other: Bits) -> Bits {
        self.zip(other, |a, b| a | b)
    }

    pub fn without(self, other: Bits) -> Bits {
        self.zip(other, |a, b| a & !b)
    }

    fn xor(self, other: Bits) -> Bits {
        self.zip(other, |a, b| a ^ b)
    }

    pub fn is_empty(&self) -> bool {
        // No branches: this is asked more often than anything else.
        self.0.iter().fold(0, |all, w| all | w) == 0
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The numbers in the set, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(n, mut w)| {
            std::iter::from_fn(move || {
                (w != 0).then(|| {
                    let i = w.trailing_zeros() as usize;
                    w &= w - 1;
                    n * 64 + i
                })
            })
        })
    }

    /// The one number in the set, if there is exactly one.
    pub fn single(&self) -> Option<usize> {
        let mut all = self.iter();
        let first = all.next()?;
        all.next().is_none().then_some(first)
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<T: IntoIterator<Item = usize>>(numbers: T) -> Self {
        let mut bits = Bits::default();
        numbers.into_iter().for_each(|i| bits.set(i, true));
        bits
    }
}

/// A conjunction of literals; as a state, what is not in it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cube {
    pub known: Bits,
    /// A subset of what is known.
    pub value: Bits,
}

impl Cube {
    pub fn with(mut self, i: usize, value: bool) -> Cube {
        self.known.set(i, true);
        self.value.set(i, value);
        self
    }

    pub fn get(&self, i: usize) -> Option<bool> {
        self.known.get(i).then(|| self.value.get(i))
    }

    /// Without the literals of these predicates.
    pub fn forget(self, which: Bits) -> Cube {
        Cube {
            known: self.known.without(which),
            value: self.value.without(which),
        }
    }

    /// Some predicate is true in one and false in the other.
    pub fn conflicts(&self, other: &Cube) -> bool {
        !self.differences(other).is_empty()
    }

    /// The predicates with different truth values.
    pub fn differences(&self, other: &Cube) -> Bits {
        let both = self.known.and(other.known);
        self.value.xor(other.value).and(both)
    }

    /// Every literal of `other` is one of this cube: this one is at least as strong.
    pub fn has_all(&self, other: &Cube) -> bool {
        other.known.without(self.known).is_empty() && !self.conflicts(other)
    }

    /// Every literal is true with these truth values of all predicates.
    pub fn is_true_in(&self, values: Bits) -> bool {
        values.xor(self.value).and(self.known).is_empty()
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub fn literals(self) -> impl Iterator<Item = (usize, bool)> {
        self.known.iter().map(move |i| (i, self.value.get(i)))
    }
}

impl FromIterator<(usize, bool)> for Cube {
    fn from_iter<T: IntoIterator<Item = (usize, bool)>>(literals: T) -> Self {
        let literals = literals.into_iter();
        literals.fold(Cube::default(), |c, (i, v)| c.with(i, v))
    }
}
