//! Running: one event, the chain of local steps after it, and all of a state's successors.
//!
//! An event that cannot happen leaves the state as it was. Nothing here allocates.

use super::Machine;
use super::code::{Code, Edge, Flaw, Op, Register, Target, cell};
use super::pack::Field;
use super::ranges::Slot;
use crate::event::Event;
use wattle_model::{CellId, StepId, ThreadId, Type};

/// Why a step did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// It is not enabled.
    Blocked,
    /// The buffer has no room.
    Full,
    /// The buffer has no room because the layout has too few slots.
    Short,
    /// A value does not fit its field.
    Narrow(Box<(Slot, i64)>),
    Flaw(Box<Flaw>),
}

impl From<Box<Flaw>> for Stuck {
    fn from(flaw: Box<Flaw>) -> Self {
        Stuck::Flaw(flaw)
    }
}

/// Why expanding a state was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// This step is a fault.
    Fault {
        thread: ThreadId,
        step: StepId,
        flaw: Flaw,
    },
    /// The layout must be widened.
    Narrow(Slot, i64),
    /// The layout must have more slots for the thread's buffer.
    Short(ThreadId),
}

/// What a search must know beyond its states.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// Threads that found their buffer full.
    pub full: Vec<bool>,
    /// The first of the steps whose arithmetic outgrew the machine.
    pub overflow: Option<(ThreadId, StepId)>,
    /// A step was a fault that nobody minds: its run ends there.
    pub fault: bool,
}

impl Notes {
    /// And what another one knows. The order does not matter.
    pub fn join(&mut self, other: &Notes) {
        for (full, other) in self.full.iter_mut().zip(&other.full) {
            *full |= other;
        }
        self.overflow = self.overflow.into_iter().chain(other.overflow).min();
        self.fault |= other.fault;
    }
}

/// Where successors go.
pub trait Sink {
    /// A new successor is begun.
    fn begin(&mut self) {}
    /// An event on the way to it.
    fn event(&mut self, _event: impl FnOnce() -> Event) {}
    /// This cell of memory was read or written; what is the thread's own is not told.
    #[inline]
    fn touch(&mut self, _cell: Field) {}
    /// The successor is complete.
    fn next(&mut self, state: &[u64]);
}

