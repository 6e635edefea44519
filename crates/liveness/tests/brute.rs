//! The engine against brute force on the reference machine: random programs, random formulas and
//! progress, every memory model and fairness.
//!
//! The judge shares no idea with the engine but what a move is. It guesses the truth of every part of
//! the formula at every state (the textbook's elementary sets) instead of keeping obligations, and
//! strong fairness is decided by trying every set of movers that may be the ones that move for ever. Memory fairness is decided by what
//! has any probability at all.
//!
//! `WATTLE_LIVE_PROGRAMS` tries another number of programs for each memory model (5000 take some minutes).

mod judge;

use judge::{Judge, demand};
use wattle_auditor::{audit_for_ever, audit_live};
use wattle_evidence::live::{Fairness, LiveTask};
use wattle_evidence::{Control, LiveAnswer};
use wattle_liveness::run;
use wattle_memory::MemoryModel;
use wattle_random::Rng;
use wattle_random::{Loops, Shape, program};

/// Mostly two threads; three shorter ones, of whose moves more can be left out, and faults now and then.
fn shape(seed: u64) -> Shape {
    let (threads, statements, regions) = match seed % 4 {
        0 => (3, 2, 3),
        _ => (2, 4, 2),
    };
    Shape {
        threads,
        statements,
        regions,
        registers: 2,
        greatest: 1,
        loops: Loops::Fenced,
        faults: seed % 8 == 1,
        properties: false,
        ..Shape::default()
    }
}

#[derive(Default, Debug)]
struct Tally {
    holds: u64,
    broken: u64,
    faults: u64,
    skipped: u64,
}

/// Half of what is asked is about weak fairness.
const USUAL: [Fairness; 4] = [
    Fairness::Weak,
    Fairness::Weak,
    Fairness::Strong,
    Fairness::None,
];

fn compare(model: MemoryModel, fairness: &[Fairness], programs: u64, seed: u64) -> Tally {
    let mut tally = Tally::default();
    for i in 0..programs {
        let seed = seed + i;
        let mut instance = match program(seed, &shape(seed)).instance() {
            Ok(instance) => instance,
            Err(_) => continue,
        };
        let mut rng = Rng::new(seed ^ 0x5eed);
        instance.demands = vec![demand(&mut rng, &instance)];
        let fairness = *rng.pick(fairness);
        let task = LiveTask {
            instance: &instance,
            model,
            demand: 0,
            fairness,
        };
        let Some(judge) = Judge::new(&task) else {
            tally.skipped += 1;
            continue;
        };
        // With what has any probability, runs that end nowhere have no meaning.
        if fairness == Fairness::Memory && (judge.fault || judge.discards) {
            tally.skipped += 1;
            continue;
        }
        let (answer, _) = run(&task, &Control::unlimited());
        let told = format!("seed {seed}, {model}, {fairness}: {:?}", instance.demands);
        match answer {
            LiveAnswer::Fault(_) => {
                assert!(judge.fault, "{told}: a fault that brute force has not");
                tally.faults += 1;
            }
            LiveAnswer::Broken(lasso) => {
                let checked = lasso.check(&task);
                assert!(checked.is_ok(), "{told}: {:?}\n{lasso:?}", checked.err());
                let audited = audit_for_ever(&task, &lasso, &Control::unlimited());
                assert!(audited.is_ok(), "{told}: {audited:?}");
                assert!(
                    judge.fault || judge.is_broken(&task),
                    "{told}: brute force sees no such run"
                );
                tally.broken += 1;
            }
            LiveAnswer::Holds(certificate) => {
                // A fault behind what the formula wants to know is found by the question about faults,
                // which is asked beside every demand.
                assert!(
                    !judge.is_broken(&task),
                    "{told}: brute force has a run that breaks it"
                );
                let audited = audit_live(&task, &certificate, &Control::unlimited());
                assert!(audited.is_ok(), "{told}: {audited:?}");
                tally.holds += 1;
            }
            LiveAnswer::Bounded(_) | LiveAnswer::Undecided(_) if fairness == Fairness::Memory => {
                panic!("{told}: undecided");
            }
            LiveAnswer::Bounded(_) | LiveAnswer::Undecided(_) => tally.skipped += 1,
        }
    }
    tally
}

fn check(model: MemoryModel, fairness: &[Fairness], seed: u64) {
    let programs = wattle_random::setting("WATTLE_LIVE_PROGRAMS", 400);
    let tally = compare(model, fairness, programs, seed);
    println!("{model}: {tally:?}");
    assert!(
        tally.holds > programs / 20 && tally.broken > programs / 20,
        "{tally:?}"
    );
}

#[test]
fn sc_agrees() {
    check(MemoryModel::Sc, &USUAL, 1_000_000);
}

#[test]
fn tso_agrees() {
    check(MemoryModel::Tso, &USUAL, 2_000_000);
}

#[test]
fn pso_agrees() {
    check(MemoryModel::Pso, &USUAL, 3_000_000);
}

#[test]
fn sc_agrees_with_memory_fairness() {
    check(MemoryModel::Sc, &[Fairness::Memory], 4_000_000);
}

#[test]
fn tso_agrees_with_memory_fairness() {
    check(MemoryModel::Tso, &[Fairness::Memory], 5_000_000);
}

#[test]
fn pso_agrees_with_memory_fairness() {
    check(MemoryModel::Pso, &[Fairness::Memory], 6_000_000);
}
