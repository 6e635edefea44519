//! Conditions that ask what a thread sees of its own pending stores.

use super::Observation;
use crate::expr::Expr;

impl Expr<Observation> {
    /// Whether it depends on pending stores.
    pub fn sees_buffers(&self) -> bool {
        let mut sees = false;
        self.for_each_atom(&mut |o| {
            sees |= match o {
                Observation::Seen(..) => true,
                Observation::Cell(_, e) | Observation::Memory(e) => e.sees_buffers(),
                Observation::AddressOf(_)
                | Observation::Register(..)
                | Observation::At(..)
                | Observation::Index(_)
                | Observation::Count(_) => false,
            }
        });
        sees
    }
}
