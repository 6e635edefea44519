//! Which cubes imply a formula (dan-2013 Figs. 6 and 7).
//!
//! Fig. 6 (a) tries every cube by size. A cube implies φ if and only if it contradicts every model of
//! ¬φ, so instead of trying them the search branches on the models it has: a cube must disagree with
//! each of them somewhere. Only a cube that disagrees with all known models is asked of the solver;
//! the answer is a cube of the result, or one more model. The result is the same, and every cube up
//! to the bound is decided. Models are kept for all later questions, and so is what was found, from one
//! boolean program of a task to the next ([`Memory`]).
//!
//! Fig. 6 (b) tries a given list of cubes instead: the extrapolated ones.

use crate::cube::{Bits, Cube};
use crate::known::{Memory, keep};
use crate::vocabulary::Vocabulary;
use std::collections::BTreeSet;
use wattle_evidence::{Control, Progress, Stop};
use wattle_logic::{Answer, Formula, Model, Var, not};

/// What the table of the paper counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Implications decided, with or without the solver.
    pub implications: u64,
    pub solver_calls: u64,
}

/// A question: do cubes imply `goal` where `guard` holds?
pub struct Question<'q> {
    /// What the types say of the values in it.
    pub facts: &'q [Formula],
    pub guard: &'q [Formula],
    pub goal: &'q Formula,
    /// Cubes that cannot be true; no result contains one.
    pub impossible: &'q [Cube],
}

impl Question<'_> {
    /// What tells questions apart whatever the candidates are.
    pub fn key(&self) -> (Formula, Vec<Formula>) {
        (self.goal.clone(), self.guard.to_vec())
    }

    /// The variables of goal and guard.
    pub fn vars(&self) -> BTreeSet<Var> {
        let mut vars = self.goal.vars();
        self.guard.iter().for_each(|f| f.collect_vars(&mut vars));
        vars
    }
}

/// Work from one poll to the next, of a call of the solver, and how many rows or cubes looked at are one.
const POLL: u64 = 3 << 11;
const CALL: u64 = 64;
const ROWS: u64 = 16;

pub struct Searcher {
    memory: Memory,
    /// With the truth values of the predicates; all questions are about one vocabulary.
    models: Vec<(Model, Bits)>,
    pub counters: Counters,
    /// The solver gave up on a query: not all cubes are decided.
    gave_up: bool,
    /// What was done, and when to poll next; about 70 ns each.
    work: u64,
    poll_at: u64,
}

/// One question being answered.
struct Answering<'s, 'v> {
    searcher: &'s mut Searcher,
    vocabulary: &'v Vocabulary,
    candidates: Bits,
    /// The formulas beside the cube that must not hold together with it.
    rest: Vec<Formula>,
    impossible: &'v [Cube],
    /// Truth values of the predicates in models of the rest.
    rows: Rows,
    found: Vec<Cube>,
    control: &'v Control<'v>,
}

/// Rows of truth values, and for each indexed predicate the rows in which it is true: which rows agree
/// with a cube is asked for every cube.
struct Rows {
    all: Vec<Bits>,
    indexed: Bits,
    columns: Vec<Vec<u64>>,
}

/// Some of the rows.
struct Live(Vec<u64>);

impl Live {
    fn first(&self) -> Option<usize> {
        let at = self.0.iter().position(|w| *w != 0)?;
        Some(at * 64 + self.0[at].trailing_zeros() as usize)
    }

    fn add(&mut self, row: usize) {
        if self.0.len() <= row / 64 {
            self.0.resize(row / 64 + 1, 0);
        }
        self.0[row / 64] |= 1 << (row % 64);
    }
}

impl Rows {
    fn new(all: Vec<Bits>) -> Self {
        Rows {
            all,
            indexed: Bits::default(),
            columns: Vec::new(),
        }
    }

    fn index(&mut self, predicates: Bits) {
        self.indexed = predicates;
        self.columns = vec![Vec::new(); predicates.iter().last().map_or(0, |p| p + 1)];
        for (at, row) in std::mem::take(&mut self.all).into_iter().enumerate() {
            self.enter(at, row);
            self.all.push(row);
        }
    }

    fn push(&mut self, row: Bits) {
        self.enter(self.all.len(), row);
        self.all.push(row);
    }

    fn enter(&mut self, at: usize, row: Bits) {
        let (word, bit) = (at / 64, at % 64);
        for p in self.indexed.iter() {
            let column = &mut self.columns[p];
            if bit == 0 {
                column.push(0);
            }
            column[word] |= u64::from(row.get(p)) << bit;
        }
    }

