//! The rules, one small program each, with what everybody agrees can come out of it.
//!
//! An outcome is the registers and the memory of a final state (`1 0 | 1 1`: registers in the order of
//! threads, then cells), a fault in words, or `stuck` where nothing can happen and not all is over.

use std::collections::{BTreeSet, HashSet};
use wattle_memory::reference::{Machine, Outcome, ReplayError, evaluate, replay};
use wattle_memory::{AtMostK, Event, Exact, Layout, MemoryModel, Pso, Sc, Start, Tso};
use wattle_model::{Instance, StepId, ThreadId};
use wattle_syntax::{Language, parse};

fn instance(text: &str) -> Instance {
    let program = parse(Language::Wtl, text).program;
    let program = program.unwrap_or_else(|| panic!("does not parse: {text}"));
    program.instance().expect("it has an instance")
}

fn outcomes_of<L: Layout>(instance: &Instance) -> BTreeSet<String> {
    let machine = Machine::<L, Exact>::new(instance, ()).expect("it runs");
    let starts = machine.starts().expect("it starts");
    let mut work: Vec<_> = starts.iter().map(|s| machine.initial(s)).collect();
    let mut seen: HashSet<_> = work.iter().cloned().collect();
    let mut found = BTreeSet::new();
    while let Some(state) = work.pop() {
        let events = machine.events(&state);
        // Inside an atomic block one thread is alone.
        let acting = instance
            .thread_ids()
            .filter(|t| machine.may_act(&state, *t));
        let acting: Vec<ThreadId> = acting.collect();
        assert!(events.iter().all(|e| acting.contains(&e.thread())));
        if let Some(alone) = machine.inside_atomic(&state) {
            assert_eq!(acting, [alone]);
        }
        if machine.is_final(&state) {
            let words = |v: &[i64]| v.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
            let registers: Vec<i64> = state.registers.concat();
            let text = format!("{} | {}", words(&registers), words(&state.memory));
            found.insert(text.trim().to_string());
        } else if events.is_empty() {
            found.insert("stuck".to_string());
        }
        for event in events {
            match machine.apply(&state, &event) {
                Outcome::Next(next) => {
                    if seen.insert(next.clone()) {
                        work.push(next);
                    }
                }
                Outcome::Fault(fault) => {
                    found.insert(fault.kind.to_string());
                }
                Outcome::Full(_) => panic!("exact buffers are never full"),
            }
        }
    }
    found
}

fn outcomes(text: &str, model: MemoryModel) -> BTreeSet<String> {
    let instance = instance(text);
    match model {
        MemoryModel::Sc => outcomes_of::<Sc>(&instance),
        MemoryModel::Tso => outcomes_of::<Tso>(&instance),
        MemoryModel::Pso => outcomes_of::<Pso>(&instance),
    }
}

/// What comes out under every model, and what else from TSO on and under PSO.
fn comes(text: &str, always: &[&str], relaxed: &[&str], pso: &[&str]) {
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for (model, more) in MemoryModel::ALL.into_iter().zip([always, relaxed, pso]) {
        expected.extend(more.iter().map(|s| s.to_string()));
        assert_eq!(outcomes(text, model), expected, "{text} on {model}");
    }
}

#[test]
fn stores_wait_in_buffers() {
    let two = |a: &str, b: &str| {
        format!(
            "shared x, y; thread p {{ local a; x = 1; {a} a = y; }} \
             thread q {{ local b; y = 1; {b} b = x; }}"
        )
    };
    let in_order = ["0 1 | 1 1", "1 0 | 1 1", "1 1 | 1 1"];
    comes(&two("", ""), &in_order, &["0 0 | 1 1"], &[]);
    comes(&two("fence;", ""), &in_order, &["0 0 | 1 1"], &[]);
    comes(&two("fence;", "fence;"), &in_order, &[], &[]);
    // A store fence lets loads pass.
    comes(
        &two("fence store;", "fence store;"),
        &in_order,
        &["0 0 | 1 1"],
        &[],
    );
}

