//! The plan beside every engine alone, on every example, on the suites of harder programs and on random programs:
//! processor time, and the worst ratio.
//!
//! If the plan took T, an engine alone that has no answer after T/3 cannot show it to be more than
//! three times slower, so no engine gets more: all of them together cost little more than the plan.
//! Where the plan gave up without an answer, every engine gets the limit of the row. Processor time is that of the
//! process, audits included, and [`FLOOR`] of it is granted to the plan in every row: starting a race
//! costs something whoever wins it. An engine that proves something under a condition where the plan needs none does not
//! say as much and is not compared. What looks bad is measured again, because a busy machine can make
//! anything look bad once.

use crate::sink::Sink;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use wattle::input::{self, Subject};
use wattle::{Options, ThreadCount, Verdict, plan, resources};
use wattle_evidence::{AnyNumber, Asked, Control, OpenTask, Task};
use wattle_memory::MemoryModel;
use wattle_model::{Count, Instance};
use wattle_random::Profile;
use wattle_syntax::wtl::parse_linked;
use wattle_syntax::{Language, parse};

/// No measurement takes more processor time.
const LIMIT: Duration = Duration::from_secs(10);
/// What the plan may cost in any case.
const FLOOR: Duration = Duration::from_millis(50);
/// What the plan may cost, times the best engine.
const FACTOR: u32 = 3;
/// How often a bad row is measured again.
const AGAIN: usize = 2;
/// What takes less is measured several times over when it is measured again.
const LONG: Duration = Duration::from_millis(600);
/// How many rows are shown unless all are.
const SHOWN: usize = 15;

/// Suites beside the examples.
const SUITES: [&str; 4] = ["scale", "families", "integers", "soundness"];

/// Random programs of each profile.
const RANDOM: u64 = 100;

/// What is measured and shown.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'w> {
    /// Random programs too.
    pub random: bool,
    /// Only programs whose name has this in it.
    pub only: &'w str,
    /// Every row is shown; otherwise the worst are, after the others.
    pub all: bool,
}

/// Gives the table line by line; says whether the plan is good enough in every row.
pub fn run(examples: &Path, suites: &Path, wanted: Wanted<'_>, out: &mut Sink<'_>) -> bool {
    let Wanted { random, only, all } = wanted;
    let mut table = Table::default();
    let mut folders = vec![examples.display().to_string()];
    for suite in SUITES {
        let folder = suites.join(suite);
        match folder.is_dir() {
            true => folders.push(folder.display().to_string()),
            false => out.line(&format!("skipped: the {suite} suite is not here")),
        }
    }
    let (files, errors) = input::expand(&folders);
    for (name, error) in &errors {
        out.line(&format!("{name}: {}", error.reason));
    }
    if all {
        out.line(HEAD);
    }
    for file in files.into_iter().filter(|f| f.contains(only)) {
        let Ok((subject, _)) = input::read(&file, None).and_then(|mut s| input::parse(&mut s))
        else {
            if lacks_code(&file) {
                table.not_compiled += 1;
            } else {
                out.line(&format!("{file}: cannot be read"));
                table.unread += 1;
            }
            continue;
        };
        let shown = folders.iter().find_map(|f| file.strip_prefix(f.as_str()));
        let shown = shown.unwrap_or(&file);
        let shown = shown.trim_start_matches('/');
        table.measure(&subject, shown, all, out);
    }
    for profile in Profile::ALL.into_iter().filter(|_| random) {
        for seed in 1..=RANDOM {
            let name = format!("random {profile} {seed}");
            if !name.contains(only) {
                continue;
            }
            let text = wattle_random::source(seed, profile).text;
            // What does not parse is another test's business.
            if let Some(program) = parse(Language::Wtl, &text).program {
                table.measure(&Subject::Program(program), &name, all, out);
            }
        }
    }
    if !all {
        out.line(HEAD);
        // First what an engine alone decides and the plan does not.
        let place = |r: &Row| if r.is_missed() { f64::MAX } else { r.ratio() };
        table.rows.sort_by(|a, b| place(b).total_cmp(&place(a)));
        let is_worth = |r: &&Row| r.is_slow() || r.is_missed();
        let bad = table.rows.iter().filter(is_worth).count();
        for row in table.rows.iter().take(bad.max(SHOWN)) {
            out.row(&row.to_string(), row.value());
        }
    }
    table.summary(out);
    errors.is_empty()
        && table.unread == 0
        && !table.rows.iter().any(|r| r.is_slow() || r.is_missed())
}

const HEAD: &str = "example                                     model q  answered by    auto s  best engine    alone s  ratio";

