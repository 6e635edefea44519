//! `wattle explore`: a program step by step, by hand.

use super::exit::Exit;
use super::models::OneModel;
use super::subject::{self, Failure, File};
use super::{budget::Budget, output, signals, units};
use clap::Args;
use std::io::Write;
use std::time::Duration;
use wattle::check::property_text;
use wattle::{Options, Run, ThreadCount};
use wattle_evidence::Trace;
use wattle_explore::terminal::Finder;
use wattle_explore::{Subject, Way, server, terminal};
use wattle_model::{Count, Counts, Instance, Program};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: File,
    /// The memory model (of a trace, its own)
    #[arg(long, short, value_enum, default_value_t = OneModel::Tso)]
    model: OneModel,
    /// How many threads a family has [default: two where the program leaves it open]
    #[arg(long, value_name = "NAME=N", value_parser = units::threads, conflicts_with = "trace")]
    threads: Vec<(String, ThreadCount)>,
    /// Begin at the end of this run, as written by `wattle check --trace`
    #[arg(long, value_name = "TRACE")]
    trace: Option<String>,
    /// On a page, served on loopback to this machine only
    #[arg(long)]
    web: bool,
    /// The port of the page [default: a free one]
    #[arg(long, value_name = "N", requires = "web", default_value_t = 0)]
    port: u16,
    #[command(flatten)]
    budget: Budget,
}

pub fn run(arguments: &Arguments) -> Exit {
    match explore(arguments) {
        Ok(()) => Exit::Holds,
        Err(failure) => failure.told("explore", &arguments.file.file, false),
    }
}

/// How long a search for a run may take while somebody waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

fn explore(arguments: &Arguments) -> Result<(), Failure> {
    let (source, _) = arguments.file.load()?;
    let program = arguments.file.program()?;
    let fail = |why: String| Failure::input(why);
    let kept = arguments.trace.as_deref().map(subject::evidence::<Trace>);
    let kept = kept.transpose()?;
    let counts = match &kept {
        Some(kept) => kept.counts(),
        None => counts(arguments, &program).map_err(fail)?,
    };
    let instance = arguments.file.instance(&program, &counts)?;
    let model = match (&kept, arguments.model) {
        (Some(kept), _) => kept.model,
        (None, model) => model.into(),
    };
    let subject = Subject {
        name: source.name.clone(),
        text: source.text.clone(),
        instance: &instance,
        counts: counts.clone(),
        model,
        properties: (0..program.properties.len())
            .map(|q| property_text(&program, q))
            .collect(),
    };
    let begin = match &kept {
        Some(kept) => {
            kept.task(&instance).map_err(|e| fail(e.to_string()))?;
            subject.way_of(&kept.evidence).map_err(fail)?
        }
        None => Way::default(),
    };
    let find = || found(arguments, &subject, &program, &counts, &instance);
    match arguments.web {
        true => web(arguments, &subject, &begin, &find),
        false => {
            let input = std::io::stdin();
            let done = terminal::run(
                &subject,
                begin,
                &find,
                &mut input.lock(),
                &mut std::io::stdout().lock(),
            );
            done.map_err(|e| fail(e.to_string()))
        }
    }
}

/// The numbers of threads: as given, as written, or two.
fn counts(arguments: &Arguments, program: &Program) -> Result<Counts, String> {
    let mut counts = Counts::default();
    for (name, count) in units::named(&arguments.threads, program)? {
        match count {
            ThreadCount::Fixed(n) => counts.0.insert(name, n),
            ThreadCount::Any => return Err("one walks with a number of threads".into()),
        };
    }
    for family in program.families.iter().filter(|f| f.count == Count::Any) {
        counts.0.entry(family.name.clone()).or_insert(2);
    }
    Ok(counts)
}

/// A run that violates a property.
fn found(
    arguments: &Arguments,
    subject: &Subject<'_>,
    program: &Program,
    counts: &Counts,
    instance: &Instance,
) -> Result<Way, String> {
    let threads = counts.0.iter();
    let options = Options {
        models: vec![subject.model],
        threads: threads
            .map(|(n, c)| (n.clone(), ThreadCount::Fixed(*c)))
            .collect(),
        timeout: Some(
            arguments
                .budget
                .time()
                .map_or(PATIENCE, |t| t.min(PATIENCE)),
        ),
        memory: arguments.budget.bytes(),
        explain: false,
        ..Options::default()
    };
    let run = Run {
        cancel: Some(signals::interrupted()),
        sink: None,
    };
    let checked = wattle::check_with(program, &options, &run).map_err(|e| e.to_string())?;
    let same = checked.instance.as_ref() == Some(instance);
    let mut traces = checked.findings().filter_map(|f| f.trace());
    match traces.next() {
        Some(trace) if same => subject.way_of(trace),
        Some(_) => Err("the run is one of another number of threads".into()),
        None => Err(format!(
            "no run that violates a property was found on {}",
            subject.model
        )),
    }
}

fn web(
    arguments: &Arguments,
    subject: &Subject<'_>,
    begin: &Way,
    find: &Finder<'_>,
) -> Result<(), Failure> {
    let fail = |e: std::io::Error| Failure::input(e.to_string()).about("wattle explore --web");
    let listener = server::listen(arguments.port).map_err(fail)?;
    let address = listener.local_addr().map_err(fail)?;
    signals::listen();
    output::answer(&format!("http://{address}/\n"));
    output::note("open this page in a browser; Ctrl-C ends it\n");
    let _ = std::io::stdout().flush();
    server::serve(&listener, subject, begin, find, signals::interrupted()).map_err(fail)
}
