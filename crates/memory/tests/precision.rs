//! The order of precision: what a buffer that remembers more can reach, one that remembers less can
//! reach too.
//!
//! ```text
//! at most k ⊆ exact ⊆ oldest k+1 ⊆ oldest k ⊆ set      exact ⊆ multiset ⊆ set
//!             exact ⊆ newest k+1 ⊆ newest k ⊆ set
//! ```
//!
//! What is compared is everything but the buffers: locations, registers, memory, who holds the lock,
//! whether all is over, and faults. Where buffers may grow without end the left side is followed
//! only so far, which is still a part of what it reaches. Set `WATTLE_SEED` to try other programs,
//! `WATTLE_PROGRAMS` to try more.

use std::collections::{BTreeSet, HashSet, VecDeque};
use wattle_memory::content::{AtMostK, Content, Exact, Multiset, NewestK, OldestK, Set};
use wattle_memory::reference::{Machine, Outcome};
use wattle_memory::{Fault, Layout, Pso, Tso};
use wattle_model::{Instance, LocationId, Program, ThreadId};
use wattle_random::{Loops, Shape, trial};

/// A state without its buffers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    locations: Vec<LocationId>,
    registers: Vec<Vec<i64>>,
    memory: Vec<i64>,
    holder: Option<ThreadId>,
    is_final: bool,
}

#[derive(Default)]
struct Reached {
    seen: BTreeSet<Seen>,
    faults: BTreeSet<(ThreadId, u32, String)>,
    complete: bool,
}

/// Everything the machine reaches within so many states.
fn reach<L: Layout, C: Content<Value = i64>>(
    instance: &Instance,
    bound: C::Bound,
    most: usize,
) -> Reached {
    let mut reached = Reached::default();
    let Ok(machine) = Machine::<L, C>::new(instance, bound) else {
        return reached;
    };
    let Ok(starts) = machine.starts() else {
        return reached;
    };
    let mut known = HashSet::new();
    let mut queue: VecDeque<_> = starts.iter().map(|s| machine.initial(s)).collect();
    known.extend(queue.iter().cloned());
    while let Some(state) = queue.pop_front() {
        if machine.inside_atomic(&state).is_none() {
            reached.seen.insert(Seen {
                locations: state.locations.clone(),
                registers: state.registers.clone(),
                memory: state.memory.clone(),
                holder: state.holder,
                is_final: machine.is_final(&state),
            });
        }
        for event in machine.events(&state) {
            match machine.apply(&state, &event) {
                Outcome::Next(next) if known.len() >= most && !known.contains(&next) => {
                    return reached;
                }
                Outcome::Next(next) => {
                    if known.insert(next.clone()) {
                        queue.push_back(next);
                    }
                }
                Outcome::Fault(Fault { thread, step, kind }) => {
                    reached.faults.insert((thread, step.0, kind.to_string()));
                }
                // More than this content is made for: the run is not followed.
                Outcome::Full(_) => {}
            }
        }
    }
    reached.complete = true;
    reached
}

/// States up to which a machine is followed.
const MOST: usize = 2_000;

/// Checks inclusion if the coarser side is complete; says whether it was.
fn included(
    (fine, one): (&str, &Reached),
    (coarse, other): (&str, &Reached),
) -> Result<bool, String> {
    if !other.complete {
        return Ok(false);
    }
    if let Some(lost) = one.seen.difference(&other.seen).next() {
        return Err(format!(
            "{coarse} does not reach what {fine} does: {lost:?}"
        ));
    }
    if let Some(lost) = one.faults.difference(&other.faults).next() {
        return Err(format!("{coarse} has no fault that {fine} has: {lost:?}"));
    }
    Ok(true)
}

fn order<L: Layout>(instance: &Instance) -> Result<u64, String> {
    let exact = reach::<L, Exact>(instance, (), MOST);
    let multiset = reach::<L, Multiset>(instance, (), MOST);
    let set = reach::<L, Set>(instance, (), 4 * MOST);
    let mut compared = 0;
    let mut check = |one: (&str, &Reached), other: (&str, &Reached)| {
        included(one, other).map(|c| compared += u64::from(c))
    };
    check(("exact", &exact), ("multiset", &multiset))?;
    check(("multiset", &multiset), ("set", &set))?;
    check(("exact", &exact), ("set", &set))?;
    let oldest = |k| reach::<L, OldestK>(instance, k, 4 * MOST);
    let newest = |k| reach::<L, NewestK>(instance, k, 4 * MOST);
    let (mut last_oldest, mut last_newest) = (oldest(0), newest(0));
    // With nothing in order both are the set.
    check(("set", &set), ("oldest 0", &last_oldest))?;
    check(("oldest 0", &last_oldest), ("set", &set))?;
    check(("set", &set), ("newest 0", &last_newest))?;
    check(("newest 0", &last_newest), ("set", &set))?;
    for k in 1..=3 {
        let (next_oldest, next_newest) = (oldest(k), newest(k));
        let at_most = reach::<L, AtMostK>(instance, k, MOST);
        check(("oldest k+1", &next_oldest), ("oldest k", &last_oldest))?;
        check(("newest k+1", &next_newest), ("newest k", &last_newest))?;
        check(("exact", &exact), ("oldest k", &next_oldest))?;
        check(("exact", &exact), ("newest k", &next_newest))?;
        check(("at most k", &at_most), ("exact", &exact))?;
        (last_oldest, last_newest) = (next_oldest, next_newest);
    }
    Ok(compared)
}

fn complaint(program: &Program, compared: &mut u64) -> Option<String> {
    let instance = program.instance().ok()?;
    let tso = order::<Tso>(&instance).map_err(|e| format!("TSO: {e}"));
    let pso = order::<Pso>(&instance).map_err(|e| format!("PSO: {e}"));
    match (tso, pso) {
        (Ok(a), Ok(b)) => {
            *compared += a + b;
            None
        }
        (Err(e), _) | (_, Err(e)) => Some(e),
    }
}

fn check(shape: &Shape, programs: u64, salt: u64) {
    let (programs, compared) = trial(shape, programs, salt, |p, _, compared| {
        complaint(p, compared)
    });
    println!("{compared} comparisons");
    assert!(compared >= 20 * programs, "hardly anything was compared");
}

#[test]
fn without_loops() {
    let shape = Shape {
        threads: 2,
        faults: true,
        properties: false,
        ..Shape::default()
    };
    check(&shape, 300, 0);
}

#[test]
fn with_loops() {
    let shape = Shape {
        threads: 2,
        statements: 3,
        regions: 2,
        registers: 1,
        greatest: 1,
        arrays: false,
        loops: Loops::Any,
        properties: false,
        ..Shape::default()
    };
    check(&shape, 150, 1 << 32);
}
