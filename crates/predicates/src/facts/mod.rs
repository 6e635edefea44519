//! The engine `facts`: the least facts of given forms that hold wherever the threads are.
//!
//! For integers, bounded or not, where what is needed are equalities, bounds on differences and that
//! values differ, at each control state: tickets, rounds, indices, numbers that only grow. Buffers without
//! a bound are known by views (`world`). With three threads and more, what the property says about
//! some is first tried with the others doing anything.
//!
//! It never looks for runs: where facts of these forms are too weak it says so.

mod certify;
mod classes;
mod element;
mod search;
mod world;
mod zone;
mod zones;

use crate::cegar::abstraction::Halt;
use crate::reduce::System;
use certify::Writer;
use search::{Outcome, Search};
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::{Answer, Certificate, Control, Engine, Progress, Reason, Refusal, Task};
use wattle_model::instance::Fact;
use wattle_model::{Expr, Op2, ThreadId};
use world::{Forms, World};
use zones::Zones;

#[derive(Clone, Copy, Debug, Default)]
pub struct Facts;

impl Engine for Facts {
    fn name(&self) -> &'static str {
        "facts"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        System::accepts_types(task, (true, false))
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        let mut effort = Progress::default();
        let undecided = |reason, effort| Answer::Undecided { reason, effort };
        if let Err(refusal) = self.accepts(task) {
            return undecided(Reason::Refused(refusal), effort);
        }
        let mut why = "facts of its forms are too weak";
        for (focuses, forms) in attempts(task) {
            match prove(task, focuses, forms, &mut effort, control) {
                Ok(Some(certificate)) => {
                    let certificate = Certificate::Inductive(certificate);
                    return Answer::Unreachable {
                        certificate,
                        effort,
                    };
                }
                Ok(None) => {}
                Err(Failed::NoWorld(reason)) => why = reason,
                Err(Failed::Halted(Halt::Stopped(stop))) => {
                    let stage = "facts".into();
                    return undecided(Reason::Stopped { stop, stage }, effort);
                }
                Err(Failed::Halted(Halt::Unknown(reason))) => {
                    return undecided(Reason::SolverUnknown(reason.to_string()), effort);
                }
                Err(Failed::Halted(Halt::Other(reason))) => {
                    return undecided(Reason::Other(reason), effort);
                }
            }
        }
        undecided(Reason::Other(why.into()), effort)
    }
}

enum Failed {
    NoWorld(&'static str),
    Halted(Halt),
}

/// Threads, and what of the property speaks of no others.
type Focus = (Vec<ThreadId>, Vec<Expr<Fact>>);

/// First those that the property speaks of together, with the others doing anything; then all. Each first
/// with the plainest facts: others are rarely needed, and hard on the solver.
fn attempts(task: &Task<'_>) -> Vec<(Vec<Focus>, Forms)> {
    let all: Vec<ThreadId> = task.instance.thread_ids().collect();
    let mut targets = Vec::new();
    if let Some(q) = task.question() {
        alternatives(&q.target, &mut targets);
    }
    let mut focuses: BTreeMap<Vec<ThreadId>, Vec<Expr<Fact>>> = BTreeMap::new();
    for target in &targets {
        let mut threads = BTreeSet::new();
        target.for_each_atom(&mut |fact| match fact {
            Fact::Register(t, _) | Fact::At(t, _) | Fact::Seen(t, _) => {
                threads.insert(*t);
            }
            Fact::Cell(_) | Fact::CellAt { .. } => {}
        });
        let threads = threads.into_iter().collect();
        focuses.entry(threads).or_default().push(target.clone());
    }
    let covered: BTreeSet<ThreadId> = focuses.keys().flatten().copied().collect();
    let alone = all.iter().filter(|t| !covered.contains(t));
    let alone: Vec<Vec<ThreadId>> = alone.map(|t| vec![*t]).collect();
    for t in alone {
        focuses.entry(t).or_default();
    }
    // A final state is one of all threads.
    let of_all = task.question().is_some_and(|q| q.only_final);
    let few = |f: &Vec<ThreadId>| !f.is_empty() && f.len() < all.len();
    let small = !of_all && focuses.keys().all(few);
    let mut ways: Vec<Vec<Focus>> = Vec::new();
    if small {
        ways.push(focuses.into_iter().collect());
    }
    ways.push(vec![(all, targets)]);
    let plain = [Forms::Plain, Forms::Differences];
    let each = |way: &Vec<Focus>| plain.map(|forms| (way.clone(), forms));
    let zones = ways.iter().map(|way| (way.clone(), Forms::Zones));
    let mut all: Vec<(Vec<Focus>, Forms)> = zones.collect();
    all.extend(ways.iter().flat_map(each));
    all.extend(ways.into_iter().map(|way| (way, Forms::Cases)));
    all
}

/// The disjuncts.
fn alternatives(e: &Expr<Fact>, out: &mut Vec<Expr<Fact>>) {
    match e {
        Expr::Binary(Op2::Or, a, b) => {
            alternatives(a, out);
            alternatives(b, out);
        }
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
            out.push(e.clone());
        }
    }
}

/// All of the focuses, or nothing.
fn prove(
    task: &Task<'_>,
    focuses: Vec<Focus>,
    forms: Forms,
    effort: &mut Progress,
    control: &Control<'_>,
) -> Result<Option<wattle_evidence::certificate::Inductive>, Failed> {
    let mut writer = Writer::new();
    let mut system = None;
    for (threads, targets) in focuses {
        let world = World::new(task, threads, targets, forms).map_err(Failed::NoWorld)?;
        if forms == Forms::Cases && world.classes.equal.is_empty() {
            // The same as without.
            return Ok(None);
        }
        if forms == Forms::Zones {
            if !world.fits_zones() {
                return Ok(None);
            }
            let mut zones = Zones::new(&world);
            let proved = zones.run(control);
            let made = zones.effort();
            effort.states += made.states;
            effort.memory = effort.memory.max(made.memory);
            if !proved.map_err(Failed::Halted)? {
                return Ok(None);
            }
            if writer.add_zones(&world, &zones).is_none() {
                return Ok(None);
            }
            system = Some(world.system);
            continue;
        }
        let mut search = Search::new(&world);
        let outcome = search.run(control);
        let made = search.effort();
        effort.states += made.states;
        effort.memory = effort.memory.max(made.memory);
        match outcome.map_err(Failed::Halted)? {
            Outcome::TooWeak => return Ok(None),
            Outcome::Proved => {}
        }
        if writer.add(&world, &search).is_none() {
            let why = "a fact's numbers are too large to write down";
            return Err(Failed::Halted(Halt::Other(why.into())));
        }
        system = Some(world.system);
    }
    Ok(system.map(|system| writer.finish(&system)))
}
