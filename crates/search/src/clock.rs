//! Processor time of this thread, so that a busy machine does not spoil a measurement.

use std::time::{Duration, Instant};

pub struct Clock {
    wall: Instant,
    processor: Option<Duration>,
}

impl Clock {
    pub fn start() -> Self {
        Clock {
            wall: Instant::now(),
            processor: processor_time(),
        }
    }

    /// Processor time since the start, or time on the wall where the system does not tell.
    pub fn elapsed(&self) -> Duration {
        match (self.processor, processor_time()) {
            (Some(then), Some(now)) => now.saturating_sub(then),
            _ => self.wall.elapsed(),
        }
    }
}

/// Nanoseconds the thread has run, as the kernel counts them.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}
