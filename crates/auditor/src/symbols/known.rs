//! What is known at a control state, before a step.

use super::Symbols;
use wattle_logic::{Formula, Var, and, ge, le};

/// A range with fewer values than this may be tried one by one.
const FEW: u64 = 32;

impl Symbols {
    /// Forgets what is known; names stay.
    pub fn forget(&mut self) {
        self.path.clear();
        self.known.clear();
        self.few.clear();
        self.ranges.clear();
    }

    /// A variable between the bounds.
    pub fn between(&mut self, bounds: Option<(i64, i64)>) -> Var {
        let v = self.fresh();
        if let Some((lo, hi)) = bounds {
            self.know(and([ge(v, lo), le(v, hi)]));
            self.range(v, lo, hi);
            if hi.abs_diff(lo) < FEW {
                self.few(v, (lo..=hi).collect());
            }
        }
        v
    }

    /// What is known, and on a path what has been answered.
    pub fn facts(&self) -> &[Formula] {
        &self.path
    }
}
