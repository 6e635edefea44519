//! What takes long: checking a property, finding fences.

use crate::document::Document;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use wattle::fences::{FenceOptions, fences, write};
use wattle::{MemoryModel, Options, Run, Verdict};
use wattle_evidence::Control;
use wattle_repair::Outcome;
use wattle_report::text::{self, Style};

/// How long somebody in an editor waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// The verdicts about a text: a message for each property, at its line, and all in one text.
pub fn check(document: &Document, model: MemoryModel, stop: &AtomicBool) -> (Vec<Value>, String) {
    let Some(program) = document.program() else {
        return (Vec::new(), "the text has errors".into());
    };
    let options = Options {
        models: vec![model],
        timeout: Some(PATIENCE),
        memory: wattle::resources::sensible_limit(),
        ..Options::default()
    };
    let run = Run {
        cancel: Some(stop),
        sink: None,
    };
    let checked = match wattle::check_with(&program, &options, &run) {
        Ok(checked) => checked,
        Err(e) => return (Vec::new(), e.to_string()),
    };
    let (mut marks, mut texts) = (Vec::new(), Vec::new());
    for result in &checked.results {
        let (severity, span, words) = match result {
            Err(unsound) => (1, wattle_model::Span::NONE, unsound.to_string()),
            Ok(finding) => {
                let severity = match finding.judged.verdict {
                    Verdict::Holds { .. } => 3,
                    Verdict::Violated { .. } => 1,
                    Verdict::HoldsIf { .. }
                    | Verdict::Bounded { .. }
                    | Verdict::Undecided { .. } => 2,
                };
                let property = finding.question.and_then(|q| program.properties.get(q));
                let span = property.map_or(wattle_model::Span::NONE, |p| p.span);
                let instance = checked.instance.as_ref();
                (
                    severity,
                    span,
                    text::finding(instance, finding, Style::PLAIN),
                )
            }
        };
        marks.push(json!({
            "range": document.range(span),
            "severity": severity,
            "source": "wattle check",
            "message": words.trim_end(),
        }));
        texts.push(words);
    }
    (marks, texts.join("\n"))
}

/// The text with the cheapest fences in, proved; or why there is none.
pub fn fenced(
    document: &Document,
    model: MemoryModel,
    stop: &AtomicBool,
) -> Result<String, String> {
    let program = document.program().ok_or("the text has errors")?;
    let language = document
        .program_language()
        .ok_or("fences cannot be put into array-based systems yet")?;
    let wanted = FenceOptions::new(model).in_text(language, &document.text);
    let options = Options {
        models: vec![model],
        explain: false,
        ..Options::default()
    };
    let flags = [stop];
    let control = Control::unlimited()
        .with_timeout(Some(PATIENCE))
        .with_memory(wattle::resources::sensible_limit())
        .with_cancel(&flags);
    let found = fences(&program, &wanted, &options, &control);
    let found = found.map_err(|e| format!("no fences: {e:?}"))?;
    match found.outcome {
        Outcome::Fixed { fixes, .. } if fixes[0].sites.is_empty() => {
            Err(format!("no further fence is needed on {model}"))
        }
        Outcome::Fixed { fixes, .. } => {
            let text = &document.text;
            let fix = &fixes[0];
            write(language, text, &program, fix, &wanted, &options, &control)
        }
        Outcome::BrokenUnderSc(_) => Err("broken under SC already: no fence can help".into()),
        Outcome::Impossible(_) => Err(format!("no fence repairs it on {model}")),
        Outcome::UpTo { reason, .. } | Outcome::Undecided { reason, .. } => {
            Err(text::reason(&reason, control.elapsed().as_secs_f64()))
        }
    }
}
