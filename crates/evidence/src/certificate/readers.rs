//! Any number of threads that only read.

use super::Certificate;
use serde::{Deserialize, Serialize};

/// Threads of open families write nothing and hold no lock, and nothing tells them apart. So as many of each
/// family as the property names, or one, stand for all of them, and the proof is about these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readers {
    pub proof: Box<Certificate>,
}
