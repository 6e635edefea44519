//! What answers say and mean: assumptions, audits that were not made, faults and deadlocks by their
//! own names, `reachable` beside both.

use crate::support::{Ran, Scratch, ran, run, wattle};
use serde_json::Value;

fn check(text: &str, more: &[&str]) -> Ran {
    asked("check", "program.wtl", text, more)
}

fn asked(command: &str, name: &str, text: &str, more: &[&str]) -> Ran {
    let s = Scratch::new();
    let file = s.file(name, text);
    let mut arguments = vec![command, file.as_str()];
    arguments.extend(more);
    run(&arguments)
}

fn json(text: &str, more: &[&str]) -> Value {
    let r = check(text, &[more, &["--json"]].concat());
    serde_json::from_str(&r.out).unwrap_or_else(|e| panic!("{e}: {}", r.out))
}

fn first(r: &Ran) -> &str {
    r.out.lines().next().unwrap_or_default()
}

/// A counter that could only wrap around after 2^32 steps: no instance shows it.
const COUNTS: &str = "shared x: u32;
thread p[*] {
    local r: u32;
    loop { r = fetch_add(x, 1); assert r + 1 != 0; }
}
";

#[test]
fn a_proof_that_assumes_no_wrap_around_is_a_condition() {
    let sc = ["--model", "sc", "--engine", "params", "--timeout", "60s"];
    let r = check(COUNTS, &sc);
    assert_eq!(r.code, 3, "{}", r.out);
    assert!(
        first(&r).starts_with("holds on SC for any number of threads if no number wraps around ("),
        "{}",
        r.out
    );
    assert!(r.out.contains("`--assume no-wrap`"), "{}", r.out);
    let v = json(COUNTS, &sc);
    assert_eq!(v["verdict"], "undecided", "{v:#}");
    assert_eq!(v["scope"]["assumptions"][0]["kind"], "no-wrap", "{v:#}");
    let r = check(COUNTS, &[&sc[..], &["--assume", "no-wrap"]].concat());
    assert_eq!(r.code, 0, "{}", r.out);
    assert!(
        first(&r).contains(", assuming that no number wraps around (proved by params"),
        "{}",
        r.out
    );
}

const STUCK: &str = "shared x;
thread p { choose { x = 1; } or { await x == 5; } }
";

#[test]
fn a_deadlock_is_told_by_its_name_beside_what_holds() {
    for engine in ["auto", "explicit", "reference"] {
        let more = ["--model", "sc", "--deadlock", "--engine", engine];
        // Reached, and stuck: two questions.
        let r = check(&format!("{STUCK}reachable x == 1;"), &more);
        assert_eq!(r.code, 1, "{engine}: {}", r.out);
        assert!(first(&r).starts_with("holds on SC"), "{}", r.out);
        assert!(r.out.contains("violated: deadlock (on SC)"), "{}", r.out);
        // A property that holds is not called violated.
        let r = check(&format!("{STUCK}never x == 2;"), &more);
        assert_eq!(r.code, 1, "{engine}: {}", r.out);
        assert_eq!(first(&r), "violated: deadlock (on SC)");
        assert!(
            r.out.contains("met while checking: never x == 2"),
            "{}",
            r.out
        );
    }
    let v = json(&format!("{STUCK}never x == 2;"), &["--deadlock"]);
    assert_eq!(v["violation"]["kind"], "deadlock", "{v:#}");
    assert_eq!(v["property"], "never x == 2", "{v:#}");
}

#[test]
fn the_absence_of_deadlock_is_said() {
    let text = "shared x; thread p { x = 1; } never x == 2;";
    let r = check(text, &["--deadlock"]);
    assert_eq!(r.code, 0, "{}", r.out);
    assert!(
        first(&r).contains(", and no deadlock (proved by"),
        "{}",
        r.out
    );
    assert!(!first(&check(text, &[])).contains("deadlock"));
}

