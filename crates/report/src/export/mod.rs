//! Programs for other tools: a program for a fixed number of threads, under SC, as guarded transitions over
//! variables, and these in the words of Spin ([`promela`]) and of solvers of Horn clauses ([`smt2`]).
//!
//! Nothing is approximated: what a language has no exact words for is refused, with the place. A relaxed memory
//! model comes in before, as a program with its buffers as variables.

mod bounds;
mod control;
mod lower;
pub mod promela;
pub mod smt2;

use bounds::Bounds;
use lower::{Lowered, all, any, equal, lower, not};
use wattle_evidence::Refusal;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact, Initial, Instance, Question, Thread};
use wattle_model::{CellId, Expr, LocationId, Op2, RegisterId, Span, ThreadId, Type};

/// What a state is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Var {
    Cell(CellId),
    Register(ThreadId, RegisterId),
    /// Where a thread is.
    At(ThreadId),
    /// Who is inside an atomic block: the thread's number and one, or 0.
    Inside,
    /// Who holds the lock, in the same way.
    Holder,
    /// What a step may choose; no part of a state.
    Chosen,
}

struct Variable {
    var: Var,
    name: String,
    /// As the author knows it.
    source: String,
    ty: Type,
    init: Initial,
}

/// A step of a thread. Where `guard` is true it may be taken, unless `ok` says that it is a fault; then `when`
/// says whether it is enabled. No update reads what another one of the same step writes.
struct Transition {
    span: Span,
    guard: Expr<Var>,
    ok: Expr<Var>,
    when: Expr<Var>,
    updates: Vec<(Var, Expr<Var>)>,
    /// The values that it may choose from, if it chooses: least and greatest, or any integer.
    chosen: Option<Option<(i64, i64)>>,
}

/// What is asked of the program.
struct System<'i> {
    instance: &'i Instance,
    variables: Vec<Variable>,
    transitions: Vec<Transition>,
    /// The states that answer the question.
    target: Option<Expr<Var>>,
    minds_faults: bool,
}

/// What is said at the top of a text.
pub struct Title<'t> {
    pub file: &'t str,
    /// The property in the author's words, or what else is asked.
    pub property: &'t str,
    /// What memory is: `SC`, or how it was made a program under SC.
    pub memory: &'t str,
}

impl<'i> System<'i> {
    fn new(instance: &'i Instance, question: Option<usize>) -> Result<Self, Refusal> {
        let question = question.and_then(|q| instance.questions.get(q));
        let mut system = System {
            instance,
            variables: variables(instance),
            transitions: Vec::new(),
            target: None,
            minds_faults: question.is_none_or(Question::minds_faults),
        };
        for (t, thread) in instance.thread_ids().zip(&instance.threads) {
            for step in &thread.steps {
                system.step(t, thread, step);
            }
        }
        if let Some(question) = question {
            system.target = Some(system.question(question)?);
        }
        Ok(system)
    }

    fn has(&self, var: Var) -> bool {
        self.variables.iter().any(|v| v.var == var)
    }

    fn variable(&self, var: Var) -> Option<&Variable> {
        self.variables.iter().find(|v| v.var == var)
    }

    /// A condition on a variable that is only there where it is needed.
    fn is(&self, var: Var, value: i64) -> Expr<Var> {
        match self.has(var) {
            true => equal(var, value),
            false => Expr::TRUE,
        }
    }

