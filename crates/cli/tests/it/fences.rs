//! Fences: the number and place of minimal sets, and fenced texts proved again from the text alone.

use super::support::{Scratch, root, run};
use std::path::Path;
use wattle::fences::{FenceOptions, Goal, Repaired, diff, fences, write};
use wattle::{Language, MemoryModel, Options};
use wattle_evidence::Control;
use wattle_model::Program;
use wattle_repair::{Costs, Fix, Outcome, SiteKind};

fn example(name: &str) -> String {
    root().join("examples").join(name).display().to_string()
}

fn wanted(model: MemoryModel, goal: Goal, all: bool) -> FenceOptions {
    FenceOptions {
        goal,
        all,
        ..FenceOptions::new(model)
    }
}

fn fixes(program: &Program, wanted: &FenceOptions) -> Vec<Fix> {
    let options = Options {
        explain: false,
        // Locks that count are repaired for as long as their numbers last.
        assume_no_wrap: true,
        ..Options::default()
    };
    match fences(program, wanted, &options, &Control::unlimited())
        .unwrap()
        .outcome
    {
        Outcome::Fixed {
            fixes, unfinished, ..
        } => {
            assert!(unfinished.is_none(), "{unfinished:?}");
            for fix in &fixes {
                // Without any one of them the violation is back.
                assert!(fix.needed.iter().all(|n| n.without.is_some()));
            }
            fixes
        }
        other => panic!("{other:?}"),
    }
}

/// Fences of all sets; one program of each kind is proved again from its text.
#[test]
fn memorax_suite() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites/memorax");
    let Ok(table) = std::fs::read_to_string(root.join("expected.csv")) else {
        println!("skipped: the memorax suite is not here");
        return;
    };
    for line in table.lines().skip(1) {
        let row: Vec<&str> = line.split(',').collect();
        let (file, data, count, sets) = (row[0], row[4], row[5], row[6]);
        // The largest of these are left to `wattle bench`.
        if data != "finite" || count.is_empty() || file.starts_with("splash2") {
            continue;
        }
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let program = wattle::parse(Language::Rmm, &text).program.unwrap();
        let found = fixes(&program, &wanted(MemoryModel::Tso, Goal::Safety, true));
        assert_eq!(found[0].sites.len().to_string(), count, "{file}");
        // One gap of the graph may be several places of the text: before a loop and at the beginning of its body.
        if let Ok(sets) = sets.parse::<usize>() {
            assert!(found.len() >= sets, "{file}: {} sets", found.len());
        }
    }
}

/// Under PSO; where fewer suffice than the table says, they are proved to.
#[test]
fn memorax_suite_pso() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites/memorax");
    let Ok(table) = std::fs::read_to_string(root.join("expected.csv")) else {
        println!("skipped: the memorax suite is not here");
        return;
    };
    for line in table.lines().skip(1) {
        let row: Vec<&str> = line.split(',').collect();
        let (file, count) = (row[0], row[7]);
        let Ok(count) = count.parse::<usize>() else {
            continue;
        };
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let program = wattle::parse(Language::Rmm, &text).program.unwrap();
        let found = fixes(&program, &wanted(MemoryModel::Pso, Goal::Safety, false));
        let mine = found[0].sites.len();
        // A full fence between two stores orders them and what follows: the table, which counts
        // locked stores, needs two for that in the bakery.
        let fewer = file.starts_with("bakery") && mine < count;
        assert!(mine == count || fewer, "{file}: {mine} instead of {count}");
    }
}

/// Writes the fences of a text and gives the diff; `write` proves the new text itself.
fn written(language: Language, text: &str, wanted: &FenceOptions) -> String {
    let program = wattle::parse(language, text).program.unwrap();
    let wanted = &wanted.clone().in_text(language, text);
    let found = fixes(&program, wanted);
    assert!(!found[0].sites.is_empty());
    let options = Options::default();
    let control = Control::unlimited();
    let new = write(
        language, text, &program, &found[0], wanted, &options, &control,
    )
    .unwrap();
    diff("program", "program (fenced)", text, &new)
}

const SAFETY: Goal = Goal::Safety;

