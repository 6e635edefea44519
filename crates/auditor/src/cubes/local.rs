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

/// An update of every element of an array that is not weak, `A[j] := case | j = p : … | _ : A[j]`, must change the
/// acting thread's element only: for any other no branch applies, or one that writes back what is there.
/// `A[j]` may be looked at there, and wherever a branch applies to the acting thread only.
fn local_update(
    rules: &Rules<'_>,
    t: &Transition,
    u: &Update,
    own: &dyn Fn(&Access) -> bool,
) -> bool {
    let weak = rules.system.cell(u.cell).weak;
    let params = t.params.len();
    let (every, mine) = match u.index.first() {
        None => (false, weak),
        Some(UpdateIndex::At(x)) => (false, weak || Some(*x) == t.actor.map(ThreadTerm::Param)),
        Some(UpdateIndex::Each(_)) => (true, true),
    };
    let each = ThreadTerm::Param(params as u8);
    mine && u.branches.iter().all(|b| {
        let keeps = || !weak && writes_back(u, &b.value, params);
        let near = every && (keeps() || only_at_actor(rules, t, &b.condition));
        let mut fine = weak || !every || near;
        let mut look = |a: &Access| fine &= own(a) || near && a.args.first() == Some(&each);
        b.condition.for_each_access(&mut look);
        if let Value::Term(term) = &b.value {
            term.for_each_access(&mut look);
        }
        fine
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
