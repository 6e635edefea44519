//! Configurations with multiset buffers, and their order.

use crate::local::Local;
use std::collections::BTreeMap;
use wattle_evidence::certificate::{BagOf, MultisetConfig, Multisets};
use wattle_memory::automaton::Automata;

/// What is pending of one cell: the last-added value (open if `None`), and at least so many of
/// each other pending store.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bag {
    pub last: Option<i64>,
    pub others: BTreeMap<i64, u32>,
}

impl Bag {
    pub fn add(&mut self, value: i64) {
        *self.others.entry(value).or_insert(0) += 1;
    }

    pub fn remove(&mut self, value: i64) {
        if let Some(n) = self.others.get_mut(&value) {
            *n -= 1;
            if *n == 0 {
                self.others.remove(&value);
            }
        }
    }

    fn covers(&self, other: &Bag) -> bool {
        let enough = |(v, n): (&i64, &u32)| other.others.get(v).is_some_and(|m| m >= n);
        (self.last.is_none() || self.last == other.last) && self.others.iter().all(enough)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub locals: Vec<Local>,
    pub memory: Vec<Option<i64>>,
    /// Per thread and cell; nothing pending where there is none.
    pub bags: Vec<Vec<Option<Bag>>>,
}

impl Config {
    pub fn covers(&self, other: &Config, automata: &Automata) -> bool {
        let bag = |(a, b): (&Option<Bag>, &Option<Bag>)| match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => a.covers(b),
            _ => false,
        };
        (self.memory.iter().zip(&other.memory)).all(|(a, b)| a.is_none() || a == b)
            && (self.bags.iter().zip(&other.bags)).all(|(a, b)| a.iter().zip(b).all(bag))
            && (self.locals.iter().zip(&other.locals))
                .zip(&automata.threads)
                .all(|((a, b), automaton)| a.covers(*b, automaton))
    }
}

/// The basis in the program's own terms.
pub fn certificate<'c>(automata: &Automata, basis: impl Iterator<Item = &'c Config>) -> Multisets {
    let configs = basis.map(|c| MultisetConfig {
        locals: (c.locals.iter().zip(&automata.threads))
            .map(|(l, automaton)| l.certified(automaton))
            .collect(),
        memory: c.memory.clone(),
        bags: (c.bags.iter())
            .map(|thread| {
                let bags = thread.iter().map(|bag| {
                    bag.as_ref().map(|b| BagOf {
                        last: b.last,
                        others: b.others.iter().map(|(v, n)| (*v, *n)).collect(),
                    })
                });
                bags.collect()
            })
            .collect(),
    });
    Multisets {
        basis: configs.collect(),
    }
}
