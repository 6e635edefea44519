//! Runs `extrapolate` alone on files and prints what every boolean program took:
//! `cargo run --release -p wattle-extrapolate --example extrapolate -- tso,pso cubes FILE…`.

use std::time::{Duration, Instant};
use wattle_evidence::{Answer, Control, Task, audit};
use wattle_extrapolate::{Extrapolate, Method};
use wattle_memory::MemoryModel;

fn main() {
    let mut args = std::env::args().skip(1);
    let wanted = args.next().unwrap_or_default();
    let method = match args.next().as_deref() {
        Some("none") => Method::None,
        Some("predicates") => Method::Predicates,
        _ => Method::Cubes,
    };
    let engine = Extrapolate {
        method,
        fall_back: std::env::var("ONLY").is_err(),
        ..Extrapolate::default()
    };
    for file in args {
        let Ok(text) = std::fs::read_to_string(&file) else {
            println!("{file}: cannot be read");
            continue;
        };
        let program = match file.rsplit('.').next() {
            Some("rmm") => wattle_syntax::rmm::parse(&text).program,
            Some("bit") => wattle_syntax::bitchaku::parse(&text).program,
            _ => wattle_syntax::wtl::parse(&text).program,
        };
        let Some(Ok(instance)) = program.map(|p| p.instance()) else {
            println!("{file}: no instance");
            continue;
        };
        for model in MemoryModel::ALL {
            if !wanted.contains(model.keyword()) {
                continue;
            }
            let task = Task {
                instance: &instance,
                model,
                question: (!instance.questions.is_empty()).then_some(0),
                deadlock: false,
            };
            let seconds = Duration::from_secs(40);
            let control = Control::unlimited().with_timeout(Some(seconds));
            let started = Instant::now();
            let (answer, stages) = engine.explain(&task, &control);
            let took = started.elapsed().as_secs_f64();
            for s in &stages {
                let (b, c) = (&s.built, &s.checked);
                println!(
                    "    {:?} {:?} k={}: {} predicates, {} given cubes, {} implications, {} calls, {:.3} s, {} cubes up to {}; {} states, {:.3} s, {}",
                    s.model,
                    s.method,
                    s.k,
                    b.predicates,
                    b.given_cubes,
                    b.implications,
                    b.solver_calls,
                    b.time.as_secs_f64(),
                    b.cubes,
                    b.largest,
                    c.states,
                    c.time.as_secs_f64(),
                    if s.proved { "proved" } else { "not proved" },
                );
            }
            let said = match answer {
                Answer::Reached { trace, .. } => format!("reached ({:?})", trace.end),
                Answer::Unreachable { certificate, .. } => {
                    let started = Instant::now();
                    let audited = audit::audit(&task, &certificate, &control);
                    let seconds = started.elapsed().as_secs_f64();
                    let what = certificate.describe();
                    format!("unreachable: {what}; audit {audited:?} {seconds:.2} s")
                }
                Answer::Bounded { limits, .. } => format!("bounded: {limits:?}"),
                Answer::Undecided { reason, .. } => format!("undecided: {reason:?}"),
            };
            println!("{file} {model}: {took:.2} s, {said}");
        }
    }
}
