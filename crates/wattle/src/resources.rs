//! What the process uses, as the operating system tells it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

/// How often memory is looked at.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` while watching the process's memory; raises `over` when it passes the limit.
pub fn watching<T>(limit: Option<u64>, over: &AtomicBool, work: impl FnOnce() -> T) -> T {
    let Some(limit) = limit else { return work() };
    let (done, finished) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while finished.recv_timeout(INTERVAL) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                if resident_memory().is_some_and(|m| m > limit) {
                    over.store(true, Ordering::Relaxed);
                }
            }
        });
        let result = work();
        drop(done);
        result
    })
}
