//! Statements of a thread to its graph.

use super::super::ast::{
    Block, Ex, ExKind, Label, LengthEx, Let, Name, Statement, StatementKind, ThreadEx,
};
use super::Lowering;
use super::expressions::Meaning;
use super::graph::{Graph, Node};
use super::names::{Constants, Value, constant};
use super::refuse;
use super::temporaries::Temporaries;
use crate::Diagnostic;
use std::collections::HashMap;
use wattle_model::program::{Action, Register};
use wattle_model::{Count, Expr, Family, Fence, Local, RegisterId, Section, Span};

/// A thread in the making.
pub(super) struct Body<'b, 'r> {
    pub lowering: &'b mut Lowering<'r>,
    pub graph: Graph,
    /// Where the next step starts.
    pub at: Node,
    pub registers: Vec<Register>,
    pub register_ids: HashMap<String, RegisterId>,
    pub temporaries: Temporaries,
    /// `let` and `for` in scope.
    pub constants: Constants,
    /// Depth of atomic blocks around us.
    pub atomic: u32,
    /// Where `break` and `continue` go.
    loops: Vec<(Node, Node)>,
    /// Labels that can be jumped to, innermost unrolled loop last.
    labels: Vec<HashMap<Key, Target>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Named(String),
    Numbered(u64),
}

struct Target {
    place: Node,
    times: u32,
    placed: bool,
}

fn key(label: &Label) -> Key {
    match label {
        Label::Named(n) => Key::Named(n.text.clone()),
        Label::Numbered(n, _) => Key::Numbered(*n),
    }
}

pub(super) fn family(lowering: &mut Lowering<'_>, t: &ThreadEx, count: Count) -> Family {
    let mut graph = Graph::default();
    let entry = graph.fresh();
    let mut body = Body {
        lowering,
        graph,
        at: entry,
        registers: Vec::new(),
        register_ids: HashMap::new(),
        temporaries: Temporaries::default(),
        constants: HashMap::new(),
        atomic: 0,
        loops: Vec::new(),
        labels: Vec::new(),
    };
    body.locals(t);
    body.enter_labels(&t.body.statements);
    body.statements(&t.body.statements);
    body.graph.gaps.end(body.at, &t.body);
    let end = Span {
        end: t.body.close.start,
        ..t.body.close
    };
    body.graph.set_span(body.at, end);
    let (locations, steps, entry) = body.graph.finish(entry);
    body.lowering.gaps.push(body.graph.gaps.finish());
    Family {
        name: t.name.text.clone(),
        count,
        registers: body.registers,
        locations,
        steps,
        entry,
        span: t.span,
    }
}

impl Body<'_, '_> {
    pub(super) fn refuse<T>(&mut self, d: Diagnostic) -> Option<T> {
        self.lowering.refuse(d)
    }

    fn locals(&mut self, t: &ThreadEx) {
        for d in &t.locals {
            let name = &d.name;
            if !matches!(d.length, LengthEx::Scalar) {
                self.lowering.report.push(refuse::register_array(name));
            }
            self.fresh_name(name, false);
            let register = Register {
                name: name.text.clone(),
                ty: self.lowering.ty(&d.ty),
                init: self.lowering.init(&d.init),
                span: name.span,
            };
            let id = RegisterId::new(self.registers.len());
            self.registers.push(register);
            self.register_ids.entry(name.text.clone()).or_insert(id);
        }
    }

    /// `counter`: of a `for`.
    fn fresh_name(&mut self, name: &Name, counter: bool) {
        let shadows = refuse::shadows(name, &self.meaning(&name.text), counter);
        shadows
            .into_iter()
            .for_each(|d| self.lowering.report.push(d));
    }

    /// One step to a new place.
    pub(super) fn emit(&mut self, action: Action, span: Span) {
        let to = self.graph.fresh();
        self.emit_to(action, to, span);
    }

    pub(super) fn emit_to(&mut self, action: Action, to: Node, span: Span) {
        if self.lowering.spend(1) {
            self.graph.step(self.at, to, action, span);
        }
        self.at = to;
    }

    /// Goes to `to` without a step; what follows is not reached from here.
    pub(super) fn jump(&mut self, to: Node, span: Span) {
        self.graph.jump(self.at, to, span);
        self.at = self.graph.fresh();
    }

