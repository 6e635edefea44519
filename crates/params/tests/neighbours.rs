//! Proofs put to systems that they are not about: one word of a random system is changed, and where a few
//! threads then break it the auditor must refuse the proof, by cubes or by views. The same for programs and
//! the translations of others.

mod random;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use random::random_system;
use wattle_auditor::{Solvers, audit_system};
use wattle_evidence::Control;
use wattle_evidence::certificate::Certificate;
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_params::certificate::certificate;
use wattle_params::compile::Compiled;
use wattle_params::forward::{Limits, bad_run};
use wattle_params::machine::{Candidates, Machine};
use wattle_params::pairs::prove;
use wattle_params::pairs::saturate::Reach;
use wattle_params::{Options, Outcome, Proof, check};

/// A word, and what stands there in a neighbour.
const WORDS: [(&str, &str); 14] = [
    ("True", "False"),
    ("False", "True"),
    (" && fence()", ""),
    ("forall_other j. A[j] = True", "X = X"),
    ("forall_other j. A[j] = False", "Y = Y"),
    ("[p] = ", "[q] = "),
    ("A[q]", "A[p]"),
    ("A[p]", "X"),
    ("X", "Y"),
    ("Y", "X"),
    ("L1", "L2"),
    ("L0", "L1"),
    ("N + 1", "N"),
    ("p @ ", ""),
];

fn read(text: &str) -> Option<ArraySystem> {
    wattle_syntax::cubicle::parse(text).system
}

/// The text with one word changed.
fn neighbour(text: &str, r: &mut SmallRng) -> Option<String> {
    let (old, new) = WORDS[r.random_range(0..WORDS.len())];
    // What is declared stays, or the proof would be about something else.
    let body = text.find("init (")?;
    let at: Vec<usize> = text[body..].match_indices(old).map(|(i, _)| i).collect();
    let at = body + *at.get(r.random_range(0..at.len().max(1)))?;
    Some(format!("{}{new}{}", &text[..at], &text[at + old.len()..]))
}

fn breaks(system: &ArraySystem, model: MemoryModel) -> bool {
    (1..=3).any(|threads| {
        let machine = Machine::new(system, model, threads);
        let mut candidates = Candidates::of(system);
        candidates.limit = 16;
        let limits = Limits {
            states: 300,
            buffer: 3,
            depth: 30,
            starts: 16,
        };
        let run = bad_run(&machine, &candidates, limits, &|| false, &mut |_| {});
        run.bad.is_some()
    })
}

/// Proofs of a system by cubes and by views, as far as there are any.
fn proofs(system: &ArraySystem, model: MemoryModel) -> Vec<Certificate> {
    let options = Options {
        views: 0,
        ..Options::default()
    };
    let spent = std::cell::Cell::new(0);
    let (outcome, _) = check(system, model, options, &|held| {
        spent.set(spent.get() + usize::from(held > 0));
        spent.get() > 40 || held > 100
    });
    let cubes = match outcome {
        Outcome::Holds(proof) => Some(proof),
        Outcome::Violated(_) | Outcome::Undecided(_) | Outcome::Refused(_) => None,
    };
    let reach = Reach {
        views: 300,
        work: 3_000,
        precise: false,
        named: false,
        witness: None,
    };
    let compiled = Compiled::new(system, model).ok();
    let views = compiled.and_then(|c| prove(&c, reach, &|| false).ok());
    let all = cubes.into_iter().chain(views.map(Proof::Views));
    all.map(|p| certificate(system, model, &p)).collect()
}

#[test]
fn no_proof_is_taken_for_a_system_that_a_few_threads_break() {
    let (mut cubes, mut views, mut refused) = (0, 0, 0);
    let seeds = std::env::var("WATTLE_FAMILIES").ok();
    let seeds = seeds.and_then(|s| s.parse().ok()).unwrap_or(120);
    for seed in 0..seeds {
        let text = random_system(seed, usize::from(seed % 3 == 0));
        let Some(system) = read(&text) else {
            panic!("{text}")
        };
        let mut r = SmallRng::seed_from_u64(seed);
        let others: Vec<String> = (0..20).filter_map(|_| neighbour(&text, &mut r)).collect();
        for model in MemoryModel::ALL {
            let proofs = proofs(&system, model);
            for proof in &proofs {
                match proof {
                    Certificate::Views(_) => views += 1,
                    _ => cubes += 1,
                }
                let own = Control::unlimited();
                let taken = audit_system(&Solvers::own(), &system, model, proof, &own);
                assert!(taken.is_ok(), "seed {seed} {model}: {taken:?}\n{text}");
            }
            if proofs.is_empty() {
                continue;
            }
            for other in &others {
                let Some(system) = read(other).filter(|s| breaks(s, model)) else {
                    continue;
                };
                for proof in &proofs {
                    let all = Control::unlimited();
                    let taken = audit_system(&Solvers::own(), &system, model, proof, &all);
                    assert!(taken.is_err(), "seed {seed} {model}\n{text}\n{other}");
                    refused += 1;
                }
            }
        }
    }
    println!("{cubes} proofs by cubes, {views} by views, {refused} times refused");
    assert!(cubes > seeds / 2 && views > seeds / 4 && refused > seeds);
}
