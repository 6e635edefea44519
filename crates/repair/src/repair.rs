//! The loop: cheapest set so far, check, learn, again.

use crate::clause;
use crate::hitting::{Costs, cheapest};
use crate::insert::{Fenced, fenced};
use crate::site::{Places, Site};
use std::collections::BTreeSet;
use wattle_evidence::{Control, Reason, Task, Trace};
use wattle_memory::MemoryModel;
use wattle_model::instance::Counts;
use wattle_model::{Instance, InstanceError, Program};
use wattle_robust::{Attack, Finding, Goal, Options};

/// What a check of a program with some fences says.
#[derive(Clone, Debug)]
pub enum Check {
    Holds,
    Violated(Violation),
    Undecided(Reason),
}

/// A run the goal forbids.
#[derive(Clone, Debug)]
pub enum Violation {
    /// Of a property, by index into the instance's questions (none: a fault).
    Trace {
        trace: Trace,
        question: Option<usize>,
    },
    Attack(Box<Attack>),
}

/// Whoever decides whether a program meets the goal.
pub trait Checker {
    fn check(&self, instance: &Instance, model: MemoryModel, control: &Control<'_>) -> Check;
}

/// Robustness and triangular-race freedom.
#[derive(Clone, Copy, Debug)]
pub struct Robust(pub Goal);

impl Checker for Robust {
    fn check(&self, instance: &Instance, model: MemoryModel, control: &Control<'_>) -> Check {
        let goal = self.0;
        match wattle_robust::search(instance, Options::new(goal, model), control) {
            Finding::Free { .. } => Check::Holds,
            Finding::Found { attack, .. } => Check::Violated(Violation::Attack(attack)),
            Finding::Undecided { reason, .. } => Check::Undecided(reason),
        }
    }
}

/// Any function is a checker.
impl<F: Fn(&Instance, MemoryModel, &Control<'_>) -> Check> Checker for F {
    fn check(&self, instance: &Instance, model: MemoryModel, control: &Control<'_>) -> Check {
        self(instance, model, control)
    }
}

#[derive(Clone, Debug)]
pub struct Query<'p> {
    pub program: &'p Program,
    pub counts: Counts,
    pub model: MemoryModel,
    pub costs: Costs,
    /// All minimal sets instead of one of the cheapest.
    pub all: bool,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// The sets found, cheapest first; one empty set if the program needs nothing. Complete unless a
    /// reason says why the search for more was given up.
    Fixed {
        fixes: Vec<Fix>,
        unfinished: Option<Reason>,
        checks: u64,
    },
    /// The goal is missed under SC already: no fence can help.
    BrokenUnderSc(Violation),
    /// A run is left that no fence of the allowed kinds stops.
    Impossible(Violation),
    Undecided {
        reason: Reason,
        checks: u64,
    },
}

/// A fence set, proved sufficient, with a proof for each member that it is needed.
#[derive(Clone, Debug)]
pub struct Fix {
    pub sites: BTreeSet<Site>,
    pub cost: u64,
    pub fenced: Fenced,
    pub needed: Vec<Needed>,
}

/// Without the site (and with all others) the violation is back.
#[derive(Clone, Debug)]
pub struct Needed {
    pub site: Site,
    pub without: Option<Violation>,
    /// The program the violation belongs to.
    pub fenced: Fenced,
}

