//! [`File`] to a model: a single-thread family per process, one property or demand per assertion.

use super::ast::{File, Instance, Labelled, Leaf, Process, Statement};
use super::kinds;
use crate::diagnostics::{Diagnostic, nearest, not_linear};
use crate::flow::Flow;
use crate::infix::Asserted;
use crate::tokens::{MAX_ERRORS, Named, clip};
use indexmap::IndexMap;
use std::collections::BTreeSet;
use wattle_model::program::{Action, Local, Register};
use wattle_model::{
    Condition, Count, Expr, Family, FamilyId, Fence, Formula, IndexId, IndexVariable, Init, Length,
    LocationId, Observation, Op2, Place, Program, Property, PropertyKind, Region, RegionId,
    RegisterId, Span, Temporal, TemporalKind, ThreadIndex, ThreadRef, Type,
};

/// The shared variables, by name.
type Shared = IndexMap<String, Region>;

pub(super) fn program(file: &File, diagnostics: &mut Vec<Diagnostic>) -> Option<Program> {
    let mut out = Reports(diagnostics);
    let shared = shared(file, &mut out);
    let mut families: Vec<Family> = Vec::new();
    for p in &file.processes {
        let mut name = format!("p{}", p.id);
        while shared.contains_key(&name) {
            name.push('_');
        }
        if families.iter().any(|f| f.name == name) {
            let message = format!("two processes have the number {}", p.id);
            out.push(Diagnostic::error(p.span, message));
            continue;
        }
        families.push(Lower::family(p, name, &shared, &mut out));
    }
    let mut properties = Vec::new();
    let seen = Seen {
        file,
        shared: &shared,
        families: &families,
    };
    let mut temporal = Vec::new();
    for (asserted, span) in &file.assertions {
        let mut condition = |e, indices: &mut Vec<IndexVariable>| {
            kinds::truth(e, *span, &mut out);
            seen.expr(e, None, indices, &mut out)
        };
        let mut indices = Vec::new();
        let kind = match asserted {
            Asserted::Always(e) => {
                if let Some(expr) = condition(e, &mut indices) {
                    properties.push(Property {
                        kind: PropertyKind::Always,
                        condition: Condition { indices, expr },
                        span: *span,
                    });
                }
                continue;
            }
            Asserted::Eventually(e) => condition(e, &mut indices).map(|e| {
                let later = Formula::Finally(Box::new(Formula::Now(e)));
                TemporalKind::Ltl(indices, later)
            }),
            Asserted::Leads(from, to) => {
                let from = condition(from, &mut indices);
                let to = condition(to, &mut indices);
                from.zip(to)
                    .map(|(expr, to)| TemporalKind::LeadsTo(Condition { indices, expr }, to))
            }
            Asserted::Progress => Some(TemporalKind::Progress),
        };
        temporal.extend(kind.map(|kind| Temporal { kind, span: *span }));
    }
    let mut predicates = Vec::new();
    for (e, inside, span) in &file.predicates {
        kinds::truth(e, *span, &mut out);
        if let Some(condition) = seen.condition(e, *inside, &mut out) {
            if !condition.expr.is_linear() {
                out.push(not_linear(*span));
            }
            predicates.push(condition);
        }
    }
    (!families.is_empty()).then(|| Program {
        regions: shared.into_values().collect(),
        families,
        properties,
        temporal,
        predicates,
    })
}

/// Messages, up to a limit.
pub(super) struct Reports<'d>(&'d mut Vec<Diagnostic>);

impl Reports<'_> {
    pub(super) fn push(&mut self, d: Diagnostic) {
        if self.0.len() < MAX_ERRORS {
            self.0.push(d);
        }
    }
}

fn shared(file: &File, out: &mut Reports<'_>) -> Shared {
    let mut shared = Shared::new();
    for i in &file.init {
        let (name, span) = &i.variable;
        let value: Result<Expr<Local>, ()> = i.value.substitute(&mut |_| Err(()));
        let init = match (&i.value, value) {
            (Expr::Atom(Leaf::Any(_)), _) => Init::Any,
            (_, Ok(Expr::Const(c))) => Init::All(Expr::Const(c)),
            _ => {
                let message = format!("the initial value of `{}` is not a constant", clip(name));
                out.push(Diagnostic::error(i.span, message).expected("a number or `*`"));
                Init::default()
            }
        };
        let region = Region {
            name: name.clone(),
            length: Length::Scalar,
            ty: Type::Int,
            init,
            span: *span,
        };
        // A later store counts, as it would if the block were run.
        shared.insert(name.clone(), region);
    }
    shared
}

