//! States of the exact machines as rows of numbers: every thread's location, every thread's
//! registers, memory, the lock's holder (0 for nobody, else thread + 1), then every thread's buffer:
//!
//! - SC: nothing;
//! - TSO: how many entries, then cell and value of each, oldest first;
//! - PSO: how many epochs, and for each how many cells, and for each of those the cell, how many
//!   values and the values, oldest first; last 1 if a store fence came after the newest entry.

mod decoded;

pub use decoded::Decoded;

use wattle_memory::layout::Epochs;
use wattle_memory::reference::State;
use wattle_memory::{Exact, Layout, Pso, Sc, Tso};

/// A layout whose exact buffers can be written as numbers.
pub trait Coded: Layout {
    fn write_buffer(buffer: &Self::Buffer<Exact>, row: &mut Vec<i64>);

    fn encode(state: &State<Self::Buffer<Exact>>, row: &mut Vec<i64>) {
        row.extend(state.locations.iter().map(|l| i64::from(l.0)));
        row.extend(state.registers.iter().flatten());
        row.extend(&state.memory);
        row.push(state.holder.map_or(0, |t| i64::from(t.0) + 1));
        for b in &state.buffers {
            Self::write_buffer(b, row);
        }
    }
}

impl Coded for Sc {
    fn write_buffer((): &(), _: &mut Vec<i64>) {}
}

impl Coded for Tso {
    fn write_buffer(buffer: &Exact, row: &mut Vec<i64>) {
        row.push(buffer.0.len() as i64);
        for (cell, value) in &buffer.0 {
            row.extend([i64::from(cell.0), *value]);
        }
    }
}

impl Coded for Pso {
    fn write_buffer(buffer: &Epochs<Exact>, row: &mut Vec<i64>) {
        row.push(buffer.epochs.len() as i64);
        for epoch in &buffer.epochs {
            row.push(epoch.len() as i64);
            for (cell, content) in epoch {
                row.extend([i64::from(cell.0), content.0.len() as i64]);
                row.extend(content.0.iter().map(|(_, value)| *value));
            }
        }
        row.push(i64::from(buffer.fenced));
    }
}
