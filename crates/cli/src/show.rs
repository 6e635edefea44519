//! `wattle show`: a program in another form.

use super::check::Extrapolated;
use super::exit::Exit;
use super::models::{OneModel, OneRelaxed};
use super::subject::{self, Failure, File};
use super::{budget::Budget, output, reduced, units};
use clap::{Args, ValueEnum};
use std::collections::{BTreeMap, BTreeSet};
use wattle::families;
use wattle::fences::{FenceOptions, fences};
use wattle::input::{self, InputLanguage, Source, Subject};
use wattle::{MemoryModel, Options, ThreadCount, picture};
use wattle_evidence::{Control, Task, Trace};
use wattle_extrapolate::Method;
use wattle_model::{Counts, Program, print};
use wattle_repair::{Fenced, Outcome, Places, fenced};
use wattle_report::export::{promela, smt2};
use wattle_report::picture::{Added, threads};
use wattle_report::{dot, walked};
use wattle_syntax::Language;
use wattle_syntax::gaps::{Gap, gaps};

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
    /// Print the form inside of JSON (`text`); of a broken file, what is wrong with it
    #[arg(long)]
    json: bool,
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
    /// Processes for Spin, with the first property as an assertion, under SC or as --reduce says
    Promela,
    /// Constrained Horn clauses with the first property, under SC or as --reduce says
    Smt2,
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
    let json = arguments.json;
    match (arguments.budget).within(file, json, |control| text(arguments, control)) {
        Ok(text) if json => {
            let form = arguments.form.to_possible_value();
            let mut value = serde_json::json!({
                "file": file,
                "as": form.map(|f| f.get_name().to_string()),
                "text": text,
            });
            output::originated("show", &mut value);
            output::answer(&format!("{value}\n"));
            Exit::Holds
        }
        Ok(text) => {
            output::answer(&text);
            Exit::Holds
        }
        Err(failure) => failure.told("show", file, json),
    }
}

fn text(arguments: &Arguments, control: &Control<'_>) -> Result<String, Failure> {
    let drawn = arguments.trace.is_some() || arguments.fences.is_some();
    if matches!(
        arguments.form,
        Form::Wtl
            | Form::BooleanProgram
            | Form::Cubicle
            | Form::States
            | Form::Promela
            | Form::Smt2
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
        Subject::System(_) if matches!(arguments.form, Form::Promela | Form::Smt2) => {
            let reason =
                "array-based systems have no fixed number of threads; `--as cubicle` writes them";
            return Err(Failure::new(Exit::Input, reason));
        }
        Subject::System(system) => return Ok(system.to_string()),
    };
    if arguments.form == Form::Wtl && arguments.reduce.is_none() {
        return Ok(print::to_wtl(&program));
    }
    if arguments.form == Form::Cubicle {
        let counters = source.language == InputLanguage::Program(Language::X86);
        let counters = counters && !source.mathematical;
        return cubicle(arguments, program, counters)
            .or_else(|why| in_integers(arguments, source).unwrap_or(Err(why)));
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
        (Form::Promela | Form::Smt2, bound) => {
            let print = match arguments.form == Form::Promela {
                true => promela::text,
                false => smt2::text,
            };
            return reduced::exported(&arguments.file, &source, &program, &counts, bound, &print);
        }
        _ => {}
    }
    // One thread shows the graph of a family of any number, two how they need fences.
    let open = if arguments.fences.is_some() { 2 } else { 1 };
    for f in &program.families {
        if f.count == wattle_model::Count::Any {
            counts.0.entry(f.name.clone()).or_insert(open);
        }
    }
    let (instance, added) = match arguments.fences {
        None => (arguments.file.instance(&program, &counts)?, Added::new()),
        Some(model) => {
            let gaps = match source.language {
                InputLanguage::Program(language) => gaps(language, &source.text),
                InputLanguage::Code | InputLanguage::Cubicle => Vec::new(),
            };
            let fenced = repaired((&program, gaps), &counts, (model, control))?;
            let instance = arguments.file.instance(&fenced.program, &counts)?;
            let added = picture::added(&fenced, &instance);
            (instance, added)
        }
    };
    // What is drawn of compiled code is no text of its author.
    let text = match source.language {
        InputLanguage::Program(_) => source.text.as_str(),
        InputLanguage::Code | InputLanguage::Cubicle => "",
    };
    Ok(match arguments.form {
        Form::Dot => dot::graph(&instance, &added, text),
        _ => threads(&instance, &added, text),
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

/// The same of an x86 program whose words have no form for Cubicle: its numbers are integers there anyway.
fn in_integers(arguments: &Arguments, mut source: Source) -> Option<Result<String, Failure>> {
    if std::mem::replace(&mut source.mathematical, true) {
        return None;
    }
    let program = match input::parse(&mut source) {
        Ok((Subject::Program(program), _)) => program,
        Ok((Subject::System(_), _)) => return None,
        // What integers do not have has its place in the text.
        Err(why) => return Some(Err(why.into())),
    };
    let text = cubicle(arguments, program, false).ok()?;
    output::note("note: written with mathematical integers, as with --mathematical\n");
    Some(Ok(text))
}

/// The array-based system of a program for its first property. Its integers may be known to be counters of threads.
fn cubicle(arguments: &Arguments, program: Program, counters: bool) -> Result<String, Failure> {
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
    let counted = counters.then(|| families::counted(&program, &any, &counts, question));
    let system = match counted.flatten() {
        Some(system) => system,
        None => families::system_of(&Subject::Program(program), &any, &counts, question)
            .map_err(|why| Failure::new(Exit::Input, why))?,
    };
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
    walked::states(&task, &kept.evidence)
        .map_err(|e| failed(format!("the trace does not replay: {e}")))?;
    let order = picture::order(&task, &kept.evidence)
        .map_err(|_| failed("the trace does not replay".into()))?;
    Ok(match arguments.form {
        Form::Dot => order.dot(),
        _ => order.svg(),
    })
}

/// The program with the cheapest fences.
fn repaired(
    (program, gaps): (&Program, Vec<Vec<Gap>>),
    counts: &Counts,
    (model, control): (OneRelaxed, &Control<'_>),
) -> Result<Fenced, Failure> {
    let model = MemoryModel::from(model);
    let wanted = FenceOptions {
        gaps,
        ..FenceOptions::new(model)
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
            let first = fixes.into_iter().next();
            let nothing = || fenced(program, &Places::new(program, &[]), &BTreeSet::new());
            Ok(first.map_or_else(nothing, |fix| fix.fenced))
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
