//! Microseconds per query of our solver, on the queries engines ask:
//!
//!     cargo run --release -p wattle-logic --example query_speed

use std::hint::black_box;
use std::time::Instant;
use wattle_logic::*;

fn v(i: u32) -> Var {
    Var(i)
}

/// Runs `query` for about a third of a second and prints what one run takes.
fn time(name: &str, query: &[Formula]) {
    let mut solver = Native::new();
    let answer = solver.check(query);
    let verdict = match &answer {
        Answer::Sat(_) => "sat".to_owned(),
        Answer::Unsat(r) => format!("unsat, core {}", r.core.len()),
        Answer::Unknown(reason) => format!("unknown: {reason}"),
    };
    // The best of some batches: other work on the machine only ever adds.
    let mut micros = f64::INFINITY;
    let begun = Instant::now();
    while begun.elapsed().as_millis() < 300 {
        let started = Instant::now();
        let mut runs = 0u32;
        while runs == 0 || started.elapsed().as_micros() < 200 {
            black_box(solver.check(black_box(query)));
            runs += 1;
        }
        micros = micros.min(started.elapsed().as_secs_f64() * 1e6 / f64::from(runs));
    }
    println!(
        "{micros:10.2} µs  {name} ({} assertions, {verdict})",
        query.len()
    );
}

/// `n` variables in `0..range`, all different.
fn distinct(n: u32, range: i64) -> Vec<Formula> {
    let mut q: Vec<Formula> = (0..n)
        .flat_map(|i| [ge(v(i), 0), lt(v(i), range)])
        .collect();
    for i in 0..n {
        for j in 0..i {
            q.push(ne(v(i), v(j)));
        }
    }
    q
}

/// `x = 0; y = 0; n times (x += 1 or x += 2; y += 2); x > y`.
fn unrolled(n: u32) -> Vec<Formula> {
    let (x, y) = (|i| v(2 * i), |i| v(2 * i + 1));
    let mut trace = vec![and([eq(x(0), 0), eq(y(0), 0)])];
    for i in 0..n {
        let step = if i % 2 == 0 { 1 } else { 2 };
        trace.push(and([eq(x(i + 1), x(i) + step), eq(y(i + 1), y(i) + 2)]));
    }
    trace.push(gt(x(n), y(n)));
    trace
}

/// `n` choices of `xᵢ₊₁ = xᵢ + 1` or `xᵢ₊₁ = xᵢ + 2`, and a total out of reach.
fn choices(n: u32) -> Vec<Formula> {
    let step = |i: u32, k: i64| eq(v(i + 1), v(i) + k);
    let mut q = vec![eq(v(0), 0)];
    q.extend((0..n).map(|i| or([step(i, 1), step(i, 2)])));
    q.push(gt(v(n), 2 * i64::from(n)));
    q
}

fn main() {
    let (x, y, z, w) = (v(0), v(1), v(2), v(3));
    time(
        "differences, unsat",
        &[le(x, y), lt(y, z), eq(z, x + 1), ge(x, 0), gt(y, x)],
    );
    time(
        "differences, sat",
        &[le(x, y), lt(y, z), eq(z, x + 1), ge(x, 0), le(y, 7)],
    );
    time(
        "five literals, linear, unsat",
        &[le(x + y, z), ge(x, 1), ge(y, z), eq(w, x * 2), le(w, 9)],
    );
    time(
        "five literals, linear, sat",
        &[le(x + y, z), ge(x, 1), lt(y, z), eq(w, x * 2), le(w, 9)],
    );
    time(
        "five literals, one disequality",
        &[le(x, y), ge(x, y), ne(x, y), ge(z, 0), eq(w, z + 1)],
    );
    time("parity", &[eq(x, y * 2), eq(x, z * 2 + 1)]);
    time(
        "a cut",
        &[
            ge(x * 3 + y * 6, z + 1),
            le(x * 3 + y * 6, z + 2),
            eq(z, w * 3),
        ],
    );
    time("seven distinct of seven", &distinct(7, 7));
    time("five distinct of four", &distinct(5, 4));
    time("eight choices", &choices(8));
    time("a trace of 10 steps", &unrolled(10));
    time("a trace of 50 steps", &unrolled(50));
    time("a trace of 200 steps", &unrolled(200));

    for n in [10, 50, 200] {
        let trace = unrolled(n);
        let started = Instant::now();
        let outcome = interpolants(&mut Native::new(), &trace);
        let micros = started.elapsed().as_secs_f64() * 1e6;
        let what = match outcome {
            Interpolation::Sequence(s) => format!("{} interpolants, verified", s.len()),
            Interpolation::Feasible(_) => "feasible".to_owned(),
            Interpolation::Unknown(reason) => reason.to_string(),
        };
        println!("{micros:10.2} µs  interpolants of {n} steps ({what})");
    }
}
