//! One search by several processes: [`mesh`] is who they are and the links between them, [`exchange`] rounds of messages on
//! timely dataflow, [`owner`] what each does, [`stuck`] deadlocks. Here a task's question is put to all of them.
//!
//! Every process runs this with the same task and comes to the same answer. Persistent sets are not used: whether a
//! state's events may be left out depends on what the owners of its successors have.

mod exchange;
pub mod mesh;
mod owner;
mod stuck;

pub use mesh::{Hosts, Lost, Mesh};

use crate::checkpoint::Turn;
use crate::crew::Share;
use crate::deadlock::Nothing;
use crate::explore::Observer;
use crate::path::{run_along, run_into_fault};
use crate::question::{self, Explored, Manner, Target};
use crate::rounds::{Cut, Sizes, Subject};
use crate::store::hash;
use exchange::{Builders, Exchange};
use owner::{End, Kind, Outcome, Owner, Shared};
use std::sync::atomic::AtomicU64;
use wattle_evidence::certificate::Unreached;
use wattle_evidence::{Control, End as RunEnd, Progress, Reason, Stop, Task, Trace};
use wattle_memory::compiled::{self, Machine, Watched};
use wattle_memory::reference::{self, Refusal};
use wattle_memory::{Keeps, Start};

/// What is searched and how, beside the plan.
#[derive(Clone, Copy)]
pub(crate) struct Together<'a> {
    pub mesh: &'a Mesh,
    /// All that the answer depends on: a search of another name is another search.
    pub name: &'a str,
}

/// Searches with all the others, and lets each owner do something at the end.
fn search<L: Observer, T: Send>(
    together: Together<'_>,
    plan: &Subject<'_, '_>,
    machine: &Machine<'_>,
    starts: &[Start],
    look: &L,
    control: &Control<'_>,
    at_the_end: impl Fn(&mut Owner<'_, '_, '_, L>, &Outcome) -> Result<T, Lost> + Sync,
) -> Result<(Outcome, T), Lost> {
    let mesh = together.mesh;
    let workers = control.workers();
    let is_cancelled = || control.stop() == Some(Stop::Cancelled);
    let name = format!("{} {:?} {workers}", together.name, plan.reductions);
    let words: Vec<u64> = name.bytes().map(u64::from).collect();
    let links = mesh.links(hash(&words), &is_cancelled)?;
    let mut builders = Builders::new(mesh, links, workers)?;
    let shared = Shared {
        mesh,
        control,
        name: plan.name,
        held: (0..workers)
            .map(|_| (AtomicU64::new(0), AtomicU64::new(0)))
            .collect(),
    };
    let ending = builders.ending();
    let looks: Vec<L> = (0..workers).map(|_| look.fork()).collect();
    let owners = std::mem::take(&mut builders.builders);
    let work = |number: usize, builder, look: L| {
        let exchange = Exchange::new(mesh, builder, ending.clone());
        let share = Share {
            number,
            of: workers,
        };
        let mut owner = Owner::new(machine, exchange, &shared, starts, look, share);
        let found = owner.search().and_then(|outcome| {
            let more = at_the_end(&mut owner, &outcome)?;
            Ok((outcome, more))
        });
        match &found {
            Ok(_) => (owner.exchange.close(), found),
            Err(_) => {
                owner.exchange.abandon();
                (false, found)
            }
        }
    };
    let work = &work;
    type Finished<T> = (bool, Result<(Outcome, T), Lost>);
    let mut found: Vec<Finished<T>> = std::thread::scope(|scope| {
        let all = owners.into_iter().zip(looks).enumerate();
        let threads: Vec<_> = all
            .map(|(number, (builder, look))| scope.spawn(move || work(number, builder, look)))
            .collect();
        let ended = threads.into_iter().map(|t| {
            t.join().unwrap_or_else(|_| {
                (
                    false,
                    Err(Lost("a worker of this process has failed".into())),
                )
            })
        });
        ended.collect()
    });
    builders.close(found.iter().all(|(closed, _)| *closed));
    let first = found.iter().position(|(_, f)| f.is_err()).unwrap_or(0);
    found.swap_remove(first).1
}

/// What came of a series of searches with the same question.
struct Found<'i, T> {
    machine: Machine<'i>,
    starts: Vec<Start>,
    outcome: Outcome,
    cut: Cut,
    more: T,
}

