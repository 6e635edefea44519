//! Pictures, drawn by ourselves: the threads' graphs, the happens-before graph of a run, and the states of
//! a small program.
//!
//! Both layouts are rows: every location, step and access has a row of its own, so boxes never
//! overlap, and lines run along rows and through lanes beside the boxes ([`lanes`]). The same input
//! gives the same picture.

mod lanes;
mod order;
mod states;
mod svg;
pub(crate) mod threads;

pub use order::{Access, Arrow, Kind, Order};
pub use states::{Kind as StateKind, Shown, States};
pub use threads::{Added, threads};
