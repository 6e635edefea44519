//! A lasso: a run to a state and a run from there back to it, to be gone round for ever.

use super::big::Big;
use super::{Fairness, LiveTask, Set};
use crate::certificate::Returns;
use serde::{Deserialize, Serialize};
use std::fmt;
use wattle_memory::reference::{self, ReplayError, Snapshot, evaluate};
use wattle_memory::{Event, Exact, Layout, MemoryModel, Pso, Sc, Start, Tso};
use wattle_model::instance::Fact;
use wattle_model::{Expr, Formula, LocationId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lasso {
    pub model: MemoryModel,
    pub fairness: Fairness,
    pub start: Start,
    /// To the state that comes back.
    pub stem: Vec<Event>,
    /// From that state back to it; empty where nothing can move any more.
    pub cycle: Vec<Event>,
    /// Under memory fairness the lasso is but one run: why no run that begins with the stem does what is demanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ever: Option<Box<Returns>>,
}

/// A lasso that has been checked.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Every state passed: of the stem, then of the cycle.
    pub states: Vec<Snapshot>,
    /// Who can move, at each place of the cycle outside atomic blocks.
    pub able: Vec<Set>,
    /// For progress: the trap the run stays in, by its number.
    pub trap: Option<usize>,
}

/// Why a lasso does not show what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LassoError {
    Other(&'static str),
    Replay(ReplayError),
    /// The cycle does not lead back to where it began.
    NotClosed,
    /// This mover, by its number, is treated unfairly.
    Unfair(usize),
    /// The run does what is demanded.
    Satisfied,
    /// The formula has no value in a state.
    NoValue,
}

impl fmt::Display for LassoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LassoError::Other(why) => f.write_str(why),
            LassoError::Replay(e) => write!(f, "its events cannot happen: {e:?}"),
            LassoError::NotClosed => f.write_str("the cycle does not lead back to where it began"),
            LassoError::Unfair(m) => write!(f, "the run is not fair to mover {m}"),
            LassoError::Satisfied => f.write_str("the run does what is demanded"),
            LassoError::NoValue => f.write_str("the formula has no value in a state of the run"),
        }
    }
}

impl Lasso {
    /// Every event, of the stem and of one round.
    pub fn events(&self) -> Vec<Event> {
        self.stem.iter().chain(&self.cycle).copied().collect()
    }

    /// Replays the lasso: it is a run, closed, fair, of the program, and not what is demanded.
    pub fn check(&self, task: &LiveTask<'_>) -> Result<Replayed, LassoError> {
        if self.model != task.model {
            return Err(LassoError::Other("it is about another memory model"));
        }
        if self.fairness != task.fairness {
            return Err(LassoError::Other("it is about another fairness"));
        }
        match self.model {
            MemoryModel::Sc => self.run::<Sc>(task),
            MemoryModel::Tso => self.run::<Tso>(task),
            MemoryModel::Pso => self.run::<Pso>(task),
        }
    }

