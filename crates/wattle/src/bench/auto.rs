//! The plan beside every engine alone, on every example.
//!
//! Each engine gets as long as the plan took: one that needs longer cannot have been better. What
//! looks bad is measured again, because a busy machine can make anything look bad once.

use crate::input::{self, Subject};
use crate::{Options, ThreadCount, Verdict, plan};
use std::path::Path;
use std::time::{Duration, Instant};
use wattle_evidence::{Control, Task};
use wattle_memory::MemoryModel;
use wattle_model::{Count, Instance, Program};

/// No measurement takes longer.
const LIMIT: Duration = Duration::from_secs(30);
/// Seconds below which a difference says nothing.
const NOISE: f64 = 0.008;
/// What the plan may cost, times the best engine.
const FACTOR: f64 = 3.0;
/// How often a bad row is measured again.
const AGAIN: usize = 4;

/// Gives the table line by line, as it is measured; rows in which nobody needs longer than the noise
/// are only counted.
pub fn run(examples: &Path, line: &mut dyn FnMut(&str)) {
    line(
        "example                          model q  answered by      auto s   best engine      alone s  ratio",
    );
    let mut all = Total::default();
    let folder = examples.display().to_string();
    let (files, _) = input::expand(std::slice::from_ref(&folder));
    for file in files {
        let Ok((Subject::Program(program), _)) =
            input::read(&file, None).and_then(|s| input::parse(&s))
        else {
            continue;
        };
        let Some(instance) = instance(&program) else {
            continue;
        };
        let shown = file.strip_prefix(&folder).unwrap_or(&file);
        let shown = shown.trim_start_matches('/');
        for model in MemoryModel::ALL {
            let questions = instance.questions.len();
            for question in (0..questions.max(1)).map(|q| (questions > 0).then_some(q)) {
                let task = Task {
                    instance: &instance,
                    model,
                    question,
                    deadlock: false,
                };
                all.row(shown, &task, line);
            }
        }
    }
    line(&format!(
        "{} questions, {} decided by the plan, {} by an engine alone but not by the plan",
        all.asked, all.decided, all.missed
    ));
    line(&format!(
        "worst ratio where the difference is over {} ms: {:.2} {}",
        NOISE * 1e3,
        all.worst.0,
        all.worst.1
    ));
}

/// Families of any number of threads are measured with two.
fn instance(program: &Program) -> Option<Instance> {
    let open = program.families.iter().filter(|f| f.count == Count::Any);
    let threads = open.map(|f| (f.name.clone(), ThreadCount::Fixed(2)));
    let options = Options {
        threads: threads.collect(),
        ..Options::default()
    };
    program.instantiate(&options.counts()).ok()
}

#[derive(Default)]
struct Total {
    asked: usize,
    decided: usize,
    missed: usize,
    worst: (f64, String),
}

/// Who decided, and how long it took.
struct Measured {
    by: Option<&'static str>,
    seconds: f64,
}

fn measure(task: &Task<'_>, engine: Option<&str>, limit: Duration) -> Measured {
    let options = Options {
        engine: engine.map(String::from),
        ..Options::default()
    };
    let begin = Instant::now();
    let control = Control::unlimited().with_timeout(Some(limit));
    let outcome = plan::run(task, &options, &control);
    let decided = outcome.ok().filter(|o| {
        let verdict = &o.judged.verdict;
        matches!(verdict, Verdict::Holds { .. } | Verdict::Violated { .. })
    });
    Measured {
        by: decided.map(|o| o.engine),
        seconds: begin.elapsed().as_secs_f64(),
    }
}

/// The plan, and the best engine alone.
fn compare(task: &Task<'_>) -> (Measured, Option<Measured>) {
    let auto = measure(task, None, LIMIT);
    let limit = Duration::from_secs_f64(auto.seconds).min(LIMIT);
    let alone = plan::names()
        .into_iter()
        .map(|name| measure(task, Some(name), limit));
    let decided = alone.filter(|m| m.by.is_some());
    let best = decided.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    (auto, best)
}

impl Total {
    fn row(&mut self, shown: &str, task: &Task<'_>, line: &mut dyn FnMut(&str)) {
        let (mut auto, mut best) = compare(task);
        let ratio = |auto: &Measured, best: &Option<Measured>| {
            best.as_ref().map_or(1.0, |b| {
                let differs = auto.seconds - b.seconds > NOISE;
                if differs {
                    auto.seconds / b.seconds
                } else {
                    1.0
                }
            })
        };
        for _ in 0..AGAIN {
            if ratio(&auto, &best) <= FACTOR {
                break;
            }
            let again = compare(task);
            if ratio(&again.0, &again.1) < ratio(&auto, &best) {
                (auto, best) = again;
            }
        }
        let ratio = ratio(&auto, &best);
        self.asked += 1;
        self.decided += usize::from(auto.by.is_some());
        self.missed += usize::from(auto.by.is_none() && best.is_some());
        let question = task.question.map_or(0, |q| q + 1);
        if auto.seconds > NOISE {
            let (by, seconds) = best
                .as_ref()
                .map_or(("-", f64::NAN), |b| (b.by.unwrap_or("-"), b.seconds));
            line(&format!(
                "{shown:<32} {:<5} {question:<2} {:<15} {:>8.3}  {by:<15} {seconds:>8.3} {ratio:>6.2}",
                task.model.keyword(),
                auto.by.unwrap_or("nobody"),
                auto.seconds,
            ));
        }
        if ratio > self.worst.0 {
            self.worst = (ratio, format!("({shown} on {})", task.model));
        }
    }
}
