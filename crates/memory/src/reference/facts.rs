//! Conditions of properties, in a state.

use super::State;
use crate::fault::FaultKind;
use crate::layout::Newest;
use wattle_model::instance::Fact;
use wattle_model::{CellId, Domain, Expr, NoValue, Numbers};

/// The value of a condition. `&&`, `||` and `?:` look only at what they need.
pub fn evaluate<B: Newest<i64>>(state: &State<B>, e: &Expr<Fact>) -> Result<i64, FaultKind> {
    evaluate_in(&mut Numbers, state, e)
}

/// The same in a domain of values.
pub fn evaluate_in<D, B, E>(
    d: &mut D,
    state: &State<B, D::Value>,
    e: &Expr<Fact>,
) -> Result<D::Value, E>
where
    D: Domain,
    B: Newest<D::Value>,
    E: From<NoValue<D::Refusal>> + From<FaultKind<D::Value>>,
{
    e.evaluate(d, &mut |d: &mut D, fact| fact_value(d, state, fact))
}

fn fact_value<D, B, E>(d: &mut D, state: &State<B, D::Value>, fact: &Fact) -> Result<D::Value, E>
where
    D: Domain,
    B: Newest<D::Value>,
    E: From<NoValue<D::Refusal>> + From<FaultKind<D::Value>>,
{
    Ok(match fact {
        Fact::Cell(c) => state.memory[c.index()].clone(),
        Fact::CellAt {
            base,
            length,
            index,
        } => {
            let index = evaluate_in::<D, B, E>(d, state, index)?;
            let length = *length;
            match d.position(&index, length) {
                Some(i) => state.memory[CellId(base.0 + i).index()].clone(),
                None => return Err(FaultKind::IndexOutOfRange { index, length }.into()),
            }
        }
        Fact::Seen(t, c) => match state.buffers.get(t.index()) {
            Some(buffer) => match buffer.newest_of(*c) {
                Some(value) => value,
                None => state.memory[c.index()].clone(),
            },
            // A state that was not put together with its buffers does not say.
            None => {
                let (index, length) = (d.constant(i64::from(t.0)), state.buffers.len() as u32);
                return Err(FaultKind::IndexOutOfRange { index, length }.into());
            }
        },
        Fact::Register(t, r) => state.registers[t.index()][r.index()].clone(),
        Fact::At(t, at) => d.constant(i64::from(at.contains(&state.locations[t.index()]))),
    })
}
