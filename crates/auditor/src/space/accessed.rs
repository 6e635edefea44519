//! The cell of a load or a store.

use wattle_model::instance::{Address, Thread};
use wattle_model::{RegisterId, StepId};

/// The cell a step loads or stores, if it is one.
pub fn accessed(thread: &Thread, s: StepId, registers: &[i64]) -> Option<usize> {
    match thread.step(s).action.place()? {
        Address::Cell(c) => Some(c.index()),
        Address::Computed {
            base,
            length,
            index,
        } => {
            let index = index.eval(&|r: &RegisterId| registers[r.index()]).ok()?;
            let inside = u32::try_from(index).ok().filter(|i| i < length)?;
            Some(base.index() + inside as usize)
        }
    }
}
