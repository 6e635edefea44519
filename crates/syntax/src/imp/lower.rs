//! [`File`] to a model, along the translation of Fig. 2.4.

use super::ast::{Basic, File, Labelled, Leaf, Process};
use crate::diagnostics::{Diagnostic, nearest};
use crate::flow::Flow;
use crate::infix::Asserted;
use crate::tokens::{MAX_ERRORS, Named, clip};
use indexmap::IndexMap;
use std::collections::BTreeMap;
use wattle_model::program::{Action, Local, Register};
use wattle_model::{
    Condition, Count, Expr, Family, FamilyId, Fence, Formula, Init, Length, LocationId,
    Observation, Op2, Place, Program, Property, Region, RegionId, RegisterId, Section, Span,
    Temporal, TemporalKind, ThreadIndex, ThreadRef, Type,
};

pub(super) fn program(file: &File, diagnostics: &mut Vec<Diagnostic>) -> Option<Program> {
    let mut out = Reports(diagnostics);
    let mut shared: IndexMap<String, Region> = IndexMap::new();
    for ((name, span), value) in &file.variables {
        if shared.contains_key(name) {
            let message = format!("the variable `{}` is declared twice", clip(name));
            out.push(Diagnostic::error(*span, message));
        }
        let region = Region {
            name: name.clone(),
            length: Length::Scalar,
            ty: Type::Int,
            init: Init::All(Expr::Const(*value)),
            span: *span,
        };
        shared.insert(name.clone(), region);
    }
    let mut families: Vec<Family> = Vec::new();
    // Labels are unique in the whole program, so that a property may name one alone.
    let mut labels: BTreeMap<String, Span> = BTreeMap::new();
    for p in &file.processes {
        let (name, span) = &p.name;
        if shared.contains_key(name) || families.iter().any(|f| f.name == *name) {
            let message = format!("the name `{}` is taken", clip(name));
            let d = Diagnostic::error(*span, message);
            out.push(d.expected("a name for the process that nothing else has"));
        }
        let family = Lower::family(p, file.indivisible, &shared, &mut labels, &mut out);
        families.push(family);
    }
    let mut properties = Vec::new();
    let mut condition = |e: &Expr<Leaf>| {
        let mut failed = false;
        let expr: Result<_, ()> = e.substitute(&mut |leaf| {
            let found = observe(leaf, &shared, &families, &mut out);
            failed |= found.is_none();
            Ok(found.unwrap_or(Expr::FALSE))
        });
        let indices = Vec::new();
        let condition = expr.ok().map(|expr| Condition { indices, expr });
        condition.filter(|_| !failed)
    };
    for (kind, e, span) in &file.properties {
        properties.extend(condition(e).map(|condition| Property {
            kind: *kind,
            condition,
            span: *span,
        }));
    }
    let mut temporal = Vec::new();
    for (asserted, span) in &file.demands {
        let now = |c: Condition| Formula::Now(c.expr);
        let kind = match asserted {
            Asserted::Always(e) => {
                let always = |c| Formula::Globally(Box::new(now(c)));
                condition(e).map(|c| TemporalKind::Ltl(Vec::new(), always(c)))
            }
            Asserted::Eventually(e) => {
                let later = |c| Formula::Finally(Box::new(now(c)));
                condition(e).map(|c| TemporalKind::Ltl(Vec::new(), later(c)))
            }
            Asserted::Leads(from, to) => {
                let both = condition(from).zip(condition(to));
                both.map(|(from, to)| TemporalKind::LeadsTo(from, to.expr))
            }
            Asserted::Progress => Some(TemporalKind::Progress),
        };
        temporal.extend(kind.map(|kind| Temporal { kind, span: *span }));
    }
    (!families.is_empty()).then(|| Program {
        regions: shared.into_values().collect(),
        families,
        properties,
        temporal,
        predicates: Vec::new(),
    })
}

/// Messages, up to a limit.
struct Reports<'d>(&'d mut Vec<Diagnostic>);

impl Reports<'_> {
    fn push(&mut self, d: Diagnostic) {
        if self.0.len() < MAX_ERRORS {
            self.0.push(d);
        }
    }
}

