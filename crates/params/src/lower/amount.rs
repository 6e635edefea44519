//! Values of finite variables. A number of threads is no number here: of all it says is that it is some
//! of them or all of them, or that it counts wrong: less than none, or more than all.
//!
//! There are n ≥ 1 threads, and n may be any. `Some` is one of 1 … n − 1, `All` is n. What follows from
//! that is known; everything else depends on n and is refused with its place.

use std::cmp::Ordering;
use wattle_model::Type;

/// An amount of threads that is not none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// Less than none.
    Negative,
    /// More than none and fewer than all.
    Some,
    All,
    /// More than all.
    More,
}

/// A value of a finite variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Amount {
    Number(i64),
    Threads(Share),
}

/// Whatever counts threads.
pub const COUNTS: [Amount; 3] = [
    Amount::Number(0),
    Amount::Threads(Share::Some),
    Amount::Threads(Share::All),
];

/// Whatever has counted threads and may have lost count.
pub const LOOSE: [Amount; 5] = [
    Amount::Threads(Share::Negative),
    Amount::Number(0),
    Amount::Threads(Share::Some),
    Amount::Threads(Share::All),
    Amount::Threads(Share::More),
];

/// Bits in which any number of threads fits: nobody has more than 2^31 − 1.
const ENOUGH_BITS: u8 = 31;

/// Whether the bits hold any number of threads.
pub fn fits(bits: u8, signed: bool) -> bool {
    bits - u8::from(signed) >= ENOUGH_BITS
}

impl Share {
    /// Whether it is a number of threads that there are.
    pub fn counts(self) -> bool {
        match self {
            Share::Some | Share::All => true,
            Share::Negative | Share::More => false,
        }
    }

    /// How it compares with another amount of threads, if that is known.
    pub fn compared(self, other: Share) -> Option<Ordering> {
        match (self, other) {
            (Share::Negative, Share::Negative)
            | (Share::Some, Share::Some)
            | (Share::More, Share::More) => None,
            (Share::Negative, Share::Some | Share::All | Share::More)
            | (Share::Some, Share::All | Share::More)
            | (Share::All, Share::More) => Some(Ordering::Less),
            (Share::More, Share::All | Share::Some | Share::Negative)
            | (Share::All, Share::Some | Share::Negative)
            | (Share::Some, Share::Negative) => Some(Ordering::Greater),
            (Share::All, Share::All) => Some(Ordering::Equal),
        }
    }

    /// One less: one of these.
    pub fn less_one(self) -> Vec<Amount> {
        match self {
            Share::Negative => vec![Amount::Threads(Share::Negative)],
            Share::Some | Share::All => vec![Amount::Number(0), Amount::Threads(Share::Some)],
            Share::More => vec![Amount::Threads(Share::All), Amount::Threads(Share::More)],
        }
    }

    /// One more: one of these.
    pub fn plus_one(self) -> Vec<Amount> {
        match self {
            Share::Negative => vec![Amount::Threads(Share::Negative), Amount::Number(0)],
            Share::Some => vec![Amount::Threads(Share::Some), Amount::Threads(Share::All)],
            Share::All | Share::More => vec![Amount::Threads(Share::More)],
        }
    }

    /// What a number may be among amounts of threads.
    pub fn of(number: i64) -> Vec<Amount> {
        let threads = |all: &[Share]| all.iter().map(|s| Amount::Threads(*s)).collect();
        match number {
            0 => vec![Amount::Number(0)],
            1 => threads(&[Share::Some, Share::All]),
            n if n < 0 => threads(&[Share::Negative]),
            _ => threads(&[Share::Some, Share::All, Share::More]),
        }
    }
}

impl Amount {
    pub fn number(self) -> Option<i64> {
        match self {
            Amount::Number(c) => Some(c),
            Amount::Threads(_) => None,
        }
    }

    /// The value as the type stores it; a number of threads as it is, which is for others to check.
    pub fn admitted(self, ty: Type) -> Option<Amount> {
        match self {
            Amount::Number(c) => ty.admit(c).map(Amount::Number),
            Amount::Threads(_) => Some(self),
        }
    }

    /// The name of the value in the system.
    pub fn name(self) -> String {
        match self {
            Amount::Threads(Share::Negative) => "V_negative".into(),
            Amount::Threads(Share::Some) => "V_some".into(),
            Amount::Threads(Share::All) => "V_all".into(),
            Amount::Threads(Share::More) => "V_more".into(),
            Amount::Number(v) if v < 0 => format!("V_minus_{}", v.unsigned_abs()),
            Amount::Number(v) => format!("V_{v}"),
        }
    }
}
