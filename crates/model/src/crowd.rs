//! Programs in which some families have any number of threads that nothing tells apart.
//!
//! A family is a *crowd* if no thread of it can say which one it is, nobody has a cell for each of
//! them, and nobody counts them. Then all its threads have the same graph over the same cells
//! whatever their number, and a property that names k of them by index variables is about any k.
//! [`Program::crowd`] makes one instance in which k threads of every crowd stand for all.

use crate::expr::Expr;
use crate::graph::Action;
use crate::ids::{FamilyId, IndexId, ThreadId};
use crate::instance::{Instance, InstanceError};
use crate::program::{Count, Init, Length, Local, Place, Program};
use crate::property::{
    Condition, IndexVariable, Observation, Property, PropertyKind, ThreadIndex, ThreadRef,
};
use crate::span::Span;
use crate::ty::Type;

/// What each thread of an instance stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// By thread: the first thread that plays the same role.
    first: Vec<usize>,
    /// By thread: whether any number of threads play its role.
    open: Vec<bool>,
}

impl Roles {
    /// Every thread stands for itself alone.
    pub fn fixed(instance: &Instance) -> Self {
        let threads = instance.threads.len();
        Roles {
            first: (0..threads).collect(),
            open: vec![false; threads],
        }
    }

    pub fn of(&self, thread: usize) -> usize {
        self.first[thread]
    }

    pub fn is_open(&self, role: usize) -> bool {
        self.open[role]
    }

    /// Every role once, named by the first thread that plays it.
    pub fn all(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.first.len()).filter(|t| self.first[*t] == *t)
    }
}

/// An instance whose threads stand for any number of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// It has the one property asked for, about threads with fixed numbers, or none.
    pub instance: Instance,
    pub roles: Roles,
}

/// Why a program has no crowd: what tells threads apart, where, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAlike {
    pub span: Span,
    pub message: String,
    pub hint: String,
}

impl Program {
    /// The program's open families as crowds, with as many threads of each as the property speaks of
    /// (at least one).
    pub fn crowd(&self, property: Option<usize>) -> Result<Crowd, NotAlike> {
        let alike = Alike { program: self };
        alike.memory()?;
        for f in 0..self.families.len() {
            alike.family(FamilyId::new(f))?;
        }
        let property = property.and_then(|p| self.properties.get(p));
        let mut cast = Program {
            properties: Vec::new(),
            temporal: Vec::new(),
            predicates: Vec::new(),
            ..self.clone()
        };
        let mut needed = vec![0u32; self.families.len()];
        if let Some(property) = property {
            cast.properties.push(alike.property(property, &mut needed)?);
        }
        for (family, needed) in cast.families.iter_mut().zip(needed) {
            if family.count == Count::Any {
                family.count = Count::Fixed(needed.max(1));
            }
        }
        let instance = cast.instance().map_err(|e| no_instance(&e))?;
        let threads = instance.threads.iter();
        let open: Vec<bool> = threads.map(|t| alike.is_open(t.family)).collect();
        let first = instance.thread_ids().map(|t: ThreadId| {
            let family = instance.thread(t).family;
            match open[t.index()] {
                true => {
                    (instance.threads.iter().position(|u| u.family == family)).unwrap_or(t.index())
                }
                false => t.index(),
            }
        });
        let roles = Roles {
            first: first.collect(),
            open: open.clone(),
        };
        Ok(Crowd { instance, roles })
    }
}

fn refuse<T>(
    span: Span,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Result<T, NotAlike> {
    let (message, hint) = (message.into(), hint.into());
    Err(NotAlike {
        span,
        message,
        hint,
    })
}

fn no_instance(e: &InstanceError) -> NotAlike {
    let span = match e {
        InstanceError::Unfixed { span, .. }
        | InstanceError::BadInit { span, .. }
        | InstanceError::InitLength { span, .. }
        | InstanceError::NoThread { span, .. }
        | InstanceError::NotConstant { span, .. } => *span,
        InstanceError::NoFamily { .. }
        | InstanceError::Single { .. }
        | InstanceError::TooLarge { .. } => Span::NONE,
    };
    NotAlike {
        span,
        message: e.to_string(),
        hint: "see whether a fixed number of threads can be checked".into(),
    }
}

/// The rules, one by one.
struct Alike<'p> {
    program: &'p Program,
}

