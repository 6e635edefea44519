//! Time and memory: what a command may use, and who sees to it.
//!
//! There are two lines. Everything that may run long looks at a [`Control`] and stops with what it
//! knows. Behind it stands a guard, on a thread of its own, for whatever does not look often enough:
//! it ends the process, some seconds after the time is up or a signal came, or as soon as memory is far
//! past the limit.

use super::exit::Exit;
use super::{output, progress, signals, units};
use clap::Args;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use wattle::resources;
use wattle_evidence::{Control, Stop};

/// What the work on one file may use.
#[derive(Debug, Args)]
pub struct Budget {
    /// Time for each file (60s, 5m, 500ms), or `none` [default: 5m, none with --budget]
    #[arg(long, value_name = "TIME", value_parser = units::timeout)]
    timeout: Option<units::Timeout>,
    /// Memory for the whole process (4G, 512M) [default: three quarters of what is free]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    memory: Option<u64>,
    /// Work for each engine and question, in units of about a millisecond that are counted and not
    /// measured: who runs out of it does so on every machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=u64::MAX / 1000))]
    budget: Option<u64>,
    /// Threads that a search runs on at the same time; answers and traces are the same for any number
    /// [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Option<u16>,
}

/// The time a file has if nobody says otherwise.
const DEFAULT_TIME: Duration = Duration::from_secs(300);

impl Budget {
    /// The limit of memory: as given, or what is sensible.
    pub fn bytes(&self) -> Option<u64> {
        self.memory.or_else(resources::sensible_limit)
    }

    /// The limit of time: as given, or some minutes.
    pub fn time(&self) -> Option<Duration> {
        match (&self.timeout, self.budget) {
            (Some(timeout), _) => timeout.0,
            (None, Some(_)) => None,
            (None, None) => Some(DEFAULT_TIME),
        }
    }

    /// The limit of work, in virtual microseconds.
    pub fn work(&self) -> Option<u64> {
        self.budget.map(|n| n * 1000)
    }

    /// How many threads a search may have, if that was said.
    pub fn workers_asked(&self) -> Option<usize> {
        self.workers.map(usize::from)
    }

    /// How many threads a search may have.
    pub fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.map_or_else(cores, usize::from)
    }

    /// Work on a file within the budget; `quiet` without a line about how far it is.
    pub fn within<T>(&self, file: &str, quiet: bool, work: impl FnOnce(&Control<'_>) -> T) -> T {
        self.within_line(file, &progress::Line::new(quiet), work)
    }

    /// The same with a line that several files share.
    pub fn within_line<T>(
        &self,
        file: &str,
        line: &progress::Line,
        work: impl FnOnce(&Control<'_>) -> T,
    ) -> T {
        let limit = self.bytes();
        let _guard = guard(file, self.time(), limit);
        let sink = |engine: &'static str, p| line.show(file, engine, p);
        let over = AtomicBool::new(false);
        let flags = [signals::interrupted()];
        let control = Control::unlimited()
            .with_timeout(self.time())
            .with_memory(limit)
            .with_budget(self.work())
            .with_workers(self.workers())
            .with_cancel(&flags)
            .with_alarm(&over)
            .with_sink(&sink);
        resources::watching(limit, &over, || work(&control))
    }
}

/// How long after the end of its time, or after a signal, a command may take to tell what it knows.
const GRACE: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_millis(20);

/// Work that is watched.
struct Watched {
    number: u64,
    file: String,
    end: Option<Instant>,
    /// More than this and the process ends.
    most: Option<u64>,
}

fn watched() -> MutexGuard<'static, Vec<Watched>> {
    static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches over the work on a file until it is dropped. Signals are listened to from then on.
#[must_use]
pub fn guard(file: &str, timeout: Option<Duration>, memory: Option<u64>) -> Guard {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    static THREAD: OnceLock<()> = OnceLock::new();
    signals::listen();
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let late = |t: Duration| Instant::now().checked_add(t)?.checked_add(GRACE);
    watched().push(Watched {
        number,
        file: file.to_string(),
        end: timeout.and_then(late),
        // A table that grows is there twice for a moment.
        most: memory.map(|m| m.saturating_add(m / 4).saturating_add(MORE)),
    });
    THREAD.get_or_init(|| {
        std::thread::spawn(watch);
    });
    Guard(number)
}

/// Bytes that are not the work's.
const MORE: u64 = 48 << 20;

pub struct Guard(u64);

impl Drop for Guard {
    fn drop(&mut self) {
        watched().retain(|w| w.number != self.0);
    }
}

/// Looks for ever.
fn watch() {
    let mut asked: Option<Instant> = None;
    let mut was_over = false;
    loop {
        std::thread::sleep(INTERVAL);
        let now = Instant::now();
        if signals::interrupted().load(Ordering::Relaxed) {
            asked.get_or_insert(now);
        }
        let ignored = asked.is_some_and(|t| now.duration_since(t) > GRACE);
        let most = watched().iter().filter_map(|w| w.most).min();
        let over = most.is_some_and(|m| resources::resident_memory().is_some_and(|r| r > m));
        // Who sees it at the same time as we do ends by itself before we look again.
        let too_much = over && was_over;
        was_over = over;
        let all = watched();
        let late = |w: &&Watched| w.end.is_some_and(|end| now > end);
        let (stop, file) = match (all.first(), all.iter().find(late)) {
            (Some(first), _) if too_much => (Stop::Memory, &first.file),
            (Some(first), _) if ignored => (Stop::Cancelled, &first.file),
            (_, Some(late)) => (Stop::Time, &late.file),
            _ => continue,
        };
        output::note(&format!("{file}: undecided: {stop}, ended at once\n"));
        std::process::exit(Exit::Undecided.code());
    }
}
