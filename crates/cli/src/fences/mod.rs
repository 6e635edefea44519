//! `wattle fences`: the cheapest fences and locks that make a program right.

mod report;

use super::exit::Exit;
use super::subject::File;
use super::{budget::Budget, output, units};
use clap::{Args, ValueEnum};
use report::Report;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wattle::family_fences;
use wattle::fences::{FenceError, FenceOptions, Goal, Repaired, diff, fences, write};
use wattle::input::{InputLanguage, Source, Subject};
use wattle::{Language, MemoryModel, Options, ThreadCount};
use wattle_auditor::AuditPolicy;
use wattle_evidence::Control;
use wattle_model::Program;
use wattle_repair::{Costs, Outcome};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: File,
    /// The memory model
    #[arg(long, value_enum, default_value_t = Model::Tso)]
    model: Model,
    /// What the fences are for
    #[arg(long, value_enum, default_value_t = GoalName::Safety)]
    goal: GoalName,
    /// All minimal sets instead of one of the cheapest
    #[arg(long)]
    all: bool,
    /// What a kind costs: fence=N (100), store=N (store fence; 99), swap=N (atomic store; not used
    /// otherwise), lock=N (`lock` prefix or atomic read-modify-write; 101 for any number of threads, not
    /// used otherwise); 0 forbids it
    #[arg(long, value_name = "KIND=N", value_parser = cost)]
    cost: Vec<(Kind, u32)>,
    /// Write the fenced program here, in the language of the input
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
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Model {
    Tso,
    Pso,
    All,
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
        other => return Err(format!("`{other}` is none of fence, store, swap, lock")),
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
    let (file, json) = (&arguments.file.file, arguments.json);
    let decided = (arguments.budget).within(file, json, |control| decide(arguments, control));
    match decided {
        Ok(exit) | Err(exit) => exit,
    }
}

/// What there is to say about one memory model.
struct Answer {
    exit: Exit,
    text: String,
    json: serde_json::Value,
}

fn decide(arguments: &Arguments, control: &Control<'_>) -> Result<Exit, Exit> {
    let (source, subject) = arguments.file.load()?;
    let (Subject::Program(program), InputLanguage::Program(language)) = (subject, source.language)
    else {
        let reason = "fences cannot be put into array-based systems yet";
        output::error(&source.name, reason, &[]);
        return Err(Exit::Input);
    };
    if program.families.is_empty() {
        output::error(&source.name, "the program has no threads", &[]);
        return Err(Exit::Input);
    }
    let models = match arguments.model {
        Model::Tso => vec![MemoryModel::Tso],
        Model::Pso => vec![MemoryModel::Pso],
        Model::All => vec![MemoryModel::Tso, MemoryModel::Pso],
    };
    if arguments.write.is_some() && models.len() > 1 {
        output::error(&source.name, "--write needs one memory model", &[]);
        return Err(Exit::Input);
    }
    let known = wattle::plan::names();
    if arguments.engine != "auto" && !known.contains(&arguments.engine.as_str()) {
        let reason = format!("there is no engine called `{}`", arguments.engine);
        output::error(&source.name, &reason, &[]);
        return Err(Exit::Input);
    }
    let mut exit = Exit::Holds;
    let mut values = Vec::new();
    for (i, model) in models.iter().enumerate() {
        // An equal share of the time that is left.
        let left = u32::try_from(models.len() - i).unwrap_or(1);
        let share = control.remaining().map_or(Duration::MAX, |t| t / left);
        let answer = one(
            arguments,
            &source,
            language,
            &program,
            *model,
            &control.stage(share),
        )?;
        exit = exit.max(answer.exit);
        if arguments.json {
            values.push(answer.json);
        } else {
            output::answer(&answer.text);
        }
    }
    if arguments.json {
        let value = match values.len() {
            1 => values.remove(0),
            _ => serde_json::Value::Array(values),
        };
        output::answer(&format!("{value}\n"));
    }
    Ok(exit)
}

fn one(
    arguments: &Arguments,
    source: &Source,
    language: Language,
    program: &Program,
    model: MemoryModel,
    control: &Control<'_>,
) -> Result<Answer, Exit> {
    let mut options = arguments.options(model);
    let threads = units::named(&arguments.threads, program).map_err(|why| {
        output::error(&source.name, &why, &[]);
        Exit::Input
    })?;
    options.threads = threads.into_iter().collect();
    // Robustness of open families is asked of the instance the options fix.
    let any = matches!(arguments.goal, GoalName::Safety)
        && !family_fences::open_families(program, &options).is_empty();
    let wanted = FenceOptions {
        model,
        goal: match arguments.goal {
            GoalName::Safety => Goal::Safety,
            GoalName::Robustness => Goal::Robustness,
            GoalName::Triangular => Goal::Triangular,
        },
        costs: arguments.costs(any),
        all: arguments.all,
    };
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
            output::error(&source.name, &hint, &[]);
            return Err(Exit::Input);
        }
        Err(FenceError::OnlyReachable) => {
            let why = "every property here asks for a state to be reachable (`reachable`, or \
                       `exists` in a litmus test); fences only take runs away. Ask for what must \
                       not happen: `never`, `always`, `finally`, or `~exists`";
            output::error(&source.name, why, &[]);
            return Err(Exit::Input);
        }
        Err(FenceError::Unsound(u)) => {
            output::error(&source.name, &u.to_string(), &[]);
            return Err(Exit::Unsound);
        }
    };
    let mut report = Report {
        program,
        options: &options,
        counts: family_fences::least(program, &options),
        any,
        asm: matches!(language, Language::X86 | Language::Litmus),
        text: &source.text,
        language,
        locks: wanted.costs.lock.is_some(),
        model,
        rests,
        seconds: started.elapsed().as_secs_f64(),
        written: None,
        unwritten: None,
        difference: None,
    };
    if let (Some(path), Outcome::Fixed { fixes, .. }) = (&arguments.write, &outcome) {
        let text = &source.text;
        match write(
            language, text, program, &fixes[0], &wanted, &options, control,
        ) {
            Ok(written) => {
                std::fs::write(path, &written.text).map_err(|e| {
                    output::error(&path.display().to_string(), &e.to_string(), &[]);
                    Exit::Input
                })?;
                report.difference = Some(diff(&source.name, text, &written.text));
                report.written = Some((path.display().to_string(), written.placing));
            }
            // What was found is told all the same.
            Err(why) => {
                report.unwritten = Some(format!("the fences were found but not written: {why}"));
            }
        }
    }
    Ok(report.answer(source, &wanted, &outcome))
}
