//! Buffers that forget: the compiled machine against the reference machine, for every content and
//! layout, and the order of precision with the compiled machine alone.
//!
//! Set `WATTLE_SEED` to try other programs, `WATTLE_PROGRAMS` to try more.

mod precision;

use std::collections::BTreeSet;
use wattle_evidence::Control;
use wattle_memory::compiled::{Code, Flaw, Machine, Reductions, Row, Unpack, Watched};
use wattle_memory::reference::{self, Outcome, State, evaluate};
use wattle_memory::{
    AtMostK, Bounds, ContentKind, Contents, Exact, Keeps, Layout, Multiset, NewestK, OldestK, Pso,
    Set, Tso,
};
use wattle_model::{Instance, Program, PropertyKind};
use wattle_random::{Loops, Shape, trial};
use wattle_search::explore::{Finished, Observer, Order};
use wattle_search::rounds::{self, Cut, Sizes, Subject};

/// Says where the question's target is, and stops after so many states or (if asked) there.
pub struct Watch<'i> {
    instance: &'i Instance,
    target: Option<Code>,
    reached: bool,
    left: usize,
}

impl Observer for Watch<'_> {
    fn fit(&mut self, machine: &Machine<'_>) {
        let question = self.instance.questions.first();
        self.target = question.map(|q| machine.condition(&q.target));
    }

    fn look(&mut self, machine: &Machine<'_>, state: &[u64]) -> Result<bool, Flaw> {
        if let (Some(target), Some(q)) = (&self.target, self.instance.questions.first())
            && (!q.only_final || machine.is_final(state))
        {
            self.reached |= machine.value(target, state).is_ok_and(|v| v != 0);
        }
        self.left = self.left.saturating_sub(1);
        Ok(self.left == 0)
    }

    fn fork(&self) -> Self {
        Watch {
            target: self.target.clone(),
            ..*self
        }
    }

    fn join(&mut self, other: Self) {
        self.reached |= other.reached;
    }
}

/// What a machine reaches.
#[derive(Debug, PartialEq, Eq)]
pub struct Reached<S: Ord> {
    pub states: BTreeSet<S>,
    pub fault: bool,
    pub full: bool,
    pub target: bool,
}

