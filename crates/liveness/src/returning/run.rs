//! From a state that is good for the negation to a run: a shortest way there, and a way round on which everybody
//! has a turn, all stores reach memory, and the automaton returns.

use super::space::{Known, Ran};
use super::{Asked, Good, Node, Search};
use crate::closed;
use rustc_hash::FxHashMap;
use wattle_evidence::Lasso;
use wattle_evidence::certificate::Coded;
use wattle_evidence::live::LiveTask;
use wattle_evidence::live::big::Move;
use wattle_memory::reference::State;
use wattle_memory::{Event, Exact, Layout, Start};

/// What was reached, breadth first, and from where.
#[derive(Default)]
pub struct Nodes {
    pub list: Vec<Node>,
    index: FxHashMap<Node, usize>,
    from: Vec<Option<usize>>,
    next: Vec<Vec<usize>>,
}

impl Nodes {
    pub fn enter(&mut self, node: Node, from: Option<usize>) {
        let n = *self.index.entry(node).or_insert_with(|| {
            self.list.push(node);
            self.from.push(from);
            self.next.push(Vec::new());
            self.list.len() - 1
        });
        if let Some(from) = from {
            self.next[from].push(n);
        }
    }

    /// From a root to the node.
    pub fn way(&self, end: usize) -> Vec<usize> {
        let mut way = vec![end];
        while let Some(before) = self.from[way[way.len() - 1]] {
            way.push(before);
        }
        way.reverse();
        way
    }

    /// Of every component that is never left the first node of this kind.
    pub fn ends(&self, wanted: impl Fn(Node) -> bool) -> Vec<usize> {
        let component = self.components();
        let mut left = vec![false; self.list.len()];
        for (n, next) in self.next.iter().enumerate() {
            left[component[n]] |= next.iter().any(|m| component[*m] != component[n]);
        }
        let mut found = Vec::new();
        for n in 0..self.list.len() {
            if !left[component[n]] && wanted(self.list[n]) {
                left[component[n]] = true;
                found.push(n);
            }
        }
        found.truncate(super::MOST_CANDIDATES);
        found
    }

    /// The component of every node: by the order in which a walk leaves them, and a walk backwards in that order.
    fn components(&self) -> Vec<usize> {
        let n = self.list.len();
        let mut before = vec![Vec::new(); n];
        for (a, next) in self.next.iter().enumerate() {
            next.iter().for_each(|b| before[*b].push(a));
        }
        let (mut seen, mut order) = (vec![false; n], Vec::new());
        for root in 0..n {
            let mut path = Vec::new();
            if !std::mem::replace(&mut seen[root], true) {
                path.push((root, 0));
            }
            while let Some((a, i)) = path.last_mut() {
                let Some(b) = self.next[*a].get(*i) else {
                    order.push(*a);
                    path.pop();
                    continue;
                };
                *i += 1;
                if !std::mem::replace(&mut seen[*b], true) {
                    path.push((*b, 0));
                }
            }
        }
        let mut component = vec![usize::MAX; n];
        for root in order.into_iter().rev() {
            let mut work = vec![root];
            while let Some(a) = work.pop() {
                if component[a] == usize::MAX {
                    component[a] = root;
                    work.extend(&before[a]);
                }
            }
        }
        component
    }
}

type StateOf<L> = State<<L as Layout>::Buffer<Exact>>;
type MoveOf<L> = Move<<L as Layout>::Buffer<Exact>>;

/// A run under way.
struct Going<L: Layout> {
    state: StateOf<L>,
    node: Node,
    events: Vec<Event>,
    returned: bool,
}

/// Rounds that are longer are not shown.
const MOST_EVENTS: usize = 1 << 14;

/// The lasso of a state that is good for the negation, reached over these states.
pub fn lasso<L: Coded, C: Known<L>>(
    task: &LiveTask<'_>,
    search: &mut Search<'_, '_, L, C>,
    asked: &mut Asked<'_>,
    (start, way, o): (&Start, &[u32], u32),
    good: &Good,
) -> Result<Option<Lasso>, Ran> {
    let mut run = Going::<L> {
        state: search.real.big.machine.initial(start),
        node: (way[0], o),
        events: Vec::new(),
        returned: false,
    };
    for to in &way[1..] {
        let moves = search.real.moves(&run.state)?.moves;
        let m = moves
            .into_iter()
            .find(|m| search.real.find(&m.target) == Some(*to));
        // Where nothing moves the state stays.
        if let Some(m) = m {
            run.events.extend(m.events);
            run.state = m.target;
        }
        run.node.0 = *to;
    }
    let mut turns: FxHashMap<Node, usize> = FxHashMap::default();
    while run.events.len() < MOST_EVENTS {
        if let Some(turn) = turns.insert(run.node, run.events.len()) {
            let cycle = run.events.split_off(turn);
            let lasso = Lasso {
                model: task.model,
                fairness: task.fairness,
                start: start.clone(),
                stem: run.events,
                cycle,
                for_ever: None,
            };
            return Ok(closed(task, lasso));
        }
        // Everybody who can has a turn, and all stores reach memory.
        for t in task.instance.thread_ids() {
            let moves = search.real.moves(&run.state)?.moves;
            let own =
                |m: &MoveOf<L>| matches!(m.events[0], Event::Step { thread, .. } if thread == t);
            if let Some(m) = moves.into_iter().find(own) {
                run.take(search, asked, Some(m))?;
            }
        }
        loop {
            let moves = search.real.moves(&run.state)?.moves;
            let drain = |m: &MoveOf<L>| matches!(m.events[0], Event::Drain { .. });
            let Some(m) = moves.into_iter().find(drain) else {
                break;
            };
            run.take(search, asked, Some(m))?;
        }
        // Then the shortest way to a return.
        run.returned = false;
        while !run.returned {
            let Some((_, via)) = good.ways.get(&run.node) else {
                return Ok(None);
            };
            let moves = search.real.moves(&run.state)?.moves;
            let mut chosen = None;
            let mut any = false;
            for m in moves {
                any = true;
                let (node, returned) = run.after(search, asked, &m.target)?;
                if returned && via.is_none() || Some(node) == *via {
                    chosen = Some(m);
                    break;
                }
            }
            if any && chosen.is_none() {
                return Ok(None);
            }
            run.take(search, asked, chosen)?;
        }
    }
    Ok(None)
}

impl<L: Coded> Going<L> {
    /// The node after a move to the state, and whether that is a return.
    fn after<C: Known<L>>(
        &self,
        search: &mut Search<'_, '_, L, C>,
        asked: &mut Asked<'_>,
        target: &StateOf<L>,
    ) -> Result<(Node, bool), Ran> {
        let truth = search.real.truth(self.node.0, &asked.atoms)?;
        let after = Search::<L, C>::read(asked, self.node.1, truth)?;
        let to = search.real.add(target.clone());
        let anchor = search.is_anchor(to).then_some(to);
        let (o, returned) = Search::<L, C>::arrive(asked, anchor, after);
        Ok(((to, o), returned))
    }

    /// Takes the move; without one the state is repeated.
    fn take<C: Known<L>>(
        &mut self,
        search: &mut Search<'_, '_, L, C>,
        asked: &mut Asked<'_>,
        m: Option<MoveOf<L>>,
    ) -> Result<(), Ran> {
        let target = m.as_ref().map_or(&self.state, |m| &m.target).clone();
        let (node, returned) = self.after(search, asked, &target)?;
        self.node = node;
        self.returned |= returned;
        self.state = target;
        if let Some(m) = m {
            self.events.extend(m.events);
        }
        Ok(())
    }
}
