//! `wattle fences`: the cheapest fences and locks that make a program right.

mod existing;
mod report;

use super::batch::{Files, Tally, not_begun};
use super::exit::Exit;
use super::models::{self, Relaxed};
use super::subject::{self, Failure};
use super::{budget::Budget, output, progress, units};
use clap::{Args, ValueEnum};
use report::Report;
pub use report::fence_at;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wattle::family_fences;
use wattle::fences::{FenceError, FenceOptions, Goal, Repaired, Rests, diff, fences, write};
use wattle::input::{InputLanguage, Source, Subject};
use wattle::{Language, MemoryModel, Options, ThreadCount};
use wattle_auditor::AuditPolicy;
use wattle_evidence::Control;
use wattle_model::Program;
use wattle_repair::{Costs, Outcome};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    files: Files,
    /// The memory model, or several with commas between them
    #[arg(
        long,
        short,
        value_enum,
        value_delimiter = ',',
        value_name = "MODEL,…",
        default_value = "tso"
    )]
    model: Vec<Relaxed>,
    /// What the fences are for
    #[arg(long, value_enum, default_value_t = GoalName::Safety)]
    goal: GoalName,
    /// All minimal sets instead of one of the cheapest
    #[arg(long)]
    all: bool,
    /// Say of every fence, `lock` prefix and exchange that is there whether it is needed, a weaker one
    /// suffices, or it is superfluous; and the cheapest fences for the program without its own
    #[arg(long, conflicts_with_all = ["all", "write"])]
    existing: bool,
    /// What a kind costs: fence=N (100), store=N (store fence; 99), swap=N (atomic store; not used
    /// otherwise), lock=N (`lock` prefix or atomic read-modify-write; 101 for any number of threads, not
    /// used otherwise); 0 forbids it. loop=N adds N for every loop around (by default loops only decide
    /// between sets that cost the same)
    #[arg(long, value_name = "KIND=N", value_parser = cost)]
    cost: Vec<(Kind, u32)>,
    /// Write the fenced program here, in the language of the input (one file only)
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// The engine that decides safety; `auto` runs a plan
    #[arg(long, value_name = "NAME", default_value = "auto")]
    engine: String,
    /// How many threads a family has
    #[arg(long, value_name = "NAME=N", value_parser = units::threads)]
    threads: Vec<(String, ThreadCount)>,
    #[command(flatten)]
    budget: Budget,
    /// Believe proofs without re-checking them
    #[arg(long)]
    no_audit: bool,
    /// Take for granted what a proof could not do without: that no number wraps around
    #[arg(long, value_enum, value_name = "WHAT")]
    assume: Vec<units::Assumed>,
    /// Print the results as JSON, an array for several files or models
    #[arg(long)]
    json: bool,
    /// Only the first line of each answer, and no progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GoalName {
    /// The program's properties
    Safety,
    /// Every run has the happens-before relation of an SC run
    Robustness,
    /// No triangular race
    Triangular,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fence,
    Store,
    Swap,
    Lock,
    Loop,
}

fn cost(text: &str) -> Result<(Kind, u32), String> {
    let (kind, n) = text
        .split_once('=')
        .ok_or("expected KIND=N, as in `fence=3`")?;
    let kind = match kind.trim() {
        "fence" => Kind::Fence,
        "store" | "fence-store" | "fence store" => Kind::Store,
        "swap" => Kind::Swap,
        "lock" => Kind::Lock,
        "loop" => Kind::Loop,
        other => {
            return Err(format!(
                "`{other}` is none of fence, store, swap, lock, loop"
            ));
        }
    };
    let n = n.trim();
    let is_number = !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    let n = n.parse().map_err(|_| match is_number {
        true => format!("`{n}` is too much: the largest cost is {}", u32::MAX),
        false => format!("`{n}` is not a number (a cost is 0 or more)"),
    })?;
    Ok((kind, n))
}

impl Arguments {
    /// Locks are looked for where the number of threads is open, and elsewhere if they have a cost.
    fn costs(&self, any: bool) -> Costs {
        let mut costs = match any {
            true => Costs::with_locks(),
            false => Costs::default(),
        };
        for (kind, n) in &self.cost {
            let value = (*n > 0).then_some(*n);
            match kind {
                Kind::Fence => costs.fence = value,
                Kind::Store => costs.store_fence = value,
                Kind::Swap => costs.swap = value,
                Kind::Lock => costs.lock = value,
                Kind::Loop => costs.around = Some(*n),
            }
        }
        costs
    }