    fn every(&self) -> Live {
        let mut live = Live(Vec::new());
        (0..self.all.len()).for_each(|r| live.add(r));
        live
    }

    fn only(&self, row: usize) -> Live {
        let mut live = Live(Vec::new());
        live.add(row);
        live
    }

    /// Of the live rows those with that truth value, which agree with the rest of the cube; of the
    /// rows from `seen` on those that agree with the cube.
    fn narrowed(&self, live: &Live, p: usize, value: bool, seen: usize, cube: &Cube) -> Live {
        let flip = if value { 0 } else { u64::MAX };
        let both = live.0.iter().zip(&self.columns[p]);
        let mut rest = Live(both.map(|(l, c)| l & (c ^ flip)).collect());
        let new = (seen..self.all.len()).filter(|r| cube.is_true_in(self.all[*r]));
        new.for_each(|r| rest.add(r));
        rest
    }
}

impl Searcher {
    pub fn new(memory: &Memory, vocabulary: &Vocabulary) -> Self {
        let models = memory.models().into_iter();
        let models = models.map(|m| {
            let row = row(vocabulary, &m);
            (m, row)
        });
        Searcher {
            memory: memory.clone(),
            models: models.collect(),
            counters: Counters::default(),
            gave_up: false,
            work: 0,
            poll_at: POLL,
        }
    }

    /// Whether the solver says that the conditions cannot hold together.
    pub fn refutes(&self, query: &[Formula], control: &Control<'_>) -> bool {
        self.memory.ask(query, control).0.is_unsat()
    }

    fn start<'s, 'v>(
        &'s mut self,
        vocabulary: &'v Vocabulary,
        question: &'v Question<'v>,
        candidates: Bits,
        control: &'v Control<'v>,
    ) -> Answering<'s, 'v> {
        let mut rest = [question.facts, question.guard].concat();
        rest.push(not(question.goal));
        rest.retain(|f| *f != Formula::True);
        let models = self.models.iter();
        let fits = |m: &&(Model, Bits)| rest.iter().rev().all(|f| f.eval(&m.0));
        let rows = Rows::new(models.filter(fits).map(|m| m.1).collect());
        Answering {
            searcher: self,
            vocabulary,
            candidates,
            rest,
            impossible: question.impossible,
            rows,
            found: Vec::new(),
            control,
        }
    }

    /// All smallest cubes of at most `size` candidates that imply the goal.
    pub fn by_size(
        &mut self,
        vocabulary: &Vocabulary,
        question: &Question<'_>,
        candidates: Bits,
        size: usize,
        control: &Control<'_>,
    ) -> Result<Vec<Cube>, Stop> {
        self.counters.implications += cubes_up_to(candidates.len(), size);
        let recalled = (self.memory).recall(vocabulary, question, candidates, Some(size));
        let mut answering = self.start(vocabulary, question, candidates, control);
        answering.seed(recalled.cubes);
        if recalled.complete {
            return Ok(answering.sorted());
        }
        answering.rows.index(candidates);
        for limit in 0..=size.min(candidates.len()) {
            let live = answering.rows.every();
            answering.extend(Cube::default(), live, [Bits::default(); 2], limit)?;
            if answering.found.first().is_some_and(Cube::is_empty) {
                break;
            }
        }
        let found = answering.sorted();
        let size = Some(size).filter(|_| !self.gave_up);
        (self.memory).learn(vocabulary, question, candidates, size, &found);
        Ok(found)
    }

    /// Those of the given cubes that imply the goal, the smaller first.
    pub fn among(
        &mut self,
        vocabulary: &Vocabulary,
        question: &Question<'_>,
        cubes: &[Cube],
        control: &Control<'_>,
    ) -> Result<Vec<Cube>, Stop> {
        self.counters.implications += cubes.len() as u64;
        let all = cubes.iter().map(|c| c.known);
        let candidates = all.fold(Bits::default(), Bits::or);
        let mut recalled = (self.memory).recall(vocabulary, question, candidates, None);
        recalled
            .cubes
            .retain(|f| cubes.iter().any(|c| c.has_all(f)));
        let mut answering = self.start(vocabulary, question, candidates, control);
        answering.seed(recalled.cubes);
        for cube in cubes {
            let rows = &answering.rows.all;
            let (len, refuted) = (rows.len(), rows.iter().any(|r| cube.is_true_in(*r)));
            answering.poll(1 + len as u64 / ROWS)?;
            if refuted || !answering.worthwhile(cube) {
                continue;
            }
            answering.ask(cube)?;
        }
        let found = answering.sorted();
        (self.memory).learn(vocabulary, question, candidates, None, &found);
        Ok(found)
    }
}

