//! The command line. One module per command; each gives an [`Exit`], and only `main` turns it into
//! the process's exit code.

mod audit;
mod batch;
mod bench;
mod budget;
mod check;
mod completions;
mod exit;
mod explore;
mod fences;
mod finals;
mod format;
mod generate;
mod litmus;
mod lsp;
mod man;
mod models;
mod output;
mod progress;
mod reduced;
mod replay;
mod robust;
mod show;
mod signals;
mod subject;
mod test;
mod units;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use exit::Exit;
use std::io::ErrorKind;
use std::process::ExitCode;

/// Proves, breaks and fences concurrent programs on relaxed memory (SC, TSO, PSO).
#[derive(Debug, Parser)]
#[command(name = "wattle", version = VERSION, arg_required_else_help = true)]
struct Arguments {
    /// When to colour answers
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = output::Colour::Auto)]
    color: output::Colour,
    #[command(subcommand)]
    command: Command,
}

/// With the commit it was built from, where that is known.
const VERSION: &str = env!("WATTLE_VERSION");

/// What holds for every command. Engines and languages are asked for, so that none is left out.
fn after_help() -> String {
    let engines = wattle::plan::names().join(", ");
    let languages = wattle::input::InputLanguage::described().join(", ");
    format!(
        "Languages (by the file's extension, or --lang):\n  {languages}\n\n\
         Engines (--engine):\n  auto, {engines}\n\n{EXIT_CODES}"
    )
}

const EXIT_CODES: &str = "\
Exit codes:
  0  holds · robust · a fence set found (or none needed) · every answer as expected
  1  violated · not robust · cannot be repaired by fences · an answer is not the expected one
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
    /// Check that programs answer as their headers say: for continuous integration
    Test(test::Arguments),
    /// List every final state of a program, memory models side by side
    Final(finals::Arguments),
    /// List every final state of litmus tests, as herd does
    Litmus(litmus::Arguments),
    /// Print a member of a family of programs
    Gen(generate::Arguments),
    /// Print a program in another form
    Show(show::Arguments),
    /// Step through a program by hand, in the terminal or on a page (--web)
    Explore(explore::Arguments),
    /// Run a trace again on the reference machine and show it
    Replay(replay::Arguments),
    /// Re-check a certificate with the reference machine
    Audit(audit::Arguments),
    /// Measure: tables of comparisons with peers and ablations
    Bench(bench::Arguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// Serve editors: errors, verdicts and fences, over standard input and output
    Lsp,
    /// Write the manual pages
    Man(man::Arguments),
}

impl Command {
    fn run(self) -> Exit {
        match self {
            Command::Check(a) => check::run(&a),
            Command::Fences(a) => fences::run(&a),
            Command::Robust(a) => robust::run(&a),
            Command::Test(a) => test::run(&a),
            Command::Final(a) => finals::run(&a),
            Command::Litmus(a) => litmus::run(&a),
            Command::Gen(a) => generate::run(&a),
            Command::Show(a) => show::run(&a),
            Command::Explore(a) => explore::run(&a),
            Command::Replay(a) => replay::run(&a),
            Command::Audit(a) => audit::run(&a),
            Command::Bench(a) => bench::run(&a),
            Command::Completions(a) => completions::run(&a),
            Command::Lsp => lsp::run(),
            Command::Man(a) => man::run(&a),
        }
    }
}

/// The whole command line, as help, completions and manual pages show it.
fn command() -> clap::Command {
    Arguments::command().after_help(after_help())
}

fn parse() -> Result<Arguments, clap::Error> {
    let matches = command().try_get_matches()?;
    Arguments::from_arg_matches(&matches)
}

fn main() -> ExitCode {
    let exit = match parse() {
        Ok(arguments) => {
            output::set_colour(arguments.color);
            arguments.command.run()
        }
        Err(e) => {
            let exit = if e.use_stderr() {
                Exit::Input
            } else {
                Exit::Holds
            };
            match e.print() {
                // A reader that went away is no reason to complain.
                Err(lost) if lost.kind() != ErrorKind::BrokenPipe => Exit::Input,
                Ok(()) | Err(_) => exit,
            }
        }
    };
    match output::is_lost() {
        true => exit.max(Exit::Input).into(),
        false => exit.into(),
    }
}
