//! Demands on whole runs: beside the search for bad states on the same program, and beside Spin on the same formula.
//!
//! `progress` is compared with `explicit` on the same program in states stored, once with and once without its
//! symmetry, which liveness does not have. Spin (`-a -f`, weak fairness, its own reductions) gets the program as Promela; measured is
//! the verifier's run alone, not its making.

mod promela;

use crate::Sink;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use wattle_evidence::live::{Fairness, LiveTask};
use wattle_evidence::{Control, Engine, LiveAnswer, Task};
use wattle_memory::MemoryModel;
use wattle_model::Instance;
use wattle_model::instance::DemandKind;
use wattle_search::{Explicit, Options};

/// A lock for so many threads: its name, how many, and the text with the number left open.
struct Lock {
    name: &'static str,
    sizes: &'static [u32],
    text: &'static str,
}

/// `N` is the number of threads. The first demand is progress, the second goes to Spin.
const LOCKS: &[Lock] = &[
    Lock {
        name: "ticket",
        sizes: &[3, 4, 5],
        text: "shared next: 0..K, serving: 0..K;
thread p[N] {
    local mine: 0..K;
    loop {
        want: atomic { mine = next; if mine == K { next = 0; } else { next = mine + 1; } }
        await serving == mine;
        critical: skip;
        if mine == K { serving = 0; } else { serving = mine + 1; }
        fence;
    }
}
never p[i]@critical && p[j]@critical;
progress;
p[0]@want ~> p[0]@critical;
",
    },
    Lock {
        name: "MCS",
        sizes: &[2, 3],
        text: "shared tail: p = none, next[p]: p = none, locked[p]: bool;
thread p[N] {
    local before: p, after: p;
    loop {
        want: next[self] = none;
        before = swap(tail, self);
        if before != none {
            locked[self] = 1;
            fence store;
            next[before] = self;
            await locked[self] == 0;
        }
        critical: skip;
        after = next[self];
        if after == none {
            if cas(tail, self, none) == 1 { continue; }
            await next[self] != none;
            after = next[self];
        }
        locked[after] = 0;
        fence;
    }
}
never p[i]@critical && p[j]@critical;
progress;
p[0]@want ~> p[0]@critical;
",
    },
    Lock {
        name: "token ring",
        sizes: &[4, 5, 6],
        text: "shared turn: 0..K, busy[N]: 0..2;
thread p[N] {
    loop {
        want: busy[self] = 1;
        await turn == self;
        critical: skip;
        busy[self] = 0;
        if self == K { turn = 0; } else { turn = self + 1; }
        fence;
    }
}
never p[i]@critical && p[j]@critical;
progress;
p[0]@want ~> p[0]@critical;
",
    },
    Lock {
        name: "filter",
        sizes: &[3],
        text: "shared level[N]: 0..K, last[N]: 0..K;
thread p[N] {
    loop {
        want: skip;
        for k in 1..K {
            level[self] = k;
            fence;
            last[k] = self;
            fence;
            loop {
                if last[k] != self { break; }
                if (self == 0 || level[0] < k) && (self == 1 || level[1] < k)
                   && (self == 2 || level[2] < k) { break; }
            }
        }
        critical: skip;
        level[self] = 0;
        fence;
    }
}
never p[i]@critical && p[j]@critical;
progress;
p[0]@want ~> p[0]@critical;
",
    },
];

impl Lock {
    fn instance(&self, n: u32) -> Option<Instance> {
        let text = self.text.replace("[N]", &format!("[{n}]"));
        let text = text.replace('K', &(n - 1).to_string());
        let program = wattle_syntax::wtl::parse(&text).program?;
        program.instance().ok()
    }
}

fn task(instance: &Instance, model: MemoryModel, demand: usize) -> LiveTask<'_> {
    LiveTask {
        instance,
        model,
        demand,
        fairness: Fairness::Weak,
    }
}

/// Gives the tables line by line, as they are measured; false if an answer is not Spin's, or later than it.
pub fn run(examples: &Path, out: &mut Sink<'_>) -> bool {
    states(examples, out);
    beside_spin(out)
}

