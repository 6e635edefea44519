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

use crate::boolean::{Built, Cubes, Program};
use crate::certify::certificate;
use crate::check::{Checked, Checker, Outcome, Splitting};
use crate::cube::Cube;
use crate::known::Memory;
use crate::lift::{self, Mix, Proof};
use crate::sites::Graph;
use crate::vocabulary::Vocabulary;
use wattle_evidence::{
    Answer, Certificate, Control, Engine, Limits, Progress, Reason, Refusal, Task,
};
use wattle_logic::Formula;
use wattle_memory::reference::replay;
use wattle_memory::{Event, MemoryModel, Start};
use wattle_model::Instance;
use wattle_predicates::Cegar;
use wattle_predicates::cegar::abstraction::Halt;
use wattle_predicates::cegar::reached;
use wattle_predicates::cegar::refine::{Refined, refine};
use wattle_predicates::reduce::{Symbol, System};

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

/// How a check of one boolean program ended.
enum Step<'i> {
    Proved(Box<Program<'i>>, Certificate),
    Run(Start, Vec<Event>),
    /// A path that is no run, and formulas that exclude it.
    Spurious(Vec<Vec<Formula>>),
    Overflow,
}

/// What a boolean program is made of.
type Parts = (Vec<Graph>, lift::Buffers, Vocabulary, Cubes);

/// The work on one task.
struct Work<'w> {
    engine: &'w Extrapolate,
    task: &'w Task<'w>,
    control: &'w Control<'w>,
    stages: Vec<Stage>,
    effort: Progress,
    memory: Memory,
    /// The predicates given with the program prove it under SC.
    given: bool,
}

impl Extrapolate {
    /// The answer, and what every boolean program on the way took.
    pub fn explain(&self, task: &Task<'_>, control: &Control<'_>) -> (Answer, Vec<Stage>) {
        let mut work = Work {
            engine: self,
            task,
            control,
            stages: Vec::new(),
            effort: Progress::default(),
            memory: Memory::default(),
            given: true,
        };
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
}

impl Extrapolate {
    /// The boolean program of the task as text, with buffers of at most `k` entries.
    pub fn boolean_program(
        &self,
        task: &Task<'_>,
        k: usize,
        control: &Control<'_>,
    ) -> Result<String, Refusal> {
        self.accepts(task)?;
        let mut work = Work {
            engine: self,
            task,
            control,
            stages: Vec::new(),
            effort: Progress::default(),
            memory: Memory::default(),
            given: true,
        };
        work.text(k).map_err(|halt| {
            Refusal::new(match halt {
                Halt::Stopped(stop) => stop.to_string(),
                Halt::Unknown(why) => why.to_string(),
                Halt::Other(why) => why,
            })
        })
    }
}

impl<'w> Work<'w> {
    fn text(&mut self, k: usize) -> Result<String, Halt> {
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
            false => self.minimal(&sc, proof)?,
        };
        let system = System::new(task.instance, task.model, task.question(), k);
        let (graphs, buffers) = Program::parts(&system, self.control)?;
        let method = match task.model {
            MemoryModel::Sc => Method::None,
            _ => self.engine.method,
        };
        let plan = Plan {
            method,
            mix: Mix::OneThread,
            without_buffered: false,
            size: proof.size,
        };
        let (vocabulary, cubes) = plan.vocabulary(&system, &buffers, &proof, &[]);
        let asking = (&self.memory, self.control);
        let mut program = Program::new(system, graphs, buffers, vocabulary, cubes, asking)?;
        crate::print::program(&mut program, task.question(), self.control)
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
        for k in 1..=self.engine.most_entries {
            if let Some(answer) = self.at(k, &sc, &mut proof)? {
                return Ok(answer);
            }
        }
        let limits = Limits {
            buffered_stores: self.engine.most_entries as u32,
            cause: "a loop can store without a fence".into(),
        };
        let effort = self.effort;
        Ok(Answer::Bounded { limits, effort })
    }

