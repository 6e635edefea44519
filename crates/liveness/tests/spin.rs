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
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Demand, DemandKind, Fact, Instance};
use wattle_model::{Expr, Formula, RegisterId, Span};
use wattle_random::{Loops, Rng, Shape, program};

const FORMULAS: usize = 8;

fn register(t: usize, r: RegisterId) -> String {
    format!("r{t}_{}", r.index())
}

fn local(t: usize, e: &Expr<RegisterId>) -> String {
    let leaf = |r: &RegisterId, f: &mut std::fmt::Formatter<'_>| f.write_str(&register(t, *r));
    e.display(&leaf).to_string()
}

fn cell(place: &Address) -> Option<String> {
    match place {
        Address::Cell(c) => Some(format!("x{}", c.index())),
        Address::Computed { .. } => None,
    }
}

/// The program as processes whose places are variables, so that formulas can name them.
fn promela(instance: &Instance) -> Option<String> {
    let mut out = String::new();
    let value = |i: &wattle_model::instance::Initial| match i {
        wattle_model::instance::Initial::Value(v) => Some(*v),
        wattle_model::instance::Initial::Any => None,
    };
    for (i, c) in instance.cells.iter().enumerate() {
        writeln!(out, "int x{i} = {};", value(&c.init)?).ok()?;
    }
    for (t, thread) in instance.threads.iter().enumerate() {
        writeln!(out, "int l{t} = {};", thread.entry.index()).ok()?;
        for (r, given) in thread.registers.iter().enumerate() {
            writeln!(out, "int r{t}_{r} = {};", value(&given.init)?).ok()?;
        }
    }
    for (t, thread) in instance.threads.iter().enumerate() {
        writeln!(out, "active proctype p{t}() {{ do").ok()?;
        for step in &thread.steps {
            let (guard, effect) = match &step.action {
                Action::Skip | Action::Fence(_) => ("true".to_string(), String::new()),
                Action::Assign { register: r, value } => (
                    "true".into(),
                    format!("{} = {};", register(t, *r), local(t, value)),
                ),
                Action::Assume(e) => (local(t, e), String::new()),
                Action::Load { register: r, place } => (
                    "true".into(),
                    format!("{} = {};", register(t, *r), cell(place)?),
                ),
                Action::Store { place, value } => (
                    "true".into(),
                    format!("{} = {};", cell(place)?, local(t, value)),
                ),
                Action::Havoc { .. }
                | Action::Assert { .. }
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Lock
                | Action::Unlock => return None,
            };
            let (from, to) = (step.source.index(), step.target.index());
            writeln!(
                out,
                ":: d_step {{ (l{t} == {from} && ({guard})) -> {effect} l{t} = {to}; }}"
            )
            .ok()?;
        }
        // A thread without steps blocks at once.
        writeln!(out, ":: d_step {{ (false) -> skip }}\nod }}").ok()?;
    }
    // With `-f` Spin does not repeat the last state of a run that has come to its end; this process does.
    writeln!(out, "active proctype end() {{ do :: timeout -> skip od }}").ok()?;
    // Casts and choices are written differently there.
    let plain = !["?", "u1(", "u2(", "i1("].iter().any(|s| out.contains(s));
    plain.then_some(out)
}

fn spin_formula(f: &Formula<Expr<Fact>>) -> String {
    let sub = spin_formula;
    match f {
        Formula::Now(e) => {
            let leaf = |fact: &Fact, f: &mut std::fmt::Formatter<'_>| match fact {
                Fact::Cell(c) => write!(f, "x{}", c.index()),
                Fact::Register(t, r) => f.write_str(&register(t.index(), *r)),
                Fact::At(t, at) => {
                    let each: Vec<String> = at
                        .iter()
                        .map(|l| format!("l{} == {}", t.index(), l.index()))
                        .collect();
                    write!(f, "({})", each.join(" || "))
                }
                Fact::CellAt { .. } | Fact::Seen(..) => f.write_str("false"),
            };
            format!("({})", e.display(&leaf))
        }
        Formula::Not(f) => format!("(!{})", sub(f)),
        Formula::And(f, g) => format!("({} && {})", sub(f), sub(g)),
        Formula::Or(f, g) => format!("({} || {})", sub(f), sub(g)),
        Formula::Implies(f, g) => format!("({} -> {})", sub(f), sub(g)),
        Formula::Globally(f) => format!("([] {})", sub(f)),
        Formula::Finally(f) => format!("(<> {})", sub(f)),
        Formula::Until(f, g) => format!("({} U {})", sub(f), sub(g)),
        Formula::Release(f, g) => format!("({} V {})", sub(f), sub(g)),
        Formula::WeakUntil(f, g) => format!("({} W {})", sub(f), sub(g)),
    }
}

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
        let Some(mut text) = promela(&instance) else {
            continue;
        };
        let mut rng = Rng::new(seed);
        let formulas: Vec<_> = (0..FORMULAS)
            .map(|_| formula(&mut rng, &instance, 2))
            .collect();
        for (i, f) in formulas.iter().enumerate() {
            writeln!(text, "ltl f{i} {{ {} }}", spin_formula(f)).unwrap();
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
