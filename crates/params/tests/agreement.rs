//! Random families: `violated` for any number of threads is an explicit trace, and `holds` means
//! that one, two and three threads hold explicitly, under each memory model.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use wattle_evidence::{Control, audit_cubes};
use wattle_memory::MemoryModel;
use wattle_params::certificate::certificate;
use wattle_params::forward::{Limits, bad_run};
use wattle_params::machine::{Candidates, Machine};
use wattle_params::{Options, Outcome, check, replays};

/// A small system as text, so that a failure can be read and kept.
fn random_system(seed: u64) -> String {
    let mut r = SmallRng::seed_from_u64(seed);
    let locations = r.random_range(3..=4);
    let names: Vec<String> = (0..locations).map(|i| format!("L{i}")).collect();
    let turn = r.random_bool(0.3);
    let mut text = format!(
        "type loc = {}\narray PC[proc] : loc\narray R[proc] : bool\nweak var X : bool\nweak var Y : bool\nweak array A[proc] : bool\n",
        names.join(" | ")
    );
    if turn {
        text += "weak var T : proc\n";
    }
    text += "init (p) { PC[p] = L0 && R[p] = False && X = False && Y = False && A[p] = False }\n";
    let last = format!("L{}", locations - 1);
    text += &match r.random_range(0..6) {
        0 => format!("unsafe (p) {{ PC[p] = {last} && R[p] = True }}\n"),
        1 => format!("unsafe (p q) {{ PC[p] = {last} && p @ X = True && q @ Y = False }}\n"),
        2 => format!("unsafe (p) {{ PC[p] = {last} && p @ A[p] = False && X = True }}\n"),
        3 => format!("unsafe (p q) {{ PC[p] = {last} && PC[q] = {last} && R[p] = R[q] }}\n"),
        _ => format!("unsafe (p q) {{ PC[p] = {last} && PC[q] = {last} }}\n"),
    };
    let mut number = 0;
    for from in 0..locations {
        for _ in 0..r.random_range(1..=2) {
            number += 1;
            let to = if r.random_bool(0.6) && from + 1 < locations {
                from + 1
            } else {
                r.random_range(0..locations)
            };
            text += &random_transition(&mut r, number, from, to, turn);
        }
    }
    text
}

fn random_transition(
    r: &mut SmallRng,
    number: usize,
    from: usize,
    to: usize,
    turn: bool,
) -> String {
    let second = r.random_bool(0.3);
    let mut guard = vec![format!("PC[p] = L{from}")];
    let mut updates = vec![format!("PC[p] := L{to}")];
    let value = |r: &mut SmallRng| if r.random_bool(0.5) { "True" } else { "False" };
    let weak = |r: &mut SmallRng| match r.random_range(0..if second { 4 } else { 3 }) {
        0 => "X".to_string(),
        1 => "Y".to_string(),
        2 => "A[p]".to_string(),
        _ => "A[q]".to_string(),
    };
    match r.random_range(0..12) {
        0..=3 => updates.push(format!("{} := {}", weak(r), value(r))),
        4 | 5 => guard.push(format!("{} = {}", weak(r), value(r))),
        6 => updates.push(format!("R[p] := {}", weak(r))),
        7 => {
            guard.push(format!("{} = {}", weak(r), value(r)));
            updates.push(format!("{} := {}", weak(r), value(r)));
        }
        8 => guard.push(format!("forall_other j. A[j] = {}", value(r))),
        9 => {
            let (a, b) = (weak(r), weak(r));
            updates.push(format!("{a} := {}", value(r)));
            if a != b {
                updates.push(format!("{b} := {}", value(r)));
            }
        }
        10 => updates.push(match r.random_range(0..3) {
            0 => format!("A[j] := case | _ : {}", value(r)),
            1 => format!(
                "A[j] := case | j = p : {} | A[j] = {} : {}",
                value(r),
                value(r),
                value(r)
            ),
            _ => format!("A[j] := case | j = p : {} | _ : {}", value(r), value(r)),
        }),
        _ => {
            guard.push(format!("R[p] = {}", value(r)));
            updates.push(format!("R[p] := {}", value(r)));
        }
    }
    if turn && r.random_bool(0.3) {
        match r.random_range(0..3) {
            0 => guard.push("T = p".into()),
            1 if second => updates.push("T := q".into()),
            _ => updates.push("T := p".into()),
        }
    }
    if second && r.random_bool(0.3) {
        guard.push(if r.random_bool(0.5) {
            "p < q".into()
        } else {
            "q < p".into()
        });
    }
    if r.random_bool(0.25) {
        guard.insert(0, "fence()".into());
    }
    let q = if second { " q" } else { "" };
    format!(
        "transition t{number} ([p]{q})\nrequires {{ {} }}\n{{ {} }}\n",
        guard.join(" && "),
        updates.join("; ")
    )
}

