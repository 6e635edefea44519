//! What the property sees, and that whatever it forbids is bad in the system.

#[cfg(test)]
mod tests;
use super::super::AuditError;
use super::super::symbols::{NotLinear, Path, Symbols, Value};
use super::super::tuples::tuples;
use super::system::Related;
use super::table::Table;
use super::{Validator, Variable};
use std::collections::BTreeSet;
use wattle_logic::{Formula, Term, and, eq, ne, not, or};
use wattle_memory::FaultKind;
use wattle_memory::rules::Stuck;
use wattle_model::{
    Expr, FamilyId, LocationId, NoValue, Observation, Op1, Op2, PropertyKind, RegisterId, Span,
    ThreadIndex, ThreadRef,
};

impl Validator<'_> {
    /// Whether the property speaks of a label at the location.
    pub fn observed(&self, family: FamilyId, at: LocationId) -> bool {
        let labels = &self.program.family(family).locations[at.index()].labels;
        let here = |t: &ThreadRef, label: &String| t.family == family && labels.contains(label);
        self.looks_at(|o| matches!(o, Observation::At(t, label) if here(t, label)))
    }

    pub fn register_observed(&self, family: FamilyId, register: RegisterId) -> bool {
        let is = |t: &ThreadRef, r: &RegisterId| t.family == family && *r == register;
        self.looks_at(|o| matches!(o, Observation::Register(t, r) if is(t, r)))
    }

    fn looks_at(&self, what: impl Fn(&Observation) -> bool) -> bool {
        let mut found = false;
        self.for_each_observation(&mut |o| found |= what(o));
        found
    }

    fn for_each_observation(&self, visit: &mut dyn FnMut(&Observation)) {
        if let Some(p) = self.property {
            each(&p.condition.expr, visit);
        }
    }

    /// The labels at the location of which a violation may want the absence.
    pub fn absent(&self, family: FamilyId, at: LocationId) -> BTreeSet<String> {
        let mut wanted = BTreeSet::new();
        if let Some(p) = self.property {
            let violated_if = matches!(p.kind, PropertyKind::Never | PropertyKind::Reachable);
            absent(&p.condition.expr, Some(violated_if), family, &mut wanted);
        }
        let labels = &self.program.family(family).locations[at.index()].labels;
        wanted.retain(|l| labels.contains(l));
        wanted
    }

    /// Whatever the property forbids is bad in the system, and the system's axioms are true.
    pub fn forbidden(&mut self) -> Result<(), AuditError> {
        self.axioms()?;
        let Some(property) = self.property else {
            return Ok(());
        };
        let violated_if = match property.kind {
            PropertyKind::Never => true,
            PropertyKind::Always => false,
            PropertyKind::Finally | PropertyKind::Reachable => {
                return self.refused(property.span, "a property of final states");
            }
        };
        let mut d = Symbols::default();
        let mut table = Table::new(self.program, self.relation, &mut d);
        let (mut threads, mut numbers) = (Vec::new(), Vec::new());
        for i in &property.condition.indices {
            let index = table.thread(&mut d, i.family);
            let number = table.number(i.family, &index);
            for other in &numbers {
                table.know(ne(number.clone(), Term::clone(other)));
            }
            threads.push(index);
            numbers.push(number);
        }
        self.for_each_observation(&mut |o| {
            if let Observation::Register(t, _)
            | Observation::At(t, _)
            | Observation::Seen(t, _, _) = o
                && let ThreadIndex::Number(n) = t.index
            {
                // Threads that the property names are there.
                let index = i64::from(n).into();
                table.know(table.inside(t.family, &index));
                let number = table.number(t.family, &index);
                numbers.extend((!numbers.contains(&number)).then_some(number));
            }
        });
        let validator = &*self;
        let at = &threads;
        let known = &mut table;
        let paths = d.explore(|d| {
            let expr = &property.condition.expr;
            let value = validator.observe(d, known, at, expr)?;
            Ok::<Formula, Stuck<Value, NotLinear>>(d.formula(&value))
        })?;
        for Path { mut when, then } in paths {
            match then {
                Ok(holds) if violated_if => when.push(holds),
                Ok(holds) => when.push(not(&holds)),
                Err(Stuck::Refused(why)) => return self.refused(property.span, &why.0),
                // Without a value it is as good as violated.
                Err(Stuck::Fault(_) | Stuck::Full) => {}
            }
            for bad in &self.system.bad {
                for threads in tuples(&numbers, bad.params.len(), true) {
                    let mut view = Related::new(self, &mut table, &mut d, threads);
                    view.sees = true;
                    // What cannot be read is not known to be bad.
                    if let Ok(f) = view.formula(&bad.body) {
                        when.push(not(&and([view.different(), f])));
                    }
                }
            }
            if !self.impossible(&table, &d, when)? {
                return self.unmatched(property.span, "a violation that is none in the system");
            }
        }
        Ok(())
    }

    /// What the system takes for granted is so.
    fn axioms(&mut self) -> Result<(), AuditError> {
        let mut d = Symbols::default();
        let mut table = Table::new(self.program, self.relation, &mut d);
        if let Some(n) = self.system.threads {
            let other = ne(table.total.clone(), i64::from(n));
            if !self.impossible(&table, &d, vec![other])? {
                return self.unmatched(Span::NONE, "another number of threads");
            }
        }
        for axiom in &self.system.assumed {
            let threads = axiom.params.iter().map(|_| Term::from(d.fresh())).collect();
            let mut view = Related::new(self, &mut table, &mut d, threads);
            let query = match view.formula(&axiom.body) {
                Ok(f) => vec![view.different(), f],
                Err(why) => return self.refused(axiom.span, &why),
            };
            if !self.impossible(&table, &d, query)? {
                return self.unmatched(axiom.span, "an assumption of the system that is not true");
            }
        }
        Ok(())
    }

    fn observe(
        &self,
        d: &mut Symbols,
        table: &mut Table<'_>,
        threads: &[Term],
        e: &Expr<Observation>,
    ) -> Result<Value, Stuck<Value, NotLinear>> {
        e.evaluate(d, &mut |d: &mut Symbols, o| {
            self.observation(d, table, threads, o)
        })
    }

    fn observation(
        &self,
        d: &mut Symbols,
        table: &mut Table<'_>,
        threads: &[Term],
        o: &Observation,
    ) -> Result<Value, Stuck<Value, NotLinear>> {
        let thread = |t: &ThreadRef| match t.index {
            ThreadIndex::Variable(i) => threads[i.index()].clone(),
            ThreadIndex::Number(n) => Term::constant(i64::from(n)),
        };
        Ok(Value::Number(match o {
            Observation::Cell(r, index) | Observation::Seen(_, r, index) => {
                let mut reader = None;
                if let Observation::Seen(t, ..) = o {
                    let index = thread(t);
                    reader = Some(table.number(t.family, &index));
                }
                let index = self.observe(d, table, threads, index)?;
                let index = Value::Number(d.term(index));
                let found = table.position(d, *r, &index);
                match (found, reader) {
                    (Some(index), None) => table.value(d, Variable::Region(*r), &index),
                    (Some(index), Some(reader)) => match table.seen(d, *r, &index, &reader) {
                        Some(value) => value,
                        None => {
                            let why = "what a thread sees of threads is not treated";
                            return Err(NoValue::Refused(NotLinear(why.into())).into());
                        }
                    },
                    (None, _) => return Err(FaultKind::IndexOutOfRange { index, length: 0 }.into()),
                }
            }
            Observation::Register(t, r) => {
                let index = thread(t);
                table.value(d, Variable::Register(t.family, *r), &index)
            }
            Observation::At(t, label) => {
                let index = thread(t);
                let place = table.location(d, t.family, &index);
                let locations = self.program.family(t.family).locations.iter().enumerate();
                let here = locations.filter(|(_, l)| l.labels.contains(label));
                let here = here.map(|(l, _)| eq(place.clone(), l as i64));
                return Ok(Value::Truth(or(here)));
            }
            Observation::Index(i) => threads[i.index()].clone(),
            Observation::Count(f) => table.counts[f.index()].clone(),
            Observation::Memory(_) | Observation::AddressOf(_) => {
                let why = NotLinear("addresses are not treated".into());
                return Err(NoValue::Refused(why).into());
            }
        }))
    }
}

