//! Sessions, pools, caches and cores.

use crate::support::Gen;
use wattle_logic::*;

#[test]
fn a_query_is_answered_once_whatever_its_order() {
    let (x, y) = (Var(0), Var(1));
    let mut session = Session::new();
    assert!(session.check(&[lt(x, y), lt(y, x), ge(x, 0)]).is_unsat());
    let again = session.check(&[ge(x, 0), lt(y, x), lt(x, y)]);
    assert_eq!(again.core(), Some(&[1, 2][..]));
    assert!(session.check(&[ge(x, 0), lt(y, x)]).is_sat());
    let expected = Counters {
        queries: 3,
        sat: 1,
        unsat: 2,
        solver_calls: 2,
        cache_hits: 1,
        ..Counters::default()
    };
    assert_eq!(session.counters, expected);
    assert_eq!(
        session.counters.to_string(),
        "3 queries (1 sat, 2 unsat, 0 unknown): 2 solver calls, 0 pool hits, 1 cache hits"
    );
}

#[test]
fn names_do_not_matter_where_they_should_not() {
    let v = |n| Var(n);
    let mut session = Session::new().up_to_names();
    let query = |a, b, c| [lt(v(a), v(b)), eq(v(c), v(b)), ne(v(a), 3), le(v(c), v(a))];
    assert!(session.check(&query(0, 1, 2)).is_unsat());
    for (a, b, c) in [(2, 1, 0), (7, 3, 5), (1, 9, 4)] {
        let again = session.check(&query(a, b, c));
        assert_eq!(again.core(), Some(&[0, 1, 3][..]));
        let mut open = query(a, b, c).to_vec();
        open.truncate(3);
        let Answer::Sat(model) = session.check(&open) else {
            panic!("can be true");
        };
        assert!(open.iter().all(|f| f.eval(&model)));
    }
    // x < y < z and x < y, x < z are not the same.
    assert!(session.check(&[lt(v(0), v(1)), lt(v(1), v(2))]).is_sat());
    assert!(session.check(&[lt(v(0), v(1)), lt(v(0), v(2))]).is_sat());
    assert_eq!(session.counters.solver_calls, 4);
}

/// Variables that are alike, in many orders.
#[test]
fn symmetric_queries_are_one() {
    let mut session = Session::new().up_to_names();
    for order in [
        [0, 1, 2, 3],
        [3, 2, 1, 0],
        [1, 0, 3, 2],
        [2, 3, 0, 1],
        [0, 3, 2, 1],
    ] {
        let pairs = [(order[0], order[1]), (order[2], order[3])];
        let query = pairs.map(|(a, b)| lt(Var(a), Var(b)));
        assert!(session.check(&query).is_sat());
    }
    assert_eq!(session.counters.solver_calls, 1);
}

#[test]
fn cached_and_fresh_answers_agree() {
    agree(Session::new());
    agree(Session::new().up_to_names());
}

fn agree(mut session: Session) {
    for round in 0..2 {
        for seed in 0..500 {
            let mut g = Gen::new(seed);
            let mut query: Vec<Formula> = (0..3).map(|_| g.literal()).collect();
            if round == 1 {
                query.reverse();
            }
            let fresh = Native::new().check(&query);
            match session.check(&query) {
                Answer::Sat(m) => assert!(fresh.is_sat() && query.iter().all(|f| f.eval(&m))),
                Answer::Unsat(r) => {
                    let core: Vec<Formula> = r.core.iter().map(|&i| query[i].clone()).collect();
                    assert!(Native::new().check(&core).is_unsat());
                }
                Answer::Unknown(_) => assert!(matches!(fresh, Answer::Unknown(_))),
            }
        }
    }
    assert!(session.counters.cache_hits >= 500);
}

#[test]
fn pools_refute_without_a_solver() {
    let x = Var(0);
    let mut session = Session::new();
    let mut pool = Pool::with_capacity(2);
    assert!(
        !session
            .implies_with(&mut pool, &[ge(x, 0)], &ge(x, 10))
            .is_valid()
    );
    assert!(
        !session
            .implies_with(&mut pool, &[ge(x, 0)], &ge(x, 20))
            .is_valid()
    );
    assert_eq!(
        (session.counters.solver_calls, session.counters.pool_hits),
        (1, 1)
    );
    for k in 0..10 {
        pool.add([(x, Int::new(k))].into_iter().collect());
    }
    assert_eq!(pool.models().len(), 2);
}

