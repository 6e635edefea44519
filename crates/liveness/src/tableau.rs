//! From a formula to an automaton that reads exactly the runs that break it (or that satisfy it).
//!
//! The negated formula is pushed inwards until negations stand before conditions only. A state of the
//! automaton is a set of formulas that still have to hold; its edges are the ways to satisfy them now:
//!
//! ```text
//!   f U g  =  g  or  f now and f U g later (put off)
//!   f R g  =  f and g  or  g now and f R g later
//! ```
//!
//! An edge is in the acceptance set of an until if it does not put it off. Of two edges of a state the
//! one is dropped that asks for more now, leaves more for later and is in fewer sets.

use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use wattle_evidence::certificate::components::{Automaton, Edge, Obligations, Part};
use wattle_evidence::live::{LiveTask, atoms_of};
use wattle_model::instance::Fact;
use wattle_model::{Expr, Formula};

/// Larger automata are refused.
const MOST_STATES: usize = 4096;
const MOST_EDGES: usize = 1 << 17;
/// As many acceptance sets, and conditions, as there are bits.
pub const MOST_SETS: usize = 64;
pub const MOST_ATOMS: usize = 64;

/// The automaton of a demand: it reads what breaks it.
pub fn automaton(task: &LiveTask<'_>) -> Result<Automaton, String> {
    match task.formula() {
        Some(formula) => of(formula, true),
        None => Ok(Automaton::trivial()),
    }
}

/// The automaton of a formula, or of its negation.
pub fn of(formula: &Formula<Expr<Fact>>, negated: bool) -> Result<Automaton, String> {
    let atoms = atoms_of(formula);
    if atoms.len() > MOST_ATOMS {
        let n = atoms.len();
        return Err(format!(
            "the formula has {n} conditions; at most {MOST_ATOMS} are treated"
        ));
    }
    let mut table = Table {
        atoms,
        parts: Vec::new(),
        known: FxHashMap::default(),
    };
    let root = table.part(formula, negated);
    let parts = table.parts;
    let untils: Vec<u32> = (0..parts.len() as u32)
        .filter(|i| matches!(parts[*i as usize], Part::Until(..)))
        .collect();
    if untils.len() > MOST_SETS {
        let n = untils.len();
        return Err(format!(
            "the formula has {n} untils; at most {MOST_SETS} are treated"
        ));
    }
    let mut numbers: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
    let mut states: Vec<Obligations> = vec![Obligations {
        parts: vec![root],
        edges: Vec::new(),
    }];
    numbers.insert(vec![root], 0);
    let (mut next, mut edges) = (0, 0);
    while next < states.len() {
        let ways = undominated(ways(&parts, &states[next].parts, MOST_EDGES)?);
        edges += ways.len();
        for way in ways {
            let later: Vec<u32> = way.later.into_iter().collect();
            let target = *numbers.entry(later.clone()).or_insert_with(|| {
                states.push(Obligations {
                    parts: later,
                    edges: Vec::new(),
                });
                states.len() as u32 - 1
            });
            let kept = untils.iter().enumerate();
            let kept = kept.filter(|(_, u)| !way.put_off.contains(u));
            states[next].edges.push(Edge {
                now: way.now.into_iter().collect(),
                target,
                accepting: kept.map(|(k, _)| k as u32).collect(),
            });
        }
        if states.len() > MOST_STATES || edges > MOST_EDGES {
            return Err("the formula's automaton is too large".into());
        }
        next += 1;
    }
    Ok(Automaton {
        parts,
        root,
        untils,
        states,
        initial: 0,
    })
}

struct Table<'i> {
    atoms: Vec<&'i Expr<Fact>>,
    parts: Vec<Part>,
    known: FxHashMap<Part, u32>,
}

