//! Certificates about any number of threads: which auditor, and of what.

use super::cubes::audit_cubes;
use super::levels::audit_levels;
use super::readers::audit_readers;
use super::views::audit_views;
use super::{AuditError, Audited, Solvers, audit_counting, audit_crowd};
use wattle_evidence::certificate::{Certificate, Corrupt};
use wattle_evidence::control::Control;
use wattle_evidence::related::Translated;
use wattle_evidence::{AnyNumber, OpenTask};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

/// The memory model that a certificate for any number of threads is to be read with, if it is about the
/// system at all.
pub fn model_of(
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

/// For any number of threads; `translated` is what the certificate is about, where not the program itself.
pub fn audit_open(
    solvers: &Solvers,
    task: &OpenTask<'_>,
    certificate: &Certificate,
    translated: Option<&Translated>,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if task.deadlock {
        let why = "no proof about any number of threads is about deadlock";
        return Err(AuditError::Refused(why.into()));
    }
    let model = task.model;
    match (certificate, task.of, translated) {
        (Certificate::LoadBuffers(basis), AnyNumber::Program(program), _) => {
            audit_crowd(program, model, task.question, basis, control)
        }
        (Certificate::Counting(facts), AnyNumber::Program(program), _) => {
            audit_counting(solvers, program, model, task.question, facts, control)
        }
        (Certificate::Levels(levels), AnyNumber::Program(program), _) => {
            audit_levels(program, model, task.question, levels, control)
        }
        (Certificate::Readers(few), AnyNumber::Program(program), _) => {
            audit_readers(solvers, program, model, task.question, few, control)
        }
        (_, AnyNumber::System(system), _)
        | (_, AnyNumber::Program(_), Some(Translated { system, .. })) => {
            audit_system(solvers, system, model, certificate, control)
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
        Certificate::Views(c) => audit_views(solvers, system, model, c, control),
        Certificate::ClosedStates(_)
        | Certificate::Explored(_)
        | Certificate::Coherent(_)
        | Certificate::LoadBuffers(_)
        | Certificate::Multisets(_)
        | Certificate::Robust(_)
        | Certificate::Components(_)
        | Certificate::Returning(_)
        | Certificate::Counting(_)
        | Certificate::Levels(_)
        | Certificate::Readers(_)
        | Certificate::Traces(_)
        | Certificate::Parts(_)
        | Certificate::Inductive(_) => Err(AuditError::Refused(
            "it is not about an array-based system".into(),
        )),
    }
}
