//! Formulas and transitions with their threads put in: positions instead of cells, and nothing left to
//! look up. An instance makes them once; a state then costs what its own steps cost.

use super::{Chosen, Entry, Machine, State, advance};
use wattle_model::array::{
    Access, ArrayIndex, Comparison, Formula, Literal, Quantified, Term, ThreadTerm, UpdateIndex,
    Value,
};

/// A cell as somebody sees it: the newest value in the reader's buffer, else memory. Nobody (0), and
/// everybody where the cell is not buffered, sees memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    position: usize,
    reader: u8,
}

#[derive(Clone, Debug)]
pub(super) enum Sum {
    Constant(i64),
    Cell(Seen),
    Parts(Vec<(i64, Seen)>, i64),
}

#[derive(Clone, Debug)]
pub(super) enum Condition {
    Truth(bool),
    Compare(Sum, Comparison, Sum),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

/// A transition with the threads of its parameters.
#[derive(Clone, Debug)]
pub struct Step {
    pub transition: usize,
    pub args: Vec<u8>,
    /// Who acts; 0 is nobody.
    pub actor: u8,
    pub(super) guard: Condition,
    pub(super) updates: Vec<Update>,
}

/// What is stored at a position: the value of the first branch whose condition holds.
#[derive(Clone, Debug)]
pub(super) struct Update {
    pub cell: ArrayIndex,
    pub position: usize,
    pub branches: Vec<(Condition, Stored)>,
}

#[derive(Clone, Debug)]
pub(super) enum Stored {
    Any,
    Value(Sum),
    /// It speaks of a thread that there is not: the step is impossible.
    Impossible,
}

/// All steps of an instance, in the order of transitions and threads.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    pub all: Vec<Step>,
    /// For a position and a value there the steps that need it; positions with any such step only.
    at: Vec<(usize, Vec<Vec<u32>>)>,
    /// Those that need nothing of this kind.
    rest: Vec<u32>,
}

impl Seen {
    fn value(self, state: &State) -> i64 {
        let own = usize::from(self.reader).checked_sub(1);
        let buffer = own.and_then(|r| state.buffers.get(r));
        for entry in buffer.into_iter().flatten().rev() {
            if let Entry::Writes(writes) = entry
                && let Some((_, v)) = writes.iter().rev().find(|(p, _)| *p == self.position)
            {
                return *v;
            }
        }
        state.values[self.position]
    }
}

impl Sum {
    /// `None` if it leaves the range of numbers.
    pub fn value(&self, state: &State) -> Option<i64> {
        match self {
            Sum::Constant(c) => Some(*c),
            Sum::Cell(seen) => Some(seen.value(state)),
            Sum::Parts(parts, constant) => parts.iter().try_fold(*constant, |sum, (c, seen)| {
                sum.checked_add(c.checked_mul(seen.value(state))?)
            }),
        }
    }
}

impl Condition {
    pub fn holds(&self, state: &State) -> bool {
        match self {
            Condition::Truth(t) => *t,
            Condition::Compare(left, op, right) => match (left.value(state), right.value(state)) {
                (Some(a), Some(b)) => compare(a, *op, b),
                _ => false,
            },
            Condition::All(list) => list.iter().all(|c| c.holds(state)),
            Condition::Any(list) => list.iter().any(|c| c.holds(state)),
        }
    }

    /// All of them, without what is true anyway.
    pub fn all(list: impl IntoIterator<Item = Condition>) -> Condition {
        let mut out = Vec::new();
        for c in list {
            match c {
                Condition::Truth(true) => {}
                Condition::Truth(false) => return c,
                Condition::All(inner) => out.extend(inner),
                Condition::Compare(..) | Condition::Any(_) => out.push(c),
            }
        }
        match out.len() {
            0 => Condition::Truth(true),
            _ => Condition::All(out),
        }
    }

    fn any(list: impl IntoIterator<Item = Condition>) -> Condition {
        let mut out = Vec::new();
        for c in list {
            match c {
                Condition::Truth(false) => {}
                Condition::Truth(true) => return c,
                Condition::Any(inner) => out.extend(inner),
                Condition::Compare(..) | Condition::All(_) => out.push(c),
            }
        }
        match out.len() {
            0 => Condition::Truth(false),
            _ => Condition::Any(out),
        }
    }

