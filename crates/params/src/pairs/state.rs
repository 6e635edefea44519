//! A few *solid* threads with everything that is known of them, and *ghosts*: other threads that cells
//! point to, of which only the identity (and the place in the order of threads) is known.
//!
//! Threads and numbers are positions: only their order means something (of threads only their
//! equality, if the system never compares them by order). Packing makes the positions dense, so that
//! equal views are equal bytes.

use super::shape::{Shape, Sort};

/// A value: a number of a constructor, or a position.
pub type Val = u32;

/// Any value.
pub const UNKNOWN: Val = u32::MAX;
/// No thread.
pub const NOBODY: Val = u32::MAX - 1;

/// Between neighbouring positions of an unpacked state.
pub const SPACING: Val = 1 << 16;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The solid threads' positions, the anchors' positions, scalars, elements of each solid thread,
    /// elements of each two.
    pub vals: Vec<Val>,
    pub buffers: Vec<Vec<Entry>>,
    /// Elements of ghosts: those that the step at hand has looked at, and those that are kept.
    pub extra: Vec<(u16, [Val; 2], Val)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub writes: Vec<Write>,
    /// One or more such entries in a row.
    pub many: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    pub cell: u16,
    pub args: [Val; 2],
    pub value: Val,
}

/// Where a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    Value(usize),
    Buffered(usize, usize, usize),
    Extra(u16, [Val; 2]),
    /// What a thread reads that is not solid: nothing is known of its pending stores.
    Hidden,
}

pub type Packed = Box<[u8]>;

impl State {
    pub fn solids(&self) -> usize {
        self.buffers.len()
    }

    /// The solid thread at the position.
    pub fn solid(&self, id: Val) -> Option<usize> {
        self.vals[..self.solids()].iter().position(|v| *v == id)
    }

    /// Calls for every position of a thread.
    pub fn each_thread(&mut self, shape: &Shape, visit: &mut dyn FnMut(&mut Val)) {
        self.each_name(shape, visit);
        self.each_extra_thread(shape, visit);
    }

    /// Calls for every position of a thread that a cell or a buffer of a solid thread has.
    fn each_name(&mut self, shape: &Shape, visit: &mut dyn FnMut(&mut Val)) {
        let sorts = shape.sorts(self.solids());
        for (v, s) in self.vals.iter_mut().zip(sorts) {
            if *s == Sort::Thread && *v < NOBODY {
                visit(v);
            }
        }
        let writes = self.buffers.iter_mut().flatten();
        for w in writes.flat_map(|e| &mut e.writes) {
            let cell = &shape.cells[usize::from(w.cell)];
            w.args[..cell.arity].iter_mut().for_each(&mut *visit);
            if cell.sort == Sort::Thread && w.value < NOBODY {
                visit(&mut w.value);
            }
        }
    }

    fn each_extra_thread(&mut self, shape: &Shape, visit: &mut dyn FnMut(&mut Val)) {
        for (cell, args, value) in &mut self.extra {
            let cell = &shape.cells[usize::from(*cell)];
            args[..cell.arity].iter_mut().for_each(&mut *visit);
            if cell.sort == Sort::Thread && *value < NOBODY {
                visit(value);
            }
        }
    }

    /// Calls for every position of a number.
    pub fn each_number(&mut self, shape: &Shape, visit: &mut dyn FnMut(&mut Val)) {
        let sorts = shape.sorts(self.solids());
        for (v, s) in self.vals.iter_mut().zip(sorts) {
            if matches!(s, Sort::Int | Sort::Other) && *v != UNKNOWN {
                visit(v);
            }
        }
        let number =
            |cell: u16| matches!(shape.cells[usize::from(cell)].sort, Sort::Int | Sort::Other);
        let writes = self.buffers.iter_mut().flatten();
        for w in writes.flat_map(|e| &mut e.writes) {
            if number(w.cell) && w.value != UNKNOWN {
                visit(&mut w.value);
            }
        }
        for (cell, _, value) in &mut self.extra {
            if number(*cell) && *value != UNKNOWN {
                visit(value);
            }
        }
    }

