//! Numbers by their position: threads beside two of them, levels beside one.
//!
//! All integers are in a row of *slots*: those below −1, −1, the numbers of threads 0..n, n, and those above. Each thread or
//! level that is looked at has a slot of its own; what lies between is a gap. Only the last gap, and the first among
//! levels, is known to be empty (it is left out) or not; any other may be. A question that positions do
//! not answer has several answers, and each is gone on with ([`Positions::explore`]).

use std::cmp::Ordering;
use wattle_memory::rules::Stuck;
use wattle_model::{Domain, NoValue, Op1, Op2, Valued};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Number(i64),
    /// As many more than there are threads.
    Count(i64),
    Thread(u8),
    Level(u8),
    /// A thread that is not looked at.
    Other,
    /// Whatever it is.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    Threads,
    Levels,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// It has at least one number.
    some: bool,
    /// It may have any number of them.
    many: bool,
}

const POINT: Slot = Slot {
    some: true,
    many: false,
};

#[derive(Clone, Debug)]
pub struct Line {
    slots: Vec<Slot>,
    /// What is looked at, the first thread first.
    pub points: Vec<u8>,
}

/// Why positions do not say what a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsaid(pub &'static str);

impl Line {
    /// With the points in this order; `ends` says of the first and of the last gap whether it has something, if known.
    pub fn new(order: &[usize], ends: [Option<bool>; 2]) -> Line {
        let gap = |some| Slot { some, many: true };
        let mut slots = vec![gap(true), POINT];
        let mut points = vec![0; order.len()];
        let push_gap = |slots: &mut Vec<Slot>, known: Option<bool>| {
            if known != Some(false) {
                slots.push(gap(known == Some(true)));
            }
        };
        push_gap(&mut slots, ends[0]);
        for (i, p) in order.iter().enumerate() {
            points[*p] = slots.len() as u8;
            slots.push(POINT);
            let last = i + 1 == order.len();
            push_gap(&mut slots, if last { ends[1] } else { None });
        }
        slots.extend([POINT, gap(true)]);
        Line { slots, points }
    }

    /// The slots of 0..n.
    pub fn inner(&self) -> std::ops::Range<u8> {
        2..self.slots.len() as u8 - 2
    }

    /// A slot of 0..n that nothing looked at has.
    pub fn is_gap(&self, slot: u8) -> bool {
        self.inner().contains(&slot) && self.slots[usize::from(slot)].many
    }

    /// Where n + k may be with k from 1 on counted downwards, or k from 0 on upwards from 0.
    fn walk(&self, slots: impl Iterator<Item = u8>, k: i64) -> Vec<u8> {
        let (mut least, mut most) = (0, Some(0));
        let mut found = Vec::new();
        for s in slots {
            let slot = self.slots[usize::from(s)];
            if k >= least && (slot.many || most.is_none_or(|most| k <= most)) {
                found.push(s);
            }
            least += i64::from(slot.some);
            most = most.filter(|_| !slot.many).map(|most| most + 1);
        }
        found
    }

    fn slots_of(&self, v: Value, axis: Axis) -> Result<Vec<u8>, Unsaid> {
        let end = self.slots.len() as u8;
        Ok(match (v, axis) {
            (Value::Thread(s), Axis::Threads) | (Value::Level(s), Axis::Levels) => vec![s],
            (Value::Number(k), _) if k < 0 => vec![u8::from(k == -1)],
            (Value::Number(k), _) => self.walk(2..end, k),
            (Value::Count(k), _) if k >= 0 => vec![end - 2 + u8::from(k > 0)],
            (Value::Count(k), _) => self.walk((0..end - 2).rev(), -1 - k),
            (Value::Any, _) => (0..end).collect(),
            (Value::Other, Axis::Threads) => self.inner().filter(|s| self.is_gap(*s)).collect(),
            (Value::Other | Value::Thread(_), Axis::Levels) | (Value::Level(_), Axis::Threads) => {
                return Err(Unsaid("a level is compared with a thread"));
            }
        })
    }

    /// Where the next number may be.
    fn after(&self, slot: u8, up: bool) -> Vec<u8> {
        let mut found = Vec::new();
        if self.slots[usize::from(slot)].many {
            found.push(slot);
        }
        let mut at = slot;
        loop {
            let next = if up {
                at.checked_add(1)
            } else {
                at.checked_sub(1)
            };
            let Some((next, there)) = next.and_then(|n| Some((n, self.slots.get(usize::from(n))?)))
            else {
                return found;
            };
            found.push(next);
            if there.some {
                return found;
            }
            at = next;
        }
    }
}

/// How two threads and a level lie.
#[derive(Clone, Debug)]
pub struct Shape {
    pub threads: Line,
    pub levels: Line,
    /// How many threads there are at least, and at most.
    pub least: i64,
    pub most: Option<i64>,
    /// The level is the first, the last.
    pub ends: [bool; 2],
}

