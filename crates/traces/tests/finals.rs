//! Final states of random programs, by traces and by the explicit search: the same.

use std::sync::atomic::{AtomicU64, Ordering};
use wattle_evidence::{Control, Pace, Progress, Reason, Stop};
use wattle_memory::MemoryModel;
use wattle_memory::compiled::Observed;
use wattle_model::{CellId, Instance, Program, RegisterId, ThreadId};
use wattle_random::{Shape, trial};

fn everything(instance: &Instance) -> Vec<Observed> {
    let cells = (0..instance.cells.len()).map(|c| Observed::Cell(CellId::new(c)));
    let registers = instance.threads.iter().enumerate().flat_map(|(t, thread)| {
        (0..thread.registers.len())
            .map(move |r| Observed::Register(ThreadId::new(t), RegisterId::new(r)))
    });
    cells.chain(registers).collect()
}

/// So many polls and no more: some programs have very many traces.
struct Few(AtomicU64);

impl Pace for Few {
    fn tick(&self, _: &'static str, _: Progress) -> Result<(), Stop> {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 0 {
            Err(Stop::Cancelled)
        } else {
            Ok(())
        }
    }

    fn is_over(&self) -> bool {
        false
    }
}

#[derive(Default, Debug)]
struct Tally {
    compared: u64,
    refused: u64,
    faults: u64,
    runs: u64,
    stopped: u64,
}

fn compare(program: &Program, tally: &mut Tally) -> Option<String> {
    let instance = program.instance().ok()?;
    let observed = everything(&instance);
    for model in MemoryModel::ALL {
        let control = Control::unlimited();
        let theirs = wattle_search::final_states(&instance, model, &observed, &control);
        let few = Few(AtomicU64::new(12));
        let control = Control::unlimited().with_pace(&few);
        let ours = wattle_traces::final_states(&instance, model, &observed, &control);
        match (theirs, ours) {
            (_, Err(wattle_traces::NoFinals::Undecided(Reason::Refused(_)))) => tally.refused += 1,
            (_, Err(wattle_traces::NoFinals::Undecided(Reason::Stopped { .. }))) => {
                tally.stopped += 1;
            }
            (Ok(a), Ok(b)) => {
                tally.compared += 1;
                tally.runs += b.work.runs;
                if b.work.redundant > 0 {
                    return Some(format!("{model}: {} runs in vain", b.work.redundant));
                }
                if a.states != b.states {
                    let missing: Vec<_> = a.states.difference(&b.states).collect();
                    let extra: Vec<_> = b.states.difference(&a.states).collect();
                    return Some(format!("{model}: missing {missing:?}, extra {extra:?}"));
                }
            }
            (Err(wattle_search::NoFinals::Fault(_)), Err(wattle_traces::NoFinals::Fault(_))) => {
                tally.faults += 1;
            }
            (a, b) => return Some(format!("{model}: {a:?} against {b:?}")),
        }
    }
    None
}

fn shape() -> Shape {
    Shape {
        properties: false,
        ..Shape::default()
    }
}

#[test]
fn the_same_final_states() {
    let (_, tally) = trial(&shape(), 700, 501, |p, _, tally: &mut Tally| {
        compare(p, tally)
    });
    println!("{tally:?}");
}

#[test]
fn without_locks() {
    let shape = Shape {
        locks: false,
        statements: 5,
        ..shape()
    };
    let (programs, tally) = trial(&shape, 700, 50_001, |p, _, tally: &mut Tally| {
        compare(p, tally)
    });
    println!("{tally:?}");
    assert!(tally.compared > 2 * programs);
}

#[test]
fn with_faults() {
    let shape = Shape {
        faults: true,
        ..shape()
    };
    let (_, tally) = trial(&shape, 500, 90_001, |p, _, tally: &mut Tally| {
        compare(p, tally)
    });
    println!("{tally:?}");
}
