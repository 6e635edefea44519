//! `wattle show --reduce` and `--as boolean-program`: what predicate abstraction works on.

use super::exit::Exit;
use super::subject::{Failure, File};
use wattle::input::Source;
use wattle::{MemoryModel, Reduce};
use wattle_evidence::{Control, Reason, Task};
use wattle_extrapolate::reduction::reduce;
use wattle_extrapolate::{Extrapolate, Method};
use wattle_model::{Counts, Program, print};
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
    let why = "`k=proof` is for `--as boolean-program`: give a number here, as in `tso,k=2`";
    let k = k.ok_or_else(|| Failure::input(why))?;
    let instance = file.instance(program, counts)?;
    let reduced = reduce(program, &instance, model, k).map_err(|why| Failure::input(why.0))?;
    Ok(print::to_wtl(&reduced))
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
