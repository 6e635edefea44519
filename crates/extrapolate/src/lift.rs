//! From predicates and cubes over memory to predicates and cubes over buffered values (dan-2013 §5,
//! Rules 1–7, and App. B, Rules 8–14).
//!
//! Which cells can be pending together, and where, is read off the threads' graphs, and that is what
//! the rules that leave predicates out come to: a thread that never writes a cell has no entry of it
//! (Rules 5 and 12), and where a fence separates two writes no two entries meet (Rules 7 and 14). One
//! substitution serves all occurrences of a cell, in a predicate and in a cube (Rules 6 and 13).
//! Rules 1 and 8 need no predicates here: see [`crate::sites`]. A lifted predicate mixes the buffers
//! of different threads only on request ([`Mix`]).

use crate::cube::Cube;
use crate::sites::Graph;
use crate::vocabulary::{Place, Vocabulary};
use std::collections::BTreeSet;
use wattle_logic::{Formula, Term, Var, eq};
use wattle_model::{CellId, ThreadId};
use wattle_predicates::reduce::{Symbol, System};

/// Whether one predicate may speak of the buffers of several threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    OneThread,
    AllThreads,
}

/// What a proof under SC leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    pub predicates: Vec<Formula>,
    /// Cubes of two and more literals in the boolean program.
    pub cubes: Vec<Vec<Formula>>,
    /// The size of the largest cube.
    pub size: usize,
}

/// Which cells are pending at which position of which thread's buffer.
pub struct Buffers {
    /// Per thread, every list of cells its buffer can hold.
    lists: Vec<Vec<Vec<CellId>>>,
}

/// Substitutions past this many per predicate or cube are left out: less precise, never wrong.
const MOST_LIFTS: usize = 256;

impl Buffers {
    pub fn new(graphs: &[Graph]) -> Self {
        let lists = graphs.iter().map(|g| {
            let cells = |s: &crate::sites::Site| s.pending.slots.iter().map(|s| s.cell).collect();
            let lists: BTreeSet<Vec<CellId>> = g.sites.iter().map(cells).collect();
            lists.into_iter().collect()
        });
        Buffers {
            lists: lists.collect(),
        }
    }

    /// The cells that can be at the position of the thread's buffer.
    pub fn at(&self, t: ThreadId, position: usize) -> BTreeSet<CellId> {
        let lists = self.lists[t.index()].iter();
        lists.filter_map(|l| l.get(position).copied()).collect()
    }

    /// Every way to read some of the cells from one thread's buffer.
    fn of_thread(&self, t: ThreadId, cells: &[CellId]) -> BTreeSet<Vec<Place>> {
        let mut found = BTreeSet::new();
        for list in &self.lists[t.index()] {
            let mut ways: Vec<Vec<Place>> = vec![Vec::new()];
            for c in cells {
                let positions = list.iter().enumerate().filter(|(_, d)| *d == c);
                let positions: Vec<usize> = positions.map(|(i, _)| i).collect();
                for n in 0..ways.len() {
                    for i in &positions {
                        let mut way = ways[n].clone();
                        way.push((t, *i, *c));
                        ways.push(way);
                    }
                }
                ways.truncate(MOST_LIFTS);
            }
            found.extend(ways.into_iter().filter(|w| !w.is_empty()));
        }
        found
    }

    /// Every way to read some of the cells from buffers (Rules 3 and 10).
    fn ways(&self, cells: &[CellId], mix: Mix) -> Vec<Vec<Place>> {
        let threads = (0..self.lists.len()).map(ThreadId::new);
        let alone: Vec<BTreeSet<Vec<Place>>> = threads.map(|t| self.of_thread(t, cells)).collect();
        let mut ways: Vec<Vec<Place>> = alone.iter().flatten().cloned().collect();
        if mix == Mix::AllThreads {
            for (n, a) in alone.iter().enumerate() {
                for b in alone[n + 1..].iter().flatten() {
                    let apart =
                        |a: &Vec<Place>| b.iter().all(|(_, _, c)| a.iter().all(|p| p.2 != *c));
                    for a in a.iter().filter(|a| apart(a)) {
                        ways.push([a.as_slice(), b].concat());
                    }
                }
            }
        }
        ways.truncate(MOST_LIFTS);
        ways
    }
}

