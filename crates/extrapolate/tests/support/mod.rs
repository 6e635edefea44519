//! What the tests of both engines for integers share: asking, and believing nothing unchecked.

use wattle_auditor::audit;
use wattle_evidence::{Answer, Control, Task};
use wattle_memory::MemoryModel;
use wattle_model::Instance;

/// The first property, or assertions and faults where there is none.
pub fn question(instance: &Instance, model: MemoryModel) -> Task<'_> {
    Task {
        instance,
        model,
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock: false,
    }
}

/// `Some(true)` if something bad is reachable, by a run that replays; `Some(false)` if not, by a proof
/// that the auditor accepts.
pub fn decided(task: &Task<'_>, answer: &Answer, what: &dyn Fn() -> String) -> Option<bool> {
    match answer {
        Answer::Reached { trace, .. } => {
            if let Err(e) = trace.check(task) {
                panic!("{}: the trace does not replay: {e}", what());
            }
        }
        Answer::Unreachable { certificate, .. } => {
            if let Err(e) = audit(task, certificate, &Control::unlimited()) {
                panic!("{}: the certificate does not check: {e}", what());
            }
        }
        Answer::Bounded { .. } | Answer::Undecided { .. } => {}
    }
    answer.settles(task)
}
