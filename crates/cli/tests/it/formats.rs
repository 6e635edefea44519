//! What continuous integrations read: SARIF and JUnit against their schemas, annotations line by line,
//! `wattle test`, and directories with things in them that are no programs.

use crate::support::{Scratch, root, run, schema};
use serde_json::Value;
use std::process::Command;

const SB: &str = "// expect: sc holds, tso violated
shared x, y;
thread p { local a; x = 1; a = y; }
thread q { local b; y = 1; b = x; }
finally !(p.a == 0 && q.b == 0);
";

/// The fences are needed, each of them.
const FENCED: &str = "// expect: tso holds
shared x, y;
thread p { local a; x = 1; fence; a = y; }
thread q { local b; y = 1; fence; b = x; }
finally !(p.a == 0 && q.b == 0);
";

const BROKEN: &str = "shared x;\nthread p { x == ; }\n";

/// A directory with a bit of everything: the violated, the fenced, the broken.
fn directory() -> (Scratch, String) {
    let s = Scratch::new();
    s.file("d/a <sb>.wtl", SB);
    s.file("d/b.wtl", FENCED);
    s.file("d/c.wtl", BROKEN);
    s.file(
        "d/fault.wtl",
        "shared a[2]; thread p { local i = 2; a[i] = 1; }",
    );
    let d = s.path("d");
    (s, d)
}

