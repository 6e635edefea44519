//! Ctrl-C and SIGTERM: the first one asks for what is known so far, the second ends at once.

use super::exit::Exit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The flag that a signal raises.
pub fn interrupted() -> &'static AtomicBool {
    &INTERRUPTED
}

/// How many are waiting for somebody to write.
static READING: AtomicUsize = AtomicUsize::new(0);

/// Reads input. Nothing is known before it is read, and it may never come: a signal ends at once.
pub fn reading<T>(read: impl FnOnce() -> T) -> T {
    listen();
    READING.fetch_add(1, Ordering::SeqCst);
    let read = read();
    READING.fetch_sub(1, Ordering::SeqCst);
    read
}

pub fn listen() {
    // A second registration fails; the first one is still there.
    let _ = ctrlc::set_handler(|| {
        let reading = READING.load(Ordering::SeqCst) > 0;
        if INTERRUPTED.swap(true, Ordering::SeqCst) || reading {
            std::process::exit(Exit::Undecided.code());
        }
    });
}
