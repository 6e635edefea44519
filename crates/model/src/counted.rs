//! Crowds whose threads may ask how many they are.
//!
//! `count(p)` of an open family is no finite data, but it is one number for all threads and never
//! changes. [`Program::counted_crowd`] has every thread read it from a register of its own, which nobody
//! writes: what is left is a crowd, and whoever reasons about it knows what the register holds, and which cells
//! begin with such a number.

use crate::crowd::{Crowd, NotAlike};
use crate::expr::Expr;
use crate::graph::Action;
use crate::ids::{CellId, FamilyId, IndexId, RegionId, RegisterId};
use crate::program::{Count, Init, Local, Place, Program, Register};
use crate::property::{Observation, ThreadIndex, ThreadRef};
use crate::span::Span;
use crate::ty::Type;

/// A crowd, and which of its registers hold numbers of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedCrowd {
    /// The program as it was, but that numbers of threads are read from registers, which start with them.
    pub program: Program,
    /// The same with registers, and cells, that start with anything.
    pub open: Program,
    pub crowd: Crowd,
    /// Thread of the instance, register, and the thread that stands for those who are counted.
    pub numbers: Vec<(usize, RegisterId, usize)>,
    /// Cells that begin with how many threads one stands for.
    pub cells: Vec<(CellId, usize)>,
}

