//! As many runs as there are maximal Mazurkiewicz traces, counted by brute force on the reference machine,
//! event by event.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use wattle_evidence::{Control, Pace, Progress, Stop};
use wattle_memory::reference::{Machine, Outcome};
use wattle_memory::{Event, Exact, Layout, MemoryModel, Pso, Sc, Start, Tso};
use wattle_model::graph::{Action, Section};
use wattle_model::instance::Address;
use wattle_model::{CellId, Fence, Instance, Program, ThreadId};
use wattle_random::{Shape, trial};

struct Few(AtomicU64);

impl Pace for Few {
    fn tick(&self, _: &'static str, _: Progress) -> Result<(), Stop> {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 0 {
            Err(Stop::Cancelled)
        } else {
            Ok(())
        }
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// Who: a thread, or its buffer (of a cell under PSO).
type Who = (u32, Option<u32>);

/// An event of a run, as far as its order matters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Did {
    who: Who,
    nth: u32,
    event: Event,
    reads: Option<CellId>,
    writes: Option<CellId>,
    /// The store that served a load, was drained, or was made.
    store: Option<u32>,
    epoch: u32,
    waits: bool,
    forwards: bool,
    puts: bool,
    /// Everything before it.
    before: Vec<(Who, u32)>,
}

#[derive(Clone)]
struct Point<S> {
    state: S,
    run: Vec<Did>,
    /// Per thread the pending stores: cell, serial, epoch.
    pending: Vec<Vec<(CellId, u32, u32)>>,
    stores: Vec<(u32, u32)>,
}

fn depends(a: &Did, b: &Did) -> bool {
    let thread = |d: &Did| d.who.0;
    let drain = |d: &Did| matches!(d.event, Event::Drain { .. });
    if a.who == b.who {
        return true;
    }
    if thread(a) == thread(b) {
        let stored = a.puts && drain(b) && a.store == b.store;
        let epochs = drain(a) && drain(b) && a.epoch < b.epoch;
        let forwarded = a.forwards && drain(b) && a.store == b.store
            || drain(a) && b.forwards && a.store == b.store;
        if stored || epochs || forwarded || drain(a) && b.waits {
            return true;
        }
    }
    let meets = |x: Option<CellId>, y: Option<CellId>| x.is_some() && x == y;
    meets(a.writes, b.writes) || meets(a.reads, b.writes) || meets(a.writes, b.reads)
}

/// The threads that may write a cell.
fn writers(instance: &Instance, cell: CellId) -> Vec<ThreadId> {
    let writes = |t: &ThreadId| {
        let mut steps = instance.thread(*t).steps.iter();
        steps.any(|s| match &s.action {
            Action::Store {
                place: Address::Cell(c),
                ..
            } => *c == cell,
            Action::Store {
                place: Address::Computed { base, length, .. },
                ..
            } => (base.0..base.0 + length).contains(&cell.0),
            _ => false,
        })
    };
    instance.thread_ids().filter(writes).collect()
}

