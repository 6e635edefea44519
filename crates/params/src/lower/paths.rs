//! Transitions: symbolic execution along one memory step and the local steps after it, or along a
//! whole atomic block.

use super::expr::{Alternatives, Identity, Linear, Val, symbolic};
use super::scan::{Every, Scan, contradictory, last, ordered, scan};
use super::variables::{Holds, Variable};
use super::{Lowering, Refused, access, equal, refuse};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wattle_model::array::{
    Access, Branch, CellType, Comparison, FenceKind, Formula, Literal, Term, ThreadTerm,
    Transition, Update, UpdateIndex, Value,
};
use wattle_model::graph::Action;
use wattle_model::program::Local;
use wattle_model::{Expr, FamilyId, Length, LocationId, Place, RegionId, RegisterId, Span, Type};

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
    at: LocationId,
    visited: Vec<LocationId>,
    /// A fault: the thread stops here.
    pub broken: bool,
    span: Span,
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
                    self.emit(f, start, path)?;
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
            _ => false,
        };
        labels.iter().any(|l| self.observed.contains(l))
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
        let steps = || {
            let all = self.program.families[f.index()].steps.iter();
            all.filter(|s| s.source == at).map(|s| &s.action)
        };
        let assumed = |a| match a {
            &Action::Assume(ref e) => Some(e),
            _ => None,
        };
        let free = steps().any(|a| assumed(a).is_none());
        let mut conditions = steps().filter_map(assumed);
        free || conditions.any(|e| {
            let not = e.clone().negate();
            steps().filter_map(assumed).any(|other| *other == not)
        })
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
                if !p.guards.contains(&Formula::Or(Vec::new())) && !contradictory(&p) {
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
                match (holds, range) {
                    (Holds::Few(set), r) => {
                        let inside = |v: &i64| r.is_none_or(|(lo, hi)| lo <= *v && *v <= hi);
                        let list = set
                            .into_iter()
                            .filter(inside)
                            .map(|v| (Vec::new(), Val::Number(Linear::constant(v))));
                        let list = list.collect();
                        self.assign(f, path, *register, list, span)
                    }
                    (_, Some(_)) => Err(refuse(
                        span,
                        "any number of a large range",
                        "use a smaller range",
                    )),
                    _ => {
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
            Action::AtomicBegin => {
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
        if of != f {
            return Err(refuse(
                span,
                "threads of another family are counted through",
                "only the thread's own family can be scanned",
            ));
        }
        let mut broken = Vec::new();
        let named = match what {
            Scan::First => self.first(path, of),
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
                    all.extend(self.next(p, of, t));
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

    fn assign(
        &mut self,
        f: FamilyId,
        path: Path,
        register: RegisterId,
        list: Alternatives,
        span: Span,
    ) -> Result<Vec<Path>, Refused> {
        let holds = self.variables.of(Variable::Register(f, register)).clone();
        let mut out = Vec::new();
        let ty = self.variables.type_of(Variable::Register(f, register));
        for (g, v) in list {
            for (h, v) in self.fit(v, &holds, span)? {
                for (range, v) in self.admit(ty, v, span)? {
                    let mut p = path.clone();
                    p.guards.extend(g.iter().chain(&h).cloned());
                    p.guards.extend(range);
                    match v {
                        Some(v) => {
                            p.any.remove(&register);
                            p.registers.insert(register, v);
                        }
                        None => p.broken = true,
                    }
                    out.push(p);
                }
            }
        }
        Ok(out)
    }

    /// A value as the type stores it, by cases; nothing where storing it is a fault.
    fn admit(
        &self,
        ty: Type,
        v: Val,
        span: Span,
    ) -> Result<Vec<(Vec<Formula>, Option<Val>)>, Refused> {
        let fixed = |c: i64| {
            let kept = if symbolic(c) { Some(c) } else { ty.admit(c) };
            kept.map(|c| Val::Number(Linear::constant(c)))
        };
        let whole = |v: Val| Ok(vec![(Vec::new(), Some(v))]);
        let l = match (ty, &v) {
            (Type::Range { .. } | Type::Wrap { .. }, Val::Number(l)) => l.clone(),
            (Type::Range { .. }, Val::Counter { .. }) => {
                return Err(refuse(
                    span,
                    "a number of threads is kept in a variable with a range",
                    "declare the variable without a range",
                ));
            }
            _ => return whole(v),
        };
        if l.parts.is_empty() {
            return Ok(vec![(Vec::new(), fixed(l.constant))]);
        }
        if let Some(a) = l.as_cell().filter(|a| self.few.contains_key(&a.cell)) {
            let same = |c: &i64| symbolic(*c) || ty.admit(*c) == Some(*c);
            let values = &self.few[&a.cell];
            if values.iter().all(same) {
                return whole(v);
            }
            let cases = values
                .iter()
                .map(|c| (vec![self.is_value(a, *c)], fixed(*c)));
            return Ok(cases.collect());
        }
        let Type::Range { lo, hi } = ty else {
            return whole(v);
        };
        if let Some(a) = l.as_cell()
            && self
                .ranges
                .get(&a.cell)
                .is_some_and(|r| lo <= r.0 && r.1 <= hi)
        {
            return whole(v);
        }
        let compare = |left: &Linear, op, right: &Linear| {
            Formula::Atom(Literal {
                left: left.term(),
                op,
                right: right.term(),
            })
        };
        let (lo, hi) = (Linear::constant(lo), Linear::constant(hi));
        let inside = vec![
            compare(&lo, Comparison::Le, &l),
            compare(&l, Comparison::Le, &hi),
        ];
        Ok(vec![
            (inside, Some(v)),
            (vec![compare(&l, Comparison::Lt, &lo)], None),
            (vec![compare(&hi, Comparison::Lt, &l)], None),
        ])
    }

    /// A value as a variable of this kind stores it.
    fn fit(&self, v: Val, holds: &Holds, span: Span) -> Result<Alternatives, Refused> {
        match (holds, v) {
            (Holds::Threads(_), Val::Number(l)) if l.parts.is_empty() && l.constant == -1 => {
                Ok(vec![(Vec::new(), Val::Thread(Identity::None))])
            }
            (Holds::Threads(_), v @ Val::Thread(_)) => Ok(vec![(Vec::new(), v)]),
            (Holds::Threads(_), _) => Err(refuse(
                span,
                "thread identifiers and numbers are mixed",
                "use `none` or another identifier",
            )),
            (Holds::Numbers, Val::Number(l)) if symbolic(l.constant) => Err(refuse(
                span,
                "a number of threads is stored among other numbers",
                "count with `! as counter` or `= count(…)`, or fix the number of threads",
            )),
            (Holds::Numbers, Val::Number(l)) => {
                match l.as_cell().filter(|a| self.few.contains_key(&a.cell)) {
                    None => Ok(vec![(Vec::new(), Val::Number(l))]),
                    Some(a) => {
                        let cases = self.few[&a.cell].iter().filter_map(|c| {
                            let guard = equal(Term::Read(a.clone()), self.finite(*c)?);
                            Some((vec![guard], Val::Number(Linear::constant(*c))))
                        });
                        Ok(cases.collect())
                    }
                }
            }
            (_, Val::Thread(_)) => Err(refuse(
                span,
                "a thread identifier is used as a number",
                "declare the variable with the family as its type",
            )),
            (_, v) => Ok(vec![(Vec::new(), v)]),
        }
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
            1 => Ok(Val::Number(Linear::constant(super::variables::ALL))),
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
            _ => Val::Number(Linear::cell(access(cell, &[thread]))),
        }
    }

    fn path_value(
        &self,
        f: FamilyId,
        path: &Path,
        e: &Expr<Local>,
        span: Span,
    ) -> Result<Alternatives, Refused> {
        let leaf = |l: &Local| self.leaf(f, path, l, span);
        self.value(e, &leaf, span)
    }

    /// The element of a region that a place names, on each way to name it. Naming nothing breaks
    /// the thread.
    fn place(
        &mut self,
        f: FamilyId,
        path: Path,
        place: &Place,
        span: Span,
    ) -> Result<Vec<(Path, RegionId, Access)>, Refused> {
        let Place::Region(r, index) = place else {
            return Err(refuse(
                span,
                "computed addresses are not treated for any number of threads",
                "name the region",
            ));
        };
        let region = &self.program.regions[r.index()];
        let base = self.variables.cells[&Variable::Region(*r)];
        let wide = matches!(self.variables.of(Variable::Region(*r)), Holds::Threads(_));
        let mut out = Vec::new();
        match region.length {
            Length::Scalar => out.push((path, *r, access(base, &[]))),
            Length::Array(n) => {
                let list = self.path_value(f, &path, index, span)?;
                let mut cases = Vec::new();
                for (g, v) in list {
                    for (h, v) in self.fit(v, &Holds::Numbers, span)? {
                        cases.push((g.iter().cloned().chain(h).collect::<Vec<_>>(), v));
                    }
                }
                for (g, v) in cases {
                    let Val::Number(l) = v else { continue };
                    if !l.parts.is_empty() {
                        return Err(refuse(
                            span,
                            "an index that is an unbounded number",
                            "give it a small range",
                        ));
                    }
                    let mut p = path.clone();
                    p.guards.extend(g);
                    p.broken = !(0..i64::from(n)).contains(&l.constant);
                    let step = if wide { 2 } else { 1 };
                    let element = if p.broken {
                        0
                    } else {
                        l.constant as u16 * step
                    };
                    out.push((p, *r, access(base + element, &[])));
                }
            }
            Length::PerThread(of) => {
                for (g, v) in self.path_value(f, &path, index, span)? {
                    let mut p = path.clone();
                    p.guards.extend(g);
                    match v {
                        Val::Thread(Identity::Is(t)) if of == f => {
                            out.push((p, *r, access(base, &[t])))
                        }
                        Val::Thread(Identity::Is(_)) => {
                            return Err(refuse(
                                span,
                                format!(
                                    "`{}` is indexed by threads of another family",
                                    region.name
                                ),
                                format!(
                                    "its index is a thread of `{}`",
                                    self.program.families[of.index()].name
                                ),
                            ));
                        }
                        Val::Thread(Identity::None) => {
                            p.broken = true;
                            out.push((p, *r, access(base, &[ME])));
                        }
                        Val::Thread(Identity::Held { cell, none }) => {
                            let mut nobody = p.clone();
                            nobody
                                .guards
                                .push(equal(Term::Read(none.clone()), Term::Bool(true)));
                            nobody.broken = true;
                            out.push((nobody, *r, access(base, &[ME])));
                            for (q, t) in self.held(p, &cell, &none) {
                                out.push((q, *r, access(base, &[t])));
                            }
                        }
                        _ => {
                            return Err(refuse(
                                span,
                                format!("`{}` is indexed by a number", region.name),
                                "index it with `self` or a thread identifier",
                            ));
                        }
                    }
                }
            }
        }
        Ok(out)
    }

    fn load(
        &mut self,
        f: FamilyId,
        path: Path,
        register: RegisterId,
        place: &Place,
        span: Span,
    ) -> Result<Vec<Path>, Refused> {
        let mut out = Vec::new();
        for (p, region, cell) in self.place(f, path, place, span)? {
            if p.broken {
                out.push(p);
                continue;
            }
            let written = p
                .writes
                .iter()
                .rev()
                .find(|(a, _)| *a == cell)
                .map(|(_, v)| v.clone());
            let v = match (written, self.variables.of(Variable::Region(region))) {
                (Some(v), _) => v,
                (None, Holds::Threads(_)) => {
                    let none = Access {
                        cell: cell.cell + 1,
                        ..cell.clone()
                    };
                    Val::Thread(Identity::Held { cell, none })
                }
                (None, Holds::Counter) => {
                    if p.counters.iter().any(|(r, _)| *r == region) {
                        return Err(refuse(
                            span,
                            "a counter is read after it was written in one step",
                            "use the register that was stored",
                        ));
                    }
                    Val::Counter { region, delta: 0 }
                }
                (None, _) => Val::Number(Linear::cell(cell)),
            };
            out.extend(self.assign(f, p, register, vec![(Vec::new(), v)], span)?);
        }
        Ok(out)
    }

    fn store(
        &mut self,
        f: FamilyId,
        path: Path,
        place: &Place,
        value: &Expr<Local>,
        span: Span,
    ) -> Result<Vec<Path>, Refused> {
        let mut out = Vec::new();
        for (p, region, cell) in self.place(f, path, place, span)? {
            if p.broken {
                out.push(p);
                continue;
            }
            let holds = self.variables.of(Variable::Region(region)).clone();
            let ty = self.variables.type_of(Variable::Region(region));
            for (g, v) in self.path_value(f, &p, value, span)? {
                let mut p = p.clone();
                p.guards.extend(g);
                if holds == Holds::Counter {
                    out.extend(self.store_counter(f, p, region, v, span)?);
                    continue;
                }
                for (h, v) in self.fit(v, &holds, span)? {
                    for (range, v) in self.admit(ty, v, span)? {
                        let mut p = p.clone();
                        p.guards.extend(h.iter().cloned());
                        p.guards.extend(range);
                        match v {
                            Some(v) => {
                                p.writes.retain(|(a, _)| *a != cell);
                                p.writes.push((cell.clone(), v));
                            }
                            None => p.broken = true,
                        }
                        out.push(p);
                    }
                }
            }
        }
        Ok(out)
    }

    /// The flag of threads that did what has no meaning.
    fn broken_cell(&mut self) -> u16 {
        if let Some(c) = self.broken {
            return c;
        }
        let cell = self.cell("Broken".into(), 1, CellType::Bool, false, Span::NONE);
        if let Formula::And(list) = &mut self.system.init.body {
            list.push(equal(Term::Read(access(cell, &[ME])), Term::Bool(false)));
        }
        self.broken = Some(cell);
        cell
    }

    fn emit(&mut self, f: FamilyId, start: LocationId, path: Path) -> Result<(), Refused> {
        let place = |l: LocationId| Term::Constructor(f.index() as u16, l.index() as u16);
        let at = access(f.index() as u16, &[ME]);
        let mut guard = vec![equal(Term::Read(at.clone()), place(start))];
        if let Some(family) = self.family_cell() {
            guard.push(equal(
                Term::Read(access(family, &[ME])),
                self.family_value(f.index()),
            ));
        }
        guard.extend(path.guards.iter().cloned());
        guard.extend(self.everyone(f, &path));
        let mut updates = Vec::new();
        let set = |a: &Access, value: Value| Update {
            cell: a.cell,
            index: a.args.iter().map(|t| UpdateIndex::At(*t)).collect(),
            branches: vec![Branch {
                condition: Formula::TRUE,
                value,
            }],
            span: path.span,
        };
        if path.broken {
            let cell = self.broken_cell();
            updates.push(set(&access(cell, &[ME]), Value::Term(Term::Bool(true))));
        } else {
            if path.at != start {
                updates.push(set(&at, Value::Term(place(path.at))));
            }
            for (r, v) in &path.registers {
                let cell = access(self.variables.cells[&Variable::Register(f, *r)], &[ME]);
                for (a, t) in self.stored(&cell, v, path.span)? {
                    if t != Term::Read(a.clone()) {
                        updates.push(set(&a, Value::Term(t)));
                    }
                }
            }
            for r in &path.any {
                let id = Variable::Register(f, *r);
                let cell = access(self.variables.cells[&id], &[ME]);
                if matches!(self.variables.of(id), Holds::Threads(_)) {
                    let none = Access {
                        cell: cell.cell + 1,
                        ..cell.clone()
                    };
                    updates.push(set(&none, Value::Term(Term::Bool(false))));
                }
                updates.push(set(&cell, Value::Any));
            }
            for (cell, v) in &path.writes {
                for (a, t) in self.stored(cell, v, path.span)? {
                    updates.push(set(&a, Value::Term(t)));
                }
            }
            for (region, write) in &path.counters {
                let cell = self.variables.cells[&Variable::Region(*region)];
                updates.push(match write {
                    CounterWrite::One(t, b) => {
                        set(&access(cell, &[*t]), Value::Term(Term::Bool(*b)))
                    }
                    CounterWrite::All(b) => Update {
                        cell,
                        index: vec![UpdateIndex::Each("j".into())],
                        branches: vec![Branch {
                            condition: Formula::TRUE,
                            value: Value::Term(Term::Bool(*b)),
                        }],
                        span: path.span,
                    },
                });
            }
        }
        let mut transition = Transition {
            name: format!(
                "{}_{}_{}",
                self.program.families[f.index()].name,
                start.index(),
                self.system.transitions.len()
            ),
            params: path.params,
            actor: Some(0),
            fence: path.fence,
            guard: Formula::And(guard),
            updates,
            span: path.span,
        };
        if path.atomic {
            transition.fence = Some(FenceKind::Full);
            let system = &self.system;
            // Only a transition that reads and writes weak cells bypasses the buffer.
            if system.writes_weak(&transition) && !system.reads_weak(&transition) {
                let update = transition.updates.iter().find(|u| system.cell(u.cell).weak);
                let read = update.map(|u| {
                    let args = u.index.iter().map(|i| match i {
                        UpdateIndex::At(t) => *t,
                        UpdateIndex::Each(_) => ME,
                    });
                    let a = Access {
                        cell: u.cell,
                        args: args.collect(),
                        reader: None,
                    };
                    match system.cell(u.cell).ty {
                        CellType::Int | CellType::Real => Term::Sum {
                            parts: vec![(1, a)],
                            constant: 0,
                        },
                        _ => Term::Read(a),
                    }
                });
                if let (Some(t), Formula::And(list)) = (read, &mut transition.guard) {
                    list.push(equal(t.clone(), t));
                }
            }
        }
        self.system.transitions.push(transition);
        Ok(())
    }

    /// What is stored in which cells for a value.
    fn stored(&self, cell: &Access, v: &Val, span: Span) -> Result<Vec<(Access, Term)>, Refused> {
        let none = Access {
            cell: cell.cell + 1,
            ..cell.clone()
        };
        Ok(match v {
            Val::Number(l) => {
                let finite = self.few.contains_key(&cell.cell);
                let term = match (finite, l.as_cell()) {
                    (true, Some(a)) => Term::Read(a.clone()),
                    (true, None) if l.parts.is_empty() => match self.finite(l.constant) {
                        Some(t) => t,
                        None => {
                            return Err(refuse(
                                span,
                                "a value that was not foreseen",
                                "please report this program",
                            ));
                        }
                    },
                    (true, None) => {
                        return Err(refuse(
                            span,
                            "a value that was not foreseen",
                            "please report this program",
                        ));
                    }
                    (false, _) => l.term(),
                };
                vec![(cell.clone(), term)]
            }
            Val::Thread(Identity::None) => vec![(none, Term::Bool(true))],
            Val::Thread(Identity::Is(t)) => {
                vec![(cell.clone(), Term::Thread(*t)), (none, Term::Bool(false))]
            }
            Val::Thread(Identity::Held { cell: c, none: n }) => vec![
                (cell.clone(), Term::Read(c.clone())),
                (none, Term::Read(n.clone())),
            ],
            Val::Counter { .. } => {
                return Err(refuse(
                    span,
                    "a counter is stored in the middle of a step",
                    "store it where it was counted",
                ));
            }
        })
    }
}
