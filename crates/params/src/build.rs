//! Putting literals into a cube: names become slots, weak reads become parts of an event.

use crate::compile::{Compiled, Conj, Kind, Lit, New};
use crate::cube::{Consistent, Contradiction, Cube, Mask, OTHER};
use crate::lin::{self, Lin};
use crate::memory::{EVENTS, NOBODY, Open, Part};
use crate::slot::Slot;
use crate::work;
use wattle_model::array::{Access, Comparison, ThreadTerm};

/// What a slot's constraints turn into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Becomes {
    Value(Mask),
    Slot(Slot),
    Sum(Vec<(Slot, i64)>, i64),
}

/// A cube under construction, with the event that its new weak reads belong to.
#[derive(Clone, Debug)]
pub struct Builder<'c, 'a> {
    pub compiled: &'c Compiled<'a>,
    pub cube: Cube,
    /// The number of the new event; its parts are made on demand.
    event: usize,
    actor: Option<u8>,
    temps: usize,
    /// Weak cells stand for themselves: in initial states there is nothing but memory.
    direct: bool,
}

impl<'c, 'a> Builder<'c, 'a> {
    /// Adds to a cube that has no constraints yet but may have threads and open events.
    pub fn new(
        compiled: &'c Compiled<'a>,
        mut cube: Cube,
        actor: Option<u8>,
    ) -> Result<Self, Contradiction> {
        let event = cube.memory.events.len();
        if event + 1 >= EVENTS {
            return Err(Contradiction);
        }
        cube.memory.events.push(Open {
            parts: Vec::new(),
            after: 1 << event,
        });
        Ok(Builder {
            compiled,
            cube,
            event,
            actor,
            temps: 0,
            direct: false,
        })
    }

    /// For initial states.
    pub fn direct(mut self) -> Self {
        self.direct = true;
        self
    }

    pub fn event(&self) -> usize {
        self.event
    }

    /// The cube's thread for a term; thread constants join the cube when first named.
    pub fn thread(&mut self, t: ThreadTerm, env: &[u8]) -> u8 {
        match t {
            ThreadTerm::Param(i) => env[usize::from(i)],
            ThreadTerm::Constant(k) => match self.cube.fixed.iter().position(|f| *f == k) {
                Some(i) => i as u8,
                None => self.cube.add_thread(k),
            },
        }
    }

    pub fn slot(&mut self, a: &Access, env: &[u8]) -> Slot {
        let args: Vec<u8> = a.args.iter().map(|t| self.thread(*t, env)).collect();
        let cell = Slot::cell(a.cell, &args);
        if self.direct || !self.compiled.weak(a.cell) {
            return cell;
        }
        let reader = match a.reader {
            Some(r) => self.thread(r, env),
            None => self.actor.unwrap_or(NOBODY),
        };
        let part = Part {
            reader,
            cell,
            own: false,
        };
        let parts = &mut self.cube.memory.events[self.event].parts;
        let number = match parts.iter().position(|p| *p == part) {
            Some(i) => i,
            None => {
                parts.push(part);
                parts.len() - 1
            }
        };
        Slot::read(self.event, number)
    }

    pub fn temp(&mut self) -> Slot {
        self.temps += 1;
        Slot::temp(self.temps)
    }

    pub fn conj(&mut self, conj: &Conj, env: &[u8]) -> Consistent {
        conj.iter().try_for_each(|l| self.literal(l, env))
    }

