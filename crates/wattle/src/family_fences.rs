//! Fences for any number of threads: found for two threads of each open family, proved for all.
//!
//! A bug of two threads is a bug of any number, so no cheaper set can do, and every fence that two
//! threads need is needed. What two threads do not show is left to the proof; without one there is no
//! answer.

use crate::families;
use crate::fences::{FenceError, FenceOptions, fences};
use crate::options::{Options, ThreadCount};
use wattle_evidence::{Control, Reason, Verdict};
use wattle_memory::MemoryModel;
use wattle_model::{Count, Program, PropertyKind};
use wattle_repair::Outcome;

/// The families that have any number of threads, as the options say or the program does.
pub fn open_families(program: &Program, options: &Options) -> Vec<String> {
    let open = program
        .families
        .iter()
        .filter(|f| match options.threads.get(&f.name) {
            Some(count) => *count == ThreadCount::Any,
            None => f.count == Count::Any,
        });
    open.map(|f| f.name.clone()).collect()
}

/// The options with two threads in each open family.
pub fn with_two(program: &Program, options: &Options) -> Options {
    let mut two = options.clone();
    for name in open_families(program, options) {
        two.threads.insert(name, ThreadCount::Fixed(2));
    }
    two
}

pub fn for_any(
    program: &Program,
    wanted: &FenceOptions,
    options: &Options,
    control: &Control<'_>,
) -> Result<Outcome, FenceError> {
    let outcome = fences(program, wanted, &with_two(program, options), control)?;
    let Outcome::Fixed {
        fixes,
        mut unfinished,
        checks,
    } = outcome
    else {
        return Ok(outcome);
    };
    let mut proved = Vec::new();
    for fix in fixes {
        match holds(&fix.fenced.program, wanted.model, options, control)? {
            None => proved.push(fix),
            Some(why) => {
                let why = format!("enough for two threads, not proved for any number: {why}");
                unfinished = unfinished.or(Some(Reason::Other(why)));
            }
        }
    }
    Ok(match (proved.is_empty(), unfinished) {
        (true, Some(reason)) => Outcome::Undecided { reason, checks },
        (_, unfinished) => Outcome::Fixed {
            fixes: proved,
            unfinished,
            checks,
        },
    })
}

/// What keeps the properties from being proved for any number of threads, if anything does.
fn holds(
    program: &Program,
    model: MemoryModel,
    options: &Options,
    control: &Control<'_>,
) -> Result<Option<String>, FenceError> {
    let mut program = program.clone();
    for name in open_families(&program, options) {
        if let Some(family) = program.family_named(&name) {
            program.families[family.index()].count = Count::Any;
        }
    }
    let asked = program.properties.iter().enumerate();
    let asked = asked.filter(|(_, p)| p.kind != PropertyKind::Reachable);
    let mut questions: Vec<Option<usize>> = asked.map(|(i, _)| Some(i)).collect();
    if questions.is_empty() {
        questions.push(None);
    }
    for question in questions {
        let finding = families::program(&program, model, question, options, control, &mut None)
            .map_err(FenceError::Unsound)?;
        let why = match finding.judged.verdict {
            Verdict::Holds { .. } => continue,
            Verdict::Violated { .. } => "more threads break it still".to_string(),
            Verdict::Bounded { .. } => "only checked up to a bound".to_string(),
            Verdict::Undecided { reason, .. } => {
                wattle_report::text::reason(&reason, finding.seconds)
            }
        };
        return Ok(Some(why));
    }
    Ok(None)
}