impl Shape {
    /// One thread alone, and every way in which two threads and a level may lie.
    pub fn all() -> Vec<Shape> {
        let mut all = vec![Shape {
            threads: Line::new(&[0], [Some(false); 2]),
            levels: Line::new(&[0], [Some(false); 2]),
            least: 1,
            most: Some(1),
            ends: [true; 2],
        }];
        for order in [[0, 1], [1, 0]] {
            for more in [true, false] {
                for ends in [[true, false], [false, true], [false, false]] {
                    let levels = Line::new(&[0], ends.map(|end| Some(!end)));
                    all.push(Shape {
                        threads: Line::new(&order, [None, Some(more)]),
                        levels,
                        least: 2,
                        most: None,
                        ends,
                    });
                }
            }
        }
        all
    }

    pub fn line(&self, axis: Axis) -> &Line {
        match axis {
            Axis::Threads => &self.threads,
            Axis::Levels => &self.levels,
        }
    }
}

/// Positions as values; of several answers one is taken, and all in turn.
pub struct Positions<'s> {
    pub shape: &'s Shape,
    given: Vec<usize>,
    /// The answers given, and out of how many.
    taken: Vec<(usize, usize)>,
}

impl<'s> Positions<'s> {
    pub fn new(shape: &'s Shape) -> Self {
        let (given, taken) = (Vec::new(), Vec::new());
        Positions {
            shape,
            given,
            taken,
        }
    }

    /// What comes of it, with all answers.
    pub fn explore<T>(shape: &'s Shape, mut run: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut d = Positions::new(shape);
        let mut all = Vec::new();
        loop {
            all.push(run(&mut d));
            let more = |(answer, of): &(usize, usize)| answer + 1 < *of;
            let Some(last) = d.taken.iter().rposition(more) else {
                return all;
            };
            d.given = d.taken.drain(..=last).map(|(answer, _)| answer).collect();
            d.given[last] += 1;
            d.taken.clear();
        }
    }

    pub fn choose<T: Copy>(&mut self, among: &[T]) -> Result<T, Unsaid> {
        if among.len() < 2 {
            return among
                .first()
                .copied()
                .ok_or(Unsaid("a value that nothing has"));
        }
        let answer = self.given.get(self.taken.len()).copied().unwrap_or(0);
        self.taken.push((answer, among.len()));
        among
            .get(answer)
            .copied()
            .ok_or(Unsaid("a value that nothing has"))
    }

    /// The value's slot.
    pub fn on(&mut self, axis: Axis, v: Value) -> Result<u8, Unsaid> {
        let slots = self.shape.line(axis).slots_of(v, axis)?;
        self.choose(&slots)
    }

    pub fn compare(&mut self, a: Value, b: Value) -> Result<Ordering, Unsaid> {
        let orders = self.orders(a, b)?;
        self.choose(&orders)
    }

    /// Every way in which the two may lie.
    pub fn orders(&self, a: Value, b: Value) -> Result<Vec<Ordering>, Unsaid> {
        const ALL: [Ordering; 3] = [Ordering::Less, Ordering::Equal, Ordering::Greater];
        let axis = |v: Value| match v {
            Value::Thread(_) | Value::Other => Some(Axis::Threads),
            Value::Level(_) => Some(Axis::Levels),
            Value::Number(_) | Value::Count(_) | Value::Any => None,
        };
        let axis = match (a, b) {
            (Value::Any, _) | (_, Value::Any) => return Ok(ALL.to_vec()),
            (Value::Number(a), Value::Number(b)) | (Value::Count(a), Value::Count(b)) => {
                return Ok(vec![a.cmp(&b)]);
            }
            (Value::Count(k), Value::Number(b)) => {
                let n = i128::from(b) - i128::from(k);
                let (least, most) = (
                    i128::from(self.shape.least),
                    self.shape.most.map(i128::from),
                );
                let mut orders = Vec::new();
                if least < n {
                    orders.push(Ordering::Less);
                }
                if least <= n && most.is_none_or(|most| n <= most) {
                    orders.push(Ordering::Equal);
                }
                if most.is_none_or(|most| n < most) {
                    orders.push(Ordering::Greater);
                }
                return Ok(orders);
            }
            (Value::Number(_), Value::Count(_)) => {
                let turned = self.orders(b, a)?;
                return Ok(turned.into_iter().map(Ordering::reverse).collect());
            }
            (a, b) => axis(a).or(axis(b)).ok_or(Unsaid("numbers"))?,
        };
        let line = self.shape.line(axis);
        let (a, b) = (line.slots_of(a, axis)?, line.slots_of(b, axis)?);
        let mut orders = Vec::new();
        for (s, t) in a.iter().flat_map(|s| b.iter().map(move |t| (*s, *t))) {
            match s == t && line.slots[usize::from(s)].many {
                true => orders.extend(ALL),
                false => orders.push(s.cmp(&t)),
            }
        }
        orders.sort();
        orders.dedup();
        Ok(orders)
    }

