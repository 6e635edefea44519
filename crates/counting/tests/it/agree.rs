//! Random programs: what is proved holds with one to five threads, by explicit search.
//!
//! Set `WATTLE_SEED` to try other programs, `WATTLE_PROGRAMS` to try more.

use crate::{audited, counted, questions, read};
use wattle_counting::Outcome;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_model::{Count, Counts, Program};
use wattle_random::{Loops, Rng, Shape, setting, trial};
use wattle_search::Explicit;

#[derive(Default, Debug)]
struct Tally {
    proved: u64,
    open: u64,
    /// Of what is not proved: a violation with so many threads.
    violated: u64,
}

/// The least number of threads with which explicit search finds something bad.
fn broken(program: &Program, model: MemoryModel, question: Option<usize>) -> Option<u32> {
    let open: Vec<&str> = (program.families.iter())
        .filter(|f| f.count == Count::Any)
        .map(|f| f.name.as_str())
        .collect();
    (1..=5).find(|n| {
        let counts = open.iter().map(|name| ((*name).to_string(), *n));
        let Ok(instance) = program.instantiate(&Counts(counts.collect())) else {
            return false;
        };
        let task = Task {
            instance: &instance,
            model,
            question,
            deadlock: false,
        };
        let control = Control::unlimited().with_memory(Some(1 << 20));
        matches!(
            Explicit::default().run(&task, &control),
            Answer::Reached { .. }
        )
    })
}

fn disagreement(program: &Program, tally: &mut Tally) -> Option<String> {
    for model in MemoryModel::ALL {
        for q in questions(program) {
            match counted(program, model, q) {
                Outcome::Proved(certificate) => {
                    tally.proved += 1;
                    if let Err(e) = audited(program, model, q, &certificate) {
                        return Some(format!("{model}, {q:?}: {e}"));
                    }
                    if let Some(n) = broken(program, model, q) {
                        return Some(format!("{model}, {q:?}: violated with {n} threads"));
                    }
                }
                Outcome::Open(_) | Outcome::Hard(_) | Outcome::Stopped(_) => {
                    tally.open += 1;
                    tally.violated += u64::from(broken(program, model, q).is_some());
                }
            }
        }
    }
    None
}

fn shape() -> Shape {
    Shape {
        threads: 2,
        statements: 4,
        regions: 2,
        registers: 2,
        greatest: 1,
        arrays: false,
        wraps: false,
        any: false,
        locks: false,
        crowd: true,
        ..Shape::default()
    }
}

fn agree(shape: &Shape, programs: u64, salt: u64) {
    let (programs, tally) = trial(shape, programs, salt, |p, _, tally: &mut Tally| {
        disagreement(p, tally)
    });
    println!("{programs} programs: {tally:?}");
    assert!(tally.proved * 10 >= programs, "{tally:?}");
}

#[test]
fn acyclic() {
    agree(&shape(), 40, 0);
}

#[test]
fn with_loops() {
    let shape = Shape {
        statements: 3,
        registers: 1,
        loops: Loops::Any,
        ..shape()
    };
    agree(&shape, 30, 1 << 32);
}

#[test]
fn with_everything() {
    let shape = Shape {
        statements: 3,
        arrays: true,
        wraps: true,
        any: true,
        faults: true,
        loops: Loops::Fenced,
        ..shape()
    };
    agree(&shape, 30, 2 << 32);
}

/// Programs that count: additions, comparisons and stores around critical sections.
#[test]
fn counters() {
    let (seed, programs) = (setting("WATTLE_SEED", 1), setting("WATTLE_PROGRAMS", 60));
    let mut tally = Tally::default();
    for n in 0..programs {
        let mut rng = Rng::new(seed.wrapping_mul(7919).wrapping_add(n));
        let text = counter(&mut rng);
        if let Some(why) = disagreement(&read(&text), &mut tally) {
            panic!("{text}\n{why}");
        }
    }
    println!("{programs} programs: {tally:?}");
    assert!(
        tally.proved * 5 >= programs && tally.violated * 5 >= programs,
        "{tally:?}"
    );
}

fn counter(rng: &mut Rng) -> String {
    let first = rng.between(0, 2);
    let mut body = String::new();
    let (count, flag) = (["a", "b"], ["f", "g"]);
    for _ in 0..rng.between(1, 3) {
        body.push_str(&statement(rng, &count, &flag, 1));
    }
    let looped = rng.one_in(3);
    let (open, close) = if looped { ("loop { ", " }") } else { ("", "") };
    let property = match rng.below(5) {
        0 => "never p[i]@cs && p[j]@cs;",
        1 => "never p[i]@cs && p[j]@cs && p[k]@cs;",
        2 => "always a >= 0;",
        3 => "always a <= 2;",
        _ => "never p[i]@cs && f == 0;",
    };
    format!(
        "shared a = {first}, b, f: 0..2, g: 0..2;\n\
         thread p[*] {{ local r; {open}{body} cs: skip; {}{close} }}\n{property}",
        statement(rng, &count, &flag, 0)
    )
}

fn statement(rng: &mut Rng, count: &[&str], flag: &[&str], depth: u32) -> String {
    let (c, f) = (*rng.pick(count), *rng.pick(flag));
    let (k, v) = (rng.between(-2, 2), rng.between(0, 2));
    let op = *rng.pick(&["==", "!=", "<", "<=", ">", ">="]);
    let inside = match depth {
        0 => "skip;".to_string(),
        _ => statement(rng, count, flag, depth - 1),
    };
    match rng.below(10) {
        0 => format!("fetch_add({c}, {k}); "),
        1 => format!("r = fetch_add({c}, {k}); if r {op} {v} {{ stop; }} "),
        2 => format!("r = fetch_add({c}, {k}); if r {op} {v} {{ {inside} }} "),
        3 => format!(
            "if cas({c}, {v}, {}) {{ {inside} }} else {{ stop; }} ",
            v + k
        ),
        4 => format!("{f} = {v}; "),
        5 => format!("await {f} {op} {v}; "),
        6 => format!("r = {c}; if r {op} {v} {{ if cas({c}, r, r+{k}) {{ {inside} }} }} "),
        7 => format!("loop {{ r = {c}; if r {op} {v} {{ if cas({c}, r, r+{k}) {{ break; }} }} }} "),
        8 => format!("atomic {{ r = {c}; assume r {op} {v}; {c} = r + {k}; {f} = {v}; }} "),
        _ => format!("r = {f}; if r {op} {v} {{ {inside} }} "),
    }
    .replace("+-", "-")
}
