//! Backward search in a well-structured system, with minimal bases.
//!
//! A system names its bad configurations, the minimal predecessors of a configuration, and the
//! order: `a` covers `b` if everything `b` stands for, `a` stands for too. The search keeps a basis
//! of everything from which a bad configuration can be reached; it ends because the order is a
//! well-quasi-order (or the budget does).

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::Hash;
use wattle_evidence::{Control, Progress, Stop};

pub trait System {
    type Config: Clone;
    /// Configurations with different keys are compared only if `keys_covering` lists them.
    type Key: Clone + Eq + Hash;
    /// How a predecessor leads to its configuration.
    type Move: Clone;

    fn bad(&self) -> Vec<Self::Config>;
    fn predecessors(&self, config: &Self::Config) -> Vec<(Self::Move, Self::Config)>;
    fn covers(&self, general: &Self::Config, special: &Self::Config) -> bool;
    fn is_initial(&self, config: &Self::Config) -> bool;
    fn key(&self, config: &Self::Config) -> Self::Key;
    /// The pattern a key belongs to (for instance, which threads are left open).
    fn pattern(&self, key: &Self::Key) -> u64;
    /// The key that a more general configuration of this pattern would have; `None` if none can.
    fn generalise(&self, key: &Self::Key, pattern: u64) -> Option<Self::Key>;
    fn size(&self, config: &Self::Config) -> usize;
}

pub struct Node<S: System> {
    pub config: S::Config,
    /// The configuration it leads to and how; none for a bad one.
    pub next: Option<(u32, S::Move)>,
    /// Covered by a later, more general configuration.
    dead: bool,
}

pub enum Found {
    /// The node with this number is initial: following `next` from it reaches a bad one.
    Initial(u32),
    /// Nothing more: the living nodes are the basis.
    Closed,
}

pub struct Search<'s, S: System> {
    system: &'s S,
    pub nodes: Vec<Node<S>>,
    by_key: FxHashMap<S::Key, Vec<u32>>,
    patterns: Vec<u64>,
    bytes: u64,
}

impl<'s, S: System> Search<'s, S> {
    pub fn new(system: &'s S) -> Self {
        Search {
            system,
            nodes: Vec::new(),
            by_key: FxHashMap::default(),
            patterns: Vec::new(),
            bytes: 0,
        }
    }

    pub fn run(&mut self, name: &'static str, control: &Control<'_>) -> Result<Found, Stop> {
        let mut queue = VecDeque::new();
        for config in self.system.bad() {
            if let Some(n) = self.add(config, None) {
                if self.system.is_initial(&self.nodes[n as usize].config) {
                    return Ok(Found::Initial(n));
                }
                queue.push_back(n);
            }
        }
        let mut count = 0u64;
        while let Some(n) = queue.pop_front() {
            count += 1;
            if count.is_multiple_of(64) {
                control.poll(name, self.progress(queue.len()))?;
            }
            if self.nodes[n as usize].dead {
                continue;
            }
            let config = self.nodes[n as usize].config.clone();
            for (how, before) in self.system.predecessors(&config) {
                if let Some(m) = self.add(before, Some((n, how))) {
                    if self.system.is_initial(&self.nodes[m as usize].config) {
                        return Ok(Found::Initial(m));
                    }
                    queue.push_back(m);
                }
            }
        }
        Ok(Found::Closed)
    }

    pub fn progress(&self, frontier: usize) -> Progress {
        Progress {
            states: self.nodes.len() as u64,
            frontier: frontier as u64,
            memory: self.bytes,
        }
    }

    /// The minimal configurations found.
    pub fn basis(&self) -> impl Iterator<Item = &S::Config> {
        self.nodes.iter().filter(|n| !n.dead).map(|n| &n.config)
    }

    /// Adds the configuration unless the basis covers it already.
    fn add(&mut self, config: S::Config, next: Option<(u32, S::Move)>) -> Option<u32> {
        let key = self.system.key(&config);
        for pattern in &self.patterns {
            let Some(general) = self.system.generalise(&key, *pattern) else {
                continue;
            };
            let known = self.by_key.get(&general).map_or(&[][..], Vec::as_slice);
            let covers = |n: &u32| self.system.covers(&self.nodes[*n as usize].config, &config);
            if known.iter().any(covers) {
                return None;
            }
        }
        let n = self.nodes.len() as u32;
        let same_key = self.by_key.entry(key.clone()).or_default();
        let nodes = &mut self.nodes;
        same_key.retain(|m| {
            let covered = self.system.covers(&config, &nodes[*m as usize].config);
            nodes[*m as usize].dead |= covered;
            !covered
        });
        same_key.push(n);
        let pattern = self.system.pattern(&key);
        if !self.patterns.contains(&pattern) {
            self.patterns.push(pattern);
        }
        self.bytes += (self.system.size(&config) + 2 * size_of::<Node<S>>()) as u64;
        self.nodes.push(Node {
            config,
            next,
            dead: false,
        });
        Some(n)
    }
}
