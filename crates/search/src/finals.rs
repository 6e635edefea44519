//! All reachable final states, as seen through a few cells and registers: what a litmus test asks.

use crate::explore::{Finished, Observer, Order};
use crate::rounds::{self, Cut, Sizes, Subject};
use std::collections::BTreeSet;
use wattle_evidence::{Control, Progress, Reason};
use wattle_memory::MemoryModel;
use wattle_memory::compiled::{Flaw, Machine, Observed, Reductions, Watched};
use wattle_memory::content::EXACT;
use wattle_model::Instance;

/// What can be observed when all threads have ended and all buffers are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalStates {
    /// One value per observed cell or register, in the order they were asked for.
    pub states: BTreeSet<Vec<i64>>,
    /// Whether some states may be missing because buffers were only followed so far.
    pub cut: Cut,
    pub effort: Progress,
}

struct Collect {
    observed: Vec<Observed>,
    states: BTreeSet<Vec<i64>>,
}

impl Observer for Collect {
    fn look(&mut self, machine: &Machine<'_>, state: &[u64]) -> Result<bool, Flaw> {
        if machine.is_final(state) {
            let seen = self.observed.iter().map(|o| machine.observe(*o, state));
            self.states.insert(seen.collect());
        }
        Ok(false)
    }

    fn fork(&self) -> Self {
        Collect {
            observed: self.observed.clone(),
            states: BTreeSet::new(),
        }
    }

    fn join(&mut self, other: Self) {
        self.states.extend(other.states);
    }
}

/// Why there is no list of final states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoFinals {
    /// A reachable step is a fault.
    Fault(wattle_memory::Fault),
    Undecided(Reason),
}

pub fn final_states(
    instance: &Instance,
    model: MemoryModel,
    observed: &[Observed],
    control: &Control<'_>,
) -> Result<FinalStates, NoFinals> {
    final_states_with(instance, model, observed, Reductions::ALL, control)
}

pub fn final_states_with(
    instance: &Instance,
    model: MemoryModel,
    observed: &[Observed],
    reductions: Reductions,
    control: &Control<'_>,
) -> Result<FinalStates, NoFinals> {
    let view = Watched::of_final(instance, observed);
    let plan = Subject {
        name: "explicit",
        instance,
        model,
        contents: &EXACT,
        view: &view,
        reductions,
        order: Order::BreadthFirst,
        most_buffered: 6,
        compress: false,
    };
    let look = || Collect {
        observed: observed.to_vec(),
        states: BTreeSet::new(),
    };
    let mut sizes = Sizes::guess(instance, model);
    let other = |why: String| NoFinals::Undecided(Reason::Other(why));
    let outcome = rounds::run(&plan, &mut sizes, control, look, |_, _, look| look.states)
        .map_err(|refusal| other(refusal.to_string()))?;
    match outcome.ended {
        Finished::Exhausted => {}
        Finished::Fault {
            thread, step, flaw, ..
        } => {
            let fault = crate::question::fault(instance, thread, step, flaw);
            return Err(NoFinals::Fault(fault));
        }
        Finished::Stopped(stop) => {
            let stage = "explicit".into();
            return Err(NoFinals::Undecided(Reason::Stopped { stop, stage }));
        }
        Finished::Halted(_)
        | Finished::NoValue(..)
        | Finished::Narrow(..)
        | Finished::Short(_)
        | Finished::Idle => {
            return Err(other("the search was cut short".into()));
        }
    }
    if let Some((t, s)) = outcome.overflow {
        let place = crate::question::place(instance, t, s);
        return Err(NoFinals::Undecided(Reason::MachineOverflow { place }));
    }
    Ok(FinalStates {
        states: outcome.value,
        cut: outcome.cut,
        effort: outcome.effort,
    })
}
