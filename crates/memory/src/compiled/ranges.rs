//! Which values registers and cells take: an interval each, found by running all steps over
//! intervals, without regard to order, for a bounded number of rounds.
//!
//! This is a guess that makes states small, not an analysis anyone relies on: the machine checks
//! every value it packs, and where one does not fit the range is widened and the search begun anew.

use wattle_model::graph::Action;
use wattle_model::instance::{Address, Initial};
use wattle_model::{Expr, Instance, Op1, Op2, RegisterId, Type};

/// Both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub lo: i64,
    pub hi: i64,
}

/// The values of an interval that are whole strides from its lower end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub lo: i64,
    pub hi: i64,
    /// At least 1.
    pub stride: i64,
}

impl Range {
    fn of(i: Interval) -> Self {
        Range {
            lo: i.lo,
            hi: i.hi,
            stride: 1,
        }
    }

    pub fn single(value: i64) -> Self {
        Range {
            lo: value,
            hi: value,
            stride: 1,
        }
    }

    /// The smallest range with the value in it as well.
    pub fn with(self, value: i64) -> Self {
        let away = value.abs_diff(self.lo);
        let stride = if self.lo == self.hi {
            away
        } else {
            gcd(self.stride as u64, away)
        };
        Range {
            lo: self.lo.min(value),
            hi: self.hi.max(value),
            stride: i64::try_from(stride).unwrap_or(1).max(1),
        }
    }