    /// A proof under SC, or a run.
    #[expect(clippy::type_complexity)]
    fn prove_sc(
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
                Step::Overflow => return Err(Halt::Other("SC has no buffers".into())),
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
    fn minimal(&mut self, sc: &Task<'_>, mut proof: Proof) -> Result<Proof, Halt> {
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
    fn prove_with<'i>(&mut self, sc: &Task<'i>, predicates: &[Formula]) -> Result<Step<'i>, Halt> {
        let mut paths = Vec::new();
        for size in 1..=self.engine.cube_size {
            match self.check_sc(sc, predicates, size)? {
                Step::Spurious(found) => paths = found,
                step => return Ok(step),
            }
            if predicates.len() <= size {
                break;
            }
        }
        Ok(Step::Spurious(paths))
    }

    /// The boolean program over these predicates under SC, if it proves the program.
    fn proved<'i>(
        &mut self,
        sc: &Task<'i>,
        predicates: &[Formula],
        size: usize,
    ) -> Result<Option<Box<Program<'i>>>, Halt> {
        Ok(match self.check_sc(sc, predicates, size)? {
            Step::Proved(program, _) => Some(program),
            _ => None,
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

    /// The relaxed program with at most `k` entries where there is no static bound; `None` if a
    /// buffer can be too short. The proof under SC may come out stronger.
    fn at(&mut self, k: usize, sc: &Task<'_>, proof: &mut Proof) -> Result<Option<Answer>, Halt> {
        let task = self.task;
        let system = || System::new(task.instance, task.model, task.question(), k);
        let mut extra: Vec<Formula> = Vec::new();
        let mut plans = self.plans(proof.size);
        for _ in 0..=self.engine.most_rounds {
            let mut paths = Vec::new();
            let mut tried: Vec<(usize, Cubes)> = Vec::new();
            for plan in plans {
                let (graphs, buffers) = Program::parts(&system(), self.control)?;
                let (vocabulary, cubes) = plan.vocabulary(&system(), &buffers, proof, &extra);
                let same = (vocabulary.len(), cubes.clone());
                if tried.contains(&same) {
                    continue;
                }
                tried.push(same);
                let parts = (graphs, buffers, vocabulary, cubes);
                match self.step(task, system(), (plan.method, k), parts)? {
                    Step::Proved(_, certificate) => {
                        let effort = self.effort;
                        return Ok(Some(Answer::Unreachable {
                            certificate,
                            effort,
                        }));
                    }
                    Step::Run(start, events) => {
                        return Ok(Some(reached(task, start, events, self.effort)));
                    }
                    Step::Overflow => return Ok(None),
                    Step::Spurious(found) => paths = found,
                }
            }
            let before = extra.len();
            if self.engine.method == Method::None || !add_new(&mut extra, &paths) {
                break;
            }
            self.strengthen(sc, &system(), proof, &extra[before..])?;
            let plan = |method| Plan {
                method,
                mix: Mix::AllThreads,
                without_buffered: false,
                size: proof.size.max(2),
            };
            plans = match (self.engine.method, self.engine.fall_back) {
                (Method::Cubes, true) => vec![plan(Method::Cubes), plan(Method::Predicates)],
                (method, _) => vec![plan(method)],
            };
        }
        Err(Halt::Other(
            "the extrapolated predicates do not prove the program".into(),
        ))
    }

    /// What a relaxed path needs, said of memory, may make the proof under SC say more (dan-2013
    /// §6.3 did that by hand for the queue).
    fn strengthen(
        &mut self,
        sc: &Task<'_>,
        system: &System<'_>,
        proof: &mut Proof,
        new: &[Formula],
    ) -> Result<(), Halt> {
        let (_, buffers) = Program::parts(system, self.control)?;
        let mut predicates = proof.predicates.clone();
        for f in new.iter().flat_map(|f| lift::lowered(system, &buffers, f)) {
            if f.as_atom().is_some() && !predicates.contains(&f) {
                predicates.push(f);
            }
        }
        if let Step::Proved(program, _) = self.prove_with(sc, &predicates)? {
            *proof = program.proof();
        }
        Ok(())
    }

    /// What to try, in this order.
    fn plans(&self, size: usize) -> Vec<Plan> {
        let plan = |method, mix, without_buffered| Plan {
            method,
            mix,
            without_buffered,
            size,
        };
        let (one, all) = (Mix::OneThread, Mix::AllThreads);
        let mut plans = Vec::new();
        if self.engine.method == Method::None {
            plans.extend((size..=self.engine.cube_size).map(|size| Plan {
                size,
                ..plan(Method::None, one, false)
            }));
        }
        if self.engine.method == Method::Cubes {
            plans.push(plan(Method::Cubes, one, true));
            plans.push(plan(Method::Cubes, one, false));
            plans.push(plan(Method::Cubes, all, false));
        }
        if self.engine.method == Method::Predicates || self.engine.fall_back {
            plans.push(plan(Method::Predicates, one, false));
        }
        plans
    }

    /// Builds one boolean program and checks it, splitting more while that may help.
    fn step<'i>(
        &mut self,
        task: &Task<'i>,
        system: System<'i>,
        (method, k): (Method, usize),
        (graphs, buffers, vocabulary, cubes): Parts,
    ) -> Result<Step<'i>, Halt> {
        let asking = (&self.memory, self.control);
        let mut program = Program::new(system, graphs, buffers, vocabulary, cubes, asking)?;
        let mut last = Vec::new();
        for splitting in [
            Splitting::Assumptions,
            Splitting::Copies,
            Splitting::Everything,
        ] {
            let mut checker = Checker::new(&mut program, splitting);
            let result = checker.run(task, self.control);
            let effort = checker.effort();
            self.effort.states += effort.states;
            self.effort.memory = self.effort.memory.max(effort.memory);
            let (outcome, checked) = result?;
            let proved = matches!(outcome, Outcome::Closed);
            let reached = checker.reached();
            self.stages.push(Stage {
                model: task.model,
                method,
                k,
                built: program.built(),
                calls: self.memory.calls(),
                checked,
                proved,
            });
            match outcome {
                Outcome::Closed => {
                    let Some(written) = certificate(&program, &reached) else {
                        let why = "a predicate's numbers are too large to write down";
                        return Err(Halt::Other(why.into()));
                    };
                    return Ok(Step::Proved(
                        Box::new(program),
                        Certificate::Inductive(written),
                    ));
                }
                Outcome::Overflow => return Ok(Step::Overflow),
                Outcome::Bad {
                    moves,
                    last: bad,
                    step,
                } => {
                    let moves: Vec<_> = moves.iter().collect();
                    let (_, initial) = program.system.initial();
                    match refine(
                        &program.system,
                        &initial,
                        &moves,
                        &bad,
                        step.as_ref(),
                        self.control,
                    )? {
                        Refined::Run(start, events) => return Ok(Step::Run(start, events)),
                        Refined::Excluded(formulas) => last = formulas,
                    }
                }
            }
        }
        Ok(Step::Spurious(last))
    }
}

