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

/// The options of commands about one file.
#[derive(Debug, Args)]
pub struct Budget {
    /// Give up after this long (60s, 5m, 500ms)
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub timeout: Option<Duration>,
    /// Memory for the whole process (4G, 512M) [default: three quarters of what is free]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub memory: Option<u64>,
}

impl Budget {
    /// The limit of memory: as given, or what is sensible.
    pub fn limit(memory: Option<u64>) -> Option<u64> {
        memory.or_else(resources::sensible_limit)
    }

    /// Work on a file within the budget; `quiet` without a line about how far it is.
    pub fn within<T>(&self, file: &str, quiet: bool, work: impl FnOnce(&Control<'_>) -> T) -> T {
        let limit = Budget::limit(self.memory);
        let _guard = guard(file, self.timeout, limit);
        let line = progress::Line::new(quiet);
        let sink = |engine: &'static str, p| line.show(file, engine, p);
        let over = AtomicBool::new(false);
        let flags = [signals::interrupted()];
        let control = Control::unlimited()
            .with_timeout(self.timeout)
            .with_memory(limit)
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
    loop {
        std::thread::sleep(INTERVAL);
        let now = Instant::now();
        if signals::interrupted().load(Ordering::Relaxed) {
            asked.get_or_insert(now);
        }
        let ignored = asked.is_some_and(|t| now.duration_since(t) > GRACE);
        let most = watched().iter().filter_map(|w| w.most).min();
        let too_much = most.is_some_and(|m| resources::resident_memory().is_some_and(|r| r > m));
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
