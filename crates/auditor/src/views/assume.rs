//! Which worlds satisfy a formula of the system.

use super::numbers::Question;
use super::world::{ANY, Frame, NONE, Pos, ROOM, Sort, World};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use wattle_logic::Formula as Condition;
use wattle_model::array::{Access, Comparison, Formula, Literal, Term, ThreadTerm};

pub struct Logic<'a> {
    pub frame: &'a Frame<'a>,
    /// There are threads beside those seen whole.
    pub others: bool,
    /// Positions ran out of room; nothing can be concluded.
    pub cramped: Cell<bool>,
    /// Whether conditions on numbers are proved not to hold together, and what came out.
    pub impossible: &'a dyn Fn(&[Condition]) -> bool,
    pub answers: RefCell<FxHashMap<Question, bool>>,
}

#[derive(Clone, Copy)]
pub struct Scope<'e> {
    pub args: &'e [Pos],
    /// Who reads weak cells.
    pub reader: Option<Pos>,
    /// What is not known is taken to be as it should.
    pub generous: bool,
    /// Parameters of the transition: not "other".
    pub params: usize,
}

impl<'e> Scope<'e> {
    /// Memory itself is read; all of these are parameters.
    pub fn of(args: &'e [Pos], generous: bool) -> Scope<'e> {
        Scope {
            args,
            reader: None,
            generous,
            params: args.len(),
        }
    }
}

/// Where a value is kept.
#[derive(Clone, PartialEq)]
pub enum Spot {
    Memory(usize, usize),
    Pending(usize, usize, usize),
    Elsewhere(u16, Vec<Pos>),
    /// What a thread reads that is not whole: its own stores may be pending, nothing is known of them.
    Hidden,
}

impl<'a> Logic<'a> {
    pub fn new(
        frame: &'a Frame<'a>,
        others: bool,
        impossible: &'a dyn Fn(&[Condition]) -> bool,
    ) -> Self {
        Logic {
            frame,
            others,
            cramped: Cell::new(false),
            impossible,
            answers: RefCell::default(),
        }
    }

    pub fn thread(&self, t: ThreadTerm, args: &[Pos]) -> Pos {
        match t {
            ThreadTerm::Param(i) => args.get(usize::from(i)).copied().unwrap_or(NONE),
            ThreadTerm::Constant(_) => NONE,
        }
    }

    pub fn spot(&self, w: &World, cell: u16, of: &[Pos]) -> Spot {
        let mut index = 0;
        for p in of {
            match w.me.iter().position(|m| m == p) {
                Some(t) => index = index * w.me.len() + t,
                None => return Spot::Elsewhere(cell, of.to_vec()),
            }
        }
        Spot::Memory(usize::from(cell), index)
    }

    pub fn seen(&self, w: &World, a: &Access, scope: Scope<'_>) -> (Spot, Pos) {
        let of: Vec<Pos> = a.args.iter().map(|t| self.thread(*t, scope.args)).collect();
        let reader = a
            .reader
            .map(|r| self.thread(r, scope.args))
            .or(scope.reader);
        let whole = reader.and_then(|r| w.me.iter().position(|m| *m == r));
        if reader.is_some() && whole.is_none() && self.frame.delayed(a.cell) {
            return (Spot::Hidden, ANY);
        }
        if let Some(t) = whole.filter(|_| self.frame.delayed(a.cell)) {
            for (i, p) in w.pending[t].iter().enumerate().rev() {
                let mine = |s: &super::world::Store| s.cell == a.cell && s.of == of;
                if let Some(j) = p.stores.iter().rposition(mine) {
                    return (Spot::Pending(t, i, j), p.stores[j].value);
                }
            }
        }
        let spot = self.spot(w, a.cell, &of);
        let value = match &spot {
            Spot::Memory(c, i) => w.memory[*c][*i],
            Spot::Pending(..) | Spot::Elsewhere(..) | Spot::Hidden => {
                let known = w.looked.iter().find(|l| l.0 == a.cell && l.1 == of);
                known.map_or(ANY, |l| l.2)
            }
        };
        (spot, value)
    }

    pub fn put(&self, w: &mut World, spot: &Spot, value: Pos) {
        match spot {
            Spot::Memory(c, i) => w.memory[*c][*i] = value,
            Spot::Pending(t, i, j) => w.pending[*t][*i].stores[*j].value = value,
            Spot::Elsewhere(cell, of) => {
                w.looked.retain(|l| l.0 != *cell || l.1 != *of);
                w.looked.push((*cell, of.clone(), value));
            }
            Spot::Hidden => {}
        }
    }