fn observe(
    leaf: &Leaf,
    shared: &IndexMap<String, Region>,
    families: &[Family],
    out: &mut Reports<'_>,
) -> Option<Expr<Observation>> {
    match leaf {
        Leaf::Variable(name, span) => {
            let r = variable(name, *span, shared, out)?;
            Some(Expr::Atom(Observation::Cell(r, Box::new(Expr::Const(0)))))
        }
        Leaf::At(process, label, span) => {
            let Some(i) = families.iter().position(|f| f.name == *process) else {
                let message = format!("there is no process `{}`", clip(process));
                let mut d = Diagnostic::error(*span, message);
                d.hint = near(process, families.iter().map(|f| &f.name));
                out.push(d);
                return None;
            };
            let mut labels = families[i].locations.iter().flat_map(|l| &l.labels);
            if !labels.clone().any(|l| l == label) {
                let (process, shown) = (clip(process), clip(label));
                let mut d =
                    Diagnostic::error(*span, format!("process `{process}` has no label `{shown}`"));
                d.hint = near(label, &mut labels);
                out.push(d);
                return None;
            }
            let thread = ThreadRef {
                family: FamilyId::new(i),
                index: ThreadIndex::Number(0),
            };
            Some(Expr::Atom(Observation::At(thread, label.clone())))
        }
    }
}

fn variable(
    name: &str,
    span: Span,
    shared: &IndexMap<String, Region>,
    out: &mut Reports<'_>,
) -> Option<RegionId> {
    let found = shared.get_index_of(name);
    if found.is_none() {
        let mut d = Diagnostic::error(span, format!("unknown variable `{}`", clip(name)));
        d.expected = Some("a variable declared after `variables`".into());
        d.hint = near(name, shared.keys());
        out.push(d);
    }
    found.map(RegionId::new)
}

fn near<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Option<String> {
    if name.chars().count() < 2 {
        return None;
    }
    let near = nearest(name, known.map(String::as_str))?;
    Some(format!("did you mean `{near}`?"))
}

fn has_variables(e: &Expr<Leaf>) -> bool {
    let mut found = false;
    e.for_each_atom(&mut |leaf| found |= matches!(leaf, Leaf::Variable(..)));
    found
}

/// One process on its way to a family.
struct Lower<'a, 'd> {
    /// What loads is one step with what it loads for (the first half of Fig. 2.8).
    indivisible: bool,
    shared: &'a IndexMap<String, Region>,
    labels: &'a mut BTreeMap<String, Span>,
    /// The copies of shared variables.
    copies: BTreeMap<RegionId, RegisterId>,
    registers: Vec<Register>,
    flow: Flow,
    out: &'a mut Reports<'d>,
}

impl Lower<'_, '_> {
    fn family(
        p: &Process,
        indivisible: bool,
        shared: &IndexMap<String, Region>,
        labels: &mut BTreeMap<String, Span>,
        out: &mut Reports<'_>,
    ) -> Family {
        let mut lower = Lower {
            indivisible,
            shared,
            labels,
            copies: BTreeMap::new(),
            registers: Vec::new(),
            flow: Flow::default(),
            out,
        };
        let entry = lower.flow.location();
        let end = lower.flow.location();
        lower.list(&p.body, entry, end);
        let graph = lower.flow.finish(entry, |_, _, _| {});
        Family {
            name: p.name.0.clone(),
            count: Count::One,
            registers: lower.registers,
            locations: graph.locations,
            steps: graph.steps,
            entry: graph.entry,
            span: p.name.1,
        }
    }

    fn list(&mut self, list: &[Labelled], from: LocationId, to: LocationId) {
        let mut at = from;
        for (i, s) in list.iter().enumerate() {
            let next = match i + 1 == list.len() {
                true => to,
                false => self.flow.location(),
            };
            self.labelled(s, at, next);
            at = next;
        }
        if list.is_empty() {
            self.flow.merge(from, to);
        }
    }

    fn labelled(&mut self, s: &Labelled, from: LocationId, to: LocationId) {
        if let Some((label, span)) = &s.label {
            if let Some(before) = self.labels.get(label) {
                let message = format!("the label `{}` is defined twice", clip(label));
                let hint = format!("it is already at line {}", before.line);
                self.out.push(Diagnostic::error(*span, message).hint(hint));
            }
            self.labels.insert(label.clone(), *span);
            self.flow.label(from, label, *span);
        }
        self.flow.starts(from, s.span);
        match &s.statement {
            Basic::Skip => self.flow.merge(from, to),
            Basic::Fence => {
                let action = Action::Fence(Fence::Full);
                self.flow.step(from, to, action, s.span);
            }
            Basic::Assign(variable, value) => self.assign(variable, value, s.span, from, to),
            Basic::If(condition, then, otherwise) => {
                let Some((at, c)) = self.condition(condition, from, s.span) else {
                    return;
                };
                match c.as_const() {
                    Some(0) => self.list(otherwise, at, to),
                    Some(_) => self.list(then, at, to),
                    None => {
                        self.arm(c.clone(), then, s.span, at, to);
                        self.arm(c.negate(), otherwise, s.span, at, to);
                    }
                }
            }
            Basic::While(condition, body) => {
                let Some((at, c)) = self.condition(condition, from, s.span) else {
                    return;
                };
                match c.as_const() {
                    Some(0) => self.flow.merge(from, to),
                    Some(_) => self.list(body, at, from),
                    None => {
                        self.arm(c.clone(), body, s.span, at, from);
                        self.flow.step(at, to, Action::Assume(c.negate()), s.span);
                    }
                }
            }
        }
    }

