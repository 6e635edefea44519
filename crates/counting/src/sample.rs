//! States of small instances: what guesses are made from.

use indexmap::IndexSet;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::PendingStores;
use wattle_evidence::certificate::counting::Local;
use wattle_evidence::{Control, Progress, Stop};
use wattle_memory::layout::Epochs;
use wattle_memory::reference::{Machine, Outcome, State};
use wattle_memory::{Exact, Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::graph::Action;
use wattle_model::instance::{Fact, Thread};
use wattle_model::{Count, CountedCrowd, Counts, Crowd, Expr, Instance, RegisterId, ThreadId};

/// Most threads in each open family, and states of an instance.
const THREADS: u32 = 4;
const STATES: usize = 4_000;
const ALL_STATES: usize = 12_000;
/// Where counters never end, larger numbers are not followed.
const LARGEST: i64 = 6;
/// States with longer buffers are not followed.
const PENDING: usize = 4;

/// A state in which nobody is inside an atomic block.
pub struct Seen {
    /// The most threads that an open family has.
    pub threads: u32,
    pub cells: Vec<i64>,
    /// Who is where, by number in [`Samples::locals`].
    pub locals: Vec<u32>,
}

pub struct Samples {
    /// Registers that nobody reads any more are 0.
    pub locals: IndexSet<Local>,
    pub states: Vec<Seen>,
    /// The largest number of threads that was run.
    pub most: u32,
    /// Per role, per location, per register: whether it may still be read.
    pub live: Vec<Vec<Vec<bool>>>,
    /// Numbers may grow without end, and are looked at while they are small.
    endless: bool,
}

impl Samples {
    pub fn take(
        counted: &CountedCrowd,
        model: MemoryModel,
        unwrapped: bool,
        control: &Control<'_>,
    ) -> Result<Samples, Stop> {
        let (program, crowd) = (&counted.program, &counted.crowd);
        let mut live = live(crowd);
        if unwrapped {
            keep_tickets(crowd, &mut live);
        }
        let mut samples = Samples {
            locals: IndexSet::new(),
            states: Vec::new(),
            most: 0,
            live,
            endless: unwrapped,
        };
        let open: Vec<&str> = (program.families.iter())
            .filter(|f| f.count == Count::Any)
            .map(|f| f.name.as_str())
            .collect();
        for n in 1..=THREADS {
            for counts in numbers(&open, n) {
                let Ok(instance) = program.instantiate(&Counts(counts)) else {
                    continue;
                };
                let whole = match model {
                    MemoryModel::Sc => samples.run::<Sc>(crowd, &instance, n, control)?,
                    MemoryModel::Tso => samples.run::<Tso>(crowd, &instance, n, control)?,
                    MemoryModel::Pso => samples.run::<Pso>(crowd, &instance, n, control)?,
                };
                // Without an end there is always more to see.
                if !whole && !unwrapped || samples.states.len() > ALL_STATES {
                    return Ok(samples);
                }
            }
        }
        Ok(samples)
    }

    /// Whether all states were seen.
    fn run<L: Layout>(
        &mut self,
        crowd: &Crowd,
        instance: &Instance,
        threads: u32,
        control: &Control<'_>,
    ) -> Result<bool, Stop>
    where
        L::Buffer<Exact>: Shape,
    {
        let roles = roles(crowd, instance);
        let Ok(machine) = Machine::<L, Exact>::new(instance, ()) else {
            return Ok(false);
        };
        let Ok(starts) = machine.starts() else {
            return Ok(false);
        };
        let mut known: FxHashSet<(Vec<i64>, Vec<u32>)> = FxHashSet::default();
        let mut open = std::collections::VecDeque::new();
        let mut whole = true;
        let mut take =
            |samples: &mut Samples,
             state: State<L::Buffer<Exact>>,
             open: &mut std::collections::VecDeque<State<L::Buffer<Exact>>>| {
                let locals = (0..roles.len()).map(|t| samples.local(roles[t], &state, t));
                let mut locals: Vec<u32> = locals.collect();
                locals.sort_unstable();
                if known.insert((state.memory.clone(), locals.clone())) {
                    if machine.inside_atomic(&state).is_none() {
                        samples.most = samples.most.max(threads);
                        samples.states.push(Seen {
                            threads,
                            cells: state.memory.clone(),
                            locals,
                        });
                    }
                    open.push_back(state);
                }
                known.len()
            };
        for start in starts.iter().take(STATES) {
            take(self, machine.initial(start), &mut open);
        }
        let mut done = 0;
        while let Some(state) = open.pop_front() {
            done += 1;
            if done % 64 == 0 {
                let progress = Progress {
                    states: self.states.len() as u64,
                    ..Progress::default()
                };
                control.poll("counting", progress)?;
            }
            for event in machine.events(&state) {
                let Outcome::Next(next) = machine.apply(&state, &event) else {
                    continue;
                };
                let all = next.memory.iter().chain(next.registers.iter().flatten());
                if self.endless && all.into_iter().any(|v| v.abs() > LARGEST) {
                    continue;
                }
                if next.buffers.iter().any(|b| b.shape().1.len() > PENDING) {
                    whole = false;
                    continue;
                }
                if take(self, next, &mut open) > STATES {
                    return Ok(false);
                }
            }
        }
        Ok(whole)
    }

    fn local<B: Shape>(&mut self, role: usize, state: &State<B>, t: usize) -> u32 {
        let location = state.locations[t];
        let live = &self.live[role][location.index()];
        let registers = state.registers[t].iter().zip(live);
        let (pending, values) = state.buffers[t].shape();
        let local = Local {
            role: ThreadId::new(role),
            location,
            pending,
            registers: registers.map(|(v, live)| v * i64::from(*live)).collect(),
            values,
        };
        self.locals.insert_full(local).0 as u32
    }
}

/// A buffer as certificates list it, and its values.
pub trait Shape {
    fn shape(&self) -> (PendingStores, Vec<i64>);
}

impl Shape for () {
    fn shape(&self) -> (PendingStores, Vec<i64>) {
        (PendingStores::default(), Vec::new())
    }
}

impl Shape for Exact {
    fn shape(&self) -> (PendingStores, Vec<i64>) {
        let pending = PendingStores {
            entries: self.0.iter().map(|(c, _)| (0, *c)).collect(),
            ..PendingStores::default()
        };
        (pending, self.0.iter().map(|(_, v)| *v).collect())
    }
}

impl Shape for Epochs<Exact> {
    fn shape(&self) -> (PendingStores, Vec<i64>) {
        let (mut entries, mut values) = (Vec::new(), Vec::new());
        for (n, epoch) in self.epochs.iter().enumerate() {
            for (cell, content) in epoch {
                for (_, v) in &content.0 {
                    entries.push((n as u32, *cell));
                    values.push(*v);
                }
            }
        }
        let pending = PendingStores {
            entries,
            before: Vec::new(),
            fenced: self.fenced,
        };
        (pending, values)
    }
}

/// Numbers of threads of which n is the largest.
fn numbers(open: &[&str], n: u32) -> Vec<BTreeMap<String, u32>> {
    let mut all = vec![BTreeMap::new()];
    for name in open {
        let longer = all.into_iter().flat_map(|row: BTreeMap<String, u32>| {
            (1..=n).map(move |k| {
                let mut row = row.clone();
                row.insert((*name).to_string(), k);
                row
            })
        });
        all = longer.take(64).collect();
    }
    all.retain(|row| row.values().max() == Some(&n));
    all
}

/// Which thread of the crowd stands for each thread of the instance.
fn roles(crowd: &Crowd, instance: &Instance) -> Vec<usize> {
    let stands = |t: &wattle_model::instance::Thread| {
        let all = crowd.instance.threads.iter();
        let first = all.clone().position(|u| u.family == t.family);
        let same = all
            .clone()
            .position(|u| (u.family, u.index) == (t.family, t.index));
        match first {
            Some(r) if crowd.roles.is_open(r) => r,
            _ => same.or(first).unwrap_or(0),
        }
    };
    instance.threads.iter().map(stands).collect()
}

fn live(crowd: &Crowd) -> Vec<Vec<Vec<bool>>> {
    let instance = &crowd.instance;
    let mut read = Vec::new();
    for q in &instance.questions {
        observed(&q.target, &mut read);
    }
    let threads = instance.threads.iter().enumerate();
    let of_thread = |(t, thread): (usize, &wattle_model::instance::Thread)| {
        let role = crowd.roles.of(t);
        let seen = |r: usize| (read.iter()).any(|(u, s)| crowd.roles.of(*u) == role && *s == r);
        let row: Vec<bool> = (0..thread.registers.len()).map(seen).collect();
        thread.live(vec![row; thread.locations.len()])
    };
    threads.map(of_thread).collect()
}

/// A ticket is kept until the next one is taken: it tells its owner apart as long as he is about, whether or not he looks
/// at it.
fn keep_tickets(crowd: &Crowd, live: &mut [Vec<Vec<bool>>]) {
    for (thread, live) in crowd.instance.threads.iter().zip(live) {
        for register in tickets(thread) {
            live.iter_mut().for_each(|l| l[register.index()] = true);
        }
    }
}

/// What is taken in an atomic block and compared with something.
pub fn tickets(thread: &Thread) -> BTreeSet<RegisterId> {
    let (mut taken, mut compared) = (BTreeSet::new(), BTreeSet::new());
    for step in &thread.steps {
        let inside = thread.atomic.get(step.source.index()) == Some(&true);
        match &step.action {
            Action::Load { register, .. } if inside => {
                taken.insert(*register);
            }
            Action::Assume(e) => e.for_each_atom(&mut |r| {
                compared.insert(*r);
            }),
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => {}
        }
    }
    taken.retain(|r| compared.contains(r));
    taken
}

fn observed(target: &Expr<Fact>, read: &mut Vec<(usize, usize)>) {
    target.for_each_atom(&mut |fact| match fact {
        Fact::Register(t, r) => read.push((t.index(), r.index())),
        Fact::CellAt { index, .. } => observed(index, read),
        Fact::Cell(_) | Fact::Seen(..) | Fact::At(..) => {}
    });
}
