//! A few threads seen whole, and others only named.

use super::witness::{self, Witness};
use std::borrow::Cow;
use std::ops::{Index, IndexMut};
use std::rc::Rc;
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

impl Sort {
    /// Whether values are positions of threads (or of numbers).
    pub fn has_position(self, threads: bool) -> bool {
        match self {
            Sort::Finite(_) => false,
            Sort::Thread => threads,
            Sort::Number(_) => !threads,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    pub cell: u16,
    pub of: Vec<Pos>,
    pub value: Pos,
}

/// Stores that reach memory together; none is a store fence. `repeated`: one or more times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub stores: Vec<Store>,
    pub repeated: bool,
}

/// For each cell its elements. Worlds are copied a lot, so these are in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Where the elements of each cell begin, and where the last one's end.
    starts: Rc<[usize]>,
    elements: Vec<Pos>,
}

impl Memory {
    /// Each cell with its elements.
    pub fn cells(&self) -> impl Iterator<Item = (usize, &[Pos])> {
        let two = self.starts.windows(2).enumerate();
        two.map(|(c, two)| (c, &self.elements[two[0]..two[1]]))
    }
}

impl Index<usize> for Memory {
    type Output = [Pos];

    fn index(&self, cell: usize) -> &[Pos] {
        &self.elements[self.starts[cell]..self.starts[cell + 1]]
    }
}

