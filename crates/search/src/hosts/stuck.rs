//! Deadlocks among the states of several owners, as [`crate::deadlock`] has them: a state is alive if it has progress or an
//! event to one that is alive.
//!
//! Each owner tells the owners of its states' successors where these come from. Then whoever finds a state of its own alive
//! tells the owners of those it comes from, until nobody has anything to tell.

use super::mesh::{Lost, code_of, stop_of};
use super::owner::Owner;
use crate::deadlock::Successors;
use crate::explore::Observer;
use crate::store::hash;
use wattle_evidence::{Control, Stop};

/// States from the start to a deadlock, if there is one; or why to stop.
type Found = Result<Option<Vec<Vec<u64>>>, Stop>;

/// States between two looks around.
const STEP: u32 = 1 << 9;
/// Words of a block that is sent.
const BLOCK: usize = 1 << 12;

/// The states on the way to the least of the nearest deadlocks.
pub fn first<L: Observer>(
    owner: &mut Owner<'_, '_, '_, L>,
    control: &Control<'_>,
) -> Result<Found, Lost> {
    let (machine, words) = (owner.machine, owner.machine.words);
    let (me, owners) = (owner.exchange.me(), owner.exchange.owners());
    let n = owner.store.len() as u32;
    let mut alive = vec![false; n as usize];
    // `(target, source's owner, source)`, to go backwards from what is alive.
    let mut edges: Vec<(u32, u32, u32)> = Vec::new();
    let mut blocks: Vec<Vec<u64>> = vec![Vec::new(); owners];
    let mut stop = None;
    let mut successors = Successors::new(machine);
    let know = |edges: &mut Vec<(u32, u32, u32)>, store: &crate::store::Store, block: &[u64]| {
        for row in block.chunks_exact(words + 1) {
            let from = row[words];
            if let Some(target) = store.find(&row[..words]) {
                edges.push((target, (from >> 32) as u32, from as u32));
            }
        }
    };
    for source in 0..n {
        if source.is_multiple_of(STEP) {
            stop = control.stop().or(owner.mesh().stopped());
            if let Some(stop) = stop {
                owner.mesh().stop(stop);
                break;
            }
            for block in owner.exchange.step()? {
                know(&mut edges, &owner.store, &block);
            }
        }
        if successors.of(machine, owner.store.state(source)) {
            alive[source as usize] = true;
            continue;
        }
        for target in successors.targets.chunks_exact(words) {
            let to = owner.owner(hash(target));
            let block = &mut blocks[to];
            block.extend_from_slice(target);
            block.push((me as u64) << 32 | u64::from(source));
            if block.len() >= BLOCK {
                let block = std::mem::take(block);
                owner.exchange.send(to, block);
            }
        }
    }
    flush(owner, &mut blocks);
    let mut late = Vec::new();
    owner.exchange.end_round(|| (), |block| late.push(block))?;
    late.iter().for_each(|b| know(&mut edges, &owner.store, b));
    edges.sort_unstable();
    let mut work: Vec<u32> = (0..n).filter(|s| alive[*s as usize]).collect();
    loop {
        while let Some(target) = work.pop() {
            let from = edges.partition_point(|(t, ..)| *t < target);
            for (_, of, source) in edges[from..].iter().take_while(|(t, ..)| *t == target) {
                if *of as usize != me {
                    blocks[*of as usize].push(u64::from(*source));
                } else if !alive[*source as usize] {
                    alive[*source as usize] = true;
                    work.push(*source);
                }
            }
        }
        stop = stop.or(control.stop());
        flush(owner, &mut blocks);
        owner.exchange.end_round(
            || (),
            |sources| {
                for source in sources {
                    let alive = &mut alive[source as usize];
                    if !std::mem::replace(alive, true) {
                        work.push(source as u32);
                    }
                }
            },
        )?;
        let said = owner.exchange.gather(&[work.len() as u64, code_of(stop)])?;
        let told = said
            .iter()
            .filter_map(|s| stop_of(*s.get(1)?))
            .min_by_key(|s| code_of(Some(*s)));
        if let Some(stop) = told {
            return Ok(Err(stop));
        }
        if said.iter().all(|s| s.first() == Some(&0)) {
            break;
        }
    }
    // The nearest one, and of these the least.
    let mut mine: Option<(usize, &[u64])> = None;
    for number in (0..n).filter(|s| !alive[*s as usize]) {
        let state = owner.store.state(number);
        if machine.inside_atomic(state).is_some() || machine.is_final(state) {
            continue;
        }
        let here = Some((owner.level_of(number), state));
        mine = mine.into_iter().chain(here).min();
    }
    let mine = match mine {
        None => Vec::new(),
        Some((level, state)) => [&[level as u64], state].concat(),
    };
    let said = owner.exchange.gather(&mine)?;
    let Some(first) = said.into_iter().filter(|s| !s.is_empty()).min() else {
        return Ok(Ok(None));
    };
    match owner.way_to(first[0] as usize, first[1..].to_vec())? {
        Some(way) => Ok(Ok(Some(way))),
        None => Err(Lost("a run to a deadlock could not be rebuilt".into())),
    }
}

fn flush<L: Observer>(owner: &mut Owner<'_, '_, '_, L>, blocks: &mut [Vec<u64>]) {
    for (to, block) in blocks.iter_mut().enumerate() {
        if !block.is_empty() {
            owner.exchange.send(to, std::mem::take(block));
        }
    }
}
