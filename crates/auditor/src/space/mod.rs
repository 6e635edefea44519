//! Reachable states, gone through by the rules of the reference machine.
//!
//! A *space* is a set of states, packed into rows ([`rows`]): for each thread the number of its part
//! (location, registers, buffer), who holds the lock, and for each cell the number of its value. What
//! a thread can do is asked of the reference machine once for each part ([`moves`]). The set is
//! explored from the initial states, or it is given (by a certificate) and nothing may lead out of it.
//! Either way it proves what is asked if it has the initial states, if no event leads out, and if no
//! state in it is bad: the target is false wherever it is looked at (outside atomic blocks; in final
//! states only, if the question says so), no enabled step is a fault and, if asked, no state is a
//! deadlock.
//!
//! Not every reachable state need be in the set ([`local`], [`enough`], [`alike`]). Four things are left out.
//!
//! **Dead registers** are zero: states that differ in a register which no path reads before writing
//! it, and which the question does not look at, have the same events, leading to states that again
//! differ in dead registers only.
//!
//! **Who is who.** In a set that is explored, of states that differ in who is who one is enough: see
//! [`alike`].
//!
//! **Events that others make up for.** In a set that is explored, not given, only so many events of a
//! state are taken as are enough: see [`enough`].
//!
//! **Events taken at once.** A location is local, or a pending store private, only if (1) at most one
//! of its steps is enabled, with one outcome (always, or else it is taken at once only where that is so); (2) once enabled it stays so, and commutes with every
//! event of others and with drains of its own thread; (3) no question can tell before from after, or
//! only final states are looked at; (4) no cycle of a thread consists of local locations. After each
//! event of a thread its local steps and private drains run at once, and only what is then reached
//! has to be in the set.
//!
//! *Lemma.* If a state is bad, or an enabled step a fault, in a run from state s, and a is an event of
//! (1)–(3) enabled in s, leading to s', then a run from s' of no more events is bad too.
//!
//! ```text
//!   s ──e1──► · ──…──► · ──a──► · ──…──► bad        s ──e1──► … ──en──► bad
//!   │         │        │     ∥                 or   │                    │
//!   a         a        a     ∥                      a                    a
//!   ▼         ▼        ▼     ∥                      ▼                    ▼
//!   s' ─e1──► · ──…──► · ════╝                      s' ─e1──► … ──en──► bad
//! ```
//!
//! *Proof.* If a is in the run, no step of its thread comes before it (for a drain: none of the same
//! cell), so by (2) it can come first, and the rest is a run from s' that is shorter by one. If it is
//! not, by (2) all of the run is possible from s' as well: a fault at its end is one there too, and by
//! (3) the question cannot tell its last state from the one with a done; a final state is never
//! reached without a. ∎ By (4) only finitely many events are taken at once in a row, so by induction
//! over the length of the run, then over what is yet to be taken at once, every bad state or fault
//! shows in the set. Inside an atomic block nobody else has events and nobody looks, so its steps are
//! taken at once if (1) and (4) hold; a run that is stuck there has no end that anyone sees. In a
//! buffered block the thread's own drains may as well come after it, for its loads find the same
//! values; but a fence there waits for them, and is not taken at once.
//!
//! Buffers that forget ([`Content`]) are explored in the same way. There the lemma is applied to the
//! exact machine, whose runs of this kind are followed step by step by the one that forgets; only
//! private drains are not taken at once, because a buffer would remember others if these left early.

mod alike;
pub mod attack;
mod enough;
pub mod local;
mod moves;
mod rows;

use super::{AuditError, Audited};
use alike::{Alike, Shape};
use enough::{Enough, Events};
use local::{Reduction, for_each_fact};
use moves::{Effect, Lock, Move, Moves, Through};
use rows::{Narrow, Rows};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use wattle_evidence::certificate::{ClosedStates, Coded};
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::deadlock;
use wattle_evidence::task::Task;
use wattle_memory::content::Content;
use wattle_memory::reference::{self, State, evaluate};
use wattle_memory::{Bounds, Exact, Fault, Layout};
use wattle_model::instance::Fact;
use wattle_model::{CellId, Instance, LocationId, Numbers, RegisterId, ThreadId};