#[test]
fn stores_to_several_cells_pass_each_other_under_pso() {
    let mp = |between: &str| {
        format!(
            "shared x, y; thread p {{ x = 1; {between} y = 1; }} \
             thread q {{ local a, b; a = y; b = x; }}"
        )
    };
    let in_order = ["0 0 | 1 1", "0 1 | 1 1", "1 1 | 1 1"];
    comes(&mp(""), &in_order, &[], &["1 0 | 1 1"]);
    comes(&mp("fence store;"), &in_order, &[], &[]);
    comes(&mp("fence;"), &in_order, &[], &[]);
    // Nor do stores to one cell.
    let one = "shared x; thread p { x = 1; x = 2; } thread q { local a, b; a = x; b = x; }";
    let all = [
        "0 0 | 2", "0 1 | 2", "0 2 | 2", "1 1 | 2", "1 2 | 2", "2 2 | 2",
    ];
    comes(one, &all, &[], &[]);
    // What is stored after a store fence waits for what was stored before it, cell by cell.
    let later = "shared x, y, z; thread p { x = 1; fence store; y = 1; z = 1; } \
                 thread q { local a, b; a = z; b = x; }";
    let all = ["0 0 | 1 1 1", "0 1 | 1 1 1", "1 1 | 1 1 1"];
    comes(later, &all, &[], &[]);
}

#[test]
fn several_stores_are_pending_at_once() {
    let two = "shared x, y; thread p { local a; x = 1; x = 2; a = y; } \
               thread q { local b; y = 1; y = 2; b = x; }";
    let in_order = [
        "0 2 | 2 2",
        "1 2 | 2 2",
        "2 2 | 2 2",
        "2 0 | 2 2",
        "2 1 | 2 2",
    ];
    let late = ["0 0 | 2 2", "0 1 | 2 2", "1 0 | 2 2", "1 1 | 2 2"];
    comes(two, &in_order, &late, &[]);
    // A store fence holds until everything before it has drained, not only the first of it.
    let fenced = "shared x, z, y; thread p { x = 1; z = 1; fence store; y = 1; } \
                  thread q { local a, b; a = y; b = z; }";
    let in_order = ["0 0 | 1 1 1", "0 1 | 1 1 1", "1 1 | 1 1 1"];
    comes(fenced, &in_order, &[], &[]);
}

#[test]
fn buffers_that_have_drained_are_equal() {
    // Whether the fence came before or after the store reached memory.
    let instance = instance("shared x; thread p { x = 1; fence store; }");
    let machine = Machine::<Pso, Exact>::new(&instance, ()).expect("it runs");
    let mut work = vec![machine.initial(&machine.starts().expect("it starts")[0])];
    let mut ends = HashSet::new();
    while let Some(state) = work.pop() {
        for event in machine.events(&state) {
            if let Outcome::Next(next) = machine.apply(&state, &event) {
                work.push(next);
            }
        }
        if machine.is_final(&state) {
            ends.insert(state);
        }
    }
    assert_eq!(ends.len(), 1, "{ends:?}");
}

#[test]
fn a_thread_sees_its_own_newest_store() {
    comes(
        "shared x; thread p { local a; x = 1; a = x; }",
        &["1 | 1"],
        &[],
        &[],
    );
    let newest = "shared x, y; thread p { local a; x = 1; x = 2; y = 3; a = x; }";
    comes(newest, &["2 | 2 3"], &[], &[]);
    // And nobody else's.
    let other = "shared x; thread p { x = 1; } thread q { local a; x = 2; a = x; }";
    comes(other, &["2 | 1", "2 | 2", "1 | 1"], &[], &[]);
}