impl Program {
    /// The same program where a number that would wrap around is a fault, and the names of the
    /// variables that may.
    pub fn with_wraps_as_faults(&self) -> (Program, Vec<String>) {
        let mut program = self.clone();
        let mut names = Vec::new();
        let mut change = |ty: &mut Type, name: &String| {
            if let (Type::Wrap { .. }, Some((lo, hi))) = (*ty, ty.bounds()) {
                *ty = Type::Range { lo, hi };
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        };
        for region in &mut program.regions {
            change(&mut region.ty, &region.name);
        }
        for register in program.families.iter_mut().flat_map(|f| &mut f.registers) {
            change(&mut register.ty, &register.name);
        }
        (program, names)
    }

    /// The program's open families as crowds, counted in registers.
    pub fn counted_crowd(&self, property: Option<usize>) -> Result<CountedCrowd, NotAlike> {
        let (program, registers) = self.with_counts_in_registers();
        let open = program.with_open_counts(&registers);
        let crowd = open.crowd(property)?;
        let threads = &crowd.instance.threads;
        let mut numbers = Vec::new();
        for (t, thread) in threads.iter().enumerate() {
            for (owner, register, counted) in &registers {
                let stands = threads.iter().position(|u| u.family == *counted);
                if let (true, Some(role)) = (*owner == thread.family, stands) {
                    numbers.push((t, *register, role));
                }
            }
        }
        let mut cells = Vec::new();
        for (c, cell) in crowd.instance.cells.iter().enumerate() {
            let counted = self.begins_with_count(cell.region);
            let stands = |f| threads.iter().position(|u| u.family == f);
            if let Some(role) = counted.and_then(stands) {
                cells.push((CellId::new(c), role));
            }
        }
        Ok(CountedCrowd {
            program,
            open,
            crowd,
            numbers,
            cells,
        })
    }

    /// The open family whose number of threads the region begins with: integers without a bound, none of which wraps.
    fn begins_with_count(&self, region: RegionId) -> Option<FamilyId> {
        let region = &self.regions[region.index()];
        match (&region.init, region.ty) {
            (Init::All(Expr::Atom(Local::Count(f))), Type::Int) => {
                (self.family(*f).count == Count::Any).then_some(*f)
            }
            _ => None,
        }
    }

    /// The program without a word about how many threads an open family has: registers say it. With
    /// whose registers, which, and of which family.
    fn with_counts_in_registers(&self) -> (Program, Vec<(FamilyId, RegisterId, FamilyId)>) {
        let mut program = self.clone();
        let mut registers = Vec::new();
        let open = |f: FamilyId| self.family(f).count == Count::Any;
        for counted in (0..self.families.len())
            .map(FamilyId::new)
            .filter(|f| open(*f))
        {
            if !self.speaks_of_count(counted) {
                continue;
            }
            for (f, family) in program.families.iter_mut().enumerate() {
                let register = RegisterId::new(family.registers.len());
                let name = format!("count({})", self.family(counted).name);
                family.registers.push(Register {
                    name,
                    ty: Type::Int,
                    init: Init::All(Expr::Atom(Local::Count(counted))),
                    span: Span::NONE,
                });
                registers.push((FamilyId::new(f), register, counted));
                for step in &mut family.steps {
                    read_register(&mut step.action, counted, register);
                }
            }
        }
        let of = |owner: FamilyId, counted: FamilyId| {
            let mut all = registers.iter();
            let found = all.find(|(o, _, c)| (*o, *c) == (owner, counted));
            found.map(|(_, r, _)| *r)
        };
        for property in &mut program.properties {
            if let Some(v) = property.condition.indices.first().cloned() {
                let expr = observed(&property.condition.expr, v.family, &of);
                property.condition.expr = expr;
            }
        }
        (program, registers)
    }

    fn with_open_counts(&self, registers: &[(FamilyId, RegisterId, FamilyId)]) -> Program {
        let mut open = self.clone();
        for (owner, register, _) in registers {
            open.families[owner.index()].registers[register.index()].init = Init::Any;
        }
        for r in 0..open.regions.len() {
            if self.begins_with_count(RegionId::new(r)).is_some() {
                open.regions[r].init = Init::Any;
            }
        }
        open
    }

    fn speaks_of_count(&self, counted: FamilyId) -> bool {
        let mut found = false;
        for step in self.families.iter().flat_map(|f| &f.steps) {
            let index = step.action.place().map(|p| match p {
                Place::Region(_, e) | Place::Memory(e) => e,
            });
            for e in step.action.evaluated().into_iter().chain(index) {
                e.for_each_atom(&mut |a| found |= *a == Local::Count(counted));
            }
        }
        for property in &self.properties {
            let expr = &property.condition.expr;
            expr.for_each_atom(&mut |o| found |= *o == Observation::Count(counted));
        }
        found
    }
}

fn read_register(action: &mut Action<Local, Place>, counted: FamilyId, register: RegisterId) {
    let read = |e: &mut Expr<Local>| {
        let atom = |a: &Local| match a {
            Local::Count(f) if *f == counted => Expr::Atom(Local::Register(register)),
            Local::Register(_) | Local::SelfIndex | Local::Count(_) | Local::AddressOf(_) => {
                Expr::Atom(a.clone())
            }
        };
        let read: Result<_, std::convert::Infallible> = e.substitute(&mut |a| Ok(atom(a)));
        let Ok(read) = read;
        *e = read;
    };
    let place = |p: &mut Place| match p {
        Place::Region(_, e) | Place::Memory(e) => read(e),
    };
    match action {
        Action::Assign { value, .. } => read(value),
        Action::Assume(e) | Action::Assert { condition: e, .. } => read(e),
        Action::Load { place: p, .. } => place(p),
        Action::Store { place: p, value } => {
            place(p);
            read(value);
        }
        Action::Skip
        | Action::Havoc { .. }
        | Action::Fence(_)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => {}
    }
}

/// Numbers of threads as the first thread of the property has them in its registers.
fn observed(
    e: &Expr<Observation>,
    family: FamilyId,
    of: &dyn Fn(FamilyId, FamilyId) -> Option<RegisterId>,
) -> Expr<Observation> {
    let first = ThreadRef {
        family,
        index: ThreadIndex::Variable(IndexId::new(0)),
    };
    let atom = |o: &Observation| match o {
        Observation::Count(f) => match of(family, *f) {
            Some(r) => Observation::Register(first.clone(), r),
            None => o.clone(),
        },
        Observation::Cell(r, index) => Observation::Cell(*r, Box::new(observed(index, family, of))),
        Observation::Seen(t, r, index) => {
            Observation::Seen(t.clone(), *r, Box::new(observed(index, family, of)))
        }
        Observation::Memory(index) => Observation::Memory(Box::new(observed(index, family, of))),
        Observation::AddressOf(_)
        | Observation::Register(..)
        | Observation::At(..)
        | Observation::Index(_) => o.clone(),
    };
    let read: Result<_, std::convert::Infallible> = e.substitute(&mut |o| Ok(Expr::Atom(atom(o))));
    match read {
        Ok(read) => read,
        Err(never) => match never {},
    }
}
