//! One boolean program: built, checked, and what became of it.

use crate::boolean::{Cubes, Program};
use crate::certify::certificate;
use crate::check::{Checker, Outcome, Path, Splitting};
use crate::engine::{Method, Stage, Work};
use crate::lift;
use crate::sites::Graph;
use crate::vocabulary::Vocabulary;
use wattle_evidence::{Certificate, Task};
use wattle_logic::Formula;
use wattle_memory::{Event, Start};
use wattle_model::{CellId, ThreadId};
use wattle_predicates::cegar::abstraction::Halt;
use wattle_predicates::cegar::coarse::{Finding, look};
use wattle_predicates::cegar::refine::{Refined, refine};
use wattle_predicates::reduce::{Move, System};

/// How a check of one boolean program ended.
pub(crate) enum Step<'i> {
    Proved(Box<Program<'i>>, Certificate),
    Run(Start, Vec<Event>),
    /// A path that is no run, and formulas that exclude it.
    Spurious(Vec<Vec<Formula>>),
    /// A path to a store into a full buffer that is no run, and formulas that exclude it.
    Short(Vec<Vec<Formula>>),
    /// A run needs a longer buffer.
    Overflow,
    /// A path that only blurred buffers allow: classes to split, threads to keep more stores of.
    Coarse(Vec<(CellId, i64)>, Vec<ThreadId>),
}

/// What a boolean program is made of.
pub(crate) type Parts = (Vec<Graph>, lift::Buffers, Vocabulary, Cubes);

impl Work<'_> {
    /// Builds one boolean program and checks it, splitting more while that may help.
    pub fn step<'i>(
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
            let full = matches!(outcome, Outcome::Overflow(_));
            let path = match outcome {
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
                Outcome::Bad(path) | Outcome::Overflow(path) => path,
            };
            match self.look(task, &program.system, &path)? {
                Finding::Refined(Refined::Run(start, events)) => {
                    return Ok(match full {
                        true => Step::Overflow,
                        false => Step::Run(start, events),
                    });
                }
                // Nothing bad: predicates will do sooner than splitting all there is.
                Finding::Refined(Refined::Excluded(formulas)) if full => {
                    return Ok(Step::Short(formulas));
                }
                Finding::Refined(Refined::Excluded(formulas)) => last = formulas,
                Finding::Coarse { cuts, threads } => return Ok(Step::Coarse(cuts, threads)),
            }
        }
        Ok(Step::Spurious(last))
    }

    /// What to make of a path.
    fn look(&self, task: &Task<'_>, system: &System<'_>, path: &Path) -> Result<Finding, Halt> {
        let control = self.control;
        let moves: Vec<&Move> = path.moves.iter().collect();
        let (moves, bad, step) = (&moves, &path.last, path.step.as_ref());
        if system.blur.is_none() {
            let (_, initial) = system.initial();
            let refined = refine(system, &initial, moves, bad, step, control)?;
            return Ok(Finding::Refined(refined));
        }
        let exact = System::new(task.instance, task.model, task.question(), 1).unbounded(None);
        look(system, &exact, moves, bad, step, control)
    }
}
