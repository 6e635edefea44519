//! Translation validation: whether an array-based system does everything that the program does, for
//! any number of threads, so that a proof about the system is one about the program.
//!
//! **The relation.** A state of the program with so many threads in each family and a state of the
//! system are *related* if, with thread i of family f as the system's thread `base f + i`: every thread
//! is at the location that its cell says; every register, cell and pending store has the value that
//! its cells say, as the [`Relation`] lists them (a number, one of few constants, a thread or none);
//! nobody is broken; and registers are between the bounds of the location. The relation is a hint of whoever made the system and is checked, not trusted.
//!
//! **What is shown**, by running the rules of [`wattle_memory::rules`] for one thread over symbols and
//! asking the solver:
//!
//! 1. every initial state of the program is related to one of the system ([`start`]);
//! 2. from every location of a thread, every *chain* of the program — a step and the local steps after
//!    it, or a whole atomic block with the local steps after it — is matched by transitions of the
//!    system: where its condition holds one of them is enabled and leads to a related state; where it is
//!    a fault, one of them breaks the thread or the state is bad already ([`chain`], [`system`]);
//! 3. whatever the property forbids is bad in the system ([`property`]).
//!
//! **Why chains are enough.** Steps inside a chain after its first (or after its atomic block) are
//! *local*: they touch registers of their own thread that the property does not see, and no label of
//! the property is at the locations between. A local step commutes with every event of other
//! threads and with drains, so a run that ends in a violation can be rearranged: local steps come right
//! after the step they follow.
//!
//! ```text
//!   t:  load ───── assume ───── assign        load assume assign
//!   u:        store        load          ⇒                      store load
//! ```
//!
//! A chain that is not finished when the violation happens is finished — where it is certain that some
//! step is always enabled — or, if nobody can tell that it began (no store, no register that the
//! property sees), left out. Neither changes what the property sees, if labels of which the property
//! wants the absence are not met or left on the way. A chain that is stuck inside an atomic block
//! stops everybody and is looked at by nobody.

mod chain;
mod guess;
mod property;
mod start;
mod system;
mod table;
mod world;

use super::symbols::Symbols;
use super::{AuditError, Audited, Solvers};
use std::collections::BTreeSet;
use system::Says;
use table::Table;
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::related::{Bounds, Constant, Held, Relation};
use wattle_evidence::verdict::Assumption;
use wattle_logic::{Formula, Term, and, ge, le};
use wattle_model::array::{ArraySystem, CellType};
use wattle_model::graph::{Action, Section};
use wattle_model::{FamilyId, LocationId, Program, RegionId, RegisterId, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Variable {
    Register(FamilyId, RegisterId),
    Region(RegionId),
}

/// What a proof is about, and how it is said to be about the program.
pub struct Translation<'a> {
    pub program: &'a Program,
    /// One of the program's properties, or its faults alone.
    pub property: Option<usize>,
    pub system: &'a ArraySystem,
    pub relation: &'a Relation,
    /// Runs in which one of these wraps around are not looked at: whoever tells the proof tells
    /// this too.
    pub assumptions: &'a [Assumption],
}

/// Whether a proof about the system is one about the program's property.
pub fn validate(
    solvers: &Solvers,
    translation: &Translation<'_>,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let program = &translation.program.without_outer_casts();
    let property = translation.property.map(|p| program.properties.get(p));
    if property == Some(None) {
        return Err(AuditError::Other("there is no such property".into()));
    }
    let mut validator = Validator {
        solvers,
        program,
        property: property.flatten(),
        system: translation.system,
        relation: translation.relation,
        assumptions: translation.assumptions,
        meanings: system::meanings(translation.relation),
        control,
        asked: 0,
    };
    validator.fits()?;
    validator.starts()?;
    for f in 0..program.families.len() {
        validator.family(FamilyId::new(f))?;
    }
    validator.forbidden()?;
    Ok(Audited {
        checked: validator.asked,
    })
}

struct Validator<'a> {
    solvers: &'a Solvers,
    program: &'a Program,
    property: Option<&'a wattle_model::Property>,
    system: &'a ArraySystem,
    relation: &'a Relation,
    assumptions: &'a [Assumption],
    /// What each cell says.
    meanings: Vec<(u16, system::Says)>,
    control: &'a Control<'a>,
    asked: u64,
}

fn told(span: Span, why: &str) -> String {
    match span.line {
        0 => why.to_string(),
        line => format!("line {line}: {why}"),
    }
}

/// How the variable is held; of an array its element.
fn held(relation: &Relation, variable: Variable, element: u32) -> &Held {
    match variable {
        Variable::Register(f, r) => &relation.registers[f.index()][r.index()],
        Variable::Region(r) => &relation.regions[r.index()][element as usize],
    }
}

/// What one query may take.
const WORK: u64 = 4_000_000;

impl<'a> Validator<'a> {
    /// Whether the conditions cannot hold together, given what is known of the table's variables.
    fn impossible(
        &mut self,
        table: &Table<'_>,
        d: &Symbols,
        query: Vec<Formula>,
    ) -> Result<bool, AuditError> {
        if query.contains(&Formula::False) {
            return Ok(true);
        }
        self.asked += 1;
        self.control.poll("translation", Progress::of(self.asked))?;
        let mut all = table.facts().to_vec();
        all.extend(d.definitions());
        all.extend(query);
        self.solvers.impossible(&all, WORK, self.control)
    }