fn count<L: Layout>(instance: &Instance, start: &Start, most: usize) -> Option<u64> {
    let machine = Machine::<L, Exact>::new(instance, ()).ok()?;
    let first = Point {
        state: machine.initial(start),
        run: Vec::new(),
        pending: vec![Vec::new(); instance.threads.len()],
        stores: vec![(0, 0); instance.threads.len()],
    };
    let mut seen: HashSet<Vec<Did>> = HashSet::new();
    let mut work = vec![first];
    let mut maximal = 0;
    while let Some(point) = work.pop() {
        let events = machine.events(&point.state);
        if events.is_empty() {
            maximal += 1;
        }
        for event in events {
            let Outcome::Next(state) = machine.apply(&point.state, &event) else {
                return None;
            };
            let mut next = Point {
                state,
                ..point.clone()
            };
            let mut did = Did {
                who: (event.thread().0, None),
                nth: 0,
                event,
                reads: None,
                writes: None,
                store: None,
                epoch: 0,
                waits: false,
                forwards: false,
                puts: false,
                before: Vec::new(),
            };
            let t = event.thread();
            let pending = &mut next.pending[t.index()];
            let stores = &mut next.stores[t.index()];
            match event {
                Event::Drain { cell, .. } => {
                    let pso = L::MODEL == MemoryModel::Pso;
                    did.who.1 = Some(if pso { cell.0 } else { 0 });
                    let at = pending.iter().position(|p| p.0 == cell)?;
                    let (_, serial, epoch) = pending.remove(at);
                    did.writes = Some(cell);
                    did.store = Some(serial);
                    did.epoch = epoch;
                }
                Event::Step { step, .. } => {
                    let thread = instance.thread(t);
                    let step = thread.step(step);
                    let index = |place: &Address| match place {
                        Address::Cell(c) => Some(*c),
                        Address::Computed { base, index, .. } => {
                            let registers = &point.state.registers[t.index()];
                            let i =
                                index.eval(&|r: &wattle_model::RegisterId| registers[r.index()]);
                            i.ok().map(|i| CellId(base.0 + i as u32))
                        }
                    };
                    match &step.action {
                        Action::Load { place, .. } => {
                            let cell = index(place)?;
                            if writers(instance, cell).iter().any(|w| *w != t) {
                                match pending.iter().rev().find(|p| p.0 == cell) {
                                    Some(p) => {
                                        did.forwards = true;
                                        did.store = Some(p.1);
                                    }
                                    None => did.reads = Some(cell),
                                }
                            }
                        }
                        Action::Store { place, .. } => {
                            let cell = index(place)?;
                            let direct = thread.direct[step.source.index()];
                            if direct || L::MODEL == MemoryModel::Sc {
                                did.writes = Some(cell);
                            } else {
                                did.puts = true;
                                did.store = Some(stores.0);
                                pending.push((cell, stores.0, stores.1));
                                stores.0 += 1;
                            }
                        }
                        Action::Fence(Fence::Store) => stores.1 += 1,
                        Action::Fence(Fence::Full) | Action::AtomicBegin(Section::Drained) => {
                            did.waits = true;
                        }
                        _ => {}
                    }
                }
            }
            did.nth = point.run.iter().filter(|d| d.who == did.who).count() as u32;
            for d in &point.run {
                if depends(d, &did) {
                    did.before.push((d.who, d.nth));
                    did.before.extend(&d.before);
                }
            }
            did.before.sort_unstable();
            did.before.dedup();
            next.run.push(did);
            let mut key = next.run.clone();
            key.sort_unstable();
            if seen.insert(key) {
                if seen.len() > most {
                    return None;
                }
                work.push(next);
            }
        }
    }
    Some(maximal)
}

#[derive(Debug, Default)]
struct Tally {
    compared: u64,
    traces: u64,
    too_many: u64,
}

fn compare(program: &Program, tally: &mut Tally) -> Option<String> {
    let instance = program.instance().ok()?;
    if instance
        .threads
        .iter()
        .any(|t| t.buffered_section().is_some())
    {
        return None;
    }
    for model in MemoryModel::ALL {
        let few = Few(AtomicU64::new(3));
        let control = Control::unlimited().with_pace(&few);
        let Ok(ours) = wattle_traces::final_states(&instance, model, &[], &control) else {
            continue;
        };
        if ours.work.runs > 300 {
            tally.too_many += 1;
            continue;
        }
        let starts = wattle_memory::reference::starts(&instance).ok()?;
        let counts = starts.iter().map(|start| match model {
            MemoryModel::Sc => count::<Sc>(&instance, start, 4000),
            MemoryModel::Tso => count::<Tso>(&instance, start, 4000),
            MemoryModel::Pso => count::<Pso>(&instance, start, 4000),
        });
        let Some(theirs) = counts.sum::<Option<u64>>() else {
            tally.too_many += 1;
            continue;
        };
        tally.compared += 1;
        tally.traces += theirs;
        if theirs != ours.work.runs {
            return Some(format!("{model}: {theirs} traces, {} runs", ours.work.runs));
        }
    }
    None
}

#[test]
fn as_many_runs_as_traces() {
    let shape = Shape {
        threads: 3,
        statements: 3,
        locks: false,
        properties: false,
        ..Shape::default()
    };
    let (_, tally) = trial(&shape, 400, 9001, |p, _, t: &mut Tally| compare(p, t));
    println!("{tally:?}");
    assert!(tally.compared > 300, "{tally:?}");
}