    /// The labels of a thread, or of one round of an unrolled loop.
    fn enter_labels(&mut self, statements: &[Statement]) {
        let mut found = HashMap::new();
        let mut work: Vec<&[Statement]> = vec![statements];
        while let Some(statements) = work.pop() {
            for s in statements {
                for l in &s.labels {
                    let target = found.entry(key(l)).or_insert_with(|| Target {
                        place: self.graph.fresh(),
                        times: 0,
                        placed: false,
                    });
                    target.times += 1;
                }
                match &s.kind {
                    StatementKind::If(_, a, b) => {
                        work.push(&a.statements);
                        work.extend(b.iter().map(|b| &b.statements[..]));
                    }
                    StatementKind::While(_, b)
                    | StatementKind::Loop(b)
                    | StatementKind::Block(b)
                    | StatementKind::Atomic(b)
                    | StatementKind::AtomicBuffered(b) => work.push(&b.statements),
                    StatementKind::Choose(bs) => {
                        work.extend(bs.iter().map(|b| &b.statements[..]));
                    }
                    _ => {}
                }
            }
        }
        self.labels.push(found);
    }

    fn place_label(&mut self, label: &Label) {
        if let Label::Named(n) = label {
            self.graph.add_label(self.at, &n.text);
        }
        let Some(target) = self.labels.last_mut().and_then(|l| l.get_mut(&key(label))) else {
            return;
        };
        if !target.placed {
            target.placed = true;
            let place = target.place;
            self.graph.identify(place, self.at);
        } else if matches!(label, Label::Numbered(..)) {
            self.lowering.report.push(refuse::label_twice(label));
        }
    }

    fn goto(&mut self, label: &Label, span: Span) -> Option<()> {
        let wanted = key(label);
        let found = self.labels.iter().rev().find_map(|l| l.get(&wanted));
        let d = match found {
            Some(t) if t.times == 1 => {
                let place = t.place;
                self.jump(place, span);
                return Some(());
            }
            Some(_) => refuse::label_ambiguous(label),
            None => {
                let known = self.labels.iter().flat_map(HashMap::keys);
                refuse::no_label(label, known, self.lowering.report)
            }
        };
        self.refuse(d)
    }

    fn block(&mut self, b: &Block) {
        let lets = |s: &Statement| matches!(s.kind, StatementKind::Let(_));
        let before = (b.statements.iter().any(lets)).then(|| self.constants.clone());
        self.statements(&b.statements);
        self.graph.gaps.end(self.at, b);
        self.constants = before.unwrap_or_else(|| std::mem::take(&mut self.constants));
    }

    fn statements(&mut self, statements: &[Statement]) {
        for s in statements {
            self.graph.gaps.before(self.at, s);
            s.labels.iter().for_each(|l| self.place_label(l));
            self.graph.gaps.behind_labels(self.at, s);
            if !matches!(s.kind, StatementKind::Nothing | StatementKind::Let(_)) {
                self.graph.set_span(self.at, s.span);
            }
            let mark = self.temporaries.mark();
            // A wrong statement was reported; go on after it.
            self.lowering.lost |= self.statement(s).is_none();
            self.temporaries.release(mark);
        }
    }

