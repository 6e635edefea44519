//! Programs with families of any number of threads as array-based systems.
//!
//! Each family gets an array of locations; registers and per-thread regions become arrays, shared
//! regions weak cells. A transition is one memory step with the local steps that follow it, or a
//! whole atomic block. Variables that hold few constants get one finite type, thread identifiers a
//! thread cell with a flag for `none`, counters of threads (conchon-2017 §4) a boolean array: as
//! many elements are true as the counter counts. Everything else is an integer; where wrap-around might
//! matter, [`Lowered::may_wrap`] says so.
//!
//! What cannot be treated is refused with its place: arithmetic on thread identifiers, identifiers
//! of one family where another's are meant, indexes that are no thread of the family.

mod access;
mod amount;
mod compare;
mod counter;
mod emit;
mod expr;
pub mod inside;
mod interval;
mod mixed;
mod paths;
mod property;
mod ranges;
mod relation;
mod scan;
mod variables;

#[cfg(test)]
mod tests;

use crate::compile::Unsupported;
use amount::Amount;
use interval::Interval;
use ranges::Ranges;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use variables::{Variable, Variables};
use wattle_evidence::Assumption;
use wattle_model::array::{
    Access, ArraySystem, CellDecl, CellType, Comparison, Formula, Literal, Quantified, Term,
    ThreadTerm, TypeDecl,
};
use wattle_model::program::Family;
use wattle_model::{Count, FamilyId, Program, Span, Type};

/// A system for one property of a program.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub system: ArraySystem,
    /// Variables whose numbers may wrap around in the program; in the system they do not. A proof
    /// assumes that they never do.
    pub may_wrap: Vec<String>,
    reader: inside::Reader,
    relation: wattle_evidence::related::Relation,
}

impl Lowered {
    /// What a proof about the system takes for granted about the program.
    pub fn assumptions(&self) -> Vec<Assumption> {
        let variables = self.may_wrap.clone();
        match variables.is_empty() {
            true => Vec::new(),
            false => vec![Assumption::NoWrap { variables }],
        }
    }
}

pub type Refused = Unsupported;

pub(crate) fn refuse(span: Span, message: impl Into<String>, hint: impl Into<String>) -> Refused {
    Unsupported {
        span,
        message: message.into(),
        hint: hint.into(),
    }
}

/// More locations of a thread are not searched.
const MOST_LOCATIONS: usize = 120;

/// The array-based system of a program for one of its properties (or its assertions alone), small enough to be
/// searched.
pub fn lower(program: &Program, property: Option<usize>) -> Result<Lowered, Refused> {
    let large = |f: &&Family| f.locations.len() > MOST_LOCATIONS;
    match program.families.iter().find(large) {
        Some(f) => Err(refuse(
            f.span,
            format!("`{}` has more than {MOST_LOCATIONS} locations", f.name),
            "give a fixed number of threads",
        )),
        None => lower_whole(program, property, false),
    }
}

/// The same however large it is. Integers that begin with 0 may be known to count threads.
pub fn lower_whole(
    program: &Program,
    property: Option<usize>,
    counters: bool,
) -> Result<Lowered, Refused> {
    let program = &property::by_variables(&program.without_outer_casts());
    let ranges = Ranges::infer(program);
    let program = &ranges.without_idle_casts(program);
    let variables = Variables::infer(program, ranges, counters)?;
    let mut lowering = Lowering {
        program,
        variables,
        system: ArraySystem::default(),
        may_wrap: RefCell::default(),
        observed: Vec::new(),
        absent: BTreeSet::new(),
        indices: Vec::new(),
        broken: None,
        few: BTreeMap::new(),
        bounds: BTreeMap::new(),
        types: BTreeMap::new(),
        ranges: BTreeMap::new(),
    };
    lowering.declare()?;
    lowering.not_mixed(property)?;
    lowering.observe(property);
    for f in 0..program.families.len() {
        lowering.family(FamilyId::new(f))?;
    }
    lowering.bad(property)?;
    Ok(Lowered {
        reader: inside::Reader::of(&lowering),
        relation: lowering.relation(),
        system: lowering.system,
        may_wrap: lowering.may_wrap.into_inner().into_iter().collect(),
    })
}

struct Lowering<'p> {
    program: &'p Program,
    variables: Variables,
    system: ArraySystem,
    may_wrap: RefCell<BTreeSet<String>>,
    /// Labels the property speaks of.
    observed: Vec<String>,
    /// Families of which the property wants some label's absence: whatever a thread does on the way to
    /// the next label is then looked at.
    absent: BTreeSet<FamilyId>,
    /// The families of the property's index variables.
    indices: Vec<FamilyId>,
    /// The flag that records that a counter left 0..N, if some may.
    broken: Option<u16>,
    /// The constants of each finite cell.
    few: BTreeMap<u16, Vec<Amount>>,
    /// Between which bounds a cell's numbers lie, and the type of the variable.
    bounds: BTreeMap<u16, Interval>,
    types: BTreeMap<u16, Type>,
    /// The bounds of cells whose type has some; whatever leaves them breaks the thread.
    ranges: BTreeMap<u16, (i64, i64)>,
}

