//! How indices are printed.

use super::{CellId, FamilyId, IndexId, LocationId, RegionId, RegisterId, StepId, ThreadId};
use std::fmt;

macro_rules! shown {
    ($($name:ident $prefix:literal;)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

shown! {
    RegionId "m";
    CellId "c";
    FamilyId "f";
    ThreadId "t";
    RegisterId "r";
    LocationId "l";
    StepId "s";
    IndexId "i";
}
