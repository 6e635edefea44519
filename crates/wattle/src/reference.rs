//! The reference machine explored breadth-first, with nothing clever: the slowest engine and the
//! easiest to believe. Others are compared with it; `--engine reference` asks it.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use wattle_evidence::certificate::Coded;
use wattle_evidence::{
    Answer, Certificate, ClosedStates, Control, End, Engine, Limits, Progress, Reason, Refusal,
    Task, Trace, deadlock,
};
use wattle_memory::reference::{Machine, Outcome, State, evaluate};
use wattle_memory::{Event, Exact, FaultKind, MemoryModel, Pso, Sc, Start, Tso};

/// The engine that explores the reference machine as it is: slow and plain.
pub struct Reference;

/// Longer buffers are not followed; the answer then says so.
const MAX_BUFFER: u32 = 64;
/// States between two looks at the clock, about two milliseconds.
const POLL: usize = 1 << 7;

impl Engine for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        let machine = Machine::<Sc, Exact>::new(task.instance, ());
        let starts = machine.and_then(|m| m.starts());
        starts.map(|_| ()).map_err(|r| Refusal::new(r.to_string()))
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        match task.model {
            MemoryModel::Sc => explore::<Sc>(task, control),
            MemoryModel::Tso => explore::<Tso>(task, control),
            MemoryModel::Pso => explore::<Pso>(task, control),
        }
    }
}

struct Exploration<L: Coded> {
    states: IndexSet<State<L::Buffer<Exact>>, FxBuildHasher>,
    parent: Vec<Option<(usize, Event)>>,
    /// For initial states.
    start: Vec<Option<Start>>,
}

fn explore<L: Coded>(task: &Task<'_>, control: &Control<'_>) -> Answer {
    let refused = |r: wattle_memory::reference::Refusal| Answer::Undecided {
        reason: Reason::Refused(Refusal::new(r.to_string())),
        effort: Progress::default(),
    };
    let machine = match Machine::<L, Exact>::new(task.instance, ()) {
        Ok(machine) => machine,
        Err(r) => return refused(r),
    };
    let starts = match machine.starts() {
        Ok(starts) => starts,
        Err(r) => return refused(r),
    };
    let mut x = Exploration::<L> {
        states: IndexSet::default(),
        parent: Vec::new(),
        start: Vec::new(),
    };
    for start in starts {
        let state = machine.initial(&start);
        x.add(state, None, Some(start));
    }
    let mut edges = deadlock::Edges::default();
    let mut cut = None;
    let mut next = 0;
    while let Some(state) = x.states.get_index(next) {
        let effort = x.effort(next);
        if next.is_multiple_of(POLL)
            && let Err(stop) = control.poll("reference", effort)
        {
            let stage = "reference".to_string();
            let reason = Reason::Stopped { stop, stage };
            return Answer::Undecided { reason, effort };
        }
        let visible = machine.inside_atomic(state).is_none();
        if visible && let Some(question) = task.question() {
            let looks = !question.only_final || machine.is_final(state);
            match looks.then(|| evaluate(state, &question.target)) {
                None | Some(Ok(0)) => {}
                Some(Ok(_)) => {
                    let trace = x.trace(task, next, None, End::Target);
                    return Answer::Reached { trace, effort };
                }
                Some(Err(why)) => {
                    let reason = Reason::Other(format!("the property has no value: {why}"));
                    return Answer::Undecided { reason, effort };
                }
            }
        }
        let mut after = Vec::new();
        let mut progress = deadlock::is_discarded(task.instance, state);
        for event in machine.events(state) {
            match machine.apply(state, &event) {
                Outcome::Full(_) => {}
                Outcome::Fault(fault) if fault.kind == FaultKind::MachineOverflow => {
                    let thread = task.instance.thread(fault.thread);
                    let line = thread.step(fault.step).span.line;
                    let place = format!("{}, line {line}", thread.name);
                    let reason = Reason::MachineOverflow { place };
                    return Answer::Undecided { reason, effort };
                }
                Outcome::Fault(fault) if task.ends_at(&fault) => {}
                Outcome::Fault(fault) => {
                    let trace = x.trace(task, next, Some(event), End::Fault(fault));
                    return Answer::Reached { trace, effort };
                }
                Outcome::Next(state) => {
                    let t = event.thread();
                    if L::entries::<Exact>(&state.buffers[t.index()]).len() > MAX_BUFFER as usize {
                        cut.get_or_insert(t);
                        continue;
                    }
                    progress |= deadlock::is_progress(task.instance, L::MODEL, &event);
                    after.push((state, event));
                }
            }
        }
        let unfinished = visible && !machine.is_final(state);
        let targets = after.into_iter();
        let targets: Vec<u64> = targets
            .map(|(state, event)| x.add(state, Some((next, event)), None) as u64)
            .collect();
        if task.deadlock {
            edges.add(next as u64, &targets, progress, unfinished);
        }
        next += 1;
    }
    let effort = x.effort(next);
    if let Some(t) = cut {
        let name = &task.instance.thread(t).name;
        return Answer::Bounded {
            limits: Limits {
                buffered_stores: MAX_BUFFER,
                cause: format!("{name} stores in a loop without a fence"),
            },
            effort,
        };
    }
    if let Some(state) = task.deadlock.then(|| edges.first_deadlock()).flatten() {
        let trace = x.trace(task, state as usize, None, End::Deadlock);
        return Answer::Reached { trace, effort };
    }
    Answer::Unreachable {
        certificate: Certificate::ClosedStates(x.certificate()),
        effort,
    }
}

impl<L: Coded> Exploration<L> {
    fn add(
        &mut self,
        state: State<L::Buffer<Exact>>,
        parent: Option<(usize, Event)>,
        start: Option<Start>,
    ) -> usize {
        let (i, is_new) = self.states.insert_full(state);
        if is_new {
            self.parent.push(parent);
            self.start.push(start);
        }
        i
    }

    fn effort(&self, done: usize) -> Progress {
        Progress {
            states: self.states.len() as u64,
            frontier: (self.states.len() - done) as u64,
            memory: self.states.len() as u64 * 1000,
            ..Progress::default()
        }
    }

    fn trace(&self, task: &Task<'_>, at: usize, last: Option<Event>, end: End) -> Trace {
        let mut events: Vec<Event> = last.into_iter().collect();
        let mut at = at;
        while let Some((parent, event)) = self.parent[at] {
            events.push(event);
            at = parent;
        }
        events.reverse();
        let empty = || Start {
            memory: Vec::new(),
            registers: Vec::new(),
        };
        Trace {
            model: task.model,
            start: self.start[at].clone().unwrap_or_else(empty),
            events,
            end,
        }
    }

    fn certificate(&self) -> ClosedStates {
        let row = |s: &State<L::Buffer<Exact>>| {
            let mut row = Vec::new();
            L::encode(s, &mut row);
            row
        };
        let mut rows: Vec<Vec<i64>> = self.states.iter().map(row).collect();
        rows.sort_unstable();
        let mut set = ClosedStates::new(L::MODEL);
        rows.iter().for_each(|r| set.push(r));
        set.finish()
    }
}
