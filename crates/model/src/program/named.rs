//! What a program has, by name.

use super::{Count, Family, Program};
use crate::graph::Action;
use crate::ids::{FamilyId, RegionId};

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
