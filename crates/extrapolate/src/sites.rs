//! Each thread on its own: where it can be, what its buffer can hold there, and its moves.
//!
//! A thread's moves depend on its own location and buffer and on whether somebody else holds the lock,
//! never on where the others are. So the reduced system (dan-2013 §3) is a product of one small graph
//! per thread. The counters `cnt` and `lhs` of the paper's reduction are part of these nodes: what
//! Rules 1 and 8 introduce predicates for is known exactly.

use rustc_hash::FxHashMap;
use wattle_evidence::{Control, Progress};
use wattle_model::{LocationId, ThreadId};
use wattle_predicates::cegar::abstraction::Halt;
use wattle_predicates::reduce::{Move, Next, Pending, Shape, System};

/// More nodes than this in all threads are refused.
const MOST_SITES: usize = 50_000;

/// Who holds the lock, as one thread sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lock {
    Free,
    Mine,
    Other,
}

/// Where one thread is, without its values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    pub location: LocationId,
    pub pending: Pending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Site { site: usize, lock: Lock },
    Fault,
    Overflow,
}

/// One thread's graph. Moves are by site and lock (in that order of [`Lock`]).
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub sites: Vec<Site>,
    pub moves: Vec<[Vec<(Move, To)>; 3]>,
}

/// All threads' graphs.
pub fn graphs(system: &System<'_>, control: &Control<'_>) -> Result<Vec<Graph>, Halt> {
    let mut all = Vec::new();
    let mut count = 0;
    let locks = uses_lock(system);
    for t in system.instance.thread_ids() {
        let graph = graph(system, t, locks, &mut count, control)?;
        all.push(graph);
    }
    Ok(all)
}

fn uses_lock(system: &System<'_>) -> bool {
    use wattle_model::graph::Action;
    let steps = system.instance.threads.iter().flat_map(|t| &t.steps);
    let mut actions = steps.map(|s| &s.action);
    actions.any(|a| matches!(a, Action::Lock))
}

fn graph(
    system: &System<'_>,
    t: ThreadId,
    locks: bool,
    count: &mut usize,
    control: &Control<'_>,
) -> Result<Graph, Halt> {
    let mut graph = Graph::default();
    let mut numbers: FxHashMap<Site, usize> = FxHashMap::default();
    let (start, _) = system.initial();
    let first = Site {
        location: start.locations[t.index()],
        pending: start.pending[t.index()].clone(),
    };
    numbers.insert(first.clone(), 0);
    graph.sites.push(first);
    // Some other thread, for the view in which it holds the lock.
    let other = system.instance.thread_ids().find(|o| *o != t);
    let mut next = 0;
    while next < graph.sites.len() {
        if next.is_multiple_of(64) {
            control.poll("extrapolate", Progress::default())?;
        }
        let site = graph.sites[next].clone();
        let mut moves: [Vec<(Move, To)>; 3] = Default::default();
        for (n, lock) in [Lock::Free, Lock::Mine, Lock::Other]
            .into_iter()
            .enumerate()
        {
            let holder = match lock {
                Lock::Free => None,
                _ if !locks => continue,
                Lock::Mine => Some(t),
                Lock::Other if other.is_none() => continue,
                Lock::Other => other,
            };
            let mut shape: Shape = start.clone();
            shape.locations[t.index()] = site.location;
            shape.pending[t.index()] = site.pending.clone();
            shape.holder = holder;
            for mv in system.moves(&shape)? {
                if mv.thread != t {
                    continue;
                }
                let to = match &mv.next {
                    Next::To(s) => {
                        let site = Site {
                            location: s.locations[t.index()],
                            pending: s.pending[t.index()].clone(),
                        };
                        let new = graph.sites.len();
                        let site = *numbers.entry(site.clone()).or_insert_with(|| {
                            graph.sites.push(site);
                            new
                        });
                        let lock = match s.holder {
                            None => Lock::Free,
                            Some(h) if h == t => Lock::Mine,
                            Some(_) => Lock::Other,
                        };
                        To::Site { site, lock }
                    }
                    Next::Fault => To::Fault,
                    Next::Overflow => To::Overflow,
                };
                moves[n].push((mv, to));
            }
        }
        graph.moves.push(moves);
        next += 1;
        *count += 1;
        if *count > MOST_SITES {
            let why = format!("the buffers can look in more than {MOST_SITES} ways");
            return Err(Halt::Other(why));
        }
    }
    Ok(graph)
}
