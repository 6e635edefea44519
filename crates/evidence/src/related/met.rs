//! States of small instances, in the words of a system.

/// What shows that a state is none that a certificate stands for.
pub type Excludes<'e> = dyn Fn(&Met<'_>) -> Option<String> + 'e;

/// A store of a buffer: cell, threads, value.
pub type Stored = (u16, Vec<u8>, i64);

/// A state of an instance with threads 1 … n, as far as it is known. Values are numbers of
/// constructors, threads (0 is nobody) or numbers.
pub struct Met<'s> {
    pub threads: u8,
    pub value: &'s dyn Fn(u16, &[u8]) -> Option<i64>,
    /// For each thread its entries, oldest first, each with its stores.
    pub pending: &'s [Vec<Vec<Stored>>],
}
