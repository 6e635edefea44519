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
    /// Sorted, none twice.
    Some(Vec<i64>),
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
        Values::Some(vec![v])
    }

    fn none() -> Self {
        Values::Some(Vec::new())
    }

    /// These, in any order.
    fn all(mut values: Vec<i64>) -> Self {
        values.sort_unstable();
        values.dedup();
        match values.len() > LIMIT {
            true => Values::Any,
            false => Values::Some(values),
        }
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
        let is_new = |v: &&i64| mine.binary_search(v).is_err();
        let more: Vec<i64> = theirs.iter().filter(is_new).copied().collect();
        if more.is_empty() {
            return false;
        }
        mine.extend(more);
        mine.sort_unstable();
        let changed = mine.len() != before;
        if mine.len() > LIMIT {
            *self = Values::Any;
        }
        changed
    }
}

struct Memory {
    cells: BTreeMap<i64, Values>,
    /// Values stored at addresses that could be anything.
    everywhere: Values,
    /// Any value may be stored anywhere.
    any: bool,
}

impl Memory {
    fn new() -> Self {
        Memory {
            cells: BTreeMap::new(),
            everywhere: Values::none(),
            any: false,
        }
    }

    fn load(&self, addresses: &Values) -> Values {
        if self.any {
            return Values::Any;
        }
        let mut out = Values::one(0);
        out.join(&self.everywhere);
        for (a, values) in &self.cells {
            let hit = match addresses {
                Values::Any => true,
                Values::Some(s) => s.binary_search(a).is_ok(),
            };
            if hit {
                out.join(values);
            }
        }
        out
    }

    fn store(&mut self, addresses: &Values, values: &Values) -> bool {
        let mut changed = false;
        let mut put = |cell: &mut Values| {
            changed |= cell.join(values);
            self.any |= *cell == Values::Any;
        };
        match addresses {
            _ if *values == Values::Any => return !std::mem::replace(&mut self.any, true),
            Values::Any => put(&mut self.everywhere),
            Values::Some(addresses) => {
                for a in addresses {
                    put(self.cells.entry(*a).or_insert_with(Values::none));
                }
            }
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
    let mut memory = Memory::new();
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
        // No value at all is a fault: what comes after it does not matter, but nothing is known of it.
        let all = |values: Result<Vec<i64>, wattle_model::ArithmeticError>| {
            values.map_or(Values::Any, Values::all)
        };
        match e {
            Expr::Const(c) => Values::one(*c),
            Expr::Atom(Local::Register(r)) => env[r.index()].clone(),
            Expr::Atom(_) => Values::Any,
            Expr::Unary(op, a) => match of(a) {
                Values::Some(s) => all(s.iter().map(|v| op.apply(*v)).collect()),
                Values::Any => {
                    if e.is_logical() {
                        truth()
                    } else {
                        Values::Any
                    }
                }
            },
            Expr::Binary(op, a, b) => match (of(a), of(b)) {
                (Values::Some(s), Values::Some(t)) => {
                    self.spend(s.len() * t.len());
                    let pairs = s.iter().flat_map(|v| t.iter().map(|w| op.apply(*v, *w)));
                    all(pairs.collect())
                }
                _ => {
                    if e.is_logical() {
                        truth()
                    } else {
                        Values::Any
                    }
                }
            },
            Expr::Ite(_, a, b) => {
                let mut out = of(a);
                out.join(&of(b));
                out
            }
        }
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
            let kept: Vec<i64> = kept.collect();
            env[r.index()] = Values::Some(kept);
            return !env[r.index()].is_none();
        }
        passes(condition, env)
    }
}

fn truth() -> Values {
    Values::Some(vec![0, 1])
}
