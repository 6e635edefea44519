//! What a person reads. The first line is the verdict with its scope.

use crate::finding::Finding;
use crate::lasso;
use crate::table;
use crate::walked;
use crate::why;
use crate::words;
use std::fmt::Write;
use wattle_evidence::{Broken, End, Proof, Reason, Stop, Task, Trace, Unchecked, Verdict};
use wattle_memory::Newest;
use wattle_memory::reference::Snapshot;
use wattle_model::Instance;

/// How to print: line width and whether colour is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub width: usize,
    pub colour: bool,
}

impl Style {
    pub const PLAIN: Style = Style {
        width: 120,
        colour: false,
    };

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self.colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }
}

/// The first line: verdict and scope.
pub fn headline(finding: &Finding, style: Style) -> String {
    let model = finding.model;
    let audited = audited(finding.judged.unchecked.as_ref());
    match &finding.judged.verdict {
        Verdict::Holds { scope, proof } | Verdict::HoldsIf { scope, proof } => {
            let how = match proof {
                Proof::Certificate(_) => {
                    let under = finding.proved_under.map(|m| format!(" under {m}"));
                    let under = under.unwrap_or_default();
                    format!("proved by {}{under}, {audited}", finding.engine)
                }
                Proof::Witness(_) => format!("a run found by {}, replayed", finding.engine),
            };
            let data = match scope.data.as_str() {
                "finite" => String::new(),
                data => format!(" and {data}"),
            };
            let assumed = words::all(scope.assumptions.iter().map(ToString::to_string));
            let conditional = matches!(finding.judged.verdict, Verdict::HoldsIf { .. });
            let (colour, assumed) = match (conditional, assumed.is_empty()) {
                (true, _) => ("1;33", format!(" if {assumed}")),
                (false, true) => ("1;32", String::new()),
                (false, false) => ("1;32", format!(", assuming that {assumed}")),
            };
            let holds = style.paint(colour, &format!("holds on {model}"));
            let deadlock = match (finding.deadlock, proof) {
                (true, Proof::Certificate(_)) => ", and no deadlock",
                (true, Proof::Witness(_)) | (false, _) => "",
            };
            let lines = words::all(scope.invariants.iter().map(ToString::to_string));
            let too = match scope.invariants.len() {
                0 => String::new(),
                1 => format!(", and so does the invariant of line {lines}"),
                _ => format!(", and so do the invariants of lines {lines}"),
            };
            let fair = fair(finding);
            format!(
                "{holds} for {}{data}{deadlock}{fair}{too}{assumed} ({how})",
                scope.threads
            )
        }
        Verdict::Violated { because } => {
            let red = |text: String| style.paint("1;31", &text);
            let with = match finding.shown.as_ref().map(|i| i.threads.len()) {
                None => String::new(),
                Some(1) => " with 1 thread".into(),
                Some(n) => format!(" with {n} threads"),
            };
            if let Some(what) = finding.other_violation() {
                return format!("{} (on {model}{with})", red(format!("violated: {what}")));
            }
            let violated = red(format!("violated on {model}"));
            match because {
                Broken::Trace(_) | Broken::Run(_) => format!("{violated}{with}"),
                Broken::Lasso(_) => format!("{violated}{with}{}", fair(finding)),
                Broken::NeverReached(_) => format!(
                    "{violated}: no run ends like that (proved by {}, {audited})",
                    finding.engine
                ),
            }
        }
        Verdict::Bounded { limits } => {
            let stores = match limits.buffered_stores {
                1 => "1 buffered store".to_string(),
                n => format!("{n} buffered stores"),
            };
            let fair = fair(finding);
            let text = format!("no violation on {model} up to {stores}{fair} (NOT a proof)");
            style.paint("1;33", &text)
        }
        Verdict::Undecided { reason, .. } => {
            let undecided = style.paint("1;33", "undecided");
            format!(
                "{undecided} on {model}: {}",
                self::reason(reason, finding.seconds)
            )
        }
    }
}

/// What was assumed about who moves, where it matters.
fn fair(finding: &Finding) -> String {
    let live = finding.live.as_ref();
    live.map_or(String::new(), |l| lasso::assumed(l.fairness))
}

