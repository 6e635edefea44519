//! The command line as people and programs meet it: exit codes, errors, formats, budgets.

use crate::support::{Ran, Scratch, ran, run, wattle};

const SB: &str = "shared x, y;
thread p { local a; x = 1; a = y; }
thread q { local b; y = 1; b = x; }
finally !(p.a == 0 && q.b == 0);
";

const MP: &str = "shared data, ready;
thread writer { data = 1; ready = 1; }
thread reader { local r, d; r = ready; d = data; }
finally !(reader.r == 1 && reader.d == 0);
";

/// Far more states than anyone can visit.
const HUGE: &str = "shared x[6]: 0..9;
thread p[6] { local r: 0..9; loop { r = any 0..9; x[self] = r; fence; } }
never x[0] == 9 && x[1] == 8 && x[2] == 7 && x[3] == 6 && x[4] == 5 && x[5] == 4 && x[0] == 8;
";

const FAMILY: &str = "shared lock;
thread t[*] { acquire: while swap(lock, 1) == 1 { } critical: skip; lock = 0; goto acquire; }
never t[i]@critical && t[j]@critical;
";

fn check(files: &[&str], more: &[&str]) -> Ran {
    let mut arguments = vec!["check"];
    arguments.extend(files);
    arguments.extend(more);
    run(&arguments)
}

#[test]
fn verdicts_have_their_exit_codes() {
    let s = Scratch::new();
    let sb = s.file("sb.wtl", SB);
    let mp = s.file("mp.wtl", MP);
    let holds = check(&[&mp], &[]);
    assert_eq!((holds.code, holds.err.as_str()), (0, ""));
    assert!(
        holds.out.starts_with("holds on TSO for 2 threads"),
        "{}",
        holds.out
    );
    let violated = check(&[&sb], &[]);
    assert_eq!(violated.code, 1);
    assert!(
        violated.out.starts_with("violated on TSO\n"),
        "{}",
        violated.out
    );
    assert_eq!(check(&[&sb], &["--model", "sc"]).code, 0);
    assert_eq!(check(&[&mp], &["--model", "pso"]).code, 1);
    assert_eq!(check(&[&mp], &["--model", "all"]).code, 1);
    assert_eq!(check(&[&sb, &mp], &[]).code, 1);
}

/// Buffers that forget prove; their runs count only if they are real; a bound is no proof.
#[test]
fn buffers_can_be_told_what_to_remember() {
    let s = Scratch::new();
    let sb = s.file("sb.wtl", SB);
    let mp = s.file("mp.wtl", MP);
    let spinning = "shared x: 0..1, y: 0..1;
        thread p { local r: 0..1; loop { x = 1; r = y; } }
        thread q { local r: 0..1; loop { y = 0; r = x; } }
        never y == 1;";
    let spinning = s.file("spinning.wtl", spinning);
    let with = |file: &str, content: &str| {
        let more = ["--engine", "explicit", "--content", content];
        check(&[file], &more).code
    };
    for content in ["set", "multiset", "oldest=1", "newest=1", "atmost=1"] {
        assert_eq!(with(&sb, content), 1, "{content}");
    }
    for content in ["oldest=1", "oldest=2", "newest=2", "atmost=2"] {
        assert_eq!(with(&mp, content), 0, "{content}");
    }
    // Without order the second store may leave first, which on TSO it does not.
    for content in ["set", "multiset"] {
        assert_eq!(with(&mp, content), 3, "{content}");
    }
    for (content, code) in [
        ("set", 0),
        ("oldest=1", 0),
        ("multiset", 3),
        ("atmost=2", 3),
    ] {
        assert_eq!(with(&spinning, content), code, "{content}");
    }
    assert_eq!(with(&sb, "oldest"), 2);
    assert_eq!(check(&[&sb], &["--content", "set"]).code, 2);
    assert_eq!(
        check(
            &[&mp],
            &["--engine", "explicit", "--content", "set", "--model", "sc"]
        )
        .code,
        0
    );
}