/// Whether some run with so many threads is bad, as far as the limits let us see.
fn explicit(
    system: &wattle_model::array::ArraySystem,
    model: MemoryModel,
    threads: u8,
    states: usize,
) -> bool {
    let machine = Machine::new(system, model, threads);
    let mut candidates = Candidates::of(system);
    candidates.limit = 64;
    let limits = Limits {
        states,
        buffer: 4,
        depth: 40,
        starts: 64,
    };
    bad_run(&machine, &candidates, limits, &|| false).is_some()
}

fn agree(seeds: std::ops::Range<u64>, models: &[MemoryModel]) {
    let (mut holds, mut violated, mut open, mut spurious) = (0, 0, 0, 0);
    let slow = std::env::var_os("WATTLE_SLOW").is_some();
    for seed in seeds {
        let started = std::time::Instant::now();
        let text = random_system(seed);
        let parsed = wattle_syntax::cubicle::parse(&text);
        let Some(system) = parsed.system else {
            panic!("{text}\n{:?}", parsed.diagnostics);
        };
        for model in models {
            let guess = seed % 3 == 0;
            let options = Options {
                small_first: false,
                guess,
                plain_first: if guess { 0 } else { 400 },
                sampled: 60,
            };
            let budget = std::cell::Cell::new(0usize);
            let (outcome, _) = check(&system, *model, options, &|held| {
                budget.set(budget.get() + usize::from(held > 0));
                budget.get() > 60 || held > 200
            });
            match outcome {
                Outcome::Holds(cubes) => {
                    holds += 1;
                    if seed % 6 == 0 {
                        let cubes = certificate(&system, *model, &cubes);
                        let checked = audit_cubes(&system, *model, &cubes, &Control::unlimited());
                        assert!(checked.is_ok(), "seed {seed} {model} {checked:?}\n{text}");
                    }
                    for threads in 1..=3 {
                        let states = if threads == 3 { 1200 } else { 800 };
                        assert!(
                            !explicit(&system, *model, threads, states),
                            "seed {seed} {model} {threads} threads: holds is wrong\n{text}"
                        );
                    }
                }
                Outcome::Violated(run) => {
                    violated += 1;
                    assert!(
                        replays(&system, *model, &run),
                        "seed {seed} {model}: no run\n{text}"
                    );
                }
                Outcome::Undecided(why) => {
                    open += 1;
                    let exact = *model != MemoryModel::Pso && !text.contains("forall_other");
                    if exact && why.contains("no concrete run") {
                        spurious += 1;
                        println!("seed {seed} {model}: {why}\n{text}");
                    }
                }
                Outcome::Refused(u) => panic!("seed {seed}: {}\n{text}", u.message),
            }
            if slow && started.elapsed().as_millis() > 500 {
                println!("slow seed {seed} {model} {:?}", started.elapsed());
            }
        }
    }
    println!(
        "holds {holds}, violated {violated}, undecided {open}, of these inexact without a universal guard {spurious}"
    );
    assert_eq!(
        spurious, 0,
        "without universal guards the encoding of SC and TSO is exact"
    );
    assert!(open * 10 <= holds + violated, "too much is undecided");
}

#[test]
fn three_thousand_families_agree() {
    let count = std::env::var("WATTLE_FAMILIES")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(3000);
    agree(0..count, &MemoryModel::ALL);
}
