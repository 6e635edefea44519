//! `wattle final`: every final state of a program in any language, memory models side by side.

use super::exit::Exit;
use super::models::{self, Model};
use super::subject::{Failure, File};
use super::{budget::Budget, output, units};
use clap::Args;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use wattle::{MemoryModel, ThreadCount};
use wattle_evidence::{Control, Limits};
use wattle_litmus::{by_traces, by_vectors, final_states};
use wattle_model::{CellId, Counts, Instance, RegisterId, ThreadId};
use wattle_report::{text, words};
use wattle_search::rounds::Cut;
use wattle_search::{NoFinals, Observed, final_states_with};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: File,
    /// The memory model, or several with commas between them, side by side
    #[arg(
        long,
        short,
        value_enum,
        value_delimiter = ',',
        value_name = "MODEL,…",
        default_value = "tso"
    )]
    model: Vec<Model>,
    /// How many threads a family has
    #[arg(long, value_name = "NAME=N", value_parser = units::threads)]
    threads: Vec<(String, ThreadCount)>,
    #[command(flatten)]
    budget: Budget,
    /// Which states the search leaves out
    #[arg(long, value_enum, default_value_t = units::Reduced::Persistent)]
    reduce: units::Reduced,
    /// Print the states as JSON
    #[arg(long)]
    json: bool,
}

/// The states under one memory model, or why there are none.
struct Found {
    model: MemoryModel,
    states: Result<BTreeSet<Vec<i64>>, String>,
    limits: Option<Limits>,
}

pub fn run(arguments: &Arguments) -> Exit {
    let file = &arguments.file.file;
    match (arguments.budget).within(file, arguments.json, |c| decide(arguments, c)) {
        Ok(exit) => exit,
        Err(failure) => failure.told("final", file, arguments.json),
    }
}

fn decide(arguments: &Arguments, control: &Control<'_>) -> Result<Exit, Failure> {
    let program = arguments.file.program()?;
    let threads = units::named(&arguments.threads, &program).map_err(Failure::input)?;
    let mut counts = Counts::default();
    for (name, count) in threads {
        if let ThreadCount::Fixed(n) = count {
            counts.0.insert(name, n);
        }
    }
    let instance = arguments.file.instance(&program, &counts)?;
    let observed = observed(&instance);
    let items: Vec<Observed> = observed.iter().map(|(_, o)| *o).collect();
    let each = models::named(&arguments.model).into_iter().map(|model| {
        let found = match arguments.reduce {
            units::Reduced::Persistent => final_states(&instance, model, &items, control),
            units::Reduced::Traces => by_traces(&instance, model, &items, control),
            units::Reduced::Cartesian => by_vectors(&instance, model, &items, control),
            less @ (units::Reduced::None | units::Reduced::Local) => {
                let less = wattle::Reduce::from(less).reductions();
                final_states_with(&instance, model, &items, less, control)
            }
        };
        let limits = match &found {
            Ok(found) => match &found.cut {
                Cut::Nothing => None,
                Cut::Buffers(limits) => Some(limits.clone()),
            },
            Err(_) => None,
        };
        let seconds = control.elapsed().as_secs_f64();
        Found {
            model,
            states: found.map(|f| f.states).map_err(|e| match e {
                NoFinals::Fault(fault) => format!("a step cannot be done: {}", fault.kind),
                NoFinals::Undecided(reason) => text::reason(&reason, seconds),
            }),
            limits,
        }
    });
    let found: Vec<Found> = each.collect();
    let names: Vec<&str> = observed.iter().map(|(n, _)| n.as_str()).collect();
    output::answer(&match arguments.json {
        true => as_json(&arguments.file.file, &names, &found),
        false => as_text(&names, &found),
    });
    let open = found
        .iter()
        .any(|f| f.states.is_err() || f.limits.is_some());
    Ok(if open { Exit::Undecided } else { Exit::Holds })
}

/// Memory and the registers that somebody gave a name.
fn observed(instance: &Instance) -> Vec<(String, Observed)> {
    let cells = (0..instance.cells.len()).map(|c| {
        let c = CellId::new(c);
        (instance.cell(c).name.clone(), Observed::Cell(c))
    });
    let mut all: Vec<(String, Observed)> = cells.collect();
    for (t, thread) in instance.threads.iter().enumerate() {
        for (r, register) in thread.registers.iter().enumerate() {
            if !words::is_temporary(&register.name) {
                let name = format!("{}.{}", thread.name, register.name);
                let seen = Observed::Register(ThreadId::new(t), RegisterId::new(r));
                all.push((name, seen));
            }
        }
    }
    all
}

/// A line for each state, with the models that have it where there are several.
fn as_text(names: &[&str], found: &[Found]) -> String {
    let mut all: BTreeMap<&Vec<i64>, Vec<MemoryModel>> = BTreeMap::new();
    for f in found {
        for state in f.states.iter().flatten() {
            all.entry(state).or_default().push(f.model);
        }
    }
    let mut out = String::new();
    for f in found {
        match (&f.states, &f.limits) {
            (Err(why), _) => {
                let _ = writeln!(out, "undecided on {}: {why}", f.model);
            }
            (Ok(states), None) => {
                let _ = writeln!(out, "{} on {}", count(states.len()), f.model);
            }
            (Ok(states), Some(limits)) => {
                let _ = writeln!(
                    out,
                    "{} on {}, only up to {} buffered stores (NOT every final state): {}",
                    count(states.len()),
                    f.model,
                    limits.buffered_stores,
                    limits.cause
                );
            }
        }
    }
    for (state, models) in all {
        let values = names.iter().zip(state.iter());
        let values: Vec<String> = values.map(|(n, v)| format!("{n}={v}")).collect();
        let marks = found.iter().map(|f| match models.contains(&f.model) {
            true => format!("{:<4}", f.model.to_string()),
            false => "    ".to_string(),
        });
        let marks: String = match found.len() {
            1 => String::new(),
            _ => marks.collect(),
        };
        let _ = writeln!(out, "  {marks}{}", values.join("; "));
    }
    out
}

fn count(n: usize) -> String {
    match n {
        1 => "1 final state".into(),
        n => format!("{n} final states"),
    }
}

fn as_json(file: &str, names: &[&str], found: &[Found]) -> String {
    let one = |f: &Found| {
        let states = f.states.as_ref().ok().map(|states| {
            let object = |state: &Vec<i64>| {
                let fields = names.iter().zip(state);
                let fields = fields.map(|(n, v)| ((*n).to_string(), Value::from(*v)));
                Value::Object(fields.collect::<Map<_, _>>())
            };
            states.iter().map(object).collect::<Vec<_>>()
        });
        json!({
            "model": f.model,
            "states": states.as_ref().map(Vec::len),
            "final_states": states,
            "complete": f.states.is_ok() && f.limits.is_none(),
            "reason": f.states.as_ref().err(),
        })
    };
    let models: Vec<Value> = found.iter().map(one).collect();
    let mut value = json!({ "file": file, "models": models });
    output::originated("final", &mut value);
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}
