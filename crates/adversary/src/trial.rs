//! One program: every engine and every memory model against the judge.

use crate::ask::{Answers, Budget, Engine, Said, ask};
use crate::brute::{Seen, Truth, explore};
use crate::table::{Counted, Table};
use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use wattle::check::questions;
use wattle_memory::MemoryModel;
use wattle_model::{Count, Counts, Instance, Program};
use wattle_random::{constructs, question_constructs};

/// How much is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub budget: Budget,
    /// States of one instance that the judge looks at.
    pub states: usize,
    /// Threads of open families, all together.
    pub threads: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            budget: Budget::default(),
            states: 4_000,
            threads: 5,
        }
    }
}

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
        let mut partial = program.is_parameterised();
        let mut all = Vec::new();
        for instance in instances(program, limits.threads) {
            let judge = Judge {
                instances: all,
                partial,
            };
            // More threads say no more.
            let broken = |q: &Option<usize>| judge.truth(*q, false) == Truth::Violated;
            let enough =
                !judge.instances.is_empty() && questions(program, false).iter().all(broken);
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
        // A violation of one number of threads is one of any number; a final state that some number
        // of threads reaches says nothing of the others.
        if each.contains(&Truth::Violated) {
            return Truth::Violated;
        }
        if each.contains(&Truth::NoValue) {
            return Truth::NoValue;
        }
        match self.partial || each.contains(&Truth::Open) || each.is_empty() {
            true => Truth::Open,
            false => Truth::Holds,
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
        (Said::Refused(_) | Said::Undecided, _) => None,
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
) -> (Vec<Said>, Option<Disagreement>) {
    let Answers { said, instance } = ask(program, engine, model, deadlock, limits.budget);
    let asked = questions(program, deadlock);
    let mut first = None;
    for (q, (question, said)) in asked.iter().zip(&said).enumerate() {
        if matches!(said, Said::Refused(_) | Said::Undecided) {
            continue;
        }
        let truth = judge().truth(*question, deadlock);
        let shown = || {
            let instance = instance.as_ref().filter(|_| program.is_parameterised())?;
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
    (said, first)
}

/// Everything about one program. Rows of the table are what the program and the question use, and
/// `sugar`.
pub fn trial(
    program: &Program,
    sugar: &[&'static str],
    deadlock: bool,
    limits: Limits,
    table: &mut Table,
) -> Vec<Disagreement> {
    let mut found = Vec::new();
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
        for engine in Engine::all() {
            let began = Instant::now();
            let (said, wrong) = compare(program, &engine, model, deadlock, judged, limits);
            table.took("brute force", judging.get());
            table.took(engine.name, began.elapsed().saturating_sub(judging.take()));
            found.extend(wrong);
            for (question, said) in questions(program, deadlock).iter().zip(&said) {
                let property = question.map(|q| &program.properties[q]);
                let cell = match said {
                    Said::Holds => Counted::HOLDS,
                    Said::Violated => Counted::VIOLATED,
                    Said::Refused(why) => {
                        table.refused(engine.name, why);
                        Counted::REFUSED
                    }
                    Said::Undecided | Said::Unsound(_) | Said::Panicked(_) => Counted::UNDECIDED,
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