#[test]
fn written_in_wtl() {
    let text = "\
shared flag[2], turn;
thread p[2] {
    let other = 1 - self;
    loop {
        flag[self] = 1;
        turn = other;
        while flag[other] == 1 && turn == other { }
        critical: skip;
        flag[self] = 0;
    }
}
never p[i]@critical && p[j]@critical;
";
    let found = written(
        Language::Wtl,
        text,
        &wanted(MemoryModel::Tso, SAFETY, false),
    );
    let expected = "\
--- program
+++ program (fenced)
@@ -7,0 +7,1 @@
+        fence;
";
    assert_eq!(found, expected);
}

/// The location after the store is the head of the loop: text before the loop is not enough.
#[test]
fn written_after_a_store_at_the_end_of_a_loop() {
    let text = "\
shared x, y;
thread p {
    local r, n;
    while n < 2 {
        r = y;
        n = n + 1;
        x = n;
    }
}
thread q {
    local s;
    y = 1;
    s = x;
}
";
    let goal = wanted(MemoryModel::Tso, Goal::Robustness, false);
    let found = written(Language::Wtl, text, &goal);
    assert!(found.contains("fence;"), "{found}");
}

#[test]
fn written_in_trencher() {
    let text = "\
thread t0
initial q0
final q2
transition q0 q1 write 1 0
transition q1 q1_1 read r 1
transition q1_1 q2 check == r 0
end
thread t1
initial q0
final q2
transition q0 q1 write 1 1
transition q1 q1_1 read r 0
transition q1_1 q2 check == r 0
end
";
    let found = written(
        Language::Trencher,
        text,
        &wanted(MemoryModel::Tso, SAFETY, false),
    );
    assert!(
        found.contains("+transition q1 q1_fenced mfence\n"),
        "{found}"
    );
    assert!(
        found.contains("+transition q1_fenced q1_1 read r 1\n"),
        "{found}"
    );
}

#[test]
fn written_in_litmus() {
    let text = "\
X86 SB
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EAX,[y] | MOV EAX,[x] ;
~exists (0:EAX=0 /\\ 1:EAX=0)
";
    let found = written(
        Language::Litmus,
        text,
        &wanted(MemoryModel::Tso, SAFETY, false),
    );
    assert!(found.contains("MFENCE"), "{found}");
}

#[test]
fn written_in_imp() {
    let text = "\
program Dekker variables x = y = r = s = 0
process P_0 begin x := 1; r := y end;
process P_1 begin y := 1; s := x end;
";
    let goal = wanted(MemoryModel::Tso, Goal::Robustness, false);
    let found = written(Language::Imp, text, &goal);
    assert!(found.contains("fence;"), "{found}");
}

#[test]
fn a_swap_where_it_is_cheaper() {
    let text = "\
shared x, y;
thread p { local r; x = 1; r = y; }
thread q { local s; y = 1; s = x; }
finally !(p.r == 0 && q.s == 0);
";
    let cheap = FenceOptions {
        costs: Costs {
            swap: Some(1),
            ..Costs::default()
        },
        ..wanted(MemoryModel::Tso, SAFETY, false)
    };
    let program = wattle::parse(Language::Wtl, text).program.unwrap();
    let found = fixes(&program, &cheap);
    let kinds = found[0].sites.iter().map(|s| s.kind);
    assert!(kinds.into_iter().all(|k| matches!(k, SiteKind::Swap(_))));
    let found = written(Language::Wtl, text, &cheap);
    assert!(found.contains("atomic { x = 1; }"), "{found}");
}

#[test]
fn swaps_are_written_in_every_language_that_has_them() {
    use crate::support::{Scratch, root, run};
    let scratch = Scratch::new();
    let cases = [
        (
            "trencher/simplified-dekker.trench",
            "write 1 0\n+transition",
        ),
        ("rmm/peterson.rmm", "locked"),
    ];
    for (name, wanted) in cases {
        let file = root().join("examples").join(name).display().to_string();
        let ending = name.rsplit('.').next().unwrap_or_default();
        let out = scratch.path(&format!("fenced.{ending}"));
        let ran = run(&["fences", &file, "--cost", "swap=1", "--write", &out]);
        assert_eq!(ran.code, 0, "{name}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(wanted), "{name}: {}", ran.out);
        let again = run(&["check", &out, "--quiet"]);
        assert_eq!(again.code, 0, "{name}: {}{}", again.out, again.err);
    }
    // x86 has no exchange without a register: said, not guessed.
    let sb = root()
        .join("examples/litmus/sb.litmus")
        .display()
        .to_string();
    let text = std::fs::read_to_string(sb).expect("an example");
    let file = scratch.file("sb.litmus", text.replace("\nexists", "\n~exists"));
    let out = scratch.path("fenced.litmus");
    let ran = run(&["fences", &file, "--cost", "swap=1", "--write", &out]);
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("no store that can be made atomic"),
        "{}",
        ran.err
    );
}

