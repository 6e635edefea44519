//! The boolean program: every move as an assumption and assignments to boolean variables, one per
//! predicate (dan-2013 §4.1, printz-2015 §5).
//!
//! A move's guard g becomes `assume(!F(!g))`, and a predicate p whose variables the move changes (the
//! cone of influence) becomes `choose(F(wp(p)), F(wp(!p)))`, where F(φ) is the disjunction of the
//! cubes that imply φ. A weakest precondition that is a predicate itself is copied without a search.
//! What the types say holds of every value and is used as a fact. `enforce` are the cubes that cannot
//! be true: F(false).

use crate::cube::{Bits, Cube};
use crate::known::Memory;
use crate::lift::{Buffers, Proof};
use crate::search::{Question, Searcher};
use crate::sites::{Graph, To, graphs};
use crate::vocabulary::Vocabulary;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};
use wattle_evidence::{Control, Stop};
use wattle_logic::{Formula, Term, Var, not};
use wattle_model::ThreadId;
use wattle_predicates::cegar::abstraction::Halt;
use wattle_predicates::reduce::ranges::Interval;
use wattle_predicates::reduce::{Symbol, System, inside};

/// Where cubes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cubes {
    /// All up to this size (Fig. 6 (a)).
    UpTo(usize),
    /// Single predicates, and these (Fig. 6 (b)).
    Given(Vec<Cube>),
}

/// A predicate's value after a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    Known(bool),
    /// The value (or its opposite) another predicate had before.
    Copy(usize, bool),
    /// `choose(yes, no)`
    Choose {
        yes: Vec<Cube>,
        no: Vec<Cube>,
    },
}

#[derive(Clone, Debug)]
pub struct Transfer {
    /// The move is impossible where one of these is true.
    pub refuted: Vec<Cube>,
    pub updates: Vec<(usize, Update)>,
    /// Predicates that do not matter afterwards: the move may change them, so their old values must
    /// not be used for what follows.
    pub forgotten: Bits,
    pub to: To,
}

type Transfers = Rc<Vec<Transfer>>;

/// What building took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Built {
    pub predicates: usize,
    pub given_cubes: usize,
    pub implications: u64,
    pub solver_calls: u64,
    pub time: Duration,
    /// Cubes of two and more literals in the program.
    pub cubes: usize,
    pub largest: usize,
}

pub struct Program<'i> {
    pub system: System<'i>,
    pub graphs: Vec<Graph>,
    pub vocabulary: Vocabulary,
    pub cubes: Cubes,
    pub enforce: Vec<Cube>,
    /// Per thread and site, the predicates that do not matter there.
    pub dead: Vec<Vec<Bits>>,
    searcher: Searcher,
    transfers: Vec<Vec<[Option<Transfers>; 3]>>,
    goals: FxHashMap<(Formula, Vec<Formula>, Bits), Rc<Vec<Cube>>>,
    used: BTreeSet<Cube>,
    time: Duration,
    buffers: Buffers,
}

