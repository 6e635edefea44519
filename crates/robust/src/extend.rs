//! The extension of a program by a sequence of steps (calin-2016, Section 3.1): a thread may follow
//! the sequence with its stores kept in registers, and make them in order at the end.
//!
//! The first store of the sequence is taken away: the path through fresh locations stands for it, and
//! has ways out for whoever delays it less. *Lemma* (6 in the thesis): old and new program have the
//! same runs under TSO, as far as locations and registers of the old one go, and memory where buffers are empty. A run of
//! the old program takes the first store to q̄1. It goes on along the path while the store is pending
//! and the thread follows the sequence. Where the store drains at location i of the sequence, the new
//! program leaves q̄i by the way that makes that store alone and waits for it (what is drained before
//! is older, and waited for too), and puts the others into the buffer. Where the thread takes another
//! step than the sequence's, the way out makes all stores (they go to the buffer, in order) and takes
//! that step. At the end of the sequence all stores are made. So in each case buffer, registers and
//! memory are those of the old run. The other direction: a way out is a run of the old program that
//! drains where the new one does.
//!
//! The thesis has the first way out before loads only; a store that drains between two other
//! steps can be taken to drain before the load, but then a thread is never seen between them.
//!
//! *Lemma* (7, 8): the extension of an acyclic program again and again ends. Order locations by the
//! longest path of the original program that begins there. An extension takes away one store that
//! can be delayed (no fence right behind it) and adds some, all at places that stand for later
//! locations: on the path (q̄i, i > 0) nothing is stored, and a way out from q̄i has its stores at location
//! i. (The store with the fence behind cannot be delayed past a load.) So the multiset of these
//! numbers becomes smaller.

use rustc_hash::FxHashMap;
use wattle_model::graph::{Action, Fence, Location};
use wattle_model::instance::{Address, Fact, Initial, Register, Step, Thread};
use wattle_model::{
    CellId, Expr, Instance, LocationId, Op2, RegisterId, Span, StepId, ThreadId, Type,
};

/// A program extended again and again, and what its parts mean in the program it began as.
#[derive(Clone, Debug)]
pub struct Extended {
    pub instance: Instance,
    threads: Vec<Origin>,
}

#[derive(Clone, Debug)]
struct Origin {
    /// The location of the original thread.
    locations: Vec<LocationId>,
    /// The original step that happens here; none for what only serves the emulation.
    steps: Vec<Option<StepId>>,
}

impl Extended {
    pub fn new(instance: &Instance) -> Self {
        let threads = instance.threads.iter().map(|t| Origin {
            locations: (0..t.locations.len()).map(LocationId::new).collect(),
            steps: (0..t.steps.len()).map(|s| Some(StepId::new(s))).collect(),
        });
        Extended {
            instance: instance.clone(),
            threads: threads.collect(),
        }
    }

    /// The original step that a step stands for.
    pub fn original(&self, t: ThreadId, s: StepId) -> Option<StepId> {
        self.threads[t.index()].steps[s.index()]
    }

    /// The program with no more than `most` steps in a row of each thread (Theorem 9). Whoever has taken
    /// so many stands still there and has not ended.
    pub fn unrolled(instance: &Instance, most: usize) -> Self {
        let mut all = Extended::new(instance);
        for (thread, origin) in all.instance.threads.iter_mut().zip(&mut all.threads) {
            let old = std::mem::take(&mut thread.steps);
            let inside = (
                std::mem::take(&mut thread.atomic),
                std::mem::take(&mut thread.direct),
            );
            let mut copies: FxHashMap<(LocationId, usize), LocationId> = FxHashMap::default();
            let mut places = vec![(thread.entry, 0)];
            copies.insert((thread.entry, 0), LocationId(0));
            (origin.locations, origin.steps) = (Vec::new(), Vec::new());
            let mut at = 0;
            while let Some(&(place, depth)) = places.get(at) {
                origin.locations.push(place);
                thread.atomic.push(inside.0[place.index()]);
                thread.direct.push(inside.1[place.index()]);
                for s in &thread.outgoing[place.index()] {
                    let step = &old[s.index()];
                    let next = (step.target, depth + 1);
                    let source = LocationId::new(at);
                    let (target, action, meant) = match depth < most {
                        true => {
                            let target = *copies.entry(next).or_insert_with(|| {
                                places.push(next);
                                LocationId::new(places.len() - 1)
                            });
                            (target, step.action.clone(), Some(*s))
                        }
                        false => (source, Action::Assume(Expr::FALSE), None),
                    };
                    origin.steps.push(meant);
                    thread.steps.push(Step {
                        source,
                        target,
                        action,
                        span: step.span,
                    });
                }
                at += 1;
            }
            let old = std::mem::take(&mut thread.locations);
            let of = |l: &LocationId| old[l.index()].clone();
            thread.locations = origin.locations.iter().map(of).collect();
            thread.entry = LocationId(0);
            finish(thread);
        }
        all
    }

