//! `wattle show --reduce`, and forms that it makes: `--as boolean-program`, what predicate abstraction works on, and
//! what other tools read.

use super::exit::Exit;
use super::output;
use super::subject::{Failure, File};
use wattle::check::property_text;
use wattle::input::Source;
use wattle::{MemoryModel, Reduce};
use wattle_evidence::{Control, Reason, Refusal, Task};
use wattle_extrapolate::reduction::reduce;
use wattle_extrapolate::{Extrapolate, Method};
use wattle_model::{Counts, Instance, Program, print};
use wattle_report::export::Title;
use wattle_report::text;

/// A memory model and how many entries its buffers have at most; if that is not given, as many as a proof takes.
pub type Bound = (MemoryModel, Option<usize>);

/// Longer buffers make programs nobody wants to read.
const MOST_ENTRIES: usize = 16;

/// What `--reduce` says.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// Buffers are variables.
    Buffers(Bound),
    /// States are left out.
    LeaveOut(Reduce),
}

/// `tso,k=2`, or `none`, `local` or `persistent`.
pub fn how(text: &str) -> Result<How, String> {
    match text.trim() {
        "none" => Ok(How::LeaveOut(Reduce::None)),
        "local" => Ok(How::LeaveOut(Reduce::Local)),
        "persistent" => Ok(How::LeaveOut(Reduce::Persistent)),
        other => bound(other).map(How::Buffers),
    }
}

/// `tso,k=2`, or `tso,k=proof`; without a number of entries it is one.
fn bound(text: &str) -> Result<Bound, String> {
    let (model, rest) = text.split_once(',').unwrap_or((text, "k=1"));
    let mut known = MemoryModel::ALL.into_iter();
    let model = known.find(|m| m.keyword() == model.trim());
    let model = model.ok_or("a memory model is expected, as in `tso,k=2`")?;
    let k = rest.trim().strip_prefix("k=");
    if k == Some("proof") {
        return Ok((model, None));
    }
    match k.and_then(|k| k.parse().ok()) {
        Some(k) if (1..=MOST_ENTRIES).contains(&k) => Ok((model, Some(k))),
        _ => Err(format!(
            "k is a number from 1 to {MOST_ENTRIES}, as in `tso,k=2`"
        )),
    }
}

/// The program with its buffers as variables.
pub fn wtl(
    file: &File,
    program: &Program,
    counts: &Counts,
    (model, k): Bound,
) -> Result<String, Failure> {
    let instance = file.instance(program, counts)?;
    Ok(print::to_wtl(&with_buffers(
        program,
        &instance,
        (model, k),
    )?))
}

fn with_buffers(
    program: &Program,
    instance: &Instance,
    (model, k): Bound,
) -> Result<Program, Failure> {
    let why = "`k=proof` is for `--as boolean-program`: give a number here, as in `tso,k=2`";
    let k = k.ok_or_else(|| Failure::input(why))?;
    reduce(program, instance, model, k).map_err(|why| Failure::input(why.0))
}

/// How another tool's text is written.
pub type Print<'p> = dyn Fn(&Instance, Option<usize>, &Title<'_>) -> Result<String, Refusal> + 'p;

/// The program and its first property for another tool.
pub fn exported(
    file: &File,
    source: &Source,
    program: &Program,
    counts: &Counts,
    bound: Option<Bound>,
    print: &Print<'_>,
) -> Result<String, Failure> {
    let instance = file.instance(program, counts)?;
    if instance.questions.is_empty() && !instance.demands.is_empty() {
        let why = "properties of whole runs are not written in this form, only `never`, `always`, `finally`, \
                   `reachable` and assertions";
        return Err(Failure::input(why));
    }
    if program.properties.len() > 1 {
        output::note("note: several properties; the first one is written\n");
    }
    let question = (!instance.questions.is_empty()).then_some(0);
    let property = match question {
        Some(q) => property_text(program, q),
        None => "no property: assertions and faults only".into(),
    };
    let title = |memory| Title {
        file: &source.name,
        property: &property,
        memory,
    };
    let refused = |refusal: Refusal| Failure::refused(source, &refusal);
    let Some((model, k)) = bound else {
        return print(&instance, question, &title("SC")).map_err(refused);
    };
    let reduced = with_buffers(program, &instance, (model, k))?;
    let fixed = reduced.instance();
    let fixed = fixed.map_err(|e| Failure::input(e.to_string()))?;
    let mut memory = format!(
        "{model} (buffers are variables of at most {} entries",
        k.unwrap_or(0)
    );
    // An overflow is asked about by a property of its own.
    if fixed.questions.len() > instance.questions.len() {
        memory.push_str(
            "; a store into a full one stops its thread, so nothing is said of longer ones",
        );
    }
    memory.push(')');
    print(&fixed, question, &title(&memory)).map_err(refused)
}

/// The boolean program of the first property.
pub fn boolean(
    file: &File,
    source: &Source,
    program: &Program,
    counts: &Counts,
    (bound, method): (Option<Bound>, Method),
    control: &Control<'_>,
) -> Result<String, Failure> {
    let instance = file.instance(program, counts)?;
    let (model, k) = bound.unwrap_or((MemoryModel::Sc, Some(1)));
    let task = Task {
        instance: &instance,
        model,
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock: false,
    };
    let engine = Extrapolate {
        method,
        ..Extrapolate::default()
    };
    let printed = match k {
        Some(k) => engine.boolean_program(&task, k, control),
        None => engine.proving_program(&task, control),
    };
    printed.map_err(|why| match why {
        Reason::Refused(refusal) => Failure::refused(source, &refusal),
        Reason::Stopped { .. } => {
            Failure::new(Exit::Undecided, text::reason(&why, seconds(control)))
        }
        why => Failure::input(text::reason(&why, seconds(control))),
    })
}

fn seconds(control: &Control<'_>) -> f64 {
    control.elapsed().as_secs_f64()
}
