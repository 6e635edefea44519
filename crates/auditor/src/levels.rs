//! Levels on each of which somebody stays behind: what two threads and a level look like is closed, and a count of
//! levels follows ([`wattle_evidence::certificate::levels`]).
//!
//! 1. *Closed*: of every way in which two threads and a level may lie, and of one thread alone, the set of what may be
//!    kept of a state is made from the initial states by the rules of a step over positions. Of the registers that are not kept
//!    and of all elements that are not, a read gives any value of the type, and of data with more than a few values nothing is kept. What is dropped of a buffer only makes
//!    fences pass and stores arrive sooner; for one thread alone they
//!    reach memory at once, which nobody can tell. Others store what their stores allow, at any time, with anything in their registers.
//! 2. *No fault*: of the first thread no step is one. A step that mentions one thread and one level at most and
//!    is a fault is one too if these are those that are looked at, where positions are exact: elsewhere it is left to that.
//! 3. *Levels*: where nobody is inside an atomic block, and the level is one that is looked at:
//!    - nobody's own store of who stays behind is pending if he has passed it, and while it is he has not reached it;
//!    - if the first thread has reached it, somebody is named as staying behind;
//!    - if that is the first and the second has reached it, the first has reached it and not passed it.
//!
//!    Who has reached the next level has passed this one, by what is said of locations and a thread's own level; who has
//!    passed one has reached it. The property needs more threads, at locations where all levels are passed, than are left.

mod act;
mod line;
mod stands;

pub use stands::outside;

use super::{AuditError, Audited};
use act::{Acting, Around, Kept, Pending, State, drains, empty, entries, for_each_read};
use line::{Positions, Shape, Unsaid, Value};
use std::collections::{BTreeSet, HashSet};
use wattle_evidence::certificate::levels::{Against, Holds, Levels};
use wattle_evidence::control::{Control, Progress};
use wattle_memory::rules::{Stuck, StuckIn, enabled, perform};
use wattle_memory::{Layout, MemoryModel, Newest, Pso, Sc, Tso};
use wattle_model::graph::{Action, Section};
use wattle_model::program::{Length, Place};
use wattle_model::property::{Observation, PropertyKind, ThreadIndex};
use wattle_model::{
    CellId, Count, Expr, Family, FamilyId, LocationId, Op2, Program, Property, RegionId, RegisterId,
};

/// Pending stores of a thread.
const MOST_PENDING: usize = 8;
/// What is kept of states, of each way to lie.
const MOST_STATES: usize = 2_000_000;

pub fn audit_levels(
    program: &Program,
    model: MemoryModel,
    property: Option<usize>,
    certificate: &Levels,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if certificate.model != model {
        return Err(AuditError::WrongModel(certificate.model));
    }
    let (looks, checked) = looks(program, certificate, control)?;
    if let Some(p) = property {
        let property = program.properties.get(p);
        let property = property.ok_or_else(|| refused("there is no such property"))?;
        let done = Done::of(program, property)?;
        let most = usize::from(certificate.skips[0]) + usize::from(certificate.skips[1]);
        if done.threads <= most.max(1) {
            return Err(AuditError::Other("the property needs more levels".into()));
        }
        judge(certificate, &done, &looks)?;
    }
    Ok(Audited { checked })
}

fn refused(why: &str) -> AuditError {
    AuditError::Refused(why.into())
}

/// What the two threads are to the level, and who stays behind there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Situation {
    /// The level is the first, the last.
    pub ends: [bool; 2],
    pub threads: [(LocationId, Against); 2],
    /// Their own stores of who stays behind there are pending.
    pub pending: [bool; 2],
    pub behind: Behind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behind {
    Nobody,
    First,
    /// The second thread, or one that is not looked at.
    Another,
}

/// What a property of places forbids.
pub struct Done {
    /// So many threads at these locations.
    pub threads: usize,
    pub at: BTreeSet<LocationId>,
}

