//! A short, deterministic run over every parser; the long ones are separate.

use wattle_fuzz::check::check;
use wattle_fuzz::mutate::input;
use wattle_fuzz::seeds::Seeds;
use wattle_fuzz::target::Target;

#[test]
fn three_hundred_inputs_per_language() {
    for target in Target::all() {
        let seeds = Seeds::load(target);
        for number in 0..300 {
            let text = input(&seeds, 7, number);
            if let Err(what) = check(target, &text) {
                panic!("{target}, input {number}: {what}\n{text}");
            }
        }
    }
}

#[test]
fn inputs_depend_on_seed_and_number_only() {
    let target = Target::named("rmm").expect("rmm");
    let seeds = Seeds::load(target);
    assert_eq!(input(&seeds, 1, 5), input(&seeds, 1, 5));
    assert_ne!(input(&seeds, 1, 5), input(&seeds, 2, 5));
}

#[test]
fn every_language_has_seeds() {
    for target in Target::all() {
        let texts = Seeds::load(target).texts.len();
        println!("{target}: {texts} seeds");
        assert!(texts >= 1);
    }
}
