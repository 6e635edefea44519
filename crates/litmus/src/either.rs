//! Final states by whoever is faster: state by state, or trace by trace.
//!
//! Threads that have little to do with each other have few traces and very many states; threads that all
//! write one cell the other way round. Nobody knows before. So both are asked in turn, each time for
//! longer, and the first to be done answers. Turns are measured in polls, so who answers is a property of
//! the test. The search by traces goes on where it was; the explicit one begins anew, with several times the
//! budget.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wattle_evidence::{Control, Pace, Progress, Reason, Stop};
use wattle_memory::MemoryModel;
use wattle_model::Instance;
use wattle_search::rounds::Cut;
use wattle_search::{FinalStates, NoFinals, Observed};
use wattle_traces::{FinalSearch, prepare};

/// Polls of traces and of the explicit search in the first turn: enough for all but a few tests.
const FIRST: (u64, u64) = (2, 32);
/// The same in the second, where one of them is expected to be much better than the other. More states than
/// the explicit search had in the first turn are mostly far more, while so many traces are followed in a second.
const SECOND: (u64, u64) = (512, 128);
/// How much longer every later turn is than the one before.
const MORE: u64 = 8;

/// So many polls.
struct Turn {
    left: AtomicU64,
}

impl Turn {
    fn new(polls: u64) -> Self {
        let left = AtomicU64::new(polls);
        Turn { left }
    }

    fn is_over(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

impl Pace for Turn {
    fn tick(&self, _: &'static str, _: Progress) -> Result<(), Stop> {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        if left <= 1 {
            Err(Stop::Cancelled)
        } else {
            Ok(())
        }
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// Trace by trace only.
pub fn by_traces(
    instance: &Instance,
    model: MemoryModel,
    observed: &[Observed],
    control: &Control<'_>,
) -> Result<FinalStates, NoFinals> {
    let found = wattle_traces::final_states(instance, model, observed, control);
    found.map(complete).map_err(|e| none(e, "traces"))
}

/// By cartesian vectors only.
pub fn by_vectors(
    instance: &Instance,
    model: MemoryModel,
    observed: &[Observed],
    control: &Control<'_>,
) -> Result<FinalStates, NoFinals> {
    let found = wattle_traces::final_states_by_vectors(instance, model, observed, control);
    found.map(complete).map_err(|e| none(e, "cartesian"))
}

fn none(why: wattle_traces::NoFinals, name: &str) -> NoFinals {
    match why {
        wattle_traces::NoFinals::Fault(fault) => NoFinals::Fault(fault),
        wattle_traces::NoFinals::Undecided(Reason::Refused(refusal)) => {
            NoFinals::Undecided(Reason::Other(format!("{name}: {}", refusal.why)))
        }
        wattle_traces::NoFinals::Undecided(reason) => NoFinals::Undecided(reason),
    }
}

fn complete(found: wattle_traces::Finals) -> FinalStates {
    FinalStates {
        states: found.states,
        cut: Cut::Nothing,
        effort: found.effort,
    }
}

/// Every final state: of independent parts apart, of each by whoever is faster.
pub fn final_states(
    instance: &Instance,
    model: MemoryModel,
    observed: &[Observed],
    control: &Control<'_>,
) -> Result<FinalStates, NoFinals> {
    let whole = |instance: &Instance, observed: &[Observed]| {
        by_the_faster(instance, model, observed, control)
    };
    crate::parts::product(instance, observed, control, whole)
        .unwrap_or_else(|| whole(instance, observed))
}

fn by_the_faster(
    instance: &Instance,
    model: MemoryModel,
    observed: &[Observed],
    control: &Control<'_>,
) -> Result<FinalStates, NoFinals> {
    let Ok((program, starts)) = prepare(instance, model, observed) else {
        return wattle_search::final_states(instance, model, observed, control);
    };
    let mut traces = Some(FinalSearch::new(&program, &starts, observed));
    let (mut few, mut many) = FIRST;
    loop {
        if let Some(search) = &mut traces {
            let turn = Turn::new(few);
            let within = control.stage(Duration::MAX).with_pace(&turn);
            match search.run(&within) {
                Ok(found) => return Ok(complete(found)),
                Err(wattle_traces::NoFinals::Fault(fault)) => return Err(NoFinals::Fault(fault)),
                Err(wattle_traces::NoFinals::Undecided(Reason::Stopped { stop, .. })) => {
                    if !turn.is_over() {
                        let stage = "traces".into();
                        return Err(NoFinals::Undecided(Reason::Stopped { stop, stage }));
                    }
                }
                // It cannot: the other one can.
                Err(wattle_traces::NoFinals::Undecided(_)) => traces = None,
            }
        }
        if traces.is_none() {
            return wattle_search::final_states(instance, model, observed, control);
        }
        let turn = Turn::new(many);
        let within = control.stage(Duration::MAX).with_pace(&turn);
        match wattle_search::final_states(instance, model, observed, &within) {
            Err(NoFinals::Undecided(Reason::Stopped { .. })) if turn.is_over() => {}
            // More stores are pending than it follows: traces may know all.
            Ok(found) if found.cut != Cut::Nothing => {}
            other => return other,
        }
        (few, many) = match (few, many) == FIRST {
            true => SECOND,
            false => (few * MORE, many * MORE),
        };
    }
}
