//! What proofs take for granted and did not show.

use super::{Judged, Verdict};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// The numbers in these variables, as the user named them, do not wrap around.
    NoWrap { variables: Vec<String> },
    /// There are at most so many threads, which is fewer than there may well be.
    AtMost { threads: u32 },
    /// What the file says of what never changes, in a language where that is a given fact.
    Invariants,
}

impl Judged {
    /// The same where a proof took something for granted: what was not accepted is a condition.
    pub fn assuming(
        self,
        assumptions: Vec<Assumption>,
        accepted: impl Fn(&Assumption) -> bool,
    ) -> Self {
        let Verdict::Holds { mut scope, proof } = self.verdict else {
            return self;
        };
        let all = assumptions.iter().all(accepted);
        scope.assumptions.extend(assumptions);
        let verdict = match all {
            true => Verdict::Holds { scope, proof },
            false => Verdict::HoldsIf { scope, proof },
        };
        Judged { verdict, ..self }
    }
}
