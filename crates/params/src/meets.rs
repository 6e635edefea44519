//! Whether a view of an instance is one of a cube's states.
//!
//! An open read is still to be made, at a moment of memory's history: not before its thread's latest
//! read, not before the reads that come before it, and after the stores that reach memory first (all
//! those of a thread before what its next store precedes, those of a cell before what the cell's
//! oldest known store precedes). PSO: a drain without its step needs an undrained store.

use crate::compile::Compiled;
use crate::cube::{Cube, Mask, OTHER};
use crate::lin::Op;
use crate::machine::{Entry, Machine};
use crate::memory::{Events, NOBODY};
use crate::slot::Slot;
use crate::view::View;

/// Choices of moments tried for one view. More count as found: nothing is guessed then.
const TRIED: u32 = 2000;

/// An open read of an instance, and the values it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub parts: Vec<Part>,
    /// Open reads that come first.
    pub before: Events,
    /// What else comes first.
    pub firsts: Vec<First>,
}

/// Thread (0 reads memory itself), position, allowed values.
pub type Part = (u8, usize, Option<Mask>);

/// Something that comes before an open read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum First {
    /// A thread's latest read.
    Read(u8),
    /// Everybody's.
    Reads,
    /// A thread's stores.
    Stores(u8),
    /// All stores of a cell.
    Settled(usize),
}

impl First {
    /// The earliest moment after it.
    pub fn moment(self, view: &View) -> usize {
        let after = |waits: &dyn Fn(&(u8, usize, i64)) -> bool| {
            let last = view.writes.iter().rposition(|g| g.iter().any(waits));
            last.map_or(0, |i| i + 1)
        };
        match self {
            First::Read(t) => usize::from(view.moments[usize::from(t) - 1]),
            First::Reads => view.moments.iter().max().map_or(0, |m| usize::from(*m)),
            First::Stores(t) => after(&|w| w.0 == t),
            First::Settled(p) => after(&|w| w.1 == p),
        }
    }
}

/// The moments at which a thread sees one of the values, one bit each.
pub fn moments(view: &View, (reader, position, mask): Part) -> u16 {
    (0..=view.now().min(15)).fold(0, |out, m| {
        let fits = mask.is_none_or(|mask| allows(mask, view.seen(reader, position, m)));
        if fits { out | 1 << m } else { out }
    })
}

/// A constraint on values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    In(Held, Mask),
    Same(Held, Held, bool),
    Number(Vec<(Held, i64)>, i64, Op),
    /// PSO: so many undrained stores of a thread to a cell; the newest has one of these values.
    Undrained(u8, usize, usize, Option<Mask>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    Cell(usize),
    Part(u8, u8),
}

/// A cube with its threads chosen.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// On cells alone.
    pub cells: Vec<Test>,
    /// Each after those that come before it.
    pub reads: Vec<Read>,
    /// On values of open reads, and of these and cells.
    pub mixed: Vec<Test>,
}

