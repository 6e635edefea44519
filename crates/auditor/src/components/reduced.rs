//! What the nodes of a certificate may leave out.
//!
//! Two runs have the same *trace* if they have the same events and order in the same way all that depend on each other. The
//! demands ask nothing that tells them apart, as long as events that conditions can see are in order too.
//! So of each trace one fair run is enough.
//!
//! **Steps taken at once.** After a move, steps of its thread that are nobody else's business, and drains that are
//! ([`local`](crate::space::local), conditions 1 to 3 of the [space](crate::space)), may be followed to the next state that
//! has nodes. Each stays possible until it is taken and nothing else takes its place, so a fair run takes it some time; it
//! commutes with all before it, so it can as well be taken now. Each edge takes finitely many: no location comes twice.
//!
//! **Moves that are enough.** A state may name a closed set of processes ([`enough`](crate::space)), not one
//! of whose moves changes what a condition reads (C2), or has a step *back* (C3): one to a location with no greater number. By
//! the lemma there, what is possible for a member (C0: something is) stays possible until a member
//! moves. So in a fair run a member moves, the first such move is possible here and commutes with
//! all before it (C1): it can come first.
//!
//! **Nobody is put off for ever.** A way round through states leads every thread back to its location. A thread with steps on it
//! takes one of them back; without steps there would be drains alone, and these come to an end. So on every infinite way
//! there are always again states all of whose moves are followed, where the first event of what is left of
//! the run is taken.
//!
//! **Only the state matters.** What is named, and where a chain ends, is said of the state and not of a node: which way is
//! followed is settled before the automaton reads it. (It may have to guess what will be read. Sets that differ by its
//! state would let the guess decide what there is to read, and the right guess could be lost.)
//!
//! **What is asked.** The way has the run's events, so what conditions read changes in the same order, and the
//! automaton, whose formula has no next, has an accepting run on it too. Where a thread stays in the long run is a
//! matter of its own steps; what it passes on an edge counts for traps.
//!
//! **Fairness.** Numbers speak of who can move in states that have nodes. A mover that moves no more has from some time on the
//! same place and registers; what is pending before its turn has drained, or never does. Whether it can move is
//! then said by the lock and by the cells that atomic blocks look at before they wait. Where that is one cell, the events that
//! change it or the lock all depend on each other: they come in the same order in the run and on the way. No two are on one
//! edge (what is taken at once changes neither), so whatever value lasts between two of them is there in a state with nodes. So
//! the mover can move, or cannot, again and again in one if in the other. Where blocks wait for several
//! cells, no moves are left out; then the order of all changes is the run's.
//!
//! **Discarded runs and faults.** To come to a place where a thread may stand before false assumptions is seen
//! like a condition: no fault is lost behind it.
//!
//! Without fairness nothing may be left out: a thread may then stop anywhere. Nor where blocks keep stores buffered, whose drains
//! are parts of moves.

use crate::space::accessed::accessed;
use crate::space::enough::{Enough, Set as Processes, block};
use crate::space::local::{Local, OfRuns, Reduction, for_each_fact, of_runs};
use std::collections::BTreeSet;
use wattle_evidence::certificate::Coded;
use wattle_evidence::deadlock::may_be_discarded;
use wattle_evidence::live::big::{Big, Move};
use wattle_evidence::live::{Fairness, LiveTask, Set, Trap};
use wattle_memory::reference::{Outcome, State};
use wattle_memory::{Event, Exact, Fault, Layout};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact, Thread};
use wattle_model::{CellId, Fence, Instance, LocationId, RegisterId, Section, ThreadId};

type StateOf<L> = State<<L as Layout>::Buffer<Exact>>;
type MoveOf<L> = Move<<L as Layout>::Buffer<Exact>>;

