//! The explicit search beside the limit of its store and beside itself without its reductions.

use wattle_memory::MemoryModel;
use wattle_search::bench::{HEAD, Limit, PROGRAMS, hundred_million, rows};

/// Gives the table line by line, as it is measured; or only fills a store with 100 million states.
pub fn run(only_hundred_million: bool, line: &mut dyn FnMut(&str)) {
    if only_hundred_million {
        line(&hundred_million());
        return;
    }
    line(HEAD);
    let mut limit = Limit::default();
    for (name, text, ablations) in PROGRAMS {
        let program = wattle_syntax::wtl::parse(text).program;
        let Some(instance) = program.and_then(|p| p.instance().ok()) else {
            continue;
        };
        for model in MemoryModel::ALL {
            for row in rows(name, &instance, model, ablations, &mut limit) {
                line(&row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_programs_parse() {
        for (name, text, _) in wattle_search::bench::PROGRAMS {
            let parsed = wattle_syntax::wtl::parse(text);
            let program = parsed
                .program
                .unwrap_or_else(|| panic!("{name} does not parse"));
            assert!(program.instance().is_ok(), "{name}");
        }
    }
}