#[derive(Default)]
struct Table {
    rows: Vec<Row>,
    unread: usize,
    /// Questions that only one engine takes.
    alone: usize,
    /// Programs that call code nobody has compiled here.
    not_compiled: usize,
}

impl Table {
    /// Every question about a subject.
    fn measure(&mut self, subject: &Subject, name: &str, all: bool, out: &mut Sink<'_>) {
        each(subject, &mut |asked, note| {
            if engines(&asked).len() < 2 {
                self.alone += 1;
                return;
            }
            let row = Row::measured(format!("{name}{note}"), asked);
            if all {
                out.row(&row.to_string(), row.value());
            }
            self.rows.push(row);
        });
    }

    fn summary(&self, out: &mut Sink<'_>) {
        let count = |wanted: &dyn Fn(&Row) -> bool| self.rows.iter().filter(|r| wanted(r)).count();
        out.line(&format!(
            "{} rows: {} decided by the plan, {} within {} ms; an engine alone took less than a third in {}",
            self.rows.len(),
            count(&|r| r.auto.by.is_some()),
            count(&|r| r.auto.by.is_some() && r.auto.took <= FLOOR),
            FLOOR.as_millis(),
            count(&|r| r.best.is_some()),
        ));
        let seconds: f64 = self.rows.iter().map(|r| r.auto.took.as_secs_f64()).sum();
        let worst = self.rows.iter().map(Row::ratio).fold(0.0, f64::max);
        out.line(&format!(
            "the plan took {seconds:.1} s of processor time; the worst ratio (beyond {} ms) is {worst:.2}",
            FLOOR.as_millis()
        ));
        out.line(&format!(
            "{} questions for any number of threads are for one engine only: not measured",
            self.alone
        ));
        if self.not_compiled > 0 {
            out.line(&format!(
                "{} programs call compiled code that is not here: not measured",
                self.not_compiled
            ));
        }
        out.line(&format!(
            "{} rows over {FACTOR}; {} decided by an engine alone and not by the plan",
            count(&Row::is_slow),
            count(&Row::is_missed),
        ));
    }
}

/// Whether a program calls compiled code that is not beside it.
fn lacks_code(file: &str) -> bool {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let linked = std::fs::read_to_string(file).map(|text| parse_linked(&text));
    linked.is_ok_and(|l| {
        let mut objects = l.link.objects.iter();
        objects.any(|(object, _)| !folder.join(object).is_file())
    })
}

/// Every question about a subject. Families of any number of threads are also measured with two.
fn each(subject: &Subject, row: &mut dyn FnMut(Asked<'_>, &'static str)) {
    let program = match subject {
        Subject::Program(program) => program,
        Subject::System(system) => {
            for model in MemoryModel::ALL {
                row(any_number(AnyNumber::System(system), model, None), "");
            }
            return;
        }
    };
    let open = program.families.iter().filter(|f| f.count == Count::Any);
    let threads = open.map(|f| (f.name.clone(), ThreadCount::Fixed(2)));
    let options = Options {
        threads: threads.collect(),
        ..Options::default()
    };
    let is_open = !options.threads.is_empty();
    let instance: Option<Instance> = program.instantiate(&options.counts()).ok();
    let questions = program.properties.len();
    for model in MemoryModel::ALL {
        for question in (0..questions.max(1)).map(|q| (questions > 0).then_some(q)) {
            if is_open {
                row(any_number(AnyNumber::Program(program), model, question), "");
            }
            if let Some(instance) = &instance {
                let task = Task {
                    instance,
                    model,
                    question,
                    deadlock: false,
                };
                let note = if is_open { " (two)" } else { "" };
                row(Asked::Fixed(task), note);
            }
        }
    }
}

