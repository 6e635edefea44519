//! Between packed states and those of the reference machine.

use super::pack::Field;
use super::run::{Found, Notes, Sink};
use super::{Machine, Observed, Ranges, Slot};
use crate::content::{AtMostK, Content, Entry, Exact, Multiset, NewestK, OldestK, Set};
use crate::event::Start;
use crate::layout::{Epochs, Layout, Pso, Sc, Tso};
use crate::reference::State;
use std::collections::BTreeMap;
use wattle_model::{CellId, LocationId, Numbers, ThreadId};

/// A content that can be read off a row of entries, oldest first as far as order is known.
pub trait Row: Content<Value = i64> {
    /// The bound with which a buffer that takes the row's entries has this many in order.
    fn bound(ordered: usize) -> Self::Bound;
}

impl Row for Exact {
    fn bound(_: usize) {}
}

impl Row for Set {
    fn bound(_: usize) {}
}

impl Row for Multiset {
    fn bound(_: usize) {}
}

impl Row for OldestK {
    fn bound(ordered: usize) -> usize {
        ordered
    }
}

impl Row for NewestK {
    fn bound(ordered: usize) -> usize {
        ordered
    }
}

impl Row for AtMostK {
    fn bound(ordered: usize) -> usize {
        ordered
    }
}

/// An entry of a packed buffer.
#[derive(Clone, Copy)]
struct Pending {
    entry: Entry,
    /// Opens an epoch.
    opens: bool,
    /// Its order is forgotten.
    loose: bool,
}

fn rebuild<C: Row>(entries: &[Pending]) -> C {
    let bound = C::bound(entries.iter().filter(|p| !p.loose).count());
    let mut content = C::empty(bound);
    for p in entries {
        let put = content.put(&mut Numbers, bound, p.entry);
        debug_assert!(put.is_ok(), "the bound is as large as the row");
    }
    content
}

/// A layout whose buffers can be read off packed states.
pub trait Unpack: Layout {
    fn buffer<C: Row>(machine: &Machine<'_>, state: &[u64], t: usize) -> Self::Buffer<C>;
}

impl Unpack for Sc {
    fn buffer<C: Row>(_: &Machine<'_>, _: &[u64], _: usize) {}
}

impl Unpack for Tso {
    fn buffer<C: Row>(machine: &Machine<'_>, state: &[u64], t: usize) -> C {
        rebuild(&machine.entries(state, t))
    }
}

impl Unpack for Pso {
    fn buffer<C: Row>(machine: &Machine<'_>, state: &[u64], t: usize) -> Epochs<C> {
        let entries = machine.entries(state, t);
        let epochs = entries.chunk_by(|_, next| !next.opens).map(|epoch| {
            let contents = epoch.chunk_by(|a, b| a.entry.0 == b.entry.0);
            let contents = contents.map(|c| (c[0].entry.0, rebuild(c)));
            contents.collect::<BTreeMap<CellId, C>>()
        });
        Epochs {
            epochs: epochs.collect(),
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

    /// The state of a machine that differs in ranges and numbers of slots, all of which are at least
    /// as large here.
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

    /// Pending stores, in the order of the row.
    fn entries(&self, state: &[u64], t: usize) -> Vec<Pending> {
        let buffer = &self.threads[t].buffer;
        let pending = (0..buffer.len(state)).map(|i| {
            let cell = buffer.cells[buffer.which[i].index(state)];
            let value = self.cells[cell as usize].decode(buffer.value[i].raw(state));
            Pending {
                entry: (CellId(cell), value),
                opens: buffer.opens(state, i),
                loose: buffer.forgets() && buffer.is_loose(state, i),
            }
        });
        pending.collect()
    }

    /// The state as the reference machine has it (dead registers show an arbitrary value).
    pub fn unpack<L: Unpack, C: Row>(&self, state: &[u64]) -> State<L::Buffer<C>> {
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
                .map(|t| L::buffer::<C>(self, state, t))
                .collect(),
            holder: self.holder.index(state).checked_sub(1).map(ThreadId::new),
        }
    }

    /// Where a thread is.
    pub fn location(&self, state: &[u64], t: ThreadId) -> LocationId {
        LocationId::new(self.threads[t.index()].location.index(state))
    }

    /// What an observer reads off a state.
    pub fn observe(&self, observed: Observed, state: &[u64]) -> i64 {
        match observed {
            Observed::Cell(c) => self.cells[c.index()].get(state),
            Observed::Register(t, r) => self.threads[t.index()].registers[r.index()].get(state),
        }
    }
}