/// The cube about the threads `env` of an instance.
pub fn choose(compiled: &Compiled<'_>, machine: &Machine<'_>, cube: &Cube, env: &[u8]) -> Chosen {
    let position = |s: Slot| {
        let mut args = [0u8; 3];
        let mut n = 0;
        for a in s.args() {
            args[n] = env[usize::from(a)];
            n += 1;
        }
        machine.position(s.array(), &args[..n])
    };
    let place = |s: Slot| match s.as_read() {
        Some((e, p)) => Some(Held::Part(e as u8, p as u8)),
        None => s.is_cell().then(|| Held::Cell(position(s))),
    };
    let mask = |s: Slot, m: Mask| match compiled.is_thread(cube, s) {
        true => (0..=machine.threads).fold(0, |out, t| {
            let allowed = match env.iter().position(|e| *e == t) {
                Some(i) => m & 1 << i != 0,
                None => m & OTHER != 0,
            };
            if allowed { out | 1 << t } else { out }
        }),
        false => m,
    };
    let mut out = Chosen {
        cells: Vec::new(),
        reads: reads(machine, cube, env, &position),
        mixed: Vec::new(),
    };
    for (s, m) in &cube.doms {
        match place(*s) {
            Some(Held::Part(e, p)) => {
                out.reads[usize::from(e)].parts[usize::from(p)].2 = Some(mask(*s, *m));
            }
            Some(cell) => out.cells.push(Test::In(cell, mask(*s, *m))),
            None => {}
        }
    }
    for (k, p) in cube.memory.pending.iter().enumerate() {
        let same = |q: &&crate::memory::Pending| q.thread == p.thread && q.cell == p.cell;
        let count = cube.memory.pending.iter().filter(same).count();
        let newest = !cube.memory.pending[..k].iter().any(|q| same(&q));
        if newest {
            let slot = Slot::pending(k);
            let allowed = cube.dom(slot).map(|m| mask(slot, m));
            let thread = env[usize::from(p.thread)];
            out.cells
                .push(Test::Undrained(thread, position(p.cell), count, allowed));
        }
    }
    let rels = cube.rels.iter();
    let rels = rels.filter_map(|(a, b, e)| Some(Test::Same(place(*a)?, place(*b)?, *e)));
    let lins = cube.ints.iter().chain(&cube.reals).filter_map(|l| {
        let terms = l.terms.iter().map(|(s, c)| Some((place(*s)?, *c)));
        Some(Test::Number(
            terms.collect::<Option<_>>()?,
            l.constant,
            l.op,
        ))
    });
    let (cells, mixed): (Vec<Test>, Vec<Test>) = rels.chain(lins).partition(Test::on_cells);
    out.cells.extend(cells);
    out.mixed = mixed;
    out
}

fn reads(
    machine: &Machine<'_>,
    cube: &Cube,
    env: &[u8],
    position: &dyn Fn(Slot) -> usize,
) -> Vec<Read> {
    let memory = &cube.memory;
    let reader = |r: u8| if r == NOBODY { 0 } else { env[usize::from(r)] };
    let mut out = Vec::with_capacity(memory.events.len());
    for (e, open) in memory.events.iter().enumerate() {
        let bit = 1 << e;
        let parts: Vec<Part> = open
            .parts
            .iter()
            .map(|p| (reader(p.reader), position(p.cell), None))
            .collect();
        let before = memory.events.iter().enumerate();
        let before = before.filter(|(f, o)| *f != e && o.after & bit != 0);
        let mut firsts: Vec<First> = Vec::new();
        if memory.last & bit != 0 {
            firsts.push(First::Reads);
        }
        firsts.extend(parts.iter().filter(|p| p.0 > 0).map(|p| First::Read(p.0)));
        for (t, thread) in env.iter().enumerate() {
            if memory.read_first[t] & bit != 0 {
                firsts.push(First::Read(*thread));
            }
            if memory.write_first[t] & bit != 0 {
                firsts.push(First::Stores(*thread));
            }
        }
        let cells = memory.cell_first.iter().filter(|(_, s)| s & bit != 0);
        firsts.extend(cells.map(|(c, _)| First::Settled(position(*c))));
        for (array, s) in &memory.others_first {
            let elsewhere = |p: &usize| {
                let (cell, args) = machine.cell_at(*p);
                cell == *array && args.iter().any(|a| !env.contains(a))
            };
            if s & bit != 0 {
                let cells = (0..machine.size()).filter(elsewhere);
                firsts.extend(cells.map(First::Settled));
            }
        }
        out.push(Read {
            parts,
            before: before.fold(0, |m, (f, _)| m | 1 << f),
            firsts,
        });
    }
    out
}

/// The reads in an order in which each comes after those before it.
pub fn in_order(reads: &[Read]) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::with_capacity(reads.len());
    let mut done: Events = 0;
    while out.len() < reads.len() {
        let open = (0..reads.len()).filter(|e| done & 1 << e == 0);
        // A circle of reads at one moment: take any of them.
        let next = open.clone().find(|e| reads[*e].before & !done == 0);
        let next = next.or(open.clone().next()).unwrap_or(0);
        done |= 1 << next;
        out.push(next);
    }
    out
}

