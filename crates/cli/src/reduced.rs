//! `wattle show --reduce` and `--as boolean-program`: what predicate abstraction works on.

use super::exit::Exit;
use super::output;
use super::subject::File;
use wattle::input::Source;
use wattle::{MemoryModel, Reduce};
use wattle_evidence::{Control, Reason, Task};
use wattle_extrapolate::reduction::reduce;
use wattle_extrapolate::{Extrapolate, Method};
use wattle_model::{Counts, Program, print};
use wattle_report::text;

/// A memory model and how many entries its buffers have at most.
pub type Bound = (MemoryModel, usize);

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

/// `tso,k=2`; without a number of entries it is one.
fn bound(text: &str) -> Result<Bound, String> {
    let (model, rest) = text.split_once(',').unwrap_or((text, "k=1"));
    let mut known = MemoryModel::ALL.into_iter();
    let model = known.find(|m| m.keyword() == model.trim());
    let model = model.ok_or("a memory model is expected, as in `tso,k=2`")?;
    let k = rest.trim().strip_prefix("k=").and_then(|k| k.parse().ok());
    match k {
        Some(k) if (1..=MOST_ENTRIES).contains(&k) => Ok((model, k)),
        _ => Err(format!(
            "k is a number from 1 to {MOST_ENTRIES}, as in `tso,k=2`"
        )),
    }
}

fn refused(file: &File, why: &str) -> Exit {
    output::error(&file.file, why, &[]);
    Exit::Input
}

/// The program with its buffers as variables.
pub fn wtl(
    file: &File,
    program: &Program,
    counts: &Counts,
    (model, k): Bound,
) -> Result<String, Exit> {
    let instance = file.instance(program, counts)?;
    let reduced = reduce(program, &instance, model, k).map_err(|why| refused(file, &why.0))?;
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
) -> Result<String, Exit> {
    let instance = file.instance(program, counts)?;
    let (model, k) = bound.unwrap_or((MemoryModel::Sc, 1));
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
    let printed = engine.boolean_program(&task, k, control);
    printed.map_err(|why| {
        let stopped = matches!(why, Reason::Stopped { .. });
        match why {
            Reason::Refused(refusal) => output::refusal(&source.name, &source.text, &refusal),
            why => {
                let seconds = control.elapsed().as_secs_f64();
                output::error(&source.name, &text::reason(&why, seconds), &[]);
            }
        }
        match stopped {
            true => Exit::Undecided,
            false => Exit::Input,
        }
    })
}
