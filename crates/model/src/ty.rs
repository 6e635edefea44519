//! What values a cell or a register may hold.

use crate::expr::wrap;
use crate::ids::FamilyId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// Mathematical integers.
    Int,
    /// `lo..hi`, both included. A value outside is a fault.
    Range { lo: i64, hi: i64 },
    /// The low `bits` of whatever is stored.
    Wrap { bits: u8, signed: bool },
    /// The identifier of a thread of the family, or −1 (`none`). Instances see a range.
    Thread(FamilyId),
}

impl Type {
    pub const BOOL: Type = Type::Range { lo: 0, hi: 1 };

    /// Least and greatest value, if there are only finitely many.
    pub fn bounds(self) -> Option<(i64, i64)> {
        match self {
            Type::Range { lo, hi } => Some((lo, hi)),
            Type::Wrap { bits: 64, .. } => Some((i64::MIN, i64::MAX)),
            Type::Wrap { bits, signed: true } => {
                Some((-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1))
            }
            Type::Wrap { bits, .. } => Some((0, ((1u64 << bits) - 1) as i64)),
            Type::Int | Type::Thread(_) => None,
        }
    }

    /// The value as the type stores it, or `None` if it may not be stored.
    pub fn admit(self, value: i64) -> Option<i64> {
        match self {
            Type::Int | Type::Thread(_) => Some(value),
            Type::Range { lo, hi } => (lo <= value && value <= hi).then_some(value),
            Type::Wrap { bits, signed } => Some(wrap(value, bits, signed)),
        }
    }
}
