//! Under TSO runs are told in another order than that of time. That is allowed if steps of different
//! threads meet nowhere but in weak memory: whatever else a step touches must be the acting thread's
//! own. And under TSO and PSO whoever touches weak memory must be somebody.

use super::assume::Rules;
use super::facts::{Facts, THREADS};
use super::step::writes_back;
use crate::AuditError;
use wattle_memory::MemoryModel;
use wattle_model::array::{Access, Formula, ThreadTerm, Transition, Update, UpdateIndex, Value};

pub fn check(rules: &Rules<'_>) -> Result<(), AuditError> {
    if rules.model == MemoryModel::Sc {
        return Ok(());
    }
    for t in &rules.system.transitions {
        let weak = rules.system.reads_weak(t) || rules.system.writes_weak(t);
        let alone = t.actor.is_none() && (weak || t.fence.is_some());
        if alone || rules.model == MemoryModel::Tso && !is_local(rules, t) {
            return Err(AuditError::Refused(format!(
                "transition `{}` touches what is not weak and not the acting thread's",
                t.name
            )));
        }
    }
    Ok(())
}

fn is_local(rules: &Rules<'_>, t: &Transition) -> bool {
    let actor = t.actor.map(ThreadTerm::Param);
    let own = |a: &Access| {
        let cell = rules.system.cell(a.cell);
        let first = a.args.first().copied();
        cell.weak || cell.constant || first.is_some() && first == actor
    };
    let mut all = true;
    t.guard.for_each_access(&mut |a| all &= own(a));
    all && t.updates.iter().all(|u| local_update(rules, t, u, &own))
}

fn local_update(
    rules: &Rules<'_>,
    t: &Transition,
    u: &Update,
    own: &dyn Fn(&Access) -> bool,
) -> bool {
    let weak = rules.system.cell(u.cell).weak;
    match u.index.first() {
        None if !weak => return false,
        Some(UpdateIndex::At(x)) if !weak && Some(*x) != t.actor.map(ThreadTerm::Param) => {
            return false;
        }
        // Only the acting thread's element changes.
        Some(UpdateIndex::Each(_)) if !weak => return changes_only_actor(rules, t, u),
        Some(UpdateIndex::Each(_)) => return looks_only_at_actor(rules, t, u, own),
        _ => {}
    }
    u.branches.iter().all(|b| {
        let mut all = true;
        b.condition.for_each_access(&mut |a| all &= own(a));
        if let Value::Term(term) = &b.value {
            term.for_each_access(&mut |a| all &= own(a));
        }
        all
    })
}

/// Whether a condition is false, judging by threads alone, wherever the array's first index is not the
/// acting thread: for a new thread and for every other parameter, whatever its other indices are.
fn only_at_actor(rules: &Rules<'_>, t: &Transition, condition: &Formula) -> bool {
    let Some(actor) = t.actor else { return false };
    let params = t.params.len() as u8;
    let all = params + 3;
    if usize::from(all) > THREADS {
        return false;
    }
    let mut facts = Facts::default();
    for _ in 0..all {
        facts.join(0);
    }
    let others = (0..=params).filter(|j| *j != actor);
    let mut indices =
        others.flat_map(|j| (0..all).flat_map(move |k| (0..all).map(move |l| [j, k, l])));
    indices.all(|indices| {
        let env: Vec<u8> = (0..params).chain(indices).collect();
        rules.decided(&facts, condition, &env) == Some(false)
    })
}

/// `A[j] := case | j = p : … | _ : A[j]` and the like: for any other thread no branch applies, or one
/// that writes back what is there.
fn changes_only_actor(rules: &Rules<'_>, t: &Transition, u: &Update) -> bool {
    let keeps = |v: &Value| writes_back(u, v, t.params.len());
    let Some(actor) = t.actor else { return false };
    let mut branches = u.branches.iter();
    branches.all(|b| {
        // What is looked at where the branch applies is the actor's, read at `j = p`.
        let me = [ThreadTerm::Param(actor), each(t)];
        let mut all = keeps(&b.value) || only_at_actor(rules, t, &b.condition);
        let mut look = |a: &Access| {
            let cell = rules.system.cell(a.cell);
            all &= cell.weak || cell.constant || a.args.first().is_some_and(|t| me.contains(t));
        };
        b.condition.for_each_access(&mut look);
        if let (false, Value::Term(term)) = (keeps(&b.value), &b.value) {
            term.for_each_access(&mut look);
        }
        all
    })
}

/// The variable of an update's first `Each`.
fn each(t: &Transition) -> ThreadTerm {
    ThreadTerm::Param(t.params.len() as u8)
}

/// `X[j] := case | j = p && A[j] = True : …` for a weak X: where others' cells would be looked at the
/// branch does not apply, whatever they hold.
fn looks_only_at_actor(
    rules: &Rules<'_>,
    t: &Transition,
    u: &Update,
    own: &dyn Fn(&Access) -> bool,
) -> bool {
    u.branches.iter().all(|b| {
        let (mut mine, mut at_each) = (true, true);
        let mut look = |a: &Access| {
            mine &= own(a);
            at_each &= own(a) || a.args.first() == Some(&each(t));
        };
        b.condition.for_each_access(&mut look);
        if let Value::Term(term) = &b.value {
            term.for_each_access(&mut look);
        }
        mine || at_each && only_at_actor(rules, t, &b.condition)
    })
}
