//! Abstract buffers: explores the reference machine with the certificate's contents, every event of
//! every state, and looks for anything bad ([`space`]).

use super::{AuditError, Audited, space};
use wattle_evidence::certificate::Coherent;
use wattle_evidence::control::Control;
use wattle_evidence::task::Task;
use wattle_memory::content::Content;
use wattle_memory::{Bounds, Keeps, Layout, MemoryModel, Multiset, NewestK, OldestK, Pso, Tso};

pub fn audit(
    task: &Task<'_>,
    certificate: &Coherent,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if certificate.model != task.model {
        return Err(AuditError::WrongModel(certificate.model));
    }
    if task.deadlock {
        let why = "abstract buffers say nothing about deadlocks";
        return Err(AuditError::Other(why.into()));
    }
    let cells = task.instance.cells.len();
    let fits = |(_, per_cell): &(usize, Vec<usize>)| per_cell.len() == cells;
    if certificate.bounds.len() != task.instance.threads.len()
        || !certificate.bounds.iter().all(fits)
    {
        return Err(AuditError::Other("bounds for another program".into()));
    }
    let k = |k: usize| k;
    match (certificate.keeps, task.model) {
        (_, MemoryModel::Sc) => Err(AuditError::WrongModel(MemoryModel::Tso)),
        (Keeps::Oldest, MemoryModel::Tso) => explore::<Tso, OldestK>(task, certificate, k, control),
        (Keeps::Oldest, MemoryModel::Pso) => explore::<Pso, OldestK>(task, certificate, k, control),
        (Keeps::Newest, MemoryModel::Tso) => explore::<Tso, NewestK>(task, certificate, k, control),
        (Keeps::Newest, MemoryModel::Pso) => explore::<Pso, NewestK>(task, certificate, k, control),
        (Keeps::Multiset, MemoryModel::Tso) => {
            explore::<Tso, Multiset>(task, certificate, |_| (), control)
        }
        (Keeps::Multiset, MemoryModel::Pso) => {
            explore::<Pso, Multiset>(task, certificate, |_| (), control)
        }
        (Keeps::Exact | Keeps::AtMost, _) => {
            Err(AuditError::Other("these buffers forget nothing".into()))
        }
    }
}

fn explore<L: Layout, C: Content<Value = i64>>(
    task: &Task<'_>,
    certificate: &Coherent,
    bound: impl Fn(usize) -> C::Bound,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let bounds = certificate.bounds.iter().map(|(thread, cells)| Bounds {
        thread: bound(*thread),
        cells: cells.iter().map(|k| bound(*k)).collect(),
    });
    let bounds: Vec<Bounds<C::Bound>> = bounds.collect();
    space::explore::<L, C>(task, &bounds, None, control)
}