#[test]
fn sarif_fits_its_schema() {
    let (_s, d) = directory();
    let r = run(&["check", &d, "--format", "sarif"]);
    assert_eq!(r.code, 2);
    let log: Value = serde_json::from_str(&r.out).expect("JSON");
    let text = include_str!("support/sarif-2.1.0.schema.json");
    let rules: Value = serde_json::from_str(text).expect("the schema is JSON");
    let errors = schema::errors(&rules, &log);
    assert!(errors.is_empty(), "{errors:#?}\n{log:#}");
    let results = log["runs"][0]["results"].as_array().expect("results");
    let of = |rule: &str| results.iter().filter(|r| r["ruleId"] == rule).count();
    assert_eq!(
        (of("property"), of("fault"), of("input")),
        (2, 1, 1),
        "{log:#}"
    );
    let violated = results
        .iter()
        .find(|r| r["level"] == "error" && r["ruleId"] == "property");
    let violated = violated.expect("a violation");
    assert_eq!(
        violated["locations"][0]["physicalLocation"]["region"]["startLine"],
        5
    );
    let uri = violated["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str();
    assert!(
        uri.is_some_and(|u| u.ends_with("a%20%3Csb%3E.wtl")),
        "{uri:?}"
    );
    assert!(violated["codeFlows"][0]["threadFlows"][0]["locations"].is_array());
}

#[test]
fn junit_fits_its_schema() {
    let (s, d) = directory();
    for command in [&["check", &d][..], &["test", &d, "--control"]] {
        let mut arguments = command.to_vec();
        arguments.extend(["--format", "junit"]);
        let r = run(&arguments);
        assert!(r.out.starts_with("<?xml"), "{}", r.out);
        assert!(r.out.contains("&lt;sb&gt;"), "{}", r.out);
        assert!(!r.out.contains("<sb>"), "{}", r.out);
        let file = s.file("junit.xml", &r.out);
        let xsd = root().join("schema/junit.xsd").display().to_string();
        match Command::new("xmllint")
            .args(["--noout", "--schema", &xsd, &file])
            .output()
        {
            Ok(done) => {
                let said = String::from_utf8_lossy(&done.stderr).into_owned();
                assert!(done.status.success(), "{said}\n{}", r.out);
            }
            Err(_) => println!("skipped: there is no xmllint to check {xsd}"),
        }
    }
}

#[test]
fn annotations_are_one_line_each() {
    let (_s, d) = directory();
    let r = run(&["check", &d, "--format", "github"]);
    assert_eq!(r.out.lines().count(), 3, "{}", r.out);
    assert!(
        r.out.lines().all(|l| l.starts_with("::error file=")),
        "{}",
        r.out
    );
    assert!(r.out.contains(",line=5,"), "{}", r.out);
    // The fence is where the words under a trace have it.
    let peterson = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/peterson.wtl");
    let annotated = run(&["check", peterson, "--format", "github"]).out;
    assert!(
        annotated.contains("a fence after line 10 stops this run"),
        "{annotated}"
    );
    assert!(r.out.contains("c.wtl,line=2,col=17,"), "{}", r.out);
}

#[test]
fn json_of_broken_files_has_places() {
    let s = Scratch::new();
    let broken = s.file("broken.wtl", BROKEN);
    for command in ["check", "fences", "robust"] {
        let r = run(&[command, &broken, "--json"]);
        assert_eq!(r.code, 2, "{command}: {}", r.err);
        let v: Value = serde_json::from_str(&r.out).unwrap_or_else(|e| panic!("{e}: {}", r.out));
        assert_eq!(v["schema"], format!("wattle-{command}-1"), "{v:#}");
        assert_eq!(v["tool"]["name"], "wattle");
        let d = &v["diagnostics"][0];
        assert_eq!((&d["line"], &d["column"]), (&2.into(), &17.into()), "{v:#}");
        assert_eq!(d["severity"], "error");
        assert!(d["message"].is_string() && v["verdict"].is_null());
    }
}

#[test]
fn a_directory_is_summed_up() {
    let (_s, d) = directory();
    let r = run(&["check", &d, "-q"]);
    let last = r.out.lines().last();
    assert_eq!(
        last,
        Some("4 files: 1 hold, 2 violated, 1 not checked"),
        "{}",
        r.out
    );
    let r = run(&["fences", &d, "-q", "-j", "1"]);
    assert_eq!(r.code, 2);
    assert!(
        r.out.contains("b.wtl: no further fence is needed"),
        "{}",
        r.out
    );
    assert!(
        r.out.contains("a <sb>.wtl: 2 fences for safety on TSO"),
        "{}",
        r.out
    );
    let r = run(&["robust", &d, "-q"]);
    assert!(r.out.contains("b.wtl: robust against TSO"), "{}", r.out);
    assert!(
        r.out
            .lines()
            .last()
            .is_some_and(|l| l.starts_with("4 files: ")),
        "{}",
        r.out
    );
}

#[test]
fn tests_want_what_headers_say() {
    let s = Scratch::new();
    s.file("d/sb.wtl", SB);
    s.file("d/fenced.wtl", FENCED);
    let d = s.path("d");
    let r = run(&["test", &d, "--control"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(
        r.out.contains("sb.wtl: sc holds, tso violated"),
        "{}",
        r.out
    );
    assert!(
        r.out.contains("fenced.wtl: tso holds, 2 controls noticed"),
        "{}",
        r.out
    );
    assert!(r.out.ends_with("2 files: 5 as expected\n"), "{}", r.out);
    // A fence too many is noticed by the control, a wrong header by the test.
    let useless = FENCED.replace("b = x;", "b = x; fence;");
    s.file("d/useless.wtl", &useless);
    s.file("d/wrong.wtl", SB.replace("tso violated", "tso holds"));
    let r = run(&["test", &d, "--control", "-q"]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert!(
        r.out
            .contains("without the fence in line 4: nothing is violated (proved)"),
        "{}",
        r.out
    );
    assert!(
        r.out
            .contains("wrong.wtl: tso: violated on TSO; expected: holds"),
        "{}",
        r.out
    );
    let v = run(&["test", &d, "--json"]);
    let v: Value = serde_json::from_str(&v.out).expect("JSON");
    assert_eq!(
        (&v["as_expected"], &v["not_as_expected"]),
        (&5.into(), &1.into()),
        "{v:#}"
    );
    // Nothing expected is no green gate.
    let silent = s.file(
        "silent.wtl",
        SB.lines().skip(1).collect::<Vec<_>>().join("\n"),
    );
    assert_eq!(run(&["test", &silent]).code, 2);
}

#[test]
fn a_wattle_toml_says_what_files_do_not() {
    let s = Scratch::new();
    let plain: String = SB.lines().skip(1).map(|l| format!("{l}\n")).collect();
    s.file("d/lock.wtl", &plain);
    s.file(
        "d/wattle.toml",
        "timeout = \"60s\"\n[[program]]\nfile = \"lock.wtl\"\nexpect = { sc = \"holds\", tso = \"violated\" }\n",
    );
    let d = s.path("d");
    let r = run(&["test", &d]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(
        r.out.contains("lock.wtl: sc holds, tso violated"),
        "{}",
        r.out
    );
    s.file(
        "d/wattle.toml",
        "[[program]]\nfile = \"lock.wtl\"\nexpekt = 3\n",
    );
    let r = run(&["test", &d]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("wattle.toml"), "{}", r.err);
}

/// The time that a `wattle.toml` gives a file is the time of each of its controls too.
#[test]
fn controls_have_the_time_of_their_file() {
    let s = Scratch::new();
    let config = "timeout = \"0s\"\n[[program]]\nfile = \"long.wtl\"\ntimeout = \"60s\"\n[[program]]\nfile = \"short.wtl\"\n";
    s.file("d/wattle.toml", config);
    s.file("d/long.wtl", FENCED);
    s.file("d/short.wtl", FENCED);
    let r = run(&["test", &s.path("d"), "--control"]);
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    let said = "long.wtl: tso holds, 2 controls noticed";
    assert!(r.out.contains(said), "{}", r.out);
    let open = r.out.matches("short.wtl: without the fence").count();
    assert_eq!(open, 2, "{}", r.out);
    // What the command line says is for those of whom the file says nothing.
    s.file("d/wattle.toml", config.replace("timeout = \"0s\"\n", ""));
    let r = run(&["test", &s.path("d"), "--control", "--timeout", "0s"]);
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    assert!(r.out.contains(said), "{}", r.out);
}

#[test]
fn special_files_are_skipped_and_unreadable_ones_told() {
    let s = Scratch::new();
    s.file("d/ok.wtl", FENCED);
    let made = Command::new("mkfifo").arg(s.path("d/pipe.wtl")).status();
    assert!(made.is_ok_and(|m| m.success()));
    let r = run(&["check", &s.path("d"), "-q"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.ends_with("1 file: 1 hold\n"), "{}", r.out);
}

#[test]
fn a_budget_ends_at_the_same_place() {
    let s = Scratch::new();
    let text = "shared x[4]: 0..9; thread p[4] { local r: 0..9; loop { r = any 0..9; x[self] = r; fence; } }
never x[0] == 9 && x[1] == 8 && x[2] == 7 && x[3] == 6 && x[0] == 8;";
    let file = s.file("huge.wtl", text);
    let once = || {
        let r = run(&[
            "check", &file, "--budget", "20", "--engine", "explicit", "--json",
        ]);
        let v: Value = serde_json::from_str(&r.out).expect("JSON");
        (r.code, v["reason"].clone(), v["states"].clone())
    };
    let first = once();
    assert_eq!(first.0, 3);
    assert_eq!(first.1, "out of budget in explicit");
    assert_eq!(first, once());
}

#[test]
fn final_states_of_any_language() {
    let s = Scratch::new();
    let r = run(&["final", &s.file("sb.wtl", SB), "-m", "all"]);
    assert_eq!(r.code, 0, "{}", r.err);
    let expected = "\
3 final states on SC
4 final states on TSO
4 final states on PSO
      TSO PSO x=1; y=1; p.a=0; q.b=0
  SC  TSO PSO x=1; y=1; p.a=0; q.b=1
  SC  TSO PSO x=1; y=1; p.a=1; q.b=0
  SC  TSO PSO x=1; y=1; p.a=1; q.b=1
";
    assert_eq!(r.out, expected);
}

/// The hook for pre-commit looks at every language.
#[test]
fn the_hook_knows_every_language() {
    let help = run(&["--help"]).out;
    let all = help.split("Languages").nth(1).expect("a list of languages");
    let all = all.split("Engines").next().unwrap_or_default();
    let words = all.split(|c: char| c.is_whitespace() || "(),".contains(c));
    let endings: Vec<&str> = words.filter_map(|w| w.strip_prefix('.')).collect();
    assert!(endings.len() > 9, "{help}");
    let hook = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.pre-commit-hooks.yaml");
    let hook = std::fs::read_to_string(hook).expect("the hook");
    let files = hook
        .lines()
        .find(|l| l.contains("files: '"))
        .expect("files");
    for ending in endings {
        let named = files.split(|c: char| !c.is_alphanumeric());
        assert!(named.into_iter().any(|w| w == ending), "{ending}: {files}");
    }
}

#[test]
fn help_names_engines_and_languages() {
    let r = run(&["--help"]);
    for word in [
        "params",
        "extrapolate",
        "cubicle (.cub)",
        "wtl (.wtl)",
        "--color",
    ] {
        assert!(r.out.contains(word), "{word}: {}", r.out);
    }
    assert!(run(&["check", "--help"]).out.contains("[default: 5m"));
    assert!(run(&["--version"]).out.starts_with("wattle 0."));
    let s = Scratch::new();
    assert_eq!(run(&["man", &s.path("")]).code, 0);
    let page = std::fs::read_to_string(s.path("wattle-check.1")).expect("a manual page");
    assert!(page.contains("\\-\\-timeout"), "{page}");
    let sb = s.file("sb.wtl", SB);
    let coloured = run(&["check", &sb, "--color", "always", "-q"]);
    assert!(coloured.out.contains("\x1b[1;31m"), "{}", coloured.out);
    let verbose = run(&["check", &sb, "-q", "-v"]);
    assert!(verbose.out.contains(" states, "), "{}", verbose.out);
}
