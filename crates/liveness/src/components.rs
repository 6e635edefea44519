//! Strongly connected components of a part of the graph, and what is wrong or harmless about them.

use crate::graph::{Arc, Graph};
use rustc_hash::FxHashMap;
use wattle_evidence::certificate::components::Harmless;
use wattle_evidence::live::{Fairness, Mover, Set, Trap};

/// What makes a component break the demand.
pub struct Judge {
    pub fairness: Fairness,
    /// All acceptance sets.
    pub sets: u64,
    /// All movers.
    pub movers: Set,
    /// For progress; a run breaks it that stays in one of them.
    pub traps: Vec<Trap>,
}

impl Judge {
    /// Whether the sums over a component decide about it.
    pub fn is_plain(&self) -> bool {
        self.traps.is_empty() && self.fairness != Fairness::Strong
    }

    /// Whether a run through all of the component can be fair.
    pub fn is_fair(&self, moved: Set, unable: Set, ever: Set) -> bool {
        self.unfair(moved, unable, ever) == 0
    }

    fn unfair(&self, moved: Set, unable: Set, ever: Set) -> Set {
        self.movers
            & !moved
            & match self.fairness {
                Fairness::None => 0,
                Fairness::Weak => !unable,
                Fairness::Strong => ever,
            }
    }
}

/// The sums over a strongly connected set of nodes.
#[derive(Default)]
struct Sums {
    accepting: u64,
    moved: Set,
    unable: Set,
    ever: Set,
    inside: bool,
}

/// A strongly connected set of nodes that a fair run can go through for ever without doing what is
/// demanded, among these nodes.
pub fn look_into(graph: &Graph<'_, '_>, nodes: &[u32]) -> Option<Vec<u32>> {
    match graph.judge.traps.is_empty() {
        true => broken(graph, nodes.to_vec()),
        false => in_traps(graph, nodes)
            .into_iter()
            .find_map(|(_, inside)| broken(graph, inside)),
    }
}

/// The nodes in each trap; those with none are left out.
pub fn in_traps(graph: &Graph<'_, '_>, nodes: &[u32]) -> Vec<(usize, Vec<u32>)> {
    let mut all = Vec::new();
    for t in graph.machine.instance.thread_ids() {
        let mut at: FxHashMap<usize, Vec<u32>> = FxHashMap::default();
        for n in nodes {
            let location = graph.machine.location(graph.state(*n), t);
            at.entry(location.index()).or_default().push(*n);
        }
        for (i, trap) in graph.judge.traps.iter().enumerate() {
            if trap.thread != t {
                continue;
            }
            let here = trap.at.iter().filter_map(|l| at.get(&l.index()));
            let mut here: Vec<u32> = here.flatten().copied().collect();
            here.sort_unstable();
            if !here.is_empty() {
                all.push((i, here));
            }
        }
    }
    all.sort_by_key(|(i, _)| *i);
    all
}

/// One of the components that breaks the demand; with strong fairness, after taking out what no fair
/// run stays in.
fn broken(graph: &Graph<'_, '_>, nodes: Vec<u32>) -> Option<Vec<u32>> {
    let mut work = vec![nodes];
    while let Some(nodes) = work.pop() {
        for component in components(graph, &nodes) {
            let sums = sums(graph, &component);
            if !sums.inside || sums.accepting & graph.judge.sets != graph.judge.sets {
                continue;
            }
            let unfair = graph.judge.unfair(sums.moved, sums.unable, sums.ever);
            if unfair == 0 {
                return Some(component);
            }
            if graph.judge.fairness == Fairness::Strong {
                let rest = component.iter().filter(|n| graph.able(**n) & unfair == 0);
                let rest: Vec<u32> = rest.copied().collect();
                if !rest.is_empty() {
                    work.push(rest);
                }
            }
        }
    }
    None
}

fn sums(graph: &Graph<'_, '_>, sorted: &[u32]) -> Sums {
    let mut sums = Sums::default();
    for n in sorted {
        let able = graph.able(*n);
        sums.unable |= !able;
        sums.ever |= able;
        for arc in graph.arcs(*n) {
            if sorted.binary_search(&arc.target).is_ok() {
                let label = graph.label(arc);
                sums.accepting |= label.accepting;
                sums.moved |= label.moved;
                sums.inside = true;
            }
        }
    }
    sums
}