#[test]
fn a_fault_is_told_by_its_name() {
    let text = "shared a[2]; thread p { local i = 2; a[i] = 1; } never a[0] == 5;";
    let r = check(text, &[]);
    assert_eq!(r.code, 1, "{}", r.out);
    assert_eq!(
        first(&r),
        "violated: index 2 outside an array of 2 (on TSO)"
    );
    let v = json(text, &[]);
    assert_eq!(v["violation"]["kind"], "fault", "{v:#}");
    assert_eq!(v["violation"]["what"], "index 2 outside an array of 2");
    let v = json("shared x; thread p { x = 1; } never x == 1;", &[]);
    assert_eq!(v["violation"]["kind"], "property", "{v:#}");
    assert_eq!(v["violation"]["what"], "never x == 1");
}

/// Asserts, indexes, ranges, divisions: whatever fails elsewhere, and whenever it is met.
#[test]
fn reachable_does_not_mind_faults_elsewhere() {
    let wrong = [
        "assert 0;",
        "skip; skip; skip; assert 0;",
        "a[r + 2] = 1;",
        "n = 4;",
        "r = 1 / r;",
        "atomic { x = 1; assert x == 0; }",
    ];
    for (wrong, reached) in wrong.iter().flat_map(|w| [(w, true), (w, false)]) {
        let right = if reached { "x = 1;" } else { "x = 2;" };
        let text = format!(
            "shared x, a[2], n: 0..3;
thread p {{ local r; choose {{ {wrong} }} or {{ {right} }} }}
reachable x == 1;"
        );
        for engine in [
            "auto",
            "explicit",
            "reference",
            "coherent",
            "exact",
            "multiset",
            "lazy",
            "cegar",
        ] {
            for order in ["bfs", "dfs"] {
                for model in ["sc", "tso"] {
                    let more = ["--model", model, "--order", order, "--engine", engine];
                    let more = [&more[..], &["--timeout", "60s"]].concat();
                    let r = check(&text, &more);
                    let told = format!("{engine} {order} {model}: {text}\n{}{}", r.out, r.err);
                    let right = if reached { 0 } else { 1 };
                    let all = matches!(engine, "auto" | "explicit" | "reference");
                    assert!(r.code == right || (!all && r.code == 3), "{told}");
                }
            }
        }
    }
}

