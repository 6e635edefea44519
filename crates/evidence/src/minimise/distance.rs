//! How many events a run needs at least to reach its end, from where its threads are.
//!
//! Every end puts threads at certain locations: a failing step at its source, a question at the
//! locations it names. A thread takes one event for every step of its graph, so the shortest paths
//! to these locations, added up over the threads, bound the rest of the run from below.

use super::End;
use crate::task::Task;
use std::collections::BTreeMap;
use wattle_model::instance::{Fact, Thread};
use wattle_model::{Expr, LocationId, Op1, Op2, ThreadId};

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
        let distances = |way: &Way| {
            let to = way.iter().map(|(t, targets)| {
                let steps = distances(instance.thread(*t), targets);
                (t.index(), steps)
            });
            to.collect()
        };
        Distance {
            ways: ways.iter().map(distances).collect(),
            last,
        }
    }

    /// The events a run needs at least from threads at these locations; `usize::MAX` if there is none.
    pub fn from(&self, locations: &[LocationId]) -> usize {
        let of = |way: &Vec<(usize, Vec<usize>)>| {
            let steps = way.iter().map(|(t, steps)| steps[locations[*t].index()]);
            steps.fold(self.last, usize::saturating_add)
        };
        self.ways.iter().map(of).min().unwrap_or(usize::MAX)
    }
}

/// From every location the number of steps to the nearest target.
fn distances(thread: &Thread, targets: &[LocationId]) -> Vec<usize> {
    let mut steps = vec![usize::MAX; thread.locations.len()];
    for target in targets {
        steps[target.index()] = 0;
    }
    let mut reached: Vec<LocationId> = targets.to_vec();
    let mut into: Vec<Vec<LocationId>> = vec![Vec::new(); thread.locations.len()];
    for step in &thread.steps {
        into[step.target.index()].push(step.source);
    }
    let mut next = 0;
    while let Some(at) = reached.get(next).copied() {
        next += 1;
        for source in &into[at.index()] {
            if steps[source.index()] == usize::MAX {
                steps[source.index()] = steps[at.index()] + 1;
                reached.push(*source);
            }
        }
    }
    steps
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
