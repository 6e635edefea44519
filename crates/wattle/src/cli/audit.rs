//! `wattle audit`: a certificate, re-checked with the reference machine.

use super::exit::Exit;
use super::subject::{self, File};
use super::{output, progress, signals, units};
use clap::Args;
use std::time::Duration;
use wattle::check::property_text;
use wattle_evidence::{AuditError, Certificate, Control, audit};
use wattle_model::PropertyKind;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: File,
    /// The certificate, as written by `wattle check --certificate`
    certificate: String,
    /// Give up after this long
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    timeout: Option<Duration>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Exit {
    match check(arguments) {
        Ok(exit) | Err(exit) => exit,
    }
}

fn check(arguments: &Arguments) -> Result<Exit, Exit> {
    let program = arguments.file.program()?;
    let kept = subject::evidence::<Certificate>(&arguments.certificate)?;
    let instance = arguments.file.instance(&program, &kept.counts())?;
    let fail = |reason: String, exit: Exit| {
        output::error(&arguments.certificate, &reason, &[]);
        exit
    };
    let task = kept
        .task(&instance)
        .map_err(|e| fail(e.to_string(), Exit::Input))?;
    signals::listen();
    let line = progress::Line::new(false);
    let flags = [signals::interrupted()];
    let sink = |engine: &'static str, p| line.show(&arguments.file.file, engine, p);
    let control = Control::unlimited()
        .with_timeout(arguments.timeout)
        .with_cancel(&flags)
        .with_sink(&sink);
    let result = audit(&task, &kept.evidence, &control);
    line.clear();
    let audited = match result {
        Ok(audited) => audited,
        Err(e @ (AuditError::Corrupt(_) | AuditError::WrongModel(_))) => {
            return Err(fail(e.to_string(), Exit::Input));
        }
        Err(e @ AuditError::Stopped(_)) => return Err(fail(e.to_string(), Exit::Undecided)),
        Err(e) => {
            let reason = format!(
                "the certificate does not check: {e}\n\
                 If Wattle wrote this file as it is, that is a bug in Wattle: please report it."
            );
            return Err(fail(reason, Exit::Unsound));
        }
    };
    let property = kept.question.map(|q| property_text(&program, q));
    let reachable = task
        .question()
        .is_some_and(|q| q.kind == PropertyKind::Reachable);
    let verdict = if reachable { "violated" } else { "holds" };
    let text = if arguments.json {
        let value = serde_json::json!({
            "file": arguments.file.file,
            "model": kept.model,
            "property": property,
            "verdict": verdict,
            "certificate": kept.evidence.describe(),
            "checked": audited.checked,
        });
        format!("{value}\n")
    } else {
        format!(
            "the certificate checks: {verdict} on {} ({})\n  {}\n",
            kept.model,
            kept.evidence.describe(),
            property.unwrap_or_else(|| "no property: assertions and faults only".into()),
        )
    };
    output::answer(&text);
    Ok(if reachable {
        Exit::Violated
    } else {
        Exit::Holds
    })
}
