//! The plan: small instances first, then the search for any number of threads, plain and with
//! guesses; every violation is replayed.

use crate::compile::{Compiled, Unsupported};
use crate::concrete::{Run, along, concretise, replays};
use crate::forward::{Limits, explore};
use crate::guess::Guesser;
use crate::machine::{Candidates, Machine};
use crate::search::{Effort, Finding, Proof, Root, Search};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

#[derive(Clone, Debug)]
pub enum Outcome {
    /// For every number of threads (or the fixed one): the cubes are an inductive invariant.
    Holds(Proof),
    Violated(Run),
    Undecided(String),
    Refused(Unsupported),
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Try small instances explicitly before the search.
    pub small_first: bool,
    /// Generalise from small instances.
    pub guess: bool,
    /// Cubes expanded without guesses before guesses are tried.
    pub plain_first: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            small_first: true,
            guess: true,
            plain_first: 80,
        }
    }
}

/// Decides whether a bad state can be reached. `stop` is polled with the number of cubes held.
pub fn check(
    system: &ArraySystem,
    model: MemoryModel,
    options: Options,
    stop: &dyn Fn(usize) -> bool,
) -> (Outcome, Effort) {
    let mut effort = Effort::default();
    let outcome = Check {
        system,
        model,
        options,
        stop,
    }
    .run(&mut effort);
    (outcome, effort)
}

struct Check<'a> {
    system: &'a ArraySystem,
    model: MemoryModel,
    options: Options,
    stop: &'a dyn Fn(usize) -> bool,
}

impl<'a> Check<'a> {
    fn run(&self, effort: &mut Effort) -> Outcome {
        let compiled = Compiled::new(self.system, self.model);
        let constants = compiled.as_ref().map_or(1, |c| c.constants.max(1)) as u8;
        if self.options.small_first || compiled.is_err() {
            let sizes = match self.system.threads {
                Some(n) if n <= 4 => vec![n as u8],
                Some(_) => Vec::new(),
                None => vec![constants, constants + 1],
            };
            for n in sizes {
                if let Some(run) = self.small(n, 4000) {
                    return Outcome::Violated(run);
                }
            }
        }
        let compiled = match compiled {
            Ok(c) => c,
            Err(u) => return Outcome::Refused(u),
        };
        match self.backward(&compiled, effort) {
            Ok(outcome) => outcome,
            Err(u) => Outcome::Refused(u),
        }
    }

    /// A violation with few threads, if there is a short one.
    fn small(&self, threads: u8, states: usize) -> Option<Run> {
        let machine = Machine::new(self.system, self.model, threads);
        let candidates = Candidates::of(self.system);
        let limits = Limits {
            states,
            buffer: 6,
            depth: 200,
            starts: 2000,
            walks: 0,
        };
        let found = explore(&machine, &candidates, limits, true, &|| (self.stop)(0));
        let (start, events) = found.bad?;
        let run = Run {
            threads,
            start,
            events,
        };
        replays(self.system, self.model, &run).then_some(run)
    }

    fn backward(
        &self,
        compiled: &Compiled<'a>,
        effort: &mut Effort,
    ) -> Result<Outcome, Unsupported> {
        let mut search = Search::new(compiled)?;
        let mut guesser = Guesser::default();
        let mut refuted: Vec<usize> = Vec::new();
        let mut plain = self.options.guess;
        let mut restarts = 0;
        loop {
            let budget = self.options.plain_first;
            let started = effort.cubes;
            let finding = {
                let used = std::cell::Cell::new(started);
                let limit = |held: usize| {
                    used.set(used.get() + 1);
                    (plain && used.get() > started + budget) || (self.stop)(held)
                };
                search.run(&refuted, &mut guesser, effort, &limit)?
            };
            effort.restarts = restarts;
            match finding {
                Finding::Closed(proof) => return Ok(Outcome::Holds(proof)),
                Finding::GaveUp => {
                    return Ok(Outcome::Undecided(
                        "a cube needs too many threads or open reads".into(),
                    ));
                }
                Finding::Stopped if plain && !(self.stop)(0) => {
                    plain = false;
                    self.sample(compiled, &mut guesser, 0);
                }
                Finding::Stopped => return Ok(Outcome::Undecided("out of budget".into())),
                Finding::Path { nodes, start } => {
                    let root = nodes[nodes.len() - 1].root;
                    restarts += 1;
                    match root {
                        Root::Guess(number) => {
                            guesser.refute(number);
                            let stop = || (self.stop)(0);
                            if let Some((machine, states)) = along(compiled, &nodes, &start, &stop)
                            {
                                guesser.add_sample(machine, states);
                            }
                            if restarts == 2 {
                                self.sample(compiled, &mut guesser, 1);
                            }
                        }
                        Root::Claimed(i) => refuted.push(i),
                        Root::Bad => {
                            let stop = || (self.stop)(0);
                            if let Some(run) = concretise(compiled, &nodes, &start, &stop)
                                && replays(self.system, self.model, &run)
                            {
                                return Ok(Outcome::Violated(run));
                            }
                            let most = self.system.threads.map_or(4, |n| n.min(4) as u8);
                            for n in 1..=most {
                                if let Some(run) = self.small(n, 60_000) {
                                    return Ok(Outcome::Violated(run));
                                }
                            }
                            return Ok(Outcome::Undecided("the search found a path that no concrete run follows (a universal guard or an integer was over-approximated)".into()));
                        }
                    }
                }
            }
        }
    }

    /// A small instance under the real memory model for the guesser: two threads, or `more`.
    fn sample(&self, compiled: &Compiled<'a>, guesser: &mut Guesser<'a>, more: u8) {
        let candidates = Candidates::of(self.system);
        let threads = match self.system.threads {
            Some(n) if n <= 3 => n as u8,
            _ => compiled.constants as u8 + 2 + more,
        };
        let machine = Machine::new(self.system, compiled.model, threads);
        let limits = Limits {
            states: 20_000,
            buffer: 3,
            depth: 60,
            starts: 8,
            walks: 300,
        };
        let explored = explore(&machine, &candidates, limits, false, &|| (self.stop)(0));
        guesser.add_sample(machine, explored.states);
    }
}