    fn options(&self, model: MemoryModel) -> Options {
        Options {
            models: vec![model],
            engine: (self.engine != "auto").then(|| self.engine.clone()),
            threads: self.threads.iter().cloned().collect(),
            audit: match self.no_audit {
                true => AuditPolicy::Never,
                false => AuditPolicy::Always,
            },
            assume_no_wrap: !self.assume.is_empty(),
            explain: false,
            ..Options::default()
        }
    }
}

pub fn run(arguments: &Arguments) -> Exit {
    let batch = arguments.files.batch();
    if arguments.write.is_some() && batch.files.len() != 1 {
        output::note("error: --write needs exactly one program\n");
        return Exit::Input;
    }
    let (mut exit, mut tally) = (Exit::Holds, Tally::default());
    let mut values = Vec::new();
    for (name, error) in &batch.errors {
        let failure = Failure::from(error.clone());
        output::note(&failure.note(name));
        values.push(failure.json("fences", name));
        tally.add([failure.exit]);
        exit = exit.max(failure.exit);
    }
    let quiet = arguments.quiet || arguments.json;
    let line = progress::Line::new(quiet);
    let work = |_: usize, name: &str| {
        (arguments.budget).within_line(name, &line, |control| decide(arguments, name, control))
    };
    let rest = batch.in_order(arguments.files.jobs, work, |name, decided| {
        let answers = match decided {
            Ok(answers) => answers,
            Err(failure) => vec![Answer {
                exit: failure.exit,
                text: String::new(),
                notes: failure.note(name),
                json: failure.json("fences", name),
            }],
        };
        tally.add(answers.iter().map(|a| a.exit));
        let mut goes_on = true;
        for answer in answers {
            exit = exit.max(answer.exit);
            output::note(&answer.notes);
            values.push(answer.json);
            if !arguments.json && !answer.text.is_empty() {
                goes_on = output::answer(&told(&answer.text, name, batch.headed, quiet));
            }
        }
        goes_on
    });
    if arguments.json {
        let value = match (batch.headed, values.len()) {
            (false, 1) => values.remove(0),
            _ => serde_json::Value::Array(values),
        };
        output::answer(&format!("{value}\n"));
    } else if batch.headed && !batch.files.is_empty() {
        output::answer(&tally.line(["can be repaired or need nothing", "cannot be repaired"]));
    }
    exit.max(not_begun(rest))
}

/// With several files under the file's name; if quiet only the first line.
pub fn told(text: &str, name: &str, headed: bool, quiet: bool) -> String {
    let text = match quiet {
        true => text
            .lines()
            .next()
            .map_or(String::new(), |l| format!("{l}\n")),
        false => text.to_string(),
    };
    match headed {
        true => format!("{name}: {text}"),
        false => text,
    }
}

/// What there is to say about one memory model.
struct Answer {
    exit: Exit,
    text: String,
    /// For standard error.
    notes: String,
    json: serde_json::Value,
}

