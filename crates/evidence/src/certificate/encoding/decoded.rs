//! From rows of numbers back to states.

use super::Coded;
use crate::certificate::closed_states::Corrupt;
use std::collections::BTreeMap;
use wattle_memory::layout::Epochs;
use wattle_memory::reference::State;
use wattle_memory::{Exact, Pso, Sc, Tso};
use wattle_model::{CellId, Instance, LocationId, ThreadId};

/// A layout whose exact buffers can be read from numbers.
pub trait Decoded: Coded {
    fn read_buffer(row: &mut Row<'_>) -> Result<Self::Buffer<Exact>, Corrupt>;

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

impl Decoded for Sc {
    fn read_buffer(_: &mut Row<'_>) -> Result<(), Corrupt> {
        Ok(())
    }
}

impl Decoded for Tso {
    fn read_buffer(row: &mut Row<'_>) -> Result<Exact, Corrupt> {
        let entries = (0..row.count()?).map(|_| Ok((row.cell()?, row.number()?)));
        Ok(Exact(entries.collect::<Result<_, _>>()?))
    }
}

impl Decoded for Pso {
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
