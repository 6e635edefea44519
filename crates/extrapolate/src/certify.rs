//! What a closed check proves, written down: an inductive formula per control state.

use crate::boolean::Program;
use crate::cube::Cube;
use std::collections::BTreeSet;
use wattle_evidence::certificate::{Inductive, Invariant};
use wattle_predicates::cegar::certify::{blur, control, ranges, written};
use wattle_predicates::reduce::Shape;

/// The certificate, unless a predicate's numbers do not fit it.
pub fn certificate(program: &Program<'_>, reached: &[(Shape, Vec<Cube>)]) -> Option<Inductive> {
    let predicates = program.vocabulary.all.iter();
    let predicates: Option<Vec<_>> = predicates
        .map(|p| written(&program.system, &p.formula))
        .collect();
    let literal = |(p, v): (usize, bool)| {
        let n = p as i32 + 1;
        if v { n } else { -n }
    };
    let invariants = reached.iter().map(|(shape, cubes)| Invariant {
        control: control(shape),
        cubes: merged(cubes)
            .into_iter()
            .map(|c| c.literals().map(literal).collect())
            .collect(),
        clauses: Vec::new(),
    });
    Some(Inductive {
        model: program.system.model,
        ranges: ranges(&program.system),
        blur: blur(&program.system),
        views: Vec::new(),
        parts: Vec::new(),
        predicates: predicates?,
        invariants: invariants.collect(),
    })
}

/// Cubes that differ in one literal become one without it.
fn merged(cubes: &[Cube]) -> Vec<Cube> {
    let mut all: BTreeSet<Cube> = cubes.iter().copied().collect();
    let mut work: Vec<Cube> = cubes.to_vec();
    while let Some(cube) = work.pop() {
        if !all.contains(&cube) {
            continue;
        }
        for (p, v) in cube.literals() {
            let other = cube.with(p, !v);
            if all.contains(&other) {
                all.remove(&other);
                all.remove(&cube);
                let both = cube.forget([p].into_iter().collect());
                all.insert(both);
                work.push(both);
                break;
            }
        }
    }
    let list: Vec<Cube> = all.into_iter().collect();
    let covered = |c: &Cube| list.iter().any(|d| d != c && c.has_all(d));
    list.iter().copied().filter(|c| !covered(c)).collect()
}