/// Finds cheapest (or all minimal) fence sets.
pub fn repair(
    query: &Query<'_>,
    checker: &dyn Checker,
    control: &Control<'_>,
) -> Result<Outcome, InstanceError> {
    let mut work = Work {
        query,
        checker,
        control,
        places: Places::new(query.program),
        clauses: Vec::new(),
        checks: 0,
    };
    let mut good: Vec<BTreeSet<Site>> = Vec::new();
    let mut fixes = Vec::new();
    let unfinished = loop {
        let candidate = match cheapest(&work.clauses, &good, &query.costs, control) {
            Ok(Some(candidate)) => candidate,
            Ok(None) => break None,
            Err(stop) => {
                let stage = "repair (hitting set)".to_string();
                break Some(Reason::Stopped { stop, stage });
            }
        };
        match work.try_set(&candidate)? {
            Tried::Good(program) => {
                good.push(candidate.clone());
                fixes.push(work.fix(candidate, program)?);
                if !query.all {
                    break None;
                }
            }
            Tried::Learned => {}
            Tried::BrokenUnderSc(v) => return Ok(Outcome::BrokenUnderSc(v)),
            Tried::Impossible(v) => return Ok(Outcome::Impossible(v)),
            Tried::Undecided(reason) => break Some(reason),
        }
    };
    let checks = work.checks;
    if fixes.is_empty() {
        let nothing = "no set of fences of the allowed kinds is left".to_string();
        let reason = unfinished.unwrap_or(Reason::Other(nothing));
        return Ok(Outcome::Undecided { reason, checks });
    }
    Ok(Outcome::Fixed {
        fixes,
        unfinished,
        checks,
    })
}

struct Work<'q, 'c> {
    query: &'q Query<'q>,
    checker: &'q dyn Checker,
    control: &'q Control<'c>,
    places: Places,
    clauses: Vec<BTreeSet<Site>>,
    checks: u64,
}

enum Tried {
    Good(Fenced),
    Learned,
    BrokenUnderSc(Violation),
    Impossible(Violation),
    Undecided(Reason),
}

impl Work<'_, '_> {
    fn try_set(&mut self, sites: &BTreeSet<Site>) -> Result<Tried, InstanceError> {
        let program = fenced(self.query.program, sites);
        let instance = program.program.instantiate(&self.query.counts)?;
        self.checks += 1;
        let violation = match self
            .checker
            .check(&instance, self.query.model, self.control)
        {
            Check::Holds => return Ok(Tried::Good(program)),
            Check::Undecided(reason) => return Ok(Tried::Undecided(reason)),
            Check::Violated(v) => v,
        };
        if self.clauses.is_empty() {
            self.checks += 1;
            match self.checker.check(&instance, MemoryModel::Sc, self.control) {
                Check::Holds => {}
                Check::Violated(v) => return Ok(Tried::BrokenUnderSc(v)),
                Check::Undecided(reason) => return Ok(Tried::Undecided(reason)),
            }
        }
        let clause = match &violation {
            Violation::Attack(a) => clause::of_attack(&program, &self.places, &instance, a),
            Violation::Trace { trace, question } => {
                let task = Task {
                    instance: &instance,
                    model: self.query.model,
                    question: *question,
                    deadlock: false,
                };
                let tight = clause::tighten(&task, trace);
                match tight.check(&task) {
                    Ok(states) => clause::of_trace(&program, &self.places, &task, &tight, &states),
                    Err(e) => {
                        let why = format!("a violating run did not replay: {e:?}");
                        return Ok(Tried::Undecided(Reason::Other(why)));
                    }
                }
            }
        };
        let usable = clause.iter().any(|s| self.query.costs.of(*s).is_some());
        // A set that stops the run cannot have left it: the two rules would contradict each other.
        if !usable || !clause.is_disjoint(sites) {
            return Ok(Tried::Impossible(violation));
        }
        self.clauses.push(clause);
        Ok(Tried::Learned)
    }

    fn fix(&mut self, sites: BTreeSet<Site>, program: Fenced) -> Result<Fix, InstanceError> {
        let mut needed = Vec::new();
        for site in &sites {
            let mut others = sites.clone();
            others.remove(site);
            let weaker = fenced(self.query.program, &others);
            let instance = weaker.program.instantiate(&self.query.counts)?;
            self.checks += 1;
            let check = self
                .checker
                .check(&instance, self.query.model, self.control);
            needed.push(Needed {
                site: *site,
                without: match check {
                    Check::Violated(v) => Some(v),
                    Check::Holds | Check::Undecided(_) => None,
                },
                fenced: weaker,
            });
        }
        Ok(Fix {
            cost: self.query.costs.total(&sites),
            sites,
            fenced: program,
            needed,
        })
    }
}
