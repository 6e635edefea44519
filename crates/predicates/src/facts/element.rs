//! What is known at one control state: the strongest facts of certain forms that hold of every point
//! joined so far.
//!
//! The forms are: linear equalities (the affine hull), bounds on a variable and on the difference of two
//! that have to do with each other, and that two such variables differ. Where both wrap around it is the
//! difference on the circle that is bounded. Of variables that hold what was stored at an index with a
//! remainder, bounds are also kept for each remainder of their own. For two variables that the program
//! tests for being equal, equalities and bounds are also kept of the points where they are: what was read
//! stands as long as the counter does (`s != seq || x == a`). A bound that keeps growing is given up, so an
//! element changes finitely often.

use std::collections::BTreeSet;
use wattle_logic::{Formula, Int, Term, Var, divides, eq, ge, le, ne, not, or};

/// The variables of a control state, and which of them are compared.
#[derive(Clone, Debug)]
pub struct Frame {
    pub vars: Vec<Var>,
    /// Variables of one class have to do with each other: one flows into, or is compared with, another.
    pub classes: Vec<u32>,
    /// How many values a variable has before it wraps around.
    pub circles: Vec<Option<i64>>,
    /// Variables whose remainders by a number are told apart.
    pub remainders: Vec<(usize, i64)>,
    /// Whether facts may say that two variables differ.
    pub differences: bool,
    /// Pairs of variables of which more is said where they are equal.
    pub pairs: Vec<(usize, usize)>,
}

/// Where a bound that grows may come to rest, ascending.
pub type Thresholds = BTreeSet<i64>;

/// A bound moves freely so often; then from threshold to threshold.
const FREE_RAISES: u8 = 6;
/// Equalities with larger numbers are left out: they are mostly an accident of the points seen so far, and
/// hard on the solver.
const MOST_COEFFICIENT: i128 = 16;

#[derive(Clone, Debug)]
pub struct Element {
    points: u64,
    base: Vec<i64>,
    /// Directions in which points differ from the base, each with its pivot column; fully reduced.
    rows: Vec<(usize, Vec<i128>)>,
    /// Whether the hull could not be followed in the machine's numbers.
    no_hull: bool,
    /// At most this is `x_i - x_j`; the last index is the number zero.
    upper: Vec<Bound>,
    /// `x_i` is never `x_j`, for `i < j`.
    differ: Vec<bool>,
    /// For each remainder that the frame tells apart, once it was seen: bounds on `x_i - x_j`, then on
    /// `x_j - x_i`, for the variable `x_i` and every `x_j`.
    apart: Vec<Vec<Option<Vec<Bound>>>>,
    /// What is known where the two variables of each pair of the frame are equal.
    equal: Vec<Element>,
}

#[derive(Clone, Copy, Debug)]
struct Bound {
    most: Option<i64>,
    raises: u8,
}

impl Bound {
    /// The bound lets this value through; says whether it had to move.
    fn raise(&mut self, to: Option<i64>, thresholds: &Thresholds) -> bool {
        let Some(most) = self.most else { return false };
        if to.is_some_and(|d| d <= most) {
            return false;
        }
        self.raises = self.raises.saturating_add(1);
        let last = thresholds.last().copied().unwrap_or(0);
        let free = self.raises <= FREE_RAISES;
        self.most = to.filter(|d| *d <= last).and_then(|d| match free {
            true => Some(d),
            false => thresholds.range(d..).next().copied(),
        });
        true
    }
}

impl Element {
    pub fn nothing() -> Self {
        Element {
            points: 0,
            base: Vec::new(),
            rows: Vec::new(),
            no_hull: false,
            upper: Vec::new(),
            differ: Vec::new(),
            apart: Vec::new(),
            equal: Vec::new(),
        }
    }