impl Done {
    pub fn of(program: &Program, property: &Property) -> Result<Done, AuditError> {
        let condition = &property.condition;
        let expr = match property.kind {
            PropertyKind::Never => condition.expr.clone(),
            PropertyKind::Always => condition.expr.clone().negate(),
            PropertyKind::Finally | PropertyKind::Reachable => {
                return Err(refused("it is about final states"));
            }
        };
        let mut at = vec![None::<BTreeSet<LocationId>>; condition.indices.len()];
        let mut open = vec![&expr];
        while let Some(e) = open.pop() {
            match e {
                Expr::Binary(Op2::And, a, b) => open.extend([&**a, &**b]),
                Expr::Atom(Observation::At(t, label)) => {
                    let ThreadIndex::Variable(v) = &t.index else {
                        continue;
                    };
                    let all = program.family(t.family).locations.iter().enumerate();
                    let here = all.filter(|(_, l)| l.labels.contains(label));
                    let here = here.map(|(l, _)| LocationId::new(l));
                    at[v.index()].get_or_insert_default().extend(here);
                }
                // What else it demands does not matter.
                Expr::Const(_)
                | Expr::Atom(_)
                | Expr::Unary(..)
                | Expr::Binary(..)
                | Expr::Ite(..) => {}
            }
        }
        Ok(Done {
            threads: at.iter().flatten().count(),
            at: at.into_iter().flatten().flatten().collect(),
        })
    }
}

/// Whether so few pass all levels.
pub fn judge(c: &Levels, done: &Done, looks: &BTreeSet<Situation>) -> Result<(), AuditError> {
    let wrong = |why: &str| Err(AuditError::Other(why.into()));
    let reached = |t: &(LocationId, Against)| c.reached.contains(t);
    let passed = |t: &(LocationId, Against)| c.passed.contains(t);
    if !c.passed.iter().all(reached) {
        return wrong("a level is passed and not reached");
    }
    for (l, against) in &c.reached {
        // On the next level, and so on which side of this one.
        let here: &[Against] = match against {
            Against::Below => &[Against::Below, Against::At],
            Against::At | Against::Above => &[Against::Above],
        };
        if !here.iter().all(|a| passed(&(*l, *a))) {
            return wrong("the next level is reached and this one not passed");
        }
    }
    let all = |l: &LocationId| Against::ALL.iter().all(|a| passed(&(*l, *a)));
    if !done.at.iter().all(all) {
        return wrong("what the property forbids is before some level");
    }
    for look in looks {
        if c.skips
            .iter()
            .zip(look.ends)
            .any(|(skip, end)| *skip && end)
        {
            continue;
        }
        let first = &look.threads[0];
        if look.pending[0] && passed(first) {
            return wrong("a level is passed and its store pending");
        }
        let reached = |i: usize| reached(&look.threads[i]) && !look.pending[i];
        match look.behind {
            Behind::Nobody if reached(0) => return wrong("nobody stays behind"),
            Behind::First if reached(1) && (!reached(0) || passed(first)) => {
                return wrong("who stays behind has passed");
            }
            Behind::Nobody | Behind::First | Behind::Another => {}
        }
    }
    Ok(())
}

/// Closes what may be kept of states, of all ways to lie; there is no fault then.
pub fn looks(
    program: &Program,
    certificate: &Levels,
    control: &Control<'_>,
) -> Result<(BTreeSet<Situation>, u64), AuditError> {
    match certificate.model {
        MemoryModel::Sc => all_looks::<Sc>(program, certificate, control),
        MemoryModel::Tso => all_looks::<Tso>(program, certificate, control),
        MemoryModel::Pso => all_looks::<Pso>(program, certificate, control),
    }
}

fn all_looks<L: Layout>(
    program: &Program,
    certificate: &Levels,
    control: &Control<'_>,
) -> Result<(BTreeSet<Situation>, u64), AuditError> {
    let (mut all, mut checked) = (BTreeSet::new(), 0);
    for shape in Shape::all() {
        let closed = Closed::<L>::of(program, certificate, &shape, checked, control)?;
        checked += closed.states.len() as u64;
        all.extend(closed.states.iter().filter_map(|s| closed.look(s)));
    }
    Ok((all, checked))
}

/// The set, of one way to lie.
struct Closed<'a, L: Layout> {
    around: Around<'a>,
    certificate: &'a Levels,
    shape: &'a Shape,
    states: HashSet<State<Pending<L>>>,
}

