//! Initial states of the program are related to initial states of the system.
//!
//! `init` speaks of every thread alone, so one thread of each family is looked at. What it says of
//! cells that mean nothing for that thread (registers of another family) can be made true: each such
//! claim must be that one cell has one of some constants, and no cell has two claims.

use super::super::AuditError;
use super::super::symbols::{NotLinear, Path, Symbols, Value};
use super::system::View;
use super::table::Table;
use super::world::Actor;
use super::{Validator, Variable};
use std::cell::Cell;
use std::collections::BTreeSet;
use wattle_logic::{Formula, Term, eq, not};
use wattle_memory::rules::{Sight, Stuck, World};
use wattle_model::array::{self, Comparison, Literal};
use wattle_model::{Domain, FamilyId, Init, Length, RegionId, RegisterId, Span};

/// What comes of a program's initial values.
enum Start {
    Related,
    /// No instance starts like this.
    Never,
    /// A value that the relation does not allow.
    Unrelated,
}

impl<'a> Validator<'a> {
    pub fn starts(&mut self) -> Result<(), AuditError> {
        if self.system.init.params.len() > 1 {
            return self.refused(Span::NONE, "`init` speaks of several threads");
        }
        for f in 0..self.program.families.len() {
            self.starts_with(FamilyId::new(f))?;
        }
        Ok(())
    }

    fn starts_with(&mut self, family: FamilyId) -> Result<(), AuditError> {
        let mut d = Symbols::default();
        let mut table = Table::new(self.program, &mut d);
        let me = table.thread(&mut d, family);
        let place = table.location(&mut d, family, &me);
        table.know(eq(place, self.program.family(family).entry.index() as i64));
        let validator = &*self;
        let known = &mut table;
        let (index, span) = (&me, self.program.family(family).span);
        let paths = d.explore(|d| validator.first(d, known, family, index))?;
        let others = self.others(family)?;
        for Path { mut when, then } in paths {
            match then {
                Ok(Start::Related) => {}
                // No instance of the program starts like this.
                Ok(Start::Never) => continue,
                Ok(Start::Unrelated) => match self.impossible(&table, &d, when)? {
                    true => continue,
                    false => return self.unmatched(span, "a start with a value not foreseen"),
                },
                Err(NotLinear(why)) => return self.refused(span, &why),
            }
            let number = table.number(family, &me);
            let mut view = View {
                v: self,
                table: &mut table,
                d: &mut d,
                threads: vec![number; self.system.init.params.len()],
                sees: false,
            };
            let mut claims = Vec::new();
            for claim in self.claims() {
                if !others.contains(&cells(claim)) {
                    claims.push(view.formula(claim));
                }
            }
            let claims = claims.into_iter().collect::<Result<Vec<Formula>, String>>();
            match claims {
                Ok(claims) => when.push(not(&wattle_logic::and(claims))),
                Err(why) => return self.refused(span, &why),
            }
            if !self.impossible(&table, &d, when)? {
                return self.unmatched(span, "an initial state that is none in the system");
            }
        }
        Ok(())
    }