    /// What has these bounds, which lack no chain, and nothing else.
    pub fn of_bounds(bounds: Vec<Option<i64>>) -> Self {
        Element {
            points: 1,
            no_hull: true,
            differ: vec![false; bounds.len()],
            upper: bounds
                .into_iter()
                .map(|most| Bound { most, raises: 0 })
                .collect(),
            ..Element::nothing()
        }
    }

    pub fn is_nothing(&self) -> bool {
        self.points == 0
    }

    /// Takes the point in; says whether something became weaker.
    pub fn join(&mut self, frame: &Frame, point: &[i64], thresholds: &Thresholds) -> bool {
        let mut changed = self.join_alone(frame, point, thresholds);
        if self.equal.is_empty() {
            let all = frame.pairs.iter();
            self.equal = all.map(|_| Element::nothing()).collect();
        }
        for ((i, j), case) in frame.pairs.iter().zip(&mut self.equal) {
            if point[*i] == point[*j] {
                changed |= case.join_alone(frame, point, thresholds);
            }
        }
        changed
    }

    /// The same without what is known where two variables are equal.
    fn join_alone(&mut self, frame: &Frame, point: &[i64], thresholds: &Thresholds) -> bool {
        let n = point.len();
        let at = |i: usize| if i < n { point[i] } else { 0 };
        self.points += 1;
        let distance = |i: usize, j: usize| frame.distance(i, j, at(i).checked_sub(at(j))?);
        if self.points == 1 {
            self.base = point.to_vec();
            for i in 0..=n {
                for j in 0..=n {
                    let most = distance(i, j).filter(|_| frame.compares(i, j));
                    self.upper.push(Bound { most, raises: 0 });
                    let apart = i < j && frame.compares(i, j) && at(i) != at(j);
                    self.differ.push(apart && frame.differences);
                }
            }
            let all = frame.remainders.iter();
            self.apart = all.map(|(_, m)| vec![None; *m as usize]).collect();
        }
        let mut changed = self.widen_hull(point) || self.points == 1;
        for (k, (i, m)) in frame.remainders.iter().enumerate() {
            let there = &mut self.apart[k][at(*i).rem_euclid(*m) as usize];
            let new = there.is_none();
            let bounds = there.get_or_insert_default();
            for (way, j) in [0, 1]
                .into_iter()
                .flat_map(|w| (0..=n).map(move |j| (w, j)))
            {
                let (a, b) = if way == 0 { (*i, j) } else { (j, *i) };
                let to = distance(a, b).filter(|_| frame.compares(*i, j));
                let here = way * (n + 1) + j;
                match new {
                    true => bounds.push(Bound {
                        most: to,
                        raises: 0,
                    }),
                    false => changed |= bounds[here].raise(to, thresholds),
                }
            }
            changed |= new;
        }
        for i in 0..=n {
            for j in 0..=n {
                let here = i * (n + 1) + j;
                if self.differ[here] && at(i) == at(j) {
                    self.differ[here] = false;
                    changed = true;
                }
                // Most are not bounded, or not any more.
                if self.upper[here].most.is_some() {
                    changed |= self.upper[here].raise(distance(i, j), thresholds);
                }
            }
        }
        changed
    }

    fn widen_hull(&mut self, point: &[i64]) -> bool {
        // Points in all directions leave no equality.
        if self.no_hull || self.rows.len() == point.len() {
            return false;
        }
        let differences = point.iter().zip(&self.base);
        let mut new: Vec<i128> = differences
            .map(|(a, b)| i128::from(*a) - i128::from(*b))
            .collect();
        for (pivot, row) in &self.rows {
            if new[*pivot] != 0 {
                match combined(&new, row, *pivot) {
                    Some(reduced) => new = reduced,
                    None => return self.give_up_hull(),
                }
            }
        }
        let Some(pivot) = new.iter().rposition(|x| *x != 0) else {
            return false;
        };
        let mut rows = Vec::new();
        for (p, row) in &self.rows {
            let reduced = match row[pivot] {
                0 => Some(row.clone()),
                _ => combined(row, &new, pivot),
            };
            match reduced {
                Some(reduced) => rows.push((*p, reduced)),
                None => return self.give_up_hull(),
            }
        }
        rows.push((pivot, new));
        self.rows = rows;
        true
    }

