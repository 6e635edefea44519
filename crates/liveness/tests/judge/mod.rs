//! Brute force: every state, every guess, every set of movers.

#![allow(dead_code, reason = "each test that includes this uses a part of it")]

mod chance;

use chance::Chain;
use std::collections::HashMap;
use wattle_evidence::live::big::{Big, Moves};
use wattle_evidence::live::{Fairness, LiveTask, Set, loop_in_block, movers};
use wattle_memory::reference::{State, evaluate};
use wattle_memory::{Exact, Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::instance::{Demand, DemandKind, Fact, Instance};
use wattle_model::{CellId, Expr, Formula, LocationId, Op2, RegisterId, Span, ThreadId};
use wattle_random::Rng;

/// More states, or nodes with guesses, are not looked at.
const MOST_STATES: usize = 500;
const MOST_NODES: usize = 1500;

pub struct Judge {
    pub fault: bool,
    /// Some run is none of the program's.
    pub discards: bool,
    /// Locations, truth of atoms, who can move; discarded ones have no edges.
    states: Vec<(Vec<LocationId>, Vec<bool>, Set)>,
    edges: Vec<Vec<(usize, Set)>>,
    movers: usize,
    /// The first of the states are the initial ones.
    starts: usize,
}

impl Judge {
    pub fn new(task: &LiveTask<'_>) -> Option<Judge> {
        Self::within(task, usize::MAX)
    }

    /// As if no thread could have more stores pending.
    pub fn within(task: &LiveTask<'_>, most: usize) -> Option<Judge> {
        if loop_in_block(task.instance).is_some() {
            return None;
        }
        match task.model {
            MemoryModel::Sc => explore::<Sc>(task, most),
            MemoryModel::Tso => explore::<Tso>(task, most),
            MemoryModel::Pso => explore::<Pso>(task, most),
        }
    }

    /// Whether a fair run breaks the demand. Without an answer (too many guesses) none is found: then
    /// the comparison says nothing, so such formulas are not made.
    pub fn is_broken(&self, task: &LiveTask<'_>) -> bool {
        if task.fairness == Fairness::Memory {
            return self.is_broken_by_chance(task);
        }
        match task.formula() {
            Some(f) => self.breaks_formula(task, f),
            None => {
                let traps = task.traps();
                traps.iter().any(|trap| {
                    let inside = |s: usize| trap.holds(&self.states[s].0);
                    let nodes: Vec<usize> = (0..self.states.len()).filter(|s| inside(*s)).collect();
                    let edge = |a: usize| {
                        let out = self.edges[a].iter();
                        out.map(|(b, moved)| (*b, *moved)).collect::<Vec<_>>()
                    };
                    self.has_fair(task.fairness, &nodes, &edge, &|s| s, &[])
                })
            }
        }
    }

    fn is_broken_by_chance(&self, task: &LiveTask<'_>) -> bool {
        let chain = |columns: Vec<Vec<bool>>| Chain {
            edges: (self.edges.iter())
                .map(|out| out.iter().map(|(t, _)| *t).collect())
                .collect(),
            starts: (0..self.starts).collect(),
            columns,
        };
        let all = 0..self.states.len();
        match task.formula() {
            Some(f) => {
                let atoms = task.atoms();
                let column = |k| all.clone().map(|s| self.states[s].1[k]).collect();
                chain((0..atoms.len()).map(column).collect()).may_break(f, &atoms)
            }
            None => task.traps().iter().any(|trap| {
                let outside = all.clone().map(|s| !trap.holds(&self.states[s].0));
                chain(vec![outside.collect()]).may_stay_out()
            }),
        }
    }

    fn breaks_formula(&self, task: &LiveTask<'_>, f: &Formula<Expr<Fact>>) -> bool {
        let atoms = task.atoms();
        let mut parts: Vec<&Formula<Expr<Fact>>> = Vec::new();
        temporal(f, &mut parts);
        let k = parts.len();
        let value = |f: &Formula<Expr<Fact>>, s: usize, bits: usize| {
            truth(f, &parts, &atoms, &self.states[s].1, bits)
        };
        // The rule of a part, with what the guess is one step later.
        let rule = |p: usize, s: usize, bits: usize, later: bool| match parts[p] {
            Formula::Globally(f) => value(f, s, bits) && later,
            Formula::Finally(f) => value(f, s, bits) || later,
            Formula::Until(f, g) | Formula::WeakUntil(f, g) => {
                value(g, s, bits) || value(f, s, bits) && later
            }
            Formula::Release(f, g) => value(g, s, bits) && (value(f, s, bits) || later),
            _ => unreachable!(),
        };
        // Where a guess is not put off: a least one comes true, a greatest one is not false in vain.
        let settled = |p: usize, s: usize, bits: usize| {
            let guess = bits >> p & 1 == 1;
            match parts[p] {
                Formula::Finally(f) => !guess || value(f, s, bits),
                Formula::Until(_, g) => !guess || value(g, s, bits),
                Formula::Globally(f) => guess || !value(f, s, bits),
                Formula::Release(_, g) => guess || !value(g, s, bits),
                Formula::WeakUntil(f, g) => guess || !(value(f, s, bits) || value(g, s, bits)),
                _ => unreachable!(),
            }
        };
        let number = |s: usize, bits: usize| s << k | bits;
        let n = self.states.len() << k;
        let edge = |node: usize| {
            let (s, bits) = (node >> k, node & ((1 << k) - 1));
            let mut out = Vec::new();
            for (t, moved) in &self.edges[s] {
                for next in 0..1usize << k {
                    if (0..k).all(|p| (bits >> p & 1 == 1) == rule(p, s, bits, next >> p & 1 == 1))
                    {
                        out.push((number(*t, next), *moved));
                    }
                }
            }
            out
        };
        // Reachable nodes from initial ones (state 0 up to `starts`) where the formula is false.
        let mut seen = vec![false; n];
        let mut work: Vec<usize> = Vec::new();
        for s in 0..self.starts {
            for bits in 0..1 << k {
                if !value(f, s, bits) {
                    work.push(number(s, bits));
                }
            }
        }
        let mut nodes = Vec::new();
        while let Some(node) = work.pop() {
            if !std::mem::replace(&mut seen[node], true) {
                nodes.push(node);
                work.extend(edge(node).into_iter().map(|(t, _)| t));
            }
        }
        let sets: Vec<Box<dyn Fn(usize) -> bool>> = (0..k)
            .map(|p| {
                let met: Vec<bool> = (0..n)
                    .map(|node| settled(p, node >> k, node & ((1 << k) - 1)))
                    .collect();
                Box::new(move |node: usize| met[node]) as Box<dyn Fn(usize) -> bool>
            })
            .collect();
        self.has_fair(task.fairness, &nodes, &edge, &|node| node >> k, &sets)
    }

    /// Whether a cycle through the nodes meets all sets and is fair.
    fn has_fair(
        &self,
        fairness: Fairness,
        nodes: &[usize],
        edge: &dyn Fn(usize) -> Vec<(usize, Set)>,
        state: &dyn Fn(usize) -> usize,
        sets: &[Box<dyn Fn(usize) -> bool>],
    ) -> bool {
        let movers = self.movers;
        let able = |n: usize| self.states[state(n)].2;
        let choices: Vec<Option<Set>> = match fairness {
            Fairness::None | Fairness::Weak | Fairness::Memory => vec![None],
            Fairness::Strong => (0..1 << movers).map(Some).collect(),
        };
        choices.into_iter().any(|moving| {
            // Those that do not move for ever cannot move at all.
            let left: Vec<usize> = match moving {
                None => nodes.to_vec(),
                Some(m) => nodes
                    .iter()
                    .copied()
                    .filter(|n| able(*n) & !m == 0)
                    .collect(),
            };
            sccs(&left, edge).into_iter().any(|component| {
                let inside = |n: &usize| component.contains(n);
                let arcs: Vec<(usize, usize, Set)> = component
                    .iter()
                    .flat_map(|a| edge(*a).into_iter().map(move |(b, m)| (*a, b, m)))
                    .filter(|(_, b, _)| inside(b))
                    .collect();
                if arcs.is_empty() || !sets.iter().all(|s| component.iter().any(|n| s(*n))) {
                    return false;
                }
                let moved = arcs.iter().fold(0, |all, (.., m)| all | m);
                let all: Set = if movers == 0 { 0 } else { (1 << movers) - 1 };
                match (fairness, moving) {
                    (Fairness::None, _) => true,
                    (Fairness::Weak | Fairness::Memory, _) | (_, None) => {
                        let always = component.iter().fold(all, |a, n| a & able(*n));
                        always & !moved == 0
                    }
                    (Fairness::Strong, Some(m)) => m & !moved == 0,
                }
            })
        })
    }
}

/// Components, by forward and backward reachability from each node.
fn sccs(nodes: &[usize], edge: &dyn Fn(usize) -> Vec<(usize, Set)>) -> Vec<Vec<usize>> {
    let place: HashMap<usize, usize> = nodes.iter().enumerate().map(|(i, n)| (*n, i)).collect();
    let n = nodes.len();
    let (mut out, mut into) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    for (i, a) in nodes.iter().enumerate() {
        for (b, _) in edge(*a) {
            if let Some(j) = place.get(&b) {
                out[i].push(*j);
                into[*j].push(i);
            }
        }
    }
    let reach = |from: usize, edges: &[Vec<usize>], allowed: &[bool]| {
        let mut seen = vec![false; n];
        let mut work = vec![from];
        while let Some(i) = work.pop() {
            if allowed[i] && !std::mem::replace(&mut seen[i], true) {
                work.extend(&edges[i]);
            }
        }
        seen
    };
    let mut left = vec![true; n];
    let mut found = Vec::new();
    for i in 0..n {
        if left[i] {
            let (ahead, back) = (reach(i, &out, &left), reach(i, &into, &left));
            let component: Vec<usize> = (0..n).filter(|j| ahead[*j] && back[*j]).collect();
            component.iter().for_each(|j| left[*j] = false);
            found.push(component.into_iter().map(|j| nodes[j]).collect());
        }
    }
    found
}

fn temporal<'f>(f: &'f Formula<Expr<Fact>>, parts: &mut Vec<&'f Formula<Expr<Fact>>>) {
    for p in f.parts() {
        temporal(p, parts);
    }
    let of_time = !matches!(
        f,
        Formula::Now(_)
            | Formula::Not(_)
            | Formula::And(..)
            | Formula::Or(..)
            | Formula::Implies(..)
    );
    if of_time && !parts.contains(&f) {
        parts.push(f);
    }
}