impl Answering<'_, '_> {
    /// Starts with cubes that are known to imply the goal.
    fn seed(&mut self, cubes: Vec<Cube>) {
        self.found = cubes;
        let possible = |c: &Cube| !self.impossible.iter().any(|f| c.has_all(f));
        self.found.retain(possible);
    }

    fn sorted(self) -> Vec<Cube> {
        let mut found = self.found;
        found.sort_by_key(|c| (c.len(), *c));
        found
    }

    /// Neither settled by a cube found before nor impossible.
    fn worthwhile(&self, cube: &Cube) -> bool {
        !self.found.iter().any(|f| cube.has_all(f))
            && !self.impossible.iter().any(|f| cube.has_all(f))
    }

    /// Asks the solver; a valid cube is recorded, else there is one more model (unless the solver
    /// gave up, which counts as not valid).
    fn ask(&mut self, cube: &Cube) -> Result<bool, Stop> {
        self.poll(CALL)?;
        let mut query = self.vocabulary.formulas(cube);
        let literals: Vec<(usize, bool)> = cube.literals().collect();
        query.extend(self.rest.iter().cloned());
        let (answer, calls, work) = self.searcher.memory.ask(&query, self.control);
        self.searcher.counters.solver_calls += calls;
        self.poll(work)?;
        match answer {
            Answer::Unsat(refutation) => {
                let core = refutation.core.into_iter();
                let core = core.filter(|i| *i < literals.len()).map(|i| literals[i]);
                let core: Cube = core.collect();
                self.found.retain(|f| !f.has_all(&core));
                self.found.push(core);
                Ok(true)
            }
            Answer::Sat(model) => {
                let row = row(self.vocabulary, &model);
                self.rows.push(row);
                keep(&mut self.searcher.models, (model, row));
                Ok(false)
            }
            Answer::Unknown(_) => match self.control.stop() {
                Some(stop) => Err(stop),
                None => {
                    self.searcher.gave_up = true;
                    Ok(true)
                }
            },
        }
    }

    fn poll(&mut self, work: u64) -> Result<(), Stop> {
        let searcher = &mut *self.searcher;
        searcher.work += work;
        while searcher.work >= searcher.poll_at {
            searcher.poll_at += POLL;
            let progress = Progress {
                states: searcher.poll_at,
                ..Progress::default()
            };
            self.control.poll("extrapolate", progress)?;
        }
        Ok(())
    }

    /// Extends the cube to those that disagree with every row; `live` are the rows it agrees with,
    /// `barred` the literals (false, true) that other branches try. As deep as `limit`.
    fn extend(
        &mut self,
        cube: Cube,
        mut live: Live,
        mut barred: [Bits; 2],
        limit: usize,
    ) -> Result<(), Stop> {
        if !self.worthwhile(&cube) {
            return Ok(());
        }
        let mut seen = self.rows.all.len();
        if live.first().is_none() {
            if self.ask(&cube)? || self.rows.all.len() == seen {
                return Ok(());
            }
            live = self.rows.only(seen);
            seen += 1;
        }
        if cube.len() == limit {
            return Ok(());
        }
        let Some(pivot) = live.first().map(|r| self.rows.all[r]) else {
            return Ok(());
        };
        for p in self.candidates.without(cube.known).iter() {
            let value = !pivot.get(p);
            if barred[usize::from(value)].get(p) {
                continue;
            }
            self.poll(1 + (self.found.len() + self.impossible.len()) as u64 / ROWS)?;
            let next = cube.with(p, value);
            let rest = self.rows.narrowed(&live, p, value, seen, &next);
            self.extend(next, rest, barred, limit)?;
            barred[usize::from(value)].set(p, true);
        }
        Ok(())
    }
}

fn row(vocabulary: &Vocabulary, model: &Model) -> Bits {
    let all = vocabulary.all.iter().enumerate();
    all.filter(|(_, p)| p.formula.eval(model))
        .map(|(i, _)| i)
        .collect()
}

/// How many cubes of at most `size` literals there are over `n` predicates.
fn cubes_up_to(n: usize, size: usize) -> u64 {
    let mut total = 0u64;
    let mut layer = 1u64;
    for i in 0..size.min(n) {
        layer = layer.saturating_mul(2 * (n - i) as u64) / (i as u64 + 1);
        total = total.saturating_add(layer);
    }
    total
}