    fn claims(&self) -> &'a [array::Formula] {
        match &self.system.init.body {
            array::Formula::And(parts) => parts,
            one @ (array::Formula::Or(_)
            | array::Formula::Atom(_)
            | array::Formula::ForallOther { .. }) => std::slice::from_ref(one),
        }
    }

    /// Claims about cells that mean nothing for threads of the family, which can be made true.
    fn others(&self, family: FamilyId) -> Result<BTreeSet<Vec<u16>>, AuditError> {
        let mut foreign: BTreeSet<u16> = BTreeSet::new();
        for f in 0..self.program.families.len() {
            if f == family.index() {
                continue;
            }
            foreign.insert(self.relation.locations[f]);
            for held in &self.relation.registers[f] {
                foreign.extend(held.cells());
            }
        }
        for (region, held) in self.program.regions.iter().zip(&self.relation.regions) {
            let of_others = matches!(region.length, Length::PerThread(f) if f != family);
            if of_others {
                foreign.extend(held.iter().flat_map(|h| h.cells()));
            }
        }
        let mut claimed = BTreeSet::new();
        for claim in self.claims() {
            let read = cells(claim);
            if !read.iter().any(|c| foreign.contains(c)) {
                continue;
            }
            if !constant(claim) || !claimed.insert(read) {
                let why = "what `init` says of another family's cells is not simple";
                return self.refused(Span::NONE, why);
            }
        }
        Ok(claimed)
    }

    /// Fixes the variables that stand for what the thread sees at the start.
    fn first(
        &self,
        d: &mut Symbols,
        table: &mut Table<'a>,
        family: FamilyId,
        me: &Term,
    ) -> Result<Start, NotLinear> {
        let registers = &self.program.family(family).registers;
        for (r, register) in registers.iter().enumerate() {
            let id = Variable::Register(family, RegisterId::new(r));
            match self.begins_with(d, table, id, &register.init, me, family)? {
                Start::Related => {}
                other @ (Start::Never | Start::Unrelated) => return Ok(other),
            }
        }
        for (r, region) in self.program.regions.iter().enumerate() {
            let id = Variable::Region(RegionId::new(r));
            let elements = match region.length {
                Length::Scalar => vec![Term::constant(0)],
                Length::Array(n) => (0..i64::from(n)).map(Term::constant).collect(),
                Length::PerThread(f) if f == family => vec![me.clone()],
                Length::PerThread(_) => Vec::new(),
            };
            for index in elements {
                match self.begins_with(d, table, id, &region.init, &index, family)? {
                    Start::Related => {}
                    other @ (Start::Never | Start::Unrelated) => return Ok(other),
                }
            }
        }
        Ok(Start::Related)
    }

    /// The variable at the index starts with what the program says, where `self` is that index.
    fn begins_with(
        &self,
        d: &mut Symbols,
        table: &mut Table<'a>,
        id: Variable,
        init: &Init,
        index: &Term,
        family: FamilyId,
    ) -> Result<Start, NotLinear> {
        let mut actor = Actor {
            validator: self,
            table,
            family,
            me: index.clone(),
            registers: Vec::new(),
            writes: Vec::new(),
            needs_empty: Cell::new(false),
            fenced: false,
            assumed: Cell::new(false),
        };
        let given = match init {
            // Any value of the type: what the type does not let through is no start.
            Init::Any => Ok(Value::from(d.fresh())),
            Init::All(e) => e.evaluate(d, &mut |d: &mut Symbols, l| actor.leaf(d, l)),
            Init::Each(list) => {
                let length = u32::try_from(list.len()).unwrap_or(u32::MAX);
                match d.position(&Value::Number(index.clone()), length) {
                    Some(i) => {
                        list[i as usize].evaluate(d, &mut |d: &mut Symbols, l| actor.leaf(d, l))
                    }
                    None => return Ok(Start::Never),
                }
            }
        };
        let value = match given {
            Ok(v) => actor.admit(d, self.type_of(id), v),
            Err(e) => Err(e.into()),
        };
        let value = match value {
            Ok(v) => d.term(v),
            Err(Stuck::Refused(why)) => return Err(why),
            Err(Stuck::Fault(_) | Stuck::Full) => return Ok(Start::Never),
        };
        let held = self.held(id, table.element(id, index));
        let entry = self.program.family(family).entry;
        let within = match id {
            Variable::Register(f, r) => self.within(f, entry, r, &value),
            Variable::Region(_) => Formula::True,
        };
        let allowed = wattle_logic::and([table.allowed(held, &value), within]);
        if !d.decide(allowed) {
            return Ok(Start::Unrelated);
        }
        let variable = table.value(d, self, id, index);
        d.know(eq(variable, value));
        Ok(Start::Related)
    }
}

/// The cells that a formula reads.
fn cells(f: &array::Formula) -> Vec<u16> {
    let mut found = Vec::new();
    f.for_each_access(&mut |a| {
        if !found.contains(&a.cell) {
            found.push(a.cell);
        }
    });
    found
}

/// Whether the formula says that a cell is one of some constants.
fn constant(f: &array::Formula) -> bool {
    match f {
        array::Formula::Or(parts) => !parts.is_empty() && parts.iter().all(constant),
        array::Formula::And(_) | array::Formula::ForallOther { .. } => false,
        array::Formula::Atom(Literal { left, op, right }) => {
            let one = match left {
                array::Term::Read(_) => true,
                array::Term::Sum { parts, constant: 0 } => matches!(&parts[..], [(1, _)]),
                array::Term::Bool(_)
                | array::Term::Constructor(..)
                | array::Term::Thread(_)
                | array::Term::Sum { .. } => false,
            };
            let fixed = match right {
                array::Term::Bool(_) | array::Term::Constructor(..) | array::Term::Thread(_) => {
                    true
                }
                array::Term::Sum { parts, .. } => parts.is_empty(),
                array::Term::Read(_) => false,
            };
            one && fixed && *op == Comparison::Eq
        }
    }
}
