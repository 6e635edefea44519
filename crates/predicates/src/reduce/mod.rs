//! An instance under SC, TSO or PSO as a transition system over integers that runs under SC
//! (dan-2013 §3 and App. A.4).
//!
//! Pending stores become variables: entry i of a thread's buffer is one integer, and which cell it
//! belongs to is part of the control state, the [`Shape`]. So no variable counts entries, the flush
//! loop after every statement is a move of its own, and the pointers that must return to 0
//! (printz-2015, 4.3.4) do not exist. A store past the bound of its buffer is [`Next::Overflow`]: k
//! was too small, which says nothing about the program. Where the static analysis of [`size`] gives
//! a bound, overflow cannot happen and the system is exact.
//!
//! Buffers are lists of entries in a canonical order. Under TSO that is the order of the stores and
//! only the first drains. Under PSO entries are sorted by epoch (store fences close an epoch) and
//! cell; an entry of the oldest epoch drains if it is the first of its cell.

pub mod blur;
pub mod expr;
pub mod ranges;
mod shape;
pub mod size;
mod steps;

pub use shape::{Cause, Move, Next, Pending, Shape, Slot, Symbol};

use blur::Blur;
use expr::{Cases, Leaf, Leaves, Unfit, truth};
use ranges::{Interval, Ranges};
use size::may_be;
use wattle_evidence::{Refusal, Task};
use wattle_logic::{Formula, Term, Var, and, eq, ge, le};
use wattle_memory::MemoryModel;
use wattle_model::instance::{Fact, Initial, Instance, Question, Step};
use wattle_model::{CellId, Expr, RegisterId, Span, StepId, ThreadId, Type};

/// The reduced system.
#[derive(Clone, Debug)]
pub struct System<'i> {
    pub instance: &'i Instance,
    pub model: MemoryModel,
    /// The first variable of each thread's registers.
    first: Vec<u32>,
    cells: u32,
    choice: u32,
    /// Per thread: entries its buffer (each cell's, under PSO) can hold, and whether that is all it
    /// will ever need.
    pub bounds: Vec<(usize, bool)>,
    live: Vec<Vec<Vec<bool>>>,
    /// What every value keeps to.
    pub ranges: Ranges,
    /// How buffers without a static bound are kept small; without it they overflow.
    pub blur: Option<Blur>,
    /// Casts are followed, by how often a number goes round.
    pub casts: bool,
}

/// How values are read: leaves, and casts where the system follows them.
struct Reading<'s, 'i, F> {
    system: &'s System<'i>,
    leaf: F,
}

impl<A, F: Fn(&A) -> Result<Term, Unfit>> Leaves<A> for Reading<'_, '_, F> {
    fn leaf(&self, a: &A) -> Result<Term, Unfit> {
        (self.leaf)(a)
    }

    fn cast(&self, ty: Type, cases: Cases) -> Result<Cases, Unfit> {
        match self.system.casts {
            true => self.system.wrapped(ty, cases),
            false => (&self.leaf as &Leaf<'_, A>).cast(ty, cases),
        }
    }
}

/// Slots of a state times threads, past which predicates over all of them come to no end.
const MOST_WORK: usize = 1 << 18;

impl<'i> System<'i> {
    /// Whether an engine over systems can work on the task; if not, one sentence why.
    pub fn accepts(task: &Task<'_>) -> Result<(), Refusal> {
        System::accepts_types(task, (false, false))
    }

    /// As `accepts`, for an engine that treats types that wrap around, or does not; and casts.
    pub fn accepts_types(task: &Task<'_>, (wrapping, casts): (bool, bool)) -> Result<(), Refusal> {
        if task.deadlock {
            return Err(Refusal::new("predicates do not decide deadlocks"));
        }
        if task.instance.threads.is_empty() {
            return Err(Refusal::new("there are no threads"));
        }
        task.is_narrow(MOST_WORK)?;
        task.is_about_memory()?;
        let linear = System::new(task.instance, task.model, task.question(), 1);
        linear
            .with_casts(casts)
            .check(task.question(), wrapping)
            .map_err(|(unfit, span)| {
                let why = format!("it treats linear integer programs only: {}", unfit.why);
                Refusal::new(why).at(span, unfit.hint)
            })
    }