    /// What must be in memory: positions and values.
    fn needs(&self) -> Vec<(usize, i64)> {
        let list = match self {
            Condition::All(list) => list.as_slice(),
            other @ (Condition::Compare(..) | Condition::Truth(_) | Condition::Any(_)) => {
                std::slice::from_ref(other)
            }
        };
        let need = |c: &Condition| match c {
            Condition::Compare(Sum::Cell(s), Comparison::Eq, Sum::Constant(v))
            | Condition::Compare(Sum::Constant(v), Comparison::Eq, Sum::Cell(s))
                if s.reader == 0 =>
            {
                Some((s.position, *v))
            }
            Condition::Compare(..)
            | Condition::Truth(_)
            | Condition::All(_)
            | Condition::Any(_) => None,
        };
        list.iter().filter_map(need).collect()
    }
}

fn compare(a: i64, op: Comparison, b: i64) -> bool {
    match op {
        Comparison::Eq => a == b,
        Comparison::Ne => a != b,
        Comparison::Lt => a < b,
        Comparison::Le => a <= b,
    }
}

impl Steps {
    /// Largest value that steps are looked up by.
    const VALUES: i64 = 128;

    pub fn new(all: Vec<Step>) -> Self {
        let needs: Vec<Vec<(usize, i64)>> = all
            .iter()
            .map(|s| {
                let mut needs = s.guard.needs();
                needs.retain(|(_, v)| (0..Self::VALUES).contains(v));
                needs
            })
            .collect();
        // A position tells most if it is asked about most often.
        let mut asked: Vec<usize> = Vec::new();
        for (position, _) in needs.iter().flatten() {
            asked.resize(asked.len().max(position + 1), 0);
            asked[*position] += 1;
        }
        let mut at: Vec<(usize, Vec<Vec<u32>>)> = Vec::new();
        let mut rest = Vec::new();
        for (i, needs) in needs.iter().enumerate() {
            let Some((position, value)) = needs.iter().max_by_key(|(p, _)| asked[*p]) else {
                rest.push(i as u32);
                continue;
            };
            let place = at.iter().position(|(p, _)| p == position);
            let place = place.unwrap_or_else(|| {
                at.push((*position, Vec::new()));
                at.len() - 1
            });
            let lists = &mut at[place].1;
            let value = *value as usize;
            lists.resize(lists.len().max(value + 1), Vec::new());
            lists[value].push(i as u32);
        }
        Steps { all, at, rest }
    }

    /// The steps that memory does not rule out at a glance, in order.
    pub fn possible(&self, state: &State) -> Vec<u32> {
        let mut out = self.rest.clone();
        for (position, lists) in &self.at {
            let value = usize::try_from(state.values[*position]).ok();
            if let Some(list) = value.and_then(|v| lists.get(v)) {
                out.extend_from_slice(list);
            }
        }
        out.sort_unstable();
        out
    }
}

/// The threads that names stand for.
#[derive(Clone, Copy)]
pub(super) struct Names<'e> {
    pub env: &'e [u8],
    /// Who reads, if nobody is named.
    pub actor: Option<u8>,
}

pub(super) fn thread(t: ThreadTerm, env: &[u8]) -> u8 {
    match t {
        ThreadTerm::Param(i) => env[usize::from(i)],
        ThreadTerm::Constant(k) => k as u8,
    }
}