    /// Whether it is the program it began as.
    pub fn is_itself(&self) -> bool {
        let same = |o: &Origin| {
            let numbered = |(i, s): (usize, &Option<StepId>)| *s == Some(StepId::new(i));
            o.steps.iter().enumerate().all(numbered)
        };
        self.threads.iter().all(same)
    }

    /// Steps of all threads, for limits.
    pub fn size(&self) -> usize {
        self.instance.threads.iter().map(|t| t.steps.len()).sum()
    }

    /// Extends the program by a sequence: a store, then steps without a fence, then a load. False if it
    /// is none, or one of its steps was taken away.
    pub fn extend(&mut self, t: ThreadId, sequence: &[StepId]) -> bool {
        let thread = self.instance.thread(t);
        let plain = sequence.iter().all(|s| match &thread.step(*s).action {
            Action::Fence(Fence::Full)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => false,
            // Under SC and TSO there is nothing to do for a store fence.
            Action::Fence(Fence::Store) => true,
            Action::Assume(e) => *e != Expr::FALSE,
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Assert { .. } => true,
        });
        let (Some(first), Some(last)) = (sequence.first(), sequence.last()) else {
            return false;
        };
        if !plain || !matches!(thread.step(*first).action, Action::Store { .. }) {
            return false;
        }
        let start = thread.step(*first).source;
        let end = thread.step(*last).target;
        let mut path = Path {
            buffer: Vec::new(),
            at: start,
            extended: self,
            thread: t,
        };
        for (i, s) in sequence.iter().enumerate() {
            path.emulate(*s);
            if let Some(next) = sequence.get(i + 1) {
                path.ways_out(*s, *next);
            }
        }
        let (from, stores) = (path.at, path.stores());
        path.chain(from, stores, end);
        let thread = &mut self.instance.threads[t.index()];
        thread.steps[first.index()].action = Action::Assume(Expr::FALSE);
        finish(thread);
        true
    }

    /// The question's target, with every location standing for those that emulate it.
    pub fn target(&self, target: &Expr<Fact>) -> Expr<Fact> {
        let widened: Result<_, std::convert::Infallible> = target.substitute(&mut |f| {
            Ok(Expr::Atom(match f {
                Fact::At(t, at) => {
                    let origin = self.threads[t.index()].locations.iter().enumerate();
                    let meant = origin.filter(|(_, o)| at.contains(o));
                    Fact::At(*t, meant.map(|(l, _)| LocationId::new(l)).collect())
                }
                f @ (Fact::Cell(_) | Fact::Seen(..) | Fact::CellAt { .. } | Fact::Register(..)) => {
                    f.clone()
                }
            }))
        });
        match widened {
            Ok(e) => e,
        }
    }
}

/// A path in the making.
struct Path<'e> {
    extended: &'e mut Extended,
    thread: ThreadId,
    at: LocationId,
    /// Registers that hold the address and the value of each store, oldest first.
    buffer: Vec<(RegisterId, RegisterId)>,
}

