//! What a move of a certificate of runs is, by the rules of the reference machine.

use crate::AuditError;
use crate::facts::for_each_fact;
use wattle_evidence::Task;
use wattle_memory::reference::InPlace;
use wattle_memory::reference::in_place::Touched;
use wattle_memory::{Fault, FaultKind, MemoryModel, Start};
use wattle_model::graph::{Action, Section};
use wattle_model::instance::{Address, Fact, Question, Step};
use wattle_model::{CellId, Expr, Fence, Instance, LocationId, RegisterId, StepId, ThreadId};

/// What a move did with something that others may use as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    Reads(u32),
    Writes(u32),
    /// A drain: the cell, and which store of which thread.
    Drains(u32, ThreadId, u32),
    /// A load served by that store.
    Forwards(u32, ThreadId, u32),
}

impl Use {
    /// Whether the order of two uses by different processes can be noticed.
    pub fn matters(self, other: Use) -> bool {
        match (self, other) {
            (Use::Reads(a), Use::Writes(b) | Use::Drains(b, ..))
            | (Use::Writes(a) | Use::Drains(a, ..), Use::Reads(b))
            | (Use::Writes(a) | Use::Drains(a, ..), Use::Writes(b) | Use::Drains(b, ..)) => a == b,
            (Use::Drains(_, t, s), Use::Forwards(_, u, r))
            | (Use::Forwards(_, t, s), Use::Drains(_, u, r)) => (t, s) == (u, r),
            (Use::Reads(_) | Use::Forwards(..), Use::Reads(_) | Use::Forwards(..))
            | (Use::Writes(_), Use::Forwards(..))
            | (Use::Forwards(..), Use::Writes(_)) => false,
        }
    }

    pub fn writes(self, cell: u32) -> bool {
        match self {
            Use::Writes(c) | Use::Drains(c, ..) => c == cell,
            Use::Reads(_) | Use::Forwards(..) => false,
        }
    }
}

/// A move that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub uses: Vec<Use>,
    /// Among how many ways it chose.
    pub ways: u32,
    /// It needed the thread's buffer to be empty, and stores had been made.
    pub waited: bool,
    /// Its uses may depend on what it read.
    pub block: bool,
    /// The cell that decided whether it was possible.
    pub guard: Option<u32>,
    /// A drain: which store, and after how many store fences.
    pub drained: Option<(u32, u32)>,
    /// Stores of the thread before and after it.
    pub stores: (u32, u32),
    pub visible: bool,
    pub fault: Option<Fault>,
}

pub enum Move {
    Done(Done),
    /// Not possible now; the cell it waits for, if others may change that.
    Waits(Option<u32>),
}

#[derive(Clone, Copy, Debug, Default)]
struct Stand {
    set_out: Option<(StepId, Option<i64>)>,
    empty_at: u32,
    out: bool,
}

/// A moment to come back to.
pub struct Mark(usize, Vec<Stand>);

/// Steps in a row before a loop is suspected.
const MOST: u32 = 1 << 15;

pub struct Player<'t, 'i> {
    pub machine: InPlace<'i>,
    task: &'t Task<'i>,
    instance: &'i Instance,
    /// Per process: its thread, and the cell of a buffer.
    pub processes: Vec<(ThreadId, Option<CellId>)>,
    stands: Vec<Stand>,
    pub locks: bool,
    /// Some move may have to wait for another thread.
    pub waits: bool,
    writers: Vec<Vec<ThreadId>>,
    users: Vec<Vec<ThreadId>>,
    guards: Vec<Vec<Option<u32>>>,
    /// Per thread and load that a loop consists of: the cell, the step that closes the loop, the one that leaves.
    spins: Vec<Vec<Option<(u32, StepId, StepId)>>>,
    seen: Option<&'i Question>,
}

type Act = Action<RegisterId, Address>;

