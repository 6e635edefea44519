//! What the two threads that are looked at do, by the rules of a step, and what others may store.

use super::line::{Axis, Positions, Unsaid, Value, refuse, stuck};
use std::collections::BTreeSet;
use wattle_evidence::certificate::levels::Holds;
use wattle_memory::rules::{Sight, Stuck, StuckIn, World};
use wattle_memory::{Bounds, Exact, FaultKind, Layout, Newest};
use wattle_model::graph::{Action, Section};
use wattle_model::program::{Length, Local, Place};
use wattle_model::{
    CellId, Expr, Family, Init, LocationId, Program, RegionId, RegisterId, Type, Valued,
};

pub type Pending<L> = <L as Layout>::Buffer<Exact<Value>>;

/// What is kept of a thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kept<B> {
    pub location: LocationId,
    pub registers: Vec<Value>,
    pub pending: B,
}

/// What is kept of a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State<B> {
    pub threads: Vec<Kept<B>>,
    pub memory: Vec<Value>,
}

/// A cell: one that is kept, or any other of the region.
#[derive(Clone, Copy)]
pub enum Cell {
    Kept(CellId),
    Else(RegionId),
}

/// The values of a type that has few: all of them is kept. Of others nothing is.
pub fn few(ty: Type) -> Option<(i64, i64)> {
    const MANY: i64 = 16;
    let few = |(lo, hi): &(i64, i64)| hi.checked_sub(*lo).is_some_and(|d| d < MANY);
    ty.bounds().filter(few)
}

/// The program, and what is kept of it.
pub struct Around<'a> {
    pub program: &'a Program,
    pub family: &'a Family,
    pub registers: &'a [Holds],
    pub known: &'a [bool],
    pub regions: &'a [(Holds, Holds)],
    /// The cells that are kept: of a region, that of this point.
    pub cells: Vec<(RegionId, usize)>,
    /// By location: the atomic block it is in, and registers that may be read there.
    pub sections: Vec<Option<Section>>,
    pub live: Vec<Vec<bool>>,
}

