//! Predicate templates (abdulla-2012 §6 has parameterised predicates): `□ < □` and `□ == □`,
//! instantiated along one spurious trace with the variables that matter where the trace is and that
//! have no bounds. What of them follows from state to state is computed forwards with the trace's own
//! abstract states; if that excludes the end, only the instances that the exclusion uses are taken,
//! each at its place. Comparing variables is what makes unbounded counters converge; interpolants
//! come after.

use super::abstraction::Halt;
use crate::reduce::{Move, Shape, System};
use std::collections::BTreeSet;
use wattle_evidence::{Control, Progress};
use wattle_logic::{Answer, Formula, Native, Solver, Term, Var, eq, lt, not};

/// More variables than this at one place are not compared with each other.
const MOST_VARIABLES: usize = 12;

/// A state of the trace: its shape and what is known in it.
type State<'s> = (&'s Shape, Vec<Formula>);

/// Formulas for every state of the trace that exclude it, if instances of the templates do.
pub fn exclude(
    system: &System<'_>,
    states: &[State<'_>],
    moves: &[&Move],
    last: &Formula,
    control: &Control<'_>,
) -> Result<Option<Vec<Formula>>, Halt> {
    let (_, initial) = system.initial();
    let mut follows: Vec<Vec<Formula>> = Vec::new();
    for (i, (shape, _)) in states.iter().enumerate() {
        control.poll("cegar", Progress::default())?;
        let mut found = Vec::new();
        for f in instances(system, shape) {
            let implied = match i.checked_sub(1) {
                None => core(initial.conjuncts(), &not(&f), control)?,
                Some(b) => {
                    let before = premises(system, &states[b], &follows[b], &moves[b].guard);
                    core(&before, &not(&after(&f, moves[b])), control)?
                }
            };
            if implied.is_some() {
                found.push(f);
            }
        }
        if i == 0 && found.is_empty() {
            return Ok(None);
        }
        follows.push(found);
    }
    let Some(end) = states.len().checked_sub(1) else {
        return Ok(None);
    };
    let at_end = premises(system, &states[end], &follows[end], &Formula::True);
    let Some(used) = core(&at_end, last, control)? else {
        return Ok(None);
    };
    // Backwards: what the exclusion uses, and what that follows from.
    let mut needed = vec![BTreeSet::new(); states.len()];
    needed[end] = among(&at_end, &used, &follows[end]);
    for i in (0..end).rev() {
        let before = premises(system, &states[i], &follows[i], &moves[i].guard);
        let goals: Vec<Formula> = needed[i + 1].iter().cloned().collect();
        for f in goals {
            if let Some(used) = core(&before, &not(&after(&f, moves[i])), control)? {
                needed[i].extend(among(&before, &used, &follows[i]));
            }
        }
    }
    let formulas = needed.into_iter().map(wattle_logic::and);
    Ok(Some(formulas.collect()))
}

/// Every instance for the shape, both ways round.
fn instances(system: &System<'_>, shape: &Shape) -> Vec<Formula> {
    let vars: Vec<Var> = system.unbounded_variables(shape);
    let mut all = Vec::new();
    if vars.len() > MOST_VARIABLES {
        return all;
    }
    for (i, a) in vars.iter().enumerate() {
        for b in &vars[i + 1..] {
            for f in [lt(*a, *b), lt(*b, *a), eq(*a, *b)] {
                all.push(not(&f));
                all.push(f);
            }
        }
    }
    all
}

/// What is known where a move leaves from.
fn premises(
    system: &System<'_>,
    (shape, known): &State<'_>,
    follows: &[Formula],
    guard: &Formula,
) -> Vec<Formula> {
    let mut all: Vec<Formula> = known.iter().chain(follows).cloned().collect();
    all.extend(guard.conjuncts().iter().cloned());
    let mut vars = BTreeSet::new();
    all.iter().for_each(|f| f.collect_vars(&mut vars));
    let domain = vars.iter().map(|v| system.domain(shape, *v));
    all.extend(domain.filter(|f| *f != Formula::True));
    all
}

/// The formula before the move.
fn after(f: &Formula, mv: &Move) -> Formula {
    f.subst(&|v: Var| {
        let found = mv.updates.iter().find(|(x, _)| *x == v);
        found.map(|(_, t): &(Var, Term)| t.clone())
    })
}

/// The premises that exclude the goal, if they do.
fn core(
    premises: &[Formula],
    goal: &Formula,
    control: &Control<'_>,
) -> Result<Option<Vec<usize>>, Halt> {
    if *goal == Formula::False {
        return Ok(Some(Vec::new()));
    }
    let mut query = premises.to_vec();
    query.push(goal.clone());
    match Native::new().check_while(&query, &|| control.stop().is_none()) {
        Answer::Unsat(refutation) => {
            let used = refutation.core.into_iter();
            let used = used.filter(|n| *n < premises.len());
            Ok(Some(used.collect()))
        }
        // Not known is as good as not so: the templates are only a guess.
        Answer::Sat(_) => Ok(None),
        Answer::Unknown(_) => match control.stop() {
            Some(stop) => Err(Halt::Stopped(stop)),
            None => Ok(None),
        },
    }
}

/// Those of the used premises that are instances of templates.
fn among(premises: &[Formula], used: &[usize], follows: &[Formula]) -> BTreeSet<Formula> {
    let used = used.iter().map(|n| &premises[*n]);
    used.filter(|f| follows.contains(f)).cloned().collect()
}