/// Where a move and the steps taken at once after it lead.
#[derive(Default)]
pub struct Arrival {
    /// The state, if it has nodes.
    pub row: Option<u32>,
    /// Whose move it is, and whether it is the buffer's; nobody's where nothing can move.
    process: Option<(ThreadId, bool)>,
    pub way: Way,
    /// A condition may see the difference.
    seen: bool,
}

/// What happens on the way to the next state that has nodes.
#[derive(Default)]
pub struct Way {
    pub moved: Set,
    /// Where the thread is seen on the way and at the end.
    passed: Vec<LocationId>,
    /// Some step is back.
    back: bool,
}

impl Arrival {
    /// Nothing can move.
    pub fn nowhere(row: u32) -> Self {
        let row = Some(row);
        Arrival {
            row,
            ..Arrival::default()
        }
    }

    /// A run that was in the trap before is there all the way.
    pub fn stays(&self, trap: &Trap) -> bool {
        let mut passed = self.way.passed.iter();
        self.process.is_none_or(|(t, _)| t != trap.thread)
            || passed.all(|l| trap.at.binary_search(l).is_ok())
    }
}

/// What the text allows.
pub struct Reduced<'i> {
    instance: &'i Instance,
    fair: bool,
    reduction: Reduction,
    /// Per thread and location: one store by a computed address.
    stores: Vec<Vec<bool>>,
    /// Per thread and location: where a round of steps that are nobody else's business is cut.
    cuts: Vec<Vec<bool>>,
    /// None if all moves are needed.
    enough: Option<Enough>,
    seen_cells: Vec<bool>,
    seen_registers: Vec<(ThreadId, RegisterId)>,
    seen_places: Vec<(ThreadId, Vec<LocationId>)>,
}

impl<'i> Reduced<'i> {
    pub fn new(task: &LiveTask<'i>) -> Self {
        let instance = task.instance;
        let buffered = Action::AtomicBegin(Section::Buffered);
        let mut steps = instance.threads.iter().flat_map(|t| &t.steps);
        let fair = task.fairness != Fairness::None && steps.all(|s| s.action != buffered);
        let OfRuns {
            reduction,
            stores,
            cuts,
        } = of_runs(task);
        let several = waits_for_several(instance, &reduction.free);
        let enough = match fair && !several {
            true => Enough::new(&task.faults()),
            false => None,
        };
        let mut me = Reduced {
            instance,
            fair,
            reduction,
            stores,
            cuts,
            enough,
            seen_cells: vec![false; instance.cells.len()],
            seen_registers: Vec::new(),
            seen_places: Vec::new(),
        };
        for e in task.atoms() {
            for_each_fact(e, &mut |fact| match fact {
                Fact::Cell(c) | Fact::Seen(_, c) => me.seen_cells[c.index()] = true,
                Fact::CellAt { base, length, .. } => {
                    me.seen_cells[base.index()..base.index() + *length as usize].fill(true);
                }
                Fact::Register(t, r) => me.seen_registers.push((*t, *r)),
                Fact::At(t, at) => me.seen_places.push((*t, at.clone())),
            });
        }
        for t in instance.thread_ids() {
            let thread = instance.thread(t);
            let places = (0..thread.locations.len()).map(LocationId::new);
            let places = places.filter(|l| may_be_discarded(thread, *l));
            me.seen_places.extend(places.map(|l| (t, vec![l])));
        }
        me
    }

    /// From an initial state to one that has nodes. All threads go on, so a state on the way of one is not enough: each
    /// goes as far as it can without going round.
    pub fn begin<L: Coded>(
        &self,
        big: &Big<'_, L>,
        mut state: StateOf<L>,
        find: &dyn Fn(&StateOf<L>) -> Option<u32>,
    ) -> Result<Option<u32>, crate::AuditError> {
        let failed = |fault| crate::AuditError::Fault { state: 0, fault };
        for t in self.instance.thread_ids() {
            let mut way = Way {
                passed: vec![state.locations[t.index()]],
                ..Way::default()
            };
            loop {
                let found = find(&state);
                if found.is_some() {
                    return Ok(found);
                }
                let at = state.locations[t.index()];
                // A cut keeps steps, not stores.
                let drains = || matches!(self.at_once(big, &state, t), Some(Event::Drain { .. }));
                if self.cuts[t.index()][at.index()] && !drains() {
                    break;
                }
                let more = self.go_on(big, &mut state, t, &mut way);
                if !more.map_err(failed)? {
                    break;
                }
            }
        }
        Ok(find(&state))
    }