    fn give_up_hull(&mut self) -> bool {
        self.no_hull = true;
        true
    }

    /// The facts, without those that others imply. Not for nothing, of which everything is true.
    pub fn facts(&self, frame: &Frame) -> Vec<Formula> {
        let n = frame.vars.len();
        let mut facts = self.equalities(frame);
        let side = |i: usize| match frame.vars.get(i) {
            Some(v) => Term::from(*v),
            None => Term::constant(0),
        };
        let width = n + 1;
        let closed = self.closed(frame);
        // Of variables at a fixed distance the equalities speak; one stands for all.
        let fixed = |i: usize, j: usize| {
            let (there, back) = (closed[i * width + j], closed[j * width + i]);
            there.zip(back).is_some_and(|(a, b)| a + b == 0)
        };
        // Zero before all others: two that stand for the same would imply each other's bounds.
        let first = |i: usize| i == n || !fixed(i, n) && (0..i).all(|j| !fixed(i, j));
        let firsts: Vec<usize> = (0..=n).filter(|i| first(*i)).collect();
        let all_equalities = !self.no_hull && facts.len() + self.rows.len() == n;
        if !all_equalities {
            for i in (0..n).filter(|i| !first(*i)) {
                let j = firsts.iter().find(|j| fixed(i, **j));
                if let Some((j, d)) = j.and_then(|j| Some((*j, closed[i * width + j]?))) {
                    facts.push(eq(side(i) - side(j), d));
                }
            }
        }
        for &i in &firsts {
            for &j in &firsts {
                let Some(most) = closed[i * width + j].filter(|_| i != j) else {
                    continue;
                };
                let implied = firsts.iter().any(|&k| {
                    let through = closed[i * width + k].zip(closed[k * width + j]);
                    k != i && k != j && through.is_some_and(|(a, b)| a + b <= most)
                });
                if !implied && !fixed(i, j) {
                    facts.push(le(side(i) - side(j), most));
                }
                let apart = i < j && self.differ[i * width + j] && frame.circle(i, j).is_none();
                let strict = most < 0 || closed[j * width + i].is_some_and(|m| m < 0);
                if apart && !strict {
                    facts.push(ne(side(i), side(j)));
                }
            }
        }
        self.circular(frame, &mut facts);
        self.by_remainder(frame, &closed, &firsts, &mut facts);
        for (pair, case) in frame.pairs.iter().zip(&self.equal) {
            self.where_equal(frame, *pair, case, &mut facts);
        }
        facts.retain(|f| *f != Formula::True);
        facts
    }

    /// Where two variables wrap around: between which distances on the circle one is from the other, and
    /// that they differ.
    fn circular(&self, frame: &Frame, facts: &mut Vec<Formula>) {
        let width = frame.vars.len() + 1;
        for i in 0..frame.vars.len() {
            for j in i + 1..frame.vars.len() {
                let Some(size) = frame.circle(i, j) else {
                    continue;
                };
                let apart = Term::from(frame.vars[i]) - Term::from(frame.vars[j]);
                let most = self.upper[i * width + j].most;
                let least = self.upper[j * width + i].most.map(|m| -m);
                let near = |d: &i64| d.abs() < size / 4;
                let bounded = most.filter(near).zip(least.filter(near));
                if let Some((most, least)) = bounded {
                    // One of the intervals from `least - size`, from `least` and from `least + size`.
                    facts.push(ge(apart.clone(), least - size));
                    let gap = |a: i64, b: i64| or([le(apart.clone(), a), ge(apart.clone(), b)]);
                    facts.push(gap(most - size, least));
                    facts.push(gap(most, least + size));
                    facts.push(le(apart.clone(), most + size));
                }
                let excluded = bounded.is_some_and(|(most, least)| most < 0 || least > 0);
                if self.differ[i * width + j] && !excluded {
                    facts.push(ne(apart, 0));
                }
            }
        }
    }

