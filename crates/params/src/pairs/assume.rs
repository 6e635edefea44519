//! Conditions on states: they hold, they do not, or what is unknown has to be chosen first.

use super::shape::{Shape, Sort};
use super::state::{Home, NOBODY, SPACING, State, UNKNOWN, Val};
use crate::compile::{Conj, Dnf, Lit};
use crate::lin::Op;
use crate::work;
use std::cell::Cell;
use wattle_model::array::{Access, Comparison, ThreadTerm};

/// States that may come of one in which something is not known.
const MOST_COMPLETED: usize = 100_000;

pub struct Rules<'s> {
    pub shape: &'s Shape,
    /// There are more threads than the solid ones.
    pub ghosts: bool,
    /// No room was left between two positions, or a buffer was too long: what was found says nothing.
    pub gave_up: Cell<bool>,
}

/// The threads of the parameters, and who reads weak cells.
#[derive(Clone, Copy)]
pub struct Env<'e> {
    pub args: &'e [Val],
    pub actor: Option<Val>,
    /// What is unknown counts as satisfied.
    pub lenient: bool,
}

pub enum Truth {
    Yes,
    No,
    /// If the state is one of these.
    Split(Vec<State>),
}

impl From<bool> for Truth {
    fn from(b: bool) -> Self {
        if b { Truth::Yes } else { Truth::No }
    }
}