/// One process on its way to a family.
struct Lower<'a, 'd> {
    shared: &'a Shared,
    registers: Vec<Register>,
    locals: IndexMap<String, RegisterId>,
    flow: Flow,
    out: &'a mut Reports<'d>,
}

impl Lower<'_, '_> {
    fn family(p: &Process, name: String, shared: &Shared, out: &mut Reports<'_>) -> Family {
        let mut lower = Lower {
            shared,
            registers: Vec::new(),
            locals: IndexMap::new(),
            flow: Flow::default(),
            out,
        };
        lower.assigned(&p.body);
        let entry = lower.flow.location();
        let end = lower.flow.location();
        lower.list(&p.body, entry, end);
        let out = lower.out;
        let graph = lower.flow.finish(entry, |flow, label, span| {
            let mut d = Diagnostic::error(span, format!("unknown label `{}`", clip(label)));
            d.expected = Some("a label of the same process".into());
            if label.chars().count() > 1 {
                let near = nearest(label, flow.label_names());
                d.hint = near.map(|n| format!("did you mean `{n}`?"));
            }
            out.push(d);
        });
        Family {
            name,
            count: p.count,
            registers: lower.registers,
            locations: graph.locations,
            steps: graph.steps,
            entry: graph.entry,
            span: p.span,
        }
    }

    /// Local variables are those that some statement assigns.
    fn assigned(&mut self, list: &[Labelled]) {
        for s in list {
            match &s.statement {
                Statement::Load((name, span), _) | Statement::Assign((name, span), _)
                    if !self.shared.contains_key(name) && !self.locals.contains_key(name) =>
                {
                    let id = self.register(name.clone(), *span);
                    self.locals.insert(name.clone(), id);
                }
                Statement::If(_, then, otherwise) => {
                    self.assigned(then);
                    self.assigned(otherwise);
                }
                _ => {}
            }
        }
    }

    fn register(&mut self, name: String, span: Span) -> RegisterId {
        let id = RegisterId::new(self.registers.len());
        self.registers.push(Register {
            name,
            ty: Type::Int,
            init: Init::default(),
            span,
        });
        id
    }

