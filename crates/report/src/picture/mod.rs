//! Pictures, drawn by ourselves: the threads' graphs and the happens-before graph of a run.
//!
//! Both layouts are rows: every location, step and access has a row of its own, so boxes never
//! overlap, and lines run along rows and through lanes beside the boxes ([`lanes`]). The same input
//! gives the same picture.

mod lanes;
mod order;
mod svg;
pub(crate) mod threads;

pub use order::{Access, Arrow, Kind, Order};
pub use threads::{Mark, threads};
