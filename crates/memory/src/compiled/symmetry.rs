//! Threads that are alike: states that differ only in who is who are one state.
//!
//! Two threads are alike if exchanging them, together with the cells that only one or the other has
//! (`a[self]`), changes neither the steps of any thread nor the question. Checked is just that, for the
//! graphs as they are:
//!
//! - step by step the two graphs are equal, but that one names a cell `c` where the other names `c'`;
//!   then `c` and `c'` are exchanged, everywhere. Computed addresses are equal and do not reach cells that are exchanged;
//! - no other thread touches a cell that is exchanged;
//! - the question with threads and cells exchanged is the same question, but for the order of what is
//!   joined by `&&`, `||` and `==`.
//!
//! So a thread's number is never a value: one that stores, compares or computes with its own number has
//! another graph than the next. Exchanging neighbours generates all permutations of a *class*.
//! Each is an automorphism of the transition system that keeps the question, so if a state is reachable from `s` then the
//! permuted one is from the permuted `s`, and one state of each orbit is enough. The initial states need not be
//! symmetric for that. Any permutation may be applied to a state when it is stored; sorting the threads of a class by what they
//! have makes the same of all states of an orbit.
//!
//! Traces are un-permuted: [`Machine::canonical`] says who went where.

use super::pack::Field;
use super::ranges::{Range, Ranges};
use super::{Machine, Watched};
use crate::event::Event;
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact, Thread};
use wattle_model::{CellId, Expr, Instance, Op1, Op2, ThreadId};

/// Threads of which any two are alike, in order, and the cells that each has for itself: the same number
/// of them, in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alike {
    threads: Vec<usize>,
    own: Vec<Vec<usize>>,
}

/// A class, laid out: of each thread the fields of its part of a state.
#[derive(Debug)]
struct Class {
    alike: Alike,
    fields: Vec<Vec<Field>>,
}

#[derive(Debug, Default)]
pub struct Symmetry {
    classes: Vec<Class>,
}

/// The classes of two threads and more, if the view asks a question.
pub fn classes(instance: &Instance, view: &Watched) -> Vec<Alike> {
    let mut classes: Vec<Alike> = Vec::new();
    if view.by_name {
        return classes;
    }
    let mut class = Alike::default();
    for t in 0..instance.threads.len() {
        let before = class.threads.last().copied();
        let pairs = before.and_then(|u| exchanged(instance, view.target.as_ref(), u, t));
        let joined = pairs.is_some_and(|pairs| {
            let (mine, new): (Vec<usize>, Vec<usize>) = pairs.into_iter().unzip();
            if class.threads.len() == 1 {
                class.own = vec![mine.clone()];
            }
            let fits = class.own.last() == Some(&mine);
            if fits {
                class.threads.push(t);
                class.own.push(new);
            }
            fits
        });
        if !joined {
            let next = Alike {
                threads: vec![t],
                own: vec![Vec::new()],
            };
            classes.push(std::mem::replace(&mut class, next));
        }
    }
    classes.push(class);
    classes.retain(|c| c.threads.len() > 1);
    classes
}

/// The cells that change places when two threads do, if they may.
fn exchanged(
    instance: &Instance,
    target: Option<&Expr<Fact>>,
    t: usize,
    u: usize,
) -> Option<Vec<(usize, usize)>> {
    let (a, b) = (&instance.threads[t], &instance.threads[u]);
    let shape = |t: &Thread| {
        let registers = t.registers.iter().map(|r| (r.ty, r.init)).collect();
        let steps = t.steps.iter().map(|s| (s.source, s.target)).collect();
        let parts: (Vec<_>, Vec<_>) = (registers, steps);
        (parts, t.entry, t.locations.len(), t.outgoing.clone())
    };
    if shape(a) != shape(b) || a.atomic != b.atomic || a.direct != b.direct {
        return None;
    }
    let mut cells = Exchange::default();
    for (a, b) in a.steps.iter().zip(&b.steps) {
        if !cells.action(&a.action, &b.action) {
            return None;
        }
    }
    let moved = |c: &usize| cells.map.contains_key(c);
    let others = instance.threads.iter().enumerate();
    let others = others.filter(|(v, _)| *v != t && *v != u);
    for step in others.flat_map(|(_, thread)| &thread.steps) {
        if let Action::Load { place, .. } | Action::Store { place, .. } = &step.action {
            cells.fixed.extend(reach(place));
        }
    }
    if cells.fixed.iter().any(moved) {
        return None;
    }
    let same = |(c, d): &(usize, usize)| instance.cells[*c].ty == instance.cells[*d].ty;
    if !cells.pairs.iter().all(same) {
        return None;
    }
    if let Some(target) = target {
        let stay = |t: ThreadId| t;
        let swap = |v: ThreadId| match v.index() {
            v if v == t => ThreadId::new(u),
            v if v == u => ThreadId::new(t),
            _ => v,
        };
        let before = words(target, &stay, &|c| c)?;
        let there = |c: usize| cells.map.get(&c).copied().unwrap_or(c);
        if before != words(target, &swap, &there)? {
            return None;
        }
    }
    Some(cells.pairs)
}

