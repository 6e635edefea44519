//! Which steps others may notice: what is known of a program before it runs.
//!
//! A step is *local* if it can be exchanged with every event of every other thread and of every buffer,
//! and nobody looks at what it changes: steps on registers, stores into a buffer, loads of a cell that no
//! other thread writes (what they read is decided by the thread alone, whether its store has drained or
//! not), under SC stores to a cell nobody else touches. A local step is taken together with the move
//! before it. A fence is local if nothing was stored since the last one.
//!
//! A move that has to wait for others — for the lock, or an atomic block with an assumption that may be
//! false — has a *guard*: the one cell that decides whether it can go. A guard of several cells is
//! refused: a run can then be shut out by two events that have nothing to do with each other.
//!
//! A loop that only loads a cell until it has some value (`await x == 1`) waits as well, with that cell as its guard:
//! the load is a move only where it leads out of the loop. *Why:* a thread that has loaded in vain is where it
//! was, but for the register it has loaded into, which it writes again before anything reads it. If the question sees
//! neither that register nor where in the loop the thread is, then leaving out of a run what was loaded in vain
//! leaves a run that shows the same, and ends in the same state if it ends.

use wattle_evidence::Refusal;
use wattle_memory::compiled::Watched;
use wattle_memory::reference::{self, Machine};
use wattle_memory::{Exact, MemoryModel, Sc};
use wattle_model::graph::{Action, Section};
use wattle_model::instance::{Address, Step, Thread};
use wattle_model::{CellId, Expr, Fence, Instance, LocationId, RegisterId, StepId, ThreadId};

/// How a step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// With the move before it.
    Local,
    /// Local if nothing was stored since the last one.
    Fence,
    /// As a move of its own.
    Alone,
}

pub struct Program<'i> {
    pub instance: &'i Instance,
    pub model: MemoryModel,
    /// Some step takes the lock.
    pub locks: bool,
    /// Cells the question sees before the end.
    pub seen: Vec<bool>,
    /// Per thread and step.
    pub manner: Vec<Vec<Manner>>,
    /// Whether the question sees what the step changes on registers and locations.
    pub visible: Vec<Vec<bool>>,
    /// Per thread and step that begins an atomic block which may have to wait: the cell it waits for.
    pub guard: Vec<Vec<Option<u32>>>,
    /// Per thread and step that is the load of a loop that waits.
    pub again: Vec<Vec<Option<Again>>>,
    /// Per thread and cell: no other thread writes it.
    own: Vec<Vec<bool>>,
}

/// The cells an address may be.
fn range(address: &Address) -> std::ops::Range<usize> {
    match address {
        Address::Cell(c) => c.index()..c.index() + 1,
        Address::Computed { base, length, .. } => base.index()..base.index() + *length as usize,
    }
}

/// A loop that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    pub cell: u32,
    /// The step that is taken if the load was in vain, and the other one. Both are possible where the condition has no
    /// value, and is a fault.
    pub back: StepId,
    pub on: StepId,
}

/// One thread, several, or none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    One(usize),
    Several,
}

impl Who {
    fn and(self, t: usize) -> Who {
        match self {
            Who::Nobody => Who::One(t),
            Who::One(u) if u == t => self,
            Who::One(_) | Who::Several => Who::Several,
        }
    }

    fn is_at_most(self, t: usize) -> bool {
        self == Who::Nobody || self == Who::One(t)
    }
}

