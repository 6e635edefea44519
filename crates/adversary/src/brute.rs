//! The judge: everything the reference machine can reach, with nothing clever.
//!
//! It shares with the engines the model, the reference machine and nothing else. A search that met its
//! limit knows what is reachable and nothing about what is not.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use wattle_memory::reference::{Machine, Outcome, State, evaluate};
use wattle_memory::{Event, Exact, FaultKind, Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::graph::Action;
use wattle_model::instance::Thread;
use wattle_model::{Instance, PropertyKind};

/// What is reachable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub states: usize,
    /// Everything was looked at.
    pub complete: bool,
    /// Some run ends in a fault: a false assertion, a value outside its range, …
    pub fault: bool,
    /// By question: its target was reached.
    pub target: Vec<bool>,
    /// By question: it has no value in some state.
    pub no_value: Vec<bool>,
    /// Known only if everything was looked at.
    pub deadlock: bool,
}

/// What the answer to a question is, as far as the judge can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    Holds,
    Violated,
    /// No violation up to the limit (or, for `reachable`, no witness).
    Open,
    /// Some state gives the condition no value: nobody may say that it holds.
    NoValue,
}

impl Seen {
    pub fn truth(&self, instance: &Instance, question: Option<usize>, deadlock: bool) -> Truth {
        let target = question.is_some_and(|q| self.target[q]);
        let no_value = question.is_some_and(|q| self.no_value[q]);
        let kind = question.map(|q| instance.questions[q].kind);
        match kind {
            Some(PropertyKind::Reachable) => match (target, no_value, self.complete) {
                (true, ..) => Truth::Holds,
                (_, true, _) => Truth::NoValue,
                (.., true) => Truth::Violated,
                (.., false) => Truth::Open,
            },
            None | Some(PropertyKind::Never | PropertyKind::Always | PropertyKind::Finally) => {
                match target || self.fault || deadlock && self.deadlock {
                    true => Truth::Violated,
                    false if no_value => Truth::NoValue,
                    false if self.complete => Truth::Holds,
                    false => Truth::Open,
                }
            }
        }
    }
}

/// Looks at everything up to `most` states. `None` if the machine refuses the instance.
pub fn explore(instance: &Instance, model: MemoryModel, most: usize) -> Option<Seen> {
    match model {
        MemoryModel::Sc => run::<Sc>(instance, most),
        MemoryModel::Tso => run::<Tso>(instance, most),
        MemoryModel::Pso => run::<Pso>(instance, most),
    }
}

fn run<L: Layout>(instance: &Instance, most: usize) -> Option<Seen> {
    let machine = Machine::<L, Exact>::new(instance, ()).ok()?;
    let mut seen = Seen {
        complete: true,
        target: vec![false; instance.questions.len()],
        no_value: vec![false; instance.questions.len()],
        ..Seen::default()
    };
    let mut queue: IndexSet<State<L::Buffer<Exact>>, FxBuildHasher> = IndexSet::default();
    for start in machine.starts().ok()? {
        queue.insert(machine.initial(&start));
    }
    // For deadlock: who leads where, where something happens, and where somebody still waits.
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); queue.len()];
    let (mut happens, mut waits) = (Vec::new(), Vec::new());
    let mut next = 0;
    while let Some(state) = queue.get_index(next) {
        if queue.len() > most {
            seen.complete = false;
            break;
        }
        let outside = machine.inside_atomic(state).is_none();
        let is_final = machine.is_final(state);
        for (q, question) in instance.questions.iter().enumerate() {
            if outside && (is_final || !question.only_final) {
                match evaluate(state, &question.target) {
                    Ok(0) => {}
                    Ok(_) => seen.target[q] = true,
                    Err(_) => seen.no_value[q] = true,
                }
            }
        }
        let mut something = outside && is_discarded(instance, state);
        let mut after = Vec::new();
        for event in machine.events(state) {
            match machine.apply(state, &event) {
                Outcome::Next(state) => {
                    something |= is_seen(instance, L::MODEL, &event);
                    after.push(state);
                }
                // Sixty-four bits were too few: nobody knows what comes after.
                Outcome::Fault(fault) if fault.kind == FaultKind::MachineOverflow => {
                    seen.complete = false;
                }
                Outcome::Fault(_) => {
                    seen.fault = true;
                    something = true;
                }
                Outcome::Full(_) => seen.complete = false,
            }
        }
        for state in after {
            let (n, is_new) = queue.insert_full(state);
            if is_new {
                before.push(Vec::new());
            }
            before[n].push(next);
        }
        if something {
            happens.push(next);
        }
        if outside && !is_final {
            waits.push(next);
        }
        next += 1;
    }
    seen.states = queue.len();
    seen.deadlock = seen.complete && is_stuck(&before, happens, &waits);
    Some(seen)
}

/// Whether some state that waits leads nowhere where anything happens.
fn is_stuck(before: &[Vec<usize>], happens: Vec<usize>, waits: &[usize]) -> bool {
    let mut alive = vec![false; before.len()];
    let mut work = happens;
    while let Some(s) = work.pop() {
        if !std::mem::replace(&mut alive[s], true) {
            work.extend(&before[s]);
        }
    }
    waits.iter().any(|s| !alive[*s])
}

/// A store reaches memory, or a thread ends.
fn is_seen(instance: &Instance, model: MemoryModel, event: &Event) -> bool {
    match event {
        Event::Drain { .. } => true,
        Event::Step { thread, step, .. } => {
            let thread = instance.thread(*thread);
            let step = thread.step(*step);
            let at_once = model == MemoryModel::Sc || thread.direct[step.source.index()];
            let stores = matches!(step.action, Action::Store { .. });
            thread.ended(step.target) || stores && at_once
        }
    }
}

/// Whether some thread stands before nothing but assumptions that stay false: such a run is not one
/// of the program.
fn is_discarded<B>(instance: &Instance, state: &State<B>) -> bool {
    let blocked = |(t, thread): (usize, &Thread)| {
        let out = thread.outgoing(state.locations[t]);
        let is_false = |s| match &thread.step(s).action {
            Action::Assume(e) => {
                let value = |r: &wattle_model::RegisterId| state.registers[t][r.index()];
                e.eval(&value) == Ok(0)
            }
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => false,
        };
        !out.is_empty() && out.iter().all(|s| is_false(*s))
    };
    instance.threads.iter().enumerate().any(blocked)
}
