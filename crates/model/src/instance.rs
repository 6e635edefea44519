//! A program with the number of threads fixed and every name resolved: flat cells, one graph per
//! thread, properties over concrete threads. Machines and engines for a fixed number of threads
//! read only this.
//!
//! Location and step numbers are those of the thread's family, so evidence about an instance can be
//! shown in the program's own words.

mod locks;
mod parts;
mod sections;

use crate::expr::Expr;
use crate::graph::{self, Action, Location, Section};
use crate::ids::{CellId, FamilyId, IndexId, LocationId, RegionId, RegisterId, StepId, ThreadId};
use crate::program::{Count, Family, Init, Length, Local, Place, Program};
use crate::property::{
    Condition, IndexVariable, Observation, PropertyKind, ThreadIndex, ThreadRef,
};
use crate::span::Span;
use crate::temporal::{Formula, Temporal, TemporalKind};
use crate::ty::Type;
use serde::Serialize;
use std::collections::BTreeMap;

/// Past these sizes an instance is refused rather than built.
pub const MAX_CELLS: u64 = 1 << 20;
pub const MAX_THREADS: u64 = 1 << 14;
pub const MAX_STEPS: u64 = 1 << 22;
pub const MAX_CONDITION: u64 = 1 << 18;

/// Thread counts that override the program's own, by family name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub BTreeMap<String, u32>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instance {
    pub cells: Vec<Cell>,
    pub threads: Vec<Thread>,
    pub questions: Vec<Question>,
    /// What runs must do in the long run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<Demand>,
    /// Hints for predicate abstraction.
    pub predicates: Vec<Expr<Fact>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// `x` or `x[3]`.
    pub name: String,
    pub region: RegionId,
    pub element: u32,
    /// Never [`Type::Thread`].
    pub ty: Type,
    pub init: Initial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Initial {
    Value(i64),
    /// Any value of the type.
    Any,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// `p` for a single thread, `p0`, `p1`, … in a family.
    pub name: String,
    pub family: FamilyId,
    pub index: u32,
    pub registers: Vec<Register>,
    pub locations: Vec<Location>,
    pub steps: Vec<Step>,
    pub entry: LocationId,
    /// Steps leaving each location, in order.
    #[serde(skip)]
    pub outgoing: Vec<Vec<StepId>>,
    /// Locations inside an atomic block (after its begin, before its end).
    #[serde(skip)]
    pub atomic: Vec<bool>,
    /// Those inside a drained one: stores write memory at once.
    pub direct: Vec<bool>,
}

pub type Register = graph::Register<Initial>;
pub type Step = graph::Step<RegisterId, Address>;

/// A memory operand with names resolved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Address {
    Cell(CellId),
    /// Cell `base + index`; an index outside `0..length` is a fault.
    Computed {
        base: CellId,
        length: u32,
        index: Expr<RegisterId>,
    },
}

/// A property as a reachability question: can `target` become true (in a final state, if
/// `only_final`)? For [`PropertyKind::Reachable`] reaching it is the good news, else the bad.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    pub kind: PropertyKind,
    pub target: Expr<Fact>,
    pub only_final: bool,
    #[serde(skip)]
    pub span: Span,
}

/// A demand on runs with every name resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Demand {
    pub kind: DemandKind,
    #[serde(skip)]
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum DemandKind {
    /// Every run satisfies it.
    Formula(Formula<Expr<Fact>>),
    /// No thread stays in one of its traps for ever ([`crate::waiting`]).
    Progress,
}

/// What a question can see of a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Fact {
    /// The value in memory.
    Cell(CellId),
    /// The value in memory at `base + index`; outside `0..length` the question has no answer in
    /// that state and the machine reports a fault.
    CellAt {
        base: CellId,
        length: u32,
        index: Box<Expr<Fact>>,
    },
    Register(ThreadId, RegisterId),
    /// The thread is at one of these locations (sorted).
    At(ThreadId, Vec<LocationId>),
}

/// Why there is no instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    #[error("the number of threads of `{family}` is not fixed")]
    Unfixed { family: String, span: Span },
    #[error("there is no family of threads called `{family}`")]
    NoFamily { family: String },
    #[error("`{family}` is a single thread; its number cannot be changed")]
    Single { family: String },
    #[error("the instance is too large: {what} (at most {limit})")]
    TooLarge { what: String, limit: u64 },
    #[error("`{what}` starts with a value outside its type")]
    BadInit { what: String, span: Span },
    #[error("`{what}` starts with {given} values but has {length} elements")]
    InitLength {
        what: String,
        given: usize,
        length: u32,
        span: Span,
    },
    #[error("the property speaks of `{family}[{index}]`, but there are only {count} such threads")]
    NoThread {
        family: String,
        index: u32,
        count: u32,
        span: Span,
    },
    #[error("the initial value of `{what}` is not a constant")]
    NotConstant { what: String, span: Span },
}