impl<'i> Program<'i> {
    pub fn new(
        instance: &'i Instance,
        model: MemoryModel,
        view: &Watched,
    ) -> Result<Self, Refusal> {
        let refused = |r: reference::Refusal| Refusal::new(r.to_string());
        // Choices of too many values.
        Machine::<Sc, Exact>::new(instance, ()).map_err(refused)?;
        let cells = instance.cells.len();
        let (mut writes, mut touches) = (vec![Who::Nobody; cells], vec![Who::Nobody; cells]);
        let mut locks = false;
        for (t, thread) in instance.threads.iter().enumerate() {
            for step in &thread.steps {
                match &step.action {
                    Action::Load { place, .. } => {
                        let places = &mut touches[range(place)];
                        places.iter_mut().for_each(|w| *w = w.and(t));
                    }
                    Action::Store { place, .. } => {
                        let places = &mut touches[range(place)];
                        places.iter_mut().for_each(|w| *w = w.and(t));
                        let places = &mut writes[range(place)];
                        places.iter_mut().for_each(|w| *w = w.and(t));
                    }
                    Action::Lock => locks = true,
                    Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Unlock => {}
                }
            }
        }
        let all = |who: &[Who], place: &Address, t: usize| {
            who[range(place)].iter().all(|w| w.is_at_most(t))
        };
        let sees = !view.only_final;
        let seen: Vec<bool> = view.cells.iter().map(|s| *s && sees).collect();
        let (mut manner, mut visible) = (Vec::new(), Vec::new());
        let (mut guard, mut again) = (Vec::new(), Vec::new());
        for (t, thread) in instance.threads.iter().enumerate() {
            let shown = |step: &Step| sees && is_visible(view, t, step);
            let local = |step: &Step| match &step.action {
                _ if shown(step) => Manner::Alone,
                Action::Skip
                | Action::Assign { .. }
                | Action::Havoc { .. }
                | Action::Assume(_)
                | Action::Assert { .. }
                | Action::Fence(Fence::Store) => Manner::Local,
                Action::Fence(Fence::Full) if model == MemoryModel::Sc => Manner::Local,
                Action::Fence(Fence::Full) => Manner::Fence,
                Action::Load { place, .. } if !locks && all(&writes, place, t) => Manner::Local,
                Action::Store { place, .. } if model == MemoryModel::Sc => {
                    let unseen = !seen[range(place)].contains(&true);
                    match !locks && unseen && all(&touches, place, t) {
                        true => Manner::Local,
                        false => Manner::Alone,
                    }
                }
                Action::Store { .. } if !thread.direct[step.source.index()] => Manner::Local,
                Action::Load { .. }
                | Action::Store { .. }
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Lock
                | Action::Unlock => Manner::Alone,
            };
            let loops = (0..thread.steps.len()).map(StepId::new);
            // Beside locks there would be two cells to wait for.
            let loops = loops.map(|s| again_of(thread, s, &shown).filter(|_| !locks));
            let loops: Vec<Option<Again>> = loops.collect();
            let manners = thread.steps.iter().zip(&loops).map(|(step, waits)| {
                // Also for a cell that nobody else writes: it waits for ever.
                match waits {
                    Some(_) => Manner::Alone,
                    None => local(step),
                }
            });
            manner.push(manners.collect());
            again.push(loops);
            visible.push(thread.steps.iter().map(shown).collect());
            let guards = (0..thread.steps.len()).map(|s| guard_of(thread, StepId::new(s), locks));
            guard.push(guards.collect::<Result<_, _>>()?);
        }
        let own = (0..instance.threads.len())
            .map(|t| writes.iter().map(|w| w.is_at_most(t)).collect())
            .collect();
        Ok(Program {
            instance,
            model,
            locks,
            seen,
            manner,
            visible,
            guard,
            again,
            own,
        })
    }

    /// Whether some move may have to wait for others than its thread's buffer.
    pub fn may_wait(&self) -> bool {
        self.locks
            || self.guard.iter().flatten().any(Option::is_some)
            || self.again.iter().flatten().any(Option::is_some)
    }

    /// Whether no thread but this one writes the cell.
    #[inline]
    pub fn is_own(&self, t: usize, cell: usize) -> bool {
        self.own[t][cell]
    }

    /// The buffers there are: one for each thread that stores, for each cell it may store to under PSO
    /// (under TSO the cell says nothing).
    pub fn buffers(&self) -> Vec<(ThreadId, CellId)> {
        let mut all = Vec::new();
        for t in self.instance.thread_ids() {
            let thread = self.instance.thread(t);
            let mut cells: Vec<usize> = Vec::new();
            for step in &thread.steps {
                if let Action::Store { place, .. } = &step.action
                    && !thread.direct[step.source.index()]
                {
                    cells.extend(range(place));
                }
            }
            cells.sort_unstable();
            cells.dedup();
            match self.model {
                MemoryModel::Sc => {}
                MemoryModel::Tso if cells.is_empty() => {}
                MemoryModel::Tso => all.push((t, CellId(0))),
                MemoryModel::Pso => all.extend(cells.iter().map(|c| (t, CellId::new(*c)))),
            }
        }
        all
    }

    /// The cell that stands for who holds the lock.
    pub fn holder(&self) -> u32 {
        self.instance.cells.len() as u32
    }

    /// The cell that stands for what the question sees.
    pub fn view(&self) -> u32 {
        self.instance.cells.len() as u32 + 1
    }
}

