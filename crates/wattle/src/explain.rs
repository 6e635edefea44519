//! Why a violation is one of relaxed memory: asks SC about the same question.

use crate::options::Options;
use crate::plan;
use std::time::Duration;
use wattle_evidence::{Control, Task, Trace, Verdict};
use wattle_memory::MemoryModel;
use wattle_report::why::{Why, overtakings};

/// What asking SC may cost.
const BUDGET: Duration = Duration::from_secs(2);

/// The overtakings of a trace. `sc` is what is known about the same question under SC already.
pub fn explain(
    task: &Task<'_>,
    trace: &Trace,
    sc: Option<&Verdict>,
    options: &Options,
    control: &Control<'_>,
) -> Option<Why> {
    if task.model == MemoryModel::Sc {
        return None;
    }
    let states = trace.check(task).ok()?;
    let overtakings = overtakings(task, trace, &states);
    let asked;
    let verdict = match sc {
        Some(verdict) => Some(verdict),
        None => {
            let task = Task {
                model: MemoryModel::Sc,
                ..*task
            };
            let plain = Options {
                engine: None,
                ..options.clone()
            };
            asked = plan::run(&task, &plain, &control.stage(BUDGET)).ok();
            asked.as_ref().map(|o| &o.judged.verdict)
        }
    };
    let sc_forbids = match verdict {
        Some(Verdict::Holds { .. }) => Some(true),
        Some(Verdict::Violated { .. }) => Some(false),
        _ => None,
    };
    Some(Why {
        overtakings,
        sc_forbids,
    })
}
