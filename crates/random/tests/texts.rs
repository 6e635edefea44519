//! Random texts: all of them parse, mean what they print as, and together use the whole language.

use std::collections::BTreeSet;
use wattle_model::print;
use wattle_random::{CONSTRUCTS, Profile, SUGAR, constructs, question_constructs, source};
use wattle_syntax::{Language, parse};

#[test]
fn texts_parse_and_use_everything() {
    let mut used: BTreeSet<&str> = ["deadlock"].into();
    for profile in Profile::ALL {
        for seed in 0..2_000 {
            let source = source(seed, profile);
            let parsed = parse(Language::Wtl, &source.text);
            let Some(program) = parsed.program else {
                panic!(
                    "{profile} {seed}: {:?}\n{}",
                    parsed.diagnostics, source.text
                );
            };
            let again = parse(Language::Wtl, &print::to_wtl(&program)).program;
            let again = again.map(|p| p.without_spans().canonical());
            assert_eq!(
                again,
                Some(program.without_spans().canonical()),
                "{profile} {seed}:\n{}",
                source.text
            );
            used.extend(constructs(&program));
            used.extend(question_constructs(None, false));
            for p in &program.properties {
                used.extend(question_constructs(Some(p), false));
            }
            used.extend(source.sugar);
        }
    }
    let known: BTreeSet<&str> = CONSTRUCTS.iter().chain(SUGAR).copied().collect();
    assert_eq!(used, known);
}

#[test]
fn relatives_of_a_lock_parse() {
    for seed in 0..2_000 {
        let text = source(seed, Profile::Levels).text;
        let parsed = parse(Language::Wtl, &text);
        assert!(parsed.program.is_some(), "{:?}\n{text}", parsed.diagnostics);
    }
}

#[test]
fn a_seed_is_a_text() {
    for profile in Profile::ALL.into_iter().chain([Profile::Levels]) {
        assert_eq!(source(7, profile), source(7, profile));
        assert_ne!(source(7, profile).text, source(8, profile).text);
    }
}
