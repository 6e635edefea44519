//! Certificates: all reachable states, with nothing left out.
//!
//! Reductions are for finding answers, not for proving them to a sceptic: the certificate is made by
//! a second search with all of them off, whose states are exactly those of the reference machine, so
//! that the auditor needs to know no rule but the machine's own. Where there are too many of them,
//! or they cannot be listed (a buffer grows without end with stores that only its own thread could
//! see), they are only counted.

use crate::explicit::Explicit;
use crate::explore::{Ended, Look, Order, Search};
use crate::rounds::{self, Cut, Plan, Sizes};
use wattle_evidence::certificate::{ClosedStates, Coded, Counted};
use wattle_evidence::{Answer, Certificate, Control, Progress, Reason, Stop, Task};
use wattle_memory::compiled::{Flaw, Machine, Reductions, Unpack, View};
use wattle_memory::content::EXACT;
use wattle_memory::reference::Refusal;
use wattle_memory::{Exact, MemoryModel, Pso, Sc, Tso};

/// Counts states, and stops when there are too many to write down.
struct Count {
    left: u64,
}

impl Look for Count {
    fn look(&mut self, _: &Machine<'_>, _: &[u64]) -> Result<bool, Flaw> {
        let enough = self.left == 0;
        self.left = self.left.saturating_sub(1);
        Ok(enough)
    }
}

/// An attempt to write down all states.
pub enum Listed {
    All(ClosedStates),
    /// Why not.
    No(String),
    /// The search without reductions met what the one with them did not: a bug.
    Disagrees,
}

/// All reachable states of the exact machine, sorted; or why they cannot be listed.
pub fn closed_states(task: &Task<'_>, most: u64, control: &Control<'_>) -> Result<Listed, Refusal> {
    let view = View {
        faults: task.minds_faults(),
        ..View::nothing(task.instance)
    };
    let plan = Plan {
        name: "explicit",
        instance: task.instance,
        model: task.model,
        contents: &EXACT,
        view: &view,
        reductions: Reductions::NONE,
        order: Order::BreadthFirst,
        most_buffered: 8,
    };
    let mut sizes = Sizes::guess(task.instance, task.model);
    let outcome = rounds::run(
        &plan,
        &mut sizes,
        control,
        || Count { left: most },
        |search, ended, _| {
            (*ended == Ended::Exhausted && search.notes.full.iter().all(|f| !f)).then(|| match task
                .model
            {
                MemoryModel::Sc => list::<Sc>(search, control),
                MemoryModel::Tso => list::<Tso>(search, control),
                MemoryModel::Pso => list::<Pso>(search, control),
            })
        },
    )?;
    Ok(match (outcome.value, outcome.ended, outcome.cut) {
        (Some(Ok(set)), _, _) => Listed::All(set),
        (Some(Err(stop)), ..) | (None, Ended::Stopped(stop), _) => {
            Listed::No(format!("{stop} while listing all states"))
        }
        (None, Ended::Halted(_), _) => Listed::No(format!("there are more than {most} states")),
        (None, Ended::Exhausted, Cut::Buffers(limits)) => Listed::No(limits.cause),
        (None, ..) => Listed::Disagrees,
    })
}

/// How often to poll.
const POLL: u32 = 1 << 12;

fn list<L: Coded + Unpack>(
    search: &Search<'_, '_>,
    control: &Control<'_>,
) -> Result<ClosedStates, Stop> {
    // Rows one after the other, and where each begins.
    let (mut numbers, mut rows) = (Vec::new(), Vec::new());
    let poll = |i: u32, numbers: &Vec<i64>| {
        let held = 8 * (numbers.capacity() as u64 + 2 * u64::from(i));
        let mut progress = search.progress();
        progress.memory += held;
        match i.is_multiple_of(POLL) {
            true => control.poll(search.name, progress),
            false => Ok(()),
        }
    };
    for i in 0..search.store.len() as u32 {
        poll(i, &numbers)?;
        let begin = numbers.len();
        let state = search.machine.unpack::<L, Exact>(search.store.state(i));
        L::encode(&state, &mut numbers);
        rows.push(begin..numbers.len());
    }
    rows.sort_unstable_by(|a, b| numbers[a.clone()].cmp(&numbers[b.clone()]));
    let mut set = ClosedStates::new(L::MODEL);
    for (i, row) in (0..).zip(rows) {
        poll(i, &numbers)?;
        set.push(&numbers[row]);
    }
    Ok(set.finish())
}

/// The answer when every state was seen and none was bad.
pub fn proof(
    engine: &Explicit,
    task: &Task<'_>,
    control: &Control<'_>,
    effort: Progress,
) -> Result<Answer, Refusal> {
    let set = closed_states(task, engine.options.most_certified, control)?;
    Ok(match set {
        Listed::All(set) => Answer::Unreachable {
            certificate: Certificate::ClosedStates(set),
            effort,
        },
        Listed::No(why) => Answer::Unreachable {
            certificate: Certificate::Counted(Counted {
                model: task.model,
                states: effort.states,
                why,
            }),
            effort,
        },
        Listed::Disagrees => Answer::Undecided {
            reason: Reason::Other("searches with and without reductions disagree".into()),
            effort,
        },
    })
}
