//! Any number of threads that only read: a statement about the program's text, and a certificate for a few of them.
//!
//! *Why that is enough.* Let no thread of an open family store, lock or unlock, and let nothing tell threads of such a
//! family apart. Take a run of any instance that ends with a fault, or with a state in which the property is broken by
//! certain threads. Keep of every open family the thread that faults and those that break the property, and leave out
//! all events of its other threads. What is left is a run, for nobody could see the events that are gone: they changed
//! neither memory nor a buffer, and kept others from a step at most (in an atomic block). It ends with the same fault or
//! breaks the same property, and since threads of a family are alike it is one of the instance that has as many
//! of each open family as the property names, or one, and in which those that are not kept never begin.
//!
//! ```text
//!   w   ──●────●─────●──►          w   ──●────●─────●──►
//!   r1  ────○─────○─────►    ==>   r1  ────○─────○─────►   breaks it
//!   r2  ─○─────○────○───►
//! ```
//!
//! Deadlocks are another matter: who is left out may be the one that everybody waits for.

use crate::load_buffers::alike::few_for_all;
use crate::{AuditError, Audited, Solvers, audit_with};
use wattle_evidence::certificate::Readers;
use wattle_evidence::{Control, Task};
use wattle_memory::MemoryModel;
use wattle_model::{Count, Program};

pub fn audit_readers(
    solvers: &Solvers,
    program: &Program,
    model: MemoryModel,
    property: Option<usize>,
    certificate: &Readers,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let mut open = program.families.iter().filter(|f| f.count == Count::Any);
    if let Some(family) = open.find(|f| !f.only_reads()) {
        let why = format!("threads of `{}` do more than read", family.name);
        return Err(AuditError::Other(why));
    }
    let crowd = few_for_all(program, property)?;
    let task = Task {
        instance: &crowd.instance,
        model,
        question: property.map(|_| 0),
        deadlock: false,
    };
    audit_with(solvers, &task, &certificate.proof, control)
}
