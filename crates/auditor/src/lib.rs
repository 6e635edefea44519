//! The auditor: re-checks certificates with the rules of a step (and, for formulas, the solver). It
//! shares no code with any engine: one file per kind of certificate. And the judge, which turns an
//! engine's answer into a verdict once its evidence is checked.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

mod alone;
mod bad;
mod closed_states;
mod coherent;
mod components;
pub mod counting;
mod cubes;
mod inductive;
mod judge;
mod load_buffers;
pub mod meaning;
mod multisets;
mod parts;
mod robust;
mod solvers;
mod space;
mod symbols;
mod traces;
pub mod translation;
mod views;

pub use closed_states::write_down;
pub use components::audit_components;
pub use counting::audit_counting;
pub use judge::{AuditPolicy, after_audit, after_validation, judge, judge_live, judge_open};
pub use load_buffers::audit_crowd;
pub use solvers::Solvers;
pub use space::attack::audit_robustness;

use cubes::audit_cubes;
use std::fmt;
use views::audit_views;
use wattle_evidence::certificate::{Certificate, Corrupt};
use wattle_evidence::control::{Control, Stop};
use wattle_evidence::related::Translated;
use wattle_evidence::{AnyNumber, OpenTask, Task};
use wattle_memory::{Fault, MemoryModel};
use wattle_model::array::ArraySystem;

/// The memory model that a certificate for any number of threads is to be read with, if it is about the
/// system at all.
fn model_of(
    system: &ArraySystem,
    asked: MemoryModel,
    certified: MemoryModel,
    cells: &[String],
) -> Result<MemoryModel, AuditError> {
    if certified != asked {
        return Err(AuditError::WrongModel(certified));
    }
    if !system.cells.iter().map(|c| &c.name).eq(cells) {
        return Err(Corrupt("its cells are not those of the program").into());
    }
    // Without weak cells there is no memory model to speak of.
    if !system.has_weak_cells() {
        return Ok(MemoryModel::Sc);
    }
    Ok(match asked {
        MemoryModel::Pso if system.stores_in_order() => MemoryModel::Tso,
        model @ (MemoryModel::Sc | MemoryModel::Tso | MemoryModel::Pso) => model,
    })
}

/// What an audit that went well has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// States, cubes or formulas that were checked.
    pub checked: u64,
}

/// Why a certificate proves nothing: which obligation does not hold, in which state, by which step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditError {
    /// It is about another memory model.
    WrongModel(MemoryModel),
    /// It cannot be read.
    Corrupt(Corrupt),
    /// An initial state is not covered.
    MissesInitial,
    /// A part of what should lead to something bad has an initial state in it.
    HasInitial { part: u64 },
    /// A bad state is in no part of what should have them all.
    MissesBad,
    /// An event leads out of it.
    NotClosed { state: u64, event: String },
    /// What it says is taken at once may not be.
    NotLocal(String),
    /// There is more to go through than anyone wants to see.
    TooMany,
    /// A state in it satisfies the target.
    Bad { state: u64 },
    /// The target has no value in a state.
    NoValue { state: u64, why: String },
    /// A step that is possible in it is a fault.
    Fault { state: u64, fault: Fault },
    /// A state in it is a deadlock.
    Deadlock { state: u64 },
    /// The reference machine does not run the program.
    Refused(String),
    /// Budget or cancellation; says nothing about the certificate.
    Stopped(Stop),
    /// The program is not robust after all.
    NotRobust,
    /// The system that the proof is about is not shown to do what the program does.
    Translation(String),
    /// Anything else a checker found wrong.
    Other(String),
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditError::WrongModel(m) => write!(f, "the certificate is about {m}"),
            AuditError::Corrupt(c) => write!(f, "the certificate cannot be read: {c}"),
            AuditError::NotRobust => write!(f, "the program is not robust"),
            AuditError::MissesInitial => {
                write!(f, "initial states: one is not covered")
            }
            AuditError::HasInitial { part } => {
                write!(
                    f,
                    "initial states: one is in part {part} of what leads to bad states"
                )
            }
            AuditError::MissesBad => write!(f, "bad states: one is in no part of the certificate"),
            AuditError::NotClosed { state, event } => {
                write!(f, "closed under events: {event} leads out of state {state}")
            }
            AuditError::NotLocal(what) => {
                write!(
                    f,
                    "an event that others may notice is taken at once: {what}"
                )
            }
            AuditError::TooMany => write!(f, "there is too much to go through"),
            AuditError::Bad { state } => {
                write!(f, "bad states: state {state} satisfies the target")
            }
            AuditError::NoValue { state, why } => {
                write!(
                    f,
                    "bad states: the property has no value in state {state}: {why}"
                )
            }
            AuditError::Fault { state, fault } => {
                let Fault { thread, step, kind } = fault;
                write!(
                    f,
                    "faults: step {step} of thread {thread} is one in state {state}: {kind}"
                )
            }
            AuditError::Deadlock { state } => write!(f, "deadlocks: state {state} is one"),
            AuditError::Refused(why) | AuditError::Other(why) => f.write_str(why),
            AuditError::Translation(why) => {
                write!(
                    f,
                    "its system is not shown to do what the program does: {why}"
                )
            }
            AuditError::Stopped(stop) => write!(f, "the audit was stopped: {stop}"),
        }
    }
}

