//! `wattle gen`: members of families of programs, in the trencher language or Wattle's own.

use super::exit::Exit;
use super::output;
use clap::{Args, ValueEnum};
use wattle::generate::Family;

#[derive(Debug, Args)]
pub struct Arguments {
    /// The family
    #[arg(value_enum)]
    family: Name,
    /// The size: threads (lamport, indexer), branches or stores
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    size: u32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// Lamport's fast mutex with N threads (calin-2016, Fig. 5.2)
    Lamport,
    /// N branches between a store and a load (Fig. 5.3)
    Branching,
    /// A loop of N stores that must be run twice (Fig. 5.4)
    Unwinding,
    /// N threads that fill a hash table (Fig. 5.12)
    Indexer,
    /// The same with one compare-and-swap a try, in Wattle's language
    IndexerCas,
}

pub fn run(arguments: &Arguments) -> Exit {
    let family = match arguments.family {
        Name::Lamport => Family::Lamport,
        Name::Branching => Family::Branching,
        Name::Unwinding => Family::Unwinding,
        Name::Indexer => Family::Indexer,
        Name::IndexerCas => Family::IndexerCas,
    };
    output::answer(&family.program(arguments.size));
    Exit::Holds
}
