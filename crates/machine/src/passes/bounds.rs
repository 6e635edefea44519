//! Assertions that bounds show: a divisor that begins with 1 and is only ever doubled up to a limit is
//! never 0, and if nobody else needs it, it is gone.
//!
//! Forward, from the first step on: between which two numbers each variable is. Where paths meet that is the
//! least and the greatest; what grows and grows is soon as far as the next number in the code, and then
//! anything.

use crate::bits::{Bin, Cmp, E, VarId, mask};
use crate::graph::{Graph, Op};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// From and to, both included, without a sign.
type Range = (u64, u64);
/// Of those variables of which something is known.
type Bounds = BTreeMap<VarId, Range>;

/// How often a node may be met before its bounds are made wider at once.
const PATIENCE: u32 = 4;

pub fn drop_asserts(graph: &mut Graph) {
    let asserts = |graph: &Graph, n: usize| {
        let out = &graph.nodes[n].out;
        out.iter().any(|e| matches!(e.op, Op::Assert(..)))
    };
    let order = graph.reached();
    if !order.iter().any(|n| asserts(graph, *n)) {
        return;
    }
    let known = solve(graph, &order);
    for n in order {
        let Some(known) = &known[n] else { continue };
        for edge in &mut graph.nodes[n].out {
            if let Op::Assert(e, _) = &edge.op
                && range(e, known).0 == 1
            {
                edge.op = Op::Nop;
            }
        }
    }
}

fn solve(graph: &Graph, order: &[usize]) -> Vec<Option<Bounds>> {
    let limits = limits(graph, order);
    let mut known: Vec<Option<Bounds>> = vec![None; graph.nodes.len()];
    let mut met = vec![0u32; graph.nodes.len()];
    known[graph.entry] = Some(Bounds::new());
    let mut waiting = vec![false; graph.nodes.len()];
    let mut work = VecDeque::from([graph.entry]);
    while let Some(n) = work.pop_front() {
        waiting[n] = false;
        let Some(before) = known[n].clone() else {
            continue;
        };
        for edge in &graph.nodes[n].out {
            let Some(after) = step(&edge.op, before.clone(), graph) else {
                continue;
            };
            let changed = match &mut known[edge.to] {
                Some(old) => {
                    met[edge.to] += 1;
                    join(old, &after, (met[edge.to] > PATIENCE).then_some(&limits))
                }
                new => {
                    *new = Some(after);
                    true
                }
            };
            if changed && !std::mem::replace(&mut waiting[edge.to], true) {
                work.push_back(edge.to);
            }
        }
    }
    known
}

/// The numbers in the code.
fn limits(graph: &Graph, order: &[usize]) -> BTreeSet<u64> {
    let mut all = BTreeSet::new();
    for edge in order.iter().flat_map(|n| &graph.nodes[*n].out) {
        for e in edge.op.expressions() {
            e.for_each(&mut |e| all.extend(e.as_const()));
        }
    }
    all
}

/// Makes the first as wide as both; whether it was not.
fn join(old: &mut Bounds, new: &Bounds, limits: Option<&BTreeSet<u64>>) -> bool {
    let mut changed = false;
    old.retain(|v, (lo, hi)| {
        let Some((from, to)) = new.get(v) else {
            changed = true;
            return false;
        };
        if from < lo {
            changed = true;
            *lo = match limits {
                Some(all) => all.range(..=*from).next_back().copied().unwrap_or(0),
                None => *from,
            };
        }
        if to > hi {
            changed = true;
            match limits {
                None => *hi = *to,
                Some(all) => match all.range(*to..).next() {
                    Some(next) => *hi = *next,
                    None => return false,
                },
            }
        }
        true
    });
    changed
}

/// What is known after a step; none if it cannot be taken.
fn step(op: &Op, mut known: Bounds, graph: &Graph) -> Option<Bounds> {
    match op {
        Op::Assign(v, e) => {
            let (lo, hi) = range(e, &known);
            match (lo, hi) == (0, mask(graph.vars.width(*v))) {
                true => known.remove(v),
                false => known.insert(*v, (lo, hi)),
            };
        }
        Op::Assume(e) | Op::Assert(e, _) => {
            if range(e, &known).1 == 0 {
                return None;
            }
            learn(e, &mut known)?;
        }
        op => {
            if let Some(v) = op.written() {
                known.remove(&v);
            }
        }
    }
    Some(known)
}

/// What a condition says that holds; none if it cannot.
fn learn(condition: &E, known: &mut Bounds) -> Option<()> {
    if let E::Cmp(op, a, b) = condition {
        let (x, y) = (range(a, known), range(b, known));
        let (x, y) = meet(*op, x, y)?;
        for (e, r) in [(a, x), (b, y)] {
            if let E::Var(v, _) = **e {
                known.insert(v, r);
            }
        }
    }
    Some(())
}

