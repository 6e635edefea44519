//! Walking in a terminal: a state is printed, a line is read.

use crate::view::Scene;
use crate::walk::{Subject, Way};
use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

const HELP: &str = "\
NUMBER    let that happen
u, p      back                     n        forward again
g N       go to step N (g 0: the beginning)
f         find a run that violates a property, and go to its end
i N       begin in initial state N
s         the source, with where the threads are
w FILE    keep this run: `wattle explore --trace FILE` comes back here
h         this help                q        leave
";

/// Finds a run that violates a property.
pub type Finder<'f> = dyn Fn() -> Result<Way, String> + Sync + 'f;

/// Walks until `q` or the end of the input.
pub fn run(
    subject: &Subject<'_>,
    begin: Way,
    find: &Finder<'_>,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> io::Result<()> {
    // Choices that were undone can be made again.
    let mut ahead: Vec<usize> = Vec::new();
    let mut way = begin;
    let mut note = format!("`h` for help; {} under {}\n", subject.name, subject.model);
    loop {
        let view = match subject.walk(&way) {
            Ok(walk) => subject.view(&walk),
            Err(why) => {
                writeln!(out, "error: {why}")?;
                return Ok(());
            }
        };
        way = view.way.clone();
        write!(
            out,
            "\n{}{}> ",
            std::mem::take(&mut note),
            shown(subject, &view)
        )?;
        out.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(out)?;
            return Ok(());
        }
        let mut words = line.split_whitespace();
        let (command, operand) = (words.next().unwrap_or(""), words.next());
        let number = operand.and_then(|o| o.parse::<usize>().ok());
        match command {
            "q" | "quit" => return Ok(()),
            "h" | "help" | "?" => note = HELP.into(),
            "" => {}
            "u" | "p" | "back" => ahead.extend(way.choices.pop()),
            "n" => match ahead.pop() {
                Some(choice) => way.choices.push(choice),
                None => note = "there is nothing to do again\n".into(),
            },
            "g" => match number {
                Some(n) => go(&mut way, &mut ahead, n),
                None => note = "which step? `g 3`\n".into(),
            },
            "i" => {
                way = Way {
                    start: number.unwrap_or(0),
                    choices: Vec::new(),
                };
                ahead.clear();
            }
            "s" => note = source(subject, &view),
            "f" => match find() {
                Ok(found) => {
                    way = found;
                    ahead.clear();
                    note = "a run that violates a property; `p` and `n` walk through it\n".into();
                }
                Err(why) => note = format!("{why}\n"),
            },
            "w" => note = keep(subject, &way, operand),
            choice => match choice.parse::<usize>() {
                Ok(n) if (1..=view.next.len()).contains(&n) => {
                    // The same choice as before keeps what comes after it.
                    if ahead.last() == Some(&(n - 1)) {
                        ahead.pop();
                    } else {
                        ahead.clear();
                    }
                    way.choices.push(n - 1);
                }
                Ok(_) => note = format!("there are {} choices\n", view.next.len()),
                Err(_) => note = format!("`{choice}` is no command\n{HELP}"),
            },
        }
    }
}

/// To a step, back or forward.
fn go(way: &mut Way, ahead: &mut Vec<usize>, step: usize) {
    while way.choices.len() > step {
        ahead.extend(way.choices.pop());
    }
    while way.choices.len() < step {
        match ahead.pop() {
            Some(choice) => way.choices.push(choice),
            None => break,
        }
    }
}

fn keep(subject: &Subject<'_>, way: &Way, path: Option<&str>) -> String {
    let Some(path) = path else {
        return "where to? `w run.json`\n".into();
    };
    let text = match subject.walk(way) {
        Ok(walk) => subject.file(&walk) + "\n",
        Err(why) => return format!("{why}\n"),
    };
    match std::fs::write(path, text) {
        Ok(()) => format!("written to {path}\n"),
        Err(e) => format!("{path}: {e}\n"),
    }
}

/// The state and what can happen, as text.
fn shown(subject: &Subject<'_>, view: &Scene) -> String {
    let mut out = String::new();
    if let Some(last) = view.history.last() {
        let name = &view.threads[last.thread].name;
        let _ = writeln!(
            out,
            "step {}: {name} {}{}",
            view.history.len(),
            last.text,
            line(last.line)
        );
    }
    for t in &view.threads {
        let at = match (t.ended, t.labels.first()) {
            (true, _) => "ended".to_string(),
            (false, Some(label)) => format!("at {label}{}", line(t.line)),
            (false, None) => format!("at{}", line(t.line)),
        };
        let pairs = |all: &[crate::view::Value]| -> Vec<String> {
            all.iter()
                .map(|v| format!("{}={}", v.name, v.value))
                .collect()
        };
        let buffer = pairs(&t.buffer).join(" ");
        let registers = pairs(&t.registers).join(" ");
        let text = format!("  {:<8} {at:<16} [{buffer}]  {registers}", t.name);
        let _ = writeln!(out, "{}", text.trim_end());
    }
    let cells = view.memory.iter().map(|c| {
        let mark = if c.changed { "*" } else { "" };
        format!("{}={}{mark}", c.name, c.value)
    });
    let _ = writeln!(out, "  memory   {}", cells.collect::<Vec<_>>().join(" "));
    for q in &view.shows {
        let property = subject.properties.get(*q).map_or("", String::as_str);
        // What must be reached is good to see.
        let what = match property.starts_with("reachable") {
            true => "shows",
            false => "violates",
        };
        let _ = writeln!(out, "  this state {what}: {property}");
    }
    if let Some(end) = &view.end {
        let _ = writeln!(out, "  {end}");
    }
    for (i, line) in view.why.iter().enumerate() {
        let mark = if i == 0 { "why" } else { "" };
        let _ = writeln!(out, "  {mark:<3}  {line}");
    }
    for (i, e) in view.next.iter().enumerate() {
        let name = &view.threads[e.thread].name;
        let _ = writeln!(out, "{:>4}  {name:<8} {}{}", i + 1, e.text, line(e.line));
    }
    out
}

fn line(n: u32) -> String {
    match n {
        0 => String::new(),
        n => format!(" :{n}"),
    }
}

/// The lines of the source, with the threads that stand at them.
fn source(subject: &Subject<'_>, view: &Scene) -> String {
    let mut out = String::new();
    for (n, text) in (1u32..).zip(subject.text.lines()) {
        let here = view.threads.iter().filter(|t| !t.ended && t.line == n);
        let here: Vec<&str> = here.map(|t| t.name.as_str()).collect();
        let _ = writeln!(out, "{:>10} {n:>4} {text}", here.join(","));
    }
    out
}
