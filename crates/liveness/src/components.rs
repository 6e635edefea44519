//! Strongly connected components of a part of the graph, and what is wrong or harmless about them.

use crate::graph::{Arc, Broken, Graph, Label};
use crate::moves::Loops;
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
    /// How to tell of an edge that it stays there, trap by trap.
    pub stays: Vec<Stays>,
}

/// An edge between two states in a trap stays in it.
#[derive(Clone, Copy, Debug)]
pub enum Stays {
    /// A single place: if the thread is nowhere else on the way.
    Place(Set),
    /// A loop: if it is not left on the way.
    Loop(Loops),
}

impl Judge {
    /// Whether the sums over a component decide about it.
    pub fn is_plain(&self) -> bool {
        self.traps.is_empty() && self.fairness != Fairness::Strong
    }

    /// The edge, between states in the trap, stays there.
    fn stays(&self, trap: Option<usize>, label: &Label) -> bool {
        match trap.map(|i| self.stays[i]) {
            None => true,
            Some(Stays::Place(t)) => label.away & t == 0,
            Some(Stays::Loop(bit)) => label.left & bit == 0,
        }
    }

    /// Whether the arc of a component, to one of its nodes, is one of its edges.
    pub fn is_inside(&self, graph: &Graph<'_, '_>, trap: Option<usize>, arc: &Arc) -> bool {
        self.stays(trap, &graph.labels[arc.label as usize])
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
                Fairness::Strong | Fairness::Memory => ever,
            }
    }
}

/// A strongly connected set of nodes, sorted, and the sums over it.
#[derive(Default)]
struct Component {
    nodes: Vec<u32>,
    /// Acceptance sets and movers of the arcs inside.
    accepting: u64,
    moved: Set,
    /// Who cannot move in some state of it, who can in some.
    unable: Set,
    ever: Set,
    /// Some arc is inside.
    inside: bool,
}

/// A strongly connected set of nodes that a fair run can go through for ever without doing what is
/// demanded, among these nodes.
pub fn look_into(graph: &Graph<'_, '_>, nodes: &[u32]) -> Option<Broken> {
    match graph.judge.traps.is_empty() {
        true => broken(graph, nodes.to_vec(), None),
        false => in_traps(graph, nodes)
            .into_iter()
            .find_map(|(trap, inside)| broken(graph, inside, Some(trap))),
    }
}