fn decide(
    arguments: &Arguments,
    name: &str,
    control: &Control<'_>,
) -> Result<Vec<Answer>, Failure> {
    let files = &arguments.files;
    let (source, subject, warnings) = subject::load(name, files.language, files.mathematical)?;
    let (program, language) = match (subject, source.language) {
        (Subject::Program(program), InputLanguage::Program(language)) => (program, language),
        (Subject::Program(program), InputLanguage::Code) => (program, Language::Wtl),
        (Subject::Program(_), InputLanguage::Cubicle) | (Subject::System(_), _) => {
            return Err(Failure::input(
                "fences cannot be put into array-based systems yet",
            ));
        }
    };
    if arguments.write.is_some() && !source.places.is_empty() {
        return Err(Failure::input(
            "fences of compiled code go into its source; without --write they are named",
        ));
    }
    if program.families.is_empty() {
        return Err(Failure::input("the program has no threads"));
    }
    let models = models::relaxed(&arguments.model);
    if arguments.write.is_some() && models.len() > 1 {
        return Err(Failure::input("--write needs one memory model"));
    }
    let known = wattle::plan::names();
    if arguments.engine != "auto" && !known.contains(&arguments.engine.as_str()) {
        let reason = format!("there is no engine called `{}`", arguments.engine);
        return Err(Failure::input(reason));
    }
    let mut answers = Vec::new();
    for (i, model) in models.iter().enumerate() {
        // An equal share of the time that is left.
        let left = u32::try_from(models.len() - i).unwrap_or(1);
        let share = control.remaining().map_or(Duration::MAX, |t| t / left);
        let mut answer = one(
            arguments,
            &source,
            language,
            &program,
            *model,
            &control.stage(share),
        )?;
        let named = source.code_lines(&answer.text);
        answer.text.push_str(&named);
        if i == 0 {
            answer.notes.insert_str(0, &warnings.concat());
        }
        answers.push(answer);
    }
    Ok(answers)
}

fn one(
    arguments: &Arguments,
    source: &Source,
    language: Language,
    program: &Program,
    model: MemoryModel,
    control: &Control<'_>,
) -> Result<Answer, Failure> {
    let mut options = arguments.options(model);
    let threads = units::named(&arguments.threads, program).map_err(Failure::input)?;
    options.threads = threads.into_iter().collect();
    // Robustness of open families is asked of the instance the options fix.
    let any = matches!(arguments.goal, GoalName::Safety)
        && !wattle::families::open_families(program, &options).is_empty();
    let wanted = FenceOptions {
        model,
        goal: match arguments.goal {
            GoalName::Safety => Goal::Safety,
            GoalName::Robustness => Goal::Robustness,
            GoalName::Triangular => Goal::Triangular,
        },
        costs: arguments.costs(any),
        all: arguments.all,
        gaps: wattle_syntax::gaps::gaps(language, &source.text),
    };
    let mut report = Report {
        program,
        options: &options,
        counts: family_fences::least(program, &options),
        any,
        asm: matches!(language, Language::X86 | Language::Litmus),
        text: &source.text,
        gaps: &wanted.gaps,
        language,
        locks: wanted.costs.lock.is_some(),
        model,
        rests: Rests::default(),
        seconds: 0.0,
        written: None,
        unwritten: None,
        difference: None,
    };
    if arguments.existing {
        return existing::answer(&mut report, source, &wanted, control);
    }
    let started = Instant::now();
    let outcome = fences(program, &wanted, &options, control);
    let (outcome, rests) = match outcome {
        Ok(Repaired { outcome, rests }) => (outcome, rests),
        Err(FenceError::Instance(e)) => {
            let hint = match &e {
                wattle_model::InstanceError::Unfixed { family, .. } => {
                    format!("{e}; `--threads {family}=2` repairs it for two")
                }
                _ => e.to_string(),
            };
            return Err(Failure::input(hint));
        }
        Err(FenceError::OnlyReachable) => {
            let why = "every property here asks for a state to be reachable (`reachable`, or \
                       `exists` in a litmus test); fences only take runs away. Ask for what must \
                       not happen: `never`, `always`, `finally`, or `~exists`";
            return Err(Failure::input(why));
        }
        Err(FenceError::Unsound(u)) => {
            return Err(Failure::new(Exit::Unsound, u.to_string()));
        }
    };
    report.rests = rests;
    report.seconds = started.elapsed().as_secs_f64();
    if let (Some(path), Outcome::Fixed { fixes, .. }) = (&arguments.write, &outcome) {
        let text = &source.text;
        match write(
            language, text, program, &fixes[0], &wanted, &options, control,
        ) {
            Ok(written) => {
                std::fs::write(path, &written)
                    .map_err(|e| Failure::input(format!("{}: {e}", path.display())))?;
                let new = path.display().to_string();
                report.difference =
                    (written != *text).then(|| diff(&source.name, &new, text, &written));
                report.written = Some(new);
            }
            // What was found is told all the same.
            Err(why) => {
                report.unwritten = Some(format!("the fences were found but not written: {why}"));
            }
        }
    }
    Ok(report.answer(source, &wanted, &outcome))
}
