//! Memory fairness where buffers have no bound: every answer is audited, nothing contradicts what brute force sees with short
//! buffers, and damaged certificates are refused.
//!
//! `WATTLE_LIVE_UNBOUNDED` tries another number of programs for each memory model.

mod judge;

use judge::{Judge, demand};
use wattle_auditor::{AuditPolicy, audit_for_ever, audit_live, judge_live};
use wattle_evidence::certificate::components::{put, take};
use wattle_evidence::certificate::{Returning, Returns};
use wattle_evidence::live::{Fairness, LiveTask};
use wattle_evidence::{Certificate, Control, Lasso, LiveAnswer, Progress, Scope, Verdict};
use wattle_liveness::run;
use wattle_memory::{Keeps, MemoryModel};
use wattle_random::{Loops, Rng, Shape, program};

fn shape(loops: Loops) -> Shape {
    Shape {
        threads: 2,
        statements: 4,
        regions: 2,
        registers: 1,
        greatest: 1,
        loops,
        properties: false,
        ..Shape::default()
    }
}

#[derive(Default, Debug)]
struct Tally {
    holds: u64,
    broken: u64,
    /// Of both, with buffers that forget.
    forgetting: u64,
    undecided: u64,
    compared: u64,
}

fn check(model: MemoryModel, seed: u64) {
    let programs = wattle_random::setting("WATTLE_LIVE_UNBOUNDED", 150);
    let mut tally = Tally::default();
    for seed in seed..seed + programs {
        let Ok(mut instance) = program(seed, &shape(Loops::Any)).instance() else {
            continue;
        };
        let mut rng = Rng::new(seed ^ 0xb0f);
        instance.demands = vec![demand(&mut rng, &instance)];
        let task = LiveTask {
            instance: &instance,
            model,
            demand: 0,
            fairness: Fairness::Memory,
        };
        let told = format!("seed {seed}, {model}: {:?}", instance.demands);
        let (answer, _) = run(&task, &Control::unlimited());
        let broken = match &answer {
            LiveAnswer::Broken(lasso) => {
                assert!(lasso.check(&task).is_ok(), "{told}");
                let audited = audit_for_ever(&task, lasso, &Control::unlimited());
                assert!(audited.is_ok(), "{told}: {audited:?}");
                tally.broken += 1;
                let forgets = |r: &Returns| r.keeps.is_abstract();
                tally.forgetting += u64::from(lasso.for_ever.as_deref().is_some_and(forgets));
                true
            }
            LiveAnswer::Holds(certificate) => {
                let audited = audit_live(&task, certificate, &Control::unlimited());
                assert!(audited.is_ok(), "{told}: {audited:?}");
                tally.holds += 1;
                let mut forgets = false;
                if let Certificate::Returning(c) = certificate {
                    forgets = c.parts.iter().any(|p| p.keeps.is_abstract());
                    tally.forgetting += u64::from(forgets);
                }
                let answer = (answer.clone(), Progress::default());
                let (never, all) = (AuditPolicy::Never, Control::unlimited());
                let judged = judge_live(&task, "liveness", answer, never, &all);
                let Ok(Verdict::Holds { scope, .. }) = judged.map(|j| j.verdict) else {
                    panic!("{told}: it holds");
                };
                // Only buffers that were not followed to their end are told to have none.
                let whatever = Scope::of(&task.faults()).unbounded;
                let unbounded = if forgets { whatever } else { Vec::new() };
                assert_eq!(scope.unbounded, unbounded, "{told}");
                false
            }
            LiveAnswer::Fault(_) => continue,
            LiveAnswer::Bounded(_) | LiveAnswer::Undecided(_) => {
                tally.undecided += 1;
                continue;
            }
        };
        // Longer buffers may do more; where two lengths do the same it should be all there is.
        let judges = [2, 3].map(|most| Judge::within(&task, most));
        if let [Some(short), Some(long)] = judges
            && !(long.fault || long.discards)
        {
            let (short, long) = (short.is_broken(&task), long.is_broken(&task));
            if short == long {
                assert_eq!(broken, long, "{told}");
                tally.compared += 1;
            }
        }
    }
    println!("{model}: {tally:?}");
    assert!(tally.holds > 0 && tally.broken > 0 && tally.forgetting > 0 && tally.compared > 0);
}

#[test]
fn tso_is_audited() {
    check(MemoryModel::Tso, 7_000_000);
}

#[test]
fn pso_is_audited() {
    check(MemoryModel::Pso, 8_000_000);
}

/// The nodes of each state: observer, number, and whether it is a return.
fn apart(part: &Returns) -> Vec<Vec<(u32, u32)>> {
    let mut rest = part.nodes.as_slice();
    let mut all = Vec::new();
    while !rest.is_empty() {
        let n = take(&mut rest).unwrap();
        let one = |rest: &mut &[u8]| (take(rest).unwrap(), take(rest).unwrap());
        all.push((0..n).map(|_| one(&mut rest)).collect());
    }
    all
}

fn together(part: &Returns, nodes: &[Vec<(u32, u32)>]) -> Returns {
    let mut out = Vec::new();
    for state in nodes {
        put(&mut out, state.len() as u64);
        for (o, n) in state {
            put(&mut out, u64::from(*o));
            put(&mut out, u64::from(*n));
        }
    }
    Returns {
        nodes: out,
        ..part.clone()
    }
}

