//! Why a proof is none.

use super::FactId;
use std::fmt;

/// A proof step that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofError {
    /// What does not hold, in words.
    pub step: &'static str,
    /// The fact it concerns, if one.
    pub fact: Option<FactId>,
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fact {
            Some(id) => write!(f, "proof step does not hold: {} (fact {})", self.step, id.0),
            None => write!(f, "proof step does not hold: {}", self.step),
        }
    }
}

impl std::error::Error for ProofError {}
