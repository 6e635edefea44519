//! What no two threads have the same of: tickets.
//!
//! A register that is taken in an atomic block, and compared, is a candidate, at every place where no two threads were seen with the same
//! in it, and none with what another has at another such place. Which places these are is found out greedily, those
//! where most threads were seen first; what the judge finds two threads to have the same of gives way.

use crate::sample::{Samples, tickets};
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::counting::Distinct;
use wattle_model::{Crowd, RegisterId};

/// `at` says for each local state the place.
pub fn guess(crowd: &Crowd, samples: &Samples, at: &BTreeMap<u32, usize>) -> Vec<Distinct> {
    let mut candidates = BTreeSet::new();
    for (t, thread) in crowd.instance.threads.iter().enumerate() {
        let role = crowd.roles.of(t);
        candidates.extend(tickets(thread).into_iter().map(|r| (role, r)));
    }
    let all = candidates.into_iter();
    let all = all.map(|(role, register)| of_register(role, register, samples, at));
    all.filter(|d| !d.0.is_empty()).collect()
}

fn of_register(
    role: usize,
    register: RegisterId,
    samples: &Samples,
    at: &BTreeMap<u32, usize>,
) -> Distinct {
    // How often somebody was there, and which places share a value.
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    let mut clash: BTreeSet<(usize, usize)> = BTreeSet::new();
    for state in &samples.states {
        let own = state.locals.iter().filter_map(|l| {
            let local = &samples.locals[*l as usize];
            (local.role.index() == role).then(|| (at[l], local.registers[register.index()]))
        });
        let own: Vec<(usize, i64)> = own.collect();
        for (n, (p, v)) in own.iter().enumerate() {
            *seen.entry(*p).or_default() += 1;
            let same = own[..n].iter().filter(|(_, w)| w == v);
            clash.extend(same.flat_map(|(q, _)| [(*p, *q), (*q, *p)]));
        }
    }
    let mut places: Vec<(usize, usize)> = seen.into_iter().collect();
    places.sort_by_key(|(p, often)| (std::cmp::Reverse(*often), *p));
    let mut chosen: Vec<usize> = Vec::new();
    for (p, _) in places {
        if !clash.contains(&(p, p)) && chosen.iter().all(|q| !clash.contains(&(p, *q))) {
            chosen.push(p);
        }
    }
    chosen.sort_unstable();
    let chosen = chosen.into_iter();
    Distinct(chosen.map(|p| (p as u32, register)).collect())
}
