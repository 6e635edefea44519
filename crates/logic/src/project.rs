//! Existential quantifier elimination over the integers.
//!
//! A conjunction with an equality for the variable is solved by substitution
//! (with a divisibility where the coefficient is not a unit); one where the
//! variable's lower or upper bounds all have unit coefficients by
//! Fourier–Motzkin, which is exact then; anything else by Cooper's method. All
//! of it is exact; `None` means that the result grew beyond the limit.

use crate::atom::{Atom, Rel};
use crate::formula::{Formula, and, divides, or};
use crate::int::Int;
use crate::term::{Term, Var};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Results beyond this many nodes are refused.
const MAX_SIZE: usize = 4000;
/// Cooper's method is refused beyond this many substitutions for one variable.
const MAX_CASES: i64 = 400;

/// `∃ vars. f`, or `None` if it would be too large.
pub fn project(f: &Formula, vars: &BTreeSet<Var>) -> Option<Formula> {
    let mut f = f.clone();
    let mut left: BTreeSet<Var> = f.vars().intersection(vars).copied().collect();
    while !left.is_empty() {
        // Those in few atoms first: the others may then be gone.
        let mut uses: Vec<(usize, Var)> = left.iter().map(|v| (occurrences(&f, *v), *v)).collect();
        uses.sort();
        let (_, x) = *uses.first()?;
        f = exists(x, &f)?.simplified();
        if f.size() > MAX_SIZE {
            return None;
        }
        let present = f.vars();
        left.remove(&x);
        left.retain(|v| present.contains(v));
    }
    Some(f)
}

fn occurrences(f: &Formula, x: Var) -> usize {
    let mut count = 0;
    f.for_each_atom(&mut |a| {
        if a.term().mentions(x) {
            // Prefer variables with an equality and unit coefficients.
            let unit = a.term().coeff(x).is_unit();
            count += if unit { 1 } else { 4 };
        }
    });
    count
}

fn exists(x: Var, f: &Formula) -> Option<Formula> {
    match f {
        Formula::True | Formula::False => Some(f.clone()),
        Formula::Or(parts) => {
            let parts: Option<Vec<Formula>> = parts.iter().map(|p| exists(x, p)).collect();
            Some(or(parts?))
        }
        Formula::Atom(_) | Formula::And(_) => {
            let (with, without): (Vec<Formula>, Vec<Formula>) =
                f.conjuncts().iter().cloned().partition(|p| p.mentions(x));
            if with.is_empty() {
                return Some(f.clone());
            }
            let inner = conjunction(x, with)?;
            Some(and(without.into_iter().chain([inner])))
        }
    }
}

/// `∃ x. parts`, each of which mentions `x`.
fn conjunction(x: Var, parts: Vec<Formula>) -> Option<Formula> {
    let equality = parts.iter().enumerate().filter_map(|(i, p)| {
        let atom = p.as_atom()?;
        (*atom.rel() == Rel::Eq).then(|| (atom.term().coeff(x).abs(), i))
    });
    if let Some((_, at)) = equality.min() {
        return solve(x, parts, at);
    }
    let mut atoms = Vec::with_capacity(parts.len());
    for (i, part) in parts.iter().enumerate() {
        match part {
            Formula::Atom(a) => atoms.push(a.clone()),
            Formula::Or(cases) => {
                // Over the cases of the first disjunction.
                let mut rest = parts.clone();
                rest.remove(i);
                let mut out = Vec::with_capacity(cases.len());
                let mut size = 0;
                for case in cases.iter() {
                    let case = exists(x, &and(rest.iter().cloned().chain([case.clone()])))?;
                    size += case.size();
                    if size > MAX_SIZE {
                        return None;
                    }
                    out.push(case);
                }
                return Some(or(out));
            }
            Formula::True | Formula::False | Formula::And(_) => return None,
        }
    }
    if atoms.iter().all(|a| *a.rel() == Rel::Le) {
        let (upper, lower): (Vec<_>, Vec<_>) =
            atoms.iter().partition(|a| a.term().coeff(x).is_positive());
        let unit = |side: &[&Arc<Atom>]| side.iter().all(|a| a.term().coeff(x).is_unit());
        if unit(&upper) || unit(&lower) {
            return Some(fourier_motzkin(x, &lower, &upper));
        }
    }
    cooper(x, &atoms)
}

/// Substitution by the equality `parts[at]`: `a·x == t` with `a > 0`.
fn solve(x: Var, mut parts: Vec<Formula>, at: usize) -> Option<Formula> {
    let equality = parts.remove(at);
    let term = equality.as_atom()?.term().clone();
    let (a, t) = isolate(x, &term);
    let (a, t) = if a.is_negative() { (-a, t) } else { (a, -t) };
    let rest = and(parts);
    Some(and([
        divides(a.clone(), t.clone()),
        replace(x, &rest, &a, &t),
    ]))
}