fn cells(system: &System<'_>, vars: impl IntoIterator<Item = Var>) -> Vec<CellId> {
    let mut cells: Vec<CellId> = vars
        .into_iter()
        .filter_map(|v| match system.symbol(v) {
            Symbol::Cell(c) => Some(c),
            Symbol::Register(..) | Symbol::Choice | Symbol::Entry(..) => None,
        })
        .collect();
    cells.sort();
    cells.dedup();
    cells
}

fn substituted(system: &System<'_>, formula: &Formula, way: &[Place]) -> Formula {
    formula.subst(&|v| {
        let place = way.iter().find(|(_, _, c)| system.cell(*c) == v);
        place.map(|(t, i, _)| Term::from(system.entry(*t, *i)))
    })
}

/// The formula with entries read as the cells they can belong to: what it says under SC.
pub fn lowered(system: &System<'_>, buffers: &Buffers, formula: &Formula) -> Vec<Formula> {
    let mut all = vec![formula.clone()];
    for v in formula.vars() {
        let Symbol::Entry(t, i) = system.symbol(v) else {
            continue;
        };
        let cells = buffers.at(t, i);
        let one = |f: Formula| {
            let to = cells.iter().map(|c| Term::from(system.cell(*c)));
            to.map(|c| f.assign(v, &c)).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(one).collect();
        all.truncate(MOST_LIFTS);
    }
    all
}

/// The predicates of the relaxed program: those of SC (Rules 2 and 9), lifted (3 and 10), and
/// equalities of buffered values with memory and with each other (4 and 11).
pub fn predicates(system: &System<'_>, buffers: &Buffers, sc: &[Formula], mix: Mix) -> Vocabulary {
    let mut vocabulary = Vocabulary::default();
    for p in sc {
        vocabulary.add(p);
    }
    for p in sc.iter().flat_map(Formula::atoms) {
        let p = Formula::Atom(p);
        for way in buffers.ways(&cells(system, p.vars()), mix) {
            let lifted = substituted(system, &p, &way);
            let there = |(_, _, c): &Place| p.mentions(system.cell(*c));
            vocabulary.add_atom(&lifted, Some(way.into_iter().filter(there).collect()));
        }
    }
    for (n, lists) in buffers.lists.iter().enumerate() {
        let t = ThreadId::new(n);
        for list in lists {
            for (i, c) in list.iter().enumerate() {
                let entry = system.entry(t, i);
                vocabulary.add_atom(&eq(entry, system.cell(*c)), Some(vec![(t, i, *c)]));
                if let Some(j) = list[..i].iter().rposition(|d| d == c) {
                    let equal = eq(system.entry(t, j), entry);
                    vocabulary.add_atom(&equal, Some(vec![(t, j, *c), (t, i, *c)]));
                }
            }
        }
    }
    vocabulary
}

/// The cubes of SC and their lifted versions, in the predicates of the vocabulary.
pub fn cubes(
    system: &System<'_>,
    buffers: &Buffers,
    vocabulary: &Vocabulary,
    sc: &[Vec<Formula>],
    mix: Mix,
) -> Vec<Cube> {
    let mut all = BTreeSet::new();
    for cube in sc {
        let vars: BTreeSet<Var> = cube.iter().flat_map(Formula::vars).collect();
        let mut ways = buffers.ways(&cells(system, vars), mix);
        ways.push(Vec::new());
        for way in ways {
            let literals = cube.iter().map(|f| substituted(system, f, &way));
            let literals: Option<Vec<(usize, bool)>> =
                literals.map(|f| vocabulary.find(&f)).collect();
            if let Some(literals) = literals {
                let cube: Cube = literals.iter().copied().collect();
                // Two literals may have become each other's negation.
                if literals.iter().all(|(p, v)| cube.get(*p) == Some(*v)) {
                    all.insert(cube);
                }
            }
        }
    }
    all.into_iter().collect()
}
