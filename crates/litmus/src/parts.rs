//! Final states of threads that have nothing to do with each other: those of each part, multiplied.
//!
//! Leave out of a run of the whole to its end what other parts do: a run of the part to its end. Runs of the
//! parts to their ends, one after the other, are a run of the whole. Only the lock could be in the way, if a
//! thread ends with it, so programs with locks are left whole; and those with several initial states, which
//! belong to all parts at once.

use std::collections::BTreeSet;
use wattle_evidence::{Control, Progress};
use wattle_memory::reference;
use wattle_model::instance::Fact;
use wattle_model::{Expr, Instance, ThreadId};
use wattle_search::rounds::Cut;
use wattle_search::{FinalStates, NoFinals, Observed};

/// The final states by those of the parts, if there are several; `find` is asked about one.
pub fn product(
    instance: &Instance,
    observed: &[Observed],
    control: &Control<'_>,
    find: impl Fn(&Instance, &[Observed]) -> Result<FinalStates, NoFinals>,
) -> Option<Result<FinalStates, NoFinals>> {
    let parts = instance.parts(&[]);
    let single = reference::starts(instance).is_ok_and(|s| s.len() == 1);
    if parts.len() < 2 || !single || instance.locks() {
        return None;
    }
    Some(multiply(instance, &parts, observed, control, find))
}

fn multiply(
    instance: &Instance,
    parts: &[Vec<ThreadId>],
    observed: &[Observed],
    control: &Control<'_>,
    find: impl Fn(&Instance, &[Observed]) -> Result<FinalStates, NoFinals>,
) -> Result<FinalStates, NoFinals> {
    // What nobody changes is seen the same by all parts; the first one tells.
    let owner = |o: &Observed| {
        let fact = match *o {
            Observed::Cell(c) => Fact::Cell(c),
            Observed::Register(t, r) => Fact::Register(t, r),
        };
        let seen = instance.seen_by(&Expr::Atom(fact));
        let owner = parts
            .iter()
            .position(|p| seen.iter().any(|t| p.contains(t)));
        owner.unwrap_or(0)
    };
    let owners: Vec<usize> = observed.iter().map(owner).collect();
    let (mut cut, mut effort) = (Cut::Nothing, Progress::default());
    let mut all: Vec<Vec<i64>> = vec![vec![0; observed.len()]];
    for (p, part) in parts.iter().enumerate() {
        let places = (0..observed.len()).filter(|i| owners[*i] == p);
        let places: Vec<usize> = places.collect();
        let own: Vec<Observed> = places.iter().map(|i| observed[*i]).collect();
        let found = find(&instance.alone(part), &own)?;
        effort.states += found.effort.states;
        effort.memory = effort.memory.max(found.effort.memory);
        if found.cut != Cut::Nothing {
            cut = found.cut;
        }
        let mut more = Vec::with_capacity(all.len() * found.states.len());
        for (i, before) in all.iter().enumerate() {
            if i % 4096 == 0 {
                let bytes = (more.len() + all.len()) * (24 + 8 * observed.len());
                effort.memory = effort.memory.max(bytes as u64);
                let poll = control.poll("litmus", effort);
                poll.map_err(|stop| {
                    NoFinals::Undecided(wattle_evidence::Reason::stopped(stop, "litmus"))
                })?;
            }
            for state in &found.states {
                let mut now = before.clone();
                for (place, value) in places.iter().zip(state) {
                    now[*place] = *value;
                }
                more.push(now);
            }
        }
        all = more;
    }
    Ok(FinalStates {
        states: BTreeSet::from_iter(all),
        cut,
        effort,
    })
}