fn truth(
    f: &Formula<Expr<Fact>>,
    parts: &[&Formula<Expr<Fact>>],
    atoms: &[&Expr<Fact>],
    now: &[bool],
    bits: usize,
) -> bool {
    let sub = |f: &Formula<Expr<Fact>>| truth(f, parts, atoms, now, bits);
    match f {
        Formula::Now(e) => now[atoms.iter().position(|a| *a == e).unwrap()],
        Formula::Not(f) => !sub(f),
        Formula::And(f, g) => sub(f) && sub(g),
        Formula::Or(f, g) => sub(f) || sub(g),
        Formula::Implies(f, g) => !sub(f) || sub(g),
        _ => bits >> parts.iter().position(|p| *p == f).unwrap() & 1 == 1,
    }
}

fn explore<L: Layout>(task: &LiveTask<'_>, most: usize) -> Option<Judge> {
    let big = Big::<L>::new(task.instance).ok()?;
    let atoms = task.atoms();
    let k = task.formula().map_or(0, |f| {
        let mut parts = Vec::new();
        temporal(f, &mut parts);
        parts.len()
    });
    let n = movers(task.instance, task.model).len();
    if n > 6 {
        return None;
    }
    type Of<L> = State<<L as Layout>::Buffer<Exact>>;
    let mut index: HashMap<Of<L>, usize> = HashMap::new();
    let mut list: Vec<Of<L>> = Vec::new();
    let mut add = |s: Of<L>, list: &mut Vec<Of<L>>| {
        *index.entry(s.clone()).or_insert_with(|| {
            list.push(s);
            list.len() - 1
        })
    };
    for start in big.machine.starts().ok()? {
        add(big.machine.initial(&start), &mut list);
    }
    let starts = list.len();
    let mut judge = Judge {
        fault: false,
        discards: false,
        states: Vec::new(),
        edges: Vec::new(),
        movers: n,
        starts,
    };
    let mut next = 0;
    while next < list.len() {
        if list.len() > MOST_STATES || list.len() << k > MOST_NODES {
            return None;
        }
        let state = list[next].clone();
        // A run that meets a fault ends there.
        let (moves, fault) = match big.moves(&state) {
            Ok(moves) => (moves, false),
            Err(_) => {
                let none = Moves {
                    moves: Vec::new(),
                    able: 0,
                    discarded: false,
                };
                (none, true)
            }
        };
        judge.fault |= fault;
        let now: Result<Vec<bool>, _> = atoms
            .iter()
            .map(|e| evaluate(&state, e).map(|v| v != 0))
            .collect();
        judge
            .states
            .push((state.locations.clone(), now.ok()?, moves.able));
        judge.discards |= moves.discarded;
        let mut edges = Vec::new();
        for m in moves.moves {
            let mut buffers = m.target.buffers.iter();
            if buffers.any(|b| L::entries::<Exact>(b).len() > most) {
                continue;
            }
            edges.push((add(m.target, &mut list), m.moved));
        }
        if edges.is_empty() && !moves.discarded && !fault {
            edges.push((next, 0));
        }
        judge.edges.push(edges);
        next += 1;
    }
    Some(judge)
}

