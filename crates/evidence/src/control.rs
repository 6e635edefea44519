//! Budgets, cancellation and progress. Every loop that can run long polls.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Why a run was stopped before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Time,
    Memory,
    Cancelled,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::Time => "out of time",
            Stop::Memory => "out of memory",
            Stop::Cancelled => "interrupted",
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
}

/// Keeps engines that run side by side in step.
pub trait Pace: Sync {
    /// The work between two polls is done. May wait for others, or say that it is enough.
    fn tick(&self, worker: &'static str, progress: Progress) -> Result<(), Stop>;
}

/// The budget of one run.
pub struct Control<'c> {
    started: Instant,
    deadline: Option<Instant>,
    memory: Option<u64>,
    cancel: &'c [&'c AtomicBool],
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
            cancel: &[],
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

    /// Stops as soon as one of the flags is set.
    pub fn with_cancel(mut self, flags: &'c [&'c AtomicBool]) -> Self {
        self.cancel = flags;
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
            cancel: self.cancel,
            sink: self.sink,
            pace: self.pace,
        }
    }

    /// Why to stop, whatever the run itself has used.
    pub fn stop(&self) -> Option<Stop> {
        if self.cancel.iter().any(|c| c.load(Ordering::Relaxed)) {
            return Some(Stop::Cancelled);
        }
        let late = self.deadline.is_some_and(|d| Instant::now() >= d);
        late.then_some(Stop::Time)
    }

    /// To be called every few thousand operations (about every millisecond): reports progress and
    /// says whether to go on.
    pub fn poll(&self, engine: &'static str, progress: Progress) -> Result<(), Stop> {
        if let Some(sink) = self.sink {
            sink(engine, progress);
        }
        if let Some(pace) = self.pace {
            pace.tick(engine, progress)?;
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
