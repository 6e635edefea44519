//! Loops that look at one place again and again, but not for ever: a lock that spins a while before it
//! sleeps. Looking so often is looking once, as late as one likes.
//!
//! A circle with one load, that counts and leaves when it has counted far enough, and touches nothing else
//! that is needed: of a thread that goes round, all but the last time round can be left out, and it waits
//! before the first instead; of one that leaves for its count, the last time round can be repeated at the moment
//! of its load, as often as it counts. So the test is always taken to leave.

use super::idle::{circles, counts, cuts, leaves, made, total};
use crate::bits::{E, VarId};
use crate::graph::{Edge, Graph, Op};
use std::collections::BTreeSet;

/// Makes one such loop look once; whether there was one.
pub fn once(graph: &mut Graph) -> bool {
    let live = super::live::live(graph);
    let order = graph.reached();
    let quiet = |n: usize| {
        let node = &graph.nodes[n];
        let quiet = |e: &Edge| match &e.op {
            Op::Nop | Op::Assign(..) | Op::Havoc(_) | Op::Assume(_) => true,
            Op::Load { at, .. } => !at.locked,
            _ => false,
        };
        node.labels.is_empty() && n != graph.entry && total(&node.out) && node.out.iter().all(quiet)
    };
    let inner: BTreeSet<usize> = order.iter().copied().filter(|n| quiet(*n)).collect();
    let loads = |n: &usize| matches!(graph.nodes[*n].out[0].op, Op::Load { .. });
    // Round one load, whatever there is round that.
    let one = |load: usize| {
        let others = inner.iter().copied();
        let alone: BTreeSet<usize> = others.filter(|n| *n == load || !loads(n)).collect();
        let mut sets = circles(graph, &alone).into_iter();
        sets.find(|set| set.contains(&load))
    };
    let test = inner.iter().filter(|n| loads(n)).find_map(|load| {
        let looks = Looks {
            graph,
            live: &live,
            order: &order,
            set: one(*load)?,
        };
        looks.test(*load)
    });
    let Some((node, leave)) = test else {
        return false;
    };
    let out = &mut graph.nodes[node].out;
    let mut edge = out.swap_remove(leave);
    edge.op = Op::Nop;
    *out = vec![edge];
    true
}

struct Looks<'a> {
    graph: &'a Graph,
    live: &'a [BTreeSet<VarId>],
    order: &'a [usize],
    set: BTreeSet<usize>,
}

