//! Component certificates, checked on the reference machine's own moves.
//!
//! **The automaton** reads every run that breaks the formula. A set of parts is *expanded* by the
//! textbook rules into ways to satisfy it: what must be true now, what remains for later, and which
//! untils are put off. For every way of every state's parts there must be an edge that asks for no
//! more now, leads to a state with no more parts, and is in every acceptance set whose until is not put off.
//! Expansion is monotone (of a smaller set, every way of a larger one has a way that asks for less), so by induction the
//! automaton follows whatever the textbook's does, and accepts what that accepts.
//!
//! **The nodes** contain the initial ones, and whatever an edge of the automaton and a move of the
//! program leads to. **The numbers** are as [`Components`] says. "Can move" is asked of the reference
//! machine in the state itself. An infinite run that breaks the demand stays in one trap from some time on; its
//! first numbers there cannot fall for ever, so it ends in one component; a component that misses an
//! acceptance set, or keeps a mover from moving that always can, has no such run; and where a mover
//! never moves, its second numbers go on in the same way.

use super::space::local::registers_alive;
use super::{AuditError, Audited};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::components::{Automaton, Components, Harmless, Part, take};
use wattle_evidence::certificate::{Coded, Corrupt};
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::live::big::Big;
use wattle_evidence::live::{Fairness, LiveTask, MOST_MOVERS, Mover, Set, loop_in_block};
use wattle_memory::reference::{State, evaluate};
use wattle_memory::{Exact, MemoryModel, Pso, Sc, Tso};
use wattle_model::instance::Fact;
use wattle_model::{Expr, Formula};

pub fn audit_components(
    task: &LiveTask<'_>,
    certificate: &Components,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if certificate.states.model != task.model {
        return Err(AuditError::WrongModel(certificate.states.model));
    }
    if certificate.fairness != task.fairness {
        return Err(other("it is about another fairness"));
    }
    if loop_in_block(task.instance).is_some() {
        return Err(other("a loop inside an atomic block"));
    }
    follows(task, &certificate.automaton)?;
    let sets = certificate.automaton.untils.len();
    let missed = |c: &Harmless| matches!(c, Harmless::Misses(k) if *k as usize >= sets);
    if certificate.components.values().any(missed) {
        return Err(Corrupt("a component misses a set that there is not").into());
    }
    match task.model {
        MemoryModel::Sc => nodes::<Sc>(task, certificate, control),
        MemoryModel::Tso => nodes::<Tso>(task, certificate, control),
        MemoryModel::Pso => nodes::<Pso>(task, certificate, control),
    }
}

fn other(why: &str) -> AuditError {
    AuditError::Other(why.to_string())
}

/// Whether the automaton reads every run that breaks the demand.
fn follows(task: &LiveTask<'_>, a: &Automaton) -> Result<(), AuditError> {
    let parts = a.parts.len() as u32;
    let known = |i: &u32| *i < parts;
    // Parts come before what they are part of: there are no circles.
    let ordered = a.parts.iter().enumerate().all(|(i, p)| match p {
        Part::True | Part::False | Part::Literal(..) => true,
        Part::And(f, g) | Part::Or(f, g) | Part::Until(f, g) | Part::Release(f, g) => {
            (*f as usize) < i && (*g as usize) < i
        }
    });
    let states = a.states.len() as u32;
    let inside = a.states.iter().all(|s| {
        let mut edges = s.edges.iter();
        s.parts.iter().all(known) && edges.all(|e| e.target < states)
    });
    let sets = a.untils.len() as u32;
    let mut edges = a.states.iter().flat_map(|s| &s.edges);
    let accepting = edges.all(|e| e.accepting.iter().all(|k| *k < sets));
    let named = known(&a.root) && a.initial < states && a.untils.iter().all(known);
    if !(ordered && inside && accepting && named) {
        return Err(Corrupt("its automaton names something it does not have").into());
    }
    let begins = match task.formula() {
        None => BTreeSet::new(),
        Some(formula) => {
            if !is_negation(a, &task.atoms(), formula, true, a.root) {
                return Err(other("its automaton is about another formula"));
            }
            BTreeSet::from([a.root])
        }
    };
    let of = |s: u32| -> BTreeSet<u32> { a.states[s as usize].parts.iter().copied().collect() };
    if !of(a.initial).is_subset(&begins) {
        return Err(other("its automaton begins with more than the formula"));
    }
    for (i, state) in a.states.iter().enumerate() {
        for way in expand(a, of(i as u32)) {
            let followed = state.edges.iter().any(|e| {
                let fulfilled = a.untils.iter().enumerate().all(|(k, until)| {
                    way.put_off.contains(until) || e.accepting.contains(&(k as u32))
                });
                e.now.iter().all(|l| way.now.contains(l))
                    && of(e.target).is_subset(&way.later)
                    && fulfilled
            });
            if !followed {
                return Err(other(
                    "its automaton leaves out runs that break the formula",
                ));
            }
        }
    }
    Ok(())
}

