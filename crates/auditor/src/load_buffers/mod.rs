//! Bases of configurations with load buffers.
//!
//! The basis proves what it says if it covers every bad configuration, covers no initial one, and
//! covers every predecessor of whatever it covers: then no run of the load-buffer machine leads from
//! an initial configuration to a bad one, and that machine reaches the local states TSO reaches
//! (Abdulla, Atig, Bouajjani, Ngo 2016). Their proof looks at one thread's buffer at a time, so it
//! holds for however many threads there are. Under SC there are no buffers; PSO is TSO where no thread
//! has stores to two cells pending.
//!
//! [`super::automata`] lists what each thread can do on its own, [`before`] turns every rule of the
//! load-buffer machine round, [`cover`] compares configurations, [`alike`] sees whether threads of a
//! family may stand for each other. All are written for this purpose alone.

pub(super) mod alike;
mod before;
mod cover;

use super::automata::{Automata, local_covers, memory_may_start};
use super::bad::for_each_bad;
use super::{AuditError, Audited};
use cover::Cover;
use wattle_evidence::certificate::{LoadBufferConfig, LoadBufferThread, LoadBuffers, LocalState};
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::task::Task;
use wattle_memory::MemoryModel;
use wattle_model::{Program, Roles, ThreadId};

/// Every thread is in the instance.
pub fn audit(
    task: &Task<'_>,
    certificate: &LoadBuffers,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    basis(task, &Roles::fixed(task.instance), certificate, control)
}

/// Whether the basis proves the property (assertions and the absence of faults, without one) for any
/// number of threads in each open family.
pub fn audit_crowd(
    program: &Program,
    model: MemoryModel,
    property: Option<usize>,
    certificate: &LoadBuffers,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let crowd = alike::few_for_all(program, property)?;
    alike::sees_memory_only(&crowd)?;
    let task = Task {
        instance: &crowd.instance,
        model,
        question: property.map(|_| 0),
        deadlock: false,
    };
    basis(&task, &crowd.roles, certificate, control)
}

fn basis(
    task: &Task<'_>,
    roles: &Roles,
    certificate: &LoadBuffers,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if task.deadlock {
        return Err(AuditError::Other(
            "a basis says nothing about deadlocks".into(),
        ));
    }
    if !(certificate.basis.iter()).all(|c| fits(task, roles, c)) {
        return Err(AuditError::Other(
            "a configuration of another program".into(),
        ));
    }
    let automata = Automata::unfold(task, roles, control)?;
    if task.model == MemoryModel::Pso && !one_cell_at_a_time(&automata) {
        return Err(AuditError::WrongModel(MemoryModel::Tso));
    }
    let cover = Cover::new(certificate, &automata, roles);
    let starts = |c: &LoadBufferConfig| {
        !c.after_snapshot
            && memory_may_start(task, &c.memory)
            && c.threads.iter().all(|t| {
                let mut initial = automata.threads[t.role.index()].initial.iter();
                t.buffer.is_empty() && initial.any(|q| local_covers(&t.local, &q.certified()))
            })
    };
    if let Some(part) = certificate.basis.iter().position(starts) {
        let part = part as u64;
        return Err(AuditError::HasInitial { part });
    }
    for_each_bad(task, &automata, control, &mut |locals, memory, snapshot| {
        let Some(threads) = listed(roles, locals) else {
            return Ok(());
        };
        let bad = LoadBufferConfig {
            threads,
            memory,
            others_unlocked: false,
            after_snapshot: snapshot && task.model != MemoryModel::Sc,
        };
        match cover.covers(&bad) {
            true => Ok(()),
            false => Err(AuditError::MissesBad),
        }
    })?;
    let mut made = Made::default();
    for (n, config) in certificate.basis.iter().enumerate() {
        for before in before::predecessors(task.model, &automata, roles, config) {
            made.one_more(control)?;
            if !cover.covers(&before) {
                return Err(AuditError::NotClosed {
                    state: n as u64,
                    event: "a step from outside leads into what it covers, which".into(),
                });
            }
        }
    }
    Ok(Audited {
        checked: certificate.basis.len() as u64,
    })
}

/// Configurations made and compared with a basis: the work by which its audit polls.
#[derive(Default)]
pub(super) struct Made(u64);

impl Made {
    const EVERY: u64 = 64;

    pub(super) fn one_more(&mut self, control: &Control<'_>) -> Result<(), AuditError> {
        self.0 += 1;
        if !self.0.is_multiple_of(Self::EVERY) {
            return Ok(());
        }
        Ok(control.poll("audit", Progress::of(self.0))?)
    }
}

/// Whether no thread can have stores to two cells pending: then one buffer for each cell is as good as
/// one for all, and PSO is TSO.
fn one_cell_at_a_time(automata: &Automata) -> bool {
    let mut pending = automata.threads.iter().flat_map(|t| t.pending.values());
    pending.all(|cells| cells.len() <= 1)
}

/// Whether the configuration is one of this program: roles it has, each listed once unless any
/// number may play it, and no buffers where there are none.
fn fits(task: &Task<'_>, roles: &Roles, config: &LoadBufferConfig) -> bool {
    let mut once: Vec<ThreadId> = (config.threads.iter())
        .map(|t| t.role)
        .filter(|r| r.index() >= task.instance.threads.len() || !roles.is_open(r.index()))
        .collect();
    let all = once.len();
    once.sort_unstable();
    once.dedup();
    let known = |t: &LoadBufferThread| {
        t.role.index() < task.instance.threads.len()
            && roles.of(t.role.index()) == t.role.index()
            && matches!(t.local, LocalState::At { .. })
            && (task.model != MemoryModel::Sc || t.buffer.is_empty())
    };
    config.memory.len() == task.instance.cells.len()
        && once.len() == all
        && config.threads.iter().all(known)
}

/// The threads that a bad state speaks of, by role. None if it is the fault of a thread for which
/// another one stands: that one has it too.
fn listed(roles: &Roles, locals: Vec<LocalState>) -> Option<Vec<LoadBufferThread>> {
    let mut threads = Vec::new();
    for (t, local) in locals.into_iter().enumerate() {
        match &local {
            LocalState::At { fault: Some(_), .. } if roles.of(t) != t => return None,
            LocalState::At { .. } => threads.push(LoadBufferThread {
                role: ThreadId::new(roles.of(t)),
                local,
                buffer: Vec::new(),
            }),
            LocalState::WithoutLock | LocalState::Any => {}
        }
    }
    Some(threads)
}