    /// The system with at most `k` entries in the buffers that have no static bound.
    pub fn new(
        instance: &'i Instance,
        model: MemoryModel,
        question: Option<&Question>,
        k: usize,
    ) -> Self {
        let mut first = Vec::new();
        let mut next = 0;
        for t in &instance.threads {
            first.push(next);
            next += t.registers.len() as u32;
        }
        let count = instance.cells.len();
        let bounds = instance.threads.iter();
        let bounds = bounds.map(|t| match size::bound(t, model, count) {
            Some(b) => (b, true),
            None => (k, false),
        });
        let unseen = instance.threads.iter();
        let mut seen: Vec<Vec<bool>> = unseen.map(|t| vec![false; t.registers.len()]).collect();
        if let Some(q) = question {
            q.target.for_each_atom(&mut |f| {
                if let Fact::Register(t, r) = f {
                    seen[t.index()][r.index()] = true;
                }
            });
        }
        let threads = instance.threads.iter().zip(&seen);
        System {
            instance,
            model,
            first,
            cells: next,
            choice: next + count as u32,
            bounds: bounds.collect(),
            live: threads
                .map(|(t, s)| t.live(vec![s.clone(); t.locations.len()]))
                .collect(),
            ranges: Ranges::of(instance),
            blur: None,
            casts: false,
        }
    }

    /// The system that follows casts, or does not.
    pub fn with_casts(mut self, casts: bool) -> Self {
        self.casts = casts;
        self
    }

    fn read<F>(&self, leaf: F) -> Reading<'_, 'i, F> {
        Reading { system: self, leaf }
    }

    /// The system with at most `k` entries in every buffer: a store past them is an overflow, also where a
    /// static bound says that there are not many more.
    pub fn at_most(mut self, k: usize) -> Self {
        for (bound, known) in &mut self.bounds {
            if *bound > k {
                (*bound, *known) = (k, false);
            }
        }
        self
    }

    /// The system with buffers of any length where there is no static bound, exact (`None`) or
    /// blurred. Exact ones may grow for ever: they are for following a given trace.
    pub fn unbounded(mut self, blur: Option<Blur>) -> Self {
        for (bound, known) in &mut self.bounds {
            if !*known {
                *bound = usize::MAX;
            }
        }
        self.blur = blur;
        self
    }

    /// How the thread's buffer is kept small, if it is.
    pub fn blur_of(&self, t: ThreadId) -> Option<&Blur> {
        let known = self.bounds[t.index()].1;
        self.blur.as_ref().filter(|_| !known)
    }

    pub fn register(&self, t: ThreadId, r: RegisterId) -> Var {
        Var(self.first[t.index()] + r.0)
    }

    pub fn cell(&self, c: CellId) -> Var {
        Var(self.cells + c.0)
    }

    pub fn choice(&self) -> Var {
        Var(self.choice)
    }

    pub fn entry(&self, t: ThreadId, position: usize) -> Var {
        let threads = self.instance.threads.len() as u32;
        Var(self.choice + 1 + position as u32 * threads + t.0)
    }

    pub fn symbol(&self, v: Var) -> Symbol {
        if v.0 > self.choice {
            let threads = self.instance.threads.len() as u32;
            let n = v.0 - self.choice - 1;
            return Symbol::Entry(ThreadId(n % threads), (n / threads) as usize);
        }
        if v.0 == self.choice {
            return Symbol::Choice;
        }
        if v.0 >= self.cells {
            return Symbol::Cell(CellId(v.0 - self.cells));
        }
        let t = self.first.partition_point(|f| *f <= v.0) - 1;
        Symbol::Register(ThreadId::new(t), RegisterId(v.0 - self.first[t]))
    }

    /// Whether the variable means something in the shape that may still matter.
    pub fn matters(&self, shape: &Shape, v: Var) -> bool {
        match self.symbol(v) {
            Symbol::Cell(_) => true,
            Symbol::Choice => false,
            Symbol::Entry(t, i) => i < shape.pending[t.index()].slots.len(),
            Symbol::Register(t, r) => {
                self.live[t.index()][shape.locations[t.index()].index()][r.index()]
            }
        }
    }

