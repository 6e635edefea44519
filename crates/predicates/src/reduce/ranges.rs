//! Bounds that every value of a cell or register keeps: an interval each, found by running all
//! steps over intervals without regard to order or guards. What still grows after a few rounds has
//! no bound on that side.
//!
//! They are facts for the abstraction, which then needs no predicates for them. The certificate
//! lists them and the auditor proves them.

use wattle_model::graph::Action;
use wattle_model::instance::{Address, Initial, Instance};
use wattle_model::{Expr, Op1, Op2, RegisterId, Type};

/// Least and greatest value, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub lo: Option<i64>,
    pub hi: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    pub cells: Vec<Interval>,
    pub registers: Vec<Vec<Interval>>,
}

/// Rounds before a bound that moves is given up.
const ROUNDS: usize = 6;

impl Ranges {
    pub fn of(instance: &Instance) -> Self {
        let first = |init: Initial, ty: Type| match init {
            Initial::Value(v) => Interval::single(v),
            Initial::Any => Interval::of(ty),
        };
        let cells = instance.cells.iter().map(|c| first(c.init, c.ty));
        let registers = instance.threads.iter().map(|t| {
            let registers = t.registers.iter();
            registers.map(|r| first(r.init, r.ty)).collect()
        });
        let mut ranges = Ranges {
            cells: cells.collect(),
            registers: registers.collect(),
        };
        let mut round = 0;
        // Each bound is given up at most once, so this ends. Where types have bounds they are taken first:
        // what is only copied from there keeps to them too.
        while ranges.grow(instance, (round >= ROUNDS, round >= 2 * ROUNDS)) {
            round += 1;
        }
        ranges
    }

    fn grow(&mut self, instance: &Instance, (typed, all): (bool, bool)) -> bool {
        let give_up = |ty: Type| if ty.bounds().is_some() { typed } else { all };
        let mut changed = false;
        for (t, thread) in instance.threads.iter().enumerate() {
            for step in &thread.steps {
                let (register, value) = match &step.action {
                    Action::Assign { register, value } => (register, self.eval(t, value)),
                    Action::Havoc { register, range } => {
                        let ty = thread.registers[register.index()].ty;
                        let bounds = range.or(ty.bounds());
                        (register, Interval::between(bounds))
                    }
                    Action::Load { register, place } => {
                        let cells = self.cells[span(place)].iter().copied();
                        let Some(hull) = cells.reduce(Interval::join) else {
                            continue;
                        };
                        (register, hull)
                    }
                    Action::Store { place, value } => {
                        let value = self.eval(t, value);
                        for c in span(place) {
                            let ty = instance.cells[c].ty;
                            let value = value.within(ty);
                            changed |= self.cells[c].include(value, give_up(ty), ty);
                        }
                        continue;
                    }
                    Action::Skip
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Lock
                    | Action::Unlock => continue,
                };
                let ty = thread.registers[register.index()].ty;
                let value = value.within(ty);
                changed |= self.registers[t][register.index()].include(value, give_up(ty), ty);
            }
        }
        changed
    }

    fn eval(&self, t: usize, e: &Expr<RegisterId>) -> Interval {
        match e {
            Expr::Const(c) => Interval::single(*c),
            Expr::Atom(r) => self.registers[t][r.index()],
            Expr::Unary(Op1::Neg, a) => self.eval(t, a).negated(),
            Expr::Binary(Op2::Add, a, b) => self.eval(t, a).plus(self.eval(t, b)),
            Expr::Binary(Op2::Sub, a, b) => self.eval(t, a).plus(self.eval(t, b).negated()),
            Expr::Unary(Op1::Not, _) => Interval::between(Some((0, 1))),
            Expr::Binary(op, ..) if op.is_logical() => Interval::between(Some((0, 1))),
            Expr::Ite(_, a, b) => self.eval(t, a).join(self.eval(t, b)),
            Expr::Unary(..) | Expr::Binary(..) => Interval::between(None),
        }
    }
}

fn span(place: &Address) -> std::ops::Range<usize> {
    match place {
        Address::Cell(c) => c.index()..c.index() + 1,
        Address::Computed { base, length, .. } => base.index()..base.index() + *length as usize,
    }
}

impl Interval {
    fn single(v: i64) -> Self {
        Interval::between(Some((v, v)))
    }

    fn between(bounds: Option<(i64, i64)>) -> Self {
        Interval {
            lo: bounds.map(|(lo, _)| lo),
            hi: bounds.map(|(_, hi)| hi),
        }
    }

    fn of(ty: Type) -> Self {
        Interval::between(ty.bounds())
    }

    fn negated(self) -> Self {
        Interval {
            lo: self.hi.and_then(i64::checked_neg),
            hi: self.lo.and_then(i64::checked_neg),
        }
    }

    pub fn exactly(v: Option<i64>) -> Self {
        Interval { lo: v, hi: v }
    }

    /// All multiples; of an unknown number nothing is known.
    pub fn times(self, k: Option<i64>) -> Self {
        let Some(k) = k else {
            return Interval::between(None);
        };
        let scaled = Interval {
            lo: self.lo.and_then(|v| v.checked_mul(k)),
            hi: self.hi.and_then(|v| v.checked_mul(k)),
        };
        match k < 0 {
            true => Interval {
                lo: scaled.hi,
                hi: scaled.lo,
            },
            false => scaled,
        }
    }

    pub fn plus(self, other: Interval) -> Self {
        Interval {
            lo: self.lo.zip(other.lo).and_then(|(a, b)| a.checked_add(b)),
            hi: self.hi.zip(other.hi).and_then(|(a, b)| a.checked_add(b)),
        }
    }

    /// The least interval with the values of both.
    pub fn join(self, other: Interval) -> Self {
        Interval {
            lo: self.lo.zip(other.lo).map(|(a, b)| a.min(b)),
            hi: self.hi.zip(other.hi).map(|(a, b)| a.max(b)),
        }
    }

    /// What the type lets through; a value outside is a fault and stored nowhere, or wraps around.
    fn within(self, ty: Type) -> Self {
        let Some((lo, hi)) = ty.bounds() else {
            return self;
        };
        if matches!(ty, Type::Wrap { .. }) {
            let inside = self.lo.is_some_and(|l| l >= lo) && self.hi.is_some_and(|h| h <= hi);
            return if inside { self } else { Interval::of(ty) };
        }
        Interval {
            lo: Some(self.lo.map_or(lo, |l| l.clamp(lo, hi))),
            hi: Some(self.hi.map_or(hi, |h| h.clamp(lo, hi))),
        }
    }

    /// Takes the values in; a bound that moves late is given up for the type's. Says whether something
    /// changed.
    fn include(&mut self, other: Interval, give_up: bool, ty: Type) -> bool {
        let mut joined = self.join(other);
        if give_up && joined.lo != self.lo {
            joined.lo = Interval::of(ty).lo;
        }
        if give_up && joined.hi != self.hi {
            joined.hi = Interval::of(ty).hi;
        }
        let changed = joined != *self;
        *self = joined;
        changed
    }
}
