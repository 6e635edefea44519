//! The plan: small instances first, then the search for any number of threads, plain and with
//! guesses; every violation is replayed.

use crate::compile::{Compiled, Unsupported};
use crate::concrete::{Run, along, concretise, replays};
use crate::forward::{Limits, bad_run};
use crate::guess::Guesser;
use crate::machine::{Candidates, Machine};
use crate::pairs::saturate::Reach;
use crate::pairs::witness::{self, Witness};
use crate::pairs::{self, Failure};
use crate::search::{self, Effort, Finding, Root, Search};
use crate::view;
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

#[derive(Clone, Debug)]
pub enum Outcome {
    /// For every number of threads (or the fixed one).
    Holds(Proof),
    Violated(Run),
    Undecided(String),
    Refused(Unsupported),
}

/// Why it holds.
#[derive(Clone, Debug)]
pub enum Proof {
    /// Backward: the cubes' negation is an inductive invariant.
    Cubes(search::Proof),
    /// Forward: every two threads look like one of the views.
    Views(pairs::Proof),
}

impl Proof {
    /// How many cubes or views.
    pub fn size(&self) -> usize {
        match self {
            Proof::Cubes(p) => p.cubes.len(),
            Proof::Views(p) => p.views.len(),
        }
    }

    /// Claims of the system that were proved as well.
    pub fn claims(&self) -> &[usize] {
        match self {
            Proof::Cubes(p) => &p.claims,
            Proof::Views(_) => &[],
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Try small instances explicitly before the search.
    pub small_first: bool,
    /// Generalise from small instances.
    pub guess: bool,
    /// Cubes expanded without guesses before guesses are tried.
    pub plain_first: usize,
    /// Views of each small instance that guesses are made from.
    pub sampled: usize,
    /// Views of two threads held in the first attempt to find a closed set of them; 0 for none.
    pub views: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            small_first: true,
            guess: true,
            plain_first: 80,
            sampled: 6_000,
            views: 16_000,
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
            for n in self.sizes(constants) {
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

    fn sizes(&self, constants: u8) -> Vec<u8> {
        match self.system.threads {
            Some(n) if n <= 4 => vec![n as u8],
            Some(_) => Vec::new(),
            None => vec![constants, constants + 1],
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
        };
        let seen = bad_run(
            &machine,
            &candidates,
            limits,
            &|| (self.stop)(0),
            &mut |_| {},
        );
        let (start, events) = seen.bad?;
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
        let (mut none, mut guesser) = (Guesser::default(), Guesser::default());
        let mut refuted: Vec<usize> = Vec::new();
        let mut plain = self.options.plain_first > 0 || !self.options.guess;
        let mut wrong = 0;
        let mut looked = false;
        let constants = compiled.constants.max(1) as u8;
        let mut restarts = 0;
        let views = match self.system.has_weak_cells() {
            true => self.options.views,
            // Cubes with guesses do these well.
            false => 0,
        };
        let mut forward = Forward::new(compiled, views);
        // Cubes that may be expanded in this phase; without guesses first, then in turn.
        let mut budget = self.options.plain_first;
        let mut started = effort.cubes;
        loop {
            if !plain && guesser.is_empty() {
                self.sample(compiled, &mut guesser, false);
            }
            let finding = {
                let limited = self.options.guess;
                let used = std::cell::Cell::new(effort.cubes);
                let limit = |held: usize| {
                    used.set(used.get() + 1);
                    (limited && used.get() > started + budget) || (self.stop)(held)
                };
                let guesses = if plain { &mut none } else { &mut guesser };
                search.run(&refuted, guesses, effort, &limit)?
            };
            effort.restarts = restarts;
            match finding {
                Finding::Closed(proof) => return Ok(Outcome::Holds(Proof::Cubes(proof))),
                // Guesses may keep the cubes smaller.
                Finding::GaveUp if plain && self.options.guess => {
                    if let Some(proof) = forward.turn(compiled, self.stop) {
                        return Ok(Outcome::Holds(Proof::Views(proof)));
                    }
                    plain = false;
                    budget = budget.saturating_mul(4).max(80);
                    started = effort.cubes;
                }
                Finding::GaveUp => {
                    while forward.goes_on() && !(self.stop)(0) {
                        if let Some(proof) = forward.turn(compiled, self.stop) {
                            return Ok(Outcome::Holds(Proof::Views(proof)));
                        }
                    }
                    return Ok(Outcome::Undecided(
                        "a cube needs too many threads or open reads".into(),
                    ));
                }
                Finding::Stopped if self.options.guess && !(self.stop)(0) => {
                    if let Some(proof) = forward.turn(compiled, self.stop) {
                        return Ok(Outcome::Holds(Proof::Views(proof)));
                    }
                    // A violation that needs a longer search than the first one.
                    if plain && self.options.small_first && !looked {
                        looked = true;
                        for n in self.sizes(constants) {
                            if let Some(run) = self.small(n, 40_000) {
                                return Ok(Outcome::Violated(run));
                            }
                        }
                    }
                    plain = !plain;
                    budget = budget.saturating_mul(4).max(80);
                    started = effort.cubes;
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
                            wrong += 1;
                            if wrong == 4 {
                                self.sample(compiled, &mut guesser, true);
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
                            let sizes = match self.system.threads {
                                Some(_) => self.sizes(constants),
                                None => (constants..=constants.max(4)).collect(),
                            };
                            for n in sizes {
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

    /// Small instances under the real memory model for the guesser: few remembered writes for many
    /// different states, and more of them for fewer. Larger ones when guesses were wrong.
    fn sample(&self, compiled: &Compiled<'a>, guesser: &mut Guesser<'a>, larger: bool) {
        let candidates = Candidates::of(self.system);
        let least = compiled.constants as u8;
        let sizes: Vec<u8> = match (self.system.threads, larger) {
            (Some(n), _) if n <= 4 => vec![n as u8],
            (_, false) => vec![least + 2, least + 3],
            (_, true) => vec![least + 3, least + 4],
        };
        for threads in sizes {
            let remembered: &[usize] = match (compiled.model, threads.saturating_sub(least)) {
                (MemoryModel::Sc, _) => &[0],
                (_, ..=2) => &[0, 1, 3],
                (_, 3) if larger => &[1, 2],
                _ => &[0, 1],
            };
            for most in remembered {
                let machine = Machine::new(self.system, compiled.model, threads);
                let limits = Limits {
                    states: self.options.sampled * if larger { 3 } else { 1 },
                    buffer: *most,
                    depth: 60,
                    starts: 8,
                };
                let walks = self.options.sampled / 100;
                let stop = || (self.stop)(0);
                let views = view::explore(&machine, &candidates, limits, walks, &stop);
                guesser.add_sample(machine, views);
            }
        }
    }
}

/// The search for views, which takes turns with the one for cubes.
struct Forward {
    /// What may still be tried, the next one last.
    left: Vec<Reach>,
}

impl Forward {
    fn new(compiled: &Compiled<'_>, views: usize) -> Self {
        let sizes = (0..if views > 0 { 3 } else { 0 }).rev();
        let reach = |precise, named, views: usize| Reach {
            views,
            work: 20 * views,
            precise,
            named,
            witness: None,
        };
        let plain = |n: usize| {
            let views = views << (3 * n);
            [
                reach(false, true, views / 2),
                reach(true, false, views / 8),
                reach(false, false, views),
            ]
        };
        let mut left: Vec<Reach> = sizes.clone().flat_map(plain).collect();
        // Witnesses after the first round.
        let first = left.split_off(left.len().saturating_sub(3));
        if views > 0 {
            let with = |w: &Witness| Reach {
                work: 100 * views,
                witness: Some(*w),
                ..reach(false, false, 4 * views)
            };
            left.extend(witness::candidates(compiled).iter().rev().map(with));
        }
        left.extend(first);
        Forward { left }
    }

    fn goes_on(&self) -> bool {
        !self.left.is_empty()
    }

    /// Three attempts.
    fn turn(
        &mut self,
        compiled: &Compiled<'_>,
        stop: &dyn Fn(usize) -> bool,
    ) -> Option<pairs::Proof> {
        for _ in 0..3 {
            let reach = self.left.pop()?;
            let plain = |r: &Reach| !r.precise && !r.named && r.witness.is_none();
            match pairs::prove(compiled, reach, &|| stop(0)) {
                Ok(proof) => return Some(proof),
                Err(Failure::Foreign | Failure::Unbounded) if plain(&reach) => self.left.clear(),
                Err(Failure::TooMany) if plain(&reach) => {
                    // With witnesses there are more still.
                    self.left.retain(|r| r.witness.is_none());
                }
                // More views make no difference.
                Err(Failure::Bad | Failure::Foreign | Failure::Unbounded) => {
                    let kind = |r: &Reach| (r.precise, r.named, r.witness);
                    self.left.retain(|r| kind(r) != kind(&reach));
                }
                Err(Failure::TooMany | Failure::Stopped) => {}
            }
        }
        None
    }
}
