//! Abstract buffers: explores the reference machine with the certificate's contents, every event of
//! every state, and looks for anything bad.

use super::{AuditError, Audited};
use crate::certificate::Coherent;
use crate::control::{Control, Progress};
use crate::task::Task;
use std::collections::HashSet;
use std::rc::Rc;
use wattle_memory::content::Content;
use wattle_memory::reference::{Machine, Outcome, evaluate};
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
    let refused = |r: wattle_memory::reference::Refusal| AuditError::Refused(r.to_string());
    let machine = Machine::<L, C>::with_bounds(task.instance, bounds.collect()).map_err(refused)?;
    let mut seen = HashSet::new();
    let mut work = Vec::new();
    for start in machine.starts().map_err(refused)? {
        let state = Rc::new(machine.initial(&start));
        if seen.insert(Rc::clone(&state)) {
            work.push(state);
        }
    }
    let mut count = 0u64;
    while let Some(state) = work.pop() {
        count += 1;
        if count.is_multiple_of(1024) {
            let progress = Progress {
                states: count,
                frontier: work.len() as u64,
                memory: seen.len() as u64 * (size_of_val(&*state) as u64 + 512),
            };
            control.poll("audit", progress)?;
        }
        let looked_at = machine.inside_atomic(&state).is_none();
        if let Some(question) = task.question()
            && looked_at
            && (!question.only_final || machine.is_final(&state))
        {
            match evaluate(&state, &question.target) {
                Ok(0) => {}
                Ok(_) => return Err(AuditError::Bad { state: count }),
                Err(kind) => {
                    let why = kind.to_string();
                    return Err(AuditError::NoValue { state: count, why });
                }
            }
        }
        for event in machine.events(&state) {
            match machine.apply(&state, &event) {
                Outcome::Next(next) => {
                    let next = Rc::new(next);
                    if seen.insert(Rc::clone(&next)) {
                        work.push(next);
                    }
                }
                Outcome::Fault(fault) if task.ends_at(&fault) => {}
                Outcome::Fault(fault) => {
                    return Err(AuditError::Fault {
                        state: count,
                        fault,
                    });
                }
                Outcome::Full(_) => {
                    return Err(AuditError::Other("a buffer was full".into()));
                }
            }
        }
    }
    Ok(Audited { checked: count })
}
