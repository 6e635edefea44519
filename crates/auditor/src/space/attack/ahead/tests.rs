//! What lies ahead of a step's end lies ahead of its beginning.

use super::{Ahead, waits};
use wattle_model::instance::Address;
use wattle_random::{Loops, Shape, program};

#[test]
fn what_lies_ahead_is_found_round_every_loop() {
    let shape = Shape {
        threads: 2,
        statements: 8,
        loops: Loops::Any,
        ..Shape::default()
    };
    let mut begin = 0;
    for seed in 0..2000 {
        let Ok(instance) = program(seed, &shape).instance() else {
            continue;
        };
        let all = Ahead::of_all(&instance.threads);
        for (t, (thread, ahead)) in instance.threads.iter().zip(&all).enumerate() {
            let others = || (0..instance.threads.len()).filter(|u| *u != t);
            let steps = || others().flat_map(|u| &instance.threads[u].steps);
            let others_touch = |c: usize| {
                steps().any(|s| {
                    let place = s.action.place();
                    place.is_some_and(|p: &Address| p.extent().any(|d| c == d))
                })
            };
            for step in &thread.steps {
                let (from, to) = (step.source.index(), step.target.index());
                let stored = step.action.stored().map_or(0..0, Address::extent);
                let store = stored.clone().any(others_touch) && !thread.atomic[from];
                let begins = store && ahead.overtakes[to] || ahead.begins[to];
                assert!(!begins || ahead.begins[from], "seed {seed}");
                let overtakes = !waits(&step.action) && ahead.overtakes[to];
                assert!(!overtakes || ahead.overtakes[from], "seed {seed}");
                assert!(
                    ahead.touched[to].is_subset(&ahead.touched[from]),
                    "seed {seed}"
                );
                assert!(
                    ahead.written[to].is_subset(&ahead.written[from]),
                    "seed {seed}"
                );
                assert!(stored.into_iter().all(|c| ahead.written[from].contains(&c)));
                begin += usize::from(begins);
            }
        }
    }
    assert!(begin > 1000, "{begin}");
}