/// Something that makes it wrong for certain.
fn damage(part: &Returns, rng: &mut Rng) -> Option<(&'static str, Returns)> {
    let mut nodes = apart(part);
    let mut other = part.clone();
    Some(match rng.below(10) {
        // Numbers are the least there can be.
        0 => {
            let far: Vec<(usize, usize)> = (nodes.iter().enumerate())
                .flat_map(|(s, here)| (0..here.len()).map(move |k| (s, k)))
                .filter(|(s, k)| nodes[*s][*k].1 / 2 > 1)
                .collect();
            if far.is_empty() {
                return None;
            }
            let (s, k) = *rng.pick(&far);
            nodes[s][k].1 -= 2;
            ("a number is too small", together(part, &nodes))
        }
        1 => {
            // Where an observer returns is met.
            let returns = |s: &usize| nodes[*s].iter().any(|(_, n)| n % 2 == 1);
            let met: Vec<usize> = (0..nodes.len()).filter(returns).collect();
            if met.is_empty() {
                return None;
            }
            nodes[*rng.pick(&met)].clear();
            ("a state has no nodes", together(part, &nodes))
        }
        2 => {
            let parts = &part.automaton.untils;
            if parts.is_empty() {
                return None;
            }
            other.automaton.untils.pop();
            ("an until has no set", other)
        }
        3 => {
            let states = &mut other.automaton.states;
            let sets = part.automaton.untils.len() as u32;
            let mut edges = states.iter_mut().flat_map(|s| &mut s.edges);
            let edge = edges.find(|e| (e.accepting.len() as u32) < sets)?;
            edge.accepting = (0..sets).collect();
            ("an until that is put off is met", other)
        }
        4 => {
            other.keeps = Keeps::Multiset;
            ("buffers without an end", other)
        }
        5 => {
            other.obligation += 1;
            ("it is about something else", other)
        }
        6 => {
            let far = nodes.iter().flatten().map(|(_, n)| n / 2);
            let far: Vec<u32> = far.filter(|n| *n > 1).collect();
            if far.is_empty() {
                return None;
            }
            // A node led to one of these, and to none nearer.
            let gone = *rng.pick(&far) - 1;
            for here in &mut nodes {
                here.retain(|(_, n)| n / 2 != gone);
            }
            ("all nodes of a number are missing", together(part, &nodes))
        }
        7 => {
            let states = part.automaton.states.len() as u32;
            let known = (0, 0);
            let strange = [(states, 0), (0, 1 << 63)];
            let strange = *rng.pick(&strange);
            let observer = match rng.below(2) {
                0 => vec![strange],
                _ => vec![known, strange],
            };
            other.observers.push(observer);
            ("an observer names what is not there", other)
        }
        8 => {
            other.observers.push(vec![(0, 0); 2]);
            other.observers.last_mut()?.insert(0, (1, 0));
            if part.automaton.states.len() < 2 {
                return None;
            }
            ("an observer in disorder", other)
        }
        _ => {
            other.observers.pop();
            ("an observer is missing", other)
        }
    })
}

/// What goes with a run, or proves it.
enum Evidence {
    Run(Lasso),
    Proof(Returning),
}

#[test]
fn damaged_certificates_are_refused() {
    let wanted = wattle_random::setting("WATTLE_LIVE_DAMAGED", 500);
    let (mut refused, mut seed) = (0, 91_000);
    while refused < wanted {
        seed += 1;
        let loops = *Rng::new(seed).pick(&[Loops::Fenced, Loops::Any]);
        let mut instance = program(seed, &shape(loops)).instance().unwrap();
        let mut rng = Rng::new(seed);
        instance.demands = vec![demand(&mut rng, &instance)];
        let model = *rng.pick(&MemoryModel::ALL);
        let task = LiveTask {
            instance: &instance,
            model,
            demand: 0,
            fairness: Fairness::Memory,
        };
        let evidence = match run(&task, &Control::unlimited()).0 {
            LiveAnswer::Broken(lasso) => Evidence::Run(lasso),
            LiveAnswer::Holds(Certificate::Returning(c)) if !c.parts.is_empty() => {
                Evidence::Proof(c)
            }
            _ => continue,
        };
        let audit = |changed: Option<Returns>| match &evidence {
            Evidence::Run(lasso) => {
                let for_ever = changed.map(Box::new).or(lasso.for_ever.clone());
                let lasso = Lasso {
                    for_ever,
                    ..lasso.clone()
                };
                audit_for_ever(&task, &lasso, &Control::unlimited())
            }
            Evidence::Proof(c) => {
                let mut c = c.clone();
                if let Some(changed) = changed {
                    c.parts[0] = changed;
                }
                audit_live(&task, &Certificate::Returning(c), &Control::unlimited())
            }
        };
        let part = match &evidence {
            Evidence::Run(lasso) => lasso.for_ever.as_deref().unwrap().clone(),
            Evidence::Proof(c) => c.parts[0].clone(),
        };
        assert!(audit(None).is_ok(), "seed {seed}, {model}");
        if let Evidence::Proof(c) = &evidence {
            let model = match model {
                MemoryModel::Sc => MemoryModel::Tso,
                MemoryModel::Tso | MemoryModel::Pso => MemoryModel::Sc,
            };
            let of_another = Certificate::Returning(Returning { model, ..c.clone() });
            let said = audit_live(&task, &of_another, &Control::unlimited());
            assert!(said.is_err(), "seed {seed}");
        }
        assert_eq!(together(&part, &apart(&part)), part);
        for _ in 0..4 {
            let Some((what, damaged)) = damage(&part, &mut rng) else {
                continue;
            };
            match audit(Some(damaged)) {
                Err(_) => refused += 1,
                Ok(_) => panic!("seed {seed}, {model}: {what} was not noticed"),
            }
        }
    }
}
