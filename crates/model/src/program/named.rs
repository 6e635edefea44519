//! What a program has, by name.

use super::{Count, Family, Local, Place, Program};
use crate::expr::Expr;
use crate::graph::{Action, Section};
use crate::ids::{FamilyId, RegionId};
use std::collections::BTreeSet;

impl Program {
    pub fn family_named(&self, name: &str) -> Option<FamilyId> {
        let found = self.families.iter().position(|f| f.name == name)?;
        Some(FamilyId::new(found))
    }

    pub fn region_named(&self, name: &str) -> Option<RegionId> {
        let found = self.regions.iter().position(|r| r.name == name)?;
        Some(RegionId::new(found))
    }

    /// Whether some family may have any number of threads.
    pub fn is_parameterised(&self) -> bool {
        self.families.iter().any(|f| f.count == Count::Any)
    }
}

impl Family {
    /// Stores that may wait in a buffer: where to, and what. The others are in atomic blocks that begin
    /// with an empty buffer and write memory at once.
    pub fn buffered_stores(&self) -> Vec<(&Place, &Expr<Local>)> {
        let mut stores = Vec::new();
        let mut met = BTreeSet::from([(self.entry, None)]);
        let mut work = vec![(self.entry, None)];
        while let Some((l, section)) = work.pop() {
            for step in self.steps.iter().filter(|s| s.source == l) {
                if let Action::Store { place, value } = &step.action
                    && section != Some(Section::Drained)
                {
                    stores.push((place, value));
                }
                let next = (step.target, step.action.section_after(section));
                if met.insert(next) {
                    work.push(next);
                }
            }
        }
        stores
    }

    /// Whether its threads leave memory, buffers and the lock alone.
    pub fn only_reads(&self) -> bool {
        self.steps.iter().all(|s| match s.action {
            Action::Store { .. } | Action::Lock | Action::Unlock => false,
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd => true,
        })
    }
}
