//! Nobody works past the end of a budget: every engine and every command, on programs that none of
//! them could finish.
//!
//! In the process, a budget is a number of looks at the control, so that verdicts do not depend on the
//! clock; an engine that does not look comes to no end here. As processes, commands get a short time,
//! little memory, or a signal; one that has not ended after a minute has failed.

use crate::support::{Ran, Scratch, ran, wattle};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use wattle::fences::{FenceOptions, fences};
use wattle::{Language, MemoryModel, Options, Run, Verdict, check, plan};
use wattle_auditor::{AuditError, audit_robustness};
use wattle_auditor::{Solvers, audit_crowd, audit_with};
use wattle_evidence::{
    Answer, AnyNumber, Certificate, Control, OpenTask, Pace, Progress, Reason, Stop, Task,
};
use wattle_model::Program;
use wattle_repair::Outcome;

/// States: far more than anyone can visit.
const STATES: &str = "shared x[6]: 0..9;
thread p[6] { local r: 0..9; loop { r = any 0..9; x[self] = r; fence; } }
never x[0] == 9 && x[1] == 8 && x[2] == 7 && x[3] == 6 && x[4] == 5 && x[5] == 4;
";

/// Buffers: many stores that may be pending together.
const BUFFERS: &str = "shared a: 0..3, b: 0..3, c: 0..3, d: 0..3, e: 0..3, f: 0..3;
thread p[4] {
    local r: 0..3, s: 0..3;
    loop {
        r = any 0..3; a = r; b = r; c = r; d = r; e = r; f = r;
        r = a; s = b; if r == 3 && s == 2 { r = d; s = e; odd: skip; }
    }
}
never p[0]@odd && p[1]@odd && p[2]@odd && p[3]@odd && a == 1 && f == 2;
";

/// Bad configurations: the property looks at what threads have in their registers, and is true nowhere.
const REGISTERS: &str = "shared x: 0..15, y: 0..15;
thread p[3] {
    local a: 0..15, b: 0..15;
    loop { a = any 0..15; b = any 0..15; x = a; y = b; }
}
never p[0].a * p[1].b + p[2].a * p[0].b == 997;
";

/// Integers without bounds, and a relation that nobody finds quickly.
const INTEGERS: &str = "shared next, owner, sum;
thread p[4] {
    local mine, seen, r;
    loop {
        atomic { mine = next; next = mine + 1; }
        seen = owner;
        while seen != mine { seen = owner; }
        r = sum; sum = r + mine; cs: r = r * 2 + seen; sum = r;
        owner = mine + 1;
    }
}
never p[0]@cs && p[1]@cs && sum > 17 * next;
";

/// Any number of threads, counted.
const FAMILY: &str = "shared s = 3;
thread p[*] {
    local r;
    loop {
        loop { r = s; if r > 0 { if cas(s, r, r - 1) { break; } } }
        cs: skip;
        fetch_add(s, 1);
    }
}
never p[i]@cs && p[j]@cs && p[k]@cs && p[l]@cs;
";

/// Many elements, and an index that may be any of them.
const ELEMENTS: &str = "shared a[256]: 0..3;
thread p[2] {
    local r: 0..3, i: 0..255;
    loop { i = any 0..255; a[i] = 1; r = a[i]; }
}
never a[0] == 1 && a[255] == 1 && a[5] == 2;
";

/// Demands on whole runs.
const DEMANDS: &str = "shared x: 0..9, y: 0..9;
thread p[4] { local r: 0..9; loop { r = any 0..9; x = r; a: skip; r = y; y = r; b: skip; } }
ltl G(p[0]@a -> F p[0]@b) && G F (x == 3) && (G F x == 4 -> G F y == 5) && F G (x != 7 || y != 2);
";

