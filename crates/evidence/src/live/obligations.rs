//! What is demanded, as formulas alone.

use super::{LiveTask, Trap};
use wattle_model::instance::Fact;
use wattle_model::{Expr, Formula};

impl LiveTask<'_> {
    /// Formulas that together say what is demanded: for progress, that the thread is outside each trap again and again. A
    /// trap inside another needs none.
    pub fn obligations(&self) -> Vec<Formula<Expr<Fact>>> {
        if let Some(f) = self.formula() {
            return vec![f.clone()];
        }
        let traps = self.traps();
        let inside = |a: &Trap, b: &Trap| {
            a != b && a.thread == b.thread && a.at.iter().all(|l| b.at.binary_search(l).is_ok())
        };
        let largest = traps.iter().filter(|a| !traps.iter().any(|b| inside(a, b)));
        let left = largest.map(|t| {
            let at = Expr::Atom(Fact::At(t.thread, t.at.clone()));
            let outside = Formula::Now(at.negate());
            Formula::Globally(Box::new(Formula::Finally(Box::new(outside))))
        });
        left.collect()
    }
}
