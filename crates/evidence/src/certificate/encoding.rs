//! States of the exact machines as rows of numbers: every thread's location, every thread's
//! registers, memory, the lock's holder (0 for nobody, else thread + 1), then every thread's buffer:
//!
//! - SC: nothing;
//! - TSO: how many entries, then cell and value of each, oldest first;
//! - PSO: how many epochs, and for each how many cells, and for each of those the cell, how many
//!   values and the values, oldest first; last 1 if a store fence came after the newest entry.

use super::closed_states::Corrupt;
use std::collections::BTreeMap;
use wattle_memory::layout::Epochs;
use wattle_memory::reference::State;
use wattle_memory::{Exact, Layout, Pso, Sc, Tso};
use wattle_model::{CellId, Instance, LocationId, ThreadId};

/// A layout whose exact buffers can be written as numbers.
pub trait Coded: Layout {
    fn write_buffer(buffer: &Self::Buffer<Exact>, row: &mut Vec<i64>);

    fn read_buffer(row: &mut Row<'_>) -> Result<Self::Buffer<Exact>, Corrupt>;

    fn encode(state: &State<Self::Buffer<Exact>>, row: &mut Vec<i64>) {
        row.extend(state.locations.iter().map(|l| i64::from(l.0)));
        row.extend(state.registers.iter().flatten());
        row.extend(&state.memory);
        row.push(state.holder.map_or(0, |t| i64::from(t.0) + 1));
        for b in &state.buffers {
            Self::write_buffer(b, row);
        }
    }

    /// Reads a row back; everything that is used as an index is checked to be one.
    fn decode(instance: &Instance, row: &[i64]) -> Result<State<Self::Buffer<Exact>>, Corrupt> {
        let mut row = Row {
            numbers: row,
            cells: instance.cells.len(),
        };
        let threads = &instance.threads;
        let locations = threads
            .iter()
            .map(|t| row.index(t.locations.len()).map(LocationId::new))
            .collect::<Result<_, _>>()?;
        let registers = threads
            .iter()
            .map(|t| t.registers.iter().map(|_| row.number()).collect())
            .collect::<Result<_, _>>()?;
        let memory = instance
            .cells
            .iter()
            .map(|_| row.number())
            .collect::<Result<_, _>>()?;
        let holder = row.index(threads.len() + 1)?;
        let buffers = threads
            .iter()
            .map(|_| Self::read_buffer(&mut row))
            .collect::<Result<_, _>>()?;
        if !row.numbers.is_empty() {
            return Err(Corrupt("a state has too many numbers"));
        }
        Ok(State {
            locations,
            registers,
            memory,
            buffers,
            holder: holder.checked_sub(1).map(ThreadId::new),
        })
    }
}

/// What is left to read of a row.
pub struct Row<'r> {
    numbers: &'r [i64],
    cells: usize,
}

impl Row<'_> {
    fn number(&mut self) -> Result<i64, Corrupt> {
        let (first, rest) = self
            .numbers
            .split_first()
            .ok_or(Corrupt("a state has too few numbers"))?;
        self.numbers = rest;
        Ok(*first)
    }

    fn index(&mut self, limit: usize) -> Result<usize, Corrupt> {
        let n = usize::try_from(self.number()?).ok().filter(|n| *n < limit);
        n.ok_or(Corrupt("a state names something the program does not have"))
    }

    /// A number of things that follow: no more than there are numbers left.
    fn count(&mut self) -> Result<usize, Corrupt> {
        let left = self.numbers.len();
        self.index(left.max(1))
    }

    fn cell(&mut self) -> Result<CellId, Corrupt> {
        self.index(self.cells).map(CellId::new)
    }
}

impl Coded for Sc {
    fn write_buffer((): &(), _: &mut Vec<i64>) {}

    fn read_buffer(_: &mut Row<'_>) -> Result<(), Corrupt> {
        Ok(())
    }
}

impl Coded for Tso {
    fn write_buffer(buffer: &Exact, row: &mut Vec<i64>) {
        row.push(buffer.0.len() as i64);
        for (cell, value) in &buffer.0 {
            row.extend([i64::from(cell.0), *value]);
        }
    }

    fn read_buffer(row: &mut Row<'_>) -> Result<Exact, Corrupt> {
        let entries = (0..row.count()?).map(|_| Ok((row.cell()?, row.number()?)));
        Ok(Exact(entries.collect::<Result<_, _>>()?))
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

    fn read_buffer(row: &mut Row<'_>) -> Result<Epochs<Exact>, Corrupt> {
        let mut epochs = Vec::new();
        for _ in 0..row.count()? {
            let mut epoch = BTreeMap::new();
            for _ in 0..row.count()? {
                let cell = row.cell()?;
                let values = (0..row.count()?).map(|_| Ok((cell, row.number()?)));
                epoch.insert(cell, Exact(values.collect::<Result<_, _>>()?));
            }
            epochs.push(epoch);
        }
        let fenced = row.index(2)? == 1;
        Ok(Epochs { epochs, fenced })
    }
}