impl Rules<'_> {
    pub fn thread(&self, t: ThreadTerm, args: &[Val]) -> Val {
        match t {
            ThreadTerm::Param(i) => args[usize::from(i)],
            ThreadTerm::Constant(_) => NOBODY,
        }
    }

    pub fn args(&self, of: &[ThreadTerm], args: &[Val]) -> [Val; 2] {
        let mut out = [0; 2];
        for (o, t) in out.iter_mut().zip(of) {
            *o = self.thread(*t, args);
        }
        out
    }

    /// Where memory keeps an element.
    pub fn place(&self, state: &State, cell: u16, args: [Val; 2]) -> Home {
        let arity = self.shape.cells[usize::from(cell)].arity;
        let mut solid = [0; 2];
        for (s, a) in solid.iter_mut().zip(&args[..arity]) {
            match state.solid(*a) {
                Some(t) => *s = t,
                None => return Home::Extra(cell, args),
            }
        }
        let n = state.solids();
        Home::Value(self.shape.position(n, cell, &solid[..arity]))
    }

    pub fn at(&self, state: &State, place: Home) -> Val {
        match place {
            Home::Value(i) => state.vals[i],
            Home::Buffered(t, e, w) => state.buffers[t][e].writes[w].value,
            Home::Extra(cell, args) => {
                let known = state.extra.iter().find(|x| x.0 == cell && x.1 == args);
                known.map_or(UNKNOWN, |x| x.2)
            }
            Home::Hidden => UNKNOWN,
        }
    }

    /// The value somebody sees, and where it is kept.
    pub fn read(&self, state: &State, a: &Access, env: Env<'_>) -> (Home, Val) {
        let args = self.args(&a.args, env.args);
        let reader = a.reader.map(|r| self.thread(r, env.args)).or(env.actor);
        if self.shape.cells[usize::from(a.cell)].weak
            && let Some(r) = reader
        {
            let Some(t) = state.solid(r) else {
                return (Home::Hidden, UNKNOWN);
            };
            for (e, entry) in state.buffers[t].iter().enumerate().rev() {
                let same = |w: &super::state::Write| w.cell == a.cell && w.args == args;
                if let Some(w) = entry.writes.iter().rposition(same) {
                    return (Home::Buffered(t, e, w), entry.writes[w].value);
                }
            }
        }
        let place = self.place(state, a.cell, args);
        (place, self.at(state, place))
    }

    /// Between and around these positions.
    pub fn gaps(&self, all: &[Val]) -> Vec<Val> {
        let mut out = Vec::with_capacity(all.len() + 1);
        let mut last = 0;
        for v in all {
            if v - last < 2 {
                self.gave_up.set(true);
            }
            out.push(last + (v - last) / 2);
            last = *v;
        }
        out.push(last + SPACING);
        out
    }

    /// Threads that are not there yet: one for each place in the order.
    pub fn new_ghosts(&self, all: &[Val]) -> Vec<Val> {
        if !self.ghosts {
            return Vec::new();
        }
        match self.shape.ordered {
            true => self.gaps(all),
            false => vec![all.last().map_or(SPACING, |v| v + SPACING)],
        }
    }

    /// All values that a place of the sort may have.
    pub fn choices(&self, state: &State, sort: Sort, args: &[Val]) -> Vec<Val> {
        let mut s = state.clone();
        match sort {
            Sort::Finite(n) => (0..n).collect(),
            Sort::Thread => {
                let mut all = s.threads(self.shape, args);
                let new = self.new_ghosts(&all);
                if !self.ghosts {
                    all.retain(|v| state.solid(*v).is_some());
                }
                all.extend(new);
                all.extend(self.shape.nobody.then_some(NOBODY));
                all
            }
            Sort::Int | Sort::Other => {
                let mut all = s.numbers(self.shape);
                all.extend(self.gaps(&all));
                all
            }
        }
    }

    /// The states with everything known that is not to be forgotten. Gives up where there are too many.
    pub fn complete(&self, mut state: State, out: &mut Vec<State>) {
        work::done(work::COMPLETE);
        if out.len() >= MOST_COMPLETED {
            self.gave_up.set(true);
        }
        if self.gave_up.get() {
            return;
        }
        let place = match self.shape.forget(&mut state) {
            Err(place) => Some(Home::Value(place)),
            Ok(gone) => {
                state.tidy(self.shape);
                let ghosts = match self.shape.kept.is_empty() {
                    true => Vec::new(),
                    false => state.ghosts(self.shape),
                };
                let sorts = self.shape.sorts(state.solids());
                let mut all = (0..sorts.len()).filter(|i| state.vals[*i] == UNKNOWN && !gone[*i]);
                let pending = || {
                    state.buffers.iter().enumerate().find_map(|(t, buffer)| {
                        buffer.iter().enumerate().find_map(|(e, entry)| {
                            let w = entry.writes.iter().position(|w| w.value == UNKNOWN);
                            w.map(|w| Home::Buffered(t, e, w))
                        })
                    })
                };
                let elsewhere = || {
                    let each = self.shape.kept.iter();
                    let mut each = each.flat_map(|c| ghosts.iter().map(|g| (*c, [*g, 0])));
                    let known =
                        |of: &(u16, [Val; 2])| state.extra.iter().any(|x| (x.0, x.1) == *of);
                    let missing = each.find(|of| !known(of));
                    missing.map(|(cell, args)| Home::Extra(cell, args))
                };
                let found = all.next().map(Home::Value).or_else(pending);
                found.or_else(elsewhere)
            }
        };
        let Some(place) = place else {
            out.push(state);
            return;
        };
        let sort = match place {
            Home::Value(i) => self.shape.sorts(state.solids())[i],
            Home::Buffered(t, e, w) => {
                let cell = state.buffers[t][e].writes[w].cell;
                self.shape.cells[usize::from(cell)].sort
            }
            Home::Extra(cell, _) => self.shape.cells[usize::from(cell)].sort,
            Home::Hidden => return out.push(state),
        };
        for v in self.choices(&state, sort, &[]) {
            let mut s = state.clone();
            s.set(place, v);
            self.complete(s, out);
        }
    }

    fn chosen(&self, state: &State, place: Home, values: &[Val]) -> Truth {
        if place == Home::Hidden {
            return Truth::Yes;
        }
        let with = |v: &Val| {
            let mut s = state.clone();
            s.set(place, *v);
            s
        };
        Truth::Split(values.iter().map(with).collect())
    }

    /// Every value for an unknown place; the condition is to be looked at again.
    fn choose(&self, state: &State, place: Home, cell: u16, env: Env<'_>) -> Truth {
        let sort = self.shape.cells[usize::from(cell)].sort;
        self.chosen(state, place, &self.choices(state, sort, env.args))
    }

    fn again(&self, split: Truth, lit: &Lit, env: Env<'_>) -> Truth {
        let Truth::Split(states) = split else {
            return split;
        };
        let mut out = Vec::new();
        for s in states {
            self.assume(s, std::slice::from_ref(lit), env, &mut out);
        }
        Truth::Split(out)
    }

    pub fn test(&self, state: &State, lit: &Lit, env: Env<'_>) -> Truth {
        work::done(work::TEST);
        match lit {
            Lit::In(a, mask) => {
                let (place, v) = self.read(state, a, env);
                match v {
                    UNKNOWN if env.lenient => Truth::Yes,
                    UNKNOWN => {
                        let values: Vec<Val> = (0..128).filter(|v| mask >> v & 1 != 0).collect();
                        self.chosen(state, place, &values)
                    }
                    v => (mask >> v & 1 != 0).into(),
                }
            }
            Lit::IsThread(a, t, equal) => {
                let (place, v) = self.read(state, a, env);
                let t = self.thread(*t, env.args);
                match (v, equal) {
                    (UNKNOWN, _) if env.lenient => Truth::Yes,
                    (UNKNOWN, true) => self.chosen(state, place, &[t]),
                    (UNKNOWN, false) => {
                        let split = self.choose(state, place, a.cell, env);
                        self.again(split, lit, env)
                    }
                    _ => ((v == t) == *equal).into(),
                }
            }
            Lit::Same(a, b, equal) => {
                let (p, v) = self.read(state, a, env);
                let (q, w) = self.read(state, b, env);
                match (v, w, equal) {
                    (UNKNOWN, _, _) | (_, UNKNOWN, _) if env.lenient => Truth::Yes,
                    (UNKNOWN, w, true) if w != UNKNOWN => self.chosen(state, p, &[w]),
                    (v, UNKNOWN, true) if v != UNKNOWN => self.chosen(state, q, &[v]),
                    (UNKNOWN, ..) => {
                        let split = self.choose(state, p, a.cell, env);
                        self.again(split, lit, env)
                    }
                    (_, UNKNOWN, _) => {
                        let split = self.choose(state, q, b.cell, env);
                        self.again(split, lit, env)
                    }
                    _ => ((v == w) == *equal).into(),
                }
            }
            Lit::Threads(a, b, op) => {
                let (x, y) = (self.thread(*a, env.args), self.thread(*b, env.args));
                match op {
                    Comparison::Eq => x == y,
                    Comparison::Ne => x != y,
                    Comparison::Lt => x < y,
                    Comparison::Le => x <= y,
                }
                .into()
            }
            Lit::Number(parts, c, op, integer) => {
                let mut terms: Vec<(i64, Val)> = Vec::new();
                for (k, a) in parts {
                    let (place, v) = self.read(state, a, env);
                    if v == UNKNOWN {
                        if env.lenient || parts.len() > 2 {
                            return Truth::Yes;
                        }
                        let split = self.choose(state, place, a.cell, env);
                        return self.again(split, lit, env);
                    }
                    match terms.iter_mut().find(|t| t.1 == v) {
                        Some(t) => t.0 += k,
                        None => terms.push((*k, v)),
                    }
                }
                terms.retain(|t| t.0 != 0);
                self.number(state, &terms, *c, *op, *integer).into()
            }
        }
    }

    /// Whether Σ + c compared with 0 may hold.
    fn number(&self, state: &State, terms: &[(i64, Val)], c: i64, op: Op, integer: bool) -> bool {
        let holds = |d: i64| match op {
            Op::Le => d <= 0,
            Op::Lt => d < 0,
            Op::Eq => d == 0,
            Op::Ne => d != 0,
        };
        match terms {
            [] => holds(c),
            [(1, x)] | [(-1, x)] => {
                let k = terms[0].0;
                match self.shape.constant(state, *x) {
                    Some(d) => d
                        .checked_mul(k)
                        .and_then(|d| d.checked_add(c))
                        .is_none_or(holds),
                    None => match c.checked_mul(-k).and_then(|d| self.shape.anchor(state, d)) {
                        Some(y) => holds(k * (i64::from(*x) - i64::from(y)).signum()),
                        None => true,
                    },
                }
            }
            [(1, x), (-1, y)] | [(-1, y), (1, x)] => self.difference(state, *x, *y, c, op, integer),
            _ => true,
        }
    }

    /// Whether x - y + c compared with 0 may hold.
    fn difference(&self, state: &State, x: Val, y: Val, c: i64, op: Op, integer: bool) -> bool {
        let constants = (self.shape.constant(state, x), self.shape.constant(state, y));
        let (least, most) = match constants {
            (Some(a), Some(b)) => match a.checked_sub(b) {
                Some(d) => (Some(d), Some(d)),
                None => (None, None),
            },
            _ => {
                // Whole numbers between the two are a lower bound of their distance.
                let apart = if integer {
                    let (low, high) = (x.min(y), x.max(y));
                    let all = state.integers(self.shape);
                    all.iter().filter(|v| **v > low && **v <= high).count() as i64
                } else {
                    // Any distance above 0; a bound that is open, told by `1` and strictness below.
                    i64::from(x != y)
                };
                match x.cmp(&y) {
                    std::cmp::Ordering::Equal => (Some(0), Some(0)),
                    std::cmp::Ordering::Greater if integer => (Some(apart), None),
                    std::cmp::Ordering::Less if integer => (None, Some(-apart)),
                    std::cmp::Ordering::Greater => return self.real(true, c, op),
                    std::cmp::Ordering::Less => return self.real(false, c, op),
                }
            }
        };
        let above = |d: Option<i64>| d.is_some_and(|d| d.saturating_add(c) > 0);
        let at_least = |d: Option<i64>| d.is_some_and(|d| d.saturating_add(c) >= 0);
        let below = |d: Option<i64>| d.is_some_and(|d| d.saturating_add(c) < 0);
        match op {
            Op::Le => !above(least),
            Op::Lt => !at_least(least),
            Op::Eq => !above(least) && !below(most),
            Op::Ne => !(least.is_some() && least == most && least == c.checked_neg()),
        }
    }

    /// Whether d + c compared with 0 may hold for some real d > 0 (or < 0).
    fn real(&self, positive: bool, c: i64, op: Op) -> bool {
        match (op, positive) {
            (Op::Le | Op::Lt, true) => c < 0,
            (Op::Le | Op::Lt, false) | (Op::Ne, _) => true,
            (Op::Eq, true) => c < 0,
            (Op::Eq, false) => c > 0,
        }
    }

    /// The states among those of `state` that satisfy all of it.
    pub fn assume(&self, state: State, lits: &[Lit], env: Env<'_>, out: &mut Vec<State>) {
        let Some((first, rest)) = lits.split_first() else {
            out.push(state);
            return;
        };
        match self.test(&state, first, env) {
            Truth::Yes => self.assume(state, rest, env, out),
            Truth::No => {}
            Truth::Split(states) => {
                for s in states {
                    self.assume(s, rest, env, out);
                }
            }
        }
    }

    /// One of the alternatives holds.
    pub fn some(&self, state: &State, dnf: &Dnf, env: Env<'_>, out: &mut Vec<State>) {
        if env.lenient {
            let may = |conj: &Conj| {
                let truth = |l| !matches!(self.test(state, l, env), Truth::No);
                conj.iter().all(truth)
            };
            if dnf.iter().any(may) {
                out.push(state.clone());
            }
            return;
        }
        let before = out.len();
        for conj in dnf {
            self.assume(state.clone(), conj, env, out);
            // Nothing is chosen differently by the other alternatives.
            if out[before..].iter().any(|s| s == state) {
                out.truncate(before);
                out.push(state.clone());
                return;
            }
        }
    }
}
