//! The one small trait in front of any solver.

use crate::formula::Formula;
use crate::model::Model;
use crate::proof::Proof;
use std::fmt;

/// Decides conjunctions of quantifier-free linear integer formulas.
pub trait Solver {
    /// Whether all assertions can hold together.
    fn check(&mut self, assertions: &[Formula]) -> Answer;

    /// As [`Solver::check`], given up as soon as it is time to; a solver that cannot look up while it
    /// works ignores that.
    fn check_while(&mut self, assertions: &[Formula], goes_on: &dyn Fn() -> bool) -> Answer {
        let _ = goes_on;
        self.check(assertions)
    }

    /// Whether there is time left: long work around a solver looks here.
    fn goes_on(&self) -> bool {
        true
    }
}

impl<S: Solver + ?Sized> Solver for &mut S {
    fn check(&mut self, assertions: &[Formula]) -> Answer {
        (**self).check(assertions)
    }

    fn check_while(&mut self, assertions: &[Formula], goes_on: &dyn Fn() -> bool) -> Answer {
        (**self).check_while(assertions, goes_on)
    }

    fn goes_on(&self) -> bool {
        (**self).goes_on()
    }
}

impl<S: Solver + ?Sized> Solver for Box<S> {
    fn check(&mut self, assertions: &[Formula]) -> Answer {
        (**self).check(assertions)
    }

    fn check_while(&mut self, assertions: &[Formula], goes_on: &dyn Fn() -> bool) -> Answer {
        (**self).check_while(assertions, goes_on)
    }

    fn goes_on(&self) -> bool {
        (**self).goes_on()
    }
}

/// What a solver says.
#[derive(Clone, Debug)]
pub enum Answer {
    /// They can: an integer for every variable.
    Sat(Model),
    /// They cannot.
    Unsat(Refutation),
    /// The solver gave up; never to be read as either of the others.
    Unknown(Reason),
}

impl Answer {
    /// Whether the answer is `Sat`.
    pub fn is_sat(&self) -> bool {
        matches!(self, Answer::Sat(_))
    }

    /// Whether the answer is `Unsat`.
    pub fn is_unsat(&self) -> bool {
        matches!(self, Answer::Unsat(_))
    }

    /// The model of a `Sat`.
    pub fn model(&self) -> Option<&Model> {
        match self {
            Answer::Sat(m) => Some(m),
            Answer::Unsat(_) | Answer::Unknown(_) => None,
        }
    }

    /// The core of an `Unsat`.
    pub fn core(&self) -> Option<&[usize]> {
        match self {
            Answer::Unsat(r) => Some(&r.core),
            Answer::Sat(_) | Answer::Unknown(_) => None,
        }
    }
}

/// Why assertions cannot hold together.
#[derive(Clone, Debug)]
pub struct Refutation {
    /// Positions of assertions that already contradict each other, ascending.
    pub core: Vec<usize>,
    /// A proof for [`crate::proof::check`]; our own solver always gives one.
    pub proof: Option<Proof>,
}

/// Why a solver gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The work budget is used up.
    Budget,
    /// It was told to stop: the time is up, or nobody waits any more.
    Stopped,
    /// Too many nested case splits.
    Depth,
    /// The trace is infeasible, but its interpolants would be too large.
    Interpolation,
    /// An external solver failed or said so itself.
    External(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Budget => f.write_str("the solver's work budget is used up"),
            Reason::Stopped => f.write_str("the solver was stopped"),
            Reason::Depth => f.write_str("the solver nests too many case splits"),
            Reason::Interpolation => f.write_str("the trace's interpolants grow too large"),
            Reason::External(what) => write!(f, "the external solver gave up: {what}"),
        }
    }
}