/// An expression as deep as may be, over numbers without bounds.
fn deep() -> String {
    let sum = (0..100).fold("r".to_string(), |e, n| format!("({e} + {})", n % 7));
    format!("shared x; thread p[2] {{ local r; loop {{ r = x; x = {sum}; }} }} never x == 8;")
}

/// An array-based system with many places, flags and named threads, any of which may be changed from any other.
fn system() -> String {
    const PLACES: usize = 40;
    const FLAGS: usize = 12;
    let each = |of: &dyn Fn(usize) -> String, n: usize, between: &str| {
        (0..n).map(of).collect::<Vec<_>>().join(between)
    };
    let mut text = format!(
        "type loc = {}\narray PC[proc] : loc\n{}init (z) {{ PC[z] = L0 && {} }}\n",
        each(&|i| format!("L{i}"), PLACES, " | "),
        each(
            &|i| format!("array A{i}[proc] : bool\nvar V{i} : proc\n"),
            FLAGS,
            ""
        ),
        each(&|i| format!("A{i}[z] = False"), FLAGS, " && "),
    );
    let last = PLACES - 1;
    text += &format!("unsafe (p q) {{ PC[p] = L{last} && PC[q] = L{last} }}\n");
    for (i, j) in (0..PLACES).flat_map(|i| [1, 7, 11].map(|j| (i, j))) {
        let (a, b) = (i * j % FLAGS, (i + j) % FLAGS);
        let value = |odd: bool| if odd { "True" } else { "False" };
        text += &format!(
            "transition t{i}_{j} (p q) requires {{ PC[p] = L{i} && A{a}[q] = {} && V{b} <> q }}
             {{ PC[p] := L{}; A{b}[q] := {}; V{a} := p; }}\n",
            value((i + j) % 2 == 1),
            (i + j) % PLACES,
            value(i % 3 > 0),
        );
    }
    text
}

/// Any number of threads, one of which a cell names: many guesses, none of which does.
const NAMED: &str = "shared y: p = none, z: 0..1;
thread p[1] {
    local c: p;
    y = self; y = self; c = 0;
    3: choose { assume 1; goto 3; } or { assume c == count(p) - 1; } or { assume c != count(p) - 1; goto 5; }
    stop;
    5: skip;
}
thread q[*] { local r: p, s: p; y = r; s = any; r = y; z = 1; l4: skip; }
always for p[i], q[j]: !(q[j]@l4 && y != none);
";

const OPEN: [&str; 2] = [FAMILY, NAMED];

const AWKWARD: [&str; 4] = [STATES, BUFFERS, REGISTERS, INTEGERS];

fn program(text: &str) -> Program {
    let parsed = wattle::parse(Language::Wtl, text);
    parsed.program.expect("it parses")
}

/// Says so when it has been looked at so often.
struct Patience {
    most: u64,
    looks: AtomicU64,
}

impl Patience {
    fn new(most: u64) -> Self {
        let looks = AtomicU64::new(0);
        Patience { most, looks }
    }

    fn look(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) >= self.most
    }

    /// Looks after the end.
    fn ignored(&self) -> u64 {
        let looks = self.looks.load(Ordering::Relaxed);
        looks.saturating_sub(self.most)
    }
}

impl Pace for Patience {
    fn tick(&self, _: &'static str, _: Progress) -> Result<(), Stop> {
        match self.look() {
            true => Err(Stop::Cancelled),
            false => Ok(()),
        }
    }

    fn is_over(&self) -> bool {
        self.look()
    }
}

/// Who is told to stop may look again on its way out, and not go on.
const ON_THE_WAY_OUT: u64 = 32;

