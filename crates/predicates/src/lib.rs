//! Predicate abstraction under relaxed memory: extrapolation and CEGAR.
