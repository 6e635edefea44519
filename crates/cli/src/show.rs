//! `wattle show`: a program in another form.

use super::check::Extrapolated;
use super::exit::Exit;
use super::models::{OneModel, OneRelaxed};
use super::subject::{self, Failure, File};
use super::{budget::Budget, output, reduced, units};
use clap::{Args, ValueEnum};
use std::collections::BTreeMap;
use wattle::families;
use wattle::fences::{FenceOptions, Goal, fences};
use wattle::input::Subject;
use wattle::{MemoryModel, Options, ThreadCount, picture};
use wattle_evidence::{Control, Task, Trace};
use wattle_extrapolate::Method;
use wattle_model::{Counts, Program, print};
use wattle_repair::{Costs, Outcome};
use wattle_report::dot;
use wattle_report::picture::{Mark, threads};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: File,
    /// The form to print
    #[arg(long = "as", value_enum, default_value_t = Form::Wtl)]
    form: Form,
    /// With buffers as variables (`tso,k=2`): the program, or its boolean program (`tso,k=proof`: the one that
    /// proves it). Of `--as states`, which are left out: none, local or persistent (default)
    #[arg(long, value_name = "HOW", value_parser = reduced::how, conflicts_with_all = ["trace", "fences"])]
    reduce: Option<reduced::How>,
    /// The memory model of `--as states`
    #[arg(long, short, value_enum, default_value_t = OneModel::Tso)]
    model: OneModel,
    /// How `--as states` are drawn
    #[arg(long, value_enum, default_value_t = Drawn::Dot)]
    draw: Drawn,
    /// With --as boolean-program and --reduce: what is taken from the proof under SC
    #[arg(long, value_enum, requires = "reduce")]
    extrapolate: Option<Extrapolated>,
    /// How many threads a family has (for graphs and with --reduce)
    #[arg(long, value_name = "NAME=N", value_parser = units::threads)]
    threads: Vec<(String, ThreadCount)>,
    /// Draw the happens-before graph of this run, as written by `wattle check --trace`
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["fences", "threads"])]
    trace: Option<String>,
    /// Mark where the cheapest fences go under this memory model
    #[arg(long, value_enum, value_name = "MODEL")]
    fences: Option<OneRelaxed>,
    #[command(flatten)]
    budget: Budget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The Wattle language
    Wtl,
    /// A graph, for Graphviz
    Dot,
    /// A picture
    Svg,
    /// The state space of a small program, for Graphviz or as a picture (--draw)
    States,
    /// What predicate abstraction makes of it, under SC or as --reduce says
    BooleanProgram,
    /// An array-based system for any number of threads, in Cubicle-W's language
    Cubicle,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Drawn {
    /// A graph, for Graphviz
    Dot,
    /// A picture
    Svg,
}

pub fn run(arguments: &Arguments) -> Exit {
    let file = &arguments.file.file;
    match (arguments.budget).within(file, false, |control| text(arguments, control)) {
        Ok(text) => {
            output::answer(&text);
            Exit::Holds
        }
        Err(failure) => failure.told("show", file, false),
    }
}

fn text(arguments: &Arguments, control: &Control<'_>) -> Result<String, Failure> {
    let drawn = arguments.trace.is_some() || arguments.fences.is_some();
    if matches!(
        arguments.form,
        Form::Wtl | Form::BooleanProgram | Form::Cubicle | Form::States
    ) && drawn
    {
        let reason = "a graph is asked for: add --as svg or --as dot";
        return Err(Failure::new(Exit::Input, reason));
    }
    if arguments.extrapolate.is_some() && arguments.form != Form::BooleanProgram {
        let reason = "--extrapolate is about boolean programs: add --as boolean-program";
        return Err(Failure::new(Exit::Input, reason));
    }
    if let Some(trace) = &arguments.trace {
        return order(arguments, trace);
    }
    let (source, subject) = arguments.file.load()?;
    let program = match subject {
        Subject::Program(program) => program,
        Subject::System(_) if arguments.form == Form::Svg => {
            let reason = "array-based systems have no graph to draw";
            return Err(Failure::new(Exit::Input, reason));
        }
        Subject::System(_) if arguments.form == Form::States => {
            let reason =
                "array-based systems have no fixed number of threads, so no states to draw";
            return Err(Failure::new(Exit::Input, reason));
        }
        Subject::System(system) => return Ok(system.to_string()),
    };
    if arguments.form == Form::Wtl && arguments.reduce.is_none() {
        return Ok(print::to_wtl(&program));
    }
    if arguments.form == Form::Cubicle {
        return cubicle(arguments, program);
    }
    let mut counts = Counts::default();
    let named =
        units::named(&arguments.threads, &program).map_err(|why| Failure::new(Exit::Input, why))?;
    for (name, count) in &named {
        if let ThreadCount::Fixed(n) = count {
            counts.0.insert(name.clone(), *n);
        }
    }
    let bound = match (arguments.form, arguments.reduce) {
        (_, None) => None,
        (_, Some(reduced::How::Buffers(bound))) if arguments.form != Form::States => Some(bound),
        (Form::States, Some(reduced::How::LeaveOut(_))) => None,
        (form, Some(_)) => {
            let reason = match form == Form::States {
                true => "`--reduce` of `--as states` is none, local or persistent",
                false => {
                    "`--reduce` is a memory model and a number of entries here, as in `tso,k=2`"
                }
            };
            return Err(Failure::new(Exit::Input, reason));
        }
    };
    match (arguments.form, bound) {
        (Form::Wtl, Some(bound)) => {
            return reduced::wtl(&arguments.file, &program, &counts, bound);
        }
        (Form::BooleanProgram, bound) => {
            let method = arguments.extrapolate.map(Method::from).unwrap_or_default();
            let how = (bound, method);
            return reduced::boolean(&arguments.file, &source, &program, &counts, how, control);
        }
        (Form::States, _) => return states(arguments, &program, &counts, control),
        _ => {}
    }
    // One thread shows the graph of a family of any number, two how they need fences.
    let open = if arguments.fences.is_some() { 2 } else { 1 };
    for f in &program.families {
        if f.count == wattle_model::Count::Any {
            counts.0.entry(f.name.clone()).or_insert(open);
        }
    }
    let instance = arguments.file.instance(&program, &counts)?;
    let marks = match arguments.fences {
        None => Vec::new(),
        Some(model) => marks(&program, &instance, &counts, (model, control))?,
    };
    Ok(match arguments.form {
        Form::Dot => dot::graph(&instance, &marks),
        _ => threads(&instance, &marks),
    })
}

