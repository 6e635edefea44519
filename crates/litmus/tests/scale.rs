//! Many threads that seldom meet: as many final states as there are, and quickly.

use std::fmt::Write;
use wattle_evidence::Control;
use wattle_litmus::answer;
use wattle_memory::MemoryModel;
use wattle_model::{CellId, RegisterId};
use wattle_search::{Observed, Reductions, final_states_with};
use wattle_syntax::litmus::parse_test;

/// Rows of instructions, one column for each thread.
fn test(name: &str, columns: &[[String; 2]], condition: &str) -> String {
    let mut text = format!("X86 {name}\n{{ }}\n");
    let heads: Vec<String> = (0..columns.len()).map(|t| format!("P{t}")).collect();
    let _ = writeln!(text, " {} ;", heads.join(" | "));
    for row in 0..2 {
        let row: Vec<&str> = columns.iter().map(|c| c[row].as_str()).collect();
        let _ = writeln!(text, " {} ;", row.join(" | "));
    }
    text + condition
}

/// Every thread stores its cell and loads its neighbour's.
fn ring(n: usize) -> String {
    let thread = |t: usize| {
        let next = (t + 1) % n;
        [format!("MOV [x{t}],$1"), format!("MOV EAX,[x{next}]")]
    };
    let columns: Vec<[String; 2]> = (0..n).map(thread).collect();
    let zero: Vec<String> = (0..n).map(|t| format!("{t}:EAX=0")).collect();
    test(
        "ring",
        &columns,
        &format!("exists ({})", zero.join(" /\\ ")),
    )
}

/// Pairs of a sender and a receiver.
fn pairs(n: usize) -> String {
    let mut columns = Vec::new();
    let mut seen = Vec::new();
    for p in 0..n {
        columns.push([format!("MOV [x{p}],$1"), format!("MOV [y{p}],$1")]);
        columns.push([format!("MOV EAX,[y{p}]"), format!("MOV EBX,[x{p}]")]);
        let t = 2 * p + 1;
        seen.push(format!("{t}:EAX=1 /\\ {t}:EBX=0"));
    }
    test(
        "pairs",
        &columns,
        &format!("exists ({})", seen.join(" /\\ ")),
    )
}

fn states(text: &str, model: MemoryModel) -> Result<usize, wattle_litmus::NoAnswer> {
    let parsed = parse_test(text);
    let found = answer(&parsed, model, &Control::unlimited())?;
    assert!(found.complete());
    Ok(found.summary.states.len())
}

#[test]
fn rings_of_store_buffers() -> Result<(), wattle_litmus::NoAnswer> {
    for n in [3, 8, 12] {
        assert_eq!(states(&ring(n), MemoryModel::Sc)?, (1 << n) - 1);
        assert_eq!(states(&ring(n), MemoryModel::Tso)?, 1 << n);
        assert_eq!(states(&ring(n), MemoryModel::Pso)?, 1 << n);
    }
    Ok(())
}

#[test]
fn pairs_that_pass_a_message() -> Result<(), wattle_litmus::NoAnswer> {
    for n in [1, 4, 7] {
        assert_eq!(states(&pairs(n), MemoryModel::Sc)?, 3usize.pow(n as u32));
        assert_eq!(states(&pairs(n), MemoryModel::Tso)?, 3usize.pow(n as u32));
    }
    assert_eq!(states(&pairs(4), MemoryModel::Pso)?, 4usize.pow(4));
    Ok(())
}

/// Two pairs of threads over cells of their own, one of which may wait for ever.
#[test]
fn parts_multiply() {
    let parts = "shared x: 0..2, y: 0..2, z: 0..2, w: 0..2;\n\
        thread p { local r: 0..2; x = 1; r = y; }\n\
        thread q { local r: 0..2; y = 1; r = x; x = 2; }\n\
        thread s { local r: 0..2; z = 1; w = 1; r = z; }\n";
    let ends = "thread t { local a: 0..2, b: 0..2; a = w; b = z; z = 2; }\n";
    let waits = "thread t { local a: 0..2, b: 0..2; await z == 2; b = w; }\n";
    for (last, some) in [(ends, true), (waits, false)] {
        let program = wattle_syntax::wtl::parse(&format!("{parts}{last}")).program;
        let instance = program
            .and_then(|p| p.instance().ok())
            .expect("an instance");
        assert_eq!(instance.parts(&[]).len(), 2);
        let cells = (0..instance.cells.len()).map(|c| Observed::Cell(CellId::new(c)));
        let registers = instance.thread_ids().flat_map(|t| {
            let all = 0..instance.thread(t).registers.len();
            all.map(move |r| Observed::Register(t, RegisterId::new(r)))
        });
        let observed: Vec<Observed> = cells.chain(registers).collect();
        for model in MemoryModel::ALL {
            let control = Control::unlimited();
            let whole = final_states_with(&instance, model, &observed, Reductions::NONE, &control);
            let whole = whole.expect("all final states").states;
            let apart = wattle_litmus::final_states(&instance, model, &observed, &control);
            assert_eq!(apart.expect("all final states").states, whole, "{model}");
            assert_eq!(!whole.is_empty(), some, "{model}");
        }
    }
}