impl<'t, 'i> Player<'t, 'i> {
    pub fn new(task: &'t Task<'i>, start: &Start) -> Result<Self, AuditError> {
        let instance = task.instance;
        let mut writers = vec![Vec::new(); instance.cells.len()];
        let mut users = vec![Vec::new(); instance.cells.len()];
        let mut processes: Vec<(ThreadId, Option<CellId>)> =
            instance.thread_ids().map(|t| (t, None)).collect();
        let mut locks = false;
        for t in instance.thread_ids() {
            let thread = instance.thread(t);
            let mut buffered = Vec::new();
            for step in &thread.steps {
                locks |= step.action == Action::Lock;
                if let Some(place) = step.action.stored() {
                    writers[place.extent()].iter_mut().for_each(|w| w.push(t));
                    if !thread.direct[step.source.index()] {
                        buffered.extend(place.extent().map(CellId::new));
                    }
                }
                let place = step.action.place().map_or(0..0, Address::extent);
                users[place].iter_mut().for_each(|u| u.push(t));
            }
            buffered.sort_unstable();
            buffered.dedup();
            match task.model {
                MemoryModel::Sc => {}
                MemoryModel::Tso => {
                    processes.extend(buffered.first().map(|_| (t, Some(CellId(0)))));
                }
                MemoryModel::Pso => processes.extend(buffered.iter().map(|c| (t, Some(*c)))),
            }
        }
        writers.iter_mut().chain(&mut users).for_each(Vec::dedup);
        let mut player = Player {
            machine: InPlace::new(instance, task.model, start),
            task,
            instance,
            processes,
            stands: vec![Stand::default(); instance.threads.len()],
            locks,
            waits: locks,
            writers,
            users,
            guards: Vec::new(),
            spins: Vec::new(),
            seen: task.question().filter(|q| !q.only_final),
        };
        for t in instance.thread_ids() {
            let steps = 0..instance.thread(t).steps.len();
            let guards = steps.map(|s| player.guard(t, StepId::new(s)));
            let guards: Vec<Option<u32>> = guards.collect::<Result<_, _>>()?;
            player.waits |= guards.iter().any(Option::is_some);
            player.guards.push(guards);
            let steps = 0..instance.thread(t).steps.len();
            let spins = steps.map(|s| player.spin(t, StepId::new(s)));
            let spins: Vec<Option<(u32, StepId, StepId)>> = spins.collect();
            player.waits |= spins.iter().any(Option::is_some);
            player.spins.push(spins);
        }
        Ok(player)
    }

    /// The cell that stands for the lock, and the one for what the question sees.
    fn lock_cell(&self) -> u32 {
        self.instance.cells.len() as u32
    }

    pub fn mark(&self) -> Mark {
        Mark(self.machine.mark(), self.stands.clone())
    }

    pub fn back_to(&mut self, mark: &Mark) {
        self.machine.undo_to(mark.0);
        self.stands.clone_from(&mark.1);
    }

    /// The local steps before any move. Gives the first fault.
    pub fn begin(&mut self) -> Result<Option<Fault>, AuditError> {
        let mut first = None;
        for t in self.instance.thread_ids() {
            let fault = self.on(t)?;
            first = first.or(fault);
        }
        Ok(first)
    }

    /// Whether some thread has had a fault.
    pub fn has_faulted(&self) -> bool {
        self.stands.iter().any(|s| s.out)
    }

    pub fn play(&mut self, process: u32, choice: u32) -> Result<Move, AuditError> {
        match self.processes.get(process as usize) {
            None => Ok(Move::Waits(None)),
            Some((t, None)) => self.step(*t, choice),
            Some((t, Some(cell))) => Ok(self.drain(*t, *cell)),
        }
    }

    fn drain(&mut self, t: ThreadId, cell: CellId) -> Move {
        let pso = self.task.model == MemoryModel::Pso;
        let its = |p: &wattle_memory::reference::in_place::Pending| !pso || p.cell == cell;
        let Some(at) = self.machine.pending(t).iter().position(its) else {
            return Move::Waits(None);
        };
        if !self.machine.is_oldest(t, at) {
            return Move::Waits(None);
        }
        if !self.machine.may_access(t) {
            return Move::Waits(Some(self.lock_cell()));
        }
        let stores = self.machine.serial(t);
        let drained = self.machine.drain(t, at);
        let visible = self.sees_cell(drained.cell);
        let mut uses = vec![Use::Drains(drained.cell.0, t, drained.serial)];
        if self.locks {
            uses.push(Use::Reads(self.lock_cell()));
        }
        if visible {
            uses.push(Use::Writes(self.lock_cell() + 1));
        }
        Move::Done(Done {
            uses,
            guard: self.locks.then(|| self.lock_cell()),
            drained: Some((drained.serial, drained.epoch)),
            stores: (stores, stores),
            visible,
            ..Done::default()
        })
    }