/// States between two polls.
const POLL: usize = 1 << 12;

/// Explores every state; gives their number. More than `most` are not looked at.
pub fn explore<L: Layout, C: Content<Value = i64>>(
    task: &Task<'_>,
    bounds: &[Bounds<C::Bound>],
    exact: bool,
    most: u64,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let alone = moves::alone(task.instance)?;
    let reduction = Reduction::most(task, exact);
    let mut space = Space::<L, C>::new(task, &alone, bounds, reduction, control)?;
    space.most = Some(most);
    if exact {
        space.enough = Enough::new(task);
        space.alike = Alike::new(task);
    }
    space.begin()?;
    space.run()
}

/// Checks a given set of states.
pub fn closed<L: Coded>(
    task: &Task<'_>,
    set: &ClosedStates,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let alone = moves::alone(task.instance)?;
    let reduction = Reduction::claimed(task, &set.shortened)?;
    let bounds = exact_bounds(task.instance);
    let mut space = Space::<L, Exact>::new(task, &alone, &bounds, reduction, control)?;
    set.for_each_row(|row| {
        space.poll(0)?;
        let state = L::decode(task.instance, row)?;
        space.admit(state)
    })?;
    space.begin()?;
    space.run()?;
    Ok(Audited { checked: set.len() })
}

/// Every state that has to be in a certificate, written down.
pub fn list<L: Coded>(
    task: &Task<'_>,
    most: u64,
    control: &Control<'_>,
) -> Result<ClosedStates, AuditError> {
    let alone = moves::alone(task.instance)?;
    let bounds = exact_bounds(task.instance);
    let reduction = Reduction::most(task, true);
    let mut space = Space::<L, Exact>::new(task, &alone, &bounds, reduction, control)?;
    space.most = Some(most);
    space.begin()?;
    space.run()?;
    let (mut numbers, mut rows) = (Vec::new(), Vec::new());
    for i in 0..space.rows.len() {
        space.poll(8 * numbers.len() as u64)?;
        let begin = numbers.len();
        L::encode(&space.state(space.rows.row(i)), &mut numbers);
        rows.push(begin..numbers.len());
    }
    rows.sort_unstable_by(|a, b| numbers[a.clone()].cmp(&numbers[b.clone()]));
    let mut set = ClosedStates::new(L::MODEL);
    set.shortened = space.moves.reduction().claims();
    for row in rows {
        set.push(&numbers[row]);
    }
    Ok(set.finish())
}

pub fn exact_bounds(instance: &Instance) -> Vec<Bounds<()>> {
    vec![Bounds::uniform((), instance.cells.len()); instance.threads.len()]
}

type Buffer<L, C> = <L as Layout>::Buffer<C>;

struct Space<'a, L: Layout, C: Content<Value = i64>> {
    task: &'a Task<'a>,
    control: &'a Control<'a>,
    bounds: &'a [Bounds<C::Bound>],
    moves: Moves<'a, L, C>,
    /// A column for each thread, one for the lock, one for each cell.
    rows: Rows,
    /// Explored so far as there are no more states than this; none may be added if not given.
    most: Option<u64>,
    looked: Looked,
    /// One row to work in.
    next: Vec<u64>,
    batch: Batch,
    /// A run ended with a fault that the question does not mind: it is not stuck.
    ended: bool,
    work: usize,
    /// Tells which events of a state are enough.
    enough: Option<Enough>,
    /// Tells which threads can change places.
    alike: Option<Alike>,
    /// Successors of one state, of which only some may be needed: rows, and thread and event of each.
    made: Vec<u64>,
    by: Vec<(usize, u32)>,
    events: Vec<Events>,
    /// States that need all their events.
    owed: Vec<usize>,
}