    fn list(&mut self, list: &[Labelled], from: LocationId, to: LocationId) {
        let mut at = from;
        for (i, s) in list.iter().enumerate() {
            let next = match i + 1 == list.len() {
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
            self.statement(s, at, next);
            at = next;
        }
        if list.is_empty() {
            self.flow.step(from, to, Action::Skip, Span::NONE);
        }
    }

    fn statement(&mut self, s: &Labelled, from: LocationId, to: LocationId) {
        let span = s.span;
        let action = match &s.statement {
            Statement::Nop | Statement::Flush => Some(Action::Skip),
            Statement::Fence => Some(Action::Fence(Fence::Full)),
            Statement::AtomicBegin => Some(Action::AtomicBegin(wattle_model::Section::Buffered)),
            Statement::AtomicEnd => Some(Action::AtomicEnd),
            Statement::Goto((label, at)) => {
                self.flow.jump(from, label, *at);
                None
            }
            Statement::Abort(message) => {
                let assert = Action::Assert {
                    condition: Expr::FALSE,
                    message: Some(message.clone()),
                };
                self.flow.then(from, assert, span);
                None
            }
            Statement::Store(variable, value) => {
                let (region, value) = (self.variable(variable), self.pure(value, span));
                region.zip(value).map(|(r, value)| Action::Store {
                    place: Place::Region(r, Expr::Const(0)),
                    value,
                })
            }
            Statement::Load(local, variable) => {
                let (register, region) = (self.local(local), self.variable(variable));
                register.zip(region).map(|(register, r)| Action::Load {
                    register,
                    place: Place::Region(r, Expr::Const(0)),
                })
            }
            Statement::Assign(local, value) => {
                let (register, value) = (self.local(local), self.pure(value, span));
                let both = register.zip(value);
                both.map(|(register, value)| Action::Assign { register, value })
            }
            Statement::Assume(e) => match self.condition(e, from, span) {
                Some((at, Some(e))) => {
                    self.flow.step(at, to, Action::Assume(e), span);
                    None
                }
                Some((_, None)) => Some(Action::Skip),
                None => None,
            },
            Statement::If(e, then, otherwise) => {
                self.branch(e, (then, otherwise), span, from, to);
                None
            }
        };
        if let Some(action) = action {
            self.flow.step(from, to, action, span);
        }
    }

    fn branch(
        &mut self,
        e: &Expr<Leaf>,
        (then, otherwise): (&[Labelled], &[Labelled]),
        span: Span,
        from: LocationId,
        to: LocationId,
    ) {
        let Some((at, condition)) = self.condition(e, from, span) else {
            return;
        };
        let (yes, no) = match condition {
            Some(c) => (Action::Assume(c.clone()), Action::Assume(c.negate())),
            None => (Action::Skip, Action::Skip),
        };
        for (action, list) in [(yes, then), (no, otherwise)] {
            if list.is_empty() {
                self.flow.step(at, to, action, span);
            } else {
                let start = self.flow.then(at, action, span);
                self.list(list, start, to);
            }
        }
    }

    /// A condition, after the steps that choose a value for each `*` in it. `None` inside is a lone
    /// `*`: no condition at all, both ways are open.
    fn condition(
        &mut self,
        e: &Expr<Leaf>,
        from: LocationId,
        span: Span,
    ) -> Option<(LocationId, Option<Expr<Local>>)> {
        if let Expr::Atom(Leaf::Any(_)) = e {
            return Some((from, None));
        }
        kinds::truth(e, span, self.out);
        let mut chosen = Vec::new();
        let condition = self.resolve(e, &mut chosen)?;
        let mut at = from;
        for register in chosen {
            let range = Some((0, 1));
            at = self.flow.then(at, Action::Havoc { register, range }, span);
        }
        Some((at, Some(condition)))
    }

    /// An integer expression: no `*` in it.
    fn pure(&mut self, e: &Expr<Leaf>, span: Span) -> Option<Expr<Local>> {
        let mut star = None;
        e.for_each_atom(&mut |leaf| {
            if let Leaf::Any(span) = leaf {
                star.get_or_insert(*span);
            }
        });
        if let Some(span) = star {
            let d = Diagnostic::error(span, "`*` is a truth value, not an integer");
            let hint = "choose between two assignments with `if (*)`";
            self.out.push(d.hint(hint));
            return None;
        }
        kinds::number(e, span, self.out);
        self.resolve(e, &mut Vec::new())
    }

    fn resolve(&mut self, e: &Expr<Leaf>, chosen: &mut Vec<RegisterId>) -> Option<Expr<Local>> {
        let mut failed = false;
        let found: Result<_, ()> = e.substitute(&mut |leaf| {
            let register = match leaf {
                Leaf::Name(name, span) => self.local(&(name.clone(), *span)),
                Leaf::Any(_) => {
                    let mut name = format!("choice{}", chosen.len());
                    while self.shared.contains_key(&name) || self.locals.contains_key(&name) {
                        name.push('_');
                    }
                    let found = self.registers.iter().position(|r| r.name == name);
                    let id = match found {
                        Some(i) => RegisterId::new(i),
                        None => self.register(name, Span::NONE),
                    };
                    chosen.push(id);
                    Some(id)
                }
                Leaf::Of(name, _, _, span) => {
                    let message = format!("`{}(…)` in a process", clip(name));
                    let d = Diagnostic::error(*span, message);
                    self.out.push(d.hint("positions and locals of processes can be named only in `assert(always(…))`"));
                    None
                }
            };
            failed |= register.is_none();
            Ok(register.map_or(Expr::FALSE, |r| Expr::Atom(Local::Register(r))))
        });
        found.ok().filter(|_| !failed)
    }

    fn local(&mut self, (name, span): &Named) -> Option<RegisterId> {
        if let Some(r) = self.locals.get(name) {
            return Some(*r);
        }
        let shown = clip(name);
        if self.shared.contains_key(name) {
            let message = format!("`{shown}` is a shared variable");
            let d = Diagnostic::error(*span, message).expected("a local variable");
            self.out.push(d.hint(format!(
                "`load l = {shown};` reads it, `store {shown} = …;` writes it"
            )));
        } else {
            let mut d = Diagnostic::error(*span, format!("unknown variable `{shown}`"));
            d.expected = Some("a local variable that some statement of the process assigns".into());
            d.hint = near(name, self.locals.keys());
            self.out.push(d);
        }
        None
    }

    fn variable(&mut self, (name, span): &Named) -> Option<RegionId> {
        let found = self.shared.get_index_of(name);
        if found.is_none() {
            let mut d =
                Diagnostic::error(*span, format!("unknown shared variable `{}`", clip(name)));
            d.expected = Some("a variable stored to between `beginit` and `endinit`".into());
            d.hint = near(name, self.shared.keys());
            self.out.push(d);
        }
        found.map(RegionId::new)
    }
}

fn near<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Option<String> {
    if name.chars().count() < 2 {
        return None;
    }
    let near = nearest(name, known.map(String::as_str))?;
    Some(format!("did you mean `{near}`?"))
}

/// What assertions can see: memory, positions and locals.
struct Seen<'a> {
    file: &'a File,
    shared: &'a Shared,
    families: &'a [Family],
}

