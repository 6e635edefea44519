//! What a [`Returns`] says, checked: the automaton accepts only runs that satisfy its formula ([`accepts_only`]); everything is gone
//! through anew, with buffers that remember what it says ([`Content`]); every anchor met is a node; and from every
//! node one move of the real machine leads to a return or to a node with a smaller number. Why that is enough stands at the certificate.
//!
//! Buffers that forget have every behaviour of real ones, and are empty where those are; so the observers of all real runs are met.
//! Where only states with empty buffers are anchors, stores must always be able to reach memory: no thread may hold a lock.

mod accepts;

use super::live::other;
use super::space::local::{forget, registers_alive};
use super::{AuditError, Audited};
use accepts::accepts_only;
use rustc_hash::{FxHashMap, FxHashSet};
use wattle_evidence::certificate::components::{Automaton, take};
use wattle_evidence::certificate::{Corrupt, Decoded, Returning, Returns};
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::live::big::{Big, Moves};
use wattle_evidence::live::{LiveTask, atoms_of, loop_in_block};
use wattle_evidence::{Fairness, Lasso};
use wattle_memory::content::Content;
use wattle_memory::reference::{Outcome, State, evaluate};
use wattle_memory::{
    Bounds, Exact, Keeps, Layout, MemoryModel, Newest, NewestK, OldestK, Pso, Sc, Tso,
};
use wattle_model::graph::Action;
use wattle_model::instance::Fact;
use wattle_model::{Expr, Formula};

/// Whether the demand holds: every obligation, from every initial state.
pub fn audit_returning(
    task: &LiveTask<'_>,
    certificate: &Returning,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if certificate.model != task.model {
        return Err(AuditError::WrongModel(certificate.model));
    }
    let obligations = task.obligations();
    if certificate.parts.len() != obligations.len() {
        return Err(other("it is not about all that is demanded"));
    }
    let mut checked = 0;
    for (i, part) in certificate.parts.iter().enumerate() {
        if part.obligation != i {
            return Err(other("its parts are in disorder"));
        }
        checked += with_model(task, part, Begin::Start, control)?.checked;
    }
    Ok(Audited { checked })
}

/// Whether no run under memory fairness that begins like the lasso does what is demanded.
pub fn audit_for_ever(
    task: &LiveTask<'_>,
    lasso: &Lasso,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    match (&lasso.for_ever, task.fairness) {
        (Some(part), Fairness::Memory) => with_model(task, part, Begin::Turn(lasso), control),
        (None, Fairness::Memory) => Err(other("why it goes on like this for ever is not said")),
        (Some(_), _) => Err(other("it is about another fairness")),
        (None, Fairness::None | Fairness::Weak | Fairness::Strong) => Ok(Audited::default()),
    }
}

/// Where the runs begin that are shown to be accepted.
#[derive(Clone, Copy)]
enum Begin<'l> {
    /// Everywhere the program does: the formula holds.
    Start,
    /// Where the lasso turns: its negation does.
    Turn(&'l Lasso),
}

fn with_model(
    task: &LiveTask<'_>,
    part: &Returns,
    from: Begin<'_>,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if task.fairness != Fairness::Memory {
        return Err(other("it is about another fairness"));
    }
    if part.states.model != task.model {
        return Err(AuditError::WrongModel(part.states.model));
    }
    if loop_in_block(task.instance).is_some() {
        return Err(other("a loop inside an atomic block"));
    }
    match task.model {
        MemoryModel::Sc => with_contents::<Sc>(task, part, from, control),
        MemoryModel::Tso => with_contents::<Tso>(task, part, from, control),
        MemoryModel::Pso => with_contents::<Pso>(task, part, from, control),
    }
}

fn with_contents<L: Decoded>(
    task: &LiveTask<'_>,
    part: &Returns,
    from: Begin<'_>,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let obligations = task.obligations();
    let formula = obligations.get(part.obligation);
    let formula = formula.ok_or(Corrupt("it is about something that is not demanded"))?;
    let atoms = atoms_of(formula);
    accepts_only(
        &part.automaton,
        &atoms,
        formula,
        matches!(from, Begin::Turn(_)),
    )?;
    let check = Check::<L>::new(task, part, formula, control)?;
    match part.keeps {
        Keeps::Exact => check.all::<Exact>(from, ()),
        Keeps::Oldest => check.all::<OldestK>(from, part.k),
        Keeps::Newest => check.all::<NewestK>(from, part.k),
        Keeps::Multiset | Keeps::AtMost => Err(other("these buffers are not finitely many")),
    }
}

