//! The explicit search beside the limit of its store and beside itself without its reductions.

use crate::sink::Sink;
use serde_json::json;
use wattle_memory::MemoryModel;
use wattle_search::bench::{HEAD, Limit, PROGRAMS, hundred_million, rows};

/// Gives the table line by line, as it is measured; or only fills a store with 100 million states.
pub fn run(only_hundred_million: bool, out: &mut Sink<'_>) {
    if only_hundred_million {
        out.line(&hundred_million());
        return;
    }
    out.line(HEAD);
    let mut limit = Limit::default();
    for (name, text, ablations) in PROGRAMS {
        let program = wattle_syntax::wtl::parse(text).program;
        let Some(instance) = program.and_then(|p| p.instance().ok()) else {
            continue;
        };
        for model in MemoryModel::ALL {
            for row in rows(name, &instance, model, ablations, &mut limit) {
                let value =
                    json!({ "suite": "explicit", "file": name, "model": model, "text": row });
                out.row(&row, value);
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
