//! The engine `liveness`: what runs of a fixed number of threads do in the long run.
//!
//! The automaton of the negated formula ([`tableau`]) and the compiled machine ([`moves`]) are
//! explored together ([`graph`]); a component with a fair run that breaks the demand becomes a lasso
//! ([`lasso`]), and where there is none every node gets numbers that show it ([`certificate`]).
//!
//! Where buffers may grow without end they are followed up to a length. A lasso found so is real, and
//! where there is none nothing is proved. Memory fairness ([`returning`]) is another question with another method.

#![deny(clippy::wildcard_enum_match_arm)]

mod certificate;
mod components;
mod graph;
mod lasso;
mod moves;
mod reduction;
mod returning;
mod tableau;

use graph::{Finished, Graph};
use reduction::Rules;
use wattle_evidence::live::{LiveTask, MOST_MOVERS, loop_in_block, movers};
use wattle_evidence::{
    Certificate, Control, End, Fairness, Lasso, LiveAnswer, Progress, Reason, Refusal,
};
use wattle_memory::compiled::{Found, Reductions};
use wattle_memory::content::EXACT;
use wattle_memory::reference;
use wattle_search::Order;
use wattle_search::question::{self, Explored, Manner};
use wattle_search::rounds::{Sizes, Subject};

pub const NAME: &str = "liveness";

/// Buffers that may grow without end are followed up to this many stores.
const MOST_BUFFERED: u32 = 6;

/// Whether the engine can work on the task.
pub fn accepts(task: &LiveTask<'_>) -> Result<(), Refusal> {
    task.faults().is_narrow(1 << 24)?;
    reference::starts(task.instance).map_err(|r| Refusal::new(r.to_string()))?;
    let n = movers(task.instance, task.model).len();
    if n > MOST_MOVERS {
        return Err(Refusal::new(format!(
            "{n} threads and buffers; fairness is treated for at most {MOST_MOVERS}"
        )));
    }
    if let Some(span) = loop_in_block(task.instance) {
        let why = "a loop inside an atomic block has no end that others could wait for";
        return Err(Refusal::new(why).at(span, "put the loop around the block"));
    }
    tableau::automaton(task).map(|_| ()).map_err(Refusal::new)
}

pub fn run(task: &LiveTask<'_>, control: &Control<'_>) -> (LiveAnswer, Progress) {
    let refused = |r: reference::Refusal| {
        let reason = Reason::Refused(Refusal::new(r.to_string()));
        (LiveAnswer::Undecided(reason), Progress::default())
    };
    if let Err(refusal) = accepts(task) {
        let reason = Reason::Refused(refusal);
        return (LiveAnswer::Undecided(reason), Progress::default());
    }
    match task.fairness {
        Fairness::None | Fairness::Weak | Fairness::Strong => {
            search(task, MOST_BUFFERED, control).unwrap_or_else(refused)
        }
        Fairness::Memory => memory(task, control),
    }
}

/// Memory fair runs are strongly fair, and there is a faster search for those: it is asked where there are more than a few states.
fn memory(task: &LiveTask<'_>, control: &Control<'_>) -> (LiveAnswer, Progress) {
    let few = returning::run(task, returning::FEW, control);
    if !matches!(&few.0, LiveAnswer::Undecided(Reason::Other(_))) {
        return few;
    }
    let strong = LiveTask {
        fairness: Fairness::Strong,
        ..*task
    };
    match search(&strong, 0, control) {
        Ok((LiveAnswer::Holds(proof), effort)) => (LiveAnswer::Holds(proof), effort),
        Ok(_) | Err(_) => returning::run(task, returning::MOST, control),
    }
}