impl Machine<'_> {
    pub fn notes(&self) -> Notes {
        Notes {
            full: vec![false; self.threads.len()],
            overflow: None,
            fault: false,
        }
    }

    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// A state may be inside an atomic block.
    pub fn has_atomic_states(&self) -> bool {
        self.atomic_states
    }

    /// All threads have ended and all buffers are empty.
    pub fn is_final(&self, state: &[u64]) -> bool {
        self.threads
            .iter()
            .all(|t| t.nodes[t.location.index(state)].edges.is_empty() && t.buffer.is_empty(state))
    }

    /// Some thread stands before nothing but false assumptions, outside atomic blocks.
    pub fn is_discarded(&self, state: &[u64]) -> bool {
        let false_assumption = |e: &Edge| matches!(&e.op, Op::Assume(e) if matches!(e.eval(state, &self.cells), Ok(0)));
        self.inside_atomic(state).is_none()
            && self.threads.iter().any(|t| {
                let edges = &t.nodes[t.location.index(state)].edges;
                !edges.is_empty() && edges.iter().all(false_assumption)
            })
    }

    /// The thread inside an atomic block.
    #[inline]
    pub fn inside_atomic(&self, state: &[u64]) -> Option<usize> {
        if !self.atomic_states {
            return None;
        }
        self.threads
            .iter()
            .position(|t| t.nodes[t.location.index(state)].atomic)
    }

    /// All successors of a state; `scratch` is a state to work in.
    pub fn expand<S: Sink>(
        &self,
        state: &[u64],
        scratch: &mut [u64],
        notes: &mut Notes,
        sink: &mut S,
    ) -> Result<(), Found> {
        let alone = self.inside_atomic(state);
        for t in 0..self.threads.len() {
            if alone.is_none_or(|a| a == t) {
                self.expand_thread(state, t, scratch, notes, sink)?;
            }
        }
        Ok(())
    }

    /// The successors by events of one thread, if no other is inside an atomic block. They depend on
    /// nothing but what is the thread's own ([`Machine::own`]) and the cells that are touched.
    fn expand_thread<S: Sink>(
        &self,
        state: &[u64],
        t: usize,
        scratch: &mut [u64],
        notes: &mut Notes,
        sink: &mut S,
    ) -> Result<(), Found> {
        self.expand_steps(state, t, scratch, notes, sink)?;
        self.expand_drains(state, t, scratch, notes, sink)
    }

    /// The successors by steps of one thread.
    pub fn expand_steps<S: Sink>(
        &self,
        state: &[u64],
        t: usize,
        scratch: &mut [u64],
        notes: &mut Notes,
        sink: &mut S,
    ) -> Result<(), Found> {
        let thread = &self.threads[t];
        let node = &thread.nodes[thread.location.index(state)];
        for edge in &node.edges {
            let (mut choice, last) = edge.op.choices();
            while choice <= last {
                copy(scratch, state);
                sink.begin();
                match self.exec(scratch, t, edge, choice, sink) {
                    Ok(()) => {
                        sink.event(|| event(t, edge, choice));
                        self.finish(scratch, t, notes, sink)?;
                    }
                    Err(Stuck::Blocked) => {}
                    Err(stuck) => self.note(t, edge, stuck, notes, sink, choice)?,
                }
                choice += 1;
            }
        }
        Ok(())
    }

    /// The successors by drains of one thread's stores.
    pub fn expand_drains<S: Sink>(
        &self,
        state: &[u64],
        t: usize,
        scratch: &mut [u64],
        notes: &mut Notes,
        sink: &mut S,
    ) -> Result<(), Found> {
        let thread = &self.threads[t];
        // Inside a drained atomic block the buffer is empty.
        if self.may_access(state, t) {
            let buffer = &thread.buffer;
            if buffer.blur.is_some() {
                return self.expand_blurred(state, t, scratch, notes, sink);
            }
            for i in 0..buffer.len(state) {
                if !buffer.may_drain(state, i) {
                    if !buffer.sorted {
                        break;
                    }
                    continue;
                }
                copy(scratch, state);
                sink.begin();
                self.drain(scratch, t, i, sink);
                self.finish(scratch, t, notes, sink)?;
            }
        }
        Ok(())
    }

    /// The drains of a buffer that forgets: with and without the entry.
    #[inline(never)]
    fn expand_blurred<S: Sink>(
        &self,
        state: &[u64],
        t: usize,
        scratch: &mut [u64],
        notes: &mut Notes,
        sink: &mut S,
    ) -> Result<(), Found> {
        let buffer = &self.threads[t].buffer;
        for i in 0..buffer.len(state) {
            let leaves = buffer.leaves(state, i);
            if leaves.removed {
                copy(scratch, state);
                sink.begin();
                self.drain(scratch, t, i, sink);
                self.finish(scratch, t, notes, sink)?;
            }
            if leaves.kept {
                copy(scratch, state);
                sink.begin();
                let entry = (buffer.which[i].raw(state), buffer.value[i].raw(state));
                self.arrive(scratch, t, entry, true, sink);
                self.finish(scratch, t, notes, sink)?;
            }
        }
        Ok(())
    }

    fn finish<S: Sink>(
        &self,
        state: &mut [u64],
        t: usize,
        notes: &mut Notes,
        sink: &mut S,
    ) -> Result<(), Found> {
        if self.chain(state, t, notes, sink)? {
            sink.next(state);
        }
        Ok(())
    }

    /// Runs the thread's local steps until there are none, and zeroes its dead registers. `false` if
    /// the thread is stuck inside an atomic block: such a run has no next state anyone sees.
    pub(super) fn chain<S: Sink>(
        &self,
        state: &mut [u64],
        t: usize,
        notes: &mut Notes,
        sink: &mut S,
    ) -> Result<bool, Found> {
        let thread = &self.threads[t];
        loop {
            if thread.settles {
                self.settle(state, t, sink);
            }
            let node = &thread.nodes[thread.location.index(state)];
            if node.choice {
                if let Some(edge) = self.only_guard(state, &node.edges)
                    && self.chain_step(state, t, std::slice::from_ref(edge), notes, sink)?
                {
                    continue;
                }
            } else if node.local || node.perhaps && self.is_free(state, t, &node.edges) {
                if self.chain_step(state, t, &node.edges, notes, sink)? {
                    continue;
                }
                if node.atomic {
                    return Ok(false);
                }
            }
            for (word, mask) in &node.keep {
                state[*word as usize] &= mask;
            }
            return Ok(true);
        }
    }

    /// The computed address is that of a cell where nobody minds.
    fn is_free(&self, state: &[u64], t: usize, edges: &[Edge]) -> bool {
        let thread = &self.threads[t];
        edges.iter().all(|edge| match &edge.op {
            Op::Load { place, .. } => self
                .address(state, place)
                .is_ok_and(|c| thread.free_loads[c as usize]),
            Op::Write { place, .. } => self
                .address(state, place)
                .is_ok_and(|c| thread.free_stores[c as usize]),
            Op::Nothing
            | Op::Assign(..)
            | Op::Havoc(..)
            | Op::Assume(_)
            | Op::Assert(_)
            | Op::Put(..)
            | Op::Fence
            | Op::StoreFence
            | Op::AtomicBegin { .. }
            | Op::AtomicEnd
            | Op::Lock
            | Op::Unlock => false,
        })
    }

    /// The one step whose guard is true, if all have guards and there is one.
    fn only_guard<'e>(&self, state: &[u64], edges: &'e [Edge]) -> Option<&'e Edge> {
        let mut only = None;
        for edge in edges {
            let Op::Assume(guard) = &edge.op else {
                return None;
            };
            if guard.eval(state, &self.cells).ok()? != 0 && only.replace(edge).is_some() {
                return None;
            }
        }
        only
    }

    /// Takes the one enabled step, if there is one.
    #[inline]
    fn chain_step<S: Sink>(
        &self,
        state: &mut [u64],
        t: usize,
        edges: &[Edge],
        notes: &mut Notes,
        sink: &mut S,
    ) -> Result<bool, Found> {
        for edge in edges {
            let choice = edge.op.choices().0;
            match self.exec(state, t, edge, choice, sink) {
                Ok(()) => {
                    sink.event(|| event(t, edge, choice));
                    return Ok(true);
                }
                Err(Stuck::Blocked) => {}
                Err(stuck) => self.note(t, edge, stuck, notes, sink, choice)?,
            }
        }
        Ok(false)
    }

    #[cold]
    fn note<S: Sink>(
        &self,
        t: usize,
        edge: &Edge,
        stuck: Stuck,
        notes: &mut Notes,
        sink: &mut S,
        choice: i64,
    ) -> Result<(), Found> {
        match stuck {
            Stuck::Blocked => Ok(()),
            Stuck::Full => {
                notes.full[t] = true;
                Ok(())
            }
            Stuck::Short => Err(Found::Short(ThreadId::new(t))),
            Stuck::Narrow(narrow) => Err(Found::Narrow(narrow.0, narrow.1)),
            Stuck::Flaw(flaw) if flaw.is_machine_limit() => {
                let here = (ThreadId::new(t), edge.step);
                notes.overflow = Some(notes.overflow.map_or(here, |o| o.min(here)));
                Ok(())
            }
            Stuck::Flaw(_) if !self.faults => {
                notes.fault = true;
                Ok(())
            }
            Stuck::Flaw(flaw) => {
                sink.event(|| event(t, edge, choice));
                Err(Found::Fault {
                    thread: ThreadId::new(t),
                    step: edge.step,
                    flaw: *flaw,
                })
            }
        }
    }

    /// Drains what is nobody else's business.
    fn settle<S: Sink>(&self, state: &mut [u64], t: usize, sink: &mut S) {
        let buffer = &self.threads[t].buffer;
        let mut i = 0;
        while i < buffer.len(state) {
            let which = buffer.which[i].index(state);
            if buffer.private[which] && buffer.may_drain(state, i) {
                self.drain(state, t, i, sink);
                i = 0;
            } else if buffer.sorted {
                i += 1;
            } else {
                break;
            }
        }
    }

    #[inline]
    fn drain<S: Sink>(&self, state: &mut [u64], t: usize, i: usize, sink: &mut S) {
        let entry = self.threads[t].buffer.take(state, i);
        self.arrive(state, t, entry, false, sink);
    }

    /// An entry reaches memory.
    #[inline]
    fn arrive<S: Sink>(
        &self,
        state: &mut [u64],
        t: usize,
        (which, raw): (u64, u64),
        keep: bool,
        sink: &mut S,
    ) {
        let cell = self.threads[t].buffer.cells[which as usize];
        let field = self.cells[cell as usize];
        sink.touch(field);
        field.set_raw(state, raw);
        sink.event(|| Event::Drain {
            thread: ThreadId::new(t),
            cell: CellId(cell),
            value: field.decode(raw),
            keep,
        });
    }

    /// Takes a step, or leaves the state as it was.
    #[inline]
    fn exec<S: Sink>(
        &self,
        state: &mut [u64],
        t: usize,
        edge: &Edge,
        choice: i64,
        sink: &mut S,
    ) -> Result<(), Stuck> {
        let thread = &self.threads[t];
        match &edge.op {
            Op::Nothing | Op::AtomicEnd => {}
            Op::Assign(r, value) => {
                let v = value.eval(state, &self.cells)?;
                assign(state, t, r, v)?;
            }
            Op::Havoc(r, ..) => assign(state, t, r, choice)?,
            Op::Assume(e) => {
                if e.eval(state, &self.cells)? == 0 {
                    return Err(Stuck::Blocked);
                }
            }
            Op::Assert(e) => {
                if e.eval(state, &self.cells)? == 0 {
                    return Err(Stuck::Flaw(Box::new(Flaw::Assertion)));
                }
            }
            Op::Load {
                register: r,
                place,
                guarded,
            } => {
                if *guarded && !self.may_access(state, t) {
                    return Err(Stuck::Blocked);
                }
                let c = self.address(state, place)?;
                let field = self.cells[c as usize];
                let v = match thread.buffer.newest(state, c) {
                    Some(raw) => field.decode(raw),
                    None => {
                        sink.touch(field);
                        field.get(state)
                    }
                };
                assign(state, t, r, v)?;
            }
            Op::Put(place, value) => {
                let (c, raw) = self.stored(state, place, value)?;
                let which = thread.buffer.position(c).ok_or(Stuck::Full)?;
                thread.buffer.put(state, which, raw)?;
            }
            Op::Write {
                place,
                value,
                guarded,
            } => {
                if *guarded && !self.may_access(state, t) {
                    return Err(Stuck::Blocked);
                }
                let (c, raw) = self.stored(state, place, value)?;
                let field = self.cells[c as usize];
                sink.touch(field);
                field.set_raw(state, raw);
            }
            Op::Fence => require(thread.buffer.is_empty(state))?,
            Op::StoreFence => thread.buffer.store_fence(state),
            Op::AtomicBegin { drained } => {
                let ready = !drained || thread.buffer.is_empty(state);
                require(ready && self.may_access(state, t))?;
            }
            Op::Lock => {
                require(thread.buffer.is_empty(state) && self.holder.raw(state) == 0)?;
                self.holder.set_raw(state, t as u64 + 1);
            }
            Op::Unlock => {
                let mine = self.holder.index(state) == t + 1;
                require(thread.buffer.is_empty(state) && mine)?;
                self.holder.set_raw(state, 0);
            }
        }
        thread.location.set_raw(state, u64::from(edge.target));
        Ok(())
    }

    #[inline]
    fn may_access(&self, state: &[u64], t: usize) -> bool {
        let holder = self.holder.index(state);
        holder == 0 || holder == t + 1
    }

    #[inline]
    pub(super) fn address(&self, state: &[u64], place: &Target) -> Result<u32, Box<Flaw>> {
        match place {
            Target::Cell(c) => Ok(*c),
            Target::Computed {
                base,
                length,
                index,
            } => cell(*base, *length, index.eval(state, &self.cells)?),
        }
    }

    /// The cell and the bits a store puts there.
    #[inline]
    fn stored(&self, state: &[u64], place: &Target, value: &Code) -> Result<(u32, u64), Stuck> {
        let c = self.address(state, place)?;
        let v = value.eval(state, &self.cells)?;
        let (lo, hi) = self.plain[c as usize];
        let v = if lo <= v && v <= hi {
            v
        } else {
            admit(self.instance.cells[c as usize].ty, v)?
        };
        match self.cells[c as usize].encode(v) {
            Some(raw) => Ok((c, raw)),
            None => Err(Stuck::Narrow(Box::new((Slot::Cell(c), v)))),
        }
    }
}