    fn step(&mut self, t: ThreadId, choice: u32) -> Result<Move, AuditError> {
        let stand = self.stands[t.index()];
        if stand.out {
            return Ok(Move::Waits(None));
        }
        let before = self.machine.serial(t);
        let mut done = Done::default();
        let way = match stand.set_out {
            Some(way) => way,
            None => {
                let ways = self.ways(t)?;
                let Some(way) = ways.get(choice as usize).copied() else {
                    return Ok(Move::Waits(None));
                };
                if ways.len() > 1 {
                    self.stands[t.index()].set_out = Some(way);
                    done.ways = ways.len() as u32;
                    done.fault = self.on(t)?;
                    done.stores = (before, self.machine.serial(t));
                    return Ok(Move::Done(done));
                }
                way
            }
        };
        if choice > 0 {
            return Ok(Move::Waits(None));
        }
        let (s, value) = way;
        let step = self.instance.thread(t).step(s);
        let empties = self.empties(&step.action);
        done.waited = empties && stand.empty_at != before;
        let locked = self.locks && self.needs_lock(&step.action);
        if !self.machine.enabled(t, s) {
            let ready = !empties || self.machine.pending(t).is_empty();
            return Ok(Move::Waits((locked && ready).then(|| self.lock_cell())));
        }
        let mark = self.machine.mark();
        self.machine.touched.clear();
        done.visible = self.sees_step(t, step);
        done.guard = locked.then(|| self.lock_cell());
        done.fault = self.take(t, s, value)?;
        let spin = self.spins[t.index()][s.index()];
        if let (Some((cell, closes, leaves)), None) = (spin, &done.fault) {
            done.guard = Some(cell);
            // A condition without a value shuts neither.
            if self.machine.enabled(t, closes) && !self.machine.enabled(t, leaves) {
                self.machine.undo_to(mark);
                return Ok(Move::Waits(done.guard));
            }
        }
        if matches!(step.action, Action::AtomicBegin(_)) {
            done.block = true;
            let guard = self.guards[t.index()][s.index()];
            done.guard = done.guard.or(guard);
            if !self.inside(t, &mut done)? {
                self.machine.undo_to(mark);
                return Ok(Move::Waits(guard));
            }
        }
        let stand = &mut self.stands[t.index()];
        stand.set_out = None;
        if empties {
            stand.empty_at = self.machine.serial(t);
        }
        stand.out = done.fault.is_some();
        for touched in self.machine.touched.clone() {
            match touched {
                Touched::Read(c) if self.others_write(t, c) => done.uses.push(Use::Reads(c.0)),
                Touched::Forwarded(c, serial) if self.others_write(t, c) => {
                    done.uses.push(Use::Forwards(c.0, t, serial));
                }
                Touched::Wrote(c) => {
                    done.visible |= self.sees_cell(c);
                    done.uses.push(Use::Writes(c.0));
                }
                Touched::Read(_) | Touched::Forwarded(..) | Touched::Put(..) => {}
            }
        }
        if matches!(step.action, Action::Lock | Action::Unlock) {
            done.uses.push(Use::Writes(self.lock_cell()));
        } else if locked {
            done.uses.push(Use::Reads(self.lock_cell()));
        }
        if done.visible {
            done.uses.push(Use::Writes(self.lock_cell() + 1));
        }
        done.uses.sort_unstable();
        done.uses.dedup();
        if done.fault.is_none() {
            done.fault = self.on(t)?;
        }
        done.stores = (before, self.machine.serial(t));
        Ok(Move::Done(done))
    }

    /// The rest of an atomic block; false if it cannot be gone through.
    fn inside(&mut self, t: ThreadId, done: &mut Done) -> Result<bool, AuditError> {
        let thread = self.instance.thread(t);
        for _ in 0..MOST {
            let at = self.machine.locations[t.index()];
            let out = thread.outgoing(at).iter();
            let open: Vec<StepId> = out
                .copied()
                .filter(|s| self.machine.enabled(t, *s))
                .collect();
            let [s] = open[..] else {
                return match open.is_empty() {
                    true => Ok(false),
                    false => Err(AuditError::Refused(
                        "a choice inside an atomic block".into(),
                    )),
                };
            };
            let step = thread.step(s);
            let value = match self.range(t, &step.action) {
                Some((lo, hi)) if lo != hi => {
                    return Err(AuditError::Refused(
                        "a choice inside an atomic block".into(),
                    ));
                }
                range => range.map(|(lo, _)| lo),
            };
            done.visible |= self.sees_step(t, step);
            done.fault = self.take(t, s, value)?;
            if done.fault.is_some() || step.action == Action::AtomicEnd {
                return Ok(true);
            }
        }
        Err(AuditError::TooMany)
    }

