//! Backward search in a well-structured system, with minimal bases.
//!
//! A system names its bad configurations, the minimal predecessors of a configuration, and the
//! order: `a` covers `b` if everything `b` stands for, `a` stands for too. The search keeps a basis
//! of everything from which a bad configuration can be reached; it ends because the order is a
//! well-quasi-order (or the budget does).

use crate::parts::{Part, Parts};
use std::collections::VecDeque;
use wattle_evidence::{Control, Meter, Progress, Stop};

pub trait System {
    type Config: Clone;
    /// How a predecessor leads to its configuration.
    type Move: Clone;

    fn bad(&self) -> Vec<Self::Config>;
    fn predecessors(&self, config: &Self::Config) -> Vec<(Self::Move, Self::Config)>;
    fn covers(&self, general: &Self::Config, special: &Self::Config) -> bool;
    fn is_initial(&self, config: &Self::Config) -> bool;
    /// What the configuration is made of, sorted: one that covers it is made of some of these.
    fn parts(&self, config: &Self::Config) -> Vec<Part>;
    fn size(&self, config: &Self::Config) -> usize;
}

pub struct Node<S: System> {
    pub config: S::Config,
    /// The configuration it leads to and how; none for a bad one.
    pub next: Option<(u32, S::Move)>,
    /// Covered by a later, more general configuration.
    dead: bool,
}

/// What looking whether a configuration is covered costs, in turns of a [`Meter`].
const TURN: usize = 64;

/// Predecessors from one poll to the next: what a configuration takes differs much more than what they do.
const POLL: u64 = 256;

pub enum Found {
    /// The node with this number is initial: following `next` from it reaches a bad one.
    Initial(u32),
    /// Nothing more: the living nodes are the basis.
    Closed,
}

pub struct Search<'s, S: System> {
    system: &'s S,
    pub nodes: Vec<Node<S>>,
    parts: Parts,
    bytes: u64,
}

impl<'s, S: System> Search<'s, S> {
    pub fn new(system: &'s S) -> Self {
        Search {
            system,
            nodes: Vec::new(),
            parts: Parts::default(),
            bytes: 0,
        }
    }

    pub fn system(&self) -> &'s S {
        self.system
    }

    pub fn run(&mut self, name: &'static str, control: &Control<'_>) -> Result<Found, Stop> {
        let mut queue = VecDeque::new();
        let meter = Meter::new(control);
        for config in self.system.bad() {
            meter.spend(TURN)?;
            if let Some(n) = self.add(config, None) {
                if self.system.is_initial(&self.nodes[n as usize].config) {
                    return Ok(Found::Initial(n));
                }
                queue.push_back(n);
            }
        }
        let mut made = 0u64;
        while let Some(n) = queue.pop_front() {
            if self.is_outdone(n) {
                continue;
            }
            let config = self.nodes[n as usize].config.clone();
            for (how, before) in self.system.predecessors(&config) {
                meter.spend(TURN)?;
                made += 1;
                if made.is_multiple_of(POLL) {
                    // Also where nothing new comes of them they are what was done.
                    let progress = self.progress(queue.len());
                    let states = made + progress.frontier;
                    control.poll(name, Progress { states, ..progress })?;
                }
                if let Some(m) = self.add(before, Some((n, how))) {
                    if self.system.is_initial(&self.nodes[m as usize].config) {
                        return Ok(Found::Initial(m));
                    }
                    queue.push_back(m);
                }
            }
        }
        // What was done early may have been outdone since.
        for n in 0..self.nodes.len() as u32 {
            meter.spend(TURN)?;
            self.is_outdone(n);
        }
        Ok(Found::Closed)
    }

    pub fn progress(&self, frontier: usize) -> Progress {
        Progress {
            states: self.nodes.len() as u64,
            frontier: frontier as u64,
            memory: self.bytes,
            ..Progress::default()
        }
    }

    /// The minimal configurations found.
    pub fn basis(&self) -> impl Iterator<Item = &S::Config> {
        self.nodes.iter().filter(|n| !n.dead).map(|n| &n.config)
    }

    /// Whether a later, more general configuration covers this one.
    fn is_outdone(&mut self, n: u32) -> bool {
        let node = &self.nodes[n as usize];
        let parts = self.system.parts(&node.config);
        let dead = node.dead || self.is_covered(&parts, &node.config, n);
        if dead && !self.nodes[n as usize].dead {
            self.parts.exactly(&parts).retain(|m| *m != n);
            self.nodes[n as usize].dead = true;
        }
        dead
    }

    /// Whether a configuration other than number `but` covers this one.
    fn is_covered(&self, parts: &[Part], config: &S::Config, but: u32) -> bool {
        let covers =
            |n: u32| n != but && self.system.covers(&self.nodes[n as usize].config, config);
        self.parts.any_within(parts, covers)
    }

    /// Adds the configuration unless the basis covers it already.
    fn add(&mut self, config: S::Config, next: Option<(u32, S::Move)>) -> Option<u32> {
        let parts = self.system.parts(&config);
        let n = self.nodes.len() as u32;
        if self.is_covered(&parts, &config, n) {
            return None;
        }
        let same = self.parts.exactly(&parts);
        let nodes = &mut self.nodes;
        same.retain(|m| {
            let covered = self.system.covers(&config, &nodes[*m as usize].config);
            nodes[*m as usize].dead |= covered;
            !covered
        });
        same.push(n);
        self.bytes += (self.system.size(&config) + 2 * size_of::<Node<S>>()) as u64;
        self.nodes.push(Node {
            config,
            next,
            dead: false,
        });
        Some(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use wattle_evidence::Pace;

    /// Numbers below a bound, each of which may come after every other; 0 is bad, and none is initial.
    struct Numbers(u32);

    impl System for Numbers {
        type Config = u32;
        type Move = ();

        fn bad(&self) -> Vec<u32> {
            vec![0]
        }

        fn predecessors(&self, _: &u32) -> Vec<((), u32)> {
            (0..self.0).map(|n| ((), n)).collect()
        }

        fn covers(&self, general: &u32, special: &u32) -> bool {
            general == special
        }

        fn is_initial(&self, _: &u32) -> bool {
            false
        }

        fn parts(&self, config: &u32) -> Vec<Part> {
            vec![u64::from(*config)]
        }

        fn size(&self, _: &u32) -> usize {
            4
        }
    }

    /// What was done at each poll.
    struct Done(Mutex<Vec<u64>>);

    impl Pace for Done {
        fn tick(&self, _: &'static str, progress: Progress) -> Result<(), Stop> {
            let mut all = self.0.lock().expect("one at a time");
            all.push(progress.states - progress.frontier);
            Ok(())
        }

        fn is_over(&self) -> bool {
            false
        }
    }

    /// A few configurations with many predecessors are much work, also where these are known already.
    #[test]
    fn polls_follow_the_predecessors() {
        let system = Numbers(1_000);
        let done = Done(Mutex::default());
        let control = Control::unlimited().with_pace(&done);
        let found = Search::new(&system).run("numbers", &control);
        assert!(matches!(found, Ok(Found::Closed)));
        let all = done.0.into_inner().expect("nobody failed");
        assert_eq!(all.len() as u64, 1_000 * 1_000 / POLL);
        assert!(all.windows(2).all(|w| w[0] < w[1]));
        let little = Control::unlimited().with_budget(Some(3_000));
        let found = Search::new(&system).run("numbers", &little);
        assert!(matches!(found, Err(Stop::Budget)));
    }
}
