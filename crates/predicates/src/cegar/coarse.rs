//! Abstract traces over blurred buffers (abdulla-2012 §7): is it a run (cases 1 and 2), are the
//! buffers too coarse (case 3), or do predicates miss (case 4)?
//!
//! The trace is followed with exact buffers: the same steps and drains, drains by cell. Where the
//! exact buffer does not allow an event, or where the values do not fit, it is no run. If it is
//! infeasible with the blurred buffers too, interpolants exclude it. Else the buffers must be finer:
//! first more classes of values, if what excludes the exact trace speaks of a cell alone, then a
//! larger k for the threads concerned.

use super::abstraction::Halt;
use super::refine::{Refined, refine};
use crate::reduce::{Cause, Move, Next, Symbol, System};
use wattle_evidence::Control;
use wattle_logic::{Formula, Rel};
use wattle_model::{CellId, ThreadId};

/// What to make of an abstract trace.
pub enum Finding {
    /// As without blur: a run, or formulas that exclude the trace.
    Refined(Refined),
    /// Classes to split and threads to keep more stores of.
    Coarse {
        cuts: Vec<(CellId, i64)>,
        threads: Vec<ThreadId>,
    },
}

pub fn look(
    system: &System<'_>,
    exact: &System<'_>,
    moves: &[&Move],
    last: &Formula,
    step: Option<&Move>,
    control: &Control<'_>,
) -> Result<Finding, Halt> {
    let followed = follow(exact, moves, step)?;
    let mut cuts = Vec::new();
    let stuck = match followed {
        Followed::To(exact_moves, exact_step) => {
            let listed: Vec<&Move> = exact_moves.iter().collect();
            let last = exact_step.as_ref().map_or(last, |s| &s.guard);
            let (_, initial) = exact.initial();
            match refine(exact, &initial, &listed, last, exact_step.as_ref(), control)? {
                Refined::Excluded(formulas) => {
                    let all = formulas.iter().flatten();
                    all.for_each(|f| cuts_of(exact, f, &mut cuts));
                }
                run @ Refined::Run(..) => return Ok(Finding::Refined(run)),
            }
            None
        }
        Followed::Stuck(t) => Some(t),
    };
    let (_, initial) = system.initial();
    if let excluded @ Refined::Excluded(_) = refine(system, &initial, moves, last, step, control)? {
        return Ok(Finding::Refined(excluded));
    }
    let blurred = |t: &ThreadId| system.blur_of(*t).is_some();
    let all = system.instance.thread_ids().filter(blurred);
    let threads = match stuck.filter(blurred) {
        Some(t) => vec![t],
        None => all.collect(),
    };
    Ok(Finding::Coarse { cuts, threads })
}

enum Followed {
    /// The moves with exact buffers, and the last step if there is one.
    To(Vec<Move>, Option<Move>),
    /// The thread's buffer does not allow an event of the trace.
    Stuck(ThreadId),
}

fn follow(exact: &System<'_>, moves: &[&Move], step: Option<&Move>) -> Result<Followed, Halt> {
    let (mut shape, _) = exact.initial();
    let mut found = Vec::new();
    let mut ends = None;
    for (i, mv) in moves.iter().copied().chain(step).enumerate() {
        let mut all = exact.moves(&shape)?.into_iter();
        let Some(same) = all.find(|m| same(m, mv)) else {
            return Ok(Followed::Stuck(mv.thread));
        };
        if i == moves.len() {
            ends = Some(same);
            break;
        }
        match &same.next {
            Next::To(next) => shape = next.clone(),
            Next::Fault | Next::Overflow => return Ok(Followed::Stuck(mv.thread)),
        }
        found.push(same);
    }
    Ok(Followed::To(found, ends))
}

/// The same event, whatever the buffer holds besides.
fn same(a: &Move, b: &Move) -> bool {
    let cause = match (a.cause, b.cause) {
        (Cause::Drain(_, x), Cause::Drain(_, y)) => x == y,
        (x, y) => x == y && a.case == b.case,
    };
    a.thread == b.thread && cause
}

/// Where atoms about one cell alone tell its values apart.
fn cuts_of(system: &System<'_>, f: &Formula, cuts: &mut Vec<(CellId, i64)>) {
    for atom in f.atoms() {
        let [(v, a)] = atom.term().coeffs() else {
            continue;
        };
        let (Symbol::Cell(cell), Some(a), Some(c)) = (
            system.symbol(*v),
            a.to_i64(),
            atom.term().constant_part().to_i64(),
        ) else {
            continue;
        };
        // a·x + c against 0, with a = ±1 after normalisation.
        let Some(at) = c.checked_neg().filter(|_| a.abs() == 1) else {
            continue;
        };
        let at = if a == 1 { Some(at) } else { at.checked_neg() };
        let Some(at) = at else { continue };
        let Some(next) = at.checked_add(1) else {
            continue;
        };
        match (atom.rel(), a) {
            (Rel::Le, 1) => cuts.push((cell, next)),
            (Rel::Le, _) => cuts.push((cell, at)),
            (Rel::Eq | Rel::Ne, _) => cuts.extend([(cell, at), (cell, next)]),
            _ => {}
        }
    }
}
