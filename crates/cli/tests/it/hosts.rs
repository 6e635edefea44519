//! `--hosts` and `--process`: several processes give the answer of one, and nobody waits for one that is gone.

use crate::support::{Ran, Scratch, ran, root, wattle};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A host file with so many ports of this machine that are free just now.
fn hosts(scratch: &Scratch, processes: usize) -> String {
    let bound: Vec<TcpListener> = (0..processes)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .collect();
    let lines = bound.iter().map(|l| {
        let port = l.local_addr().expect("an address").port();
        format!("{port} # of this machine\n")
    });
    let text: String = lines.collect();
    scratch.file("hosts.txt", text)
}

fn start(file: &str, hosts: &str, process: usize, more: &[&str]) -> Child {
    let mut command = wattle();
    command.args(["check", file, "--hosts", hosts, "--process"]);
    command.arg(process.to_string()).args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it runs")
}

fn together(file: &str, processes: usize, more: &[&str]) -> Vec<Ran> {
    let scratch = Scratch::new();
    let hosts = hosts(&scratch, processes);
    let all: Vec<Child> = (0..processes)
        .map(|process| start(file, &hosts, process, more))
        .collect();
    all.into_iter()
        .map(|child| ran(child.wait_with_output()))
        .collect()
}

/// For each property verdict, states and how many events a run has.
fn told(out: &str) -> Vec<(String, Option<u64>, Option<usize>)> {
    let json: serde_json::Value = serde_json::from_str(out).unwrap_or_default();
    let results = match json["results"].as_array() {
        Some(results) => results.clone(),
        None => vec![json],
    };
    let one = |r: &serde_json::Value| {
        let events = r["trace"].as_array().map(Vec::len);
        let verdict = r["verdict"].as_str().unwrap_or("none").to_string();
        // A search that finds something has seen more or fewer states besides.
        let states = r["states"]
            .as_u64()
            .filter(|_| verdict == "holds" && events.is_none());
        (verdict, states, events)
    };
    results.iter().map(one).collect()
}

const FEW: [&str; 9] = [
    "peterson.wtl",
    "peterson-fenced.wtl",
    "dekker-fenced.wtl",
    "litmus-iriw.wtl",
    "counter.wtl",
    "anderson.wtl",
    "litmus-sb-reachable.wtl",
    "barrier-stuck.wtl",
    "spinlock-linux-3.wtl",
];

#[test]
fn several_processes_give_the_answer_of_one() {
    let mut decided = 0;
    for (i, name) in FEW.into_iter().enumerate() {
        let file = root().join("examples").join(name).display().to_string();
        let more = [
            "--json",
            "--engine",
            "explicit",
            "--reduce",
            "local",
            "--deadlock",
            "--no-audit",
        ];
        let alone = ran(wattle().args(["check", &file]).args(more).output());
        for processes in [2, 4] {
            let workers = (1 + i % 2).to_string();
            let more = [&more[..], &["--workers", &workers]].concat();
            let all = together(&file, processes, &more);
            let first = &all[0];
            assert_eq!(first.code, alone.code, "{name} {processes}: {}", first.err);
            assert_eq!(told(&first.out), told(&alone.out), "{name} {processes}");
            for other in &all[1..] {
                assert_eq!(other.code, alone.code, "{name}: {}", other.err);
                assert_eq!(other.out, "", "{name}");
            }
        }
        decided += usize::from(alone.code < 2);
    }
    assert!(decided >= 8, "{decided}");
}

/// Runs are told in the same words however many processes and workers there are.
#[test]
fn the_run_is_the_same_for_any_number_of_processes() {
    let file = root().join("examples/dekker.wtl").display().to_string();
    let one = together(&file, 1, &[]);
    assert_eq!(one[0].code, 1, "{}", one[0].err);
    for (processes, workers) in [(2, "1"), (2, "3"), (3, "1")] {
        let all = together(&file, processes, &["--workers", workers]);
        assert_eq!(all[0].out, one[0].out, "{processes} {workers}");
    }
}

/// No end of it in sight.
const LARGE: &str = "shared x, y, z, u;
thread p { local a; loop { a = x; x = a + 1; } }
thread q { local a; loop { a = y; y = a + 1; } }
thread r { local a; loop { a = z; z = a + 1; } }
thread s { local a; loop { a = u; u = a + 1; } }
never x == 250 && y == 250 && z == 250 && u == 250;
";

