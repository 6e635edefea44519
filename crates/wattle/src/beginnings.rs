//! Cells and registers that begin with any of too many values (`dd ?`, registers of x86 nobody has
//! written), begun with values that matter: numbers that the program or the question compares with,
//! their neighbours, 0, and the ends of the type. Every run from there is a run of the program; that there
//! is no other bad one is for provers to say.

use std::collections::BTreeSet;
use wattle_model::instance::{Fact, Initial, Instance, Question};
use wattle_model::{Expr, Type};

/// Beginnings that are tried.
const MOST: usize = 256;

/// Whether something begins with more values than can be gone through.
pub fn are_many(instance: &Instance) -> bool {
    wide(instance).next().is_some()
}

fn is_wide(ty: Type) -> bool {
    match ty {
        Type::Int => true,
        Type::Wrap { bits, .. } => bits > 8,
        Type::Range { lo, hi } => hi.saturating_sub(lo) > 255,
        Type::Thread(_) => false,
    }
}

/// The types of all that begins so, cells first.
fn wide(instance: &Instance) -> impl Iterator<Item = Type> {
    let cells = instance.cells.iter().map(|c| (c.ty, c.init));
    let registers = instance.threads.iter().flat_map(|t| &t.registers);
    let all = cells.chain(registers.map(|r| (r.ty, r.init)));
    let open = all.filter(|(ty, init)| *init == Initial::Any && is_wide(*ty));
    open.map(|(ty, _)| ty)
}

/// The instance with such beginnings, those where everything begins alike first.
pub fn of(instance: &Instance, question: Option<&Question>) -> Vec<Instance> {
    let numbers = numbers(instance, question);
    let values: Vec<Vec<i64>> = wide(instance).map(|ty| fitting(ty, &numbers)).collect();
    let most = values.iter().map(Vec::len).max().unwrap_or(0);
    let mut chosen: Vec<Vec<i64>> = Vec::new();
    for n in 0..most {
        chosen.push(values.iter().map(|v| v[n % v.len()]).collect());
    }
    // All combinations, the first quantities' changing fastest.
    let mut at = vec![0; values.len()];
    while chosen.len() < MOST {
        chosen.push(values.iter().zip(&at).map(|(v, i)| v[*i]).collect());
        let Some(n) = (0..at.len()).find(|n| at[*n] + 1 < values[*n].len()) else {
            break;
        };
        at[n] += 1;
        at[..n].fill(0);
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|values| seen.insert(values.clone()));
    chosen
        .iter()
        .map(|values| begun(instance, values))
        .collect()
}

fn begun(instance: &Instance, values: &[i64]) -> Instance {
    let mut instance = instance.clone();
    let mut values = values.iter();
    let cells = instance.cells.iter_mut().map(|c| (c.ty, &mut c.init));
    let registers = instance.threads.iter_mut().flat_map(|t| &mut t.registers);
    for (ty, init) in cells.chain(registers.map(|r| (r.ty, &mut r.init))) {
        if *init == Initial::Any
            && is_wide(ty)
            && let Some(v) = values.next()
        {
            *init = Initial::Value(*v);
        }
    }
    instance
}

/// Those that the type has; never none.
fn fitting(ty: Type, numbers: &BTreeSet<i64>) -> Vec<i64> {
    let ends = ty.bounds().map_or(Vec::new(), |(lo, hi)| vec![lo, hi]);
    let mut all: Vec<i64> = numbers.iter().copied().chain(ends).collect();
    // Small ones first.
    all.sort_by_key(|v| (v.unsigned_abs(), *v < 0));
    all.dedup();
    all.retain(|v| ty.admit(*v) == Some(*v));
    if all.is_empty() {
        all.push(ty.bounds().map_or(0, |(lo, _)| lo));
    }
    all
}

/// What is written in the program and in the question, and what is next to it.
fn numbers(instance: &Instance, question: Option<&Question>) -> BTreeSet<i64> {
    let mut written = BTreeSet::from([0]);
    for step in instance.threads.iter().flat_map(|t| &t.steps) {
        if let Some(e) = step.action.evaluated() {
            constants(e, &mut |_, _| {}, &mut written);
        }
    }
    if let Some(q) = question {
        let mut inside = |fact: &Fact, written: &mut BTreeSet<i64>| {
            if let Fact::CellAt { index, .. } = fact {
                constants(index, &mut |_, _| {}, written);
            }
        };
        constants(&q.target, &mut inside, &mut written);
    }
    let near = |v: &i64| [v.saturating_sub(1), *v, v.saturating_add(1)];
    written.iter().flat_map(near).collect()
}

type Inside<'f, A> = &'f mut dyn FnMut(&A, &mut BTreeSet<i64>);

fn constants<A>(e: &Expr<A>, inside: Inside<'_, A>, found: &mut BTreeSet<i64>) {
    match e {
        Expr::Const(v) => drop(found.insert(*v)),
        Expr::Atom(a) => inside(a, found),
        Expr::Unary(_, a) => constants(a, inside, found),
        Expr::Binary(_, a, b) => {
            constants(a, inside, found);
            constants(b, inside, found);
        }
        Expr::Ite(c, a, b) => {
            constants(c, inside, found);
            constants(a, inside, found);
            constants(b, inside, found);
        }
    }
}
