//! Programs of any number of threads, from text to verdict.

use super::lower;
use crate::{Options, Outcome, check};
use std::path::Path;
use wattle_memory::MemoryModel;
use wattle_model::Program;

fn wtl(text: &str) -> Program {
    let parsed = wattle_syntax::wtl::parse(text);
    let shown: String = parsed
        .diagnostics
        .iter()
        .map(|d| d.render("test.wtl", text))
        .collect();
    parsed.program.unwrap_or_else(|| panic!("{shown}"))
}

/// The verdict of a program's first property, in one word.
fn verdict(program: &Program, model: MemoryModel) -> String {
    match lower(program, (!program.properties.is_empty()).then_some(0)) {
        Err(u) => format!("refused: {}", u.message),
        Ok(lowered) => {
            let budget = std::cell::Cell::new(0usize);
            let stop = |_: usize| {
                budget.set(budget.get() + 1);
                budget.get() > 20_000
            };
            match check(&lowered.system, model, Options::default(), &stop).0 {
                Outcome::Holds(_) => "holds".into(),
                Outcome::Violated(run) => format!("violated by {}", run.threads),
                Outcome::Undecided(why) => format!("undecided: {why}"),
                Outcome::Refused(u) => format!("refused: {}", u.message),
            }
        }
    }
}

#[test]
fn the_linux_spinlock() {
    let text = "shared lock = 1;\nthread t[*] {\n local old;\n acquire: loop { old = fetch_add(lock, -1); if old > 0 { break; } while lock <= 0 { } }\n critical: skip;\n lock = 1;\n goto acquire;\n}\nnever t[i]@critical && t[j]@critical;\n";
    for model in [MemoryModel::Sc, MemoryModel::Tso] {
        assert_eq!(verdict(&wtl(text), model), "holds");
    }
    let broken = text.replace("old = fetch_add(lock, -1);", "old = lock; lock = old - 1;");
    assert_eq!(verdict(&wtl(&broken), MemoryModel::Sc), "violated by 2");
}

#[test]
fn thread_identifiers() {
    let text = "shared owner: t = none;\nthread t[*] {\n loop { if cas(owner, none, self) == 1 { critical: skip; owner = none; } }\n}\nnever t[i]@critical && t[j]@critical;\n";
    assert_eq!(verdict(&wtl(text), MemoryModel::Tso), "holds");
    let arithmetic = "shared x;\nthread t[*] { x = self + 1; c: skip; }\nnever t[i]@c && t[j]@c;\n";
    assert!(verdict(&wtl(arithmetic), MemoryModel::Tso).starts_with("refused: "));
}

#[test]
fn identifiers_are_chosen() {
    let text = "shared owner: t = none;\nthread t[*] {\n local o: t, x: t;\n loop { o = owner; x = (o == none) ? self : o; if x == self { if cas(owner, none, self) { critical: skip; owner = none; } } }\n}\nnever t[i]@critical && t[j]@critical;\n";
    assert_eq!(verdict(&wtl(text), MemoryModel::Tso), "holds");
    let broken = text.replace("if cas(owner, none, self)", "if o == none");
    assert_eq!(verdict(&wtl(&broken), MemoryModel::Sc), "violated by 2");
    let mixed = text.replace("self : o", "self : 0");
    assert!(verdict(&wtl(&mixed), MemoryModel::Sc).starts_with("refused: "));
}

/// One thread looks at a family's flags, one after the other.
#[test]
fn another_family_is_looked_at() {
    let text = "shared flag[r]: bool, busy: bool;\nthread w {\n local k: r;\n loop {\n busy = 1; fence; k = 0;\n loop { await flag[k] == 0; if k == count(r) - 1 { break; } k = k + 1; }\n writing: skip;\n busy = 0;\n }\n}\nthread r[*] { loop { flag[self] = 1; fence; if busy == 0 { reading: skip; } flag[self] = 0; } }\nnever w@writing && r[i]@reading;\n";
    assert_eq!(verdict(&wtl(text), MemoryModel::Sc), "holds");
    let early = text.replace("await flag[k] == 0; if", "if");
    assert!(verdict(&wtl(&early), MemoryModel::Sc).starts_with("violated"));
    let without = text.replace("busy = 1; fence;", "busy = 1;");
    assert!(verdict(&wtl(&without), MemoryModel::Tso).starts_with("violated"));
}

#[test]
fn the_case_studies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/x86");
    let expected = [
        ("naive_mutex_deadlock", "violated"),
        ("naive_mutex", "violated"),
        ("mutex_xchg_split", "violated"),
        ("mutex_xchg", "holds"),
        ("mutex_cmpxchg_no_lock", "violated"),
        ("mutex_cmpxchg", "holds"),
        ("spinlock_no_lock", "violated"),
        ("spinlock", "holds"),
        ("sense_barrier", "holds"),
        ("sense_barrier_again", "holds"),
    ];
    for (name, word) in expected {
        let Ok(text) = std::fs::read_to_string(folder.join(format!("{name}.asm"))) else {
            println!("skipped: example {name} is not here");
            continue;
        };
        let parsed = wattle_syntax::x86::parse(&text);
        let program = parsed.program.unwrap_or_default();
        let v = verdict(&program, MemoryModel::Tso);
        println!("{name}: {v}");
        assert!(v.starts_with(word), "{name}: {v}");
    }
}
