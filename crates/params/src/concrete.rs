//! From a path of cubes to a run of the reference machine with a concrete number of threads.
//!
//! The path fixes which transitions each thread takes and in which order; the search below finds
//! when entries drain and how threads interleave. Any bad state met on the way will do.

use crate::compile::Compiled;
use crate::cube::{Cube, OTHER};
use crate::drain::DRAIN;
use crate::lin::{self, Lin, Op};
use crate::machine::{Candidates, Event, Machine, Move, State};
use crate::search::Node;
use crate::view::{self, View};
use rustc_hash::FxHashSet;
use wattle_memory::MemoryModel;

/// A violation: so many threads, from this state by these events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub threads: u8,
    pub start: State,
    pub events: Vec<Event>,
}

/// A thread of the path: a constant, or one of those to be numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    Constant(u16),
    Free(usize),
}

/// States tried before giving up.
const TRIED: usize = 60_000;

/// Writes remembered, and views kept for each step, along a path.
const REMEMBERED: usize = 8;
const WIDTH: usize = 400;

/// A run along the path that ends in a bad state.
pub fn concretise(
    compiled: &Compiled<'_>,
    nodes: &[Node],
    start: &Cube,
    stop: &dyn Fn() -> bool,
) -> Option<Run> {
    let plan = plan(compiled, nodes, start)?;
    let mut starts = plan.starts.into_iter();
    // Drains find their own places.
    let steps = plan.steps.into_iter().filter(|(t, _)| *t != DRAIN);
    let steps: Vec<_> = steps.collect();
    starts.find_map(|s| guided(&plan.machine, s, &steps, stop))
}

/// Views on runs along the path, for samples: the instance and what was seen.
pub fn along<'a>(
    compiled: &Compiled<'a>,
    nodes: &[Node],
    start: &Cube,
    stop: &dyn Fn() -> bool,
) -> Option<(Machine<'a>, Vec<View>)> {
    let plan = plan(compiled, nodes, start)?;
    let candidates = Candidates::of(plan.machine.system);
    let mut level: Vec<View> = plan.starts.iter().take(8).map(View::of).collect();
    let mut all = level.clone();
    let most = REMEMBERED;
    for (transition, args) in &plan.steps {
        let mut seen: FxHashSet<View> = FxHashSet::default();
        let mut next: Vec<View> = Vec::new();
        for v in &level {
            let mut add = |v: View| {
                if next.len() < WIDTH && seen.insert(v.clone()) {
                    next.push(v);
                }
            };
            match *transition {
                DRAIN => view::drains(&plan.machine, v, most, &mut add),
                t => view::steps_of(&plan.machine, v, (t, args), &candidates, most, &mut add),
            }
        }
        all.extend(next.iter().cloned());
        level = next;
        if stop() {
            break;
        }
    }
    Some((plan.machine, all))
}

/// An instance, its initial states and the steps to take.
struct Prepared<'a> {
    machine: Machine<'a>,
    starts: Vec<State>,
    steps: Vec<(usize, Vec<u8>)>,
}

