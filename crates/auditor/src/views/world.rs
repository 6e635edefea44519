//! A few threads seen whole, and others only named.

use super::witness;
use std::borrow::Cow;
use wattle_evidence::certificate::views::{Forget, Witness};
use wattle_evidence::certificate::{Corrupt, Views};
use wattle_memory::MemoryModel;
use wattle_model::array::{ArraySystem, CellType};

/// A constructor's number, or a position of a thread or number.
pub type Pos = i32;
pub const ANY: Pos = i32::MAX;
pub const NONE: Pos = i32::MAX - 1;
/// Between neighbours when nothing stands between them.
pub const ROOM: Pos = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Finite(u16),
    Thread,
    /// Whole numbers, or others.
    Number(bool),
}

/// Whose a position is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Everybody's: of scalars and constants.
    All,
    /// Of one of the threads that are seen whole.
    One(usize),
    /// Of two of these.
    Two,
    /// Of what is known of others.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Store {
    pub cell: u16,
    pub of: Vec<Pos>,
    pub value: Pos,
}

/// Stores that reach memory together; none is a store fence. `repeated`: one or more times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pending {
    pub stores: Vec<Store>,
    pub repeated: bool,
}

/// The elements of a cell for up to three threads; those that there are not are 0.
pub type Elements = [Pos; 9];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct World {
    /// Positions of the threads seen whole.
    pub me: Vec<Pos>,
    pub anchors: Vec<Pos>,
    /// For the threads seen whole.
    pub memory: Vec<Elements>,
    pub pending: Vec<Vec<Pending>>,
    /// Elements of other threads: those that are kept, and those that were looked at.
    pub looked: Vec<(u16, Vec<Pos>, Pos)>,
}

pub struct Frame<'a> {
    /// With the witnesses, if there are any.
    pub system: Cow<'a, ArraySystem>,
    pub witness: Option<Witness>,
    pub model: MemoryModel,
    pub anchors: Vec<i64>,
    pub sorts: Vec<Sort>,
    forget: Vec<Forget>,
    /// Cells of which a view has the elements of all threads it names.
    pub kept: Vec<u16>,
    /// Threads are compared by order somewhere.
    pub ordered: bool,
    /// Cells may hold no thread.
    pub nobody: bool,
}

impl<'a> Frame<'a> {
    pub fn new(
        system: &'a ArraySystem,
        model: MemoryModel,
        certificate: &Views,
    ) -> Result<Self, Corrupt> {
        if system.cells.iter().any(|c| c.arity > 2) {
            return Err(Corrupt("no view has arrays over more than two threads"));
        }
        let ordered = super::orders_threads(system);
        let witness = certificate.witness.clone();
        let known = |w: &Witness| ordered && witness::can_be_kept(system, w.cell);
        if !witness.iter().all(known) {
            return Err(Corrupt("it has witnesses that cannot be known"));
        }
        let system = match witness {
            None => Cow::Borrowed(system),
            Some(_) => Cow::Owned(witness::extended(system)),
        };
        let sorts = system.cells.iter().map(|c| match c.ty {
            CellType::Thread => Sort::Thread,
            CellType::Int => Sort::Number(true),
            CellType::Real => Sort::Number(false),
            ty @ (CellType::Bool | CellType::Declared(_)) => system
                .values(ty)
                .map_or(Sort::Number(false), |n| Sort::Finite(n as u16)),
        });
        let sorted = certificate.anchors.windows(2).all(|w| w[0] < w[1]);
        if !sorted || certificate.anchors.len() > 100 {
            return Err(Corrupt("its constants are not in order"));
        }
        let arity = |c: u16| system.cells.get(usize::from(c)).map(|c| c.arity);
        let there =
            |f: &Forget| arity(f.when).is_some_and(|a| a < 2) && arity(f.when) == arity(f.cell);
        if !certificate.forget.iter().all(there) {
            return Err(Corrupt("it forgets what there is not"));
        }
        let lost = |c: u16| certificate.forget.iter().any(|f| f.cell == c);
        let unfit = |c: &u16| lost(*c) || !witness::can_be_kept(&system, *c);
        if certificate.kept.iter().any(unfit) || witness.iter().any(|w| lost(w.cell)) {
            return Err(Corrupt("it keeps of others what cannot be kept"));
        }
        Ok(Frame {
            sorts: sorts.collect(),
            ordered,
            nobody: system.may_be_nobody(),
            kept: certificate.kept.clone(),
            anchors: certificate.anchors.clone(),
            system,
            witness,
            model,
            forget: certificate.forget.clone(),
        })
    }