    fn step(&mut self, t: ThreadId, thread: &Thread, step: &wattle_model::instance::Step) {
        let me = t.index() as i64 + 1;
        // Outside of its block, a thread only moves while nobody is inside of one.
        let alone = match thread.atomic[step.source.index()] {
            true => Expr::TRUE,
            false => self.is(Var::Inside, 0),
        };
        let free = match self.has(Var::Holder) {
            true => any([equal(Var::Holder, 0), equal(Var::Holder, me)]),
            false => Expr::TRUE,
        };
        let register = |r: &RegisterId| Var::Register(t, *r);
        let leaf = |r: &RegisterId| Lowered::sure(Expr::Atom(Var::Register(t, *r)));
        let value = |e: &Expr<RegisterId>| lower(e, &leaf);
        let ty = |r: &RegisterId| thread.registers[r.index()].ty;
        let (mut access, mut when) = (Expr::TRUE, Expr::TRUE);
        let (mut ok, mut updates, mut chosen) = (Expr::TRUE, Vec::new(), None);
        match &step.action {
            Action::Skip | Action::Fence(_) => {}
            Action::Assign {
                register: r,
                value: e,
            } => {
                let v = value(e).admitted(ty(r));
                (ok, updates) = (v.ok, vec![(register(r), v.value)]);
            }
            Action::Havoc { register: r, range } => {
                chosen = Some(range.or(ty(r).bounds()));
                let v = Lowered::sure(Expr::Atom(Var::Chosen)).admitted(ty(r));
                (ok, updates) = (v.ok, vec![(register(r), v.value)]);
            }
            Action::Assume(e) => {
                let v = value(e);
                (ok, when) = (v.ok, v.value);
            }
            Action::Assert { condition, .. } => {
                let v = value(condition);
                ok = all([v.ok, v.value]);
            }
            Action::Load { register: r, place } => {
                access = free;
                let v = self.loaded(place, &value).admitted(ty(r));
                (ok, updates) = (v.ok, vec![(register(r), v.value)]);
            }
            Action::Store { place, value: e } => {
                access = free;
                (ok, updates) = self.stored(place, &value, value(e));
            }
            Action::AtomicBegin(_) => {
                access = free;
                updates.push((Var::Inside, Expr::Const(me)));
            }
            Action::AtomicEnd => updates.push((Var::Inside, Expr::Const(0))),
            Action::Lock => {
                access = self.is(Var::Holder, 0);
                updates.push((Var::Holder, Expr::Const(me)));
            }
            Action::Unlock => {
                access = self.is(Var::Holder, me);
                updates.push((Var::Holder, Expr::Const(0)));
            }
        }
        updates.push((Var::At(t), Expr::Const(step.target.index() as i64)));
        self.transitions.push(Transition {
            span: step.span,
            guard: all([equal(Var::At(t), step.source.index() as i64), alone, access]),
            ok,
            when,
            updates,
            chosen,
        });
    }

    fn loaded(&self, place: &Address, value: &dyn Fn(&Expr<RegisterId>) -> Lowered) -> Lowered {
        match place {
            Address::Cell(c) => Lowered::sure(Expr::Atom(Var::Cell(*c))),
            Address::Computed {
                base,
                length,
                index,
            } => self.element(*base, *length, value(index)),
        }
    }

    /// The cell of an array at a computed index.
    fn element(&self, base: CellId, length: u32, index: Lowered) -> Lowered {
        let inside = self.inside(&index.value, length);
        let cell = |i: u32| Expr::Atom(Var::Cell(CellId(base.0 + i)));
        let last = cell(length.saturating_sub(1));
        let value = (0..length.saturating_sub(1)).rev().fold(last, |rest, i| {
            let here = Expr::binary(Op2::Eq, index.value.clone(), Expr::Const(i64::from(i)));
            Expr::ite(here, cell(i), rest)
        });
        Lowered {
            ok: all([index.ok, inside]),
            value,
        }
    }

    /// That an index is one of an array of this length; nothing to ask where its values say so.
    fn inside(&self, index: &Expr<Var>, length: u32) -> Expr<Var> {
        let most = i64::from(length) - 1;
        let within = self.bounds(None).of(index);
        match within.is_some_and(|(lo, hi)| lo >= 0 && hi <= i128::from(most)) {
            true => Expr::TRUE,
            false => lower::within(index, 0, most),
        }
    }

    fn stored(
        &self,
        place: &Address,
        value: &dyn Fn(&Expr<RegisterId>) -> Lowered,
        stored: Lowered,
    ) -> (Expr<Var>, Vec<(Var, Expr<Var>)>) {
        let ty = |c: CellId| self.instance.cell(c).ty;
        match place {
            Address::Cell(c) => {
                let v = stored.admitted(ty(*c));
                (v.ok, vec![(Var::Cell(*c), v.value)])
            }
            Address::Computed {
                base,
                length,
                index,
            } => {
                let index = value(index);
                let mut ok = vec![index.ok, self.inside(&index.value, *length)];
                let mut updates = Vec::new();
                for i in 0..*length {
                    let cell = CellId(base.0 + i);
                    let v = stored.clone().admitted(ty(cell));
                    let at = Expr::Const(i64::from(i));
                    let here = Expr::binary(Op2::Eq, index.value.clone(), at);
                    ok.push(any([not(here.clone()), v.ok]));
                    let old = Expr::Atom(Var::Cell(cell));
                    updates.push((Var::Cell(cell), Expr::ite(here, v.value, old)));
                }
                (all(ok), updates)
            }
        }
    }