    pub fn literal(&mut self, l: &Lit, env: &[u8]) -> Consistent {
        work::done(work::LITERAL);
        match l {
            Lit::In(a, mask) => {
                let slot = self.slot(a, env);
                self.cube.restrict(slot, *mask)
            }
            Lit::IsThread(a, t, equal) => {
                let t = self.thread(*t, env);
                let slot = self.slot(a, env);
                let bit = 1 << t;
                let mask = if *equal {
                    bit
                } else {
                    self.cube.all_threads() & !bit
                };
                self.cube.restrict(slot, mask)
            }
            Lit::Same(a, b, equal) => {
                let (a, b) = (self.slot(a, env), self.slot(b, env));
                self.cube.relate(a, b, *equal)
            }
            Lit::Threads(a, b, op) => {
                let (a, b) = (self.thread(*a, env), self.thread(*b, env));
                match op {
                    Comparison::Eq if a == b => Ok(()),
                    Comparison::Ne if a != b => Ok(()),
                    Comparison::Le if a == b => Ok(()),
                    Comparison::Lt | Comparison::Le => self.cube.order(a, b),
                    Comparison::Eq | Comparison::Ne => Err(Contradiction),
                }
            }
            Lit::Number(parts, constant, op, integer) => {
                let terms = parts.iter().map(|(c, a)| (self.slot(a, env), *c)).collect();
                self.cube
                    .constrain(Lin::new(terms, *constant, *op, *integer), *integer)
            }
        }
    }

    pub fn becomes(&mut self, new: &New, env: &[u8]) -> Becomes {
        match new {
            New::Value(m) => Becomes::Value(*m),
            New::Thread(t) => Becomes::Value(1 << self.thread(*t, env)),
            New::Cell(a) => Becomes::Slot(self.slot(a, env)),
            New::Sum(parts, constant) => {
                let terms = parts.iter().map(|(c, a)| (self.slot(a, env), *c)).collect();
                Becomes::Sum(terms, *constant)
            }
            New::Any => Becomes::Slot(self.temp()),
        }
    }

    /// Takes over the constraints of another cube with slots replaced. `None` keeps a slot.
    pub fn substitute(
        &mut self,
        from: &Cube,
        becomes: &dyn Fn(Slot) -> Option<Becomes>,
    ) -> Consistent {
        for (s, m) in &from.doms {
            // Threads that joined since belong to the "other" ones of the old cube.
            let mut m = *m;
            if m & OTHER != 0 {
                for t in from.threads()..self.cube.threads() {
                    m |= 1 << t;
                }
            }
            match becomes(*s) {
                None => self.cube.restrict(*s, m)?,
                Some(Becomes::Value(v)) => {
                    if v & m == 0 {
                        return Err(Contradiction);
                    }
                }
                Some(Becomes::Slot(t)) => self.cube.restrict(t, m)?,
                Some(Becomes::Sum(..)) => {}
            }
        }
        for (a, b, equal) in &from.rels {
            let slot = |b| b;
            let (x, y) = (becomes(*a), becomes(*b));
            let (x, y) = (
                x.unwrap_or(Becomes::Slot(slot(*a))),
                y.unwrap_or(Becomes::Slot(slot(*b))),
            );
            match (x, y) {
                (Becomes::Slot(x), Becomes::Slot(y)) => self.cube.relate(x, y, *equal)?,
                (Becomes::Value(v), Becomes::Value(w)) if (v == w) != *equal => {
                    return Err(Contradiction);
                }
                (Becomes::Value(v), Becomes::Slot(s)) | (Becomes::Slot(s), Becomes::Value(v)) => {
                    let mask = match *equal {
                        true => v,
                        false => match self.full_of(from, *a, s) {
                            Some(all) => all & !v,
                            None => continue,
                        },
                    };
                    self.cube.restrict(s, mask)?;
                }
                _ => {}
            }
        }
        for (list, integer) in [(&from.ints, true), (&from.reals, false)] {
            for l in list {
                let (mut terms, mut constant) = (Vec::new(), l.constant);
                for (s, c) in &l.terms {
                    match becomes(*s) {
                        None => terms.push((*s, *c)),
                        Some(Becomes::Slot(t)) => terms.push((t, *c)),
                        Some(Becomes::Sum(parts, k)) => {
                            terms.extend(parts.iter().map(|(t, d)| (*t, c.saturating_mul(*d))));
                            constant = constant.saturating_add(c.saturating_mul(k));
                        }
                        Some(Becomes::Value(_)) => {}
                    }
                }
                self.cube
                    .constrain(Lin::new(terms, constant, l.op, integer), integer)?;
            }
        }
        Ok(())
    }

