//! The process that runs inputs. It talks to its supervisor in lines on standard output:
//! `at N` (all inputs before N are fine), `fail N WHAT`, `done N PROGRAMS`.

use crate::check::{Seen, check};
use crate::mutate::input;
use crate::seeds::Seeds;
use crate::target::Target;
use std::io::Write;
use std::time::{Duration, Instant};

/// Inputs between two reports.
pub const STRIDE: u64 = 100;

pub struct Work {
    pub target: Target,
    pub seed: u64,
    pub from: u64,
    /// Stop after so many inputs or seconds, whatever comes first.
    pub inputs: u64,
    pub time: Duration,
    /// Report every input before it is run.
    pub careful: bool,
}

pub fn run(work: &Work) -> std::io::Result<()> {
    // The default hook would print every panic that is caught on purpose.
    std::panic::set_hook(Box::new(|_| {}));
    let seeds = Seeds::load(work.target);
    let start = Instant::now();
    let mut out = std::io::stdout().lock();
    let mut programs = 0u64;
    let mut number = work.from;
    while number - work.from < work.inputs && start.elapsed() < work.time {
        if work.careful || number.is_multiple_of(STRIDE) {
            writeln!(out, "at {number}")?;
            out.flush()?;
        }
        match check(work.target, &input(&seeds, work.seed, number)) {
            Ok(Seen::Program) => programs += 1,
            Ok(Seen::Errors) => {}
            Err(what) => {
                let line = what.lines().next().unwrap_or_default();
                writeln!(out, "fail {number} {line}")?;
                return out.flush();
            }
        }
        number += 1;
    }
    writeln!(out, "done {} {programs}", number - work.from)?;
    out.flush()
}