impl From<Corrupt> for AuditError {
    fn from(c: Corrupt) -> Self {
        AuditError::Corrupt(c)
    }
}

impl From<Stop> for AuditError {
    fn from(stop: Stop) -> Self {
        AuditError::Stopped(stop)
    }
}

/// Whether the certificate proves that the task's target, a fault (and a deadlock, if asked for)
/// cannot be reached.
pub fn audit(
    task: &Task<'_>,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    audit_with(&Solvers::own(), task, certificate, control)
}

/// The same for any number of threads; `translated` is what the certificate is about, where that is not
/// the program itself.
pub fn audit_open(
    solvers: &Solvers,
    task: &OpenTask<'_>,
    certificate: &Certificate,
    translated: Option<&Translated>,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let model = task.model;
    match (certificate, task.of, translated) {
        (Certificate::LoadBuffers(basis), AnyNumber::Program(program), _) => {
            audit_crowd(program, model, task.question, basis, control)
        }
        (Certificate::Counting(facts), AnyNumber::Program(program), _) => {
            audit_counting(solvers, program, model, task.question, facts, control)
        }
        (_, AnyNumber::System(system), _) => {
            audit_system(solvers, system, model, certificate, control)
        }
        (_, AnyNumber::Program(_), Some(t)) => {
            audit_system(solvers, &t.system, model, certificate, control)
        }
        (_, AnyNumber::Program(_), None) => Err(AuditError::Refused(
            "it is not about any number of threads".into(),
        )),
    }
}

/// The same for what is told about any number of threads of an array-based system.
pub fn audit_system(
    solvers: &Solvers,
    system: &ArraySystem,
    model: MemoryModel,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    match certificate {
        Certificate::Cubes(c) => audit_cubes(solvers, system, model, c, control),
        Certificate::Views(c) => audit_views(system, model, c, control),
        Certificate::ClosedStates(_)
        | Certificate::Explored(_)
        | Certificate::Coherent(_)
        | Certificate::LoadBuffers(_)
        | Certificate::Multisets(_)
        | Certificate::Robust(_)
        | Certificate::Components(_)
        | Certificate::Counting(_)
        | Certificate::Traces(_)
        | Certificate::Parts(_)
        | Certificate::Inductive(_) => Err(AuditError::Refused(
            "it is not about an array-based system".into(),
        )),
    }
}

/// The same, with a say in who answers queries.
pub fn audit_with(
    solvers: &Solvers,
    task: &Task<'_>,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    match certificate {
        Certificate::Robust(c) => robust::audit_robust(solvers, task, c, control),
        Certificate::Cubes(_) | Certificate::Views(_) | Certificate::Counting(_) => {
            Err(AuditError::Refused(
                "it is about any number of threads, and this is one instance".into(),
            ))
        }
        Certificate::Components(_) => Err(AuditError::Refused(
            "it is about whole runs, and single states are asked about".into(),
        )),
        Certificate::ClosedStates(c) => closed_states::audit(task, c, control),
        Certificate::Explored(c) => closed_states::audit_explored(task, c, control),
        Certificate::Traces(c) => traces::audit(task, c, control),
        Certificate::Parts(c) => parts::audit(solvers, task, c, control),
        Certificate::Coherent(c) => coherent::audit(task, c, control),
        Certificate::Inductive(c) => inductive::audit(solvers, task, c, control),
        Certificate::Multisets(c) => multisets::audit(task, c, control),
        Certificate::LoadBuffers(c) => load_buffers::audit(task, c, control),
    }
}
