//! Loops that only pass time: the waiting of a lock that backs off.
//!
//! A set of nodes that lead round in circles and touch only variables nobody needs afterwards, that never
//! get stuck, always end, and end in one place, is nothing at all: whoever goes in comes out there.
//!
//! *It ends* if every circle passes one assignment `i := i + c` with `c` odd, the only one of `i`, and one
//! test that leaves for some value of `i` whatever the other side is, as long as that does not change: with
//! an odd step `i` takes every value there is. The test may look at a variable that every circle makes anew
//! of `i`. Or every circle asks for a value nobody can foretell, a clock's, and one test leaves for some such value.

use crate::bits::{Bin, Cmp, E, VarId, mask};
use crate::graph::{Edge, Graph, Op};
use std::collections::{BTreeMap, BTreeSet};

/// Drops such loops; whether there was one.
pub fn drop_loops(graph: &mut Graph) -> bool {
    let live = super::live::live(graph);
    let order = graph.reached();
    let private = |n: usize| {
        let node = &graph.nodes[n];
        let quiet = |e: &Edge| {
            matches!(
                e.op,
                Op::Nop | Op::Assign(..) | Op::Havoc(_) | Op::Assume(_)
            )
        };
        node.labels.is_empty() && n != graph.entry && total(&node.out) && node.out.iter().all(quiet)
    };
    let inner: BTreeSet<usize> = order.iter().copied().filter(|n| private(*n)).collect();
    for set in circles(graph, &inner) {
        let edges = || {
            set.iter()
                .flat_map(|n| graph.nodes[*n].out.iter().map(move |e| (*n, e)))
        };
        let exits: BTreeSet<usize> = edges()
            .map(|(_, e)| e.to)
            .filter(|t| !set.contains(t))
            .collect();
        let Some(exit) = exits.first().copied().filter(|_| exits.len() == 1) else {
            continue;
        };
        let needed = edges().any(|(_, e)| e.op.written().is_some_and(|v| live[exit].contains(&v)));
        if needed || !ends(graph, &set) {
            continue;
        }
        for n in order {
            for e in &mut graph.nodes[n].out {
                if set.contains(&e.to) {
                    e.to = exit;
                }
            }
        }
        for n in set {
            graph.nodes[n].out.clear();
        }
        return true;
    }
    false
}

/// Whether one of these edges can always be taken.
pub(super) fn total(out: &[Edge]) -> bool {
    match out {
        [one] => !matches!(one.op, Op::Assume(_)),
        [a, b] => super::tidy::complementary(&a.op, &b.op),
        _ => false,
    }
}

/// The largest sets of these nodes in which each leads to each, those that are no circle left out.
pub(super) fn circles(graph: &Graph, nodes: &BTreeSet<usize>) -> Vec<BTreeSet<usize>> {
    let mut sets = Vec::new();
    let mut done: BTreeSet<usize> = BTreeSet::new();
    let mut back: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for n in nodes {
        for e in &graph.nodes[*n].out {
            back.entry(e.to).or_default().push(*n);
        }
    }
    for n in nodes {
        if done.contains(n) {
            continue;
        }
        let on = |x: usize| graph.nodes[x].out.iter().map(|e| e.to).collect();
        let before = |x: usize| back.get(&x).cloned().unwrap_or_default();
        let ahead = closure(*n, nodes, &on);
        let set: BTreeSet<usize> = closure(*n, nodes, &before)
            .intersection(&ahead)
            .copied()
            .collect();
        done.extend(&set);
        done.insert(*n);
        if !set.is_empty() {
            sets.push(set);
        }
    }
    sets
}

/// What one or more steps from a node lead to, inside a set.
pub(super) fn closure(
    from: usize,
    nodes: &BTreeSet<usize>,
    next: &dyn Fn(usize) -> Vec<usize>,
) -> BTreeSet<usize> {
    let mut all = BTreeSet::new();
    let mut work = next(from);
    while let Some(n) = work.pop() {
        if nodes.contains(&n) && all.insert(n) {
            work.extend(next(n));
        }
    }
    all
}