    fn arm(
        &mut self,
        c: Expr<Local>,
        list: &[Labelled],
        span: Span,
        at: LocationId,
        to: LocationId,
    ) {
        if list.is_empty() {
            self.flow.step(at, to, Action::Assume(c), span);
        } else {
            let start = self.flow.then(at, Action::Assume(c), span);
            self.list(list, start, to);
        }
    }

    fn assign(
        &mut self,
        name: &Named,
        value: &Expr<Leaf>,
        span: Span,
        from: LocationId,
        to: LocationId,
    ) {
        let region = variable(&name.0, name.1, self.shared, self.out);
        let together = self.indivisible && has_variables(value);
        let from = self.begin(together, from, span);
        let Some((at, value)) = self.copied(value, from, span) else {
            return;
        };
        if let Some(r) = region {
            let place = Place::Region(r, Expr::Const(0));
            let store = Action::Store { place, value };
            match together {
                true => {
                    let stored = self.flow.then(at, store, span);
                    self.flow.step(stored, to, Action::AtomicEnd, span);
                }
                false => self.flow.step(at, to, store, span),
            }
        }
    }

    /// The begin of what is one step, if it is to be one.
    fn begin(&mut self, together: bool, from: LocationId, span: Span) -> LocationId {
        match together {
            true => (self.flow).then(from, Action::AtomicBegin(Section::Drained), span),
            false => from,
        }
    }

    /// The steps that copy an expression's variables, then the expression over the copies.
    fn copied(
        &mut self,
        e: &Expr<Leaf>,
        from: LocationId,
        span: Span,
    ) -> Option<(LocationId, Expr<Local>)> {
        let mut order: Vec<RegionId> = Vec::new();
        let mut failed = false;
        let found: Result<_, ()> = e.substitute(&mut |leaf| {
            let region = match leaf {
                Leaf::Variable(name, span) => variable(name, *span, self.shared, self.out),
                Leaf::At(_, _, span) => {
                    let message = "a position of a process inside a process";
                    self.out.push(Diagnostic::error(*span, message));
                    None
                }
            };
            let Some(r) = region else {
                failed = true;
                return Ok(Expr::FALSE);
            };
            if !order.contains(&r) {
                order.push(r);
            }
            Ok(Expr::Atom(Local::Register(self.copy(r))))
        });
        let e = found.ok().filter(|_| !failed)?;
        let mut at = from;
        for r in order {
            let register = self.copy(r);
            let place = Place::Region(r, Expr::Const(0));
            at = self.flow.then(at, Action::Load { register, place }, span);
        }
        Some((at, e))
    }

    /// A condition: the value 1.
    fn condition(
        &mut self,
        e: &Expr<Leaf>,
        from: LocationId,
        span: Span,
    ) -> Option<(LocationId, Expr<Local>)> {
        let together = self.indivisible && has_variables(e);
        let from = self.begin(together, from, span);
        let (mut at, e) = self.copied(e, from, span)?;
        if together {
            at = self.flow.then(at, Action::AtomicEnd, span);
        }
        let e = match e {
            Expr::Const(c) => Expr::Const(i64::from(c == 1)),
            e if e.is_logical() => e,
            e => Expr::binary(Op2::Eq, e, Expr::Const(1)),
        };
        Some((at, e))
    }

    fn copy(&mut self, r: RegionId) -> RegisterId {
        if let Some(register) = self.copies.get(&r) {
            return *register;
        }
        let id = RegisterId::new(self.registers.len());
        let mut name = match self.shared.get_index(r.index()) {
            Some((name, _)) => format!("{name}_copy"),
            None => String::from("copy"),
        };
        while self.shared.contains_key(&name) || self.registers.iter().any(|x| x.name == name) {
            name.push('_');
        }
        self.registers.push(Register {
            name,
            ty: Type::Int,
            init: Init::default(),
            span: Span::NONE,
        });
        self.copies.insert(r, id);
        id
    }
}
