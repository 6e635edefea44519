//! How many events a run needs at least to reach its end, from where its threads are.
//!
//! Every end puts threads at certain locations: a failing step at its source, a question at the
//! locations it names. A thread takes one event for every step of its graph, so the shortest paths
//! to these locations, added up over the threads, bound the rest of the run from below. Where buffers have to be empty in
//! the end, every store takes one event more, and so does every pending one.

use super::{End, is_put};
use crate::task::Task;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use wattle_memory::reference::State;
use wattle_memory::{Exact, Layout, MemoryModel};
use wattle_model::instance::{Fact, Thread};
use wattle_model::{Expr, Instance, LocationId, Op1, Op2, ThreadId};

/// More ways than this to reach an end are not told apart.
const MAX_WAYS: usize = 64;

/// For some threads the locations they have to be at; the others may be anywhere.
type Way = BTreeMap<ThreadId, Vec<LocationId>>;

/// The least number of events, by the locations of threads.
pub struct Distance {
    /// Of each way to the end: for some threads, the distance from each of their locations.
    ways: Vec<Vec<(usize, Vec<usize>)>>,
    /// Events that every run takes after that.
    last: usize,
    /// Buffers have to be empty.
    drains: bool,
}

impl Distance {
    /// To the end of a run; a deadlock is at the locations given.
    pub fn to(task: &Task<'_>, end: &End, locations: Option<&[LocationId]>) -> Self {
        let instance = task.instance;
        let mut last = 0;
        let ways = match (end, task.question(), locations) {
            (End::Fault(fault), _, _) => {
                let thread = instance.threads.get(fault.thread.index());
                let step = thread.and_then(|t| t.steps.get(fault.step.index()));
                last = usize::from(step.is_some());
                let at = step.map(|s| (fault.thread, vec![s.source]));
                vec![at.into_iter().collect()]
            }
            (End::Target, Some(question), _) => {
                let ways = ways(&instance.threads, &question.target, true);
                let ended = |t: &Thread| {
                    let all = (0..t.locations.len()).map(LocationId::new);
                    all.filter(|l| t.ended(*l)).collect()
                };
                let finals = instance
                    .thread_ids()
                    .zip(instance.threads.iter().map(ended));
                match question.only_final {
                    true => both(&ways, &[finals.collect()]),
                    false => ways,
                }
            }
            (End::Deadlock, _, Some(locations)) => {
                let at = locations.iter().map(|l| vec![*l]);
                vec![instance.thread_ids().zip(at).collect()]
            }
            _ => vec![Way::new()],
        };
        let drains = *end == End::Target && task.question().is_some_and(|q| q.only_final);
        let distances = |way: &Way| {
            let to = way.iter().map(|(t, targets)| {
                let steps = distances(instance, task.model, *t, targets, drains);
                (t.index(), steps)
            });
            to.collect()
        };
        Distance {
            ways: ways.iter().map(distances).collect(),
            last,
            drains,
        }
    }

    /// The events a run needs at least from a state; `usize::MAX` if there is none.
    pub fn from<L: Layout>(&self, state: &State<L::Buffer<Exact>>) -> usize {
        let drains = self.pending::<L>(state).sum::<usize>() + self.last;
        let of = |way: &Vec<(usize, Vec<usize>)>| {
            let steps = way
                .iter()
                .map(|(t, steps)| steps[state.locations[*t].index()]);
            steps.fold(drains, usize::saturating_add)
        };
        self.ways.iter().map(of).min().unwrap_or(usize::MAX)
    }

    /// How many threads other than the last one have to move, at least.
    pub fn switches<L: Layout>(
        &self,
        state: &State<L::Buffer<Exact>>,
        last: Option<ThreadId>,
    ) -> usize {
        let pending: Vec<usize> = self.pending::<L>(state).collect();
        let of = |way: &Vec<(usize, Vec<usize>)>| {
            let mut moves: Vec<bool> = pending.iter().map(|p| *p > 0).collect();
            moves.resize(state.locations.len(), false);
            for (t, steps) in way {
                moves[*t] |= steps[state.locations[*t].index()] > 0;
            }
            let others = moves.iter().enumerate();
            others
                .filter(|(t, moves)| **moves && last.map(ThreadId::index) != Some(*t))
                .count()
        };
        let least = self.ways.iter().map(of).min().unwrap_or(0);
        // The first one to move at all is no switch.
        least.saturating_sub(usize::from(last.is_none()))
    }

    /// Stores of each thread that are still to drain.
    fn pending<'s, L: Layout>(
        &self,
        state: &'s State<L::Buffer<Exact>>,
    ) -> impl Iterator<Item = usize> + use<'s, L> {
        let drains = self.drains;
        let buffers = state.buffers.iter().filter(move |_| drains);
        buffers.map(|b| match L::is_empty(b) {
            true => 0,
            false => L::entries(b).len(),
        })
    }
}

/// From every location the number of events to the nearest target.
fn distances(
    instance: &Instance,
    model: MemoryModel,
    t: ThreadId,
    targets: &[LocationId],
    drains: bool,
) -> Vec<usize> {
    let thread = instance.thread(t);
    let mut events = vec![usize::MAX; thread.locations.len()];
    let mut into: Vec<Vec<(LocationId, usize)>> = vec![Vec::new(); thread.locations.len()];
    for step in &thread.steps {
        let put = drains && is_put(thread, model, step);
        into[step.target.index()].push((step.source, 1 + usize::from(put)));
    }
    let mut reached: BinaryHeap<Reverse<(usize, LocationId)>> = BinaryHeap::new();
    for target in targets {
        events[target.index()] = 0;
        reached.push(Reverse((0, *target)));
    }
    while let Some(Reverse((far, at))) = reached.pop() {
        if far > events[at.index()] {
            continue;
        }
        for (source, more) in &into[at.index()] {
            if far + more < events[source.index()] {
                events[source.index()] = far + more;
                reached.push(Reverse((far + more, *source)));
            }
        }
    }
    events
}

/// Ways one of which every state takes in which the condition is as wanted.
fn ways(threads: &[Thread], condition: &Expr<Fact>, wanted: bool) -> Vec<Way> {
    let anywhere = vec![Way::new()];
    let sub = |e: &Expr<Fact>, wanted: bool| ways(threads, e, wanted);
    match condition {
        Expr::Const(value) if (*value != 0) != wanted => Vec::new(),
        Expr::Atom(Fact::At(t, at)) => {
            let all = (0..threads[t.index()].locations.len()).map(LocationId::new);
            let there = all.filter(|l| at.contains(l) == wanted);
            vec![Way::from([(*t, there.collect())])]
        }
        Expr::Unary(Op1::Not, e) => sub(e, !wanted),
        Expr::Binary(op @ (Op2::And | Op2::Or), a, b) => {
            let (a, b) = (sub(a, wanted), sub(b, wanted));
            match (*op == Op2::And) == wanted {
                true => both(&a, &b),
                false if a.len() + b.len() <= MAX_WAYS => [a, b].concat(),
                false => anywhere,
            }
        }
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
            anywhere
        }
    }
}

/// The ways that are of both kinds.
fn both(a: &[Way], b: &[Way]) -> Vec<Way> {
    if a.len() * b.len() > MAX_WAYS {
        return if a.len() > b.len() { b } else { a }.to_vec();
    }
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    let meet = pairs.map(|(a, b)| {
        let mut way = a.clone();
        for (t, there) in b {
            way.entry(*t)
                .and_modify(|l| l.retain(|l| there.contains(l)))
                .or_insert_with(|| there.clone());
        }
        way
    });
    meet.collect()
}