impl Thread {
    /// A step that begins a buffered atomic block, which not every engine treats.
    pub fn buffered_section(&self) -> Option<&Step> {
        let begins = |s: &&Step| s.action == Action::AtomicBegin(Section::Buffered);
        self.steps.iter().find(begins)
    }

    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.index()]
    }

    pub fn outgoing(&self, at: LocationId) -> &[StepId] {
        &self.outgoing[at.index()]
    }

    /// A thread has ended where no step leaves.
    pub fn ended(&self, at: LocationId) -> bool {
        self.outgoing[at.index()].is_empty()
    }
}

impl Question {
    /// Whether a fault anywhere answers the question. Not if a final state is looked for: runs with a
    /// fault have none, and what other runs do does not matter to one that gets there.
    pub fn minds_faults(&self) -> bool {
        self.kind != PropertyKind::Reachable
    }
}

impl Instance {
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.index()]
    }

    pub fn cell(&self, id: CellId) -> &Cell {
        &self.cells[id.index()]
    }

    pub fn thread_ids(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.threads.len()).map(ThreadId::new)
    }

    /// Whether every cell and register has finitely many values by its type.
    pub fn is_finite(&self) -> bool {
        let cells = self.cells.iter().map(|c| c.ty);
        let registers = self
            .threads
            .iter()
            .flat_map(|t| t.registers.iter().map(|r| r.ty));
        cells.chain(registers).all(|ty| ty.bounds().is_some())
    }
}

impl Program {
    /// The program as written; families of any number of threads have no instance of their own.
    pub fn instance(&self) -> Result<Instance, InstanceError> {
        self.instantiate(&Counts::default())
    }

    /// The instance with the given thread counts; families not named keep their own.
    pub fn instantiate(&self, counts: &Counts) -> Result<Instance, InstanceError> {
        Builder::new(self, counts)?.build()
    }
}

struct Builder<'p> {
    program: &'p Program,
    /// Threads per family, and the id of each family's first thread.
    counts: Vec<u32>,
    first: Vec<u32>,
    /// First cell and number of cells per region.
    base: Vec<u32>,
    length: Vec<u32>,
}

impl<'p> Builder<'p> {
    fn new(program: &'p Program, given: &Counts) -> Result<Self, InstanceError> {
        for name in given.0.keys() {
            match program.family_named(name).map(|f| program.family(f)) {
                None => {
                    return Err(InstanceError::NoFamily {
                        family: name.clone(),
                    });
                }
                Some(f) if f.count == Count::One => {
                    return Err(InstanceError::Single {
                        family: name.clone(),
                    });
                }
                Some(_) => {}
            }
        }
        let mut counts = Vec::new();
        let mut first = Vec::new();
        let (mut threads, mut steps) = (0u64, 0u64);
        for f in &program.families {
            let n = match (given.0.get(&f.name), f.count) {
                (Some(n), _) => *n,
                (None, Count::One) => 1,
                (None, Count::Fixed(n)) => n,
                (None, Count::Any) => {
                    return Err(InstanceError::Unfixed {
                        family: f.name.clone(),
                        span: f.span,
                    });
                }
            };
            first.push(threads.min(MAX_THREADS) as u32);
            counts.push(n);
            threads += u64::from(n);
            steps += u64::from(n) * (f.steps.len() as u64 + 1);
        }
        within(threads, MAX_THREADS, "threads")?;
        within(steps, MAX_STEPS, "steps of all threads")?;
        let (mut base, mut length) = (Vec::new(), Vec::new());
        let mut cells = 0u64;
        for r in &program.regions {
            let n = match r.length {
                Length::Scalar => 1,
                Length::Array(n) => n,
                Length::PerThread(f) => counts[f.index()],
            };
            base.push(cells.min(MAX_CELLS) as u32);
            length.push(n);
            cells += u64::from(n);
            within(cells, MAX_CELLS, "memory cells")?;
        }
        Ok(Builder {
            program,
            counts,
            first,
            base,
            length,
        })
    }

