//! The proof under SC: predicates that were given or found, and as few of them as will do.

use crate::boolean::{Cubes, Program};
use crate::engine::{Method, Work};
use crate::lift::Proof;
use crate::step::Step;
use crate::vocabulary::Vocabulary;
use wattle_evidence::{Certificate, Task};
use wattle_logic::Formula;
use wattle_memory::reference::replay;
use wattle_memory::{Event, MemoryModel, Start};
use wattle_model::Instance;
use wattle_predicates::Cegar;
use wattle_predicates::cegar::abstraction::Halt;
use wattle_predicates::reduce::System;

impl Work<'_> {
    /// A proof under SC, or a run.
    #[expect(clippy::type_complexity)]
    pub fn prove_sc(
        &mut self,
        sc: &Task<'_>,
    ) -> Result<Result<(Proof, Certificate), (Start, Vec<Event>)>, Halt> {
        let system = || System::new(sc.instance, MemoryModel::Sc, sc.question(), 1);
        let hints = sc.instance.predicates.iter();
        let mut predicates: Vec<Formula> = hints.filter_map(|h| system().hint(h)).collect();
        let mut asked = false;
        for _ in 0..=self.engine.most_rounds {
            let paths = match self.prove_with(sc, &predicates)? {
                Step::Proved(program, certificate) => {
                    return Ok(Ok((program.proof(), certificate)));
                }
                Step::Run(start, events) => return Ok(Err((start, events))),
                Step::Short(_) | Step::Overflow | Step::Coarse(..) => {
                    return Err(Halt::Other("SC has no buffers".into()));
                }
                Step::Spurious(paths) => paths,
            };
            if !asked {
                asked = true;
                self.given = false;
                let found = Cegar::default().predicates(sc, self.control);
                let before = predicates.len();
                for f in found.into_iter().flatten() {
                    if !predicates.contains(&f) {
                        predicates.push(f);
                    }
                }
                if predicates.len() > before {
                    continue;
                }
            }
            if !add_new(&mut predicates, &paths) {
                break;
            }
        }
        Err(Halt::Other(
            "no predicates were found that prove the program under SC".into(),
        ))
    }

    /// The proof with as few predicates as one pass of leaving each out gives: every predicate comes
    /// once per buffered position later.
    pub fn minimal(&mut self, sc: &Task<'_>, mut proof: Proof) -> Result<Proof, Halt> {
        let stages = self.stages.len();
        let mut n = proof.predicates.len();
        while n > 0 {
            n -= 1;
            let mut fewer = proof.predicates.clone();
            fewer.remove(n);
            if let Some(program) = self.proved(sc, &fewer, proof.size)? {
                proof = program.proof();
            }
        }
        self.stages.truncate(stages);
        Ok(proof)
    }

    /// Checks the program under SC with these predicates and cubes as small as will do.
    pub fn prove_with<'i>(
        &mut self,
        sc: &Task<'i>,
        predicates: &[Formula],
    ) -> Result<Step<'i>, Halt> {
        let mut paths = Vec::new();
        for size in 1..=self.engine.cube_size {
            match self.check_sc(sc, predicates, size)? {
                Step::Spurious(found) => paths = found,
                step @ (Step::Proved(..)
                | Step::Run(..)
                | Step::Short(_)
                | Step::Overflow
                | Step::Coarse(..)) => return Ok(step),
            }
            if predicates.len() <= size {
                break;
            }
        }
        Ok(Step::Spurious(paths))
    }

    /// The boolean program over these predicates under SC, if it proves the program.
    pub fn proved<'i>(
        &mut self,
        sc: &Task<'i>,
        predicates: &[Formula],
        size: usize,
    ) -> Result<Option<Box<Program<'i>>>, Halt> {
        Ok(match self.check_sc(sc, predicates, size)? {
            Step::Proved(program, _) => Some(program),
            Step::Run(..)
            | Step::Spurious(_)
            | Step::Short(_)
            | Step::Overflow
            | Step::Coarse(..) => None,
        })
    }

    fn check_sc<'i>(
        &mut self,
        sc: &Task<'i>,
        predicates: &[Formula],
        size: usize,
    ) -> Result<Step<'i>, Halt> {
        let system = System::new(sc.instance, MemoryModel::Sc, sc.question(), 1);
        let (graphs, buffers) = Program::parts(&system, self.control)?;
        let mut vocabulary = Vocabulary::default();
        vocabulary.extend(predicates);
        let parts = (graphs, buffers, vocabulary, Cubes::UpTo(size));
        self.step(sc, system, (Method::None, 1), parts)
    }
}

/// Adds the atoms of the first sequence of formulas that has a new one.
pub(crate) fn add_new(predicates: &mut Vec<Formula>, paths: &[Vec<Formula>]) -> bool {
    let mut known = Vocabulary::default();
    known.extend(predicates.iter());
    for sequence in paths {
        let before = known.len();
        known.extend(sequence);
        if known.len() > before {
            let new = known.all[before..].iter().map(|p| p.formula.clone());
            predicates.extend(new);
            return true;
        }
    }
    false
}

/// A run under SC as one under the model: every store drains at once.
pub(crate) fn relaxed(
    instance: &Instance,
    model: MemoryModel,
    start: &Start,
    events: Vec<Event>,
) -> Vec<Event> {
    if model == MemoryModel::Sc {
        return events;
    }
    let mut run: Vec<Event> = Vec::new();
    for event in events {
        run.push(event);
        let Ok((states, None)) = replay(instance, model, start, &run) else {
            continue;
        };
        let thread = event.thread();
        let pending = states.last().map(|s| s.buffers[thread.index()].clone());
        for (cell, value) in pending.into_iter().flatten() {
            run.push(Event::Drain {
                thread,
                cell,
                value,
                keep: false,
            });
        }
    }
    run
}