fn plan<'a>(compiled: &Compiled<'a>, nodes: &[Node], start: &Cube) -> Option<Prepared<'a>> {
    let mut free = 0;
    let mut fresh = |fixed: u16| match fixed {
        0 => {
            free += 1;
            Actor::Free(free - 1)
        }
        k => Actor::Constant(k),
    };
    let mut ids: Vec<Actor> = nodes[0].cube.fixed.iter().map(|f| fresh(*f)).collect();
    let first = ids.clone();
    let mut steps: Vec<(usize, Vec<Actor>)> = Vec::new();
    let mut orders: Vec<(usize, usize)> = Vec::new();
    note_order(&nodes[0].cube, &ids, &mut orders);
    for (i, node) in nodes.iter().enumerate() {
        let Some((_, step)) = &node.step else { break };
        let parent = &nodes.get(i + 1)?.cube;
        let fixed: Vec<u16> = parent.fixed.iter().chain(&step.joined).copied().collect();
        let mut pre: Vec<Option<Actor>> = vec![None; fixed.len()];
        for (id, old) in ids.iter().zip(&step.kept) {
            *pre.get_mut(usize::from(*old))? = Some(*id);
        }
        let pre: Vec<Actor> = pre
            .iter()
            .zip(&fixed)
            .map(|(p, f)| p.unwrap_or_else(|| fresh(*f)))
            .collect();
        let args = step.args.iter().map(|a| pre[usize::from(*a)]).collect();
        steps.push((step.transition, args));
        ids = pre[..parent.threads()].to_vec();
        note_order(parent, &ids, &mut orders);
    }
    let numbers = number(free, compiled.constants, &orders);
    let needed = usize::from(compiled.constants) + free;
    let params = compiled
        .system
        .bad
        .iter()
        .map(|q| q.params.len())
        .min()
        .unwrap_or(0);
    let threads = match compiled.system.threads {
        Some(n) => n as usize,
        None => needed.max(params).max(1),
    };
    let threads = u8::try_from(threads).ok().filter(|n| *n <= 16)?;
    let thread = |a: &Actor| match a {
        Actor::Constant(k) => *k as u8,
        Actor::Free(i) => numbers[*i],
    };
    let machine = Machine::new(compiled.system, compiled.model, threads);
    let steps: Vec<(usize, Vec<u8>)> = steps
        .iter()
        .map(|(t, args)| (*t, args.iter().map(thread).collect()))
        .collect();
    if steps
        .iter()
        .any(|(_, args)| args.iter().any(|a| *a > threads))
    {
        return None;
    }
    let first: Vec<u8> = first.iter().map(thread).collect();
    let mut candidates = Candidates::of(compiled.system);
    candidates.limit = 64;
    let wish = wishes(compiled, &machine, start, &first);
    let (starts, _) = machine.initial_among(&candidates, &|p| {
        wish.iter().find(|(q, _)| *q == p).map(|(_, v)| v.clone())
    });
    let starts = starts.into_iter().take(64).collect();
    Some(Prepared {
        machine,
        starts,
        steps,
    })
}

fn note_order(cube: &Cube, ids: &[Actor], orders: &mut Vec<(usize, usize)>) {
    for (i, later) in cube.before.iter().enumerate() {
        for j in 0..ids.len() {
            if later & 1 << j != 0
                && let (Some(Actor::Free(a)), Some(Actor::Free(b))) = (ids.get(i), ids.get(j))
            {
                orders.push((*a, *b));
            }
        }
    }
}

/// Numbers for the free threads after the constants, respecting the order as far as possible.
fn number(free: usize, constants: u16, orders: &[(usize, usize)]) -> Vec<u8> {
    let mut numbers = vec![0u8; free];
    let mut left: Vec<usize> = (0..free).collect();
    let mut next = constants as u8 + 1;
    while !left.is_empty() {
        let minimal = left.iter().position(|t| {
            !orders
                .iter()
                .any(|(a, b)| b == t && a != t && left.contains(a))
        });
        let t = left.remove(minimal.unwrap_or(0));
        numbers[t] = next;
        next += 1;
    }
    numbers
}

/// Values for the initial state that the cube asks for, by position.
fn wishes(
    compiled: &Compiled<'_>,
    machine: &Machine<'_>,
    start: &Cube,
    threads: &[u8],
) -> Vec<(usize, Vec<i64>)> {
    let position = |slot: crate::slot::Slot| {
        let args: Option<Vec<u8>> = slot
            .args()
            .map(|a| threads.get(usize::from(a)).copied())
            .collect();
        Some(machine.position(slot.array(), &args?))
    };
    let mut out = Vec::new();
    for (s, m) in &start.doms {
        let Some(p) = position(*s) else { continue };
        let values: Vec<i64> = match compiled.is_thread(start, *s) {
            false => (0..120).filter(|v| m & 1 << v != 0).collect(),
            true => {
                let named = (0..start.threads().min(threads.len()))
                    .filter(|t| m & 1 << t != 0)
                    .map(|t| i64::from(threads[t]));
                let others = (1..=machine.threads)
                    .filter(|t| m & OTHER != 0 && !threads.contains(t))
                    .map(i64::from);
                named.chain(others).collect()
            }
        };
        if !values.is_empty() {
            out.push((p, values));
        }
    }
    for (list, integer) in [(&start.ints, true), (&start.reals, false)] {
        let mut known: Vec<Lin> = list.clone();
        let mut slots: Vec<_> = list
            .iter()
            .flat_map(|l| l.terms.iter().map(|(s, _)| *s))
            .collect();
        slots.sort_unstable();
        slots.dedup();
        for s in slots {
            let tried = (0..40)
                .chain((1..10).map(|n| -n))
                .chain([50, 64, 100, 128, 255, 256, 1000]);
            let found = tried.into_iter().find_map(|v: i64| {
                let mut with = known.clone();
                with.push(Lin {
                    terms: vec![(s, 1)],
                    constant: -v,
                    op: Op::Eq,
                });
                lin::satisfiable(&with, integer).then_some((v, with))
            });
            if let (Some((v, with)), Some(p)) = (found, position(s)) {
                known = with;
                out.push((p, vec![v]));
            }
        }
    }
    out
}

