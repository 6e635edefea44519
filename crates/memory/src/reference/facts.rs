//! Conditions of properties, in a state.

use super::State;
use crate::fault::FaultKind;
use wattle_model::instance::Fact;
use wattle_model::{CellId, Expr, Op2};

/// The value of a condition. `&&`, `||` and `?:` look only at what they need.
pub fn evaluate<B>(state: &State<B>, e: &Expr<Fact>) -> Result<i64, FaultKind> {
    Ok(match e {
        Expr::Const(c) => *c,
        Expr::Atom(fact) => fact_value(state, fact)?,
        Expr::Unary(op, a) => op.apply(evaluate(state, a)?)?,
        Expr::Binary(Op2::And, a, b) => {
            i64::from(evaluate(state, a)? != 0 && evaluate(state, b)? != 0)
        }
        Expr::Binary(Op2::Or, a, b) => {
            i64::from(evaluate(state, a)? != 0 || evaluate(state, b)? != 0)
        }
        Expr::Binary(op, a, b) => op.apply(evaluate(state, a)?, evaluate(state, b)?)?,
        Expr::Ite(c, a, b) => {
            let chosen = if evaluate(state, c)? != 0 { a } else { b };
            evaluate(state, chosen)?
        }
    })
}

fn fact_value<B>(state: &State<B>, fact: &Fact) -> Result<i64, FaultKind> {
    match fact {
        Fact::Cell(c) => Ok(state.memory[c.index()]),
        Fact::CellAt {
            base,
            length,
            index,
        } => {
            let index = evaluate(state, index)?;
            let length = *length;
            match u32::try_from(index).ok().filter(|i| *i < length) {
                Some(i) => Ok(state.memory[CellId(base.0 + i).index()]),
                None => Err(FaultKind::IndexOutOfRange { index, length }),
            }
        }
        Fact::Register(t, r) => Ok(state.registers[t.index()][r.index()]),
        Fact::At(t, at) => Ok(i64::from(at.contains(&state.locations[t.index()]))),
    }
}
