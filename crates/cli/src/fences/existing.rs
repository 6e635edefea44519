//! `wattle fences --existing`: what becomes of the program without each fence, lock and exchange it has.

use super::super::exit::Exit;
use super::super::output;
use super::super::subject::Failure;
use super::Answer;
use super::report::Report;
use serde_json::{Value, json};
use std::fmt::Write;
use wattle::existing::{Inventory, Item, NoInventory, Role, inventory};
use wattle::fences::{FenceError, FenceOptions};
use wattle::input::Source;
use wattle_evidence::Control;
use wattle_repair::existing::Kind;
use wattle_report::{text, words};
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
            let (shown, events) = report.violation(report.program, report.model, &v);
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
            Role::Needed(run) => {
                let (program, violation) = run.as_ref();
                let why = report.comes_back(program, violation, &|_, _, _| true);
                format!("needed: {why}")
            }
            Role::WeakerSuffices(kind) => {
                format!("a weaker one suffices (proved): {}", word(*kind))
            }
            Role::Superfluous if inventory.together.contains(&i) => "superfluous (proved)".into(),
            Role::Superfluous => "superfluous only if the others stay (proved)".into(),
            Role::Unclear(reason) => {
                format!("not decided: {}", text::reason(reason, report.seconds))
            }
        };
        let _ = writeln!(
            out,
            "  {family:<10} {}\n             {role}",
            place(report, item)
        );
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

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Fence => "fence",
        Kind::StoreFence => "fence store",
        Kind::Atomic => "atomic statement",
        Kind::Buffered => "buffered atomic statement",
        Kind::Lock => "lock",
    }
}

/// `fence in line 12`, with the text that is there.
fn place(report: &Report<'_>, item: &Item) -> String {
    let span = item.existing.span;
    let kind = match (item.existing.kind, report.asm) {
        (Kind::Atomic, true) => "lock prefix or exchange",
        (kind, _) => word(kind),
    };
    let text = report.text.get(span.start as usize..span.end as usize);
    let text = text.and_then(|t| t.lines().next()).map(str::trim);
    match (span.is_some(), text.filter(|t| !t.is_empty() && *t != kind)) {
        (false, _) => kind.to_string(),
        (true, None) => format!("{kind} in line {}", span.line),
        (true, Some(text)) => format!("{kind} in line {}: `{text}`", span.line),
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
            Role::Needed(run) => {
                let (program, violation) = run.as_ref();
                (
                    "needed",
                    Some(report.comes_back(program, violation, &|_, _, _| true)),
                )
            }
            Role::WeakerSuffices(kind) => ("weaker-suffices", Some(word(*kind).to_string())),
            Role::Superfluous => ("superfluous", None),
            Role::Unclear(reason) => ("undecided", Some(text::reason(reason, report.seconds))),
        };
        json!({
            "thread": report.program.family(item.existing.family).name,
            "line": line,
            "column": column,
            "kind": word(item.existing.kind),
            "role": role,
            "together": inventory.together.contains(&i),
            "why": why,
        })
    };
    inventory.items.iter().enumerate().map(object).collect()
}