    fn go_on(&self) -> Result<(), AuditError> {
        Ok(self.control.go_on()?)
    }

    /// Something that is not treated here.
    fn refused<T>(&self, span: Span, why: &str) -> Result<T, AuditError> {
        Err(AuditError::Refused(told(span, why)))
    }

    /// The system does not do what the program does, as far as can be shown.
    fn unmatched<T>(&self, span: Span, why: &str) -> Result<T, AuditError> {
        Err(AuditError::Translation(told(span, why)))
    }

    /// The relation speaks of the cells that there are, each once, and of nothing that is not treated.
    fn fits(&self) -> Result<(), AuditError> {
        let (program, relation) = (self.program, self.relation);
        let corrupt = "the relation does not fit the program";
        let families = program.families.len();
        let lengths = relation.locations.len() == families
            && relation.registers.len() == families
            && relation.regions.len() == program.regions.len();
        if !lengths || (families > 1) != relation.family.is_some() {
            return self.refused(Span::NONE, corrupt);
        }
        let registers = program.families.iter().zip(&relation.registers);
        for (family, held) in registers {
            let counter = held.iter().any(|h| matches!(h, Held::Counter { .. }));
            if family.registers.len() != held.len() || counter {
                return self.refused(family.span, corrupt);
            }
        }
        let regions = program.regions.iter().zip(&relation.regions);
        for (region, held) in regions {
            let elements = match region.length {
                wattle_model::Length::Array(n) => n as usize,
                wattle_model::Length::Scalar | wattle_model::Length::PerThread(_) => 1,
            };
            let counter = held.iter().any(|h| matches!(h, Held::Counter { .. }));
            let counts = !counter || region.length == wattle_model::Length::Scalar;
            if held.len() != elements || !counts {
                return self.refused(region.span, corrupt);
            }
        }
        let (constants, meant) = &relation.constants;
        let constants = CellType::Declared(*constants);
        // As many constructors at least as there are things to tell apart, and no two that mean the same.
        let tells = |ty, many: usize| self.system.values(ty).is_some_and(|n| n as usize >= many);
        let twice = (1..meant.len()).any(|i| meant[..i].contains(&meant[i]));
        if twice || !meant.is_empty() && !tells(constants, meant.len()) {
            return self.refused(Span::NONE, corrupt);
        }
        let mut cells = BTreeSet::new();
        for (cell, says) in &self.meanings {
            let known = self.system.cells.get(usize::from(*cell));
            let fits = known.is_some_and(|c| match (says, c.ty) {
                (Says::Location(f), ty) => {
                    ty != constants && tells(ty, program.family(*f).locations.len())
                }
                (Says::Family, ty) => ty != constants && tells(ty, families),
                (Says::Broken | Says::None(..), ty) => ty == CellType::Bool,
                (Says::Value(id, element), ty) => match held(relation, *id, *element) {
                    Held::Few { values, .. } => {
                        ty == constants && values.iter().all(|c| meant.contains(c))
                    }
                    Held::Number { .. } => ty == CellType::Int,
                    Held::Thread { .. } => ty == CellType::Thread,
                    Held::Counter { .. } => ty == CellType::Bool,
                },
            });
            if !fits || !cells.insert(*cell) {
                return self.refused(Span::NONE, corrupt);
            }
        }
        for family in &program.families {
            for step in &family.steps {
                let untreated = match &step.action {
                    Action::Lock | Action::Unlock => Some("`lock` is not treated"),
                    Action::AtomicBegin(Section::Buffered) => {
                        Some("an atomic section that keeps its stores buffered is not treated")
                    }
                    // An address is refused where it is met.
                    Action::Load { .. }
                    | Action::Store { .. }
                    | Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(Section::Drained)
                    | Action::AtomicEnd => None,
                };
                if let Some(why) = untreated {
                    return self.refused(step.span, why);
                }
            }
        }
        Ok(())
    }

    /// Whether it is assumed that the variable does not wrap around.
    fn assumed(&self, variable: Variable) -> bool {
        let name = match variable {
            Variable::Register(f, r) => &self.program.family(f).registers[r.index()].name,
            Variable::Region(r) => &self.program.region(r).name,
        };
        self.assumptions.iter().any(|a| match a {
            Assumption::NoWrap { variables } => variables.contains(name),
            Assumption::AtMost { .. } | Assumption::Invariants => false,
        })
    }

    /// The register is between the bounds that it has at the location.
    fn within(&self, f: FamilyId, at: LocationId, r: RegisterId, value: &Term) -> Formula {
        let family = self.relation.within.get(f.index());
        let here = family.and_then(|locations| locations.get(at.index()));
        let bounds = here.and_then(|all| all.get(r.index()));
        between(bounds.copied().unwrap_or_default(), value)
    }
}

/// The value is between the bounds, as far as there are such.
fn between((lo, hi): Bounds, value: &Term) -> Formula {
    let lo = lo.map(|lo| ge(value.clone(), lo));
    let hi = hi.map(|hi| le(value.clone(), hi));
    and(lo.into_iter().chain(hi))
}