    fn run<L: Layout>(&self, task: &LiveTask<'_>) -> Result<Replayed, LassoError> {
        let events = self.events();
        let replayed = reference::replay(task.instance, self.model, &self.start, &events);
        let (states, fault) = replayed.map_err(LassoError::Replay)?;
        if fault.is_some() {
            return Err(LassoError::Other("it ends in a fault"));
        }
        if super::loop_in_block(task.instance).is_some() {
            return Err(LassoError::Other("a loop inside an atomic block"));
        }
        // The replay above has checked every event; here the states are the machine's own, which
        // tell apart what snapshots do not.
        let big = Big::<L>::new(task.instance)
            .map_err(|_| LassoError::Other("the machine refuses the program"))?;
        let mut state = big.machine.initial(&self.start);
        let mut exact = vec![state.clone()];
        for event in &events {
            match big.machine.apply(&state, event) {
                reference::Outcome::Next(next) => state = next,
                reference::Outcome::Fault(_) | reference::Outcome::Full(_) => {
                    return Err(LassoError::Other("an event has no next state"));
                }
            }
            exact.push(state.clone());
        }
        let turn = self.stem.len();
        if exact[turn] != exact[events.len()] {
            return Err(LassoError::NotClosed);
        }
        if big.machine.inside_atomic(&exact[turn]).is_some() {
            return Err(LassoError::Other("it turns inside an atomic block"));
        }
        let moved = self.cycle.iter().fold(0, |all, e| all | big.mover(e));
        let seen = |i: &usize| big.machine.inside_atomic(&exact[*i]).is_none();
        // Places of the run as it is seen; the last state is that at the turn.
        let last = events.len().max(turn + 1);
        let places: Vec<usize> = (0..last).filter(seen).collect();
        let (mut able, mut always, mut ever) = (Vec::new(), Set::MAX, 0);
        for i in places.iter().filter(|i| **i >= turn) {
            let moves = big.moves(&exact[*i]);
            let moves = moves.map_err(|_| LassoError::Other("a fault is possible on it"))?;
            if moves.discarded {
                return Err(LassoError::Other(
                    "a thread stands before a false assumption",
                ));
            }
            if self.cycle.is_empty() && !moves.moves.is_empty() {
                return Err(LassoError::Other("something can still move at its end"));
            }
            always &= moves.able;
            ever |= moves.able;
            able.push(moves.able);
        }
        let unfair = match self.fairness {
            Fairness::None => 0,
            // What memory fairness wants beyond that, no lasso can show.
            Fairness::Weak | Fairness::Memory => always & !moved,
            Fairness::Strong => ever & !moved,
        };
        if let Some(m) = (0..big.movers().len()).find(|m| unfair >> m & 1 == 1) {
            return Err(LassoError::Unfair(m));
        }
        let back = places.iter().position(|i| *i >= turn).unwrap_or(0);
        let trap = match task.formula() {
            Some(formula) => {
                let word: Vec<&Snapshot> = places.iter().map(|i| &states[*i]).collect();
                if truth(formula, &word, back)?[0] {
                    return Err(LassoError::Satisfied);
                }
                None
            }
            None => {
                let round: Vec<&Vec<LocationId>> = places[back..]
                    .iter()
                    .map(|i| &states[*i].locations)
                    .collect();
                let mut traps = task.traps().into_iter();
                let held = traps.position(|t| round.iter().all(|at| t.holds(at)));
                Some(held.ok_or(LassoError::Satisfied)?)
            }
        };
        Ok(Replayed { states, able, trap })
    }
}

/// The formula's truth at each place of the word that goes on at `back` after its last place: every
/// part from what it is made of, untils from below and releases from above until nothing changes.
pub fn truth(
    formula: &Formula<Expr<Fact>>,
    word: &[&Snapshot],
    back: usize,
) -> Result<Vec<bool>, LassoError> {
    let n = word.len();
    let sub = |f: &Formula<Expr<Fact>>| truth(f, word, back);
    let next = |i: usize| if i + 1 < n { i + 1 } else { back };
    // f U g from below (`least`), f R g from above.
    let until = |f: &[bool], g: &[bool], least: bool| {
        let mut value = vec![!least; n];
        loop {
            let before = value.clone();
            for i in (0..n).rev() {
                value[i] = match least {
                    true => g[i] || f[i] && value[next(i)],
                    false => g[i] && (f[i] || value[next(i)]),
                };
            }
            if value == before {
                return value;
            }
        }
    };
    let both = |f: Vec<bool>, g: Vec<bool>, op: fn(bool, bool) -> bool| {
        f.into_iter()
            .zip(g)
            .map(|(a, b)| op(a, b))
            .collect::<Vec<bool>>()
    };
    let (all, none) = (vec![true; n], vec![false; n]);
    Ok(match formula {
        Formula::Now(e) => {
            let values = word.iter().map(|s| evaluate(s, e).map(|v| v != 0));
            let values: Result<Vec<bool>, _> = values.collect();
            values.map_err(|_| LassoError::NoValue)?
        }
        Formula::Not(f) => sub(f)?.into_iter().map(|v| !v).collect(),
        Formula::And(f, g) => both(sub(f)?, sub(g)?, |a, b| a && b),
        Formula::Or(f, g) => both(sub(f)?, sub(g)?, |a, b| a || b),
        Formula::Implies(f, g) => both(sub(f)?, sub(g)?, |a, b| !a || b),
        Formula::Finally(f) => until(&all, &sub(f)?, true),
        Formula::Globally(f) => until(&none, &sub(f)?, false),
        Formula::Until(f, g) => until(&sub(f)?, &sub(g)?, true),
        Formula::Release(f, g) => until(&sub(f)?, &sub(g)?, false),
        Formula::WeakUntil(f, g) => {
            let (f, g) = (sub(f)?, sub(g)?);
            let either = both(f, g.clone(), |a, b| a || b);
            until(&g, &either, false)
        }
    })
}

/// Buffers are exact here.
pub type Buffer<L> = <L as Layout>::Buffer<Exact>;