/// `audited`, or why not.
pub fn audited(unchecked: Option<&Unchecked>) -> String {
    match unchecked {
        None => "audited".into(),
        Some(Unchecked::Off) => "not audited".into(),
        Some(why @ (Unchecked::Unable(_) | Unchecked::Stopped(_))) => {
            format!("not audited: {why}")
        }
        Some(why @ Unchecked::Translation(_)) => format!("audited, but {why}"),
    }
}

/// Why there is no verdict, in one sentence.
pub fn reason(reason: &Reason, seconds: f64) -> String {
    match reason {
        Reason::Stopped { stop, stage } => match stop {
            Stop::Time => format!("out of time after {} in {stage}", duration(seconds)),
            Stop::Memory => format!("out of memory after {} in {stage}", duration(seconds)),
            Stop::Cancelled => format!("interrupted after {} in {stage}", duration(seconds)),
            // No time here: a budget ends at the same place on every machine.
            Stop::Budget => format!("out of budget in {stage}"),
        },
        Reason::MachineOverflow { place } => {
            format!("an integer outgrew the machine's 64 bits ({place})")
        }
        Reason::SolverUnknown(what) => format!("the solver gave up: {what}"),
        Reason::Refused(refusal) => {
            let place = match refusal.span.is_some() {
                true => format!("line {}: ", refusal.span.line),
                false => String::new(),
            };
            format!("no engine accepts the task: {place}{}", refusal.why)
        }
        Reason::Other(what) => what.clone(),
        other => format!("{other:?}"),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s => format!("{s:.0} s"),
    }
}

/// Everything about one finding: headline, property, trace, why, warnings.
pub fn finding(instance: Option<&Instance>, finding: &Finding, style: Style) -> String {
    let mut out = headline(finding, style);
    out.push('\n');
    let property = match &finding.property {
        // The property itself may well hold.
        Some(p) if finding.other_violation().is_some() => format!("met while checking: {p}"),
        Some(p) => p.clone(),
        None => match finding.deadlock {
            true => "no property: assertions, faults and deadlock only".into(),
            false => "no property: assertions and faults only".into(),
        },
    };
    let _ = writeln!(out, "  {property}");
    for w in &finding.warnings {
        let _ = writeln!(out, "  {} {w}", style.paint("1;33", "warning:"));
    }
    if let (Some(instance), Some(trace)) = (finding.instance(instance), finding.trace()) {
        out.push('\n');
        let task = finding.task(instance);
        out.push_str(&trace_text(&task, trace, finding.why.as_ref(), style));
    }
    if let (Some(lasso), Some(task)) =
        (finding.lasso(), instance.and_then(|i| finding.live_task(i)))
    {
        out.push('\n');
        out.push_str(&lasso::text(&task, lasso, style));
    }
    if let Verdict::Violated {
        because: Broken::Run(lines),
    } = &finding.judged.verdict
    {
        out.push('\n');
        for line in lines {
            let _ = writeln!(out, "{line}");
        }
    }
    match &finding.judged.verdict {
        Verdict::HoldsIf { scope, .. } => {
            let _ = writeln!(out, "  {}", scope.condition());
        }
        Verdict::Bounded { limits } => {
            let _ = writeln!(out, "  the buffers are not bounded: {}", limits.cause);
        }
        Verdict::Undecided { so_far, .. } if so_far.states > 0 => {
            let _ = match so_far.depth {
                None => writeln!(out, "  so far: {} states, no violation", so_far.states),
                Some(depth) => writeln!(
                    out,
                    "  so far: {} states, no violation within {depth} steps, NOT a proof",
                    so_far.states
                ),
            };
        }
        Verdict::Holds { .. } | Verdict::Violated { .. } | Verdict::Undecided { .. } => {}
    }
    out
}

/// What the answer took.
pub fn effort(finding: &Finding) -> String {
    format!(
        "  {}: {} states, {:.3} s, {} MB\n",
        finding.engine,
        finding.states,
        finding.seconds,
        finding.peak_memory >> 20
    )
}