    /// Whether a view may say something of the cell's elements for other threads than its two.
    pub fn watched(&self, cell: u16) -> bool {
        self.kept.contains(&cell) || self.witness.as_ref().is_some_and(|w| w.cell == cell)
    }

    pub fn sort(&self, cell: u16) -> Sort {
        self.sorts[usize::from(cell)]
    }

    /// Whether stores to the cell go through buffers.
    pub fn delayed(&self, cell: u16) -> bool {
        self.model != MemoryModel::Sc && self.system.cell(cell).weak
    }

    /// How many elements the cell has where so many threads are seen whole.
    pub fn elements(&self, cell: usize, threads: usize) -> usize {
        threads.pow(u32::from(self.system.cells[cell].arity))
    }

    /// Nothing known but who the threads are.
    pub fn blank(&self, threads: usize) -> World {
        let positions = |n: usize| (1..=n as Pos).map(|i| i * ROOM).collect();
        let unknown = |cell: usize| {
            let mut all = [0; 9];
            all[..self.elements(cell, threads)].fill(ANY);
            all
        };
        World {
            me: positions(threads),
            anchors: positions(self.anchors.len()),
            memory: (0..self.system.cells.len()).map(unknown).collect(),
            pending: vec![Vec::new(); threads],
            looked: Vec::new(),
        }
    }

    /// Calls for each position of a thread or number that is known.
    pub fn each(&self, w: &mut World, visit: &mut dyn FnMut(Of, Sort, &mut Pos)) {
        let mut known = |of: Of, sort: Sort, p: &mut Pos| {
            if !matches!(sort, Sort::Finite(_)) && *p < NONE {
                visit(of, sort, p);
            }
        };
        let n = w.me.len();
        for p in &mut w.anchors {
            known(Of::All, Sort::Number(true), p);
        }
        for (t, p) in w.me.iter_mut().enumerate() {
            known(Of::One(t), Sort::Thread, p);
        }
        for (c, all) in w.memory.iter_mut().enumerate() {
            let arity = self.system.cells[c].arity;
            for (i, p) in all[..self.elements(c, n)].iter_mut().enumerate() {
                let of = match arity {
                    0 => Of::All,
                    1 => Of::One(i),
                    _ if i / n == i % n => Of::One(i / n),
                    _ => Of::Two,
                };
                known(of, self.sorts[c], p);
            }
        }
        for (t, queue) in w.pending.iter_mut().enumerate() {
            for s in queue.iter_mut().flat_map(|p| &mut p.stores) {
                s.of.iter_mut()
                    .for_each(|p| known(Of::One(t), Sort::Thread, p));
                known(Of::One(t), self.sort(s.cell), &mut s.value);
            }
        }
        for (cell, of, value) in &mut w.looked {
            of.iter_mut()
                .for_each(|p| known(Of::Other, Sort::Thread, p));
            known(Of::Other, self.sort(*cell), value);
        }
    }