impl Around<'_> {
    fn cell_type(&self, cell: Cell) -> (Type, Holds) {
        let region = match cell {
            Cell::Kept(c) => self.cells[c.index()].0,
            Cell::Else(r) => r,
        };
        (
            self.program.region(region).ty,
            self.regions[region.index()].1,
        )
    }

    pub fn register_type(&self, r: RegisterId) -> (Type, Holds) {
        (
            self.family.registers[r.index()].ty,
            self.registers[r.index()],
        )
    }

    /// Which cell an index means.
    fn cell(
        &self,
        d: &mut Positions<'_>,
        region: RegionId,
        index: Value,
    ) -> Result<Cell, StuckIn<Positions<'static>>> {
        let kept = |point: usize| {
            let at = self.cells.iter().position(|c| *c == (region, point));
            at.map_or(Cell::Else(region), |c| Cell::Kept(CellId::new(c)))
        };
        let axis = match (
            self.program.region(region).length,
            self.regions[region.index()].0,
        ) {
            (Length::Scalar, _) => return Ok(kept(0)),
            (Length::PerThread(_), Holds::Thread | Holds::Name) => Axis::Threads,
            (Length::PerThread(_), Holds::Level) => Axis::Levels,
            (Length::PerThread(_), Holds::Data | Holds::Mixed) | (Length::Array(_), _) => {
                return stuck(Err(Unsaid(
                    "an array that is not indexed by threads or levels",
                )));
            }
        };
        let slot = stuck(d.on(axis, index))?;
        let line = d.shape.line(axis);
        if !line.inner().contains(&slot) {
            let length = 0;
            return Err(Stuck::Fault(FaultKind::IndexOutOfRange { index, length }));
        }
        let point = line.points.iter().position(|p| *p == slot);
        Ok(point.map_or(Cell::Else(region), kept))
    }

    /// The value if its type stores it.
    pub fn admit(
        &self,
        d: &mut Positions<'_>,
        ty: Type,
        v: Value,
    ) -> Result<Value, StuckIn<Positions<'static>>> {
        let inside = match ty {
            Type::Thread(_) => {
                let none = stuck(d.compare(v, Value::Number(-1)))?;
                none.is_eq() || none.is_gt() && stuck(d.compare(v, Value::Count(0)))?.is_lt()
            }
            Type::Int | Type::Range { .. } | Type::Wrap { .. } => match ty.admit_in(d, v)? {
                Some(admitted) => return Ok(admitted),
                None => false,
            },
        };
        let (value, lo, hi) = (v, -1, -1);
        let fault = FaultKind::ValueOutOfRange { value, lo, hi };
        inside.then_some(v).ok_or(Stuck::Fault(fault))
    }

    /// What is kept of a value.
    pub fn keep(
        &self,
        d: &mut Positions<'_>,
        (ty, holds): (Type, Holds),
        v: Value,
    ) -> Result<Value, Unsaid> {
        Ok(match holds {
            Holds::Data if few(ty).is_none() => Value::Any,
            Holds::Data if matches!(v, Value::Number(_)) => v,
            Holds::Data => return Err(Unsaid("a position where all of a number is kept")),
            Holds::Thread => Value::Thread(d.on(Axis::Threads, v)?),
            Holds::Level => Value::Level(d.on(Axis::Levels, v)?),
            Holds::Mixed => match v {
                Value::Thread(_) | Value::Level(_) | Value::Other | Value::Number(-1..=4) => v,
                Value::Number(_) | Value::Count(_) | Value::Any => {
                    return Err(Unsaid("a number where a thread or a level is kept"));
                }
            },
            Holds::Name if matches!(v, Value::Other | Value::Number(-1)) => v,
            Holds::Name => {
                let slot = d.on(Axis::Threads, v)?;
                let line = &d.shape.threads;
                match line.points.contains(&slot) {
                    true => Value::Thread(slot),
                    false if slot == 1 => Value::Number(-1),
                    false if line.is_gap(slot) => Value::Other,
                    false => return Err(Unsaid("a name that is no thread's")),
                }
            }
        })
    }

    /// Any value of the type, as it is kept.
    pub fn any(&self, d: &mut Positions<'_>, ty: Type, holds: Holds) -> Result<Value, Unsaid> {
        let slots = |line: &super::line::Line| match ty {
            Type::Thread(_) => 1..line.inner().end,
            Type::Int | Type::Range { .. } | Type::Wrap { .. } => 0..line.inner().end + 2,
        };
        match holds {
            Holds::Data => match few(ty) {
                Some((lo, hi)) => {
                    let all: Vec<i64> = (lo..=hi).collect();
                    d.choose(&all).map(Value::Number)
                }
                None => Ok(Value::Any),
            },
            Holds::Thread => {
                let all: Vec<u8> = slots(&d.shape.threads).collect();
                d.choose(&all).map(Value::Thread)
            }
            Holds::Level => {
                let all: Vec<u8> = slots(&d.shape.levels).collect();
                d.choose(&all).map(Value::Level)
            }
            Holds::Name if matches!(ty, Type::Thread(_)) => {
                let all: Vec<u8> = slots(&d.shape.threads).collect();
                let any = d.choose(&all)?;
                self.keep(d, (ty, holds), Value::Thread(any))
            }
            Holds::Name | Holds::Mixed => Err(Unsaid("a name of anything")),
        }
    }

    /// What an initial value is. `me` is what `self` means.
    pub fn initial(
        &self,
        d: &mut Positions<'_>,
        init: &Init,
        me: Value,
        (ty, holds): (Type, Holds),
    ) -> Result<Value, StuckIn<Positions<'static>>> {
        let e = match init {
            Init::All(e) => e,
            Init::Any => return stuck(self.any(d, ty, holds)),
            Init::Each(_) => return stuck(Err(Unsaid("a list of initial values"))),
        };
        let leaf = &mut |_: &mut Positions<'_>, leaf: &Local| match leaf {
            Local::SelfIndex => Ok(me),
            Local::Count(_) => Ok(Value::Count(0)),
            Local::Register(_) | Local::AddressOf(_) => refuse(Err(Unsaid("an address"))),
        };
        let v = e.evaluate(d, leaf)?;
        let v = self.admit(d, ty, v)?;
        stuck(self.keep(d, (ty, holds), v))
    }

    /// What others may store into the cells that are kept, whatever they have in their registers.
    pub fn others(
        &self,
        d: &mut Positions<'_>,
        place: &Place,
        value: &Expr<Local>,
    ) -> Result<Option<(CellId, Value)>, StuckIn<Positions<'static>>> {
        let line = &d.shape.threads;
        let free: Vec<u8> = line.inner().filter(|s| line.is_gap(*s)).collect();
        if free.is_empty() {
            return Ok(None);
        }
        let me = Value::Thread(stuck(d.choose(&free))?);
        let mut registers = vec![None; self.registers.len()];
        let leaf = &mut |d: &mut Positions<'_>, leaf: &Local| match leaf {
            Local::SelfIndex => Ok(me),
            Local::Count(_) => Ok(Value::Count(0)),
            Local::AddressOf(_) => refuse(Err(Unsaid("an address"))),
            Local::Register(r) => {
                if let Some(v) = registers[r.index()] {
                    return Ok(v);
                }
                let (ty, holds) = self.register_type(*r);
                let v = refuse(self.any(d, ty, holds))?;
                registers[r.index()] = Some(v);
                Ok(v)
            }
        };
        let Place::Region(region, index) = place else {
            return stuck(Err(Unsaid("an address")));
        };
        let index = index.evaluate(d, leaf)?;
        let v = value.evaluate(d, leaf)?;
        let Cell::Kept(c) = self.cell(d, *region, index)? else {
            return Ok(None);
        };
        let (ty, holds) = self.cell_type(Cell::Kept(c));
        let v = self.admit(d, ty, v)?;
        Ok(Some((c, stuck(self.keep(d, (ty, holds), v))?)))
    }

    /// A register is read here of which only what was put into it says what it means.
    pub fn mixes(&self, l: LocationId) -> bool {
        let mut kept = self.registers.iter().zip(&self.live[l.index()]);
        kept.any(|(holds, live)| *live && *holds == Holds::Mixed)
    }

    /// Nobody else has an event while a thread is here.
    pub fn is_inside(&self, l: LocationId) -> bool {
        self.sections[l.index()].is_some()
    }

    /// The step mentions one thread and one level at most, besides `self`, and one of them is in a gap: whatever it
    /// is, the same step is looked at with that thread or level as one of those that are.
    pub fn is_seen_elsewhere<B>(
        &self,
        d: &Positions<'_>,
        action: &Action<Local, Place>,
        thread: &Kept<B>,
    ) -> bool {
        let (mut threads, mut levels) = (BTreeSet::new(), BTreeSet::new());
        let mut gap = false;
        for_each_read(action, &mut |r| {
            match self.registers[r.index()] {
                Holds::Data => return,
                Holds::Thread | Holds::Name => threads.insert(r),
                Holds::Level => levels.insert(r),
                Holds::Mixed => threads.insert(r) | levels.insert(r),
            };
            gap |= match thread.registers[r.index()] {
                Value::Thread(s) => d.shape.threads.is_gap(s),
                Value::Level(s) => d.shape.levels.is_gap(s),
                Value::Other => true,
                Value::Number(_) | Value::Count(_) | Value::Any => false,
            };
        });
        gap && threads.len() < 2 && levels.len() < 2
    }
}

