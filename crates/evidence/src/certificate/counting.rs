//! The certificate of `counting`: where threads may be, and how many of them, for any number of threads
//! that nothing tells apart.
//!
//! The program is read as [`wattle_model::Crowd`] makes it: one thread of the instance stands for all of
//! its role. A *place* is a location, which stores are pending there and what is known of registers and
//! pending values; a thread is at the first place that fits it. The certificate stands for the states, for
//! every number of threads, in which every thread is at a place, every fact holds of memory and of the
//! numbers of threads at the places, and what is *known* at a place holds of every thread there: such a fact
//! speaks of the thread's own registers and pending values too. States in which a thread is inside an atomic block are those that its
//! steps reach from there.
//!
//! A counter that wraps around is right only with fewer threads than it has values. A certificate may be about
//! so many threads at most: then it stands for states of such instances only, and whoever tells the proof
//! tells how many.
//!
//! Or it is about the program with numbers that do not wrap around ([`wattle_model::Program::unwrapped`]), whose
//! places, cells and values these are then.

use super::{Comparison, PendingStores, Predicate, Quantity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use wattle_memory::MemoryModel;
use wattle_model::{CellId, LocationId, RegisterId, ThreadId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counting {
    pub model: MemoryModel,
    /// Runs in which a number wraps around are not looked at.
    #[serde(default)]
    pub no_wrap: bool,
    /// Only instances whose families of any number have at most so many threads together are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// It is about the unwrapped program.
    #[serde(default)]
    pub unwrapped: bool,
    pub places: Vec<Place>,
    /// All of them hold.
    pub facts: Vec<Fact>,
    /// And these of every thread at the place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<Known>,
    /// And of these no two threads have the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distinct: Vec<Distinct>,
}

/// Places with a register: whoever two threads at them are, their registers differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distinct(pub Vec<(u32, RegisterId)>);

impl Distinct {
    /// The registers that differ from others at the place.
    pub fn at(&self, place: usize) -> impl Iterator<Item = RegisterId> + '_ {
        let here = self.0.iter().filter(move |(p, _)| *p as usize == place);
        here.map(|(_, r)| *r)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The thread of the instance that stands for those who may be here.
    pub role: ThreadId,
    pub location: LocationId,
    pub pending: PendingStores,
    /// Conditions on the thread's registers and on the values of its pending stores.
    pub when: Vec<Predicate>,
}

/// One of these holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact(pub Vec<Sum>);

/// What holds of every thread at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub place: u32,
    pub fact: Fact,
}

/// What is claimed of states: facts, what threads know, and what differs.
#[derive(Clone, Copy)]
pub struct Claims<'c> {
    pub facts: &'c [Fact],
    pub known: &'c [Known],
    pub distinct: &'c [Distinct],
}

/// `sum + constant` compared with zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    pub sum: Vec<(i64, Counted)>,
    pub constant: i64,
    pub is: Comparison,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// The value in memory.
    Cell(CellId),
    /// How many threads are at the place.
    Place(u32),
    /// The thread's own, where something is known of it.
    Register(RegisterId),
    /// The value of its pending store.
    Entry(u32),
}

/// A thread as it may come to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Local {
    pub role: ThreadId,
    pub location: LocationId,
    pub pending: PendingStores,
    pub registers: Vec<i64>,
    /// Of the pending stores.
    pub values: Vec<i64>,
}

/// What a certificate leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// An initial state, or one that follows a state of the certificate, breaks a fact.
    Breaks {
        event: String,
        cells: Vec<i64>,
        counts: Vec<i64>,
    },
    /// What is known at a place is not so of a thread there.
    Forgets {
        event: String,
        place: usize,
        cells: Vec<i64>,
        counts: Vec<i64>,
        /// Of the thread.
        registers: Vec<i64>,
        values: Vec<i64>,
    },
    /// Two threads at these places may have the same of what is distinct.
    Same {
        event: String,
        distinct: usize,
        places: [usize; 2],
    },
    /// A thread comes to where there is no place for it.
    Nowhere { event: String, local: Local },
    /// A fault, or what the property forbids, is not excluded.
    Allows { what: String },
}