    fn build(&self) -> Result<Instance, InstanceError> {
        let mut threads = Vec::new();
        for (f, family) in self.program.families.iter().enumerate() {
            for index in 0..self.counts[f] {
                threads.push(self.thread(FamilyId::new(f), family, index)?);
            }
        }
        let mut questions = Vec::new();
        for p in &self.program.properties {
            let existential = matches!(p.kind, PropertyKind::Never | PropertyKind::Reachable);
            let holds = self.condition(&p.condition, existential, p.span)?;
            questions.push(Question {
                kind: p.kind,
                target: if existential { holds } else { holds.negate() },
                only_final: matches!(p.kind, PropertyKind::Finally | PropertyKind::Reachable),
                span: p.span,
            });
        }
        let mut demands = Vec::new();
        for t in &self.program.temporal {
            demands.push(Demand {
                kind: self.demand(t)?,
                span: t.span,
            });
        }
        let mut predicates = Vec::new();
        for c in &self.program.predicates {
            for expr in self.instances(c, Span::NONE)? {
                if !predicates.contains(&expr) {
                    predicates.push(expr);
                }
            }
        }
        Ok(Instance {
            cells: self.cells()?,
            threads,
            questions,
            demands,
            predicates,
        })
    }

    fn cells(&self) -> Result<Vec<Cell>, InstanceError> {
        let mut cells = Vec::new();
        for (r, region) in self.program.regions.iter().enumerate() {
            for element in 0..self.length[r] {
                let ty = self.ty(region.ty);
                cells.push(Cell {
                    name: match region.length {
                        Length::Scalar => region.name.clone(),
                        Length::Array(_) | Length::PerThread(_) => {
                            format!("{}[{element}]", region.name)
                        }
                    },
                    region: RegionId::new(r),
                    element,
                    ty,
                    init: self.initial(
                        &region.init,
                        ty,
                        (element, element, self.length[r]),
                        &region.name,
                        region.span,
                    )?,
                });
            }
        }
        Ok(cells)
    }

    fn thread(&self, id: FamilyId, f: &Family, index: u32) -> Result<Thread, InstanceError> {
        let mut registers = Vec::new();
        for r in &f.registers {
            let ty = self.ty(r.ty);
            registers.push(Register {
                name: r.name.clone(),
                ty,
                init: self.initial(&r.init, ty, (index, 0, 1), &r.name, r.span)?,
                span: r.span,
            });
        }
        let steps: Vec<Step> = f
            .steps
            .iter()
            .map(|s| Step {
                source: s.source,
                target: s.target,
                action: self.action(&s.action, index),
                span: s.span,
            })
            .collect();
        let mut outgoing = vec![Vec::new(); f.locations.len()];
        for (i, s) in steps.iter().enumerate() {
            outgoing[s.source.index()].push(StepId::new(i));
        }
        let sections = sections(f.locations.len(), f.entry, &steps, &outgoing);
        Ok(Thread {
            name: match f.count {
                Count::One => f.name.clone(),
                Count::Fixed(_) | Count::Any => format!("{}{index}", f.name),
            },
            family: id,
            index,
            registers,
            locations: f.locations.clone(),
            steps,
            entry: f.entry,
            outgoing,
            atomic: sections.iter().map(Option::is_some).collect(),
            direct: (sections.iter())
                .map(|s| *s == Some(Section::Drained))
                .collect(),
        })
    }

    /// Thread identifiers become the range from none (−1) to the last thread.
    fn ty(&self, ty: Type) -> Type {
        match ty {
            Type::Thread(f) => Type::Range {
                lo: -1,
                hi: i64::from(self.counts[f.index()]) - 1,
            },
            ty @ (Type::Int | Type::Range { .. } | Type::Wrap { .. }) => ty,
        }
    }

    /// `element` is the position among `length` values; `self_index` what `self` means here.
    fn initial(
        &self,
        init: &Init,
        ty: Type,
        (self_index, element, length): (u32, u32, u32),
        name: &str,
        span: Span,
    ) -> Result<Initial, InstanceError> {
        let what = name.to_string();
        let expr = match init {
            Init::Any => return Ok(Initial::Any),
            Init::All(e) => e,
            Init::Each(es) if es.len() != length as usize => {
                return Err(InstanceError::InitLength {
                    what,
                    given: es.len(),
                    length,
                    span,
                });
            }
            Init::Each(es) => &es[element as usize],
        };
        let value = match self.local(expr, self_index).as_const() {
            Some(v) => v,
            None => return Err(InstanceError::NotConstant { what, span }),
        };
        match ty.admit(value) {
            Some(v) => Ok(Initial::Value(v)),
            None => Err(InstanceError::BadInit { what, span }),
        }
    }