#[test]
fn store_fences_where_they_suffice() {
    let text = "\
shared data, ready;
thread writer { data = 1; ready = 1; }
thread reader { local r, d; r = ready; d = data; }
finally !(reader.r == 1 && reader.d == 0);
";
    let found = written(
        Language::Wtl,
        text,
        &wanted(MemoryModel::Pso, SAFETY, false),
    );
    assert!(found.contains("fence store;"), "{found}");
}

#[test]
fn what_sc_breaks_no_fence_repairs() {
    let text = "\
shared count;
thread p[2] { local r; r = count; count = r + 1; }
finally count == 2;
";
    let program = wattle::parse(Language::Wtl, text).program.unwrap();
    let goal = wanted(MemoryModel::Tso, SAFETY, false);
    let outcome = fences(&program, &goal, &Options::default(), &Control::unlimited());
    assert!(
        matches!(
            outcome,
            Ok(Repaired {
                outcome: Outcome::BrokenUnderSc(_),
                ..
            })
        ),
        "{outcome:?}"
    );
}

#[test]
fn families_of_programs() {
    use wattle::generate::Family;
    for family in Family::ALL {
        for n in [1, 2, 7] {
            let parsed = wattle::parse(Language::Trencher, &family.program(n));
            assert!(
                parsed.program.is_some(),
                "{} {n}: {parsed:?}",
                family.name()
            );
        }
    }
}

/// The case studies of conchon-2017 that are correct with `lock`: without it, the repair is the original.
#[test]
fn lock_prefixes_for_any_number_of_threads() {
    for name in ["spinlock", "mutex_cmpxchg"] {
        let file = crate::support::root().join(format!("examples/x86/{name}.asm"));
        let original = std::fs::read_to_string(file).expect("an example");
        let (comment, code) = original.split_once("\nbegin").expect("a program");
        let without = format!("{comment}\nbegin{}", code.replace("lock ", ""));
        let program = wattle::parse(Language::X86, &without).program.unwrap();
        let goal = FenceOptions {
            costs: Costs::with_locks(),
            ..wanted(MemoryModel::Tso, SAFETY, false)
        };
        let found = fixes(&program, &goal);
        let kinds: Vec<SiteKind> = found[0].sites.iter().map(|s| s.kind).collect();
        assert!(
            matches!(kinds[..], [SiteKind::Lock(_)]),
            "{name}: {kinds:?}"
        );
        let new = write(
            Language::X86,
            &without,
            &program,
            &found[0],
            &goal,
            &Options {
                assume_no_wrap: true,
                ..Options::default()
            },
            &Control::unlimited(),
        )
        .unwrap();
        assert_eq!(new, original, "{name}");
    }
}

/// What is not proved is not called a repair.
#[test]
fn repairs_of_families_are_proved_or_not_claimed() {
    use crate::support::{Scratch, run};
    let scratch = Scratch::new();
    let lost = "\
shared n, taken;
thread t[*] {
    local old;
    loop {
        old = taken;
        taken = taken + 1;
        critical: skip;
    }
}
never t[i]@critical && t[j]@critical;
";
    // Nothing of the kind helps: every thread comes in.
    let ran = run(&["fences", &scratch.file("lost.wtl", lost)]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("no fence and no lock can help"),
        "{}",
        ran.out
    );

    // Who loses a count waits for ever, which is safe; the proof wants counters counted atomically.
    let file = crate::support::root().join("examples/x86/sense_barrier.asm");
    let text = std::fs::read_to_string(file).expect("an example");
    let file = scratch.file("barrier.asm", text.replace("lock dec", "dec"));
    let ran = run(&["fences", &file]);
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    let said = "with up to 3 threads, NOT proved for any number";
    assert!(ran.out.contains(said), "{}", ran.out);
}