impl Counting {
    pub fn claims(&self) -> Claims<'_> {
        Claims {
            facts: &self.facts,
            known: &self.known,
            distinct: &self.distinct,
        }
    }

    /// The place where the thread is.
    pub fn place(&self, local: &Local) -> Option<usize> {
        let at = |p: &Place| {
            (p.role, p.location, &p.pending) == (local.role, local.location, &local.pending)
                && p.when.iter().all(|c| fits(c, local))
        };
        self.places.iter().position(at)
    }

    /// Why the state is none that the certificate stands for, if it is not.
    pub fn excludes(&self, cells: &[i64], locals: &[&Local]) -> Option<String> {
        let mut counts = vec![0; self.places.len()];
        for local in locals {
            match self.place(local) {
                Some(p) => counts[p] += 1,
                None => return Some("a thread is at no place of the certificate".into()),
            }
        }
        let broken = self.facts.iter().position(|f| !f.holds(cells, &counts));
        if let Some(n) = broken {
            return Some(format!("fact {} does not hold", n + 1));
        }
        let unknown = |k: &Known| {
            let mut here = locals
                .iter()
                .filter(|l| self.place(l) == Some(k.place as usize));
            here.any(|l| !(k.fact).holds_of(cells, &counts, &l.registers, &l.values))
        };
        if let Some(n) = self.known.iter().position(unknown) {
            return Some(format!("what is known ({}) is not so", n + 1));
        }
        let same = |d: &Distinct| {
            // Of one thread two registers may be the same.
            let mut seen = BTreeSet::new();
            locals.iter().any(|l| {
                let own = self.place(l).into_iter().flat_map(|p| d.at(p));
                let own: BTreeSet<Option<i64>> =
                    own.map(|r| l.registers.get(r.index()).copied()).collect();
                own.into_iter().any(|value| !seen.insert(value))
            })
        };
        let broken = self.distinct.iter().position(same);
        broken.map(|n| format!("two threads have the same ({})", n + 1))
    }
}

fn fits(condition: &Predicate, local: &Local) -> bool {
    let value = |q: &Quantity| match q {
        Quantity::Register(_, r) => local.registers.get(r.index()).copied(),
        Quantity::Entry(_, i) => local.values.get(*i as usize).copied(),
        Quantity::View(..) => None,
        Quantity::Cell(_) => None,
    };
    let sum = condition.sum.iter().map(|(k, q)| Some((*k, value(q)?)));
    let sum: Option<Vec<(i64, i64)>> = sum.collect();
    sum.is_some_and(|sum| compare(&sum, condition.constant, condition.is))
}

impl Fact {
    /// Whether it holds of these numbers.
    pub fn holds(&self, cells: &[i64], counts: &[i64]) -> bool {
        self.holds_of(cells, counts, &[], &[])
    }

    /// Whether it holds of these numbers and of a thread.
    pub fn holds_of(
        &self,
        cells: &[i64],
        counts: &[i64],
        registers: &[i64],
        values: &[i64],
    ) -> bool {
        let value = |counted: &Counted| match counted {
            Counted::Cell(c) => cells.get(c.index()).copied(),
            Counted::Place(p) => counts.get(*p as usize).copied(),
            Counted::Register(r) => registers.get(r.index()).copied(),
            Counted::Entry(e) => values.get(*e as usize).copied(),
        };
        self.0.iter().any(|part| {
            let sum = part.sum.iter().map(|(k, c)| Some((*k, value(c)?)));
            let sum: Option<Vec<(i64, i64)>> = sum.collect();
            sum.is_some_and(|sum| compare(&sum, part.constant, part.is))
        })
    }
}

fn compare(sum: &[(i64, i64)], constant: i64, is: Comparison) -> bool {
    let sum = sum.iter().map(|(a, x)| i128::from(*a) * i128::from(*x));
    let sum = sum.sum::<i128>() + i128::from(constant);
    match is {
        Comparison::AtMostZero => sum <= 0,
        Comparison::Zero => sum == 0,
        Comparison::MultipleOf(m) => m != 0 && sum % i128::from(m) == 0,
    }
}