/// Buffers that may have no bound are followed up to so many stores.
fn search(
    task: &LiveTask<'_>,
    most_buffered: u32,
    control: &Control<'_>,
) -> Result<(LiveAnswer, Progress), reference::Refusal> {
    let automaton = match tableau::automaton(task) {
        Ok(automaton) => automaton,
        Err(why) => {
            let reason = Reason::Refused(Refusal::new(why));
            return Ok((LiveAnswer::Undecided(reason), Progress::default()));
        }
    };
    let movers = movers(task.instance, task.model);
    let rules = Rules::of(task);
    let view = rules.view(task);
    let plan = Subject {
        name: NAME,
        instance: task.instance,
        model: task.model,
        contents: &EXACT,
        view: &view,
        reductions: rules.reductions,
        order: Order::DepthFirst,
        most_buffered,
        compress: false,
    };
    let mut sizes = Sizes::guess(task.instance, task.model);
    let mut bounded: Option<(LiveAnswer, Progress)> = None;
    loop {
        let machine = plan.machine(&sizes)?;
        let mut graph = Graph::new(task, &machine, &automaton, &movers, &rules);
        let ended = graph.run(control);
        let effort = graph.progress();
        let undecided = |reason| Ok((LiveAnswer::Undecided(reason), effort));
        match ended {
            Finished::Found(Found::Narrow(slot, value)) => {
                sizes.ranges.widen(slot, machine.type_of(slot), value);
            }
            Finished::Found(Found::Short(thread)) => sizes.lengthen(thread),
            Finished::Found(Found::Fault { .. }) => {
                return Ok((fault(task, control), effort));
            }
            Finished::NoValue(flaw) => {
                return undecided(Reason::Other(format!(
                    "the property has no value in a reachable state: {}",
                    flaw.kind(None)
                )));
            }
            // What was searched to the end with shorter buffers stands.
            Finished::Stopped(stop) => {
                return Ok(bounded.unwrap_or_else(|| {
                    let reason = Reason::stopped(stop, NAME);
                    (LiveAnswer::Undecided(reason), effort)
                }));
            }
            Finished::TooMany => return undecided(Reason::Other("too many states".into())),
            Finished::Broken(broken) => {
                let near = || Graph::new(task, &machine, &automaton, &movers, &rules);
                let found = nearby(task, near, control)
                    .or_else(|| lasso::lasso(&mut graph, &broken, task.fairness));
                return match found.and_then(|l| closed(task, l)) {
                    Some(lasso) => Ok((LiveAnswer::Broken(lasso), effort)),
                    None => undecided(Reason::Other("a run could not be rebuilt".into())),
                };
            }
            Finished::Closed => {
                if let Some((t, s)) = graph.moves.notes.overflow {
                    let place = question::place(task.instance, t, s);
                    return undecided(Reason::MachineOverflow { place });
                }
                let full = &graph.moves.full;
                if !full.contains(&true) {
                    let proof = certificate::certificate(task, &graph, automaton, &movers);
                    return match proof {
                        Some(proof) => {
                            let proof = Certificate::Components(proof);
                            Ok((LiveAnswer::Holds(proof), effort))
                        }
                        None => undecided(Reason::Other(
                            "a component could not be shown to be harmless".into(),
                        )),
                    };
                }
                let limits = sizes.limits(&plan, full);
                let answer = (LiveAnswer::Bounded(limits), effort);
                if !sizes.grow(full, most_buffered) {
                    return Ok(answer);
                }
                bounded = Some(answer);
            }
        }
    }
}

/// A lasso among the states that are nearest to the start: what a depth-first search finds first is
/// often far away.
fn nearby<'m, 'i: 'm>(
    task: &LiveTask<'_>,
    graph: impl Fn() -> Graph<'m, 'i>,
    control: &Control<'_>,
) -> Option<Lasso> {
    for most in [1 << 8, 1 << 11, 1 << 14, 1 << 16] {
        let mut near = graph();
        near.widely(most, control).ok()?;
        let all: Vec<u32> = (0..near.store.len() as u32).collect();
        if let Some(broken) = components::look_into(&near, &all) {
            return lasso::lasso(&mut near, &broken, task.fairness);
        }
    }
    None
}

/// A lasso that is closed to the last register: what is dead may differ after the first round, and no
/// more after the second.
fn closed(task: &LiveTask<'_>, lasso: Lasso) -> Option<Lasso> {
    if lasso.check(task).is_ok() {
        return Some(lasso);
    }
    let mut stem = lasso.stem.clone();
    stem.extend(&lasso.cycle);
    Some(Lasso { stem, ..lasso })
}

/// The run to a fault, found anew breadth first: it is shorter.
fn fault(task: &LiveTask<'_>, control: &Control<'_>) -> LiveAnswer {
    let plain = task.faults();
    let manner = Manner {
        name: NAME,
        contents: &EXACT,
        reductions: Reductions::ALL,
        order: Order::BreadthFirst,
        most_buffered: MOST_BUFFERED,
        compress: false,
    };
    let mut sizes = Sizes::guess(task.instance, task.model);
    let explored = question::explore(&plain, &manner, &mut sizes, control);
    let lost = || {
        let why = "a fault is reachable; the run to it was not found";
        LiveAnswer::Undecided(Reason::Other(why.into()))
    };
    let Ok((explored, _)) = explored else {
        return lost();
    };
    match explored {
        Explored::Bad(trace) if trace.end != End::Target => LiveAnswer::Fault(trace),
        Explored::Stopped(stop) => LiveAnswer::Undecided(Reason::stopped(stop, NAME)),
        Explored::Bad(_) | Explored::Closed { .. } | Explored::Cut(_) | Explored::Unclear(_) => {
            lost()
        }
    }
}