fn is_visible(view: &Watched, t: usize, step: &Step) -> bool {
    let (from, to) = (&step.source, &step.target);
    let crosses = |set: &Vec<LocationId>| set.contains(from) != set.contains(to);
    let sets = |r: &RegisterId| view.registers[t][r.index()];
    let register = match &step.action {
        Action::Assign { register, .. }
        | Action::Havoc { register, .. }
        | Action::Load { register, .. } => sets(register),
        Action::Skip
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Store { .. }
        | Action::Fence(_)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => false,
    };
    register || view.locations[t].iter().any(crosses)
}

/// The cell that decides whether the atomic block beginning with this step can be gone through, if
/// something has to be decided.
fn guard_of(thread: &Thread, begin: StepId, locks: bool) -> Result<Option<u32>, Refusal> {
    let step = thread.step(begin);
    let Action::AtomicBegin(section) = step.action else {
        return Ok(None);
    };
    let (mut seen, mut work) = (vec![false; thread.locations.len()], vec![step.target]);
    let mut loads: Vec<&Address> = Vec::new();
    let mut waits = None;
    while let Some(at) = work.pop() {
        if std::mem::replace(&mut seen[at.index()], true) {
            continue;
        }
        let out = thread.outgoing(at);
        if out.is_empty() || may_block(thread, out) {
            waits = waits.or(Some(
                out.first().map_or(step.span, |s| thread.step(*s).span),
            ));
        }
        for s in out {
            let inner = thread.step(*s);
            let refuse = |what: &str| {
                let why = format!("{what} inside an atomic block");
                Refusal::new(why).at(inner.span, "`--engine explicit` takes it")
            };
            match &inner.action {
                Action::AtomicEnd => continue,
                Action::Load { place, .. } => loads.push(place),
                Action::Lock | Action::Unlock => return Err(refuse("a lock")),
                Action::AtomicBegin(_) => return Err(refuse("an atomic block")),
                Action::Fence(Fence::Full) if section == Section::Buffered => {
                    return Err(refuse("a fence"));
                }
                Action::Skip
                | Action::Assign { .. }
                | Action::Havoc { .. }
                | Action::Assume(_)
                | Action::Assert { .. }
                | Action::Store { .. }
                | Action::Fence(_) => {}
            }
            work.push(inner.target);
        }
    }
    let Some(place) = waits else {
        return Ok(None);
    };
    let refuse = |why: &str| Refusal::new(why).at(place, "`--engine explicit` takes it");
    if locks {
        return Err(refuse("an atomic block that waits, beside locks"));
    }
    match loads.split_first() {
        Some((Address::Cell(c), rest)) if rest.iter().all(|a| **a == Address::Cell(*c)) => {
            Ok(Some(c.0))
        }
        Some(_) => Err(refuse("an atomic block that waits for several cells")),
        // What it waits for is its own registers: nobody else changes them.
        None => Ok(None),
    }
}

/// Of a load that begins a loop which waits: the cell, and the step back.
fn again_of(thread: &Thread, load: StepId, shown: &dyn Fn(&Step) -> bool) -> Option<Again> {
    let step = thread.step(load);
    let Action::Load {
        place: Address::Cell(cell),
        ..
    } = &step.action
    else {
        return None;
    };
    let [only] = thread.outgoing(step.source) else {
        return None;
    };
    let [a, b] = thread.outgoing(step.target) else {
        return None;
    };
    let condition = |s: &StepId| match &thread.step(*s).action {
        Action::Assume(e) => Some(e.clone()),
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
    };
    let (one, other) = (condition(a)?, condition(b)?);
    if one.clone().negate() != other && other.negate() != one {
        return None;
    }
    let returns = |s: &StepId| thread.step(*s).target == step.source;
    let (back, on) = match (returns(a), returns(b)) {
        (true, false) => (*a, *b),
        (false, true) => (*b, *a),
        (true, true) | (false, false) => return None,
    };
    let inside = thread.atomic[step.source.index()] || thread.atomic[step.target.index()];
    let fits = *only == load && step.source != step.target && !inside;
    let unseen = !shown(step) && !shown(thread.step(back));
    let cell = cell.0;
    (fits && unseen).then_some(Again { cell, back, on })
}

/// Whether all steps of a location may be shut: they are assumptions, and not two that exclude each
/// other.
fn may_block(thread: &Thread, out: &[StepId]) -> bool {
    let mut conditions: Vec<&Expr<RegisterId>> = Vec::new();
    for s in out {
        match &thread.step(*s).action {
            Action::Assume(e) => conditions.push(e),
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
            | Action::Unlock => return false,
        }
    }
    let opposite = |a: &Expr<RegisterId>| {
        let not = a.clone().negate();
        conditions.iter().any(|b| **b == not)
    };
    !conditions.iter().any(|a| opposite(a))
}
