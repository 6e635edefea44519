//! What makes a program well formed. Front-ends build programs that satisfy every rule; whoever
//! reads a program may rely on them.
//!
//! Names
//!  1. Region and family names are not empty, and no two regions or families share one.
//!  2. Register names are not empty, unique in their family, and name no region.
//!  3. Index variables of a condition have different, non-empty names that name no region.
//!  4. Labels are not empty, and a location carries none twice.
//!
//! Types and initial values
//!  5. A range has `lo <= hi`, in types and in the choice of any value.
//!  6. Unsigned widths are 1 to 63 bits, signed ones 1 to 64, in types and in casts.
//!  7. Families and regions that are mentioned exist.
//!  8. Arrays have 1 to 2²⁰ elements; families of a fixed number have at least one thread.
//!  9. Initial values mention no register.
//! 10. A list of initial values belongs to an array and has one value per element (per-thread arrays
//!     are checked when the number of threads is known).
//!
//! Expressions and memory
//! 11. Registers that are mentioned exist.
//! 12. No expression is nested more than [`MAX_DEPTH`] levels deep, indices included.
//! 13. The index of a scalar is the constant 0.
//!
//! Graphs
//! 14. The entry exists, and so do the source and target of every step.
//! 15. Every reachable location is inside an atomic block on all paths to it or on none; blocks
//!     begin only outside and end only inside one, and no thread ends inside.
//! 16. `lock` and `unlock` do not stand inside an atomic block (which needs neither).
//!
//! Properties and hints
//! 17. Threads, registers, index variables and labels that are mentioned exist: a number is below
//!     the family's fixed count, a single thread has number 0, an index variable stands for a thread
//!     of its own family, and some location of the family has the label.
//! 18. Index variables range over families, not over single threads.
//!
//! 19. No table has 2³² entries or more (ids would be ambiguous).

use crate::expr::{Expr, Op1};
use crate::graph::{Action, Section};
use crate::ids::{FamilyId, LocationId, RegionId, RegisterId};
use crate::program::{Count, Family, Init, Length, Local, Place, Program, Region, Step};
use crate::property::{Condition, IndexVariable, Observation, ThreadIndex, ThreadRef};
use crate::span::Span;
use crate::temporal::TemporalKind;
use crate::ty::Type;
use std::collections::BTreeSet;

/// Deeper expressions are refused: everything that walks them may recurse.
pub const MAX_DEPTH: u32 = 400;

const MAX_ELEMENTS: u32 = 1 << 20;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// The number of the rule in this module's header.
    pub rule: u8,
    pub message: String,
    pub span: Span,
}

/// Every broken rule, in the order of the program. An empty answer means the program is valid.
pub fn validate(program: &Program) -> Vec<Invalid> {
    let mut v = Validator {
        program,
        regions: program.regions.iter().map(|r| r.name.as_str()).collect(),
        labels: program.families.iter().map(labels).collect(),
        found: Vec::new(),
        span: Span::NONE,
    };
    v.names();
    for r in &program.regions {
        v.region(r);
    }
    for f in &program.families {
        v.family(f);
    }
    for p in &program.properties {
        v.span = p.span;
        v.condition(&p.condition);
    }
    for t in &program.temporal {
        v.span = t.span;
        v.temporal(&t.kind);
        let mut sees = false;
        t.for_each_condition(&mut |e| sees |= e.sees_buffers());
        if sees {
            let message = "a demand on runs asks what a thread sees of its pending stores";
            v.broken(17, message.to_string());
        }
    }
    for c in &program.predicates {
        v.span = Span::NONE;
        v.condition(c);
    }
    v.found
}

fn labels(f: &Family) -> BTreeSet<&str> {
    let all = f.locations.iter().flat_map(|l| &l.labels);
    all.map(String::as_str).collect()
}

struct Validator<'p> {
    program: &'p Program,
    /// Names of all regions.
    regions: BTreeSet<&'p str>,
    /// Labels of each family.
    labels: Vec<BTreeSet<&'p str>>,
    found: Vec<Invalid>,
    /// Where we are.
    span: Span,
}

