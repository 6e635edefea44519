//! Formulas about some threads each, and who excludes what of the target.

use super::super::AuditError;
use super::super::facts::threads_seen;
use super::views::stored;
use super::{About, corrupt};
use wattle_evidence::certificate::Inductive;
use wattle_evidence::task::Task;
use wattle_model::instance::Fact;
use wattle_model::{Expr, Op2, ThreadId};

/// The parts, with the target divided among them.
pub fn divided<'c>(
    task: &'c Task<'c>,
    certificate: &'c Inductive,
) -> Result<Vec<About<'c>>, AuditError> {
    let instance = task.instance;
    let all: Vec<ThreadId> = instance.thread_ids().collect();
    if !certificate.invariants.is_empty() || task.question().is_some_and(|q| q.only_final) {
        return Err(corrupt("parts beside a formula, or about final states"));
    }
    let mut disjuncts = Vec::new();
    if let Some(question) = task.question() {
        alternatives(&question.target, &mut disjuncts);
    }
    let mut parts: Vec<About<'c>> = Vec::new();
    for part in &certificate.parts {
        let others = all.iter().filter(|t| !part.about.contains(t));
        let foreign = others.flat_map(|t| stored(instance, *t, false)).collect();
        parts.push(About {
            threads: part.about.clone(),
            invariants: &part.invariants,
            targets: Vec::new(),
            foreign,
        });
    }
    for disjunct in disjuncts {
        let speaks_of = threads_seen(disjunct);
        let fits = |part: &&mut About<'c>| speaks_of.iter().all(|t| part.threads.contains(t));
        let part = parts.iter_mut().find(fits);
        let part = part.ok_or_else(|| corrupt("no part is about all that the target speaks of"))?;
        part.targets.push(disjunct);
    }
    let meant = |t: &ThreadId| parts.iter().any(|p| p.threads.contains(t));
    if !all.iter().all(meant) {
        return Err(corrupt("no part is about a thread"));
    }
    Ok(parts)
}

/// The disjuncts: the target is reached if one of them is true or has no value.
fn alternatives<'c>(e: &'c Expr<Fact>, out: &mut Vec<&'c Expr<Fact>>) {
    match e {
        Expr::Binary(Op2::Or, a, b) => {
            alternatives(a, out);
            alternatives(b, out);
        }
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
            out.push(e);
        }
    }
}