/// The table of a trace, its end and the closing words.
pub fn trace_text(task: &Task<'_>, trace: &Trace, why: Option<&why::Why>, style: Style) -> String {
    let states = match walked::states(task, trace) {
        Ok(states) => states,
        Err(e) => return format!("the trace does not replay: {e}\n"),
    };
    let rows = table::rows(task, trace, &states);
    let mut out = String::new();
    let open = words::choices(task.instance, &states[0]);
    if !open.is_empty() {
        let _ = writeln!(out, "start {}", open.join(", "));
    }
    if rows.is_empty() && !walked::is_walk(task, trace) {
        out.push_str("the initial state already shows it\n");
    } else {
        out.push_str(&table::render(task.instance, &rows, style.width));
    }
    if let Some(last) = states.last() {
        let _ = writeln!(out, "end   {}", end(task, trace, last));
    }
    if let Some(why) = why {
        let number = |event: usize| table::row_number(&rows, event);
        let mut keyword = "why";
        let sentences = why::sentences(task, why, &number);
        let lines = sentences
            .iter()
            .flat_map(|s| wrapped(s, style.width.saturating_sub(6)));
        for line in lines {
            let _ = writeln!(
                out,
                "{}   {line}",
                style.paint("1", &format!("{keyword:3}"))
            );
            keyword = "";
        }
    }
    out
}

/// The lines of a text that is at most so wide; a word is never broken.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let long = |s: &str| s.chars().count();
        let fits = |l: &String| l.is_empty() || long(l) + 1 + long(word) <= width;
        match lines.last_mut().filter(|l| fits(l)) {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_string()),
        }
    }
    lines
}

pub(crate) fn end(task: &Task<'_>, trace: &Trace, last: &Snapshot) -> String {
    let instance = task.instance;
    match &trace.end {
        End::Fault(fault) => {
            let thread = instance.thread(fault.thread);
            match thread.step(fault.step).span.line {
                0 => format!("{}: {}", thread.name, fault.kind),
                line => format!("{} at line {line}: {}", thread.name, fault.kind),
            }
        }
        End::Deadlock => {
            let stuck = instance
                .thread_ids()
                .filter(|t| !instance.thread(*t).ended(last.locations[t.index()]));
            let place = |t: wattle_model::ThreadId| {
                let thread = instance.thread(t);
                let at = last.locations[t.index()];
                match thread.locations[at.index()].span.line {
                    0 => format!("{} at {at}", thread.name),
                    line => format!("{} at line {line}", thread.name),
                }
            };
            let stuck: Vec<String> = stuck.map(place).collect();
            match stuck.is_empty() {
                true => "deadlock: stores are pending that will never reach memory".into(),
                false => format!("deadlock: {} will never go on", stuck.join(", ")),
            }
        }
        End::Target if walked::is_walk(task, trace) => "as far as it was walked".into(),
        End::Target => facts(task, last),
    }
}

/// Where the threads are and what memory and registers hold, as far as the property looks at them.
fn facts(task: &Task<'_>, state: &Snapshot) -> String {
    use wattle_model::instance::Fact;
    let Some(question) = task.question() else {
        return String::new();
    };
    let instance = task.instance;
    let mut seen: Vec<String> = Vec::new();
    question.target.for_each_atom(&mut |fact| {
        let text = match fact {
            Fact::Cell(c) => format!("{} = {}", instance.cell(*c).name, state.memory[c.index()]),
            Fact::CellAt { .. } => return,
            Fact::Seen(t, c) => {
                let pending = state.buffers[t.index()].newest_of(*c);
                let value = pending.unwrap_or(state.memory[c.index()]);
                let (thread, cell) = (&instance.thread(*t).name, &instance.cell(*c).name);
                format!("{thread} sees {cell} = {value}")
            }
            Fact::Register(t, r) => {
                let thread = instance.thread(*t);
                let name = &thread.registers[r.index()].name;
                format!(
                    "{}.{name} = {}",
                    thread.name,
                    state.registers[t.index()][r.index()]
                )
            }
            Fact::At(t, at) => {
                let thread = instance.thread(*t);
                let here = state.locations[t.index()];
                match thread.locations[here.index()].labels.first() {
                    Some(label) if at.contains(&here) => format!("{}@{label}", thread.name),
                    _ => return,
                }
            }
        };
        if !seen.contains(&text) && seen.len() < MAX_FACTS {
            seen.push(text);
        }
    });
    seen.join(", ")
}

const MAX_FACTS: usize = 12;
