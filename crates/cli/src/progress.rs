//! The progress line: on a terminal only, on standard error, a few times a second. It says what each
//! engine does and is cut to the terminal's width, so that it never wraps.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wattle_evidence::Progress;

pub struct Line {
    shown: bool,
    started: Instant,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    last: Option<Instant>,
    /// The latest of every engine, by file and engine.
    engines: BTreeMap<(String, &'static str), (Instant, Progress)>,
}

/// Whether there is a line that has to go before anything else is written.
static WRITTEN: AtomicBool = AtomicBool::new(false);

const INTERVAL: Duration = Duration::from_millis(200);
/// Who has said nothing for so long is done.
const STALE: Duration = Duration::from_secs(3);

impl Line {
    pub fn new(quiet: bool) -> Self {
        Line {
            shown: !quiet && std::io::stderr().is_terminal(),
            started: Instant::now(),
            seen: Mutex::new(Seen::default()),
        }
    }

    pub fn show(&self, file: &str, engine: &'static str, p: Progress) {
        if !self.shown {
            return;
        }
        let Ok(mut seen) = self.seen.lock() else {
            return;
        };
        let now = Instant::now();
        seen.engines.insert((file.to_string(), engine), (now, p));
        if (seen.last).is_some_and(|at| now.duration_since(at) < INTERVAL) {
            return;
        }
        seen.last = Some(now);
        seen.engines
            .retain(|_, (at, _)| now.duration_since(*at) < STALE);
        let mine = seen.engines.iter().filter(|((f, _), _)| f == file);
        let engines: Vec<(&str, Progress)> = mine.map(|((_, e), (_, p))| (*e, *p)).collect();
        let seconds = self.started.elapsed().as_secs_f64();
        let text = line(file, &engines, seconds, width());
        WRITTEN.store(true, Ordering::Relaxed);
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r\x1b[K{text}");
        let _ = err.flush();
    }
}

/// The width of the terminal that the line is for.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok();
    let given = columns.and_then(|c| c.trim().parse::<usize>().ok());
    let measured = || {
        let (width, _) = terminal_size::terminal_size_of(std::io::stderr())?;
        Some(usize::from(width.0))
    };
    measured().or(given).unwrap_or(80)
}

/// `peterson.wtl 3 s: explicit 1.2 M states, coherent 40 k states`, in fewer columns than the terminal
/// has: some move on after the last one.
fn line(file: &str, engines: &[(&str, Progress)], seconds: f64, width: usize) -> String {
    let room = width.saturating_sub(1);
    let does: Vec<String> = engines.iter().map(|(e, p)| work(e, *p)).collect();
    let tail = format!(" {seconds:.0} s: {}", does.join(", "));
    // The end of a path says more than its beginning.
    let most = room
        .saturating_sub(tail.chars().count())
        .max(room / 4)
        .min(room);
    let name: Vec<char> = file.chars().map(narrow).collect();
    let name: String = match name.len() > most {
        true => std::iter::once('…')
            .chain(name[name.len() - most.saturating_sub(1)..].iter().copied())
            .collect(),
        false => name.into_iter().collect(),
    };
    let text: Vec<char> = format!("{name}{tail}").chars().collect();
    match text.len() > room {
        true => text[..room.saturating_sub(1)]
            .iter()
            .chain(['…'].iter().take(room))
            .collect(),
        false => text.into_iter().collect(),
    }
}

/// Characters that may take two columns, or none, would make the line wrap.
fn narrow(c: char) -> char {
    match c.is_ascii_graphic() || c == ' ' {
        true => c,
        false => '?',
    }
}

/// What an engine has done, in its own words.
fn work(engine: &str, p: Progress) -> String {
    let what = match engine {
        "params" => "cubes",
        "exact" | "multiset" => "configurations",
        "cegar" | "extrapolate" => "abstract states",
        "facts" => "queries",
        "repair" => return "looks for fences".into(),
        "audit" => "states audited",
        _ => "states",
    };
    match p.states {
        0 => engine.to_string(),
        n => format!("{engine} {}{what}", short(n as f64)),
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

/// `12.3 M `
fn short(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.1} G ", n / 1e9),
        n if n >= 1e6 => format!("{:.1} M ", n / 1e6),
        n if n >= 1e4 => format!("{:.0} k ", n / 1e3),
        n => format!("{n:.0} "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_never_wraps() {
        let p = Progress {
            states: 12_345_678,
            ..Progress::default()
        };
        let many = [
            ("explicit", p),
            ("robust", p),
            ("coherent", p),
            ("exact", p),
        ];
        for file in [
            "x.wtl",
            "examples/families/szymanski.wtl",
            "a/größe/名前.wtl",
        ] {
            for engines in [&many[..], &many[..1], &[]] {
                for width in 1..=200 {
                    let text = line(file, engines, 1234.5, width);
                    assert!(text.chars().count() < width.max(2), "{width}: {text}");
                }
            }
        }
        let wide = line("examples/p.wtl", &many, 3.2, 120);
        assert!(
            wide.starts_with("examples/p.wtl 3 s: explicit 12.3 M states, robust"),
            "{wide}"
        );
        let narrow = line("examples/families/szymanski.wtl", &many, 3.2, 60);
        assert!(
            narrow.contains("szymanski.wtl 3 s: explicit") || narrow.starts_with('…'),
            "{narrow}"
        );
    }
}