impl Machine<'_> {
    /// `None` if a thread is meant that there is not.
    fn seen(&self, a: &Access, names: Names<'_>) -> Option<Seen> {
        let there = |t: u8| (1..=self.threads).contains(&t).then_some(t);
        let mut args = [0u8; 3];
        for (slot, t) in args.iter_mut().zip(&a.args) {
            *slot = there(thread(*t, names.env))?;
        }
        let reader = a.reader.map(|r| thread(r, names.env)).or(names.actor);
        Some(Seen {
            position: self.position(a.cell, &args[..a.args.len()]),
            reader: match (self.buffered(a.cell), reader) {
                (true, Some(r)) => there(r)?,
                (true, None) | (false, _) => 0,
            },
        })
    }

    pub(super) fn sum(&self, t: &Term, names: Names<'_>) -> Option<Sum> {
        Some(match t {
            Term::Bool(b) => Sum::Constant(i64::from(*b)),
            Term::Constructor(_, c) => Sum::Constant(i64::from(*c)),
            Term::Thread(t) => Sum::Constant(i64::from(thread(*t, names.env))),
            Term::Read(a) => Sum::Cell(self.seen(a, names)?),
            Term::Sum { parts, constant } => {
                let seen = |(c, a): &(i64, Access)| Some((*c, self.seen(a, names)?));
                let parts: Vec<_> = parts.iter().map(seen).collect::<Option<_>>()?;
                match (parts.as_slice(), constant) {
                    ([], c) => Sum::Constant(*c),
                    ([(1, seen)], 0) => Sum::Cell(*seen),
                    _ => Sum::Parts(parts, *constant),
                }
            }
        })
    }

    fn literal(&self, l: &Literal, names: Names<'_>) -> Condition {
        match (self.sum(&l.left, names), self.sum(&l.right, names)) {
            (Some(Sum::Constant(a)), Some(Sum::Constant(b))) => {
                Condition::Truth(compare(a, l.op, b))
            }
            (Some(a), Some(b)) => Condition::Compare(a, l.op, b),
            _ => Condition::Truth(false),
        }
    }

    /// The formula about these threads; the first `params` of them are not "other".
    pub(super) fn condition(&self, f: &Formula, names: Names<'_>, params: usize) -> Condition {
        match f {
            Formula::And(list) => {
                Condition::all(list.iter().map(|g| self.condition(g, names, params)))
            }
            Formula::Or(list) => {
                Condition::any(list.iter().map(|g| self.condition(g, names, params)))
            }
            Formula::Atom(l) => self.literal(l, names),
            Formula::Others { all, body, .. } => {
                let others = (1..=self.threads).filter(|t| !names.env[..params].contains(t));
                let each = others.map(|t| {
                    let mut env = names.env.to_vec();
                    env.push(t);
                    let names = Names { env: &env, ..names };
                    self.condition(body, names, params)
                });
                match all {
                    true => Condition::all(each),
                    false => Condition::any(each),
                }
            }
        }
    }

    /// Conditions for all choices of different threads, without what is never true.
    pub(super) fn choices_of(
        &self,
        list: &[Quantified],
        wanted: &dyn Fn(&Quantified) -> bool,
    ) -> Chosen {
        let mut out = Vec::new();
        for (i, q) in list.iter().enumerate().filter(|(_, q)| wanted(q)) {
            self.choose_args(q.params.len(), &mut Vec::new(), &mut |env| {
                let names = Names { env, actor: None };
                match self.condition(&q.body, names, env.len()) {
                    Condition::Truth(false) => {}
                    c @ (Condition::Truth(true)
                    | Condition::Compare(..)
                    | Condition::All(_)
                    | Condition::Any(_)) => out.push((i, env.to_vec(), c)),
                }
            });
        }
        out
    }

    /// A transition with the threads of its parameters.
    pub fn step(&self, transition: usize, args: &[u8]) -> Step {
        let t = &self.system.transitions[transition];
        let actor = t.actor.map(|a| args[usize::from(a)]);
        let names = Names { env: args, actor };
        let mut updates = Vec::new();
        for u in &t.updates {
            let each = |i: &&UpdateIndex| matches!(i, UpdateIndex::Each(_));
            let each = u.index.iter().filter(each).count();
            let mut env = args.to_vec();
            env.extend(std::iter::repeat_n(1, each));
            loop {
                let mut chosen = env[args.len()..].iter();
                let index = u.index.iter().map(|i| match i {
                    UpdateIndex::At(t) => thread(*t, &env),
                    UpdateIndex::Each(_) => chosen.next().copied().unwrap_or(0),
                });
                let index: Vec<u8> = index.collect();
                let names = Names { env: &env, actor };
                let branches = u.branches.iter().map(|b| {
                    let value = match &b.value {
                        Value::Any => Stored::Any,
                        Value::Term(term) => match self.sum(term, names) {
                            Some(sum) => Stored::Value(sum),
                            None => Stored::Impossible,
                        },
                    };
                    (self.condition(&b.condition, names, args.len()), value)
                });
                updates.push(Update {
                    cell: u.cell,
                    position: self.position(u.cell, &index),
                    branches: branches.collect(),
                });
                if !advance(&mut env[args.len()..], self.threads) {
                    break;
                }
            }
        }
        Step {
            transition,
            args: args.to_vec(),
            actor: actor.unwrap_or(0),
            guard: self.condition(&t.guard, names, args.len()),
            updates,
        }
    }
}