/// Breadth-first over the interleavings of the given steps and the drains between them.
fn guided(
    machine: &Machine<'_>,
    start: State,
    steps: &[(usize, Vec<u8>)],
    stop: &dyn Fn() -> bool,
) -> Option<Run> {
    let candidates = &Candidates::of(machine.system);
    // Under SC the order of the path is the order of the run.
    let lane = |(t, args): &(usize, Vec<u8>)| match (
        machine.model,
        machine.system.transitions[*t].actor,
    ) {
        (MemoryModel::Sc, _) | (_, None) => 0,
        (_, Some(a)) => args[usize::from(a)],
    };
    let mut lanes: Vec<Vec<usize>> = vec![Vec::new(); usize::from(machine.threads) + 1];
    for (i, s) in steps.iter().enumerate() {
        lanes[usize::from(lane(s))].push(i);
    }
    let mut seen: FxHashSet<(Vec<u8>, State)> = FxHashSet::default();
    let mut list = vec![(
        vec![0u8; lanes.len()],
        start.clone(),
        None::<(usize, Event)>,
    )];
    seen.insert((list[0].0.clone(), start.clone()));
    let mut at = 0;
    let mut found = machine.bad(&start).map(|_| 0);
    while found.is_none() && at < list.len() && list.len() < TRIED {
        if at % 256 == 255 && stop() {
            return None;
        }
        let (places, mut state, _) = list[at].clone();
        let mut next: Vec<(Vec<u8>, State, Event)> = Vec::new();
        for (l, lane) in lanes.iter().enumerate() {
            if let Some(i) = lane.get(usize::from(places[l])) {
                let (t, args) = &steps[*i];
                let step = machine.step(*t, args);
                machine.ways(&mut state, &step, candidates, &mut |choices, s| {
                    let mut places = places.clone();
                    places[l] += 1;
                    next.push((places, s.clone(), Move::Step(&step, choices).event()));
                });
            }
        }
        for (thread, entry) in machine.drains(&state) {
            let event = Event::Drain { thread, entry };
            if let Some(s) = machine.apply(&state, &event) {
                next.push((places.clone(), s, event));
            }
        }
        for (places, s, event) in next {
            if seen.insert((places.clone(), s.clone())) {
                if found.is_none() && machine.bad(&s).is_some() {
                    found = Some(list.len());
                }
                list.push((places, s, Some((at, event))));
            }
        }
        at += 1;
    }
    let mut i = found?;
    let mut events = Vec::new();
    while let Some((parent, event)) = &list[i].2 {
        events.push(event.clone());
        i = *parent;
    }
    events.reverse();
    Some(Run {
        threads: machine.threads,
        start,
        events,
    })
}

/// Replays a run on the reference machine: whether it is one and ends in a bad state.
pub fn replays(system: &wattle_model::array::ArraySystem, model: MemoryModel, run: &Run) -> bool {
    if (system.threads).is_some_and(|n| n != u32::from(run.threads)) {
        return false;
    }
    let machine = Machine::new(system, model, run.threads);
    if run.start.values.len() != machine.size() || !machine.is_initial(&run.start) {
        return false;
    }
    let mut state = run.start.clone();
    for e in &run.events {
        match machine.apply(&state, e) {
            Some(next) => state = next,
            None => return false,
        }
    }
    machine.bad(&state).is_some()
}
