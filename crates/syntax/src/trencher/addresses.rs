//! Which addresses a program can use, so that its memory can be an array.
//!
//! A value-set analysis: per control state a set of values for each register, per address a set of
//! values for memory (stores are weak updates: buffers delay them, so memory is flow-insensitive and
//! the result is valid on every memory model). A `check` removes the values that fail it when it
//! speaks of one register only, which bounds the usual counted loops. A set that outgrows
//! [`LIMIT`] becomes *any value*.

use super::read::{Instruction, Thread};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::Local;
use wattle_model::{Expr, RegisterId};

/// Values a set may have before it becomes *any*.
const LIMIT: usize = 130;
/// Work is bounded too (values combined; registers kept): past it every computed address is *any*.
const WORK: usize = 3_000_000;
const KEPT: usize = 1_000_000;

#[derive(Clone, PartialEq, Eq)]
enum Values {
    Some(BTreeSet<i64>),
    Any,
}

/// What the analysis found.
pub(super) struct Addresses {
    /// Every address that can be used, as far as the analysis could tell.
    pub known: BTreeSet<i64>,
    /// Whether some address could not be bounded.
    pub unbounded: bool,
}

impl Values {
    fn one(v: i64) -> Self {
        Values::Some(BTreeSet::from([v]))
    }

    fn none() -> Self {
        Values::Some(BTreeSet::new())
    }

    fn is_none(&self) -> bool {
        matches!(self, Values::Some(s) if s.is_empty())
    }

    /// Adds the other values; says whether that changed anything.
    fn join(&mut self, other: &Values) -> bool {
        let Values::Some(mine) = self else {
            return false;
        };
        let Values::Some(theirs) = other else {
            *self = Values::Any;
            return true;
        };
        let before = mine.len();
        mine.extend(theirs);
        let changed = mine.len() != before;
        if mine.len() > LIMIT {
            *self = Values::Any;
        }
        changed
    }
}

#[derive(Default)]
struct Memory {
    cells: BTreeMap<i64, BTreeSet<i64>>,
    /// Values stored at addresses that could be anything, or any value stored anywhere.
    everywhere: BTreeSet<i64>,
    any: bool,
}

impl Memory {
    fn load(&self, addresses: &Values) -> Values {
        if self.any {
            return Values::Any;
        }
        let mut out = Values::one(0);
        out.join(&Values::Some(self.everywhere.clone()));
        for (a, values) in &self.cells {
            let hit = match addresses {
                Values::Any => true,
                Values::Some(s) => s.contains(a),
            };
            if hit {
                out.join(&Values::Some(values.clone()));
            }
        }
        out
    }

    fn store(&mut self, addresses: &Values, values: &Values) -> bool {
        let Values::Some(values) = values else {
            return !std::mem::replace(&mut self.any, true);
        };
        let mut changed = false;
        match addresses {
            Values::Any => {
                let before = self.everywhere.len();
                self.everywhere.extend(values);
                changed |= self.everywhere.len() != before;
            }
            Values::Some(addresses) => {
                for a in addresses {
                    let cell = self.cells.entry(*a).or_default();
                    let before = cell.len();
                    cell.extend(values);
                    changed |= cell.len() != before;
                }
            }
        }
        let size = self.cells.values().map(BTreeSet::len).max().unwrap_or(0);
        if size > LIMIT || self.everywhere.len() > LIMIT {
            changed |= !std::mem::replace(&mut self.any, true);
        }
        changed
    }
}

/// The address an instruction uses.
pub(super) fn address(i: &Instruction) -> Option<&Expr<Local>> {
    match i {
        Instruction::Write { address, .. } | Instruction::Read { address, .. } => Some(address),
        _ => None,
    }
}

pub(super) fn analyse(threads: &[Thread]) -> Addresses {
    let mut memory = Memory::default();
    let sizes = threads.iter().map(|t| t.states.len() * t.registers.len());
    let kept = sizes.fold(0, usize::saturating_add);
    // Per thread and control state: the registers' values, once the state can be reached.
    let mut at: Vec<Vec<Option<Vec<Values>>>> = threads
        .iter()
        .map(|t| {
            let mut states = vec![None; t.states.len()];
            if let Some(i) = t.initial.filter(|_| kept <= KEPT) {
                states[i] = Some(vec![Values::one(0); t.registers.len()]);
            }
            states
        })
        .collect();
    let work = Work(Cell::new(WORK));
    let used = threads.iter().flat_map(|t| &t.transitions);
    let constant = used
        .filter_map(|tr| address(&tr.instruction))
        .all(|a| a.as_const().is_some());
    // Most programs name every address: nothing to find out.
    let mut settled = constant;
    while !settled && kept <= KEPT && !work.exhausted() {
        settled = true;
        for (t, states) in threads.iter().zip(&mut at) {
            settled &= !work.sweep(t, states, &mut memory);
        }
    }
    settled &= !work.exhausted();
    let mut out = Addresses {
        known: BTreeSet::new(),
        unbounded: false,
    };
    for (t, states) in threads.iter().zip(&at) {
        for tr in &t.transitions {
            let Some(address) = address(&tr.instruction) else {
                continue;
            };
            let values = match (address.as_const(), &states[tr.source]) {
                // Constants count even where no run comes by: they are what the author named.
                (Some(c), _) => Values::one(c),
                (None, _) if !settled => Values::Any,
                (None, None) => Values::none(),
                (None, Some(env)) => work.evaluate(address, env),
            };
            match values {
                Values::Any => out.unbounded = true,
                Values::Some(s) => out.known.extend(s),
            }
        }
    }
    out
}

