//! What the process uses, as the operating system tells it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Bytes of memory in use now; `None` where the system does not say.
pub fn resident_memory() -> Option<u64> {
    field("VmRSS:")
}

/// The most the process ever had in memory; 0 where the system does not say.
pub fn peak_memory() -> u64 {
    field("VmHWM:").unwrap_or(0)
}

/// Three quarters of the memory that is free now: what a run may use if nobody says otherwise.
/// `None` where the system does not say.
pub fn sensible_limit() -> Option<u64> {
    read("/proc/meminfo", "MemAvailable:").map(|free| free / 4 * 3)
}

fn field(name: &str) -> Option<u64> {
    read("/proc/self/status", name)
}

fn read(file: &str, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(file).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Processor time of the process so far; time since it was first asked where the system does not say.
pub fn processor_time() -> Duration {
    #[cfg(unix)]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
        Duration::new(seconds, nanoseconds)
    }
    #[cfg(not(unix))]
    ticks(11)
}

/// The same of the processes it has started and that have ended.
pub fn processor_time_of_children() -> Duration {
    ticks(13)
}

/// Two fields after the name of the program, added.
fn ticks(first: usize) -> Duration {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let ticks = || {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program, in parentheses, may contain anything.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace().skip(first);
        let mut next = || fields.next()?.parse::<u64>().ok();
        Some(next()? + next()?)
    };
    match ticks() {
        Some(ticks) => Duration::from_millis(10 * ticks),
        None => FIRST.get_or_init(Instant::now).elapsed(),
    }
}

/// How often it is looked at what the process uses.
const MEMORY_INTERVAL: Duration = Duration::from_millis(20);
const TIME_INTERVAL: Duration = Duration::from_millis(10);

/// Runs `work` while watching the process's memory; raises `over` when it passes the limit.
pub fn watching<T>(limit: Option<u64>, over: &AtomicBool, work: impl FnOnce() -> T) -> T {
    match limit {
        None => work(),
        Some(limit) => {
            let is_over = || resident_memory().is_some_and(|m| m > limit);
            while_looking(MEMORY_INTERVAL, is_over, over, work)
        }
    }
}

/// Runs `work` and raises `over` when it has used so much processor time; says how much it used.
pub fn timed<T>(limit: Duration, over: &AtomicBool, work: impl FnOnce() -> T) -> (T, Duration) {
    let before = processor_time();
    let spent = || processor_time().saturating_sub(before);
    let result = while_looking(TIME_INTERVAL, || spent() > limit, over, work);
    (result, spent())
}

/// Looks now and then, on a thread of its own.
fn while_looking<T>(
    interval: Duration,
    is_over: impl Fn() -> bool + Send,
    over: &AtomicBool,
    work: impl FnOnce() -> T,
) -> T {
    let (done, finished) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while finished.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                if is_over() {
                    over.store(true, Ordering::Relaxed);
                }
            }
        });
        let result = work();
        drop(done);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_stopped_by_what_it_uses() {
        let over = AtomicBool::new(false);
        let (turns, spent) = timed(Duration::from_millis(30), &over, || {
            let mut turns = 0u64;
            while !over.load(Ordering::Relaxed) {
                turns = std::hint::black_box(turns + 1);
            }
            turns
        });
        assert!(turns > 0 && spent > Duration::from_millis(30));
    }
}
