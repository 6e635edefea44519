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
use wattle_memory::rules::{Sight, World};
use wattle_model::array::{self, Comparison, Literal};
use wattle_model::{Domain, FamilyId, Init, Length, NoValue, RegionId, RegisterId, Span};

impl<'a> Validator<'a> {
    pub fn starts(&mut self) -> Result<(), AuditError> {
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
                Ok(true) => {}
                // No instance of the program starts like this.
                Ok(false) => continue,
                Err(NotLinear(why)) => return self.refused(span, &why),
            }
            let number = table.number(family, &me);
            let mut view = View {
                v: self,
                table: &mut table,
                d: &mut d,
                threads: vec![number; self.system.init.params.len()],
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
            if !self.impossible(&table, when)? {
                return self.wrong(span, "an initial state that is none in the system");
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

    /// Fixes the variables that stand for what the thread sees at the start; false where there is no
    /// such start.
    fn first(
        &self,
        d: &mut Symbols,
        table: &mut Table<'a>,
        family: FamilyId,
        me: &Term,
    ) -> Result<bool, NotLinear> {
        let registers = &self.program.family(family).registers;
        for (r, register) in registers.iter().enumerate() {
            let id = Variable::Register(family, RegisterId::new(r));
            if !self.begins_with(d, table, id, &register.init, me, me, family)? {
                return Ok(false);
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
                if !self.begins_with(d, table, id, &region.init, &index, &index, family)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    #[expect(clippy::too_many_arguments, reason = "one initial value has all these")]
    fn begins_with(
        &self,
        d: &mut Symbols,
        table: &mut Table<'a>,
        id: Variable,
        init: &Init,
        index: &Term,
        own: &Term,
        family: FamilyId,
    ) -> Result<bool, NotLinear> {
        let e = match init {
            Init::Any => {
                table.value(d, self, id, index);
                return Ok(true);
            }
            Init::All(e) => e,
            Init::Each(list) => {
                let length = u32::try_from(list.len()).unwrap_or(u32::MAX);
                match d.position(&Value::Number(index.clone()), length) {
                    Some(i) => &list[i as usize],
                    None => return Ok(false),
                }
            }
        };
        let mut actor = Actor {
            validator: self,
            table,
            family,
            me: own.clone(),
            registers: Vec::new(),
            writes: Vec::new(),
            needs_empty: Cell::new(false),
            fenced: false,
        };
        let value = e.evaluate(d, &mut |d: &mut Symbols, l| actor.leaf(d, l));
        let value = match value {
            Ok(v) => v,
            Err(NoValue::Error(_)) => return Ok(false),
            Err(NoValue::Refused(why)) => return Err(why),
        };
        let Ok(value) = actor.admit(d, self.type_of(id), value) else {
            return Ok(false);
        };
        let value = d.term(value);
        let held = self.held(id, table.element(id, index));
        // What the relation does not allow is no related state.
        let allowed = table.allowed(held, &value);
        if !d.decide(allowed) {
            return Err(NotLinear(
                "it starts with a value that was not foreseen".into(),
            ));
        }
        let variable = table.value(d, self, id, index);
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
