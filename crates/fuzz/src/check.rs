//! What every input must survive: parsing without a panic, in time and memory proportional to its
//! length; messages that can be shown; and, where there is a program, a valid and canonical one that
//! is the same after printing and reading it again.

use crate::heap;
use crate::target::Target;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use wattle_machine::{Image, fill};
use wattle_model::print::to_wtl;
use wattle_model::{Count, Length, Program, validate};
use wattle_syntax::{Language, Parsed, Severity, cubicle, wtl};

/// Memory a parser may use besides what the input's length allows: unrolling is bounded, but a few
/// hundred thousand steps fit in a short text.
const BASE_MEMORY: usize = 512 << 20;
const MEMORY_PER_BYTE: usize = 8 << 10;
/// Generous, for loaded machines; a hang is longer.
pub const TIME: Duration = Duration::from_secs(20);

/// Whether the text is a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Program,
    Errors,
}

/// Runs all checks; the error says what broke.
pub fn check(target: Target, text: &str) -> Result<Seen, String> {
    let before = heap::restart();
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| match target {
        Target::Program(language) => program(language, text),
        Target::Cubicle => system(text).map(|seen| (seen, heap::peak())),
        Target::Object => object(text).map(|seen| (seen, heap::peak())),
    }));
    let (seen, peak) = match result {
        Ok(seen) => seen?,
        Err(panic) => return Err(format!("panic: {}", message(&*panic))),
    };
    let used = peak.saturating_sub(before);
    let allowed = BASE_MEMORY.saturating_add(text.len().saturating_mul(MEMORY_PER_BYTE));
    if used > allowed {
        return Err(format!(
            "memory: {used} bytes for an input of {}",
            text.len()
        ));
    }
    if start.elapsed() > TIME {
        return Err(format!("time: more than {TIME:?}"));
    }
    Ok(seen)
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".into())
}

/// Also returns the memory that parsing took: unrolled loops make programs much longer than their
/// text, and comparing several copies of one is not the parser's doing.
fn program(language: Language, text: &str) -> Result<(Seen, usize), String> {
    let parsed = wattle_syntax::parse(language, text);
    let peak = heap::peak();
    let _ = parsed.render("input", text);
    let errors = has_errors(&parsed);
    let Some(program) = parsed.program else {
        return match errors {
            true => Ok((Seen::Errors, peak)),
            false => Err("neither a program nor an error".into()),
        };
    };
    if errors {
        return Err("a program in spite of errors".into());
    }
    if let Some(broken) = validate(&program).first() {
        return Err(format!("invalid: rule {}: {broken}", broken.rule));
    }
    if program.canonical() != program {
        return Err("not canonical".into());
    }
    if small(&program) {
        // Only that it does not panic: sizes and initial values may be refused.
        let _ = program.instance();
    }
    let printed = to_wtl(&program);
    let again = wattle_syntax::parse(Language::Wtl, &printed);
    let shown = again.render("printed", &printed);
    let Some(again) = again.program else {
        return Err(format!(
            "what is printed does not parse:\n{printed}\n{shown}"
        ));
    };
    if again.without_spans() != program.without_spans() {
        return Err(format!("what is printed is another program:\n{printed}"));
    }
    Ok((Seen::Program, peak))
}

fn has_errors(parsed: &Parsed) -> bool {
    let mut all = parsed.diagnostics.iter();
    all.any(|d| d.severity == Severity::Error)
}

/// Instances may be much larger than programs; only small ones are built here.
fn small(program: &Program) -> bool {
    let threads = program.families.iter().map(|f| match f.count {
        Count::Fixed(n) => u64::from(n),
        Count::One | Count::Any => 1,
    });
    let cells = program.regions.iter().map(|r| match r.length {
        Length::Array(n) => u64::from(n),
        Length::Scalar | Length::PerThread(_) => 1,
    });
    threads.sum::<u64>() <= 50 && cells.sum::<u64>() <= 10_000
}

/// Calls of what the seed defines.
const HARNESS: &str = "
    object \"locks.o\";
    shared l: object(8), m: object(8), n[t]: object(16), f: object(4), a: object(20);
    thread t[*] {
        local r: u32;
        call ticket_lock(&l);
        call mcs_lock(&m, &n[self]);
        call read_lock(&f);
        r = call array_lock(&a);
        critical: skip;
        call array_unlock(&a, r);
        call mcs_unlock(&m, &n[self]);
    }
    never t[i]@critical && t[j]@critical;";

/// A file of compiled code, byte by byte; words that are no byte are left out.
fn object(text: &str) -> Result<Seen, String> {
    let bytes: Vec<u8> = (text.split_whitespace())
        .filter_map(|w| u8::from_str_radix(w, 16).ok())
        .collect();
    let linked = wtl::parse_linked(HARNESS);
    let Some(program) = linked.parsed.program else {
        return Err("the harness is no program".into());
    };
    let calls = linked.link.calls.iter();
    let names: Vec<&str> = calls.map(|c| c.function.as_str()).collect();
    let Ok(image) = Image::read(&bytes, &names) else {
        return Ok(Seen::Errors);
    };
    match fill(program, &linked.link, image, HARNESS) {
        Err(why) if why.diagnostics.is_empty() => Err("neither a program nor an error".into()),
        Err(_) => Ok(Seen::Errors),
        Ok(filled) => match validate(&filled.program).first() {
            Some(issue) => Err(format!("an invalid program: {}", issue.message)),
            None => Ok(Seen::Program),
        },
    }
}

fn system(text: &str) -> Result<Seen, String> {
    let parsed = cubicle::parse(text);
    let mut errors = false;
    for d in &parsed.diagnostics {
        let _ = d.render("input", text);
        errors |= d.severity == Severity::Error;
    }
    match (parsed.system.is_some(), errors) {
        (true, false) => Ok(Seen::Program),
        (false, true) => Ok(Seen::Errors),
        (true, true) => Err("a system in spite of errors".into()),
        (false, false) => Err("neither a system nor an error".into()),
    }
}
