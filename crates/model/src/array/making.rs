//! What whoever makes systems needs besides.

use super::{FenceKind, Formula, Quantified};
use crate::graph::Fence;
use crate::span::Span;

impl From<Fence> for FenceKind {
    fn from(f: Fence) -> Self {
        match f {
            Fence::Full => FenceKind::Full,
            Fence::Store => FenceKind::Store,
        }
    }
}

impl Default for Quantified {
    fn default() -> Self {
        Quantified {
            params: Vec::new(),
            body: Formula::TRUE,
            span: Span::NONE,
        }
    }
}

impl Formula {
    /// Nested conjunctions are flattened; a conjunction or disjunction of one part is that part.
    pub fn simplified(self) -> Formula {
        match self {
            Formula::And(parts) => {
                let mut flat = Vec::new();
                for p in parts {
                    match p {
                        Formula::And(inner) => flat.extend(inner),
                        other @ (Formula::Or(_) | Formula::Atom(_) | Formula::Others { .. }) => {
                            flat.push(other)
                        }
                    }
                }
                match flat.len() {
                    1 => flat.remove(0),
                    _ => Formula::And(flat),
                }
            }
            Formula::Or(mut parts) if parts.len() == 1 => parts.remove(0),
            other @ (Formula::Or(_) | Formula::Atom(_) | Formula::Others { .. }) => other,
        }
    }
}
