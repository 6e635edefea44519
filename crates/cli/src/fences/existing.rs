//! `wattle fences --existing`: what becomes of the program without each fence, lock and exchange it has.

use super::super::exit::Exit;
use super::super::output;
use super::super::subject::Failure;
use super::Answer;
use super::report::{Report, told_of};
use serde_json::{Value, json};
use std::fmt::Write;
use wattle::existing::{Inventory, Item, NoInventory, Role, inventory};
use wattle::fences::{FenceError, FenceOptions};
use wattle::input::Source;
use wattle_evidence::Control;
use wattle_evidence::Trace;
use wattle_memory::Event;
use wattle_model::{Fence, Instance, Program};
use wattle_repair::Violation;
use wattle_repair::existing::{Kind, Weaker};
use wattle_report::{text, why, words};
use wattle_syntax::edit;

pub(super) fn answer(
    report: &mut Report<'_>,
    source: &Source,
    wanted: &FenceOptions,
    control: &Control<'_>,
) -> Result<Answer, Failure> {
    let found = inventory(report.program, wanted, report.options, control);
    report.seconds = control.elapsed().as_secs_f64();
    let goal = wanted.goal.keyword();
    let scope = report.scope_words(goal);
    let (exit, text, reason, trace, inventory) = match found {
        Ok(inventory) => {
            report.rests = inventory.rests.clone();
            let unclear = |i: &Item| matches!(i.role, Role::Unclear(_));
            let exit = match inventory.items.iter().any(unclear) {
                true => Exit::Undecided,
                false => Exit::Holds,
            };
            (
                exit,
                told(report, &inventory, &scope),
                None,
                None,
                Some(inventory),
            )
        }
        Err(NoInventory::Violated(v)) => {
            let why = format!("{goal} is missed on {} as it is", report.model);
            let (shown, events) = report.violation(source, report.program, report.model, &v);
            let text = format!("{why}; `wattle fences` without --existing repairs it\n\n{shown}\n");
            (Exit::Violated, text, Some(why), events, None)
        }
        Err(NoInventory::Undecided(reason)) => {
            let why = text::reason(&reason, report.seconds);
            (
                Exit::Undecided,
                format!("undecided: {why}\n"),
                Some(why),
                None,
                None,
            )
        }
        Err(NoInventory::Fences(FenceError::Instance(e))) => {
            return Err(Failure::input(e.to_string()));
        }
        Err(NoInventory::Fences(FenceError::OnlyReachable)) => {
            return Err(Failure::input("there is nothing that must not happen"));
        }
        Err(NoInventory::Fences(FenceError::Unsound(u))) => {
            return Err(Failure::new(Exit::Unsound, u.to_string()));
        }
    };
    let items = inventory.as_ref().map(|i| objects(report, i));
    let from_zero = inventory.as_ref().and_then(|i| i.from_zero.as_ref());
    let mut json = json!({
        "file": source.name,
        "language": source.language.name(),
        "model": report.model,
        "goal": goal,
        "verdict": match exit {
            Exit::Holds => "holds",
            Exit::Violated => "violated",
            Exit::Undecided | Exit::Input | Exit::Unsound => "undecided",
        },
        "audited": report.rests.unchecked.is_none(),
        "audit_reason": report.rests.unchecked.as_ref().map(ToString::to_string),
        "seconds": report.seconds,
        "existing": items,
        "fences": from_zero.map(|f| report.fences(f)),
        "trace": trace,
        "reason": reason,
    });
    output::originated("existing", &mut json);
    Ok(Answer {
        exit,
        text,
        notes: String::new(),
        json,
    })
}

fn told(report: &Report<'_>, inventory: &Inventory, scope: &str) -> String {
    let items = &inventory.items;
    let together = inventory.together.len();
    let audited = text::audited(report.rests.unchecked.as_ref());
    let mut out = match (items.len(), together) {
        (0, _) => format!("there are no fences, locks or exchanges; none is needed for {scope}\n"),
        (1, 0) => format!("the only one is needed for {scope}\n"),
        (n, 0) => format!("none of the {n} is superfluous for {scope}\n"),
        (n, m) => format!("{m} of {n} superfluous for {scope} (proved, {audited})\n"),
    };
    for (i, item) in items.iter().enumerate() {
        let family = &report.program.family(item.existing.family).name;
        let role = match &item.role {
            Role::Needed(run) => vec![format!("needed: {}", returns(report, item, run))],
            Role::WeakerSuffices(weaker, run) => {
                let weaker = suffices(*weaker, item.existing.kind);
                let why = returns(report, item, run);
                vec![format!("a weaker one suffices (proved): {weaker}"), why]
            }
            Role::Superfluous if inventory.together.contains(&i) => {
                vec!["superfluous (proved)".to_string()]
            }
            Role::Superfluous => vec!["superfluous only if the others stay (proved)".to_string()],
            Role::Unclear(reason) => {
                let why = text::reason(reason, report.seconds);
                vec![format!("not decided: {why}")]
            }
        };
        let role: Vec<&str> = role.iter().map(String::as_str).collect();
        out.push_str(&told_of(family, &place(report, item), &role));
    }
    if together > 1 {
        let _ = writeln!(
            out,
            "without these {together} together it still holds (proved)"
        );
    }
    if let Some(fix) = &inventory.from_zero {
        match fix.sites.len() {
            0 => out.push_str("without any fence of its own it needs none\n"),
            _ => {
                let fences = report.fences(fix);
                let places = fences
                    .iter()
                    .map(|f| format!("{} in {}", f.place.clone().unwrap_or_default(), f.thread));
                let _ = writeln!(
                    out,
                    "from none: {}, {}, and fewer do not suffice",
                    report.count(fix),
                    words::all(places)
                );
            }
        }
    }
    out
}