/// Whether the part says the formula, or its negation.
fn is_negation(
    a: &Automaton,
    atoms: &[&Expr<Fact>],
    f: &Formula<Expr<Fact>>,
    negated: bool,
    part: u32,
) -> bool {
    let is = |f: &Formula<Expr<Fact>>, negated: bool, part: &u32| {
        is_negation(a, atoms, f, negated, *part)
    };
    let constant = |part: &u32, value: Part| a.parts[*part as usize] == value;
    match (f, &a.parts[part as usize], negated) {
        (Formula::Now(e), Part::Literal(i, positive), _) => {
            atoms.get(*i as usize) == Some(&e) && *positive != negated
        }
        (Formula::Not(f), _, _) => is(f, !negated, &part),
        (Formula::And(f, g), Part::And(i, j), false)
        | (Formula::And(f, g), Part::Or(i, j), true)
        | (Formula::Or(f, g), Part::Or(i, j), false)
        | (Formula::Or(f, g), Part::And(i, j), true)
        | (Formula::Until(f, g), Part::Until(i, j), false)
        | (Formula::Until(f, g), Part::Release(i, j), true)
        | (Formula::Release(f, g), Part::Release(i, j), false)
        | (Formula::Release(f, g), Part::Until(i, j), true) => {
            is(f, negated, i) && is(g, negated, j)
        }
        (Formula::Implies(f, g), Part::Or(i, j), false)
        | (Formula::Implies(f, g), Part::And(i, j), true) => {
            is(f, !negated, i) && is(g, negated, j)
        }
        (Formula::Globally(f), Part::Release(i, j), false)
        | (Formula::Finally(f), Part::Release(i, j), true) => {
            constant(i, Part::False) && is(f, negated, j)
        }
        (Formula::Finally(f), Part::Until(i, j), false)
        | (Formula::Globally(f), Part::Until(i, j), true) => {
            constant(i, Part::True) && is(f, negated, j)
        }
        // f W g is g R (f || g).
        (Formula::WeakUntil(f, g), Part::Release(i, j), false) => {
            let either = &a.parts[*j as usize];
            is(g, false, i)
                && matches!(either, Part::Or(k, l) if is(f, false, k) && is(g, false, l))
        }
        (Formula::WeakUntil(f, g), Part::Until(i, j), true) => {
            let both = &a.parts[*j as usize];
            is(g, true, i) && matches!(both, Part::And(k, l) if is(f, true, k) && is(g, true, l))
        }
        _ => false,
    }
}

/// One way to satisfy a set of parts.
#[derive(Clone, Default)]
struct Way {
    now: BTreeSet<(u32, bool)>,
    later: BTreeSet<u32>,
    put_off: BTreeSet<u32>,
}

/// The textbook's rules.
fn expand(a: &Automaton, parts: BTreeSet<u32>) -> Vec<Way> {
    let mut work: Vec<(Vec<u32>, BTreeSet<u32>, Way)> =
        vec![(parts.into_iter().collect(), BTreeSet::new(), Way::default())];
    let mut ways = Vec::new();
    while let Some((mut todo, mut done, mut way)) = work.pop() {
        let Some(part) = todo.pop() else {
            ways.push(way);
            continue;
        };
        if !done.insert(part) {
            work.push((todo, done, way));
            continue;
        }
        let with = |more: &[u32]| {
            let mut todo = todo.clone();
            todo.extend(more);
            todo
        };
        match a.parts[part as usize] {
            Part::True => work.push((todo, done, way)),
            Part::False => {}
            Part::Literal(i, positive) => {
                if !way.now.contains(&(i, !positive)) {
                    way.now.insert((i, positive));
                    work.push((todo, done, way));
                }
            }
            Part::And(f, g) => work.push((with(&[f, g]), done, way)),
            Part::Or(f, g) => {
                work.push((with(&[f]), done.clone(), way.clone()));
                work.push((with(&[g]), done, way));
            }
            Part::Until(f, g) => {
                work.push((with(&[g]), done.clone(), way.clone()));
                way.later.insert(part);
                way.put_off.insert(part);
                work.push((with(&[f]), done, way));
            }
            Part::Release(f, g) => {
                work.push((with(&[f, g]), done.clone(), way.clone()));
                way.later.insert(part);
                work.push((with(&[g]), done, way));
            }
        }
    }
    ways
}

