//! The benchmark of the explicit search; `wattle bench explicit` prints the same table.

use wattle_memory::MemoryModel;
use wattle_search::bench::{HEAD, PROGRAMS, rows};

fn main() {
    println!("{HEAD}");
    for (name, text) in PROGRAMS {
        let program = wattle_syntax::wtl::parse(text).program;
        let Some(instance) = program.and_then(|p| p.instance().ok()) else {
            continue;
        };
        for model in [MemoryModel::Sc, MemoryModel::Tso] {
            for row in rows(name, &instance, model) {
                println!("{row}");
            }
        }
    }
}