impl<'i> Program<'i> {
    /// The program over these predicates; its moves are abstracted when they are asked for.
    pub fn new(
        system: System<'i>,
        graphs: Vec<Graph>,
        buffers: Buffers,
        vocabulary: Vocabulary,
        cubes: Cubes,
        (memory, control): (&Memory, &Control<'_>),
    ) -> Result<Self, Halt> {
        let none = |g: &Graph| g.sites.iter().map(|_| [None, None, None]).collect();
        let mut program = Program {
            transfers: graphs.iter().map(none).collect(),
            dead: Vec::new(),
            system,
            graphs,
            cubes,
            enforce: Vec::new(),
            searcher: Searcher::new(memory, &vocabulary),
            goals: FxHashMap::default(),
            used: BTreeSet::new(),
            vocabulary,
            time: Duration::ZERO,
            buffers,
        };
        let threads = program.system.instance.thread_ids();
        program.dead = threads.map(|t| program.dead_of(t)).collect();
        let started = Instant::now();
        program.enforce = program.impossible(control)?;
        program.time += started.elapsed();
        Ok(program)
    }

    /// The system's graphs and what its buffers can hold.
    pub fn parts(
        system: &System<'_>,
        control: &Control<'_>,
    ) -> Result<(Vec<Graph>, Buffers), Halt> {
        let graphs = graphs(system, control)?;
        let buffers = Buffers::new(&graphs);
        Ok((graphs, buffers))
    }

    pub fn built(&self) -> Built {
        let sizes = self.used.iter().map(Cube::len);
        Built {
            predicates: self.vocabulary.len(),
            given_cubes: match &self.cubes {
                Cubes::UpTo(_) => 0,
                Cubes::Given(cubes) => cubes.len(),
            },
            implications: self.searcher.counters.implications,
            solver_calls: self.searcher.counters.solver_calls,
            time: self.time,
            cubes: self.used.iter().filter(|c| c.len() > 1).count(),
            largest: sizes.max().unwrap_or(0),
        }
    }

    /// What can be extrapolated from a proof by this program.
    pub fn proof(&self) -> Proof {
        let cubes = self.used.iter().filter(|c| c.len() > 1);
        Proof {
            predicates: self.vocabulary.atoms(),
            cubes: cubes.map(|c| self.vocabulary.formulas(c)).collect(),
            size: self.built().largest.max(1),
        }
    }

    fn dead_of(&self, t: ThreadId) -> Vec<Bits> {
        let (shape, _) = self.system.initial();
        let sites = self.graphs[t.index()].sites.iter();
        let dead = sites.map(|site| {
            let mut here = shape.clone();
            here.locations[t.index()] = site.location;
            here.pending[t.index()] = site.pending.clone();
            let slots = &site.pending.slots;
            let all = self.vocabulary.all.iter().enumerate();
            let dead = all.filter(|(_, p)| {
                let mine = |v: &&Var| match self.system.symbol(**v) {
                    Symbol::Register(o, _) | Symbol::Entry(o, _) => o == t,
                    Symbol::Cell(_) | Symbol::Choice => false,
                };
                let stands = |&(o, i, c): &(ThreadId, usize, _)| {
                    o != t || slots.get(i).is_some_and(|s| s.cell == c)
                };
                let lost = |v: &Var| !self.system.matters(&here, *v);
                p.vars.iter().filter(mine).any(lost)
                    || (!p.origins.is_empty() && !p.origins.iter().any(|o| o.iter().all(stands)))
            });
            dead.map(|(i, _)| i).collect()
        });
        dead.collect()
    }

    /// What every value of the variable keeps to; of an entry, what those of the cells it can belong
    /// to do.
    fn domain(&self, v: Var) -> Formula {
        let Symbol::Entry(t, i) = self.system.symbol(v) else {
            return self.system.domain(&self.system.initial().0, v);
        };
        let cells = self.buffers.at(t, i).into_iter();
        let ranges = cells.map(|c| self.system.ranges.cells[c.index()]);
        match ranges.reduce(Interval::join) {
            Some(hull) => inside(hull, &Term::from(v)),
            None => Formula::True,
        }
    }

    fn domains(&self, vars: &BTreeSet<Var>) -> Vec<Formula> {
        let all = vars.iter().map(|v| self.domain(*v));
        all.filter(|f| *f != Formula::True).collect()
    }

    /// F(false).
    fn impossible(&mut self, control: &Control<'_>) -> Result<Vec<Cube>, Stop> {
        let all: Bits = (0..self.vocabulary.len()).collect();
        let vars = self
            .vocabulary
            .all
            .iter()
            .flat_map(|p| p.vars.iter().copied());
        let facts = self.domains(&vars.collect());
        let found = self.implying((&facts, &[]), &Formula::False, all, control)?;
        Ok(found.to_vec())
    }

    /// The cubes over the candidates that imply the goal where the guard holds.
    fn implying(
        &mut self,
        (facts, guard): (&[Formula], &[Formula]),
        goal: &Formula,
        candidates: Bits,
        control: &Control<'_>,
    ) -> Result<Rc<Vec<Cube>>, Stop> {
        let key = (goal.clone(), guard.to_vec(), candidates);
        if let Some(found) = self.goals.get(&key) {
            return Ok(found.clone());
        }
        let question = Question {
            facts,
            guard,
            goal,
            impossible: &self.enforce,
        };
        let (searcher, vocabulary) = (&mut self.searcher, &self.vocabulary);
        let found = match &self.cubes {
            Cubes::UpTo(size) => {
                searcher.by_size(vocabulary, &question, candidates, *size, control)?
            }
            Cubes::Given(given) => {
                let mut cubes: Vec<Cube> = Vec::new();
                for p in candidates.iter() {
                    cubes.extend([true, false].map(|v| Cube::default().with(p, v)));
                }
                let inside = given
                    .iter()
                    .filter(|c| c.known.without(candidates).is_empty());
                cubes.extend(inside);
                cubes.sort_by_key(|c| (c.len(), *c));
                searcher.among(vocabulary, &question, &cubes, control)?
            }
        };
        self.used.extend(&found);
        let found = Rc::new(found);
        self.goals.insert(key, found.clone());
        Ok(found)
    }

    /// Cubes that exclude the condition.
    fn excluding(
        &mut self,
        condition: &Formula,
        candidates: Bits,
        control: &Control<'_>,
    ) -> Result<Vec<Cube>, Stop> {
        match condition {
            Formula::True => return Ok(Vec::new()),
            Formula::False => return Ok(vec![Cube::default()]),
            Formula::Atom(_) | Formula::And(_) | Formula::Or(_) => {}
        }
        // Predicates exclude what contradicts them: `enforce` does the rest.
        let literals = condition
            .conjuncts()
            .iter()
            .map(|f| self.vocabulary.find(f));
        if let Some(literals) = literals.collect::<Option<Vec<_>>>() {
            let single = |(p, v): (usize, bool)| Cube::default().with(p, !v);
            return Ok(literals.into_iter().map(single).collect());
        }
        let goal = not(condition);
        let candidates = self.vocabulary.connected(&goal, candidates);
        let facts = self.facts(&goal, candidates);
        let found = self.implying((&facts, &[]), &goal, candidates, control)?;
        Ok(found.to_vec())
    }

    /// The conditions are known not to hold together.
    pub fn impossible_together(&self, query: &[Formula], control: &Control<'_>) -> bool {
        self.searcher.refutes(query, control)
    }

    fn facts(&self, goal: &Formula, candidates: Bits) -> Vec<Formula> {
        let mut vars = goal.vars();
        for p in candidates.iter() {
            vars.extend(&self.vocabulary.all[p].vars);
        }
        self.domains(&vars)
    }

    /// When a state is not one of the question's target.
    pub fn safe(&mut self, target: &Formula, control: &Control<'_>) -> Result<Vec<Cube>, Stop> {
        let started = Instant::now();
        let all = (0..self.vocabulary.len()).collect();
        let found = self.excluding(target, all, control);
        self.time += started.elapsed();
        found
    }

    /// The moves of the thread at the site, abstracted.
    pub fn transfers(
        &mut self,
        t: ThreadId,
        site: usize,
        lock: usize,
        control: &Control<'_>,
    ) -> Result<Transfers, Stop> {
        if let Some(known) = &self.transfers[t.index()][site][lock] {
            return Ok(known.clone());
        }
        let started = Instant::now();
        let count = self.graphs[t.index()].moves[site][lock].len();
        let mut all = Vec::new();
        for m in 0..count {
            all.push(self.transfer(t, site, lock, m, control)?);
        }
        let all = Rc::new(all);
        self.transfers[t.index()][site][lock] = Some(all.clone());
        self.time += started.elapsed();
        Ok(all)
    }

    fn transfer(
        &mut self,
        t: ThreadId,
        site: usize,
        lock: usize,
        m: usize,
        control: &Control<'_>,
    ) -> Result<Transfer, Stop> {
        let (mv, to) = self.graphs[t.index()].moves[site][lock][m].clone();
        let all: Bits = (0..self.vocabulary.len()).collect();
        let before = all.without(self.dead[t.index()][site]);
        let refuted = self.excluding(&mv.guard, before, control)?;
        let mut updates = Vec::new();
        let To::Site { site: after, .. } = to else {
            return Ok(Transfer {
                refuted,
                updates,
                forgotten: Bits::default(),
                to,
            });
        };
        let map: BTreeMap<Var, &Term> = mv.updates.iter().map(|(v, t)| (*v, t)).collect();
        let forgotten = self.dead[t.index()][after];
        let after = all.without(forgotten);
        for p in after.iter() {
            let predicate = &self.vocabulary.all[p];
            if !predicate.vars.iter().any(|v| map.contains_key(v)) {
                continue;
            }
            let wp = predicate
                .formula
                .subst(&|v| map.get(&v).map(|t| (*t).clone()));
            let update = match (&wp, self.vocabulary.find(&wp)) {
                (Formula::True, _) => Update::Known(true),
                (Formula::False, _) => Update::Known(false),
                (_, Some((q, true))) if q == p => continue,
                (_, Some((q, sign))) => Update::Copy(q, sign),
                _ => {
                    let mut both = vec![wp.clone()];
                    both.extend(mv.guard.conjuncts().iter().cloned());
                    let candidates = connected_to(&self.vocabulary, &both, before);
                    let facts = self.facts(&wp, candidates);
                    let known = (facts.as_slice(), mv.guard.conjuncts());
                    let yes = self.implying(known, &wp, candidates, control)?;
                    let no = self.implying(known, &not(&wp), candidates, control)?;
                    Update::Choose {
                        yes: yes.to_vec(),
                        no: no.to_vec(),
                    }
                }
            };
            updates.push((p, update));
        }
        Ok(Transfer {
            refuted,
            updates,
            forgotten,
            to,
        })
    }
}

/// Predicates that share variables with one of the formulas, directly or through others.
fn connected_to(vocabulary: &Vocabulary, formulas: &[Formula], among: Bits) -> Bits {
    let each = formulas.iter().map(|f| vocabulary.connected(f, among));
    each.fold(Bits::default(), Bits::or)
}