    fn local(&self, e: &Expr<Local>, self_index: u32) -> Expr<RegisterId> {
        let folded: Result<_, std::convert::Infallible> = e.substitute(&mut |a| {
            Ok(match a {
                Local::Register(r) => Expr::Atom(*r),
                Local::SelfIndex => Expr::Const(i64::from(self_index)),
                Local::Count(f) => Expr::Const(i64::from(self.counts[f.index()])),
                Local::AddressOf(r) => Expr::Const(i64::from(self.base[r.index()])),
            })
        });
        match folded {
            Ok(e) => e,
            Err(never) => match never {},
        }
    }

    fn place(&self, place: &Place, self_index: u32) -> Address {
        let (base, length, index) = match place {
            Place::Region(r, index) => (self.base[r.index()], self.length[r.index()], index),
            Place::Memory(index) => (0, self.length.iter().sum(), index),
        };
        let index = self.local(index, self_index);
        match index.as_const() {
            Some(i) if 0 <= i && i < i64::from(length) => Address::Cell(CellId(base + i as u32)),
            _ => Address::Computed {
                base: CellId(base),
                length,
                index,
            },
        }
    }

    fn action(&self, action: &crate::program::Action, me: u32) -> Action<RegisterId, Address> {
        match action {
            Action::Skip => Action::Skip,
            Action::Assign { register, value } => Action::Assign {
                register: *register,
                value: self.local(value, me),
            },
            Action::Havoc { register, range } => Action::Havoc {
                register: *register,
                range: *range,
            },
            Action::Assume(e) => Action::Assume(self.local(e, me)),
            Action::Assert { condition, message } => Action::Assert {
                condition: self.local(condition, me),
                message: message.clone(),
            },
            Action::Load { register, place } => Action::Load {
                register: *register,
                place: self.place(place, me),
            },
            Action::Store { place, value } => Action::Store {
                place: self.place(place, me),
                value: self.local(value, me),
            },
            Action::Fence(f) => Action::Fence(*f),
            Action::AtomicBegin(section) => Action::AtomicBegin(*section),
            Action::AtomicEnd => Action::AtomicEnd,
            Action::Lock => Action::Lock,
            Action::Unlock => Action::Unlock,
        }
    }

    /// The condition with its quantifier expanded: a disjunction or a conjunction.
    fn condition(
        &self,
        c: &Condition,
        existential: bool,
        span: Span,
    ) -> Result<Expr<Fact>, InstanceError> {
        Ok(junction(existential, self.instances(c, span)?))
    }

    /// The formula for all choices of its index variables.
    fn demand(&self, t: &Temporal) -> Result<DemandKind, InstanceError> {
        let (indices, formula) = match &t.kind {
            TemporalKind::Progress => return Ok(DemandKind::Progress),
            TemporalKind::Ltl(indices, formula) => (indices, formula.clone()),
            TemporalKind::LeadsTo(from, to) => {
                let formula = Formula::leads_to(from.expr.clone(), to.clone());
                (&from.indices, formula)
            }
        };
        let mut each = Vec::new();
        for choice in self.choices(indices)? {
            each.push(formula.map(&mut |e| self.fact(e, &choice, t.span))?);
        }
        // A balanced tree, so that wide formulas do not become deep ones.
        while each.len() > 1 {
            let mut next = Vec::with_capacity(each.len().div_ceil(2));
            let mut rest = each.into_iter();
            while let Some(a) = rest.next() {
                next.push(match rest.next() {
                    Some(b) => Formula::And(Box::new(a), Box::new(b)),
                    None => a,
                });
            }
            each = next;
        }
        let all = each.pop().unwrap_or(Formula::Now(Expr::TRUE));
        Ok(DemandKind::Formula(all))
    }

    /// One expression per choice of different threads for the index variables.
    fn instances(&self, c: &Condition, span: Span) -> Result<Vec<Expr<Fact>>, InstanceError> {
        let choices = self.choices(&c.indices)?;
        let choices = choices.iter();
        choices
            .map(|choice| self.fact(&c.expr, choice, span))
            .collect()
    }

    /// Every choice of different threads for the variables.
    fn choices(&self, indices: &[IndexVariable]) -> Result<Vec<Vec<u32>>, InstanceError> {
        let mut choices: Vec<Vec<u32>> = vec![Vec::new()];
        for v in indices {
            let n = self.counts[v.family.index()];
            let more = choices.len() as u64 * u64::from(n);
            within(more, MAX_CONDITION, "choices of threads in a property")?;
            let mut next = Vec::new();
            for choice in &choices {
                for i in 0..n {
                    let taken = indices
                        .iter()
                        .zip(choice)
                        .any(|(w, j)| w.family == v.family && *j == i);
                    if !taken {
                        let mut longer = choice.clone();
                        longer.push(i);
                        next.push(longer);
                    }
                }
            }
            choices = next;
        }
        Ok(choices)
    }

