//! Counters as arrays of elements: random systems that count reach the same, written so, with few threads under
//! each memory model.

use wattle::cubicle::as_elements;
use wattle_memory::MemoryModel;
use wattle_model::array::{ArraySystem, CellType};
use wattle_params::forward::{Limits, bad_run};
use wattle_params::machine::{Candidates, Machine};
use wattle_random::Rng;

/// Threads that count up and down, by turns or nearly so, and look at the counter.
fn text(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut text = "type loc = L0 | L1 | L2 | L3
array PC[proc] : loc
array R[proc] : int
weak var C : int
weak var X : bool
init (p) { PC[p] = L0 && R[p] = 0 && C = 0 && X = False }
"
    .to_string();
    let last = rng.below(4);
    text += &match rng.below(5) {
        0 => format!("unsafe (p) {{ PC[p] = L{last} && C = 0 && p @ X = True }}\n"),
        1 => format!("unsafe (p) {{ PC[p] = L{last} && p @ C <> 0 }}\n"),
        2 => format!("unsafe (p q) {{ PC[p] = L{last} && PC[q] = L3 && 0 < C }}\n"),
        3 => format!("unsafe (p) {{ PC[p] = L{last} && C <= 0 }}\n"),
        _ => format!("unsafe (p q) {{ PC[p] = L{last} && PC[q] = L3 }}\n"),
    };
    // Whether a thread has counted at each place: mostly kept to.
    let has: Vec<bool> = (0..4).map(|l| l > 0 && !rng.one_in(3)).collect();
    for (number, from) in [0, 1, 2, 3, 0, 1, 2].into_iter().enumerate() {
        let to = rng.below(4);
        let (mut guard, mut updates) = (vec![format!("PC[p] = L{from}")], Vec::new());
        updates.push(format!("PC[p] := L{to}"));
        let wrong = rng.one_in(20);
        match (has[from] != wrong, has[to]) {
            (false, true) => updates.push("C := C + 1".into()),
            (true, false) => updates.push("C := C - 1".into()),
            _ => {
                if rng.one_in(3) {
                    updates.push("X := True".into());
                }
            }
        }
        let looks = ["C = 0", "C <> 0", "0 < C", "C < 1", "1 <= C", "X = False"];
        if rng.one_in(2) {
            guard.push((*rng.pick(&looks)).into());
        }
        if rng.one_in(4) {
            updates.push("R[p] := C".into());
        }
        if rng.one_in(5) {
            guard.push("fence()".into());
        }
        let (guard, updates) = (guard.join(" && "), updates.join("; "));
        text += &format!("transition t{number} ([p])\nrequires {{ {guard} }}\n{{ {updates} }}\n");
    }
    text
}

fn is_reached(system: &ArraySystem, model: MemoryModel, threads: u8) -> bool {
    let machine = Machine::new(system, model, threads);
    let limits = Limits {
        states: 100_000,
        buffer: 3,
        depth: 400,
        starts: 10,
    };
    let candidates = Candidates::of(system);
    let seen = bad_run(&machine, &candidates, limits, &|| false, &mut |_| {});
    seen.bad.is_some()
}

#[test]
fn counters_reach_the_same_as_elements() {
    let (mut written, mut reached) = (0, 0);
    for seed in 0..300 {
        let text = text(seed);
        let system = wattle_syntax::cubicle::parse(&text);
        let system = system
            .system
            .unwrap_or_else(|| panic!("{text}\n{:?}", system.diagnostics));
        let new = as_elements(&system);
        if new == system {
            continue;
        }
        written += 1;
        let counter = new
            .cells
            .iter()
            .find(|c| c.name == "C")
            .expect("it is there");
        assert_eq!((counter.arity, counter.ty), (1, CellType::Bool));
        for model in MemoryModel::ALL {
            for threads in 1..=3 {
                let [before, after] = [&system, &new].map(|s| is_reached(s, model, threads));
                assert_eq!(
                    before, after,
                    "seed {seed} {model} {threads}\n{text}\n{new}"
                );
                reached += usize::from(before);
            }
        }
    }
    assert!(
        written > 60 && reached > 60,
        "{written} written, {reached} reached"
    );
}