/// The question for any number of threads.
fn any_number(of: AnyNumber<'_>, model: MemoryModel, question: Option<usize>) -> Asked<'_> {
    Asked::Open(OpenTask {
        of,
        model,
        question,
        deadlock: false,
    })
}

/// Who may answer alone.
fn engines(asked: &Asked<'_>) -> Vec<&'static str> {
    match asked {
        Asked::Fixed(_) => plan::names(),
        Asked::Open(task) => plan::willing_named(task),
    }
}

/// Who decides it, if somebody does, and whether without taking anything for granted.
fn answer(
    asked: &Asked<'_>,
    options: &Options,
    control: &Control<'_>,
) -> Option<(&'static str, bool)> {
    let outcome = plan::run(*asked, options, control).ok()?;
    match outcome.judged.verdict {
        Verdict::Holds { .. } | Verdict::Violated { .. } => Some((outcome.engine, true)),
        Verdict::HoldsIf { .. } => Some((outcome.engine, false)),
        Verdict::Bounded { .. } | Verdict::Undecided { .. } => None,
    }
}

fn measure(asked: &Asked<'_>, engine: Option<&'static str>, limit: Duration) -> Measured {
    let options = Options {
        engine: engine.map(String::from),
        explain: false,
        ..Options::default()
    };
    let over = AtomicBool::new(false);
    let (found, took) = resources::timed(limit, &over, || {
        let flags = [&over];
        answer(asked, &options, &Control::unlimited().with_cancel(&flags))
    });
    Measured {
        asked: engine,
        by: found.map(|(by, _)| by),
        sure: found.is_some_and(|(_, sure)| sure),
        took,
    }
}

/// Who decided, and the processor time it took.
#[derive(Clone, Copy)]
struct Measured {
    asked: Option<&'static str>,
    by: Option<&'static str>,
    /// Nothing is taken for granted.
    sure: bool,
    took: Duration,
}

struct Row {
    name: String,
    model: MemoryModel,
    question: Option<usize>,
    auto: Measured,
    /// The fastest of those that decide alone, if any had to be asked.
    best: Option<Measured>,
}

impl Row {
    fn measured(name: String, asked: Asked<'_>) -> Row {
        let auto = measure(&asked, None, LIMIT);
        let limit = match auto.by {
            // The plan has no answer: nobody should know better.
            None => LIMIT,
            Some(_) => auto.took / FACTOR,
        };
        let nobody = auto.by.is_some() && auto.took <= FLOOR;
        let engines = if nobody { Vec::new() } else { engines(&asked) };
        let alone = engines.into_iter().map(|e| measure(&asked, Some(e), limit));
        // A proof with a condition is less than what the plan has found.
        let decided = alone.filter(|m| m.by.is_some() && m.sure >= auto.sure);
        let (model, question) = match asked {
            Asked::Fixed(task) => (task.model, task.question),
            Asked::Open(task) => (task.model, task.question),
        };
        let mut row = Row {
            name,
            model,
            question,
            auto,
            best: decided.min_by_key(|m| m.took),
        };
        for _ in 0..AGAIN {
            if row.is_slow() {
                row.again(asked);
            }
        }
        row
    }

    /// Measures the plan and the best engine once more, short ones several times over.
    fn again(&mut self, asked: Asked<'_>) {
        let times = (LONG.as_millis() / self.auto.took.as_millis().max(1)).clamp(1, 8) as u32;
        let mean = |engine| {
            let all: Vec<Measured> = (0..times).map(|_| measure(&asked, engine, LIMIT)).collect();
            let took: Duration = all.iter().map(|m| m.took).sum();
            let last = all.last().copied();
            last.map_or(self.auto, |last| Measured {
                took: took / times,
                ..last
            })
        };
        let again = Row {
            name: self.name.clone(),
            auto: mean(None),
            best: self.best.map(|best| mean(best.asked)),
            ..*self
        };
        if again.best.is_some_and(|b| b.by.is_some()) && again.ratio() < self.ratio() {
            *self = again;
        }
    }

    /// What the plan took beyond the floor, times the best engine alone; 0 where no engine is known to
    /// be much better.
    fn ratio(&self) -> f64 {
        match self.best {
            Some(best) if self.auto.by.is_some() => {
                let took = self.auto.took.saturating_sub(FLOOR).as_secs_f64();
                took / best.took.as_secs_f64().max(1e-3)
            }
            _ => 0.0,
        }
    }

    fn value(&self) -> serde_json::Value {
        let seconds = |m: &Measured| m.took.as_secs_f64();
        json!({
            "suite": "auto", "file": self.name, "model": self.model,
            "question": self.question.map_or(0, |q| q + 1),
            "answered_by": self.auto.by, "processor_seconds": seconds(&self.auto),
            "best": self.best.as_ref().and_then(|b| b.asked),
            "best_processor_seconds": self.best.as_ref().map(seconds),
            "ratio": self.best.is_some().then(|| self.ratio()),
        })
    }

    fn is_slow(&self) -> bool {
        self.ratio() > f64::from(FACTOR)
    }

    fn is_missed(&self) -> bool {
        self.auto.by.is_none() && self.best.is_some()
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = format!(
            "{:<43} {:<5} {:<2} {:<13} {:>7.3}  ",
            self.name,
            self.model.keyword(),
            self.question.map_or(0, |q| q + 1),
            self.auto.by.unwrap_or("nobody"),
            self.auto.took.as_secs_f64(),
        );
        match self.best {
            None => text.push('-'),
            Some(best) => {
                let (by, took) = (best.asked.unwrap_or("-"), best.took.as_secs_f64());
                let _ = write!(text, "{by:<13} {took:>8.3} {:>6.2}", self.ratio());
            }
        }
        f.write_str(&text)
    }
}
