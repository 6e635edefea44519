//! Between which bounds the numbers of registers and regions lie, whatever the order of steps: which
//! wrap-around variables may wrap around, and which casts change nothing.
//!
//! Every step is run over intervals, without regard to order and conditions, until nothing changes; a
//! bound that still moves after some rounds is taken to be none. What a variable stores lies in its
//! type: outside a range is a fault, and a wrap-around type either holds the value as it is or is on
//! the list of those that may wrap.

use super::variables::Variable;
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::graph::Action;
use wattle_model::program::Local;
use wattle_model::{Expr, FamilyId, Init, Op1, Op2, Place, Program, RegionId, RegisterId, Type};

/// Both ends included; no end is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub lo: Option<i128>,
    pub hi: Option<i128>,
}

/// Rounds before bounds that move are given up.
const ROUNDS: usize = 40;
/// Bounds beyond this are none; sums and products of what is within fit the machine.
const LARGE: i128 = 1 << 63;

impl Interval {
    pub const ALL: Interval = Interval { lo: None, hi: None };

    pub fn of(lo: i64, hi: i64) -> Self {
        Interval {
            lo: Some(i128::from(lo)),
            hi: Some(i128::from(hi)),
        }
    }

    fn new(lo: Option<i128>, hi: Option<i128>) -> Self {
        let small = |v: &i128| v.abs() <= LARGE;
        Interval {
            lo: lo.filter(small),
            hi: hi.filter(small),
        }
    }

    fn join(self, other: Interval) -> Self {
        Interval {
            lo: self.lo.zip(other.lo).map(|(a, b)| a.min(b)),
            hi: self.hi.zip(other.hi).map(|(a, b)| a.max(b)),
        }
    }

    /// Whether all of it lies within.
    pub fn inside(self, other: Interval) -> bool {
        let low = other.lo.is_none_or(|b| self.lo.is_some_and(|a| a >= b));
        let high = other.hi.is_none_or(|b| self.hi.is_some_and(|a| a <= b));
        low && high
    }

    /// What lies within; all of the other if nothing does.
    fn within(self, other: Interval) -> Self {
        let both = |a: Option<i128>, b: Option<i128>, f: fn(i128, i128) -> i128| match (a, b) {
            (Some(a), Some(b)) => Some(f(a, b)),
            (a, b) => a.or(b),
        };
        let cut = Interval {
            lo: both(self.lo, other.lo, i128::max),
            hi: both(self.hi, other.hi, i128::min),
        };
        match (cut.lo, cut.hi) {
            (Some(a), Some(b)) if a > b => other,
            _ => cut,
        }
    }

    pub fn plus(self, other: Interval) -> Self {
        let add = |a: Option<i128>, b: Option<i128>| a.zip(b).map(|(a, b)| a + b);
        Interval::new(add(self.lo, other.lo), add(self.hi, other.hi))
    }

    fn negated(self) -> Self {
        Interval::new(self.hi.map(|v| -v), self.lo.map(|v| -v))
    }

    pub fn times(self, k: i64) -> Self {
        let k = i128::from(k);
        let by = |v: Option<i128>| v.and_then(|v| v.checked_mul(k));
        match k {
            0 => Interval::of(0, 0),
            k if k > 0 => Interval::new(by(self.lo), by(self.hi)),
            _ => Interval::new(by(self.hi), by(self.lo)),
        }
    }

    fn ends(self) -> Option<(i128, i128)> {
        self.lo.zip(self.hi)
    }
}

/// What a type can store.
pub fn of_type(ty: Type) -> Interval {
    ty.bounds()
        .map_or(Interval::ALL, |(lo, hi)| Interval::of(lo, hi))
}

/// The bounds of all variables, and those wrap-around ones of which it is not known that what they
/// store fits.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    of: BTreeMap<Variable, Interval>,
    pub may_wrap: BTreeSet<Variable>,
}

