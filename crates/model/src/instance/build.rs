//! The instance of a program with so many threads.

use super::error::{self, within};
use super::{
    Address, Cell, Counts, Demand, Fact, Initial, Instance, InstanceError, MAX_CELLS,
    MAX_CONDITION, MAX_STEPS, MAX_THREADS, Question, Register, Step, Thread,
};
use crate::expr::{Expr, Op2};
use crate::graph::{Action, Section};
use crate::ids::{CellId, FamilyId, IndexId, LocationId, RegionId, RegisterId, StepId, ThreadId};
use crate::program::{Count, Family, Init, Length, Local, Place, Program};
use crate::property::{
    Condition, IndexVariable, Observation, PropertyKind, ThreadIndex, ThreadRef,
};
use crate::span::Span;
use crate::ty::Type;
use std::convert::Infallible;

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

pub(super) struct Builder<'p> {
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
        error::named(program, given)?;
        let mut counts = Vec::new();
        let mut first = Vec::new();
        let (mut threads, mut steps) = (0u64, 0u64);
        for f in &program.families {
            let n = match (given.0.get(&f.name), f.count) {
                (Some(n), _) => *n,
                (None, Count::One) => 1,
                (None, Count::Fixed(n)) => n,
                (None, Count::Any) => return Err(error::unfixed(f)),
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
            let target = if existential { holds } else { holds.negate() };
            let only_final = matches!(p.kind, PropertyKind::Finally | PropertyKind::Reachable);
            questions.push(Question {
                kind: p.kind,
                target: never_pending(&target, &threads, only_final),
                only_final,
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
            Init::Each(es) if es.len() == length as usize => &es[element as usize],
            Init::Each(es) => return Err(error::init_length(what, es.len(), length, span)),
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
        let Ok(folded) = e.substitute(&mut |a| {
            Ok::<_, Infallible>(match a {
                Local::Register(r) => Expr::Atom(*r),
                Local::SelfIndex => Expr::Const(i64::from(self_index)),
                Local::Count(f) => Expr::Const(i64::from(self.counts[f.index()])),
                Local::AddressOf(r) => Expr::Const(i64::from(self.base[r.index()])),
            })
        });
        folded
    }

    /// The first cell of a region, and how many there are; of all memory, if none is named.
    fn extent(&self, region: Option<RegionId>) -> (u32, u32) {
        match region {
            Some(r) => (self.base[r.index()], self.length[r.index()]),
            None => (0, self.length.iter().sum()),
        }
    }

    fn place(&self, place: &Place, self_index: u32) -> Address {
        let (region, index) = match place {
            Place::Region(r, index) => (Some(*r), index),
            Place::Memory(index) => (None, index),
        };
        let (base, length) = self.extent(region);
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
        let op = if existential { Op2::Or } else { Op2::And };
        let all = balanced(self.instances(c, span)?, |a, b| Expr::binary(op, a, b));
        Ok(all.unwrap_or(Expr::Const(i64::from(!existential))))
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
    pub(super) fn choices(
        &self,
        indices: &[IndexVariable],
    ) -> Result<Vec<Vec<u32>>, InstanceError> {
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

    pub(super) fn fact(
        &self,
        e: &Expr<Observation>,
        choice: &[u32],
        span: Span,
    ) -> Result<Expr<Fact>, InstanceError> {
        e.substitute(&mut |o| {
            Ok(match o {
                Observation::Cell(r, index) => {
                    let index = self.fact(index, choice, span)?;
                    Expr::Atom(cell_fact(self.extent(Some(*r)), index))
                }
                Observation::Memory(index) => {
                    let index = self.fact(index, choice, span)?;
                    Expr::Atom(cell_fact(self.extent(None), index))
                }
                Observation::Seen(t, r, index) => {
                    let t = self.thread_id(t, choice, span)?;
                    let index = self.fact(index, choice, span)?;
                    let cell = cell_fact(self.extent(Some(*r)), index);
                    Expr::Atom(if let Fact::Cell(c) = cell {
                        Fact::Seen(t, c)
                    } else {
                        cell
                    })
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
            let family = self.program.family(t.family);
            return Err(error::no_thread(family, index, count, span));
        }
        Ok(ThreadId(self.first[t.family.index()] + index))
    }
}

/// A thread sees memory where it has nothing pending: in final states, and of cells that it never stores to but in
/// drained blocks.
fn never_pending(e: &Expr<Fact>, threads: &[Thread], only_final: bool) -> Expr<Fact> {
    let stores = |t: &ThreadId, c: &CellId| {
        let thread = &threads[t.index()];
        let mut buffered = thread
            .steps
            .iter()
            .filter(|s| !thread.direct[s.source.index()]);
        buffered.any(|s| {
            let stored = s.action.stored();
            stored.is_some_and(|place| place.extent().contains(&c.index()))
        })
    };
    let Ok(settled) = e.substitute(&mut |fact| {
        Ok::<_, Infallible>(Expr::Atom(match fact {
            Fact::Seen(t, c) if only_final || !stores(t, c) => Fact::Cell(*c),
            Fact::CellAt {
                base,
                length,
                index,
            } => Fact::CellAt {
                base: *base,
                length: *length,
                index: Box::new(never_pending(index, threads, only_final)),
            },
            Fact::Cell(_) | Fact::Seen(..) | Fact::Register(..) | Fact::At(..) => fact.clone(),
        }))
    });
    settled
}

fn cell_fact((base, length): (u32, u32), index: Expr<Fact>) -> Fact {
    match index.as_const() {
        Some(i) if 0 <= i && i < i64::from(length) => Fact::Cell(CellId(base + i as u32)),
        _ => Fact::CellAt {
            base: CellId(base),
            length,
            index: Box::new(index),
        },
    }
}

/// All of them together in a balanced tree, so that wide properties do not become deep ones.
pub fn balanced<T>(mut parts: Vec<T>, join: impl Fn(T, T) -> T) -> Option<T> {
    while parts.len() > 1 {
        let mut rest = std::mem::take(&mut parts).into_iter();
        while let Some(a) = rest.next() {
            parts.push(match rest.next() {
                Some(b) => join(a, b),
                None => a,
            });
        }
    }
    parts.pop()
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
                inside[target] = step.action.section_after(inside[l.index()]);
                work.push(step.target);
            }
        }
    }
    inside
}