    /// The states in which the question's target is true, where somebody looks.
    fn question(&self, question: &Question) -> Result<Expr<Var>, Refusal> {
        let looked = self.looked_at(&question.target, question.span)?;
        let mut parts = vec![self.is(Var::Inside, 0)];
        if question.only_final {
            parts.extend(self.instance.thread_ids().map(|t| self.ended(t)));
        }
        parts.push(looked);
        Ok(all(parts))
    }

    fn ended(&self, t: ThreadId) -> Expr<Var> {
        let thread = self.instance.thread(t);
        let locations = (0..thread.locations.len()).map(LocationId::new);
        let ends = locations.filter(|l| thread.ended(*l));
        any(ends.map(|l| equal(Var::At(t), l.index() as i64)))
    }

    /// A condition on states, which must have a value in each.
    fn looked_at(&self, e: &Expr<Fact>, span: Span) -> Result<Expr<Var>, Refusal> {
        let condition = lower(e, &|f| self.fact(f));
        if condition.ok == Expr::TRUE {
            return Ok(condition.value);
        }
        Err(Refusal {
            why: "the property may have no value (an index or a divisor is computed), which has no words here"
                .into(),
            span,
            hint: None,
        })
    }

    fn fact(&self, fact: &Fact) -> Lowered {
        match fact {
            // Under SC everybody sees memory.
            Fact::Cell(c) | Fact::Seen(_, c) => Lowered::sure(Expr::Atom(Var::Cell(*c))),
            Fact::CellAt {
                base,
                length,
                index,
            } => self.element(*base, *length, lower(index, &|f| self.fact(f))),
            Fact::Register(t, r) => Lowered::sure(Expr::Atom(Var::Register(*t, *r))),
            Fact::At(t, at) => {
                let each = at.iter().map(|l| equal(Var::At(*t), l.index() as i64));
                Lowered::sure(any(each))
            }
        }
    }

    /// What values variables have by their types; `plain` is what integers without bounds are kept in.
    fn bounds(&self, plain: Option<(i128, i128)>) -> Bounds<'_> {
        Bounds::new(self, plain)
    }
}

fn variables(instance: &Instance) -> Vec<Variable> {
    let mut all = Vec::new();
    let mut add = |var, name: String, source: String, ty, init| {
        all.push(Variable {
            var,
            name,
            source,
            ty,
            init,
        });
    };
    for (i, c) in instance.cells.iter().enumerate() {
        let name = format!("m{i}_{}", plain(&c.name));
        add(
            Var::Cell(CellId::new(i)),
            name,
            c.name.clone(),
            c.ty,
            c.init,
        );
    }
    let used = |wanted: &dyn Fn(&Action<RegisterId, Address>) -> bool| {
        let mut steps = instance.threads.iter().flat_map(|t| &t.steps);
        steps.any(|s| wanted(&s.action))
    };
    let numbers = Type::Range {
        lo: 0,
        hi: instance.threads.len() as i64,
    };
    if used(&|a| matches!(a, Action::AtomicBegin(_))) {
        let text = "who is inside an atomic block";
        add(
            Var::Inside,
            "inside".into(),
            text.into(),
            numbers,
            Initial::Value(0),
        );
    }
    if used(&|a| matches!(a, Action::Lock)) {
        let text = "who holds the lock";
        add(
            Var::Holder,
            "holder".into(),
            text.into(),
            numbers,
            Initial::Value(0),
        );
    }
    for (t, thread) in instance.thread_ids().zip(&instance.threads) {
        let (n, hi) = (t.index(), thread.locations.len() as i64);
        let entry = Initial::Value(thread.entry.index() as i64);
        let text = format!("where {} is", thread.name);
        add(
            Var::At(t),
            format!("at{n}"),
            text,
            Type::Range { lo: 0, hi },
            entry,
        );
        for (r, given) in thread.registers.iter().enumerate() {
            let name = format!("r{n}_{r}_{}", plain(&given.name));
            let source = format!("{}.{}", thread.name, given.name);
            let var = Var::Register(t, RegisterId::new(r));
            add(var, name, source, given.ty, given.init);
        }
    }
    all
}

/// A name with nothing but letters and digits that every language has.
fn plain(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.trim_end_matches(']').chars().map(letter).collect()
}

/// A text that ends no comment.
fn remark(text: &str) -> String {
    text.replace("*/", "* /").replace(['\n', '\r'], " ")
}

fn refused(span: Span, why: impl Into<String>) -> Refusal {
    Refusal {
        why: why.into(),
        span,
        hint: None,
    }
}