impl Ranges {
    pub fn infer(program: &Program) -> Self {
        let mut ranges = Ranges::default();
        let mut types = BTreeMap::new();
        for (r, region) in program.regions.iter().enumerate() {
            types.insert(Variable::Region(RegionId::new(r)), region.ty);
        }
        for (f, family) in program.families.iter().enumerate() {
            for (r, register) in family.registers.iter().enumerate() {
                let id = Variable::Register(FamilyId::new(f), RegisterId::new(r));
                types.insert(id, register.ty);
            }
        }
        for (r, region) in program.regions.iter().enumerate() {
            let id = Variable::Region(RegionId::new(r));
            ranges.start(id, region.ty, &region.init);
        }
        for (f, family) in program.families.iter().enumerate() {
            let f = FamilyId::new(f);
            for (r, register) in family.registers.iter().enumerate() {
                let id = Variable::Register(f, RegisterId::new(r));
                ranges.start(id, register.ty, &register.init);
            }
        }
        for round in 0.. {
            let before = ranges.of.clone();
            for (f, family) in program.families.iter().enumerate() {
                for s in &family.steps {
                    ranges.step(FamilyId::new(f), &s.action, &types);
                }
            }
            if ranges.of == before {
                break;
            }
            if round >= ROUNDS {
                for (id, now) in &mut ranges.of {
                    let then = before.get(id).copied().unwrap_or(*now);
                    *now = Interval {
                        lo: now.lo.filter(|_| now.lo == then.lo),
                        hi: now.hi.filter(|_| now.hi == then.hi),
                    };
                    let ty = types.get(id).copied().unwrap_or(Type::Int);
                    *now = now.within(of_type(ty));
                }
            }
        }
        ranges
    }

    pub fn get(&self, id: Variable) -> Interval {
        self.of.get(&id).copied().unwrap_or(Interval::ALL)
    }

    fn start(&mut self, id: Variable, ty: Type, init: &Init) {
        let none = |_: &Local| Interval::ALL;
        let all = match init {
            Init::Any => of_type(ty),
            Init::All(e) => value(e, &none),
            Init::Each(list) => {
                let each = list.iter().map(|e| value(e, &none));
                each.reduce(Interval::join).unwrap_or(Interval::ALL)
            }
        };
        self.store(id, ty, all);
    }

    fn store(&mut self, id: Variable, ty: Type, what: Interval) {
        let holds = of_type(ty);
        let what = match ty {
            Type::Wrap { .. } if !what.inside(holds) => {
                self.may_wrap.insert(id);
                holds
            }
            Type::Int | Type::Range { .. } | Type::Wrap { .. } | Type::Thread(_) => {
                what.within(holds)
            }
        };
        let old = self.of.get(&id).copied();
        self.of.insert(id, old.map_or(what, |old| old.join(what)));
    }

    fn step(
        &mut self,
        f: FamilyId,
        action: &Action<Local, Place>,
        types: &BTreeMap<Variable, Type>,
    ) {
        let ty = |id: Variable| types.get(&id).copied().unwrap_or(Type::Int);
        match action {
            Action::Assign { register, value: e } => {
                let id = Variable::Register(f, *register);
                let what = self.value(f, e);
                self.store(id, ty(id), what);
            }
            Action::Havoc { register, range } => {
                let id = Variable::Register(f, *register);
                let what = range.map_or(of_type(ty(id)), |(lo, hi)| Interval::of(lo, hi));
                self.store(id, ty(id), what);
            }
            Action::Load { register, place } => {
                let id = Variable::Register(f, *register);
                let what = match place {
                    Place::Region(r, _) => self.get(Variable::Region(*r)),
                    Place::Memory(_) => Interval::ALL,
                };
                self.store(id, ty(id), what);
            }
            Action::Store { place, value: e } => {
                let what = self.value(f, e);
                match place {
                    Place::Region(r, _) => {
                        let id = Variable::Region(*r);
                        self.store(id, ty(id), what);
                    }
                    // It may be anywhere.
                    Place::Memory(_) => {
                        let regions: Vec<Variable> = types.keys().copied().collect();
                        for id in regions {
                            if matches!(id, Variable::Region(_)) {
                                self.store(id, ty(id), Interval::ALL);
                            }
                        }
                    }
                }
            }
            Action::Skip
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => {}
        }
    }

