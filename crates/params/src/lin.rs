//! Linear constraints over numbers, decided by Fourier–Motzkin elimination: cubes hold few of them.
//!
//! Unsatisfiability and entailment answers are exact over the rationals and therefore sound for
//! integers; "satisfiable" may be wrong for integers, which only makes cubes larger. Every overflow
//! counts as satisfiable.

use crate::slot::Slot;
use crate::work;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    Le,
    Lt,
    Eq,
    Ne,
}

/// Σ coefficient · slot + constant `op` 0. Terms are sorted and have no zero coefficient.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lin {
    pub terms: Vec<(Slot, i64)>,
    pub constant: i64,
    pub op: Op,
}

impl Lin {
    /// Normalised; `Err(truth)` if nothing is left but a constant. Strict integer constraints become
    /// weak ones.
    pub fn new(
        mut terms: Vec<(Slot, i64)>,
        constant: i64,
        op: Op,
        integer: bool,
    ) -> Result<Lin, bool> {
        terms.sort_unstable_by_key(|(s, _)| *s);
        let mut merged: Vec<(Slot, i64)> = Vec::with_capacity(terms.len());
        for (s, c) in terms {
            match merged.last_mut() {
                Some((t, k)) if *t == s => *k = k.saturating_add(c),
                _ => merged.push((s, c)),
            }
        }
        merged.retain(|(_, c)| *c != 0);
        let huge = |n: i64| n.unsigned_abs() > 1 << 60;
        if huge(constant) || merged.iter().any(|(_, c)| huge(*c)) {
            // Some arithmetic saturated: a constraint we cannot trust is one we do not have.
            return Err(true);
        }
        let (mut constant, mut op) = (constant, op);
        if integer && op == Op::Lt {
            op = Op::Le;
            constant = constant.saturating_add(1);
        }
        if merged.is_empty() {
            return Err(match op {
                Op::Le => constant <= 0,
                Op::Lt => constant < 0,
                Op::Eq => constant == 0,
                Op::Ne => constant != 0,
            });
        }
        let g = merged.iter().fold(0i64, |g, (_, c)| gcd(g, *c));
        if g > 1 {
            match op {
                Op::Eq | Op::Ne if constant % g != 0 && integer => return Err(op == Op::Ne),
                Op::Le if integer => {
                    merged.iter_mut().for_each(|(_, c)| *c /= g);
                    constant = -(-constant).div_euclid(g);
                }
                _ if constant % g == 0 => {
                    merged.iter_mut().for_each(|(_, c)| *c /= g);
                    constant /= g;
                }
                Op::Le | Op::Lt | Op::Eq | Op::Ne => {}
            }
        }
        if matches!(op, Op::Eq | Op::Ne) && merged[0].1 < 0 {
            merged.iter_mut().for_each(|(_, c)| *c = -*c);
            constant = -constant;
        }
        Ok(Lin {
            terms: merged,
            constant,
            op,
        })
    }

    pub fn coefficient(&self, slot: Slot) -> i64 {
        self.terms
            .iter()
            .find(|(s, _)| *s == slot)
            .map_or(0, |(_, c)| *c)
    }

