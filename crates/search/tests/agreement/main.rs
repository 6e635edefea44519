//! The compiled machine against the reference machine, on random programs.

mod alike;
#[path = "../common/mod.rs"]
mod common;
mod compressed;
mod shortcuts;

use common::explorer::{Everything, explore};
use common::{Sample, Taste, rng, sample};
use std::collections::BTreeSet;
use wattle_auditor::audit;
use wattle_auditor::write_down;
use wattle_evidence::certificate::Explored;
use wattle_evidence::{Answer, Certificate, ClosedStates, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_model::{Instance, RegisterId, ThreadId};
use wattle_random::setting;
use wattle_search::rounds::Cut;
use wattle_search::{
    Explicit, NoFinals, Observed, Options, Order, Reduce, Reductions, final_states_with,
};

const MOST_STATES: usize = 4_000;

fn observe_all(instance: &Instance) -> Vec<Observed> {
    let mut all = Vec::new();
    for t in instance.thread_ids() {
        for r in 0..instance.thread(t).registers.len() {
            all.push(Observed::Register(ThreadId(t.0), RegisterId::new(r)));
        }
    }
    all.extend((0..instance.cells.len()).map(|c| Observed::Cell(wattle_model::CellId::new(c))));
    all
}

/// The final states by the compiled machine, or whether there is a fault.
fn finals(
    instance: &Instance,
    model: MemoryModel,
    reductions: Reductions,
) -> Result<BTreeSet<Vec<i64>>, String> {
    let observed = observe_all(instance);
    match final_states_with(
        instance,
        model,
        &observed,
        reductions,
        &Control::unlimited(),
    ) {
        Ok(f) if f.cut == Cut::Nothing => Ok(f.states),
        Ok(f) => Err(format!("{:?}", f.cut)),
        Err(NoFinals::Fault(_)) => Err("fault".into()),
        Err(NoFinals::Undecided(why)) => Err(format!("{why:?}")),
    }
}

fn expected(found: &Everything) -> Result<BTreeSet<Vec<i64>>, String> {
    if found.fault {
        Err("fault".into())
    } else {
        Ok(found.finals.clone())
    }
}

/// Why the sample shows a disagreement, if it does; `None` too if it is too large to look at.
fn disagreement(s: &Sample) -> Option<String> {
    let instance = s.program().instance().ok()?;
    let mut sets = Vec::new();
    for model in MemoryModel::ALL {
        let found = explore(&instance, model, MOST_STATES, false)?;
        let wanted = expected(&found);
        for reduce in Reduce::ALL {
            let got = finals(&instance, model, reduce.reductions());
            if got != wanted {
                return Some(format!(
                    "{model}, {reduce:?}: reference {wanted:?}, compiled {got:?}"
                ));
            }
        }
        sets.push(wanted);
    }
    for (a, b) in [(0, 1), (1, 2)] {
        if let (Ok(a), Ok(b)) = (&sets[a], &sets[b])
            && !a.is_subset(b)
        {
            return Some("a weaker model has fewer final states".into());
        }
    }
    None
}

fn fail(s: &Sample, seed: u64, number: u64, fails: &dyn Fn(&Sample) -> Option<String>) -> ! {
    let small = s.shrink(&|s| fails(s).is_some());
    let why = fails(&small).unwrap_or_default();
    panic!(
        "seed {seed}, program {number}: {why}\n{}",
        wattle_model::print::to_wtl(&small.program())
    );
}

#[test]
fn final_states_agree_on_random_programs() {
    let seed = setting("WATTLE_SEED", 1);
    let programs = setting("WATTLE_PROGRAMS", 20_000);
    println!("seed {seed}, {programs} programs, three models");
    let mut rng = rng(seed);
    let (mut tried, mut some, mut weaker) = (0, 0, 0);
    let mut number = 0;
    while tried < programs {
        number += 1;
        let s = sample(&mut rng, Taste::number(number));
        let Ok(instance) = s.program().instance() else {
            continue;
        };
        if let Some(_why) = disagreement(&s) {
            fail(&s, seed, number, &disagreement);
        }
        tried += 1;
        if let (Ok(a), Ok(b)) = (
            finals(&instance, MemoryModel::Sc, Reductions::ALL),
            finals(&instance, MemoryModel::Pso, Reductions::ALL),
        ) {
            some += u64::from(a.len() > 1);
            weaker += u64::from(a != b);
        }
    }
    println!("{some} with several final states, {weaker} with more on PSO than on SC");
    assert!(some * 4 > programs, "the programs are too dull");
}

/// With a fence after every store the three models are one.
fn fences_differ(s: &Sample) -> Option<String> {
    let instance = s.fenced().program().instance().ok()?;
    let sc = finals(&instance, MemoryModel::Sc, Reductions::ALL);
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let weak = finals(&instance, model, Reductions::ALL);
        if weak != sc {
            return Some(format!("fenced: SC {sc:?}, {model} {weak:?}"));
        }
    }
    None
}