/// Contents whose buffers, where they are not empty, are known to be what real ones are, or are not.
trait Exactly<L: Layout>: Content<Value = i64> {
    fn to(buffer: &L::Buffer<Self>) -> Option<L::Buffer<Exact>>;
    fn from(buffer: &L::Buffer<Exact>) -> Option<L::Buffer<Self>>;
}

impl<L: Layout> Exactly<L> for Exact {
    fn to(buffer: &L::Buffer<Exact>) -> Option<L::Buffer<Exact>> {
        Some(buffer.clone())
    }

    fn from(buffer: &L::Buffer<Exact>) -> Option<L::Buffer<Exact>> {
        Some(buffer.clone())
    }
}

impl<L: Layout> Exactly<L> for OldestK {
    fn to(_: &L::Buffer<OldestK>) -> Option<L::Buffer<Exact>> {
        None
    }

    fn from(_: &L::Buffer<Exact>) -> Option<L::Buffer<OldestK>> {
        None
    }
}

impl<L: Layout> Exactly<L> for NewestK {
    fn to(_: &L::Buffer<NewestK>) -> Option<L::Buffer<Exact>> {
        None
    }

    fn from(_: &L::Buffer<Exact>) -> Option<L::Buffer<NewestK>> {
        None
    }
}

type StateOf<L, C> = State<<L as Layout>::Buffer<C>>;

/// What an automaton may have come to: sorted pairs of its state and the sets met since the last return.
type Observer = Vec<(u32, u64)>;

/// A state with an observer.
type Met<L, C> = (StateOf<L, C>, Observer);

/// A node's number, and whether an observer that would keep its pairs returns.
type Node = (u32, bool);

struct Check<'t, 'i, L: Decoded> {
    task: &'t LiveTask<'i>,
    control: &'t Control<'t>,
    automaton: &'t Automaton,
    formula: &'t Formula<Expr<Fact>>,
    /// All acceptance sets.
    sets: u64,
    real: Big<'i, L, Exact>,
    /// Every state is an anchor, because of locks.
    every: bool,
    alive: Vec<Vec<Vec<bool>>>,
    nodes: FxHashMap<StateOf<L, Exact>, FxHashMap<Observer, Node>>,
    count: u64,
}

/// More is not gone through.
const MOST: usize = 1 << 22;
/// States between two polls.
const POLL: u64 = 1 << 9;

impl<'t, 'i, L: Decoded> Check<'t, 'i, L> {
    fn new(
        task: &'t LiveTask<'i>,
        part: &'t Returns,
        formula: &'t Formula<Expr<Fact>>,
        control: &'t Control<'t>,
    ) -> Result<Self, AuditError> {
        let refused = |r: wattle_memory::reference::Refusal| AuditError::Refused(r.to_string());
        let mut steps = task.instance.threads.iter().flat_map(|t| &t.steps);
        let locks = steps.any(|s| s.action == Action::Lock);
        let sets = part.automaton.untils.len();
        let mut check = Check {
            task,
            control,
            automaton: &part.automaton,
            formula,
            sets: (0..sets).fold(0, |all, k| all | 1 << k),
            real: Big::with(task.instance, ()).map_err(refused)?,
            every: locks && task.model != MemoryModel::Sc,
            alive: registers_alive(task.instance, &atoms_of(formula), false),
            nodes: FxHashMap::default(),
            count: 0,
        };
        if check.every && part.keeps != Keeps::Exact {
            return Err(other(
                "locks may keep stores from memory, and its buffers forget",
            ));
        }
        check.read(part)?;
        Ok(check)
    }

    fn read(&mut self, part: &Returns) -> Result<(), AuditError> {
        let states = part.automaton.states.len();
        for o in &part.observers {
            let known = |(q, met): &(u32, u64)| (*q as usize) < states && met & !self.sets == 0;
            if !o.iter().all(known) || !o.is_sorted() {
                return Err(Corrupt("an observer names something that is not there").into());
            }
        }
        let mut rest = part.nodes.as_slice();
        part.states.for_each_row(|row| -> Result<(), AuditError> {
            let state = L::decode(self.task.instance, row)?;
            let state = self.settled(state);
            let mut here = FxHashMap::default();
            for _ in 0..take(&mut rest)? {
                let o = part.observers.get(take(&mut rest)? as usize);
                let o = o.ok_or(Corrupt("a node has no observer"))?;
                let number = take(&mut rest)?;
                here.insert(o.clone(), (number / 2, number % 2 == 1));
                self.count += 1;
            }
            match self.nodes.insert(state, here) {
                None => self.poll(self.nodes.len() as u64),
                Some(_) => Err(Corrupt("a state is there twice").into()),
            }
        })?;
        match rest.is_empty() {
            true => Ok(()),
            false => Err(Corrupt("there are nodes of no state").into()),
        }
    }

