//! Where all threads are, told apart: the control states that a program may come to, whatever its data, and
//! expressions with what is known in one of them.

use super::{System, Var};
use std::collections::BTreeSet;
use wattle_model::instance::Initial;
use wattle_model::{Expr, Op2};

/// A value for each variable that only says where threads are.
pub(super) type Place = Vec<i64>;

/// Whether a variable says where threads are: it only ever holds constants, and guards ask for nothing else.
pub(super) fn is_control(var: Var) -> bool {
    match var {
        Var::At(_) | Var::Inside | Var::Holder => true,
        Var::Cell(_) | Var::Register(..) | Var::Chosen => false,
    }
}

/// The variables of control, in the system's order.
pub(super) fn variables(system: &System<'_>) -> Vec<Var> {
    let all = system.variables.iter().map(|v| v.var);
    all.filter(|v| is_control(*v)).collect()
}

pub(super) fn first(system: &System<'_>) -> Place {
    let control = system.variables.iter().filter(|v| is_control(v.var));
    let value = |init: Initial| match init {
        Initial::Value(value) => value,
        Initial::Any => 0,
    };
    control.map(|v| value(v.init)).collect()
}

/// Every control state that steps lead to from the first, in the order they are found; `None` if there are more
/// than so many. *Why none is missing*: guards are about control alone, and what else a step asks is ignored.
pub(super) fn reachable(system: &System<'_>, most: usize) -> Option<Vec<Place>> {
    let variables = variables(system);
    let mut all = vec![first(system)];
    let mut seen = BTreeSet::from([first(system)]);
    let mut next = 0;
    while let Some(here) = all.get(next).cloned() {
        next += 1;
        for step in &system.transitions {
            if known(&step.guard, &variables, &here).as_const() == Some(0) {
                continue;
            }
            let there = moved(&step.updates, &variables, &here);
            if seen.insert(there.clone()) {
                all.push(there);
            }
        }
        if all.len() > most {
            return None;
        }
    }
    Some(all)
}

/// The control state after some updates.
pub(super) fn moved(updates: &[(Var, Expr<Var>)], variables: &[Var], here: &Place) -> Place {
    let value = |(var, old): (&Var, &i64)| {
        let update = updates.iter().find(|(v, _)| v == var);
        update.and_then(|(_, e)| e.as_const()).unwrap_or(*old)
    };
    variables.iter().zip(here).map(value).collect()
}

/// An expression in a control state. It has a value in every state, so that parts of it may be left out.
pub(super) fn known(e: &Expr<Var>, variables: &[Var], here: &Place) -> Expr<Var> {
    let again = |e: &Expr<Var>| known(e, variables, here);
    match e {
        Expr::Const(c) => Expr::Const(*c),
        Expr::Atom(var) => match variables.iter().position(|v| v == var) {
            Some(i) => Expr::Const(here[i]),
            None => Expr::Atom(*var),
        },
        Expr::Unary(op, a) => {
            let a = again(a);
            let value = a.as_const().and_then(|a| op.apply(a).ok());
            value.map_or_else(|| Expr::unary(*op, a), Expr::Const)
        }
        Expr::Binary(op, a, b) => {
            let (a, b) = (again(a), again(b));
            let value = match (a.as_const(), b.as_const()) {
                (Some(a), Some(b)) => op.apply(a, b).ok(),
                (Some(0), _) | (_, Some(0)) if *op == Op2::And => Some(0),
                (Some(c), _) | (_, Some(c)) if *op == Op2::Or && c != 0 => Some(1),
                _ => None,
            };
            if let Some(value) = value {
                return Expr::Const(value);
            }
            // Here a constant is true in `and`, false in `or`.
            match (a.as_const(), b.as_const()) {
                (Some(_), None) if matches!(op, Op2::And | Op2::Or) && b.is_logical() => b,
                (None, Some(_)) if matches!(op, Op2::And | Op2::Or) && a.is_logical() => a,
                _ => Expr::binary(*op, a, b),
            }
        }
        Expr::Ite(c, a, b) => {
            let c = again(c);
            match c.as_const() {
                Some(0) => again(b),
                Some(_) => again(a),
                None => Expr::ite(c, again(a), again(b)),
            }
        }
    }
}
