//! `wattle audit`: a certificate, re-checked with the reference machine and, for formulas, solvers.

use super::exit::Exit;
use super::subject::{self, Failure, File};
use super::{budget::Budget, output, units};
use clap::{Args, ValueEnum};
use wattle::Options;
use wattle::families;
use wattle::input::Subject;
use wattle_auditor::{
    AuditError, Solvers, audit_counting, audit_live, audit_open, audit_system, audit_with,
    counting, levels,
};
use wattle_evidence::{AnyNumber, Certificate, Control, OpenTask, Scope};
use wattle_model::PropertyKind;
use wattle_report::{json, words};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: File,
    /// The certificate, as written by `wattle check --certificate`
    certificate: String,
    #[command(flatten)]
    budget: Budget,
    /// Who answers the queries of certificates made of formulas (kinds `inductive`, `cubes` and `counting`)
    #[arg(long, value_enum, default_value_t = Opinion::Own)]
    solver: Opinion,
    /// Take for granted what a proof could not do without: that no number wraps around
    #[arg(long, value_enum, value_name = "WHAT")]
    assume: Vec<units::Assumed>,
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
    fn solvers(self) -> Result<Solvers, Failure> {
        match self {
            Opinion::Own => Ok(Solvers::own()),
            Opinion::Z3 => Solvers::with_z3().map_err(|e| {
                let reason = format!(
                    "`--solver z3` needs the program `z3` on the search path: {e}\n\
                     Debian and Ubuntu have it in the package `z3`, Homebrew in the formula `z3`; \
                     or leave the option out: our own solver's proofs are checked."
                );
                Failure::input(reason).about("wattle audit")
            }),
        }
    }
}

pub fn run(arguments: &Arguments) -> Exit {
    let file = &arguments.file.file;
    let checked = (arguments.budget).within(file, false, |control| check(arguments, control));
    match checked {
        Ok(exit) => exit,
        Err(failure) => failure.told("audit", file, arguments.json),
    }
}