/// Which values two sides have if a comparison of them holds.
fn meet(op: Cmp, (a, b): Range, (c, d): Range) -> Option<(Range, Range)> {
    let (x, y) = match op {
        Cmp::Eq => {
            let both = (a.max(c), b.min(d));
            (both, both)
        }
        Cmp::Ne if c == d && a == c => ((a.checked_add(1)?, b), (c, d)),
        Cmp::Ne if c == d && b == c => ((a, b.checked_sub(1)?), (c, d)),
        Cmp::Ule => ((a, b.min(d)), (a.max(c), d)),
        Cmp::Ult => ((a, b.min(d.checked_sub(1)?)), (c.max(a.checked_add(1)?), d)),
        Cmp::Ne | Cmp::Slt | Cmp::Sle => ((a, b), (c, d)),
    };
    (x.0 <= x.1 && y.0 <= y.1).then_some((x, y))
}

/// Between which numbers the value of an expression is.
fn range(e: &E, known: &Bounds) -> Range {
    let all = (0, mask(e.width()));
    let fits = |lo: Option<u64>, hi: Option<u64>| match (lo, hi) {
        (Some(lo), Some(hi)) if hi <= all.1 => (lo, hi),
        _ => all,
    };
    match e {
        E::Const(c, _) => (*c, *c),
        E::Var(v, _) => match known.get(v) {
            Some((lo, hi)) if *hi <= all.1 => (*lo, *hi),
            _ => all,
        },
        E::Zext(a, _) => range(a, known),
        E::Extract(a, 0, _) => match range(a, known) {
            (lo, hi) if hi <= all.1 => (lo, hi),
            _ => all,
        },
        E::Not(a) if e.width() == 1 => {
            let (lo, hi) = range(a, known);
            (1 - hi.min(1), 1 - lo.min(1))
        }
        E::Cmp(op, a, b) => {
            let (x, y) = (range(a, known), range(b, known));
            let no = match op {
                Cmp::Eq => Cmp::Ne,
                Cmp::Ne => Cmp::Eq,
                // Not a ≤ b is b < a.
                Cmp::Ule => return truth(meet(*op, x, y), meet(Cmp::Ult, y, x)),
                Cmp::Ult => return truth(meet(*op, x, y), meet(Cmp::Ule, y, x)),
                Cmp::Slt | Cmp::Sle => return all,
            };
            truth(meet(*op, x, y), meet(no, x, y))
        }
        E::Ite(c, a, b) => {
            let (mut x, mut y) = (range(a, known), range(b, known));
            // `a ≤ k ? a : k`: what is chosen is what was compared.
            if let E::Cmp(op @ (Cmp::Ule | Cmp::Ult), p, q) = &**c {
                let (r, s) = (range(p, known), range(q, known));
                if let (true, Some((met, _))) = (p == a, meet(*op, r, s)) {
                    x = met;
                }
                let not = if *op == Cmp::Ule { Cmp::Ult } else { Cmp::Ule };
                if let (true, Some((_, met))) = (p == b, meet(not, s, r)) {
                    y = met;
                }
            }
            (x.0.min(y.0), x.1.max(y.1))
        }
        E::Bin(op, a, b) => {
            let ((a, b), (c, d)) = (range(a, known), range(b, known));
            match op {
                Bin::Add => fits(a.checked_add(c), b.checked_add(d)),
                Bin::Sub => fits(a.checked_sub(d), b.checked_sub(c)),
                Bin::Mul => fits(a.checked_mul(c), b.checked_mul(d)),
                Bin::And => (0, b.min(d)),
                Bin::Urem if c > 0 => (0, b.min(d - 1)),
                Bin::Udiv if c > 0 => (a / d, b / c),
                Bin::Shl if c == d && c < 64 => {
                    let by = 1u64 << c;
                    fits(a.checked_mul(by), b.checked_mul(by))
                }
                Bin::Shr if c == d && c < 64 => (a >> c, b >> c),
                _ => all,
            }
        }
        _ => all,
    }
}

/// The value of a condition of which it is known whether it can hold, and whether it can fail.
fn truth(yes: Option<(Range, Range)>, no: Option<(Range, Range)>) -> Range {
    match (yes, no) {
        (Some(_), None) => (1, 1),
        (None, Some(_)) => (0, 0),
        _ => (0, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V: VarId = VarId(0);

    #[test]
    fn what_is_doubled_up_to_a_limit_stays_within() {
        let twice = E::sum(E::Var(V, 32), E::Var(V, 32));
        let most = E::constant(1000, 32);
        let next = E::ite(E::test(Cmp::Ule, twice.clone(), most.clone()), twice, most);
        let known = Bounds::from([(V, (1, 1000))]);
        assert_eq!(range(&next, &known), (2, 1000));
        let zero = E::test(Cmp::Ne, E::Var(V, 32), E::constant(0, 32));
        assert_eq!(range(&zero, &known), (1, 1));
        assert_eq!(range(&zero, &Bounds::new()), (0, 1));
        assert_eq!(range(&zero, &Bounds::from([(V, (0, 3))])), (0, 1));
    }

    #[test]
    fn what_wraps_around_may_be_anything() {
        let known = Bounds::from([(V, (1, 200))]);
        let sum = E::sum(E::Var(V, 8), E::Var(V, 8));
        assert_eq!(range(&sum, &known), (0, 255));
        let less = E::bin(Bin::Sub, E::Var(V, 8), E::constant(2, 8));
        assert_eq!(range(&less, &known), (0, 255));
    }
}
