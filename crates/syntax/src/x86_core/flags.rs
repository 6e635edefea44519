//! Which flags are worth keeping: those that some later instruction reads. A comparison followed by its
//! jump needs none.

use std::collections::BTreeSet;
use wattle_x86::bits::{Bin, E, VarId};
use wattle_x86::graph::{LE, Op as Step, Vars, ZF};
use wattle_x86::meaning::Micro;

pub fn is_flag(v: VarId) -> bool {
    (ZF.0..=LE.0).contains(&v.0)
}

type Flags = BTreeSet<VarId>;

fn read(e: &E, live: &mut Flags) {
    e.for_each_var(&mut |v| {
        if is_flag(v) {
            live.insert(v);
        }
    });
}

/// The operations without flags that nobody reads, and the flags that are read before they are set.
pub fn needed(ops: &[Micro], after: &Flags) -> (Vec<Micro>, Flags) {
    let mut live = after.clone();
    let mut kept = Vec::new();
    for op in ops.iter().rev() {
        match op {
            Micro::Op(Step::Assign(v, _)) if is_flag(*v) && !live.contains(v) => continue,
            Micro::Op(op) => {
                if let Some(v) = op.written() {
                    live.remove(&v);
                }
                op.expressions()
                    .into_iter()
                    .for_each(|e| read(e, &mut live));
                kept.push(Micro::Op(op.clone()));
            }
            Micro::If(condition, yes, no) => {
                let (yes, mut before) = needed(yes, &live);
                let (no, other) = needed(no, &live);
                before.extend(other);
                live = before;
                read(condition, &mut live);
                kept.push(Micro::If(condition.clone(), yes, no));
            }
            Micro::Either(orders) => kept.push(Micro::Either(orders.clone())),
        }
    }
    kept.reverse();
    (kept, live)
}

/// The flag as an expression of what there is after the operations, if it can be said.
pub fn afterwards(flag: VarId, ops: &[Micro]) -> Option<E> {
    let sets = |m: &Micro| matches!(m, Micro::Op(Step::Assign(v, _)) if *v == flag);
    let at = ops.iter().rposition(sets)?;
    let Micro::Op(Step::Assign(_, e)) = &ops[at] else {
        return None;
    };
    let mut e = e.clone();
    if e.is_unknown() {
        return None;
    }
    for later in &ops[at + 1..] {
        let op = match later {
            Micro::Op(op) => op,
            Micro::If(..) | Micro::Either(_) => return None,
        };
        let Some(v) = op.written().filter(|v| e.mentions(*v)) else {
            continue;
        };
        let Step::Assign(_, new) = op else {
            return None;
        };
        e = of_result(&e, v, new, v)?;
    }
    Some(e)
}

/// An expression that mentions `old`, said without it, where `result` now holds what `new` was before.
fn of_result(e: &E, old: VarId, new: &E, result: VarId) -> Option<E> {
    let now = E::Var(result, new.width());
    // What was there before is what is there now, less what was added.
    if let E::Bin(Bin::Add, a, b) = new
        && **a == E::Var(old, new.width())
        && b.as_const().is_some()
    {
        let before = E::bin(Bin::Sub, now, (**b).clone());
        return Some(e.replace(&|w| (w == old).then(|| before.clone())));
    }
    // It is one of the result.
    let aside = VarId(u32::MAX);
    let said = swap(e, new, &E::Var(aside, new.width()));
    let known = !said.mentions(old);
    known.then(|| said.replace(&|w| (w == aside).then(|| now.clone())))
}

/// Flags of what is stored are said of what is stored, which is kept: `tmp = x; tmp = tmp - 1; x = tmp`, and
/// then `tmp == 0` rather than that it was 1. One name does where what was there is not needed any more.
pub fn of_stored(mut ops: Vec<Micro>, vars: &mut Vars) -> Vec<Micro> {
    let store = |m: &Micro| matches!(m, Micro::Op(Step::Store { .. }));
    let Some(at) = ops.iter().position(store) else {
        return ops;
    };
    let loaded = ops[..at].iter().find_map(|m| match m {
        Micro::Op(Step::Load { to, .. }) => Some(*to),
        _ => None,
    });
    let (Some(old), Micro::Op(Step::Store { value, .. })) = (loaded, &ops[at]) else {
        return ops;
    };
    let new = value.clone();
    if !new.mentions(old) || matches!(new, E::Var(..)) {
        return ops;
    }
    let result = vars.fresh(new.width(), "result");
    let mut said = 0;
    for op in &mut ops[at + 1..] {
        if let Micro::Op(Step::Assign(v, e)) = op
            && is_flag(*v)
            && e.mentions(old)
            && let Some(other) = of_result(e, old, &new, result)
        {
            *e = other;
            said += 1;
        }
    }
    if said == 0 {
        return ops;
    }
    if let Micro::Op(Step::Store { value, .. }) = &mut ops[at] {
        *value = E::Var(result, new.width());
    }
    ops.insert(at, Micro::Op(Step::Assign(result, new)));
    ops
}

/// Undoes [`of_stored`] where no flag of the result is needed, and gives both values one name where only the
/// result is; `fused` is what the jump behind it reads.
pub fn settled(mut ops: Vec<Micro>, fused: &mut Option<E>) -> Vec<Micro> {
    let kept = ops.windows(2).position(|pair| match pair {
        [
            Micro::Op(Step::Assign(v, _)),
            Micro::Op(Step::Store {
                value: E::Var(w, _),
                ..
            }),
        ] => v == w && !is_flag(*v),
        _ => false,
    });
    let Some(at) = kept else { return ops };
    let Micro::Op(Step::Assign(result, new)) = ops[at].clone() else {
        return ops;
    };
    let loaded = ops[..at].iter().find_map(|m| match m {
        Micro::Op(Step::Load { to, .. }) => Some(*to),
        _ => None,
    });
    let Some(old) = loaded.filter(|old| new.mentions(*old)) else {
        return ops;
    };
    let mentions = |v: VarId, ops: &[Micro], fused: &Option<E>| {
        let later = ops.iter().any(|m| match m {
            Micro::Op(op) => op.expressions().iter().any(|e| e.mentions(v)),
            Micro::If(..) | Micro::Either(_) => true,
        });
        later || fused.as_ref().is_some_and(|e| e.mentions(v))
    };
    if !mentions(result, &ops[at + 2..], fused) {
        ops.remove(at);
        if let Micro::Op(Step::Store { value, .. }) = &mut ops[at] {
            *value = new;
        }
    } else if !mentions(old, &ops[at + 1..], fused) {
        let renamed = |e: &E| {
            let w = new.width();
            e.replace(&|v| (v == result).then_some(E::Var(old, w)))
        };
        for op in &mut ops[at..] {
            if let Micro::Op(op) = op {
                op.expressions_mut()
                    .into_iter()
                    .for_each(|e| *e = renamed(e));
                if let Step::Assign(v, _) = op
                    && *v == result
                {
                    *v = old;
                }
            }
        }
        *fused = fused.as_ref().map(renamed);
    }
    ops
}

/// The expression with one part put in another's place, wherever it occurs.
fn swap(e: &E, part: &E, by: &E) -> E {
    if e == part {
        return by.clone();
    }
    e.rebuilt(&|p| swap(p, part, by))
}
