//! Memory fairness: runs that come back for ever to small buffers and take every way that is open there.
//!
//! What is shown, and why it is enough, stands at the certificate
//! ([`wattle_evidence::certificate::returning`]). Here it is found. *Good* are anchors with an observer from which every run is accepted:
//! the greatest set such that from all that can be reached from one, before the next return, there is a way to a return into the set.
//! It is come to from above: everything may be good at first, and what leads to where no return can be reached is taken out.
//!
//! The demand holds if the initial states are good for its automaton. It is broken if some state can be reached that is good for
//! the automaton of its negation. Where buffers stay bounded one of both is so: a run ends, with certainty, in a component
//! that cannot be left, where it either always or never satisfies the formula. Elsewhere
//! states are gone through with buffers that forget, more and more finely, and neither may be found.

mod observer;
mod run;
mod space;

use crate::{MOST_BUFFERED, NAME, fault, tableau};
use observer::Watch;
use run::{Nodes, lasso};
use rustc_hash::{FxHashMap, FxHashSet};
use space::{Known, Ran, Space};
use wattle_evidence::certificate::components::put;
use wattle_evidence::certificate::{Certificate, ClosedStates, Coded, Returning, Returns};
use wattle_evidence::live::{LiveTask, atoms_of};
use wattle_evidence::{Control, LiveAnswer, Progress, Reason, Refusal};
use wattle_memory::{Exact, Keeps, MemoryModel, NewestK, OldestK, Pso, Sc, Tso};
use wattle_model::graph::Action;
use wattle_model::instance::Fact;
use wattle_model::{Expr, Formula, Instance};

/// What buffers that forget keep in order, coarsest first; and how many stores of each thread may be pending on a real way.
const RUNGS: [(Keeps, usize, usize); 7] = [
    (Keeps::Oldest, 0, 1),
    (Keeps::Newest, 1, 1),
    (Keeps::Oldest, 1, 1),
    (Keeps::Oldest, 0, 2),
    (Keeps::Newest, 2, 2),
    (Keeps::Oldest, 2, 2),
    (Keeps::Newest, 3, 3),
];

/// States in which a run to one that is good for the negation is looked for.
const MOST_CANDIDATES: usize = 64;

/// A few states, and so many that more are not looked at.
pub const FEW: usize = 1 << 12;
pub const MOST: usize = 1 << 18;

/// Decides the demand with at most so many states.
pub fn run(task: &LiveTask<'_>, most: usize, control: &Control<'_>) -> (LiveAnswer, Progress) {
    match task.model {
        MemoryModel::Sc => decide::<Sc>(task, most, control),
        MemoryModel::Tso => decide::<Tso>(task, most, control),
        MemoryModel::Pso => decide::<Pso>(task, most, control),
    }
}

fn decide<L: Coded>(
    task: &LiveTask<'_>,
    most: usize,
    control: &Control<'_>,
) -> (LiveAnswer, Progress) {
    let mut question = Question {
        task,
        most,
        obligations: task.obligations(),
        every: task.model != MemoryModel::Sc && has_locks(task.instance),
        proofs: Vec::new(),
        effort: Progress::default(),
        open: None,
    };
    question.proofs = vec![None; question.obligations.len()];
    let longest = MOST_BUFFERED as usize;
    let first = question.rung::<L, Exact>((Keeps::Exact, 0), (), longest, control);
    let long = matches!(first, Err(Ran::Long));
    let mut answer = question.told(first, true, control);
    if long && question.every {
        let why = "buffers have no bound, and a lock may keep stores from memory for ever";
        answer = Some(LiveAnswer::Undecided(Reason::Refused(Refusal::new(why))));
    }
    for (keeps, k, pending) in RUNGS {
        if answer.is_some() || !long {
            break;
        }
        let found = match keeps {
            Keeps::Newest => question.rung::<L, NewestK>((keeps, k), k, pending, control),
            Keeps::Oldest | Keeps::Exact | Keeps::Multiset | Keeps::AtMost => {
                question.rung::<L, OldestK>((keeps, k), k, pending, control)
            }
        };
        answer = question.told(found, false, control);
    }
    let effort = question.effort;
    let answer = answer.unwrap_or_else(|| {
        let why = question.open.unwrap_or(match long {
            true => "buffers have no bound, and those that forget say too little about what can be reached",
            false => "a component could not be told good or bad",
        });
        LiveAnswer::Undecided(Reason::Other(why.into()))
    });
    (answer, effort)
}

