//! Which local facts matter: how the threads at a location are told apart.
//!
//! At a location with so many stores pending (a *spot*), a register or pending value that has few values,
//! the same ones with more threads, is told apart by its value. Otherwise what later guards compare is: the
//! sign of each difference, or its remainder where that is asked, carried back through assignments to where it is still about this thread's
//! registers; and what earlier guards found out about registers that are still to be used.

use crate::sample::Samples;
use indexmap::{IndexMap, IndexSet};
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::counting::{Local, Place};
use wattle_evidence::certificate::{Comparison, PendingStores, Predicate, Quantity};
use wattle_model::graph::Action;
use wattle_model::instance::{Fact, Thread};
use wattle_model::{Crowd, Expr, LocationId, Op1, Op2, RegisterId, ThreadId};

/// Values of a quantity that are told apart one by one.
const FEW: usize = 4;
/// Differences at one location.
const MOST_DIFFERENCES: usize = 6;

/// Remainders by more than this are not told apart.
const MOST_REMAINDERS: i64 = 16;
/// Of more than this few multiples fit in a word.
const MANY: i64 = 1 << 28;

/// `Σ aᵢ·registerᵢ + constant`
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    of: BTreeMap<usize, i64>,
    constant: i64,
    /// What is told apart is the remainder by this, or without it the sign.
    modulo: Option<i64>,
}

impl Difference {
    fn value(&self, registers: &[i64]) -> i128 {
        let sum = self.of.iter();
        let sum = sum.map(|(r, a)| i128::from(registers[*r]) * i128::from(*a));
        sum.sum::<i128>() + i128::from(self.constant)
    }

    fn plus(&self, other: &Difference, times: i64) -> Option<Difference> {
        let mut sum = self.clone();
        for (r, a) in &other.of {
            let now = sum.of.entry(*r).or_default();
            *now = now.checked_add(a.checked_mul(times)?)?;
        }
        sum.of.retain(|_, a| *a != 0);
        let more = other.constant.checked_mul(times)?;
        sum.constant = sum.constant.checked_add(more)?;
        Some(sum)
    }

    /// With the first coefficient positive: a difference and its negation tell the same apart.
    fn normal(self) -> Difference {
        let zero = Difference {
            modulo: self.modulo,
            ..Difference::default()
        };
        match self.of.values().next() {
            Some(a) if *a < 0 => zero.plus(&self, -1).unwrap_or(self),
            _ => self,
        }
    }

    /// What is told apart: the sign or the remainder.
    fn class(&self, registers: &[i64]) -> i8 {
        let value = self.value(registers);
        match self.modulo {
            None => value.signum() as i8,
            Some(m) => value.rem_euclid(i128::from(m)) as i8,
        }
    }
}

/// Where a thread is, as far as it needs no values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    pub role: usize,
    pub location: LocationId,
    pub pending: PendingStores,
}

/// Values one by one, then signs.
type Key = (Vec<i64>, Vec<i8>);

pub struct Split {
    differences: Vec<Vec<BTreeSet<Difference>>>,
    /// For each spot the registers and the entries that are told apart by value.
    by_value: IndexMap<Spot, (Vec<usize>, Vec<usize>)>,
    pub places: IndexSet<(Spot, Key)>,
}

impl Split {
    pub fn new(crowd: &Crowd, samples: &Samples) -> Split {
        let mut split = Split {
            differences: differences(crowd, samples),
            by_value: by_value(samples),
            places: IndexSet::new(),
        };
        for local in seen(samples) {
            split.place(&samples.locals[local as usize]);
        }
        split
    }

    fn spot(local: &Local) -> Spot {
        Spot {
            role: local.role.index(),
            location: local.location,
            pending: local.pending.clone(),
        }
    }

    /// The registers and the entries that are told apart by value at the spot.
    pub fn by_value(&self, spot: &Spot) -> (Vec<usize>, Vec<usize>) {
        self.by_value.get(spot).cloned().unwrap_or_default()
    }

