//! Cubes: conjunctions of constraints on cells and open reads under a few different threads.
//!
//! A cube with threads 0..n stands for all states in which *some* n different threads satisfy it.
//! Values of finite types and threads are kept as sets of allowed values, so that `=` and `<>` with
//! constants cost a bit operation; equalities between cells and linear constraints are lists.

use crate::lin::{self, Lin};
use crate::memory::Memory;
use crate::slot::Slot;

/// A set of values. For cells that hold threads: the cube's threads, and [`OTHER`].
pub type Mask = u128;

/// No thread of the cube.
pub const OTHER: Mask = 1 << 127;

/// Most threads a cube may have.
pub const THREADS: usize = 12;

/// The cube became false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction;

pub type Consistent = Result<(), Contradiction>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cube {
    /// For each thread the constant it is (`#k`), or 0 if it is none of the system's constants.
    pub fixed: Vec<u16>,
    /// For each thread the set of threads known to come after it.
    pub before: Vec<u16>,
    /// Allowed values, sorted by slot.
    pub doms: Vec<(Slot, Mask)>,
    /// Equal or different slots of one non-numeric type, sorted, smaller slot first.
    pub rels: Vec<(Slot, Slot, bool)>,
    /// Over integers, then over reals.
    pub ints: Vec<Lin>,
    pub reals: Vec<Lin>,
    pub memory: Memory,
}

impl Cube {
    pub fn threads(&self) -> usize {
        self.fixed.len()
    }

    /// A new thread, different from the others.
    pub fn add_thread(&mut self, fixed: u16) -> u8 {
        let t = self.fixed.len();
        for (_, m) in &mut self.doms {
            if *m & OTHER != 0 {
                *m |= 1 << t;
            }
        }
        // Constants are the first threads, in order.
        let mut after = 0;
        for (i, f) in self.fixed.iter().enumerate() {
            match (*f, fixed) {
                (0, 0) => {}
                (0, _) => after |= 1 << i,
                (f, k) if k != 0 && k < f => after |= 1 << i,
                _ => self.before[i] |= 1 << t,
            }
        }
        self.fixed.push(fixed);
        self.before.push(after);
        self.memory.add_thread(t);
        t as u8
    }

    /// All values a thread cell may hold.
    pub fn all_threads(&self) -> Mask {
        ((1 << self.threads()) - 1) | OTHER
    }

    pub fn dom(&self, slot: Slot) -> Option<Mask> {
        let i = self.doms.binary_search_by_key(&slot, |(s, _)| *s).ok()?;
        Some(self.doms[i].1)
    }

    /// The slot's value is in the set.
    pub fn restrict(&mut self, slot: Slot, mask: Mask) -> Consistent {
        match self.doms.binary_search_by_key(&slot, |(s, _)| *s) {
            Ok(i) => {
                self.doms[i].1 &= mask;
                if self.doms[i].1 == 0 {
                    return Err(Contradiction);
                }
            }
            Err(_) if mask == 0 => return Err(Contradiction),
            Err(i) => self.doms.insert(i, (slot, mask)),
        }
        Ok(())
    }

    pub fn relate(&mut self, a: Slot, b: Slot, equal: bool) -> Consistent {
        if a == b {
            return if equal { Ok(()) } else { Err(Contradiction) };
        }
        let (a, b) = (a.min(b), a.max(b));
        if self.rels.contains(&(a, b, !equal)) {
            return Err(Contradiction);
        }
        if let Err(i) = self.rels.binary_search(&(a, b, equal)) {
            self.rels.insert(i, (a, b, equal));
        }
        Ok(())
    }

    pub fn constrain(&mut self, lin: Result<Lin, bool>, integer: bool) -> Consistent {
        match lin {
            Err(true) => Ok(()),
            Err(false) => Err(Contradiction),
            Ok(l) => {
                let list = if integer {
                    &mut self.ints
                } else {
                    &mut self.reals
                };
                if let Err(i) = list.binary_search(&l) {
                    list.insert(i, l);
                }
                Ok(())
            }
        }
    }

    /// Thread `a` comes before thread `b`.
    pub fn order(&mut self, a: u8, b: u8) -> Consistent {
        let (a, b) = (usize::from(a), usize::from(b));
        if a == b || self.before[b] & 1 << a != 0 {
            return Err(Contradiction);
        }
        if self.before[a] & 1 << b == 0 {
            let later = self.before[b] | 1 << b;
            for i in 0..self.threads() {
                if i == a || self.before[i] & 1 << a != 0 {
                    self.before[i] |= later;
                }
            }
        }
        Ok(())
    }

