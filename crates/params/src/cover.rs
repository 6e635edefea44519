//! Subsumption: a cube covers another if some choice of the other's threads and open events
//! satisfies everything the first one says.
//!
//! Events need not be mapped one to one: two reads may be taken at the moment of one. All sets that
//! order events must be contained, fences included: a cube that demands more order covers less.

use crate::compile::Kind;
use crate::cube::Cube;
use crate::lin::{self, Lin};
use crate::memory::{Events, NOBODY, Pending};
use crate::slot::Slot;
use crate::work;

/// Whether every state of `b` is a state of `a`.
pub fn covers(kinds: &[Kind], a: &Cube, b: &Cube) -> bool {
    if a.threads() > b.threads() || a.memory.events.len() > 4 * b.memory.events.len() {
        return false;
    }
    if (!a.ints.is_empty() && b.ints.is_empty()) || (!a.reals.is_empty() && b.reals.is_empty()) {
        return false;
    }
    work::done(work::COVERS);
    let mut search = Search {
        steps: if a.threads() > 4 { 200 } else { 1000 },
        kinds,
        a,
        b,
        threads: [0xfe; 16],
        fit: [0; 16],
        events: Vec::new(),
        parts: Vec::new(),
    };
    search.globals() && search.each_fits() && search.thread(0, 0)
}

struct Search<'c> {
    /// Not covered, if it takes longer to see.
    steps: u32,
    kinds: &'c [Kind],
    a: &'c Cube,
    b: &'c Cube,
    /// For each thread of `a` one of `b`.
    threads: [u8; 16],
    /// For each thread of `a` those of `b` that satisfy what is said of it alone.
    fit: [u16; 16],
    /// For each event of `a` one of `b`, and for its parts theirs.
    events: Vec<usize>,
    parts: Vec<Vec<usize>>,
}

