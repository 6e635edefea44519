//! The command line. One module per command; each gives an [`Exit`], and only `main` turns it into
//! the process's exit code.

mod audit;
mod bench;
mod budget;
mod check;
mod completions;
mod exit;
mod fences;
mod generate;
mod litmus;
mod output;
mod progress;
mod reduced;
mod replay;
mod robust;
mod show;
mod signals;
mod subject;
mod units;

use clap::{Parser, Subcommand};
use exit::Exit;
use std::process::ExitCode;

/// Proves, breaks and fences concurrent programs on relaxed memory (SC, TSO, PSO).
#[derive(Debug, Parser)]
#[command(name = "wattle", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  holds · robust · a fence set found (or none needed)
  1  violated · not robust · cannot be repaired by fences
  2  the command line or an input is wrong (nothing was decided)
  3  not decided: bounded, out of time or memory, or no engine accepts the task
  4  Wattle's own evidence did not check: a bug in Wattle
With several files the worst code wins, in the order 4 2 1 3 0.";

/// A new command is a variant here, a line in `run` and a module.
#[derive(Debug, Subcommand)]
enum Command {
    /// Check the properties of programs
    Check(check::Arguments),
    /// Find the cheapest fences that make a program right
    Fences(fences::Arguments),
    /// Decide robustness: is every relaxed run an SC run in disguise?
    Robust(robust::Arguments),
    /// List every final state of litmus tests, as herd does
    Litmus(litmus::Arguments),
    /// Print a member of a family of programs
    Gen(generate::Arguments),
    /// Print a program in another form
    Show(show::Arguments),
    /// Run a trace again on the reference machine and show it
    Replay(replay::Arguments),
    /// Re-check a certificate with the reference machine
    Audit(audit::Arguments),
    /// Measure: tables of comparisons with peers and ablations
    Bench(bench::Arguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
}

impl Command {
    fn run(self) -> Exit {
        match self {
            Command::Check(a) => check::run(&a),
            Command::Fences(a) => fences::run(&a),
            Command::Robust(a) => robust::run(&a),
            Command::Litmus(a) => litmus::run(&a),
            Command::Gen(a) => generate::run(&a),
            Command::Show(a) => show::run(&a),
            Command::Replay(a) => replay::run(&a),
            Command::Audit(a) => audit::run(&a),
            Command::Bench(a) => bench::run(&a),
            Command::Completions(a) => completions::run(&a),
        }
    }
}

fn main() -> ExitCode {
    let exit = match Arguments::try_parse() {
        Ok(arguments) => arguments.command.run(),
        Err(e) => {
            let exit = if e.use_stderr() {
                Exit::Input
            } else {
                Exit::Holds
            };
            // A closed terminal is no reason to panic.
            let _ = e.print();
            exit
        }
    };
    exit.into()
}