/// Searches until values and buffers have enough room, as [`crate::rounds`] does.
fn rounds<'i, L: Observer, T: Send>(
    together: Together<'_>,
    plan: &Subject<'_, 'i>,
    sizes: &mut Sizes,
    look: &L,
    control: &Control<'_>,
    at_the_end: impl Fn(&mut Owner<'_, '_, '_, L>, &Outcome) -> Result<T, Lost> + Sync,
) -> Result<Result<Found<'i, T>, Lost>, Refusal> {
    let starts = reference::starts(plan.instance)?;
    let mut machine = plan.first_machine(sizes)?;
    let mut complete: Option<Found<'i, T>> = None;
    loop {
        let found = search(
            together,
            plan,
            &machine,
            &starts,
            look,
            control,
            &at_the_end,
        );
        let (outcome, more) = match found {
            Ok(found) => found,
            Err(lost) => return Ok(Err(lost)),
        };
        if let End::Turns(turns) = &outcome.end {
            // Several owners may have met the same.
            let mut once: Vec<Turn> = Vec::new();
            for turn in turns {
                if !once.contains(turn) {
                    once.push(turn.clone());
                }
            }
            sizes.turn(&once, &machine, plan.most_buffered);
            machine = plan.machine(sizes)?;
            continue;
        }
        if let (End::Stopped(_), Some(smaller)) = (&outcome.end, complete.take()) {
            return Ok(Ok(smaller));
        }
        let full = &outcome.notes.full;
        let cut = match outcome.end == End::Exhausted && full.contains(&true) {
            true => Cut::Buffers(sizes.limits(plan, full)),
            false => Cut::Nothing,
        };
        let again = cut != Cut::Nothing
            && plan.contents.keeps != Keeps::AtMost
            && sizes.grow(full, plan.most_buffered);
        let found = Found {
            machine,
            starts: starts.clone(),
            outcome,
            cut,
            more,
        };
        if !again {
            return Ok(Ok(found));
        }
        machine = plan.machine(sizes)?;
        complete = Some(found);
    }
}

impl<T> Found<'_, T> {
    fn effort(&self) -> Progress {
        let Outcome { notes, depth, .. } = &self.outcome;
        let all = !notes.full.contains(&true) && notes.overflow.is_none();
        Progress {
            states: self.outcome.states,
            frontier: 0,
            memory: self.outcome.memory,
            depth: all.then_some(*depth),
        }
    }

    /// The run that ends with the state that ended the search.
    fn trace(&self, task: &Task<'_>, kind: Kind) -> Option<Trace> {
        let way = self.outcome.way.as_deref();
        let (run, end) = match kind {
            Kind::Fault => {
                let (run, found) = run_into_fault(&self.machine, &self.starts, way)?;
                let compiled::Found::Fault { thread, step, flaw } = found else {
                    return None;
                };
                let thread = wattle_model::ThreadId::new(run.who[thread.index()]);
                let fault = question::fault(task.instance, thread, step, flaw);
                (run, RunEnd::Fault(fault))
            }
            Kind::Target | Kind::NoValue => (
                run_along(&self.machine, &self.starts, way?)?,
                RunEnd::Target,
            ),
        };
        Some(Trace {
            model: task.model,
            start: run.start,
            events: run.events,
            end,
        })
    }
}

