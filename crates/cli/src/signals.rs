//! Ctrl-C and SIGTERM: the first one asks for what is known so far, the second ends at once.

use super::exit::Exit;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The flag that a signal raises.
pub fn interrupted() -> &'static AtomicBool {
    &INTERRUPTED
}

pub fn listen() {
    // A second registration fails; the first one is still there.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(Exit::Undecided.code());
        }
    });
}
