//! One search on one worker and on several, side by side.

use crate::sink::Sink;
use serde_json::json;
use wattle_memory::MemoryModel;
use wattle_search::bench::{CORES, CORES_HEAD, CORES_STATES, cores_rows};

/// Gives the table line by line, as it is measured.
pub fn run(hundred_million: bool, out: &mut Sink<'_>) {
    out.line(CORES_HEAD);
    let states = match hundred_million {
        true => 100_000_000,
        false => CORES_STATES,
    };
    for (name, text) in CORES {
        let program = wattle_syntax::wtl::parse(text).program;
        let Some(instance) = program.and_then(|p| p.instance().ok()) else {
            continue;
        };
        for model in [MemoryModel::Sc, MemoryModel::Tso] {
            for row in cores_rows(name, &instance, model, states) {
                out.row(
                    &row,
                    json!({ "suite": "cores", "file": name, "model": model, "text": row }),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_programs_parse() {
        for (name, text) in wattle_search::bench::CORES {
            let program = wattle_syntax::wtl::parse(text).program;
            let instance = program.and_then(|p| p.instance().ok());
            assert!(instance.is_some(), "{name}");
        }
    }
}
