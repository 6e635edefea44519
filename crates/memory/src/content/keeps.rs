//! What a content remembers.

use serde::{Deserialize, Serialize};

/// A content without its bounds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Keeps {
    /// Everything in order.
    #[default]
    Exact,
    /// Everything, without order.
    Multiset,
    /// The oldest k in order and a set of the rest.
    Oldest,
    /// The newest k in order and a set of the rest.
    Newest,
    /// At most k in order; one more is reported.
    AtMost,
}

impl Keeps {
    /// The content has more behaviours than the exact one, never fewer.
    pub fn is_abstract(self) -> bool {
        !matches!(self, Keeps::Exact | Keeps::AtMost)
    }

    /// Nothing is ever reported as too much, and over finite data there are finitely many buffers.
    pub fn is_finite(self) -> bool {
        matches!(self, Keeps::Oldest | Keeps::Newest)
    }
}