/// Looks for a fault and for the question's target, with all the others.
pub(crate) fn explore(
    task: &Task<'_>,
    manner: &Manner<'_>,
    sizes: &mut Sizes,
    control: &Control<'_>,
    together: Together<'_>,
) -> Result<(Explored, Progress), Refusal> {
    let view = Watched::of_question(task.instance, task.question());
    let mut plan = question::plan(task, manner, &view);
    plan.reductions.persistent = false;
    let target = Target::new(task.question());
    let found = rounds(
        together,
        &plan,
        sizes,
        &target,
        control,
        |owner, outcome| match outcome.end {
            End::Exhausted => unreached(task, owner),
            End::Bad(..) | End::Turns(_) | End::Stopped(_) => Ok(None),
        },
    )?;
    let found = match found {
        Ok(found) => found,
        Err(Lost(why)) => {
            let lost = Explored::Unclear(Reason::Other(why));
            return Ok((lost, Progress::default()));
        }
    };
    let other = |why: String| Explored::Unclear(Reason::Other(why));
    let explored = match &found.outcome.end {
        End::Bad(Kind::NoValue, state) => {
            let mut look = Target::new(task.question());
            look.fit(&found.machine);
            let why = match look.look(&found.machine, state) {
                Err(flaw) => flaw.kind(None).to_string(),
                Ok(_) => String::new(),
            };
            other(format!(
                "the property has no value in a reachable state: {why}"
            ))
        }
        End::Bad(kind, _) => match found.trace(task, *kind) {
            Some(trace) => Explored::Bad(trace),
            None => other("a run could not be rebuilt".into()),
        },
        End::Turns(_) => other("a value did not fit".into()),
        End::Stopped(stop) => Explored::Stopped(*stop),
        End::Exhausted => match (found.outcome.notes.overflow, found.cut.clone()) {
            (Some((t, s)), _) => Explored::Unclear(Reason::MachineOverflow {
                place: question::place(task.instance, t, s),
            }),
            (None, Cut::Buffers(limits)) => Explored::Cut(limits),
            (None, Cut::Nothing) => Explored::Closed {
                unreached: found.more.clone(),
                takes_all: false,
            },
        },
    };
    Ok((explored, found.effort()))
}

/// The places the question asks about where no thread is in any state of any owner.
fn unreached<L: Observer>(
    task: &Task<'_>,
    owner: &mut Owner<'_, '_, '_, L>,
) -> Result<Option<Unreached>, Lost> {
    let Some(places) = question::places(task) else {
        return Ok(None);
    };
    let mut left = places.clone();
    for number in 0..owner.store.len() as u32 {
        if left.is_empty() {
            break;
        }
        question::without(&mut left, owner.machine, owner.store.state(number));
    }
    let mine = places.iter().map(|p| u64::from(left.contains(p)));
    let all = owner.exchange.gather(&mine.collect::<Vec<u64>>())?;
    let nowhere = |i: usize| all.iter().all(|said| said.get(i) == Some(&1));
    let places = places.into_iter().enumerate();
    let places = places.filter(|(i, _)| nowhere(*i)).map(|(_, place)| place);
    Ok(Some(places.collect()))
}

/// What a search for deadlocks found: the run to the first one, if there is one.
pub(crate) enum Stuck {
    Never,
    Run(Trace),
    Cut(wattle_evidence::Limits),
    Stopped(Stop),
    Unclear(String),
}

/// Looks for a deadlock, with all the others.
pub(crate) fn deadlock(
    task: &Task<'_>,
    plan: &Subject<'_, '_>,
    control: &Control<'_>,
    together: Together<'_>,
) -> Result<(Stuck, Progress), Refusal> {
    let mut sizes = Sizes::guess(task.instance, task.model);
    let found = rounds(
        together,
        plan,
        &mut sizes,
        &Nothing,
        control,
        |owner, outcome| match outcome.end == End::Exhausted && !outcome.notes.full.contains(&true)
        {
            true => stuck::first(owner, control),
            false => Ok(Ok(None)),
        },
    )?;
    let found = match found {
        Ok(found) => found,
        Err(Lost(why)) => return Ok((Stuck::Unclear(why), Progress::default())),
    };
    let effort = found.effort();
    let stuck = match (&found.outcome.end, &found.cut, &found.more) {
        (_, _, Err(stop)) => Stuck::Stopped(*stop),
        (_, _, Ok(Some(way))) => match run_along(&found.machine, &found.starts, way) {
            Some(run) => Stuck::Run(Trace {
                model: task.model,
                start: run.start,
                events: run.events,
                end: RunEnd::Deadlock,
            }),
            None => Stuck::Unclear("a run could not be rebuilt".into()),
        },
        (End::Exhausted, Cut::Nothing, Ok(None)) => Stuck::Never,
        (End::Exhausted, Cut::Buffers(limits), Ok(None)) => Stuck::Cut(limits.clone()),
        (End::Stopped(stop), ..) => Stuck::Stopped(*stop),
        (End::Bad(..) | End::Turns(_), ..) => {
            Stuck::Unclear("the search for deadlocks was cut short".into())
        }
    };
    Ok((stuck, effort))
}