impl Table<'_> {
    fn add(&mut self, part: Part) -> u32 {
        if let Some(i) = self.known.get(&part) {
            return *i;
        }
        let i = self.parts.len() as u32;
        self.parts.push(part.clone());
        self.known.insert(part, i);
        i
    }

    /// The formula, or its negation, with negations inside. f W g is g R (f || g).
    fn part(&mut self, f: &Formula<Expr<Fact>>, negated: bool) -> u32 {
        let part = match f {
            Formula::Now(e) => {
                let atom = self.atoms.iter().position(|a| *a == e).unwrap_or(0);
                Part::Literal(atom as u32, !negated)
            }
            Formula::Not(f) => return self.part(f, !negated),
            Formula::And(f, g) => {
                let (i, j) = (self.part(f, negated), self.part(g, negated));
                junction(i, j, !negated)
            }
            Formula::Or(f, g) => {
                let (i, j) = (self.part(f, negated), self.part(g, negated));
                junction(i, j, negated)
            }
            Formula::Implies(f, g) => {
                let (i, j) = (self.part(f, !negated), self.part(g, negated));
                junction(i, j, negated)
            }
            Formula::Globally(f) => {
                let i = self.add(if negated { Part::True } else { Part::False });
                let j = self.part(f, negated);
                until(i, j, negated)
            }
            Formula::Finally(f) => {
                let i = self.add(if negated { Part::False } else { Part::True });
                let j = self.part(f, negated);
                until(i, j, !negated)
            }
            Formula::Until(f, g) => {
                let (i, j) = (self.part(f, negated), self.part(g, negated));
                until(i, j, !negated)
            }
            Formula::Release(f, g) => {
                let (i, j) = (self.part(f, negated), self.part(g, negated));
                until(i, j, negated)
            }
            Formula::WeakUntil(f, g) => {
                let (i, j) = (self.part(f, negated), self.part(g, negated));
                let either = self.add(junction(i, j, negated));
                until(j, either, negated)
            }
        };
        self.add(part)
    }
}

fn junction(i: u32, j: u32, and: bool) -> Part {
    match and {
        true => Part::And(i, j),
        false => Part::Or(i, j),
    }
}

fn until(i: u32, j: u32, until: bool) -> Part {
    match until {
        true => Part::Until(i, j),
        false => Part::Release(i, j),
    }
}

/// One way to satisfy a set of formulas.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    now: BTreeSet<(u32, bool)>,
    later: BTreeSet<u32>,
    put_off: BTreeSet<u32>,
}

impl Way {
    /// Asks for no more than the other and puts off no more.
    fn is_below(&self, other: &Way) -> bool {
        self.now.is_subset(&other.now)
            && self.later.is_subset(&other.later)
            && self.put_off.is_subset(&other.put_off)
    }
}

/// Every way to satisfy all of the parts, one part after the other.
fn ways(parts: &[Part], all: &[u32], most: usize) -> Result<Vec<Way>, String> {
    let mut done: Vec<Way> = Vec::new();
    let mut work: Vec<(Way, Vec<u32>)> = vec![(Way::default(), all.to_vec())];
    while let Some((mut way, mut todo)) = work.pop() {
        if work.len() + done.len() > most {
            return Err("the formula's automaton is too large".into());
        }
        let Some(i) = todo.pop() else {
            if !done.contains(&way) {
                done.push(way);
            }
            continue;
        };
        match parts[i as usize] {
            Part::True => work.push((way, todo)),
            Part::False => {}
            Part::Literal(atom, positive) => {
                if !way.now.contains(&(atom, !positive)) {
                    way.now.insert((atom, positive));
                    work.push((way, todo));
                }
            }
            Part::And(f, g) => {
                todo.extend([f, g]);
                work.push((way, todo));
            }
            Part::Or(f, g) => {
                for one in [f, g] {
                    let mut todo = todo.clone();
                    todo.push(one);
                    work.push((way.clone(), todo));
                }
            }
            Part::Until(f, g) => {
                let mut now = todo.clone();
                now.push(g);
                work.push((way.clone(), now));
                todo.push(f);
                way.later.insert(i);
                way.put_off.insert(i);
                work.push((way, todo));
            }
            Part::Release(f, g) => {
                let mut now = todo.clone();
                now.extend([f, g]);
                work.push((way.clone(), now));
                todo.push(g);
                way.later.insert(i);
                work.push((way, todo));
            }
        }
    }
    done.sort();
    Ok(done)
}

/// Without those that have another below them.
fn undominated(ways: Vec<Way>) -> Vec<Way> {
    let mut kept: Vec<Way> = Vec::new();
    for way in ways {
        if kept.iter().any(|k| k.is_below(&way)) {
            continue;
        }
        kept.retain(|k| !way.is_below(k));
        kept.push(way);
    }
    kept
}