impl Lowering<'_> {
    fn declare(&mut self) -> Result<(), Refused> {
        let program = self.program;
        let many = program.families.len() > 1;
        let mut init = Vec::new();
        for (i, f) in program.families.iter().enumerate() {
            let constructors = (0..f.locations.len())
                .map(|l| self.location_name(i, l))
                .collect();
            self.system.types.push(TypeDecl {
                name: format!("location_{}", f.name),
                constructors,
            });
        }
        let values = self.variables.values.iter().map(|v| v.name()).collect();
        self.system.types.push(TypeDecl {
            name: "value".into(),
            constructors: values,
        });
        if many {
            let names = program
                .families
                .iter()
                .map(|f| format!("Is_{}", f.name))
                .collect();
            self.system.types.push(TypeDecl {
                name: "family".into(),
                constructors: names,
            });
        }
        for (i, f) in program.families.iter().enumerate() {
            let cell = self.cell(
                format!("At_{}", f.name),
                1,
                CellType::Declared(i as u16),
                false,
                f.span,
            );
            let entry = Term::Constructor(i as u16, f.entry.index() as u16);
            init.push(equal(
                Term::Read(access(cell, &[ThreadTerm::Param(0)])),
                entry,
            ));
        }
        if many {
            let ty = CellType::Declared(program.families.len() as u16 + 1);
            let cell = self.cell("Family".into(), 1, ty, false, Span::NONE);
            self.system.cells[usize::from(cell)].constant = true;
            for (i, f) in program.families.iter().enumerate() {
                let most = match f.count {
                    Count::One => 1,
                    Count::Fixed(n) => n,
                    Count::Any => continue,
                };
                let params: Vec<String> = (0..=most).map(|k| format!("p{k}")).collect();
                let all = (0..=most as u8).map(|k| {
                    equal(
                        Term::Read(access(cell, &[ThreadTerm::Param(k)])),
                        self.family_value(i),
                    )
                });
                let body = Formula::And(all.collect());
                self.system.assumed.push(Quantified {
                    params,
                    body,
                    span: f.span,
                });
            }
        } else if let Some(Count::Fixed(n)) = program.families.first().map(|f| f.count) {
            self.system.threads = Some(n);
        } else if let Some(Count::One) = program.families.first().map(|f| f.count) {
            self.system.threads = Some(1);
        }
        self.declare_variables(&mut init)?;
        self.system.init = Quantified {
            params: vec!["p".into()],
            body: Formula::And(init),
            span: Span::NONE,
        };
        Ok(())
    }

    fn location_name(&self, family: usize, location: usize) -> String {
        let f = &self.program.families[family];
        let label = f.locations[location]
            .labels
            .first()
            .filter(|l| l.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        match label {
            Some(l) => format!("L{location}_{}_{l}", f.name),
            None => format!("L{location}_{}", f.name),
        }
    }

    fn cell(&mut self, name: String, arity: u8, ty: CellType, weak: bool, span: Span) -> u16 {
        self.system.cells.push(CellDecl {
            name,
            arity,
            ty,
            weak,
            constant: false,
            span,
        });
        self.system.cells.len() as u16 - 1
    }

    fn value_type(&self) -> u16 {
        self.program.families.len() as u16
    }

    fn family_value(&self, family: usize) -> Term {
        Term::Constructor(self.program.families.len() as u16 + 1, family as u16)
    }

    /// The cell that says which family a thread belongs to, if there are several.
    fn family_cell(&self) -> Option<u16> {
        let many = self.program.families.len() > 1;
        many.then_some(self.program.families.len() as u16)
    }

    /// The name of the variable a cell belongs to.
    fn named(&self, cell: u16) -> String {
        let mut cells: Vec<_> = self.variables.cells.iter().collect();
        cells.sort_by_key(|(_, first)| **first);
        let of = cells.iter().rev().find(|(_, first)| **first <= cell);
        match of.map(|(id, _)| **id) {
            Some(Variable::Register(f, r)) => {
                self.program.family(f).registers[r.index()].name.clone()
            }
            Some(Variable::Region(r)) => self.program.region(r).name.clone(),
            None => String::new(),
        }
    }

    /// A number as a value of the finite type.
    fn finite(&self, value: Amount) -> Option<Term> {
        let i = self.variables.values.iter().position(|v| *v == value)?;
        Some(Term::Constructor(self.value_type(), i as u16))
    }
}

pub(crate) fn access(cell: u16, args: &[ThreadTerm]) -> Access {
    Access {
        cell,
        args: args.to_vec(),
        reader: None,
    }
}

pub(crate) fn equal(left: Term, right: Term) -> Formula {
    Formula::Atom(Literal {
        left,
        op: Comparison::Eq,
        right,
    })
}

pub(crate) fn different(left: Term, right: Term) -> Formula {
    Formula::Atom(Literal {
        left,
        op: Comparison::Ne,
        right,
    })
}
