//! Traces a person wants to read: shortest first, then fewest thread switches, then fewest delayed
//! stores.
//!
//! Loops are cut out first. Then a layered search on the reference machine finds the best run exactly:
//! all runs of one length before any longer one, and among runs to the same state the one with fewer
//! switches, then fewer delays; runs that cannot end within the length of the best trace so far are
//! left out ([`distance`], [`layers`]). Where no run can be shorter, runs with as few switches as possible are looked for
//! first, then those with one more. The search follows the trace's own steps, thread by thread, in any order; and then
//! everything the program can do, while that stays small. Whatever comes out is replayed; a trace that
//! does not replay is thrown away and the old one kept.

mod distance;
mod layers;

use crate::control::{Control, Progress};
use crate::task::Task;
use crate::trace::{End, Trace};
use layers::Search;
use rustc_hash::FxHashMap;
use wattle_memory::reference::{Machine, Snapshot, State, starts};
use wattle_memory::{Event, Exact, Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::graph::Action;
use wattle_model::instance::{Step, Thread};
use wattle_model::{Instance, LocationId, ThreadId};

/// Nodes of a search before it is given up, if there is only a prettier trace to be found and no shorter one, and if
/// there may be; and the numbers all of them together may hold.
const PRETTY_NODES: usize = 4_000;
const MAX_NODES: usize = 20_000;
const MAX_NUMBERS: usize = 4_000_000;
/// Replays spent on cutting loops, and events that all of them together may take.
const MAX_CUTS: usize = 2_000;
const MAX_REPLAYED: usize = 200_000;

/// The best trace found with the same kind of end; at worst the one given.
pub fn minimise(task: &Task<'_>, trace: &Trace, control: &Control<'_>) -> Trace {
    match task.model {
        MemoryModel::Sc => run::<Sc>(task, trace, control),
        MemoryModel::Tso => run::<Tso>(task, trace, control),
        MemoryModel::Pso => run::<Pso>(task, trace, control),
    }
}

/// Length, thread switches, delayed stores: what a better trace has less of, in this order.
pub fn cost(task: &Task<'_>, trace: &Trace) -> (usize, usize, usize) {
    let events = &trace.events;
    let switches = events.windows(2).filter(|w| w[0].thread() != w[1].thread());
    let delayed = events.iter().enumerate().filter(|(i, e)| {
        puts(task.instance, task.model, e)
            && !matches!(events.get(i + 1), Some(Event::Drain { thread, .. }) if *thread == e.thread())
    });
    (events.len(), switches.count(), delayed.count())
}

/// Whether the event puts an entry into a buffer.
fn puts(instance: &Instance, model: MemoryModel, event: &Event) -> bool {
    match event {
        Event::Drain { .. } => false,
        Event::Step { thread, step, .. } => {
            let thread = instance.thread(*thread);
            is_put(thread, model, thread.step(*step))
        }
    }
}

fn is_put(thread: &Thread, model: MemoryModel, step: &Step) -> bool {
    let buffered = model != MemoryModel::Sc && !thread.direct[step.source.index()];
    buffered && matches!(step.action, Action::Store { .. })
}

fn run<L: Layout>(task: &Task<'_>, given: &Trace, control: &Control<'_>) -> Trace {
    let Ok(machine) = Machine::<L, Exact>::new(task.instance, ()) else {
        return given.clone();
    };
    let instance = task.instance;
    let registers: usize = instance.threads.iter().map(|t| t.registers.len()).sum();
    let size = 1 + instance.cells.len() + registers + 4 * instance.threads.len();
    let search = Search::<L> {
        task,
        max_nodes: (MAX_NUMBERS / size).min(MAX_NODES),
        machine,
        end: &given.end,
        control,
    };
    let mut best = cut_loops(&search, cut_repeats(task, given.clone(), control));
    let better = |best: &Trace, found: Option<Trace>| {
        let found = found.filter(|f| cost(task, f) < cost(task, best));
        found.filter(|f| f.check_within(task, control).is_ok())
    };
    let own = own_steps(task.instance, &best);
    let start = std::slice::from_ref(&best.start);
    let found = search.best(start, cost(task, &best), Some((&own, &best)));
    best = better(&best, found).unwrap_or(best);
    // Deadlocks are not recognised state by state.
    if given.end != End::Deadlock {
        let starts = starts(task.instance).unwrap_or_default();
        if starts.len() > 1 || !takes_all(task) {
            let found = search.best(&starts, cost(task, &best), None);
            best = better(&best, found).unwrap_or(best);
        }
    }
    best
}

/// Whether every run to the end takes the same steps of each thread.
fn takes_all(task: &Task<'_>) -> bool {
    let straight = |t: &Thread| {
        let chooses = |s: &Step| matches!(s.action, Action::Havoc { .. });
        t.outgoing.iter().all(|out| out.len() < 2) && !t.steps.iter().any(chooses)
    };
    task.question().is_some_and(|q| q.only_final) && task.instance.threads.iter().all(straight)
}

/// Every thread's own steps, in order.
fn own_steps(instance: &Instance, trace: &Trace) -> Vec<Vec<Event>> {
    let mut own = vec![Vec::new(); instance.threads.len()];
    for e in &trace.events {
        if let Event::Step { thread, .. } = e {
            own[thread.index()].push(*e);
        }
    }
    own
}

/// Takes out everything between two visits of the same state.
fn cut_repeats(task: &Task<'_>, trace: Trace, control: &Control<'_>) -> Trace {
    let Ok(states) = trace.check_within(task, control) else {
        return trace;
    };
    let mut last: FxHashMap<&Snapshot, usize> = FxHashMap::default();
    for (i, state) in states.iter().enumerate() {
        last.insert(state, i);
    }
    let mut events = Vec::new();
    let mut i = 0;
    while i < states.len() {
        i = last.get(&states[i]).copied().unwrap_or(i);
        events.extend(trace.events.get(i));
        i += 1;
    }
    let shorter = Trace {
        events,
        ..trace.clone()
    };
    match shorter.events.len() < trace.events.len() && shorter.check_within(task, control).is_ok() {
        true => shorter,
        false => trace,
    }
}

/// Takes out, while the trace still shows its end: single events, and every stretch of one thread's
/// events between two visits of the same location.
fn cut_loops<L: Layout>(search: &Search<'_, L>, mut best: Trace) -> Trace {
    let replays = match best.end {
        // Each check explores what can still happen.
        End::Deadlock => MAX_CUTS / 40,
        End::Target | End::Fault(_) => MAX_CUTS,
    };
    let mut budget = replays.min(MAX_REPLAYED / (1 + best.events.len()));
    while let Some(states) = search.states(&best) {
        let shorter = cuts(&best, &states, budget).into_iter().find_map(|cut| {
            budget = budget.checked_sub(1)?;
            let control = search.control;
            control.poll("minimise", Progress::default()).ok()?;
            let kept = |(i, e): &(usize, &Event)| !cut.takes(*i, e);
            let events = best.events.iter().enumerate().filter(kept);
            // What comes before the cut is as it was.
            let rest = events.clone().skip_while(|(i, _)| *i < cut.first);
            if !search.is_shown(&states[cut.first], rest.map(|(_, e)| e)) {
                return None;
            }
            let shorter = Trace {
                events: events.map(|(_, e)| *e).collect(),
                ..best.clone()
            };
            let real = shorter.check_within(search.task, control).is_ok();
            real.then_some(shorter)
        });
        match shorter {
            Some(shorter) => best = shorter,
            None => break,
        }
    }
    best
}

/// The events of one thread from the first to the last index.
struct Cut {
    thread: ThreadId,
    first: usize,
    last: usize,
    size: usize,
}

impl Cut {
    fn takes(&self, index: usize, event: &Event) -> bool {
        (self.first..=self.last).contains(&index) && event.thread() == self.thread
    }
}

/// The cuts worth trying, at most `most`; longest first.
fn cuts<B>(trace: &Trace, states: &[State<B>], most: usize) -> Vec<Cut> {
    let events = &trace.events;
    let mut cuts: Vec<Cut> = Vec::new();
    let fault = usize::from(matches!(trace.end, End::Fault(_)));
    // Where each thread was before each of its own events, and the index of that event.
    let mut seen: FxHashMap<(ThreadId, LocationId), (usize, usize)> = FxHashMap::default();
    let mut taken: FxHashMap<ThreadId, usize> = FxHashMap::default();
    let cuttable = events.len().saturating_sub(fault);
    for (last, event) in events[..cuttable].iter().enumerate() {
        let thread = event.thread();
        let location = |i: usize| states[i].locations[thread.index()];
        let count = taken.entry(thread).or_default();
        seen.insert((thread, location(last)), (last, *count));
        *count += 1;
        // One event alone: a drain nobody needs, a step at the end of its thread.
        cuts.push(Cut {
            thread,
            first: last,
            last,
            size: 1,
        });
        if let Some((first, before)) = seen.get(&(thread, location(last + 1)))
            && *first < last
        {
            cuts.push(Cut {
                thread,
                first: *first,
                last,
                size: *count - before,
            });
        }
    }
    cuts.sort_by_key(|cut| std::cmp::Reverse(cut.size));
    cuts.truncate(most);
    cuts
}
