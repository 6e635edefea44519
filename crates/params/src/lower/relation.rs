//! What the cells of the system mean in the program: the hint with which the auditor checks that the
//! system does everything that the program does.

use super::amount::{Amount, Share};
use super::interval::{Interval, of_type};
use super::variables::{Holds, Variable};
use super::{Lowered, Lowering};
use wattle_evidence::related::{Bounds, Constant, Held, Relation};
use wattle_model::{FamilyId, Length, LocationId, RegionId, RegisterId};

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
                self.variables.values.iter().map(constant).collect(),
            ),
            registers: (0..families).map(registers).collect(),
            within: (0..families)
                .map(|f| self.within(FamilyId::new(f)))
                .collect(),
            regions: (0..program.regions.len()).map(region).collect(),
        }
    }

    /// For each location of a family the bounds of registers that are numbers.
    fn within(&self, f: FamilyId) -> Vec<Vec<Bounds>> {
        let family = self.program.family(f);
        let here = |l: usize, r: usize| {
            let (l, r) = (LocationId::new(l), RegisterId::new(r));
            let id = Variable::Register(f, r);
            match self.variables.of(id) {
                Holds::Numbers => self.bounds_within(id, self.variables.ranges.at(f, l, r)),
                Holds::Few(_) | Holds::Threads(_) | Holds::Counter => (None, None),
            }
        };
        let registers = family.registers.len();
        let locations = 0..family.locations.len();
        locations
            .map(|l| (0..registers).map(|r| here(l, r)).collect())
            .collect()
    }

    /// What is known beyond the type.
    fn bounds_within(&self, id: Variable, known: Interval) -> Bounds {
        let all = of_type(self.variables.type_of(id));
        let told = |bound: Option<i128>, of: Option<i128>| {
            let bound = bound.filter(|_| bound != of);
            bound.and_then(|b| i64::try_from(b).ok())
        };
        (told(known.lo, all.lo), told(known.hi, all.hi))
    }

    fn meaning_of(&self, id: Variable, element: u16) -> Held {
        let first = self.variables.cells[&id];
        let cell = first + element;
        match self.variables.of(id) {
            Holds::Few(values) => Held::Few {
                cell,
                values: values.iter().map(constant).collect(),
            },
            Holds::Numbers => {
                let known = self.variables.ranges.get(id);
                let bounds = self.bounds_within(id, known);
                Held::Number { cell, bounds }
            }
            Holds::Threads(family) => Held::Thread {
                cell: first + 2 * element,
                none: first + 2 * element + 1,
                family: *family,
            },
            Holds::Counter => Held::Counter { cell },
        }
    }
}

fn constant(amount: &Amount) -> Constant {
    match amount {
        Amount::Number(n) => Constant::Number(*n),
        Amount::Threads(Share::Negative) => Constant::LessThanNone,
        Amount::Threads(Share::Some) => Constant::SomeThreads,
        Amount::Threads(Share::All) => Constant::AllThreads,
        Amount::Threads(Share::More) => Constant::MoreThanAll,
    }
}

impl Lowered {
    /// How the system's cells hold the program's variables.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }
}