/// `f` with `a·x` replaced by `t`, for `a > 0`: atoms are multiplied by `a`.
fn replace(x: Var, f: &Formula, a: &Int, t: &Term) -> Formula {
    match f {
        Formula::True | Formula::False => f.clone(),
        Formula::And(parts) => and(parts.iter().map(|p| replace(x, p, a, t))),
        Formula::Or(parts) => or(parts.iter().map(|p| replace(x, p, a, t))),
        Formula::Atom(atom) => {
            if !atom.term().mentions(x) {
                return f.clone();
            }
            let (b, rest) = isolate(x, atom.term());
            let rel = match atom.rel() {
                Rel::Divides(m) => Rel::Divides(m * a),
                Rel::NotDivides(m) => Rel::NotDivides(m * a),
                other @ (Rel::Le | Rel::Eq | Rel::Ne) => other.clone(),
            };
            Atom::normal(rest.scaled(a).plus_scaled(&b, t), rel)
        }
    }
}

/// `term = coefficient·x + rest`.
fn isolate(x: Var, term: &Term) -> (Int, Term) {
    let a = term.coeff(x);
    let rest = term.plus_scaled(&-&a, &Term::from(x));
    (a, rest)
}

fn fourier_motzkin(x: Var, lower: &[&Arc<Atom>], upper: &[&Arc<Atom>]) -> Formula {
    let mut out = Vec::with_capacity(lower.len() * upper.len());
    for l in lower {
        for u in upper {
            let (a, b) = (l.term().coeff(x).abs(), u.term().coeff(x));
            let sum = l.term().scaled(&b).plus_scaled(&a, u.term());
            out.push(Atom::normal(sum, Rel::Le));
        }
    }
    and(out)
}

/// Cooper's method for a conjunction of atoms that all mention `x`.
fn cooper(x: Var, atoms: &[Arc<Atom>]) -> Option<Formula> {
    let mut scale = Int::ONE;
    for a in atoms {
        scale = scale.lcm(&a.term().coeff(x));
    }
    // With y = scale·x: bounds l <= y and y <= u, residues, and y != n.
    let (mut lower, mut upper, mut period) = (Vec::new(), Vec::new(), scale.clone());
    let mut unit_atoms = Vec::with_capacity(atoms.len() + 1);
    for a in atoms {
        let (b, rest) = isolate(x, a.term());
        let k = scale.div_exact(&b.abs());
        let (b, rest) = (
            if b.is_negative() {
                Int::MINUS_ONE
            } else {
                Int::ONE
            },
            rest.scaled(&k),
        );
        let rel = match a.rel() {
            Rel::Divides(m) => Rel::Divides(m * &k),
            Rel::NotDivides(m) => Rel::NotDivides(m * &k),
            other @ (Rel::Le | Rel::Eq | Rel::Ne) => other.clone(),
        };
        match &rel {
            Rel::Le if b.is_positive() => upper.push(-&rest),
            Rel::Le => lower.push(rest.clone()),
            Rel::Ne => {
                // y != n lets minima start right after n, maxima right before.
                let n = rest.scaled(&-&b);
                lower.push(&n + 1);
                upper.push(n - 1);
            }
            Rel::Eq => return None,
            Rel::Divides(m) | Rel::NotDivides(m) => period = period.lcm(m),
        }
        unit_atoms.push((b, rest, rel));
    }
    unit_atoms.push((Int::ONE, Term::default(), Rel::Divides(scale)));
    let at = |t: &Term| {
        and(unit_atoms
            .iter()
            .map(|(b, rest, rel)| Atom::normal(rest.plus_scaled(b, t), rel.clone())))
    };
    // Where y can go to infinity only residues (and no bound) remain.
    let at_infinity = |t: &Term| {
        let periodic = unit_atoms
            .iter()
            .filter(|(_, _, rel)| !matches!(rel, Rel::Le | Rel::Ne));
        and(periodic.map(|(b, rest, rel)| Atom::normal(rest.plus_scaled(b, t), rel.clone())))
    };
    let bounded_below = unit_atoms
        .iter()
        .any(|(b, _, rel)| *rel == Rel::Le && b.is_negative());
    let bounded_above = unit_atoms
        .iter()
        .any(|(b, _, rel)| *rel == Rel::Le && b.is_positive());
    let from_below = lower.len() <= upper.len();
    let (points, unbounded) = if from_below {
        (&lower, !bounded_below)
    } else {
        (&upper, !bounded_above)
    };
    let period = period.to_i64().filter(|p| {
        p.checked_mul(points.len() as i64 + 1)
            .is_some_and(|n| n <= MAX_CASES)
    })?;
    let mut out = Vec::new();
    for j in 0..period {
        if unbounded {
            out.push(at_infinity(&Term::constant(j)));
        }
        for point in points {
            out.push(at(&if from_below { point + j } else { point - j }));
        }
    }
    Some(or(out))
}