    fn fact(
        &self,
        e: &Expr<Observation>,
        choice: &[u32],
        span: Span,
    ) -> Result<Expr<Fact>, InstanceError> {
        e.substitute(&mut |o| {
            Ok(match o {
                Observation::Cell(r, index) => {
                    let (base, length) = (self.base[r.index()], self.length[r.index()]);
                    cell_fact(base, length, self.fact(index, choice, span)?)
                }
                Observation::Memory(index) => {
                    cell_fact(0, self.length.iter().sum(), self.fact(index, choice, span)?)
                }
                Observation::AddressOf(r) => Expr::Const(i64::from(self.base[r.index()])),
                Observation::Register(t, r) => {
                    Expr::Atom(Fact::Register(self.thread_id(t, choice, span)?, *r))
                }
                Observation::At(t, label) => {
                    let id = self.thread_id(t, choice, span)?;
                    let locations = &self.program.family(t.family).locations;
                    let at = locations.iter().enumerate();
                    let at = at.filter(|(_, l)| l.labels.contains(label));
                    Expr::Atom(Fact::At(id, at.map(|(i, _)| LocationId::new(i)).collect()))
                }
                Observation::Index(IndexId(i)) => Expr::Const(i64::from(choice[*i as usize])),
                Observation::Count(f) => Expr::Const(i64::from(self.counts[f.index()])),
            })
        })
    }

    fn thread_id(
        &self,
        t: &ThreadRef,
        choice: &[u32],
        span: Span,
    ) -> Result<ThreadId, InstanceError> {
        let index = match t.index {
            ThreadIndex::Number(n) => n,
            ThreadIndex::Variable(v) => choice[v.index()],
        };
        let count = self.counts[t.family.index()];
        if index >= count {
            return Err(InstanceError::NoThread {
                family: self.program.family(t.family).name.clone(),
                index,
                count,
                span,
            });
        }
        Ok(ThreadId(self.first[t.family.index()] + index))
    }
}

fn within(n: u64, limit: u64, what: &str) -> Result<(), InstanceError> {
    if n <= limit {
        return Ok(());
    }
    Err(InstanceError::TooLarge {
        what: format!("{n} {what}"),
        limit,
    })
}

fn cell_fact(base: u32, length: u32, index: Expr<Fact>) -> Expr<Fact> {
    Expr::Atom(match index.as_const() {
        Some(i) if 0 <= i && i < i64::from(length) => Fact::Cell(CellId(base + i as u32)),
        _ => Fact::CellAt {
            base: CellId(base),
            length,
            index: Box::new(index),
        },
    })
}

/// A balanced tree, so that wide properties do not become deep ones.
fn junction(or: bool, mut parts: Vec<Expr<Fact>>) -> Expr<Fact> {
    let op = if or { crate::Op2::Or } else { crate::Op2::And };
    if parts.is_empty() {
        return Expr::Const(i64::from(!or));
    }
    while parts.len() > 1 {
        let mut next = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(a) = rest.next() {
            next.push(match rest.next() {
                Some(b) => Expr::binary(op, a, b),
                None => a,
            });
        }
        parts = next;
    }
    parts.swap_remove(0)
}

/// The atomic block each location is in.
fn sections(
    locations: usize,
    entry: LocationId,
    steps: &[Step],
    outgoing: &[Vec<StepId>],
) -> Vec<Option<Section>> {
    let mut inside = vec![None; locations];
    let mut seen = vec![false; locations];
    let mut work = vec![entry];
    if let Some(s) = seen.get_mut(entry.index()) {
        *s = true;
    }
    while let Some(l) = work.pop() {
        for s in outgoing.get(l.index()).into_iter().flatten() {
            let step = &steps[s.index()];
            let target = step.target.index();
            if !seen[target] {
                seen[target] = true;
                inside[target] = match step.action {
                    Action::AtomicBegin(section) => Some(section),
                    Action::AtomicEnd => None,
                    Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Load { .. }
                    | Action::Store { .. }
                    | Action::Fence(_)
                    | Action::Lock
                    | Action::Unlock => inside[l.index()],
                };
                work.push(step.target);
            }
        }
    }
    inside
}