#[test]
fn every_engine_stops_when_it_is_told() {
    let options = Options::default();
    for entry in plan::engines(&options) {
        let name = entry.engine.name();
        let (mut stopped, mut accepted) = (0, false);
        for text in AWKWARD {
            let instance = program(text).instance().expect("an instance");
            for model in MemoryModel::ALL {
                for (deadlock, most) in
                    [(false, 0), (false, 1), (false, 40), (false, 100), (true, 7)]
                {
                    let task = Task {
                        instance: &instance,
                        model,
                        question: Some(0),
                        deadlock,
                    };
                    if entry.engine.accepts(&task).is_err() {
                        continue;
                    }
                    accepted = true;
                    let patience = Patience::new(most);
                    let control = Control::unlimited().with_pace(&patience);
                    let answer = entry.engine.run(&task, &control);
                    let what = format!("{name} {model} {deadlock} {most} {text}");
                    let ignored = patience.ignored();
                    assert!(ignored <= ON_THE_WAY_OUT, "{ignored} {what}");
                    match answer {
                        Answer::Undecided {
                            reason: Reason::Stopped { stop, .. },
                            ..
                        } => {
                            assert_eq!(stop, Stop::Cancelled, "{what}");
                            stopped += 1;
                        }
                        in_time => assert_eq!(ignored, 0, "{what}: {in_time:?}"),
                    }
                }
            }
        }
        // Who takes no instance is for any number of threads.
        assert_eq!(stopped > 0, accepted, "{name}");
        assert!(accepted || entry.is_open(), "{name}");
    }
}

/// A budget of work that is used up is said at polls only.
struct Spent(Patience);