    /// Propagates equalities and checks the numbers. `full` gives a slot's unconstrained set.
    pub fn settle(&mut self, full: &dyn Fn(&Cube, Slot) -> Option<Mask>) -> Consistent {
        loop {
            let before = (self.doms.clone(), self.rels.len());
            let mut i = 0;
            while i < self.rels.len() {
                let (a, b, equal) = self.rels[i];
                let (da, db) = (self.dom(a), self.dom(b));
                if equal {
                    if let Some(m) = da {
                        self.restrict(b, m)?;
                    }
                    if let Some(m) = self.dom(b) {
                        self.restrict(a, m)?;
                    }
                    let one = self.dom(a).is_some_and(single);
                    if one {
                        self.rels.remove(i);
                        continue;
                    }
                } else {
                    match (da.filter(|m| single(*m)), db.filter(|m| single(*m))) {
                        (Some(x), Some(y)) if x == y => return Err(Contradiction),
                        (Some(x), _) => {
                            if let Some(all) = db.or_else(|| full(self, b)) {
                                self.restrict(b, all & !x)?;
                                self.rels.remove(i);
                                continue;
                            }
                        }
                        (_, Some(y)) => {
                            if let Some(all) = da.or_else(|| full(self, a)) {
                                self.restrict(a, all & !y)?;
                                self.rels.remove(i);
                                continue;
                            }
                        }
                        _ => {
                            if da.zip(db).is_some_and(|(x, y)| x & y == 0) {
                                self.rels.remove(i);
                                continue;
                            }
                        }
                    }
                }
                i += 1;
            }
            if before == (self.doms.clone(), self.rels.len()) {
                break;
            }
        }
        if self.rels.len() > 1 && !self.rels_consistent() {
            return Err(Contradiction);
        }
        if !lin::satisfiable(&self.ints, true) || !lin::satisfiable(&self.reals, false) {
            return Err(Contradiction);
        }
        Ok(())
    }

    /// No two slots are both equal (through others) and different.
    fn rels_consistent(&self) -> bool {
        let classes = self.classes();
        let class = |s: Slot| classes.iter().position(|c| c.contains(&s));
        self.rels
            .iter()
            .filter(|(_, _, equal)| !equal)
            .all(|(a, b, _)| class(*a).is_none() || class(*a) != class(*b))
    }

    /// Slots that are equal through chains.
    pub fn classes(&self) -> Vec<Vec<Slot>> {
        let mut classes: Vec<Vec<Slot>> = Vec::new();
        for (a, b, equal) in &self.rels {
            if !*equal {
                continue;
            }
            let ia = classes.iter().position(|c| c.contains(a));
            let ib = classes.iter().position(|c| c.contains(b));
            match (ia, ib) {
                (Some(i), Some(j)) if i != j => {
                    let moved = classes[i.max(j)].clone();
                    classes[i.min(j)].extend(moved);
                    classes.remove(i.max(j));
                }
                (Some(_), Some(_)) => {}
                (Some(i), None) => classes[i].push(*b),
                (None, Some(j)) => classes[j].push(*a),
                (None, None) => classes.push(vec![*a, *b]),
            }
        }
        classes
    }

    /// Removes constraints that say nothing: full sets.
    pub fn drop_trivial(&mut self, full: &dyn Fn(&Cube, Slot) -> Option<Mask>) {
        let mut kept = std::mem::take(&mut self.doms);
        kept.retain(|(s, m)| full(self, *s).is_none_or(|all| all & !*m != 0));
        self.doms = kept;
    }

    /// Eliminates values that belong to nothing: some value satisfies what is said of them.
    pub fn eliminate_temps(&mut self) {
        while let Some(t) = self.any_slot(Slot::is_temp) {
            let equal = self
                .rels
                .iter()
                .find_map(|(a, b, e)| match (*e, *a == t, *b == t) {
                    (true, true, _) => Some(*b),
                    (true, _, true) => Some(*a),
                    _ => None,
                });
            match equal {
                Some(other) => {
                    let rels = std::mem::take(&mut self.rels);
                    for (a, b, e) in rels {
                        let swap = |s| if s == t { other } else { s };
                        let (a, b) = (swap(a), swap(b));
                        if a != b {
                            let _ = self.relate(a, b, e);
                        }
                    }
                    if let Ok(i) = self.doms.binary_search_by_key(&t, |(s, _)| *s) {
                        let (_, m) = self.doms.remove(i);
                        let _ = self.restrict(other, m);
                    }
                }
                None => {
                    self.rels.retain(|(a, b, _)| *a != t && *b != t);
                    self.doms.retain(|(s, _)| *s != t);
                }
            }
            self.ints = lin::project(&self.ints, t, true);
            self.reals = lin::project(&self.reals, t, false);
        }
    }