/// Everything that is looked at, in indexes too.
fn each(e: &Expr<Observation>, visit: &mut dyn FnMut(&Observation)) {
    e.for_each_atom(&mut |o| {
        visit(o);
        match o {
            Observation::Cell(_, index)
            | Observation::Seen(_, _, index)
            | Observation::Memory(index) => each(index, visit),
            Observation::AddressOf(_)
            | Observation::Register(..)
            | Observation::At(..)
            | Observation::Index(_)
            | Observation::Count(_) => {}
        }
    });
}

/// Labels of the family whose absence makes the expression come out as wanted (either way, if
/// `wanted` is not known).
fn absent(
    e: &Expr<Observation>,
    wanted: Option<bool>,
    family: FamilyId,
    found: &mut BTreeSet<String>,
) {
    match e {
        Expr::Atom(Observation::At(t, label)) => {
            if t.family == family && wanted != Some(true) {
                found.insert(label.clone());
            }
        }
        Expr::Atom(
            Observation::Cell(_, index)
            | Observation::Seen(_, _, index)
            | Observation::Memory(index),
        ) => {
            absent(index, None, family, found);
        }
        Expr::Const(_) | Expr::Atom(_) => {}
        Expr::Unary(Op1::Not, a) => absent(a, wanted.map(|w| !w), family, found),
        Expr::Unary(_, a) => absent(a, None, family, found),
        Expr::Binary(Op2::And | Op2::Or, a, b) => {
            absent(a, wanted, family, found);
            absent(b, wanted, family, found);
        }
        Expr::Binary(_, a, b) => {
            absent(a, None, family, found);
            absent(b, None, family, found);
        }
        Expr::Ite(c, a, b) => {
            absent(c, None, family, found);
            absent(a, wanted, family, found);
            absent(b, wanted, family, found);
        }
    }
}
