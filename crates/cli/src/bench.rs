//! `wattle bench`: the measured comparisons, as a table.

use super::exit::Exit;
use super::output;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use wattle_bench::Sink;
use wattle_bench::auto::Wanted;

#[derive(Debug, Args)]
pub struct Arguments {
    /// What to measure; everything if not given
    #[arg(value_enum)]
    suite: Option<Suite>,
    /// Where the suites of real inputs are
    #[arg(long, value_name = "DIR", default_value = "../shared/suites")]
    suites: std::path::PathBuf,
    /// The programs to compare the plan on
    #[arg(long, value_name = "DIR", default_value = "examples")]
    examples: std::path::PathBuf,
    /// Of `auto` leave the random programs out
    #[arg(long)]
    no_random: bool,
    /// Of `auto` only the programs whose path has this in it (random ones are `random families 6`)
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    only: String,
    /// Of `auto` and `evidence` show every row, not only the worst or longest
    #[arg(long)]
    all: bool,
    /// Of `explicit` measure only how 100 million states fit into one store (takes about 4 GB); `cores` goes on to as many
    #[arg(long)]
    hundred_million: bool,
    /// Print the rows as JSON: an array with an object for each suite
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// What of `auto` is wanted.
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            random: !self.no_random,
            only: &self.only,
            all: self.all,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// The explicit search: states per second, bytes per state, ablations, the store's own limit
    Explicit,
    /// One search on one worker and on several: time on the wall and of the processor
    Cores,
    /// How states grow with the number of threads, with each reduction, beside the peers' growth
    Growth,
    /// Demands on whole runs: states beside the search for bad states, time beside Spin
    Liveness,
    /// Robustness, reachability and fences under TSO beside the peers; families of growing size
    Tso,
    /// calin-2016's tables and graphs of chapter 5: exploration, reductions, families
    Calin,
    /// The plan beside every engine alone, on every example, the suites of harder programs and 300 random ones
    Auto,
    /// Fences for integer programs by `cegar`, beside abdulla-2012's Table 1; PSO too
    Abdulla,
    /// Any number of threads: conchon-2017's case studies and the suites of array-based systems
    Params,
    /// Predicate and cube extrapolation beside dan-2013's Tables 1 and 2: the paper's method alone, and ours
    Cupex,
    /// Answers with their audit beside the same without, on the examples and suites
    Evidence,
}

impl Suite {
    /// As on the command line.
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |v| v.get_name().to_string())
    }

    /// Measures; says what is wrong if an answer or a ratio is not as it should be.
    fn measure(self, arguments: &Arguments, out: &mut Sink<'_>) -> Result<(), &'static str> {
        let (examples, suites) = (&arguments.examples, &arguments.suites);
        let (fine, complaint) = match self {
            Suite::Explicit => {
                wattle_bench::explicit::run(arguments.hundred_million, out);
                return Ok(());
            }
            Suite::Cores => {
                wattle_bench::cores::run(arguments.hundred_million, out);
                return Ok(());
            }
            Suite::Growth => {
                wattle_bench::growth::run(out);
                return Ok(());
            }
            Suite::Tso => {
                wattle_bench::tso::run(suites, out);
                return Ok(());
            }
            Suite::Calin => {
                wattle_bench::calin::run(suites, out);
                return Ok(());
            }
            Suite::Params => {
                wattle_bench::params::run(suites, examples, out);
                return Ok(());
            }
            Suite::Auto => (
                wattle_bench::auto::run(examples, suites, arguments.wanted(), out),
                "an engine alone is much better than the plan",
            ),
            Suite::Abdulla => (
                wattle_bench::abdulla::run(out),
                "an answer is not the expected one",
            ),
            Suite::Cupex => (
                wattle_bench::cupex::run(out),
                "an answer is not the expected one",
            ),
            Suite::Liveness => (
                wattle_bench::liveness::run(examples, out),
                "an answer is not that of Spin, or later than it",
            ),
            Suite::Evidence => (
                wattle_bench::evidence::run(examples, suites, arguments.all, out),
                "an audit costs too much",
            ),
        };
        fine.then_some(()).ok_or(complaint)
    }
}

pub fn run(arguments: &Arguments) -> Exit {
    let all = Suite::value_variants().iter().copied();
    let wanted = all.filter(|s| arguments.suite.is_none_or(|a| a == *s));
    let mut exit = Exit::Holds;
    let mut objects = Vec::new();
    for suite in wanted {
        let (mut rows, mut notes) = (Vec::new(), Vec::new());
        let mut take = |text: &str, row: Option<Value>| match (arguments.json, row) {
            (false, _) => drop(output::answer(&format!("{text}\n"))),
            (true, Some(row)) => rows.push(row),
            (true, None) => notes.push(text.to_string()),
        };
        let measured = suite.measure(arguments, &mut Sink::new(&mut take));
        if let Err(complaint) = measured {
            output::note(&format!("error: {}: {complaint}\n", suite.name()));
            exit = exit.max(Exit::Violated);
        }
        let mut value = json!({
            "suite": suite.name(),
            "rows": rows,
            "notes": notes,
            "complaint": measured.err(),
        });
        output::originated("bench", &mut value);
        objects.push(value);
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&objects).unwrap_or_default();
        output::answer(&format!("{text}\n"));
    }
    exit
}
