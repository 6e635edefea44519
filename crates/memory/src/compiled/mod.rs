//! The compiled machine: the reference machine's rules on packed states, written to be fast.
//!
//! A state is a fixed number of 64-bit words of bit fields: every thread's location, registers and
//! buffer, memory, and who holds the lock. Field widths come from a guess at the ranges of values
//! ([`ranges`]); every value is checked as it is packed, and one that does not fit is reported as
//! [`Stuck::Narrow`], after which the caller widens the range and begins anew. Buffers have a fixed
//! number of slots per thread; a store that finds no room is reported too ([`Notes::full`]).
//!
//! Buffers are exact or forget as the [`Contents`] say ([`blurred`]).
//!
//! With *chaining*, local steps ([`local`]) and drains of cells no other thread touches run at once
//! after the event before them, so that only states without local steps are ever seen by a search.
//! With *dead registers*, registers no step will read ([`live`]) are zeroed there. With both off the
//! reachable states are exactly those of the reference machine.

mod blurred;
pub mod bounds;
mod buffer;
mod code;
mod local;
mod menu;
mod pack;
mod persistent;
mod ranges;
mod run;
mod simplify;
mod symmetry;
mod unpack;
mod view;

pub use bounds::Pending;
pub use code::{Code, Flaw};
pub use menu::{Menu, Menus, UNKNOWN, disjoint};
pub use pack::Field;
pub use persistent::{Chosen, Offer};
pub use ranges::{Range, Ranges, Slot, are_bounded, are_few};
pub use run::{Found, Notes, Sink, Stuck};
pub use unpack::{Row, Unpack};
pub use view::{Observed, Watched};

use crate::MemoryModel;
use crate::content::{Contents, Keeps};
use crate::reference::{MAX_CHOICE, Refusal};
use blurred::Blur;
use buffer::Buffer;
use code::{Edge, Node, Op, Register, Target};
use local::{Local, Sharing};
use pack::{Request, pack};
use persistent::{Persistent, Seen};
use symmetry::Symmetry;
use wattle_model::graph::{Action, Section};
use wattle_model::instance::{Address, Fact, Step};
use wattle_model::{Expr, Fence, Instance, RegisterId, Type};

/// What to leave out of the stored states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reductions {
    /// Local steps are chained, and where one of several is to be chosen they come before all else.
    pub chaining: bool,
    pub dead_registers: bool,
    /// Only some of the events of a state need be taken ([`persistent`]).
    pub persistent: bool,
    /// Of states that differ in who is who one is kept ([`symmetry`]).
    pub symmetry: bool,
}

impl Reductions {
    pub const ALL: Reductions = Reductions {
        chaining: true,
        dead_registers: true,
        persistent: true,
        symmetry: true,
    };
    pub const NONE: Reductions = Reductions {
        chaining: false,
        dead_registers: false,
        persistent: false,
        symmetry: false,
    };
}

/// An instance under a memory model, ready to run.
pub struct Machine<'i> {
    pub instance: &'i Instance,
    pub model: MemoryModel,
    /// Words per state.
    pub words: usize,
    pub(crate) threads: Vec<Compiled>,
    pub(crate) cells: Vec<Field>,
    /// Per cell: values between these need no second look at the type.
    pub(crate) plain: Vec<(i64, i64)>,
    /// 0 for nobody, else thread + 1.
    pub(crate) holder: Field,
    /// A state may be inside an atomic block.
    pub(crate) atomic_states: bool,
    /// Steps that are faults are told, not left out.
    pub(crate) faults: bool,
    /// What the view sees on the way to final states.
    seen: Seen,
    /// Which events suffice.
    persistent: Option<Persistent>,
    /// Which threads are alike.
    symmetry: Symmetry,
}

/// One thread of a [`Machine`].
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    pub location: Field,
    pub registers: Vec<Field>,
    pub nodes: Vec<Node>,
    pub buffer: Buffer,
    /// Some cell's drains are chained.
    pub settles: bool,
    /// Per cell: loads of it, and stores that reach it at once, are nobody else's business.
    pub free_loads: Vec<bool>,
    pub free_stores: Vec<bool>,
}