    /// What is compared at the spot, of registers that are not told apart by value.
    fn compared(&self, spot: &Spot) -> Vec<Difference> {
        let (few, _) = self.by_value(spot);
        let all = self.differences[spot.role][spot.location.index()].iter();
        let open = all.filter(|d| d.of.keys().any(|r| !few.contains(r)));
        open.cloned().collect()
    }

    /// The number of the place where the thread is; a new one if need be.
    pub fn place(&mut self, local: &Local) -> usize {
        let spot = Self::spot(local);
        let (registers, entries) = self.by_value(&spot);
        let values = registers.iter().map(|r| local.registers[*r]);
        let values = values.chain(entries.iter().map(|e| local.values[*e]));
        let values = values.collect();
        let signs = self.compared(&spot);
        let signs = signs.iter().map(|d| d.class(&local.registers));
        let key = (values, signs.collect());
        self.places.insert_full((spot, key)).0
    }

    /// Whether the thread has values that nobody had at its spot: then they are told apart no more.
    pub fn outgrown(&mut self, local: &Local) -> bool {
        let spot = Self::spot(local);
        let known = |at: usize, v: i64| {
            let mut here = self.places.iter().filter(|(s, _)| *s == spot);
            here.any(|(_, (values, _))| values.get(at) == Some(&v))
        };
        let Some((registers, entries)) = self.by_value.get(&spot) else {
            return false;
        };
        let new: Vec<bool> = (registers.iter().map(|r| local.registers[*r]))
            .chain(entries.iter().map(|e| local.values[*e]))
            .enumerate()
            .map(|(at, v)| !known(at, v))
            .collect();
        if !new.contains(&true) {
            return false;
        }
        if let Some((registers, entries)) = self.by_value.get_mut(&spot) {
            let mut flags = new.iter();
            registers.retain(|_| flags.next() == Some(&false));
            entries.retain(|_| flags.next() == Some(&false));
        }
        true
    }

    /// The places of all threads seen, once more.
    pub fn again(&mut self, samples: &Samples) {
        self.places.clear();
        for local in seen(samples) {
            self.place(&samples.locals[local as usize]);
        }
    }

    pub fn certified(&self) -> Vec<Place> {
        self.places
            .iter()
            .map(|(spot, key)| self.told(spot, key))
            .collect()
    }

    fn told(&self, spot: &Spot, (values, signs): &Key) -> Place {
        let role = ThreadId::new(spot.role);
        let (registers, entries) = self.by_value(spot);
        let register = |r: &usize| Quantity::Register(role, RegisterId::new(*r));
        let quantities = registers.iter().map(register);
        let entry = |e: &usize| Quantity::Entry(role, *e as u32);
        let quantities = quantities.chain(entries.iter().map(entry));
        let mut when: Vec<Predicate> = quantities
            .zip(values)
            .map(|(q, v)| Predicate {
                sum: vec![(1, q)],
                constant: v.saturating_neg(),
                is: Comparison::Zero,
            })
            .collect();
        for (d, sign) in self.compared(spot).iter().zip(signs) {
            // d ≥ 1 is 1 − d ≤ 0.
            let (times, more, is) = match (d.modulo, sign) {
                (Some(m), rest) => (1, -i64::from(*rest), Comparison::MultipleOf(m)),
                (None, 1) => (-1, 1, Comparison::AtMostZero),
                (None, 0) => (1, 0, Comparison::Zero),
                (None, _) => (1, 1, Comparison::AtMostZero),
            };
            let sum = d.of.iter();
            when.push(Predicate {
                sum: sum.map(|(r, a)| (a * times, register(r))).collect(),
                constant: (d.constant * times).saturating_add(more),
                is,
            });
        }
        Place {
            role,
            location: spot.location,
            pending: spot.pending.clone(),
            when,
        }
    }
}

/// Threads in states in which nobody is inside an atomic block.
fn seen(samples: &Samples) -> BTreeSet<u32> {
    let states = samples.states.iter();
    states.flat_map(|s| s.locals.iter().copied()).collect()
}

