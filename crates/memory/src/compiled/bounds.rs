//! How many stores can be pending at most, read off the graph: the longest path between two points
//! where the buffer is known to be empty (printz-2015's static buffer size, for both models).

use rustc_hash::FxHashSet;
use wattle_model::graph::{Action, Section};
use wattle_model::instance::Thread;
use wattle_model::{Fence, Instance, StepId, ThreadId};

/// What the graph says about a thread's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// Never more than this many.
    AtMost(u32),
    /// This store is on a loop that never waits for the buffer.
    Loop(StepId),
}

/// A loop that stores without a fence, for a person: thread, and the line if one is known.
pub fn describe_loop(instance: &Instance, t: ThreadId, store: StepId) -> String {
    let thread = instance.thread(t);
    match thread.step(store).span.line {
        0 => format!("thread {} stores in a loop without a fence", thread.name),
        line => format!(
            "thread {} stores in a loop without a fence (line {line})",
            thread.name
        ),
    }
}

pub fn pending(thread: &Thread) -> Pending {
    let n = thread.locations.len();
    let waits = |a: &Action<_, _>| {
        matches!(
            a,
            Action::Fence(Fence::Full)
                | Action::AtomicBegin(Section::Drained)
                | Action::Lock
                | Action::Unlock
        )
    };
    let puts = |l: usize, a: &Action<_, _>| matches!(a, Action::Store { .. }) && !thread.direct[l];
    // Components of the graph without the waiting steps, in reverse topological order.
    let edges: Vec<Vec<(usize, bool)>> = (0..n)
        .map(|l| {
            let out = thread.outgoing[l].iter().map(|s| thread.step(*s));
            out.filter(|s| !waits(&s.action))
                .map(|s| (s.target.index(), puts(l, &s.action)))
                .collect()
        })
        .collect();
    let component = components(&edges);
    for (i, step) in thread.steps.iter().enumerate() {
        let (from, to) = (step.source.index(), step.target.index());
        if puts(from, &step.action) && component[from] == component[to] {
            return Pending::Loop(StepId::new(i));
        }
    }
    // Longest path from any location, components in reverse topological order.
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|l| component[*l]);
    let mut longest: Vec<u32> = vec![0; n];
    for same in order.chunk_by(|a, b| component[*a] == component[*b]) {
        let mut most = 0;
        for &l in same {
            for (target, put) in &edges[l] {
                if component[*target] != component[l] {
                    let more = longest[component[*target]].saturating_add(u32::from(*put));
                    most = most.max(more);
                }
            }
        }
        longest[component[same[0]]] = most;
    }
    let starts: FxHashSet<usize> = std::iter::once(thread.entry.index())
        .chain(
            thread
                .steps
                .iter()
                .filter(|s| waits(&s.action))
                .map(|s| s.target.index()),
        )
        .collect();
    Pending::AtMost(
        starts
            .iter()
            .map(|l| longest[component[*l]])
            .max()
            .unwrap_or(0),
    )
}

/// Tarjan's strongly connected components, without recursion; numbers are in reverse topological
/// order.
fn components(edges: &[Vec<(usize, bool)>]) -> Vec<usize> {
    let n = edges.len();
    let (mut number, mut low) = (vec![usize::MAX; n], vec![0; n]);
    let mut component = vec![usize::MAX; n];
    let (mut stack, mut next, mut found) = (Vec::new(), 0, 0);
    for root in 0..n {
        if number[root] != usize::MAX {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some(&(l, i)) = path.last() {
            if i == 0 {
                number[l] = next;
                low[l] = next;
                next += 1;
                stack.push(l);
            }
            if let Some(&(target, _)) = edges[l].get(i) {
                if let Some(top) = path.last_mut() {
                    top.1 += 1;
                }
                if number[target] == usize::MAX {
                    path.push((target, 0));
                } else if component[target] == usize::MAX {
                    low[l] = low[l].min(number[target]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[l]);
            }
            if low[l] == number[l] {
                while let Some(m) = stack.pop() {
                    component[m] = found;
                    if m == l {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    component
}
