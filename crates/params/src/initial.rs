//! Cubes of a system's own formulas, and whether a cube contains an initial state.

use crate::build::{Becomes, Builder};
use crate::compile::{Compiled, Unsupported};
use crate::cube::{Cube, THREADS};
use crate::pre::may_join;
use crate::slot::Slot;
use wattle_model::array::Quantified;

/// The cubes of a bad or assumed condition: one for each case and each way its parameters are
/// thread constants. Views in it are reads made in that very state.
pub fn cubes_of(compiled: &Compiled<'_>, q: &Quantified) -> Result<Vec<Cube>, Unsupported> {
    let dnf = compiled.dnf(&q.body, q.span)?;
    let mut bases = vec![Cube::default()];
    for _ in &q.params {
        let mut next = Vec::new();
        for base in &bases {
            for fixed in 0..=compiled.constants {
                if may_join(compiled, base, fixed) && base.threads() < THREADS {
                    let mut c = base.clone();
                    c.add_thread(fixed);
                    next.push(c);
                }
            }
        }
        bases = next;
    }
    let mut cubes = Vec::new();
    for base in &bases {
        let env: Vec<u8> = (0..base.threads() as u8).collect();
        for conj in &dnf {
            let Ok(mut b) = Builder::new(compiled, base.clone(), None) else {
                continue;
            };
            if b.conj(conj, &env).is_err() {
                continue;
            }
            let moment = 1 << b.event();
            b.cube.memory.last = moment;
            b.cube
                .memory
                .read_first
                .iter_mut()
                .for_each(|s| *s |= moment);
            if let Ok((cube, _)) = b.finish()
                && !cubes.contains(&cube)
            {
                cubes.push(cube);
            }
        }
    }
    Ok(cubes)
}

/// The initial states of a cube, as a cube over cells alone: every open read takes the initial
/// value. `None` if there are none.
pub fn initial_part(compiled: &Compiled<'_>, cube: &Cube) -> Option<Cube> {
    let mut parts = cube.memory.events.iter().flat_map(|e| &e.parts);
    if !cube.memory.pending.is_empty() || parts.any(|p| p.own) {
        return None;
    }
    let mut base = Cube::default();
    for f in &cube.fixed {
        base.add_thread(*f);
    }
    base.before = cube.before.clone();
    let mut b = Builder::new(compiled, base, None).ok()?.direct();
    let becomes = |s: Slot| {
        let (e, p) = s.as_read()?;
        Some(Becomes::Slot(cube.memory.events[e].parts[p].cell))
    };
    b.substitute(cube, &becomes).ok()?;
    let params = compiled.system.init.params.len();
    if b.cube.threads() == 0 && params > 0 {
        b.cube.add_thread(u16::from(compiled.constants > 0));
    }
    let threads = b.cube.threads() as u8;
    let mut tuples: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..params {
        tuples = tuples
            .iter()
            .flat_map(|t| (0..threads).map(move |u| t.iter().copied().chain([u]).collect()))
            .collect();
    }
    instantiate(compiled, b, &tuples)
}

/// The formula of the initial states for every tuple, with a case of it for each. There are as many tuples as threads to the
/// power of parameters: the cases still to be tried are a list and not calls in calls.
fn instantiate(
    compiled: &Compiled<'_>,
    mut b: Builder<'_, '_>,
    tuples: &[Vec<u8>],
) -> Option<Cube> {
    let mut open = Vec::new();
    let (mut done, mut case) = (0, 0);
    loop {
        let goes_on = match (tuples.get(done), compiled.init.get(case)) {
            (None, _) => {
                let mut cube = b.cube.clone();
                if cube.settle(&|c, s| compiled.full(c, s)).is_ok() {
                    return Some(cube);
                }
                false
            }
            (Some(_), None) => false,
            (Some(tuple), Some(conj)) => {
                if case + 1 < compiled.init.len() {
                    open.push((b.clone(), done, case + 1));
                }
                b.conj(conj, tuple).is_ok()
            }
        };
        if goes_on {
            (done, case) = (done + 1, 0);
        } else {
            (b, done, case) = open.pop()?;
        }
    }
}