/// Successors on their way into the set: rows, and of each the state, thread and event before it.
#[derive(Default)]
struct Batch {
    rows: Vec<u64>,
    from: Vec<(usize, usize, u32)>,
    found: Vec<(usize, bool)>,
    /// States of which not all successors are here, and which are.
    chosen: Vec<(usize, std::ops::Range<usize>)>,
}

/// Successors that go into the set together.
const TOGETHER: usize = 128;

/// What the question sees of a thread: registers, and whether it is at some places.
type Seen = (Vec<i64>, Vec<bool>);

/// What the question has been asked of.
#[derive(Default)]
struct Looked {
    threads: Vec<(usize, Vec<RegisterId>, Vec<Vec<LocationId>>)>,
    cells: Vec<usize>,
    /// Per thread, for each part: a number for all that look the same.
    classes: Vec<Vec<Option<u32>>>,
    views: Vec<FxHashMap<Seen, u32>>,
    good: FxHashSet<Box<[u32]>>,
    key: Vec<u32>,
}

/// Why a state could not be dealt with.
enum Stuck {
    Narrow(Narrow),
    No(AuditError),
}

impl From<Narrow> for Stuck {
    fn from(narrow: Narrow) -> Self {
        Stuck::Narrow(narrow)
    }
}

impl From<AuditError> for Stuck {
    fn from(error: AuditError) -> Self {
        Stuck::No(error)
    }
}

impl<'a, L: Layout, C: Content<Value = i64>> Space<'a, L, C> {
    fn new(
        task: &'a Task<'a>,
        alone: &'a [Instance],
        bounds: &'a [Bounds<C::Bound>],
        reduction: Reduction,
        control: &'a Control<'a>,
    ) -> Result<Self, AuditError> {
        let columns = task.instance.threads.len() + 1 + task.instance.cells.len();
        Ok(Space {
            task,
            control,
            bounds,
            moves: Moves::new(alone, bounds, reduction)?,
            rows: Rows::new(columns),
            most: None,
            looked: Looked::new(task),
            next: Vec::new(),
            batch: Batch::default(),
            ended: false,
            work: 0,
            enough: None,
            alike: None,
            made: Vec::new(),
            by: Vec::new(),
            events: Vec::new(),
            owed: Vec::new(),
        })
    }

    fn threads(&self) -> usize {
        self.task.instance.threads.len()
    }

    fn poll(&mut self, more: u64) -> Result<(), AuditError> {
        self.work += 1;
        if self.work.is_multiple_of(POLL) {
            let progress = Progress {
                states: self.rows.len() as u64,
                frontier: 0,
                memory: self.rows.bytes() + self.moves.bytes() + more,
                ..Progress::default()
            };
            self.control.poll("audit", progress)?;
        }
        Ok(())
    }

