//! Printing and parsing any program is the identity.

use wattle_model::print::to_wtl;
use wattle_model::program::Action;
use wattle_model::{Program, validate};
use wattle_random::{Loops, Shape, program, shrink, wild};
use wattle_syntax::wtl;

fn differs(p: &Program) -> bool {
    let again = wtl::parse(&to_wtl(p)).program;
    again.is_none_or(|q| q.without_spans() != p.without_spans())
}

fn check(seed: u64, p: &Program) {
    assert_eq!(validate(p), [], "seed {seed}");
    assert_eq!(p.canonical(), *p, "seed {seed}");
    if differs(p) {
        let small = shrink(p, differs);
        let text = to_wtl(&small);
        let parsed = wtl::parse(&text);
        panic!(
            "seed {seed}: printing and parsing changes this program:\n{text}\n{}\nafter:\n{}",
            parsed.render("printed.wtl", &text),
            parsed.program.map(|p| to_wtl(&p)).unwrap_or_default()
        );
    }
}

#[test]
fn wild_programs_round_trip() {
    for seed in 0..4000 {
        check(seed, &wild(seed));
    }
}

#[test]
fn runnable_programs_round_trip() {
    for loops in [Loops::None, Loops::Fenced, Loops::Any] {
        for faults in [false, true] {
            let shape = Shape {
                loops,
                faults,
                statements: 8,
                ..Shape::default()
            };
            for seed in 0..500 {
                check(seed, &program(seed, &shape));
            }
        }
    }
}

#[test]
fn shrinking_keeps_what_fails() {
    let fences = |p: &Program| {
        let steps = p.families.iter().flat_map(|f| &f.steps);
        steps
            .filter(|s| matches!(s.action, Action::Fence(_)))
            .count()
    };
    let seed = (0..).find(|s| fences(&program(*s, &Shape::default())) > 0);
    let p = program(seed.unwrap_or(0), &Shape::default());
    let small = shrink(&p, |q| fences(q) > 0);
    assert_eq!(small.families.len(), 1);
    assert_eq!(small.families[0].steps.len(), 1);
    assert!(small.regions.is_empty() && small.properties.is_empty());
}
