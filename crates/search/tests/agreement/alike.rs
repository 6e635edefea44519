//! Programs of threads that are alike, and programs of more threads, against brute force.

use crate::common::{Sample, Stmt, Taste, rng, sample};
use crate::{disagreement, fail, verdicts_differ};
use wattle_memory::MemoryModel;
use wattle_memory::compiled::{Machine, Ranges, Watched};
use wattle_memory::content::EXACT;
use wattle_model::graph::Action;
use wattle_model::program::Place;
use wattle_model::{Expr, FamilyId, Observation, Op2, RegionId};
use wattle_random::setting;
use wattle_search::Reductions;

/// The same text for every thread, but that the last scalar is each thread's own if `own`; the property with
/// threads permuted in all ways, joined by `||`.
fn twins(s: &Sample, n: usize, own: bool) -> Sample {
    let most = (0..s.threads.len()).max_by_key(|t| s.registers[*t].len());
    let base = most.unwrap_or(0);
    let mut twins = s.clone();
    twins.threads = vec![s.threads[base].clone(); n];
    twins.registers = vec![s.registers[base].clone(); n];
    if own {
        for t in 1..n {
            let mut region = s.regions[0].clone();
            region.name = format!("own{t}");
            let mine = RegionId::new(twins.regions.len());
            twins.regions.push(region);
            twins.threads[t].iter_mut().for_each(|s| rename(s, mine));
        }
    }
    let orders: Vec<Vec<usize>> = match n {
        2 => vec![vec![0, 1], vec![1, 0]],
        _ => vec![
            vec![0, 1, 2],
            vec![0, 2, 1],
            vec![1, 0, 2],
            vec![1, 2, 0],
            vec![2, 0, 1],
            vec![2, 1, 0],
        ],
    };
    let cell = |region: RegionId, t: usize| match (own && region.index() == 0, t) {
        (true, 0) | (false, _) => region,
        (true, t) => RegionId::new(s.regions.len() + t - 1),
    };
    let permuted = orders.iter().map(|order| {
        let expr = s.property.condition.expr.substitute(&mut |o| {
            let family = |f: FamilyId| FamilyId::new(order[f.index() % n]);
            let mut o = o.clone();
            match &mut o {
                Observation::At(thread, _) | Observation::Register(thread, _) => {
                    thread.family = family(thread.family);
                }
                Observation::Cell(region, _) => *region = cell(*region, order[0]),
                _ => {}
            }
            Ok::<_, ()>(Expr::Atom(o))
        });
        expr.expect("a condition")
    });
    let all = permuted.reduce(|a, b| Expr::binary(Op2::Or, a, b));
    twins.property.condition.expr = all.expect("an order");
    twins
}

fn rename(s: &mut Stmt, mine: RegionId) {
    let all = |block: &mut Vec<Stmt>| block.iter_mut().for_each(|s| rename(s, mine));
    match s {
        Stmt::Do(Action::Load { place, .. } | Action::Store { place, .. }) => {
            if let Place::Region(region, _) = place
                && region.index() == 0
            {
                *region = mine;
            }
        }
        Stmt::Do(_) => {}
        Stmt::If(_, a, b) | Stmt::Choose(a, b) => {
            all(a);
            all(b);
        }
        Stmt::While(_, a) | Stmt::Atomic(_, a) | Stmt::Locked(a) => all(a),
    }
}

/// Whether the machine finds threads that are alike.
fn is_symmetric(s: &Sample) -> Option<bool> {
    let instance = s.program().instance().ok()?;
    let view = Watched::of_question(&instance, instance.questions.first());
    let ranges = Ranges::infer(&instance);
    let slots = vec![2; instance.threads.len()];
    let (model, all) = (MemoryModel::Tso, Reductions::ALL);
    let machine = Machine::new(&instance, model, &view, all, &EXACT, &ranges, &slots).ok()?;
    Some(machine.is_symmetric())
}

#[test]
fn threads_that_are_alike_change_no_verdict() {
    let seed = setting("WATTLE_SEED", 1);
    let programs = setting("WATTLE_PROGRAMS", 20_000) / 10;
    println!("seed {seed}, {programs} programs, three models");
    let mut rng = rng(seed.wrapping_add(99));
    let mut alike = 0;
    for number in 1..=programs {
        let three = number.is_multiple_of(3);
        let taste = Taste {
            statements: if three { 3 } else { 4 },
            ..Taste::number(number)
        };
        let s = sample(&mut rng, taste);
        let s = twins(&s, if three { 3 } else { 2 }, number.is_multiple_of(4));
        alike += u64::from(is_symmetric(&s) == Some(true));
        if verdicts_differ(&s).is_some() {
            fail(&s, seed, number, &verdicts_differ);
        }
    }
    println!("{alike} of {programs} programs have threads that are alike");
    assert!(alike * 2 > programs, "hardly any threads are alike");
}

#[test]
fn more_threads_have_the_same_final_states() {
    let seed = setting("WATTLE_SEED", 1);
    let programs = setting("WATTLE_PROGRAMS", 20_000) / 10;
    let mut rng = rng(seed.wrapping_add(123));
    for number in 1..=programs {
        let taste = Taste {
            faults: false,
            litmus: !number.is_multiple_of(3),
            threads: 4,
            statements: 3,
        };
        let s = sample(&mut rng, taste);
        if disagreement(&s).is_some() {
            fail(&s, seed, number, &disagreement);
        }
    }
}