/// Tarjan's components of the graph between these nodes, each sorted; whatever an arc leads to comes
/// before.
pub fn components(graph: &Graph<'_, '_>, nodes: &[u32]) -> Vec<Vec<u32>> {
    let mut local: FxHashMap<u32, u32> = FxHashMap::default();
    for (i, n) in nodes.iter().enumerate() {
        local.insert(*n, i as u32);
    }
    let n = nodes.len();
    let (mut number, mut low) = (vec![u32::MAX; n], vec![0u32; n]);
    let mut closed = vec![false; n];
    let (mut stack, mut next, mut found) = (Vec::new(), 0, Vec::new());
    for root in 0..n as u32 {
        if number[root as usize] != u32::MAX {
            continue;
        }
        let mut path: Vec<(u32, usize)> = vec![(root, 0)];
        while let Some(&(l, i)) = path.last() {
            let at = l as usize;
            if i == 0 {
                (number[at], low[at]) = (next, next);
                next += 1;
                stack.push(l);
            }
            let arcs: &[Arc] = graph.arcs(nodes[at]);
            let ahead = arcs[i.min(arcs.len())..].iter().enumerate();
            let mut ahead = ahead.filter_map(|(j, a)| Some((i + j, *local.get(&a.target)?)));
            if let Some((j, target)) = ahead.next() {
                if let Some(top) = path.last_mut() {
                    top.1 = j + 1;
                }
                if number[target as usize] == u32::MAX {
                    path.push((target, 0));
                } else if !closed[target as usize] {
                    low[at] = low[at].min(number[target as usize]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent as usize] = low[parent as usize].min(low[at]);
            }
            if low[at] == number[at] {
                let mut component = Vec::new();
                while let Some(m) = stack.pop() {
                    closed[m as usize] = true;
                    component.push(nodes[m as usize]);
                    if m == l {
                        break;
                    }
                }
                component.sort_unstable();
                found.push(component);
            }
        }
    }
    found
}

/// Numbers for a certificate: for each node, trap by trap, the numbers it has there.
pub struct Numbers {
    pub components: std::collections::BTreeMap<u32, Harmless>,
    pub count: u32,
    pub of: Vec<Vec<(u32, u32)>>,
}

/// Numbers all nodes. `None` if a component is not harmless after all.
pub fn number(graph: &Graph<'_, '_>, movers: &[Mover]) -> Option<Numbers> {
    let all: Vec<u32> = (0..graph.store.len() as u32).collect();
    let mut numbers = Numbers {
        components: Default::default(),
        count: 0,
        of: vec![Vec::new(); all.len()],
    };
    let parts = match graph.judge.traps.is_empty() {
        true => vec![(0, all)],
        false => in_traps(graph, &all),
    };
    for (trap, nodes) in parts {
        numbers.part(graph, movers, trap as u32, &nodes)?;
    }
    Some(numbers)
}

impl Numbers {
    fn part(
        &mut self,
        graph: &Graph<'_, '_>,
        movers: &[Mover],
        trap: u32,
        nodes: &[u32],
    ) -> Option<()> {
        for component in components(graph, nodes) {
            let number = self.count;
            self.count += 1;
            for n in &component {
                self.of[*n as usize].push((trap, number));
            }
            let sums = sums(graph, &component);
            if !sums.inside {
                continue;
            }
            let missed = graph.judge.sets & !sums.accepting;
            let idle = graph.judge.movers & !sums.moved & !sums.unable;
            let without = graph.judge.movers & !sums.moved & sums.ever;
            let mover = |set: Set| movers[set.trailing_zeros() as usize];
            let why = if missed != 0 {
                Harmless::Misses(missed.trailing_zeros())
            } else if graph.judge.fairness != Fairness::None && idle != 0 {
                Harmless::Idle(mover(idle))
            } else if graph.judge.fairness == Fairness::Strong && without != 0 {
                let one = without & without.wrapping_neg();
                let rest = component.iter().filter(|n| graph.able(**n) & one == 0);
                let rest: Vec<u32> = rest.copied().collect();
                self.components
                    .insert(number, Harmless::Without(mover(without)));
                self.part(graph, movers, trap, &rest)?;
                continue;
            } else {
                return None;
            };
            self.components.insert(number, why);
        }
        Some(())
    }
}