impl Pace for Spent {
    fn tick(&self, _: &'static str, _: Progress) -> Result<(), Stop> {
        match self.0.look() {
            true => Err(Stop::Budget),
            false => Ok(()),
        }
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// Whoever has used up what it may begins nothing anew.
#[test]
fn no_engine_goes_on_past_its_budget() {
    let options = Options::default();
    for entry in plan::engines(&options) {
        let name = entry.engine.name();
        for (text, most) in AWKWARD.iter().chain(&OPEN).flat_map(|t| [(t, 0), (t, 3)]) {
            let program = program(text);
            let spent = Spent(Patience::new(most));
            let control = Control::unlimited().with_pace(&spent);
            let (model, question, deadlock) = (MemoryModel::Tso, Some(0), false);
            if let Ok(instance) = program.instance() {
                let task = Task {
                    instance: &instance,
                    model,
                    question,
                    deadlock,
                };
                if entry.engine.accepts(&task).is_ok() {
                    entry.engine.run(&task, &control);
                }
            } else {
                let task = OpenTask {
                    of: AnyNumber::Program(&program),
                    model,
                    question,
                    deadlock,
                };
                if entry.engine.accepts_open(&task).is_ok() {
                    entry.engine.run_open(&task, &control);
                }
            }
            let ignored = spent.0.ignored();
            assert!(ignored <= ON_THE_WAY_OUT, "{ignored} {name} {most} {text}");
        }
    }
}

/// From the start: nothing is decided, and nothing is claimed.
#[test]
fn commands_that_are_interrupted_claim_nothing() {
    let raised = AtomicBool::new(true);
    let flags = [&raised];
    let control = Control::unlimited().with_cancel(&flags);
    let run = Run {
        cancel: Some(&raised),
        sink: None,
    };
    for text in AWKWARD.into_iter().chain([FAMILY]) {
        let program = program(text);
        let options = Options {
            models: MemoryModel::ALL.to_vec(),
            ..Options::default()
        };
        let checked = check::check_with(&program, &options, &run).expect("it is treated");
        assert_eq!(checked.results.len(), MemoryModel::ALL.len());
        for result in checked.results {
            let verdict = result.expect("nothing unsound").judged.verdict;
            assert!(matches!(verdict, Verdict::Undecided { .. }), "{verdict:?}");
        }
        let wanted = FenceOptions {
            all: true,
            ..FenceOptions::new(MemoryModel::Tso)
        };
        let outcome = fences(&program, &wanted, &options, &control).expect("an outcome");
        let outcome = outcome.outcome;
        let undecided = matches!(outcome, Outcome::Undecided { .. } | Outcome::UpTo { .. });
        assert!(undecided, "{text} {outcome:?}");
    }
}

/// Audits stop too, and do not say that the proof is wrong.
#[test]
fn audits_stop_when_they_are_told() {
    let raised = AtomicBool::new(true);
    let flags = [&raised];
    let stop = Control::unlimited().with_cancel(&flags);
    let instance = program(BUFFERS).instance().expect("an instance");
    let robust = audit_robustness(&instance, &stop);
    assert_eq!(robust, Err(AuditError::Stopped(Stop::Cancelled)));
    // A certificate that says nothing is refused at its first step, which is far away.
    let nothing = wattle_evidence::certificate::LoadBuffers { basis: Vec::new() };
    let family = program(
        "shared x: 0..255; thread p[*] { local a: 0..255; loop { a = x; x = a; } }
         never x == 256;",
    );
    let crowd = audit_crowd(&family, MemoryModel::Tso, Some(0), &nothing, &stop);
    assert_eq!(crowd.err(), Some(AuditError::Stopped(Stop::Cancelled)));
    let instance = program(REGISTERS).instance().expect("an instance");
    let task = Task {
        instance: &instance,
        model: MemoryModel::Tso,
        question: Some(0),
        deadlock: false,
    };
    let solvers = Solvers::own();
    let proof = Certificate::LoadBuffers(nothing);
    let audited = audit_with(&solvers, &task, &proof, &stop);
    assert_eq!(audited.err(), Some(AuditError::Stopped(Stop::Cancelled)));
}

/// Everything the command line can be asked of these files that takes long.
fn commands(s: &Scratch) -> Vec<Vec<String>> {
    let states = s.file("states.wtl", STATES);
    let buffers = s.file("buffers.wtl", BUFFERS);
    let registers = s.file("registers.wtl", REGISTERS);
    let integers = s.file("integers.wtl", INTEGERS);
    let family = s.file("family.wtl", FAMILY);
    let litmus = s.file("many.litmus", litmus());
    let elements = s.file("elements.wtl", ELEMENTS);
    let demands = s.file("demands.wtl", DEMANDS);
    let deep = s.file("deep.wtl", deep());
    let system = s.file("system.cub", system());
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| all.push(words.iter().map(|w| (*w).to_string()).collect());
    for engine in plan::names() {
        let file = match engine {
            "params" => &family,
            "exact" | "multiset" => &registers,
            "cegar" | "facts" | "extrapolate" => &integers,
            _ => &buffers,
        };
        add(&["check", file, "--engine", engine]);
    }
    for file in [&states, &buffers, &registers, &integers, &family] {
        add(&["check", file, "--model", "all"]);
    }
    for file in [&elements, &demands, &deep, &system] {
        add(&["check", file, "--model", "pso"]);
    }
    add(&["check", &states, "--deadlock"]);
    for file in [&buffers, &integers, &family] {
        add(&["fences", file]);
    }
    add(&["fences", &buffers, "--goal", "robustness", "--all"]);
    add(&["robust", &integers]);
    add(&["litmus", &litmus]);
    add(&["show", &buffers, "--as", "svg", "--fences", "tso"]);
    add(&["show", &integers, "--as", "boolean-program"]);
    all
}

/// A test with far too many final states.
fn litmus() -> String {
    const THREADS: usize = 8;
    const STORES: usize = 6;
    let mut text = String::from("X86 many\n{}\n");
    let header: Vec<String> = (0..THREADS).map(|t| format!("P{t}")).collect();
    text.push_str(&format!("{} ;\n", header.join(" | ")));
    for i in 0..STORES {
        let row: Vec<String> = (0..THREADS)
            .map(|t| match i % 2 {
                0 => format!("MOV [x{}],${}", (t + i) % THREADS, t + 1),
                _ => format!("MOV EAX,[x{}]", (t + i) % THREADS),
            })
            .collect();
        text.push_str(&format!("{} ;\n", row.join(" | ")));
    }
    text.push_str("exists (0:EAX=0 /\\ 1:EAX=0)\n");
    text
}

/// A process that has not ended after a minute has failed.
fn guarded(child: Child, what: &[String]) -> Ran {
    let id = child.id().to_string();
    let (send, receive) = channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    match receive.recv_timeout(Duration::from_secs(60)) {
        Ok(output) => ran(output),
        Err(_) => {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
            panic!("{what:?} did not end");
        }
    }
}

fn spawn(command: &[String], more: &[&str]) -> Child {
    wattle()
        .args(command)
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

/// Every command ends, tells what it knows, and nobody had to end it. Some may be done before.
fn all_end(why: &str, run: impl Fn(&[String]) -> Child) {
    let s = Scratch::new();
    let commands = commands(&s);
    let mut undecided = 0;
    for command in &commands {
        let r = guarded(run(command), command);
        let both = format!("{}{}", r.out, r.err);
        assert!(matches!(r.code, 0 | 1 | 3), "{command:?}: {both}");
        assert!(!both.contains("ended at once"), "{command:?}: {both}");
        if r.code == 3 && !both.contains("no engine accepts the task") {
            undecided += 1;
            // Some commands point to others for the reason, and an engine may give up before its time.
            let gave_up = "a run does not seem to end";
            let told = [why, "says why", gave_up].iter().any(|w| both.contains(w));
            assert!(told, "{command:?}: {both}");
        }
    }
    let all = commands.len();
    assert!(2 * undecided > all, "only {undecided} of {all}");
}

#[test]
fn every_command_keeps_to_its_time() {
    let run = |command: &[String]| spawn(command, &["--timeout", "200ms"]);
    all_end("out of time", run);
}

#[test]
fn every_command_keeps_to_its_memory() {
    // Less than the process itself has: the first look ends it.
    let run = |command: &[String]| spawn(command, &["--memory", "1M"]);
    all_end("out of memory", run);
}

#[test]
fn a_signal_ends_every_command() {
    all_end("interrupted", |command| {
        let child = spawn(command, &[]);
        let id = child.id().to_string();
        while !listens(&id) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.is_ok_and(|k| k.success()));
        child
    });
}

/// Whether the process has its handler in place; true where the system does not tell.
fn listens(id: &str) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{id}/status")) else {
        return true;
    };
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|m| u64::from_str_radix(m.trim(), 16).ok());
    mask.is_none_or(|m| m & 0x4000 != 0)
}