    /// New positions before, between and after these.
    pub fn between(&self, all: &[Pos]) -> Vec<Pos> {
        let lows = std::iter::once(&0).chain(all);
        let mut out: Vec<Pos> = lows.zip(all).map(|(a, b)| a + (b - a) / 2).collect();
        let tight = |(a, b): (&Pos, &Pos)| b - a < 2;
        if std::iter::once(&0).chain(all).zip(all).any(tight) {
            self.cramped.set(true);
        }
        out.push(all.last().copied().unwrap_or(0) + ROOM);
        out
    }

    /// Threads that were not named yet.
    pub fn strangers(&self, all: &[Pos]) -> Vec<Pos> {
        match (self.others, self.frame.ordered) {
            (false, _) => Vec::new(),
            (true, true) => self.between(all),
            (true, false) => vec![all.last().copied().unwrap_or(0) + ROOM],
        }
    }

    /// The threads that are named, by the world or besides; and others.
    pub fn threads(&self, w: &World, named: &[Pos], others: bool) -> Vec<Pos> {
        let mut all = self.frame.positions(w, true);
        all.extend(named.iter().filter(|a| **a < NONE));
        all.sort_unstable();
        all.dedup();
        if others {
            let new = self.strangers(&all);
            all.extend(new);
        }
        all
    }

    fn values(&self, w: &World, sort: Sort, args: &[Pos]) -> Vec<Pos> {
        match sort {
            Sort::Finite(n) => (0..Pos::from(n)).collect(),
            Sort::Thread => {
                let mut all = self.threads(w, args, true);
                if self.frame.nobody {
                    all.push(NONE);
                }
                all
            }
            Sort::Number(_) => {
                let mut all = self.frame.positions(w, false);
                let new = self.between(&all);
                all.extend(new);
                all
            }
        }
    }

    /// The world with each value a spot may have.
    pub fn each_value(&self, w: &World, spot: &Spot, cell: u16, args: &[Pos]) -> Vec<World> {
        let values = self.values(w, self.frame.sort(cell), args);
        let with = |v: Pos| {
            let mut w = w.clone();
            self.put(&mut w, spot, v);
            w
        };
        values.into_iter().map(with).collect()
    }

    /// The worlds in which all is known but what is to be forgotten.
    pub fn settled(&self, w: World) -> Vec<World> {
        let mut open = vec![w];
        let mut out = Vec::new();
        while let Some(mut w) = open.pop() {
            let missing = match self.frame.forgotten(&mut w) {
                Err((c, i)) => Some((Spot::Memory(c, i), c as u16)),
                Ok(gone) => {
                    self.frame.tidy(&mut w);
                    self.unknown(&w, &gone)
                        .or_else(|| self.unknown_of_others(&w))
                }
            };
            match missing {
                None if self.frame.agrees(&w) => out.push(w),
                None => {}
                Some((spot, cell)) => open.extend(self.each_value(&w, &spot, cell, &[])),
            }
        }
        out
    }

    /// A value that is not known and not forgotten either.
    fn unknown(&self, w: &World, gone: &[(usize, usize)]) -> Option<(Spot, u16)> {
        for (c, all) in w.memory.iter().enumerate() {
            let mut elements = 0..self.frame.elements(c, w.me.len());
            if let Some(i) = elements.find(|i| all[*i] == ANY && !gone.contains(&(c, *i))) {
                return Some((Spot::Memory(c, i), c as u16));
            }
        }
        for (t, queue) in w.pending.iter().enumerate() {
            for (i, p) in queue.iter().enumerate() {
                if let Some(j) = p.stores.iter().position(|s| s.value == ANY) {
                    return Some((Spot::Pending(t, i, j), p.stores[j].cell));
                }
            }
        }
        None
    }

    /// An element that is kept of a thread that is named, and not known.
    fn unknown_of_others(&self, w: &World) -> Option<(Spot, u16)> {
        let mut named = self.frame.named(w).into_iter();
        let known = |c: u16, p: Pos| w.looked.iter().any(|l| l.0 == c && l.1 == [p]);
        let (c, p) = named.find(|(c, p)| !known(*c, *p))?;
        Some((Spot::Elsewhere(c, vec![p]), c))
    }