impl Path<'_> {
    fn emulate(&mut self, s: StepId) {
        let thread = self.extended.instance.thread(self.thread);
        let step = thread.step(s).clone();
        let meant = self.extended.original(self.thread, s);
        let origin = self.extended.threads[self.thread.index()].locations[step.target.index()];
        match &step.action {
            Action::Store { place, value } => {
                let n = self.buffer.len();
                // An index outside its array is a fault here, as it is of the store.
                let (lo, hi) = match place {
                    Address::Cell(c) => (i64::from(c.0), i64::from(c.0)),
                    Address::Computed { base, length, .. } => {
                        let lo = i64::from(base.0);
                        (lo, lo + i64::from(*length) - 1)
                    }
                };
                let address = self.register(format!("address{n}"), Type::Range { lo, hi });
                let ty = self.cell_type(place);
                let held = self.register(format!("value{n}"), ty);
                // The store's own step: its address and value are taken here.
                self.step(
                    Action::Assign {
                        register: address,
                        value: flat(place),
                    },
                    meant,
                    Some(origin),
                    step.span,
                );
                self.step(
                    Action::Assign {
                        register: held,
                        value: value.clone(),
                    },
                    None,
                    Some(origin),
                    step.span,
                );
                self.buffer.push((address, held));
            }
            Action::Load { register, place } => {
                let from = self.at;
                let done = self.location(Some(origin));
                let mut otherwise = from;
                // The newest store to the cell, if there is one.
                let buffer: Vec<_> = self.buffer.iter().rev().copied().collect();
                let mut first = meant;
                for (address, held) in buffer {
                    let same = Expr::binary(Op2::Eq, Expr::Atom(address), flat(place));
                    if same.as_const() == Some(0) {
                        continue;
                    }
                    // An index outside its array goes on to the load, which is the fault.
                    let same = match place {
                        Address::Cell(_) => same,
                        Address::Computed { length, index, .. } => {
                            let length = Expr::Const(i64::from(*length));
                            let from = Expr::binary(Op2::Ge, index.clone(), Expr::Const(0));
                            let to = Expr::binary(Op2::Lt, index.clone(), length);
                            let inside = Expr::binary(Op2::And, from, to);
                            Expr::binary(Op2::And, inside, same)
                        }
                    };
                    let hit = self.location(None);
                    let miss = self.location(None);
                    self.edge(
                        otherwise,
                        hit,
                        Action::Assume(same.clone()),
                        None,
                        step.span,
                    );
                    let value = Expr::Atom(held);
                    let register = *register;
                    self.edge(
                        hit,
                        done,
                        Action::Assign { register, value },
                        meant,
                        step.span,
                    );
                    self.edge(
                        otherwise,
                        miss,
                        Action::Assume(same.negate()),
                        None,
                        step.span,
                    );
                    otherwise = miss;
                    first = meant;
                }
                self.edge(otherwise, done, step.action.clone(), first, step.span);
                self.at = done;
            }
            action @ (Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock) => {
                let action = action.clone();
                self.step(action, meant, Some(origin), step.span);
            }
        }
    }

    /// After the step of the sequence: the first store drains here, or the thread takes another step than
    /// the sequence's next one.
    fn ways_out(&mut self, step: StepId, next: StepId) {
        let thread = self.extended.instance.thread(self.thread);
        let here = thread.step(step).target;
        let others: Vec<StepId> = thread.outgoing(here).to_vec();
        let from = self.at;
        let mut drained = self.stores();
        drained.insert(1, Action::Fence(Fence::Full));
        self.chain(from, drained, here);
        let others = others.into_iter().filter(|s| *s != next);
        let others: Vec<StepId> = others.filter(|s| !self.is_gone(*s)).collect();
        if others.is_empty() {
            return;
        }
        let origin = self.extended.threads[self.thread.index()].locations[here.index()];
        let made = self.location(Some(origin));
        let stores = self.stores();
        self.chain(from, stores, made);
        for s in others {
            let copied = self.extended.instance.thread(self.thread).step(s).clone();
            let meant = self.extended.original(self.thread, s);
            self.edge(made, copied.target, copied.action, meant, copied.span);
        }
    }

    fn is_gone(&self, s: StepId) -> bool {
        let step = self.extended.instance.thread(self.thread).step(s);
        step.action == Action::Assume(Expr::FALSE)
    }

    /// The stores kept in registers, oldest first.
    fn stores(&self) -> Vec<Action<RegisterId, Address>> {
        let cells = self.extended.instance.cells.len();
        let store = |&(address, held): &(RegisterId, RegisterId)| Action::Store {
            place: Address::Computed {
                base: CellId(0),
                length: u32::try_from(cells).unwrap_or(u32::MAX),
                index: Expr::Atom(address),
            },
            value: Expr::Atom(held),
        };
        self.buffer.iter().map(store).collect()
    }

    /// Some actions in a row that end at a location; on the way the thread is seen there.
    fn chain(
        &mut self,
        mut from: LocationId,
        actions: Vec<Action<RegisterId, Address>>,
        end: LocationId,
    ) {
        let origin = self.extended.threads[self.thread.index()].locations[end.index()];
        let last = actions.len().saturating_sub(1);
        for (i, action) in actions.into_iter().enumerate() {
            let to = match i == last {
                true => end,
                false => self.location(Some(origin)),
            };
            self.edge(from, to, action, None, Span::NONE);
            from = to;
        }
    }

    fn cell_type(&self, place: &Address) -> Type {
        let cells = &self.extended.instance.cells;
        match place {
            Address::Cell(c) => cells[c.index()].ty,
            Address::Computed { base, length, .. } => {
                let all = cells.iter().skip(base.index()).take(*length as usize);
                let mut types = all.map(|c| c.ty);
                let first = types.next().unwrap_or(Type::Int);
                if types.all(|t| t == first) {
                    first
                } else {
                    Type::Int
                }
            }
        }
    }

    fn register(&mut self, name: String, ty: Type) -> RegisterId {
        let thread = &mut self.extended.instance.threads[self.thread.index()];
        let id = RegisterId::new(thread.registers.len());
        let value = ty.bounds().map_or(0, |(lo, hi)| 0.clamp(lo, hi));
        thread.registers.push(Register {
            name: format!("_{name}_{id}"),
            ty,
            init: Initial::Value(value),
            span: Span::NONE,
        });
        id
    }

    fn location(&mut self, origin: Option<LocationId>) -> LocationId {
        let of = &mut self.extended.threads[self.thread.index()].locations;
        // In the middle of a step the thread is still where it was.
        let origin = origin.unwrap_or(of[self.at.index()]);
        let thread = &mut self.extended.instance.threads[self.thread.index()];
        let id = LocationId::new(thread.locations.len());
        thread.locations.push(Location::default());
        of.push(origin);
        id
    }

    fn step(
        &mut self,
        action: Action<RegisterId, Address>,
        meant: Option<StepId>,
        origin: Option<LocationId>,
        span: Span,
    ) {
        let to = self.location(origin);
        let from = self.at;
        self.edge(from, to, action, meant, span);
        self.at = to;
    }

    fn edge(
        &mut self,
        source: LocationId,
        target: LocationId,
        action: Action<RegisterId, Address>,
        meant: Option<StepId>,
        span: Span,
    ) {
        let index = self.thread.index();
        self.extended.instance.threads[index].steps.push(Step {
            source,
            target,
            action,
            span,
        });
        self.extended.threads[index].steps.push(meant);
    }
}

/// Outgoing steps and atomic marks of new locations.
fn finish(thread: &mut Thread) {
    thread.atomic.resize(thread.locations.len(), false);
    thread.direct.resize(thread.locations.len(), false);
    thread.outgoing = vec![Vec::new(); thread.locations.len()];
    for (i, s) in thread.steps.iter().enumerate() {
        thread.outgoing[s.source.index()].push(StepId::new(i));
    }
}

/// The flat address of an operand.
fn flat(place: &Address) -> Expr<RegisterId> {
    match place {
        Address::Cell(c) => Expr::Const(i64::from(c.0)),
        Address::Computed { base, index, .. } => match base.0 {
            0 => index.clone(),
            b => Expr::binary(Op2::Add, index.clone(), Expr::Const(i64::from(b))),
        },
    }
}