    /// The variables that matter in the shape and have no least or no greatest value.
    pub fn unbounded_variables(&self, shape: &Shape) -> Vec<Var> {
        let threads = self.instance.threads.len();
        let longest = shape.pending.iter().map(|p| p.slots.len()).max();
        let end = self.choice + 1 + (longest.unwrap_or(0) * threads) as u32;
        let open = |v: &Var| {
            let interval = self.interval(shape, *v);
            interval.is_some_and(|i| i.lo.is_none() || i.hi.is_none())
        };
        let all = (0..end).map(Var).filter(|v| self.matters(shape, *v));
        all.filter(open).collect()
    }

    /// What every value of the variable keeps to in the shape.
    pub fn domain(&self, shape: &Shape, v: Var) -> Formula {
        match self.interval(shape, v) {
            Some(interval) => inside(interval, &Term::from(v)),
            None => Formula::True,
        }
    }

    fn interval(&self, shape: &Shape, v: Var) -> Option<Interval> {
        match self.symbol(v) {
            Symbol::Register(t, r) => Some(self.ranges.registers[t.index()][r.index()]),
            Symbol::Cell(c) => Some(self.ranges.cells[c.index()]),
            Symbol::Choice => None,
            Symbol::Entry(t, i) => {
                let slot = shape.pending[t.index()].slots.get(i)?;
                Some(self.ranges.cells[slot.cell.index()])
            }
        }
    }

    /// What every value of the variable keeps to, whatever the shape; of entries nothing is known.
    fn interval_of_variable(&self, v: Var) -> Interval {
        match self.symbol(v) {
            Symbol::Register(t, r) => self.ranges.registers[t.index()][r.index()],
            Symbol::Cell(c) => self.ranges.cells[c.index()],
            Symbol::Choice | Symbol::Entry(..) => Interval::exactly(None),
        }
    }

    /// The least and the greatest value of a register or a cell, if there are at most so many.
    pub fn few(&self, v: Var, most: u64) -> Option<(i64, i64)> {
        let interval = self.interval_of_variable(v);
        let (lo, hi) = (interval.lo?, interval.hi?);
        (lo.abs_diff(hi) < most).then_some((lo, hi))
    }

    /// What every value of a register or a cell keeps to.
    pub fn range(&self, v: Var, value: &Term) -> Formula {
        match self.symbol(v) {
            Symbol::Register(t, r) => inside(self.ranges.registers[t.index()][r.index()], value),
            Symbol::Cell(c) => inside(self.ranges.cells[c.index()], value),
            Symbol::Choice | Symbol::Entry(..) => Formula::True,
        }
    }

    pub fn initial(&self) -> (Shape, Formula) {
        let threads = &self.instance.threads;
        let shape = Shape {
            locations: threads.iter().map(|t| t.entry).collect(),
            pending: vec![Pending::default(); threads.len()],
            holder: None,
        };
        let start = |v: Var, init: Initial, ty: Type| match init {
            Initial::Value(c) => eq(v, c),
            Initial::Any => admits(ty, &Term::from(v)),
        };
        let mut parts = Vec::new();
        for (c, cell) in self.instance.cells.iter().enumerate() {
            parts.push(start(self.cell(CellId::new(c)), cell.init, cell.ty));
        }
        for t in self.instance.thread_ids() {
            for (r, reg) in self.instance.thread(t).registers.iter().enumerate() {
                parts.push(start(
                    self.register(t, RegisterId::new(r)),
                    reg.init,
                    reg.ty,
                ));
            }
        }
        (shape, and(parts))
    }

    /// When the question's target is seen in the shape.
    pub fn target(&self, shape: &Shape, question: &Question) -> Result<Formula, Unfit> {
        let threads = &self.instance.threads;
        let ended = |t: usize| threads[t].ended(shape.locations[t]);
        let quiet = shape.pending.iter().all(|p| p.slots.is_empty());
        if self.alone(shape).is_some()
            || (question.only_final && !(quiet && (0..threads.len()).all(ended)))
        {
            return Ok(Formula::False);
        }
        let leaf = self.read(|fact: &Fact| self.fact(Some(shape), fact));
        truth(&question.target, &leaf)
    }

