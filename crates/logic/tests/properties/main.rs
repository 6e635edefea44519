//! Random queries against brute force, and everything an answer promises.

mod brute_force;
mod formulas;
mod interpolants;
mod sessions;
mod support;