impl IndexMut<usize> for Memory {
    fn index_mut(&mut self, cell: usize) -> &mut [Pos] {
        &mut self.elements[self.starts[cell]..self.starts[cell + 1]]
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// Positions of the threads seen whole.
    pub me: Vec<Pos>,
    pub anchors: Vec<Pos>,
    /// For the threads seen whole.
    pub memory: Memory,
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
    forget: Vec<(u16, Vec<u8>, u16)>,
    /// Cells of which a view has the elements of all threads it names.
    pub kept: Vec<u16>,
    /// Threads are compared by order somewhere.
    pub ordered: bool,
    /// Cells may hold no thread.
    pub nobody: bool,
    /// Where the elements of each cell begin, with one, two and three threads seen whole.
    layouts: [Rc<[usize]>; 3],
}

impl<'a> Frame<'a> {
    pub fn new(
        system: &'a ArraySystem,
        model: MemoryModel,
        certificate: &Views,
    ) -> Result<Self, Corrupt> {
        let witness = witness::of(system, certificate)?;
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
        let mut forget = Vec::new();
        for f in &certificate.forget {
            let arity = |c: u16| system.cells.get(usize::from(c)).map(|c| c.arity);
            if arity(f.when).is_none_or(|a| a > 1) || arity(f.when) != arity(f.cell) {
                return Err(Corrupt("it forgets what there is not"));
            }
            forget.push((f.when, f.values.clone(), f.cell));
        }
        let lost = |c: u16| forget.iter().any(|f| f.2 == c);
        let unfit = |c: &u16| lost(*c) || !witness::can_be_kept(&system, *c);
        if certificate.kept.iter().any(unfit) || witness.iter().any(|w| lost(w.cell)) {
            return Err(Corrupt("it keeps of others what cannot be kept"));
        }
        let layouts = [1usize, 2, 3].map(|threads| {
            let mut starts = vec![0];
            for c in &system.cells {
                starts.push(starts[starts.len() - 1] + threads.pow(u32::from(c.arity)));
            }
            starts.into()
        });
        Ok(Frame {
            sorts: sorts.collect(),
            layouts,
            ordered: super::orders_threads(&system),
            nobody: system.may_be_nobody(),
            kept: certificate.kept.clone(),
            anchors: certificate.anchors.clone(),
            system,
            witness,
            model,
            forget,
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

    /// Nothing known but who the threads are.
    pub fn blank(&self, threads: usize) -> World {
        let positions = |n: usize| (1..=n as Pos).map(|i| i * ROOM).collect();
        let starts = self.layouts[threads - 1].clone();
        World {
            me: positions(threads),
            anchors: positions(self.anchors.len()),
            memory: Memory {
                elements: vec![ANY; starts[self.system.cells.len()]],
                starts,
            },
            pending: vec![Vec::new(); threads],
            looked: Vec::new(),
        }
    }

    /// Whether a view that somebody else wrote can be told from all others by its [`key`](Self::key). It is
    /// audited whatever it says.
    pub fn is_sound(&self, w: &World) -> bool {
        let fits = |cell: u16, p: Pos| match self.sort(cell) {
            Sort::Finite(n) => p == ANY || (0..Pos::from(n)).contains(&p),
            Sort::Thread | Sort::Number(_) => true,
        };
        let whole = |cell: u16, of: &[Pos]| {
            let decl = self.system.cells.get(usize::from(cell));
            decl.is_some_and(|c| usize::from(c.arity) == of.len())
        };
        let mut stores = w.pending.iter().flatten().flat_map(|p| &p.stores);
        let mut looked = w.looked.iter();
        w.me.len() == 2
            && w.pending.len() == 2
            && w.memory.starts == self.layouts[1]
            && (w.memory.cells()).all(|(c, all)| all.iter().all(|p| fits(c as u16, *p)))
            && stores.all(|s| whole(s.cell, &s.of) && fits(s.cell, s.value))
            && looked.all(|(c, of, value)| whole(*c, of) && fits(*c, *value))
    }

    /// Calls for each position of a thread (or number) that is known.
    pub fn each(&self, w: &mut World, threads: bool, visit: &mut dyn FnMut(&mut Pos)) {
        self.each_of(w, None, threads, visit);
        for t in 0..w.me.len() {
            self.each_of(w, Some(t), threads, visit);
        }
        let mut known = |sort: Sort, p: &mut Pos| {
            if sort.has_position(threads) && *p < NONE {
                visit(p);
            }
        };
        let n = w.me.len();
        for (c, _) in self
            .system
            .cells
            .iter()
            .enumerate()
            .filter(|(_, c)| c.arity == 2)
        {
            for i in (0..n * n).filter(|i| i / n != i % n) {
                known(self.sorts[c], &mut w.memory[c][i]);
            }
        }
        for (cell, of, value) in &mut w.looked {
            of.iter_mut().for_each(|p| known(Sort::Thread, p));
            known(self.sort(*cell), value);
        }
    }

    /// The same for those of the scalars and constants (`None`) or of one thread alone.
    pub fn each_of(
        &self,
        w: &mut World,
        of: Option<usize>,
        threads: bool,
        visit: &mut dyn FnMut(&mut Pos),
    ) {
        let mut known = |sort: Sort, p: &mut Pos| {
            if sort.has_position(threads) && *p < NONE {
                visit(p);
            }
        };
        let n = w.me.len();
        match of {
            None => (w.anchors.iter_mut()).for_each(|p| known(Sort::Number(true), p)),
            Some(t) => known(Sort::Thread, &mut w.me[t]),
        }
        for (c, cell) in self.system.cells.iter().enumerate() {
            match (cell.arity, of) {
                (0, None) => known(self.sorts[c], &mut w.memory[c][0]),
                (1, Some(t)) => known(self.sorts[c], &mut w.memory[c][t]),
                (2, Some(t)) => known(self.sorts[c], &mut w.memory[c][t * n + t]),
                _ => {}
            }
        }
        let Some(t) = of else { return };
        for s in w.pending[t].iter_mut().flat_map(|p| &mut p.stores) {
            s.of.iter_mut().for_each(|p| known(Sort::Thread, p));
            known(self.sort(s.cell), &mut s.value);
        }
    }

    /// Elements that are kept of threads which are not whole but named.
    pub fn named(&self, w: &World) -> Vec<(u16, Pos)> {
        if self.kept.is_empty() {
            return Vec::new();
        }
        let mut all = self.occurring(w, false, |s| s == Sort::Thread);
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

    pub fn positions(&self, w: &World, threads: bool) -> Vec<Pos> {
        self.occurring(w, true, |s| s.has_position(threads))
    }

    /// Positions that are certainly those of whole numbers.
    pub fn integers(&self, w: &World) -> Vec<Pos> {
        self.occurring(w, true, |s| s == Sort::Number(true))
    }

    /// The positions of such sorts, with or without what is known of other threads.
    fn occurring(&self, w: &World, looked: bool, meant: impl Fn(Sort) -> bool) -> Vec<Pos> {
        let mut all = Vec::new();
        if meant(Sort::Thread) {
            all.extend(&w.me);
        }
        if meant(Sort::Number(true)) {
            all.extend(&w.anchors);
        }
        for (_, elements) in w.memory.cells().filter(|(c, _)| meant(self.sorts[*c])) {
            all.extend(elements);
        }
        let stores = w.pending.iter().flatten().flat_map(|p| &p.stores);
        let stores = stores.map(|s| (s.cell, &s.of, s.value));
        let others = w.looked.iter().map(|(cell, of, value)| (*cell, of, *value));
        for (cell, of, value) in stores.chain(others.filter(|_| looked)) {
            all.extend(of.iter().filter(|_| meant(Sort::Thread)));
            all.extend(meant(self.sort(cell)).then_some(value));
        }
        all.retain(|p| *p < NONE);
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The same with only these threads whole.
    pub fn part(&self, w: &World, of: &[usize]) -> World {
        let n = w.me.len();
        let starts = self.layouts[of.len() - 1].clone();
        let mut elements = Vec::with_capacity(starts[self.system.cells.len()]);
        for (c, all) in w.memory.cells() {
            match self.system.cells[c].arity {
                0 => elements.extend(all),
                1 => elements.extend(of.iter().map(|t| all[*t])),
                _ => {
                    let pairs = of.iter().flat_map(|i| of.iter().map(move |j| i * n + j));
                    elements.extend(pairs.map(|at| all[at]));
                }
            }
        }
        let mut looked = w.looked.clone();
        for t in (0..n).filter(|t| !of.contains(t)) {
            let each = self.kept.iter();
            looked.extend(each.map(|c| (*c, vec![w.me[t]], w.memory[usize::from(*c)][t])));
        }
        let mut part = World {
            me: of.iter().map(|t| w.me[*t]).collect(),
            anchors: w.anchors.clone(),
            memory: Memory { starts, elements },
            pending: of.iter().map(|t| w.pending[*t].clone()).collect(),
            looked,
        };
        self.tidy(&mut part);
        part
    }

    /// Forgets what the certificate says, rule by rule; a cell that is forgotten counts as one that has
    /// the values. Gives what is forgotten, or the cell and element that must be known first.
    pub fn forgotten(&self, w: &mut World) -> Result<Vec<(usize, usize)>, (usize, usize)> {
        let mut gone = Vec::new();
        for (when, values, cell) in &self.forget {
            let (when, cell) = (usize::from(*when), usize::from(*cell));
            for i in 0..w.memory[when].len() {
                let at = w.memory[when][i];
                let lost = gone.contains(&(when, i));
                if at == ANY && !lost {
                    return Err((when, i));
                }
                if lost || values.iter().any(|v| Pos::from(*v) == at) {
                    gone.push((cell, i));
                    w.memory[cell][i] = ANY;
                }
            }
        }
        Ok(gone)
    }

    /// Equal for worlds that differ only in names.
    pub fn key(&self, w: &World) -> Vec<u16> {
        let mut w = w.clone();
        self.tidy(&mut w);
        let numbers = self.positions(&w, false);
        self.each(&mut w, false, &mut |p| {
            *p = numbers.partition_point(|x| x < p) as Pos
        });
        let n = w.me.len();
        if self.ordered {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_key(|t| w.me[*t]);
            let mut w = self.part(&w, &order);
            let threads = self.positions(&w, true);
            self.each(&mut w, true, &mut |p| {
                *p = threads.partition_point(|x| x < p) as Pos
            });
            return flat(&w);
        }
        let mut orders = vec![(0..n).collect::<Vec<_>>()];
        if n == 2 {
            orders.push(vec![1, 0]);
        }
        let named = orders.iter().map(|order| {
            let mut w = self.part(&w, order);
            let mut seen: Vec<Pos> = Vec::new();
            self.each(&mut w, true, &mut |p| {
                if !seen.contains(p) {
                    seen.push(*p);
                }
                *p = seen.iter().position(|s| s == p).map_or(0, |i| i as Pos);
            });
            flat(&w)
        });
        named.min().unwrap_or_default()
    }
}

fn flat(w: &World) -> Vec<u16> {
    let short = |p: &Pos| match *p {
        ANY => u16::MAX,
        NONE => u16::MAX - 1,
        p => p as u16,
    };
    let mut out: Vec<u16> = w.me.iter().chain(&w.anchors).map(short).collect();
    out.extend(w.memory.elements.iter().map(short));
    for queue in &w.pending {
        out.push(queue.len() as u16);
        for p in queue {
            out.push((p.stores.len() * 2 + usize::from(p.repeated)) as u16);
            for s in &p.stores {
                out.push(s.cell);
                out.extend(s.of.iter().chain([&s.value]).map(short));
            }
        }
    }
    let mut looked = w.looked.clone();
    looked.sort();
    for (cell, of, value) in &looked {
        out.push(*cell);
        out.extend(of.iter().chain([value]).map(short));
    }
    out
}