/// With a fixed number of threads locks are looked for on request only.
#[test]
fn locks_for_a_fixed_number_of_threads() {
    use crate::support::{Scratch, run};
    let scratch = Scratch::new();
    let text = "\
shared count;
thread p[2] { count = count + 1; }
finally count == 2;
";
    let file = scratch.file("count.wtl", text);
    let plain = run(&["fences", &file]);
    assert_eq!(plain.code, 1, "{}{}", plain.out, plain.err);
    assert!(plain.out.contains("--cost lock=1"), "{}", plain.out);
    let out = scratch.path("fenced.wtl");
    let ran = run(&["fences", &file, "--cost", "lock=1", "--write", &out]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(
        ran.out
            .contains("+thread p[2] { atomic { count = count + 1; } }"),
        "{}",
        ran.out
    );
}

#[test]
fn locks_are_written_in_litmus() {
    let text = "\
X86 INC
{ x=0; }
 P0      | P1      ;
 INC [x] | INC [x] ;
~exists (x=1)
";
    let goal = FenceOptions {
        costs: Costs::with_locks(),
        ..wanted(MemoryModel::Tso, SAFETY, false)
    };
    let found = written(Language::Litmus, text, &goal);
    assert!(found.contains("+ LOCK INC [x] | LOCK INC [x] ;"), "{found}");
}

/// A property that reads memory at a label: the fence belongs before the label.
#[test]
fn a_fence_before_the_label_is_found_and_written() {
    let s = Scratch::new();
    for (text, fences) in [
        ("thread p { y = 1; c: skip; }", "1 fence "),
        (
            "thread p { choose { y = 1; skip; } or { y = 2; skip; } c: skip; }",
            "1 fence ",
        ),
        ("thread p { y = 1; z = 1; c: skip; }", "1 fence "),
    ] {
        let text = format!("shared y: 0..2, z: 0..1;\n{text}\nnever p@c && y == 0;\n");
        let file = s.file("label.wtl", &text);
        for model in ["tso", "pso"] {
            let fenced = s.path("fenced.wtl");
            let r = run(&["fences", &file, "--model", model, "--write", &fenced]);
            assert_eq!(r.code, 0, "{model} {text}{}{}", r.out, r.err);
            assert!(r.out.contains(fences), "{model} {text}{}", r.out);
            let r = run(&["check", &fenced, "--model", model]);
            assert_eq!(r.code, 0, "{model} {text}{}", r.out);
        }
    }
}

/// What no lock repairs is shown on the program as it is.
#[test]
fn what_locks_cannot_repair_is_broken_under_sc() {
    let s = Scratch::new();
    let text = "shared x: 0..1;\nthread t[2] { if x == 0 { x = x + 1; } }\n";
    let file = s.file("range.wtl", text);
    let r = run(&["fences", &file, "--cost", "lock=1"]);
    assert!(!r.out.contains("does not replay"), "{}", r.out);
    assert!(r.out.contains("SC"), "{}{}", r.out, r.err);
}

#[test]
fn costs_that_are_none_are_explained() {
    let file = example("peterson.wtl");
    let r = run(&["fences", &file, "--cost", "swap=9223372036854775807"]);
    assert_eq!(r.code, 2);
    assert!(
        r.err.contains("the largest cost is 4294967295"),
        "{}",
        r.err
    );
    for bad in ["swap=many", "swap=-1", "swap="] {
        let r = run(&["fences", &file, "--cost", bad]);
        assert_eq!(r.code, 2, "{bad}");
        assert!(r.err.contains("is not a number"), "{}", r.err);
    }
}

/// Some engines give only proofs, only runs, or nothing on SC.
#[test]
fn engines_that_cannot_find_fences_say_who_can() {
    let file = example("peterson.wtl");
    for engine in ["multiset", "lazy", "exact", "robust", "params", "coherent"] {
        let r = run(&["fences", &file, "--engine", engine]);
        assert_eq!(r.code, 3, "{engine} {}", r.out);
        assert!(r.out.contains("leave --engine out"), "{engine} {}", r.out);
    }
    for engine in ["explicit", "cegar", "extrapolate"] {
        let r = run(&["fences", &file, "--engine", engine]);
        assert_eq!(r.code, 0, "{engine} {}", r.out);
    }
}

/// The sentence about a fence is about the branch it is in, whatever else the run does.
#[test]
fn why_a_fence_is_needed_names_its_own_branch() {
    let s = Scratch::new();
    let text = "shared x: 0..1, y: 0..1, u: 0..1, v: 0..1;\n\
                thread p { local r: 0..1; choose { x = 1; r = y; if r == 0 { a: skip; } }\n\
                or { u = 1; r = v; if r == 0 { b: skip; } } }\n\
                thread q { local r: 0..1; choose { y = 1; fence; r = x; if r == 0 { c: skip; } }\n\
                or { v = 1; fence; r = u; if r == 0 { d: skip; } } }\n\
                never p@a && q@c;\nnever p@b && q@d;\n";
    let file = s.file("branches.wtl", text);
    let r = run(&["fences", &file]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let whys: Vec<&str> = r.out.lines().filter(|l| l.contains("without it")).collect();
    assert_eq!(whys.len(), 2, "{}", r.out);
    assert!(
        whys[0].contains("load y before its store to x"),
        "{}",
        r.out
    );
    assert!(
        whys[1].contains("load v before its store to u"),
        "{}",
        r.out
    );
}

/// What stops the proof of the written text is told.
#[test]
fn an_interrupted_proof_of_the_written_text_is_no_proof() {
    let text = std::fs::read_to_string(example("peterson.wtl")).expect("the example");
    let program = wattle_syntax::wtl::parse(&text).program.expect("it parses");
    let wanted = wanted(MemoryModel::Tso, Goal::Safety, false);
    let fix = &fixes(&program, &wanted)[0];
    let stop = std::sync::atomic::AtomicBool::new(true);
    let flags = [&stop];
    let control = Control::unlimited().with_cancel(&flags);
    let options = Options::default();
    let written = write(
        Language::Wtl,
        &text,
        &program,
        fix,
        &wanted,
        &options,
        &control,
    );
    let why = written.err().unwrap_or_default();
    assert!(why.contains("could not be proved: interrupted"), "{why}");
}

#[test]
fn a_repair_says_which_families_are_fixed() {
    let file = example("families/two-camps-broken.wtl");
    let r = run(&["fences", &file, "--threads", "left=2"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(
        r.out.contains("for any number of threads with left=2"),
        "{}",
        r.out
    );
}

/// One fence is not enough, and the run that is left passes a place where there is one already.
#[test]
fn a_second_fence_after_one_that_did_not_stop_the_run() {
    let wtl = |text: &str| wattle::parse(Language::Wtl, text).program.unwrap();
    let two = wtl("shared x: 0..1, y: 0..1, z: 0..1;
        thread p { y = 1; x = 1; z = 1; }
        never x == 1 && y == 0; never z == 1 && x == 0;");
    let found = fixes(&two, &wanted(MemoryModel::Pso, Goal::Safety, false));
    assert_eq!(found[0].sites.len(), 2);
    let branch = wtl("shared x: 0..1;
        thread p { local r: 0..1; choose { skip; } or { x = 1; r = any 0..1; } }
        never p.r == 1 && x == 0;");
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let found = fixes(&branch, &wanted(model, Goal::Safety, false));
        assert_eq!(found[0].sites.len(), 1, "{model}");
    }
    // Nobody loads what was stored inside a lock region before it ends: nothing to repair.
    let held = wtl("shared x: 0..1, y: 0..1;
        thread p { local r: 0..1; r = y; x = 1; l: skip; }
        thread q { lock; y = 1; fence; m: skip; unlock; }
        never p@l && p.r == 1 && q@m;");
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let found = fixes(&held, &wanted(model, Goal::Safety, false));
        assert!(found[0].sites.is_empty(), "{model}");
    }
}

#[test]
fn a_program_without_threads_is_refused() {
    let scratch = Scratch::new();
    let file = scratch.file("empty.wtl", "// nothing\n");
    for command in ["fences", "robust", "check"] {
        let out = run(&[command, &file]);
        assert_eq!(out.code, 2, "{command}: {}", out.err);
        assert!(out.err.contains("no threads"), "{command}: {}", out.err);
    }
}