#[test]
fn atomic_blocks() {
    let nobody_between = "shared x, y; thread p { atomic { x = 1; y = 1; } } \
                          thread q { local a, b; a = x; b = y; }";
    let all = ["0 0 | 1 1", "0 1 | 1 1", "1 1 | 1 1"];
    comes(nobody_between, &all, &[], &[]);
    // They begin with empty buffers, and their stores go to memory at once.
    let drained = "shared x, y; thread p { local a; x = 1; atomic { a = y; } } \
                   thread q { local b; atomic { y = 1; } b = x; }";
    let all = ["0 1 | 1 1", "1 0 | 1 1", "1 1 | 1 1"];
    comes(drained, &all, &[], &[]);
    // Stores of others wait too.
    let waits = "shared x; thread p { local a, b; atomic { a = x; b = x; } } thread q { x = 1; }";
    comes(waits, &["0 0 | 1", "1 1 | 1"], &[], &[]);
    // A false assumption inside: the block cannot be left.
    let blocked = "shared x; thread p { atomic { assume x == 1; } } thread q { x = 1; }";
    comes(blocked, &["1 | 1", "stuck"], &[], &[]);
}

#[test]
fn lock_regions() {
    // Who holds the lock is alone with memory.
    let hides = "shared x; thread p { lock; x = 1; x = 2; unlock; } thread q { local a; a = x; }";
    comes(hides, &["0 | 2", "2 | 2"], &[], &[]);
    let own = "shared x; thread p { local a; lock; x = 1; a = x; unlock; }";
    comes(own, &["1 | 1"], &[], &[]);
    let others_wait = "shared x; thread p { x = 1; } \
                       thread q { local a, b; lock; a = x; b = x; unlock; }";
    comes(others_wait, &["0 0 | 1", "1 1 | 1"], &[], &[]);
    // Both ends wait for the buffer.
    let drained = "shared x, y; thread p { local a; lock; x = 1; unlock; a = y; } \
                   thread q { local b; lock; y = 1; unlock; b = x; }";
    comes(drained, &["0 1 | 1 1", "1 0 | 1 1", "1 1 | 1 1"], &[], &[]);
    let before = "shared x, y; thread p { local a; x = 1; lock; a = y; unlock; } \
                  thread q { local b; y = 1; lock; b = x; unlock; }";
    comes(before, &["0 1 | 1 1", "1 0 | 1 1", "1 1 | 1 1"], &[], &[]);
    // An atomic block waits for the lock.
    let block = "shared x; thread p { lock; x = 1; x = 2; unlock; } \
                 thread q { local a; atomic { a = x; } }";
    comes(block, &["0 | 2", "2 | 2"], &[], &[]);
    let inside = "shared x; thread p { local a; lock; atomic { x = 1; a = x; } unlock; }";
    comes(inside, &["1 | 1"], &[], &[]);
    comes("thread p { lock; lock; }", &["stuck"], &[], &[]);
    comes("thread p { unlock; }", &["stuck"], &[], &[]);
    let others = "thread p { lock; } thread q { unlock; }";
    comes(others, &["stuck"], &[], &[]);
    // Kept for ever: stores of others never reach memory.
    let kept = "shared x; thread p { lock; } thread q { x = 1; }";
    comes(kept, &["| 1", "stuck"], &[], &[]);
    let twice = "shared x; thread p { lock; x = 1; unlock; lock; x = 2; unlock; }";
    comes(twice, &["| 2"], &[], &[]);
}

#[test]
fn registers() {
    comes(
        "thread p { local a; a = 3; a = a + 1; skip; }",
        &["4 |"],
        &[],
        &[],
    );
    let choice = "thread p { local a; a = any 1..3; assume a != 2; }";
    comes(choice, &["1 |", "3 |", "stuck"], &[], &[]);
    comes(
        "thread p { local a: -1..1; a = any; }",
        &["-1 |", "0 |", "1 |"],
        &[],
        &[],
    );
    comes(
        "thread p { local a: i2; a = any; }",
        &["-1 |", "-2 |", "0 |", "1 |"],
        &[],
        &[],
    );
    let starts = "shared x: 0..1 = any; thread p { local a: u1 = any; }";
    comes(starts, &["0 | 0", "0 | 1", "1 | 0", "1 | 1"], &[], &[]);
    let numbers = "shared a[2] = self; thread p[2] { local r = self; }";
    comes(numbers, &["0 1 | 0 1"], &[], &[]);
}

