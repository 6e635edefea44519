//! Witnesses, and what is forgotten, in one view at a time.

use super::assume::{Logic, Scope};
use super::join::{join, tokens};
use super::world::{ANY, Frame, NONE, Pos, ROOM, Store, World};
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

/// A thread is named; rows of threads and of flags.
const ROWS: &str = "type loc = A | B
var T : proc
array F[proc] : bool
array M[proc, proc] : proc
array S[proc, proc] : bool
init (z) { F[z] = False }
unsafe (p q) { F[p] = True && F[q] = True && T = p && S[p, q] = True }
transition t ([p] q) requires { F[p] = False } { T := q; M[p, q] := q; }
";

fn system() -> ArraySystem {
    parsed(SYSTEM)
}

fn parsed(text: &str) -> ArraySystem {
    let read = wattle_syntax::cubicle::parse(text);
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

/// Who the first and the last may be once a thread is none of those any more: another one, named or not.
#[test]
fn a_witness_that_is_lost_has_a_successor() {
    let system = system();
    let witness = Witness {
        cell: 0,
        values: vec![1],
    };
    let certificate = certificate(Vec::new(), Some(witness));
    let Ok(frame) = Frame::new(&system, MemoryModel::Sc, &certificate) else {
        panic!("threads are compared by order");
    };
    let logic = Logic::new(&frame, true, &|_| false);
    let (a, b) = (frame.blank(2).me[0], frame.blank(2).me[1]);
    let between = a + (b - a) / 2;
    for (was, now, thread, value, wanted) in [
        ([a, b], [0, 1], a, 0, vec![[between, b], [b, b]]),
        ([a, b], [1, 0], b, 0, vec![[a, a], [a, between]]),
        ([a, a], [0, 0], a, 0, vec![[NONE, NONE]]),
        ([b, b], [1, 1], a, 1, vec![[a, b]]),
        ([NONE, NONE], [1, 0], a, 1, vec![[a, a]]),
    ] {
        let mut w = world(&frame, [now, [0; 2], [0; 2]]);
        frame.set_witnesses(&mut w, was);
        let store = Store {
            cell: 0,
            of: vec![thread],
            value,
        };
        let at = frame.system.cells.len() - 2;
        let after = logic.witnessed(w, &[store]);
        let mut two: Vec<[Pos; 2]> = (after.iter())
            .map(|w| [w.memory[at][0], w.memory[at + 1][0]])
            .collect();
        two.sort_unstable();
        assert_eq!(two, wanted, "{was:?} {now:?}");
    }
}

/// What a guard wants of all others it wants of others only, and of each of them.
#[test]
fn others_are_those_that_are_no_parameters() {
    let text = SYSTEM.replace("PC[p] = A }", "PC[p] = A && forall_other j. F[j] = False }");
    let system = parsed(&text);
    let certificate = certificate(Vec::new(), None);
    let Ok(frame) = Frame::new(&system, MemoryModel::Sc, &certificate) else {
        panic!("it is like any other")
    };
    let logic = Logic::new(&frame, false, &|_| false);
    let guard = &system.transitions[0].guard;
    let me = frame.blank(2).me[0];
    for (flags, wanted) in [
        ([0, 0], vec![[0, 0]]),
        ([1, 0], vec![[1, 0]]),
        ([0, 1], vec![]),
        ([1, 1], vec![]),
        ([1, ANY], vec![[1, 0]]),
    ] {
        let w = world(&frame, [[0; 2], flags, [0; 2]]);
        let after = logic.assume(w, guard, true, Scope::of(&[me], false));
        let after: Vec<[Pos; 2]> = after
            .iter()
            .map(|w| [w.memory[1][0], w.memory[1][1]])
            .collect();
        assert_eq!(after, wanted, "{flags:?}");
    }
}

/// Three views in which thread x is the one that is named; in the one without it, it is named only, and its flag is
/// what the last of these says.
fn three(frame: &Frame<'_>, flags: [Pos; 4]) -> [World; 3] {
    let [x, y, z, seen] = flags;
    [[x, y], [x, z], [y, z]].map(|two| {
        let mut w = frame.blank(2);
        let (first, second) = (w.me[0], w.me[1]);
        w.memory[1][..2].copy_from_slice(&two);
        // Each names itself and the other, and has a flag for each.
        w.memory[2][..4].copy_from_slice(&[first, second, first, second]);
        w.memory[3][..4].copy_from_slice(&[0, 1, 1, 0]);
        w.memory[0][0] = first;
        if two == [y, z] {
            w.memory[0][0] = 3 * ROOM;
            w.looked = vec![(1, vec![3 * ROOM], seen)];
        }
        w
    })
}

/// Three threads of three views: what only one view knows as a position is open, and nothing else is.
#[test]
fn views_are_joined_where_they_agree() {
    let system = parsed(ROWS);
    let certificate = Views {
        kept: vec![1],
        ..certificate(Vec::new(), None)
    };
    let Ok(frame) = Frame::new(&system, MemoryModel::Sc, &certificate) else {
        panic!("flags can be kept")
    };
    let joined = |flags: [Pos; 4]| {
        let [xy, xz, yz] = three(&frame, flags);
        let all = [&xy, &xz, &yz].map(|w| (w, tokens(&frame, w)));
        join(&frame, all.each_ref().map(|(w, t)| (*w, t, [0, 1]))).expect("they have as many")
    };
    // The thread that is only named in a view is the one that another sees whole.
    for (flags, agree) in [
        ([0, 1, 1, 0], true),
        ([1, 0, 1, 1], true),
        ([0, 1, 1, 1], false),
        ([1, 0, 1, 0], false),
        ([ANY, 0, 1, 1], true),
        ([1, 0, 1, ANY], true),
    ] {
        let w = joined(flags);
        assert_eq!(w.is_some(), agree, "{flags:?}");
        let Some(w) = w else { continue };
        assert_eq!(w.memory[1][..3], flags[..3]);
        assert_eq!(w.memory[0][0], w.me[0]);
        let names = |i: usize| if i / 3 == i % 3 { w.me[i / 3] } else { ANY };
        assert_eq!(w.memory[2], std::array::from_fn(names));
        assert_eq!(w.memory[3], [0, 1, 1, 1, 0, 1, 1, 1, 0]);
    }
}
