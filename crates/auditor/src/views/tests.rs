//! Witnesses, and what is forgotten, in one view at a time.

use super::world::{ANY, Frame, NONE, Pos, World};
use wattle_evidence::certificate::Views;
use wattle_evidence::certificate::views::{Forget, Witness};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

const SYSTEM: &str = "type loc = A | B
array PC[proc] : loc
array F[proc] : bool
array G[proc] : bool
init (z) { PC[z] = A && F[z] = False && G[z] = False }
unsafe (p q) { PC[p] = B && PC[q] = B && p < q }
transition t ([p]) requires { PC[p] = A } { PC[p] := B; F[p] := True; G[p] := True; }
";

fn system() -> ArraySystem {
    let read = wattle_syntax::cubicle::parse(SYSTEM);
    let Some(system) = read.system else {
        panic!("{:?}", read.diagnostics)
    };
    system
}

fn certificate(forget: Vec<Forget>, witness: Option<Witness>) -> Views {
    Views {
        model: MemoryModel::Sc,
        cells: Vec::new(),
        anchors: Vec::new(),
        forget,
        kept: Vec::new(),
        witness,
        precise: false,
        count: 0,
        views: Vec::new(),
    }
}

/// Two threads whose elements of the first three cells are these.
fn world(frame: &Frame<'_>, cells: [[Pos; 2]; 3]) -> World {
    let mut w = frame.blank(2);
    for (all, cell) in w.memory.iter_mut().zip(cells) {
        all[..2].copy_from_slice(&cell);
    }
    w
}

#[test]
fn witnesses_are_the_first_and_the_last() {
    let system = system();
    let witness = Witness {
        cell: 0,
        values: vec![1],
    };
    let certificate = certificate(Vec::new(), Some(witness));
    let Ok(frame) = Frame::new(&system, MemoryModel::Sc, &certificate) else {
        panic!("threads are compared by order");
    };
    let blank = frame.blank(2);
    let (a, b) = (blank.me[0], blank.me[1]);
    for (two, at, holds) in [
        ([NONE, NONE], [0, 0], true),
        ([NONE, NONE], [1, 0], false),
        ([NONE, NONE], [ANY, 0], true),
        ([a, NONE], [1, 0], false),
        ([NONE, a], [1, 0], false),
        ([a, a], [1, 0], true),
        ([a, a], [0, 0], false),
        ([a, a], [1, 1], false),
        ([a, b], [1, 1], true),
        ([a, b], [1, 0], false),
        ([b, a], [1, 1], false),
        ([b, b], [0, 1], true),
        ([b, b], [1, 1], false),
        ([b, b], [ANY, 1], true),
    ] {
        let mut w = world(&frame, [at, [0; 2], [0; 2]]);
        frame.set_witnesses(&mut w, two);
        assert_eq!(frame.agrees(&w), holds, "{two:?} {at:?}");
        // The same of threads that are only named.
        let mut named = frame.blank(2);
        frame.set_witnesses(&mut named, two);
        named.looked = vec![(0, vec![a], at[0]), (0, vec![b], at[1])];
        assert_eq!(frame.agrees(&named), holds, "{two:?} {at:?} named");
    }
}

#[test]
fn what_depends_on_something_unknown_is_not_forgotten_yet() {
    let system = system();
    let rule = |when: u16, value: u8, cell: u16| Forget {
        when,
        values: vec![value],
        cell,
    };
    let certificate = certificate(vec![rule(0, 1, 1), rule(1, 0, 2)], None);
    let Ok(frame) = Frame::new(&system, MemoryModel::Sc, &certificate) else {
        panic!("it forgets what there is");
    };
    for (cells, forgotten) in [
        ([[0, 0], [1, 1], [1, 1]], Ok(vec![])),
        ([[0, 1], [1, 1], [1, 1]], Ok(vec![(1, 1), (2, 1)])),
        ([[1, 0], [ANY, 0], [1, 1]], Ok(vec![(1, 0), (2, 0), (2, 1)])),
        ([[ANY, 0], [1, 1], [1, 1]], Err((0, 0))),
        ([[0, ANY], [1, 1], [1, 1]], Err((0, 1))),
        ([[0, 0], [1, ANY], [1, 1]], Err((1, 1))),
    ] {
        let mut w = world(&frame, cells);
        assert_eq!(frame.forgotten(&mut w), forgotten, "{cells:?}");
        for (cell, i) in forgotten.unwrap_or_default() {
            assert_eq!(w.memory[cell][i], ANY);
        }
    }
}