    /// What more is known for a remainder of a variable than for all.
    fn by_remainder(
        &self,
        frame: &Frame,
        closed: &[Option<i64>],
        firsts: &[usize],
        facts: &mut Vec<Formula>,
    ) {
        let width = frame.vars.len() + 1;
        let less = |a: Option<i64>, b: Option<i64>| a.is_some_and(|a| b.is_none_or(|b| a < b));
        for ((i, m), seen) in frame.remainders.iter().zip(&self.apart) {
            let x = Term::from(frame.vars[*i]);
            for (r, bounds) in seen.iter().enumerate() {
                let here = divides(*m, x.clone() - r as i64);
                let Some(bounds) = bounds else {
                    facts.push(not(&here));
                    continue;
                };
                for way in [0, 1] {
                    let at = |j: usize| bounds[way * width + j].most;
                    let known = |j: usize, k: usize| match way {
                        0 => closed[j * width + k],
                        _ => closed[k * width + j],
                    };
                    for &j in firsts.iter().filter(|j| **j != *i) {
                        let through = |k: &usize| {
                            let sum = at(*k).zip(known(*k, j)).map(|(a, b)| a + b);
                            *k != j && *k != *i && sum.is_some() && !less(at(j), sum)
                        };
                        if !less(at(j), known(*i, j)) || firsts.iter().any(through) {
                            continue;
                        }
                        let y = frame
                            .vars
                            .get(j)
                            .map_or(Term::default(), |v| Term::from(*v));
                        let difference = if way == 0 {
                            x.clone() - y
                        } else {
                            y - x.clone()
                        };
                        let bound = le(difference, at(j).unwrap_or(0));
                        facts.push(or([not(&here), bound]));
                    }
                }
            }
        }
    }

    /// What more is known where the two variables are equal than follows from that.
    fn where_equal(
        &self,
        frame: &Frame,
        (x, y): (usize, usize),
        case: &Element,
        facts: &mut Vec<Formula>,
    ) {
        let width = frame.vars.len() + 1;
        let apart = ne(Term::from(frame.vars[x]), Term::from(frame.vars[y]));
        let mut say = |fact: Formula| {
            // One name for both.
            let fact = fact.rename(&|v| if v == frame.vars[y] { frame.vars[x] } else { v });
            if fact != Formula::True {
                facts.push(or([apart.clone(), fact]));
            }
        };
        if case.is_nothing() {
            return say(Formula::False);
        }
        // Points of the hull where the two are equal are of one dimension less, unless they always are.
        let always = self.rows.iter().all(|(_, row)| row[x] == row[y]);
        let flat = self.rows.len() - usize::from(!always);
        if self.no_hull || case.rows.len() < flat {
            case.equalities(frame).into_iter().for_each(&mut say);
        }
        let mut known: Vec<Option<i64>> = self.upper.iter().map(|b| b.most).collect();
        (known[x * width + y], known[y * width + x]) = (Some(0), Some(0));
        let known = closed(frame, known);
        let closed = case.closed(frame);
        let side = |i: usize| match frame.vars.get(i) {
            Some(v) => Term::from(*v),
            None => Term::constant(0),
        };
        for i in (0..width).filter(|i| *i != y) {
            for j in (0..width).filter(|j| *j != y && *j != i) {
                let here = i * width + j;
                let Some(most) = closed[here] else { continue };
                let implied = (0..width).any(|k| {
                    let through = closed[i * width + k].zip(closed[k * width + j]);
                    k != i && k != j && k != y && through.is_some_and(|(a, b)| a + b <= most)
                });
                if known[here].is_none_or(|k| most < k) && !implied {
                    say(le(side(i) - side(j), most));
                }
            }
        }
    }

