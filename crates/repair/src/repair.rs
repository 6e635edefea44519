//! The loop: cheapest set so far, check, learn, again.

use crate::clause;
use crate::hitting::{Costs, cheapest};
use crate::insert::{Fenced, fenced};
use crate::site::{Places, Site};
use crate::unit::{self, Unit};
use std::collections::BTreeSet;
use wattle_evidence::{Control, Reason, Task, Trace};
use wattle_memory::MemoryModel;
use wattle_model::instance::Counts;
use wattle_model::{Instance, InstanceError, Program};
use wattle_robust::{Attack, Finding, Goal, Options};
use wattle_syntax::gaps::Gap;

/// What a check of a program with some fences says.
#[derive(Clone, Debug)]
pub enum Check {
    Holds,
    Violated(Run),
    Undecided(Reason),
}

/// A run the goal forbids.
#[derive(Clone, Debug)]
pub enum Run {
    /// Of a property, by index into the instance's questions (none: a fault).
    Trace {
        trace: Trace,
        question: Option<usize>,
    },
    Attack(Box<Attack>),
}

/// A run and the number of threads it belongs to.
#[derive(Clone, Debug)]
pub struct Violation {
    pub counts: Counts,
    pub run: Run,
}

/// What is known of more threads than the instance has.
#[derive(Clone, Debug)]
pub enum Beyond {
    /// There is nothing more to ask, or it is proved.
    Holds,
    Violated(Violation),
    /// Instances with up to so many threads hold; nothing is proved about more.
    UpTo {
        threads: u32,
        reason: Reason,
    },
}

