//! States of the program, read as states of the system, and asked whether a certificate stands for
//! them.
//!
//! Threads of an instance are those of the system in the same order. What the system keeps in another
//! way (the elements of a counter, amounts of threads, the thread in a cell that holds none) is not
//! known here. States in which a thread is in the middle of what the system does in one step are left
//! out.

use super::amount::Amount;
use super::variables::{Holds, Variable, Variables, constant};
use super::{Lowered, Lowering};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use wattle_evidence::related::{Excludes, Met, Stored};
use wattle_memory::content::Exact;
use wattle_memory::layout::{Layout, Pso, Sc, Tso};
use wattle_memory::{MemoryModel, reference};
use wattle_model::{
    CellId, FamilyId, Init, Instance, Length, LocationId, Program, RegionId, RegisterId,
};

/// How the system's cells say what the program's variables hold.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    variables: Variables,
    broken: Option<u16>,
    family: Option<u16>,
    /// For each family, where a thread stops whatever it did before.
    stops: Vec<BTreeSet<LocationId>>,
}

impl Reader {
    pub(super) fn of(lowering: &Lowering<'_>) -> Self {
        let families = 0..lowering.program.families.len();
        let stops = families.map(|f| lowering.stops(FamilyId::new(f)));
        Reader {
            variables: lowering.variables.clone(),
            broken: lowering.broken,
            family: lowering.family_cell(),
            stops: stops.collect(),
        }
    }
}

impl Lowering<'_> {
    fn stops(&self, f: FamilyId) -> BTreeSet<LocationId> {
        let family = &self.program.families[f.index()];
        let all = (0..family.locations.len()).map(LocationId::new);
        all.filter(|l| self.always_stops(f, *l)).collect()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub states: usize,
    /// Pending stores of a thread.
    pub buffer: usize,
}

/// What a cell of the system stands for.
#[derive(Clone, Copy, Debug)]
enum Stands {
    At(FamilyId),
    Family,
    /// A variable's element; `none`: whether it holds no thread.
    Of {
        id: Variable,
        element: usize,
        none: bool,
    },
    /// Nobody is broken in a state of the program.
    Broken,
}

/// A state of the program that the certificate does not stand for, if one is met; and how many were.
pub fn outside(
    program: &Program,
    lowered: &Lowered,
    excludes: &Excludes<'_>,
    model: MemoryModel,
    instance: &Instance,
    limits: Limits,
    stop: &dyn Fn() -> bool,
) -> (Option<String>, usize) {
    let reading = Reading {
        program,
        lowered,
        instance,
        stands: stands(program, lowered),
    };
    match model {
        MemoryModel::Sc => reading.run::<Sc>(excludes, limits, stop),
        MemoryModel::Tso => reading.run::<Tso>(excludes, limits, stop),
        MemoryModel::Pso => reading.run::<Pso>(excludes, limits, stop),
    }
}

fn stands(program: &Program, lowered: &Lowered) -> BTreeMap<u16, Stands> {
    let reader = &lowered.reader;
    let mut out = BTreeMap::new();
    for f in 0..program.families.len() {
        out.insert(f as u16, Stands::At(FamilyId::new(f)));
    }
    out.extend(reader.family.map(|c| (c, Stands::Family)));
    out.extend(reader.broken.map(|c| (c, Stands::Broken)));
    for (id, first) in &reader.variables.cells {
        let elements = match id {
            Variable::Register(..) => 1,
            Variable::Region(r) => match program.region(*r).length {
                Length::Array(n) => n as usize,
                Length::Scalar | Length::PerThread(_) => 1,
            },
        };
        let wide = matches!(reader.variables.of(*id), Holds::Threads(_));
        for element in 0..elements {
            let step = if wide { 2 } else { 1 };
            let cell = first + (element * step) as u16;
            let (id, none) = (*id, false);
            out.insert(cell, Stands::Of { id, element, none });
            if wide {
                let none = true;
                out.insert(cell + 1, Stands::Of { id, element, none });
            }
        }
    }
    out
}