/// The run that comes back, rather with what overtook across the very place.
fn returns(report: &Report<'_>, item: &Item, run: &(Program, Violation)) -> String {
    let (program, violation) = run;
    let existing = &item.existing;
    let across = |instance: &Instance, trace: &Trace, o: &why::Overtaking| {
        let between = trace.events.get(o.store + 1..=o.later).unwrap_or_default();
        let passes = |e: &Event| match e {
            Event::Step { thread, step, .. } => *thread == o.thread && existing.has(*step),
            Event::Drain { .. } => false,
        };
        instance.thread(o.thread).family == existing.family
            && between.iter().any(passes)
            && !(existing.kind == Kind::StoreFence && o.later_is_load)
    };
    report.comes_back(program, violation, &across)
}

/// What would do.
fn suffices(weaker: Weaker, kind: Kind) -> &'static str {
    match (weaker, kind) {
        (Weaker::StoreFence, _) => "fence store",
        (Weaker::Behind(Fence::Store), _) => "not atomic, with a `fence store` after it",
        (Weaker::Before(Fence::Store), _) => "not atomic, with a `fence store` before it",
        (Weaker::Behind(Fence::Full), Kind::Lock) => "no lock, with a fence where it is unlocked",
        (Weaker::Before(Fence::Full), Kind::Lock) => "no lock, with a fence in its place",
        (Weaker::Behind(Fence::Full), _) => "not atomic, with a fence after it",
        (Weaker::Before(Fence::Full), _) => "not atomic, with a fence before it",
        (Weaker::Buffered, _) => "atomic, but no fence (`atomic buffered`)",
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Fence => "fence",
        Kind::StoreFence => "fence store",
        Kind::Atomic => "atomic statement",
        Kind::Buffered => "buffered atomic statement",
        Kind::Lock => "lock",
    }
}

/// `fence in line 12, column 9`, with the text that is there if it says more.
fn place(report: &Report<'_>, item: &Item) -> String {
    let span = item.existing.span;
    let kind = match (item.existing.kind, report.asm) {
        (Kind::Atomic, true) => "lock prefix or exchange",
        (kind, _) => word(kind),
    };
    let text = report.text.get(span.start as usize..span.end as usize);
    let text = text.and_then(|t| t.lines().next());
    let text = text.map(|t| t.trim().trim_end_matches(';'));
    let says_more = |t: &&str| !t.is_empty() && !t.eq_ignore_ascii_case(kind);
    if !span.is_some() {
        return kind.to_string();
    }
    let line = span.line;
    let (_, column) = edit::position(report.text, span.start as usize);
    match text.filter(says_more) {
        None => format!("{kind} in line {line}, column {column}"),
        Some(text) => format!("{kind} in line {line}, column {column}: `{text}`"),
    }
}

fn objects(report: &Report<'_>, inventory: &Inventory) -> Vec<Value> {
    let object = |(i, item): (usize, &Item)| {
        let span = item.existing.span;
        let (line, column) = match span.is_some() {
            true => {
                let (line, column) = edit::position(report.text, span.start as usize);
                (Some(line), Some(column))
            }
            false => (None, None),
        };
        let (role, why) = match &item.role {
            Role::Needed(run) => ("needed", Some(returns(report, item, run))),
            Role::WeakerSuffices(weaker, _) => (
                "weaker-suffices",
                Some(suffices(*weaker, item.existing.kind).to_string()),
            ),
            Role::Superfluous => ("superfluous", None),
            Role::Unclear(reason) => ("undecided", Some(text::reason(reason, report.seconds))),
        };
        let without = match &item.role {
            Role::Needed(run) | Role::WeakerSuffices(_, run) => Some(returns(report, item, run)),
            Role::Superfluous | Role::Unclear(_) => None,
        };
        json!({
            "thread": report.program.family(item.existing.family).name,
            "line": line,
            "column": column,
            "kind": word(item.existing.kind),
            "role": role,
            "together": inventory.together.contains(&i),
            "why": why,
            "without": without,
        })
    };
    inventory.items.iter().enumerate().map(object).collect()
}
