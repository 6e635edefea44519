//! Many programs, in parts: after each part the table is written down, so that a campaign can be
//! interrupted and resumed.

use crate::ask::{Engine, OVER};
use crate::neighbour::Audit;
use crate::table::Table;
use crate::trial::{AUDITOR, Disagreement, Judge, Limits, compare, trial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use wattle::resources::{processor_time, resident_memory};
use wattle_model::{Program, print};
use wattle_random::{GALLERY, GALLERY_FORMS, Profile, Source, gallery, shrink, source};
use wattle_syntax::{Language, parse};

/// Which programs, and how long.
#[derive(Clone, Debug)]
pub struct Campaign {
    pub seed: u64,
    /// All profiles in turn if none is given.
    pub profile: Option<Profile>,
    pub first: u64,
    pub programs: u64,
    pub time: Option<Duration>,
    pub jobs: usize,
    pub limits: Limits,
    /// What is done so far is read from here and written here.
    pub resume: Option<PathBuf>,
    /// Every audit is written here, one line each, for trials of the auditor alone.
    pub audits: Option<PathBuf>,
    /// Who is asked.
    pub engines: Vec<Engine>,
}

/// What a campaign has done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    pub seed: u64,
    pub profile: Option<String>,
    /// The number of the next program.
    pub next: u64,
    pub table: Table,
    /// Everything that was wrong, as it was told.
    pub disagreements: Vec<String>,
}

/// One program: what was compared and what was wrong, or why it is no program.
struct Tried {
    number: u64,
    result: Result<(Table, Vec<Disagreement>), String>,
    audits: Vec<Audit>,
}

/// The programs of the gallery are numbered from here.
pub const GALLERY_FIRST: u64 = 1 << 40;
/// Programs between two looks at the clock.
const PART: u64 = 32;
/// Disagreements beyond this many are told but not shrunk.
const SHRUNK: usize = 12;
/// What shrinking one program may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A program that takes more processor time hangs somebody who does not look at the clock.
const HANGS: Duration = Duration::from_secs(600);
/// Memory that all programs of a part may have together.
const MEMORY: u64 = 4 << 30;
/// Between two looks at what is used.
const LOOK: Duration = Duration::from_millis(500);

impl Campaign {
    /// Two of five programs have a fixed number of threads, two have any number, one has integers.
    pub fn profile_of(&self, n: u64) -> Profile {
        let all = match n % 5 {
            0 | 2 => Profile::Fixed,
            1 | 3 => Profile::Families,
            _ => Profile::Integers,
        };
        self.profile.unwrap_or(all)
    }

    /// The n-th program.
    pub fn source(&self, n: u64) -> Source {
        let shown = n.checked_sub(GALLERY_FIRST).and_then(gallery);
        shown.unwrap_or_else(|| source(self.seed_of(n), self.profile_of(n)))
    }

