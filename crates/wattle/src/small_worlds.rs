//! Small worlds: before *holds for any number of threads* is told, the program itself, with its true
//! types and widths, is run with 1, 2, 3 … threads under the memory model. This is no proof; it catches
//! what engine and auditor might have in common.
//!
//! Limits are states, not time, so that the answer is the same everywhere. Families of several kinds
//! grow together: all numbers of threads whose largest is 1, then 2, and so on. Under TSO and PSO short
//! buffers come first, with as many threads as possible; longer ones after that.
//!
//! Where a program chooses among too many values to run, a few of them are taken ([`fewer_choices`]):
//! every run is still a run of the program.

use std::sync::Mutex;
use wattle_auditor::levels;
use wattle_auditor::meaning::Meaning;
use wattle_evidence::control::Pace;
use wattle_evidence::related::Met;
use wattle_evidence::{
    Answer, AnyNumber, Certificate, Control, Engine, OpenTask, Progress, Reason, SmallWorlds, Stop,
    Task, Trace,
};
use wattle_memory::reference::starts;
use wattle_memory::{Contents, MemoryModel};
use wattle_model::graph::Action;
use wattle_model::{Count, Counts, Expr, Init, Instance, Program, Type};
use wattle_params::lower::inside::{Limits, outside};
use wattle_params::lower::lower;
use wattle_search::question::{Explored, Manner, explore};
use wattle_search::rounds::Sizes;
use wattle_search::{Explicit, Order, Reduce};

/// Most threads in a family.
pub const THREADS: u32 = 5;
/// States of all small instances together.
pub const STATES: u64 = 100_000;
/// States with longer buffers than the first ones.
const STATES_LONGER: u64 = 30_000;
/// Pending stores of a thread that may store without end, at first and then.
pub const BUFFERED: [u32; 2] = [2, 6];
/// States of an instance, and threads in a family, that are compared with what a certificate stands for.
const COMPARED: usize = 2_000;
const COMPARED_THREADS: u32 = 3;
/// Values taken of a choice among too many.
const CHOICE: (i64, i64) = (-1, 2);

/// What small instances show.
pub enum Sampled {
    /// Nothing bad, as far as they were run.
    Fine(SmallWorlds),
    /// A run that ends badly.
    Broken(Box<Shown>),
    /// A run of an array-based system that does, line by line, and its number of threads.
    Ran(u32, Vec<String>),
    /// A state that the certificate does not stand for.
    Outside(String),
}

/// Runs small instances up to so many threads in each open family, and so many states; compares what
/// they meet with what a certificate stands for.
pub fn sample(
    task: &OpenTask<'_>,
    certificate: Option<&Certificate>,
    (threads, states): (u32, u64),
    control: &Control<'_>,
) -> Sampled {
    match task.of {
        AnyNumber::System(system) => {
            let meaning = certificate.map(|c| Meaning::new(system, task.model, c));
            let meaning = meaning.and_then(Result::ok).flatten();
            let excludes = |state: &Met<'_>| meaning.as_ref().and_then(|m| m.excludes(state));
            let limits = (threads as u8, states as usize);
            let stop = || control.stop().is_some();
            let small =
                wattle_params::small_worlds(system, task.model, Some(&excludes), limits, &stop);
            match (small.run, small.outside) {
                (Some(run), _) => Sampled::Ran(
                    u32::from(run.threads),
                    wattle_params::engine::tell(system, task.model, &run),
                ),
                (None, Some(what)) => Sampled::Outside(what),
                (None, None) => Sampled::Fine(small.worlds),
            }
        }
        AnyNumber::Program(program) => {
            let worlds = Worlds { program, task };
            let sampled = worlds.run(threads, states, control);
            let outside = match (&sampled, certificate) {
                (Sampled::Fine(_), Some(certificate)) => worlds.outside(certificate, control),
                _ => None,
            };
            outside.map_or(sampled, Sampled::Outside)
        }
    }
}

/// Instances of a program.
struct Worlds<'a> {
    program: &'a Program,
    task: &'a OpenTask<'a>,
}

/// A run that ends badly, and the instance it is of.
pub struct Shown {
    pub instance: Instance,
    pub trace: Trace,
    pub effort: Progress,
}

/// Ends a search after so many states.
struct AtMost<'c> {
    states: u64,
    seen: Mutex<u64>,
    /// Whoever runs beside it keeps its pace.
    outer: &'c Control<'c>,
}

impl Pace for AtMost<'_> {
    fn tick(&self, worker: &'static str, progress: Progress) -> Result<(), Stop> {
        if let Ok(mut seen) = self.seen.lock() {
            *seen = (*seen).max(progress.states);
        }
        match progress.states > self.states {
            true => Err(Stop::Memory),
            false => self.outer.poll(worker, progress),
        }
    }

    /// States are counted by ticks alone.
    fn is_over(&self) -> bool {
        self.outer.stop() == Some(Stop::Cancelled)
    }
}

