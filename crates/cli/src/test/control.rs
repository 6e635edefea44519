//! The negative control: a gate that nothing can fail guards nothing. Each fence, lock and exchange of
//! a program that holds is taken out in turn, and some property must then be violated. What is left is a program
//! of its own, with the time of one.

use super::report::{Case, Outcome};
use crate::budget;
use std::time::Instant;
use wattle::{MemoryModel, Options, Run, Verdict};
use wattle_model::Program;
use wattle_repair::existing::{Kind, existing, without};

pub fn cases(
    file: &str,
    program: &Program,
    models: &[MemoryModel],
    options: &Options,
    run: &Run<'_>,
) -> Vec<Case> {
    if models.is_empty() {
        return Vec::new();
    }
    let one = |e: &wattle_repair::Existing| {
        let started = Instant::now();
        let what = match e.kind {
            Kind::Fence => "fence",
            Kind::StoreFence => "store fence",
            Kind::Atomic | Kind::Buffered => "atomic statement",
            Kind::Lock => "lock",
        };
        let _guard = budget::guard(file, options.timeout, options.memory);
        let outcome = noticed(&without(program, &[e]), models, options, run);
        Case {
            name: format!("without the {what} in line {}", e.span.line),
            expected: None,
            outcome,
            seconds: started.elapsed().as_secs_f64(),
        }
    };
    existing(program).iter().map(one).collect()
}

/// Whether some property is violated under one of the memory models.
fn noticed(program: &Program, models: &[MemoryModel], options: &Options, run: &Run<'_>) -> Outcome {
    let mut open = false;
    let share = |t: std::time::Duration| t / models.len().max(1) as u32;
    for model in models {
        let options = Options {
            models: vec![*model],
            timeout: options.timeout.map(share),
            ..options.clone()
        };
        let checked = match wattle::check_with(program, &options, run) {
            Ok(checked) => checked,
            Err(e) => return Outcome::Undecided(e.to_string()),
        };
        for result in &checked.results {
            match result.as_ref().map(|f| &f.judged.verdict) {
                Ok(Verdict::Violated { .. }) => return Outcome::AsExpected,
                Ok(Verdict::Holds { .. }) => {}
                Ok(_) => open = true,
                Err(unsound) => return Outcome::Unsound(unsound.to_string()),
            }
        }
    }
    match open {
        true => Outcome::Undecided("it is not decided whether anything is violated".into()),
        false => Outcome::Wrong("nothing is violated (proved)".into()),
    }
}
