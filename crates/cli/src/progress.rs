//! The progress line: on a terminal only, on standard error, a few times a second.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wattle_evidence::Progress;

pub struct Line {
    shown: bool,
    started: Instant,
    last: Mutex<Option<Instant>>,
}

/// Whether there is a line that has to go before anything else is written.
static WRITTEN: AtomicBool = AtomicBool::new(false);

const INTERVAL: Duration = Duration::from_millis(200);

impl Line {
    pub fn new(quiet: bool) -> Self {
        Line {
            shown: !quiet && std::io::stderr().is_terminal(),
            started: Instant::now(),
            last: Mutex::new(None),
        }
    }

    pub fn show(&self, file: &str, engine: &str, p: Progress) {
        if !self.shown {
            return;
        }
        let Ok(mut last) = self.last.lock() else {
            return;
        };
        let now = Instant::now();
        if last.is_some_and(|at| now.duration_since(at) < INTERVAL) {
            return;
        }
        *last = Some(now);
        WRITTEN.store(true, Ordering::Relaxed);
        let elapsed = self.started.elapsed().as_secs_f64();
        let rate = p.states as f64 / elapsed.max(0.001);
        let mut err = std::io::stderr().lock();
        let _ = write!(
            err,
            "\r\x1b[K{file}: {engine}  {} states  {}/s  frontier {}  {}B  {elapsed:.0} s",
            short(p.states as f64),
            short(rate),
            short(p.frontier as f64),
            short(p.memory as f64),
        );
        let _ = err.flush();
    }
}

/// Makes room for an answer.
pub fn clear() {
    if WRITTEN.swap(false, Ordering::Relaxed) {
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r\x1b[K");
        let _ = err.flush();
    }
}

/// `12.3 M`
fn short(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.1} G", n / 1e9),
        n if n >= 1e6 => format!("{:.1} M", n / 1e6),
        n if n >= 1e4 => format!("{:.0} k", n / 1e3),
        n => format!("{n:.0} "),
    }
}
