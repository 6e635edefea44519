//! What the search knows before it starts: shapes of the threads, and which cells they may still
//! touch from where. Everything here only prunes what cannot become an attack.

use super::local;
use super::{Goal, Options};
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Thread};
use wattle_model::{Fence, Instance, LocationId, RegisterId, StepId};

/// A set of cells.
#[derive(Clone, Default)]
pub(super) struct Cells(Vec<u64>);

impl Cells {
    fn new(cells: usize) -> Self {
        Cells(vec![0; cells.div_ceil(64)])
    }

    fn add(&mut self, place: &Address) {
        for c in place.extent() {
            if let Some(word) = self.0.get_mut(c / 64) {
                *word |= 1 << (c % 64);
            }
        }
    }

    fn join(&mut self, other: &Cells) -> bool {
        let mut changed = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            changed |= *b & !*a != 0;
            *a |= b;
        }
        changed
    }

    fn meets(&self, place: &Address) -> bool {
        place.extent().any(|c| self.has(c))
    }

    pub fn has(&self, cell: usize) -> bool {
        self.0
            .get(cell / 64)
            .is_some_and(|w| w & (1 << (cell % 64)) != 0)
    }
}

pub(super) struct ThreadPlan {
    pub quick: Vec<bool>,
    /// Registers to forget on arrival at a location.
    pub dead: Vec<Vec<u32>>,
    /// From the location the thread can, without draining its buffer, still overtake a store.
    pub can_commit: Vec<bool>,
    /// From the location on there is still a store that something may overtake.
    pub can_start: Vec<bool>,
    /// Cells the thread may read or write, and write, from a location on.
    pub touches: Vec<Cells>,
    pub writes: Vec<Cells>,
}

pub(super) struct AttackPlan<'i> {
    pub instance: &'i Instance,
    pub options: Options,
    pub threads: Vec<ThreadPlan>,
}

impl<'i> AttackPlan<'i> {
    pub fn new(instance: &'i Instance, options: Options) -> Self {
        let cells = instance.cells.len();
        let sets = |with_reads: bool| -> Vec<Vec<Cells>> {
            let threads = instance.threads.iter();
            threads.map(|t| reachable(t, cells, with_reads)).collect()
        };
        let (touches, writes) = (sets(true), sets(false));
        // What all but one thread do from their entries on.
        let others = |of: &[Vec<Cells>], t: usize| {
            let mut all = Cells::new(cells);
            for (u, thread) in instance.threads.iter().enumerate().filter(|(u, _)| *u != t) {
                all.join(&of[u][thread.entry.index()]);
            }
            all
        };
        let threads = instance.threads.iter().enumerate().map(|(t, thread)| {
            let (touched, written) = (others(&touches, t), others(&writes, t));
            let overtakes = |action: &Action<RegisterId, Address>| {
                overtakes(action, options, &touched, &written)
            };
            let can_commit = can_commit(thread, overtakes);
            let live = thread.live(vec![
                vec![false; thread.registers.len()];
                thread.locations.len()
            ]);
            let dead = live.iter().map(|at| {
                let dead = at.iter().enumerate().filter(|(_, live)| !**live);
                dead.map(|(r, _)| r as u32).collect()
            });
            ThreadPlan {
                quick: local::quick(thread),
                dead: dead.collect(),
                can_start: can_start(thread, &can_commit, |place| {
                    options.goal == Goal::Triangular || touched.meets(place)
                }),
                can_commit,
                touches: touches[t].clone(),
                writes: writes[t].clone(),
            }
        });
        AttackPlan {
            instance,
            options,
            threads: threads.collect(),
        }
    }
}

/// Steps that wait until the thread's buffer is empty.
pub(super) fn drains(action: &Action<RegisterId, Address>) -> bool {
    matches!(
        action,
        Action::Fence(Fence::Full) | Action::AtomicBegin(_) | Action::Lock | Action::Unlock
    )
}

/// A step that may overtake an earlier store to some effect: others must come between with an access that conflicts.
fn overtakes(
    action: &Action<RegisterId, Address>,
    options: Options,
    touched: &Cells,
    written: &Cells,
) -> bool {
    match action {
        Action::Load { place, .. } => written.meets(place),
        Action::Store { place, .. } => options.model == MemoryModel::Pso && touched.meets(place),
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Fence(_)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => false,
    }
}

fn can_commit(t: &Thread, overtakes: impl Fn(&Action<RegisterId, Address>) -> bool) -> Vec<bool> {
    let mut can = vec![false; t.locations.len()];
    backward(t, &mut |t, s| {
        let step = t.step(s);
        let (source, target) = (step.source.index(), step.target.index());
        let now = !drains(&step.action) && (overtakes(&step.action) || can[target]);
        let news = now && !can[source];
        can[source] |= now;
        news
    });
    can
}

/// No attack starts inside an atomic block, nor, but for races, with a store that is nobody else's business.
fn can_start(t: &Thread, can_commit: &[bool], missed: impl Fn(&Address) -> bool) -> Vec<bool> {
    let mut can = vec![false; t.locations.len()];
    backward(t, &mut |t, s| {
        let step = t.step(s);
        let (source, target) = (step.source.index(), step.target.index());
        let store = step.action.stored().is_some_and(&missed) && !t.atomic[source];
        let now = store && can_commit[target] || can[target];
        let news = now && !can[source];
        can[source] |= now;
        news
    });
    can
}

fn reachable(t: &Thread, cells: usize, with_reads: bool) -> Vec<Cells> {
    let mut sets = vec![Cells::new(cells); t.locations.len()];
    for step in &t.steps {
        match &step.action {
            Action::Store { place, .. } => sets[step.source.index()].add(place),
            Action::Load { place, .. } if with_reads => sets[step.source.index()].add(place),
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => {}
        }
    }
    backward(t, &mut |t, s| {
        let step = t.step(s);
        let after = sets[step.target.index()].clone();
        sets[step.source.index()].join(&after)
    });
    sets
}

/// Repeats `update` over the steps, last first, until none has news.
fn backward(t: &Thread, update: &mut dyn FnMut(&Thread, StepId) -> bool) {
    let mut incoming: Vec<Vec<StepId>> = vec![Vec::new(); t.locations.len()];
    for (i, s) in t.steps.iter().enumerate() {
        incoming[s.target.index()].push(StepId::new(i));
    }
    let mut work: Vec<StepId> = (0..t.steps.len()).map(StepId::new).collect();
    while let Some(s) = work.pop() {
        if update(t, s) {
            let source: LocationId = t.step(s).source;
            work.extend(&incoming[source.index()]);
        }
    }
}
