//! The certificate's ranges: what they say of a state, and what an event must keep.

use super::super::AuditError;
use super::machine::{Pending, State, number};
use wattle_evidence::certificate::{Corrupt, Quantity};
use wattle_logic::{Formula, Term, and, ge, le};
use wattle_model::{CellId, Instance};

/// The least and the greatest value of each cell and register, where the certificate claims one.
pub struct Ranges {
    cells: Vec<Bounds>,
    registers: Vec<Vec<Bounds>>,
}

type Bounds = (Option<i64>, Option<i64>);

impl Ranges {
    pub fn new(
        instance: &Instance,
        claims: &[(Quantity, Option<i64>, Option<i64>)],
    ) -> Result<Self, AuditError> {
        let corrupt = || AuditError::Corrupt(Corrupt("a range of nothing in the program"));
        let none = (None, None);
        let threads = instance.threads.iter();
        let mut ranges = Ranges {
            cells: vec![none; instance.cells.len()],
            registers: threads.map(|t| vec![none; t.registers.len()]).collect(),
        };
        for (quantity, lo, hi) in claims {
            let place = match quantity {
                Quantity::Cell(c) => ranges.cells.get_mut(c.index()),
                Quantity::Register(t, r) => {
                    let row = ranges.registers.get_mut(t.index());
                    row.and_then(|row| row.get_mut(r.index()))
                }
                Quantity::Entry(..) | Quantity::View(..) => None,
            };
            *place.ok_or_else(corrupt)? = (*lo, *hi);
        }
        Ok(ranges)
    }

    /// What the ranges say of a value of the cell.
    pub fn of_cell(&self, cell: CellId, value: &Term) -> Formula {
        inside(value, self.cells[cell.index()])
    }

    /// What the ranges say of every value in the state.
    pub fn facts<B: Pending>(&self, state: &State<B>) -> Result<Vec<Formula>, AuditError> {
        let cells = state.memory.iter().zip(&self.cells);
        let registers = state.registers.iter().zip(&self.registers);
        let registers = registers.flat_map(|(row, bounds)| row.iter().zip(bounds));
        let buffers = state.buffers.iter().flat_map(|b| b.values());
        let buffers = buffers.map(|(c, v)| (v, &self.cells[c.index()]));
        let mut facts = Vec::new();
        for (value, bounds) in cells.chain(registers).chain(buffers) {
            facts.push(inside(number(value)?, *bounds));
        }
        facts.retain(|f| *f != Formula::True);
        Ok(facts)
    }

    /// What must be shown of the values that are in `after` and not already in `before`.
    pub fn news<B: Pending>(
        &self,
        before: &State<B>,
        after: &State<B>,
    ) -> Result<Vec<Formula>, AuditError> {
        let old = self.facts(before)?;
        let mut new = self.facts(after)?;
        new.retain(|f| !old.contains(f));
        Ok(new)
    }
}

fn inside(value: &Term, (lo, hi): Bounds) -> Formula {
    let lo = lo.map(|lo| ge(value.clone(), lo));
    let hi = hi.map(|hi| le(value.clone(), hi));
    and(lo.into_iter().chain(hi))
}