    /// The positions for which this is so, in order.
    fn occurring(&self, w: &World, meant: impl Fn(Of, Sort) -> bool) -> Vec<Pos> {
        let mut all = Vec::new();
        self.each(&mut w.clone(), &mut |of, sort, p| {
            all.extend(meant(of, sort).then_some(*p));
        });
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The positions of threads, or of numbers.
    pub fn positions(&self, w: &World, threads: bool) -> Vec<Pos> {
        self.occurring(w, |_, s| (s == Sort::Thread) == threads)
    }

    /// Positions that are certainly those of whole numbers.
    pub fn integers(&self, w: &World) -> Vec<Pos> {
        self.occurring(w, |_, s| s == Sort::Number(true))
    }

    /// Elements that are kept of threads which are not whole but named.
    pub fn named(&self, w: &World) -> Vec<(u16, Pos)> {
        if self.kept.is_empty() {
            return Vec::new();
        }
        let mut all = self.occurring(w, |of, s| of != Of::Other && s == Sort::Thread);
        all.retain(|p| !w.me.contains(p));
        let of = |c: &u16| all.iter().map(|p| (*c, *p)).collect::<Vec<_>>();
        self.kept.iter().flat_map(of).collect()
    }

    /// Forgets of other threads what is not kept.
    pub fn tidy(&self, w: &mut World) {
        let named = self.named(w);
        w.looked
            .retain(|(c, of, v)| *v != ANY && of.len() == 1 && named.contains(&(*c, of[0])));
        w.looked.sort();
    }

    /// The same with only these threads whole.
    pub fn part(&self, w: &World, of: &[usize]) -> World {
        let n = w.me.len();
        let mut part = World {
            me: of.iter().map(|t| w.me[*t]).collect(),
            anchors: w.anchors.clone(),
            pending: of.iter().map(|t| w.pending[*t].clone()).collect(),
            looked: w.looked.clone(),
            memory: vec![[0; 9]; w.memory.len()],
        };
        for (c, all) in w.memory.iter().enumerate() {
            for i in 0..self.elements(c, of.len()) {
                part.memory[c][i] = match self.system.cells[c].arity {
                    0 => all[0],
                    1 => all[of[i]],
                    _ => all[of[i / of.len()] * n + of[i % of.len()]],
                };
            }
        }
        for t in (0..n).filter(|t| !of.contains(t)) {
            let each = self.kept.iter();
            let known = each.map(|c| (*c, vec![w.me[t]], w.memory[usize::from(*c)][t]));
            part.looked.extend(known);
        }
        self.tidy(&mut part);
        part
    }

    /// Forgets what the certificate says, rule by rule; a cell that is forgotten counts as one that has
    /// the values. Gives what is forgotten, or the cell and element that must be known first.
    pub fn forgotten(&self, w: &mut World) -> Result<Vec<(usize, usize)>, (usize, usize)> {
        let mut gone = Vec::new();
        for f in &self.forget {
            let (when, cell) = (usize::from(f.when), usize::from(f.cell));
            for i in 0..self.elements(when, w.me.len()) {
                let at = w.memory[when][i];
                let lost = gone.contains(&(when, i));
                if at == ANY && !lost {
                    return Err((when, i));
                }
                if lost || f.values.iter().any(|v| Pos::from(*v) == at) {
                    gone.push((cell, i));
                    w.memory[cell][i] = ANY;
                }
            }
        }
        Ok(gone)
    }

    /// One of the worlds that differ only in names, always the same.
    pub fn canonical(&self, w: &World) -> World {
        let mut orders = vec![(0..w.me.len()).collect::<Vec<_>>()];
        if w.me.len() == 2 {
            orders.push(vec![1, 0]);
        }
        orders.retain(|order| !self.ordered || order.is_sorted_by_key(|t| w.me[*t]));
        let named = orders.iter().map(|order| {
            let mut w = self.part(w, order);
            let numbers = self.positions(&w, false);
            let mut threads = Vec::new();
            self.each(&mut w, &mut |_, sort, p| {
                if sort == Sort::Thread && !threads.contains(p) {
                    threads.push(*p);
                }
            });
            if self.ordered {
                threads.sort_unstable();
            }
            self.each(&mut w, &mut |_, sort, p| {
                let all = if sort == Sort::Thread {
                    &threads
                } else {
                    &numbers
                };
                let place = all.iter().position(|x| x == p).unwrap_or(all.len());
                *p = (place as Pos + 1) * ROOM;
            });
            w.looked.sort();
            w
        });
        named.min().unwrap_or_else(|| w.clone())
    }
}
