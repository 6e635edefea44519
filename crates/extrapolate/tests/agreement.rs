//! Both engines for integers against `explicit` on random programs with small ranges, under all three
//! models: every run is replayed, every certificate audited.

mod support;

use support::{decided, question};
use wattle_evidence::{Control, Engine};
use wattle_extrapolate::Extrapolate;
use wattle_memory::MemoryModel;
use wattle_predicates::Cegar;
use wattle_random::{Loops, Shape, setting};
use wattle_search::Explicit;

fn shape(n: u64, unfenced: u64) -> Shape {
    Shape {
        threads: 2,
        statements: if n.is_multiple_of(3) { 4 } else { 3 },
        registers: 2,
        greatest: 2,
        wraps: false,
        faults: n.is_multiple_of(4),
        loops: match n % 5 {
            n if n < unfenced => Loops::Any,
            3 => Loops::Fenced,
            _ => Loops::None,
        },
        ..Shape::default()
    }
}

/// Compares the engine with `explicit` on as many programs as are asked for; programs that one of the
/// two refuses do not count. Of five, so many have loops that may store without a fence.
fn agrees<E: Engine>(unfenced: u64, engine: impl Fn(u64) -> E) {
    let seed = setting("WATTLE_SEED", 1);
    let wanted = setting("WATTLE_PROGRAMS", 5_000);
    // By the engine's own account, the same on every machine.
    let control = Control::unlimited().with_memory(Some(4 << 20));
    let (mut programs, mut both, mut reached, mut open) = (0, 0, 0, 0);
    let mut n = 0;
    while programs < wanted && n < 3 * wanted {
        let program = wattle_random::program(seed.wrapping_mul(1_000_003) + n, &shape(n, unfenced));
        let engine = engine(n);
        n += 1;
        let Ok(instance) = program.instance() else {
            continue;
        };
        let mut compared = false;
        for model in MemoryModel::ALL {
            let task = question(&instance, model);
            let what = || {
                let text = wattle_model::print::to_wtl(&program);
                format!(
                    "{}, seed {seed}, program {}, {model}\n{text}",
                    engine.name(),
                    n - 1
                )
            };
            if engine.accepts(&task).is_err() || Explicit::default().accepts(&task).is_err() {
                continue;
            }
            let mine = decided(&task, &engine.run(&task, &control), &what);
            let theirs = Explicit::default().run(&task, &control).settles(&task);
            match (mine, theirs) {
                (Some(a), Some(b)) => {
                    assert_eq!(a, b, "explicit disagrees: {}", what());
                    compared = true;
                    both += 1;
                    reached += u64::from(a);
                }
                _ => open += 1,
            }
        }
        programs += u64::from(compared);
    }
    println!(
        "seed {seed}: {programs} programs compared, {both} tasks decided by both ({reached} reached), \
         {open} open"
    );
    assert!(programs >= wanted, "too few are decided: {programs}");
}

#[test]
fn cegar_agrees_with_explicit() {
    // Buffers are blurred as soon as they can hold two stores, the oldest or the newest exact.
    agrees(2, |n| Cegar {
        most_entries: 2,
        most_exact: if n.is_multiple_of(2) { 1 } else { 4 },
        most_rounds: 60,
        hunt: 0,
        newest: n.is_multiple_of(4),
        keep: 1,
        local: (n % 3) as usize,
        templates: n.is_multiple_of(3),
        few: n % 5,
    });
}

#[test]
fn extrapolate_agrees_with_explicit() {
    agrees(1, |_| Extrapolate {
        cube_size: 2,
        most_entries: 2,
        most_rounds: 8,
        ..Extrapolate::default()
    });
}