/// One way to extrapolate.
#[derive(Clone, Copy, Debug)]
struct Plan {
    method: Method,
    mix: Mix,
    /// Leave out cubes over buffered values (§6.3).
    without_buffered: bool,
    /// The size of cubes where all are tried.
    size: usize,
}

impl Plan {
    fn vocabulary(
        &self,
        system: &System<'_>,
        buffers: &lift::Buffers,
        proof: &Proof,
        extra: &[Formula],
    ) -> (Vocabulary, Cubes) {
        let mut vocabulary = match self.method {
            Method::None => Vocabulary::default(),
            _ => lift::predicates(system, buffers, &proof.predicates, self.mix),
        };
        vocabulary.extend(proof.predicates.iter().chain(extra));
        let cubes = match self.method {
            Method::Cubes => {
                let mut cubes = lift::cubes(system, buffers, &vocabulary, &proof.cubes, self.mix);
                if self.without_buffered {
                    cubes.retain(|c| !buffered(system, &vocabulary, c));
                }
                Cubes::Given(cubes)
            }
            _ => Cubes::UpTo(self.size),
        };
        (vocabulary, cubes)
    }
}

fn buffered(system: &System<'_>, vocabulary: &Vocabulary, cube: &Cube) -> bool {
    let mut vars = cube.known.iter().flat_map(|p| &vocabulary.all[p].vars);
    vars.any(|v| matches!(system.symbol(*v), Symbol::Entry(..)))
}

/// Adds the atoms of the first sequence of formulas that has a new one.
fn add_new(predicates: &mut Vec<Formula>, paths: &[Vec<Formula>]) -> bool {
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
fn relaxed(
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