    /// All values of a slot of the new cube; `sibling` is a slot of the old cube of the same type.
    fn full_of(&self, from: &Cube, sibling: Slot, slot: Slot) -> Option<Mask> {
        let kind = self
            .compiled
            .slot_kind(&self.cube, slot)
            .or_else(|| self.compiled.slot_kind(from, sibling))?;
        match kind {
            Kind::Finite(n) => Some((1 << n) - 1),
            Kind::Thread => Some(self.cube.all_threads()),
            Kind::Abstract | Kind::Int | Kind::Real => None,
        }
    }

    /// Removes what says nothing, propagates, drops parts and threads nobody speaks of. Gives the
    /// old number of each thread that stays.
    pub fn finish(mut self) -> Result<(Cube, Vec<u8>), Contradiction> {
        let compiled = self.compiled;
        let cube = &mut self.cube;
        cube.eliminate_temps();
        let full = |c: &Cube, s: Slot| compiled.full(c, s);
        cube.settle(&full)?;
        let exact = compiled
            .system
            .threads
            .is_some_and(|n| n as usize <= cube.threads());
        if exact && !compiled.nobody {
            let doms = cube.doms.clone();
            for (s, m) in doms {
                if m & OTHER != 0 && compiled.is_thread(cube, s) {
                    cube.restrict(s, !OTHER)?;
                }
            }
        }
        cube.drop_trivial(&full);
        simplify_numbers(&mut cube.ints, true);
        simplify_numbers(&mut cube.reals, false);
        drop_idle_parts(cube);
        let is_thread = |c: &Cube, s: Slot| compiled.is_thread(c, s);
        let used = cube.used_threads(&is_thread);
        let kept = cube.keep_threads(used, &is_thread);
        cube.drop_trivial(&full);
        sort_events(cube);
        if cube.memory.events.len() > 1 {
            crate::cover::reduce(&compiled.kinds, cube);
        }
        Ok((self.cube, kept))
    }
}

/// A constraint that the others imply is dropped.
pub fn simplify_numbers(list: &mut Vec<Lin>, integer: bool) {
    let mut i = 0;
    while list.len() > 1 && i < list.len() {
        let l = list.remove(i);
        if !lin::entails(list, &l, integer) {
            list.insert(i, l);
            i += 1;
        }
    }
}

/// A read whose value nobody constrains can be had at any moment: it waits for nothing.
pub fn drop_idle_parts(cube: &mut Cube) {
    if cube.memory.events.is_empty() {
        return;
    }
    let mut used: Vec<Vec<bool>> = cube
        .memory
        .events
        .iter()
        .map(|e| vec![false; e.parts.len()])
        .collect();
    cube.for_each_slot(&mut |s| {
        if let Some((e, p)) = s.as_read() {
            used[e][p] = true;
        }
    });
    let mut places: Vec<Vec<usize>> = Vec::new();
    for (event, used) in cube.memory.events.iter_mut().zip(&used) {
        let mut place = Vec::new();
        let mut parts = Vec::new();
        for (p, u) in event.parts.iter().zip(used) {
            place.push(parts.len());
            if *u {
                parts.push(*p);
            }
        }
        event.parts = parts;
        places.push(place);
    }
    let moved = cube.memory.compact();
    cube.map_slots(&|s| match s.as_read() {
        Some((e, p)) => Slot::read(moved[e].unwrap_or(0), places[e][p]),
        None => s,
    });
}

/// Parts of an event in a fixed order, so that equal cubes are equal data more often.
fn sort_events(cube: &mut Cube) {
    let mut orders: Vec<Vec<usize>> = Vec::new();
    for e in &mut cube.memory.events {
        let mut order: Vec<usize> = (0..e.parts.len()).collect();
        order.sort_by_key(|i| e.parts[*i]);
        let mut place = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            place[*old] = new;
        }
        e.parts.sort();
        orders.push(place);
    }
    if !orders.is_empty() {
        cube.map_slots(&|s| match s.as_read() {
            Some((e, p)) => Slot::read(e, orders[e][p]),
            None => s,
        });
    }
}
