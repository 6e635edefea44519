//! Compares our verdicts with Z3's on random queries of several shapes:
//!
//!     cargo run --release -p wattle-logic --example second_opinion -- [count] [seed]
//!
//! Every proof is re-checked and every model evaluated on the way. Ends with
//! exit code 1 on the first mismatch.

#[path = "../tests/properties/support.rs"]
mod support;

use std::process::ExitCode;
use support::Gen;
use wattle_logic::*;

const SHAPES: [&str; 6] = [
    "differences",
    "linear",
    "large coefficients",
    "boolean structure",
    "bounded box",
    "huge constants",
];

fn query(shape: usize, seed: u64) -> Vec<Formula> {
    let mut g = Gen::new(seed);
    match shape {
        0 => {
            g.vars = 2 + g.below(5) as u32;
            g.constant = 5;
            let mut q: Vec<Formula> = (0..3 + g.below(8)).map(|_| g.difference()).collect();
            q.extend((0..g.below(3)).map(|_| not(&g.difference())));
            q
        }
        1 => {
            g.vars = 2 + g.below(4) as u32;
            (0..2 + g.below(6)).map(|_| g.literal()).collect()
        }
        2 => {
            g.coeff = 50;
            g.constant = 1000;
            (0..2 + g.below(4)).map(|_| g.literal()).collect()
        }
        3 => (0..2 + g.below(4)).map(|_| g.formula(3)).collect(),
        4 => {
            let mut q: Vec<Formula> = (0..3 + g.below(5)).map(|_| g.literal()).collect();
            q.extend(g.bounds(10));
            q
        }
        _ => {
            g.coeff = 300;
            g.constant = 1 << 62;
            (0..2 + g.below(3))
                .map(|_| {
                    if g.below(2) == 0 {
                        le(g.term(), 0)
                    } else {
                        eq(g.term(), 0)
                    }
                })
                .collect()
        }
    }
}

/// `Some(true)` satisfiable, `Some(false)` not; panics on an answer that is not
/// what it promises.
fn ours(q: &[Formula], strategy: Strategy) -> Option<bool> {
    match Native::new().with_strategy(strategy).check(q) {
        Answer::Sat(model) => {
            assert!(
                q.iter().all(|f| f.eval(&model)),
                "a model that is none: {}",
                to_smt2(q)
            );
            Some(true)
        }
        Answer::Unsat(r) => {
            let proof = r
                .proof
                .unwrap_or_else(|| panic!("no proof: {}", to_smt2(q)));
            if let Err(e) = proof::check(q, &proof) {
                panic!("{e}: {}", to_smt2(q));
            }
            Some(false)
        }
        Answer::Unknown(_) => None,
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse::<u64>().ok());
    let count = args.next().unwrap_or(100_000);
    let first_seed = args.next().unwrap_or(0);
    let mut z3 = match Z3::start(200) {
        Ok(z3) => z3,
        Err(e) => {
            eprintln!("z3 does not start: {e}");
            return ExitCode::from(2);
        }
    };
    println!("{count} queries from seed {first_seed}");
    for (shape, name) in SHAPES.iter().enumerate() {
        // The last shape is slow for Z3, which often gives up on it.
        let n = if shape + 1 == SHAPES.len() {
            count / 100
        } else {
            count / 5
        };
        let queries: Vec<Vec<Formula>> = (first_seed..first_seed + n)
            .map(|s| query(shape, s))
            .collect();
        let started = std::time::Instant::now();
        let mine: Vec<Option<bool>> = queries.iter().map(|q| ours(q, Strategy::Mixed)).collect();
        let our_time = started.elapsed();
        let started = std::time::Instant::now();
        let theirs = match z3.verdicts(&queries) {
            Ok(v) => v,
            Err(e) => {
                eprintln!("z3 failed: {e}");
                return ExitCode::from(2);
            }
        };
        let their_time = started.elapsed();
        for (q, a) in queries.iter().zip(&mine) {
            let b = ours(q, Strategy::Learning);
            if a.is_some() && b.is_some() && *a != b {
                println!(
                    "verdict mismatch between strategies: {a:?} and {b:?}\n{}",
                    to_smt2(q)
                );
                return ExitCode::FAILURE;
            }
        }
        for ((q, a), b) in queries.iter().zip(&mine).zip(&theirs) {
            if a.is_some() && b.is_some() && a != b {
                println!("verdict mismatch: ours {a:?}, z3 {b:?}\n{}", to_smt2(q));
                return ExitCode::FAILURE;
            }
        }
        let tally = |v: &[Option<bool>], what| v.iter().filter(|x| **x == what).count();
        println!(
            "{name}: {n} queries, {} sat, {} unsat; unknown: ours {}, z3 {}; ours {:.1} µs, z3 {:.1} µs per query",
            tally(&theirs, Some(true)),
            tally(&theirs, Some(false)),
            tally(&mine, None),
            tally(&theirs, None),
            our_time.as_secs_f64() * 1e6 / n as f64,
            their_time.as_secs_f64() * 1e6 / n as f64,
        );
    }
    println!("no mismatch");
    ExitCode::SUCCESS
}
