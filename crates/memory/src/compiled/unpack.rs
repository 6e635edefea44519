//! Between packed states and those of the reference machine.

use super::pack::Field;
use super::run::{Found, Notes, Sink};
use super::{Machine, Observed, Ranges, Slot};
use crate::content::Exact;
use crate::event::Start;
use crate::layout::{Epochs, Layout, Pso, Sc, Tso};
use crate::reference::State;
use std::collections::BTreeMap;
use wattle_model::{CellId, LocationId, ThreadId};

/// A layout whose exact buffers can be read off packed states.
pub trait Unpack: Layout {
    fn buffer(machine: &Machine<'_>, state: &[u64], t: usize) -> Self::Buffer<Exact>;
}

impl Unpack for Sc {
    fn buffer(_: &Machine<'_>, _: &[u64], _: usize) {}
}

impl Unpack for Tso {
    fn buffer(machine: &Machine<'_>, state: &[u64], t: usize) -> Exact {
        let entries = machine.entries(state, t);
        Exact(entries.into_iter().map(|(c, v, _)| (c, v)).collect())
    }
}

impl Unpack for Pso {
    fn buffer(machine: &Machine<'_>, state: &[u64], t: usize) -> Epochs<Exact> {
        let mut epochs: Vec<BTreeMap<CellId, Exact>> = Vec::new();
        for (cell, value, mark) in machine.entries(state, t) {
            if mark || epochs.is_empty() {
                epochs.push(BTreeMap::new());
            }
            if let Some(epoch) = epochs.last_mut() {
                epoch.entry(cell).or_default().0.push((cell, value));
            }
        }
        Epochs {
            epochs,
            fenced: machine.threads[t].buffer.fenced.raw(state) == 1,
        }
    }
}

impl Machine<'_> {
    /// The initial state as it is, before any chaining: or the slot that is too narrow for it.
    pub fn pack_start(&self, start: &Start, state: &mut [u64]) -> Result<(), Found> {
        state.fill(0);
        for (c, v) in start.memory.iter().enumerate() {
            let raw = self.cells[c].encode(*v);
            let raw = raw.ok_or(Found::Narrow(Slot::Cell(c as u32), *v))?;
            self.cells[c].set_raw(state, raw);
        }
        for (t, values) in start.registers.iter().enumerate() {
            let thread = &self.threads[t];
            let entry = self.instance.threads[t].entry;
            thread.location.set_raw(state, u64::from(entry.0));
            for (r, v) in values.iter().enumerate() {
                let slot = Slot::Register {
                    thread: t as u32,
                    register: r as u32,
                };
                let raw = thread.registers[r].encode(*v);
                thread.registers[r].set_raw(state, raw.ok_or(Found::Narrow(slot, *v))?);
            }
        }
        Ok(())
    }

    /// The first state a search sees from this start: every thread's local steps run, in the order of
    /// threads.
    pub fn begin<S: Sink>(
        &self,
        start: &Start,
        state: &mut [u64],
        notes: &mut Notes,
        sink: &mut S,
    ) -> Result<(), Found> {
        self.pack_start(start, state)?;
        sink.begin();
        for t in 0..self.threads.len() {
            self.chain(state, t, notes, sink)?;
        }
        sink.next(state);
        Ok(())
    }

    /// The state of a machine that differs in ranges and buffer sizes, all of which are at least as
    /// large here.
    pub fn translate(&self, old: &Machine<'_>, from: &[u64], to: &mut [u64]) {
        to.fill(0);
        self.holder.set_raw(to, old.holder.raw(from));
        let wider = |new: Field, old: Field, raw: u64| {
            let bits = new.encode(old.decode(raw));
            debug_assert!(bits.is_some(), "ranges only grow");
            bits.unwrap_or(0)
        };
        for (new, old) in self.cells.iter().zip(&old.cells) {
            new.set_raw(to, wider(*new, *old, old.raw(from)));
        }
        for (new, was) in self.threads.iter().zip(&old.threads) {
            let location = was.location.index(from);
            new.location.set_raw(to, location as u64);
            for (new, old) in new.registers.iter().zip(&was.registers) {
                new.set_raw(to, wider(*new, *old, old.raw(from)));
            }
            // What is dead is zero in every layout, whatever value that stands for.
            for (word, mask) in &new.nodes[location].keep {
                to[*word as usize] &= mask;
            }
            let (new, was) = (&new.buffer, &was.buffer);
            let n = was.len(from);
            new.count.set_raw(to, n as u64);
            new.fenced.set_raw(to, was.fenced.raw(from));
            for i in 0..n {
                let which = was.which[i].raw(from);
                let cell = was.cells[which as usize] as usize;
                let value = was.value[i].raw(from);
                new.which[i].set_raw(to, which);
                new.value[i].set_raw(to, wider(self.cells[cell], old.cells[cell], value));
                new.mark[i].set_raw(to, was.mark[i].raw(from));
            }
        }
    }

    /// Adds the values of a state of an unreduced machine to the ranges.
    pub fn learn(&self, state: &[u64], ranges: &mut Ranges) {
        for (field, range) in self.cells.iter().zip(&mut ranges.cells) {
            *range = range.with(field.get(state));
        }
        for (t, ranges) in ranges.registers.iter_mut().enumerate() {
            for (field, range) in self.threads[t].registers.iter().zip(ranges) {
                *range = range.with(field.get(state));
            }
        }
    }

    /// Pending stores, oldest first; `true` where a new epoch begins.
    fn entries(&self, state: &[u64], t: usize) -> Vec<(CellId, i64, bool)> {
        let buffer = &self.threads[t].buffer;
        (0..buffer.len(state))
            .map(|i| {
                let cell = buffer.cells[buffer.which[i].index(state)];
                let value = self.cells[cell as usize].decode(buffer.value[i].raw(state));
                (CellId(cell), value, buffer.mark[i].raw(state) == 1)
            })
            .collect()
    }

    /// The state as the reference machine has it (dead registers show an arbitrary value).
    pub fn unpack<L: Unpack>(&self, state: &[u64]) -> State<L::Buffer<Exact>> {
        let threads = self.threads.iter();
        State {
            locations: threads
                .clone()
                .map(|t| LocationId::new(t.location.index(state)))
                .collect(),
            registers: threads
                .map(|t| t.registers.iter().map(|r| r.get(state)).collect())
                .collect(),
            memory: self.cells.iter().map(|c| c.get(state)).collect(),
            buffers: (0..self.threads.len())
                .map(|t| L::buffer(self, state, t))
                .collect(),
            holder: self.holder.index(state).checked_sub(1).map(ThreadId::new),
        }
    }

    /// What an observer reads off a state.
    pub fn observe(&self, observed: Observed, state: &[u64]) -> i64 {
        match observed {
            Observed::Cell(c) => self.cells[c.index()].get(state),
            Observed::Register(t, r) => self.threads[t.index()].registers[r.index()].get(state),
        }
    }
}