pub fn for_each_read(action: &Action<Local, Place>, visit: &mut dyn FnMut(RegisterId)) {
    let index = action.place().map(|p| match p {
        Place::Region(_, index) | Place::Memory(index) => index,
    });
    for e in action.evaluated().into_iter().chain(index) {
        e.for_each_atom(&mut |leaf| {
            if let Local::Register(r) = leaf {
                visit(*r);
            }
        });
    }
}

/// One of the two threads, about to take a step.
pub struct Acting<'a, L: Layout> {
    pub around: &'a Around<'a>,
    pub me: usize,
    pub state: State<Pending<L>>,
}

impl<L: Layout> Acting<'_, L> {
    fn kept(&self) -> &Kept<Pending<L>> {
        &self.state.threads[self.me]
    }

    fn bounds(&self) -> Bounds<()> {
        Bounds::uniform((), self.around.cells.len())
    }
}

impl<'d, L: Layout> Sight<Positions<'d>> for Acting<'_, L> {
    type Leaf = Local;

    fn leaf(&self, d: &mut Positions<'d>, leaf: &Local) -> Valued<Positions<'d>> {
        refuse(match leaf {
            Local::Register(r) if self.me > 0 && !self.around.known[r.index()] => {
                let (ty, holds) = self.around.register_type(*r);
                self.around.any(d, ty, holds)
            }
            Local::Register(r) => Ok(self.kept().registers[r.index()]),
            Local::SelfIndex => Ok(Value::Thread(d.shape.threads.points[self.me])),
            Local::Count(_) => Ok(Value::Count(0)),
            Local::AddressOf(_) => Err(Unsaid("an address")),
        })
    }

    fn is_empty(&self) -> bool {
        L::is_empty::<Exact<Value>>(&self.kept().pending)
    }

    fn direct(&self) -> bool {
        let inside = self.around.sections[self.kept().location.index()];
        inside.is_some() || self.state.threads.len() == 1
    }

    fn lock_is_free(&self) -> bool {
        true
    }

    fn holds_lock(&self) -> bool {
        false
    }
}