impl Worlds<'_> {
    fn run(&self, threads: u32, states: u64, control: &Control<'_>) -> Sampled {
        let (program, few) = fewer_choices(self.program);
        let mut worlds = SmallWorlds {
            threads: 0,
            states: 0,
            complete: !few,
            not_run: None,
        };
        let longer = match self.task.model {
            MemoryModel::Sc => 0,
            MemoryModel::Tso | MemoryModel::Pso => states.min(STATES_LONGER),
        };
        for (buffered, most) in BUFFERED.into_iter().zip([states, longer]) {
            // Longer buffers make no difference where short ones were long enough.
            if worlds.complete && worlds.threads > 0 || most == 0 {
                break;
            }
            let mut left = most;
            for counts in self.numbers(threads) {
                if left == 0 {
                    worlds.complete = false;
                    break;
                }
                let instance = match program.instantiate(&counts) {
                    Ok(instance) if instance.threads.is_empty() => continue,
                    Ok(instance) => instance,
                    Err(e) => {
                        worlds.complete = false;
                        worlds.not_run.get_or_insert(e.to_string());
                        continue;
                    }
                };
                let task = self.task.on(&instance);
                let (found, effort) = match run(&task, buffered, left, control) {
                    Ok(found) => found,
                    Err(why) => {
                        worlds.complete = false;
                        worlds.not_run.get_or_insert(why);
                        continue;
                    }
                };
                left = left.saturating_sub(effort.states);
                worlds.states += effort.states;
                let largest = counts.0.values().max().copied().unwrap_or(0);
                worlds.threads = worlds.threads.max(largest);
                match found {
                    Explored::Bad(trace) => {
                        return Sampled::Broken(Box::new(Shown {
                            instance,
                            trace,
                            effort,
                        }));
                    }
                    Explored::Closed { .. } => {}
                    Explored::Cut(_) => worlds.complete = false,
                    Explored::Stopped(Stop::Memory) => {
                        worlds.complete = false;
                        left = 0;
                    }
                    Explored::Stopped(Stop::Time | Stop::Cancelled | Stop::Budget) => {
                        worlds.complete = false;
                        return Sampled::Fine(worlds);
                    }
                    Explored::Unclear(reason) => {
                        worlds.complete = false;
                        let why = wattle_report::text::reason(&reason, 0.0);
                        worlds.not_run.get_or_insert(why);
                    }
                }
            }
        }
        // What was run somewhere was run.
        if worlds.threads > 0 {
            worlds.not_run = None;
        }
        Sampled::Fine(worlds)
    }

    /// A state of a small instance that the certificate does not stand for. Where the proof takes for
    /// granted that numbers do not wrap around there is nothing to compare.
    fn outside(&self, certificate: &Certificate, control: &Control<'_>) -> Option<String> {
        if let Certificate::Counting(facts) = certificate {
            return crate::counting::outside(self.program, self.task, facts, control);
        }
        if let Certificate::Levels(certificate) = certificate {
            let (program, _) = fewer_choices(self.program);
            let instances = self.numbers(COMPARED_THREADS).into_iter();
            let instances = instances.filter_map(|counts| program.instantiate(&counts).ok());
            let instances: Vec<Instance> = instances.collect();
            let limits = (COMPARED, 2);
            return levels::outside(self.program, certificate, &instances, limits, control).ok()?;
        }
        if !matches!(certificate, Certificate::Cubes(_) | Certificate::Views(_)) {
            return None;
        }
        let lowered = lower(self.program, self.task.question).ok()?;
        if !lowered.may_wrap.is_empty() {
            return None;
        }
        let model = self.task.model;
        let meaning = Meaning::new(&lowered.system, model, certificate);
        let meaning = meaning.ok().flatten()?;
        let excludes = |state: &Met<'_>| meaning.excludes(state);
        let (program, _) = fewer_choices(self.program);
        let stop = || control.stop().is_some();
        let limits = Limits {
            states: COMPARED,
            buffer: 2,
        };
        self.numbers(COMPARED_THREADS).iter().find_map(|counts| {
            let instance = program.instantiate(counts).ok()?;
            outside(
                &program, &lowered, &excludes, model, &instance, limits, &stop,
            )
            .0
        })
    }

    /// Numbers of threads for the open families, those with fewer threads first.
    fn numbers(&self, threads: u32) -> Vec<Counts> {
        numbers(self.program, threads)
    }
}

