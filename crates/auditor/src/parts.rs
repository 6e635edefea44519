//! Independent parts: a statement about the program's text, and a certificate for each part alone.
//!
//! *Why that is enough.* Let no part touch a cell that another writes. Leave out of a run of the whole the
//! events of all threads but those of one part: what is left is a run of the part alone, and its last state has
//! the part's registers, locations and buffers and the cells that no other part writes. So
//!
//! - a fault of the whole is one of a part;
//! - if the target is true, so is one of its ways, and all conditions of it that look at one part only are
//!   true in the state of that part; a final state of the whole is a final state of every part;
//! - in a deadlock of the whole (nothing will reach memory, nobody will end, and somebody has not) some thread has
//!   not ended, and its part is in a deadlock: without locks, what the part could do alone it could do in the whole.

use crate::{AuditError, Audited, Solvers, audit_with};
use wattle_evidence::certificate::{Certificate, Corrupt, Parts};
use wattle_evidence::{Control, Task};
use wattle_model::instance::{Fact, Question};
use wattle_model::{Expr, Instance, Op2};

pub fn audit(
    solvers: &Solvers,
    task: &Task<'_>,
    certificate: &Parts,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let mut checked = 0;
    for (part, owed) in certificate.parts.iter().zip(owed(task, certificate)?) {
        match (owed, &part.proof) {
            (None, _) => {}
            (Some(_), None) => return Err(Corrupt("a part has no proof").into()),
            (Some(instance), Some(proof)) => {
                let alone = on(task, &instance);
                checked += audit_with(solvers, &alone, proof, control)?.checked;
            }
        }
    }
    Ok(Audited { checked })
}

/// The same certificate with every part's proof made into another.
pub fn each(
    task: &Task<'_>,
    certificate: &Parts,
    change: impl Fn(&Task<'_>, &Certificate) -> Certificate,
) -> Result<Parts, AuditError> {
    let mut changed = certificate.clone();
    for (part, owed) in changed.parts.iter_mut().zip(owed(task, certificate)?) {
        if let (Some(proof), Some(instance)) = (&mut part.proof, owed) {
            **proof = change(&on(task, &instance), proof);
        }
    }
    Ok(changed)
}

/// The task about a part alone.
fn on<'i>(task: &Task<'_>, instance: &'i Instance) -> Task<'i> {
    Task {
        instance,
        model: task.model,
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock: task.deadlock,
    }
}

/// For each part the program that something is to be proved about, if anything is. Checks that they are
/// independent.
fn owed(task: &Task<'_>, certificate: &Parts) -> Result<Vec<Option<Instance>>, AuditError> {
    let instance = task.instance;
    let part_of = independent(instance, certificate)?;
    if task.deadlock && instance.locks() {
        let why = "parts say nothing about deadlocks where there is a lock";
        return Err(AuditError::Refused(why.into()));
    }
    let ways = task.question().map_or(Vec::new(), |q| q.target.ways());
    if ways.len() != certificate.excluded_by.len() {
        return Err(Corrupt("it is about another number of ways").into());
    }
    let mut targets: Vec<Option<Expr<Fact>>> = vec![None; certificate.parts.len()];
    for (way, part) in ways.iter().zip(&certificate.excluded_by) {
        let part = *part as usize;
        let Some(target) = targets.get_mut(part) else {
            return Err(Corrupt("there is no such part").into());
        };
        let own = |c: &&Expr<Fact>| {
            let mut threads = instance.seen_by(c).into_iter();
            threads.all(|t| part_of[t.index()].is_none_or(|p| p == part))
        };
        let conditions = way.iter().filter(own).cloned();
        let half = conditions.reduce(|a, b| Expr::binary(Op2::And, a, b));
        let half = half.unwrap_or(Expr::Const(1));
        *target = Some(match target.take() {
            None => half,
            Some(before) => Expr::binary(Op2::Or, before, half),
        });
    }
    let parts = certificate.parts.iter().zip(targets);
    let owed = parts.map(|(part, target)| {
        let mut alone = instance.alone(&part.threads);
        match (task.question(), target) {
            (Some(q), Some(target)) => alone.questions.push(Question {
                target,
                ..q.clone()
            }),
            _ if !task.minds_faults() && !task.deadlock => return None,
            _ => {}
        }
        Some(alone)
    });
    Ok(owed.collect())
}

/// The part of each thread that does something, if no part touches what another writes.
fn independent(instance: &Instance, certificate: &Parts) -> Result<Vec<Option<usize>>, AuditError> {
    let mut part_of: Vec<Option<usize>> = vec![None; instance.threads.len()];
    for (p, part) in certificate.parts.iter().enumerate() {
        for t in &part.threads {
            match part_of.get_mut(t.index()) {
                Some(of @ None) => *of = Some(p),
                Some(Some(_)) => return Err(Corrupt("a thread is in two parts").into()),
                None => return Err(Corrupt("there is no such thread").into()),
            }
        }
    }
    // Per cell: a part that touches it, whether others do, whether it is written.
    let mut uses: Vec<(Option<usize>, bool, bool)> =
        vec![(None, false, false); instance.cells.len()];
    for (thread, part) in instance.threads.iter().zip(&part_of) {
        if part.is_none() && !thread.steps.is_empty() {
            return Err(Corrupt("a thread is in no part").into());
        }
        for step in &thread.steps {
            let Some(place) = step.action.place() else {
                continue;
            };
            let write = step.action.stored().is_some();
            for (one, several, written) in &mut uses[place.extent()] {
                *several |= one.is_some() && *one != *part;
                *one = *part;
                *written |= write;
            }
        }
    }
    match uses
        .iter()
        .position(|(_, several, written)| *several && *written)
    {
        None => Ok(part_of),
        Some(c) => Err(AuditError::Other(format!(
            "the parts are not independent: one writes `{}` and another uses it",
            instance.cells[c].name
        ))),
    }
}
