//! Re-checks the cubes of a proof: they contain the bad states, no initial state, and every
//! pre-image; and no state that small instances reach on the reference machine satisfies one of
//! them. The first part repeats the search's own steps, the second owes nothing to it.

use crate::compile::Compiled;
use crate::cover::covers;
use crate::cube::Cube;
use crate::drain::drains;
use crate::forward::{Limits, explore};
use crate::guess::Guesser;
use crate::initial::{cubes_of, initial_part};
use crate::machine::{Candidates, Machine};
use crate::pre::{Predecessors, predecessors};
use crate::search::{Proof, bounded};
use crate::view::View;
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

/// `Err` says which condition fails.
pub fn recheck(
    system: &ArraySystem,
    model: MemoryModel,
    proof: &Proof,
    stop: &dyn Fn() -> bool,
) -> Result<(), String> {
    let compiled = Compiled::new(system, model).map_err(|u| u.message)?;
    let kinds = &compiled.kinds;
    let cubes = &proof.cubes[..];
    let mut axioms = Vec::new();
    for q in &system.assumed {
        if system.only_constants(&q.body) {
            axioms.extend(cubes_of(&compiled, q).map_err(|u| u.message)?);
        }
    }
    let covered = |c: &Cube| match bounded(c, cubes) {
        None => true,
        Some(c) => cubes.iter().chain(&axioms).any(|a| covers(kinds, a, &c)),
    };
    for q in &system.bad {
        for c in cubes_of(&compiled, q).map_err(|u| u.message)? {
            if !covered(&c) {
                return Err("a bad state is in none of the cubes".into());
            }
        }
    }
    let mut out = Predecessors::default();
    for (i, (c, under)) in cubes.iter().zip(&proof.under).enumerate() {
        if let Some(u) = under {
            let larger = cubes.get(*u as usize).filter(|_| *u as usize > i);
            if !larger.is_some_and(|l| covers(kinds, l, c)) {
                return Err("a cube is not inside the one that stands for it".into());
            }
            continue;
        }
        if initial_part(&compiled, c).is_some() {
            return Err("an initial state is in one of the cubes".into());
        }
        out.clear();
        for t in 0..compiled.transitions.len() {
            predecessors(&compiled, c, t, &mut out);
        }
        if compiled.model == MemoryModel::Pso {
            drains(&compiled, c, &mut out);
        }
        if out.gave_up || stop() {
            return Err("the check was given up".into());
        }
        if let Some(p) = out.list.iter().find(|p| !covered(&p.cube)) {
            let name = system
                .transitions
                .get(p.transition)
                .map_or("a drain", |t| t.name.as_str());
            return Err(format!("the cubes are not closed under `{name}`"));
        }
    }
    for threads in 1..=3u8 {
        let threads = threads.max(compiled.constants as u8);
        if system.threads.is_some_and(|n| n != u32::from(threads)) {
            continue;
        }
        let machine = Machine::new(system, compiled.model, threads);
        let limits = Limits {
            states: 1500,
            buffer: 3,
            depth: 60,
            starts: 16,
            walks: 20,
        };
        let seen = explore(&machine, &Candidates::of(system), limits, false, stop);
        let mut sample = Guesser::default();
        sample.add_sample(machine, seen.states.iter().map(View::of).collect());
        let local = |c: &&Cube| {
            c.memory.events.is_empty()
                && c.memory.pending.is_empty()
                && c.threads() <= usize::from(threads)
        };
        if cubes
            .iter()
            .filter(local)
            .any(|c| sample.some_state(&compiled, c))
        {
            return Err(format!(
                "a state reached by {threads} threads is in one of the cubes"
            ));
        }
    }
    Ok(())
}