/// What is told apart by value: few values, and no others with more threads.
fn by_value(samples: &Samples) -> IndexMap<Spot, (Vec<usize>, Vec<usize>)> {
    // For each spot and quantity the values, and those with fewer threads.
    let mut values: IndexMap<Spot, Vec<[BTreeSet<i64>; 2]>> = IndexMap::new();
    let mut told: BTreeMap<u32, u32> = BTreeMap::new();
    for state in &samples.states {
        for l in &state.locals {
            let least = told.entry(*l).or_insert(state.threads);
            *least = (*least).min(state.threads);
        }
    }
    for (l, threads) in &told {
        let local = &samples.locals[*l as usize];
        let all: Vec<i64> = (local.registers.iter().chain(&local.values))
            .copied()
            .collect();
        let here = values.entry(Split::spot(local)).or_default();
        here.resize_with(all.len(), Default::default);
        for (sets, v) in here.iter_mut().zip(all) {
            sets[0].insert(v);
            if *threads < samples.most.max(2) {
                sets[1].insert(v);
            }
        }
    }
    let few = |sets: &[BTreeSet<i64>; 2]| sets[0].len() <= FEW && sets[0] == sets[1];
    let chosen = |(spot, sets): (Spot, Vec<[BTreeSet<i64>; 2]>)| {
        let live = &samples.live[spot.role][spot.location.index()];
        let registers = (0..live.len()).filter(|r| live[*r] && few(&sets[*r]));
        let registers: Vec<usize> = registers.collect();
        let entries = (live.len()..sets.len()).filter(|e| few(&sets[*e]));
        let entries: Vec<usize> = entries.map(|e| e - live.len()).collect();
        (spot, (registers, entries))
    };
    values.into_iter().map(chosen).collect()
}

/// For each role and location: what later guards compare, and what earlier ones have.
fn differences(crowd: &Crowd, samples: &Samples) -> Vec<Vec<BTreeSet<Difference>>> {
    let threads = crowd.instance.threads.iter().enumerate();
    let mut all: Vec<Vec<BTreeSet<Difference>>> = Vec::new();
    for (t, thread) in threads {
        let mut here = vec![BTreeSet::new(); thread.locations.len()];
        let mut asked = BTreeSet::new();
        for q in &crowd.instance.questions {
            of_property(&q.target, crowd, t, &mut asked);
        }
        for set in &mut here {
            set.extend(asked.iter().cloned());
        }
        carry(thread, &mut here);
        let live = &samples.live[crowd.roles.of(t)];
        for (known, tested) in here.iter_mut().zip(tested(thread, live)) {
            let more = tested.into_iter().take(MOST_DIFFERENCES);
            known.extend(more);
        }
        all.push(here);
    }
    all
}

/// For each location what guards on the way to it have compared, as long as it is about registers that may
/// still be read: `r > 0` where `cas(s, r, r - 1)` comes next.
fn tested(thread: &Thread, live: &[Vec<bool>]) -> Vec<BTreeSet<Difference>> {
    let mut all: Vec<BTreeSet<Difference>> = vec![BTreeSet::new(); thread.locations.len()];
    loop {
        let mut changed = false;
        for step in &thread.steps {
            let mut after = all[step.source.index()].clone();
            if step.action.apart().is_none()
                && let Action::Assume(e) | Action::Assert { condition: e, .. } = &step.action
            {
                compared(e, &mut after);
            }
            let written = step.action.written();
            let live = &live[step.target.index()];
            let stands = |r: &usize| live[*r] && written.is_none_or(|w| w.index() != *r);
            after.retain(|d| d.of.keys().all(stands));
            let here = &mut all[step.target.index()];
            for d in after {
                if here.len() < MOST_DIFFERENCES {
                    changed |= here.insert(d);
                }
            }
        }
        if !changed {
            return all;
        }
    }
}