#[test]
fn values_enter_types() {
    let wraps = "shared x: u2; thread p { local a: i2, b: u8; x = 5; a = 2; b = -1; fence; }";
    comes(wraps, &["-2 255 | 1"], &[], &[]);
    let bits = "thread p { local a: i64, b: u63, c: u1 = 1; a = -1; b = -1; c = c + 1; }";
    comes(bits, &["-1 9223372036854775807 0 |"], &[], &[]);
    let low = "value -1 outside its range 0..1";
    comes("thread p { local a: 0..1; a = -1; }", &[low], &[], &[]);
    let high = "value 2 outside its range 0..1";
    comes("shared x: 0..1; thread p { x = 2; }", &[high], &[], &[]);
    let load = "shared x = 2; thread p { local a: 0..1; a = x; }";
    comes(load, &[high], &[], &[]);
    comes(
        "thread p { local a: 0..1; a = any 2..2; }",
        &[high],
        &[],
        &[],
    );
    comes(
        "shared x: 1..2 = 1; thread p { x = 2; }",
        &["| 2"],
        &[],
        &[],
    );
}

#[test]
fn places() {
    let computed = "shared x = 7, a[2] = {3, 4}; thread p { local i = 1, r, s, t; \
                    r = a[i]; s = *(&a); t = *(&x); a[i] = 9; *(i) = 8; }";
    comes(computed, &["1 4 3 7 | 7 8 9"], &[], &[]);
    let past = "index 2 outside an array of 2";
    comes(
        "shared a[2]; thread p { local i = 2; a[i] = 1; }",
        &[past],
        &[],
        &[],
    );
    comes(
        "shared a[2]; thread p { local i = 2; i = a[i]; }",
        &[past],
        &[],
        &[],
    );
    let before = "index -1 outside an array of 2";
    comes(
        "shared a[2]; thread p { local i = -1; a[i] = 1; }",
        &[before],
        &[],
        &[],
    );
    // Flat memory ends with the last cell.
    let flat = "shared x, a[2]; thread p { local i = 3; *(i) = 1; }";
    comes(flat, &["index 3 outside an array of 3"], &[], &[]);
}

#[test]
fn faults_end_their_run() {
    let said =
        "shared x; thread p { local a; a = 1; assert a == 1; assert a == 0, \"no\"; x = 2; }";
    comes(said, &["assertion failed: no"], &[], &[]);
    comes("thread p { assert 0; }", &["assertion failed"], &[], &[]);
    let zero = "thread p { local r; assume 1 / r; }";
    comes(zero, &["division by zero"], &[], &[]);
    comes(
        "thread p { local r; assert 1 % r; }",
        &["division by zero"],
        &[],
        &[],
    );
    let shift = "thread p { local r = 64; r = 1 << r; }";
    comes(
        shift,
        &["shift by a negative amount or by 64 or more"],
        &[],
        &[],
    );
    let large = "thread p { local r = 9223372036854775807; r = r + 1; }";
    comes(
        large,
        &["arithmetic overflow of the 64-bit machine"],
        &[],
        &[],
    );
    let guarded = "thread p { local r, s; s = r != 0 && 1 / r; s = r == 0 || 1 / r; \
                   s = r == 0 ? 5 : 1 / r; }";
    comes(guarded, &["0 5 |"], &[], &[]);
    // Others may have ended or not.
    let beside = "shared x; thread p { assert 0; } thread q { x = 1; }";
    comes(beside, &["assertion failed"], &[], &[]);
}