    fn take(
        &mut self,
        t: ThreadId,
        s: StepId,
        v: Option<i64>,
    ) -> Result<Option<Fault>, AuditError> {
        match self.machine.take(t, s, v) {
            Ok(()) => Ok(None),
            Err(kind) => {
                let fault = Fault {
                    thread: t,
                    step: s,
                    kind,
                };
                match fault.kind == FaultKind::MachineOverflow {
                    true => Err(AuditError::Fault { state: 0, fault }),
                    false => Ok(Some(fault)),
                }
            }
        }
    }

    /// Local steps, while there is one way on.
    fn on(&mut self, t: ThreadId) -> Result<Option<Fault>, AuditError> {
        for _ in 0..MOST {
            let (s, value) = match self.stands[t.index()].set_out {
                Some(way) => way,
                None => match self.ways(t)?[..] {
                    [way] => way,
                    _ => return Ok(None),
                },
            };
            let step = self.instance.thread(t).step(s);
            let spins = self.spins[t.index()][s.index()].is_some();
            if spins || self.sees_step(t, step) || !self.is_local(t, step) {
                return Ok(None);
            }
            self.stands[t.index()].set_out = None;
            if let Some(fault) = self.take(t, s, value)? {
                self.stands[t.index()].out = true;
                return Ok(Some(fault));
            }
        }
        Err(AuditError::TooMany)
    }

    /// Whether nobody else can notice when the step is taken.
    fn is_local(&self, t: ThreadId, step: &Step) -> bool {
        let sc = self.task.model == MemoryModel::Sc;
        let thread = self.instance.thread(t);
        match &step.action {
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(Fence::Store) => true,
            Action::Fence(Fence::Full) => {
                sc || self.stands[t.index()].empty_at == self.machine.serial(t)
            }
            Action::Load { place, .. } => {
                !self.locks
                    && place
                        .extent()
                        .all(|c| !self.others_write(t, CellId::new(c)))
            }
            Action::Store { place, .. } if sc => {
                let alone = |c: usize| self.users[c].iter().all(|u| *u == t);
                let unseen = |c: usize| !self.sees_cell(CellId::new(c));
                !self.locks && place.extent().all(|c| alone(c) && unseen(c))
            }
            Action::Store { .. } => !thread.direct[step.source.index()],
            Action::AtomicBegin(_) | Action::AtomicEnd | Action::Lock | Action::Unlock => false,
        }
    }

    fn others_write(&self, t: ThreadId, c: CellId) -> bool {
        self.writers[c.index()].iter().any(|w| *w != t)
    }

    /// The step needs the thread's buffer to be empty.
    fn empties(&self, action: &Act) -> bool {
        let empties = matches!(
            action,
            Action::Fence(Fence::Full)
                | Action::AtomicBegin(Section::Drained)
                | Action::Lock
                | Action::Unlock
        );
        empties && self.task.model != MemoryModel::Sc
    }

    /// The step needs nobody else to hold the lock.
    fn needs_lock(&self, action: &Act) -> bool {
        match action {
            Action::Load { .. } | Action::AtomicBegin(_) | Action::Lock => true,
            Action::Store { .. } => self.task.model == MemoryModel::Sc,
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicEnd
            | Action::Unlock => false,
        }
    }

    fn range(&self, t: ThreadId, action: &Act) -> Option<(i64, i64)> {
        let Action::Havoc { register, range } = action else {
            return None;
        };
        let ty = self.instance.thread(t).registers[register.index()].ty;
        Some(range.or(ty.bounds()).unwrap_or((0, i64::from(u32::MAX))))
    }

    /// The ways on that do not depend on others.
    fn ways(&self, t: ThreadId) -> Result<Vec<(StepId, Option<i64>)>, AuditError> {
        let thread = self.instance.thread(t);
        let mut ways = Vec::new();
        for s in thread.outgoing(self.machine.locations[t.index()]) {
            let action = &thread.step(*s).action;
            if matches!(action, Action::Assume(_)) && !self.machine.enabled(t, *s) {
                continue;
            }
            match self.range(t, action) {
                None => ways.push((*s, None)),
                Some((lo, hi)) if hi.abs_diff(lo) < 1 << 16 => {
                    ways.extend((lo..=hi).map(|v| (*s, Some(v))));
                }
                Some(_) => return Err(AuditError::TooMany),
            }
        }
        Ok(ways)
    }

    fn sees_cell(&self, cell: CellId) -> bool {
        self.seen.is_some_and(|q| {
            mentions(&q.target, &|fact| match fact {
                Fact::Cell(c) | Fact::Seen(_, c) => *c == cell,
                Fact::CellAt { base, length, .. } => (base.0..base.0 + length).contains(&cell.0),
                Fact::Register(..) | Fact::At(..) => false,
            })
        })
    }

