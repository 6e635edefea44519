//! Backward coverability: multiset buffers and exact TSO.