impl<'i> Machine<'i> {
    /// `slots` is the number of pending stores each thread's buffer has room for, whatever the
    /// contents say.
    pub fn new(
        instance: &'i Instance,
        model: MemoryModel,
        view: &Watched,
        reductions: Reductions,
        contents: &Contents,
        ranges: &Ranges,
        slots: &[u32],
    ) -> Result<Self, Refusal> {
        let sharing = Sharing::of(instance);
        let mut machine = Machine {
            instance,
            model,
            words: 0,
            threads: Vec::new(),
            cells: Vec::new(),
            plain: instance.cells.iter().map(|c| plain(c.ty)).collect(),
            holder: Field::default(),
            atomic_states: false,
            faults: view.faults,
            seen: Seen::default(),
            persistent: None,
            symmetry: Symmetry::default(),
        };
        let classes = match reductions.symmetry && contents.keeps == Keeps::Exact {
            true => symmetry::classes(instance, view),
            false => Vec::new(),
        };
        let (mut ranges, mut slots) = (ranges.clone(), slots.to_vec());
        symmetry::unify(&classes, &mut ranges, &mut slots);
        machine.lay_out(contents, &ranges, &slots);
        for t in 0..instance.threads.len() {
            machine.compile(t, view, reductions, contents, &sharing)?;
        }
        machine.symmetry = Symmetry::new(&machine, classes);
        machine.seen = Seen::new(&machine, view);
        if contents.keeps == Keeps::Exact {
            machine.persistent = Persistent::new(&machine, reductions);
        }
        Ok(machine)
    }

    fn lay_out(&mut self, contents: &Contents, ranges: &Ranges, slots: &[u32]) {
        let instance = self.instance;
        let mut requests = Vec::new();
        let mut ask = |r: Request| {
            requests.push(r);
            requests.len() - 1
        };
        let locks = instance.threads.iter().any(|t| {
            let mut steps = t.steps.iter();
            steps.any(|s| matches!(s.action, Action::Lock))
        });
        ask(Request::count(if locks {
            instance.threads.len() + 1
        } else {
            1
        }));
        for r in &ranges.cells {
            ask(Request::strided(r.lo, r.hi, r.stride));
        }
        let mut wanted = Vec::new();
        for (t, thread) in instance.threads.iter().enumerate() {
            ask(Request::count(thread.locations.len()));
            for r in &ranges.registers[t] {
                ask(Request::strided(r.lo, r.hi, r.stride));
            }
            let cells = match self.model {
                MemoryModel::Sc => Vec::new(),
                MemoryModel::Tso | MemoryModel::Pso => stored_cells(thread),
            };
            let room = if cells.is_empty() { 0 } else { slots[t] };
            let fences = thread
                .steps
                .iter()
                .any(|s| matches!(s.action, Action::Fence(Fence::Store)));
            let fences = fences && self.model == MemoryModel::Pso;
            let blur = Blur::new(contents.keeps, contents.bounds.get(t), &cells, fences);
            let fences = blur.as_ref().map_or(fences, Blur::has_epochs);
            let epochs = 1 + usize::from(fences);
            let marks = blur.as_ref().map_or(epochs, Blur::marks);
            let value = cells.iter().map(|c| {
                let r = ranges.cells[*c as usize];
                Request::strided(r.lo, r.hi, r.stride).bits
            });
            let value = Request {
                bits: value.max().unwrap_or(0),
                lo: 0,
                stride: 1,
            };
            ask(Request::count(room as usize + 1));
            ask(Request::count(epochs));
            for _ in 0..room {
                ask(Request::count(cells.len()));
                ask(value);
                ask(Request::count(marks));
            }
            wanted.push((cells, room, blur));
        }
        let (fields, words) = pack(&requests);
        let mut fields = fields.into_iter();
        let mut take = || fields.next().unwrap_or_default();
        self.words = words;
        self.holder = take();
        self.cells = ranges.cells.iter().map(|_| take()).collect();
        for (t, (cells, room, blur)) in wanted.into_iter().enumerate() {
            let mut thread = Compiled {
                location: take(),
                registers: ranges.registers[t].iter().map(|_| take()).collect(),
                ..Compiled::default()
            };
            thread.buffer = Buffer {
                count: take(),
                fenced: take(),
                private: vec![false; cells.len()],
                cells,
                sorted: self.model == MemoryModel::Pso,
                loose: blur.as_ref().map_or(0, |b| b.loose),
                blur: blur.map(Box::new),
                ..Buffer::default()
            };
            for _ in 0..room {
                thread.buffer.which.push(take());
                thread.buffer.value.push(take());
                thread.buffer.mark.push(take());
            }
            self.threads.push(thread);
        }
    }