/// Numbers of threads for the open families, those with fewer threads first.
pub fn numbers(program: &Program, threads: u32) -> Vec<Counts> {
    let families = program.families.iter();
    let open: Vec<&str> = families
        .filter(|f| f.count == Count::Any)
        .map(|f| f.name.as_str())
        .collect();
    let mut all: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in &open {
        let longer = |row: Vec<u32>| {
            (1..=threads).map(move |n| row.iter().copied().chain([n]).collect::<Vec<u32>>())
        };
        all = all.into_iter().flat_map(longer).take(MOST_WORLDS).collect();
    }
    all.sort_by_key(|row| (row.iter().max().copied(), row.iter().sum::<u32>()));
    let counts = |row: Vec<u32>| {
        let named = open.iter().map(|name| (*name).to_string());
        Counts(named.zip(row).collect())
    };
    all.into_iter().map(counts).collect()
}

/// Combinations of numbers of threads that are looked at.
const MOST_WORLDS: usize = 4_096;

pub fn run(
    task: &Task<'_>,
    buffered: u32,
    states: u64,
    control: &Control<'_>,
) -> Result<(Explored, Progress), String> {
    starts(task.instance).map_err(|refusal| refusal.to_string())?;
    if task.deadlock {
        return Ok(with_deadlocks(task, states, control));
    }
    let pace = AtMost {
        states,
        seen: Mutex::new(0),
        outer: control,
    };
    let few = control.stage(std::time::Duration::MAX).with_pace(&pace);
    let (threads, cells) = (task.instance.threads.len(), task.instance.cells.len());
    let contents = Contents::uniform(wattle_memory::ContentKind::default(), threads, cells);
    let manner = Manner {
        name: "small worlds",
        contents: &contents,
        // How many states there were is told: those of threads that are told apart.
        reductions: Reduce::Local.reductions(),
        order: Order::BreadthFirst,
        most_buffered: buffered,
        compress: false,
    };
    let mut sizes = Sizes::guess(task.instance, task.model);
    let explored = explore(task, &manner, &mut sizes, &few);
    let (found, mut effort) = explored.map_err(|refusal| refusal.to_string())?;
    let seen = pace.seen.lock().map_or(0, |seen| *seen);
    effort.states = effort.states.max(seen);
    Ok((found, effort))
}

/// The same with deadlocks, which the engine itself looks for.
fn with_deadlocks(task: &Task<'_>, states: u64, control: &Control<'_>) -> (Explored, Progress) {
    let pace = AtMost {
        states,
        seen: Mutex::new(0),
        outer: control,
    };
    let few = control.stage(std::time::Duration::MAX).with_pace(&pace);
    let answer = Explicit::default().run(task, &few);
    let effort = answer.effort();
    let explored = match answer {
        Answer::Reached { trace, .. } => Explored::Bad(trace),
        Answer::Unreachable { .. } => Explored::Closed {
            unreached: None,
            takes_all: false,
        },
        Answer::Bounded { limits, .. } => Explored::Cut(limits),
        Answer::Undecided { reason, .. } => match reason {
            Reason::Stopped { stop, .. } => Explored::Stopped(stop),
            reason => Explored::Unclear(reason),
        },
    };
    (explored, effort)
}

/// The program with a few values for each choice among too many, and whether there was one.
pub fn fewer_choices(program: &Program) -> (Program, bool) {
    let mut program = program.clone();
    let mut fewer = false;
    let wide = |ty: Type| match ty {
        Type::Int => true,
        Type::Wrap { bits, .. } => bits > 8,
        Type::Range { lo, hi } => hi.saturating_sub(lo) > 255,
        Type::Thread(_) => false,
    };
    // Of two ends of a range, one end and what follows it.
    let some = |ty: Type| match ty {
        Type::Int => CHOICE,
        Type::Wrap { signed: true, .. } => CHOICE,
        Type::Wrap { .. } => (0, CHOICE.1),
        Type::Range { lo, hi } => (lo, hi.min(lo.saturating_add(CHOICE.1 - CHOICE.0))),
        Type::Thread(_) => (-1, 0),
    };
    let starts = |ty: Type, init: &mut Init, fewer: &mut bool| {
        if *init == Init::Any && wide(ty) {
            *init = Init::All(Expr::Const(some(ty).1));
            *fewer = true;
        }
    };
    for region in &mut program.regions {
        starts(region.ty, &mut region.init, &mut fewer);
    }
    for family in &mut program.families {
        let types: Vec<Type> = family.registers.iter().map(|r| r.ty).collect();
        for register in &mut family.registers {
            starts(register.ty, &mut register.init, &mut fewer);
        }
        for step in &mut family.steps {
            let Action::Havoc { register, range } = &mut step.action else {
                continue;
            };
            match range {
                Some((lo, hi)) if hi.saturating_sub(*lo) > 255 => {
                    *hi = lo.saturating_add(CHOICE.1 - CHOICE.0);
                    fewer = true;
                }
                None if wide(types[register.index()]) => {
                    *range = Some(some(types[register.index()]));
                    fewer = true;
                }
                Some(_) | None => {}
            }
        }
    }
    (program, fewer)
}