/// A node's numbers, trap by trap; empty outside the trap.
type Numbers = Vec<Vec<u32>>;

/// States between two polls.
const POLL: u64 = 1 << 10;

fn nodes<L: Coded>(
    task: &LiveTask<'_>,
    certificate: &Components,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let refused = |r: wattle_memory::reference::Refusal| AuditError::Refused(r.to_string());
    let big = Big::<L>::new(task.instance).map_err(refused)?;
    if big.movers().len() > MOST_MOVERS {
        return Err(other("too many threads and buffers"));
    }
    let a = &certificate.automaton;
    let atoms = task.atoms();
    let traps = task.traps();
    let everywhere = task.formula().is_some();
    let alive = registers_alive(task.instance, &atoms);
    let row_of = |state: &State<L::Buffer<Exact>>| {
        let mut state = state.clone();
        let own = state.registers.iter_mut().zip(&state.locations);
        for ((registers, at), alive) in own.zip(&alive) {
            for (value, alive) in registers.iter_mut().zip(&alive[at.index()]) {
                *value *= i64::from(*alive);
            }
        }
        let mut row = Vec::new();
        L::encode(&state, &mut row);
        row.into_boxed_slice()
    };
    // Which traps a state is in; a formula's is everywhere.
    let held = |state: &State<L::Buffer<Exact>>| -> Vec<bool> {
        match everywhere {
            true => vec![true],
            false => traps.iter().map(|t| t.holds(&state.locations)).collect(),
        }
    };
    let mut rows: Vec<Box<[i64]>> = Vec::new();
    let mut index: FxHashMap<Box<[i64]>, u32> = FxHashMap::default();
    let mut nodes: Vec<FxHashMap<u32, Numbers>> = Vec::new();
    let mut rest = certificate.nodes.as_slice();
    let mut memory = 0u64;
    certificate.states.for_each_row(|row| {
        let state = L::decode(task.instance, row)?;
        let row = row_of(&state);
        memory += 64 + 16 * row.len() as u64;
        if index.insert(row.clone(), rows.len() as u32).is_some() {
            return Err(Corrupt("a state is there twice").into());
        }
        let held = held(&state);
        let mut here = FxHashMap::default();
        for _ in 0..take(&mut rest)? {
            let q = take(&mut rest)?;
            if q as usize >= a.states.len() {
                return Err(Corrupt("a node names no state of the automaton").into());
            }
            let mut numbers = Vec::new();
            for held in &held {
                let mut mine = Vec::new();
                if *held {
                    for _ in 0..take(&mut rest)? {
                        let n = take(&mut rest)?;
                        if n >= certificate.count {
                            return Err(Corrupt("a number means nothing").into());
                        }
                        mine.push(n);
                    }
                }
                numbers.push(mine);
            }
            here.insert(q, numbers);
        }
        nodes.push(here);
        rows.push(row);
        if (rows.len() as u64).is_multiple_of(POLL) {
            control.poll("audit", progress(rows.len() as u64, memory))?;
        }
        Ok::<(), AuditError>(())
    })?;
    if !rest.is_empty() {
        return Err(Corrupt("there are nodes of no state").into());
    }
    for start in big.machine.starts().map_err(refused)? {
        let initial = row_of(&big.machine.initial(&start));
        let there = index.get(&initial).and_then(|i| nodes.get(*i as usize));
        if !there.is_some_and(|nodes| nodes.contains_key(&a.initial)) {
            return Err(AuditError::MissesInitial);
        }
    }
    for (i, row) in rows.iter().enumerate() {
        if (i as u64).is_multiple_of(POLL) {
            control.poll("audit", progress(i as u64, memory))?;
        }
        let state = L::decode(task.instance, row)?;
        if big.machine.inside_atomic(&state).is_some() {
            return Err(Corrupt("a state is inside an atomic block").into());
        }
        let moves = big.moves(&state);
        let moves = moves.map_err(|fault| AuditError::Fault {
            state: i as u64,
            fault,
        })?;
        if moves.discarded {
            continue;
        }
        let able = moves.able;
        let mut truth = Vec::new();
        for e in &atoms {
            let value = evaluate(&state, e).map_err(|why| AuditError::NoValue {
                state: i as u64,
                why: why.to_string(),
            })?;
            truth.push(value != 0);
        }
        // Where nothing can move the state is repeated. A target that is not there matters only if the
        // automaton goes on.
        let mut targets: Vec<(Option<u32>, Set)> = Vec::new();
        for m in &moves.moves {
            targets.push((index.get(&row_of(&m.target)).copied(), m.moved));
        }
        if moves.moves.is_empty() {
            targets.push((Some(i as u32), 0));
        }
        for (q, numbers) in &nodes[i] {
            for edge in &a.states[*q as usize].edges {
                let now = |(l, positive): &(u32, bool)| truth.get(*l as usize) == Some(positive);
                if !edge.now.iter().all(now) {
                    continue;
                }
                for (target, moved) in &targets {
                    let after = target.and_then(|t| nodes[t as usize].get(&edge.target));
                    let after = after.ok_or(AuditError::NotClosed {
                        state: i as u64,
                        event: "a move".into(),
                    })?;
                    for (from, to) in numbers.iter().zip(after) {
                        if from.is_empty() || to.is_empty() {
                            continue;
                        }
                        let step = Step {
                            fairness: task.fairness,
                            accepting: &edge.accepting,
                            moved: *moved,
                            able,
                        };
                        step.check(&big, &certificate.components, from, to, i)?;
                    }
                }
            }
        }
        // Every node in a trap has a number there; what it says of the state is true of it.
        let held = held(&state);
        for numbers in nodes[i].values() {
            for (held, mine) in held.iter().zip(numbers) {
                if *held && !is_numbered(&big, &certificate.components, mine, able) {
                    return Err(other(&format!("state {i} lacks a number")));
                }
            }
        }
    }
    Ok(Audited {
        checked: rows.len() as u64,
    })
}

