//! One program: every engine and every memory model against the judge.

use crate::ask::{Answers, Budget, Engine, Said, ask};
use crate::brute::{Seen, Truth, explore};
use crate::neighbour::{Audit, Neighbours};
use crate::table::{Counted, Table};
use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use wattle::check::questions;
use wattle::families;
use wattle_evidence::{AnyNumber, Certificate, Control, OpenTask};
use wattle_memory::MemoryModel;
use wattle_model::{Count, Counts, Instance, Program, PropertyKind, print};
use wattle_random::{constructs, question_constructs};

/// How much is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub budget: Budget,
    /// States of one instance that the judge looks at.
    pub states: usize,
    /// Threads of open families, all together.
    pub threads: u32,
    /// Every answer is confirmed by small instances before it is told, and not each proof once.
    pub confirm: bool,
    /// Proofs are audited once more, to be written down.
    pub again: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            budget: Budget::default(),
            states: 4_000,
            threads: 5,
            confirm: true,
            again: false,
        }
    }
}

/// How a disagreement about the auditor begins.
pub const AUDITOR: &str = "the auditor takes";

/// An answer that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Disagreement {
    pub engine: Engine,
    pub model: MemoryModel,
    pub question: usize,
    pub deadlock: bool,
    pub what: String,
}

/// The instances the judge looks at: the program's own, or those with 1, 2, 3 … threads in its open
/// families. Numbers of threads with which the program does not start are left out.
pub fn instances(program: &Program, threads: u32) -> Vec<Instance> {
    let open: Vec<&str> = program
        .families
        .iter()
        .filter(|f| f.count == Count::Any)
        .map(|f| f.name.as_str())
        .collect();
    let mut choices: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in &open {
        let longer = |c: &Vec<u32>| -> Vec<Vec<u32>> {
            let used: u32 = c.iter().sum();
            let more = 1..=threads.saturating_sub(used);
            more.map(|n| c.iter().copied().chain([n]).collect())
                .collect()
        };
        choices = choices.iter().flat_map(longer).collect();
    }
    choices.sort_by_key(|c| c.iter().sum::<u32>());
    let counts = |choice: &Vec<u32>| {
        let named = open.iter().zip(choice);
        Counts(named.map(|(name, n)| (name.to_string(), *n)).collect())
    };
    let made = choices.iter().map(|c| program.instantiate(&counts(c)));
    made.filter_map(Result::ok).collect()
}

/// What the judge knows about a program under one memory model.
pub struct Judge {
    pub instances: Vec<(Instance, Seen)>,
    /// Some number of threads was left out, or there are more than were looked at.
    partial: bool,
}

impl Judge {
    pub fn of(program: &Program, model: MemoryModel, limits: Limits) -> Judge {
        // Nobody looks at all numbers of threads.
        let mut partial = program.is_parameterised();
        let mut all = Vec::new();
        for instance in instances(program, limits.threads) {
            let judge = Judge {
                instances: all,
                partial,
            };
            // More threads say no more.
            let known = |q: &Option<usize>| {
                matches!(judge.truth(*q, false), Truth::Violated | Truth::Holds)
            };
            let enough = !judge.instances.is_empty() && questions(program, false).iter().all(known);
            all = judge.instances;
            if enough {
                break;
            }
            match explore(&instance, model, limits.states) {
                Some(seen) => all.push((instance, seen)),
                None => partial = true,
            }
        }
        Judge {
            instances: all,
            partial,
        }
    }

    pub fn truth(&self, question: Option<usize>, deadlock: bool) -> Truth {
        let each = self.instances.iter();
        let each: Vec<Truth> = each.map(|(i, s)| s.truth(i, question, deadlock)).collect();
        // A violation with one number of threads is one for any number, and so is a final state that is
        // to be reached.
        let reachable = |(i, _): &(Instance, Seen)| {
            question.is_some_and(|q| i.questions[q].kind == PropertyKind::Reachable)
        };
        let settles = match self.instances.first().is_some_and(reachable) {
            true => Truth::Holds,
            false => Truth::Violated,
        };
        if each.contains(&settles) {
            return settles;
        }
        if each.contains(&Truth::NoValue) {
            return Truth::NoValue;
        }
        match (self.partial || each.contains(&Truth::Open), each.first()) {
            (true, _) | (_, None) => Truth::Open,
            (false, Some(all)) => *all,
        }
    }

    pub fn states(&self) -> usize {
        self.instances.iter().map(|(_, s)| s.states).sum()
    }
}

/// What is wrong with an answer, if anything.
fn wrong(said: &Said, truth: Truth, shown: impl FnOnce() -> Option<Truth>) -> Option<String> {
    let by_brute_force = match truth {
        Truth::Holds => "it holds",
        Truth::Violated => "it is violated",
        Truth::Open => "nothing is known",
        Truth::NoValue => "some state gives it no value",
    };
    match (said, truth) {
        (Said::Refused(_) | Said::Undecided(_), _) => None,
        (Said::Unsound(what), _) => Some(format!("unsound evidence: {what}")),
        (Said::Panicked(what), _) => Some(format!("panicked: {what}")),
        (Said::Holds, Truth::Holds | Truth::Open) | (Said::Violated, Truth::Violated) => None,
        (Said::Holds, Truth::Violated | Truth::NoValue) => {
            Some(format!("said holds; by brute force {by_brute_force}"))
        }
        (Said::Violated, Truth::Holds | Truth::NoValue) => {
            Some(format!("said violated; by brute force {by_brute_force}"))
        }
        // More threads than were looked at, perhaps.
        (Said::Violated, Truth::Open) => match shown() {
            Some(Truth::Holds) => Some(
                "said violated; by brute force the instance that is to show it holds".to_string(),
            ),
            Some(Truth::Violated | Truth::Open | Truth::NoValue) | None => None,
        },
    }
}