fn started(scratch: &Scratch, processes: usize) -> Vec<Child> {
    let file = scratch.file("large.wtl", LARGE);
    let hosts = hosts(scratch, processes);
    let more = ["--model", "sc", "--timeout", "none", "--memory", "2G"];
    let all = (0..processes).map(|process| start(&file, &hosts, process, &more));
    let all: Vec<Child> = all.collect();
    // Most likely they search by now; if not, what follows has to be true all the same.
    std::thread::sleep(Duration::from_millis(2500));
    all
}

#[test]
fn a_process_that_is_killed_ends_the_others() {
    let scratch = Scratch::new();
    let mut all = started(&scratch, 3);
    let mut killed = all.remove(1);
    killed.kill().expect("it can be killed");
    killed.wait().expect("it ends");
    for child in all {
        let ended = ran(child.wait_with_output());
        assert_eq!(ended.code, 3, "{} {}", ended.out, ended.err);
        let said = ended.out + &ended.err;
        assert!(said.contains("process 1 at 127.0.0.1:"), "{said}");
    }
}

/// Whenever one is killed, while all still connect, search, or rebuild the run: the other one tells the answer or that
/// there is none.
#[test]
fn killed_at_any_moment_nothing_wrong_is_told() {
    let file = root().join("examples/dekker.wtl").display().to_string();
    let whole = together(&file, 2, &[]);
    assert_eq!(whole[0].code, 1, "{}", whole[0].err);
    for moment in 0..10 {
        let scratch = Scratch::new();
        let hosts = hosts(&scratch, 2);
        let mut all: Vec<Child> = (0..2).map(|k| start(&file, &hosts, k, &[])).collect();
        std::thread::sleep(Duration::from_millis(moment * moment * 8));
        let number = moment as usize % 2;
        let mut killed = all.remove(number);
        killed.kill().expect("it can be killed");
        killed.wait().expect("it ends");
        let ended = ran(all.remove(0).wait_with_output());
        match ended.code {
            1 if number == 0 => assert_eq!(ended.out, ""),
            1 => assert_eq!(ended.out, whole[0].out),
            code => assert_eq!(code, 3, "{} {}", ended.out, ended.err),
        }
    }
}

fn signal(name: &str, child: &Child) {
    let id = child.id().to_string();
    let asked = Command::new("kill").args([name, &id]).status();
    assert!(asked.expect("kill").success());
}

#[test]
fn one_that_is_silent_ends_the_others() {
    let scratch = Scratch::new();
    let mut all = started(&scratch, 2);
    signal("-STOP", &all[1]);
    let ended = ran(all.remove(0).wait_with_output());
    signal("-CONT", &all[0]);
    let silent = ran(all.remove(0).wait_with_output());
    assert_eq!((ended.code, silent.code), (3, 3), "{}", ended.err);
    let said = ended.out + &ended.err;
    assert!(said.contains("process 1 at 127.0.0.1:"), "{said}");
}

#[test]
fn a_port_in_use_is_named() {
    let scratch = Scratch::new();
    let file = scratch.file("large.wtl", LARGE);
    let used = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = used.local_addr().expect("an address").port();
    let hosts = scratch.file("hosts.txt", format!("{port}\n"));
    let ended = ran(start(&file, &hosts, 0, &[]).wait_with_output());
    assert_eq!(ended.code, 3, "{}", ended.err);
    let why = format!("127.0.0.1:{port} cannot be listened to");
    assert!(ended.err.contains(&why), "{}", ended.err);
}

#[test]
fn a_signal_to_one_stops_all_with_what_is_known() {
    let scratch = Scratch::new();
    let all = started(&scratch, 2);
    signal("-INT", &all[1]);
    for child in all {
        let ended = ran(child.wait_with_output());
        assert_eq!(ended.code, 3, "{} {}", ended.out, ended.err);
        let said = ended.out + &ended.err;
        let known = said.contains("interrupted") || said.contains("has ended");
        assert!(known, "{said}");
    }
}