impl Validator<'_> {
    fn broken(&mut self, rule: u8, message: impl Into<String>) {
        self.found.push(Invalid {
            rule,
            message: message.into(),
            span: self.span,
        });
    }

    fn names(&mut self) {
        let program = self.program;
        let regions = program.regions.iter().map(|r| (&r.name, r.span));
        let families = program.families.iter().map(|f| (&f.name, f.span));
        let mut seen = BTreeSet::new();
        for (name, span) in regions.chain(families) {
            self.span = span;
            if name.is_empty() {
                self.broken(1, "a name may not be empty");
            } else if !seen.insert(name) {
                self.broken(1, format!("`{name}` is declared twice"));
            }
        }
        let tables = [
            program.regions.len(),
            program.families.len(),
            program.properties.len(),
            program.temporal.len(),
        ];
        if tables.iter().any(|n| u32::try_from(*n).is_err()) {
            self.broken(19, "too many declarations");
        }
    }

    fn region(&mut self, r: &Region) {
        self.span = r.span;
        self.ty(r.ty);
        match r.length {
            Length::Scalar => {}
            Length::Array(n) if (1..=MAX_ELEMENTS).contains(&n) => {}
            Length::Array(n) => {
                self.broken(
                    8,
                    format!(
                        "`{}` has {n} elements; an array has 1 to {MAX_ELEMENTS}",
                        r.name
                    ),
                );
            }
            Length::PerThread(f) => self.family_exists(f),
        }
        match (&r.init, r.length) {
            (Init::Each(es), Length::Array(n)) if es.len() != n as usize => {
                let given = es.len();
                self.broken(
                    10,
                    format!("`{}` has {n} elements but {given} initial values", r.name),
                );
            }
            (Init::Each(_), Length::Scalar) => {
                self.broken(
                    10,
                    format!("`{}` is no array but starts with a list", r.name),
                );
            }
            _ => {}
        }
        self.init(&r.init);
    }

    fn init(&mut self, init: &Init) {
        let exprs = match init {
            Init::Any => &[],
            Init::All(e) => std::slice::from_ref(e),
            Init::Each(es) => &es[..],
        };
        for e in exprs {
            self.local(e, None);
        }
    }

    fn ty(&mut self, ty: Type) {
        match ty {
            Type::Int => {}
            Type::Range { lo, hi } => self.range(lo, hi),
            Type::Wrap { bits, signed } => self.width(bits, signed),
            Type::Thread(f) => self.family_exists(f),
        }
    }

    fn range(&mut self, lo: i64, hi: i64) {
        if lo > hi {
            self.broken(5, format!("the range {lo}..{hi} is empty"));
        }
    }

    fn width(&mut self, bits: u8, signed: bool) {
        let widest = if signed { 64 } else { 63 };
        if bits == 0 || bits > widest {
            let kind = if signed { "signed" } else { "unsigned" };
            self.broken(
                6,
                format!("{bits} bits are no {kind} width; 1 to {widest} are"),
            );
        }
    }

    fn family_exists(&mut self, f: FamilyId) {
        if f.index() >= self.program.families.len() {
            self.broken(7, format!("there is no family {f}"));
        }
    }

    fn region_exists(&mut self, r: RegionId) {
        if r.index() >= self.program.regions.len() {
            self.broken(7, format!("there is no region {r}"));
        }
    }

    /// `family` is absent in initial values, where no register may be mentioned.
    fn local(&mut self, e: &Expr<Local>, family: Option<&Family>) {
        if e.depth() > MAX_DEPTH as usize {
            self.broken(12, format!("an expression is deeper than {MAX_DEPTH}"));
        }
        self.casts(e);
        e.for_each_atom(&mut |a| match (a, family) {
            (Local::Register(_), None) => self.broken(9, "an initial value mentions a register"),
            (Local::Register(r), Some(f)) => self.register(f, *r),
            (Local::SelfIndex, _) => {}
            (Local::Count(f), _) => self.family_exists(*f),
            (Local::AddressOf(r), _) => self.region_exists(*r),
        });
    }

    fn casts<A>(&mut self, e: &Expr<A>) {
        let mut work = vec![e];
        while let Some(e) = work.pop() {
            match e {
                Expr::Const(_) | Expr::Atom(_) => {}
                Expr::Unary(op, a) => {
                    if let Op1::Wrap { bits, signed } = op {
                        self.width(*bits, *signed);
                    }
                    work.push(a);
                }
                Expr::Binary(_, a, b) => work.extend([&**a, b]),
                Expr::Ite(c, a, b) => work.extend([&**c, a, b]),
            }
        }
    }

    fn register(&mut self, f: &Family, r: RegisterId) {
        if r.index() >= f.registers.len() {
            self.broken(11, format!("`{}` has no register {r}", f.name));
        }
    }

    fn place(&mut self, f: &Family, place: &Place) {
        match place {
            Place::Memory(e) => self.local(e, Some(f)),
            Place::Region(r, index) => {
                self.region_exists(*r);
                self.local(index, Some(f));
                self.scalar_index(*r, index.as_const() == Some(0));
            }
        }
    }

    fn scalar_index(&mut self, r: RegionId, is_zero: bool) {
        if let Some(region) = self.program.regions.get(r.index())
            && region.length == Length::Scalar
            && !is_zero
        {
            let message = format!("`{}` is no array but is indexed", region.name);
            self.broken(13, message);
        }
    }

    fn family(&mut self, f: &Family) {
        self.span = f.span;
        if f.count == Count::Fixed(0) {
            self.broken(8, format!("`{}` has no threads", f.name));
        }
        if u32::try_from(f.locations.len().max(f.steps.len())).is_err() {
            self.broken(19, format!("`{}` is too large", f.name));
        }
        let mut seen = BTreeSet::new();
        for r in &f.registers {
            self.span = r.span;
            if r.name.is_empty() {
                self.broken(2, "a register has no name");
            } else if !seen.insert(&r.name) {
                self.broken(2, format!("`{}` is declared twice", r.name));
            } else if self.regions.contains(r.name.as_str()) {
                self.broken(2, format!("`{}` is both shared and a register", r.name));
            }
            self.ty(r.ty);
            if matches!(r.init, Init::Each(_)) {
                self.broken(
                    10,
                    format!("`{}` is no array but starts with a list", r.name),
                );
            }
            self.init(&r.init);
        }
        for l in &f.locations {
            self.span = l.span;
            let distinct: BTreeSet<&String> = l.labels.iter().collect();
            if distinct.len() != l.labels.len() {
                self.broken(4, "a location carries a label twice");
            }
            if l.labels.iter().any(String::is_empty) {
                self.broken(4, "a label may not be empty");
            }
        }
        let exists = |l: LocationId| l.index() < f.locations.len();
        let mut sound = exists(f.entry);
        if !sound {
            self.span = f.span;
            self.broken(14, format!("`{}` has no entry", f.name));
        }
        for s in &f.steps {
            self.span = s.span;
            if !exists(s.source) || !exists(s.target) {
                sound = false;
                self.broken(14, "a step leads from or to a location that does not exist");
            }
            self.action(f, s);
        }
        if sound {
            self.atomic(f);
        }
    }

    fn action(&mut self, f: &Family, s: &Step) {
        match &s.action {
            Action::Assign { register, value } => {
                self.register(f, *register);
                self.local(value, Some(f));
            }
            Action::Havoc { register, range } => {
                self.register(f, *register);
                if let Some((lo, hi)) = range {
                    self.range(*lo, *hi);
                }
            }
            Action::Assume(e) | Action::Assert { condition: e, .. } => self.local(e, Some(f)),
            Action::Load { register, place } => {
                self.register(f, *register);
                self.place(f, place);
            }
            Action::Store { place, value } => {
                self.place(f, place);
                self.local(value, Some(f));
            }
            Action::Skip
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => {}
        }
    }

    /// Rules 15 and 16: one walk over the reachable locations.
    fn atomic(&mut self, f: &Family) {
        let mut outgoing: Vec<Vec<&Step>> = vec![Vec::new(); f.locations.len()];
        for s in &f.steps {
            outgoing[s.source.index()].push(s);
        }
        let mut inside: Vec<Option<Option<Section>>> = vec![None; f.locations.len()];
        inside[f.entry.index()] = Some(None);
        let mut work = vec![f.entry];
        while let Some(at) = work.pop() {
            let here: Option<Section> = inside[at.index()].flatten();
            if here.is_some() && outgoing[at.index()].is_empty() {
                self.span = f.locations[at.index()].span;
                self.broken(15, format!("`{}` ends inside an atomic block", f.name));
            }
            for s in &outgoing[at.index()] {
                self.span = s.span;
                let after = match (&s.action, here) {
                    (Action::AtomicBegin(_), Some(_)) => {
                        self.broken(15, "an atomic block begins inside another");
                        here
                    }
                    (Action::AtomicEnd, None) => {
                        self.broken(15, "an atomic block ends that never began");
                        None
                    }
                    (Action::Lock | Action::Unlock, Some(_)) => {
                        self.broken(16, "lock and unlock may not stand in an atomic block");
                        here
                    }
                    (Action::AtomicBegin(section), None) => Some(*section),
                    (Action::AtomicEnd, Some(_)) => None,
                    _ => here,
                };
                match inside[s.target.index()] {
                    None => {
                        inside[s.target.index()] = Some(after);
                        work.push(s.target);
                    }
                    Some(known) if known != after => {
                        self.broken(15, "this is inside an atomic block on one path only");
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn condition(&mut self, c: &Condition) {
        let mut seen = BTreeSet::new();
        for v in &c.indices {
            if v.name.is_empty() {
                self.broken(3, "an index variable has no name");
            } else if !seen.insert(&v.name) {
                self.broken(3, format!("the index variable `{}` appears twice", v.name));
            } else if self.regions.contains(v.name.as_str()) {
                self.broken(
                    3,
                    format!("`{}` is both shared and an index variable", v.name),
                );
            }
            self.family_exists(v.family);
            if let Some(f) = self.program.families.get(v.family.index())
                && f.count == Count::One
            {
                let message = format!("`{}` is a single thread and needs no index", f.name);
                self.broken(18, message);
            }
        }
        self.observed(c, &c.expr, 0);
    }

    fn temporal(&mut self, kind: &TemporalKind) {
        let about = |indices: &[IndexVariable], e: &Expr<Observation>| Condition {
            indices: indices.to_vec(),
            expr: e.clone(),
        };
        match kind {
            TemporalKind::Ltl(indices, formula) => {
                if formula.depth() > MAX_DEPTH as usize {
                    self.broken(12, format!("a formula is deeper than {MAX_DEPTH}"));
                    return;
                }
                formula.for_each_now(&mut |e| self.condition(&about(indices, e)));
            }
            TemporalKind::LeadsTo(from, to) => {
                self.condition(from);
                self.condition(&about(&from.indices, to));
            }
            TemporalKind::Progress => {}
        }
    }

    fn observed(&mut self, c: &Condition, e: &Expr<Observation>, above: usize) {
        let depth = above + e.depth();
        if depth > MAX_DEPTH as usize {
            self.broken(12, format!("a condition is deeper than {MAX_DEPTH}"));
            return;
        }
        self.casts(e);
        e.for_each_atom(&mut |o| match o {
            Observation::Cell(r, index) => {
                self.region_exists(*r);
                self.scalar_index(*r, index.as_const() == Some(0));
                self.observed(c, index, depth);
            }
            Observation::Seen(t, r, index) => {
                self.thread(c, t);
                self.region_exists(*r);
                self.scalar_index(*r, index.as_const() == Some(0));
                if !matches!(**index, Expr::Const(_) | Expr::Atom(Observation::Index(_))) {
                    let message = "what a thread sees is asked of an element by its number";
                    self.broken(17, message.to_string());
                }
                self.observed(c, index, depth);
            }
            Observation::Memory(index) => self.observed(c, index, depth),
            Observation::AddressOf(r) => self.region_exists(*r),
            Observation::Count(f) => self.family_exists(*f),
            Observation::Index(v) => {
                if v.index() >= c.indices.len() {
                    self.broken(17, format!("there is no index variable {v}"));
                }
            }
            Observation::Register(t, r) => {
                self.thread(c, t);
                if let Some(f) = self.program.families.get(t.family.index())
                    && r.index() >= f.registers.len()
                {
                    let message = format!("`{}` has no register {r}", f.name);
                    self.broken(17, message);
                }
            }
            Observation::At(t, label) => {
                self.thread(c, t);
                if let Some(f) = self.program.families.get(t.family.index())
                    && !self.labels[t.family.index()].contains(label.as_str())
                {
                    let message = format!("`{}` has no label `{label}`", f.name);
                    self.broken(17, message);
                }
            }
        });
    }

    fn thread(&mut self, c: &Condition, t: &ThreadRef) {
        self.family_exists(t.family);
        let Some(f) = self.program.families.get(t.family.index()) else {
            return;
        };
        let broken = match (&t.index, f.count) {
            (ThreadIndex::Number(n), Count::Fixed(count)) if *n >= count => {
                let s = if count == 1 { "" } else { "s" };
                Some(format!(
                    "`{}` has only {count} thread{s}; there is no `{}[{n}]`",
                    f.name, f.name
                ))
            }
            (ThreadIndex::Number(n), Count::One) if *n > 0 => {
                Some(format!("`{}` is a single thread", f.name))
            }
            (ThreadIndex::Variable(v), _) => match c.indices.get(v.index()) {
                None => Some(format!("there is no index variable {v}")),
                Some(variable) if variable.family != t.family => Some(format!(
                    "the index variable `{}` stands for threads of another family",
                    variable.name
                )),
                Some(_) => None,
            },
            _ => None,
        };
        if let Some(message) = broken {
            self.broken(17, message);
        }
    }
}

#[cfg(test)]
mod tests;