/// The nodes in each trap; those with none are left out.
pub fn in_traps(graph: &Graph<'_, '_>, nodes: &[u32]) -> Vec<(usize, Vec<u32>)> {
    let mut all = Vec::new();
    for t in graph.machine.instance.thread_ids() {
        let locations = graph.machine.instance.thread(t).locations.len();
        let mut at: Vec<Vec<u32>> = vec![Vec::new(); locations];
        for n in nodes {
            let location = graph.machine.location(graph.state(*n), t);
            at[location.index()].push(*n);
        }
        for (i, trap) in graph.judge.traps.iter().enumerate() {
            if trap.thread != t {
                continue;
            }
            let here = trap.at.iter().map(|l| &at[l.index()]);
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
fn broken(graph: &Graph<'_, '_>, nodes: Vec<u32>, trap: Option<usize>) -> Option<Broken> {
    let mut work = vec![nodes];
    while let Some(nodes) = work.pop() {
        for component in components(graph, &nodes, trap) {
            let sets = graph.judge.sets;
            if !component.inside || component.accepting & sets != sets {
                continue;
            }
            let unfair = component.unfair(&graph.judge);
            if unfair == 0 {
                let nodes = component.nodes;
                return Some(Broken { nodes, trap });
            }
            if graph.judge.fairness == Fairness::Strong {
                let rest = component.nodes.into_iter();
                let rest: Vec<u32> = rest.filter(|n| graph.able(*n) & unfair == 0).collect();
                if !rest.is_empty() {
                    work.push(rest);
                }
            }
        }
    }
    None
}

impl Component {
    fn unfair(&self, judge: &Judge) -> Set {
        judge.unfair(self.moved, self.unable, self.ever)
    }
}

/// Tarjan's components of the graph between these nodes, which are in the trap; whatever an arc that stays
/// there leads to comes before.
fn components(graph: &Graph<'_, '_>, nodes: &[u32], trap: Option<usize>) -> Vec<Component> {
    let stays = |arc: &Arc| graph.judge.is_inside(graph, trap, arc);
    let mut place = graph.place.borrow_mut();
    if place.len() < graph.store.len() {
        place.resize(graph.store.len(), NOWHERE);
    }
    for (i, n) in nodes.iter().enumerate() {
        place[*n as usize] = i as u32;
    }
    let n = nodes.len();
    let (mut number, mut low) = (vec![NOWHERE; n], vec![0u32; n]);
    // Which component a node is in, once that is known.
    let mut of = vec![NOWHERE; n];
    let (mut stack, mut next) = (Vec::new(), 0);
    let mut found: Vec<Component> = Vec::new();
    let mut path: Vec<(u32, u32)> = Vec::new();
    for root in 0..n as u32 {
        if number[root as usize] == NOWHERE {
            path.push((root, 0));
        }
        while let Some((l, i)) = path.last_mut() {
            let at = *l as usize;
            if *i == 0 {
                (number[at], low[at]) = (next, next);
                next += 1;
                stack.push(*l);
            }
            let arcs: &[Arc] = graph.arcs(nodes[at]);
            let mut entered = None;
            while let Some(arc) = arcs.get(*i as usize) {
                *i += 1;
                let target = place[arc.target as usize];
                if target == NOWHERE || !stays(arc) {
                    continue;
                }
                if number[target as usize] == NOWHERE {
                    entered = Some(target);
                    break;
                }
                if of[target as usize] == NOWHERE {
                    low[at] = low[at].min(number[target as usize]);
                }
            }
            if let Some(target) = entered {
                path.push((target, 0));
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                low[*parent as usize] = low[*parent as usize].min(low[at]);
            }
            if low[at] == number[at] {
                let mut component = Component::default();
                while let Some(m) = stack.pop() {
                    of[m as usize] = found.len() as u32;
                    component.nodes.push(nodes[m as usize]);
                    if m as usize == at {
                        break;
                    }
                }
                component.nodes.sort_unstable();
                found.push(component);
            }
        }
    }
    for (i, node) in nodes.iter().enumerate() {
        let component = &mut found[of[i] as usize];
        let able = graph.able(*node);
        component.unable |= !able;
        component.ever |= able;
        for arc in graph.arcs(*node) {
            let target = place[arc.target as usize];
            if target != NOWHERE && of[target as usize] == of[i] && stays(arc) {
                let label = graph.label(arc);
                component.accepting |= label.accepting;
                component.moved |= label.moved;
                component.inside = true;
            }
        }
    }
    for n in nodes {
        place[*n as usize] = NOWHERE;
    }
    found
}

/// No place among the nodes that are looked at.
const NOWHERE: u32 = u32::MAX;

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
        true => vec![(None, all)],
        false => {
            let parts = in_traps(graph, &all).into_iter();
            parts.map(|(trap, nodes)| (Some(trap), nodes)).collect()
        }
    };
    for (trap, nodes) in parts {
        numbers.part(graph, movers, trap, &nodes)?;
    }
    Some(numbers)
}

impl Numbers {
    fn part(
        &mut self,
        graph: &Graph<'_, '_>,
        movers: &[Mover],
        trap: Option<usize>,
        nodes: &[u32],
    ) -> Option<()> {
        for component in components(graph, nodes, trap) {
            let number = self.count;
            self.count += 1;
            for n in &component.nodes {
                self.of[*n as usize].push((trap.unwrap_or(0) as u32, number));
            }
            if !component.inside {
                continue;
            }
            let missed = graph.judge.sets & !component.accepting;
            let idle = graph.judge.movers & !component.moved & !component.unable;
            let without = graph.judge.movers & !component.moved & component.ever;
            let mover = |set: Set| movers[set.trailing_zeros() as usize];
            let why = if missed != 0 {
                Harmless::Misses(missed.trailing_zeros())
            } else if graph.judge.fairness != Fairness::None && idle != 0 {
                Harmless::Idle(mover(idle))
            } else if graph.judge.fairness == Fairness::Strong && without != 0 {
                let one = without & without.wrapping_neg();
                let rest = component.nodes.into_iter();
                let rest: Vec<u32> = rest.filter(|n| graph.able(*n) & one == 0).collect();
                let why = Harmless::Without(mover(without));
                self.components.insert(number, why);
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