    /// The names of the engines, in the order of the table.
    pub fn engine_names(&self) -> Vec<&'static str> {
        self.engines.iter().map(|e| e.name).collect()
    }

    pub fn seed_of(&self, n: u64) -> u64 {
        self.seed.wrapping_mul(1_000_003).wrapping_add(n)
    }

    /// Every seventh program is asked about deadlock too; of those with any number of threads, which
    /// nobody proves free of it, fewer.
    fn deadlock(&self, n: u64) -> bool {
        if let Some(n) = n.checked_sub(GALLERY_FIRST) {
            return n % GALLERY_FORMS == 1 || n % (16 * GALLERY_FORMS) == GALLERY_FORMS - 1;
        }
        let each = match self.profile_of(n) {
            Profile::Families | Profile::Levels => 35,
            Profile::Fixed | Profile::Integers => 7,
        };
        self.seed_of(n).is_multiple_of(each)
    }

    fn start(&self) -> Result<Done, String> {
        let fresh = Done {
            seed: self.seed,
            profile: self.profile.map(|p| p.name().to_string()),
            next: self.first,
            ..Done::default()
        };
        let Some(file) = self.resume.as_deref().filter(|f| f.exists()) else {
            return Ok(fresh);
        };
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let done: Done =
            serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        if (done.seed, &done.profile) != (fresh.seed, &fresh.profile) {
            return Err(format!("{}: of another seed or profile", file.display()));
        }
        Ok(done)
    }

    pub fn run(&self) -> Result<Done, String> {
        let mut done = self.start()?;
        let began = Instant::now();
        let end = self.first + self.programs;
        // The gallery first, once.
        if self.profile.is_none() && self.first == 0 && done.next == 0 {
            self.part(GALLERY_FIRST..GALLERY_FIRST + GALLERY, &mut done)?;
        }
        while done.next < end && self.time.is_none_or(|t| began.elapsed() < t) {
            let part = done.next..end.min(done.next + PART);
            self.part(part.clone(), &mut done)?;
            done.next = part.end;
            if let Some(file) = &self.resume {
                write(file, &done)?;
            }
        }
        Ok(done)
    }

    fn part(&self, part: Range<u64>, done: &mut Done) -> Result<(), String> {
        let next = AtomicU64::new(part.start);
        let found: Mutex<Vec<Tried>> = Mutex::default();
        let begun: Mutex<BTreeMap<u64, Duration>> = Mutex::default();
        let (working, ended) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let begun = &begun;
            scope.spawn(move || {
                while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                    self.look(&begun.lock().unwrap_or_else(PoisonError::into_inner));
                }
            });
            for _ in 0..self.jobs.max(1) {
                let working = working.clone();
                let (next, found) = (&next, &found);
                scope.spawn(move || {
                    let _working = working;
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= part.end {
                            break;
                        }
                        let mut all = begun.lock().unwrap_or_else(PoisonError::into_inner);
                        all.insert(n, processor_time());
                        drop(all);
                        let one = self.one(n);
                        let mut all = begun.lock().unwrap_or_else(PoisonError::into_inner);
                        all.remove(&n);
                        drop(all);
                        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                        found.push(one);
                    }
                });
            }
            drop(working);
        });
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by_key(|t| t.number);
        for Tried {
            number,
            result,
            audits,
        } in found
        {
            if let Some(file) = &self.audits {
                append(file, &audits)?;
            }
            match result {
                Ok((table, wrong)) => {
                    done.table.merge(&table);
                    for (first, others) in together(wrong) {
                        let small = done.disagreements.len() < SHRUNK;
                        let text = self.told(number, &first, &others, small);
                        tell(done, text);
                    }
                }
                Err(what) => tell(done, format!("program {number}: {what}")),
            }
        }
        Ok(())
    }

    /// Looks at what the programs that have begun use.
    fn look(&self, begun: &BTreeMap<u64, Duration>) {
        let now = processor_time();
        for (n, since) in begun {
            if now.saturating_sub(*since) > HANGS * self.jobs.max(1) as u32 {
                println!("program {n} hangs\n{}", self.text(*n));
                std::process::exit(1);
            }
        }
        let over = resident_memory().is_some_and(|m| m > MEMORY);
        OVER.store(over, Ordering::Relaxed);
    }

    fn text(&self, n: u64) -> String {
        self.source(n).text
    }

    fn one(&self, number: u64) -> Tried {
        let mut audits = Vec::new();
        let result = self.tried(number, &mut audits);
        Tried {
            number,
            result,
            audits,
        }
    }

    fn tried(&self, n: u64, audits: &mut Vec<Audit>) -> Result<(Table, Vec<Disagreement>), String> {
        let source = self.source(n);
        let parsed = parse(Language::Wtl, &source.text);
        let Some(program) = parsed.program else {
            let what = format!("does not parse: {:?}\n{}", parsed.diagnostics, source.text);
            return Err(what);
        };
        let mut table = Table::of_one();
        let deadlock = self.deadlock(n);
        let wrong = trial(
            &program,
            &source.sugar,
            deadlock,
            (&self.engines, self.limits),
            &mut table,
            audits,
        );
        Ok((table, wrong))
    }

    /// What is wrong, with a small program that shows it.
    fn told(&self, n: u64, d: &Disagreement, others: &[String], small: bool) -> String {
        let profile = self.profile_of(n);
        let mut text = format!(
            "program {n} ({profile}): {} on {}, property {}{}: {}\n  again: adversary --seed {} --first {n} --programs 1",
            d.engine.name,
            d.model,
            d.question + 1,
            if d.deadlock { " with deadlock" } else { "" },
            d.what,
            self.seed,
        );
        if !others.is_empty() {
            text = text.replacen('\n', &format!("\n  so did {}\n", others.join(", ")), 1);
        }
        if let Some(p) = self.profile {
            text += &format!(" --profile {p}");
        }
        let program = parse(Language::Wtl, &self.text(n)).program;
        // A proof that the auditor should have rejected is told with the program it was put to.
        let small = small && !d.what.starts_with(AUDITOR);
        if let (true, Some(program)) = (small, program) {
            let small = self.shrunk(&program, d);
            text += &format!(
                "\n  wattle check small.wtl --model {}{}{}\n{}",
                d.model.keyword(),
                d.engine.command(),
                if d.deadlock { " --deadlock" } else { "" },
                print::to_wtl(&small)
            );
        }
        text
    }

    fn shrunk(&self, program: &Program, d: &Disagreement) -> Program {
        let began = Instant::now();
        let mut only = program.clone();
        if let Some(p) = only.properties.get(d.question).cloned() {
            only.properties = vec![p];
        }
        let kind = |what: &str| what.split(':').next().map(String::from);
        let still = |p: &Program| {
            if began.elapsed() > PATIENCE {
                return false;
            }
            // What no number of threads starts with shows nothing.
            let judge = Judge::of(p, d.model, self.limits);
            if judge.instances.is_empty() {
                return false;
            }
            let judge = || &judge;
            let (_, wrong) = compare(p, &d.engine, d.model, d.deadlock, judge, self.limits);
            wrong.is_some_and(|w| kind(&w.what) == kind(&d.what))
        };
        let from = if still(&only) { &only } else { program };
        shrink(from, still)
    }
}