#[test]
fn a_broken_file_never_stops_the_others() {
    let s = Scratch::new();
    let sb = s.file("sb.wtl", SB);
    let broken = s.file("broken.wtl", "shared x\nthread p { x == ; }\n");
    let r = check(&[&broken, &sb], &[]);
    assert_eq!(r.code, 2);
    assert!(r.out.contains("sb.wtl: violated on TSO"), "{}", r.out);
    assert!(r.err.contains("broken.wtl:"), "{}", r.err);
    assert!(r.err.contains('^'), "{}", r.err);
}

#[test]
fn inputs_that_are_no_programs() {
    let s = Scratch::new();
    let says = |file: &str, words: &str| {
        let r = check(&[file], &[]);
        assert_eq!(r.code, 2, "{file}: {}", r.out);
        assert_eq!(r.out, "", "{file}");
        assert!(r.err.contains(words), "{file}: {}", r.err);
    };
    says(&s.file("binary.wtl", [0u8, 159, 146, 150]), "UTF-8");
    says(&s.file("empty.wtl", ""), "empty");
    says(&s.file("blank.wtl", " \n\n"), "empty");
    says(&s.file("comment.wtl", "// nothing\n"), "comment.wtl");
    says(&s.file("unknown.xyz", SB), "--lang");
    says(&s.path("absent.wtl"), "cannot be read");
    says("-", "--lang");
    let folder = s.path("folder");
    std::fs::create_dir(&folder).expect("a folder");
    says(&folder, "no programs");
}

#[test]
fn command_lines_that_are_wrong() {
    let s = Scratch::new();
    let sb = s.file("sb.wtl", SB);
    let family = s.file("family.wtl", FAMILY);
    for wrong in [
        &["check"][..],
        &["chekc", &sb],
        &["check", &sb, "--model", "arm"],
        &["check", &sb, "--engine", "magic"],
        &["check", &sb, "--timeout", "soon"],
        &["check", &sb, "--memory", "4X"],
        &["check", &sb, "--threads", "p"],
        &["check", &sb, "--threads", "nobody=2"],
        &["check", &sb, "--threads", "p=2"],
        &["check", &family, "--threads", "t=2", "--threads", "t=3"],
        &["check", &sb, &family, "--trace", "t.json"],
        &["check", &sb, "--jobs", "0"],
        &["replay", &sb],
    ] {
        let r = run(wrong);
        assert_eq!(r.code, 2, "{wrong:?}");
        assert!(!r.err.is_empty(), "{wrong:?}");
        assert_eq!(r.out, "", "{wrong:?}");
    }
    for right in [&["--help"][..], &["--version"], &["check", "--help"]] {
        let r = run(right);
        assert_eq!((r.code, r.err.as_str()), (0, ""), "{right:?}");
        assert!(!r.out.is_empty());
    }
}

#[test]
fn directories_and_jobs_keep_their_order() {
    let s = Scratch::new();
    for i in 0..6 {
        let text = if i % 2 == 0 { SB } else { MP };
        s.file(&format!("d/{i}.wtl"), text);
    }
    s.file("d/notes.txt", "not a program");
    s.file("d/deeper/z.wtl", SB);
    let folder = s.path("d");
    let one = check(&[&folder], &["--quiet", "--jobs", "1"]);
    let many = check(&[&folder], &["--quiet", "--jobs", "8"]);
    assert_eq!(one.out, many.out);
    assert_eq!(one.code, 1);
    assert_eq!(one.out.lines().count(), 8, "{}", one.out);
    let last = one.out.lines().last();
    assert_eq!(last, Some("7 files: 3 hold, 4 violated"), "{}", one.out);
    let names: Vec<&str> = one
        .out
        .lines()
        .take(7)
        .filter_map(|l| l.split(": ").next())
        .collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(names, sorted);
}

