//! The engine `extrapolate` (dan-2013, Fig. 2 (b)).
//!
//! 1. *Verify under SC.* The predicates given with the program, or those the interpolants of `cegar`
//!    find under SC, must prove the program by predicate abstraction with all cubes up to a size.
//! 2. *Reduce* to a program that runs under SC, with buffers of at most k entries.
//! 3. *Extrapolate* the predicates, and for cube extrapolation the cubes of the SC proof.
//! 4. *Build* the boolean program, 5. *check* it.
//!
//! Deviations. An abstract path to something bad is unrolled: it may be a run, which is replayed. If it
//! is not, the engine tries what is more precise (splitting more, predicates over several threads'
//! buffers, all cubes up to a size) and then takes predicates from interpolants of that path. The
//! removal of cubes over buffered values (§6.3) drops whole cubes: dropping only their buffered
//! literals, as the text could be read, would be unsound. It is tried first, because it is cheap.
//! Buffers that a few entries do not suffice for are blurred (abdulla-2012 §4–5, as in `cegar`): what
//! is proved then is proved for buffers of any length.

use crate::boolean::{Built, Program};
use crate::check::Checked;
use crate::known::Memory;
use crate::lift::Mix;
use crate::relaxed::Way;
use crate::sc::relaxed;
use crate::step::{Parts, Step};
use wattle_evidence::{Answer, Control, Engine, Progress, Reason, Refusal, Task};
use wattle_memory::MemoryModel;
use wattle_predicates::cegar::abstraction::Halt;
use wattle_predicates::cegar::reached;
use wattle_predicates::reduce::System;

/// What is extrapolated from the proof under SC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Nothing: the predicates of SC as they are (the paper's "traditional").
    None,
    /// Predicates (PE).
    Predicates,
    /// Predicates and cubes (CE).
    #[default]
    Cubes,
}

#[derive(Clone, Copy, Debug)]
pub struct Extrapolate {
    pub method: Method,
    /// Cubes have at most so many literals where all are tried.
    pub cube_size: usize,
    /// Buffers without a static bound are followed up to this many entries.
    pub most_entries: usize,
    /// Abstract paths that are no runs may give new predicates so often.
    pub most_rounds: usize,
    /// Whether other methods are tried when the one asked for fails.
    pub fall_back: bool,
}

impl Default for Extrapolate {
    fn default() -> Self {
        Extrapolate {
            method: Method::Cubes,
            cube_size: 4,
            most_entries: 4,
            most_rounds: 60,
            fall_back: true,
        }
    }
}

/// One boolean program, built and checked.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    pub model: MemoryModel,
    pub method: Method,
    pub k: usize,
    pub built: Built,
    /// Solver calls for boolean programs since the task began, this one's among them.
    pub calls: u64,
    pub checked: Checked,
    pub proved: bool,
}

impl Engine for Extrapolate {
    fn name(&self) -> &'static str {
        "extrapolate"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        System::accepts(task)
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        self.explain(task, control).0
    }
}

/// The work on one task.
pub(crate) struct Work<'w> {
    pub engine: &'w Extrapolate,
    pub task: &'w Task<'w>,
    pub control: &'w Control<'w>,
    pub stages: Vec<Stage>,
    pub effort: Progress,
    pub memory: Memory,
    /// The predicates given with the program prove it under SC.
    pub given: bool,
    /// Whether the boolean program that proves the task is wanted as text, and that text.
    pub wants_text: bool,
    pub text: Option<String>,
}

impl Extrapolate {
    /// The answer, and what every boolean program on the way took.
    pub fn explain(&self, task: &Task<'_>, control: &Control<'_>) -> (Answer, Vec<Stage>) {
        let mut work = Work::new(self, task, control);
        if let Err(refusal) = self.accepts(task) {
            return (work.undecided(Reason::Refused(refusal)), Vec::new());
        }
        let answer = match work.run() {
            Ok(answer) => answer,
            Err(Halt::Stopped(stop)) => {
                let stage = match work.stages.last() {
                    Some(s) => format!("extrapolate ({}, k = {})", s.model, s.k),
                    None => "extrapolate".into(),
                };
                work.undecided(Reason::Stopped { stop, stage })
            }
            Err(Halt::Unknown(why)) => work.undecided(Reason::SolverUnknown(why.to_string())),
            Err(Halt::Other(why)) => work.undecided(Reason::Other(why)),
        };
        (answer, work.stages)
    }

    /// The boolean program with which the task is proved, as text: with the predicates and the buffers that
    /// this takes.
    pub fn proving_program(
        &self,
        task: &Task<'_>,
        control: &Control<'_>,
    ) -> Result<String, Reason> {
        self.accepts(task).map_err(Reason::Refused)?;
        let mut work = Work::new(self, task, control);
        if task.model == MemoryModel::Sc {
            return work.text(1).map_err(reason);
        }
        work.wants_text = true;
        work.run().map_err(reason)?;
        let none = || Reason::Other("there is no boolean program that proves it".into());
        work.text.ok_or_else(none)
    }

    /// The boolean program of the task as text, with buffers of at most `k` entries.
    pub fn boolean_program(
        &self,
        task: &Task<'_>,
        k: usize,
        control: &Control<'_>,
    ) -> Result<String, Reason> {
        self.accepts(task).map_err(Reason::Refused)?;
        let mut work = Work::new(self, task, control);
        work.text(k).map_err(reason)
    }
}