impl<'a, L: Layout> Closed<'a, L> {
    fn of(
        program: &'a Program,
        certificate: &'a Levels,
        shape: &'a Shape,
        before: u64,
        control: &Control<'_>,
    ) -> Result<Self, AuditError> {
        let mut closed = Closed {
            around: around(program, certificate, shape)?,
            certificate,
            shape,
            states: HashSet::new(),
        };
        let others = closed.others()?;
        let mut open = closed.starts()?;
        closed.states.extend(open.iter().cloned());
        while let Some(state) = open.pop() {
            let progress = Progress {
                states: before + closed.states.len() as u64,
                frontier: open.len() as u64,
                ..Progress::default()
            };
            control.poll("audit", progress)?;
            if closed.states.len() > MOST_STATES {
                return Err(AuditError::TooMany);
            }
            for next in closed.after(&state, &others)? {
                if !closed.states.contains(&next) {
                    closed.states.insert(next.clone());
                    open.push(next);
                }
            }
        }
        Ok(closed)
    }

    fn starts(&self) -> Result<Vec<State<Pending<L>>>, AuditError> {
        let (around, family) = (&self.around, self.around.family);
        let all = Positions::explore(self.shape, |d| {
            let mut threads = Vec::new();
            for p in &self.shape.threads.points {
                let mut registers = Vec::new();
                for (r, register) in family.registers.iter().enumerate() {
                    let of = around.register_type(RegisterId::new(r));
                    registers.push(around.initial(d, &register.init, Value::Thread(*p), of)?);
                }
                threads.push(Kept {
                    location: family.entry,
                    registers,
                    pending: empty::<L>(around.cells.len()),
                });
            }
            let mut memory = Vec::new();
            for (r, point) in &around.cells {
                let region = around.program.region(*r);
                let (index, holds) = around.regions[r.index()];
                let me = match (index, holds) {
                    (Holds::Level, Holds::Level | Holds::Data | Holds::Mixed) => {
                        Value::Level(self.shape.levels.points[*point])
                    }
                    // A level as a thread is any.
                    (Holds::Level, Holds::Thread | Holds::Name) => {
                        let inner: Vec<u8> = self.shape.threads.inner().collect();
                        Value::Thread(line::stuck(d.choose(&inner))?)
                    }
                    (Holds::Data | Holds::Thread | Holds::Name | Holds::Mixed, _) => {
                        Value::Thread(self.shape.threads.points[*point])
                    }
                };
                memory.push(around.initial(d, &region.init, me, (region.ty, holds))?);
            }
            Ok(State { threads, memory })
        });
        let all = all.into_iter().map(|s: Result<_, StuckIn<Positions<'_>>>| {
            let state = s.map_err(|e| match e {
                Stuck::Refused(Unsaid(why)) => refused(why),
                Stuck::Fault(_) | Stuck::Full => refused("an initial value outside its type"),
            });
            state.map(|s| self.forget(s))
        });
        all.collect()
    }

    /// What others may store.
    fn others(&self) -> Result<BTreeSet<(CellId, Value)>, AuditError> {
        let mut all = BTreeSet::new();
        for step in &self.around.family.steps {
            let Action::Store { place, value } = &step.action else {
                continue;
            };
            let stored = Positions::explore(self.shape, |d| self.around.others(d, place, value));
            for stored in stored {
                match stored {
                    Ok(stored) => all.extend(stored),
                    Err(Stuck::Refused(Unsaid(why))) => return Err(refused(why)),
                    // The end of its run.
                    Err(Stuck::Fault(_) | Stuck::Full) => {}
                }
            }
        }
        Ok(all)
    }

    fn after(
        &self,
        state: &State<Pending<L>>,
        others: &BTreeSet<(CellId, Value)>,
    ) -> Result<Vec<State<Pending<L>>>, AuditError> {
        let around = &self.around;
        let inside = |t: &Kept<_>| around.is_inside(t.location);
        let alone = state.threads.iter().position(inside);
        let mut all = Vec::new();
        for me in 0..state.threads.len() {
            if alone.is_some_and(|a| a != me) {
                continue;
            }
            for ((c, v), rest) in drains::<L>(&state.threads[me].pending) {
                let mut next = state.clone();
                next.memory[c.index()] = v;
                next.threads[me].pending = rest;
                all.push(next);
            }
            let here = state.threads[me].location;
            for step in around.family.steps.iter().filter(|s| s.source == here) {
                let ways = Positions::explore(self.shape, |d| {
                    let state = state.clone();
                    let mut world = Acting::<L> { around, me, state };
                    if !enabled(d, &world, &step.action) {
                        return None;
                    }
                    Some(
                        self.taken(d, &mut world, &step.action)
                            .map(|()| world.state),
                    )
                });
                for way in ways.into_iter().flatten() {
                    match way {
                        Ok(mut next) => {
                            next.threads[me].location = step.target;
                            let next = self.forget(next);
                            if entries::<L>(&next.threads[me].pending) > MOST_PENDING {
                                return Err(refused("more and more stores are pending"));
                            }
                            all.push(next);
                        }
                        Err(Stuck::Refused(Unsaid(why))) => return Err(refused(why)),
                        // The second thread is the first of another two.
                        Err(Stuck::Fault(_)) if me > 0 => {}
                        Err(Stuck::Fault(_) | Stuck::Full) => {
                            let d = Positions::new(self.shape);
                            let thread = &state.threads[me];
                            if !around.is_seen_elsewhere(&d, &step.action, thread) {
                                let event = format!("a step from {} is a fault", step.source);
                                return Err(AuditError::Other(event));
                            }
                        }
                    }
                }
            }
        }
        if alone.is_none() {
            for (c, v) in others {
                let mut next = state.clone();
                next.memory[c.index()] = *v;
                all.push(next);
            }
        }
        Ok(all)
    }

    fn taken(
        &self,
        d: &mut Positions<'a>,
        world: &mut Acting<'_, L>,
        action: &Action<wattle_model::program::Local, Place>,
    ) -> Result<(), StuckIn<Positions<'a>>> {
        let chosen = match action.chosen() {
            None => None,
            Some((_, Some((lo, hi)))) => {
                let ty = wattle_model::Type::Range { lo, hi };
                Some(line::stuck(self.around.any(d, ty, Holds::Data))?)
            }
            Some((r, None)) => {
                let (ty, holds) = self.around.register_type(r);
                Some(line::stuck(self.around.any(d, ty, holds))?)
            }
        };
        perform(d, world, action, chosen)?;
        if let Some(r) = action.written() {
            let of = self.around.register_type(r);
            let own = &mut world.state.threads[world.me].registers[r.index()];
            *own = line::stuck(self.around.keep(d, of, *own))?;
        }
        Ok(())
    }

    /// Without what is not kept, and what nobody reads any more.
    fn forget(&self, mut state: State<Pending<L>>) -> State<Pending<L>> {
        for (t, thread) in state.threads.iter_mut().enumerate() {
            let live = &self.around.live[thread.location.index()];
            for (r, v) in thread.registers.iter_mut().enumerate() {
                if !live[r] || t > 0 && !self.around.known[r] {
                    *v = Value::Number(-1);
                }
            }
        }
        state
    }

    fn look(&self, state: &State<Pending<L>>) -> Option<Situation> {
        let c = self.certificate;
        let [first, second] = &state.threads[..] else {
            return None;
        };
        if [first, second]
            .iter()
            .any(|t| self.around.is_inside(t.location))
        {
            return None;
        }
        let level = self.shape.levels.points[0];
        let own = |t: &Kept<_>| {
            let at = match t.registers[c.level.index()] {
                Value::Level(s) if s < level => Against::Below,
                Value::Level(s) if s == level => Against::At,
                Value::Level(_)
                | Value::Thread(_)
                | Value::Number(_)
                | Value::Count(_)
                | Value::Other
                | Value::Any => Against::Above,
            };
            (t.location, at)
        };
        let at = |(r, _): &(RegionId, usize)| *r == c.behind;
        let behind_at = self.around.cells.iter().position(at)?;
        let line = &self.shape.threads;
        let behind = match state.memory[behind_at] {
            Value::Thread(s) if s == line.points[0] => Behind::First,
            Value::Thread(s) if line.inner().contains(&s) => Behind::Another,
            Value::Other => Behind::Another,
            Value::Thread(_)
            | Value::Number(_)
            | Value::Count(_)
            | Value::Level(_)
            | Value::Any => Behind::Nobody,
        };
        let cell = CellId::new(behind_at);
        let pending = |t: &Kept<Pending<L>>| t.pending.newest_of(cell).is_some();
        let (ends, threads) = (self.shape.ends, [own(first), own(second)]);
        let pending = [pending(first), pending(second)];
        Some(Situation {
            ends,
            threads,
            pending,
            behind,
        })
    }
}

