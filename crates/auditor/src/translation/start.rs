//! Initial states of the program are related to initial states of the system.
//!
//! `init` speaks of every thread alone, so one thread of each family is looked at. What it says of
//! cells that mean nothing for that thread (registers of another family) can be made true: each such
//! claim must be that one cell has one of some constants, and no cell has two claims.

use super::super::AuditError;
use super::super::symbols::{NotLinear, Path, Symbols, Value};
use super::system::Related;
use super::table::Table;
use super::world::Actor;
use super::{Validator, Variable};
use std::collections::BTreeSet;
use wattle_logic::{Formula, Term, and, eq, not};
use wattle_memory::rules::{Sight, Stuck, World};
use wattle_model::array::{self, Comparison, Literal};
use wattle_model::{Domain, FamilyId, Init, Length, RegionId, RegisterId, Span};

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
        let mut table = Table::new(self.program, self.relation, &mut d);
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
                Ok(true) => {}
                Ok(false) => match self.impossible(&table, &d, when)? {
                    true => continue,
                    false => return self.unmatched(span, "a start with a value not foreseen"),
                },
                Err(NotLinear(why)) => return self.refused(span, &why),
            }
            let number = table.number(family, &me);
            let threads = vec![number; self.system.init.params.len()];
            let mut view = Related::new(self, &mut table, &mut d, threads);
            let claims = self.system.init.body.conjuncts().iter();
            let claims = claims.filter(|c| !others.contains(&cells(c)));
            match claims
                .map(|c| view.formula(c))
                .collect::<Result<Vec<_>, _>>()
            {
                Ok(claims) => when.push(not(&and(claims))),
                Err(why) => return self.refused(span, &why),
            }
            if !self.impossible(&table, &d, when)? {
                return self.unmatched(span, "an initial state that is none in the system");
            }
        }
        Ok(())
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
        for claim in self.system.init.body.conjuncts() {
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

    /// Fixes the variables that stand for what the thread sees at the start; says whether they are what the relation
    /// allows.
    fn first(
        &self,
        d: &mut Symbols,
        table: &mut Table<'a>,
        family: FamilyId,
        me: &Term,
    ) -> Result<bool, NotLinear> {
        let mut all: Vec<(Variable, &Init, Term)> = Vec::new();
        for (r, register) in self.program.family(family).registers.iter().enumerate() {
            let id = Variable::Register(family, RegisterId::new(r));
            all.push((id, &register.init, me.clone()));
        }
        for (r, region) in self.program.regions.iter().enumerate() {
            let id = Variable::Region(RegionId::new(r));
            let length = match region.length {
                Length::Scalar => 1,
                Length::Array(n) => i64::from(n),
                Length::PerThread(f) => {
                    all.extend((f == family).then(|| (id, &region.init, me.clone())));
                    0
                }
            };
            all.extend((0..length).map(|i| (id, &region.init, Term::constant(i))));
        }
        for (id, init, index) in all {
            if !self.begins_with(d, table, id, init, &index, family)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The variable at the index starts with what the program says, where `self` is that index. A start that no
    /// instance has is a path that nobody takes.
    fn begins_with(
        &self,
        d: &mut Symbols,
        table: &mut Table<'a>,
        id: Variable,
        init: &Init,
        index: &Term,
        family: FamilyId,
    ) -> Result<bool, NotLinear> {
        let ty = table.type_of(id);
        let mut actor = Actor::new(self, table, family, index);
        let expr = match init {
            Init::Any => None,
            Init::All(e) => Some(e),
            Init::Each(list) => {
                let length = u32::try_from(list.len()).unwrap_or(u32::MAX);
                let Some(i) = d.position(&Value::Number(index.clone()), length) else {
                    d.know(Formula::False);
                    return Ok(true);
                };
                Some(&list[i as usize])
            }
        };
        // Any value of the type: what the type does not let through is no start.
        let given = match expr {
            None => Ok(Value::from(d.fresh())),
            Some(e) => e.evaluate(d, &mut |d: &mut Symbols, l| actor.leaf(d, l)),
        };
        let given = given.map_err(Stuck::from);
        let value = match given.and_then(|v| actor.admit(d, ty, v)) {
            Ok(v) => d.term(v),
            Err(Stuck::Refused(why)) => return Err(why),
            Err(Stuck::Fault(_) | Stuck::Full) => {
                d.know(Formula::False);
                return Ok(true);
            }
        };
        let within = match id {
            Variable::Register(f, r) => self.within(f, self.program.family(f).entry, r, &value),
            Variable::Region(_) => Formula::True,
        };
        let held = table.held(id, table.element(id, index));
        if !d.decide(and([table.allowed(held, &value), within])) {
            return Ok(false);
        }
        let variable = table.value(d, id, index);
        d.know(eq(variable, value));
        Ok(true)
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
        array::Formula::And(_) | array::Formula::Others { .. } => false,
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
