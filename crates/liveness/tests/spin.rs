//! The engine against Spin on SC: random programs and formulas, with weak fairness and without.
//!
//! Skipped with a printed line where the programs `spin` and `gcc` are not on the search path.
//! `WATTLE_SPIN_PROGRAMS` tries another number of programs (of eight formulas each).

mod judge;

use judge::{Judge, formula};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use wattle_evidence::live::{Fairness, LiveTask};
use wattle_evidence::{Control, LiveAnswer};
use wattle_liveness::run;
use wattle_memory::MemoryModel;
use wattle_model::Span;
use wattle_model::instance::{Demand, DemandKind};
use wattle_random::{Loops, Rng, Shape, program};
use wattle_report::export::promela;

const FORMULAS: usize = 8;

/// Whether Spin finds a run that breaks the formula.
fn broken(directory: &Path, name: &str, fair: bool) -> bool {
    let mut pan = Command::new(directory.join("pan"));
    pan.current_dir(directory)
        .args(["-a", "-E", "-m200000", "-N", name]);
    if fair {
        pan.arg("-f");
    }
    let out = pan.output().expect("pan runs");
    let text = String::from_utf8_lossy(&out.stdout);
    let line = text
        .lines()
        .find(|l| l.contains("errors: "))
        .unwrap_or_else(|| panic!("{text}"));
    assert!(!text.contains("max search depth too small"), "{text}");
    !line.contains("errors: 0")
}

#[test]
fn spin_agrees() {
    let there = |p: &str, v: &str| Command::new(p).arg(v).output().is_ok();
    if !there("spin", "-V") || !there("gcc", "--version") {
        println!("skipped: `spin` (Debian's package of that name) and `gcc` are needed");
        return;
    }
    let shape = Shape {
        threads: 2,
        statements: 5,
        regions: 2,
        registers: 1,
        greatest: 1,
        arrays: false,
        loops: Loops::Any,
        atomics: false,
        locks: false,
        wraps: false,
        any: false,
        families: false,
        properties: false,
        ..Shape::default()
    };
    let wanted = wattle_random::setting("WATTLE_SPIN_PROGRAMS", 6);
    let scratch = std::env::temp_dir().join(format!("wattle-spin-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).expect("a scratch directory");
    let (mut programs, mut compared, mut bad, mut seed) = (0, 0, 0, 500_000);
    while programs < wanted {
        seed += 1;
        let mut instance = program(seed, &shape).instance().unwrap();
        if instance.threads.len() < 2 {
            continue;
        }
        let Ok(mut text) = promela::threads(&instance) else {
            continue;
        };
        // With `-f` Spin does not repeat the last state of a run that has come to its end; this process does.
        text.push_str("active proctype last() { do :: timeout -> skip od }\n");
        let mut rng = Rng::new(seed);
        let formulas: Vec<_> = (0..FORMULAS)
            .map(|_| formula(&mut rng, &instance, 2))
            .collect();
        for (i, f) in formulas.iter().enumerate() {
            let written = promela::formula(&instance, f, Span::NONE).expect("nothing is computed");
            writeln!(text, "ltl f{i} {{ {written} }}").unwrap();
            let kind = DemandKind::Formula(f.clone());
            let span = Span::NONE;
            instance.demands.push(Demand { kind, span });
        }
        let task = |demand: usize, fairness: Fairness| LiveTask {
            instance: &instance,
            model: MemoryModel::Sc,
            demand,
            fairness,
        };
        // Blocked assumptions mean that a run is none; Spin has them wait.
        if !Judge::new(&task(0, Fairness::None)).is_some_and(|j| !j.fault && !j.discards) {
            continue;
        }
        std::fs::write(scratch.join("model.pml"), &text).unwrap();
        let made = Command::new("spin")
            .current_dir(&scratch)
            .args(["-a", "model.pml"])
            .output()
            .unwrap();
        assert!(scratch.join("pan.c").exists(), "{text}\n{made:?}");
        let compiled = Command::new("gcc")
            .current_dir(&scratch)
            .args(["-w", "-O0", "-DNOREDUCE", "-o", "pan", "pan.c"])
            .status()
            .unwrap();
        assert!(compiled.success(), "{text}");
        programs += 1;
        for i in 0..FORMULAS {
            for (fair, fairness) in [(false, Fairness::None), (true, Fairness::Weak)] {
                let (answer, _) = run(&task(i, fairness), &Control::unlimited());
                let ours = match answer {
                    LiveAnswer::Broken(_) => true,
                    LiveAnswer::Holds(_) => false,
                    other => panic!("seed {seed}: {other:?}"),
                };
                let theirs = broken(&scratch, &format!("f{i}"), fair);
                assert_eq!(ours, theirs, "seed {seed}, f{i}, {fairness}:\n{text}");
                compared += 1;
                bad += u32::from(ours);
            }
        }
    }
    let _ = std::fs::remove_dir_all(&scratch);
    println!(
        "{programs} programs, {compared} comparisons with Spin, {bad} broken: no disagreement"
    );
}