#[test]
fn truth_tables_find_models_in_cubes() {
    let x = Var(0);
    let predicates: Vec<Formula> = (0..70).map(|k| ge(x, k)).collect();
    let mut table = TruthTable::new(predicates);
    for k in [5i64, 40, 69] {
        assert!(table.add([(x, Int::new(k))].into_iter().collect()));
    }
    assert!(
        !table.add([(x, Int::new(40))].into_iter().collect()),
        "the same truth values"
    );
    assert_eq!(table.find(&[(3, true), (30, false)]), Some(0));
    assert_eq!(table.find(&[(30, true), (66, false)]), Some(1));
    assert_eq!(table.find(&[(66, true)]), Some(2));
    assert_eq!(table.find(&[(4, false)]), None);
    assert_eq!(table.find(&[(66, false), (66, true)]), None);
    assert!(table.holds(1, 40) && !table.holds(1, 41));
}

#[test]
fn minimal_cores_are_minimal() {
    let mut tried = 0;
    for seed in 0..2000 {
        let mut g = Gen::new(seed);
        g.vars = 3;
        let query: Vec<Formula> = (0..8).map(|_| g.literal()).collect();
        let mut solver = Native::new();
        let Answer::Unsat(r) = solver.check(&query) else {
            continue;
        };
        tried += 1;
        let core = minimal_core(&mut solver, &query, &r.core);
        let pick = |skip: Option<usize>| -> Vec<Formula> {
            core.iter()
                .filter(|i| Some(**i) != skip)
                .map(|&i| query[i].clone())
                .collect()
        };
        assert!(solver.check(&pick(None)).is_unsat());
        for &i in &core {
            assert!(!solver.check(&pick(Some(i))).is_unsat());
        }
    }
    assert!(tried > 500);
}

#[test]
fn a_tiny_budget_is_unknown_and_never_wrong() {
    for seed in 0..2000 {
        let mut g = Gen::new(seed);
        let query: Vec<Formula> = (0..4).map(|_| g.formula(2)).collect();
        let limits = Limits {
            work: 1 + seed % 40,
            depth: 2,
        };
        let truth = Native::new().check(&query);
        match Native::with_limits(limits).check(&query) {
            Answer::Sat(m) => assert!(query.iter().all(|f| f.eval(&m))),
            Answer::Unsat(_) => assert!(truth.is_unsat()),
            Answer::Unknown(reason) => assert!(!reason.to_string().is_empty()),
        }
    }
}

/// A pigeonhole problem is hard for case splitting; told to stop, it ends at the next look up.
#[test]
fn a_query_ends_when_it_is_told_to() {
    let holes = 9;
    let pigeons = 0..=holes;
    let mut query: Vec<Formula> = pigeons
        .clone()
        .map(|p| or((0..holes).map(|h| eq(Var(p), i64::from(h)))))
        .collect();
    for p in pigeons.clone() {
        query.extend((0..p).map(|q| ne(Var(p), Var(q))));
    }
    let limits = Limits {
        work: u64::MAX,
        ..Limits::default()
    };
    let looks = std::cell::Cell::new(0);
    let goes_on = || looks.replace(looks.get() + 1) < 3;
    let answer = Native::with_limits(limits).check_while(&query, &goes_on);
    assert_eq!(looks.get(), 4);
    assert!(
        matches!(answer, Answer::Unknown(Reason::Stopped)),
        "{answer:?}"
    );
}

#[test]
fn hulls_refute_choices_without_splitting() {
    // x0 = 0, then 40 times +1 or +2: beyond 80 is out of reach.
    let step = |i: u32, k: i64| eq(Var(i + 1), Var(i) + k);
    let mut query = vec![eq(Var(0), 0)];
    query.extend((0..40).map(|i| or([step(i, 1), step(i, 2)])));
    query.push(gt(Var(40), 80));
    let Answer::Unsat(r) = Native::new().check(&query) else {
        panic!("out of reach")
    };
    proof::check(&query, r.proof.as_ref().expect("a proof")).expect("a valid proof");
    assert!(matches!(
        interpolants(&mut Native::new(), &query),
        Interpolation::Sequence(_)
    ));
}
