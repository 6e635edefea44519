//! The extension of a program by a sequence of steps (calin-2016, Section 3.1): a thread may follow
//! the sequence with its stores kept in registers, and make them in order at the end.
//!
//! As in the measured implementation, the original first store stays, and only the path through
//! fresh locations is added (ERRATA): the extended program has all SC runs of the old one, and those
//! TSO runs that delay along the sequence.

use wattle_model::graph::{Action, Location};
use wattle_model::instance::{Address, Fact, Initial, Register, Step};
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

    /// Steps of all threads, for limits.
    pub fn size(&self) -> usize {
        self.instance.threads.iter().map(|t| t.steps.len()).sum()
    }

    /// Adds a sequence: a store, then steps without a fence, then a load. False if it is none.
    pub fn extend(&mut self, t: ThreadId, sequence: &[StepId]) -> bool {
        let thread = self.instance.thread(t);
        let plain = sequence.iter().all(|s| {
            !matches!(
                thread.step(*s).action,
                Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Lock
                    | Action::Unlock
                    | Action::Havoc { .. }
            )
        });
        let (Some(first), Some(last)) = (sequence.first(), sequence.last()) else {
            return false;
        };
        if !plain {
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
        for s in sequence {
            path.emulate(*s);
        }
        path.flush(end);
        self.finish(t);
        true
    }

    /// Outgoing steps and atomic marks of new locations; labels seen through the emulation.
    fn finish(&mut self, t: ThreadId) {
        let thread = &mut self.instance.threads[t.index()];
        thread.atomic.resize(thread.locations.len(), false);
        thread.direct.resize(thread.locations.len(), false);
        thread.outgoing = vec![Vec::new(); thread.locations.len()];
        for (i, s) in thread.steps.iter().enumerate() {
            thread.outgoing[s.source.index()].push(StepId::new(i));
        }
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
                f @ (Fact::Cell(_) | Fact::CellAt { .. } | Fact::Register(..)) => f.clone(),
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
                let cells = self.extended.instance.cells.len();
                let hi = i64::try_from(cells).unwrap_or(i64::MAX) - 1;
                let address = self.register(format!("address{n}"), Type::Range { lo: 0, hi });
                let ty = self.cell_type(place);
                let held = self.register(format!("value{n}"), ty);
                // The store's own step: its address and value are taken here.
                self.step(
                    Action::Assign {
                        register: address,
                        value: flat(place),
                    },
                    meant,
                    None,
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

    /// The stores reach memory; then the thread goes on where the sequence ended.
    fn flush(&mut self, end: LocationId) {
        let origin = self.extended.threads[self.thread.index()].locations[end.index()];
        let cells = self.extended.instance.cells.len();
        let buffer = std::mem::take(&mut self.buffer);
        for (i, (address, held)) in buffer.iter().enumerate() {
            let action = Action::Store {
                place: Address::Computed {
                    base: CellId(0),
                    length: u32::try_from(cells).unwrap_or(u32::MAX),
                    index: Expr::Atom(*address),
                },
                value: Expr::Atom(*held),
            };
            let to = if i + 1 == buffer.len() {
                end
            } else {
                self.location(Some(origin))
            };
            let from = self.at;
            self.edge(from, to, action, None, Span::NONE);
            self.at = to;
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