struct Reading<'r> {
    program: &'r Program,
    lowered: &'r Lowered,
    instance: &'r Instance,
    stands: BTreeMap<u16, Stands>,
}

impl Reading<'_> {
    fn run<L: Layout>(
        &self,
        excludes: &Excludes<'_>,
        limits: Limits,
        stop: &dyn Fn() -> bool,
    ) -> (Option<String>, usize) {
        let Ok(machine) = reference::Machine::<L, Exact>::new(self.instance, ()) else {
            return (None, 0);
        };
        let Ok(starts) = machine.starts() else {
            return (None, 0);
        };
        let starts = starts.iter().map(|s| machine.initial(s)).collect();
        let (states, _) = closure(starts, limits.states, stop, |s, next| {
            for event in machine.events(s) {
                if let reference::Outcome::Next(t) = machine.apply(s, &event) {
                    let pending = |b| L::entries::<Exact>(b).len() <= limits.buffer;
                    if t.buffers.iter().all(pending) {
                        next.push(t);
                    }
                }
            }
        });
        let mut met = 0;
        for s in states.iter().filter(|s| machine.inside_atomic(s).is_none()) {
            let stops = &self.lowered.reader.stops;
            let threads = self.instance.threads.iter().zip(&s.locations);
            if !threads
                .clone()
                .all(|(t, at)| stops[t.family.index()].contains(at))
            {
                continue;
            }
            let Some(pending) = self.pending::<L>(s) else {
                continue;
            };
            let value = |cell: u16, of: &[u8]| self.value(s, cell, of);
            let state = Met {
                threads: self.instance.threads.len() as u8,
                value: &value,
                pending: &pending,
            };
            met += 1;
            if let Some(why) = excludes(&state) {
                let n = self.instance.threads.len();
                let places: Vec<String> = threads
                    .map(|(t, at)| {
                        let line = t.locations[at.index()].span.line;
                        format!("{} at line {line}", t.name)
                    })
                    .collect();
                let places = places.join(", ");
                let what = format!(
                    "with {n} threads a state is met that the proof excludes ({places}): {why}"
                );
                return (Some(what), met);
            }
        }
        (None, met)
    }

    /// The buffers as the system has them; nothing if they cannot be told.
    fn pending<L: Layout>(
        &self,
        s: &reference::State<L::Buffer<Exact>>,
    ) -> Option<Vec<Vec<Vec<Stored>>>> {
        let mut out = Vec::new();
        for buffer in &s.buffers {
            let mut entries = Vec::new();
            for (cell, value) in L::entries::<Exact>(buffer) {
                // Under PSO the order among cells is not told.
                if L::MODEL == MemoryModel::Pso {
                    return None;
                }
                entries.push(self.stored(cell, value)?);
            }
            out.push(entries);
        }
        Some(out)
    }

    fn stored(&self, cell: CellId, value: i64) -> Option<Vec<Stored>> {
        let region = self.instance.cells[cell.index()].region;
        let first = |c: &wattle_model::instance::Cell| c.region == region;
        let base = self.instance.cells.iter().position(first)?;
        let element = cell.index() - base;
        let id = Variable::Region(region);
        let variables = &self.lowered.reader.variables;
        let at = variables.cells.get(&id)?;
        let wide = matches!(variables.of(id), Holds::Threads(_));
        let (at, of) = match self.program.region(region).length {
            Length::Scalar => (*at, Vec::new()),
            Length::Array(_) => (at + (element * if wide { 2 } else { 1 }) as u16, Vec::new()),
            Length::PerThread(f) => (*at, vec![self.thread(f, element as i64)?]),
        };
        match variables.of(id) {
            Holds::Counter => None,
            Holds::Threads(_) if value == -1 => Some(vec![(at + 1, of, 1)]),
            Holds::Threads(_) => Some(vec![
                (at, of.clone(), self.encoded(id, value, false)?),
                (at + 1, of, 0),
            ]),
            Holds::Few(_) | Holds::Numbers => Some(vec![(at, of, self.encoded(id, value, false)?)]),
        }
    }

    /// The system's number of a thread of a family.
    fn thread(&self, family: FamilyId, index: i64) -> Option<u8> {
        let mut own =
            (0..self.instance.threads.len()).filter(|t| self.instance.threads[*t].family == family);
        let t = own.nth(usize::try_from(index).ok()?)?;
        u8::try_from(t + 1).ok()
    }

    fn encoded(&self, id: Variable, value: i64, none: bool) -> Option<i64> {
        let variables = &self.lowered.reader.variables;
        match variables.of(id) {
            Holds::Counter => None,
            Holds::Numbers => Some(value),
            Holds::Few(set) => {
                if set.iter().any(|v| v.number().is_none()) {
                    return None;
                }
                let all = &variables.values;
                let i = all.iter().position(|v| *v == Amount::Number(value))?;
                Some(i as i64)
            }
            Holds::Threads(_) if none => Some(i64::from(value == -1)),
            Holds::Threads(f) => self.thread(*f, value).map(i64::from),
        }
    }

    fn value<B>(&self, s: &reference::State<B>, cell: u16, of: &[u8]) -> Option<i64> {
        let thread = of.first().map(|t| usize::from(*t) - 1);
        let family = thread.map(|t| self.instance.threads[t].family);
        match self.stands.get(&cell).copied()? {
            Stands::Broken => Some(0),
            Stands::Family => family.map(|f| f.index() as i64),
            Stands::At(f) if family == Some(f) => Some(s.locations[thread?].index() as i64),
            Stands::At(f) => Some(self.program.family(f).entry.index() as i64),
            Stands::Of { id, element, none } => match id {
                Variable::Register(f, r) if family == Some(f) => {
                    self.encoded(id, s.registers[thread?][r.index()], none)
                }
                // What another family's thread would have: what all start with.
                Variable::Register(f, r) => self.start(id, f, r, none),
                Variable::Region(r) => {
                    let first = |c: &wattle_model::instance::Cell| c.region == r;
                    let base = self.instance.cells.iter().position(first)?;
                    let at = match self.program.region(r).length {
                        Length::Scalar => base,
                        Length::Array(_) => base + element,
                        Length::PerThread(f) if family == Some(f) => {
                            let own = &self.instance.threads[..thread?];
                            base + own.iter().filter(|t| t.family == f).count()
                        }
                        Length::PerThread(_) => return self.first(id, r, none),
                    };
                    self.encoded(id, *s.memory.get(at)?, none)
                }
            },
        }
    }

    fn start(&self, id: Variable, f: FamilyId, r: RegisterId, none: bool) -> Option<i64> {
        match &self.program.family(f).registers[r.index()].init {
            Init::All(e) => self.encoded(id, constant(e)?, none),
            Init::Each(_) | Init::Any => None,
        }
    }

    fn first(&self, id: Variable, r: RegionId, none: bool) -> Option<i64> {
        match &self.program.region(r).init {
            Init::All(e) => self.encoded(id, constant(e)?, none),
            Init::Each(_) | Init::Any => None,
        }
    }
}

/// All states reachable, up to a number of them, and whether these are all.
fn closure<S: Clone + Eq + Hash>(
    starts: Vec<S>,
    limit: usize,
    stop: &dyn Fn() -> bool,
    mut successors: impl FnMut(&S, &mut Vec<S>),
) -> (Vec<S>, bool) {
    let mut known: FxHashSet<S> = FxHashSet::default();
    let mut states: Vec<S> = Vec::new();
    let mut next = starts;
    let mut at = 0;
    loop {
        for s in next.drain(..) {
            if known.insert(s.clone()) {
                states.push(s);
            }
        }
        if at == states.len() {
            return (states, true);
        }
        if states.len() > limit || (at.is_multiple_of(256) && stop()) {
            return (states, false);
        }
        successors(&states[at], &mut next);
        at += 1;
    }
}
