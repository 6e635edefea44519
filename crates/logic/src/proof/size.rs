//! How long a proof is, and the shortest ones.

use super::{End, Proof, Step};

impl Proof {
    /// How many steps and ends the proof has.
    pub fn size(&self) -> usize {
        let steps = self.steps.iter().map(|step| match step {
            Step::Lemma { proof, .. } => 1 + proof.size(),
            Step::Cut { .. }
            | Step::Conjuncts { .. }
            | Step::Quotient { .. }
            | Step::Unit { .. } => 1,
        });
        let end = match &self.end {
            End::Split { low, high, .. } => low.size() + high.size(),
            End::Cases { branches, .. } => branches.iter().map(Proof::size).sum(),
            End::Farkas(_) | End::Absurd(_) | End::Refuted { .. } => 0,
        };
        1 + steps.sum::<usize>() + end
    }
}

impl From<End> for Proof {
    fn from(end: End) -> Proof {
        Proof {
            steps: Vec::new(),
            end,
        }
    }
}
