//! What the numbers of nodes say, and whether an edge between two of them agrees.

use super::other;
use crate::AuditError;
use std::collections::BTreeMap;
use wattle_evidence::certificate::Coded;
use wattle_evidence::certificate::components::Harmless;
use wattle_evidence::live::big::Big;
use wattle_evidence::live::{Fairness, Mover, Set};

/// The place of a mover, as a set.
fn set<L: Coded>(big: &Big<'_, L>, mover: Mover) -> Set {
    let place = big.movers().iter().position(|m| *m == mover);
    place.map_or(0, |i| 1 << i)
}

/// The numbers go on exactly as long as a mover is named that cannot move in this state; a mover that
/// is called idle can.
pub fn is_numbered<L: Coded>(
    big: &Big<'_, L>,
    components: &BTreeMap<u32, Harmless>,
    numbers: &[u32],
    able: Set,
) -> bool {
    let Some((last, before)) = numbers.split_last() else {
        return false;
    };
    let passes = |n: &u32| match components.get(n) {
        Some(Harmless::Without(m)) => set(big, *m) != 0 && able & set(big, *m) == 0,
        Some(Harmless::Misses(_) | Harmless::Idle(_)) | None => false,
    };
    let ends = match components.get(last) {
        Some(Harmless::Misses(_)) | None => true,
        Some(Harmless::Idle(m) | Harmless::Without(m)) => able & set(big, *m) != 0,
    };
    before.iter().all(passes) && ends
}

/// An edge between two nodes of a trap.
pub struct Step<'e> {
    pub fairness: Fairness,
    pub accepting: &'e [u32],
    pub moved: Set,
    /// Who can move before it.
    pub able: Set,
}

impl Step<'_> {
    pub fn check<L: Coded>(
        &self,
        big: &Big<'_, L>,
        components: &BTreeMap<u32, Harmless>,
        from: &[u32],
        to: &[u32],
        state: usize,
    ) -> Result<(), AuditError> {
        let wrong = |why: &str| Err(other(&format!("state {state}: {why}")));
        let mut to = to.iter();
        for n in from {
            // A node that is left out of what the number means has no edges there.
            let Some(m) = to.next() else {
                return Ok(());
            };
            if n > m {
                return Ok(());
            }
            if n < m {
                return wrong("a number grows along an edge");
            }
            match components.get(n) {
                None => return wrong("an edge leads from a component to itself"),
                Some(Harmless::Misses(k)) => {
                    return match self.accepting.contains(k) {
                        true => wrong("an acceptance set is met"),
                        false => Ok(()),
                    };
                }
                Some(Harmless::Idle(mover)) => {
                    let mover = set(big, *mover);
                    return match mover != 0
                        && self.moved & mover == 0
                        && self.able & mover != 0
                        && self.fairness != Fairness::None
                    {
                        true => Ok(()),
                        false => wrong("a mover is not idle"),
                    };
                }
                Some(Harmless::Without(mover)) => {
                    let mover = set(big, *mover);
                    if mover == 0 || self.moved & mover != 0 || self.fairness != Fairness::Strong {
                        return wrong("a mover is not without moves");
                    }
                }
            }
        }
        Ok(())
    }
}
