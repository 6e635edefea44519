//! `wattle.toml`: what is expected of programs that do not say it themselves.
//!
//! ```toml
//! timeout = "60s"                        # of every program; may be left out, as everything here
//!
//! [[program]]
//! file = "lock.wtl"                      # beside this file
//! expect = { sc = "holds", tso = "violated" }
//! models = ["tso"]                       # of these only some
//! threads = { p = 3 }
//! deadlock = true
//! budget = 1000
//!
//! [[program]]
//! file = "two-properties.wtl"
//! expect = [{ tso = "holds" }, { tso = "violated" }]
//! ```

use super::super::units;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use wattle::MemoryModel;
use wattle::expect::{Answer, Expectations, Expected};

/// What is wanted of one program.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Empty: as the file's own header says.
    pub expect: Expectations,
    pub models: Option<Vec<MemoryModel>>,
    pub threads: BTreeMap<String, u32>,
    pub deadlock: bool,
    pub timeout: Option<Duration>,
    /// In virtual microseconds.
    pub budget: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    timeout: Option<String>,
    #[serde(default)]
    program: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    file: String,
    expect: Option<OneOrMany>,
    models: Option<Vec<String>>,
    #[serde(default)]
    threads: BTreeMap<String, u32>,
    #[serde(default)]
    deadlock: bool,
    timeout: Option<String>,
    budget: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(BTreeMap<String, String>),
    Many(Vec<BTreeMap<String, String>>),
}

pub const NAME: &str = "wattle.toml";

/// The `wattle.toml` of each directory, by the names the programs have in a batch. Errors name the file.
pub fn read(directories: &[String]) -> Result<BTreeMap<String, Wanted>, (String, String)> {
    let mut all = BTreeMap::new();
    for directory in directories {
        let directory = Path::new(directory);
        let path = directory.join(NAME);
        if !path.is_file() {
            continue;
        }
        let failed = |why: String| (path.display().to_string(), why);
        let text = std::fs::read_to_string(&path).map_err(|e| failed(e.to_string()))?;
        for (file, wanted) in parse(&text).map_err(failed)? {
            all.insert(directory.join(file).display().to_string(), wanted);
        }
    }
    Ok(all)
}

fn parse(text: &str) -> Result<Vec<(String, Wanted)>, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    let time = |t: &Option<String>| t.as_deref().map(units::duration).transpose();
    let common = time(&file.timeout)?;
    let mut all = Vec::new();
    for entry in file.program {
        let models = entry
            .models
            .map(|all| all.iter().map(|m| model(m)).collect());
        let wanted = Wanted {
            expect: expectations(entry.expect)?,
            models: models.transpose()?,
            threads: entry.threads,
            deadlock: entry.deadlock,
            timeout: time(&entry.timeout)?.or(common),
            budget: entry.budget.map(|n| n.saturating_mul(1000)),
        };
        all.push((entry.file, wanted));
    }
    Ok(all)
}

fn expectations(given: Option<OneOrMany>) -> Result<Expectations, String> {
    let lists = match given {
        None => Vec::new(),
        Some(OneOrMany::One(one)) => vec![one],
        Some(OneOrMany::Many(many)) => many,
    };
    let mut all = Expectations::new();
    for (property, list) in lists.iter().enumerate() {
        for (name, answer) in list {
            let answer = match answer.as_str() {
                "holds" => Answer::Holds,
                "violated" => Answer::Violated,
                other => {
                    return Err(format!(
                        "`{other}` is no answer; expected `holds` or `violated`"
                    ));
                }
            };
            let notes = Vec::new();
            all.insert((property, model(name)?), Expected { answer, notes });
        }
    }
    Ok(all)
}

fn model(name: &str) -> Result<MemoryModel, String> {
    let mut all = MemoryModel::ALL.into_iter();
    all.find(|m| m.keyword() == name)
        .ok_or_else(|| format!("`{name}` is no memory model; there are sc, tso and pso"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_said() {
        let text = "timeout = \"9s\"\n[[program]]\nfile = \"a.wtl\"\nexpect = { tso = \"holds\" }\n\
                    [[program]]\nfile = \"b.wtl\"\nexpect = [{ sc = \"holds\" }, { sc = \"violated\" }]\nbudget = 3\n";
        let all = parse(text).expect("fine");
        assert_eq!(all[0].1.timeout, Some(Duration::from_secs(9)));
        assert_eq!(
            all[1].1.expect[&(1, MemoryModel::Sc)].answer,
            Answer::Violated
        );
        assert_eq!(all[1].1.budget, Some(3000));
        assert!(parse("[[program]]\nfile = \"a\"\nexpect = { arm = \"holds\" }").is_err());
        assert!(parse("[[program]]\nfile = \"a\"\nexpects = 1").is_err());
    }
}
