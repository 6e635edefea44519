//! Runs with atomic blocks told as runs with lock regions: their stores go through the buffer.

use wattle_evidence::Trace;
use wattle_memory::reference::{Snapshot, replay};
use wattle_memory::{Event, MemoryModel};
use wattle_model::graph::Action;
use wattle_model::instance::Address;
use wattle_model::{CellId, Instance};

/// The run of `blocks` as one of the program; as it is if it cannot be told.
pub fn with_drains(instance: &Instance, blocks: &Instance, trace: Trace) -> Trace {
    if trace.model == MemoryModel::Sc {
        return trace;
    }
    let Ok((states, _)) = replay(blocks, trace.model, &trace.start, &trace.events) else {
        return trace;
    };
    let mut events = Vec::new();
    for (i, event) in trace.events.iter().enumerate() {
        events.push(*event);
        if let (Some(before), Some(after)) = (states.get(i), states.get(i + 1)) {
            events.extend(drain(instance, blocks, event, before, after));
        }
    }
    Trace { events, ..trace }
}

/// What lets a store of a region reach memory.
fn drain(
    instance: &Instance,
    blocks: &Instance,
    event: &Event,
    before: &Snapshot,
    after: &Snapshot,
) -> Option<Event> {
    let Event::Step { thread, step, .. } = *event else {
        return None;
    };
    let source = instance.thread(thread).step(step).source.index();
    let direct = |i: &Instance| i.thread(thread).direct[source];
    let Action::Store { place, .. } = &instance.thread(thread).step(step).action else {
        return None;
    };
    if direct(instance) || !direct(blocks) {
        return None;
    }
    let cell = match place {
        Address::Cell(c) => *c,
        Address::Computed { base, index, .. } => {
            let registers = &before.registers[thread.index()];
            let offset = index
                .eval(&|r: &wattle_model::RegisterId| registers[r.index()])
                .ok()?;
            CellId::new(base.index() + usize::try_from(offset).ok()?)
        }
    };
    Some(Event::Drain {
        thread,
        cell,
        value: after.memory[cell.index()],
        keep: false,
    })
}
