//! Statements of a thread to its graph.

use super::super::ast::{Block, Ex, ExKind, Label, Let, Name, Statement, StatementKind, ThreadEx};
use super::Lowering;
use super::expressions::Meaning;
use super::graph::{Graph, Place};
use super::names::{Value, constant, nearest_sorted};
use super::temporaries::Temporaries;
use crate::Diagnostic;
use std::collections::HashMap;
use wattle_model::program::{Action, Register, Step};
use wattle_model::{Expr, Fence, Local, Location, LocationId, RegisterId, Section, Span};

/// Constants are put in wherever they are used: large ones would multiply.
const MAX_CONSTANT: usize = 64;

/// A thread in the making.
pub(super) struct Body<'b, 'r> {
    pub lowering: &'b mut Lowering<'r>,
    pub graph: Graph,
    /// Where the next step starts.
    pub at: Place,
    pub registers: Vec<Register>,
    pub register_ids: HashMap<String, RegisterId>,
    pub temporaries: Temporaries,
    /// `let` and `for` in scope.
    pub constants: HashMap<String, Value>,
    /// Depth of atomic blocks around us.
    pub atomic: u32,
    /// Where `break` and `continue` go.
    loops: Vec<(Place, Place)>,
    /// Labels that can be jumped to, innermost unrolled loop last.
    labels: Vec<HashMap<Key, Target>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Named(String),
    Numbered(u64),
}

struct Target {
    place: Place,
    times: u32,
    placed: bool,
}

fn key(label: &Label) -> Key {
    match label {
        Label::Named(n) => Key::Named(n.text.clone()),
        Label::Numbered(n, _) => Key::Numbered(*n),
    }
}

pub(super) fn body(
    lowering: &mut Lowering<'_>,
    t: &ThreadEx,
) -> (Vec<Register>, Vec<Location>, Vec<Step>, LocationId) {
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
    let end = body.at;
    let close = t.body.close;
    body.graph.set_span(
        end,
        Span {
            end: close.start,
            ..close
        },
    );
    let (locations, steps, entry) = body.graph.finish(entry);
    (body.registers, locations, steps, entry)
}