/// The state space, with the first property's target marked.
fn states(
    arguments: &Arguments,
    program: &Program,
    counts: &Counts,
    control: &Control<'_>,
) -> Result<String, Failure> {
    let instance = arguments.file.instance(program, counts)?;
    let task = Task {
        instance: &instance,
        model: arguments.model.into(),
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock: false,
    };
    let reduce = match arguments.reduce {
        Some(reduced::How::LeaveOut(reduce)) => reduce,
        Some(reduced::How::Buffers(_)) | None => wattle::Reduce::default(),
    };
    let drawn = wattle::states::states(&task, reduce, control)
        .map_err(|why| Failure::new(Exit::Undecided, why))?;
    Ok(match arguments.draw {
        Drawn::Dot => drawn.dot(),
        Drawn::Svg => drawn.svg(),
    })
}

/// The array-based system of a program for its first property.
fn cubicle(arguments: &Arguments, program: Program) -> Result<String, Failure> {
    let named =
        units::named(&arguments.threads, &program).map_err(|why| Failure::new(Exit::Input, why))?;
    let (mut any, mut counts) = (Vec::new(), BTreeMap::new());
    for (name, count) in named {
        match count {
            ThreadCount::Any => any.push(name),
            ThreadCount::Fixed(n) => {
                counts.insert(name, n);
            }
        }
    }
    if program.properties.len() > 1 {
        output::note("note: several properties; the first one is written\n");
    }
    let question = (!program.properties.is_empty()).then_some(0);
    let subject = Subject::Program(program);
    let system = families::system_of(&subject, &any, &counts, question)
        .map_err(|why| Failure::new(Exit::Input, why))?;
    let readable = wattle::cubicle::readable(&system);
    Ok(readable.map_err(Failure::input)?.to_string())
}

/// The happens-before graph of a saved run.
fn order(arguments: &Arguments, path: &str) -> Result<String, Failure> {
    let program = arguments.file.program()?;
    let kept = subject::evidence::<Trace>(path)?;
    let instance = arguments.file.instance(&program, &kept.counts())?;
    let failed = |reason: String| Failure::input(reason).about(path);
    let task = kept.task(&instance).map_err(|e| failed(e.to_string()))?;
    (kept.evidence.check(&task)).map_err(|e| failed(format!("the trace does not replay: {e}")))?;
    let order = picture::order(&task, &kept.evidence)
        .map_err(|_| failed("the trace does not replay".into()))?;
    Ok(match arguments.form {
        Form::Dot => order.dot(),
        _ => order.svg(),
    })
}

/// Where the cheapest fences go.
fn marks(
    program: &Program,
    instance: &wattle_model::Instance,
    counts: &Counts,
    (model, control): (OneRelaxed, &Control<'_>),
) -> Result<Vec<Mark>, Failure> {
    let model = MemoryModel::from(model);
    let wanted = FenceOptions {
        model,
        goal: Goal::Safety,
        costs: Costs::default(),
        all: false,
    };
    let counts = counts.0.iter();
    let options = Options {
        models: vec![model],
        threads: counts
            .map(|(name, n)| (name.clone(), ThreadCount::Fixed(*n)))
            .collect(),
        explain: false,
        ..Options::default()
    };
    match fences(program, &wanted, &options, control).map(|r| r.outcome) {
        Ok(Outcome::Fixed { fixes, .. }) => {
            let first = fixes.first();
            Ok(first.map_or_else(Vec::new, |fix| picture::marks(instance, fix)))
        }
        Ok(Outcome::BrokenUnderSc(_) | Outcome::Impossible(_)) => Err(Failure::new(
            Exit::Violated,
            "no fences repair this program; `wattle fences` says why",
        )),
        Ok(Outcome::UpTo { .. } | Outcome::Undecided { .. }) => Err(Failure::new(
            Exit::Undecided,
            "no fence set was found; `wattle fences` says why",
        )),
        Err(_) => Err(Failure::new(
            Exit::Input,
            "fences cannot be looked for here; `wattle fences` says why",
        )),
    }
}