    fn sees_step(&self, t: ThreadId, step: &Step) -> bool {
        let Some(question) = self.seen else {
            return false;
        };
        let set = step.action.written();
        let within = |at: &Vec<LocationId>, l: LocationId| at.contains(&l);
        mentions(&question.target, &|fact| match fact {
            Fact::Register(u, r) => *u == t && set == Some(*r),
            Fact::At(u, at) => *u == t && within(at, step.source) != within(at, step.target),
            Fact::Seen(u, _) => *u == t,
            Fact::Cell(_) | Fact::CellAt { .. } => false,
        })
    }

    /// Whether the step is the load of a loop of two steps: a load of one cell, and an assumption whose opposite
    /// leads out. Who goes round once is as before but for a register that the load overwrites; if the question sees
    /// nothing of it, rounds can be left out, and the load waits until it leads out.
    fn spin(&self, t: ThreadId, s: StepId) -> Option<(u32, StepId, StepId)> {
        let thread = self.instance.thread(t);
        let load = thread.step(s);
        let Action::Load {
            place: Address::Cell(cell),
            ..
        } = &load.action
        else {
            return None;
        };
        let alone = thread.outgoing(load.source).len() == 1 && !self.locks;
        let free = |l: LocationId| !thread.atomic[l.index()];
        if !alone || !free(load.source) || !free(load.target) || load.source == load.target {
            return None;
        }
        let ways = thread.outgoing(load.target);
        let closes = |s: &StepId| thread.step(*s).target == load.source;
        let mut back = ways.iter().filter(|s| closes(s));
        let mut out = ways.iter().filter(|s| !closes(s));
        let (back, out) = match (back.next(), back.next(), out.next(), out.next()) {
            (Some(back), None, Some(out), None) => (*back, *out),
            _ => return None,
        };
        let (Action::Assume(stay), Action::Assume(leave)) =
            (&thread.step(back).action, &thread.step(out).action)
        else {
            return None;
        };
        let opposite = stay.clone().negate() == *leave || leave.clone().negate() == *stay;
        let seen = self.sees_step(t, load) || self.sees_step(t, thread.step(back));
        (opposite && !seen).then_some((cell.0, back, out))
    }

    /// The one cell an atomic block may have to wait for. Several are refused: see the module's header.
    fn guard(&self, t: ThreadId, begin: StepId) -> Result<Option<u32>, AuditError> {
        let thread = self.instance.thread(t);
        let Action::AtomicBegin(section) = thread.step(begin).action else {
            return Ok(None);
        };
        let refused = |why: &str| Err(AuditError::Refused(why.into()));
        let (mut work, mut met) = (vec![thread.step(begin).target], Vec::new());
        let (mut loads, mut waits) = (Vec::new(), false);
        while let Some(at) = work.pop() {
            if met.contains(&at) {
                continue;
            }
            met.push(at);
            let out: Vec<&Step> = thread
                .outgoing(at)
                .iter()
                .map(|s| thread.step(*s))
                .collect();
            let conditions: Vec<&Expr<RegisterId>> = out
                .iter()
                .filter_map(|s| {
                    if let Action::Assume(e) = &s.action {
                        Some(e)
                    } else {
                        None
                    }
                })
                .collect();
            let exclude = conditions.iter().any(|a| {
                let not = (*a).clone().negate();
                conditions.iter().any(|b| **b == not)
            });
            waits |= conditions.len() == out.len() && !exclude;
            for step in out {
                match &step.action {
                    Action::AtomicEnd => continue,
                    Action::Load { place, .. } => loads.push(place),
                    Action::Lock | Action::Unlock | Action::AtomicBegin(_) => {
                        return refused("a lock or an atomic block inside an atomic block");
                    }
                    Action::Fence(Fence::Full) if section == Section::Buffered => {
                        return refused("a fence inside a buffered atomic block");
                    }
                    Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Store { .. }
                    | Action::Fence(_) => {}
                }
                work.push(step.target);
            }
        }
        if !waits {
            return Ok(None);
        }
        if self.locks {
            return refused("an atomic block that waits, beside locks");
        }
        loads.dedup();
        match loads[..] {
            [] => Ok(None),
            [Address::Cell(c)] => Ok(Some(c.0)),
            _ => refused("an atomic block that waits for several cells"),
        }
    }
}

fn mentions(e: &Expr<Fact>, is: &dyn Fn(&Fact) -> bool) -> bool {
    let mut found = false;
    for_each_fact(e, &mut |fact| found |= is(fact));
    found
}