fn check(arguments: &Arguments, control: &Control<'_>) -> Result<Exit, Failure> {
    let (_, subject) = arguments.file.load()?;
    let solvers = arguments.solver.solvers()?;
    let kept = subject::evidence::<Certificate>(&arguments.certificate)?;
    let fail =
        |reason: String, exit: Exit| Failure::new(exit, reason).about(&arguments.certificate);
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
    let mut scope = Scope::default();
    let mut unchecked = None;
    let result = match (&kept.evidence, &subject, &open) {
        (evidence @ (Certificate::Cubes(_) | Certificate::Views(_)), ..) => {
            let system = families::system_of(&subject, &kept.any, &kept.threads, kept.question);
            let system = system.map_err(|e| fail(e, Exit::Input))?;
            kept.is_about(&system)
                .map_err(|e| fail(e.to_string(), Exit::Input))?;
            scope.assumptions = match &subject {
                Subject::Program(program) => {
                    let (any, threads, question) = (&kept.any, &kept.threads, kept.question);
                    let assumptions = families::assumptions(program, any, threads, question);
                    assumptions.map_err(|e| fail(e, Exit::Input))?
                }
                Subject::System(_) => families::axioms(&system),
            };
            let audited = audit_system(&solvers, &system, kept.model, evidence, control);
            if let (Ok(_), Subject::Program(program)) = (&audited, &subject) {
                let result = families::validated_again(program, &kept, &solvers, control);
                unchecked = result.map_err(|e| fail(e, Exit::Unsound))?;
            }
            audited
        }
        (evidence @ (Certificate::LoadBuffers(_) | Certificate::Readers(_)), _, Some(program)) => {
            let crowd = program.crowd(kept.question);
            let crowd = crowd.map_err(|n| fail(n.message, Exit::Input))?;
            kept.is_about_crowd(&crowd)
                .map_err(|e| fail(e.to_string(), Exit::Input))?;
            let task = OpenTask {
                of: AnyNumber::Program(program),
                model: kept.model,
                question: kept.question,
                deadlock: false,
            };
            audit_open(&solvers, &task, evidence, None, control)
        }
        (Certificate::Levels(facts), _, Some(program)) => {
            let about = families::told_apart(program).map_err(|e| fail(e, Exit::Input))?;
            kept.is_about_crowd(&about)
                .map_err(|e| fail(e.to_string(), Exit::Input))?;
            levels::audit_levels(program, kept.model, kept.question, facts, control)
        }
        (Certificate::Counting(facts), _, Some(program)) => {
            let crowd = program.counted_crowd(kept.question);
            let crowd = crowd.map_err(|n| fail(n.message, Exit::Input))?;
            kept.is_about_crowd(&crowd.crowd)
                .map_err(|e| fail(e.to_string(), Exit::Input))?;
            let mut assumptions = Vec::new();
            counting::told(program, facts, &mut scope, &mut assumptions);
            scope.assumptions = assumptions;
            let (model, question) = (kept.model, kept.question);
            audit_counting(&solvers, program, model, question, facts, control)
        }
        (Certificate::Components(_) | Certificate::Returning(_), Subject::Program(program), _) => {
            let instance = arguments.file.demanded(program, &kept)?;
            let task = kept.live_task(&instance);
            let task = task.map_err(|e| fail(e.to_string(), Exit::Input))?;
            audit_live(&task, &kept.evidence, control)
        }
        (evidence, Subject::Program(program), _) => {
            let instance = arguments.file.instance(program, &kept.counts())?;
            let task = kept.task(&instance);
            let task = task.map_err(|e| fail(e.to_string(), Exit::Input))?;
            audit_with(&solvers, &task, evidence, control)
        }
        (_, Subject::System(_), _) => {
            let reason = "it is not about an array-based system";
            return Err(fail(reason.into(), Exit::Input));
        }
    };
    // A proof under a condition says nothing of runs that break the condition.
    let of = match &subject {
        Subject::Program(program) => AnyNumber::Program(program),
        Subject::System(system) => AnyNumber::System(system),
    };
    let mut assumed = scope.assumptions.iter();
    let sampled = assumed.all(|a| families::small_worlds_keep(of, a));
    if any_number && result.is_ok() && sampled {
        families::small_worlds_again(&subject, &kept, control)
            .map_err(|e| fail(e, Exit::Unsound))?;
    }
    let audited = match result {
        Ok(audited) => audited,
        Err(e @ AuditError::Stopped(_)) => return Err(fail(e.to_string(), Exit::Undecided)),
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
    let (property, reachable) = match &subject {
        Subject::Program(program) => {
            let asked = kept.question.filter(|_| kept.live.is_none());
            let kind = asked.map(|q| program.properties[q].kind);
            let text = subject::property(program, &kept);
            (text, kind == Some(PropertyKind::Reachable))
        }
        Subject::System(_) => (Some("unsafe".to_string()), false),
    };
    let options = Options {
        assume_no_wrap: !arguments.assume.is_empty(),
        ..Options::default()
    };
    let accepted = scope.assumptions.iter().all(|a| options.accepts(a));
    let (verdict, exit) = match (reachable, accepted) {
        (true, _) => ("violated", Exit::Violated),
        (false, true) => ("holds", Exit::Holds),
        (false, false) => ("undecided", Exit::Undecided),
    };
    // Said only where the certificate is about fewer than any number.
    let whom = match scope.threads.as_str() {
        "" => String::new(),
        threads => format!(" for {threads}"),
    };
    let assumed = words::all(scope.assumptions.iter().map(ToString::to_string));
    let (told, condition) = match (accepted, assumed.is_empty()) {
        (false, _) => (
            format!("holds on {}{whom} if {assumed}", kept.model),
            format!("  {}\n", scope.condition()),
        ),
        (true, false) => (
            format!("{verdict} on {}{whom}, assuming that {assumed}", kept.model),
            String::new(),
        ),
        (true, true) => {
            let fair = kept.live.map_or(String::new(), |(_, f)| format!(" {f}"));
            (
                format!("{verdict} on {}{whom}{fair}", kept.model),
                String::new(),
            )
        }
    };
    let text = if arguments.json {
        let mut value = serde_json::json!({
            "file": arguments.file.file,
            "model": kept.model,
            "property": property,
            "verdict": verdict,
            "certificate": kept.evidence.describe(),
            "checked": audited.checked,
            "queries": solvers.asked(),
            "unchecked": unchecked.as_ref().map(ToString::to_string),
            "assumptions": json::ScopeReport::from(&scope).assumptions,
        });
        output::originated("audit", &mut value);
        format!("{value}\n")
    } else {
        let asked = match (solvers.asked(), arguments.solver) {
            (0, Opinion::Own) => String::new(),
            (0, Opinion::Z3) => "  this kind of certificate needs no solver\n".to_string(),
            (n, _) => format!("  {n} queries were answered by {}\n", solvers.describe()),
        };
        let but = unchecked.map_or_else(String::new, |why| format!("  but {why}\n"));
        format!(
            "the certificate checks: {told} ({})\n  {}\n{but}{condition}{asked}",
            kept.evidence.describe(),
            property.unwrap_or_else(|| "no property: assertions and faults only".into()),
        )
    };
    output::answer(&text);
    Ok(exit)
}
