//! Robustness against its definition: on small acyclic programs every run is listed, and a program is
//! robust if and only if every run under TSO (PSO) has the program order, reads-from relation and
//! store order of some SC run.

mod random;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use wattle_auditor::audit_robustness;
use wattle_evidence::Control;
use wattle_evidence::happens_before;
use wattle_memory::layout::Layout;
use wattle_memory::reference::{Machine, Outcome, State};
use wattle_memory::{Event, Exact, MemoryModel, Pso, Sc, Start, Tso};
use wattle_model::graph::Action;
use wattle_model::instance::Address;
use wattle_model::{CellId, Instance, StepId};
use wattle_robust::{Finding, Goal, Options, search};

/// A store: thread and position among the thread's steps.
type Store = (usize, usize);

/// What happens-before is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct History {
    steps: Vec<Vec<StepId>>,
    reads: BTreeMap<(usize, usize), Option<Store>>,
    order: BTreeMap<CellId, Vec<Store>>,
    pending: BTreeMap<(usize, CellId), Vec<Store>>,
}

fn cell(address: &Address) -> CellId {
    match address {
        Address::Cell(c) => *c,
        Address::Computed { base, .. } => *base,
    }
}

fn extend<L: Layout>(instance: &Instance, history: &History, event: &Event) -> History {
    let mut h = history.clone();
    match *event {
        Event::Drain { thread, cell, .. } => {
            let list = h.pending.get_mut(&(thread.index(), cell)).unwrap();
            let store = list.remove(0);
            if list.is_empty() {
                h.pending.remove(&(thread.index(), cell));
            }
            h.order.entry(cell).or_default().push(store);
        }
        Event::Step { thread, step, .. } => {
            let t = thread.index();
            let me = (t, h.steps[t].len());
            h.steps[t].push(step);
            let source = instance.thread(thread).step(step).source;
            let atomic = instance.thread(thread).atomic[source.index()];
            match &instance.thread(thread).step(step).action {
                Action::Load { place, .. } => {
                    let c = cell(place);
                    let own = h.pending.get(&(t, c)).and_then(|p| p.last().copied());
                    let memory = h.order.get(&c).and_then(|o| o.last().copied());
                    h.reads.insert(me, own.or(memory));
                }
                Action::Store { place, .. } => {
                    let c = cell(place);
                    if atomic || L::MODEL == MemoryModel::Sc {
                        h.order.entry(c).or_default().push(me);
                    } else {
                        h.pending.entry((t, c)).or_default().push(me);
                    }
                }
                _ => {}
            }
        }
    }
    h
}

struct Runs {
    histories: BTreeMap<History, Vec<Event>>,
    complete: bool,
}

/// Every maximal run, up to its history.
fn runs<L: Layout>(instance: &Instance, start: &Start, limit: usize) -> Runs {
    let machine = Machine::<L, Exact>::new(instance, ()).unwrap();
    let history = History {
        steps: vec![Vec::new(); instance.threads.len()],
        ..History::default()
    };
    let mut seen: HashSet<(State<L::Buffer<Exact>>, History)> = HashSet::new();
    let mut work = vec![(machine.initial(start), history, Vec::new())];
    let mut histories = BTreeMap::new();
    while let Some((state, history, events)) = work.pop() {
        if !seen.insert((state.clone(), history.clone())) {
            continue;
        }
        if seen.len() > limit {
            return Runs {
                histories,
                complete: false,
            };
        }
        let mut next = Vec::new();
        let mut inside = vec![(state, history.clone(), events.clone())];
        // A block is one event: one that gets stuck was never entered.
        while let Some((state, history, events)) = inside.pop() {
            for event in machine.events(&state) {
                if let Outcome::Next(after) = machine.apply(&state, &event) {
                    let mut longer: Vec<Event> = events.clone();
                    longer.push(event);
                    let on = match machine.inside_atomic(&after) {
                        Some(_) => &mut inside,
                        None => &mut next,
                    };
                    on.push((after, extend::<L>(instance, &history, &event), longer));
                }
            }
        }
        if next.is_empty() {
            assert!(history.pending.is_empty());
            histories.insert(history, events);
        }
        work.extend(next);
    }
    Runs {
        histories,
        complete: true,
    }
}

fn wtl(program: &wattle_model::Program) -> String {
    wattle_model::print::to_wtl(program)
}