fn carry(thread: &Thread, here: &mut [BTreeSet<Difference>]) {
    loop {
        let mut changed = false;
        for step in &thread.steps {
            let after = here[step.target.index()].clone();
            let mut before: BTreeSet<Difference> = match &step.action {
                Action::Assign { register, value } => {
                    let value = linear(value);
                    let back = |d: &Difference| {
                        let Some(a) = d.of.get(&register.index()) else {
                            return Some(d.clone());
                        };
                        let mut rest = d.clone();
                        rest.of.remove(&register.index());
                        let back = rest.plus(value.as_ref()?, *a)?;
                        (!back.of.is_empty()).then(|| back.normal())
                    };
                    after.iter().filter_map(back).collect()
                }
                Action::Load { register, .. } | Action::Havoc { register, .. } => {
                    let free = |d: &&Difference| !d.of.contains_key(&register.index());
                    after.iter().filter(free).cloned().collect()
                }
                Action::Assume(_)
                | Action::Assert { .. }
                | Action::Skip
                | Action::Store { .. }
                | Action::Fence(_)
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Lock
                | Action::Unlock => after,
            };
            match &step.action {
                // How far apart two numbers are tells nobody apart.
                Action::Assert { .. } if step.action.apart().is_some() => {}
                Action::Assume(e) | Action::Assert { condition: e, .. } => {
                    compared(e, &mut before);
                }
                // What a flag is given and a later guard asks for.
                Action::Assign { value, .. } if is_comparison(value) => {
                    compared(value, &mut before);
                }
                Action::Assign { .. }
                | Action::Load { .. }
                | Action::Havoc { .. }
                | Action::Skip
                | Action::Store { .. }
                | Action::Fence(_)
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Lock
                | Action::Unlock => {}
            }
            let known = &mut here[step.source.index()];
            for d in before {
                if known.len() < MOST_DIFFERENCES {
                    changed |= known.insert(d);
                }
            }
        }
        if !changed {
            return;
        }
    }
}

fn is_comparison(e: &Expr<RegisterId>) -> bool {
    use Op2::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(e, Expr::Binary(Eq | Ne | Lt | Le | Gt | Ge, ..))
}

/// The differences that a condition looks at.
fn compared(e: &Expr<RegisterId>, into: &mut BTreeSet<Difference>) {
    let mut note = |d: Option<Difference>| {
        if let Some(d) = d.filter(|d| !d.of.is_empty()) {
            into.insert(d.normal());
        }
    };
    match e {
        Expr::Const(_) => {}
        Expr::Atom(_) => note(linear(e)),
        Expr::Unary(Op1::Not, a) => compared(a, into),
        Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, _) => note(linear(e)),
        Expr::Binary(op, a, b) => match op {
            Op2::And | Op2::Or => {
                compared(a, into);
                compared(b, into);
            }
            Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge => {
                let both = linear(a).zip(linear(b));
                note(both.and_then(|(a, b)| a.plus(&b, -1)));
                note(remainder(a));
                note(remainder(b));
                // A negative number is a large one without its sign.
                for cast in [a, b] {
                    if let Expr::Unary(Op1::Wrap { .. }, r) = &**cast
                        && matches!(**r, Expr::Atom(_))
                    {
                        note(linear(r));
                    }
                }
                for (masked, with) in [(a, b), (b, a)] {
                    upper_bits(masked, with)
                        .into_iter()
                        .for_each(|d| note(Some(d)));
                }
            }
            Op2::Add
            | Op2::Sub
            | Op2::Mul
            | Op2::Div
            | Op2::Rem
            | Op2::BitAnd
            | Op2::BitOr
            | Op2::BitXor
            | Op2::Shl
            | Op2::Shr => {
                note(linear(e));
                note(remainder(e));
            }
        },
        Expr::Ite(c, a, b) => {
            compared(c, into);
            compared(a, into);
            compared(b, into);
        }
    }
}