impl Body<'_, '_> {
    fn locals(&mut self, t: &ThreadEx) {
        for d in &t.locals {
            let name = &d.name;
            if !matches!(d.length, super::super::ast::LengthEx::Scalar) {
                self.lowering.error(
                    Diagnostic::error(name.span, "registers are no arrays")
                        .hint("use a shared array, or several registers"),
                );
            }
            self.fresh_name(name);
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

    fn fresh_name(&mut self, name: &Name) {
        let what = match self.meaning(&name.text) {
            Meaning::Unknown => return,
            Meaning::Constant(_) => "a constant",
            Meaning::Register(_) => "a register",
            Meaning::Region(..) => "shared memory",
        };
        self.lowering.error(
            Diagnostic::error(
                name.span,
                format!("`{}` is already the name of {what}", name.text),
            )
            .hint("choose another name: nothing is shadowed"),
        );
    }

    /// One step to a new place.
    pub(super) fn emit(&mut self, action: Action, span: Span) {
        let to = self.graph.fresh();
        self.emit_to(action, to, span);
    }

    pub(super) fn emit_to(&mut self, action: Action, to: Place, span: Span) {
        if self.lowering.spend(1) {
            self.graph.step(self.at, to, action, span);
        }
        self.at = to;
    }

    /// Goes to `to` without a step; what follows is not reached from here.
    pub(super) fn jump(&mut self, to: Place, span: Span) {
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
        } else if let Label::Numbered(n, span) = label {
            let d = Diagnostic::error(*span, format!("the label {n} appears twice"));
            self.lowering.error(d);
        }
    }

    fn goto(&mut self, label: &Label, span: Span) {
        let wanted = key(label);
        let found = self.labels.iter().rev().find_map(|l| l.get(&wanted));
        let (name, at) = match label {
            Label::Named(n) => (n.text.clone(), n.span),
            Label::Numbered(n, at) => (n.to_string(), *at),
        };
        match found {
            Some(t) if t.times == 1 => {
                let place = t.place;
                self.jump(place, span);
            }
            Some(_) => self.lowering.error(Diagnostic::error(
                at,
                format!("several places are called `{name}`"),
            )),
            None => {
                let mut d = Diagnostic::error(at, format!("there is no label `{name}` to go to"));
                if !self.lowering.report.full() {
                    let known: Vec<String> = self
                        .labels
                        .iter()
                        .flat_map(|l| l.keys())
                        .filter_map(|k| match k {
                            Key::Named(n) => Some(n.clone()),
                            Key::Numbered(_) => None,
                        })
                        .collect();
                    d = match nearest_sorted(&name, &known) {
                        Some(n) => d.hint(format!("did you mean `{n}`?")),
                        None => {
                            d.hint("labels of other threads and inside `for` cannot be reached")
                        }
                    };
                }
                self.lowering.error(d);
            }
        }
    }

    fn block(&mut self, b: &Block) {
        let before: Option<HashMap<String, Value>> = b
            .statements
            .iter()
            .any(|s| matches!(s.kind, StatementKind::Let(_)))
            .then(|| self.constants.clone());
        self.statements(&b.statements);
        if let Some(before) = before {
            self.constants = before;
        }
    }

    fn statements(&mut self, statements: &[Statement]) {
        for s in statements {
            for l in &s.labels {
                self.place_label(l);
            }
            if !matches!(s.kind, StatementKind::Nothing | StatementKind::Let(_)) {
                self.graph.set_span(self.at, s.span);
            }
            let mark = self.temporaries.mark();
            // A wrong statement was reported; go on after it.
            let _ = self.statement(s);
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
            StatementKind::While(c, body) => self.while_loop(c, body)?,
            StatementKind::Loop(body) => self.endless(body),
            StatementKind::For(name, lo, hi, body) => self.unroll(name, lo, hi, body)?,
            StatementKind::Break | StatementKind::Continue => self.leave(s),
            StatementKind::Goto(label) => self.goto(label, s.span),
            StatementKind::Await(e) => {
                let head = self.at;
                let after = self.graph.fresh();
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
                let starts: Vec<Place> = blocks.iter().map(|_| self.graph.fresh()).collect();
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
                self.leave_atomic(b.close);
            }
            // Whatever begins inside is refused, drained or not.
            StatementKind::AtomicBuffered(b) => {
                self.emit(Action::AtomicBegin(Section::Buffered), s.span);
                self.block(b);
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

    /// A hole in the graph; whoever knows the code fills it.
    fn call(&mut self, to: Option<&Ex>, f: &Name, arguments: &[Ex], span: Span) -> Option<()> {
        if !self.lowering.linked {
            self.lowering.error(
                Diagnostic::error(f.span, "there is no compiled code to call")
                    .hint("name the file first: `object \"lock.o\";`"),
            );
            return None;
        }
        if self.atomic > 0 {
            let d = Diagnostic::error(span, "compiled code cannot be called in an atomic block");
            self.lowering.error(d);
            return None;
        }
        if arguments.len() > 6 {
            let d = Diagnostic::error(span, "a call has at most 6 arguments");
            self.lowering.error(d);
            return None;
        }
        let values: Vec<Option<Value>> = arguments.iter().map(|a| self.value(a)).collect();
        let arguments: Option<Vec<Expr<Local>>> =
            values.into_iter().map(|v| v.map(|v| v.expr)).collect();
        let result = match to {
            None => None,
            Some(Ex {
                kind: ExKind::Name(n, None),
                ..
            }) if self.register_ids.contains_key(&n.text) => Some(self.register_ids[&n.text]),
            Some(e) => {
                self.lowering.error(
                    Diagnostic::error(e.span, "the result of a call goes into a register")
                        .hint("declare one with `local`"),
                );
                return None;
            }
        };
        let calls = &mut self.lowering.link.calls;
        let hole = super::super::hole(calls.len());
        calls.push(super::super::Call {
            function: f.text.clone(),
            function_span: f.span,
            arguments: arguments?,
            result,
            span,
        });
        self.emit(hole, span);
        Some(())
    }

    fn constant(&mut self, l: &Let) {
        self.fresh_name(&l.name);
        let value = if let Some(name) = self.register_in(&l.value) {
            self.lowering.error(
                Diagnostic::error(
                    name.span,
                    format!("`{}` is a register; a constant is needed here", name.text),
                )
                .hint("declare a register with `local` and assign it"),
            );
            None
        } else {
            let lowering = &mut *self.lowering;
            lowering
                .names
                .fixed(&l.value, &self.constants, lowering.report)
        };
        let mut value = value.unwrap_or(Value::spelled(Expr::Const(0)));
        if nodes(&value.expr) > MAX_CONSTANT {
            self.lowering.error(Diagnostic::error(
                l.value.span,
                format!("this constant has more than {MAX_CONSTANT} operands once put in"),
            ));
            value.expr = Expr::Const(0);
        }
        value.named = true;
        self.constants.insert(l.name.text.clone(), value);
    }

    /// A register mentioned in what should be a constant.
    fn register_in<'e>(&self, e: &'e Ex) -> Option<&'e Name> {
        match &e.kind {
            ExKind::Name(n, _) if self.register_ids.contains_key(&n.text) => Some(n),
            ExKind::Unary(_, a) => self.register_in(a),
            ExKind::Binary(_, a, b) => self.register_in(a).or_else(|| self.register_in(b)),
            ExKind::Ite(c, a, b) => [c, a, b].into_iter().find_map(|e| self.register_in(e)),
            _ => None,
        }
    }

    fn assign(&mut self, place: &Ex, value: &Ex, span: Span) -> Option<()> {
        let register = match &place.kind {
            ExKind::Name(n, None) => match self.meaning(&n.text) {
                Meaning::Register(r) => Some(r),
                Meaning::Constant(_) => {
                    self.lowering.error(
                        Diagnostic::error(place.span, format!("`{}` is a constant", n.text))
                            .hint("declare it with `local` to assign it"),
                    );
                    return None;
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
            Some((lo, hi)) => {
                let lowering = &mut *self.lowering;
                let low = lowering.names.number(lo, &self.constants, lowering.report);
                let high = lowering.names.number(hi, &self.constants, lowering.report);
                let (low, high) = (low?, high?);
                if low > high {
                    self.lowering.error(
                        Diagnostic::error(
                            lo.span.to(hi.span),
                            format!("the range {low}..{high} is empty"),
                        )
                        .hint("both ends belong to a range, the smaller one first"),
                    );
                    return None;
                }
                Some((low, high))
            }
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
        if self.register_in(e).is_some() {
            return None;
        }
        let value = self
            .lowering
            .names
            .fixed(e, &self.constants, &mut quiet)?
            .expr;
        constant(&value).map(|c| c != 0)
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

    fn while_loop(&mut self, c: &Ex, body: &Block) -> Option<()> {
        if self.decided(c) == Some(true) {
            self.endless(body);
            return Some(());
        }
        let head = self.at;
        let (inside, after) = (self.graph.fresh(), self.graph.fresh());
        let done = self.branch(c, inside, after);
        self.at = inside;
        self.loops.push((after, head));
        self.block(body);
        self.loops.pop();
        self.jump(head, body.close);
        self.at = after;
        done
    }

    fn endless(&mut self, body: &Block) {
        let head = self.at;
        let after = self.graph.fresh();
        self.loops.push((after, head));
        self.block(body);
        self.loops.pop();
        self.jump(head, body.close);
        self.at = after;
    }

    fn unroll(&mut self, name: &Name, lo: &Ex, hi: &Ex, body: &Block) -> Option<()> {
        self.fresh_name(name);
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
            let value = Value {
                expr: Expr::Const(i),
                named: true,
            };
            self.constants.insert(name.text.clone(), value);
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

    fn leave(&mut self, s: &Statement) {
        let breaks = matches!(s.kind, StatementKind::Break);
        match self.loops.last() {
            Some((after, _)) if breaks => self.jump(*after, s.span),
            Some((_, again)) => self.jump(*again, s.span),
            None => {
                let word = if breaks { "break" } else { "continue" };
                self.lowering.error(Diagnostic::error(
                    s.span,
                    format!("`{word}` outside of a loop"),
                ));
            }
        }
    }
}

fn nodes(e: &Expr<Local>) -> usize {
    match e {
        Expr::Const(_) | Expr::Atom(_) => 1,
        Expr::Unary(_, a) => 1 + nodes(a),
        Expr::Binary(_, a, b) => 1 + nodes(a) + nodes(b),
        Expr::Ite(c, a, b) => 1 + nodes(c) + nodes(a) + nodes(b),
    }
}