    /// The ghosts that are named.
    pub fn ghosts(&mut self, shape: &Shape) -> Vec<Val> {
        let solids = self.vals[..self.solids()].to_vec();
        let mut all = Vec::new();
        self.each_name(shape, &mut |v| all.push(*v));
        all.retain(|v| !solids.contains(v));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Forgets what was merely looked at, and elements of ghosts that nobody names any more.
    pub fn tidy(&mut self, shape: &Shape) {
        if self.extra.is_empty() || shape.kept.is_empty() {
            return self.extra.clear();
        }
        let ghosts = self.ghosts(shape);
        self.extra.retain(|(cell, args, value)| {
            shape.kept.contains(cell) && *value != UNKNOWN && ghosts.contains(&args[0])
        });
        self.extra.sort_unstable();
    }

    /// All positions of threads, in order.
    pub fn threads(&mut self, shape: &Shape, env: &[Val]) -> Vec<Val> {
        let mut all: Vec<Val> = env.iter().copied().filter(|v| *v < NOBODY).collect();
        self.each_thread(shape, &mut |v| all.push(*v));
        all.sort_unstable();
        all.dedup();
        all
    }

    pub fn numbers(&mut self, shape: &Shape) -> Vec<Val> {
        let mut all = Vec::new();
        self.each_number(shape, &mut |v| all.push(*v));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Positions that are certainly those of whole numbers.
    pub fn integers(&self, shape: &Shape) -> Vec<Val> {
        let sorts = shape.sorts(self.solids());
        let whole = |cell: u16| shape.cells[usize::from(cell)].sort == Sort::Int;
        let own = self.vals.iter().zip(sorts);
        let own = own.filter(|(_, s)| **s == Sort::Int).map(|(v, _)| *v);
        let writes = self.buffers.iter().flatten().flat_map(|e| &e.writes);
        let writes = writes.map(|w| (w.cell, w.value));
        let extra = self.extra.iter().map(|(cell, _, value)| (*cell, *value));
        let more = writes.chain(extra).filter(|(cell, _)| whole(*cell));
        let mut all: Vec<Val> = own.chain(more.map(|(_, value)| value)).collect();
        all.retain(|v| *v != UNKNOWN);
        all.sort_unstable();
        all.dedup();
        all
    }

    pub fn set(&mut self, place: Home, value: Val) {
        match place {
            Home::Hidden => {}
            Home::Value(i) => self.vals[i] = value,
            Home::Buffered(t, e, w) => self.buffers[t][e].writes[w].value = value,
            Home::Extra(cell, args) => {
                match self.extra.iter_mut().find(|x| x.0 == cell && x.1 == args) {
                    Some(x) => x.2 = value,
                    None => self.extra.push((cell, args, value)),
                }
            }
        }
    }

    /// The same with only some of the solid threads, in the order given; the others are ghosts now.
    pub fn project(&self, shape: &Shape, kept: &[usize]) -> State {
        let (from, to) = (self.solids(), kept.len());
        let mut vals = Vec::with_capacity(shape.sorts(to).len());
        vals.extend(kept.iter().map(|t| self.vals[*t]));
        let scalars = shape.anchors.len() + shape.scalars;
        vals.extend(&self.vals[from..from + scalars]);
        let own = from + scalars;
        for t in kept {
            let at = own + t * shape.singles;
            vals.extend(&self.vals[at..at + shape.singles]);
        }
        let both = own + from * shape.singles;
        for c in 0..shape.doubles {
            for i in kept {
                vals.extend(
                    kept.iter()
                        .map(|j| self.vals[both + (c * from + i) * from + j]),
                );
            }
        }
        let mut extra = Vec::new();
        for c in &shape.kept {
            extra.extend(self.extra.iter().filter(|x| x.0 == *c));
            for t in (0..from).filter(|t| !kept.contains(t)) {
                let value = self.vals[shape.position(from, *c, &[t])];
                extra.push((*c, [self.vals[t], 0], value));
            }
        }
        let mut state = State {
            vals,
            buffers: kept.iter().map(|t| self.buffers[*t].clone()).collect(),
            extra,
        };
        state.tidy(shape);
        state
    }

    /// Names positions canonically.
    pub fn pack(mut self, shape: &Shape) -> Packed {
        self.tidy(shape);
        let numbers = self.numbers(shape);
        let rank = |all: &[Val], v: Val| all.binary_search(&v).unwrap_or(0) as Val;
        self.each_number(shape, &mut |v| *v = rank(&numbers, *v));
        let n = self.solids();
        if shape.ordered {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_unstable_by_key(|t| self.vals[*t]);
            if order.windows(2).any(|w| w[0] > w[1]) {
                self = self.project(shape, &order);
            }
            let threads = self.threads(shape, &[]);
            self.each_thread(shape, &mut |v| *v = rank(&threads, *v));
            return self.bytes(shape);
        }
        let named = |order: &[usize]| {
            let mut s = self.project(shape, order);
            let mut names: Vec<Val> = Vec::new();
            s.each_thread(shape, &mut |v| {
                let known = names.iter().position(|n| n == v);
                let number = known.unwrap_or_else(|| {
                    names.push(*v);
                    names.len() - 1
                });
                *v = number as Val;
            });
            s.extra.sort_unstable();
            s.bytes(shape)
        };
        match n {
            2 => named(&[0, 1]).min(named(&[1, 0])),
            _ => named(&(0..n).collect::<Vec<_>>()),
        }
    }

    fn bytes(&self, shape: &Shape) -> Packed {
        let byte = |v: Val| match v {
            UNKNOWN => 255,
            NOBODY => 254,
            v => v.min(253) as u8,
        };
        let mut out: Vec<u8> = self.vals.iter().map(|v| byte(*v)).collect();
        for buffer in self.buffers.iter().filter(|_| shape.buffered) {
            out.push(buffer.len() as u8);
            for e in buffer {
                out.push((e.writes.len() as u8) << 1 | u8::from(e.many));
                for w in &e.writes {
                    out.extend([
                        w.cell as u8,
                        byte(w.args[0]),
                        byte(w.args[1]),
                        byte(w.value),
                    ]);
                }
            }
        }
        if !shape.kept.is_empty() {
            out.push(self.extra.len() as u8);
            for (cell, args, value) in &self.extra {
                out.extend([*cell as u8, byte(args[0]), byte(*value)]);
            }
        }
        out.into()
    }

    /// The state with spaces between positions.
    pub fn unpack(shape: &Shape, solids: usize, bytes: &[u8]) -> State {
        let val = |b: u8| match b {
            255 => UNKNOWN,
            254 => NOBODY,
            b => Val::from(b),
        };
        let n = shape.sorts(solids).len();
        let mut state = State {
            vals: bytes[..n].iter().map(|b| val(*b)).collect(),
            buffers: vec![Vec::new(); solids],
            extra: Vec::new(),
        };
        let mut rest = bytes[n..].iter().copied();
        let mut next = || rest.next().unwrap_or(0);
        for buffer in state.buffers.iter_mut().filter(|_| shape.buffered) {
            for _ in 0..next() {
                let head = next();
                let write = |_| Write {
                    cell: u16::from(next()),
                    args: [val(next()), val(next())],
                    value: val(next()),
                };
                buffer.push(Entry {
                    writes: (0..head >> 1).map(write).collect(),
                    many: head & 1 != 0,
                });
            }
        }
        if !shape.kept.is_empty() {
            for _ in 0..next() {
                let (cell, of, value) = (u16::from(next()), val(next()), val(next()));
                state.extra.push((cell, [of, 0], value));
            }
        }
        state.each_number(shape, &mut |v| *v = (*v + 1) * SPACING);
        state.each_thread(shape, &mut |v| *v = (*v + 1) * SPACING);
        state
    }
}