#[test]
fn fences_make_all_models_equal() {
    let seed = setting("WATTLE_SEED", 1);
    let programs = setting("WATTLE_PROGRAMS", 20_000);
    println!("seed {seed}, {programs} programs");
    let mut rng = rng(seed);
    for number in 1..=programs {
        let s = sample(&mut rng, Taste::number(number));
        if fences_differ(&s).is_some() {
            fail(&s, seed, number, &fences_differ);
        }
    }
}

/// Options, and whether to look for deadlocks.
fn all_options() -> Vec<(Options, bool)> {
    let mut all = Vec::new();
    for order in [Order::BreadthFirst, Order::DepthFirst] {
        for chaining in [false, true] {
            for dead_registers in [false, true] {
                for persistent in [false, true] {
                    let options = Options {
                        order,
                        chaining,
                        dead_registers,
                        persistent,
                        ..Options::default()
                    };
                    all.push((options, false));
                    if order == Order::BreadthFirst && dead_registers {
                        let compress = true;
                        all.push((
                            Options {
                                compress,
                                ..options
                            },
                            false,
                        ));
                    }
                    if chaining && persistent {
                        all.push((options, true));
                    }
                }
            }
        }
    }
    all
}

/// The auditor believes that nothing bad is reachable just where that is so, and no set of states that
/// lacks one.
fn auditor_differs(task: &Task<'_>, bad: bool, states: usize) -> Option<String> {
    let control = Control::unlimited();
    let explored = Certificate::Explored(Explored::new(task.model, states as u64));
    let audited = audit(task, &explored, &control);
    if audited.is_ok() == bad {
        return Some(format!("the audit says {audited:?}"));
    }
    if let Ok(seen) = audited
        && seen.checked > states as u64
    {
        return Some(format!("{} states of {states}", seen.checked));
    }
    let Certificate::ClosedStates(set) = write_down(task, &explored, &control) else {
        return (!bad).then(|| "the states are not written down".into());
    };
    if let Err(e) = audit(task, &Certificate::ClosedStates(set.clone()), &control) {
        return Some(format!("the states written down: {e}"));
    }
    let left_out = set.len() / 2;
    let mut number = 0;
    let mut less = ClosedStates::new(task.model);
    less.shortened = set.shortened.clone();
    let read: Result<(), wattle_evidence::certificate::Corrupt> = set.for_each_row(|row| {
        if number != left_out {
            less.push(row);
        }
        number += 1;
        Ok(())
    });
    let less = Certificate::ClosedStates(less.finish());
    let forged = read.is_err() || audit(task, &less, &control).is_ok();
    forged.then(|| format!("without row {left_out} the set is closed"))
}

fn verdicts_differ(s: &Sample) -> Option<String> {
    let instance = s.program().instance().ok()?;
    for model in MemoryModel::ALL {
        let found = explore(&instance, model, MOST_STATES, true)?;
        if found.no_value {
            continue;
        }
        let task = Task {
            instance: &instance,
            model,
            question: Some(0),
            deadlock: false,
        };
        for deadlock in [false, true] {
            let fault = found.fault && task.minds_faults();
            let bad = fault || found.target || deadlock && found.deadlock;
            let task = Task { deadlock, ..task };
            if let Some(why) = auditor_differs(&task, bad, found.states.len()) {
                return Some(format!("{model}, deadlock {deadlock}: {why}"));
            }
        }
        for (options, deadlock) in all_options() {
            let task = Task { deadlock, ..task };
            let fault = found.fault && task.minds_faults();
            let bad = fault || found.target || deadlock && found.deadlock;
            let answer = Explicit { options }.run(&task, &Control::unlimited());
            match &answer {
                Answer::Reached { trace, .. } => {
                    if !bad {
                        return Some(format!("{model} {options:?}: reached the unreachable"));
                    }
                    if let Err(e) = trace.check(&task) {
                        return Some(format!("{model} {options:?}: bad trace: {e:?} {trace:?}"));
                    }
                }
                Answer::Unreachable { certificate, .. } => {
                    if bad {
                        return Some(format!("{model} {options:?}: missed it"));
                    }
                    if let Err(e) = audit(&task, certificate, &Control::unlimited()) {
                        return Some(format!("{model} {options:?}: not audited: {e}"));
                    }
                }
                _ => return Some(format!("{model} {options:?}: {answer:?}")),
            }
        }
    }
    None
}

#[test]
fn verdicts_agree_whatever_the_reductions() {
    let seed = setting("WATTLE_SEED", 1);
    let programs = setting("WATTLE_PROGRAMS", 20_000) / 4;
    println!("seed {seed}, {programs} programs, three models");
    let mut rng = rng(seed.wrapping_add(77));
    for number in 1..=programs {
        let s = sample(&mut rng, Taste::number(number));
        if verdicts_differ(&s).is_some() {
            fail(&s, seed, number, &verdicts_differ);
        }
    }
}
