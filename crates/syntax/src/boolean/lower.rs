//! [`File`] to a model: variables are 0 or 1, a thread per process, one `always` per assertion.

use super::ast::{File, Labelled, Leaf, Process, Statement, Value};
use crate::diagnostics::{Diagnostic, nearest};
use crate::flow::{Flow, junction};
use crate::tokens::{MAX_ERRORS, Named, clip};
use indexmap::IndexMap;
use std::collections::BTreeMap;
use wattle_model::program::{Action, Local, Register};
use wattle_model::{
    Condition, Count, Expr, Family, FamilyId, Init, Length, LocationId, Observation, Op2, Place,
    Program, Property, PropertyKind, Region, RegionId, RegisterId, Section, Span, ThreadIndex,
    ThreadRef, Type,
};

const BIT: Type = Type::Range { lo: 0, hi: 1 };

type Shared = IndexMap<String, Region>;

pub(super) fn program(file: &File, diagnostics: &mut Vec<Diagnostic>) -> Option<Program> {
    let mut out = Reports(diagnostics);
    let mut shared = shared(file, &mut out);
    let parts = file.assumed.iter().map(|(e, _)| e.clone()).collect();
    let assumed = junction(Op2::And, parts).filter(|e| e.as_const() != Some(1));
    // Whoever comes first looks whether this is a beginning.
    let begun = assumed.is_some().then(|| {
        let mut name = "begun".to_string();
        while shared.contains_key(&name) {
            name.push('_');
        }
        shared.insert(name.clone(), region(&name, Init::default(), Span::NONE));
        RegionId::new(shared.len() - 1)
    });
    let mut families: Vec<Family> = Vec::new();
    for p in &file.processes {
        if file.processes.iter().filter(|o| o.id == p.id).count() > 1 {
            let message = format!("two processes have the number {}", p.id);
            out.push(Diagnostic::error(p.span, message));
        }
        let start = begun.zip(assumed.as_ref());
        families.push(Lower::family(p, file, &shared, start, &mut out));
    }
    let mut properties = Vec::new();
    for (e, span) in &file.assertions {
        let seen = observed(e, file, &shared, &families, &mut out);
        let Some(mut expr) = seen else {
            continue;
        };
        if let Some(begun) = begun {
            let begun = Expr::Atom(Observation::Cell(begun, Box::new(Expr::Const(0))));
            let not_yet = Expr::binary(Op2::Eq, begun, Expr::Const(0));
            expr = Expr::binary(Op2::Or, not_yet, expr);
        }
        properties.push(Property {
            kind: PropertyKind::Always,
            condition: Condition {
                indices: Vec::new(),
                expr,
            },
            span: *span,
        });
    }
    (!families.is_empty()).then(|| Program {
        regions: shared.into_values().collect(),
        families,
        properties,
        temporal: Vec::new(),
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

    fn unknown<'n>(
        &mut self,
        (name, span): &Named,
        what: &str,
        known: impl Iterator<Item = &'n str>,
    ) {
        let mut d = Diagnostic::error(*span, format!("unknown {what} `{}`", clip(name)));
        d.hint = nearest(name, known).map(|n| format!("did you mean `{n}`?"));
        self.push(d);
    }
}

fn region(name: &str, init: Init, span: Span) -> Region {
    Region {
        name: name.to_string(),
        length: Length::Scalar,
        ty: BIT,
        init,
        span,
    }
}

fn shared(file: &File, out: &mut Reports<'_>) -> Shared {
    let mut shared = Shared::new();
    for (name, span) in &file.shared {
        let twice = shared.insert(name.clone(), region(name, Init::Any, *span));
        if twice.is_some() {
            let message = format!("the variable `{}` is declared twice", clip(name));
            out.push(Diagnostic::error(*span, message));
        }
    }
    for (named, value) in &file.init {
        let init = match value {
            Value::Any => Init::Any,
            Value::Is(Expr::Const(c)) => Init::All(Expr::Const(*c)),
            Value::Is(_) | Value::Choose(..) => {
                let message = format!(
                    "the initial value of `{}` is not a constant",
                    clip(&named.0)
                );
                out.push(Diagnostic::error(named.1, message).expected("0, 1 or `*`"));
                continue;
            }
        };
        match shared.get_mut(&named.0) {
            Some(region) => region.init = init,
            None => out.unknown(named, "shared variable", shared.keys().map(String::as_str)),
        }
    }
    shared
}

/// One process on its way to a family.
struct Lower<'a, 'd> {
    shared: &'a Shared,
    registers: Vec<Register>,
    locals: IndexMap<String, RegisterId>,
    /// Where values of shared variables are read to.
    read: BTreeMap<usize, RegisterId>,
    chosen: Option<RegisterId>,
    flow: Flow,
    out: &'a mut Reports<'d>,
}

impl Lower<'_, '_> {
    fn family(
        p: &Process,
        file: &File,
        shared: &Shared,
        start: Option<(RegionId, &Expr<Leaf>)>,
        out: &mut Reports<'_>,
    ) -> Family {
        let mut lower = Lower {
            shared,
            registers: Vec::new(),
            locals: IndexMap::new(),
            read: BTreeMap::new(),
            chosen: None,
            flow: Flow::default(),
            out,
        };
        for (name, span) in &file.local {
            let id = lower.register(name.clone(), *span);
            lower.locals.insert(name.clone(), id);
        }
        let entry = lower.flow.location();
        let mut at = entry;
        if let Some((begun, assumed)) = start {
            at = lower.flow.location();
            lower.begin(begun, assumed, entry, at, p.span);
        }
        let end = lower.flow.location();
        lower.body(&p.body, at, end);
        let out = lower.out;
        let graph = lower.flow.finish(entry, |flow, label, span| {
            out.unknown(&(label.to_string(), span), "label", flow.label_names());
        });
        let mut name = format!("p{}", p.id);
        while shared.contains_key(&name) {
            name.push('_');
        }
        Family {
            name,
            count: Count::One,
            registers: lower.registers,
            locations: graph.locations,
            steps: graph.steps,
            entry: graph.entry,
            span: p.span,
        }
    }

    /// `if (!begun) { assume(…); begun = 1; }`, at once.
    fn begin(
        &mut self,
        begun: RegionId,
        assumed: &Expr<Leaf>,
        from: LocationId,
        to: LocationId,
        span: Span,
    ) {
        let first = self
            .flow
            .then(from, Action::AtomicBegin(Section::Drained), span);
        let (known, register) = self.look(begun.index(), first, span);
        let known_to = self.flow.location();
        let seen = |v| {
            Expr::binary(
                Op2::Eq,
                Expr::Atom(Local::Register(register)),
                Expr::Const(v),
            )
        };
        self.flow
            .step(known, known_to, Action::Assume(seen(1)), span);
        let look = self.flow.then(known, Action::Assume(seen(0)), span);
        if let Some((at, e)) = self.test(assumed, look, span) {
            let at = self.flow.then(at, Action::Assume(e), span);
            let set = Action::Store {
                place: place(begun.index()),
                value: Expr::Const(1),
            };
            self.flow.step(at, known_to, set, span);
        }
        self.flow.step(known_to, to, Action::AtomicEnd, span);
    }

    fn register(&mut self, name: String, span: Span) -> RegisterId {
        let id = RegisterId::new(self.registers.len());
        self.registers.push(Register {
            name,
            ty: BIT,
            init: Init::default(),
            span,
        });
        id
    }

    /// A register of our own.
    fn fresh(&mut self, name: &str) -> RegisterId {
        let mut name = format!("r_{name}");
        let taken = |name: &str, l: &Self| {
            l.shared.contains_key(name) || l.registers.iter().any(|r| r.name == name)
        };
        while taken(&name, self) {
            name.push('_');
        }
        self.register(name, Span::NONE)
    }

    fn body(&mut self, body: &[Labelled], from: LocationId, to: LocationId) {
        let inside = self.sections(body);
        let mut at = from;
        for (i, s) in body.iter().enumerate() {
            let next = match i + 1 == body.len() {
                true => to,
                false => self.flow.location(),
            };
            if let Some((label, span)) = &s.label
                && let Some(before) = self.flow.label(at, label, *span)
            {
                let message = format!("the label `{}` is defined twice", clip(label));
                let hint = format!("it is already at line {}", before.line);
                self.out.push(Diagnostic::error(*span, message).hint(hint));
            }
            self.flow.starts(at, s.span);
            self.statement(s, inside[i], at, next);
            at = next;
        }
        if body.is_empty() {
            self.flow.step(from, to, Action::Skip, Span::NONE);
        }
    }

    /// For each statement, whether it is inside of a section.
    fn sections(&mut self, body: &[Labelled]) -> Vec<bool> {
        let label = |s: &Labelled| s.label.as_ref().map(|(name, _)| name.clone());
        let labels: BTreeMap<String, usize> = (body.iter().enumerate())
            .filter_map(|(i, s)| Some((label(s)?, i)))
            .collect();
        let mut inside: Vec<Option<bool>> = vec![None; body.len()];
        let mut work = vec![(0, false, Span::NONE)];
        while let Some((i, now, from)) = work.pop() {
            let Some(s) = body.get(i) else { continue };
            match inside[i] {
                Some(before) if before == now => continue,
                Some(_) => {
                    let message = "this is reached inside and outside of an atomic section";
                    let place = if from.is_some() { from } else { s.span };
                    self.out.push(Diagnostic::error(place, message));
                    continue;
                }
                None => inside[i] = Some(now),
            }
            let to = |label: &Named| labels.get(&label.0).copied().unwrap_or(usize::MAX);
            match &s.statement {
                Statement::AtomicBegin if now => {
                    let message = "a section inside of a section";
                    self.out.push(Diagnostic::error(s.span, message));
                }
                Statement::AtomicEnd if !now => {
                    let message = "there is no section to end";
                    self.out.push(Diagnostic::error(s.span, message));
                }
                Statement::AtomicBegin => work.push((i + 1, true, s.span)),
                Statement::AtomicEnd => work.push((i + 1, false, s.span)),
                Statement::Goto(label) => work.push((to(label), now, s.span)),
                Statement::Maybe(label) => {
                    work.push((i + 1, now, s.span));
                    work.push((to(label), now, s.span));
                }
                Statement::Abort(_) => {}
                Statement::Set(..)
                | Statement::Load(..)
                | Statement::Nop
                | Statement::Assume(_) => work.push((i + 1, now, s.span)),
            }
        }
        inside.into_iter().map(|i| i.unwrap_or(false)).collect()
    }

    fn statement(&mut self, s: &Labelled, inside: bool, from: LocationId, to: LocationId) {
        let span = s.span;
        let action = match &s.statement {
            Statement::Nop => Action::Skip,
            Statement::AtomicBegin => Action::AtomicBegin(Section::Drained),
            Statement::AtomicEnd => Action::AtomicEnd,
            Statement::Goto((label, at)) => return self.flow.jump(from, label, *at),
            Statement::Maybe((label, at)) => {
                let jumps = self.flow.then(from, Action::Skip, span);
                self.flow.jump(jumps, label, *at);
                Action::Skip
            }
            Statement::Abort(message) => {
                let assert = Action::Assert {
                    condition: Expr::FALSE,
                    message: Some(message.clone()),
                };
                self.flow.then(from, assert, span);
                return;
            }
            Statement::Set(..) | Statement::Load(..) | Statement::Assume(_) => {
                return self.at_once(s, inside, from, to);
            }
        };
        self.flow.step(from, to, action, span);
    }

    /// What may touch shared variables.
    fn at_once(&mut self, s: &Labelled, inside: bool, from: LocationId, to: LocationId) {
        let span = s.span;
        let at = match inside {
            true => from,
            false => self
                .flow
                .then(from, Action::AtomicBegin(Section::Drained), span),
        };
        let last = match &s.statement {
            Statement::Load(local, variable) => {
                let (register, region) = (self.local(local), self.variable(variable));
                let both = register.zip(region);
                both.map(|(register, r)| {
                    (
                        at,
                        Action::Load {
                            register,
                            place: place(r),
                        },
                    )
                })
            }
            Statement::Assume(e) => {
                let test = self.test(e, at, span);
                test.map(|(at, e)| (at, Action::Assume(e)))
            }
            Statement::Set(name, value) => self.set(name, value, at, span),
            Statement::Goto(_)
            | Statement::Maybe(_)
            | Statement::Nop
            | Statement::AtomicBegin
            | Statement::AtomicEnd
            | Statement::Abort(_) => None,
        };
        let Some((at, action)) = last else { return };
        match inside {
            true => self.flow.step(at, to, action, span),
            false => {
                let done = self.flow.then(at, action, span);
                self.flow.step(done, to, Action::AtomicEnd, span);
            }
        }
    }

    /// The last step of an assignment, after those that read and choose.
    fn set(
        &mut self,
        name: &Named,
        value: &Value,
        mut at: LocationId,
        span: Span,
    ) -> Option<(LocationId, Action)> {
        let value = match value {
            Value::Is(e) => {
                let (after, e) = self.test(e, at, span)?;
                at = after;
                e
            }
            Value::Any => {
                let register = self.choice();
                at = self.flow.then(at, havoc(register), span);
                Expr::Atom(Local::Register(register))
            }
            Value::Choose(yes, no) => {
                let (after, yes) = self.test(yes, at, span)?;
                let (after, no) = self.test(no, after, span)?;
                let register = self.choice();
                at = self.flow.then(after, havoc(register), span);
                let chosen = || Expr::Atom(Local::Register(register));
                // True: not where only `no` says so. False: not where `yes` does.
                let may = Expr::binary(Op2::Or, yes.clone(), no.negate());
                let is = |v| Expr::binary(Op2::Eq, chosen(), Expr::Const(v));
                let both = [
                    Expr::binary(Op2::And, is(1), may),
                    Expr::binary(Op2::And, is(0), yes.negate()),
                ];
                let [one, zero] = both;
                let fits = Expr::binary(Op2::Or, one, zero);
                at = self.flow.then(at, Action::Assume(fits), span);
                chosen()
            }
        };
        if let Some(register) = self.locals.get(&name.0).copied() {
            return Some((at, Action::Assign { register, value }));
        }
        let place = place(self.variable(name)?);
        Some((at, Action::Store { place, value }))
    }

    fn choice(&mut self) -> RegisterId {
        match self.chosen {
            Some(register) => register,
            None => {
                let register = self.fresh("choice");
                self.chosen = Some(register);
                register
            }
        }
    }

    /// Reads a shared variable.
    fn look(&mut self, region: usize, at: LocationId, span: Span) -> (LocationId, RegisterId) {
        let register = match self.read.get(&region) {
            Some(register) => *register,
            None => {
                let name = self.shared.get_index(region).map_or("", |(name, _)| name);
                let register = self.fresh(name);
                self.read.insert(region, register);
                register
            }
        };
        let load = Action::Load {
            register,
            place: place(region),
        };
        (self.flow.then(at, load, span), register)
    }

    /// A condition over registers, after the steps that read the shared variables in it.
    fn test(
        &mut self,
        e: &Expr<Leaf>,
        mut at: LocationId,
        span: Span,
    ) -> Option<(LocationId, Expr<Local>)> {
        let mut failed = false;
        let mut looked: BTreeMap<usize, RegisterId> = BTreeMap::new();
        let found: Result<_, ()> = e.substitute(&mut |leaf| {
            let register = match leaf {
                Leaf::Name(name, at_span) => match self.locals.get(name).copied() {
                    Some(register) => Some(register),
                    None => {
                        self.variable(&(name.clone(), *at_span))
                            .map(|r| match looked.get(&r) {
                                Some(register) => *register,
                                None => {
                                    let (after, register) = self.look(r, at, span);
                                    at = after;
                                    looked.insert(r, register);
                                    register
                                }
                            })
                    }
                },
                Leaf::At(_, _, at_span) => {
                    let d = Diagnostic::error(*at_span, "a position in a process");
                    let hint = "positions can be named only in `assert(always(…))`";
                    self.out.push(d.hint(hint));
                    None
                }
            };
            failed |= register.is_none();
            Ok(register.map_or(Expr::FALSE, |r| is_true(Expr::Atom(Local::Register(r)))))
        });
        found.ok().filter(|_| !failed).map(|e| (at, e))
    }

    fn local(&mut self, named: &Named) -> Option<RegisterId> {
        let found = self.locals.get(&named.0).copied();
        if found.is_none() {
            let known = self.locals.keys().map(String::as_str);
            self.out.unknown(named, "local variable", known);
        }
        found
    }

    fn variable(&mut self, named: &Named) -> Option<usize> {
        let found = self.shared.get_index_of(&named.0);
        if found.is_none() {
            let known = self.shared.keys().map(String::as_str);
            self.out.unknown(named, "shared variable", known);
        }
        found
    }
}

fn place(region: usize) -> Place {
    Place::Region(RegionId::new(region), Expr::Const(0))
}

fn havoc(register: RegisterId) -> Action {
    let range = Some((0, 1));
    Action::Havoc { register, range }
}

fn is_true<A>(e: Expr<A>) -> Expr<A> {
    Expr::binary(Op2::Eq, e, Expr::Const(1))
}

/// An assertion over memory and positions.
fn observed(
    e: &Expr<Leaf>,
    file: &File,
    shared: &Shared,
    families: &[Family],
    out: &mut Reports<'_>,
) -> Option<Expr<Observation>> {
    let mut failed = false;
    let found: Result<_, ()> = e.substitute(&mut |leaf| {
        let seen = match leaf {
            Leaf::Name(name, span) => {
                let region = shared.get_index_of(name);
                if region.is_none() {
                    let known = shared.keys().map(String::as_str);
                    out.unknown(&(name.clone(), *span), "shared variable", known);
                }
                region.map(|r| {
                    let cell = Observation::Cell(RegionId::new(r), Box::new(Expr::Const(0)));
                    is_true(Expr::Atom(cell))
                })
            }
            Leaf::At(id, label, span) => {
                let process = file.processes.iter().position(|p| p.id == *id);
                let known = |p: usize| {
                    let mut locations = families[p].locations.iter();
                    locations.any(|l| l.labels.contains(label))
                };
                match process {
                    Some(p) if known(p) => {
                        let thread = ThreadRef {
                            family: FamilyId::new(p),
                            index: ThreadIndex::Number(0),
                        };
                        Some(Expr::Atom(Observation::At(thread, label.clone())))
                    }
                    Some(_) => {
                        let message = format!("process {id} has no label `{}`", clip(label));
                        out.push(Diagnostic::error(*span, message));
                        None
                    }
                    None => {
                        let message = format!("there is no process {id}");
                        out.push(Diagnostic::error(*span, message));
                        None
                    }
                }
            }
        };
        failed |= seen.is_none();
        Ok(seen.unwrap_or(Expr::FALSE))
    });
    found.ok().filter(|_| !failed)
}
