//! `wattle audit`: a certificate, re-checked with the reference machine and, for formulas, solvers.

use super::exit::Exit;
use super::subject::{self, File};
use super::{output, progress, signals, units};
use clap::{Args, ValueEnum};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wattle::check::property_text;
use wattle::families;
use wattle::input::Subject;
use wattle::resources;
use wattle_evidence::{
    AuditError, Certificate, Control, Solvers, Stop, audit_crowd, audit_system, audit_with,
};
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
    /// Memory for the whole process (4G, 512M) [default: three quarters of what is free]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    memory: Option<u64>,
    /// Who answers the queries of certificates made of formulas (kinds `inductive` and `cubes`)
    #[arg(long, value_enum, default_value_t = Opinion::Own)]
    solver: Opinion,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Opinion {
    /// Our own solver; its proofs are checked
    Own,
    /// Our own solver, and the installed `z3` must say the same of every query
    Z3,
}

impl Opinion {
    fn solvers(self) -> Result<Solvers, Exit> {
        match self {
            Opinion::Own => Ok(Solvers::own()),
            Opinion::Z3 => Solvers::with_z3().map_err(|e| {
                let reason = format!(
                    "`--solver z3` needs the program `z3` on the search path: {e}\n\
                     Debian and Ubuntu have it in the package `z3`, Homebrew in the formula `z3`; \
                     or leave the option out: our own solver's proofs are checked."
                );
                output::error("wattle audit", &reason, &[]);
                Exit::Input
            }),
        }
    }
}

pub fn run(arguments: &Arguments) -> Exit {
    let over = AtomicBool::new(false);
    let limit = arguments.memory.or_else(resources::sensible_limit);
    match resources::watching(limit, &over, || check(arguments, limit, &over)) {
        Ok(exit) | Err(exit) => exit,
    }
}

fn check(arguments: &Arguments, memory: Option<u64>, over: &AtomicBool) -> Result<Exit, Exit> {
    let (_, subject) = arguments.file.load()?;
    let solvers = arguments.solver.solvers()?;
    let kept = subject::evidence::<Certificate>(&arguments.certificate)?;
    let fail = |reason: String, exit: Exit| {
        output::error(&arguments.certificate, &reason, &[]);
        exit
    };
    signals::listen();
    let line = progress::Line::new(false);
    let flags = [signals::interrupted(), over];
    let sink = |engine: &'static str, p| line.show(&arguments.file.file, engine, p);
    let control = Control::unlimited()
        .with_timeout(arguments.timeout)
        .with_memory(memory)
        .with_cancel(&flags)
        .with_sink(&sink);
    // The program with the numbers of threads the evidence is about, if some are open.
    let open = match &subject {
        Subject::Program(program) => {
            let program = families::opened(program, &kept.any, &kept.threads);
            let program = program.map_err(|e| fail(e, Exit::Input))?;
            program.is_parameterised().then_some(program)
        }
        Subject::System(_) => None,
    };
    let any_number =
        matches!(kept.evidence, Certificate::Cubes(_) | Certificate::Views(_)) || open.is_some();
    if kept.deadlock && any_number {
        let reason = "no proof about any number of threads is about deadlock";
        return Err(fail(reason.into(), Exit::Input));
    }
    let result = match (&kept.evidence, &subject, &open) {
        (evidence @ (Certificate::Cubes(_) | Certificate::Views(_)), ..) => {
            let system = families::system_of(&subject, &kept.any, &kept.threads, kept.question);
            let system = system.map_err(|e| fail(e, Exit::Input))?;
            kept.is_about(&system)
                .map_err(|e| fail(e.to_string(), Exit::Input))?;
            if let Subject::Program(program) = &subject {
                let (any, threads, question) = (&kept.any, &kept.threads, kept.question);
                families::faithful_again(program, any, threads, question, kept.model, &control)
                    .map_err(|e| fail(e, Exit::Unsound))?;
            }
            audit_system(&solvers, &system, kept.model, evidence, &control)
        }
        (Certificate::LoadBuffers(basis), _, Some(program)) => {
            let crowd = program.crowd(kept.question);
            let crowd = crowd.map_err(|n| fail(n.message, Exit::Input))?;
            kept.is_about_crowd(&crowd)
                .map_err(|e| fail(e.to_string(), Exit::Input))?;
            audit_crowd(program, kept.model, kept.question, basis, &control)
        }
        (evidence, Subject::Program(program), _) => {
            let instance = arguments.file.instance(program, &kept.counts())?;
            let task = kept.task(&instance);
            let task = task.map_err(|e| fail(e.to_string(), Exit::Input))?;
            audit_with(&solvers, &task, evidence, &control)
        }
        (_, Subject::System(_), _) => {
            let reason = "it is not about an array-based system";
            return Err(fail(reason.into(), Exit::Input));
        }
    };
    line.clear();
    let audited = match result {
        Ok(audited) => audited,
        Err(AuditError::Stopped(stop)) => {
            let stop = match over.load(Ordering::Relaxed) {
                true => Stop::Memory,
                false => stop,
            };
            let reason = AuditError::Stopped(stop).to_string();
            return Err(fail(reason, Exit::Undecided));
        }
        Err(AuditError::Refused(why)) => {
            let reason = format!("the certificate cannot be audited: {why}");
            return Err(fail(reason, Exit::Undecided));
        }
        Err(e @ AuditError::TooMany) => {
            let reason = format!("the certificate cannot be audited: {e}");
            return Err(fail(reason, Exit::Undecided));
        }
        // Its header says that it is Wattle's own evidence about this very program.
        Err(e) => {
            let reason = format!(
                "the certificate does not check: {e}\n\
                 If Wattle wrote this file as it is, that is a bug in Wattle: please report it."
            );
            return Err(fail(reason, Exit::Unsound));
        }
    };
    let (property, reachable) = match (&subject, kept.question) {
        (Subject::Program(program), Some(q)) => {
            let kind = program.properties[q].kind;
            let text = property_text(program, q);
            (Some(text), kind == PropertyKind::Reachable)
        }
        (Subject::Program(_), None) => (None, false),
        (Subject::System(_), _) => (Some("unsafe".to_string()), false),
    };
    let verdict = if reachable { "violated" } else { "holds" };
    let text = if arguments.json {
        let value = serde_json::json!({
            "file": arguments.file.file,
            "model": kept.model,
            "property": property,
            "verdict": verdict,
            "certificate": kept.evidence.describe(),
            "checked": audited.checked,
            "queries": solvers.asked(),
        });
        format!("{value}\n")
    } else {
        let asked = match (solvers.asked(), arguments.solver) {
            (0, Opinion::Own) => String::new(),
            (0, Opinion::Z3) => "  this kind of certificate needs no solver\n".to_string(),
            (n, _) => format!("  {n} queries were answered by {}\n", solvers.describe()),
        };
        format!(
            "the certificate checks: {verdict} on {} ({})\n  {}\n{asked}",
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