    fn add(&mut self, a: Value, k: i64) -> Valued<Self> {
        const FAR: i64 = 4;
        let large = Unsaid("a number is too large");
        let plus = |a: i64| a.checked_add(k).ok_or(NoValue::Refused(large));
        let (axis, mut slot) = match a {
            Value::Number(a) => return Ok(Value::Number(plus(a)?)),
            Value::Count(a) => return Ok(Value::Count(plus(a)?)),
            Value::Any => return Ok(Value::Any),
            Value::Thread(s) => (Axis::Threads, s),
            Value::Level(s) => (Axis::Levels, s),
            Value::Other => (Axis::Threads, refuse(self.on(Axis::Threads, a))?),
        };
        if !(-FAR..=FAR).contains(&k) {
            return Err(NoValue::Refused(large));
        }
        for _ in 0..k.abs() {
            let next = self.shape.line(axis).after(slot, k > 0);
            slot = refuse(self.choose(&next))?;
        }
        Ok(match axis {
            Axis::Threads => Value::Thread(slot),
            Axis::Levels => Value::Level(slot),
        })
    }
}

pub fn refuse<T>(of: Result<T, Unsaid>) -> Result<T, NoValue<Unsaid>> {
    of.map_err(NoValue::Refused)
}

pub fn stuck<T>(of: Result<T, Unsaid>) -> Result<T, Stuck<Value, Unsaid>> {
    of.map_err(Stuck::Refused)
}

impl Domain for Positions<'_> {
    type Value = Value;
    type Refusal = Unsaid;

    fn constant(&mut self, c: i64) -> Value {
        Value::Number(c)
    }

    fn unary(&mut self, op: Op1, a: Value) -> Valued<Self> {
        match (op, a) {
            (_, Value::Number(a)) => Ok(Value::Number(op.apply(a)?)),
            (Op1::Not, a) => Ok(Value::Number(i64::from(!self.truth(&a)))),
            (Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, Value::Any) => Ok(Value::Any),
            (Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, _) => {
                Err(NoValue::Refused(Unsaid("arithmetic on positions")))
            }
        }
    }

    fn binary(&mut self, op: Op2, a: Value, b: Value) -> Valued<Self> {
        if let (Value::Number(a), Value::Number(b)) = (a, b) {
            return Ok(Value::Number(op.apply(a, b)?));
        }
        let holds = match op {
            Op2::Eq => refuse(self.compare(a, b))?.is_eq(),
            Op2::Ne => refuse(self.compare(a, b))?.is_ne(),
            Op2::Lt => refuse(self.compare(a, b))?.is_lt(),
            Op2::Le => refuse(self.compare(a, b))?.is_le(),
            Op2::Gt => refuse(self.compare(a, b))?.is_gt(),
            Op2::Ge => refuse(self.compare(a, b))?.is_ge(),
            Op2::And => self.truth(&a) && self.truth(&b),
            Op2::Or => self.truth(&a) || self.truth(&b),
            Op2::Add | Op2::Sub => {
                return match (a, b) {
                    (Value::Any, _) | (_, Value::Any) => Ok(Value::Any),
                    (a, Value::Number(k)) if op == Op2::Add => self.add(a, k),
                    (Value::Number(k), b) if op == Op2::Add => self.add(b, k),
                    (a, Value::Number(k)) if k != i64::MIN => self.add(a, -k),
                    _ => Err(NoValue::Refused(Unsaid("arithmetic on positions"))),
                };
            }
            Op2::Mul | Op2::BitAnd | Op2::BitOr | Op2::BitXor
                if matches!((a, b), (Value::Any, _) | (_, Value::Any)) =>
            {
                return Ok(Value::Any);
            }
            Op2::Mul
            | Op2::Div
            | Op2::Rem
            | Op2::BitAnd
            | Op2::BitOr
            | Op2::BitXor
            | Op2::Shl
            | Op2::Shr => return Err(NoValue::Refused(Unsaid("arithmetic on positions"))),
        };
        Ok(Value::Number(i64::from(holds)))
    }

    /// Where positions refuse to say there is nothing to go on with: such a value was refused before.
    fn truth(&mut self, v: &Value) -> bool {
        !matches!(self.compare(*v, Value::Number(0)), Ok(Ordering::Equal))
    }

    fn within(&mut self, v: &Value, lo: i64, hi: i64) -> bool {
        let below = self.compare(*v, Value::Number(lo));
        let above = self.compare(*v, Value::Number(hi));
        matches!((below, above), (Ok(below), Ok(above)) if below.is_ge() && above.is_le())
    }
}
