//! Minimal fences of the seven programs under the rules of dan-2013: buffers of one entry, sections that keep their
//! stores buffered, a fence behind any of the stores, behind the same ones in both processes.
//!
//! A store into a full buffer is no proof there, so fences also keep buffers short. A set of fences will do if no
//! run stores into a full buffer (no path can, or the program with its buffers as variables never gets there under
//! SC) and the property holds with buffers of any length, which is then the same. All sets are tried, the
//! smallest first.

use crate::cupex::PROGRAMS;
use crate::sink::Sink;
use serde_json::json;
use wattle::{Options, Verdict, check};
use wattle_extrapolate::reduction::reduce;
use wattle_memory::MemoryModel::{self, Pso, Sc, Tso};
use wattle_model::Program;
use wattle_predicates::reduce::size;

/// Work for each question and engine, in virtual microseconds: the same on every machine.
const LIMIT: u64 = 20_000_000;

/// How the smallest sets of one program differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Least {
    pub program: &'static str,
    /// Of each process.
    pub stores: usize,
    /// Under TSO and under PSO: the stores of the first process with a fence behind; an error if a smaller set, or
    /// this one, was not decided.
    pub fenced: [Result<Vec<String>, String>; 2],
}

/// Gives the table line by line; says whether everything was decided.
pub fn run(out: &mut Sink<'_>) -> bool {
    out.line("Minimal fences with buffers of one entry, behind stores, in each process:");
    out.line("program    stores  TSO  PSO  behind all but (TSO; PSO)");
    let mut decided = true;
    for (name, text, _) in PROGRAMS {
        let least = least(name, text);
        decided &= least.fenced.iter().all(Result::is_ok);
        let count = |f: &Result<Vec<String>, String>| match f {
            Ok(fenced) => fenced.len().to_string(),
            Err(_) => "?".into(),
        };
        let bare = |f: &Result<Vec<String>, String>| match f {
            Ok(fenced) => {
                let all = stores(text).into_iter();
                let bare: Vec<String> = all.filter(|s| !fenced.contains(s)).collect();
                if bare.is_empty() {
                    "-".into()
                } else {
                    bare.join(", ")
                }
            }
            Err(why) => why.clone(),
        };
        let [tso, pso] = &least.fenced;
        out.row(
            &format!(
                "{name:<10} {:>6} {:>4} {:>4}  {}; {}",
                least.stores,
                count(tso),
                count(pso),
                bare(tso),
                bare(pso)
            ),
            json!({
                "suite": "cupex", "part": "fences", "file": name, "stores": least.stores,
                "tso": tso.as_ref().ok(), "pso": pso.as_ref().ok(),
            }),
        );
    }
    decided
}

/// The smallest sets of one of the programs.
pub fn least(program: &'static str, text: &str) -> Least {
    let names = stores(text);
    let of = |model| {
        let sets = 0..1u32 << names.len();
        let mut sets: Vec<u32> = sets.collect();
        sets.sort_by_key(|s| (s.count_ones(), *s));
        for set in sets {
            let fenced = names.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
            if does(&with_fences(text, set), model)? {
                return Ok(fenced.map(|(_, name)| name.clone()).collect());
            }
        }
        Err("no set will do".into())
    };
    Least {
        program,
        stores: names.len(),
        fenced: [of(Tso), of(Pso)],
    }
}

/// A line of a process without its label.
fn statement(line: &str) -> &str {
    let line = line.trim();
    let label = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    line[label..].trim_start_matches(':').trim_start()
}

/// What the first process stores, in the order of the text; the same place twice is told apart.
fn stores(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let first = text.lines().skip_while(|l| !l.starts_with("process"));
    for line in first.skip(1).take_while(|l| !l.starts_with("process")) {
        let Some(store) = statement(line).strip_prefix("store ") else {
            continue;
        };
        let mut name = store.split(';').next().unwrap_or(store).to_string();
        while names.contains(&name) {
            name.push_str(" again");
        }
        names.push(name);
    }
    names
}

/// The program with fences behind these stores of each process, and no others.
fn with_fences(text: &str, set: u32) -> String {
    let mut out = String::new();
    let mut next = None;
    for line in text.lines() {
        if line.starts_with("process") {
            next = Some(0);
        }
        let statement = statement(line);
        if next.is_some() && statement.starts_with("fence") {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        if let Some(n) = next.as_mut().filter(|_| statement.starts_with("store ")) {
            if set >> *n & 1 == 1 {
                out.push_str("    fence;\n");
            }
            *n += 1;
        }
    }
    out
}

/// Whether the program is right with buffers of one entry, none of which overflows.
fn does(text: &str, model: MemoryModel) -> Result<bool, String> {
    let program = wattle_syntax::bitchaku::parse(text).program;
    let program = program.ok_or("a program that cannot be read")?;
    let instance = program.instance().map_err(|e| e.to_string())?;
    let cells = instance.cells.len();
    let bounds = (instance.threads.iter()).map(|t| size::bound(t, model, cells));
    if !bounds.into_iter().all(|b| b.is_some_and(|b| b <= 1)) {
        let mut reduced = reduce(&program, &instance, model, 1).map_err(|why| why.0)?;
        // The last property says that nothing overflows.
        reduced.properties.drain(..reduced.properties.len() - 1);
        if !holds(&reduced, Sc)? {
            return Ok(false);
        }
    }
    holds(&program, model)
}

fn holds(program: &Program, model: MemoryModel) -> Result<bool, String> {
    let options = Options {
        models: vec![model],
        budget: Some(LIMIT),
        explain: false,
        ..Options::default()
    };
    let checked = check(program, &options).map_err(|e| e.to_string())?;
    let verdicts: Vec<&Verdict> = checked.findings().map(|f| &f.judged.verdict).collect();
    if verdicts
        .iter()
        .any(|v| matches!(v, Verdict::Violated { .. }))
    {
        return Ok(false);
    }
    let all = verdicts.len() == checked.results.len();
    match all && verdicts.iter().all(|v| matches!(v, Verdict::Holds { .. })) {
        true => Ok(true),
        false => Err("not decided".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/papers.md has these numbers.
    #[test]
    fn every_program_is_decided() {
        let found = PROGRAMS.map(|(name, text, _)| {
            let least = least(name, text);
            let count =
                |f: &Result<Vec<String>, String>| f.as_ref().map(Vec::len).map_err(Clone::clone);
            (
                name,
                least.stores,
                count(&least.fenced[0]),
                count(&least.fenced[1]),
            )
        });
        let wanted = [
            ("Dekker", 4, Ok(4), Ok(3)),
            ("Peterson", 3, Ok(3), Ok(3)),
            ("ABP", 1, Ok(0), Ok(0)),
            ("Szymanski", 5, Ok(5), Ok(5)),
            ("Queue", 3, Ok(3), Ok(2)),
            ("Bakery", 4, Ok(4), Ok(3)),
            ("Ticket", 2, Ok(2), Ok(1)),
        ];
        assert_eq!(found, wanted);
    }
}