    fn compile(
        &mut self,
        t: usize,
        view: &Watched,
        reductions: Reductions,
        contents: &Contents,
        sharing: &Sharing,
    ) -> Result<(), Refusal> {
        let thread = &self.instance.threads[t];
        let n = thread.locations.len();
        let local = if reductions.chaining {
            local::local(self.instance, self.model, t, view, sharing)
        } else {
            vec![Local::No; n]
        };
        let mut nodes = Vec::with_capacity(n);
        for (l, local) in local.into_iter().enumerate() {
            let mut edges = Vec::new();
            for s in &thread.outgoing[l] {
                let step = thread.step(*s);
                edges.push(Edge {
                    op: self.op(t, step, sharing)?,
                    target: step.target.0,
                    step: *s,
                });
            }
            self.atomic_states |= thread.atomic[l] && local == Local::No;
            nodes.push(Node {
                edges,
                local: local == Local::Step,
                choice: local == Local::Choice,
                perhaps: local == Local::Perhaps,
                atomic: thread.atomic[l],
                keep: Vec::new(),
            });
        }
        if reductions.dead_registers {
            // What the question reads is live wherever it can look: everywhere, or at the ends.
            let observed = thread.outgoing.iter().map(|out| {
                let looks = !view.only_final || out.is_empty();
                view.registers[t].iter().map(|r| *r && looks).collect()
            });
            let live = thread.live(observed.collect());
            for (node, live) in nodes.iter_mut().zip(live) {
                node.keep = self.keep(t, &live);
            }
        }
        let me = &mut self.threads[t];
        if nodes.iter().any(|n| n.perhaps) {
            (me.free_loads, me.free_stores) = sharing.free(t as u32, view);
        }
        me.nodes = nodes;
        // A buffer that keeps a few in order would keep others if these left early.
        if reductions.chaining && !contents.keeps.is_abstract() {
            let buffer = &mut me.buffer;
            for (private, c) in buffer.private.iter_mut().zip(&buffer.cells) {
                let c = *c as usize;
                *private = sharing.private(t as u32, c) && (view.only_final || !view.cells[c]);
            }
            me.settles = buffer.private.contains(&true);
        }
        Ok(())
    }

    /// The bits of live registers, for the words that have bits of dead ones.
    fn keep(&self, t: usize, live: &[bool]) -> Vec<(u32, u64)> {
        let mut keep: Vec<(u32, u64)> = Vec::new();
        for (field, live) in self.threads[t].registers.iter().zip(live) {
            let (word, bits) = field.bits();
            if *live || bits == 0 {
                continue;
            }
            match keep.iter_mut().find(|(w, _)| *w as usize == word) {
                Some((_, mask)) => *mask &= !bits,
                None => keep.push((word as u32, !bits)),
            }
        }
        keep
    }

    fn op(&self, t: usize, step: &Step, sharing: &Sharing) -> Result<Op, Refusal> {
        let thread = &self.instance.threads[t];
        let register = |r: &RegisterId| Register {
            field: self.threads[t].registers[r.index()],
            ty: thread.registers[r.index()].ty,
            plain: plain(thread.registers[r.index()].ty),
            number: r.0,
        };
        let code = |e: &Expr<RegisterId>| {
            Code::new(e, &|r| Code::Field(self.threads[t].registers[r.index()]))
        };
        let place = |p: &Address| match p {
            Address::Cell(c) => Target::Cell(c.0),
            Address::Computed {
                base,
                length,
                index,
            } => Target::Computed {
                base: base.0,
                length: *length,
                index: code(index),
            },
        };
        let sc = self.model == MemoryModel::Sc;
        Ok(match &step.action {
            Action::Skip => Op::Nothing,
            Action::Assign { register: r, value } => Op::Assign(register(r), code(value)),
            Action::Havoc { register: r, range } => {
                let given = &thread.registers[r.index()];
                let too_many = || Refusal::TooManyChoices {
                    what: given.name.clone(),
                };
                let (lo, hi) = range.or(given.ty.bounds()).ok_or_else(too_many)?;
                if hi.abs_diff(lo) >= MAX_CHOICE {
                    return Err(too_many());
                }
                Op::Havoc(register(r), lo, hi)
            }
            Action::Assume(e) => Op::Assume(code(e)),
            Action::Assert { condition, .. } => Op::Assert(code(condition)),
            Action::Load {
                register: r,
                place: p,
            } => Op::Load {
                register: register(r),
                place: place(p),
                guarded: sharing.may_be_locked_out(t as u32),
            },
            Action::Store { place: p, value } => {
                let (place, value) = (place(p), code(value));
                if sc || thread.direct[step.source.index()] {
                    Op::Write {
                        place,
                        value,
                        guarded: sc && sharing.may_be_locked_out(t as u32),
                    }
                } else {
                    Op::Put(place, value)
                }
            }
            Action::Fence(_) if sc => Op::Nothing,
            Action::Fence(Fence::Full) => Op::Fence,
            Action::Fence(Fence::Store) if self.model == MemoryModel::Tso => Op::Nothing,
            Action::Fence(Fence::Store) if !self.threads[t].buffer.has_epochs() => Op::Nothing,
            Action::Fence(Fence::Store) => Op::StoreFence,
            Action::AtomicBegin(section) => Op::AtomicBegin {
                drained: *section == Section::Drained,
            },
            Action::AtomicEnd => Op::AtomicEnd,
            Action::Lock => Op::Lock,
            Action::Unlock => Op::Unlock,
        })
    }