    fn poll(&self, work: u64) -> Result<(), AuditError> {
        if work.is_multiple_of(POLL) {
            let cells = self.task.instance.cells.len() + 8 * self.task.instance.threads.len();
            let progress = Progress {
                states: self.count,
                memory: self.count * (200 + 20 * cells as u64),
                ..Progress::default()
            };
            self.control.poll("audit", progress)?;
        }
        Ok(())
    }

    /// With zero in dead registers.
    fn settled<B>(&self, mut state: State<B>) -> State<B> {
        forget(&mut state, &self.alive);
        state
    }

    /// What can happen, faults and false assumptions excepted: with those nothing is said.
    fn moves<C: Content<Value = i64>>(
        &self,
        big: &Big<'_, L, C>,
        state: &StateOf<L, C>,
    ) -> Result<Moves<L::Buffer<C>>, AuditError> {
        let moves = big.moves(state);
        let moves = moves.map_err(|fault| AuditError::Fault {
            state: self.count,
            fault,
        })?;
        match moves.discarded {
            true => Err(other("an assumption may be false")),
            false => Ok(moves),
        }
    }

    /// The observer after a state: by every edge that the state allows. Of pairs with the same state of the automaton those
    /// that have met less than another are left out.
    fn after<B: Newest<i64>>(
        &self,
        state: &State<B>,
        o: &Observer,
    ) -> Result<Observer, AuditError> {
        let mut truth = Vec::new();
        for e in atoms_of(self.formula) {
            let value = evaluate(state, e).map_err(|why| AuditError::NoValue {
                state: self.count,
                why: why.to_string(),
            })?;
            truth.push(value != 0);
        }
        let mut pairs: Observer = Vec::new();
        for (q, met) in o {
            for edge in &self.automaton.states[*q as usize].edges {
                let mut now = edge.now.iter();
                if now.all(|(l, positive)| truth.get(*l as usize) == Some(positive)) {
                    let met = edge.accepting.iter().fold(*met, |met, k| met | 1 << k);
                    pairs.push((edge.target, met));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let all = pairs.clone();
        pairs.retain(|(q, met)| {
            let more = |(p, m): &(u32, u64)| p == q && m != met && met & !m == 0;
            !all.iter().any(more)
        });
        Ok(pairs)
    }

    /// The observer that arrives in a state, and whether it returns there.
    fn arrive(&self, anchor: Option<&StateOf<L, Exact>>, o: Observer) -> (Observer, bool) {
        let full = o.iter().filter(|(_, met)| *met == self.sets);
        let kept: Observer = full.map(|(q, _)| (*q, 0)).collect();
        let here = anchor.and_then(|state| self.nodes.get(state));
        let returns = here.and_then(|nodes| nodes.get(&kept));
        match returns {
            Some((_, true)) if !kept.is_empty() => (kept, true),
            Some(_) | None => (o, false),
        }
    }

    /// The state as the real machine has it, if it is an anchor.
    fn anchor<C: Exactly<L>>(&self, state: &StateOf<L, C>) -> Option<StateOf<L, Exact>> {
        let buffer = |b: &L::Buffer<C>| match (L::is_empty::<C>(b), self.every) {
            (true, _) => Some(L::empty::<Exact>(&Bounds::uniform((), 0))),
            (false, true) => C::to(b),
            (false, false) => None,
        };
        let buffers = state.buffers.iter().map(buffer);
        Some(State {
            locations: state.locations.clone(),
            registers: state.registers.clone(),
            memory: state.memory.clone(),
            buffers: buffers.collect::<Option<_>>()?,
            holder: state.holder,
        })
    }

    /// Where it begins, and what the automaton may have come to.
    fn roots(&self, from: Begin<'_>) -> Result<Vec<Met<L, Exact>>, AuditError> {
        let machine = &self.real.machine;
        let first: Observer = vec![(self.automaton.initial, 0)];
        let lasso = match from {
            Begin::Start => {
                let refused =
                    |r: wattle_memory::reference::Refusal| AuditError::Refused(r.to_string());
                let starts = machine.starts().map_err(refused)?;
                let states = starts.iter().map(|s| machine.initial(s));
                return Ok(states.map(|s| (self.settled(s), first.clone())).collect());
            }
            Begin::Turn(lasso) => lasso,
        };
        let mut state = machine.initial(&lasso.start);
        let (mut seen, mut o) = (state.clone(), first);
        for event in &lasso.stem {
            if !machine.can(&state, event) {
                return Err(other("an event of the run cannot happen"));
            }
            match machine.apply(&state, event) {
                Outcome::Next(next) => state = next,
                Outcome::Fault(_) | Outcome::Full(_) => {
                    return Err(other("an event of the run has no next state"));
                }
            }
            if machine.inside_atomic(&state).is_none() {
                let mut after = self.after(&seen, &o)?;
                after.iter_mut().for_each(|(_, met)| *met = 0);
                after.dedup();
                o = after;
                seen = state.clone();
            }
        }
        if machine.inside_atomic(&state).is_some() {
            return Err(other("the run turns inside an atomic block"));
        }
        Ok(vec![(self.settled(state), o)])
    }

    /// Goes through everything with such buffers.
    fn all<C: Exactly<L>>(
        mut self,
        from: Begin<'_>,
        bound: C::Bound,
    ) -> Result<Audited, AuditError> {
        let refused = |r: wattle_memory::reference::Refusal| AuditError::Refused(r.to_string());
        let big = Big::<L, C>::with(self.task.instance, bound).map_err(refused)?;
        let bounds = Bounds::uniform(bound, self.task.instance.cells.len());
        let mut seen: FxHashSet<Met<L, C>> = FxHashSet::default();
        let mut work: Vec<Met<L, C>> = Vec::new();
        for (state, o) in self.roots(from)? {
            let buffer = |b: &L::Buffer<Exact>| match L::is_empty::<Exact>(b) {
                true => Some(L::empty::<C>(&bounds)),
                false => C::from(b),
            };
            let buffers = state.buffers.iter().map(buffer).collect::<Option<_>>();
            let root = State {
                buffers: buffers.ok_or_else(|| other("it begins with pending stores"))?,
                locations: state.locations,
                registers: state.registers,
                memory: state.memory,
                holder: state.holder,
            };
            if seen.insert((root.clone(), o.clone())) {
                work.push((root, o));
            }
        }
        while let Some((state, o)) = work.pop() {
            self.count += 1;
            self.poll(self.count)?;
            if seen.len() > MOST {
                return Err(AuditError::TooMany);
            }
            if let Some(anchor) = self.anchor::<C>(&state) {
                let here = self.nodes.get(&anchor);
                if !here.is_some_and(|nodes| nodes.contains_key(&o)) {
                    return Err(other("a state with empty buffers is no node"));
                }
            }
            let after = self.after(&state, &o)?;
            let moves = self.moves(&big, &state)?.moves;
            let targets = moves.into_iter().map(|m| self.settled(m.target));
            let mut targets: Vec<StateOf<L, C>> = targets.collect();
            if targets.is_empty() {
                targets.push(state);
            }
            for target in targets {
                let anchor = self.anchor::<C>(&target);
                let (o, _) = self.arrive(anchor.as_ref(), after.clone());
                let node = (target, o);
                if !seen.contains(&node) {
                    seen.insert(node.clone());
                    work.push(node);
                }
            }
        }
        self.ways()?;
        Ok(Audited {
            checked: self.count,
        })
    }

    /// From every node one move leads to a return or to a node with a smaller number.
    fn ways(&self) -> Result<(), AuditError> {
        for (i, (state, nodes)) in self.nodes.iter().enumerate() {
            self.poll(i as u64)?;
            if self.real.machine.inside_atomic(state).is_some() {
                return Err(Corrupt("a state is inside an atomic block").into());
            }
            let moves = self.moves(&self.real, state)?.moves;
            let targets = moves.into_iter().map(|m| self.settled(m.target));
            let mut targets: Vec<StateOf<L, Exact>> = targets.collect();
            if targets.is_empty() {
                targets.push(state.clone());
            }
            for (o, (number, _)) in nodes {
                let after = self.after(state, o)?;
                let leads = targets.iter().any(|target| {
                    let anchor = self.anchor::<Exact>(target);
                    let (o, returned) = self.arrive(anchor.as_ref(), after.clone());
                    let there = self.nodes.get(target).and_then(|nodes| nodes.get(&o));
                    returned || there.is_some_and(|(n, _)| n < number)
                });
                if !leads {
                    return Err(other("no move of a node leads nearer to a return"));
                }
            }
        }
        Ok(())
    }
}
