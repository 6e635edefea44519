//! Many threads that seldom meet: as many final states as there are, and quickly.

use std::fmt::Write;
use wattle_evidence::Control;
use wattle_litmus::answer;
use wattle_memory::MemoryModel;
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
