//! `wattle bench`: the measured comparisons, as a table.

use super::exit::Exit;
use super::output;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct Arguments {
    /// What to measure; everything if not given
    #[arg(value_enum)]
    suite: Option<Suite>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// The explicit search: states per second, bytes per state, ablations, the store's own limit
    Explicit,
}

pub fn run(arguments: &Arguments) -> Exit {
    let wanted = |suite| arguments.suite.is_none_or(|s| s == suite);
    if wanted(Suite::Explicit) {
        wattle::bench::explicit::run(&mut |line| {
            output::answer(&format!("{line}\n"));
        });
    }
    Exit::Holds
}