    fn fact(&self, shape: Option<&Shape>, fact: &Fact) -> Result<Term, Unfit> {
        Ok(match fact {
            Fact::Cell(c) => self.cell(*c).into(),
            Fact::CellAt {
                base,
                length,
                index,
            } => match index.as_const().map(u32::try_from) {
                Some(Ok(i)) if i < *length => self.cell(CellId(base.0 + i)).into(),
                _ => {
                    let hint = "an index that is a number would work, one property for each";
                    return Err(Unfit::new("the property computes an index", hint));
                }
            },
            Fact::Seen(..) => {
                let hint = "the value in memory would work";
                return Err(Unfit::new("the property sees pending stores", hint));
            }
            Fact::Register(t, r) => self.register(*t, *r).into(),
            Fact::At(t, at) => {
                let here = shape.is_some_and(|s| at.contains(&s.locations[t.index()]));
                Term::constant(i64::from(here))
            }
        })
    }

    /// A hint as a formula; `None` where it speaks of locations or is not linear.
    pub fn hint(&self, e: &Expr<Fact>) -> Option<Formula> {
        let mut located = false;
        e.for_each_atom(&mut |f| located |= matches!(f, Fact::At(..)));
        (!located).then(|| truth(e, &|f: &Fact| self.fact(None, f)).ok())?
    }

    /// The thread inside an atomic block.
    pub fn alone(&self, shape: &Shape) -> Option<ThreadId> {
        let mut threads = self.instance.thread_ids();
        threads.find(|t| self.instance.thread(*t).atomic[shape.locations[t.index()].index()])
    }

    /// Every step on its own, from an arbitrary shape: whether the system can be built at all; if not,
    /// the place.
    fn check(&self, question: Option<&Question>, wrapping: bool) -> Result<(), (Unfit, Span)> {
        let instance = self.instance;
        for (c, cell) in instance.cells.iter().enumerate() {
            let mut steps = instance.threads.iter().flat_map(|t| &t.steps);
            let uses = |s: &&Step| s.action.place().is_some_and(|p| may_be(p, CellId::new(c)));
            let mut span = || steps.find(uses).map_or(Span::NONE, |s| s.span);
            fits(cell.ty, &cell.name, wrapping).map_err(|unfit| (unfit, span()))?;
        }
        for register in instance.threads.iter().flat_map(|t| &t.registers) {
            fits(register.ty, &register.name, wrapping).map_err(|unfit| (unfit, register.span))?;
        }
        let (mut shape, _) = self.initial();
        if let Some(q) = question {
            let at = |unfit| (unfit, q.span);
            self.target(&shape, q).map_err(at)?;
            let leaf = self.read(|f: &Fact| self.fact(Some(&shape), f));
            truth(&q.target, &leaf).map_err(at)?;
        }
        for t in instance.thread_ids() {
            let thread = instance.thread(t);
            for (s, step) in thread.steps.iter().enumerate() {
                shape.locations[t.index()] = step.source;
                let made = self.step(&shape, t, StepId::new(s), &mut Vec::new());
                made.map_err(|unfit| (unfit, step.span))?;
            }
            shape.locations[t.index()] = thread.entry;
        }
        Ok(())
    }
}

/// Whether values of the type are integers without further ado.
fn fits(ty: Type, name: &str, wrapping: bool) -> Result<(), Unfit> {
    match ty {
        Type::Wrap { .. } if wrapping => Ok(()),
        Type::Wrap { .. } | Type::Thread(_) => {
            let why = format!("`{name}` wraps around, which is not linear");
            Err(Unfit::new(why, expr::NO_WRAP))
        }
        Type::Int | Type::Range { .. } => Ok(()),
    }
}

/// The value lies in the interval.
pub fn inside(interval: Interval, value: &Term) -> Formula {
    let lo = interval.lo.map(|lo| ge(value.clone(), lo));
    let hi = interval.hi.map(|hi| le(value.clone(), hi));
    and(lo.into_iter().chain(hi))
}

/// The type admits the value.
pub fn admits(ty: Type, value: &Term) -> Formula {
    match ty.bounds() {
        Some((lo, hi)) => and([ge(value.clone(), lo), le(value.clone(), hi)]),
        None => Formula::True,
    }
}
