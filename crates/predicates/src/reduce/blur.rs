//! Buffers without a bound: what was stored long ago (or lately) is known roughly (abdulla-2012 §4–5,
//! for TSO and PSO).
//!
//! A slot is an exact entry with a set `before` of *classes*: right before the entry, in the order of
//! its cell, there may be stores to the same cell, any number with a value of each class. Classes are
//! intervals between cut points of the cell; every constant the program stores has one of its own.
//! Two operations keep a buffer small, and both only add behaviour:
//!
//! - two neighbouring *epochs* become one, which forgets the order between different cells (under
//!   TSO every store is an epoch of its own);
//! - an entry is *dissolved* into the next one of its cell and epoch: its class joins that one's set.
//!
//! At most k + 1 epochs are kept apart, and k + 1 entries of a cell in one epoch (one under TSO).
//! Where neighbours merge decides what stays exact: the oldest k stores or the newest.
//!
//! Deviations from the paper: the newest value of every cell is an entry like any other instead of a
//! variable `lw` beside the set (so nothing is stale when it drains), and what drains from the set is
//! a value of a class that was stored, not any number. The set says what may be pending, not what
//! must be: UPDATE-AM keeps it, and the entry may drain at any time. ERRATA: WRITE-L, UPDATE-NE and UPDATE-AS are
//! moot with entries; k is raised only for the thread that needs it.

use super::ranges::Interval;
use super::{Pending, Slot};
use wattle_logic::{Formula, Term, and};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Instance};
use wattle_model::{CellId, Expr, ThreadId};

/// How buffers without a static bound are kept small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blur {
    /// The newest stores stay exact rather than the oldest.
    pub newest: bool,
    /// Stores kept exact, per thread.
    pub keep: Vec<usize>,
    /// Per cell: where a new class begins, ascending.
    pub cuts: Vec<Vec<i64>>,
}

/// More cuts than this are not made: sets of classes are 32 bits.
const MOST_CUTS: usize = 31;

impl Blur {
    /// Cuts around the constants that the program stores.
    pub fn new(instance: &Instance, keep: usize, newest: bool) -> Self {
        let mut blur = Blur {
            newest,
            keep: vec![keep; instance.threads.len()],
            cuts: vec![Vec::new(); instance.cells.len()],
        };
        for step in instance.threads.iter().flat_map(|t| &t.steps) {
            let Action::Store { place, value } = &step.action else {
                continue;
            };
            let cells = match place {
                Address::Cell(c) => c.0..c.0 + 1,
                Address::Computed { base, length, .. } => base.0..base.0 + length,
            };
            for cell in cells {
                constants(value, &mut |v| blur.single_out(CellId(cell), v));
            }
        }
        blur
    }

    fn single_out(&mut self, cell: CellId, value: i64) {
        self.cut(cell, value);
        if let Some(next) = value.checked_add(1) {
            self.cut(cell, next);
        }
    }

    /// A class of the cell begins at the value; says whether that is new.
    pub fn cut(&mut self, cell: CellId, at: i64) -> bool {
        let cuts = &mut self.cuts[cell.index()];
        match cuts.binary_search(&at) {
            Err(i) if cuts.len() < MOST_CUTS => {
                cuts.insert(i, at);
                true
            }
            _ => false,
        }
    }

    /// Makes it finer: more classes, or where there are none more stores of these threads kept, up to
    /// a most. Says whether that was possible.
    pub fn refine(&mut self, cuts: &[(CellId, i64)], threads: &[ThreadId], most: usize) -> bool {
        let kept = self.keep.iter().copied().max().unwrap_or(0);
        let mut finer = false;
        for (cell, at) in cuts {
            finer |= self.cut(*cell, *at);
        }
        if finer || kept >= most {
            return finer;
        }
        threads.iter().for_each(|t| self.keep[t.index()] += 1);
        true
    }

    /// The values of a class.
    pub fn class(&self, cell: CellId, n: usize) -> Interval {
        let cuts = &self.cuts[cell.index()];
        Interval {
            lo: n.checked_sub(1).map(|i| cuts[i]),
            hi: cuts.get(n).map(|c| c - 1),
        }
    }

    fn classes(&self, cell: CellId) -> usize {
        self.cuts[cell.index()].len() + 1
    }
}

/// A buffer while a store enters it: its slots with their values.
pub type Filling = Vec<(Slot, Term)>;

/// One way to make a buffer small: under a condition on values, this is left.
pub type Small = (Formula, Filling);

impl Blur {
    /// The store enters; every way the result can be made small.
    pub fn put(
        &self,
        (thread, fifo): (usize, bool),
        pending: &Pending,
        mut filling: Filling,
        cell: CellId,
        value: Term,
    ) -> Vec<Small> {
        let newest = pending.slots.last().map(|s| s.epoch);
        let mut epoch = match newest {
            Some(e) => e + u32::from(fifo || pending.fenced),
            None => 0,
        };
        let most = self.keep[thread];
        if epoch as usize > most {
            if self.newest {
                for (slot, _) in &mut filling {
                    slot.epoch = slot.epoch.saturating_sub(1);
                }
            }
            epoch -= 1;
        }
        let before = 0;
        filling.push((
            Slot {
                epoch,
                cell,
                before,
            },
            value,
        ));
        filling.sort_by_key(|(s, _)| (s.epoch, s.cell));
        let held = if fifo { 1 } else { most + 1 };
        let mut done = Vec::new();
        let mut work = vec![(Formula::True, filling)];
        while let Some((when, filling)) = work.pop() {
            let Some(i) = self.crowded(&filling, held) else {
                done.push((when, filling));
                continue;
            };
            let (slot, value) = filling[i].clone();
            for class in 0..self.classes(slot.cell) {
                let here = super::inside(self.class(slot.cell, class), &value);
                let when = and([when.clone(), here]);
                if when == Formula::False {
                    continue;
                }
                let mut rest = filling.clone();
                rest.remove(i);
                rest[i].0.before |= slot.before | 1 << class;
                work.push((when, rest));
            }
        }
        done
    }

    /// An entry to dissolve into its neighbour, where a cell has too many in one epoch.
    fn crowded(&self, filling: &Filling, held: usize) -> Option<usize> {
        let same = |a: &Slot, b: &Slot| (a.epoch, a.cell) == (b.epoch, b.cell);
        let mut from = 0;
        while from < filling.len() {
            let group = filling[from..].iter();
            let many = group.take_while(|(s, _)| same(s, &filling[from].0)).count();
            if many > held {
                return Some(if self.newest { from } else { from + many - 2 });
            }
            from += many;
        }
        None
    }
}

fn constants<A>(e: &Expr<A>, found: &mut dyn FnMut(i64)) {
    match e {
        Expr::Const(c) => found(*c),
        Expr::Ite(_, a, b) => {
            constants(a, found);
            constants(b, found);
        }
        Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) => {}
    }
}
