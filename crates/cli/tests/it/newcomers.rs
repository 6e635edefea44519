//! What stood in the way of people who use it for the first time.

use crate::support::{Ran, Scratch, ran, root, run, wattle};
use serde_json::Value;
use std::process::Command;

fn json(r: &Ran) -> Value {
    serde_json::from_str(&r.out).unwrap_or_else(|e| panic!("{e}\n{}{}", r.out, r.err))
}

/// A script that reads JSON gets an object for a broken file too, from every command that has `--json`.
#[test]
fn broken_files_are_json_everywhere() {
    let s = Scratch::new();
    let broken = s.file("broken.wtl", "shared x;\nthread p { x = ; }\n");
    let fine = s.file(
        "fine.wtl",
        "shared x;\nthread p { x = 1; }\nnever x == 2;\n",
    );
    let (proof, none) = (s.path("proof.json"), s.path("none.json"));
    assert_eq!(run(&["check", &fine, "--certificate", &proof]).code, 0);
    let commands: [&[&str]; 8] = [
        &["check", &broken],
        &["fences", &broken],
        &["robust", &broken],
        &["final", &broken],
        &["litmus", &broken],
        &["audit", &broken, &proof],
        &["replay", &broken, &proof],
        &["show", &broken],
    ];
    for command in commands {
        let r = run(&[command, &["--json"]].concat());
        assert_eq!(r.code, 2, "{command:?}: {}{}", r.out, r.err);
        let v = json(&r);
        let schema = format!("wattle-{}-1", command[0]);
        assert_eq!(v["schema"], schema, "{v:#}");
        assert_eq!(v["file"], broken, "{v:#}");
        assert_eq!(v["reason"], "1 error", "{v:#}");
        let first = &v["diagnostics"][0];
        assert!(
            first["line"].is_u64() && first["message"].is_string(),
            "{v:#}"
        );
    }
    // Evidence that is not there, or about something else, is told as well.
    for (command, path) in [("audit", &none), ("replay", &proof)] {
        let r = run(&[command, &fine, path, "--json"]);
        assert_eq!(r.code, 2, "{}{}", r.out, r.err);
        let v = json(&r);
        let reason = v["reason"].as_str().unwrap_or("");
        assert!(reason.starts_with(path.as_str()), "{v:#}");
    }
}

/// A link back to where one comes from is not followed again and again.
#[test]
#[cfg(unix)]
fn links_that_lead_round() {
    let s = Scratch::new();
    s.file("d/sub/a.wtl", "shared x; thread p { x = 1; } never x == 2;");
    let linked = std::os::unix::fs::symlink(s.path("d"), s.path("d/sub/back"));
    linked.expect("a link");
    let r = run(&["check", "-q", &s.path("d")]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.ends_with("1 file: 1 hold\n"), "{}", r.out);
}

#[test]
#[cfg(target_os = "linux")]
fn help_that_cannot_be_written_is_an_error() {
    for arguments in [&["--help"][..], &["--version"], &["show", "--help"]] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let full = full.expect("a device that is always full");
        let r = ran(wattle().args(arguments).stdout(full).output());
        assert_eq!(r.code, 2, "{arguments:?}");
    }
}