/// States of the search for bad states, without symmetry and with it.
fn safety(instance: &Instance, model: MemoryModel) -> (u64, u64) {
    let count = |symmetry: bool| {
        let task = Task {
            instance,
            model,
            question: (!instance.questions.is_empty()).then_some(0),
            deadlock: false,
        };
        let options = Options {
            symmetry,
            ..Options::default()
        };
        let explicit = Explicit { options };
        explicit.run(&task, &Control::unlimited()).effort().states
    };
    (count(false), count(true))
}

/// `progress` beside the search for bad states.
fn states(examples: &Path, out: &mut Sink<'_>) {
    out.line("states stored           model     safety  (symmetric)   progress   ratio  seconds");
    let mut programs: Vec<(String, Instance)> = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(examples.join("liveness"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .collect();
    files.sort();
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let program = wattle_syntax::wtl::parse(&text).program;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if let Some(instance) = program.and_then(|p| p.instance().ok()) {
            programs.push((name.into_owned(), instance));
        }
    }
    for lock in LOCKS {
        for n in lock.sizes {
            if let Some(instance) = lock.instance(*n) {
                programs.push((format!("{} {n}", lock.name), instance));
            }
        }
    }
    for (name, instance) in &programs {
        let progress = |d: &wattle_model::instance::Demand| d.kind == DemandKind::Progress;
        let Some(demand) = instance.demands.iter().position(progress) else {
            continue;
        };
        for model in MemoryModel::ALL {
            let start = Instant::now();
            let (answer, effort) =
                wattle_liveness::run(&task(instance, model, demand), &Control::unlimited());
            let seconds = start.elapsed().as_secs_f64();
            // What is found early says nothing about how much there is.
            let LiveAnswer::Holds(_) = answer else {
                continue;
            };
            let (plain, symmetric) = safety(instance, model);
            let model = model.to_string();
            let ratio = effort.states as f64 / plain.max(1) as f64;
            out.row(
                &format!(
                    "{name:22}  {model:5} {plain:10} {symmetric:12} {:10} {ratio:7.2} {seconds:8.3}",
                    effort.states
                ),
                json!({
                    "suite": "liveness", "file": name, "model": model, "safety_states": plain,
                    "symmetric_states": symmetric, "states": effort.states, "seconds": seconds,
                }),
            );
        }
    }
}

fn beside_spin(out: &mut Sink<'_>) -> bool {
    let there = |p: &str, v: &str| Command::new(p).arg(v).output().is_ok();
    if !there("spin", "-V") || !there("gcc", "--version") {
        out.line(
            "Spin: skipped, for `spin` (Debian's package of that name) and `gcc` are not both here",
        );
        return true;
    }
    out.line("");
    out.line(
        "want ~> critical, SC    wattle states  seconds     Spin -a -f states  seconds   times faster",
    );
    let scratch = std::env::temp_dir().join(format!("wattle-bench-spin-{}", std::process::id()));
    let mut fine = true;
    for lock in LOCKS {
        for n in lock.sizes {
            let Some(instance) = lock.instance(*n) else {
                continue;
            };
            let name = format!("{} {n}", lock.name);
            let task = task(&instance, MemoryModel::Sc, instance.demands.len() - 1);
            let start = Instant::now();
            let (answer, effort) = wattle_liveness::run(&task, &Control::unlimited());
            let seconds = start.elapsed().as_secs_f64();
            let spin = match spin(&scratch, &task) {
                Ok(spin) => spin,
                Err(why) => {
                    out.line(&format!("{name:22}  no answer of Spin's: {why}"));
                    continue;
                }
            };
            let same = spin.broken == matches!(answer, LiveAnswer::Broken(_));
            fine &= same && (spin.seconds < 0.1 || seconds <= spin.seconds);
            out.row(
                &format!(
                    "{name:22} {:14} {seconds:8.3} {:21} {:8.2} {:10.1}{}",
                    effort.states,
                    spin.states,
                    spin.seconds,
                    spin.seconds / seconds.max(1e-6),
                    if same { "" } else { "   ANOTHER ANSWER" }
                ),
                json!({
                    "suite": "liveness", "file": name, "model": "sc", "states": effort.states, "seconds": seconds,
                    "peer": "Spin -a -f", "peer_states": spin.states, "peer_seconds": spin.seconds, "same_answer": same,
                }),
            );
        }
    }
    let _ = std::fs::remove_dir_all(&scratch);
    fine
}

struct Spun {
    broken: bool,
    states: u64,
    seconds: f64,
}

/// Spin's answer, or why there is none. Its stack is as deep as it must be: a deeper one costs time to set up.
fn spin(scratch: &Path, task: &LiveTask<'_>) -> Result<Spun, String> {
    let text = task
        .formula()
        .and_then(|f| promela::text(task.instance, f))
        .ok_or("the program cannot be said in Promela")?;
    let written = std::fs::create_dir_all(scratch)
        .and_then(|()| std::fs::write(scratch.join("model.pml"), text));
    written.map_err(|e| e.to_string())?;
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let out = command.current_dir(scratch).args(arguments).output();
        let out = out.map_err(|e| format!("{program}: {e}"))?;
        let said = [out.stdout, out.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        Ok::<_, String>((out.status.success(), said))
    };
    let complaint = |who: &str, said: &str| {
        let line = said.lines().find(|l| l.to_lowercase().contains("error"));
        format!(
            "{who}: {}",
            line.or(said.lines().next()).unwrap_or("failed")
        )
    };
    let (made, said) = run("spin", &["-a", "model.pml"])?;
    if !made {
        return Err(complaint("spin", &said));
    }
    // With weak fairness it keeps a bit for each process and the formula: with two bytes there is room for few.
    let fair = match task.instance.threads.len() {
        0..=5 => "-DNFAIR=2",
        _ => "-DNFAIR=3",
    };
    let how = ["-O2", "-w", "-DMEMLIM=4096", fair, "-o", "pan", "pan.c"];
    let (made, said) = run("gcc", &how)?;
    if !made {
        return Err(complaint("gcc", &said));
    }
    let pan = scratch.join("pan").display().to_string();
    for depth in ["-m10000", "-m100000", "-m1000000", "-m10000000"] {
        let start = Instant::now();
        let (_, said) = run(&pan, &["-a", "-f", "-E", depth, "-N", "f"])?;
        let seconds = start.elapsed().as_secs_f64();
        if said.contains("depth too small") {
            continue;
        }
        let line = |what: &str| said.lines().find(|l| l.contains(what));
        let errors = line("errors: ").ok_or_else(|| complaint("pan", &said))?;
        // Only a whole search, or a run that was found, is an answer.
        let broken = !errors.contains("errors: 0");
        if !broken && said.contains("out of memory") {
            return Err("out of memory".into());
        }
        let stored = line("states, stored").and_then(|l| l.split_whitespace().next());
        let states = stored.and_then(|n| n.parse::<f64>().ok());
        let states = states.ok_or_else(|| complaint("pan", &said))? as u64;
        return Ok(Spun {
            broken,
            states,
            seconds,
        });
    }
    Err("its stack is too small".into())
}

#[cfg(test)]
mod tests {
    use super::LOCKS;

    /// Every program parses, has both demands, and can be said in Promela.
    #[test]
    fn the_programs_are_there() {
        for lock in LOCKS {
            for n in lock.sizes {
                let instance = lock.instance(*n);
                let instance = instance.unwrap_or_else(|| panic!("{} {n}", lock.name));
                assert_eq!(instance.demands.len(), 2, "{}", lock.name);
                let task = super::task(&instance, wattle_memory::MemoryModel::Sc, 1);
                let formula = task.formula().expect("a formula");
                let text = super::promela::text(&instance, formula);
                assert!(text.is_some(), "{} {n}", lock.name);
            }
        }
    }
}