/// What is learnt about cells from two graphs.
#[derive(Default)]
struct Exchange {
    map: BTreeMap<usize, usize>,
    pairs: Vec<(usize, usize)>,
    fixed: BTreeSet<usize>,
}

impl Exchange {
    fn action(
        &mut self,
        a: &Action<wattle_model::RegisterId, Address>,
        b: &Action<wattle_model::RegisterId, Address>,
    ) -> bool {
        match (a, b) {
            (
                Action::Load { register, place },
                Action::Load {
                    register: other,
                    place: there,
                },
            ) => register == other && self.place(place, there),
            (
                Action::Store { place, value },
                Action::Store {
                    place: there,
                    value: other,
                },
            ) => value == other && self.place(place, there),
            (a, b) => a == b,
        }
    }

    fn place(&mut self, a: &Address, b: &Address) -> bool {
        match (a, b) {
            (Address::Cell(c), Address::Cell(d)) if c != d => {
                let (c, d) = (c.index(), d.index());
                match (self.map.get(&c), self.map.get(&d)) {
                    (None, None) => {
                        self.map.insert(c, d);
                        self.map.insert(d, c);
                        self.pairs.push((c, d));
                        true
                    }
                    (Some(known), _) => *known == d,
                    (None, Some(_)) => false,
                }
            }
            (a, b) => {
                self.fixed.extend(reach(a));
                a == b
            }
        }
    }
}

fn reach(place: &Address) -> std::ops::Range<usize> {
    let (first, length) = super::local::extent(place);
    first..first + length
}

/// A condition as words that do not depend on the order of operands where that does not matter, with
/// threads and cells renamed; none where an operand's order might decide whether there is a value.
fn words(
    e: &Expr<Fact>,
    thread: &dyn Fn(ThreadId) -> ThreadId,
    cell: &dyn Fn(usize) -> usize,
) -> Option<String> {
    let part = |e: &Expr<Fact>| words(e, thread, cell);
    Some(match e {
        Expr::Const(c) => c.to_string(),
        Expr::Atom(Fact::Cell(c)) => format!("m{}", cell(c.index())),
        Expr::Atom(Fact::Register(t, r)) => format!("r{}.{}", thread(*t).0, r.0),
        Expr::Atom(Fact::At(t, at)) => {
            let at: Vec<String> = at.iter().map(|l| l.0.to_string()).collect();
            format!("p{}@{}", thread(*t).0, at.join(","))
        }
        Expr::Atom(Fact::CellAt { .. } | Fact::Seen(..)) => return None,
        Expr::Unary(Op1::Not, a) => format!("!{}", part(a)?),
        Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, _) => return None,
        Expr::Binary(op @ (Op2::And | Op2::Or), _, _) => {
            let mut operands = Vec::new();
            let mut work = vec![e];
            while let Some(e) = work.pop() {
                match e {
                    Expr::Binary(same, a, b) if same == op => work.extend([&**a, &**b]),
                    other @ (Expr::Const(_)
                    | Expr::Atom(_)
                    | Expr::Unary(..)
                    | Expr::Binary(..)
                    | Expr::Ite(..)) => operands.push(part(other)?),
                }
            }
            operands.sort();
            operands.dedup();
            format!("({op:?} {})", operands.join(" "))
        }
        Expr::Binary(op @ (Op2::Eq | Op2::Ne), a, b) => {
            let (a, b) = (part(a)?, part(b)?);
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            format!("({op:?} {a} {b})")
        }
        Expr::Binary(op @ (Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge), a, b) => {
            format!("({op:?} {} {})", part(a)?, part(b)?)
        }
        Expr::Binary(
            Op2::Add
            | Op2::Sub
            | Op2::Mul
            | Op2::Div
            | Op2::Rem
            | Op2::BitAnd
            | Op2::BitOr
            | Op2::BitXor
            | Op2::Shl
            | Op2::Shr,
            _,
            _,
        ) => return None,
        Expr::Ite(c, a, b) => format!("(if {} {} {})", part(c)?, part(a)?, part(b)?),
    })
}

/// The same ranges and slots for all threads of a class.
pub fn unify(classes: &[Alike], ranges: &mut Ranges, slots: &mut [u32]) {
    for class in classes {
        let most = class.threads.iter().map(|t| slots[*t]).max().unwrap_or(0);
        class.threads.iter().for_each(|t| slots[*t] = most);
        let Some(first) = class.threads.first() else {
            continue;
        };
        for r in 0..ranges.registers[*first].len() {
            let all = class.threads.iter().map(|t| ranges.registers[*t][r]);
            let joined = all.reduce(Range::join);
            for t in &class.threads {
                ranges.registers[*t][r] = joined.unwrap_or(ranges.registers[*t][r]);
            }
        }
        for k in 0..class.own[0].len() {
            let all = class.own.iter().map(|own| ranges.cells[own[k]]);
            let joined = all.reduce(Range::join);
            for own in &class.own {
                ranges.cells[own[k]] = joined.unwrap_or(ranges.cells[own[k]]);
            }
        }
    }
}