    /// Does something with rows until all numbers fit.
    fn fitting<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, Stuck>,
    ) -> Result<T, AuditError> {
        loop {
            match work(self) {
                Ok(value) => return Ok(value),
                Err(Stuck::No(error)) => return Err(error),
                Err(Stuck::Narrow(narrow)) => {
                    // What waits is as narrow as what is there.
                    self.flush()?;
                    self.rows.widen(narrow);
                }
            }
        }
    }

    /// The row of a state.
    fn pack(&mut self, state: &State<Buffer<L, C>>) -> Result<Vec<u64>, Stuck> {
        let n = self.threads();
        let mut row = vec![0; self.rows.words()];
        let own = state.locations.iter().zip(&state.registers);
        for (t, ((at, registers), buffer)) in own.zip(&state.buffers).enumerate() {
            let part = self.moves.number(t, *at, registers.clone(), buffer.clone());
            self.rows.set(&mut row, t, part)?;
        }
        let holder = state.holder.map_or(0, |t| t.0 + 1);
        self.rows.set(&mut row, n, holder)?;
        for (c, value) in state.memory.iter().enumerate() {
            let value = self.moves.values[c].number(*value);
            self.rows.set(&mut row, n + 1 + c, value)?;
        }
        Ok(row)
    }

    /// The state of a row.
    fn state(&self, row: &[u64]) -> State<Buffer<L, C>> {
        let n = self.threads();
        let parts = (0..n).map(|t| self.moves.part(t, self.rows.get(row, t)));
        let values = self.moves.values.iter().enumerate();
        State {
            locations: parts.clone().map(|p| p.at).collect(),
            registers: parts.clone().map(|p| p.registers.clone()).collect(),
            memory: values
                .map(|(c, v)| v.all[self.rows.get(row, n + 1 + c) as usize])
                .collect(),
            buffers: parts.map(|p| p.buffer.clone()).collect(),
            holder: (self.rows.get(row, n).checked_sub(1)).map(ThreadId),
        }
    }

    /// A state of a given set.
    fn admit(&mut self, state: State<Buffer<L, C>>) -> Result<(), AuditError> {
        let added = self.fitting(|space| {
            let row = space.pack(&state)?;
            Ok(space.rows.insert(&row))
        })?;
        if added.1 {
            let row = self.rows.row(added.0).to_vec();
            self.look(&row, added.0)?;
        }
        Ok(())
    }

    /// The initial states, with all that is taken at once.
    fn begin(&mut self) -> Result<(), AuditError> {
        let starts = reference::starts(self.task.instance);
        let starts = starts.map_err(|r| AuditError::Refused(r.to_string()))?;
        for start in &starts {
            self.poll(0)?;
            let state = State {
                locations: self.task.instance.threads.iter().map(|t| t.entry).collect(),
                registers: start.registers.clone(),
                memory: start.memory.clone(),
                buffers: self.bounds.iter().map(L::empty::<C>).collect(),
                holder: None,
            };
            self.fitting(|space| {
                let mut row = space.pack(&state)?;
                for t in 0..space.threads() {
                    if !space.chain(&mut row, t)? {
                        return Ok(());
                    }
                }
                space.sort(&mut row)?;
                match (space.rows.insert(&row), space.most) {
                    ((_, true), None) => Err(AuditError::MissesInitial.into()),
                    ((number, true), Some(_)) => Ok(space.seen(&row, number)?),
                    ((_, false), _) => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    /// Every state: no event leads out.
    fn run(&mut self) -> Result<Audited, AuditError> {
        let mut edges = self.task.deadlock.then(deadlock::Edges::default);
        let mut i = 0;
        while i < self.rows.len() {
            self.poll(0)?;
            let progress = self.fitting(|space| space.expand(i, false))?;
            if edges.is_some() || self.batch.from.len() >= TOGETHER || i + 1 == self.rows.len() {
                self.flush()?;
            }
            while let Some(owed) = self.owed.pop() {
                self.poll(0)?;
                self.fitting(|space| space.expand(owed, true))?;
                self.flush()?;
            }
            if let Some(edges) = &mut edges {
                let next: Vec<u64> = self.batch.found.iter().map(|f| f.0 as u64).collect();
                let row = self.rows.row(i).to_vec();
                let mut marks =
                    (0..self.threads()).map(|t| self.moves.marks(t, self.rows.get(&row, t)));
                let visible = marks.clone().all(|m| !m.inside_atomic);
                let discarded = visible && marks.clone().any(|m| m.is_discarded);
                let unfinished = visible && !marks.all(|m| m.is_final);
                edges.add(i as u64, &next, progress || discarded, unfinished);
            }
            i += 1;
        }
        if let Some(state) = edges.and_then(deadlock::Edges::first_deadlock) {
            return Err(AuditError::Deadlock { state });
        }
        Ok(Audited {
            checked: self.rows.len() as u64,
        })
    }

    /// Puts the batch into the set.
    fn flush(&mut self) -> Result<(), AuditError> {
        let Batch {
            rows,
            mut from,
            mut found,
            mut chosen,
        } = std::mem::take(&mut self.batch);
        self.rows.insert_all(&rows, &mut found);
        for (k, (number, new)) in found.iter().enumerate() {
            if !new {
                continue;
            }
            if self.most.is_none() {
                let (i, t, m) = from[k];
                let (state, event) = (i as u64, self.named(t, &self.moves.list[m as usize]));
                return Err(AuditError::NotClosed { state, event });
            }
            let words = self.rows.words();
            self.seen(&rows[k * words..(k + 1) * words], *number)?;
        }
        for (i, successors) in chosen.drain(..) {
            let later = |(number, _): &(usize, bool)| {
                *number > i && self.alone(self.rows.row(*number)).is_none()
            };
            if !found[successors].iter().any(later) {
                self.owed.push(i);
            }
        }
        let mut rows = rows;
        rows.clear();
        from.clear();
        self.batch = Batch {
            rows,
            from,
            found,
            chosen,
        };
        Ok(())
    }

    fn lock(&self, row: &[u64], t: usize) -> Lock {
        match self.rows.get(row, self.threads()) as usize {
            0 => Lock::Free,
            h if h == t + 1 => Lock::Mine,
            _ => Lock::Others,
        }
    }

    /// The thread inside an atomic block.
    fn alone(&self, row: &[u64]) -> Option<usize> {
        (0..self.threads()).find(|t| {
            let part = self.rows.get(row, *t);
            self.moves.marks(*t, part).inside_atomic
        })
    }

    /// The events of a state, all of them or as many as are enough; whether one is progress.
    fn expand(&mut self, i: usize, all: bool) -> Result<bool, Stuck> {
        let mut progress = false;
        self.ended = false;
        let n = self.threads();
        let alone = self.alone(self.rows.row(i));
        let chooses = !all && alone.is_none() && self.enough.is_some();
        self.made.clear();
        self.by.clear();
        self.events.clear();
        let mut next = std::mem::take(&mut self.next);
        for t in 0..n {
            self.events.push(Events::default());
            if alone.is_some_and(|a| a != t) {
                continue;
            }
            let row = self.rows.row(i);
            let (part, lock) = (self.rows.get(row, t), self.lock(row, t));
            if let Some(enough) = self.enough.as_mut().filter(|_| chooses) {
                let own = self.moves.part(t, part);
                enough.look::<L, C>(&self.task.instance.threads[t], t, part, own);
            }
            let menu = self.moves.menu(t, part, lock)?;
            for m in menu.first..menu.first + menu.count {
                let a_move = self.moves.list[m as usize];
                next.clear();
                next.extend_from_slice(self.rows.row(i));
                if !self.take(&mut next, t, &a_move, i)? {
                    continue;
                }
                progress |= a_move.progress;
                if !self.chain(&mut next, t)? {
                    continue;
                }
                if !chooses {
                    self.sort(&mut next)?;
                    self.batch.rows.extend_from_slice(&next);
                    self.batch.from.push((i, t, m));
                } else if next != self.rows.row(i) {
                    let seen = self.sees(i, &next, t);
                    self.sort(&mut next)?;
                    let events = &mut self.events[t];
                    let (count, any) = match a_move.step {
                        Some(_) => (&mut events.steps, &mut events.seen_steps),
                        None => (&mut events.drains, &mut events.seen_drains),
                    };
                    *count += 1;
                    *any |= seen;
                    self.made.extend_from_slice(&next);
                    self.by.push((t, m));
                }
            }
        }
        self.next = next;
        if let Some(enough) = self.enough.as_ref().filter(|_| chooses) {
            let set = enough.choose(&self.events);
            let first = self.batch.from.len();
            let words = self.rows.words();
            for ((t, m), row) in self.by.iter().zip(self.made.chunks_exact(words)) {
                let drain = self.moves.list[*m as usize].step.is_none();
                if set.is_none_or(|set| set.has(*t, drain)) {
                    self.batch.rows.extend_from_slice(row);
                    self.batch.from.push((i, *t, *m));
                }
            }
            if set.is_some() {
                self.batch.chosen.push((i, first..self.batch.from.len()));
            }
        }
        Ok(progress || self.ended)
    }

    /// Makes of a state the one of those that differ in who is who that is stored.
    fn sort(&mut self, row: &mut [u64]) -> Result<(), Stuck> {
        let Some(mut alike) = self.alike.take() else {
            return Ok(());
        };
        let sorted = (0..alike.classes.len()).try_for_each(|c| self.sort_class(row, &mut alike, c));
        self.alike = Some(alike);
        sorted
    }

    fn sort_class(&mut self, row: &mut [u64], alike: &mut Alike, c: usize) -> Result<(), Stuck> {
        let n = self.threads();
        let class = &alike.classes[c];
        let count = class.threads.len();
        // Of each thread: its shape, and what its own cells hold.
        let mut all: Vec<(u32, Vec<i64>, usize)> = Vec::with_capacity(count);
        for i in 0..count {
            let t = alike.classes[c].threads[i];
            let part = self.rows.get(row, t);
            let own = self.moves.part(t, part);
            let shape = alike.number(c, i, part, |cell| -> Shape {
                let entries = L::entries::<C>(&own.buffer).into_iter();
                let entries = entries.map(|(c, v)| (cell(c), v)).collect();
                (own.at, own.registers.clone(), entries)
            });
            let cells = alike.classes[c].own[i].iter();
            let value =
                |c: &usize| self.moves.values[*c].all[self.rows.get(row, n + 1 + c) as usize];
            all.push((shape, cells.map(value).collect(), i));
        }
        if all.is_sorted_by(|a, b| (a.0, &a.1) <= (b.0, &b.1)) {
            return Ok(());
        }
        all.sort();
        let holder = self.rows.get(row, n);
        for (i, (shape, values, was)) in all.into_iter().enumerate() {
            let t = alike.classes[c].threads[i];
            let part = match alike.part(c, i, shape) {
                Some(part) => part,
                None => {
                    let (at, registers, entries) = alike.shape(c, shape).clone();
                    let entries = entries.into_iter();
                    let entries = entries
                        .map(|(cell, v)| (alike.cell(c, i, cell), v))
                        .collect();
                    let buffer = self.buffer(t, entries)?;
                    let part = self.moves.number(t, at, registers, buffer);
                    alike.is_part(c, i, shape, part);
                    part
                }
            };
            self.rows.set(row, t, part)?;
            for (k, value) in values.into_iter().enumerate() {
                let cell = alike.classes[c].own[i][k];
                let value = self.moves.values[cell].number(value);
                self.rows.set(row, n + 1 + cell, value)?;
            }
            if holder as usize == alike.classes[c].threads[was] + 1 {
                self.rows.set(row, n, t as u32 + 1)?;
            }
        }
        Ok(())
    }

    /// The buffer with these entries, which were put in this order.
    fn buffer(&self, t: usize, entries: Vec<(CellId, i64)>) -> Result<Buffer<L, C>, Stuck> {
        let mut buffer = L::empty::<C>(&self.bounds[t]);
        for entry in entries {
            let put = L::put::<C, _>(&mut Numbers, &mut buffer, &self.bounds[t], entry);
            if !matches!(put, Ok(None)) {
                return Err(AuditError::Other("a buffer cannot be filled".into()).into());
            }
        }
        Ok(buffer)
    }

    /// Whether the question, where it looks at states on the way, can tell a state from the one after an
    /// event of the thread.
    fn sees(&mut self, i: usize, after: &[u64], t: usize) -> bool {
        if self.task.question().is_none_or(|q| q.only_final) {
            return false;
        }
        let n = self.threads();
        let row = self.rows.row(i);
        let differs = |c: &usize| self.rows.get(row, n + 1 + c) != self.rows.get(after, n + 1 + c);
        if self.looked.cells.iter().any(differs) {
            return true;
        }
        let (before, after) = (self.rows.get(row, t), self.rows.get(after, t));
        let mine = self.looked.threads.iter().position(|(u, ..)| *u == t);
        mine.is_some_and(|o| self.class(o, before) != self.class(o, after))
    }

    /// Takes an event, if it is enabled.
    #[inline]
    fn take(
        &mut self,
        row: &mut [u64],
        t: usize,
        a_move: &Move,
        state: usize,
    ) -> Result<bool, Stuck> {
        let n = self.threads();
        match a_move.effect {
            Effect::Own { part, lock } => {
                self.rows.set(row, t, part)?;
                match lock {
                    Lock::Free => self.rows.set(row, n, 0)?,
                    Lock::Mine => self.rows.set(row, n, t as u32 + 1)?,
                    Lock::Others => {}
                }
            }
            Effect::Drain { cell, value, part } => {
                self.rows.set(row, t, part)?;
                self.rows.set(row, n + 1 + cell as usize, value)?;
            }
            Effect::Through { cell, table } => {
                let column = n + 1 + cell as usize;
                let value = self.rows.get(row, column);
                match self.moves.through(table, value)? {
                    Through::Disabled | Through::Unknown => return Ok(false),
                    Through::Next { part, value } => {
                        self.rows.set(row, t, part)?;
                        self.rows.set(row, column, value)?;
                    }
                    Through::Fault(fault) => return self.fault(fault, state),
                }
            }
            Effect::Fault(fault) => return self.fault(fault, state),
        }
        Ok(true)
    }

    /// A step that is a fault: not taken if the question does not mind.
    fn fault(&mut self, number: u32, state: usize) -> Result<bool, Stuck> {
        let (thread, step, kind) = self.moves.faults[number as usize].clone();
        let fault = Fault { thread, step, kind };
        if self.task.ends_at(&fault) {
            self.ended = true;
            return Ok(false);
        }
        let state = state as u64;
        Err(AuditError::Fault { state, fault }.into())
    }

    /// All that is taken at once. `false` if the thread is stuck inside an atomic block.
    #[inline]
    fn chain(&mut self, row: &mut [u64], t: usize) -> Result<bool, Stuck> {
        loop {
            let (part, lock) = (self.rows.get(row, t), self.lock(row, t));
            let menu = self.moves.menu(t, part, lock)?;
            let mut taken = false;
            for m in menu.first..menu.first + menu.chained {
                let a_move = self.moves.list[m as usize];
                if self.take(row, t, &a_move, self.rows.len())? {
                    taken = true;
                    break;
                }
            }
            if !taken {
                let local = menu.chained > 0;
                return Ok(!(local && self.moves.marks(t, part).inside_atomic));
            }
        }
    }

    /// A new state of a set that is explored.
    #[inline]
    fn seen(&mut self, row: &[u64], number: usize) -> Result<(), AuditError> {
        match self.most {
            Some(most) if number as u64 >= most || self.rows.is_full() => Err(AuditError::TooMany),
            _ => self.look(row, number),
        }
    }

    /// The question is asked of a new state.
    #[inline]
    fn look(&mut self, row: &[u64], me: usize) -> Result<(), AuditError> {
        let Some(question) = self.task.question() else {
            return Ok(());
        };
        for t in 0..self.threads() {
            let marks = self.moves.marks(t, self.rows.get(row, t));
            if marks.inside_atomic || question.only_final && !marks.is_final {
                return Ok(());
            }
        }
        let mut key = std::mem::take(&mut self.looked.key);
        key.clear();
        for o in 0..self.looked.threads.len() {
            let part = self.rows.get(row, self.looked.threads[o].0);
            key.push(self.class(o, part));
        }
        for c in &self.looked.cells {
            key.push(self.rows.get(row, self.threads() + 1 + c));
        }
        if !self.looked.good.contains(key.as_slice()) {
            match evaluate(&self.state(row), &question.target) {
                Ok(0) => {}
                Ok(_) => return Err(AuditError::Bad { state: me as u64 }),
                Err(why) => {
                    let (state, why) = (me as u64, why.to_string());
                    return Err(AuditError::NoValue { state, why });
                }
            }
            self.looked.good.insert(key.clone().into());
        }
        self.looked.key = key;
        Ok(())
    }

    /// A number for all parts of a thread that the question cannot tell apart.
    #[inline]
    fn class(&mut self, o: usize, part: u32) -> u32 {
        let looked = &mut self.looked;
        let classes = &mut looked.classes[o];
        if let Some(Some(class)) = classes.get(part as usize) {
            return *class;
        }
        let (t, registers, places) = &looked.threads[o];
        let own = self.moves.part(*t, part);
        let values = registers.iter().map(|r| own.registers[r.index()]).collect();
        let at = places.iter().map(|p| p.contains(&own.at)).collect();
        let views = &mut looked.views[o];
        let fresh = views.len() as u32;
        let class = *views.entry((values, at)).or_insert(fresh);
        if classes.len() <= part as usize {
            classes.resize(part as usize + 1, None);
        }
        classes[part as usize] = Some(class);
        class
    }

    /// An event as a person would name it.
    fn named(&self, t: usize, a_move: &Move) -> String {
        let thread = &self.task.instance.threads[t];
        match (a_move.step, a_move.effect) {
            (None, Effect::Drain { cell, value, .. }) => {
                let value = self.moves.values[cell as usize].all[value as usize];
                let cell = &self.task.instance.cells[cell as usize].name;
                format!("the drain of {cell} = {value} of {}", thread.name)
            }
            (step, _) => {
                let line = step.map_or(0, |s| thread.step(s).span.line);
                format!("a step of {} (line {line})", thread.name)
            }
        }
    }
}

impl Looked {
    fn new(task: &Task<'_>) -> Self {
        let mut registers = BTreeSet::new();
        let mut places: BTreeSet<(ThreadId, Vec<LocationId>)> = BTreeSet::new();
        let mut cells: BTreeSet<usize> = BTreeSet::new();
        if let Some(q) = task.question() {
            for_each_fact(&q.target, &mut |fact| match fact {
                Fact::Cell(CellId(c)) => {
                    cells.insert(*c as usize);
                }
                Fact::CellAt { base, length, .. } => {
                    cells.extend(base.index()..base.index() + *length as usize);
                }
                Fact::Register(t, r) => {
                    registers.insert((*t, *r));
                }
                Fact::At(t, at) => {
                    places.insert((*t, at.clone()));
                }
            });
        }
        let seen: BTreeSet<ThreadId> = registers
            .iter()
            .map(|(t, _)| *t)
            .chain(places.iter().map(|(t, _)| *t))
            .collect();
        let of = |t: &ThreadId| {
            let registers = registers.iter().filter(|(u, _)| u == t).map(|(_, r)| *r);
            let places = places.iter().filter(|(u, _)| u == t);
            let places = places.map(|(_, at)| at.clone());
            (t.index(), registers.collect(), places.collect())
        };
        let threads: Vec<_> = seen.iter().map(of).collect();
        Looked {
            classes: vec![Vec::new(); threads.len()],
            views: vec![FxHashMap::default(); threads.len()],
            threads,
            cells: cells.into_iter().collect(),
            ..Looked::default()
        }
    }
}