    /// From a move to the next state that has nodes.
    pub fn follow<L: Coded>(
        &self,
        big: &Big<'_, L>,
        before: &StateOf<L>,
        m: MoveOf<L>,
        find: &dyn Fn(&StateOf<L>) -> Option<u32>,
    ) -> Result<Arrival, Fault> {
        let process = process(&m.events);
        let mut state = m.target;
        let mut way = Way {
            moved: m.moved,
            back: m.events.iter().any(|e| self.is_back(e)),
            passed: Vec::new(),
        };
        let mut row = find(&state);
        if let Some((t, _)) = process {
            way.passed.push(state.locations[t.index()]);
            while row.is_none() && self.go_on(big, &mut state, t, &mut way)? {
                row = find(&state);
            }
        }
        Ok(Arrival {
            row,
            process,
            way,
            seen: self.is_seen::<L>(before, &state),
        })
    }

    /// Every round of a thread has such a step.
    fn is_back(&self, event: &Event) -> bool {
        match event {
            Event::Step { thread, step, .. } => {
                let step = self.instance.thread(*thread).step(*step);
                step.target <= step.source
            }
            Event::Drain { .. } => false,
        }
    }

    /// Takes what may be taken at once, unless there is nothing or it would be a round.
    fn go_on<L: Coded>(
        &self,
        big: &Big<'_, L>,
        state: &mut StateOf<L>,
        t: ThreadId,
        way: &mut Way,
    ) -> Result<bool, Fault> {
        let Some(event) = self.at_once(big, state, t) else {
            return Ok(false);
        };
        let next = match big.machine.apply(state, &event) {
            Outcome::Next(next) => next,
            Outcome::Fault(fault) => return Err(fault),
            Outcome::Full(_) => return Ok(false),
        };
        if let Event::Step { .. } = event {
            let at = next.locations[t.index()];
            if way.passed.contains(&at) {
                return Ok(false);
            }
            way.passed.push(at);
        }
        way.moved |= big.mover(&event);
        way.back |= self.is_back(&event);
        *state = next;
        Ok(true)
    }

    /// Drains come first, as long as there are any that are nobody else's business.
    fn at_once<L: Coded>(
        &self,
        big: &Big<'_, L>,
        state: &StateOf<L>,
        thread: ThreadId,
    ) -> Option<Event> {
        if !self.fair {
            return None;
        }
        let t = thread.index();
        let at = state.locations[t];
        let mut steps = Vec::new();
        for event in big.machine.events(state) {
            match event {
                Event::Step {
                    thread: u, step, ..
                } if u == thread => steps.push((event, step)),
                Event::Drain {
                    thread: u, cell, ..
                } if u == thread => {
                    if self.reduction.private[t].contains(&cell) {
                        return Some(event);
                    }
                }
                Event::Step { .. } | Event::Drain { .. } => {}
            }
        }
        if let [(event, step)] = steps.as_slice() {
            let text = self.instance.thread(thread);
            let cell = || accessed(text, *step, &state.registers[t]);
            let free = match self.reduction.local[t][at.index()] {
                Local::Step | Local::Choice => true,
                Local::Perhaps => cell().is_some_and(|c| self.reduction.free[t][c]),
                Local::No if self.stores[t][at.index()] => {
                    let private = &self.reduction.private[t];
                    cell().is_some_and(|c| private.contains(&CellId::new(c)))
                }
                Local::No => false,
            };
            return free.then_some(*event);
        }
        None
    }