impl Search<'_> {
    /// Sets of scalars do not depend on the choice, unless they hold threads.
    fn globals(&self) -> bool {
        self.a.doms.iter().all(|(s, m)| {
            if !s.is_cell() || s.threads() != 0 {
                return true;
            }
            match self.b.dom(*s) {
                Some(n) => n & !*m == 0 || self.holds_threads(*s),
                None => false,
            }
        })
    }

    /// Finds for each thread those that could stand for it; there must be different ones.
    fn each_fits(&mut self) -> bool {
        let mut all = 0;
        for t in 0..self.a.threads() {
            let own = |s: &Slot| s.is_cell() && s.threads() == 1 << t && !self.holds_threads(*s);
            let mut fit: u16 = 0;
            for u in 0..self.b.threads() {
                let mut renamed = [0xfe; 16];
                renamed[t] = u as u8;
                let fits = |(s, m): &(Slot, u128)| {
                    !own(s) || self.b.dom(s.rename(&renamed)).is_some_and(|n| n & !*m == 0)
                };
                if self.a.fixed[t] == self.b.fixed[u] && self.a.doms.iter().all(fits) {
                    fit |= 1 << u;
                }
            }
            if fit == 0 {
                return false;
            }
            all |= fit;
            self.fit[t] = fit;
        }
        all.count_ones() as usize >= self.a.threads()
    }

    /// Chooses for threads `t..`; `used` are taken.
    fn thread(&mut self, t: usize, used: u16) -> bool {
        if self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        if t == self.a.threads() {
            return self.pending_fit() && self.event(0);
        }
        for u in 0..self.b.threads() {
            if used & 1 << u != 0 || self.fit[t] & 1 << u == 0 {
                continue;
            }
            self.threads[t] = u as u8;
            if self.thread_fits(t) && self.thread(t + 1, used | 1 << u) {
                return true;
            }
        }
        false
    }

    /// Everything said of threads `..=t` alone and of `t`.
    fn thread_fits(&self, t: usize) -> bool {
        let decided: u16 = (1 << (t + 1)) - 1;
        let u = usize::from(self.threads[t]);
        for i in 0..t {
            let v = usize::from(self.threads[i]);
            if self.a.before[t] & 1 << i != 0 && self.b.before[u] & 1 << v == 0 {
                return false;
            }
            if self.a.before[i] & 1 << t != 0 && self.b.before[v] & 1 << u == 0 {
                return false;
            }
        }
        self.a.doms.iter().all(|(s, m)| {
            let threads = s.threads();
            if !s.is_cell() || threads & 1 << t == 0 || threads & !decided != 0 {
                return true;
            }
            // Sets of threads are compared when all threads are chosen.
            match self.b.dom(s.rename(&self.threads)) {
                Some(n) => n & !*m == 0 || self.holds_threads(*s),
                None => false,
            }
        })
    }

    /// Obligations, if there are any, must be the same, thread by thread and cell by cell.
    fn pending_fit(&self) -> bool {
        let (a, b) = (&self.a.memory, &self.b.memory);
        if a.pending.is_empty() {
            return true;
        }
        let same = |p: &Pending, q: &Pending| {
            (q.newest || !p.newest)
                && self.threads[usize::from(p.thread)] == q.thread
                && p.cell.rename(&self.threads) == q.cell
        };
        a.pending.len() == b.pending.len()
            && a.pending.iter().zip(&b.pending).all(|(p, q)| same(p, q))
    }

    fn event(&mut self, e: usize) -> bool {
        if self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        if e == self.a.memory.events.len() {
            return self.orders_fit() && self.constraints_fit();
        }
        let wanted: Vec<(u8, Slot, bool)> = self.a.memory.events[e]
            .parts
            .iter()
            .map(|p| {
                let reader = if p.reader == NOBODY {
                    NOBODY
                } else {
                    self.threads[usize::from(p.reader)]
                };
                (reader, p.cell.rename(&self.threads), p.own)
            })
            .collect();
        for (f, open) in self.b.memory.events.iter().enumerate() {
            let places: Option<Vec<usize>> = wanted
                .iter()
                .map(|(r, c, own)| {
                    open.parts
                        .iter()
                        .position(|p| p.reader == *r && p.cell == *c && (p.own || !own))
                })
                .collect();
            if let Some(places) = places
                && self.event_fits(e, f, &places)
            {
                self.events.push(f);
                self.parts.push(places);
                if self.event(e + 1) {
                    return true;
                }
                self.events.pop();
                self.parts.pop();
            }
        }
        false
    }

    /// What can be said of one event's place at once: its sets, and its order among those placed.
    fn event_fits(&self, e: usize, f: usize, places: &[usize]) -> bool {
        let (a, b) = (&self.a.memory.events, &self.b.memory.events);
        let placed = self.events.iter().enumerate().all(|(d, g)| {
            (a[e].after & 1 << d == 0 || b[f].after & 1 << g != 0)
                && (a[d].after & 1 << e == 0 || b[*g].after & 1 << f != 0)
        });
        placed
            && places.iter().enumerate().all(|(p, q)| {
                let (mine, theirs) = (Slot::read(e, p), Slot::read(f, *q));
                match (self.a.dom(mine), self.b.dom(theirs)) {
                    (None, _) => true,
                    (Some(_), None) => false,
                    (Some(m), Some(n)) => n & !self.mask(mine, m) == 0,
                }
            })
    }

    fn image(&self, set: Events) -> Events {
        let bits = self.events.iter().enumerate();
        bits.fold(
            0,
            |m, (e, f)| if set & 1 << e != 0 { m | 1 << f } else { m },
        )
    }

    fn orders_fit(&self) -> bool {
        let (a, b) = (&self.a.memory, &self.b.memory);
        if a.events.is_empty() {
            return true;
        }
        let within = |x: Events, y: Events| self.image(x) & !y == 0;
        let threads = (0..self.a.threads()).all(|t| {
            let u = usize::from(self.threads[t]);
            within(a.read_first[t], b.read_first[u]) && within(a.write_first[t], b.write_first[u])
        });
        threads
            && a.events
                .iter()
                .enumerate()
                .all(|(e, o)| within(o.after, b.events[self.events[e]].after))
            && a.cell_first
                .iter()
                .all(|(c, s)| within(*s, b.cell_first(c.rename(&self.threads))))
            && a.others_first.iter().all(|(array, s)| {
                let there = b
                    .others_first
                    .iter()
                    .find(|(x, _)| x == array)
                    .map_or(0, |(_, s)| *s);
                let mapped = &self.threads[..self.a.threads()];
                // Threads that only `b` has are "other" ones of `a`.
                let rest = (0..self.b.threads() as u8).filter(|u| !mapped.contains(u));
                within(*s, there)
                    && rest
                        .into_iter()
                        .all(|u| within(*s, b.cell_first(Slot::cell(*array, &[u]))))
            })
            && within(a.last, b.last)
            && a.pending
                .iter()
                .zip(&b.pending)
                .all(|(p, q)| within(p.after, q.after))
    }

    fn slot(&self, s: Slot) -> Slot {
        match s.as_read() {
            Some((e, p)) => Slot::read(self.events[e], self.parts[e][p]),
            None => s.rename(&self.threads),
        }
    }

    fn constraints_fit(&self) -> bool {
        let doms = self.a.doms.iter().all(|(s, m)| {
            let Some(n) = self.b.dom(self.slot(*s)) else {
                return false;
            };
            n & !self.mask(*s, *m) == 0
        });
        if !doms {
            return false;
        }
        if !self.a.rels.is_empty() {
            let classes = self.b.classes();
            let fits =
                self.a.rels.iter().all(|(x, y, equal)| {
                    self.relation(self.slot(*x), self.slot(*y), *equal, &classes)
                });
            if !fits {
                return false;
            }
        }
        self.numbers(&self.a.ints, &self.b.ints, true)
            && self.numbers(&self.a.reals, &self.b.reals, false)
    }

    /// A set of `a` in terms of `b`'s threads, if it is one of threads.
    fn mask(&self, slot: Slot, m: u128) -> u128 {
        use crate::cube::OTHER;
        if !self.holds_threads(slot) {
            return m;
        }
        let n = self.a.threads();
        let mut out = 0;
        for u in 0..self.b.threads() {
            let t = self.threads[..n].iter().position(|x| usize::from(*x) == u);
            let allowed = match t {
                Some(t) => m & 1 << t != 0,
                None => m & OTHER != 0,
            };
            if allowed {
                out |= 1 << u;
            }
        }
        out | m & OTHER
    }

    fn holds_threads(&self, slot: Slot) -> bool {
        let cell = match (slot.as_read(), slot.as_pending()) {
            (Some((e, p)), _) => self.a.memory.events[e].parts[p].cell,
            (_, Some(k)) => self.a.memory.pending[k].cell,
            _ => slot,
        };
        self.kinds[usize::from(cell.array())] == Kind::Thread
    }

    fn relation(&self, x: Slot, y: Slot, equal: bool, classes: &[Vec<Slot>]) -> bool {
        let (x, y) = (x.min(y), x.max(y));
        if x == y {
            return equal;
        }
        if self.b.rels.contains(&(x, y, equal)) {
            return true;
        }
        let doms = self.b.dom(x).zip(self.b.dom(y));
        if equal {
            classes.iter().any(|c| c.contains(&x) && c.contains(&y))
                || doms.is_some_and(|(m, n)| m == n && crate::cube::single(m))
        } else {
            doms.is_some_and(|(m, n)| m & n == 0)
        }
    }

    fn numbers(&self, a: &[Lin], b: &[Lin], integer: bool) -> bool {
        a.iter().all(|l| {
            let terms = l.terms.iter().map(|(s, c)| (self.slot(*s), *c)).collect();
            match Lin::new(terms, l.constant, l.op, integer) {
                Ok(l) => lin::entails(b, &l, integer),
                Err(truth) => truth,
            }
        })
    }
}

