//! From what an engine answered to what a person is told. Here, and only here, answers become
//! verdicts: traces are minimised and replayed, certificates audited, before anything is said.

mod live;
mod open;
mod replayed;
mod states;

pub use live::judge_live;
pub use open::{after_validation, judge_open};
pub use states::judge;

use crate::AuditError;
use wattle_evidence::{Reason, Unchecked, Unsound};

/// What the result of an audit makes of a proof: it counts (checked or not), or it does not, for a
/// reason, or it is wrong.
pub fn after_audit(
    engine: &'static str,
    result: Result<(), AuditError>,
) -> Result<Result<Option<Unchecked>, Reason>, Unsound> {
    match result {
        Ok(()) => Ok(Ok(None)),
        Err(AuditError::Stopped(stop)) => Ok(Ok(Some(Unchecked::Stopped(stop)))),
        // The auditor may have more to go through than the search had.
        Err(e @ AuditError::TooMany) => Ok(Ok(Some(Unchecked::Unable(e.to_string())))),
        Err(AuditError::Refused(why)) => Ok(Err(Reason::Other(format!(
            "{engine} has a proof, but it cannot be audited: {why}"
        )))),
        Err(e) => Err(unsound(engine, e)),
    }
}

fn unsound(engine: &'static str, e: impl ToString) -> Unsound {
    let what = e.to_string();
    Unsound { engine, what }
}

/// Whether to re-check certificates before believing them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditPolicy {
    #[default]
    Always,
    /// The verdict says that it was not audited.
    Never,
}