/// Puts every question to the engine and compares.
pub fn compare<'j>(
    program: &Program,
    engine: &Engine,
    model: MemoryModel,
    deadlock: bool,
    judge: impl Fn() -> &'j Judge,
    limits: Limits,
) -> (Answers, Option<Disagreement>) {
    let answers = ask(
        program,
        engine,
        model,
        deadlock,
        (limits.budget, limits.confirm),
    );
    let asked = questions(program, deadlock);
    let mut first = None;
    for (q, (question, said)) in asked.iter().zip(&answers.said).enumerate() {
        if matches!(said, Said::Refused(_) | Said::Undecided(_)) {
            continue;
        }
        let truth = judge().truth(*question, deadlock);
        let shown = || {
            let instance = answers.shown.get(q)?.as_ref()?;
            let seen = explore(instance, model, limits.states)?;
            Some(seen.truth(instance, *question, deadlock))
        };
        if let Some(what) = wrong(said, truth, shown)
            && first.is_none()
        {
            first = Some(Disagreement {
                engine: engine.clone(),
                model,
                question: q,
                deadlock,
                what,
            });
        }
    }
    (answers, first)
}

/// What small instances have against a proof for any number of threads.
fn confirmed(
    program: &Program,
    model: MemoryModel,
    question: Option<usize>,
    deadlock: bool,
    proof: &Certificate,
) -> Result<(), String> {
    if !program.is_parameterised() {
        return Ok(());
    }
    let task = OpenTask {
        of: AnyNumber::Program(program),
        model,
        question,
        deadlock,
    };
    families::confirmed(&task, proof, &Control::unlimited())
}

/// Everything about one program. Rows of the table are what the program and the question use, and
/// `sugar`.
pub fn trial(
    program: &Program,
    sugar: &[&'static str],
    deadlock: bool,
    (engines, limits): (&[Engine], Limits),
    table: &mut Table,
    audits: &mut Vec<Audit>,
) -> Vec<Disagreement> {
    let mut found = Vec::new();
    let limits = Limits {
        confirm: false,
        ..limits
    };
    let mut all: BTreeSet<&'static str> = constructs(program);
    all.extend(sugar);
    for model in MemoryModel::ALL {
        // Asked only if somebody has an answer.
        let judge = OnceCell::new();
        let judging = Cell::new(Duration::ZERO);
        let judged = || {
            judge.get_or_init(|| {
                let began = Instant::now();
                let judge = Judge::of(program, model, limits);
                judging.set(began.elapsed());
                judge
            })
        };
        let neighbours: Vec<OnceCell<Neighbours<'_>>> = questions(program, deadlock)
            .iter()
            .map(|_| OnceCell::new())
            .collect();
        // Engines bring the same proofs.
        let mut brought: Vec<Vec<Certificate>> = vec![Vec::new(); neighbours.len()];
        for engine in engines {
            let began = Instant::now();
            let (answers, wrong) = compare(program, engine, model, deadlock, judged, limits);
            table.took("brute force", judging.get());
            table.took(engine.name, began.elapsed().saturating_sub(judging.take()));
            found.extend(wrong);
            for (q, proof) in answers.proofs.iter().enumerate() {
                let Some(proof) = proof.as_ref() else {
                    continue;
                };
                if brought[q].contains(proof) {
                    continue;
                }
                brought[q].push(proof.clone());
                let question = questions(program, deadlock)[q];
                let wrong = |what: String| Disagreement {
                    engine: engine.clone(),
                    model,
                    question: q,
                    deadlock,
                    what,
                };
                if let Err(why) = confirmed(program, model, question, deadlock, proof) {
                    found.push(wrong(format!("unsound evidence: {why}")));
                }
                let before = audits.len();
                let beside = neighbours[q]
                    .get_or_init(|| Neighbours::of(program, model, question, deadlock, limits));
                if let Some(other) = beside.accepted(proof, audits) {
                    found.push(wrong(format!(
                        "{AUDITOR} its proof for one of a program that is violated:\n{}",
                        print::to_wtl(other)
                    )));
                }
                table.put_to_others(audits.len() - before);
                if limits.again {
                    audits.push(beside.own(proof));
                }
            }
            for (question, said) in questions(program, deadlock).iter().zip(&answers.said) {
                let property = question.map(|q| &program.properties[q]);
                let cell = match said {
                    Said::Holds => Counted::HOLDS,
                    Said::Violated => Counted::VIOLATED,
                    Said::Refused(why) => {
                        table.gave(engine.name, why);
                        Counted::REFUSED
                    }
                    Said::Undecided(why) => {
                        table.gave(engine.name, why);
                        Counted::UNDECIDED
                    }
                    Said::Unsound(_) | Said::Panicked(_) => Counted::UNDECIDED,
                };
                let rows = question_constructs(property, deadlock);
                let rows = rows.iter().chain(&all).copied();
                table.count(rows, engine.name, model, cell);
            }
        }
        table.judged(judge.get().map_or(0, Judge::states));
    }
    found
}