fn ends(graph: &Graph, set: &BTreeSet<usize>) -> bool {
    let edges = || {
        set.iter()
            .flat_map(|n| graph.nodes[*n].out.iter().map(move |e| (*n, e)))
    };
    let written: Vec<VarId> = edges().filter_map(|(_, e)| e.op.written()).collect();
    let fixed = |e: &E| e.vars().iter().all(|v| !written.contains(v));
    let cuts = |n: usize| cuts(graph, set, n);
    let made = |v: VarId| made(graph, set, v);
    edges().any(|(at, e)| {
        let (i, every) = match &e.op {
            Op::Assign(i, value) => (i, counts(graph, *i, value)),
            Op::Havoc(i) => (i, true),
            _ => return false,
        };
        let once = written.iter().filter(|v| *v == i).count() == 1;
        every
            && once
            && cuts(at)
            && edges().any(|(at, e)| match &e.op {
                Op::Assume(c) if !set.contains(&e.to) => {
                    cuts(at) && leaves(&c.replace(&made), *i, &fixed)
                }
                _ => false,
            })
    })
}

/// Whether there is no circle in the set without the edges of this node.
pub(super) fn cuts(graph: &Graph, set: &BTreeSet<usize>, n: usize) -> bool {
    let rest: BTreeSet<usize> = set.iter().copied().filter(|m| *m != n).collect();
    circles(graph, &rest).is_empty()
}

/// What a variable that every circle gives a value once is made of.
pub(super) fn made(graph: &Graph, set: &BTreeSet<usize>, v: VarId) -> Option<E> {
    let all = set
        .iter()
        .flat_map(|n| graph.nodes[*n].out.iter().map(move |e| (*n, e)));
    let mut all = all.filter_map(|(at, e)| match &e.op {
        Op::Assign(w, value) if *w == v => Some((at, value)),
        _ => None,
    });
    let (at, value) = all.next().filter(|_| all.next().is_none())?;
    (!value.mentions(v) && cuts(graph, set, at)).then(|| value.clone())
}

/// Whether a value given to a variable makes it take every value there is, if it is given often enough.
pub(super) fn counts(graph: &Graph, i: VarId, value: &E) -> bool {
    let E::Bin(Bin::Add, of, c) = value else {
        return false;
    };
    let odd = c.as_const().is_some_and(|c| c % 2 == 1);
    odd && matches!(**of, E::Var(v, w) if v == i && graph.vars.width(i) == w)
}

/// Whether this is a variable, perhaps put together of its halves, as a clock is read.
fn is_all_of(e: &E, i: VarId) -> bool {
    let half = |e: &E, low: u32| match e {
        E::Zext(part, 64) => {
            matches!(&**part, E::Extract(of, at, 32) if *at == low && **of == E::Var(i, 64))
        }
        _ => false,
    };
    let upper = |e: &E| match e {
        E::Bin(Bin::Shl, of, by) => by.as_const() == Some(32) && half(of, 32),
        _ => false,
    };
    match e {
        E::Var(v, _) => *v == i,
        E::Bin(Bin::Or, a, b) => (upper(a) && half(b, 0)) || (half(a, 0) && upper(b)),
        _ => false,
    }
}

/// Whether a condition holds for some value of a variable, whatever the other side is.
pub(super) fn leaves(condition: &E, i: VarId, fixed: &dyn Fn(&E) -> bool) -> bool {
    let E::Cmp(op, a, b) = condition else {
        return false;
    };
    let counts = |e: &E| match e {
        E::Bin(Bin::Add | Bin::Sub, of, k) if is_all_of(of, i) => fixed(k) && !k.mentions(i),
        e => is_all_of(e, i),
    };
    let all = mask(a.width());
    let (most, least) = (all >> 1, all ^ (all >> 1));
    // Of all ones something is left whatever it is shifted by.
    if let (Cmp::Ne, E::Bin(Bin::Shr, of, by), Some(0)) = (op, &**a, b.as_const()) {
        return counts(of) && fixed(by) && by.most() < u64::from(a.width());
    }
    let (right, other) = match (counts(a), counts(b)) {
        (true, false) => (false, b),
        (false, true) => (true, a),
        _ => return false,
    };
    let not = |c: u64| other.as_const().is_some_and(|o| o != c);
    fixed(other)
        && match (op, right) {
            (Cmp::Eq | Cmp::Ne | Cmp::Ule | Cmp::Sle, _) => true,
            (Cmp::Ult, false) => not(0),
            (Cmp::Ult, true) => not(all),
            (Cmp::Slt, false) => not(least),
            (Cmp::Slt, true) => not(most),
        }
}