    /// The equalities of the affine hull, one for each column that is no pivot.
    fn equalities(&self, frame: &Frame) -> Vec<Formula> {
        let mut facts = Vec::new();
        if self.no_hull {
            return facts;
        }
        for column in 0..frame.vars.len() {
            if self.rows.iter().any(|(p, _)| *p == column) {
                continue;
            }
            // x_c - b_c = sum of row[c] / row[p] * (x_p - b_p)
            let mut scale: i128 = 1;
            let mut fits = true;
            for (p, row) in &self.rows {
                let divisor = gcd(row[column], row[*p]).max(1);
                let below = row[*p].abs() / divisor;
                scale = scale / gcd(scale, below).max(1) * below;
                fits &= scale < MOST_COEFFICIENT;
                if !fits {
                    break;
                }
            }
            let mut term = Term::default();
            let mut add = |k: i128, i: usize| {
                fits &= k.abs() < MOST_COEFFICIENT;
                let k = Int::from(k);
                let moved = Term::from(frame.vars[i]) - Term::constant(self.base[i]);
                term = term.plus_scaled(&k, &moved);
            };
            if scale < MOST_COEFFICIENT {
                add(scale, column);
                for (p, row) in &self.rows {
                    if row[column] != 0 {
                        add(-(scale * row[column] / row[*p]), *p);
                    }
                }
            }
            if fits {
                facts.push(eq(term, 0));
            }
        }
        facts
    }

    /// The bounds with what follows from chains of them.
    fn closed(&self, frame: &Frame) -> Vec<Option<i64>> {
        closed(frame, self.upper.iter().map(|b| b.most).collect())
    }
}

/// Bounds on differences with what follows from chains of them.
fn closed(frame: &Frame, mut closed: Vec<Option<i64>>) -> Vec<Option<i64>> {
    let width = frame.vars.len() + 1;
    for (here, bound) in closed.iter_mut().enumerate() {
        // Distances on a circle do not add up.
        if frame.circle(here / width, here % width).is_some() {
            *bound = None;
        }
    }
    for k in 0..width {
        for i in 0..width {
            let Some(a) = closed[i * width + k] else {
                continue;
            };
            for j in 0..width {
                let Some(b) = closed[k * width + j] else {
                    continue;
                };
                let through = a.saturating_add(b);
                let here = &mut closed[i * width + j];
                if here.is_none_or(|h| through < h) {
                    *here = Some(through);
                }
            }
        }
    }
    closed
}

impl Frame {
    /// The size of the circle that both lie on, if they do.
    fn circle(&self, i: usize, j: usize) -> Option<i64> {
        let (a, b) = (self.circles.get(i)?, self.circles.get(j)?);
        a.filter(|_| i != j && a == b && self.compares(i, j))
    }

    /// How far apart two variables are that differ by so much: on their circle the short way.
    fn distance(&self, i: usize, j: usize, difference: i64) -> Option<i64> {
        match self.circle(i, j) {
            Some(size) => Some((difference + size / 2).rem_euclid(size) - size / 2),
            None => Some(difference),
        }
    }

    fn compares(&self, i: usize, j: usize) -> bool {
        match (self.classes.get(i), self.classes.get(j)) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        }
    }
}

/// `a`, with a multiple of `row` taken off so that the pivot is zero; divided by what is common.
fn combined(a: &[i128], row: &[i128], pivot: usize) -> Option<Vec<i128>> {
    let divisor = gcd(a[pivot], row[pivot]);
    let (x, y) = (row[pivot] / divisor, a[pivot] / divisor);
    let mut out = Vec::with_capacity(a.len());
    for (a, r) in a.iter().zip(row) {
        out.push(a.checked_mul(x)?.checked_sub(r.checked_mul(y)?)?);
    }
    let common = out.iter().fold(0, |g, v| gcd(g, *v));
    if common > 1 {
        out.iter_mut().for_each(|v| *v /= common);
    }
    Some(out)
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(1)
}
