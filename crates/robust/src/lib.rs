//! Robustness, triangular races and lazy TSO reachability.