    fn any_slot(&self, which: impl Fn(Slot) -> bool) -> Option<Slot> {
        let mut found = None;
        self.for_each_slot(&mut |s| {
            if which(s) {
                found = Some(s);
            }
        });
        found
    }

    pub fn for_each_slot(&self, visit: &mut dyn FnMut(Slot)) {
        self.doms.iter().for_each(|(s, _)| visit(*s));
        self.rels.iter().for_each(|(a, b, _)| {
            visit(*a);
            visit(*b);
        });
        for l in self.ints.iter().chain(&self.reals) {
            l.terms.iter().for_each(|(s, _)| visit(*s));
        }
    }

    /// The same constraints with every slot replaced (an injective map).
    pub fn map_slots(&mut self, map: &dyn Fn(Slot) -> Slot) {
        self.doms.iter_mut().for_each(|(s, _)| *s = map(*s));
        self.doms.sort_unstable_by_key(|(s, _)| *s);
        for (a, b, _) in &mut self.rels {
            let (x, y) = (map(*a), map(*b));
            (*a, *b) = (x.min(y), x.max(y));
        }
        self.rels.sort_unstable();
        for list in [&mut self.ints, &mut self.reals] {
            for l in list.iter_mut() {
                l.terms.iter_mut().for_each(|(s, _)| *s = map(*s));
                l.terms.sort_unstable_by_key(|(s, _)| *s);
                if matches!(l.op, lin::Op::Eq | lin::Op::Ne) && l.terms[0].1 < 0 {
                    l.terms.iter_mut().for_each(|(_, c)| *c = -*c);
                    l.constant = -l.constant;
                }
            }
            list.sort_unstable();
            list.dedup();
        }
    }

    /// Threads that some constraint, order or event speaks of.
    pub fn used_threads(&self, is_thread: &dyn Fn(&Cube, Slot) -> bool) -> u16 {
        let mut used = self.memory.used_threads();
        self.for_each_slot(&mut |s| used |= s.threads());
        for (s, m) in &self.doms {
            // A cell that holds one of certain threads speaks of them; one that merely differs from
            // some does not.
            if *m & OTHER == 0 && is_thread(self, *s) {
                used |= (*m & 0xffff) as u16;
            }
        }
        used
    }

    /// Keeps only the given threads, renumbered in order. Says which thread became which.
    pub fn keep_threads(&mut self, kept: u16, is_thread: &dyn Fn(&Cube, Slot) -> bool) -> Vec<u8> {
        let old: Vec<u8> = (0..self.threads() as u8)
            .filter(|t| kept & 1 << t != 0)
            .collect();
        let mut new = [0xfeu8; 16];
        for (i, t) in old.iter().enumerate() {
            new[usize::from(*t)] = i as u8;
        }
        let bits = |m: u16| {
            old.iter()
                .enumerate()
                .fold(0u16, |r, (i, t)| r | (m >> t & 1) << i)
        };
        let doms = std::mem::take(&mut self.doms);
        let doms: Vec<(Slot, Mask)> = doms
            .into_iter()
            .map(|(s, m)| match is_thread(self, s) {
                true => (s, Mask::from(bits((m & 0xffff) as u16)) | m & OTHER),
                false => (s, m),
            })
            .collect();
        self.doms = doms;
        self.map_slots(&|s| s.rename(&new));
        self.before = old
            .iter()
            .map(|t| bits(self.before[usize::from(*t)]))
            .collect();
        self.fixed = old.iter().map(|t| self.fixed[usize::from(*t)]).collect();
        self.memory.keep_threads(&old, &new);
        old
    }

    /// A rough size: how many constraints.
    pub fn size(&self) -> usize {
        self.doms.len()
            + self.rels.len()
            + self.ints.len()
            + self.reals.len()
            + self.memory.events.len()
    }
}

pub fn single(m: Mask) -> bool {
    m.count_ones() == 1 && m != OTHER
}
