//! The benchmark of the explicit search; `wattle bench explicit` prints the same table. With
//! `--hundred-million` it fills one store with 100 million states instead.

use wattle_memory::MemoryModel;
use wattle_search::bench::{HEAD, PROGRAMS, hundred_million, rows};

fn main() {
    if std::env::args().any(|a| a == "--hundred-million") {
        println!("{}", hundred_million());
        return;
    }
    println!("{HEAD}");
    for (name, text, ablations) in PROGRAMS {
        let program = wattle_syntax::wtl::parse(text).program;
        let Some(instance) = program.and_then(|p| p.instance().ok()) else {
            continue;
        };
        for model in MemoryModel::ALL {
            for row in rows(name, &instance, model, ablations) {
                println!("{row}");
            }
        }
    }
}