impl Seen<'_> {
    /// A condition with the instances that it names. Inside of a process its locals need no number.
    fn condition(
        &self,
        e: &Expr<Leaf>,
        inside: Option<i64>,
        out: &mut Reports<'_>,
    ) -> Option<Condition> {
        let mut indices = Vec::new();
        let expr = self.expr(e, inside, &mut indices, out)?;
        Some(Condition { indices, expr })
    }

    /// Comparisons with `pc(i)` become positions, the rest speaks of values.
    fn expr(
        &self,
        e: &Expr<Leaf>,
        inside: Option<i64>,
        indices: &mut Vec<IndexVariable>,
        out: &mut Reports<'_>,
    ) -> Option<Expr<Observation>> {
        Some(match e {
            Expr::Const(c) => Expr::Const(*c),
            Expr::Atom(leaf) => self.observe(leaf, inside, indices, out)?,
            Expr::Unary(op, a) => Expr::unary(*op, self.expr(a, inside, indices, out)?),
            Expr::Binary(op @ (Op2::Eq | Op2::Ne), a, b) if is_pc(a) || is_pc(b) => {
                let (pc, label) = if is_pc(a) { (a, b) } else { (b, a) };
                let at = self.position(pc, label, indices, out)?;
                if *op == Op2::Eq { at } else { at.negate() }
            }
            Expr::Binary(op, a, b) => {
                let a = self.expr(a, inside, indices, out);
                let b = self.expr(b, inside, indices, out);
                Expr::binary(*op, a?, b?)
            }
            Expr::Ite(..) => return None,
        })
    }

    /// `pc(i) = l`
    fn position(
        &self,
        pc: &Expr<Leaf>,
        label: &Expr<Leaf>,
        indices: &mut Vec<IndexVariable>,
        out: &mut Reports<'_>,
    ) -> Option<Expr<Observation>> {
        let Expr::Atom(Leaf::Of(_, id, instance, span)) = pc else {
            return None;
        };
        let thread = self.thread(*id, instance.as_ref(), *span, indices, out)?;
        let (label, place) = match label {
            Expr::Const(c) => (c.to_string(), *span),
            Expr::Atom(Leaf::Name(name, place)) => (name.clone(), *place),
            _ => {
                let d = Diagnostic::error(
                    *span,
                    "a position is compared with something else than a label",
                );
                out.push(d.expected("`pc(i) = l` or `pc(i) != l` with a label `l` of process `i`"));
                return None;
            }
        };
        let family = self.families.get(thread.family.index())?;
        let labels: BTreeSet<&str> = family
            .locations
            .iter()
            .flat_map(|l| l.labels.iter().map(String::as_str))
            .collect();
        if !labels.contains(label.as_str()) {
            let message = format!("process {id} has no label `{}`", clip(&label));
            let mut d = Diagnostic::error(place, message);
            if labels.len() <= 20 {
                let all: Vec<&str> = labels.into_iter().collect();
                d.hint = Some(format!("its labels are: {}", all.join(", ")));
            }
            out.push(d);
            return None;
        }
        Some(Expr::Atom(Observation::At(thread, label)))
    }

    fn thread(
        &self,
        id: i64,
        instance: Option<&Instance>,
        span: Span,
        indices: &mut Vec<IndexVariable>,
        out: &mut Reports<'_>,
    ) -> Option<ThreadRef> {
        let found = self.file.processes.iter().position(|p| p.id == id);
        let Some(i) = found else {
            out.push(Diagnostic::error(span, format!("there is no process {id}")));
            return None;
        };
        let family = FamilyId::new(i);
        let count = self.file.processes[i].count;
        let index = match (instance, count) {
            (None, Count::One) => ThreadIndex::Number(0),
            (None, Count::Fixed(_) | Count::Any) => {
                let message = format!("process {id} has several instances");
                let hint = format!("say which: `pc({id}, i)`; different names are different ones");
                out.push(Diagnostic::error(span, message).hint(hint));
                return None;
            }
            (Some(_), Count::One) => {
                let message = format!("process {id} has one instance");
                let hint = format!("`process {id}[*]:` has any number of them");
                out.push(Diagnostic::error(span, message).hint(hint));
                return None;
            }
            (Some(Instance::Number(n)), Count::Fixed(count)) if *n >= count => {
                let message = format!("process {id} has no instance {n}");
                let hint = format!("they are 0 to {}", count - 1);
                out.push(Diagnostic::error(span, message).hint(hint));
                return None;
            }
            (Some(Instance::Number(n)), Count::Fixed(_) | Count::Any) => ThreadIndex::Number(*n),
            (Some(Instance::Named(name)), Count::Fixed(_) | Count::Any) => {
                let known = indices.iter().position(|v| v.name == *name);
                if known.is_some_and(|k| indices[k].family != family) {
                    let message = format!("`{}` is an instance of another process", clip(name));
                    out.push(Diagnostic::error(span, message).hint("give it another name"));
                    return None;
                }
                let known = known.unwrap_or_else(|| {
                    indices.push(IndexVariable {
                        name: name.clone(),
                        family,
                    });
                    indices.len() - 1
                });
                ThreadIndex::Variable(IndexId::new(known))
            }
        };
        Some(ThreadRef { family, index })
    }

    fn observe(
        &self,
        leaf: &Leaf,
        inside: Option<i64>,
        indices: &mut Vec<IndexVariable>,
        out: &mut Reports<'_>,
    ) -> Option<Expr<Observation>> {
        match leaf {
            Leaf::Name(name, span) => {
                let Some(r) = self.shared.get_index_of(name) else {
                    if let Some(id) = inside {
                        // Of several instances it is the one whose local it is.
                        let own = Instance::Named(format!("own_{id}"));
                        let mut all = self.file.processes.iter();
                        let one = all.any(|p| p.id == id && matches!(p.count, Count::One));
                        let own = (!one).then_some(&own);
                        return self.local(name, id, own, *span, indices, out);
                    }
                    let message = format!("unknown shared variable `{}`", clip(name));
                    let mut d = Diagnostic::error(*span, message);
                    d.expected = Some(
                        "a shared variable, `pc(i)`, or `x(i)` for a local of process `i`".into(),
                    );
                    d.hint = near(name, self.shared.keys());
                    out.push(d);
                    return None;
                };
                let index = Box::new(Expr::Const(0));
                Some(Expr::Atom(Observation::Cell(RegionId::new(r), index)))
            }
            Leaf::Any(span) => {
                out.push(Diagnostic::error(*span, "`*` in an assertion"));
                None
            }
            Leaf::Of(name, _, _, span) if name == "pc" => {
                let d = Diagnostic::error(*span, "a position that is not compared with a label");
                out.push(d.expected("`pc(i) = l` or `pc(i) != l`"));
                None
            }
            Leaf::Of(name, id, instance, span) => {
                self.local(name, *id, instance.as_ref(), *span, indices, out)
            }
        }
    }

    fn local(
        &self,
        name: &str,
        id: i64,
        instance: Option<&Instance>,
        span: Span,
        indices: &mut Vec<IndexVariable>,
        out: &mut Reports<'_>,
    ) -> Option<Expr<Observation>> {
        let thread = self.thread(id, instance, span, indices, out)?;
        let registers = &self.families.get(thread.family.index())?.registers;
        let Some(r) = registers.iter().position(|r| r.name == *name) else {
            let message = format!("process {id} has no local variable `{}`", clip(name));
            let mut d = Diagnostic::error(span, message);
            d.hint = near(name, registers.iter().map(|r| &r.name));
            out.push(d);
            return None;
        };
        Some(Expr::Atom(Observation::Register(
            thread,
            RegisterId::new(r),
        )))
    }
}

fn is_pc(e: &Expr<Leaf>) -> bool {
    matches!(e, Expr::Atom(Leaf::Of(name, ..)) if name == "pc")
}
