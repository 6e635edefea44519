//! Interpolants of random traces. Every sequence handed out has been verified
//! already; here it is verified again, and giving up must be rare.

use crate::brute_force::brute_force;
use crate::support::Gen;
use wattle_logic::*;

fn run(count: u64, may_give_up: usize, make: impl Fn(&mut Gen) -> Vec<Formula>) {
    let (mut sequences, mut feasible, mut unknown) = (0, 0, 0);
    for seed in 0..count {
        let trace = make(&mut Gen::new(seed));
        match interpolants(&mut Native::new(), &trace) {
            Interpolation::Sequence(sequence) => {
                sequences += 1;
                assert!(verify_interpolants(&mut Native::new(), &trace, &sequence));
                match weak_interpolants(&mut Native::new(), &trace) {
                    Interpolation::Sequence(weak) => {
                        assert!(verify_interpolants(&mut Native::new(), &trace, &weak));
                    }
                    Interpolation::Feasible(_) => panic!("the trace is infeasible"),
                    Interpolation::Unknown(_) => unknown += 1,
                }
            }
            Interpolation::Feasible(model) => {
                feasible += 1;
                assert!(trace.iter().all(|f| f.eval(&model)));
            }
            Interpolation::Unknown(_) => unknown += 1,
        }
    }
    assert!(
        sequences * 10 > count as usize,
        "{sequences} sequences, {feasible} feasible"
    );
    assert!(unknown <= may_give_up, "{unknown} traces without an answer");
}

/// Step `i` of a trace speaks of variables `i..i + 3`.
fn windowed(g: &mut Gen, steps: usize, mut step: impl FnMut(&mut Gen) -> Formula) -> Vec<Formula> {
    g.vars = 3;
    let shift = |f: Formula, by: u32| f.rename(&|v| Var(v.0 + by));
    (0..steps)
        .map(|i| shift(and([step(g), step(g)]), i as u32))
        .collect()
}

#[test]
fn traces_of_differences() {
    run(3000, 0, |g| {
        g.constant = 3;
        let steps = 2 + g.below(5);
        windowed(g, steps, |g| g.difference())
    });
}

#[test]
fn traces_of_linear_literals() {
    run(3000, 30, |g| {
        let steps = 2 + g.below(3);
        windowed(g, steps, |g| g.literal())
    });
}

#[test]
fn traces_with_boolean_structure() {
    run(1500, 15, |g| {
        let steps = 2 + g.below(3);
        windowed(g, steps, |g| g.formula(2))
    });
}

#[test]
fn a_loop_unrolled() {
    // x = 0; y = 0; three times (x += 1; y += 1); x != y
    let mut names = Symbols::new();
    let xs: Vec<Var> = (0..4).map(|i| names.var(&format!("x{i}"))).collect();
    let ys: Vec<Var> = (0..4).map(|i| names.var(&format!("y{i}"))).collect();
    let mut trace = vec![and([eq(xs[0], 0), eq(ys[0], 0)])];
    for i in 0..3 {
        trace.push(and([eq(xs[i + 1], xs[i] + 1), eq(ys[i + 1], ys[i] + 1)]));
    }
    trace.push(ne(xs[3], ys[3]));
    let Interpolation::Sequence(sequence) = interpolants(&mut Native::new(), &trace) else {
        panic!("the trace is infeasible");
    };
    let shown: Vec<String> = sequence
        .iter()
        .map(|f| f.display(&names).to_string())
        .collect();
    assert_eq!(shown, ["x0 == y0", "x1 == y1", "x2 == y2", "x3 == y3"]);
}

#[test]
fn parity_needs_divisibility() {
    let (x, y, z) = (Var(0), Var(1), Var(2));
    let trace = [eq(x, y * 2), eq(x, z * 2 + 1)];
    let Interpolation::Sequence(sequence) = interpolants(&mut Native::new(), &trace) else {
        panic!("the trace is infeasible");
    };
    assert_eq!(sequence, [divides(2, x)]);
}

#[test]
fn projection_is_exact() {
    let (size, mut done) = (3, 0);
    for seed in 0..1500 {
        let mut g = Gen::new(seed);
        g.vars = 3;
        let x = Var(0);
        let formula = and([g.formula(2), g.formula(1), le(x, size), ge(x, -size)]);
        let Some(projected) = project(&formula, &[x].into()) else {
            continue;
        };
        done += 1;
        assert!(!projected.mentions(x));
        for (a, b) in (-4..=4).flat_map(|a| (-4..=4).map(move |b| (a, b))) {
            let fixed = formula
                .assign(Var(1), &Term::constant(a))
                .assign(Var(2), &Term::constant(b));
            let model: Model = [(Var(1), Int::new(a)), (Var(2), Int::new(b))]
                .into_iter()
                .collect();
            let expected = brute_force(&[fixed], 1, size).is_some();
            assert_eq!(
                projected.eval(&model),
                expected,
                "{formula} projected to {projected} at {model}"
            );
        }
    }
    assert!(done > 1400, "only {done} projections");
}

#[test]
fn weak_interpolants_keep_what_matters() {
    // x = 5; y = x + 2; y < 0
    let (x, y) = (Var(0), Var(1));
    let trace = [eq(x, 5), eq(y, x + 2), lt(y, 0)];
    let read = |outcome| match outcome {
        Interpolation::Sequence(s) => s.iter().map(Formula::to_string).collect::<Vec<_>>(),
        other => panic!("the trace is infeasible: {other:?}"),
    };
    assert_eq!(
        read(interpolants(&mut Native::new(), &trace)),
        ["x0 >= 5", "x1 >= 7"]
    );
    assert_eq!(
        read(weak_interpolants(&mut Native::new(), &trace)),
        ["x0 >= -2", "x1 >= 0"]
    );
}