    /// The smallest range with the values of both.
    pub fn join(self, other: Range) -> Self {
        if self == other {
            return self;
        }
        let strides = |r: Range| if r.lo == r.hi { 0 } else { r.stride as u64 };
        let stride = gcd(
            gcd(strides(self), strides(other)),
            self.lo.abs_diff(other.lo),
        );
        Range {
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
            stride: i64::try_from(stride).unwrap_or(1).max(1),
        }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A register or a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Register { thread: u32, register: u32 },
    Cell(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    pub cells: Vec<Range>,
    pub registers: Vec<Vec<Range>>,
}

/// Intervals while they are being found.
struct Guess {
    cells: Vec<Interval>,
    registers: Vec<Vec<Interval>>,
}

const ROUNDS: usize = 24;
/// Steps and cells looked at before the guess must do.
const WORK: usize = 1 << 24;

/// Values of a register or cell that are few.
const FEW: u64 = 1 << 12;

/// Whether registers and cells take few values each, whatever the order of steps. `false` may mean
/// that this is not known.
pub fn are_few(instance: &Instance) -> bool {
    let (guess, closed) = Guess::infer(instance);
    let mut all = guess.cells.iter().chain(guess.registers.iter().flatten());
    closed && all.all(|i| i.hi.abs_diff(i.lo) < FEW)
}

/// Whether registers and cells take finitely many values each, by their types or because no step leads out of
/// some, whatever the order. `false` may mean that this is not known.
pub fn are_bounded(instance: &Instance) -> bool {
    let (guess, closed) = Guess::infer(instance);
    let types = instance.cells.iter().map(|c| c.ty).chain(
        (instance.threads.iter())
            .flat_map(|t| &t.registers)
            .map(|r| r.ty),
    );
    let all = guess.cells.iter().chain(guess.registers.iter().flatten());
    let inside =
        |(i, ty): (&Interval, Type)| ty.bounds().is_some() || (i.lo > i64::MIN && i.hi < i64::MAX);
    closed && all.zip(types).all(inside)
}

impl Ranges {
    pub fn infer(instance: &Instance) -> Self {
        let (guess, _) = Guess::infer(instance);
        let ranges = |all: &[Interval]| all.iter().map(|i| Range::of(*i)).collect();
        Ranges {
            cells: ranges(&guess.cells),
            registers: guess.registers.iter().map(|r| ranges(r)).collect(),
        }
    }

    pub fn get_mut(&mut self, slot: Slot) -> &mut Range {
        match slot {
            Slot::Cell(c) => &mut self.cells[c as usize],
            Slot::Register { thread, register } => {
                &mut self.registers[thread as usize][register as usize]
            }
        }
    }

    /// The values of both.
    pub fn join(&mut self, other: &Ranges) {
        let registers = self.registers.iter_mut().flatten();
        let mine = self.cells.iter_mut().chain(registers);
        let theirs = other.cells.iter().chain(other.registers.iter().flatten());
        for (mine, theirs) in mine.zip(theirs) {
            *mine = mine.join(*theirs);
        }
    }

    /// Makes room for a value that did not fit, and for more of its kind.
    pub fn widen(&mut self, slot: Slot, ty: Type, value: i64) {
        let range = self.get_mut(slot);
        let mut wider = range.with(value);
        if range.lo == range.hi {
            *range = wider;
            return;
        }
        // Twice the room in the direction the value went, so that counters are rarely widened.
        let room = i64::try_from(wider.hi.abs_diff(wider.lo)).unwrap_or(i64::MAX);
        let room = room - room % wider.stride;
        let (lo, hi) = ty.bounds().unwrap_or((i64::MIN, i64::MAX));
        if value < range.lo {
            let lower = wider.lo.checked_sub(room).filter(|l| lo <= *l);
            wider.lo = lower.unwrap_or(wider.lo);
        }
        if value > range.hi {
            let higher = wider.hi.checked_add(room).filter(|h| *h <= hi);
            wider.hi = higher.unwrap_or(wider.hi);
        }
        *range = wider;
    }
}

impl Guess {
    /// Intervals, and whether no step leads out of them.
    fn infer(instance: &Instance) -> (Self, bool) {
        let initial = |init: Initial, ty: Type| match (init, ty.bounds()) {
            (Initial::Value(v), _) => Interval { lo: v, hi: v },
            (Initial::Any, Some((lo, hi))) => Interval { lo, hi },
            (Initial::Any, None) => Interval::FULL,
        };
        let cells = instance.cells.iter().map(|c| initial(c.init, c.ty));
        let registers = instance.threads.iter().map(|t| {
            let registers = t.registers.iter();
            registers.map(|r| initial(r.init, r.ty)).collect()
        });
        let mut guess = Guess {
            cells: cells.collect(),
            registers: registers.collect(),
        };
        let mut work = 0;
        for _ in 0..ROUNDS {
            let changed = guess.round(instance, &mut work);
            if work > WORK {
                break;
            }
            if !changed {
                return (guess, true);
            }
        }
        (guess, false)
    }

    fn round(&mut self, instance: &Instance, work: &mut usize) -> bool {
        let mut changed = false;
        for (t, thread) in instance.threads.iter().enumerate() {
            for step in &thread.steps {
                *work += 1;
                if *work > WORK {
                    return changed;
                }
                let (register, value) = match &step.action {
                    Action::Assign { register, value } => (register, self.eval(t, value)),
                    Action::Havoc { register, range } => {
                        let ty = thread.registers[register.index()].ty;
                        let (lo, hi) = range.or(ty.bounds()).unwrap_or((i64::MIN, i64::MAX));
                        (register, Interval { lo, hi })
                    }
                    Action::Load { register, place } => {
                        let cells = self.cells_of(t, place);
                        *work += cells.len();
                        let hull = cells.map(|c| self.cells[c]).reduce(Interval::join);
                        let Some(hull) = hull else { continue };
                        (register, hull)
                    }
                    Action::Store { place, value } => {
                        let value = self.eval(t, value);
                        let cells = self.cells_of(t, place);
                        *work += cells.len();
                        for c in cells {
                            let admitted = value.within(instance.cells[c].ty);
                            changed |= self.cells[c].grow(admitted);
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
                let admitted = value.within(thread.registers[register.index()].ty);
                changed |= self.registers[t][register.index()].grow(admitted);
            }
        }
        changed
    }

    fn cells_of(&self, t: usize, place: &Address) -> std::ops::Range<usize> {
        match place {
            Address::Cell(c) => c.index()..c.index() + 1,
            Address::Computed {
                base,
                length,
                index,
            } => {
                let index = self.eval(t, index);
                let clip = |v: i64| v.clamp(0, i64::from(*length)) as usize;
                let first = base.index();
                first + clip(index.lo)..first + clip(index.hi.saturating_add(1))
            }
        }
    }

    /// The interval of what is about to be cut, if none of its sums, differences and products leaves
    /// the machine's numbers.
    fn exact(&self, t: usize, e: &Expr<RegisterId>) -> Option<Interval> {
        let Expr::Binary(op @ (Op2::Add | Op2::Sub | Op2::Mul | Op2::Shl), a, b) = e else {
            return Some(self.eval(t, e));
        };
        let (a, b) = (self.exact(t, a)?, self.exact(t, b)?);
        let fits = |f: fn(i64, i64) -> Option<i64>| {
            let corners = [(a.lo, b.lo), (a.lo, b.hi), (a.hi, b.lo), (a.hi, b.hi)];
            corners.into_iter().all(|(x, y)| f(x, y).is_some())
        };
        let exact: fn(i64, i64) -> Option<i64> = if *op == Op2::Add {
            i64::checked_add
        } else if *op == Op2::Sub {
            i64::checked_sub
        } else if *op == Op2::Mul {
            i64::checked_mul
        } else {
            |x, y| Op2::Shl.apply(x, y).ok()
        };
        fits(exact).then(|| a.binary(*op, b))
    }

    fn eval(&self, t: usize, e: &Expr<RegisterId>) -> Interval {
        match e {
            Expr::Const(c) => Interval { lo: *c, hi: *c },
            Expr::Atom(r) => self.registers[t][r.index()],
            Expr::Unary(op @ Op1::Wrap { bits, signed }, a) => match self.exact(t, a) {
                Some(interval) => interval.unary(*op),
                // What leaves the machine's numbers comes back anywhere.
                None => Interval::FULL.within(Type::Wrap {
                    bits: *bits,
                    signed: *signed,
                }),
            },
            Expr::Unary(op, a) => self.eval(t, a).unary(*op),
            Expr::Binary(op, a, b) => self.eval(t, a).binary(*op, self.eval(t, b)),
            Expr::Ite(_, a, b) => self.eval(t, a).join(self.eval(t, b)),
        }
    }
}

impl Interval {
    pub const FULL: Interval = Interval {
        lo: i64::MIN,
        hi: i64::MAX,
    };

    const TRUTH: Interval = Interval { lo: 0, hi: 1 };

    pub fn join(self, other: Interval) -> Interval {
        Interval {
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
        }
    }

    fn grow(&mut self, other: Interval) -> bool {
        let joined = self.join(other);
        let changed = joined != *self;
        *self = joined;
        changed
    }

    /// What of the interval a type lets in.
    fn within(self, ty: Type) -> Interval {
        let Some((lo, hi)) = ty.bounds() else {
            return self;
        };
        if lo <= self.lo && self.hi <= hi {
            return self;
        }
        match ty {
            Type::Wrap { .. } => Interval { lo, hi },
            Type::Int | Type::Range { .. } | Type::Thread(_) => Interval {
                lo: self.lo.clamp(lo, hi),
                hi: self.hi.clamp(lo, hi),
            },
        }
    }

    /// The hull of some exact results, cut to what the machine can hold.
    fn hull(values: impl IntoIterator<Item = i128>) -> Interval {
        let clip = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        let (mut lo, mut hi) = (i128::MAX, i128::MIN);
        for v in values {
            lo = lo.min(v);
            hi = hi.max(v);
        }
        Interval {
            lo: clip(lo),
            hi: clip(hi),
        }
    }

    fn unary(self, op: Op1) -> Interval {
        let (lo, hi) = (i128::from(self.lo), i128::from(self.hi));
        match op {
            Op1::Neg => Interval::hull([-lo, -hi]),
            Op1::Not => Interval::TRUTH,
            Op1::BitNot => Interval::hull([!lo, !hi]),
            Op1::Wrap { bits, signed } => self.within(Type::Wrap { bits, signed }),
        }
    }

    fn binary(self, op: Op2, other: Interval) -> Interval {
        let a = [i128::from(self.lo), i128::from(self.hi)];
        let b = [i128::from(other.lo), i128::from(other.hi)];
        let corners = |f: &dyn Fn(i128, i128) -> i128| {
            Interval::hull([f(a[0], b[0]), f(a[0], b[1]), f(a[1], b[0]), f(a[1], b[1])])
        };
        let most = |v: [i128; 2]| v[0].abs().max(v[1].abs());
        match op {
            Op2::Add => corners(&|x, y| x + y),
            Op2::Sub => corners(&|x, y| x - y),
            Op2::Mul => corners(&|x, y| x * y),
            Op2::Div => {
                let m = most(a);
                Interval::hull([
                    if a[0] >= 0 && b[0] >= 0 { 0 } else { -m },
                    m.max(a[1].min(m)),
                ])
            }
            Op2::Rem => {
                let m = most(a).min((most(b) - 1).max(0));
                Interval::hull([if a[0] >= 0 { 0 } else { -m }, if a[1] > 0 { m } else { 0 }])
            }
            Op2::BitAnd if a[0] >= 0 && b[0] >= 0 => Interval::hull([0, a[1].min(b[1])]),
            Op2::BitAnd if a[0] >= 0 => Interval::hull([0, a[1]]),
            Op2::BitAnd if b[0] >= 0 => Interval::hull([0, b[1]]),
            Op2::BitAnd | Op2::BitOr | Op2::BitXor => {
                let m = most(a).max(most(b)).max(1) as u128;
                let top = (1i128 << (128 - m.leading_zeros())) - 1;
                let positive = a[0] >= 0 && b[0] >= 0;
                Interval::hull([if positive { 0 } else { -top - 1 }, top])
            }
            Op2::Shl => corners(&|x, y| x << y.clamp(0, 63)),
            Op2::Shr => corners(&|x, y| x >> y.clamp(0, 63)),
            Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge | Op2::And | Op2::Or => {
                Interval::TRUTH
            }
        }
    }
}