/// A random demand on an instance: progress, or a formula over what it has.
pub fn demand(rng: &mut Rng, instance: &Instance) -> Demand {
    let kind = match rng.one_in(3) {
        true => DemandKind::Progress,
        false => DemandKind::Formula(formula(rng, instance, 3)),
    };
    let span = Span::NONE;
    Demand { kind, span }
}

fn condition(rng: &mut Rng, instance: &Instance) -> Expr<Fact> {
    let t = ThreadId::new(rng.below(instance.threads.len()));
    let thread = instance.thread(t);
    let fact = match rng.below(3) {
        0 => Fact::Cell(CellId::new(rng.below(instance.cells.len()))),
        1 if !thread.registers.is_empty() => {
            Fact::Register(t, RegisterId::new(rng.below(thread.registers.len())))
        }
        _ => {
            let n = thread.locations.len();
            let mut at = vec![LocationId::new(rng.below(n)), LocationId::new(rng.below(n))];
            at.sort_unstable();
            at.dedup();
            return Expr::Atom(Fact::At(t, at));
        }
    };
    let value = Expr::Const(rng.between(0, 1));
    Expr::binary(Op2::Eq, Expr::Atom(fact), value)
}

pub fn formula(rng: &mut Rng, instance: &Instance, depth: usize) -> Formula<Expr<Fact>> {
    if depth == 0 || rng.one_in(5) {
        return Formula::Now(condition(rng, instance));
    }
    let mut sub = || Box::new(formula(rng, instance, depth - 1));
    let (f, g) = (sub(), sub());
    match rng.below(12) {
        0 => Formula::Not(f),
        1 => Formula::And(f, g),
        2 => Formula::Or(f, g),
        3 => Formula::Implies(f, g),
        4 | 5 => Formula::Globally(f),
        6 | 7 => Formula::Finally(f),
        8 => Formula::Until(f, g),
        9 => Formula::Release(f, g),
        10 => Formula::WeakUntil(f, g),
        _ => Formula::Globally(Box::new(Formula::Finally(f))),
    }
}
