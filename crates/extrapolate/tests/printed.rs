//! What `wattle show --reduce` and `--as boolean-program` print, as a person reads it.
//! `UPDATE_EXPECT=1` rewrites the texts.

use expect_test::{ExpectFile, expect_file};
use wattle_evidence::{Control, Task};
use wattle_extrapolate::Extrapolate;
use wattle_extrapolate::reduction::reduce;
use wattle_memory::MemoryModel::{self, Pso, Tso};
use wattle_model::print::to_wtl;

const TEXT: &str = "
    shared x: int, y: int;
    thread p {
        local r: int;
        x = 1;
        r = y;
    }
    thread q {
        y = 1;
        fence;
    }
    never x > 1;
    predicates { x <= 1; }";

fn reduced(model: MemoryModel, k: usize, expected: &ExpectFile) {
    let program = wattle_syntax::wtl::parse(TEXT).program.expect("a program");
    let instance = program.instance().expect("an instance");
    let reduced = reduce(&program, &instance, model, k).expect("a reduced program");
    expected.assert_eq(&to_wtl(&reduced));
}

fn abstracted(model: MemoryModel, expected: &ExpectFile) {
    let program = wattle_syntax::wtl::parse(TEXT).program.expect("a program");
    let instance = program.instance().expect("an instance");
    let task = Task {
        instance: &instance,
        model,
        question: Some(0),
        deadlock: false,
    };
    let text = Extrapolate::default().boolean_program(&task, 1, &Control::unlimited());
    expected.assert_eq(&text.expect("a boolean program"));
}

#[test]
fn reduced_programs() {
    reduced(Tso, 1, &expect_file!["printed/reduced-tso.wtl"]);
    reduced(Pso, 2, &expect_file!["printed/reduced-pso.wtl"]);
}

#[test]
fn boolean_programs() {
    abstracted(Tso, &expect_file!["printed/boolean-tso.txt"]);
    abstracted(Pso, &expect_file!["printed/boolean-pso.txt"]);
}
