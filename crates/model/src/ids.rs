//! Typed indices. Each prints as a short token (`t0`, `c3`, …) so that a log line can be pasted
//! into a test; the names users wrote live in the tables the indices point into.

mod shown;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The index as a position in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of a position; tables never reach 2³² entries (the validator's size rule).
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    )*};
}

ids! {
    /// A named piece of shared memory: a scalar or an array.
    RegionId;
    /// One memory cell of an instance: its flat address.
    CellId;
    /// A family of threads that run the same graph.
    FamilyId;
    /// One thread of an instance.
    ThreadId;
    /// A thread's local variable.
    RegisterId;
    /// A node of a thread's graph.
    LocationId;
    /// An edge of a thread's graph.
    StepId;
    /// An index variable of a property (`i` in `never p[i]@critical`).
    IndexId;
}