/// The run says how many threads it has, and so does its file.
#[test]
fn runs_for_any_number_of_threads_replay() {
    let s = Scratch::new();
    let text = "shared x;\nthread p[*] { x = 1; a: skip; }\nnever p[i]@a && p[j]@a;\n";
    let (file, trace) = (s.file("open.wtl", text), s.path("run.json"));
    let r = run(&["check", &file, "--trace", &trace]);
    assert_eq!(r.code, 1, "{}", r.out);
    assert_eq!(first(&r), "violated on TSO with 2 threads");
    let r = run(&["replay", &file, &trace]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.contains("the trace replays on TSO"), "{}", r.out);
    let r = run(&["show", &file, "--as", "svg", "--trace", &trace]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(r.out.contains("<svg"), "{}", r.out);
}

#[test]
fn without_an_audit_the_answer_says_so() {
    let sb = "shared x, y;
thread p { local a; x = 1; fence; a = y; }
thread q { local b; y = 1; fence; b = x; }
finally !(p.a == 0 && q.b == 0);
";
    let r = check(sb, &["--no-audit"]);
    assert!(first(&r).ends_with(", not audited)"), "{}", r.out);
    let v = json(sb, &["--no-audit"]);
    assert_eq!(
        (&v["audited"], &v["audit_reason"]),
        (&false.into(), &"switched off".into())
    );
    let r = asked("robust", "sb.wtl", sb, &["--no-audit"]);
    assert_eq!(r.code, 0, "{}", r.out);
    assert!(r.out.contains(", not audited)"), "{}", r.out);
    for goal in ["safety", "robustness"] {
        let r = asked("fences", "sb.wtl", sb, &["--no-audit", "--goal", goal]);
        assert_eq!(r.code, 0, "{}", r.out);
        assert!(r.out.contains("proved (not audited)"), "{}", r.out);
        let r = asked("fences", "sb.wtl", sb, &["--goal", goal]);
        assert!(!r.out.contains("not audited"), "{}", r.out);
    }
}

/// The place told is the place written, before the label: who is at it is past the fence.
#[test]
fn the_fence_told_is_the_fence_written() {
    let text = "shared x, y;
thread p {
    local r;
    x = 1;
    r = y;
    if y == 1 { x = 2; }
    end:
}
thread q { y = 1; }
never p@end && x < 2 && p.r == 1;
";
    let s = Scratch::new();
    let (file, fenced) = (s.file("end-label.wtl", text), s.path("fenced.wtl"));
    let r = run(&["fences", &file, "--write", &fenced]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.contains("fence before line 7\n"), "{}", r.out);
    let written = std::fs::read_to_string(&fenced).expect("the fenced program");
    assert_eq!(written, text.replace("    end:", "    fence;\n    end:"));
    assert_eq!(run(&["check", &fenced]).code, 0);
}

const CUB: &str = "array A[proc] : bool
init (z) { A[z] = False }
unsafe (a b c) { A[a] = True && A[b] = True && A[c] = True }
transition t (i) requires { A[i] = False } { A[i] := True; }
";

#[test]
fn systems_have_the_number_of_threads_that_is_given() {
    let cub = CUB;
    let r = asked("check", "three.cub", cub, &["--model", "sc"]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    let r = asked(
        "check",
        "three.cub",
        cub,
        &["--model", "sc", "--threads", "2"],
    );
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(first(&r).contains("for 2 threads ("), "{}", r.out);
    for wrong in ["p=2", "0"] {
        let r = asked("check", "three.cub", cub, &["--threads", wrong]);
        assert_eq!(r.code, 2, "{}{}", r.out, r.err);
    }
    // A run that breaks what the file takes for granted is no run of it.
    let given = format!("{cub}invariant (a b) {{ A[a] = True && A[b] = True }}\n");
    let r = asked("check", "given.cub", &given, &["--model", "sc"]);
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    assert!(r.out.contains("the invariant of line"), "{}", r.out);
}

/// What a file says of its own system is proved, and then named, or taken for granted, and then said.
#[test]
fn invariants_that_were_proved_are_named() {
    let cub = "type t = X | Y | Z
array A[proc] : t
var L : bool
init (z) { A[z] = X && L = False }
invariant (a) { A[a] = Z }
invariant (a b) { A[a] = Y && A[b] = Y }
unsafe (a b) { A[a] = Y && A[b] = Y && L = True }
transition t (i) requires { A[i] = X && L = False } { A[i] := Y; L := True; }
transition u (i) requires { A[i] = Y } { A[i] := X; L := False; }
";
    let r = asked("check", "named.cub", cub, &["--model", "sc"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let told = "and so do the invariants of lines 5 and 6 (proved by params, audited)";
    assert!(first(&r).contains(told), "{}", r.out);
    let r = asked("check", "named.cub", cub, &["--model", "sc", "--json"]);
    let v: serde_json::Value = serde_json::from_str(&r.out).expect("JSON");
    assert_eq!(v["scope"]["invariants"], serde_json::json!([5, 6]), "{v:#}");
    // One that is not so is neither used nor named.
    let wrong = cub.replace("invariant (a) { A[a] = Z }", "invariant (a) { A[a] = Y }");
    let r = asked("check", "wrong.cub", &wrong, &["--model", "sc"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let told = "and so does the invariant of line 6 (proved by params, audited)";
    assert!(first(&r).contains(told), "{}", r.out);
}

/// What a file claims of cells that nothing ever writes says which systems are meant, and the verdict says so. If
/// something writes them it is a claim like any other.
#[test]
fn invariants_about_what_never_changes_are_taken_for_granted() {
    let cub = "array A[proc] : bool
array B[proc] : bool
init (z) { A[z] = False }
invariant (a b) { B[a] = True && B[b] = True }
unsafe (a b) { A[a] = True && A[b] = True }
transition t (i) requires { A[i] = False && B[i] = True } { A[i] := True; }
";
    let r = asked("check", "given.cub", cub, &["--model", "sc"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let told = "assuming that the file's invariants about what never changes hold";
    assert!(r.out.contains(told), "{}", r.out);
    let written = format!("{cub}transition u (i) {{ B[i] := True; }}\n");
    let r = asked("check", "written.cub", &written, &["--model", "sc"]);
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    assert!(r.out.contains("the invariant of line 4"), "{}", r.out);
    // Without it there is no such premise.
    let claim = "invariant (a b) { B[a] = True && B[b] = True }\n";
    let bare = cub.replace(claim, "");
    let r = asked("check", "bare.cub", &bare, &["--model", "sc"]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
}

/// Whoever reads only the exit code must not take a lost answer for one.
#[test]
#[cfg(target_os = "linux")]
fn an_answer_that_cannot_be_written_is_an_error() {
    let s = Scratch::new();
    let file = s.file("ok.wtl", "shared x; thread p { x = 1; } never x == 2;");
    let full = std::fs::File::options().write(true).open("/dev/full");
    let full = full.expect("a device that is always full");
    let mut command = wattle();
    let r = ran(command.args(["check", file.as_str()]).stdout(full).output());
    assert_eq!(r.code, 2, "{}", r.err);
    assert!(r.err.contains("could not be written"), "{}", r.err);
}

/// A run that is wanted, found with another number of threads than the violation of another property.
#[test]
fn what_is_reachable_with_more_threads_is_no_violation() {
    let text = "thread p[*] { local r; } never 1; reachable for p[i], p[j]: 1 || p[j].r;";
    let r = check(text, &["--model", "sc"]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert_eq!(r.out.matches("violated").count(), 1, "{}", r.out);
    assert_eq!(
        r.out.matches("holds on SC for 2 threads").count(),
        1,
        "{}",
        r.out
    );
}

/// One run for each trace: what it proves is audited, what it breaks is replayed.
#[test]
fn traces_prove_and_break() {
    let text = |fence: &str| {
        let thread = |p: &str, mine: &str, other: &str| {
            format!("thread {p} {{ local r; {mine} = 1; {fence} r = {other}; }}\n")
        };
        let threads = thread("p", "x", "y") + &thread("q", "y", "x");
        format!("shared x, y;\n{threads}finally !(p.r == 0 && q.r == 0);\n")
    };
    for more in [["--engine", "traces"], ["--reduce", "traces"]] {
        let r = check(&text("fence;"), &more);
        assert_eq!(r.code, 0, "{}{}", r.out, r.err);
        assert!(
            first(&r).contains("(proved by traces, audited)"),
            "{}",
            r.out
        );
        let r = check(&text(""), &more);
        assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    }
    let spins = "shared x;\nthread p { local r; while r == 0 { r = x; } }\nnever x == 1;\n";
    let r = check(spins, &["--engine", "traces"]);
    assert_eq!(r.code, 0, "{}", r.out);
    let endless = "shared x;\nthread p { loop { x = 1; fence; x = 0; fence; } }\nnever x == 2;\n";
    let r = check(endless, &["--engine", "traces"]);
    assert_eq!(r.code, 3, "{}", r.out);
}

/// `--buffer k=N`: what does not fit is said, and is no proof. Under PSO cells may have other lengths.
#[test]
fn buffers_of_a_length() {
    let text = "shared x, y;
thread p { x = 1; x = 2; y = 1; }
thread q { local r, s; r = y; s = x; }
never q.r == 2 && q.s == 3;";
    for (more, code, word) in [
        ("--model pso --buffer k=1", 3, "NOT a proof"),
        ("--model pso --buffer k=2", 0, "holds on PSO"),
        ("--model pso --buffer k=1,x=2", 0, "holds on PSO"),
        ("--model pso --buffer k=1,y=2", 3, "NOT a proof"),
        ("--model tso --buffer k=2", 3, "NOT a proof"),
        ("--model tso --buffer k=3", 0, "holds on TSO"),
        (
            "--model tso --buffer k=1,x=2",
            3,
            "one buffer for all cells",
        ),
        ("--model pso --buffer k=1,z=2", 3, "no cell called `z`"),
        ("--buffer 2", 2, "`k=N` is expected"),
        ("--buffer k=1,k", 2, "`k=N` is expected"),
        ("--buffer k=1 --engine cegar", 2, "for --engine explicit"),
        ("--buffer k=1 --content set", 2, "cannot be used with"),
    ] {
        let words: Vec<&str> = more.split_whitespace().collect();
        let r = check(text, &words);
        let told = format!("{more:?}: {}{}", r.out, r.err);
        assert_eq!(r.code, code, "{told}");
        assert!(told.contains(word), "{told}");
    }
}