/// Opening a pipe that nobody writes to would wait for ever.
#[cfg(unix)]
#[test]
fn pipes_and_directories_are_no_programs() {
    let s = Scratch::new();
    let pipe = s.path("pipe.wtl");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|m| m.success()));
    let program = s.file("p.wtl", "shared x; thread p { x = 1; } never x == 2;");
    let folder = s.path("folder.wtl");
    std::fs::create_dir(&folder).expect("a folder");
    let of = |words: &[&str]| -> Vec<String> { words.iter().map(|w| (*w).to_string()).collect() };
    for (command, why) in [
        (of(&["check", &pipe]), "it is a pipe"),
        (of(&["robust", &pipe]), "it is a pipe"),
        (of(&["litmus", &pipe]), "it is a pipe"),
        (of(&["audit", &program, &pipe]), "it is a pipe"),
        (of(&["replay", &program, &pipe]), "it is a pipe"),
        (of(&["replay", &program, &folder]), "it is a directory"),
        (of(&["fences", &folder]), "no programs in this directory"),
        (of(&["check", &folder]), "no programs in this directory"),
    ] {
        let r = guarded(spawn(&command, &[]), &command);
        assert_eq!(r.code, 2, "{command:?}: {}{}", r.out, r.err);
        assert!(r.err.contains(why), "{command:?}: {}", r.err);
    }
}
