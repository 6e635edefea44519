//! `wattle lsp`: the language server.

use super::exit::Exit;
use super::output;

pub fn run() -> Exit {
    match wattle_lsp::serve() {
        Ok(()) => Exit::Holds,
        Err(e) => {
            output::note(&format!("error: {e}\n"));
            Exit::Input
        }
    }
}
