//! Fairness in words.

use super::Fairness;
use std::fmt;

impl fmt::Display for Fairness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fairness::None => "without fairness",
            Fairness::Weak => "under weak fairness",
            Fairness::Strong => "under strong fairness",
            Fairness::Memory => "under memory fairness",
        })
    }
}
