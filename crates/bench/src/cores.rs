//! One search on one worker and on several, side by side.

use wattle_memory::MemoryModel;
use wattle_search::bench::{CORES, CORES_HEAD, cores_rows};

/// Gives the table line by line, as it is measured.
pub fn run(line: &mut dyn FnMut(&str)) {
    line(CORES_HEAD);
    for (name, text) in CORES {
        let program = wattle_syntax::wtl::parse(text).program;
        let Some(instance) = program.and_then(|p| p.instance().ok()) else {
            continue;
        };
        for model in [MemoryModel::Sc, MemoryModel::Tso] {
            for row in cores_rows(name, &instance, model) {
                line(&row);
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