fn progress(states: u64, memory: u64) -> Progress {
    Progress {
        states,
        frontier: 0,
        memory,
        ..Progress::default()
    }
}

/// The place of a mover, as a set.
fn set<L: Coded>(big: &Big<'_, L>, mover: Mover) -> Set {
    let place = big.movers().iter().position(|m| *m == mover);
    place.map_or(0, |i| 1 << i)
}

/// The numbers go on exactly as long as a mover is named that cannot move in this state; a mover that
/// is called idle can.
fn is_numbered<L: Coded>(
    big: &Big<'_, L>,
    components: &BTreeMap<u32, Harmless>,
    numbers: &[u32],
    able: Set,
) -> bool {
    let Some((last, before)) = numbers.split_last() else {
        return false;
    };
    let passes = |n: &u32| match components.get(n) {
        Some(Harmless::Without(m)) => set(big, *m) != 0 && able & set(big, *m) == 0,
        Some(Harmless::Misses(_) | Harmless::Idle(_)) | None => false,
    };
    let ends = match components.get(last) {
        Some(Harmless::Misses(_)) | None => true,
        Some(Harmless::Idle(m) | Harmless::Without(m)) => able & set(big, *m) != 0,
    };
    before.iter().all(passes) && ends
}

/// An edge between two nodes of a trap.
struct Step<'e> {
    fairness: Fairness,
    accepting: &'e [u32],
    moved: Set,
    /// Who can move before it.
    able: Set,
}

impl Step<'_> {
    fn check<L: Coded>(
        &self,
        big: &Big<'_, L>,
        components: &BTreeMap<u32, Harmless>,
        from: &[u32],
        to: &[u32],
        state: usize,
    ) -> Result<(), AuditError> {
        let wrong = |why: &str| Err(other(&format!("state {state}: {why}")));
        let mut to = to.iter();
        for n in from {
            // A node that is left out of what the number means has no edges there.
            let Some(m) = to.next() else {
                return Ok(());
            };
            if n > m {
                return Ok(());
            }
            if n < m {
                return wrong("a number grows along an edge");
            }
            match components.get(n) {
                None => return wrong("an edge leads from a component to itself"),
                Some(Harmless::Misses(k)) => {
                    return match self.accepting.contains(k) {
                        true => wrong("an acceptance set is met"),
                        false => Ok(()),
                    };
                }
                Some(Harmless::Idle(mover)) => {
                    let mover = set(big, *mover);
                    return match mover != 0
                        && self.moved & mover == 0
                        && self.able & mover != 0
                        && self.fairness != Fairness::None
                    {
                        true => Ok(()),
                        false => wrong("a mover is not idle"),
                    };
                }
                Some(Harmless::Without(mover)) => {
                    let mover = set(big, *mover);
                    if mover == 0 || self.moved & mover != 0 || self.fairness != Fairness::Strong {
                        return wrong("a mover is not without moves");
                    }
                }
            }
        }
        Ok(())
    }
}
