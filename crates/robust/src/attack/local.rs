//! Steps that touch only registers, and what follows from that: locations where a thread may be run
//! ahead of the others.

use wattle_model::graph::Action;
use wattle_model::instance::{Address, Thread};
use wattle_model::{LocationId, RegisterId};

/// The strongly connected component of a node.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Component {
    pub number: usize,
    /// Some edge stays inside.
    pub cyclic: bool,
}

/// Tarjan's algorithm without recursion.
pub(super) fn components(
    nodes: usize,
    roots: impl Iterator<Item = usize>,
    edges: &dyn Fn(usize) -> Vec<usize>,
) -> Vec<Component> {
    let mut out = vec![Component::default(); nodes];
    let mut index = vec![usize::MAX; nodes];
    let mut low = vec![usize::MAX; nodes];
    let mut on = vec![false; nodes];
    let (mut next, mut number) = (0, 0);
    let mut stack = Vec::new();
    for root in roots {
        if index[root] != usize::MAX {
            continue;
        }
        let mut work = vec![(root, edges(root), 0usize)];
        index[root] = next;
        low[root] = next;
        next += 1;
        stack.push(root);
        on[root] = true;
        while let Some((v, targets, i)) = work.last_mut() {
            let v = *v;
            if let Some(w) = targets.get(*i).copied() {
                *i += 1;
                if index[w] == usize::MAX {
                    index[w] = next;
                    low[w] = next;
                    next += 1;
                    stack.push(w);
                    on[w] = true;
                    work.push((w, edges(w), 0));
                } else if on[w] {
                    low[v] = low[v].min(index[w]);
                }
                continue;
            }
            work.pop();
            if let Some((parent, ..)) = work.last() {
                low[*parent] = low[*parent].min(low[v]);
            }
            if low[v] == index[v] {
                let at = stack.iter().rposition(|w| *w == v).unwrap_or(0);
                let members = stack.split_off(at);
                let cyclic = members.len() > 1 || edges(v).contains(&v);
                for w in members {
                    on[w] = false;
                    out[w] = Component { number, cyclic };
                }
                number += 1;
            }
        }
    }
    out
}

pub(super) fn is_local(action: &Action<RegisterId, Address>) -> bool {
    matches!(
        action,
        Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
    )
}

/// Locations where all steps are local and none lies on a loop of local steps: the thread may be run
/// on alone, because its steps commute with everybody else's and it cannot run for ever (the cycle
/// proviso, C3 of calin-2016 Fig. 2.13).
pub(super) fn quick(thread: &Thread) -> Vec<bool> {
    let n = thread.locations.len();
    let edges = |l: usize| -> Vec<usize> {
        let out = thread
            .outgoing(LocationId::new(l))
            .iter()
            .map(|s| thread.step(*s));
        let out = out.filter(|s| is_local(&s.action));
        out.map(|s| s.target.index()).collect()
    };
    let components = components(n, 0..n, &edges);
    (0..n)
        .map(|l| {
            let out = thread.outgoing(LocationId::new(l));
            let mut steps = out.iter().map(|s| thread.step(*s));
            !out.is_empty()
                && steps.all(|s| {
                    is_local(&s.action)
                        && components[l].number != components[s.target.index()].number
                })
        })
        .collect()
}