fn has_locks(instance: &Instance) -> bool {
    let mut steps = instance.threads.iter().flat_map(|t| &t.steps);
    steps.any(|s| s.action == Action::Lock)
}

/// What is asked, and what is known so far.
struct Question<'t, 'i> {
    task: &'t LiveTask<'i>,
    /// More states are not looked at.
    most: usize,
    obligations: Vec<Formula<Expr<Fact>>>,
    /// Every state is an anchor.
    every: bool,
    proofs: Vec<Option<Returns>>,
    effort: Progress,
    /// Why it went no further, the last time.
    open: Option<&'static str>,
}

type Contents = (Keeps, usize);

impl<'i> Question<'_, 'i> {
    /// What is to be said, if it is enough.
    fn told(
        &mut self,
        found: Result<Option<wattle_evidence::Lasso>, Ran>,
        exact: bool,
        control: &Control<'_>,
    ) -> Option<LiveAnswer> {
        match found {
            Ok(Some(lasso)) => Some(LiveAnswer::Broken(lasso)),
            Ok(None) => {
                let parts: Option<Vec<Returns>> = self.proofs.iter().cloned().collect();
                let model = self.task.model;
                let proof = |parts| Certificate::Returning(Returning { model, parts });
                parts.map(|parts| LiveAnswer::Holds(proof(parts)))
            }
            Err(Ran::Stopped(stop)) => {
                let reason = Reason::stopped(stop, NAME);
                Some(LiveAnswer::Undecided(reason))
            }
            Err(Ran::Fault) if exact => Some(fault(self.task, control)),
            Err(Ran::Fault) => None,
            Err(Ran::Long) => None,
            Err(Ran::Other(why)) => {
                self.open = Some(why);
                None
            }
        }
    }

    /// Tries every obligation without a proof, with buffers that remember so much.
    fn rung<L: Coded, C: Known<L>>(
        &mut self,
        contents: Contents,
        bound: C::Bound,
        pending: usize,
        control: &Control<'_>,
    ) -> Result<Option<wattle_evidence::Lasso>, Ran> {
        let instance: &'i Instance = self.task.instance;
        let mut atoms: Vec<Expr<Fact>> = Vec::new();
        for f in &self.obligations {
            atoms.extend(atoms_of(f).into_iter().cloned());
        }
        let refused = |_| Ran::Other("the machine refuses the program");
        let long = match contents.0 {
            Keeps::Exact => pending,
            Keeps::Oldest | Keeps::Newest | Keeps::Multiset | Keeps::AtMost => usize::MAX,
        };
        let mut search = Search::<L, C> {
            control,
            real: Space::new(instance, (), &atoms, (long, self.most)).map_err(refused)?,
            seen: Space::new(instance, bound, &atoms, (long, self.most)).map_err(refused)?,
            every: self.every,
            anchors: Vec::new(),
            pending,
            most_nodes: 4 * self.most,
            work: 0,
        };
        let mut found = Ok(None);
        for (i, f) in self.obligations.iter().enumerate() {
            if self.proofs[i].is_some() {
                continue;
            }
            found = search.obligation(self.task, (i, f), contents, &mut self.proofs[i]);
            if !matches!(found, Ok(None)) {
                break;
            }
        }
        self.effort.states += search.seen.progress().states;
        let memory = search.seen.progress().memory + search.real.progress().memory;
        self.effort.memory = self.effort.memory.max(memory);
        found
    }
}

/// One kind of buffers to go through everything with, and the real ones.
struct Search<'c, 'i, L: Coded, C: Known<L>> {
    control: &'c Control<'c>,
    real: Space<'i, L, Exact>,
    seen: Space<'i, L, C>,
    every: bool,
    /// The real states of anchors, as far as they were asked for.
    anchors: Vec<Option<Option<u32>>>,
    /// So many stores of a thread may be pending on a real way.
    pending: usize,
    /// More pairs of a state and an observer are not looked at.
    most_nodes: usize,
    work: u64,
}

/// Nodes between two polls.
const POLL: u64 = 1 << 12;

/// One formula, as it is read.
struct Asked<'f> {
    watch: Watch,
    atoms: Vec<&'f Expr<Fact>>,
    /// Where the observer, which would keep these pairs, does not return.
    bad: FxHashSet<(u32, u32)>,
}

/// A state with an observer.
type Node = (u32, u32);