/// What the paper's method alone comes to.
#[derive(Clone, Debug)]
pub struct Pure {
    /// The proof under SC.
    pub sc: Stage,
    /// The one boolean program of the relaxed program.
    pub relaxed: Stage,
    pub outcome: PureOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PureOutcome {
    Proved,
    /// A path that is no run, or one to a full buffer that is none: the predicates do not do.
    Imprecise,
    /// A run needs longer buffers.
    Overflow,
    Violated,
}

impl Extrapolate {
    /// dan-2013 to the letter: the predicates given with the program prove it under SC (where there are
    /// none, those that are found and as few of them as will do); they are extrapolated once, with
    /// buffers of at most `k` entries, and the boolean program is checked. Nothing is refined.
    pub fn pure(&self, task: &Task<'_>, k: usize, control: &Control<'_>) -> Result<Pure, Reason> {
        self.accepts(task).map_err(Reason::Refused)?;
        let mut work = Work::new(self, task, control);
        work.pure(k).map_err(reason)
    }
}

fn reason(halt: Halt) -> Reason {
    match halt {
        Halt::Stopped(stop) => Reason::stopped(stop, "extrapolate"),
        Halt::Unknown(why) => Reason::SolverUnknown(why.to_string()),
        Halt::Other(why) => Reason::Other(why),
    }
}

impl<'w> Work<'w> {
    fn new(engine: &'w Extrapolate, task: &'w Task<'w>, control: &'w Control<'w>) -> Self {
        Work {
            engine,
            task,
            control,
            stages: Vec::new(),
            effort: Progress::default(),
            memory: Memory::default(),
            given: true,
            wants_text: false,
            text: None,
        }
    }

    fn text(&mut self, k: usize) -> Result<String, Halt> {
        let (system, (graphs, buffers, vocabulary, cubes)) = self.once(k)?;
        let asking = (&self.memory, self.control);
        let mut program = Program::new(system, graphs, buffers, vocabulary, cubes, asking)?;
        crate::print::program(&mut program, self.task.question(), self.control)
    }

    fn pure(&mut self, k: usize) -> Result<Pure, Halt> {
        let (system, parts) = self.once(k)?;
        let none = || Halt::Other("no boolean program was checked".into());
        let sc = *self.stages.last().ok_or_else(none)?;
        let method = self.engine.method;
        let outcome = match self.step(self.task, system, (method, k), parts)? {
            Step::Proved(..) => PureOutcome::Proved,
            Step::Run(..) => PureOutcome::Violated,
            Step::Overflow => PureOutcome::Overflow,
            Step::Spurious(_) | Step::Short(_) | Step::Coarse(..) => PureOutcome::Imprecise,
        };
        let relaxed = *self.stages.last().ok_or_else(none)?;
        Ok(Pure {
            sc,
            relaxed,
            outcome,
        })
    }

    /// What the boolean program is made of, by the proof under SC and one extrapolation.
    fn once(&mut self, k: usize) -> Result<(System<'w>, Parts), Halt> {
        let task = self.task;
        let sc = Task {
            model: MemoryModel::Sc,
            ..*task
        };
        let Ok((proof, _)) = self.prove_sc(&sc)? else {
            let why = "the program is violated under SC: there is no proof to abstract it by";
            return Err(Halt::Other(why.into()));
        };
        let proof = match self.given {
            true => proof,
            false => {
                let proof = self.minimal(&sc, proof)?;
                // The last stage is about the proof that is extrapolated.
                self.proved(&sc, &proof.predicates, proof.size)?;
                proof
            }
        };
        let system = System::new(task.instance, task.model, task.question(), k).at_most(k);
        let (graphs, buffers) = Program::parts(&system, self.control)?;
        let method = match task.model {
            MemoryModel::Sc => Method::None,
            MemoryModel::Tso | MemoryModel::Pso => self.engine.method,
        };
        let plan = Way {
            method,
            mix: Mix::OneThread,
            without_buffered: false,
            size: proof.size,
        };
        let (vocabulary, cubes) = plan.vocabulary(&system, &buffers, &proof, &[]);
        Ok((system, (graphs, buffers, vocabulary, cubes)))
    }

    fn undecided(&self, reason: Reason) -> Answer {
        let effort = self.effort;
        Answer::Undecided { reason, effort }
    }

    fn run(&mut self) -> Result<Answer, Halt> {
        let sc = Task {
            model: MemoryModel::Sc,
            ..*self.task
        };
        let (proof, certificate) = match self.prove_sc(&sc)? {
            Ok(proved) => proved,
            Err((start, events)) => {
                let events = relaxed(self.task.instance, self.task.model, &start, events);
                return Ok(reached(self.task, start, events, self.effort));
            }
        };
        if self.task.model == MemoryModel::Sc {
            let effort = self.effort;
            return Ok(Answer::Unreachable {
                certificate,
                effort,
            });
        }
        // What a person gave stays as it is.
        let mut proof = match self.given {
            true => proof,
            false => self.minimal(&sc, proof)?,
        };
        self.relaxed(&sc, &mut proof)
    }
}
