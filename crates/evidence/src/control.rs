//! Budgets, cancellation and progress. Every loop that can run long polls.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Why a run was stopped before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Time,
    Memory,
    Cancelled,
    /// The work it was given is done ([`Control::with_budget`]).
    Budget,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::Time => "out of time",
            Stop::Memory => "out of memory",
            Stop::Cancelled => "interrupted",
            Stop::Budget => "out of budget",
        })
    }
}

/// How far a run has come; what the progress line shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// States, cubes or whatever the engine counts.
    pub states: u64,
    pub frontier: u64,
    /// Bytes the engine holds, by its own account.
    pub memory: u64,
    /// Every run of so many steps was seen; steps that are nobody else's business are not counted.
    pub depth: Option<u32>,
}

impl Progress {
    /// So many are done; nothing else is known.
    pub fn of(states: u64) -> Self {
        Progress {
            states,
            ..Progress::default()
        }
    }
}

/// Keeps engines that run side by side in step.
pub trait Pace: Sync {
    /// The work between two polls is done. May wait for others, or say that it is enough.
    fn tick(&self, worker: &'static str, progress: Progress) -> Result<(), Stop>;

    /// Whether nobody waits for the answer any more. Asked between ticks, and no work by itself.
    fn is_over(&self) -> bool;
}

/// The budget of one run.
pub struct Control<'c> {
    started: Instant,
    deadline: Option<Instant>,
    memory: Option<u64>,
    budget: Option<u64>,
    /// Polls so far, where nobody else counts work.
    polls: AtomicU64,
    workers: usize,
    cancel: &'c [&'c AtomicBool],
    over: Option<&'c AtomicBool>,
    sink: Option<&'c (dyn Fn(&'static str, Progress) + Sync)>,
    pace: Option<&'c dyn Pace>,
}

impl<'c> Control<'c> {
    /// No limits; for tests and small inputs.
    pub fn unlimited() -> Self {
        Control {
            started: Instant::now(),
            deadline: None,
            memory: None,
            budget: None,
            polls: AtomicU64::new(0),
            workers: 1,
            cancel: &[],
            over: None,
            sink: None,
            pace: None,
        }
    }

    pub fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.deadline = timeout.and_then(|t| self.started.checked_add(t));
        self
    }

    pub fn with_memory(mut self, bytes: Option<u64>) -> Self {
        self.memory = bytes;
        self
    }

    /// So much work for each engine, in virtual microseconds: unlike time it is the same on every
    /// machine. Engines side by side have clocks of their own; elsewhere a poll counts a thousand.
    pub fn with_budget(mut self, work: Option<u64>) -> Self {
        self.budget = work;
        self
    }

    /// A search may run on so many threads at once. What it answers does not depend on it.
    pub fn with_workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// On how many threads a search may run at once.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The work each engine may do.
    pub fn budget(&self) -> Option<u64> {
        self.budget
    }

    /// Stops as soon as one of the flags is set.
    pub fn with_cancel(mut self, flags: &'c [&'c AtomicBool]) -> Self {
        self.cancel = flags;
        self
    }

    /// Stops as out of memory as soon as the flag is set: whoever measures the process raises it.
    pub fn with_alarm(mut self, over: &'c AtomicBool) -> Self {
        self.over = Some(over);
        self
    }

    pub fn with_sink(mut self, sink: &'c (dyn Fn(&'static str, Progress) + Sync)) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Ticks at every poll.
    pub fn with_pace(mut self, pace: &'c dyn Pace) -> Self {
        self.pace = Some(pace);
        self
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn memory_limit(&self) -> Option<u64> {
        self.memory
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Time left, if there is a deadline.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline
            .map(|d| d.saturating_duration_since(Instant::now()))
    }

    /// A budget of at most `part` of what is left, for one stage of a plan.
    pub fn stage(&self, part: Duration) -> Control<'c> {
        let end = Instant::now().checked_add(part);
        Control {
            started: self.started,
            deadline: match (self.deadline, end) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            memory: self.memory,
            budget: self.budget,
            polls: AtomicU64::new(0),
            workers: self.workers,
            cancel: self.cancel,
            over: self.over,
            sink: self.sink,
            pace: self.pace,
        }
    }

    /// Why to stop, whatever the run itself has used.
    pub fn stop(&self) -> Option<Stop> {
        let raised = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        // Who is cancelled because memory ran out should say so.
        if self.over.is_some_and(raised) {
            return Some(Stop::Memory);
        }
        if self.cancel.iter().any(|c| raised(c)) || self.pace.is_some_and(Pace::is_over) {
            return Some(Stop::Cancelled);
        }
        let late = self.deadline.is_some_and(|d| Instant::now() >= d);
        late.then_some(Stop::Time)
    }

    /// Whether to go on, for work that comes before, after or between what is polled.
    pub fn go_on(&self) -> Result<(), Stop> {
        self.stop().map_or(Ok(()), Err)
    }

    /// To be called every few thousand operations (about every millisecond): reports progress and
    /// says whether to go on.
    pub fn poll(&self, engine: &'static str, progress: Progress) -> Result<(), Stop> {
        if let Some(sink) = self.sink {
            sink(engine, progress);
        }
        if let Some(pace) = self.pace {
            pace.tick(engine, progress)?;
        } else if let Some(budget) = self.budget
            && self.polls.fetch_add(1, Ordering::Relaxed) >= budget / POLL
        {
            return Err(Stop::Budget);
        }
        if let Some(stop) = self.stop() {
            return Err(stop);
        }
        if self.memory.is_some_and(|m| progress.memory > m) {
            return Err(Stop::Memory);
        }
        Ok(())
    }
}