    fn value(&self, f: FamilyId, e: &Expr<Local>) -> Interval {
        let leaf = |l: &Local| match l {
            Local::Register(r) => self.get(Variable::Register(f, *r)),
            Local::SelfIndex | Local::Count(_) => Interval {
                lo: Some(0),
                hi: None,
            },
            Local::AddressOf(_) => Interval::ALL,
        };
        value(e, &leaf)
    }
}

/// Bounds of an expression.
fn value<A>(e: &Expr<A>, leaf: &dyn Fn(&A) -> Interval) -> Interval {
    let of = |e: &Expr<A>| value(e, leaf);
    match e {
        Expr::Const(c) => Interval::of(*c, *c),
        Expr::Atom(a) => leaf(a),
        Expr::Unary(op, a) => match op {
            Op1::Neg => of(a).negated(),
            Op1::Not => Interval::of(0, 1),
            // ~x = −x − 1
            Op1::BitNot => of(a).negated().plus(Interval::of(-1, -1)),
            Op1::Wrap { bits, signed } => {
                let (bits, signed) = (*bits, *signed);
                let (what, all) = (of(a), of_type(Type::Wrap { bits, signed }));
                if what.inside(all) { what } else { all }
            }
        },
        Expr::Binary(op, a, b) => binary(*op, of(a), of(b)),
        Expr::Ite(_, a, b) => of(a).join(of(b)),
    }
}

fn binary(op: Op2, a: Interval, b: Interval) -> Interval {
    let natural = |v: Interval| v.lo.is_some_and(|lo| lo >= 0);
    match op {
        Op2::Add => a.plus(b),
        Op2::Sub => a.plus(b.negated()),
        Op2::Mul => match a.ends().zip(b.ends()) {
            Some(((a, b), (c, d))) => {
                let all = [(a, c), (a, d), (b, c), (b, d)];
                let all = all.map(|(x, y)| x.checked_mul(y));
                let known = |v: Option<i128>| v.filter(|_| all.iter().all(Option::is_some));
                let each = || all.iter().flatten().copied();
                Interval::new(known(each().min()), known(each().max()))
            }
            None => Interval::ALL,
        },
        // Towards zero: nothing grows.
        Op2::Div => match a.ends() {
            Some((lo, hi)) => {
                let most = lo.abs().max(hi.abs());
                Interval::new(
                    Some(if natural(a) && natural(b) { 0 } else { -most }),
                    Some(most),
                )
            }
            None => Interval::ALL,
        },
        Op2::Rem => match b.ends() {
            Some((lo, hi)) => {
                let most = (lo.abs().max(hi.abs()) - 1).max(0);
                Interval::new(Some(if natural(a) { 0 } else { -most }), Some(most))
            }
            None => Interval::ALL,
        },
        Op2::BitAnd if natural(a) && natural(b) => {
            let hi = match (a.hi, b.hi) {
                (Some(x), Some(y)) => Some(x.min(y)),
                (x, y) => x.or(y),
            };
            Interval::new(Some(0), hi)
        }
        Op2::BitOr | Op2::BitXor if natural(a) && natural(b) => {
            let all = a.hi.zip(b.hi).and_then(|(x, y)| {
                let wide = u128::try_from(x.max(y)).ok()?;
                i128::try_from(wide.checked_add(1)?.checked_next_power_of_two()? - 1).ok()
            });
            Interval::new(Some(0), all)
        }
        Op2::Shr if natural(a) => Interval::new(Some(0), a.hi),
        Op2::BitAnd | Op2::BitOr | Op2::BitXor | Op2::Shl | Op2::Shr => Interval::ALL,
        Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge | Op2::And | Op2::Or => {
            Interval::of(0, 1)
        }
    }
}
