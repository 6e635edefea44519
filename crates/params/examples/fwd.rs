//! Explores small instances: `fwd MODEL N STATES FILE…`.

use wattle_memory::MemoryModel;
use wattle_params::forward::{Limits, explore};
use wattle_params::machine::{Candidates, Machine};

fn main() {
    let mut args = std::env::args().skip(1);
    let model = match args.next().as_deref() {
        Some("sc") => MemoryModel::Sc,
        Some("pso") => MemoryModel::Pso,
        _ => MemoryModel::Tso,
    };
    let n: u8 = args.next().and_then(|s| s.parse().ok()).unwrap_or(2);
    let states: usize = args.next().and_then(|s| s.parse().ok()).unwrap_or(10000);
    for file in args {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let Some(system) = wattle_syntax::cubicle::parse(&text).system else {
            continue;
        };
        let machine = Machine::new(&system, model, n);
        let limits = Limits {
            states,
            buffer: 8,
            depth: 1000,
            starts: 2000,
            walks: 0,
        };
        let e = explore(&machine, &Candidates::of(&system), limits, true, &|| false);
        println!(
            "{file}: {} states, complete {}, bad {:?}",
            e.states.len(),
            e.complete,
            e.bad.map(|b| b.1)
        );
    }
}
