//! The memory part of a cube: reads whose value no older write has supplied yet, and what a new,
//! older event would have to come before.
//!
//! Following the event encoding of Cubicle-W, but keeping only what can still matter. In the global
//! order of memory events (reads at their moment, writes when they reach memory) a cycle through a
//! new event must leave it towards a known event and come back through an open read that the new
//! write does not serve. So a known event matters only through the set of open reads that come
//! after it, and it is enough to keep these sets at the places where new events attach: per thread
//! (for a new read; for a new write) and per cell (after its oldest known write).

use crate::slot::Slot;

/// A set of open events.
pub type Events = u64;

/// Most open events a cube may have.
pub const EVENTS: usize = 60;

/// The reader that is no thread: it sees memory only.
pub const NOBODY: u8 = 0xfd;

/// Reads of one moment that still wait for their values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Open {
    pub parts: Vec<Part>,
    /// The open events that come after this one, and itself.
    pub after: Events,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    pub reader: u8,
    pub cell: Slot,
    /// PSO only: a store of another thread that the reader would have seen was hidden from it, so the
    /// value is that of a store in its own buffer.
    pub own: bool,
}

/// PSO only: a store of the thread reached memory, and the step that made it is yet to be met. Such
/// obligations of one thread and cell are met newest first, in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    pub thread: u8,
    pub cell: Slot,
    pub after: Events,
    /// A read it served comes after a fence of the thread: a newer store of the cell would have been
    /// seen instead, so that there is none between that fence and the step.
    pub newest: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    pub events: Vec<Open>,
    /// What a new read (or atomic step, or fence) of the thread comes before.
    pub read_first: Vec<Events>,
    /// What a new write of the thread comes before: later writes, and all after a fence.
    pub write_first: Vec<Events>,
    /// What a new write of the cell comes before: the oldest known write of it.
    pub cell_first: Vec<(Slot, Events)>,
    /// The same for the cells of threads that are not in the cube, by array.
    pub others_first: Vec<(u16, Events)>,
    /// What every new read of any thread comes before: reads made in the bad state itself.
    pub last: Events,
    /// PSO only: drains without their steps.
    pub pending: Vec<Pending>,
}

impl Memory {
    pub fn add_thread(&mut self, thread: usize) {
        self.read_first.push(self.last);
        self.write_first.push(0);
        for (array, events) in &self.others_first {
            if *events != 0 {
                let slot = Slot::cell(*array, &[thread as u8]);
                self.cell_first.push((slot, *events));
            }
        }
        self.cell_first.sort_unstable_by_key(|(s, _)| *s);
    }

    pub fn cell_first(&self, cell: Slot) -> Events {
        match self.cell_first.binary_search_by_key(&cell, |(s, _)| *s) {
            Ok(i) => self.cell_first[i].1,
            Err(_) => 0,
        }
    }

    pub fn set_cell_first(&mut self, cell: Slot, events: Events) {
        match self.cell_first.binary_search_by_key(&cell, |(s, _)| *s) {
            Ok(i) => self.cell_first[i].1 |= events,
            Err(_) if events == 0 => {}
            Err(i) => self.cell_first.insert(i, (cell, events)),
        }
    }

    /// All open events. Told in the order of time, they come after whatever is met now.
    pub fn all(&self) -> Events {
        (1 << self.events.len()) - 1
    }

    /// The parts take their values from their readers' own buffers. Whether that can be.
    pub fn hide(&mut self, events: Events, which: &dyn Fn(&Part) -> bool) -> bool {
        let mut possible = true;
        for (e, open) in self.events.iter_mut().enumerate() {
            if events & 1 << e == 0 {
                continue;
            }
            for p in open.parts.iter_mut().filter(|p| which(p)) {
                possible &= p.reader != NOBODY;
                p.own = true;
            }
        }
        possible
    }

    /// Every set that contains one of `before` also gets `more`: those events now come before it.
    pub fn extend_after(&mut self, before: Events, more: Events) {
        let grow = |set: &mut Events| {
            if *set & before != 0 {
                *set |= more;
            }
        };
        self.events.iter_mut().for_each(|e| grow(&mut e.after));
        self.read_first.iter_mut().for_each(grow);
        self.write_first.iter_mut().for_each(grow);
        self.cell_first.iter_mut().for_each(|(_, s)| grow(s));
        self.others_first.iter_mut().for_each(|(_, s)| grow(s));
        self.pending.iter_mut().for_each(|p| grow(&mut p.after));
        grow(&mut self.last);
    }

    /// Removes events without parts; says where each old event went.
    pub fn compact(&mut self) -> Vec<Option<usize>> {
        let mut new = Vec::with_capacity(self.events.len());
        let mut count = 0;
        for e in &self.events {
            new.push((!e.parts.is_empty()).then_some(count));
            count += usize::from(!e.parts.is_empty());
        }
        if count < self.events.len() {
            let bits = |set: Events| {
                new.iter().enumerate().fold(0, |r, (i, n)| match n {
                    Some(n) if set & 1 << i != 0 => r | 1 << n,
                    _ => r,
                })
            };
            self.events.retain(|e| !e.parts.is_empty());
            self.events.iter_mut().for_each(|e| e.after = bits(e.after));
            self.read_first.iter_mut().for_each(|s| *s = bits(*s));
            self.write_first.iter_mut().for_each(|s| *s = bits(*s));
            self.cell_first.iter_mut().for_each(|(_, s)| *s = bits(*s));
            self.others_first
                .iter_mut()
                .for_each(|(_, s)| *s = bits(*s));
            self.pending
                .iter_mut()
                .for_each(|p| p.after = bits(p.after));
            self.last = bits(self.last);
        }
        self.cell_first.retain(|(_, s)| *s != 0);
        self.others_first.retain(|(_, s)| *s != 0);
        new
    }

    pub fn used_threads(&self) -> u16 {
        let mut used = 0;
        for p in self.events.iter().flat_map(|e| &e.parts) {
            used |= p.cell.threads();
            if p.reader != NOBODY {
                used |= 1 << p.reader;
            }
        }
        for p in &self.pending {
            used |= 1 << p.thread | p.cell.threads();
        }
        for (t, (r, w)) in self.read_first.iter().zip(&self.write_first).enumerate() {
            if *r & !self.last != 0 || *w != 0 {
                used |= 1 << t;
            }
        }
        used
    }

    pub fn keep_threads(&mut self, old: &[u8], new: &[u8]) {
        for e in &mut self.events {
            for p in &mut e.parts {
                p.cell = p.cell.rename(new);
                if p.reader != NOBODY {
                    p.reader = new[usize::from(p.reader)];
                }
            }
        }
        for p in &mut self.pending {
            p.cell = p.cell.rename(new);
            p.thread = new[usize::from(p.thread)];
        }
        let kept: u16 = old.iter().fold(0, |m, t| m | 1 << t);
        self.cell_first.retain(|(s, _)| s.threads() & !kept == 0);
        self.cell_first
            .iter_mut()
            .for_each(|(s, _)| *s = s.rename(new));
        self.cell_first.sort_unstable_by_key(|(s, _)| *s);
        self.read_first = old
            .iter()
            .map(|t| self.read_first[usize::from(*t)])
            .collect();
        self.write_first = old
            .iter()
            .map(|t| self.write_first[usize::from(*t)])
            .collect();
    }
}