/// Drops open events that say nothing new: without them the cube is still covered by itself.
pub fn reduce(kinds: &[Kind], cube: &mut Cube) {
    let mut e = 0;
    while e < cube.memory.events.len() {
        let twin = |p: &crate::memory::Part| {
            let others = cube
                .memory
                .events
                .iter()
                .enumerate()
                .filter(|(f, _)| *f != e);
            others.flat_map(|(_, o)| &o.parts).any(|q| q == p)
        };
        if !cube.memory.events[e].parts.iter().all(twin) {
            e += 1;
            continue;
        }
        let smaller = without_event(cube, e);
        if covers(kinds, cube, &smaller) {
            *cube = smaller;
        } else {
            e += 1;
        }
    }
}

fn without_event(cube: &Cube, e: usize) -> Cube {
    let mut out = cube.clone();
    let gone = |s: Slot| s.as_read().is_some_and(|(f, _)| f == e);
    out.doms.retain(|(s, _)| !gone(*s));
    out.rels.retain(|(a, b, _)| !gone(*a) && !gone(*b));
    for list in [&mut out.ints, &mut out.reals] {
        list.retain(|l| !l.terms.iter().any(|(s, _)| gone(*s)));
    }
    out.memory.events[e].parts.clear();
    let moved = out.memory.compact();
    out.map_slots(&|s| match s.as_read() {
        Some((f, p)) => Slot::read(moved[f].unwrap_or(0), p),
        None => s,
    });
    out
}