impl Symmetry {
    /// The classes of a machine that is laid out with the same ranges and slots for all of a class.
    pub(super) fn new(machine: &Machine<'_>, classes: Vec<Alike>) -> Self {
        let lay_out = |alike: Alike| {
            let fields = alike.threads.iter().zip(&alike.own).map(|(t, own)| {
                let thread = &machine.threads[*t];
                let buffer = &thread.buffer;
                let mut fields = vec![thread.location];
                fields.extend(&thread.registers);
                fields.extend(own.iter().map(|c| machine.cells[*c]));
                fields.extend([buffer.count, buffer.fenced]);
                fields.extend(&buffer.which);
                fields.extend(&buffer.value);
                fields.extend(&buffer.mark);
                fields
            });
            Class {
                fields: fields.collect(),
                alike,
            }
        };
        let mut classes: Vec<Class> = classes.into_iter().map(lay_out).collect();
        classes.retain(|c| c.is_aligned(machine));
        Symmetry { classes }
    }
}

impl Class {
    /// Cells in buffers have the same places, and fields the same bits, in all threads.
    fn is_aligned(&self, machine: &Machine<'_>) -> bool {
        let (first, own) = (self.alike.threads[0], &self.alike.own[0]);
        let stored = &machine.threads[first].buffer.cells;
        let same = |(t, mine): (&usize, &Vec<usize>)| {
            let there = |c: &u32| match own.iter().position(|o| *o == *c as usize) {
                Some(k) => mine[k] as u32,
                None => *c,
            };
            let cells = &machine.threads[*t].buffer.cells;
            cells.len() == stored.len() && stored.iter().map(there).eq(cells.iter().copied())
        };
        let (threads, own) = (self.alike.threads.iter(), self.alike.own.iter());
        let bits = |fields: &Vec<Field>| -> Vec<u32> {
            fields.iter().map(|f| f.bits().1.count_ones()).collect()
        };
        let alike = |fields: &Vec<Field>| bits(fields) == bits(&self.fields[0]);
        threads.zip(own).all(same) && self.fields.iter().all(alike)
    }

    fn compare(&self, state: &[u64], a: usize, b: usize) -> std::cmp::Ordering {
        let raw = |i: usize| self.fields[i].iter().map(|f| f.raw(state));
        raw(a).cmp(raw(b))
    }
}

impl Machine<'_> {
    /// Some threads are alike.
    pub fn is_symmetric(&self) -> bool {
        !self.symmetry.classes.is_empty()
    }

    /// The threads alike to one, itself among them.
    pub fn alike(&self, t: usize) -> Vec<usize> {
        let mut classes = self.symmetry.classes.iter().map(|c| &c.alike.threads);
        let mine = classes.find(|threads| threads.contains(&t));
        mine.cloned().unwrap_or_else(|| vec![t])
    }

    /// The state of the orbit that is stored. `who` is told, of each thread, which it was before.
    pub fn canonical(&self, state: &mut [u64], mut who: Option<&mut [usize]>) {
        if let Some(who) = &mut who {
            who.iter_mut().enumerate().for_each(|(t, was)| *was = t);
        }
        for class in &self.symmetry.classes {
            let threads = &class.alike.threads;
            let n = threads.len();
            if (1..n).all(|i| class.compare(state, i - 1, i).is_le()) {
                continue;
            }
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|a, b| class.compare(state, *a, *b));
            let raws = order.iter().flat_map(|i| &class.fields[*i]);
            let raws: Vec<u64> = raws.map(|f| f.raw(state)).collect();
            let fields = class.fields.iter().flatten();
            for (field, raw) in fields.zip(raws) {
                field.set_raw(state, raw);
            }
            let holder = self.holder.index(state);
            let held = order.iter().position(|i| threads[*i] + 1 == holder);
            if let Some(now) = held {
                self.holder.set_raw(state, threads[now] as u64 + 1);
            }
            if let Some(who) = &mut who {
                for (now, was) in order.iter().enumerate() {
                    who[threads[now]] = threads[*was];
                }
            }
        }
    }

    /// An event of a permuted state, in the words of the state before.
    pub fn unpermuted(&self, event: &Event, who: &[usize]) -> Event {
        let mut event = *event;
        match &mut event {
            Event::Step { thread, .. } => *thread = ThreadId::new(who[thread.index()]),
            Event::Drain { thread, cell, .. } => {
                let (now, was) = (thread.index(), who[thread.index()]);
                for class in self.symmetry.classes.iter().map(|c| &c.alike) {
                    let place = |t: usize| class.threads.iter().position(|u| *u == t);
                    let (Some(now), Some(was)) = (place(now), place(was)) else {
                        continue;
                    };
                    let own = &class.own[now];
                    if let Some(k) = own.iter().position(|c| *c == cell.index()) {
                        *cell = CellId::new(class.own[was][k]);
                    }
                }
                *thread = ThreadId::new(was);
            }
        }
        event
    }
}