    /// The worlds among `w` in which the formula (or its negation) holds.
    pub fn assume(&self, w: World, f: &Formula, yes: bool, scope: Scope<'_>) -> Vec<World> {
        match (f, yes) {
            (Formula::And(list), true) | (Formula::Or(list), false) => {
                list.iter().fold(vec![w], |worlds, g| {
                    let step = |w| self.assume(w, g, yes, scope);
                    worlds.into_iter().flat_map(step).collect()
                })
            }
            (Formula::Or(list), true) | (Formula::And(list), false) => {
                let mut out: Vec<World> = Vec::new();
                for g in list {
                    for v in self.assume(w.clone(), g, yes, scope) {
                        if v == w {
                            return vec![w];
                        }
                        out.push(v);
                    }
                }
                out
            }
            (Formula::Atom(l), _) if !l.orders_held() => self.literal(w, l, yes, scope),
            (Formula::Others { all, body, .. }, true) if *all => {
                let threads = self.threads(&w, scope.args, false);
                let params = &scope.args[..scope.params];
                let others = threads.iter().filter(|p| !params.contains(p));
                others.fold(vec![w], |worlds, other| {
                    let args = [scope.args, &[*other]].concat();
                    let step = |w: World| {
                        let scope = Scope {
                            args: &args,
                            generous: scope.generous || !w.me.contains(other),
                            ..scope
                        };
                        self.assume(w, body, true, scope)
                    };
                    worlds.into_iter().flat_map(step).collect()
                })
            }
            (Formula::Atom(_) | Formula::Others { .. }, _) => vec![w],
        }
    }

    fn literal(&self, w: World, l: &Literal, yes: bool, scope: Scope<'_>) -> Vec<World> {
        let mut reads: Vec<&Access> = Vec::new();
        l.for_each_access(&mut |a| reads.push(a));
        let unknown = reads.iter().find_map(|a| {
            let (spot, value) = self.seen(&w, a, scope);
            (value == ANY).then_some((spot, a.cell))
        });
        if let Some((spot, cell)) = unknown {
            let many = reads.len() > 2 && matches!(self.frame.sort(cell), Sort::Number(_));
            if scope.generous || many || spot == Spot::Hidden {
                return vec![w];
            }
            let all = self.each_value(&w, &spot, cell, scope.args);
            let again = |w| self.literal(w, l, yes, scope);
            return all.into_iter().flat_map(again).collect();
        }
        match self.holds(&w, l, yes, scope) {
            true => vec![w],
            false => Vec::new(),
        }
    }

    /// Whether it is a literal that is known not to hold.
    pub fn is_refuted(&self, w: &World, f: &Formula, scope: Scope<'_>) -> bool {
        let Formula::Atom(l) = f else { return false };
        let mut known = !l.orders_held();
        l.for_each_access(&mut |a| known &= self.seen(w, a, scope).1 != ANY);
        known && !self.holds(w, l, true, scope)
    }

    /// Whether the literal may hold; all that it reads is known.
    fn holds(&self, w: &World, l: &Literal, yes: bool, scope: Scope<'_>) -> bool {
        let plain = |t: &Term| match t {
            Term::Bool(b) => Some(Pos::from(*b)),
            Term::Constructor(_, c) => Some(Pos::from(*c)),
            Term::Thread(t) => Some(self.thread(*t, scope.args)),
            Term::Read(a) => Some(self.seen(w, a, scope).1),
            Term::Sum { .. } => None,
        };
        if let (Some(a), Some(b)) = (plain(&l.left), plain(&l.right)) {
            return yes
                == match l.op {
                    Comparison::Eq => a == b,
                    Comparison::Ne => a != b,
                    Comparison::Lt => a < b,
                    Comparison::Le => a <= b,
                };
        }
        let (
            Term::Sum {
                parts: p,
                constant: c,
            },
            Term::Sum {
                parts: q,
                constant: d,
            },
        ) = (&l.left, &l.right)
        else {
            return true;
        };
        let Some(bound) = d.checked_sub(*c) else {
            return true;
        };
        let signed = p.iter().map(|(k, a)| (*k, a));
        let signed = signed.chain(q.iter().map(|(k, a)| (-k, a)));
        let sum: Vec<(i64, Pos)> = signed.map(|(k, a)| (k, self.seen(w, a, scope).1)).collect();
        let whole = |(_, a): &(i64, Access)| self.frame.sort(a.cell) == Sort::Number(true);
        let whole = p.iter().chain(q).all(whole);
        self.possible(w, &sum, (l.op, yes, bound), whole)
    }
}
