//! `--checkpoint` and `--resume`: a search that is killed again and again gives the answer of one that is not, and
//! what is damaged or of something else is refused.

use crate::support::{Scratch, ran, wattle};
use std::process::{Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = "shared x: 0..60, y: 0..60, z: 0..20;
thread p { local a: 0..60; loop { a = x; x = (a + 1) % 61; fence; } }
thread q { local a: 0..60; loop { a = y; y = (a + 7) % 61; fence; } }
thread r { local a: 0..20; loop { a = z; z = (a + 3) % 21; fence; } }
never x == 60 && y == 60 && z == 22;
";

fn check(file: &str, directory: &str, flag: &str) -> Command {
    let mut command = wattle();
    command.args(["check", file, "--engine", "explicit", "--model", "tso"]);
    command.args(["--no-audit", "--json", "--every", "1ms", flag, directory]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Verdict and states.
fn told(out: &str) -> (String, u64) {
    let json: serde_json::Value = serde_json::from_str(out).expect("JSON");
    let verdict = json["verdict"].as_str().expect("a verdict").to_string();
    (verdict, json["states"].as_u64().expect("a number"))
}

#[test]
fn killed_at_any_moment_it_goes_on() {
    let scratch = Scratch::new();
    let file = scratch.file("counters.wtl", PROGRAM);
    let directory = scratch.path("whole");
    let whole = told(&ran(check(&file, &directory, "--checkpoint").output()).out);
    assert_eq!(whole.0, "holds");
    let directory = scratch.path("pieces");
    let (mut kills, mut answer) = (0, None);
    // However slow the machine is, in the end it is left alone.
    for turn in 0..14u64 {
        let begun = std::path::Path::new(&directory).join("checkpoint").exists();
        let flag = if begun { "--resume" } else { "--checkpoint" };
        let mut child = check(&file, &directory, flag).spawn().expect("it runs");
        if turn < 13 {
            std::thread::sleep(Duration::from_millis(30 + 37 * (turn * 7 % 13)));
            if child.try_wait().expect("a child").is_none() {
                child.kill().expect("it can be killed");
                child.wait().expect("it ends");
                kills += 1;
                continue;
            }
        }
        let done = ran(child.wait_with_output());
        assert_eq!(done.code, 0, "{}", done.err);
        answer = Some(told(&done.out));
        break;
    }
    println!("killed {kills} times");
    assert_eq!(answer, Some(whole));
}

#[test]
fn damaged_and_foreign_checkpoints_are_refused() {
    let scratch = Scratch::new();
    let file = scratch.file("counters.wtl", PROGRAM);
    let directory = scratch.path("kept");
    assert_eq!(
        ran(check(&file, &directory, "--checkpoint").output()).code,
        0
    );
    let resumed = |file: &str| ran(check(file, &directory, "--resume").output());
    assert_eq!(resumed(&file).code, 0);

    let other = scratch.file("other.wtl", PROGRAM.replace("a + 7", "a + 6"));
    let refused = resumed(&other);
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("of another program"),
        "{}",
        refused.err
    );

    let files = std::fs::read_dir(&directory)
        .expect("a directory")
        .flatten();
    let files: Vec<_> = files.map(|f| f.path()).collect();
    assert_eq!(files.len(), 2);
    for path in files {
        let bytes = std::fs::read(&path).expect("a file");
        let mut damaged = bytes.clone();
        let at = damaged.len() / 2;
        damaged[at] ^= 4;
        for wrong in [&damaged[..], &bytes[..at], &[]] {
            std::fs::write(&path, wrong).expect("a file");
            let refused = resumed(&file);
            assert_eq!(refused.code, 2, "{}", path.display());
            assert!(refused.err.contains("damaged"), "{}", refused.err);
        }
        // Anywhere else, and at the very ends.
        let (length, mut random) = (bytes.len() as u64, 1u64);
        let places = (0..16).map(|_| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 32) % length
        });
        for at in places.chain([0, length - 1]) {
            let mut damaged = bytes.clone();
            damaged[at as usize] ^= 1 << (at % 8);
            std::fs::write(&path, damaged).expect("a file");
            let refused = resumed(&file);
            assert_eq!(refused.code, 2, "{} {at}", path.display());
            assert!(refused.err.contains("damaged"), "{}", refused.err);
        }
        std::fs::write(&path, bytes).expect("a file");
    }
    assert_eq!(resumed(&file).code, 0);

    let no_directory = ran(check(&file, &file, "--checkpoint").output());
    assert_eq!(no_directory.code, 2);
    assert!(
        no_directory.err.contains("no directory for checkpoints"),
        "{}",
        no_directory.err
    );

    let nothing = ran(check(&file, &scratch.path("nothing"), "--resume").output());
    assert_eq!(nothing.code, 2);
    assert!(
        nothing.err.contains("there is no checkpoint"),
        "{}",
        nothing.err
    );
}