#[test]
fn who_is_missing_is_named() {
    let scratch = Scratch::new();
    let file = scratch.file("large.wtl", LARGE);
    let hosts = hosts(&scratch, 2);
    for process in [0, 1] {
        let alone = ran(start(&file, &hosts, process, &[]).wait_with_output());
        assert_eq!(alone.code, 3, "{}", alone.err);
        let missing = format!("process {} at 127.0.0.1:", 1 - process);
        assert!(alone.err.contains(&missing), "{}", alone.err);
        assert!(alone.err.contains("cannot be reached"), "{}", alone.err);
        assert_eq!(alone.out, "");
    }
}

#[test]
fn another_question_is_no_company() {
    let scratch = Scratch::new();
    let hosts = hosts(&scratch, 2);
    let file = root().join("examples/peterson.wtl").display().to_string();
    let all = [
        start(&file, &hosts, 0, &["--model", "tso"]),
        start(&file, &hosts, 1, &["--model", "sc"]),
    ];
    for child in all {
        let ended = ran(child.wait_with_output());
        assert_eq!(ended.code, 3, "{} {}", ended.out, ended.err);
        let said = ended.out + &ended.err;
        let known = said.contains("was asked something else") || said.contains("has ended");
        assert!(known, "{said}");
    }
}

#[test]
fn a_wrong_host_file_is_an_input_error() {
    let scratch = Scratch::new();
    let file = scratch.file("large.wtl", LARGE);
    for (text, process, why) in [
        ("", 0, "there is no address in it"),
        ("4001\n4002\n", 2, "processes are 0 to 1"),
        ("4001\n4001\n", 0, "it is there twice"),
        ("0.0.0.0:4001\n", 0, "nobody can connect to it"),
        ("nonsense\n", 0, "an address is HOST:PORT"),
    ] {
        let hosts = scratch.file("hosts.txt", text);
        let ended = ran(start(&file, &hosts, process, &[]).wait_with_output());
        assert_eq!(ended.code, 2, "{}", ended.err);
        assert!(ended.err.contains(why), "{}", ended.err);
    }
    for more in [
        &["--compress"][..],
        &["--order", "dfs"],
        &["--engine", "cegar"],
    ] {
        let hosts = scratch.file("hosts.txt", "4001\n");
        let ended = ran(start(&file, &hosts, 0, more).wait_with_output());
        assert_eq!(ended.code, 2, "{}", ended.err);
    }
}

/// Two network namespaces with a link between them, where one may make such.
#[test]
fn two_machines_of_a_sort() {
    let id = std::process::id() % 10_000;
    let (a, b) = (format!("wa{id}"), format!("wb{id}"));
    let ip = |arguments: &str| {
        let done = Command::new("ip").args(arguments.split(' ')).output();
        done.is_ok_and(|d| d.status.success())
    };
    let made = ip(&format!("netns add {a}"))
        && ip(&format!("netns add {b}"))
        && ip(&format!(
            "link add {a} netns {a} type veth peer name {b} netns {b}"
        ))
        && ip(&format!("-n {a} addr add 10.77.0.1/24 dev {a}"))
        && ip(&format!("-n {b} addr add 10.77.0.2/24 dev {b}"))
        && ip(&format!("-n {a} link set {a} up"))
        && ip(&format!("-n {b} link set {b} up"));
    let gone = || {
        ip(&format!("netns del {a}"));
        ip(&format!("netns del {b}"));
    };
    if !made {
        gone();
        println!("skipped: network namespaces cannot be made here");
        return;
    }
    let scratch = Scratch::new();
    let hosts = scratch.file("hosts.txt", "10.77.0.1:4001\n10.77.0.2:4001\n");
    let mut told_on_two = Vec::new();
    for name in ["dekker.wtl", "peterson-fenced.wtl"] {
        let file = root().join("examples").join(name).display().to_string();
        let alone = &together(&file, 1, &["--json"])[0];
        let all = [(&a, "0"), (&b, "1")].map(|(namespace, process)| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_wattle")]);
            command.args(["check", &file, "--hosts", &hosts, "--process", process]);
            command.arg("--json");
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("it runs")
        });
        let all = all.map(|child| ran(child.wait_with_output()));
        told_on_two.push((name, alone.code, told(&alone.out), all));
    }
    gone();
    for (name, code, told_alone, all) in told_on_two {
        assert_eq!(all[0].code, code, "{name}: {} {}", all[0].out, all[0].err);
        assert_eq!(all[1].code, code, "{name}: {} {}", all[1].out, all[1].err);
        assert_eq!(told(&all[0].out), told_alone, "{name}");
        assert!(code < 2, "{name}");
    }
}
