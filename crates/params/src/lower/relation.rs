//! What the cells of the system mean in the program: the hint with which the auditor checks that the
//! system does everything that the program does.

use super::amount::Amount;
use super::variables::{Holds, Variable};
use super::{Lowered, Lowering};
use wattle_evidence::related::{Held, Relation};
use wattle_model::{FamilyId, Length, RegionId, RegisterId};

impl Lowering<'_> {
    pub(super) fn relation(&self) -> Relation {
        let (program, families) = (self.program, self.program.families.len());
        let registers = |f: usize| {
            let all = 0..program.families[f].registers.len();
            let id = |r: usize| Variable::Register(FamilyId::new(f), RegisterId::new(r));
            all.map(|r| self.meaning_of(id(r), 0)).collect()
        };
        let region = |r: usize| {
            let elements = match program.regions[r].length {
                Length::Array(n) => n as u16,
                Length::Scalar | Length::PerThread(_) => 1,
            };
            let id = Variable::Region(RegionId::new(r));
            (0..elements).map(|e| self.meaning_of(id, e)).collect()
        };
        Relation {
            locations: (0..families as u16).collect(),
            family: self.family_cell(),
            broken: self.broken,
            constants: (
                self.value_type(),
                self.variables.values.iter().map(number).collect(),
            ),
            registers: (0..families).map(registers).collect(),
            regions: (0..program.regions.len()).map(region).collect(),
        }
    }

    fn meaning_of(&self, id: Variable, element: u16) -> Held {
        let first = self.variables.cells[&id];
        let cell = first + element;
        match self.variables.of(id) {
            Holds::Few(values) => Held::Few {
                cell,
                values: values.iter().filter_map(number).collect(),
            },
            Holds::Numbers => Held::Number {
                cell,
                bounds: (None, None),
            },
            Holds::Threads(family) => Held::Thread {
                cell: first + 2 * element,
                none: first + 2 * element + 1,
                family: *family,
            },
            Holds::Counter => Held::Counter { cell },
        }
    }
}

/// The number, if it is one.
fn number(amount: &Amount) -> Option<i64> {
    match amount {
        Amount::Number(n) => Some(*n),
        Amount::Threads(_) => None,
    }
}

impl Lowered {
    /// How the system's cells hold the program's variables.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }
}