/// Everything the compiled machine reaches, or up to the first fault; `None` if that is too much.
pub fn compiled<S: Ord>(
    instance: &Instance,
    model: wattle_memory::MemoryModel,
    contents: &Contents,
    reductions: Reductions,
    most: usize,
    unpack: impl Fn(&Machine<'_>, &[u64]) -> S,
) -> Option<Reached<S>> {
    let view = match reductions {
        Reductions::NONE => Watched::nothing(instance),
        _ => Watched::of_question(instance, instance.questions.first()),
    };
    let plan = Subject {
        name: "test",
        instance,
        model,
        contents,
        view: &view,
        reductions,
        order: Order::BreadthFirst,
        most_buffered: 6,
        compress: false,
    };
    let look = || Watch {
        instance,
        target: None,
        reached: false,
        left: most,
    };
    let mut sizes = Sizes::guess(instance, model);
    let control = Control::unlimited();
    let outcome = rounds::run(&plan, &mut sizes, &control, look, |search, _, watch| {
        let store = &search.store;
        let numbers = 0..store.len() as u32;
        Reached {
            states: numbers
                .map(|i| unpack(search.machine, store.state(i)))
                .collect(),
            fault: false,
            full: search.notes.full.contains(&true),
            target: watch.reached,
        }
    });
    let outcome = outcome.ok()?;
    assert!(contents.keeps != Keeps::Oldest || outcome.cut == Cut::Nothing);
    let mut reached = outcome.value;
    match outcome.ended {
        Finished::Exhausted => {}
        Finished::Fault { .. } => reached.fault = true,
        _ => return None,
    }
    Some(reached)
}

/// Everything the reference machine reaches; `None` if that is too much.
fn reference<L: Layout, C: Row>(
    instance: &Instance,
    bounds: Vec<Bounds<C::Bound>>,
    most: usize,
) -> Option<Reached<State<L::Buffer<C>>>> {
    let machine = reference::Machine::<L, C>::with_bounds(instance, bounds).ok()?;
    let starts = machine.starts().ok()?;
    let mut work: Vec<_> = starts.iter().map(|s| machine.initial(s)).collect();
    let mut reached = Reached {
        states: work.iter().cloned().collect(),
        fault: false,
        full: false,
        target: false,
    };
    while let Some(state) = work.pop() {
        if reached.states.len() >= most {
            return None;
        }
        if let Some(q) = instance.questions.first()
            && machine.inside_atomic(&state).is_none()
            && (!q.only_final || machine.is_final(&state))
        {
            reached.target |= evaluate(&state, &q.target).is_ok_and(|v| v != 0);
        }
        for event in machine.events(&state) {
            match machine.apply(&state, &event) {
                Outcome::Next(next) => {
                    if reached.states.insert(next.clone()) {
                        work.push(next);
                    }
                }
                Outcome::Fault(_) => reached.fault = true,
                Outcome::Full(_) => reached.full = true,
            }
        }
    }
    Some(reached)
}

const MOST: usize = 3_000;

/// Compares one content; says whether there was something to compare.
fn compare<L: Unpack, C: Row>(
    instance: &Instance,
    keeps: Keeps,
    bounds: &[Bounds<usize>],
    bound: impl Fn(usize) -> C::Bound,
) -> Result<bool, String> {
    let own = bounds.iter().map(|b| Bounds {
        thread: bound(b.thread),
        cells: b.cells.iter().map(|k| bound(*k)).collect(),
    });
    let Some(wanted) = reference::<L, C>(instance, own.collect(), MOST) else {
        return Ok(false);
    };
    let contents = Contents {
        keeps,
        bounds: bounds.to_vec(),
    };
    let unpack = |machine: &Machine<'_>, state: &[u64]| machine.unpack::<L, C>(state);
    let run = |reductions| compiled(instance, L::MODEL, &contents, reductions, 2 * MOST, unpack);
    let name = format!("{} {keeps:?} {bounds:?}", L::MODEL);
    let got = run(Reductions::NONE).ok_or(format!("{name}: no end"))?;
    if wanted.fault != got.fault {
        return Err(format!("{name}: fault {}", wanted.fault));
    }
    if !wanted.fault && got != wanted {
        let lost = wanted.states.difference(&got.states).next();
        let made = got.states.difference(&wanted.states).next();
        return Err(format!(
            "{name}: full {} {}, target {} {}\nlost {lost:?}\nmade up {made:?}",
            wanted.full, got.full, wanted.target, got.target
        ));
    }
    // What is chained may overflow elsewhere.
    if wanted.full {
        return Ok(true);
    }
    let reduced = run(Reductions::ALL).ok_or(format!("{name}: reduced, no end"))?;
    // A fault is no hindrance for other runs to reach what is wanted.
    let question = instance.questions.first();
    let faults = question.is_none_or(|q| q.kind != PropertyKind::Reachable);
    let bad = faults && wanted.fault || wanted.target;
    if bad != (faults && reduced.fault || reduced.target) {
        return Err(format!("{name}: bad {bad}, not so with reductions"));
    }
    Ok(true)
}

fn layout<L: Unpack>(instance: &Instance, n: u64) -> Result<u64, String> {
    let cells = instance.cells.len();
    let threads = instance.threads.len();
    let uniform = |k| {
        Contents::uniform(
            ContentKind {
                keeps: Keeps::Oldest,
                k,
            },
            threads,
            cells,
        )
    };
    // Every buffer its own bound, the thread's as large as any (epochs are counted by it).
    let mut mixed = uniform(0).bounds;
    for (t, bounds) in mixed.iter_mut().enumerate() {
        for (c, k) in bounds.cells.iter_mut().enumerate() {
            *k = (n as usize / 7 + 2 * t + c) % 3;
        }
        bounds.thread = bounds.cells.iter().copied().max().unwrap_or(0);
    }
    let mut compared = 0;
    let mut count = |one: Result<bool, String>| one.map(|c| compared += u64::from(c));
    let none = uniform(0).bounds;
    count(compare::<L, Exact>(instance, Keeps::Exact, &none, |_| ()))?;
    count(compare::<L, Set>(instance, Keeps::Oldest, &none, |_| ()))?;
    count(compare::<L, Set>(instance, Keeps::Newest, &none, |_| ()))?;
    count(compare::<L, Multiset>(
        instance,
        Keeps::Multiset,
        &none,
        |_| (),
    ))?;
    for bounds in [uniform(1).bounds, uniform(2).bounds, mixed] {
        count(compare::<L, OldestK>(
            instance,
            Keeps::Oldest,
            &bounds,
            |k| k,
        ))?;
        count(compare::<L, NewestK>(
            instance,
            Keeps::Newest,
            &bounds,
            |k| k,
        ))?;
        count(compare::<L, AtMostK>(
            instance,
            Keeps::AtMost,
            &bounds,
            |k| k,
        ))?;
    }
    Ok(compared)
}

/// Why the program shows a disagreement, if it does.
fn complaint(program: &Program, n: u64, compared: &mut u64) -> Option<String> {
    let instance = program.instance().ok()?;
    let both = layout::<Tso>(&instance, n).and_then(|a| Ok(a + layout::<Pso>(&instance, n)?));
    match both {
        Ok(c) => {
            *compared += c;
            None
        }
        Err(why) => Some(why),
    }
}

fn agree(shape: &Shape, programs: u64, salt: u64) {
    let (programs, compared) = trial(shape, programs, salt, complaint);
    println!("{compared} comparisons");
    assert!(compared >= 12 * programs, "hardly anything was compared");
}

#[test]
fn machines_agree_without_loops() {
    let shape = Shape {
        threads: 2,
        ..Shape::default()
    };
    agree(&shape, 700, 0);
}

#[test]
fn machines_agree_on_faults() {
    let shape = Shape {
        threads: 2,
        statements: 3,
        faults: true,
        loops: Loops::Fenced,
        ..Shape::default()
    };
    agree(&shape, 500, 1 << 32);
}

/// Stores pile up without end: exact buffers and multisets have no last state, the others do.
#[test]
fn machines_agree_on_loops_that_store() {
    let shape = Shape {
        threads: 2,
        statements: 3,
        regions: 2,
        registers: 1,
        greatest: 1,
        arrays: false,
        loops: Loops::Any,
        ..Shape::default()
    };
    agree(&shape, 800, 2 << 32);
}
