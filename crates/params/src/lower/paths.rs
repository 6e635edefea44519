//! Transitions: symbolic execution along one memory step and the local steps after it, or along a
//! whole atomic block.

use super::amount::Share;
use super::expr::{Alternatives, Identity, Linear, Val};
use super::scan::{Every, Scan, last, ordered, scan};
use super::variables::{Holds, Variable};
use super::{Lowering, Refused, access, refuse};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wattle_model::array::{Access, FenceKind, Formula, ThreadTerm};
use wattle_model::graph::{Action, Section};
use wattle_model::program::Local;
use wattle_model::{Expr, FamilyId, LocationId, Place, RegionId, RegisterId, Span};

/// The acting thread.
pub const ME: ThreadTerm = ThreadTerm::Param(0);

/// What has happened on the way.
#[derive(Clone, Debug)]
pub struct Path {
    pub params: Vec<String>,
    pub guards: Vec<Formula>,
    pub registers: BTreeMap<RegisterId, Val>,
    /// Registers whose thread has a name, and threads that follow each other.
    pub bound: Vec<(RegisterId, ThreadTerm)>,
    pub next: Vec<(ThreadTerm, ThreadTerm)>,
    /// What holds of every thread but those listed.
    pub every: Vec<(Vec<ThreadTerm>, Every)>,
    /// Registers that got any value.
    pub any: BTreeSet<RegisterId>,
    pub writes: Vec<(Access, Val)>,
    /// Counters set to all or none, or with one element changed.
    pub counters: Vec<(RegionId, CounterWrite)>,
    pub fence: Option<FenceKind>,
    pub atomic: bool,
    inside: bool,
    pub at: LocationId,
    visited: Vec<LocationId>,
    /// A fault: the thread stops here.
    pub broken: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum CounterWrite {
    All(bool),
    One(ThreadTerm, bool),
}

/// Limits on what one transition may contain.
const LENGTH: usize = 60;
const PATHS: usize = 400;

impl Lowering<'_> {
    pub(super) fn family(&mut self, f: FamilyId) -> Result<(), Refused> {
        let family = &self.program.families[f.index()];
        let mut seen: BTreeSet<LocationId> = [family.entry].into();
        let mut work: VecDeque<LocationId> = [family.entry].into();
        while let Some(start) = work.pop_front() {
            let mut open = vec![Path {
                params: vec!["p".into()],
                guards: Vec::new(),
                registers: BTreeMap::new(),
                bound: Vec::new(),
                next: Vec::new(),
                every: Vec::new(),
                any: BTreeSet::new(),
                writes: Vec::new(),
                counters: Vec::new(),
                fence: None,
                atomic: false,
                inside: false,
                at: start,
                visited: Vec::new(),
                broken: false,
                span: Span::NONE,
            }];
            let mut done = Vec::new();
            while let Some(path) = open.pop() {
                if open.len() + done.len() > PATHS {
                    return Err(refuse(
                        path.span,
                        "this atomic block has too many ways through",
                        "split it",
                    ));
                }
                for next in self.extend(f, path)? {
                    if next.broken || !self.goes_on(f, &next)? {
                        done.push(next);
                    } else {
                        open.push(next);
                    }
                }
            }
            for path in done {
                if !path.broken && seen.insert(path.at) {
                    work.push_back(path.at);
                }
                for path in self.settle_counters(f, path)? {
                    if !self.contradictory(&path) {
                        self.emit(f, start, path)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the path must or may go on: inside an atomic block, or through local steps.
    fn goes_on(&self, f: FamilyId, path: &Path) -> Result<bool, Refused> {
        let family = &self.program.families[f.index()];
        let mut steps = family
            .steps
            .iter()
            .filter(|s| s.source == path.at)
            .peekable();
        if path.inside {
            if path.visited.contains(&path.at) || path.visited.len() > LENGTH {
                return Err(refuse(
                    path.span,
                    "an atomic block loops",
                    "move the loop outside of `atomic`",
                ));
            }
            return Ok(steps.peek().is_some());
        }
        let again =
            path.visited.contains(&path.at) || path.visited.len() > LENGTH || !path.any.is_empty();
        let local = !self.always_stops(f, path.at);
        Ok(!again && local && (self.unnoticed(f, path) || self.never_stuck(f, path.at)))
    }

    /// Whether a thread stops at the location whatever it did before: it is observed, it is the end, or
    /// something other than a local step follows.
    pub(super) fn always_stops(&self, f: FamilyId, at: LocationId) -> bool {
        let family = &self.program.families[f.index()];
        let labels = &family.locations[at.index()].labels;
        let mut steps = family.steps.iter().filter(|s| s.source == at).peekable();
        let local = |a: &Action<Local, Place>| match a {
            Action::Skip | Action::Assume(_) => true,
            Action::Assign { register, .. } => !self.register_observed(f, *register),
            Action::Havoc { .. }
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => false,
        };
        labels.iter().any(|l| self.observed.contains(l))
            || self.absent.contains(&f)
            || steps.peek().is_none()
            || !steps.all(|s| local(&s.action))
    }

    /// Whether nobody can tell so far that the path was taken: a thread that is stuck after it might
    /// as well be stuck before it.
    fn unnoticed(&self, f: FamilyId, path: &Path) -> bool {
        let seen = |r: &RegisterId| self.register_observed(f, *r);
        path.writes.is_empty() && path.counters.is_empty() && !path.registers.keys().any(seen)
    }

    /// Whether one of the local steps from the location is always enabled.
    fn never_stuck(&self, f: FamilyId, at: LocationId) -> bool {
        let all = &self.program.families[f.index()].steps;
        let here = || all.iter().filter(|s| s.source == at);
        let assumed: Vec<&Expr<Local>> = here()
            .filter_map(|s| match &s.action {
                Action::Assume(e) => Some(e),
                Action::Skip
                | Action::Assign { .. }
                | Action::Havoc { .. }
                | Action::Assert { .. }
                | Action::Load { .. }
                | Action::Store { .. }
                | Action::Fence(_)
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Lock
                | Action::Unlock => None,
            })
            .collect();
        let opposite = |e: &Expr<Local>| {
            let not = e.clone().negate();
            assumed.iter().any(|other| **other == not)
        };
        assumed.len() < here().count() || assumed.iter().any(|e| opposite(e))
    }

    fn extend(&mut self, f: FamilyId, path: Path) -> Result<Vec<Path>, Refused> {
        let family = &self.program.families[f.index()];
        let mut out = Vec::new();
        for s in family.steps.iter().filter(|s| s.source == path.at) {
            let mut next = path.clone();
            next.visited.push(path.at);
            next.at = s.target;
            next.span = s.span;
            for p in self.execute(f, next, &s.action, s.span)? {
                if !p.guards.contains(&Formula::Or(Vec::new())) && !self.contradictory(&p) {
                    out.push(p);
                }
            }
        }
        Ok(out)
    }

    fn execute(
        &mut self,
        f: FamilyId,
        mut path: Path,
        action: &Action<Local, Place>,
        span: Span,
    ) -> Result<Vec<Path>, Refused> {
        match action {
            Action::Skip => Ok(vec![path]),
            Action::Assign { register, value } => {
                let holds = self.variables.of(Variable::Register(f, *register));
                if let (Holds::Threads(of), Some(what)) = (holds.clone(), scan(value)) {
                    return self.scanned(f, path, *register, of, what, span);
                }
                let list = self.path_value(f, &path, value, span)?;
                self.assign(f, path, *register, list, span)
            }
            Action::Havoc { register, range } => {
                let holds = self.variables.of(Variable::Register(f, *register)).clone();
                let ty = self.variables.type_of(Variable::Register(f, *register));
                match (holds, range.or(ty.bounds())) {
                    // Every value of the range; what does not fit is a fault.
                    (Holds::Few(_), Some((lo, hi))) => {
                        let number = |v| (Vec::new(), Val::Number(Linear::constant(v)));
                        let list = (lo..=hi).map(number).collect();
                        self.assign(f, path, *register, list, span)
                    }
                    (Holds::Numbers | Holds::Threads(_) | Holds::Counter, Some(_))
                        if range.is_some() =>
                    {
                        Err(refuse(
                            span,
                            "any number of a large range",
                            "use a smaller range",
                        ))
                    }
                    (Holds::Few(_) | Holds::Numbers | Holds::Threads(_) | Holds::Counter, _) => {
                        path.registers.remove(register);
                        path.bound.retain(|(r, _)| r != register);
                        path.any.insert(*register);
                        Ok(vec![path])
                    }
                }
            }
            Action::Assume(e) if last(e).is_some_and(|(r, ..)| self.names_thread(f, r)) => {
                match last(e) {
                    Some(what) => self.is_last(f, path, what, span),
                    None => Ok(Vec::new()),
                }
            }
            Action::Assume(e) if self.unnamed(f, &path, e).is_some() => {
                let mut out = Vec::new();
                if let Some(r) = self.unnamed(f, &path, e) {
                    let bound = self.bind(f, path, r);
                    out = bound.broken;
                    for (p, _) in bound.named {
                        out.extend(self.execute(f, p, action, span)?);
                    }
                }
                Ok(out)
            }
            // Where threads stop before an assertion, the state before it is bad if it fails; inside an
            // atomic block nobody sees that state, so the thread breaks.
            Action::Assert { condition, .. } if path.inside => {
                let fails = Action::Assume(condition.clone().negate());
                let mut out = self.execute(f, path.clone(), &fails, span)?;
                out.iter_mut().for_each(|p| p.broken = true);
                let holds = Action::Assume(condition.clone());
                out.extend(self.execute(f, path, &holds, span)?);
                Ok(out)
            }
            Action::Assume(e) | Action::Assert { condition: e, .. } => {
                let formula = {
                    let leaf = |l: &Local| self.leaf(f, &path, l, span);
                    self.truth(e, &leaf, true, span)
                };
                // A counter in a condition is first sorted into 0, some and all.
                match formula {
                    Err(_)
                        if path
                            .registers
                            .values()
                            .any(|v| matches!(v, Val::Counter { .. })) =>
                    {
                        let mut out = Vec::new();
                        for p in self.settle_counters(f, path)? {
                            out.extend(self.execute(f, p, action, span)?);
                        }
                        Ok(out)
                    }
                    formula => {
                        path.guards.push(formula?);
                        Ok(vec![path])
                    }
                }
            }
            Action::Load { register, place } => self.load(f, path, *register, place, span),
            Action::Store { place, value } => self.store(f, path, place, value, span),
            Action::Fence(kind) => {
                path.fence = Some((*kind).into());
                Ok(vec![path])
            }
            Action::AtomicBegin(Section::Buffered) => Err(refuse(
                span,
                "an atomic section that keeps its stores buffered is not treated for any number of threads",
                "use `atomic { … }`, which waits for an empty buffer",
            )),
            Action::AtomicBegin(Section::Drained) => {
                path.atomic = true;
                path.inside = true;
                Ok(vec![path])
            }
            Action::AtomicEnd => {
                path.inside = false;
                Ok(vec![path])
            }
            Action::Lock | Action::Unlock => Err(refuse(
                span,
                "`lock` … `unlock` is not treated for any number of threads",
                "use `atomic`",
            )),
        }
    }

    fn names_thread(&self, f: FamilyId, r: RegisterId) -> bool {
        matches!(
            self.variables.of(Variable::Register(f, r)),
            Holds::Threads(_)
        )
    }

    /// A register that is compared by order and whose thread has no name yet.
    fn unnamed(&self, f: FamilyId, path: &Path, e: &Expr<Local>) -> Option<RegisterId> {
        let mut found = Vec::new();
        ordered(e, &mut found);
        found.into_iter().find(|r| {
            let open = match path.registers.get(r) {
                Some(v) => matches!(v, Val::Thread(Identity::Held { .. })),
                None => !path.bound.iter().any(|(q, _)| q == r),
            };
            open && self.names_thread(f, *r)
        })
    }

    /// A register is set to the first thread, or to the one after another.
    fn scanned(
        &mut self,
        f: FamilyId,
        path: Path,
        register: RegisterId,
        of: FamilyId,
        what: Scan,
        span: Span,
    ) -> Result<Vec<Path>, Refused> {
        let mut broken = Vec::new();
        let named = match what {
            Scan::First => self.first(f, path, of),
            Scan::After(r) => {
                let mut all = Vec::new();
                let bound = self.bind(f, path, r);
                broken = bound.broken;
                for (p, t) in bound.named {
                    if !p.next.iter().any(|(u, _)| *u == t) {
                        return Err(refuse(
                            span,
                            "the next thread, which there may not be",
                            "first compare the register with `count(…) - 1`, and leave the loop if it is that",
                        ));
                    }
                    all.extend(self.next(f, p, of, t));
                }
                all
            }
        };
        let set = |(mut p, t): (Path, ThreadTerm)| {
            p.any.remove(&register);
            p.registers.insert(register, Val::Thread(Identity::Is(t)));
            p
        };
        Ok(named.into_iter().map(set).chain(broken).collect())
    }

    fn leaf(&self, f: FamilyId, path: &Path, l: &Local, span: Span) -> Result<Val, Refused> {
        match l {
            Local::SelfIndex => Ok(Val::Thread(Identity::Is(ME))),
            Local::Count(_) => self.everybody(span),
            Local::AddressOf(_) => Err(refuse(
                span,
                "addresses are not treated for any number of threads",
                "name the region",
            )),
            Local::Register(r) => match path.registers.get(r) {
                Some(v) => Ok(v.clone()),
                None if path.bound.iter().any(|(q, _)| q == r) => {
                    let named = path.bound.iter().find(|(q, _)| q == r);
                    Ok(named.map_or_else(
                        || self.register(f, *r, ME),
                        |(_, t)| Val::Thread(Identity::Is(*t)),
                    ))
                }
                None if path.any.contains(r) => Err(refuse(
                    span,
                    "an arbitrary value is used in the same step",
                    "split the step",
                )),
                None => Ok(self.register(f, *r, ME)),
            },
        }
    }

    /// The number of threads. Counters count all there are, so there must be one family only.
    pub(super) fn everybody(&self, span: Span) -> Result<Val, Refused> {
        match self.program.families.len() {
            1 => Ok(Val::Share(Share::All)),
            _ => Err(refuse(
                span,
                "the threads of one family among several are counted",
                "counts are treated for programs with one family of threads",
            )),
        }
    }

    /// A thread's register before the transition.
    pub(super) fn register(&self, f: FamilyId, r: RegisterId, thread: ThreadTerm) -> Val {
        let id = Variable::Register(f, r);
        let cell = self.variables.cells[&id];
        match self.variables.of(id) {
            Holds::Threads(_) => Val::Thread(Identity::Held {
                cell: access(cell, &[thread]),
                none: access(cell + 1, &[thread]),
            }),
            Holds::Few(_) | Holds::Numbers | Holds::Counter => {
                Val::Number(Linear::cell(access(cell, &[thread])))
            }
        }
    }

    pub(super) fn path_value(
        &self,
        f: FamilyId,
        path: &Path,
        e: &Expr<Local>,
        span: Span,
    ) -> Result<Alternatives, Refused> {
        let leaf = |l: &Local| self.leaf(f, path, l, span);
        self.value(e, &leaf, span)
    }
}