    /// The bits that say what a thread does next, but for cells in memory: its location, registers
    /// and buffer, and who holds the lock.
    pub(crate) fn own(&self, t: usize) -> Vec<u64> {
        let thread = &self.threads[t];
        let buffer = &thread.buffer;
        let single = [self.holder, thread.location, buffer.count, buffer.fenced];
        let many = [
            &thread.registers,
            &buffer.which,
            &buffer.value,
            &buffer.mark,
        ];
        let mut own = vec![0; self.words];
        for field in single.iter().chain(many.into_iter().flatten()) {
            let (word, bits) = field.bits();
            own[word] |= bits;
        }
        own
    }

    /// A condition of a question, compiled.
    pub fn condition(&self, e: &Expr<Fact>) -> Code {
        let simple = simplify::simplify(e);
        Code::new(&simple, &|fact| match fact {
            Fact::Cell(c) => Code::Field(self.cells[c.index()]),
            Fact::CellAt {
                base,
                length,
                index,
            } => Code::CellAt {
                base: base.0,
                length: *length,
                index: Box::new(self.condition(index)),
            },
            Fact::Seen(t, c) => Code::Seen {
                buffer: Box::new(self.threads[t.index()].buffer.clone()),
                cell: c.0,
            },
            Fact::Register(t, r) => Code::Field(self.threads[t.index()].registers[r.index()]),
            Fact::At(t, at) => {
                let n = self.instance.thread(*t).locations.len();
                let location = self.threads[t.index()].location;
                if n <= 64 {
                    let bits = at.iter().fold(0, |bits, l| bits | 1 << l.index());
                    return Code::at_one_of(location, bits);
                }
                let mut inside = vec![false; n.next_power_of_two()];
                for l in at {
                    inside[l.index()] = true;
                }
                Code::At {
                    location,
                    inside: inside.into(),
                }
            }
        })
    }

    /// Its value in a state.
    pub fn value(&self, condition: &Code, state: &[u64]) -> Result<i64, Box<Flaw>> {
        condition.eval(state, &self.cells)
    }

    /// The type of a register or cell.
    pub fn type_of(&self, slot: Slot) -> Type {
        match slot {
            Slot::Cell(c) => self.instance.cells[c as usize].ty,
            Slot::Register { thread, register } => {
                self.instance.threads[thread as usize].registers[register as usize].ty
            }
        }
    }
}

/// The values a type takes as they are.
fn plain(ty: Type) -> (i64, i64) {
    ty.bounds().unwrap_or((i64::MIN, i64::MAX))
}

/// Cells a thread may put into its buffer, sorted.
fn stored_cells(thread: &wattle_model::instance::Thread) -> Vec<u32> {
    let mut cells = std::collections::BTreeSet::new();
    let mut seen = rustc_hash::FxHashSet::default();
    for step in &thread.steps {
        if let Action::Store { place, .. } = &step.action
            && !thread.direct[step.source.index()]
        {
            let (first, length) = local::extent(place);
            if seen.insert((first, length)) {
                cells.extend(first as u32..(first + length) as u32);
            }
        }
    }
    cells.into_iter().collect()
}