    fn statement(&mut self, s: &Statement) -> Option<()> {
        match &s.kind {
            StatementKind::Nothing => {}
            StatementKind::Let(l) => self.constant(l),
            StatementKind::Skip => self.emit(Action::Skip, s.span),
            StatementKind::Stop => self.at = self.graph.fresh(),
            StatementKind::Assign(place, value) => self.assign(place, value, s.span)?,
            StatementKind::Any(place, range) => self.any(place, range.as_ref(), s.span)?,
            StatementKind::If(c, yes, no) => self.if_statement(c, yes, no.as_ref())?,
            StatementKind::While(c, body) => self.repeat(Some(c), body)?,
            StatementKind::Loop(body) => self.repeat(None, body)?,
            StatementKind::For(name, lo, hi, body) => self.unroll(name, lo, hi, body)?,
            StatementKind::Break | StatementKind::Continue => self.leave(s)?,
            StatementKind::Goto(label) => self.goto(label, s.span)?,
            StatementKind::Await(e) => {
                self.graph.gaps.round(self.at);
                let (head, after) = (self.at, self.graph.fresh());
                let done = self.branch(e, after, head);
                self.at = after;
                done?;
            }
            StatementKind::Assume(e) => {
                let value = self.value(e)?.expr;
                self.emit(Action::Assume(value), s.span);
            }
            StatementKind::Assert(e, message) => {
                let condition = self.value(e)?.expr;
                let message = message.clone();
                self.emit(Action::Assert { condition, message }, s.span);
            }
            StatementKind::Choose(blocks) => {
                let from = self.at;
                let starts: Vec<Node> = blocks.iter().map(|_| self.graph.fresh()).collect();
                for start in &starts {
                    self.graph.branch(from, *start);
                }
                let join = self.graph.fresh();
                for (start, b) in starts.iter().zip(blocks) {
                    self.at = *start;
                    self.block(b);
                    self.jump(join, b.close);
                }
                self.at = join;
            }
            StatementKind::Block(b) => self.block(b),
            StatementKind::Fence => self.emit(Action::Fence(Fence::Full), s.span),
            StatementKind::FenceStore => self.emit(Action::Fence(Fence::Store), s.span),
            StatementKind::Atomic(b) => {
                self.enter_atomic(s.span);
                self.block(b);
                self.graph.gaps.none_inside(s.span);
                self.leave_atomic(b.close);
            }
            // Whatever begins inside is refused, drained or not.
            StatementKind::AtomicBuffered(b) => {
                self.emit(Action::AtomicBegin(Section::Buffered), s.span);
                self.block(b);
                self.graph.gaps.none_inside(s.span);
                self.emit(Action::AtomicEnd, b.close);
            }
            StatementKind::AtomicBegin(section) => {
                self.emit(Action::AtomicBegin(*section), s.span);
            }
            StatementKind::AtomicEnd => self.emit(Action::AtomicEnd, s.span),
            StatementKind::Lock => self.emit(Action::Lock, s.span),
            StatementKind::Unlock => self.emit(Action::Unlock, s.span),
            StatementKind::Call(to, function, arguments) => {
                self.call(to.as_ref(), function, arguments, s.span)?;
            }
            StatementKind::Effect(e) => drop(self.exchange(e, None)?),
        }
        Some(())
    }