/// `d & 3`, `d % 4`: what is looked at is a remainder.
fn remainder(e: &Expr<RegisterId>) -> Option<Difference> {
    let Expr::Binary(op, a, b) = e else {
        return None;
    };
    let (of, modulo) = match (op, &**a, &**b) {
        (Op2::Rem, of, Expr::Const(m)) => (of, *m),
        (Op2::BitAnd, of, Expr::Const(k)) | (Op2::BitAnd, Expr::Const(k), of) => {
            (of, k.checked_add(1).filter(|m| m & k == 0)?)
        }
        _ => return None,
    };
    let modulo = Some(modulo).filter(|m| (2..=MOST_REMAINDERS).contains(m));
    Some(Difference {
        modulo: Some(modulo?),
        ..linear(of)?
    })
}

/// `d & −2ⁿ == c` asks whether d is between c and c + 2ⁿ; where n is large, `d & (2ⁿ − 1) == 0` asks for one of
/// the few multiples.
fn upper_bits(e: &Expr<RegisterId>, with: &Expr<RegisterId>) -> Vec<Difference> {
    let (Expr::Binary(Op2::BitAnd, a, b), Some(c)) = (e, with.as_const()) else {
        return Vec::new();
    };
    let (of, mask) = match (&**a, &**b) {
        (of, Expr::Const(k)) | (Expr::Const(k), of) => (of, *k),
        _ => return Vec::new(),
    };
    let least = 1i64.checked_shl(mask.trailing_zeros()).unwrap_or(0);
    let limits = match mask.checked_add(1) {
        _ if least > 1 && mask == least.wrapping_neg() => vec![c, c.saturating_add(least)],
        Some(m) if m >= MANY && m & mask == 0 && c == 0 => vec![0, -m, m, -2 * m],
        _ => return Vec::new(),
    };
    let less = |k: &i64| {
        let k = Difference {
            constant: *k,
            ..Difference::default()
        };
        linear(of)?.plus(&k, -1)
    };
    limits.iter().filter_map(less).collect()
}

fn linear(e: &Expr<RegisterId>) -> Option<Difference> {
    match e {
        Expr::Const(c) => Some(Difference {
            constant: *c,
            ..Difference::default()
        }),
        Expr::Atom(r) => Some(Difference {
            of: [(r.index(), 1)].into(),
            ..Difference::default()
        }),
        Expr::Unary(Op1::Neg, a) => Difference::default().plus(&linear(a)?, -1),
        Expr::Binary(Op2::Add, a, b) => linear(a)?.plus(&linear(b)?, 1),
        Expr::Binary(Op2::Sub, a, b) => linear(a)?.plus(&linear(b)?, -1),
        Expr::Binary(Op2::Mul, a, b) => match (linear(a)?, linear(b)?) {
            (a, b) if b.of.is_empty() => Difference::default().plus(&a, b.constant),
            (a, b) if a.of.is_empty() => Difference::default().plus(&b, a.constant),
            _ => None,
        },
        // Guesses need not be right: most numbers do not wrap around.
        Expr::Unary(Op1::Wrap { .. }, a) => linear(a),
        Expr::Unary(Op1::Not | Op1::BitNot, _) | Expr::Binary(..) | Expr::Ite(..) => None,
    }
}

/// What the property compares of registers of one thread.
fn of_property(target: &Expr<Fact>, crowd: &Crowd, t: usize, into: &mut BTreeSet<Difference>) {
    let mut own = |e: &Expr<Fact>| {
        let own = e.substitute(&mut |fact| match fact {
            Fact::Register(u, r) if crowd.roles.of(u.index()) == crowd.roles.of(t) => {
                Ok(Expr::Atom(*r))
            }
            Fact::Register(..)
            | Fact::At(..)
            | Fact::Cell(_)
            | Fact::Seen(..)
            | Fact::CellAt { .. } => Err(()),
        });
        if let Ok(own) = own {
            compared(&own, into);
        }
    };
    match target {
        Expr::Binary(Op2::And | Op2::Or, a, b) => {
            of_property(a, crowd, t, into);
            of_property(b, crowd, t, into);
        }
        Expr::Unary(Op1::Not, a) => of_property(a, crowd, t, into),
        e @ (Expr::Const(_)
        | Expr::Atom(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Ite(..)) => {
            own(e);
        }
    }
}