/// In a real terminal, narrow ones too: one line of progress, and no line wider than the terminal.
#[test]
fn terminals_of_every_width() {
    let file = root().join("examples/peterson.wtl").display().to_string();
    for columns in [60, 80] {
        let wattle = env!("CARGO_BIN_EXE_wattle");
        let asked =
            format!("stty rows 24 cols {columns}; exec {wattle} check {file} --color never");
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-c", &asked, "/dev/null"]);
        command.env_remove("COLUMNS").env("TERM", "xterm");
        let Ok(output) = command.output() else {
            println!("skipped: there is no `script` (Debian: bsdutils)");
            return;
        };
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{shown}");
        assert!(shown.contains("violated on TSO"), "{shown}");
        for line in shown.lines() {
            // The line of progress is written over.
            let line = line
                .trim_end_matches('\r')
                .rsplit("\x1b[K")
                .next()
                .unwrap_or("");
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
}

#[test]
fn benchmarks_say_what_is_missing() {
    let s = Scratch::new();
    let nowhere = s.path("nowhere");
    let r = run(&[
        "bench",
        "params",
        "--suites",
        &nowhere,
        "--examples",
        &nowhere,
    ]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert_eq!(
        r.out.matches("the suite is not here").count(),
        3,
        "{}",
        r.out
    );
    assert!(!r.out.contains("ratio"), "{}", r.out);
    let r = run(&["bench", "growth", "--json"]);
    let v = json(&r);
    assert_eq!(v[0]["schema"], "wattle-bench-1", "{v:#}");
    let rows = v[0]["rows"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(rows.len() >= 12, "{v:#}");
    let measured = |row: &Value| row["processor_seconds"].is_f64() && row["states"].is_u64();
    assert!(rows.iter().all(measured), "{v:#}");
}

#[test]
fn what_is_no_program_says_what_to_do() {
    let s = Scratch::new();
    let c = s.file("lock.c", "int main(void) { return 0; }\n");
    let r = run(&["check", &c]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("cc -O2 -g -c"), "{}", r.err);
    for command in ["show", "final", "explore"] {
        let r = run(&[command, &s.path("")]);
        assert_eq!(r.code, 2);
        assert!(r.err.contains("this is a directory"), "{}", r.err);
    }
    // Nobody wrote a range, and nothing is computed: there is nothing to say of integers.
    let fine = root().join("examples/peterson-fenced.wtl");
    let r = run(&["check", &fine.display().to_string()]);
    assert!(
        r.out.starts_with("holds on TSO for 2 threads (proved"),
        "{}",
        r.out
    );
}

/// Herd's last lines: the hash that the file has, and the time where it is asked for.
#[test]
fn the_last_lines_of_litmus() {
    let s = Scratch::new();
    let text = "X86 SB\n\"Fre PodWR Fre PodWR\"\nHash=2d53e83cd627ba17\n{ x=0; y=0; }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
    let file = s.file("sb.litmus", text);
    let r = run(&["litmus", &file]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(
        r.out
            .ends_with("Observation SB Sometimes 1 3\nHash=2d53e83cd627ba17\n"),
        "{}",
        r.out
    );
    let r = run(&["litmus", &file, "--time"]);
    let lines: Vec<&str> = r.out.lines().rev().take(3).collect();
    assert!(lines[0].starts_with("Hash="), "{}", r.out);
    assert!(lines[1].starts_with("Time SB "), "{}", r.out);
    assert!(lines[2].starts_with("Observation SB"), "{}", r.out);
    let r = run(&["litmus", &file, "-q"]);
    assert_eq!(r.out, "Observation SB Sometimes 1 3\n");
    let r = run(&["litmus", &file, "-q", "--model", "all"]);
    let said = "SC: Observation SB Never 0 3\nTSO: Observation SB Sometimes 1 3\nPSO: Observation SB Sometimes 1 3\n";
    assert_eq!((r.code, r.out.as_str()), (1, said), "{}", r.err);
}

/// Where nothing is changed there is no difference to show.
#[test]
fn nothing_written_has_no_difference() {
    let s = Scratch::new();
    let fenced = root().join("examples/peterson-fenced.wtl");
    let (fenced, out) = (fenced.display().to_string(), s.path("same.wtl"));
    let r = run(&["fences", &fenced, "--write", &out]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(!r.out.contains("---"), "{}", r.out);
    let same = std::fs::read(&out).expect("it is written");
    assert_eq!(same, std::fs::read(&fenced).expect("it is there"));
    let r = run(&["fences", &fenced, "--write", &out, "--json"]);
    assert!(r.out.contains("\"diff\":null"), "{}", r.out);
}

/// What the terminal does not show is still on the page and in the JSON.
#[test]
fn quiet_is_about_the_terminal() {
    let s = Scratch::new();
    let peterson = root().join("examples/peterson.wtl").display().to_string();
    let page = s.path("page.html");
    let r = run(&["check", "-q", &peterson, "--report", &page]);
    assert_eq!(
        (r.code, r.out.as_str()),
        (1, "violated on TSO\n"),
        "{}",
        r.err
    );
    let page = std::fs::read_to_string(page).expect("it is written");
    assert!(page.contains("overtook") && page.contains("fence after line 10"));
    let r = run(&["check", "-q", &peterson, "--json"]);
    assert!(r.out.contains("\"fence after line 10\""), "{}", r.out);
}
