//! `wattle man`: the manual pages, from the same declaration as the help.

use super::exit::Exit;
use super::output;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory to write them to (`man -l DIR/wattle.1` shows one); must be there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub fn run(arguments: &Arguments) -> Exit {
    match clap_mangen::generate_to(super::command(), &arguments.directory) {
        Ok(()) => Exit::Holds,
        Err(e) => {
            output::error(
                &arguments.directory.display().to_string(),
                &e.to_string(),
                &[],
            );
            Exit::Input
        }
    }
}