fn check(program: &wattle_model::Program, model: MemoryModel) -> Option<bool> {
    let instance = program.instance().unwrap();
    let start = wattle_memory::reference::starts(&instance)
        .unwrap()
        .remove(0);
    let sc = runs::<Sc>(&instance, &start, 20_000);
    let weak = match model {
        MemoryModel::Pso => runs::<Pso>(&instance, &start, 60_000),
        _ => runs::<Tso>(&instance, &start, 60_000),
    };
    if !sc.complete || !weak.complete {
        return None;
    }
    let mut robust = true;
    let mut checked = BTreeSet::new();
    for (history, events) in &weak.histories {
        let same = sc.histories.contains_key(history);
        robust &= same;
        if checked.len() < 40 && checked.insert(history) {
            let relation = happens_before::relation(&instance, model, &start, events).unwrap();
            assert_eq!(
                relation.cycle().is_none(),
                same,
                "{}\n{events:?}",
                wtl(program)
            );
        }
    }
    let control = Control::unlimited();
    let found = search(&instance, Options::new(Goal::Robustness, model), &control);
    match found {
        Finding::Free { .. } => assert!(robust, "missed an attack ({model})\n{}", wtl(program)),
        Finding::Found { attack, .. } => {
            assert!(
                !robust,
                "invented an attack ({model})\n{}\n{attack:?}",
                wtl(program)
            );
            assert!(!attack.cycle.is_empty() && !attack.crossings.is_empty());
        }
        Finding::Undecided { reason, .. } => panic!("undecided: {reason:?}\n{}", wtl(program)),
    }
    if model == MemoryModel::Tso {
        let audited = audit_robustness(&instance, &control).is_ok();
        assert_eq!(audited, robust, "the auditor is wrong\n{}", wtl(program));
    }
    let race = search(&instance, Options::new(Goal::Triangular, model), &control);
    if matches!(race, Finding::Free { .. }) {
        assert!(robust, "no race but not robust\n{}", wtl(program));
    }
    Some(robust)
}

/// `WATTLE_FUZZ=20` runs twenty times as many programs, with other seeds.
fn many(model: MemoryModel, seed: u64, programs: usize, shape: random::Shape) {
    let more = std::env::var("WATTLE_FUZZ")
        .ok()
        .and_then(|v| v.parse::<usize>().ok());
    let (seed, programs) = match more {
        Some(n) => (seed + 1000 * n as u64, programs * n),
        None => (seed, programs),
    };
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut robust, mut not, mut skipped) = (0, 0, 0);
    for _ in 0..programs {
        match check(&random::program(&mut rng, shape), model) {
            Some(true) => robust += 1,
            Some(false) => not += 1,
            None => skipped += 1,
        }
    }
    println!("{model}: {robust} robust, {not} not, {skipped} skipped");
    assert!(robust > programs / 40 && not > programs / 40);
    assert!(skipped * 20 <= programs, "too many have too many runs");
}

#[test]
fn tso_two_threads() {
    many(MemoryModel::Tso, 1, 3000, random::Shape::plain(2, 5));
}

#[test]
fn tso_three_threads() {
    many(MemoryModel::Tso, 2, 700, random::Shape::plain(3, 3));
}

#[test]
fn tso_atomic_blocks() {
    many(
        MemoryModel::Tso,
        3,
        1500,
        random::Shape::plain(2, 4).atomic(),
    );
    many(
        MemoryModel::Tso,
        4,
        400,
        random::Shape::plain(3, 3).atomic(),
    );
}

#[test]
fn tso_locks() {
    many(
        MemoryModel::Tso,
        5,
        1500,
        random::Shape::plain(2, 4).locks(),
    );
    many(MemoryModel::Tso, 6, 300, random::Shape::plain(3, 3).locks());
}

/// Atomic blocks inside lock regions, and beside them.
#[test]
fn blocks_inside_lock_regions() {
    let shape = |threads, steps| random::Shape::plain(threads, steps).atomic().locks();
    many(MemoryModel::Tso, 10, 1500, shape(2, 4));
    many(MemoryModel::Tso, 11, 300, shape(3, 2));
    many(MemoryModel::Pso, 12, 700, shape(2, 3));
}

/// Under PSO the stores of a thread that holds the lock can overtake each other.
#[test]
fn pso_locks() {
    let shape = random::Shape::plain(2, 4).locks();
    many(MemoryModel::Pso, 13, 1000, shape);
}

#[test]
fn pso_two_threads() {
    many(MemoryModel::Pso, 7, 2000, random::Shape::plain(2, 5));
}

#[test]
fn pso_three_threads_and_blocks() {
    many(MemoryModel::Pso, 8, 400, random::Shape::plain(3, 3));
    many(
        MemoryModel::Pso,
        9,
        700,
        random::Shape::plain(2, 4).atomic(),
    );
}

fn decided(text: &str) -> Option<bool> {
    let program = wattle_syntax::wtl::parse(text).program;
    check(&program.expect("it parses"), MemoryModel::Tso)
}

/// Two loads on both sides of a store do not see the inside of another thread's lock region.
#[test]
fn nobody_sees_the_inside_of_a_lock_region() {
    let text = "
        shared x, y;
        thread p { local a, b; a = y; x = 1; b = y; }
        thread q { lock; y = 2; y = 1; unlock; }
    ";
    assert_eq!(decided(text), Some(true));
    let text = include_str!("../../../examples/soundness/robust-rc4.wtl");
    assert_eq!(decided(text), Some(true));
}

#[test]
fn a_block_that_gets_stuck_is_no_part_of_a_cycle() {
    let text = include_str!("../../../examples/soundness/robust-blocked-atomic.wtl");
    assert_eq!(decided(text), Some(true));
    // The same with an assumption that can come true.
    let text = "
        shared x, y;
        thread p { local b; x = 1; b = y; }
        thread q { local a; atomic { y = 1; } atomic { a = x; assume a == 0; } }
    ";
    assert_eq!(decided(text), Some(false));
}