/// All that can be reached.
#[derive(Default)]
struct Closure {
    list: Vec<Node>,
    index: FxHashMap<Node, u32>,
    /// From where it is reached without a return.
    before: Vec<Vec<u32>>,
    /// Its place among the real nodes, if it is an anchor.
    real: Vec<Option<Node>>,
    root: Vec<bool>,
    /// Reached by a return.
    start: Vec<bool>,
}

/// How far it is to a return, and over which node.
type Ways = FxHashMap<Node, (u32, Option<Node>)>;

/// Everything that can be reached from some roots has a way to a return.
struct Good {
    anchors: Vec<Node>,
    returns: FxHashSet<Node>,
    ways: Ways,
}

impl<L: Coded, C: Known<L>> Search<'_, '_, L, C> {
    /// The obligation's proof, or a run that breaks it.
    fn obligation(
        &mut self,
        task: &LiveTask<'_>,
        (i, f): (usize, &Formula<Expr<Fact>>),
        contents: Contents,
        proof: &mut Option<Returns>,
    ) -> Result<Option<wattle_evidence::Lasso>, Ran> {
        let asked = |negated| -> Result<Asked<'_>, Ran> {
            let automaton = tableau::of(f, negated)
                .map_err(|_| Ran::Other("the formula's automaton is too large"))?;
            Ok(Asked {
                watch: Watch::new(automaton),
                atoms: atoms_of(f),
                bad: FxHashSet::default(),
            })
        };
        let mut holds = asked(false)?;
        let starts = self.real.big.machine.starts();
        let starts = starts.map_err(|_| Ran::Other("the machine refuses the program"))?;
        let first = holds.watch.begin([holds.watch.automaton.initial]);
        let mut roots: Vec<Node> = Vec::new();
        for start in &starts {
            let state = self.real.big.machine.initial(start);
            roots.push((self.real.add(state), first));
        }
        if let Some(good) = self.good(&mut holds, &roots)? {
            *proof = Some(self.written(&holds, &good, (i, contents)));
            return Ok(None);
        }
        let mut breaks = asked(true)?;
        let nodes = self.reached(&mut breaks, &roots)?;
        for end in nodes.ends(|(r, _)| self.is_anchor(r)) {
            let (r, o) = nodes.list[end];
            let Some(good) = self.good(&mut breaks, &[(r, o)])? else {
                continue;
            };
            let way = nodes.way(end);
            let start = roots.iter().position(|root| root.0 == nodes.list[way[0]].0);
            let Some(start) = start.map(|s| &starts[s]) else {
                continue;
            };
            let way: Vec<u32> = way.iter().map(|n| nodes.list[*n].0).collect();
            let Some(mut lasso) = lasso(task, self, &mut breaks, (start, &way, o), &good)? else {
                continue;
            };
            // The proof is about where the round begins.
            let Some(root) = self.after_stem(&mut breaks, &lasso)? else {
                continue;
            };
            if let Some(good) = self.good(&mut breaks, &[root])? {
                let written = self.written(&breaks, &good, (i, contents));
                lasso.for_ever = Some(Box::new(written));
                return Ok(Some(lasso));
            }
        }
        Ok(None)
    }

    /// One of so many nodes was looked at.
    fn tick(&mut self, nodes: usize) -> Result<(), Ran> {
        self.work += 1;
        if nodes > self.most_nodes {
            return Err(Ran::Other("too many states"));
        }
        if self.work.is_multiple_of(POLL) {
            let mut progress = self.seen.progress();
            progress.memory += self.real.progress().memory + 150 * nodes as u64;
            self.control.poll(NAME, progress)?;
        }
        Ok(())
    }

    fn is_anchor(&self, real: u32) -> bool {
        self.every || self.real.longest[real as usize] == 0
    }

    /// The real state, if it is an anchor.
    fn anchor(&mut self, seen: u32) -> Option<u32> {
        let i = seen as usize;
        if self.anchors.len() <= i {
            self.anchors.resize(i + 1, None);
        }
        if self.anchors[i].is_none() {
            let may = self.every || self.seen.longest[i] == 0;
            let known = may.then(|| self.seen.as_known(seen)).flatten();
            self.anchors[i] = Some(known.map(|state| self.real.add(state)));
        }
        self.anchors[i].flatten()
    }

    /// The observer after arriving somewhere, and whether it has returned.
    fn arrive(asked: &Asked<'_>, anchor: Option<u32>, o: u32) -> (u32, bool) {
        match (anchor, asked.watch.kept(o)) {
            (Some(r), Some(kept)) if !asked.bad.contains(&(r, kept)) => (kept, true),
            _ => (o, false),
        }
    }

    fn read(asked: &mut Asked<'_>, o: u32, truth: u64) -> Result<u32, Ran> {
        let after = asked.watch.read(o, truth);
        after.ok_or(Ran::Other(
            "the formula's automaton may be in too many states",
        ))
    }

    /// Whether all roots are good, and why.
    fn good(&mut self, asked: &mut Asked<'_>, roots: &[Node]) -> Result<Option<Good>, Ran> {
        loop {
            let Some(closure) = self.closure(asked, roots)? else {
                return Ok(None);
            };
            let anchors: Vec<Node> = closure.real.iter().flatten().copied().collect();
            let ways = self.ways(asked, &anchors)?;
            let fails = |n: &u32| {
                let real = closure.real[*n as usize];
                real.is_some_and(|node| !ways.contains_key(&node))
            };
            let mut failing: Vec<u32> = (0..closure.list.len() as u32).filter(fails).collect();
            if failing.is_empty() {
                let starts = closure.start.iter().zip(&closure.real);
                let returns = starts
                    .filter(|(start, _)| **start)
                    .filter_map(|(_, real)| *real);
                return Ok(Some(Good {
                    returns: returns.collect(),
                    anchors,
                    ways,
                }));
            }
            // From where these are reached before the next return is not good.
            let mut seen = vec![false; closure.list.len()];
            while let Some(n) = failing.pop() {
                let i = n as usize;
                if std::mem::replace(&mut seen[i], true) {
                    continue;
                }
                if closure.root[i] {
                    return Ok(None);
                }
                if let (true, Some(node)) = (closure.start[i], closure.real[i]) {
                    asked.bad.insert(node);
                }
                failing.extend(&closure.before[i]);
            }
        }
    }

    /// All that can be reached from the roots; none if this machine cannot have one.
    fn closure(&mut self, asked: &mut Asked<'_>, roots: &[Node]) -> Result<Option<Closure>, Ran> {
        let mut all = Closure::default();
        for (r, o) in roots {
            let state = self.real.states[*r as usize].clone();
            let Some(a) = self.seen.add_known(&state) else {
                return Ok(None);
            };
            let n = self.enter(&mut all, (a, *o));
            all.root[n as usize] = true;
        }
        let mut work: Vec<u32> = (0..all.list.len() as u32).collect();
        while let Some(n) = work.pop() {
            let (a, o) = all.list[n as usize];
            let truth = self.seen.truth(a, &asked.atoms)?;
            let after = Self::read(asked, o, truth)?;
            let first = work.len();
            for to in self.seen.next(a, self.control)? {
                let anchor = self.anchor(to);
                let (o, returned) = Self::arrive(asked, anchor, after);
                let known = all.list.len();
                let m = self.enter(&mut all, (to, o));
                if all.list.len() > known {
                    work.push(m);
                }
                match returned {
                    true => all.start[m as usize] = true,
                    false => all.before[m as usize].push(n),
                }
            }
            // Steps before drains: buffers without a bound show soon.
            work[first..].reverse();
            self.tick(all.list.len())?;
        }
        Ok(Some(all))
    }

    fn enter(&mut self, all: &mut Closure, node: Node) -> u32 {
        if let Some(n) = all.index.get(&node) {
            return *n;
        }
        let n = all.list.len() as u32;
        all.list.push(node);
        all.index.insert(node, n);
        all.before.push(Vec::new());
        all.real.push(self.anchor(node.0).map(|r| (r, node.1)));
        all.root.push(false);
        all.start.push(false);
        n
    }

    /// The real ways from these nodes to returns.
    fn ways(&mut self, asked: &mut Asked<'_>, from: &[Node]) -> Result<Ways, Ran> {
        let mut before: FxHashMap<Node, Vec<Node>> = FxHashMap::default();
        let mut ways = Ways::default();
        let mut near: Vec<Node> = Vec::new();
        let mut work: Vec<Node> = Vec::new();
        for node in from {
            if !before.contains_key(node) {
                before.insert(*node, Vec::new());
                work.push(*node);
            }
        }
        let mut next = 0;
        while let Some(node) = work.get(next).copied() {
            next += 1;
            let truth = self.real.truth(node.0, &asked.atoms)?;
            let after = Self::read(asked, node.1, truth)?;
            for to in self.real.next(node.0, self.control)? {
                if usize::from(self.real.longest[to as usize]) > self.pending {
                    continue;
                }
                let anchor = self.is_anchor(to).then_some(to);
                let (o, returned) = Self::arrive(asked, anchor, after);
                if returned {
                    if ways.insert(node, (1, None)).is_none() {
                        near.push(node);
                    }
                    continue;
                }
                let known = before.entry((to, o)).or_insert_with(|| {
                    work.push((to, o));
                    Vec::new()
                });
                known.push(node);
            }
            self.tick(work.len())?;
        }
        let mut next = 0;
        while let Some(node) = near.get(next).copied() {
            next += 1;
            let far = ways[&node].0 + 1;
            for earlier in &before[&node] {
                if !ways.contains_key(earlier) {
                    ways.insert(*earlier, (far, Some(node)));
                    near.push(*earlier);
                }
            }
        }
        Ok(ways)
    }

    /// States with what the automaton may have come to, without returns.
    fn reached(&mut self, asked: &mut Asked<'_>, roots: &[Node]) -> Result<Nodes, Ran> {
        let mut nodes = Nodes::default();
        let first = asked.watch.begin([asked.watch.automaton.initial]);
        for (r, _) in roots {
            nodes.enter((*r, first), None);
        }
        let mut next = 0;
        while next < nodes.list.len() {
            let (r, o) = nodes.list[next];
            let truth = self.real.truth(r, &asked.atoms)?;
            let after = Self::read(asked, o, truth)?;
            let states = asked.watch.states(after);
            let after = asked.watch.begin(states);
            for to in self.real.next(r, self.control)? {
                if usize::from(self.real.longest[to as usize]) <= self.pending {
                    nodes.enter((to, after), Some(next));
                }
            }
            self.tick(nodes.list.len())?;
            next += 1;
        }
        Ok(nodes)
    }

    /// Where a lasso turns, and what the automaton may have come to there.
    fn after_stem(
        &mut self,
        asked: &mut Asked<'_>,
        lasso: &wattle_evidence::Lasso,
    ) -> Result<Option<Node>, Ran> {
        let mut state = self.real.big.machine.initial(&lasso.start);
        let mut o = asked.watch.begin([asked.watch.automaton.initial]);
        let mut at = self.real.add(state.clone());
        for event in &lasso.stem {
            let wattle_memory::reference::Outcome::Next(next) =
                self.real.big.machine.apply(&state, event)
            else {
                return Ok(None);
            };
            state = next;
            if self.real.big.machine.inside_atomic(&state).is_some() {
                continue;
            }
            let truth = self.real.truth(at, &asked.atoms)?;
            let after = Self::read(asked, o, truth)?;
            let states = asked.watch.states(after);
            o = asked.watch.begin(states);
            at = self.real.add(state.clone());
        }
        Ok(Some((at, o)))
    }

    fn written(
        &self,
        asked: &Asked<'_>,
        good: &Good,
        (obligation, (keeps, k)): (usize, Contents),
    ) -> Returns {
        // Only what is on a way from an anchor.
        let mut wanted: FxHashSet<Node> = FxHashSet::default();
        for anchor in &good.anchors {
            let mut at = Some(*anchor);
            while let Some(node) = at.filter(|n| wanted.insert(*n)) {
                at = good.ways.get(&node).and_then(|(_, via)| *via);
            }
        }
        let mut rows: Vec<(Vec<i64>, Node)> = Vec::new();
        for node in wanted {
            let mut row = Vec::new();
            L::encode(&self.real.states[node.0 as usize], &mut row);
            rows.push((row, node));
        }
        rows.sort_unstable();
        let mut numbers: FxHashMap<u32, u64> = FxHashMap::default();
        let mut observers = Vec::new();
        let mut states = ClosedStates::new(L::MODEL);
        let mut nodes = Vec::new();
        for same in rows.chunk_by(|a, b| a.0 == b.0) {
            states.push(&same[0].0);
            put(&mut nodes, same.len() as u64);
            for (_, node) in same {
                let number = *numbers.entry(node.1).or_insert_with(|| {
                    observers.push(asked.watch.observers[node.1 as usize].clone());
                    observers.len() as u64 - 1
                });
                put(&mut nodes, number);
                let far = good.ways.get(node).map_or(0, |(far, _)| *far);
                put(
                    &mut nodes,
                    u64::from(far) * 2 + u64::from(good.returns.contains(node)),
                );
            }
        }
        Returns {
            obligation,
            keeps,
            k,
            automaton: asked.watch.automaton.clone(),
            observers,
            states: states.finish(),
            nodes,
        }
    }
}
