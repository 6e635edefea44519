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
//! event of others and with drains of its own thread; (3) what the question says of a state before, it says
//! after as well (being at a place can make its target true and nothing else, say), or only final states are looked at; (4) no cycle of a thread consists of local locations. After each
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
//! (3) the question says of the last state with a done what it says without; a final state is never
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

pub mod accessed;
mod alike;
pub mod attack;
mod deadlocks;
pub mod enough;
mod given;
mod listed;
pub mod local;
mod looked;
pub mod moves;
mod rows;
mod sorted;

pub use given::closed;
pub use listed::list;
pub use moves::exact_bounds;

use super::{AuditError, Audited};
use alike::Alike;
use enough::{Enough, Made};
use local::Reduction;
use looked::Looked;
use moves::{Effect, Lock, Move, Moves, Through};
use rows::{Rows, Stuck};
use wattle_evidence::certificate::Explored;
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::deadlock;
use wattle_evidence::task::Task;
use wattle_memory::content::Content;
use wattle_memory::reference::{self, State};
use wattle_memory::{Bounds, Fault, Layout};
use wattle_model::Instance;

/// Words of states made between two polls.
const POLL: usize = 1 << 14;

/// Explores every state; gives their number. Where buffers are exact a search has seen them; if it took more at once, there may
/// be more of them here, even without end.
pub fn explore<L: Layout, C: Content<Value = i64>>(
    task: &Task<'_>,
    bounds: &[Bounds<C::Bound>],
    exact: Option<&Explored>,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let alone = moves::alone(task.instance)?;
    let reduction = Reduction::most(task, exact.is_some());
    let mut space = Space::<L, C>::new(task, &alone, bounds, reduction, control)?;
    space.most = Some(exact.map_or(u64::MAX, |e| {
        (e.states.saturating_mul(64)).saturating_add(1 << 20)
    }));
    if let Some(explored) = exact.filter(|_| !task.sees_buffers()) {
        space.enough = Enough::new(task).filter(|_| !explored.takes_all);
        space.alike = Alike::new(task);
    }
    space.begin()?;
    space.run()
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
    looked: Looked<'a>,
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
    /// Successors of one state, of which only some may be needed: rows, and by whom.
    made: Vec<u64>,
    by: Vec<Made>,
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
            owed: Vec::new(),
        })
    }

    fn threads(&self) -> usize {
        self.task.instance.threads.len()
    }

    fn poll(&mut self, more: u64) -> Result<(), AuditError> {
        self.work += 1;
        if self.work >= POLL {
            self.work = 0;
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
                self.note(edges, i, progress);
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
        Lock::of(self.rows.get(row, self.threads()), t)
    }

    /// The thread inside an atomic block.
    fn alone(&self, row: &[u64]) -> Option<usize> {
        let inside = |t: &usize| self.moves.marks(*t, self.rows.get(row, *t)).inside_atomic;
        let threads = if self.moves.any_atomic {
            self.threads()
        } else {
            0
        };
        (0..threads).find(inside)
    }

    /// The events of a state, all of them or as many as are enough; whether one is progress.
    fn expand(&mut self, i: usize, all: bool) -> Result<bool, Stuck> {
        let mut progress = false;
        self.ended = false;
        let n = self.threads();
        let alone = self.alone(self.rows.row(i));
        let worth_it = self.enough.as_ref().is_some_and(Enough::is_worth_it);
        let chooses = !all && alone.is_none() && worth_it;
        self.made.clear();
        self.by.clear();
        let mut next = std::mem::take(&mut self.next);
        for t in 0..n {
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
            self.work += menu.count as usize * self.rows.words();
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
                    self.made.extend_from_slice(&next);
                    self.by.push(Made {
                        thread: t,
                        drain: a_move.step.is_none(),
                        event: m,
                        seen,
                    });
                }
            }
        }
        self.next = next;
        if let Some(enough) = self.enough.as_mut().filter(|_| chooses) {
            let set = enough.choose(&self.by);
            let set = set.filter(|set| enough.is_enough(*set, &self.by));
            let first = self.batch.from.len();
            let words = self.rows.words();
            for (by, row) in self.by.iter().zip(self.made.chunks_exact(words)) {
                if set.is_none_or(|set| set.has(by.thread, by.drain)) {
                    self.batch.rows.extend_from_slice(row);
                    self.batch.from.push((i, by.thread, by.event));
                }
            }
            if set.is_some() {
                self.batch.chosen.push((i, first..self.batch.from.len()));
            }
        }
        Ok(progress || self.ended)
    }

    /// Whether the question, where it looks at states on the way, can tell a state from the one after an
    /// event of the thread.
    fn sees(&mut self, i: usize, after: &[u64], t: usize) -> bool {
        if self.task.question().is_none_or(|q| q.only_final) {
            return false;
        }
        let (rows, n) = (&self.rows, self.threads());
        let row = rows.row(i);
        let differs = |c: usize| rows.get(row, n + 1 + c) != rows.get(after, n + 1 + c);
        let parts = [rows.get(row, t), rows.get(after, t)];
        self.looked.sees(&self.moves, differs, t, parts)
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
        let (rows, n) = (&self.rows, self.threads());
        let part = |t: usize| rows.get(row, t);
        let value = |c: usize| rows.get(row, n + 1 + c);
        self.looked.look(&self.moves, part, value, me as u64)
    }
}
