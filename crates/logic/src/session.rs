//! A solver with counters, a query cache and model pools in front of it: what
//! engines hold.

use crate::cache::Cache;
use crate::canon::Canonical;
use crate::formula::Formula;
use crate::model::Model;
use crate::native::Native;
use crate::pool::Pool;
use crate::solver::{Answer, Reason, Solver};
use std::fmt;
use std::ops::AddAssign;

/// How much was asked and what it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Questions asked, satisfiability and implication alike.
    pub queries: u64,
    /// … answered satisfiable (implication: not valid).
    pub sat: u64,
    /// … answered unsatisfiable (implication: valid).
    pub unsat: u64,
    /// … not answered.
    pub unknown: u64,
    /// Questions that reached the solver.
    pub solver_calls: u64,
    /// Questions answered by a pooled model.
    pub pool_hits: u64,
    /// Questions answered by the cache.
    pub cache_hits: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, o: Counters) {
        self.queries += o.queries;
        self.sat += o.sat;
        self.unsat += o.unsat;
        self.unknown += o.unknown;
        self.solver_calls += o.solver_calls;
        self.pool_hits += o.pool_hits;
        self.cache_hits += o.cache_hits;
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} queries ({} sat, {} unsat, {} unknown): {} solver calls, {} pool hits, {} cache hits",
            self.queries,
            self.sat,
            self.unsat,
            self.unknown,
            self.solver_calls,
            self.pool_hits,
            self.cache_hits
        )
    }
}

/// Whether premises imply a conclusion.
#[derive(Clone, Debug)]
pub enum Implication {
    /// They do: the positions of premises that suffice, ascending.
    Valid(Vec<usize>),
    /// They do not: a model of the premises that is none of the conclusion.
    Invalid(Model),
    /// The solver gave up; never to be read as either of the others.
    Unknown(Reason),
}

impl Implication {
    /// Whether the implication was shown valid.
    pub fn is_valid(&self) -> bool {
        matches!(self, Implication::Valid(_))
    }
}

/// A solver, its counters and its cache.
#[derive(Debug, Default)]
pub struct Session<S = Native> {
    solver: S,
    cache: Option<Cache>,
    /// Queries that differ in the names of variables only share an answer.
    up_to_names: bool,
    /// What was asked so far.
    pub counters: Counters,
}

impl Session<Native> {
    /// A session with our own solver and a cache.
    pub fn new() -> Session<Native> {
        Session::with_solver(Native::new())
    }
}

impl<S: Solver> Session<S> {
    /// A session with this solver and a cache.
    pub fn with_solver(solver: S) -> Session<S> {
        Session {
            solver,
            cache: Some(Cache::default()),
            up_to_names: false,
            counters: Counters::default(),
        }
    }

    /// The session without a cache (worth it if queries never repeat).
    pub fn without_cache(mut self) -> Session<S> {
        self.cache = None;
        self
    }

    /// The session with a cache that does not look at the names of variables (worth it if the solver
    /// takes longer than telling variables apart by where they occur, or calls are what counts).
    pub fn up_to_names(mut self) -> Session<S> {
        self.up_to_names = true;
        self
    }

    /// The solver behind the session; what it is asked directly is not counted.
    pub fn solver(&mut self) -> &mut S {
        &mut self.solver
    }

    /// Whether `premises` imply `conclusion`.
    pub fn implies(&mut self, premises: &[Formula], conclusion: &Formula) -> Implication {
        let mut query = Vec::with_capacity(premises.len() + 1);
        query.extend_from_slice(premises);
        query.push(conclusion.negated());
        match self.check(&query) {
            Answer::Sat(model) => Implication::Invalid(model),
            Answer::Unsat(mut r) => {
                r.core.retain(|&i| i < premises.len());
                Implication::Valid(r.core)
            }
            Answer::Unknown(reason) => Implication::Unknown(reason),
        }
    }

    /// As [`Session::implies`], trying the pool first and feeding it.
    pub fn implies_with(
        &mut self,
        pool: &mut Pool,
        premises: &[Formula],
        conclusion: &Formula,
    ) -> Implication {
        if let Some(model) = pool.refute(premises, conclusion) {
            self.note_pool_hit();
            return Implication::Invalid(model.clone());
        }
        let answer = self.implies(premises, conclusion);
        if let Implication::Invalid(model) = &answer {
            pool.add(model.clone());
        }
        answer
    }

    /// As [`Solver::check`], trying the pool first and feeding it.
    pub fn check_with(&mut self, pool: &mut Pool, assertions: &[Formula]) -> Answer {
        if let Some(model) = pool.find(assertions) {
            self.note_pool_hit();
            return Answer::Sat(model.clone());
        }
        let answer = self.check(assertions);
        if let Answer::Sat(model) = &answer {
            pool.add(model.clone());
        }
        answer
    }

    /// Counts a question that a pooled model answered (for pools kept elsewhere,
    /// such as a [`crate::TruthTable`]).
    pub fn note_pool_hit(&mut self) {
        self.counters.queries += 1;
        self.counters.sat += 1;
        self.counters.pool_hits += 1;
    }
}

impl<S: Solver> Solver for Session<S> {
    fn check(&mut self, assertions: &[Formula]) -> Answer {
        self.check_while(assertions, &|| true)
    }

    /// A cached `Unsat` has a core but no proof.
    fn check_while(&mut self, assertions: &[Formula], goes_on: &dyn Fn() -> bool) -> Answer {
        let c = &mut self.counters;
        c.queries += 1;
        let named = self.up_to_names.then(|| Canonical::new(assertions));
        let key = named.as_ref().map_or(assertions, |n| &n.assertions);
        let cached = self.cache.as_ref().and_then(|cache| cache.get(key));
        let answer = match cached {
            Some(answer) => {
                c.cache_hits += 1;
                match &named {
                    Some(named) => named.original(answer),
                    None => answer,
                }
            }
            None => {
                c.solver_calls += 1;
                let answer = self.solver.check_while(assertions, goes_on);
                if let Some(cache) = &mut self.cache {
                    match &named {
                        Some(named) => cache.put(key, &named.renamed(&answer)),
                        None => cache.put(key, &answer),
                    }
                }
                answer
            }
        };
        match &answer {
            Answer::Sat(_) => c.sat += 1,
            Answer::Unsat(_) => c.unsat += 1,
            Answer::Unknown(_) => c.unknown += 1,
        }
        answer
    }
}