impl Looks<'_> {
    fn edges(&self) -> impl Iterator<Item = (usize, &Edge)> {
        let all = |n: &usize| {
            let n = *n;
            self.graph.nodes[n].out.iter().map(move |e| (n, e))
        };
        self.set.iter().flat_map(all)
    }

    fn cuts(&self, n: usize) -> bool {
        cuts(self.graph, &self.set, n)
    }

    /// The test that leaves in the end, and which of its edges does.
    fn test(&self, load: usize) -> Option<(usize, usize)> {
        if !self.cuts(load) {
            return None;
        }
        let written: Vec<VarId> = self.edges().filter_map(|(_, e)| e.op.written()).collect();
        self.edges().find_map(|(at, e)| {
            let Op::Assign(i, value) = &e.op else {
                return None;
            };
            let once = written.iter().filter(|v| *v == i).count() == 1;
            if !once || !counts(self.graph, *i, value) || !self.cuts(at) {
                return None;
            }
            let counted = self.counted(*i);
            // Each time round begins like the first.
            let fresh = |v: &VarId| counted.contains(v) || !self.live[load].contains(v);
            let (test, leave) = self.leaves(*i, &written)?;
            (written.iter().all(fresh)
                && self.unneeded(&counted, test)
                && self.looks_first(load, test))
            .then_some((test, leave))
        })
    }

    /// The counter and what is made of it.
    fn counted(&self, i: VarId) -> BTreeSet<VarId> {
        let mut all = BTreeSet::from([i]);
        loop {
            let more = self.edges().find_map(|(_, e)| match &e.op {
                Op::Assign(v, value) if !all.contains(v) => {
                    all.iter().any(|c| value.mentions(*c)).then_some(*v)
                }
                _ => None,
            });
            match more {
                Some(v) => all.insert(v),
                None => return all,
            };
        }
    }

    /// A test in every circle that leaves for some value of the counter.
    fn leaves(&self, i: VarId, written: &[VarId]) -> Option<(usize, usize)> {
        let fixed = |e: &E| e.vars().iter().all(|v| !written.contains(v));
        let made = |v: VarId| made(self.graph, &self.set, v);
        self.set.iter().find_map(|n| {
            let out = &self.graph.nodes[*n].out;
            let leave = out.iter().position(|e| !self.set.contains(&e.to))?;
            let stays = out.iter().filter(|e| self.set.contains(&e.to)).count() == 1;
            let Op::Assume(c) = &out[leave].op else {
                return None;
            };
            let test = out.len() == 2 && stays && self.cuts(*n);
            (test && leaves(&c.replace(&made), i, &fixed)).then_some((*n, leave))
        })
    }

    /// Whether the count is looked at by the test alone, and by nobody afterwards.
    fn unneeded(&self, counted: &BTreeSet<VarId>, test: usize) -> bool {
        let reads = |e: &Edge| {
            let all = e.op.expressions();
            all.iter().any(|e| counted.iter().any(|v| e.mentions(*v)))
        };
        self.edges().all(|(at, e)| {
            let itself = matches!(&e.op, Op::Assign(v, _) if counted.contains(v));
            let inside = itself || at == test || !reads(e);
            inside && (self.set.contains(&e.to) || self.live[e.to].is_disjoint(counted))
        })
    }

    /// Whether nobody comes to the test, or out, who has not looked since coming in or since the test.
    fn looks_first(&self, load: usize, test: usize) -> bool {
        let outside = self.order.iter().filter(|n| !self.set.contains(n));
        let into = outside.flat_map(|n| self.graph.nodes[*n].out.iter().map(|e| e.to));
        let stay = self.graph.nodes[test].out.iter().map(|e| e.to);
        let mut work: Vec<usize> = into.chain(stay).filter(|n| self.set.contains(n)).collect();
        let mut seen = BTreeSet::new();
        while let Some(n) = work.pop() {
            if n == load || !seen.insert(n) {
                continue;
            }
            let out = &self.graph.nodes[n].out;
            if n == test || out.iter().any(|e| !self.set.contains(&e.to)) {
                return false;
            }
            work.extend(out.iter().map(|e| e.to));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{Base, Bin};
    use crate::graph::{Access, Origin};
    use wattle_model::Span;

    const HERE: Origin = Origin::Text(Span::NONE);

    /// What is different from a loop that looks until it sees no 1 or has counted to 0.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum But {
        Nothing,
        /// The count is stored afterwards.
        Counted,
        /// It looks twice.
        Twice,
        /// It stores.
        Stores,
        /// It is entered behind the load.
        Behind,
        /// What was seen before is looked at, too.
        Remembers,
        /// It counts in twos, and may miss its end.
        Twos,
        Locked,
    }

    fn built(but: But) -> Graph {
        let mut graph = Graph::default();
        let (c, seen) = (graph.vars.fresh(32, "count"), graph.vars.fresh(32, "seen"));
        let at = |k: i64| Access {
            address: E::Address(Base::Object(0), k),
            bytes: 4,
            locked: but == But::Locked,
        };
        let (count, value) = (E::Var(c, 32), E::Var(seen, 32));
        let one = E::constant(1, 32);
        let mut n = graph.node();
        graph.entry = n;
        n = graph.then(n, Op::Assign(c, E::constant(100, 32)), HERE);
        let head = graph.node();
        let load = Op::Load {
            to: seen,
            at: at(0),
        };
        let looked = graph.node();
        if but == But::Behind {
            n = graph.then(n, load.clone(), HERE);
            graph.edge(n, Op::Nop, looked, HERE);
        } else {
            graph.edge(n, Op::Nop, head, HERE);
        }
        let mut n = head;
        if but == But::Remembers {
            let end = graph.node();
            let before = E::same(value.clone(), one.clone());
            graph.edge(n, Op::Assume(before.clone()), end, HERE);
            n = graph.then(n, Op::Assume(before.inverted()), HERE);
        }
        graph.edge(n, load.clone(), looked, HERE);
        let mut n = looked;
        match but {
            But::Twice => n = graph.then(n, load, HERE),
            But::Stores => {
                let (at, value) = (at(4), one.clone());
                n = graph.then(n, Op::Store { at, value }, HERE);
            }
            _ => {}
        }
        let free = E::same(value, one).inverted();
        let out = graph.then(n, Op::Assume(free.clone()), HERE);
        let n = graph.then(n, Op::Assume(free.inverted()), HERE);
        let by = if but == But::Twos { 2 } else { 1 };
        let less = E::bin(Bin::Add, count.clone(), E::constant(u64::MAX - by + 1, 32));
        let n = graph.then(n, Op::Assign(c, less), HERE);
        let done = E::same(count.clone(), E::constant(0, 32));
        graph.edge(n, Op::Assume(done.clone()), out, HERE);
        graph.edge(n, Op::Assume(done.inverted()), head, HERE);
        let value = match but {
            But::Counted => count,
            _ => E::Var(seen, 32),
        };
        let at = at(8);
        graph.then(out, Op::Store { at, value }, HERE);
        graph
    }

    #[test]
    fn looking_again_and_again_is_looking_once() {
        let mut graph = built(But::Nothing);
        assert!(once(&mut graph));
        let all: BTreeSet<usize> = graph.reached().into_iter().collect();
        assert!(circles(&graph, &all).is_empty());
        assert!(!once(&mut graph));
    }

    #[test]
    fn what_is_needed_is_kept() {
        for but in [
            But::Counted,
            But::Twice,
            But::Stores,
            But::Behind,
            But::Remembers,
            But::Twos,
            But::Locked,
        ] {
            assert!(!once(&mut built(but)));
        }
    }
}
