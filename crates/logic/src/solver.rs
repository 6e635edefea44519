//! The one small trait in front of any solver.

use crate::formula::Formula;
use crate::model::Model;
use crate::proof::Proof;
use std::fmt;

/// Decides conjunctions of quantifier-free linear integer formulas.
pub trait Solver {
    /// Whether all assertions can hold together.
    fn check(&mut self, assertions: &[Formula]) -> Answer;
}

impl<S: Solver + ?Sized> Solver for &mut S {
    fn check(&mut self, assertions: &[Formula]) -> Answer {
        (**self).check(assertions)
    }
}

impl<S: Solver + ?Sized> Solver for Box<S> {
    fn check(&mut self, assertions: &[Formula]) -> Answer {
        (**self).check(assertions)
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
            _ => None,
        }
    }

    /// The core of an `Unsat`.
    pub fn core(&self) -> Option<&[usize]> {
        match self {
            Answer::Unsat(r) => Some(&r.core),
            _ => None,
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
    /// The time is up.
    Time,
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
            Reason::Time => f.write_str("the solver is out of time"),
            Reason::Depth => f.write_str("the solver nests too many case splits"),
            Reason::Interpolation => f.write_str("the trace's interpolants grow too large"),
            Reason::External(what) => write!(f, "the external solver gave up: {what}"),
        }
    }
}