impl Alike<'_> {
    fn is_open(&self, family: FamilyId) -> bool {
        self.program.family(family).count == Count::Any
    }

    fn name(&self, family: FamilyId) -> &str {
        &self.program.family(family).name
    }

    fn memory(&self) -> Result<(), NotAlike> {
        for region in &self.program.regions {
            if let Length::PerThread(f) = region.length
                && self.is_open(f)
            {
                let message = format!(
                    "`{}` has a cell for each thread of `{}`, which tells them apart",
                    region.name,
                    self.name(f)
                );
                return refuse(region.span, message, "use a register, or one shared cell");
            }
            self.ty(region.ty, &region.name, region.span)?;
            self.init(&region.init, None, region.span)?;
        }
        Ok(())
    }

    fn family(&self, f: FamilyId) -> Result<(), NotAlike> {
        let family = self.program.family(f);
        for r in &family.registers {
            self.ty(r.ty, &r.name, r.span)?;
            self.init(&r.init, Some(f), r.span)?;
        }
        for step in &family.steps {
            let local = |e: &Expr<Local>| self.local(e, Some(f), step.span);
            let place = |p: &Place| match p {
                Place::Region(_, index) | Place::Memory(index) => local(index),
            };
            match &step.action {
                Action::Assign { value, .. } => local(value)?,
                Action::Assume(e) => local(e)?,
                Action::Assert { condition, .. } => local(condition)?,
                Action::Load { place: p, .. } => place(p)?,
                Action::Store { place: p, value } => {
                    place(p)?;
                    local(value)?;
                }
                Action::Skip
                | Action::Havoc { .. }
                | Action::Fence(_)
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Lock
                | Action::Unlock => {}
            }
        }
        Ok(())
    }

    fn ty(&self, ty: Type, name: &str, span: Span) -> Result<(), NotAlike> {
        match ty {
            Type::Thread(f) if self.is_open(f) => {
                let family = self.name(f);
                let message =
                    format!("`{name}` names threads of `{family}`, of which there are any number");
                refuse(
                    span,
                    message,
                    "threads that are told apart are for `params`",
                )
            }
            Type::Int | Type::Range { .. } | Type::Wrap { .. } | Type::Thread(_) => Ok(()),
        }
    }

    fn init(&self, init: &Init, family: Option<FamilyId>, span: Span) -> Result<(), NotAlike> {
        match init {
            Init::Any => Ok(()),
            Init::All(e) => self.local(e, family, span),
            Init::Each(all) => all.iter().try_for_each(|e| self.local(e, family, span)),
        }
    }

    fn local(&self, e: &Expr<Local>, family: Option<FamilyId>, span: Span) -> Result<(), NotAlike> {
        let mut found = Ok(());
        e.for_each_atom(&mut |atom| match (atom, family) {
            (Local::SelfIndex, Some(f)) if self.is_open(f) => {
                let message = format!("`self` tells the threads of `{}` apart", self.name(f));
                found = refuse(
                    span,
                    message,
                    "threads that are told apart are for `params`",
                );
            }
            (Local::Count(f), _) if self.is_open(*f) => found = self.counted(*f, span),
            _ => {}
        });
        found
    }

    fn counted(&self, f: FamilyId, span: Span) -> Result<(), NotAlike> {
        let message = format!(
            "the number of threads of `{}` is not finite data",
            self.name(f)
        );
        refuse(span, message, "counters are for `params`")
    }

    /// The property with numbers for the index variables of crowds; notes how many it needs.
    fn property(&self, p: &Property, needed: &mut [u32]) -> Result<Property, NotAlike> {
        if matches!(p.kind, PropertyKind::Finally | PropertyKind::Reachable) {
            let message = format!("`{}` speaks of final states", p.kind.keyword());
            let hint =
                "only `never`, `always` and assertions are checked for any number of threads";
            return refuse(p.span, message, hint);
        }
        let mut indices: Vec<IndexVariable> = Vec::new();
        let mut means = Vec::new();
        for v in &p.condition.indices {
            let f = v.family.index();
            means.push(match self.is_open(v.family) {
                true => ThreadIndex::Number(needed[f]),
                false => ThreadIndex::Variable(IndexId::new(indices.len())),
            });
            needed[f] += 1;
            if !self.is_open(v.family) {
                indices.push(v.clone());
            }
        }
        let expr = self.condition(&p.condition.expr, &means, p.span)?;
        let condition = Condition { indices, expr };
        Ok(Property {
            condition,
            ..p.clone()
        })
    }

    fn condition(
        &self,
        e: &Expr<Observation>,
        means: &[ThreadIndex],
        span: Span,
    ) -> Result<Expr<Observation>, NotAlike> {
        let thread = |t: &ThreadRef| match &t.index {
            ThreadIndex::Variable(v) => Ok(ThreadRef {
                family: t.family,
                index: means[v.index()].clone(),
            }),
            ThreadIndex::Number(_) if self.is_open(t.family) => {
                let message = format!(
                    "a property of one certain thread of `{}`",
                    self.name(t.family)
                );
                refuse(span, message, "use an index variable")
            }
            ThreadIndex::Number(_) => Ok(t.clone()),
        };
        e.substitute(&mut |o| {
            Ok(Expr::Atom(match o {
                Observation::Cell(r, index) => {
                    Observation::Cell(*r, Box::new(self.condition(index, means, span)?))
                }
                Observation::Seen(t, r, index) => {
                    let index = self.condition(index, means, span)?;
                    Observation::Seen(thread(t)?, *r, Box::new(index))
                }
                Observation::Memory(index) => {
                    Observation::Memory(Box::new(self.condition(index, means, span)?))
                }
                Observation::Register(t, r) => Observation::Register(thread(t)?, *r),
                Observation::At(t, label) => Observation::At(thread(t)?, label.clone()),
                Observation::Index(v) => match &means[v.index()] {
                    ThreadIndex::Variable(v) => Observation::Index(*v),
                    ThreadIndex::Number(_) => {
                        let message = "the property looks at a thread's number";
                        return refuse(span, message, "speak of locations, registers and cells");
                    }
                },
                Observation::Count(f) if self.is_open(*f) => {
                    return self.counted(*f, span).map(|()| Expr::Const(0));
                }
                other @ (Observation::Count(_) | Observation::AddressOf(_)) => other.clone(),
            }))
        })
    }
}
