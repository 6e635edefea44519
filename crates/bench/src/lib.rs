//! The measured comparisons: ratios against a peer or an ablation in the same run.

pub mod abdulla;
pub mod auto;
pub mod calin;
pub mod cbmc;
pub mod cores;
pub mod cupex;
pub mod evidence;
pub mod explicit;
pub mod growth;
pub mod liveness;
pub mod one_entry;
pub mod params;
mod sink;
pub mod tso;

pub use sink::Sink;
