//! `wattle bench`: the measured comparisons, as a table.

use super::exit::Exit;
use super::output;
use clap::{Args, ValueEnum};

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
    /// Of `auto` and `evidence` show every row, not only the worst or longest
    #[arg(long)]
    all: bool,
    /// Of `explicit` measure only how 100 million states fit into one store (takes about 4 GB)
    #[arg(long)]
    hundred_million: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// The explicit search: states per second, bytes per state, ablations, the store's own limit
    Explicit,
    /// One search on one worker and on several: time on the wall and of the processor
    Cores,
    /// How states grow with the number of threads, with each reduction, beside the peers' growth
    Growth,
    /// Robustness, reachability and fences under TSO beside the peers; families of growing size
    Tso,
    /// calin-2016's tables and graphs of chapter 5: exploration, reductions, families
    Calin,
    /// The plan beside every engine alone, on every example and the suites of harder programs
    Auto,
    /// Fences for integer programs by `cegar`, beside abdulla-2012's Table 1; PSO too
    Abdulla,
    /// Any number of threads: conchon-2017's case studies and the suites of array-based systems
    Params,
    /// Predicate and cube extrapolation beside dan-2013's Tables 1 and 2
    Cupex,
    /// Answers with their audit beside the same without, on the examples and suites
    Evidence,
}

pub fn run(arguments: &Arguments) -> Exit {
    let wanted = |suite| arguments.suite.is_none_or(|s| s == suite);
    let mut exit = Exit::Holds;
    let mut expect = |fine: bool, complaint: &str| {
        if !fine {
            output::note(&format!("error: {complaint}\n"));
            exit = exit.max(Exit::Violated);
        }
    };
    if wanted(Suite::Explicit) {
        wattle_bench::explicit::run(arguments.hundred_million, &mut |line| {
            output::answer(&format!("{line}\n"));
        });
    }
    if wanted(Suite::Cores) {
        wattle_bench::cores::run(&mut |line| {
            output::answer(&format!("{line}\n"));
        });
    }
    if wanted(Suite::Growth) {
        wattle_bench::growth::run(&mut |line| {
            output::answer(&format!("{line}\n"));
        });
    }
    if wanted(Suite::Tso) {
        wattle_bench::tso::run(&arguments.suites, &mut |line| {
            output::answer(&format!("{line}\n"));
        });
    }
    if wanted(Suite::Calin) {
        wattle_bench::calin::run(&arguments.suites, &mut |line| {
            output::answer(&format!("{line}\n"));
        });
    }
    if wanted(Suite::Auto) {
        let (examples, suites) = (&arguments.examples, &arguments.suites);
        let fine = wattle_bench::auto::run(examples, suites, arguments.all, &mut |line| {
            output::answer(&format!("{line}\n"));
        });
        expect(fine, "auto: an engine alone is much better than the plan");
    }
    if wanted(Suite::Abdulla) {
        let fine = wattle_bench::abdulla::run(&mut |line| {
            output::answer(&format!("{line}\n"));
        });
        expect(fine, "abdulla: an answer is not the expected one");
    }
    if wanted(Suite::Params) {
        wattle_bench::params::run(&arguments.suites, &arguments.examples, &mut |line| {
            output::answer(&format!("{line}\n"));
        });
    }
    if wanted(Suite::Cupex) {
        let fine = wattle_bench::cupex::run(&mut |line| {
            output::answer(&format!("{line}\n"));
        });
        expect(fine, "cupex: an answer is not the expected one");
    }
    if wanted(Suite::Evidence) {
        let (examples, suites) = (&arguments.examples, &arguments.suites);
        let fine = wattle_bench::evidence::run(examples, suites, arguments.all, &mut |line| {
            output::answer(&format!("{line}\n"));
        });
        expect(fine, "evidence: an audit costs too much");
    }
    exit
}