#[test]
fn runs_replay() {
    let sb = instance(
        "shared x, y; thread p { local a; x = 1; a = y; } thread q { local b; y = 1; b = x; }",
    );
    let start = Start {
        memory: vec![0, 0],
        registers: vec![vec![0], vec![0]],
    };
    let step = |t: usize, s: usize| Event::Step {
        thread: ThreadId::new(t),
        step: StepId::new(s),
        value: None,
    };
    let delayed = [step(0, 0), step(0, 1), step(1, 0), step(1, 1)];
    let (states, fault) = replay(&sb, MemoryModel::Tso, &start, &delayed).expect("it is a run");
    assert_eq!((states.len(), fault), (5, None));
    let last = states.last().expect("there is one");
    assert_eq!(last.registers, [[0], [0]]);
    assert_eq!(last.memory, [0, 0]);
    assert_eq!(
        last.buffers.iter().map(Vec::len).collect::<Vec<_>>(),
        [1, 1]
    );
    let (states, _) = replay(&sb, MemoryModel::Sc, &start, &delayed).expect("it is a run");
    assert_eq!(
        states.last().map(|s| s.registers.concat()),
        Some(vec![0, 1])
    );
    // Twice the same step, another start, too few registers.
    let twice = [step(0, 0), step(0, 0)];
    let wrong = replay(&sb, MemoryModel::Tso, &start, &twice);
    assert!(matches!(
        wrong,
        Err(ReplayError::NotEnabled { index: 1, .. })
    ));
    for other in [
        Start {
            memory: vec![1, 0],
            ..start.clone()
        },
        Start {
            memory: vec![0],
            ..start.clone()
        },
        Start {
            registers: vec![vec![0], vec![1]],
            ..start.clone()
        },
        Start {
            registers: vec![vec![0], vec![]],
            ..start.clone()
        },
        Start {
            registers: vec![vec![0]],
            ..start.clone()
        },
    ] {
        let wrong = replay(&sb, MemoryModel::Tso, &other, &[]);
        assert_eq!(wrong, Err(ReplayError::NotInitial), "{other:?}");
    }
    let open =
        instance("shared x: 0..1 = any; thread p { local a: 0..1; a = x; assert a == 0; skip; }");
    let at = |x: i64| Start {
        memory: vec![x],
        registers: vec![vec![0]],
    };
    assert_eq!(
        replay(&open, MemoryModel::Sc, &at(2), &[]),
        Err(ReplayError::NotInitial)
    );
    let run = [step(0, 0), step(0, 1)];
    let (states, fault) = replay(&open, MemoryModel::Sc, &at(1), &run).expect("it is a run");
    assert_eq!(states.len(), 2);
    assert_eq!(
        fault.map(|f| f.kind.to_string()),
        Some("assertion failed".into())
    );
    let after = [step(0, 0), step(0, 1), step(0, 2)];
    let wrong = replay(&open, MemoryModel::Sc, &at(1), &after);
    assert_eq!(wrong, Err(ReplayError::AfterFault { index: 2 }));
}

/// How often a run of the straight line is refused for want of room.
fn full<L: Layout>(instance: &Instance, room: usize) -> usize {
    let machine = Machine::<L, AtMostK>::new(instance, room).expect("it runs");
    let start = machine.starts().expect("it starts").remove(0);
    let mut state = machine.initial(&start);
    let mut full = 0;
    // The thread's own steps only, as far as they go.
    loop {
        let events = machine.events(&state);
        let step = events.iter().find(|e| matches!(e, Event::Step { .. }));
        match step.map(|e| machine.apply(&state, e)) {
            Some(Outcome::Next(next)) => state = next,
            Some(Outcome::Full(_)) => {
                full += 1;
                break;
            }
            Some(Outcome::Fault(_)) | None => break,
        }
    }
    full
}