/// What is kept of the program, if the argument treats it.
fn around<'a>(
    program: &'a Program,
    c: &'a Levels,
    shape: &Shape,
) -> Result<Around<'a>, AuditError> {
    let [family] = &program.families[..] else {
        return Err(refused("there is more than one family of threads"));
    };
    if family.count != Count::Any {
        return Err(refused("the number of threads is fixed"));
    }
    let registers = family.registers.len();
    let index = |r: &RegionId| c.regions.get(r.index()).map(|(index, _)| *index);
    if (c.registers.len(), c.known.len()) != (registers, registers)
        || c.regions.len() != program.regions.len()
        || c.registers.get(c.level.index()) != Some(&Holds::Level)
        || c.known.get(c.level.index()) != Some(&true)
        || index(&c.behind) != Some(Holds::Level)
        || !matches!(c.regions[c.behind.index()].1, Holds::Name | Holds::Thread)
        || c.regions.iter().any(|(_, value)| *value == Holds::Mixed)
    {
        return Err(refused("it is not about the program's registers and cells"));
    }
    let mut cells = Vec::new();
    for (r, region) in program.regions.iter().enumerate() {
        let points = match (region.length, c.regions[r].0) {
            (Length::Scalar, _) => 1,
            (Length::PerThread(f), Holds::Thread | Holds::Name) if f == FamilyId::new(0) => {
                shape.threads.points.len()
            }
            (Length::PerThread(f), Holds::Level) if f == FamilyId::new(0) => 1,
            (Length::PerThread(_) | Length::Array(_), _) => {
                return Err(refused("an array that is not indexed by threads or levels"));
            }
        };
        cells.extend((0..points).map(|p| (RegionId::new(r), p)));
    }
    for step in &family.steps {
        match step.action {
            Action::Lock | Action::Unlock | Action::AtomicBegin(Section::Buffered) => {
                return Err(refused(
                    "`lock` and buffered atomic sections are not treated",
                ));
            }
            Action::AtomicBegin(Section::Drained)
            | Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicEnd => {}
        }
    }
    Ok(Around {
        program,
        family,
        registers: &c.registers,
        known: &c.known,
        regions: &c.regions,
        cells,
        sections: sections(family),
        live: live(family, c.level),
    })
}

/// The atomic block each location is in.
fn sections(family: &Family) -> Vec<Option<Section>> {
    let mut inside = vec![None; family.locations.len()];
    let mut seen = BTreeSet::from([family.entry]);
    let mut work = vec![family.entry];
    while let Some(l) = work.pop() {
        for step in family.steps.iter().filter(|s| s.source == l) {
            if seen.insert(step.target) {
                inside[step.target.index()] = step.action.section_after(inside[l.index()]);
                work.push(step.target);
            }
        }
    }
    inside
}

/// By location: registers that may be read before they are written. A thread's own level always may.
fn live(family: &Family, level: RegisterId) -> Vec<Vec<bool>> {
    let mut live = vec![vec![false; family.registers.len()]; family.locations.len()];
    live.iter_mut().for_each(|l| l[level.index()] = true);
    loop {
        let before = live.clone();
        for step in &family.steps {
            let mut here = live[step.target.index()].clone();
            if let Some(r) = step.action.written() {
                here[r.index()] = r == level;
            }
            for_each_read(&step.action, &mut |r| here[r.index()] = true);
            let known = live[step.source.index()].iter_mut();
            known.zip(here).for_each(|(known, new)| *known |= new);
        }
        if live == before {
            return live;
        }
    }
}
