//! Our solver against trying all assignments of small boxes, with every proof
//! re-checked and every core really unsatisfiable.

use crate::support::Gen;
use wattle_logic::*;

/// A model of all formulas within the box `-size..=size`, by trying all.
pub fn brute_force(formulas: &[Formula], vars: u32, size: i64) -> Option<Model> {
    let mut values = vec![-size; vars as usize];
    loop {
        let model: Model = values
            .iter()
            .enumerate()
            .map(|(i, v)| (Var(i as u32), Int::new(*v)))
            .collect();
        if formulas.iter().all(|f| f.eval(&model)) {
            return Some(model);
        }
        let at = values.iter().position(|v| *v < size)?;
        values[at] += 1;
        values[..at].fill(-size);
    }
}

fn compare(query: &[Formula], vars: u32, size: i64) -> bool {
    let expected = brute_force(query, vars, size);
    let shown = || {
        query
            .iter()
            .map(|f| f.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    for strategy in [Strategy::Splitting, Strategy::Learning, Strategy::Mixed] {
        match Native::new().with_strategy(strategy).check(query) {
            Answer::Sat(model) => {
                assert!(expected.is_some(), "{strategy:?}: {}", shown());
                for f in query {
                    assert!(
                        f.eval(&model),
                        "{strategy:?}: {model} is no model of {}",
                        shown()
                    );
                }
            }
            Answer::Unsat(r) => {
                assert!(expected.is_none(), "{strategy:?}: {}", shown());
                let proof = r.proof.expect("our solver gives proofs");
                if let Err(e) = proof::check(query, &proof) {
                    panic!("{strategy:?}: {e}: {} by {proof:?}", shown());
                }
                refuse_without(query, &r.core, &proof);
                let core: Vec<Formula> = r.core.iter().map(|&i| query[i].clone()).collect();
                let again = Native::new().check(&core);
                assert!(
                    again.is_unsat(),
                    "{strategy:?}: core {:?} of {}: {again:?}",
                    r.core,
                    shown()
                );
            }
            Answer::Unknown(reason) => panic!("{strategy:?}: {reason}: {}", shown()),
        }
    }
    expected.is_some()
}

/// The proof must not go through once an assertion it needs is gone.
fn refuse_without(query: &[Formula], core: &[usize], proof: &proof::Proof) {
    for &i in core.iter().take(2) {
        let mut weaker = query.to_vec();
        weaker[i] = Formula::True;
        if Native::new().check(&weaker).is_sat() {
            assert!(proof::check(&weaker, proof).is_err());
        }
    }
}

fn run(count: u64, size: i64, make: impl Fn(&mut Gen) -> Vec<Formula>) {
    let (mut sat, mut unsat) = (0, 0);
    for seed in 0..count {
        let mut g = Gen::new(seed);
        g.vars = 3;
        let mut query = make(&mut g);
        query.extend(g.bounds(size));
        if compare(&query, g.vars, size) {
            sat += 1
        } else {
            unsat += 1
        }
    }
    assert!(
        sat * 20 > count && unsat * 20 > count,
        "a lopsided mix: {sat} sat, {unsat} unsat"
    );
}

#[test]
fn differences() {
    run(6000, 4, |g| {
        g.constant = 4;
        (0..3 + g.below(5)).map(|_| g.difference()).collect()
    });
}

#[test]
fn general_conjunctions() {
    run(8000, 5, |g| {
        (0..2 + g.below(4)).map(|_| g.literal()).collect()
    });
}

#[test]
fn equalities_with_large_coefficients() {
    run(4000, 5, |g| {
        g.coeff = 30;
        g.constant = 40;
        let mut query: Vec<Formula> = (0..1 + g.below(2)).map(|_| le(g.term(), 0)).collect();
        query.push(eq(g.term(), 0));
        query
    });
}

#[test]
fn boolean_structure() {
    run(6000, 4, |g| {
        (0..2 + g.below(3)).map(|_| g.formula(3)).collect()
    });
}

#[test]
fn a_wrong_proof_is_refused() {
    use wattle_logic::proof::{End, FactId, Proof};
    let (x, y) = (Var(0), Var(1));
    let query = [le(x, y), lt(y, x + 1)];
    let sum = |a: i64, b: i64| vec![(FactId(0), Int::new(a)), (FactId(1), Int::new(b))];
    for (a, b) in [(1, 1), (1, -1), (0, 1), (2, 1)] {
        assert!(proof::check(&query, &Proof::from(End::Farkas(sum(a, b)))).is_err());
    }
    let query = [le(x, y), lt(y, x)];
    assert!(proof::check(&query, &Proof::from(End::Farkas(sum(1, 1)))).is_ok());
    assert!(proof::check(&query[..1], &Proof::from(End::Farkas(sum(1, 1)))).is_err());
    assert!(proof::check(&query, &Proof::from(End::Absurd(FactId(0)))).is_err());
}