#[test]
fn bounded_buffers_are_full() {
    let one_cell = instance("shared x; thread p { x = 1; x = 2; }");
    let two_cells = instance("shared x, y; thread p { x = 1; y = 2; }");
    let fenced = instance("shared x; thread p { x = 1; fence store; x = 2; }");
    for (instance, tso, pso) in [(&one_cell, 1, 1), (&two_cells, 1, 0), (&fenced, 1, 1)] {
        assert_eq!(full::<Tso>(instance, 1), tso);
        assert_eq!(full::<Pso>(instance, 1), pso);
        assert_eq!(full::<Tso>(instance, 2), 0);
        assert_eq!(full::<Pso>(instance, 2), 0);
    }
}

#[test]
fn choices_among_too_many_are_refused() {
    let refused = |text: &str| Machine::<Sc, Exact>::new(&instance(text), ()).err();
    let wide = "thread p { local a: u16; a = any; }";
    assert_eq!(refused(wide), None);
    for wider in [
        "thread p { local a: u17; a = any; }",
        "thread p { local a; a = any 0..65536; }",
    ] {
        let why = refused(wider).map(|r| r.to_string());
        assert!(why.is_some_and(|w| w.contains("`a`")), "{wider}");
    }
    let starts = |text: &str| {
        let instance = instance(text);
        let machine = Machine::<Sc, Exact>::new(&instance, ()).expect("nothing is chosen");
        machine.starts().map(|s| s.len()).map_err(|r| r.to_string())
    };
    assert_eq!(
        starts("shared x: u8 = any, y: u8 = any; thread p { }"),
        Ok(1 << 16)
    );
    let many = starts("shared x: u8 = any, y: u8 = any, z: u1 = any; thread p { }");
    assert!(many.is_err_and(|w| w.contains("initial states")));
    let product = starts("shared x: u9 = any, y: u9 = any; thread p { }");
    assert!(product.is_err_and(|w| w.contains("initial states")));
    let wide = starts("shared x: u17 = any; thread p { }");
    assert!(wide.is_err_and(|w| w.contains("`x`")));
}

/// The value of the condition in the initial state.
fn value(condition: &str) -> Result<i64, String> {
    let text = format!(
        "shared x = 7, a[3] = {{3, 4, 6}}, i = 1; \
         thread p {{ local r = 5; l: skip; m: skip; }} thread q[2] {{ local s = self; n: skip; }} \
         never {condition};"
    );
    let instance = instance(&text);
    let machine = Machine::<Tso, Exact>::new(&instance, ()).expect("it runs");
    let state = machine.initial(&machine.starts().expect("it starts")[0]);
    evaluate(&state, &instance.questions[0].target).map_err(|fault| fault.to_string())
}

#[test]
fn conditions() {
    for (condition, expected) in [
        ("x == 7", 1),
        ("x == 6", 0),
        ("a[0]", 3),
        ("a[i]", 4),
        ("a[i + 1]", 6),
        ("a[i] + a[2] * 2", 16),
        ("*(i)", 3),
        ("*(&a + 2)", 6),
        ("p.r - x", -2),
        ("q[1].s", 1),
        ("q[0].s", 0),
        ("p@l", 1),
        ("p@m", 0),
        ("q[1]@n", 1),
        ("!(x == 7)", 0),
        ("x && 0", 0),
        ("x && 2", 1),
        ("0 || x", 1),
        ("x == 0 || i == 0", 0),
        ("x == 7 ? i : a[x]", 1),
        ("x == 6 ? a[x] : i", 1),
        ("x == 7 || a[x] == 0", 1),
        ("x == 6 && a[x] == 0", 0),
    ] {
        assert_eq!(value(condition), Ok(expected), "{condition}");
    }
    assert_eq!(value("a[x]"), Err("index 7 outside an array of 3".into()));
    assert_eq!(
        value("a[x - 4]"),
        Err("index 3 outside an array of 3".into())
    );
    assert_eq!(value("a[-x]"), Err("index -7 outside an array of 3".into()));
    assert_eq!(
        value("x == 7 && 1 / (i - 1)"),
        Err("division by zero".into())
    );
}