/// Whoever decides whether a program meets the goal.
pub trait Checker {
    fn check(&self, instance: &Instance, model: MemoryModel, control: &Control<'_>) -> Check;

    /// Asked of programs whose instance holds, if it does not stand for all there are.
    fn beyond(&self, _: &Program, _: MemoryModel, _: &Control<'_>) -> Beyond {
        Beyond::Holds
    }
}

/// Robustness and triangular-race freedom.
#[derive(Clone, Copy, Debug)]
pub struct Robust(pub Goal);

impl Checker for Robust {
    fn check(&self, instance: &Instance, model: MemoryModel, control: &Control<'_>) -> Check {
        let goal = self.0;
        match wattle_robust::search(instance, Options::new(goal, model), control) {
            Finding::Free { .. } => Check::Holds,
            Finding::Found { attack, .. } => Check::Violated(Run::Attack(attack)),
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
    /// The gaps of the program's text, if there is one and its language knows them.
    pub gaps: &'p [Vec<Gap>],
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
    /// The goal is missed under SC already: no fence can help, nor a lock if locks are allowed.
    BrokenUnderSc(Violation),
    /// A run is left that no fence of the allowed kinds stops.
    Impossible(Violation),
    /// Good for instances with up to so many threads; not proved for any number.
    UpTo {
        fix: Box<Fix>,
        threads: u32,
        reason: Reason,
        checks: u64,
    },
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
        places: Places::new(query.program, query.gaps),
        units: unit::units(query.program),
        clauses: Vec::new(),
        checks: 0,
    };
    let mut good: Vec<BTreeSet<Site>> = Vec::new();
    let mut fixes = Vec::new();
    let mut unproved: Option<(BTreeSet<Site>, Fenced, u32, Reason)> = None;
    let unfinished = loop {
        let price = |s: Site| work.price(s);
        let candidate = match cheapest(&work.clauses, &good, &price, control) {
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
            Tried::UpTo(program, threads, reason) => {
                good.push(candidate.clone());
                unproved.get_or_insert((candidate, program, threads, reason));
                if !query.all {
                    break None;
                }
            }
            Tried::BrokenUnderSc(v) => return Ok(Outcome::BrokenUnderSc(v)),
            Tried::Impossible(v) if candidate.is_empty() => return Ok(Outcome::Impossible(v)),
            // The run is one of the program with these fences and locks.
            Tried::Impossible(_) => match work.beyond_repair()? {
                Ok(outcome) => return Ok(outcome),
                Err(reason) => break Some(reason),
            },
            Tried::Undecided(reason) => break Some(reason),
        }
    };
    let checks = work.checks;
    if fixes.is_empty()
        && let Some((sites, program, threads, reason)) = unproved
    {
        let fix = Box::new(work.fix(sites, program)?);
        let checks = work.checks;
        return Ok(Outcome::UpTo {
            fix,
            threads,
            reason,
            checks,
        });
    }
    let unfinished = unfinished.or(unproved.map(|(_, _, _, reason)| reason));
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

/// Costs are multiplied by this, so that loops can decide between what costs the same; and of that what
/// is not met in every round.
const SCALE: u64 = 2000;
const ROUND: u64 = 2;

struct Work<'q, 'c> {
    query: &'q Query<'q>,
    checker: &'q dyn Checker,
    control: &'q Control<'c>,
    places: Places,
    units: Vec<Vec<Unit>>,
    clauses: Vec<BTreeSet<Site>>,
    checks: u64,
}

enum Tried {
    Good(Fenced),
    UpTo(Fenced, u32, Reason),
    Learned,
    BrokenUnderSc(Violation),
    Impossible(Violation),
    Undecided(Reason),
}

/// The answers of [`Checker::check`] and [`Checker::beyond`] in one.
#[derive(Clone, Debug)]
pub enum Judged {
    Holds,
    /// Instances with up to so many threads hold; nothing is proved about more.
    UpTo(u32, Reason),
    Violated(Violation),
    Undecided(Reason),
}

/// Asks about the instance, and then about what it does not show.
pub fn judge(
    program: &Program,
    counts: &Counts,
    model: MemoryModel,
    checker: &dyn Checker,
    control: &Control<'_>,
) -> Result<Judged, InstanceError> {
    let instance = program.instantiate(counts)?;
    Ok(match checker.check(&instance, model, control) {
        Check::Violated(run) => Judged::Violated(Violation {
            counts: counts.clone(),
            run,
        }),
        Check::Undecided(reason) => Judged::Undecided(reason),
        Check::Holds => match checker.beyond(program, model, control) {
            Beyond::Holds => Judged::Holds,
            Beyond::Violated(v) => Judged::Violated(v),
            Beyond::UpTo { threads, reason } => Judged::UpTo(threads, reason),
        },
    })
}

impl Work<'_, '_> {
    /// What a site costs: its kind, and something for every loop around it. Nothing if it is not used.
    fn price(&self, site: Site) -> Option<u64> {
        let costs = &self.query.costs;
        let kind = u64::from(costs.of(site)?) * SCALE;
        let round = costs.around.map_or(ROUND, |n| u64::from(n) * SCALE);
        let loops = round * u64::from(self.places.depth(self.query.program, site));
        Some(kind + loops + u64::from(self.places.in_every_round(site)))
    }

    fn judge(&mut self, program: &Program, model: MemoryModel) -> Result<Judged, InstanceError> {
        self.checks += 1;
        judge(
            program,
            &self.query.counts,
            model,
            self.checker,
            self.control,
        )
    }

    fn try_set(&mut self, sites: &BTreeSet<Site>) -> Result<Tried, InstanceError> {
        let program = fenced(self.query.program, &self.places, sites);
        let violation = match self.judge(&program.program, self.query.model)? {
            Judged::Holds => return Ok(Tried::Good(program)),
            Judged::UpTo(threads, reason) => return Ok(Tried::UpTo(program, threads, reason)),
            Judged::Undecided(reason) => return Ok(Tried::Undecided(reason)),
            Judged::Violated(v) => v,
        };
        if self.clauses.is_empty() {
            let instance = program.program.instantiate(&violation.counts)?;
            self.checks += 1;
            match self.checker.check(&instance, MemoryModel::Sc, self.control) {
                Check::Holds => {}
                Check::Violated(run) => {
                    let counts = violation.counts.clone();
                    let broken = Violation { counts, run };
                    return match self.learn(&program, sites, &broken, MemoryModel::Sc)? {
                        Ok(true) => Ok(Tried::Learned),
                        Ok(false) => Ok(Tried::BrokenUnderSc(broken)),
                        Err(reason) => Ok(Tried::Undecided(reason)),
                    };
                }
                Check::Undecided(reason) => return Ok(Tried::Undecided(reason)),
            }
        }
        match self.learn(&program, sites, &violation, self.query.model)? {
            Ok(true) => Ok(Tried::Learned),
            Ok(false) => Ok(Tried::Impossible(violation)),
            Err(reason) => Ok(Tried::Undecided(reason)),
        }
    }

    /// Nothing repairs the program: shown on the program as it is.
    fn beyond_repair(&mut self) -> Result<Result<Outcome, Reason>, InstanceError> {
        let program = self.query.program;
        let why = match self.judge(program, MemoryModel::Sc)? {
            Judged::Violated(v) => return Ok(Ok(Outcome::BrokenUnderSc(v))),
            Judged::Undecided(reason) => reason,
            Judged::Holds | Judged::UpTo(..) => match self.judge(program, self.query.model)? {
                Judged::Violated(v) => return Ok(Ok(Outcome::Impossible(v))),
                Judged::Undecided(reason) | Judged::UpTo(_, reason) => reason,
                Judged::Holds => Reason::Other("a violation was not found again".into()),
            },
        };
        Ok(Err(why))
    }

    /// Keeps what stops the run, unless nothing usable does.
    fn learn(
        &mut self,
        program: &Fenced,
        sites: &BTreeSet<Site>,
        violation: &Violation,
        model: MemoryModel,
    ) -> Result<Result<bool, Reason>, InstanceError> {
        let instance = program.program.instantiate(&violation.counts)?;
        let mut clause = match &violation.run {
            Run::Attack(a) => clause::of_attack(program, &self.places, &instance, a),
            Run::Trace { trace, question } => {
                let task = Task {
                    instance: &instance,
                    model,
                    question: *question,
                    deadlock: false,
                };
                let tight = clause::tighten(&task, trace);
                match tight.check(&task) {
                    Ok(states) => {
                        let mut clause =
                            clause::of_trace(program, &self.places, &task, &tight, &states);
                        let units = &self.units;
                        clause.extend(clause::locks(program, units, &instance, &tight, &states));
                        clause
                    }
                    Err(e) => {
                        let why = format!("a violating run did not replay: {e:?}");
                        return Ok(Err(Reason::Other(why)));
                    }
                }
            }
        };
        // What is in already did not stop the run.
        clause.retain(|s| !sites.contains(s));
        let usable = clause.iter().any(|s| self.query.costs.of(*s).is_some());
        if !usable {
            return Ok(Ok(false));
        }
        self.clauses.push(clause);
        Ok(Ok(true))
    }

    fn fix(&mut self, sites: BTreeSet<Site>, program: Fenced) -> Result<Fix, InstanceError> {
        let mut needed = Vec::new();
        for site in &sites {
            let mut others = sites.clone();
            others.remove(site);
            let weaker = fenced(self.query.program, &self.places, &others);
            let judged = self.judge(&weaker.program, self.query.model)?;
            needed.push(Needed {
                site: *site,
                without: match judged {
                    Judged::Violated(v) => Some(v),
                    Judged::Holds | Judged::UpTo(..) | Judged::Undecided(_) => None,
                },
                fenced: weaker,
            });
        }
        Ok(Fix {
            cost: sites.iter().filter_map(|s| self.price(*s)).sum::<u64>() / SCALE,
            sites,
            fenced: program,
            needed,
        })
    }
}