impl Test {
    fn on_cells(&self) -> bool {
        let cell = |p: &Held| matches!(p, Held::Cell(_));
        match self {
            Test::In(p, _) => cell(p),
            Test::Same(p, q, _) => cell(p) && cell(q),
            Test::Number(terms, ..) => terms.iter().all(|(p, _)| cell(p)),
            Test::Undrained(..) => true,
        }
    }

    fn speaks_of(&self, e: usize) -> bool {
        let of = |p: &Held| matches!(p, Held::Part(f, _) if usize::from(*f) == e);
        match self {
            Test::In(p, _) => of(p),
            Test::Same(p, q, _) => of(p) || of(q),
            Test::Number(terms, ..) => terms.iter().any(|(p, _)| of(p)),
            Test::Undrained(..) => false,
        }
    }

    fn holds(&self, view: &View, part: &dyn Fn(u8, u8) -> i64) -> bool {
        let value = |p: Held| match p {
            Held::Cell(c) => view.values[c],
            Held::Part(e, p) => part(e, p),
        };
        match self {
            Test::In(p, mask) => allows(*mask, value(*p)),
            Test::Same(p, q, equal) => (value(*p) == value(*q)) == *equal,
            Test::Number(terms, constant, op) => {
                let sum = terms.iter().fold(*constant, |sum, (p, c)| {
                    sum.saturating_add(value(*p).saturating_mul(*c))
                });
                match op {
                    Op::Le => sum <= 0,
                    Op::Lt => sum < 0,
                    Op::Eq => sum == 0,
                    Op::Ne => sum != 0,
                }
            }
            Test::Undrained(thread, position, count, allowed) => {
                let buffer = &view.buffers[usize::from(*thread) - 1];
                let stores = buffer.iter().filter_map(|e| match e {
                    Entry::Writes(w) => w.iter().rev().find(|(p, _)| p == position),
                    Entry::Mark => None,
                });
                let list: Vec<i64> = stores.map(|(_, v)| *v).collect();
                list.len() >= *count
                    && allowed.is_none_or(|m| list.last().is_some_and(|v| allows(m, *v)))
            }
        }
    }

    /// Of a test on cells alone.
    pub fn holds_in(&self, view: &View) -> bool {
        self.holds(view, &|_, _| 0)
    }
}

fn allows(mask: Mask, v: i64) -> bool {
    (0..128).contains(&v) && mask & 1 << v != 0
}

/// Whether the open reads can be made at some of the given moments (and not before the given ones)
/// such that the constraints between them hold.
pub fn reads_possible(
    view: &View,
    chosen: &Chosen,
    order: &[usize],
    fits: &[(u16, usize)],
) -> bool {
    let mut search = Moments {
        view,
        chosen,
        order,
        fits,
        tried: 0,
        moments: [0; 64],
    };
    search.go(0)
}

struct Moments<'s> {
    view: &'s View,
    chosen: &'s Chosen,
    order: &'s [usize],
    fits: &'s [(u16, usize)],
    tried: u32,
    moments: [u8; 64],
}

impl Moments<'_> {
    fn go(&mut self, number: usize) -> bool {
        self.tried += 1;
        if self.tried > TRIED {
            return true;
        }
        let Some(&e) = self.order.get(number) else {
            let part = |e: u8, p: u8| {
                let (reader, position, _) = self.chosen.reads[usize::from(e)].parts[usize::from(p)];
                let moment = usize::from(self.moments[usize::from(e)]);
                self.view.seen(reader, position, moment)
            };
            return self.chosen.mixed.iter().all(|t| t.holds(self.view, &part));
        };
        let (bits, mut first) = self.fits[e];
        for f in &self.order[..number] {
            if self.chosen.reads[e].before & 1 << f != 0 {
                first = first.max(usize::from(self.moments[*f]));
            }
        }
        let mut left = bits & (u16::MAX << first.min(15));
        let bound = self.chosen.mixed.iter().any(|t| t.speaks_of(e));
        while left != 0 {
            self.moments[e] = left.trailing_zeros() as u8;
            if self.go(number + 1) {
                return true;
            }
            // A value that nothing else speaks of is best read as early as possible.
            if !bound {
                return false;
            }
            left &= left - 1;
        }
        false
    }
}