/// What work is left.
struct Work(Cell<usize>);

impl Work {
    fn exhausted(&self) -> bool {
        self.0.get() == 0
    }

    fn spend(&self, amount: usize) {
        self.0.set(self.0.get().saturating_sub(amount));
    }

    /// Takes every transition of a thread once.
    fn sweep(&self, t: &Thread, states: &mut [Option<Vec<Values>>], memory: &mut Memory) -> bool {
        let mut changed = false;
        for tr in &t.transitions {
            let Some(env) = &states[tr.source] else {
                continue;
            };
            self.spend(env.len() + 1);
            let mut env = env.clone();
            match &tr.instruction {
                Instruction::Write { value, address } => {
                    let values = self.evaluate(value, &env);
                    changed |= memory.store(&self.evaluate(address, &env), &values);
                }
                Instruction::Read { register, address } => {
                    env[register.index()] = memory.load(&self.evaluate(address, &env));
                }
                Instruction::Assign { register, value } => {
                    env[register.index()] = self.evaluate(value, &env);
                }
                Instruction::Check(condition) => {
                    if !self.filter(condition, &mut env) {
                        continue;
                    }
                }
                Instruction::Fence
                | Instruction::Noop
                | Instruction::Lock
                | Instruction::Unlock => {}
            }
            match &mut states[tr.target] {
                Some(old) => {
                    for (o, n) in old.iter_mut().zip(&env) {
                        changed |= o.join(n);
                    }
                }
                target => {
                    *target = Some(env);
                    changed = true;
                }
            }
        }
        changed
    }

    /// Every value the expression can have. Combinations are enumerated as long as they are few.
    fn evaluate(&self, e: &Expr<Local>, env: &[Values]) -> Values {
        let of = |e: &Expr<Local>| self.evaluate(e, env);
        self.spend(1);
        let mut out = Values::none();
        let mut add = |r: Result<i64, wattle_model::ArithmeticError>| {
            out.join(&r.map_or(Values::Any, Values::one));
        };
        match e {
            Expr::Const(c) => return Values::one(*c),
            Expr::Atom(Local::Register(r)) => return env[r.index()].clone(),
            Expr::Atom(_) => return Values::Any,
            Expr::Unary(op, a) => match of(a) {
                Values::Some(s) => s.iter().for_each(|v| add(op.apply(*v))),
                Values::Any => return if e.is_logical() { truth() } else { Values::Any },
            },
            Expr::Binary(op, a, b) => match (of(a), of(b)) {
                (Values::Some(s), Values::Some(t)) => {
                    self.spend(s.len() * t.len());
                    for v in &s {
                        t.iter().for_each(|w| add(op.apply(*v, *w)));
                    }
                }
                _ => return if e.is_logical() { truth() } else { Values::Any },
            },
            Expr::Ite(_, a, b) => {
                let (a, b) = (of(a), of(b));
                out.join(&a);
                out.join(&b);
            }
        }
        out
    }

    /// Keeps the values that can pass the check; false if none can.
    fn filter(&self, condition: &Expr<Local>, env: &mut [Values]) -> bool {
        let mut registers: BTreeSet<RegisterId> = BTreeSet::new();
        condition.for_each_atom(&mut |a| {
            if let Local::Register(r) = a {
                registers.insert(*r);
            }
        });
        let passes = |e: &Expr<Local>, env: &[Values]| match self.evaluate(e, env) {
            Values::Any => true,
            Values::Some(s) => s.iter().any(|v| *v != 0),
        };
        if registers.len() == 1
            && let Some(r) = registers.first()
            && let Values::Some(values) = env[r.index()].clone()
        {
            let mut one = env.to_vec();
            let kept = values.into_iter().filter(|v| {
                one[r.index()] = Values::one(*v);
                passes(condition, &one)
            });
            let kept: BTreeSet<i64> = kept.collect();
            env[r.index()] = Values::Some(kept);
            return !env[r.index()].is_none();
        }
        passes(condition, env)
    }
}

fn truth() -> Values {
    Values::Some(BTreeSet::from([0, 1]))
}
