//! Closed sets of states.
//!
//! The set proves what it says if it contains every initial state, if no event of the reference
//! machine leads out of it, and if none of its states is bad: the target is false wherever it is
//! looked at (outside atomic blocks; in final states only, if the question says so), no enabled
//! step is a fault and, if asked, no state is a deadlock. States are those of the exact machine,
//! with nothing left out; the format is that of [`Coded`].

use super::{AuditError, Audited};
use crate::certificate::{ClosedStates, Coded};
use crate::control::{Control, Progress};
use crate::deadlock;
use crate::task::Task;
use rustc_hash::FxHashMap;
use wattle_memory::reference::{Machine, Outcome, State, evaluate};
use wattle_memory::{Event, Exact, MemoryModel, Pso, Sc, Tso};
use wattle_model::Instance;

/// How often to poll.
const POLL: u64 = 1 << 12;
/// Bytes of an entry of the table besides the state itself.
const ENTRY: u64 = 48;

pub fn audit(
    task: &Task<'_>,
    set: &ClosedStates,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if set.model != task.model {
        return Err(AuditError::WrongModel(set.model));
    }
    match set.model {
        MemoryModel::Sc => run::<Sc>(task, set, control),
        MemoryModel::Tso => run::<Tso>(task, set, control),
        MemoryModel::Pso => run::<Pso>(task, set, control),
    }
}

fn run<L: Coded>(
    task: &Task<'_>,
    set: &ClosedStates,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let refused = |r: wattle_memory::reference::Refusal| AuditError::Refused(r.to_string());
    let machine = Machine::<L, Exact>::new(task.instance, ()).map_err(refused)?;
    let mut auditor = Auditor::<L> {
        task,
        machine,
        control,
        numbers: FxHashMap::default(),
        held: 0,
        work: 0,
    };
    set.for_each_row(|row| auditor.admit(row))?;
    for start in auditor.machine.starts().map_err(refused)? {
        let state = auditor.machine.initial(&start);
        if auditor.number(&state).is_none() {
            return Err(AuditError::MissesInitial);
        }
    }
    // States that can reach progress; what is left over at the end is a deadlock.
    let mut edges = task.deadlock.then(deadlock::Edges::default);
    set.for_each_row(|row| auditor.check(row, edges.as_mut()))?;
    if let Some(state) = edges.and_then(|e| e.first_deadlock()) {
        return Err(AuditError::Deadlock { state });
    }
    Ok(Audited { checked: set.len() })
}

struct Auditor<'a, L: Coded> {
    task: &'a Task<'a>,
    machine: Machine<'a, L, Exact>,
    control: &'a Control<'a>,
    /// The states of the set, packed, with their position in it.
    numbers: FxHashMap<Box<[u8]>, u64>,
    /// About how many bytes these take.
    held: u64,
    work: u64,
}

impl<L: Coded> Auditor<'_, L> {
    fn number(&self, state: &State<L::Buffer<Exact>>) -> Option<u64> {
        self.numbers.get(pack::<L>(state).as_slice()).copied()
    }

    fn poll(&mut self) -> Result<(), AuditError> {
        self.work += 1;
        if self.work.is_multiple_of(POLL) {
            let progress = Progress {
                states: self.work,
                frontier: 0,
                memory: self.held,
            };
            self.control.poll("audit", progress)?;
        }
        Ok(())
    }

    /// Reads a state and remembers it.
    fn admit(&mut self, row: &[i64]) -> Result<(), AuditError> {
        self.poll()?;
        let state = L::decode(self.task.instance, row)?;
        let number = self.numbers.len() as u64;
        let packed = pack::<L>(&state).into_boxed_slice();
        self.held += packed.len() as u64 + ENTRY;
        self.numbers.entry(packed).or_insert(number);
        Ok(())
    }

    /// One state: not bad, and no event leads out.
    fn check(
        &mut self,
        row: &[i64],
        mut edges: Option<&mut deadlock::Edges>,
    ) -> Result<(), AuditError> {
        self.poll()?;
        let state = L::decode(self.task.instance, row)?;
        let me = self.number(&state).unwrap_or(u64::MAX);
        let visible = self.machine.inside_atomic(&state).is_none();
        if visible {
            self.look(&state, me)?;
        }
        let mut progress = false;
        let mut next = Vec::new();
        for event in self.machine.events(&state) {
            let after = match self.machine.apply(&state, &event) {
                Outcome::Next(after) => after,
                // A run that ends with a fault is not stuck.
                Outcome::Fault(fault) if self.task.ends_at(&fault) => {
                    progress = true;
                    continue;
                }
                Outcome::Fault(fault) => return Err(AuditError::Fault { state: me, fault }),
                Outcome::Full(_) => {
                    return Err(AuditError::Other("an exact buffer was full".into()));
                }
            };
            match self.number(&after) {
                Some(n) => next.push(n),
                None => {
                    let event = named(self.task.instance, &event);
                    return Err(AuditError::NotClosed { state: me, event });
                }
            }
            progress |= deadlock::is_progress(self.task.instance, L::MODEL, &event);
        }
        if let Some(edges) = edges.as_mut() {
            let unfinished = visible && !self.machine.is_final(&state);
            let discarded = deadlock::is_discarded(self.task.instance, &state);
            edges.add(me, &next, progress || discarded, unfinished);
        }
        Ok(())
    }

    fn look(&self, state: &State<L::Buffer<Exact>>, me: u64) -> Result<(), AuditError> {
        let Some(question) = self.task.question() else {
            return Ok(());
        };
        if question.only_final && !self.machine.is_final(state) {
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
}

/// A state as a key: small numbers are one byte, others nine.
fn pack<L: Coded>(state: &State<L::Buffer<Exact>>) -> Vec<u8> {
    let mut row = Vec::new();
    L::encode(state, &mut row);
    let mut key = Vec::with_capacity(row.len());
    for n in row {
        match u8::try_from(n) {
            Ok(small) if small < u8::MAX => key.push(small),
            _ => {
                key.push(u8::MAX);
                key.extend(n.to_le_bytes());
            }
        }
    }
    key
}

/// An event as a person would name it.
fn named(instance: &Instance, event: &Event) -> String {
    let thread = instance.thread(event.thread());
    match event {
        Event::Step { step, .. } => {
            let line = thread.step(*step).span.line;
            format!("a step of {} (line {line})", thread.name)
        }
        Event::Drain { cell, value, .. } => {
            let cell = &instance.cell(*cell).name;
            format!("the drain of {cell} = {value} of {}", thread.name)
        }
    }
}