    /// Something that conditions read is another.
    fn is_seen<L: Layout>(&self, before: &StateOf<L>, after: &StateOf<L>) -> bool {
        let mut cells = self.seen_cells.iter().enumerate();
        let cell = |(c, seen): (usize, &bool)| *seen && before.memory[c] != after.memory[c];
        let register = |(t, r): &(ThreadId, RegisterId)| {
            let of = |s: &StateOf<L>| s.registers[t.index()][r.index()];
            of(before) != of(after)
        };
        let place = |(t, at): &(ThreadId, Vec<LocationId>)| {
            let inside = |s: &StateOf<L>| at.contains(&s.locations[t.index()]);
            inside(before) != inside(after)
        };
        cells.any(cell)
            || self.seen_registers.iter().any(register)
            || self.seen_places.iter().any(place)
    }

    /// Looks at a state some of whose moves may be enough.
    pub fn look<L: Coded>(&mut self, state: &StateOf<L>) {
        if let Some(enough) = &mut self.enough {
            enough.look_at::<L>(self.instance, state);
        }
    }

    /// Whether the moves of the processes, which are given, are enough in the state looked at.
    pub fn is_enough(&self, part: Processes, mine: &[Arrival]) -> Result<(), &'static str> {
        let Some(enough) = &self.enough else {
            return Err("they may not be left out here");
        };
        if !enough.is_closed(part) {
            return Err("others may mind");
        }
        if mine.is_empty() {
            return Err("nobody moves");
        }
        if mine.iter().any(|a| a.way.back) {
            return Err("somebody may be put off for ever");
        }
        match mine.iter().any(|a| a.seen) {
            true => Err("a condition can see it"),
            false => Ok(()),
        }
    }
}

/// Whose move it is, and whether it is the buffer's.
pub fn process(events: &[Event]) -> Option<(ThreadId, bool)> {
    events.first().map(|e| match e {
        Event::Step { thread, .. } => (*thread, false),
        Event::Drain { thread, .. } => (*thread, true),
    })
}

/// A thread may stand where whether an atomic block can be gone through depends on several cells that others write.
fn waits_for_several(instance: &Instance, free: &[Vec<bool>]) -> bool {
    let mut threads = instance.threads.iter().zip(free);
    threads.any(|(thread, free)| {
        let mut locations = (0..thread.locations.len()).map(LocationId::new);
        locations.any(|at| {
            let out = thread.outgoing(at).iter().map(|s| thread.step(*s));
            let begins = out.filter(|s| matches!(s.action, Action::AtomicBegin(_)));
            let inside: BTreeSet<LocationId> =
                begins.flat_map(|s| block(thread, s.target)).collect();
            let waits = inside.iter().any(|l| may_wait(thread, *l));
            let steps = inside.iter().flat_map(|l| thread.outgoing(*l));
            let cells: BTreeSet<usize> = steps
                .filter_map(|s| thread.step(*s).action.loaded())
                .flat_map(Address::extent)
                .filter(|c| !free[*c])
                .collect();
            waits && cells.len() > 1
        })
    })
}

/// It is not certain that a step can be taken at the location of a block.
fn may_wait(thread: &Thread, l: LocationId) -> bool {
    let out = thread.outgoing(l);
    let actions = || out.iter().map(|s| &thread.step(*s).action);
    let waits = |a: &Action<RegisterId, Address>| {
        matches!(
            a,
            Action::Lock | Action::Unlock | Action::Fence(Fence::Full)
        )
    };
    let certain = actions().any(|a| match a {
        Action::Assume(e) => {
            let negated = Action::Assume(e.clone().negate());
            actions().any(|b| *b == negated)
        }
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assert { .. }
        | Action::Load { .. }
        | Action::Store { .. }
        | Action::Fence(_)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd => true,
        Action::Lock | Action::Unlock => false,
    });
    actions().any(waits) || !certain
}
