//! Programs with small ranges.

use wattle_model::graph::{Action, Location};
use wattle_model::instance::Thread;
use wattle_model::{Expr, Instance, LocationId, Op2, StepId, Type};

/// The greatest value of a limited program.
const GREATEST: i64 = 2;

/// The program with every unbounded value from 0 to a small number: a step that would leave the range
/// waits for ever instead.
pub fn limited(mut instance: Instance) -> Instance {
    for cell in &mut instance.cells {
        cell.ty = narrow(cell.ty);
    }
    for thread in &mut instance.threads {
        for register in &mut thread.registers {
            register.ty = narrow(register.ty);
        }
        for s in 0..thread.steps.len() {
            let value = match &thread.steps[s].action {
                Action::Assign { value, .. } | Action::Store { value, .. } => value.clone(),
                _ => continue,
            };
            wait_for(thread, s, inside(&value));
        }
    }
    instance
}

fn narrow(ty: Type) -> Type {
    match ty {
        Type::Int => Type::Range {
            lo: 0,
            hi: GREATEST,
        },
        other => other,
    }
}

fn inside<A: Clone>(value: &Expr<A>) -> Expr<A> {
    let compare = |op, bound| {
        let (value, bound) = (Box::new(value.clone()), Box::new(Expr::Const(bound)));
        Expr::Binary(op, value, bound)
    };
    let (above, below) = (compare(Op2::Ge, 0), compare(Op2::Le, GREATEST));
    Expr::Binary(Op2::And, Box::new(above), Box::new(below))
}

/// The step, taken only where the condition holds.
fn wait_for(thread: &mut Thread, s: usize, condition: Expr<wattle_model::RegisterId>) {
    let middle = LocationId::new(thread.locations.len());
    let step = thread.steps[s].clone();
    let source: Location = thread.locations[step.source.index()].clone();
    thread.locations.push(source);
    thread.atomic.push(thread.atomic[step.source.index()]);
    thread.direct.push(thread.direct[step.source.index()]);
    let mut wait = step.clone();
    wait.target = middle;
    wait.action = Action::Assume(condition);
    thread.steps[s] = wait;
    thread.outgoing.push(vec![StepId::new(thread.steps.len())]);
    let mut go = step;
    go.source = middle;
    thread.steps.push(go);
}