fn event(t: usize, edge: &Edge, choice: i64) -> Event {
    Event::Step {
        thread: ThreadId::new(t),
        step: edge.step,
        value: matches!(edge.op, Op::Havoc(..)).then_some(choice),
    }
}

/// States are a few words: a call to `memcpy` would cost more than the copy.
#[inline]
fn copy(to: &mut [u64], from: &[u64]) {
    match (to, from) {
        ([a], [b]) => *a = *b,
        ([a, c], [b, d]) => (*a, *c) = (*b, *d),
        ([a, c, e], [b, d, f]) => (*a, *c, *e) = (*b, *d, *f),
        (to, from) => to.copy_from_slice(from),
    }
}

#[inline]
fn require(condition: bool) -> Result<(), Stuck> {
    if condition {
        Ok(())
    } else {
        Err(Stuck::Blocked)
    }
}

#[cold]
fn admit(ty: Type, value: i64) -> Result<i64, Box<Flaw>> {
    match ty.admit(value) {
        Some(v) => Ok(v),
        None => {
            let (lo, hi) = ty.bounds().unwrap_or((i64::MIN, i64::MAX));
            Err(Box::new(Flaw::Value { value, lo, hi }))
        }
    }
}

#[inline]
fn assign(state: &mut [u64], t: usize, r: &Register, value: i64) -> Result<(), Stuck> {
    let v = if r.plain.0 <= value && value <= r.plain.1 {
        value
    } else {
        admit(r.ty, value)?
    };
    match r.field.encode(v) {
        Some(raw) => {
            r.field.set_raw(state, raw);
            Ok(())
        }
        None => {
            let (thread, register) = (t as u32, r.number);
            let slot = Slot::Register { thread, register };
            Err(Stuck::Narrow(Box::new((slot, v))))
        }
    }
}