    /// The negation, as alternatives.
    pub fn negated(&self, integer: bool) -> Vec<Lin> {
        let flip = |op| {
            let terms = self.terms.iter().map(|(s, c)| (*s, -c)).collect();
            Lin::new(terms, -self.constant, op, integer)
        };
        let same = |op| Lin::new(self.terms.clone(), self.constant, op, integer);
        let list = match self.op {
            Op::Le => vec![flip(Op::Lt)],
            Op::Lt => vec![flip(Op::Le)],
            Op::Eq => vec![same(Op::Lt), flip(Op::Lt)],
            Op::Ne => vec![same(Op::Eq)],
        };
        list.into_iter().flatten().collect()
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

/// One row Σ c·x + k ≤ 0 (or < 0) over numbered unknowns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    coefficients: Vec<i128>,
    constant: i128,
    strict: bool,
}

/// Rows beyond this number are not worth the work: call it satisfiable.
const ROWS: usize = 400;

/// Whether the constraints may have a solution. Disequalities are split, up to a few of them.
pub fn satisfiable(list: &[Lin], integer: bool) -> bool {
    if list.is_empty() {
        return true;
    }
    split(list, integer, 4)
}

fn split(list: &[Lin], integer: bool, budget: usize) -> bool {
    let plain: Vec<Lin> = list.iter().filter(|l| l.op != Op::Ne).cloned().collect();
    if !feasible(&plain) {
        return false;
    }
    // A disequality matters only if the rest forces equality.
    for l in list.iter().filter(|l| l.op == Op::Ne).take(budget) {
        let sides = Lin {
            op: Op::Eq,
            ..l.clone()
        }
        .negated(integer);
        let open = sides.into_iter().any(|side| {
            let mut with = plain.clone();
            with.push(side);
            feasible(&with)
        });
        if !open {
            return false;
        }
    }
    true
}

/// Fourier–Motzkin on the constraints without disequalities.
fn feasible(list: &[Lin]) -> bool {
    work::many(work::ROW, list.len());
    let mut slots: Vec<Slot> = list
        .iter()
        .flat_map(|l| l.terms.iter().map(|(s, _)| *s))
        .collect();
    slots.sort_unstable();
    slots.dedup();
    let mut rows = Vec::new();
    for l in list {
        let row = |sign: i128| Row {
            coefficients: slots
                .iter()
                .map(|s| sign * i128::from(l.coefficient(*s)))
                .collect(),
            constant: sign * i128::from(l.constant),
            strict: l.op == Op::Lt,
        };
        match l.op {
            Op::Le | Op::Lt => rows.push(row(1)),
            Op::Eq => rows.extend([row(1), row(-1)]),
            Op::Ne => {}
        }
    }
    for i in 0..slots.len() {
        match eliminate(rows, i) {
            Some(next) => rows = next,
            None => return true,
        }
        let bad = |r: &Row| {
            r.coefficients.iter().all(|c| *c == 0)
                && (r.constant > 0 || r.strict && r.constant == 0)
        };
        if rows.iter().any(bad) {
            return false;
        }
    }
    true
}

/// Combines every lower with every upper bound of unknown `i`; `None` if it grows too large.
fn eliminate(rows: Vec<Row>, i: usize) -> Option<Vec<Row>> {
    work::many(work::ROW, rows.len());
    let (mut upper, mut lower, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for r in rows {
        match r.coefficients[i].signum() {
            1 => upper.push(r),
            -1 => lower.push(r),
            _ => out.push(r),
        }
    }
    if upper.len() * lower.len() + out.len() > ROWS {
        return None;
    }
    for u in &upper {
        for l in &lower {
            let (a, b) = (-l.coefficients[i], u.coefficients[i]);
            let combine = |x: i128, y: i128| x.checked_mul(a)?.checked_add(y.checked_mul(b)?);
            let mut coefficients = Vec::with_capacity(u.coefficients.len());
            for (x, y) in u.coefficients.iter().zip(&l.coefficients) {
                coefficients.push(combine(*x, *y)?);
            }
            let mut constant = combine(u.constant, l.constant)?;
            let g = coefficients.iter().fold(0i128, |g, c| gcd128(g, *c));
            if g > 1 {
                let g2 = gcd128(g, constant);
                coefficients.iter_mut().for_each(|c| *c /= g2);
                constant /= g2;
            }
            out.push(Row {
                coefficients,
                constant,
                strict: u.strict || l.strict,
            });
        }
    }
    out.sort();
    out.dedup();
    Some(out)
}

fn gcd128(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Whether the constraints imply another one.
pub fn entails(list: &[Lin], goal: &Lin, integer: bool) -> bool {
    if list.iter().any(|l| syntactically(l, goal)) {
        return true;
    }
    if list.is_empty() {
        return false;
    }
    goal.negated(integer).into_iter().all(|not| {
        let mut with = list.to_vec();
        with.push(not);
        !satisfiable(&with, integer)
    })
}

fn syntactically(l: &Lin, goal: &Lin) -> bool {
    l.terms == goal.terms
        && match (l.op, goal.op) {
            (Op::Le, Op::Le) | (Op::Lt, Op::Lt | Op::Le) => l.constant >= goal.constant,
            (Op::Eq, Op::Eq) | (Op::Ne, Op::Ne) => l.constant == goal.constant,
            (Op::Eq, Op::Ne) => l.constant != goal.constant,
            (Op::Eq, Op::Le) => l.constant >= goal.constant,
            _ => false,
        }
}

/// Constraints on the other slots that hold for some value of `slot`.
pub fn project(list: &[Lin], slot: Slot, integer: bool) -> Vec<Lin> {
    let (with, mut out): (Vec<Lin>, Vec<Lin>) =
        list.iter().cloned().partition(|l| l.coefficient(slot) != 0);
    if let Some(eq) = with
        .iter()
        .find(|l| l.op == Op::Eq && l.coefficient(slot).abs() == 1)
    {
        for l in with.iter().filter(|l| *l != eq) {
            let factor = -l.coefficient(slot) * eq.coefficient(slot);
            let mut terms = l.terms.clone();
            terms.extend(eq.terms.iter().map(|(s, c)| (*s, c.saturating_mul(factor))));
            let constant = l
                .constant
                .saturating_add(eq.constant.saturating_mul(factor));
            out.extend(Lin::new(terms, constant, l.op, integer));
        }
        return out;
    }
    let bounds = |sign: i64| -> Vec<&Lin> {
        with.iter()
            .filter(|l| l.op != Op::Ne && (l.op == Op::Eq || l.coefficient(slot).signum() == sign))
            .collect()
    };
    for u in bounds(1) {
        for l in bounds(-1) {
            if std::ptr::eq(u, l) {
                continue;
            }
            let (cu, cl) = (u.coefficient(slot), l.coefficient(slot));
            let (a, b) = (
                cl.abs() * if cu < 0 { -1 } else { 1 },
                cu.abs() * if cl > 0 { -1 } else { 1 },
            );
            let mut terms: Vec<(Slot, i64)> = u
                .terms
                .iter()
                .map(|(s, c)| (*s, c.saturating_mul(a)))
                .collect();
            terms.extend(l.terms.iter().map(|(s, c)| (*s, c.saturating_mul(b))));
            let constant = u
                .constant
                .saturating_mul(a)
                .saturating_add(l.constant.saturating_mul(b));
            let op = if u.op == Op::Lt || l.op == Op::Lt {
                Op::Lt
            } else {
                Op::Le
            };
            out.extend(Lin::new(terms, constant, op, integer));
        }
    }
    out.sort();
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lin(terms: &[(u8, i64)], constant: i64, op: Op) -> Lin {
        let terms = terms
            .iter()
            .map(|(s, c)| (Slot::cell(u16::from(*s), &[]), *c))
            .collect();
        Lin::new(terms, constant, op, true).unwrap_or(Lin {
            terms: Vec::new(),
            constant,
            op,
        })
    }

    #[test]
    fn chains_of_bounds() {
        let list = [
            lin(&[(0, 1), (1, -1)], 0, Op::Lt),
            lin(&[(1, 1), (2, -1)], 0, Op::Lt),
        ];
        assert!(satisfiable(&list, true));
        assert!(entails(&list, &lin(&[(0, 1), (2, -1)], 2, Op::Le), true));
        assert!(!entails(&list, &lin(&[(0, 1), (2, -1)], 3, Op::Le), true));
        let mut more = list.to_vec();
        more.push(lin(&[(2, 1), (0, -1)], -1, Op::Le));
        assert!(!satisfiable(&more, true));
    }

    #[test]
    fn disequalities_bite_when_forced() {
        let list = [
            lin(&[(0, 1)], 0, Op::Le),
            lin(&[(0, -1)], 0, Op::Le),
            lin(&[(0, 1)], 0, Op::Ne),
        ];
        assert!(!satisfiable(&list, true));
        assert!(satisfiable(&list[1..], true));
    }

    #[test]
    fn projection_keeps_what_follows() {
        let list = [
            lin(&[(0, 1), (1, -1)], 1, Op::Le),
            lin(&[(1, 1), (2, -1)], 1, Op::Le),
        ];
        let left = project(&list, Slot::cell(1, &[]), true);
        assert_eq!(left, vec![lin(&[(0, 1), (2, -1)], 2, Op::Le)]);
        let eq = [
            lin(&[(0, 1), (1, -1)], -1, Op::Eq),
            lin(&[(0, 1)], -5, Op::Le),
        ];
        assert_eq!(
            project(&eq, Slot::cell(0, &[]), true),
            vec![lin(&[(1, 1)], -4, Op::Le)]
        );
    }
}
