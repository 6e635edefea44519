//! What values a cell or a register may hold.

use crate::domain::{Domain, NoValue, Numbers};
use crate::expr::Op1;
use crate::ids::FamilyId;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
        match self.admit_in(&mut Numbers, value) {
            Ok(admitted) => admitted,
            Err(NoValue::Error(_)) => None,
            Err(NoValue::Refused(never)) => match never {},
        }
    }

    /// The same in a domain of values.
    pub fn admit_in<D: Domain>(
        self,
        d: &mut D,
        value: D::Value,
    ) -> Result<Option<D::Value>, NoValue<D::Refusal>> {
        Ok(match self {
            Type::Int | Type::Thread(_) => Some(value),
            Type::Range { lo, hi } => d.within(&value, lo, hi).then_some(value),
            Type::Wrap { bits, signed } => Some(d.unary(Op1::Wrap { bits, signed }, value)?),
        })
    }
}
