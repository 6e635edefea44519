//! `wattle completions`: scripts for shells, made from the same definitions as the help.

use super::exit::Exit;
use super::output;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

#[derive(Debug, Args)]
pub struct Arguments {
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(arguments: &Arguments) -> Exit {
    let mut script = Vec::new();
    let mut command = super::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "wattle", &mut script);
    output::answer(&String::from_utf8_lossy(&script));
    Exit::Holds
}
