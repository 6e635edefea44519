//! Searches whose states were not written down: everything is explored anew with the reference
//! machine, state by state, and looked at.

use super::{AuditError, Audited};
use crate::certificate::Counted;
use crate::control::{Control, Progress};
use crate::deadlock;
use crate::task::Task;
use rustc_hash::FxHashMap;
use wattle_memory::reference::{Machine, Outcome, State, evaluate};
use wattle_memory::{Exact, Layout, MemoryModel, Pso, Sc, Tso};

pub fn audit(
    task: &Task<'_>,
    counted: &Counted,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if counted.model != task.model {
        return Err(AuditError::WrongModel(counted.model));
    }
    match task.model {
        MemoryModel::Sc => run::<Sc>(task, control),
        MemoryModel::Tso => run::<Tso>(task, control),
        MemoryModel::Pso => run::<Pso>(task, control),
    }
}

type Numbers<L> = FxHashMap<State<<L as Layout>::Buffer<Exact>>, u64>;

fn run<L: Layout>(task: &Task<'_>, control: &Control<'_>) -> Result<Audited, AuditError> {
    let refused = |r: wattle_memory::reference::Refusal| AuditError::Refused(r.to_string());
    let machine = Machine::<L, Exact>::new(task.instance, ()).map_err(refused)?;
    let mut numbers: Numbers<L> = FxHashMap::default();
    let mut work = Vec::new();
    let mut edges = task.deadlock.then(deadlock::Edges::default);
    for start in machine.starts().map_err(refused)? {
        work.push(machine.initial(&start));
    }
    for (i, state) in work.iter().enumerate() {
        numbers.insert(state.clone(), i as u64);
    }
    let bytes = 200 + 16 * (task.instance.cells.len() + 4 * task.instance.threads.len()) as u64;
    let mut looked = 0u64;
    while let Some(state) = work.pop() {
        let me = numbers.get(&state).copied().unwrap_or(u64::MAX);
        looked += 1;
        if looked.is_multiple_of(1 << 10) {
            let states = numbers.len() as u64;
            let progress = Progress {
                states,
                frontier: work.len() as u64,
                memory: states * bytes,
            };
            control.poll("audit", progress)?;
        }
        let visible = machine.inside_atomic(&state).is_none();
        if visible {
            look(task, &machine, &state, me)?;
        }
        let mut progress = deadlock::is_discarded(task.instance, &state);
        let mut targets = Vec::new();
        for event in machine.events(&state) {
            progress |= deadlock::is_progress(task.instance, L::MODEL, &event);
            let next = match machine.apply(&state, &event) {
                Outcome::Next(next) => next,
                Outcome::Fault(fault) if task.ends_at(&fault) => continue,
                Outcome::Fault(fault) => return Err(AuditError::Fault { state: me, fault }),
                Outcome::Full(_) => return Err(AuditError::Other("a buffer was full".into())),
            };
            let fresh = numbers.len() as u64;
            let number = *numbers.entry(next.clone()).or_insert(fresh);
            if number == fresh {
                work.push(next);
            }
            if edges.is_some() {
                targets.push(number);
            }
        }
        if let Some(edges) = &mut edges {
            let unfinished = visible && !machine.is_final(&state);
            edges.add(me, &targets, progress, unfinished);
        }
    }
    if let Some(state) = edges.and_then(deadlock::Edges::first_deadlock) {
        return Err(AuditError::Deadlock { state });
    }
    Ok(Audited {
        checked: numbers.len() as u64,
    })
}

fn look<L: Layout>(
    task: &Task<'_>,
    machine: &Machine<'_, L, Exact>,
    state: &State<L::Buffer<Exact>>,
    me: u64,
) -> Result<(), AuditError> {
    let Some(question) = task.question() else {
        return Ok(());
    };
    if question.only_final && !machine.is_final(state) {
        return Ok(());
    }
    match evaluate(state, &question.target) {
        Ok(0) => Ok(()),
        Ok(_) => Err(AuditError::Bad { state: me }),
        Err(why) => Err(AuditError::NoValue {
            state: me,
            why: why.to_string(),
        }),
    }
}