impl<'d, L: Layout> World<Positions<'d>> for Acting<'_, L> {
    type Place = Place;
    type Cell = Cell;

    fn cell(
        &mut self,
        d: &mut Positions<'d>,
        place: &Place,
    ) -> Result<Cell, StuckIn<Positions<'d>>> {
        let Place::Region(region, index) = place else {
            return stuck(Err(Unsaid("an address")));
        };
        let index = index.evaluate(d, &mut |d: &mut Positions<'d>, leaf| self.leaf(d, leaf))?;
        self.around.cell(d, *region, index)
    }

    fn cell_type(&self, cell: &Cell) -> Type {
        self.around.cell_type(*cell).0
    }

    fn register_type(&self, register: RegisterId) -> Type {
        self.around.register_type(register).0
    }

    fn read(&mut self, d: &mut Positions<'d>, cell: Cell) -> Valued<Positions<'d>> {
        match cell {
            Cell::Kept(c) => {
                let newest = self.kept().pending.newest_of(c);
                Ok(newest.unwrap_or(self.state.memory[c.index()]))
            }
            Cell::Else(_) => {
                let (ty, holds) = self.around.cell_type(cell);
                refuse(self.around.any(d, ty, holds))
            }
        }
    }

    fn write(
        &mut self,
        d: &mut Positions<'d>,
        cell: Cell,
        value: Value,
    ) -> Result<(), StuckIn<Positions<'d>>> {
        let of = self.around.cell_type(cell);
        let v = stuck(self.around.keep(d, of, value))?;
        let Cell::Kept(c) = cell else {
            return Ok(());
        };
        let (direct, bounds) = (self.direct(), self.bounds());
        let pending = &mut self.state.threads[self.me].pending;
        let at_once = match direct {
            true => Some((c, v)),
            false => L::put::<Exact<Value>, _>(d, pending, &bounds, (c, v))?,
        };
        if let Some((c, v)) = at_once {
            self.state.memory[c.index()] = v;
        }
        Ok(())
    }

    fn set(&mut self, register: RegisterId, value: Value) {
        self.state.threads[self.me].registers[register.index()] = value;
    }

    fn store_fence(&mut self) {
        let bounds = self.bounds();
        L::store_fence::<Exact<Value>>(&mut self.state.threads[self.me].pending, &bounds);
    }

    fn lock(&mut self) {}

    fn unlock(&mut self) {}

    fn admit(
        &mut self,
        d: &mut Positions<'d>,
        ty: Type,
        value: Value,
    ) -> Result<Value, StuckIn<Positions<'d>>> {
        self.around.admit(d, ty, value)
    }
}

/// What may drain.
pub fn drains<L: Layout>(pending: &Pending<L>) -> Vec<((CellId, Value), Pending<L>)> {
    let all = L::drains::<Exact<Value>>(pending).into_iter();
    all.map(|d| (d.entry, d.rest)).collect()
}

pub fn entries<L: Layout>(pending: &Pending<L>) -> usize {
    L::entries::<Exact<Value>>(pending).len()
}

pub fn empty<L: Layout>(cells: usize) -> Pending<L> {
    L::empty::<Exact<Value>>(&Bounds::uniform((), cells))
}