/// Those who are wrong about the same question in the same words: the first, and the names of the
/// others.
fn together(wrong: Vec<Disagreement>) -> Vec<(Disagreement, Vec<String>)> {
    let mut groups: Vec<(Disagreement, Vec<String>)> = Vec::new();
    for d in wrong {
        let same = |(first, _): &&mut (Disagreement, Vec<String>)| {
            first.question == d.question && first.what == d.what
        };
        match groups.iter_mut().find(same) {
            Some((_, others)) => others.push(format!("{} on {}", d.engine.name, d.model)),
            None => groups.push((d, Vec::new())),
        }
    }
    groups
}

fn tell(done: &mut Done, text: String) {
    println!("\n{text}");
    done.disagreements.push(text);
}

fn append(file: &Path, audits: &[Audit]) -> Result<(), String> {
    let lines: Result<Vec<String>, _> = audits.iter().map(serde_json::to_string).collect();
    let lines = lines.map_err(|e| e.to_string())?;
    let mut options = std::fs::OpenOptions::new();
    let mut out = (options.create(true).append(true).open(file))
        .map_err(|e| format!("{}: {e}", file.display()))?;
    let written = lines.iter().try_for_each(|l| writeln!(out, "{l}"));
    written.map_err(|e| format!("{}: {e}", file.display()))
}

fn write(file: &Path, done: &Done) -> Result<(), String> {
    let text = serde_json::to_string(done).map_err(|e| e.to_string())?;
    let new = file.with_extension("new");
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, file));
    written.map_err(|e| format!("{}: {e}", file.display()))
}
