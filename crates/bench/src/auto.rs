//! The plan beside every engine alone, on every example, on the suites of harder programs and on random
//! programs: processor time, and the worst ratio.
//!
//! If the plan took T, an engine alone that has no answer after T/3 cannot show it to be more than
//! three times slower, so no engine gets more: all of them together cost little more than the plan.
//! Where the plan gave up without an answer, every engine gets the limit of the row. Processor time is that of the
//! process, audits included, and [`FLOOR`] of it is granted to the plan in every row: starting a race
//! costs something whoever wins it. What looks bad is measured again, because a busy machine can make
//! anything look bad once.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use wattle::input::{self, Subject};
use wattle::{Options, ThreadCount, Verdict, families, plan, resources};
use wattle_evidence::{Control, Task};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_model::{Count, Instance, Program};
use wattle_random::{Loops, Shape};

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
/// Random programs, drawn from this seed on.
const RANDOM: u64 = 300;
const SEED: u64 = 1;

/// Gives the table line by line; says whether the plan is good enough in every row. Unless `all` rows
/// are wanted the worst are shown, after the others.
pub fn run(examples: &Path, suites: &Path, all: bool, line: &mut dyn FnMut(&str)) -> bool {
    let mut table = Table::default();
    if all {
        line(HEAD);
    }
    table.folder(examples, all, line);
    for suite in SUITES {
        let folder = suites.join(suite);
        match folder.is_dir() {
            true => table.folder(&folder, all, line),
            false => line(&format!("skipped: the {suite} suite is not here")),
        }
    }
    for n in 0..RANDOM {
        let shape = Shape {
            loops: if n % 2 == 0 {
                Loops::Any
            } else {
                Loops::Fenced
            },
            crowd: n % 3 == 0,
            ..Shape::default()
        };
        let program = wattle_random::program(SEED + n, &shape);
        table.subject(
            &format!("random {n}"),
            &Subject::Program(program),
            all,
            line,
        );
    }
    if !all {
        line(HEAD);
        table.rows.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
        let is_worth = |r: &&Row| r.is_slow() || r.is_missed();
        let bad = table.rows.iter().filter(is_worth).count();
        for row in table.rows.iter().take(bad.max(SHOWN)) {
            line(&row.to_string());
        }
    }
    table.summary(line);
    table.unread == 0 && !table.rows.iter().any(|r| r.is_slow() || r.is_missed())
}

const HEAD: &str = "example                                     model q  answered by    auto s  best engine    alone s  ratio";

#[derive(Default)]
struct Table {
    rows: Vec<Row>,
    unread: usize,
    /// Questions that only one engine takes.
    alone: usize,
}

impl Table {
    fn folder(&mut self, folder: &Path, all: bool, line: &mut dyn FnMut(&str)) {
        let folder = folder.display().to_string();
        let (files, errors) = input::expand(std::slice::from_ref(&folder));
        for (name, error) in &errors {
            line(&format!("{name}: {}", error.reason));
        }
        self.unread += errors.len();
        for file in files {
            let Ok((subject, _)) = input::read(&file, None).and_then(|s| input::parse(&s)) else {
                line(&format!("{file}: cannot be read"));
                self.unread += 1;
                continue;
            };
            let shown = file.strip_prefix(&folder).unwrap_or(&file);
            self.subject(shown.trim_start_matches('/'), &subject, all, line);
        }
    }

    fn subject(&mut self, name: &str, subject: &Subject, all: bool, line: &mut dyn FnMut(&str)) {
        each(subject, &mut |asked| {
            if asked.engines().len() < 2 {
                self.alone += 1;
                return;
            }
            let row = Row::measured(format!("{name}{asked}"), asked);
            if all {
                line(&row.to_string());
            }
            self.rows.push(row);
        });
    }

    fn summary(&self, line: &mut dyn FnMut(&str)) {
        let count = |wanted: &dyn Fn(&Row) -> bool| self.rows.iter().filter(|r| wanted(r)).count();
        line(&format!(
            "{} rows: {} decided by the plan, {} within {} ms; an engine alone took less than a third in {}",
            self.rows.len(),
            count(&|r| r.auto.by.is_some()),
            count(&|r| r.auto.by.is_some() && r.auto.took <= FLOOR),
            FLOOR.as_millis(),
            count(&|r| r.best.is_some()),
        ));
        let seconds: f64 = self.rows.iter().map(|r| r.auto.took.as_secs_f64()).sum();
        let worst = self.rows.iter().map(Row::ratio).fold(0.0, f64::max);
        line(&format!(
            "the plan took {seconds:.1} s of processor time; the worst ratio (beyond {} ms) is {worst:.2}",
            FLOOR.as_millis()
        ));
        line(&format!(
            "{} questions for any number of threads are for one engine only: not measured",
            self.alone
        ));
        line(&format!(
            "{} rows over {FACTOR}; {} decided by an engine alone and not by the plan",
            count(&Row::is_slow),
            count(&Row::is_missed),
        ));
    }
}