/// What a poll counts where there is no clock.
const POLL: u64 = 1000;

/// Looks at a control once in so much work: for loops whose turns are too short to look at the
/// clock, and too many not to.
pub struct Meter<'m> {
    control: &'m Control<'m>,
    spent: Cell<u32>,
}

impl<'m> Meter<'m> {
    /// About a millisecond, if a turn is a handful of comparisons.
    const EVERY: u32 = 1 << 13;

    pub fn new(control: &'m Control<'m>) -> Self {
        Meter {
            control,
            spent: Cell::new(0),
        }
    }

    /// So many turns of work are done.
    pub fn spend(&self, turns: usize) -> Result<(), Stop> {
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        let spent = self.spent.get().saturating_add(turns);
        if spent < Self::EVERY {
            self.spent.set(spent);
            return Ok(());
        }
        self.spent.set(0);
        self.control.go_on()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_told_apart() {
        let (raised, calm) = (AtomicBool::new(true), AtomicBool::new(false));
        let (up, down) = ([&raised], [&calm]);
        let control = Control::unlimited().with_cancel(&up);
        assert_eq!(control.go_on(), Err(Stop::Cancelled));
        assert_eq!(control.with_alarm(&raised).go_on(), Err(Stop::Memory));
        let control = Control::unlimited().with_cancel(&down).with_alarm(&calm);
        assert_eq!(control.go_on(), Ok(()));
        let late = control.with_timeout(Some(Duration::ZERO));
        assert_eq!(late.go_on(), Err(Stop::Time));
    }

    #[test]
    fn a_budget_is_a_number_of_polls() {
        let control = Control::unlimited().with_budget(Some(3 * POLL));
        let polls = (0..9).take_while(|_| control.poll("test", Progress::default()).is_ok());
        assert_eq!(polls.count(), 3);
        let stop = control.poll("test", Progress::default());
        assert_eq!(stop, Err(Stop::Budget));
    }

    #[test]
    fn a_meter_looks_by_work() {
        let raised = AtomicBool::new(true);
        let flags = [&raised];
        let control = Control::unlimited().with_cancel(&flags);
        let meter = Meter::new(&control);
        let turns = (0..2 * Meter::EVERY).take_while(|_| meter.spend(1).is_ok());
        assert_eq!(turns.count() as u32, Meter::EVERY - 1);
        assert_eq!(meter.spend(usize::MAX), Err(Stop::Cancelled));
    }
}