    /// The values of all, which are looked at from left to right.
    pub(super) fn values<'e>(
        &mut self,
        all: impl IntoIterator<Item = &'e Ex>,
    ) -> Option<Vec<Expr<Local>>> {
        let values: Vec<Option<Value>> = all.into_iter().map(|e| self.value(e)).collect();
        values.into_iter().map(|v| Some(v?.expr)).collect()
    }

    fn constant(&mut self, l: &Let) {
        self.fresh_name(&l.name, false);
        let value = match refuse::register_as_constant(&l.value, &self.register_ids) {
            Some(d) => self.refuse(d),
            None => {
                let lowering = &mut *self.lowering;
                let names = &lowering.names;
                names.fixed(&l.value, &self.constants, lowering.report)
            }
        };
        let mut value = value.unwrap_or(Value::spelled(Expr::Const(0)));
        if let Some(d) = refuse::too_many_operands(&value.expr, l.value.span) {
            self.lowering.report.push(d);
            value.expr = Expr::Const(0);
        }
        value.named = true;
        self.constants.insert(l.name.text.clone(), value);
    }

    fn assign(&mut self, place: &Ex, value: &Ex, span: Span) -> Option<()> {
        let register = match &place.kind {
            ExKind::Name(n, None) => match self.meaning(&n.text) {
                Meaning::Register(r) => Some(r),
                Meaning::Constant(_) => {
                    return self.refuse(refuse::constant_assigned(place.span, n));
                }
                _ => None,
            },
            _ => None,
        };
        let Some(register) = register else {
            let place = self.place(place);
            let value = self.value(value);
            let (place, value) = (place?, value?.expr);
            self.emit(Action::Store { place, value }, span);
            return Some(());
        };
        let memory = match &value.kind {
            ExKind::Name(n, _) => matches!(self.meaning(&n.text), Meaning::Region(..)),
            ExKind::Memory(_) => true,
            _ => false,
        };
        if memory {
            let place = self.place(value)?;
            self.emit(Action::Load { register, place }, span);
            return Some(());
        }
        let exchange = matches!(value.kind, ExKind::Swap(..) | ExKind::FetchAdd(..));
        let value = if exchange {
            self.exchange(value, Some(register))?.expr
        } else {
            self.value(value)?.expr
        };
        // An exchange may have read straight into the register.
        if !(exchange && value == Expr::Atom(Local::Register(register))) {
            self.emit(Action::Assign { register, value }, span);
        }
        Some(())
    }

    fn any(&mut self, place: &Ex, range: Option<&(Ex, Ex)>, span: Span) -> Option<()> {
        let range = match range {
            None => None,
            Some((lo, hi)) => Some(self.lowering.range(lo, hi, &self.constants)?),
        };
        if let ExKind::Name(n, None) = &place.kind
            && let Meaning::Register(register) = self.meaning(&n.text)
        {
            self.emit(Action::Havoc { register, range }, span);
            return Some(());
        }
        let place = self.place(place)?;
        let register = self.temporary(self.place_type(&place));
        self.emit(Action::Havoc { register, range }, span);
        let value = Expr::Atom(Local::Register(register));
        self.emit(Action::Store { place, value }, span);
        Some(())
    }

    /// A condition that is decided before the program runs.
    fn decided(&mut self, e: &Ex) -> Option<bool> {
        let mut quiet = super::Collector::default();
        let names = &self.lowering.names;
        let value = names.fixed(e, &self.constants, &mut quiet)?;
        constant(&value.expr).map(|c| c != 0)
    }

    fn if_statement(&mut self, c: &Ex, yes: &Block, no: Option<&Block>) -> Option<()> {
        if let Some(taken) = self.decided(c) {
            // The other branch is read all the same: it may have errors, and labels.
            let from = self.at;
            let (live, dead) = if taken {
                (Some(yes), no)
            } else {
                (no, Some(yes))
            };
            self.at = self.graph.fresh();
            dead.into_iter().for_each(|b| self.block(b));
            self.at = from;
            live.into_iter().for_each(|b| self.block(b));
            return Some(());
        }
        let (then, otherwise, join) = (self.graph.fresh(), self.graph.fresh(), self.graph.fresh());
        let done = self.branch(c, then, otherwise);
        self.at = then;
        self.block(yes);
        self.jump(join, yes.close);
        self.at = otherwise;
        match no {
            Some(b) => {
                self.block(b);
                self.jump(join, b.close);
            }
            None => self.jump(join, yes.close),
        }
        self.at = join;
        done
    }

    /// Without a condition, or with one that is always true, it ends only by what is inside.
    fn repeat(&mut self, c: Option<&Ex>, body: &Block) -> Option<()> {
        self.graph.gaps.round(self.at);
        let (head, after) = (self.at, self.graph.fresh());
        let mut done = Some(());
        if let Some(c) = c.filter(|c| self.decided(c) != Some(true)) {
            let inside = self.graph.fresh();
            done = self.branch(c, inside, after);
            self.at = inside;
        }
        self.loops.push((after, head));
        self.block(body);
        self.loops.pop();
        self.jump(head, body.close);
        self.at = after;
        done
    }

    fn unroll(&mut self, name: &Name, lo: &Ex, hi: &Ex, body: &Block) -> Option<()> {
        self.fresh_name(name, true);
        let lowering = &mut *self.lowering;
        let low = lowering.names.number(lo, &self.constants, lowering.report);
        let high = lowering.names.number(hi, &self.constants, lowering.report);
        let (low, high) = (low?, high?);
        let after = self.graph.fresh();
        let outer = self.constants.get(&name.text).cloned();
        for i in low..=high {
            if !self.lowering.spend(1) {
                break;
            }
            self.constants.insert(name.text.clone(), Value::named(i));
            let next = self.graph.fresh();
            self.loops.push((after, next));
            self.enter_labels(&body.statements);
            self.block(body);
            self.labels.pop();
            self.loops.pop();
            self.jump(next, body.close);
            self.at = next;
        }
        self.jump(after, body.close);
        self.at = after;
        match outer {
            Some(v) => self.constants.insert(name.text.clone(), v),
            None => self.constants.remove(&name.text),
        };
        Some(())
    }

    fn leave(&mut self, s: &Statement) -> Option<()> {
        let breaks = matches!(s.kind, StatementKind::Break);
        match self.loops.last() {
            Some((after, _)) if breaks => self.jump(*after, s.span),
            Some((_, again)) => self.jump(*again, s.span),
            None => return self.refuse(refuse::outside_loop(s.span, breaks)),
        }
        Some(())
    }
}