#[test]
fn standard_input() {
    use std::io::Write;
    let mut child = wattle()
        .args(["check", "-", "--lang", "wtl", "--model", "sc"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(SB.as_bytes())
        .expect("it reads");
    let r = ran(child.wait_with_output());
    assert_eq!(r.code, 0);
    assert!(r.out.starts_with("holds on SC"), "{}", r.out);
}

#[test]
fn budgets_end_in_undecided() {
    let s = Scratch::new();
    let huge = s.file("huge.wtl", HUGE);
    let time = check(&[&huge], &["--engine", "explicit", "--timeout", "300ms"]);
    assert_eq!(time.code, 3, "{}", time.out);
    assert!(time.out.contains("out of time after"), "{}", time.out);
    let memory = check(&[&huge], &["--engine", "explicit", "--memory", "60M"]);
    assert_eq!(memory.code, 3, "{}", memory.out);
    assert!(memory.out.contains("out of memory"), "{}", memory.out);
}

#[test]
fn open_families_need_a_number() {
    let s = Scratch::new();
    let family = s.file("family.wtl", FAMILY);
    let two = check(&[&family], &["--threads", "t=2"]);
    assert_eq!(two.code, 0, "{}{}", two.out, two.err);
    assert!(
        two.out.starts_with("holds on TSO for 2 threads"),
        "{}",
        two.out
    );
}

/// Whether the process has its handler in place; true where the system does not tell.
fn catches_interrupts(id: &str) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{id}/status")) else {
        return true;
    };
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|m| u64::from_str_radix(m.trim(), 16).ok());
    mask.is_none_or(|m| m & 2 != 0)
}

/// Whether a process has had a fifth of a second of a processor: there is something to know then, on a busy machine too.
fn has_worked(id: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else {
        return true;
    };
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: Vec<u64> = fields.skip(11).take(2).flat_map(str::parse).collect();
    ticks.iter().sum::<u64>() >= 20
}