/// One question.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Fixed(Task<'a>, &'static str),
    Open(&'a Program, MemoryModel, Option<usize>),
    System(&'a ArraySystem, MemoryModel),
}

impl std::fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Asked::Fixed(_, note) => write!(f, "{note}"),
            Asked::Open(..) | Asked::System(..) => Ok(()),
        }
    }
}

/// Every question about a subject. Families of any number of threads are also measured with two.
fn each(subject: &Subject, row: &mut dyn FnMut(Asked<'_>)) {
    let program = match subject {
        Subject::Program(program) => program,
        Subject::System(system) => {
            for model in MemoryModel::ALL {
                row(Asked::System(system, model));
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
                row(Asked::Open(program, model, question));
            }
            if let Some(instance) = &instance {
                let task = Task {
                    instance,
                    model,
                    question,
                    deadlock: false,
                };
                let note = if is_open { " (two)" } else { "" };
                row(Asked::Fixed(task, note));
            }
        }
    }
}

impl Asked<'_> {
    fn model(&self) -> MemoryModel {
        match self {
            Asked::Fixed(task, _) => task.model,
            Asked::Open(_, model, _) | Asked::System(_, model) => *model,
        }
    }

    fn question(&self) -> Option<usize> {
        match self {
            Asked::Fixed(task, _) => task.question,
            Asked::Open(_, _, question) => *question,
            Asked::System(..) => None,
        }
    }

    /// Who may answer alone.
    fn engines(&self) -> Vec<&'static str> {
        match self {
            Asked::Fixed(..) => plan::names(),
            Asked::Open(program, _, question) => families::provers_named(program, *question),
            Asked::System(..) => vec![families::PARAMS],
        }
    }

    /// Who decides it, if somebody does.
    fn answer(&self, options: &Options, control: &Control<'_>) -> Option<&'static str> {
        let (engine, judged) = match self {
            Asked::Fixed(task, _) => {
                let outcome = plan::run(task, options, control).ok()?;
                (outcome.engine, outcome.judged)
            }
            Asked::Open(program, model, question) => {
                let (m, q) = (*model, *question);
                let f = families::program(program, m, q, options, control, &mut None).ok()?;
                (f.engine, f.judged)
            }
            Asked::System(system, model) => {
                let f = families::system(system, *model, options, control).ok()?;
                (f.engine, f.judged)
            }
        };
        let decided = matches!(
            judged.verdict,
            Verdict::Holds { .. } | Verdict::HoldsIf { .. } | Verdict::Violated { .. }
        );
        decided.then_some(engine)
    }

    fn measure(&self, engine: Option<&'static str>, limit: Duration) -> Measured {
        let options = Options {
            engine: engine.map(String::from),
            explain: false,
            ..Options::default()
        };
        let over = AtomicBool::new(false);
        let (by, took) = resources::timed(limit, &over, || {
            let flags = [&over];
            self.answer(&options, &Control::unlimited().with_cancel(&flags))
        });
        Measured {
            asked: engine,
            by,
            took,
        }
    }
}

/// Who decided, and the processor time it took.
#[derive(Clone, Copy)]
struct Measured {
    asked: Option<&'static str>,
    by: Option<&'static str>,
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
        let auto = asked.measure(None, LIMIT);
        let limit = match auto.by {
            // The plan has no answer: nobody should know better.
            None => LIMIT,
            Some(_) => auto.took / FACTOR,
        };
        let nobody = auto.by.is_some() && auto.took <= FLOOR;
        let engines = if nobody { Vec::new() } else { asked.engines() };
        let alone = engines.into_iter().map(|e| asked.measure(Some(e), limit));
        let decided = alone.filter(|m| m.by.is_some());
        let mut row = Row {
            name,
            model: asked.model(),
            question: asked.question(),
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
            let all: Vec<Measured> = (0..times).map(|_| asked.measure(engine, LIMIT)).collect();
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
