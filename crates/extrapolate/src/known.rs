//! What was found out before, whichever boolean program of a task asked.
//!
//! Programs of one task ask much the same: with a predicate less, with cubes one literal larger, with
//! longer buffers. Three things are kept from one to the next. The solver's answers, up to the names
//! of variables. Models, which refute most implications. And *findings*: all smallest cubes over some
//! predicates that imply a goal. Over fewer predicates the smallest cubes are those of them that are
//! left, so nothing is searched again; over more predicates they are still smallest cubes, and only
//! others are searched.

use crate::cube::{Bits, Cube};
use crate::search::Question;
use crate::vocabulary::Vocabulary;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use wattle_evidence::Control;
use wattle_logic::{Answer, Formula, Model, Session, Solver, Var};

/// Models worth keeping; beyond that the oldest are forgotten.
const MOST_MODELS: usize = 2048;

/// Searches worth keeping; beyond that all are forgotten.
const MOST_FINDINGS: usize = 1 << 16;

/// What the solver has said so far, and what came of it.
#[derive(Clone)]
pub struct Memory(Rc<RefCell<Known>>);

impl Default for Memory {
    fn default() -> Self {
        Memory(Rc::new(RefCell::new(Known {
            session: Session::new().up_to_names(),
            ..Known::default()
        })))
    }
}

#[derive(Default)]
struct Known {
    session: Session,
    models: Vec<Model>,
    /// By goal and guard.
    findings: FxHashMap<(Formula, Vec<Formula>), Vec<Finding>>,
    count: usize,
    /// Predicates, numbered.
    numbers: FxHashMap<Formula, u32>,
}

/// A search that was done.
struct Finding {
    /// What was known of values.
    facts: Vec<Formula>,
    /// All cubes of at most this size were decided; without it only some were.
    size: Option<usize>,
    /// All cubes over these predicates, ascending by their numbers.
    candidates: Vec<u32>,
    cubes: Vec<Vec<Formula>>,
}

/// What earlier searches say of a question.
#[derive(Default)]
pub struct Recalled {
    /// Cubes over the candidates that imply the goal, none with another one in it.
    pub cubes: Vec<Cube>,
    /// There are no others of the size.
    pub complete: bool,
}

impl Memory {
    /// How often the solver was asked.
    pub fn calls(&self) -> u64 {
        self.0.borrow().session.counters.solver_calls
    }

    /// The models seen so far.
    pub fn models(&self) -> Vec<Model> {
        self.0.borrow().models.clone()
    }

    /// The solver's answer or the one it gave before; how often the solver was asked for it, and the work
    /// that this took.
    pub fn ask(&self, query: &[Formula], control: &Control<'_>) -> (Answer, u64, u64) {
        let known = &mut *self.0.borrow_mut();
        let before = known.session.counters.solver_calls;
        let spent = known.session.solver().spent();
        let goes_on = || control.stop().is_none();
        let answer = known.session.check_while(query, &goes_on);
        if let Answer::Sat(model) = &answer {
            keep(&mut known.models, model.clone());
        }
        let calls = known.session.counters.solver_calls - before;
        let work = known.session.solver().spent() - spent;
        (answer, calls, work)
    }

    /// What is known of the question. Without a size, cubes that are not smallest will do too.
    pub fn recall(
        &self,
        vocabulary: &Vocabulary,
        question: &Question<'_>,
        candidates: Bits,
        size: Option<usize>,
    ) -> Recalled {
        let mut recalled = Recalled::default();
        let known = self.0.borrow();
        let Some(findings) = known.findings.get(&question.key()) else {
            return recalled;
        };
        let mut vars = question.vars();
        let all: Vec<_> = candidates.iter().map(|p| &vocabulary.all[p]).collect();
        all.iter().for_each(|p| vars.extend(&p.vars));
        for finding in findings {
            if !finding.knows(question.facts, &vars) {
                continue;
            }
            let enough = match (size, finding.size) {
                (Some(_), None) => continue,
                (Some(wanted), Some(done)) => done >= wanted,
                (None, _) => false,
            };
            for cube in &finding.cubes {
                let literals = cube.iter().map(|f| vocabulary.find(f));
                let Some(cube) = literals.collect::<Option<Cube>>() else {
                    continue;
                };
                let fits = cube.known.without(candidates).is_empty()
                    && size.is_none_or(|most| cube.len() <= most);
                if fits && !recalled.cubes.iter().any(|c| cube.has_all(c)) {
                    recalled.cubes.retain(|c| !c.has_all(&cube));
                    recalled.cubes.push(cube);
                }
            }
            let numbers = &known.numbers;
            let mut all = all.iter().map(|p| numbers.get(&p.formula));
            let among = |n: Option<&u32>| n.is_some_and(|n| finding.has(*n));
            if enough && all.all(among) {
                recalled.complete = true;
                break;
            }
        }
        recalled
    }

    /// Keeps the result of a search among all cubes of the size, or among some.
    pub fn learn(
        &self,
        vocabulary: &Vocabulary,
        question: &Question<'_>,
        candidates: Bits,
        size: Option<usize>,
        cubes: &[Cube],
    ) {
        if size.is_none() && cubes.is_empty() {
            return;
        }
        let known = &mut *self.0.borrow_mut();
        if known.count == MOST_FINDINGS {
            known.findings.clear();
            known.count = 0;
        }
        known.count += 1;
        let mut numbers: Vec<u32> = Vec::new();
        for p in candidates.iter().filter(|_| size.is_some()) {
            let next = known.numbers.len() as u32;
            let formula = vocabulary.all[p].formula.clone();
            numbers.push(*known.numbers.entry(formula).or_insert(next));
        }
        numbers.sort_unstable();
        let finding = Finding {
            facts: question.facts.to_vec(),
            size,
            candidates: numbers,
            cubes: cubes.iter().map(|c| vocabulary.formulas(c)).collect(),
        };
        let same = known.findings.entry(question.key()).or_default();
        same.push(finding);
    }
}

impl Finding {
    fn has(&self, candidate: u32) -> bool {
        self.candidates.binary_search(&candidate).is_ok()
    }

    /// Of these variables the same was known.
    fn knows(&self, facts: &[Formula], vars: &BTreeSet<Var>) -> bool {
        let mine = self.facts.iter();
        let mut mine = mine.filter(|f| f.vars().iter().any(|v| vars.contains(v)));
        facts.iter().all(|f| self.facts.contains(f)) && mine.all(|f| facts.contains(f))
    }
}

/// Adds a model; of too many the older half is forgotten.
pub fn keep<M>(models: &mut Vec<M>, model: M) {
    if models.len() == MOST_MODELS {
        models.drain(..MOST_MODELS / 2);
    }
    models.push(model);
}
