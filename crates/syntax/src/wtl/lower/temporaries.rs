//! Registers for what expressions read. A temporary is free again at the end of the part of the
//! statement that needs it; few registers mean small states.

use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::Register;
use wattle_model::{Init, RegisterId, Span, Type};

#[derive(Default)]
pub(super) struct Temporaries {
    free: BTreeMap<Type, BTreeSet<RegisterId>>,
    in_use: Vec<(Type, RegisterId)>,
    /// Number of the last temporary's name.
    last: u32,
}

impl Temporaries {
    /// A free register of the type; its name (`_1`, `_2`, …) is not `taken`.
    pub fn take(
        &mut self,
        ty: Type,
        registers: &mut Vec<Register>,
        taken: impl Fn(&str) -> bool,
    ) -> RegisterId {
        let reused = self.free.get_mut(&ty).and_then(BTreeSet::pop_first);
        let id = reused.unwrap_or_else(|| {
            let name = loop {
                self.last += 1;
                let name = format!("_{}", self.last);
                if !taken(&name) {
                    break name;
                }
            };
            registers.push(Register {
                name,
                ty,
                init: Init::default(),
                span: Span::NONE,
            });
            RegisterId::new(registers.len() - 1)
        });
        self.in_use.push((ty, id));
        id
    }

    pub fn mark(&self) -> usize {
        self.in_use.len()
    }

    /// Frees what was taken since the mark.
    pub fn release(&mut self, mark: usize) {
        for (ty, id) in self.in_use.drain(mark.min(self.in_use.len())..) {
            self.free.entry(ty).or_default().insert(id);
        }
    }
}