#[test]
fn an_interrupt_gives_what_is_known() {
    let s = Scratch::new();
    let huge = s.file("huge.wtl", HUGE);
    let child = wattle()
        .args(["check", &huge, "--engine", "explicit"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let id = child.id().to_string();
    while !(catches_interrupts(&id) && has_worked(&id)) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let killed = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(killed.is_ok_and(|k| k.success()));
    let r = ran(child.wait_with_output());
    assert_eq!(r.code, 3, "{}", r.out);
    assert!(r.out.contains("interrupted after"), "{}", r.out);
    assert!(r.out.contains("so far:"), "{}", r.out);
}

#[test]
fn traces_and_certificates_go_round() {
    let s = Scratch::new();
    let (sb, mp) = (s.file("sb.wtl", SB), s.file("mp.wtl", MP));
    let (trace, proof) = (s.path("t.json"), s.path("c.json"));
    assert_eq!(check(&[&sb], &["--trace", &trace]).code, 1);
    let replayed = run(&["replay", &sb, &trace]);
    assert_eq!(replayed.code, 0, "{}", replayed.err);
    assert!(replayed.out.contains("overtook"), "{}", replayed.out);
    assert_eq!(run(&["replay", &sb, &trace, "--json"]).code, 0);
    assert_eq!(check(&[&mp], &["--certificate", &proof]).code, 0);
    let audited = run(&["audit", &mp, &proof]);
    assert_eq!(audited.code, 0, "{}", audited.err);
    assert!(audited.out.contains("closed set"), "{}", audited.out);
    // The wrong program, the wrong kind, and nonsense.
    assert_eq!(run(&["replay", &mp, &trace]).code, 2);
    assert_eq!(run(&["audit", &sb, &proof]).code, 2);
    assert_eq!(run(&["audit", &mp, &trace]).code, 2);
    assert_eq!(run(&["audit", &mp, &mp]).code, 2);
    assert_eq!(run(&["replay", &sb, &s.path("absent")]).code, 2);
}

#[test]
fn a_page_has_every_verdict_trace_and_source() {
    let scratch = Scratch::new();
    let sb = scratch.file("sb.wtl", SB);
    let broken = scratch.file("broken.wtl", "shared <");
    let page = scratch.path("page.html");
    assert_eq!(
        check(&[&sb, &broken], &["--model", "all", "--report", &page]).code,
        2
    );
    let html = std::fs::read_to_string(&page).expect("a page");
    for part in [
        "holds on SC",
        "violated on TSO",
        "violated on PSO",
        "not checked: ",
        "SC forbids it",
    ] {
        assert!(html.contains(part), "{part} is missing");
    }
    // A row of the trace links to its line of the source.
    assert!(html.contains("href=\"#l0-") && html.contains("id=\"l0-"));
    assert_eq!(html.matches("</svg>").count(), 2);
    assert!(!html.contains("<script") && !html.contains("src=") && !html.contains("href=\"http"));
    let nowhere = scratch.path("no/such/folder.html");
    assert_eq!(check(&[&sb], &["--report", &nowhere]).code, 2);
}

#[test]
fn tampered_evidence_is_told() {
    let s = Scratch::new();
    let (sb, mp) = (s.file("sb.wtl", SB), s.file("mp.wtl", MP));
    let (trace, proof) = (s.path("t.json"), s.path("c.json"));
    check(&[&sb], &["--trace", &trace]);
    check(&[&mp], &["--certificate", &proof]);
    let read = |path: &str| -> serde_json::Value {
        let text = std::fs::read_to_string(path).expect("written");
        serde_json::from_str(&text).expect("JSON")
    };
    let mut shorter = read(&trace);
    if let Some(events) = shorter["evidence"]["events"].as_array_mut() {
        events.remove(0);
    }
    let shorter = s.file("shorter.json", shorter.to_string());
    let r = run(&["replay", &sb, &shorter]);
    assert_eq!(r.code, 4, "{}", r.err);
    assert!(r.err.contains("does not replay"), "{}", r.err);
    let mut cut = read(&proof);
    let rows = cut["evidence"]["rows"].as_str().expect("rows").to_string();
    cut["evidence"]["rows"] = rows[..rows.len() / 8 * 4].into();
    let cut = s.file("cut.json", cut.to_string());
    assert_eq!(run(&["audit", &mp, &cut]).code, 4);
    let mut empty = read(&proof);
    empty["evidence"]["rows"] = "".into();
    empty["evidence"]["count"] = 0.into();
    let empty = s.file("empty.json", empty.to_string());
    let r = run(&["audit", &mp, &empty]);
    assert_eq!(r.code, 4, "{}", r.err);
    assert!(r.err.contains("initial"), "{}", r.err);
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let s = Scratch::new();
    let sb = s.file("sb.wtl", SB);
    let mut child = wattle()
        .args(["check", &sb, &sb, &sb])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let r = ran(child.wait_with_output());
    assert!(!r.err.contains("panic"), "{}", r.err);
}

#[test]
fn vacuous_proofs_are_told() {
    let s = Scratch::new();
    let text = "shared x;
thread p[2] { await x == 1; critical: skip; }
never p[i]@critical && p[j]@critical;
";
    let r = check(&[&s.file("vacuous.wtl", text)], &[]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(
        r.out.contains("warning: no thread ever reaches `critical`"),
        "{}",
        r.out
    );
}

#[test]
fn programs_without_property_say_so() {
    let s = Scratch::new();
    let fine = "shared x; thread p { x = 1; assert x == 1; }";
    let r = check(&[&s.file("fine.wtl", fine)], &[]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.contains("assertions and faults only"), "{}", r.out);
    let broken = "shared x; thread p { x = 1; assert x == 2, \"two is wanted\"; }";
    let r = check(&[&s.file("broken.wtl", broken)], &[]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert!(r.out.contains("two is wanted"), "{}", r.out);
}

#[test]
fn deadlock_on_request() {
    let s = Scratch::new();
    let text = "shared x, y;
thread p { await x == 1; y = 1; }
thread q { await y == 1; x = 1; }
";
    let file = s.file("deadlock.wtl", text);
    assert_eq!(check(&[&file], &[]).code, 0);
    let r = check(&[&file], &["--deadlock"]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert!(
        r.out.contains("deadlock: p at line 2, q at line 3"),
        "{}",
        r.out
    );
    let fine = s.file("fine.wtl", MP);
    assert_eq!(check(&[&fine], &["--deadlock"]).code, 0);
}

#[test]
fn deadlock_counts_stores_that_stay_and_not_false_assumptions() {
    let scratch = Scratch::new();
    let kept = "shared x, y;\nthread p { lock; x = 1; }\nthread q { y = 1; }\n";
    let kept = scratch.file("kept.wtl", kept);
    let assumed = "shared x;\nthread p { local r; assume r == 1; }\n";
    let assumed = scratch.file("assumed.wtl", assumed);
    for engine in ["explicit", "reference"] {
        for model in ["sc", "tso", "pso"] {
            let more = ["--deadlock", "--engine", engine, "--model", model];
            let ran = check(&[&kept], &more);
            assert_eq!(ran.code, 1, "{engine} {model}: {}", ran.err);
            assert!(ran.out.contains("deadlock: "), "{}", ran.out);
            let ran = check(&[&assumed], &more);
            assert_eq!(ran.code, 0, "{engine} {model}: {}", ran.err);
        }
    }
}

#[test]
fn what_was_not_written_is_told() {
    let scratch = Scratch::new();
    let sb = scratch.file("sb.wtl", SB);
    let path = scratch.path("evidence.json");
    for (model, flag, what) in [
        ("sc", "--trace", "run to show"),
        ("tso", "--certificate", "proof"),
    ] {
        let ran = check(&[&sb], &["--model", model, flag, &path]);
        assert!(
            ran.err.contains(&format!("there is no {what}")),
            "{}",
            ran.err
        );
        assert!(!std::path::Path::new(&path).exists());
    }
}

#[test]
fn reachable_turns_the_question_round() {
    let s = Scratch::new();
    let text = SB.replace("finally !(", "reachable (");
    let file = s.file("reachable.wtl", text);
    let tso = check(&[&file], &[]);
    assert_eq!(tso.code, 0, "{}", tso.out);
    assert!(tso.out.starts_with("holds on TSO"), "{}", tso.out);
    let sc = check(&[&file], &["--model", "sc"]);
    assert_eq!(sc.code, 1, "{}", sc.out);
    assert!(sc.out.contains("no run ends like that"), "{}", sc.out);
}

#[test]
fn the_reference_engine_agrees() {
    let s = Scratch::new();
    for (text, codes) in [(SB, [0, 1, 1]), (MP, [0, 0, 1])] {
        let file = s.file("program.wtl", text);
        for (model, code) in ["sc", "tso", "pso"].into_iter().zip(codes) {
            for engine in ["explicit", "reference"] {
                let r = check(&[&file], &["--model", model, "--engine", engine]);
                assert_eq!(r.code, code, "{model} {engine}: {}", r.out);
            }
        }
    }
}

#[test]
fn show_and_completions() {
    let s = Scratch::new();
    let sb = s.file("sb.wtl", SB);
    let shown = run(&["show", &sb]);
    assert_eq!(shown.code, 0);
    let again = s.file("again.wtl", &shown.out);
    assert_eq!(run(&["show", &again]).out, shown.out);
    let dot = run(&["show", &sb, "--as", "dot"]);
    assert!(dot.out.starts_with("digraph"), "{}", dot.out);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let r = run(&["completions", shell]);
        assert_eq!(r.code, 0);
        assert!(r.out.contains("wattle"));
    }
}
