//! Small instances of a system, run on its reference machine before a proof about any number of threads
//! is told.

use crate::compile::Compiled;
use crate::concrete::{Run, replays};
use crate::forward::{Limits, bad_run};
use crate::machine::{Candidates, Entry, Machine, State};
use wattle_evidence::SmallWorlds;
use wattle_evidence::related::{Excludes, Met, Stored};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

/// What small instances show.
#[derive(Clone, Debug, Default)]
pub struct Small {
    /// A run that replays and ends badly.
    pub run: Option<Run>,
    /// A state that the certificate excludes.
    pub outside: Option<String>,
    pub worlds: SmallWorlds,
}

/// Most states of an instance that are compared with the certificate.
const COMPARED: usize = 2_000;

/// Runs instances with few threads, smallest first: at most so many threads, and so many states of all
/// together. The first states must be such that the certificate stands for.
pub fn small_worlds(
    system: &ArraySystem,
    model: MemoryModel,
    excludes: Option<&Excludes<'_>>,
    (threads, states): (u8, usize),
    stop: &dyn Fn() -> bool,
) -> Small {
    let mut small = Small::default();
    let worlds = &mut small.worlds;
    let least = Compiled::new(system, model).map_or(1, |c| c.constants.max(1)) as u8;
    let sizes = match system.threads.map(u8::try_from) {
        Some(Ok(n)) if n <= threads => n..=n,
        Some(_) => {
            worlds.not_run = Some("the fixed number of threads is large".into());
            return small;
        }
        None => least..=threads.max(least),
    };
    let candidates = Candidates::of(system);
    // Short buffers first, with as many threads as possible.
    let passes: &[(usize, usize)] = match model {
        MemoryModel::Sc => &[(0, 1)],
        MemoryModel::Tso | MemoryModel::Pso => &[(2, 1), (6, 3)],
    };
    for (buffer, share) in passes {
        if worlds.complete && worlds.threads > 0 {
            break;
        }
        worlds.complete = true;
        let mut left = states / share;
        for n in sizes.clone() {
            if left == 0 || stop() {
                worlds.complete = false;
                break;
            }
            let machine = Machine::new(system, model, n);
            let limits = Limits {
                states: left,
                buffer: *buffer,
                depth: usize::MAX,
                starts: 2000,
            };
            let (mut compared, mut outside) = (0, None);
            let seen = bad_run(&machine, &candidates, limits, stop, &mut |s| {
                compared += 1;
                if let Some(excludes) = excludes.filter(|_| compared <= COMPARED)
                    && outside.is_none()
                {
                    outside = excluded(&machine, excludes, s);
                }
            });
            left = left.saturating_sub(seen.states);
            worlds.states += seen.states as u64;
            worlds.threads = worlds.threads.max(u32::from(n));
            worlds.complete &= seen.complete;
            let run = seen.bad.map(|(start, events)| Run {
                threads: n,
                start,
                events,
            });
            small.run = run.filter(|run| replays(system, model, run));
            let what =
                |why| format!("with {n} threads a state is met that the proof excludes: {why}");
            small.outside = outside.map(what);
            if small.run.is_some() || small.outside.is_some() {
                return small;
            }
        }
    }
    small
}

fn excluded(machine: &Machine<'_>, excludes: &Excludes<'_>, s: &State) -> Option<String> {
    let value = |cell: u16, of: &[u8]| s.values.get(machine.position(cell, of)).copied();
    let mut pending: Vec<Vec<Vec<Stored>>> = Vec::new();
    for buffer in &s.buffers {
        let mut entries = Vec::new();
        for e in buffer {
            let writes = match e {
                Entry::Writes(writes) => writes.iter(),
                Entry::Mark => return None,
            };
            let stored = writes.map(|(position, value)| {
                let (cell, of) = machine.cell_at(*position);
                (cell, of, *value)
            });
            entries.push(stored.collect());
        }
        pending.push(entries);
    }
    excludes(&Met {
        threads: machine.threads,
        value: &value,
        pending: &pending,
    })
}
