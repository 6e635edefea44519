//! Durations, sizes and thread counts as people type them.

use clap::ValueEnum;
use std::time::Duration;
use wattle::ThreadCount;
use wattle_model::array::ArraySystem;
use wattle_model::{Count, Program};

/// What a user can take for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Assumed {
    /// No number wraps around
    NoWrap,
}

/// Which states a search leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reduced {
    /// None
    None,
    /// Those between steps that are nobody else's business
    Local,
    /// And those of all but one order of events that do not mind each other
    Persistent,
    /// All: one run for each order of events that mind each other (the engine `traces`)
    Traces,
    /// Those inside of what threads do without minding each other (the engine `cartesian`)
    Cartesian,
}

impl From<Reduced> for wattle::Reduce {
    fn from(reduced: Reduced) -> Self {
        match reduced {
            Reduced::None => wattle::Reduce::None,
            Reduced::Local => wattle::Reduce::Local,
            // Whose search this is not.
            Reduced::Persistent | Reduced::Traces | Reduced::Cartesian => {
                wattle::Reduce::Persistent
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

/// How many entries buffers have at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    pub k: usize,
    /// Cells with another number.
    pub cells: Vec<(String, usize)>,
}

/// Longer buffers are as good as unbounded ones.
const LONGEST: usize = 1 << 16;

/// `k=2`, or `k=1,x=2` with cells that have another length.
pub fn buffers(text: &str) -> Result<Buffers, String> {
    let expected = || format!("`k=N` is expected, as in `k=2` or `k=1,x=2`, up to {LONGEST}");
    let (mut k, mut cells) = (None, Vec::new());
    for (i, part) in text.split(',').enumerate() {
        let (name, n) = part.split_once('=').ok_or_else(expected)?;
        let n = n.trim().parse().ok().filter(|n| *n <= LONGEST);
        let n = n.ok_or_else(expected)?;
        match name.trim() {
            "k" if i == 0 => k = Some(n),
            name if i > 0 && !name.is_empty() => cells.push((name.to_string(), n)),
            _ => return Err(expected()),
        }
    }
    let k = k.ok_or_else(expected)?;
    Ok(Buffers { k, cells })
}

/// `60s`, `500ms`, `2m`, `1h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" | "s" | "sec" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; use ms, s, m or h")),
    };
    let seconds = number
        .parse::<f64>()
        .ok()
        .filter(|n| n.is_finite() && *n >= 0.0);
    let seconds = seconds.ok_or("a number is expected, as in `60s`")? * scale;
    Duration::try_from_secs_f64(seconds).map_err(|_| "that is too long".to_string())
}

/// A time limit, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(pub Option<Duration>);

/// A duration, or `none`.
pub fn timeout(text: &str) -> Result<Timeout, String> {
    match text.trim() {
        "none" => Ok(Timeout(None)),
        text => duration(text).map(|t| Timeout(Some(t))),
    }
}

/// Less than this is no limit for a process but a forgotten unit.
const LEAST: f64 = (1 << 20) as f64;

/// `4G`, `512M`; a bare number is bytes. Powers of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale: u64 = match unit
        .to_ascii_lowercase()
        .trim_end_matches("ib")
        .trim_end_matches('b')
    {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return Err(format!("`{unit}` is no unit of memory; use k, M, G or T")),
    };
    let number = number
        .parse::<f64>()
        .ok()
        .filter(|n| n.is_finite() && *n >= 0.0);
    let bytes = number.ok_or("a number is expected, as in `4G`")? * scale as f64;
    if bytes > 1e18 {
        return Err("that is too much".into());
    }
    if bytes < LEAST {
        let meant = match unit {
            "" => format!("; `{text}M` is as many megabytes", text = text.trim()),
            _ => String::new(),
        };
        return Err(format!("that is less than a megabyte{meant}"));
    }
    Ok(bytes as u64)
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    (number, unit.trim())
}

/// `NAME=N` or `NAME=*`.
pub fn threads(text: &str) -> Result<(String, ThreadCount), String> {
    // A bare number is about the only family there is; the name stays open until it is known.
    let (name, count) = text.split_once('=').unwrap_or(("", text));
    let count = match count.trim() {
        "*" => ThreadCount::Any,
        n => ThreadCount::Fixed(
            n.parse()
                .map_err(|_| format!("`{n}` is neither a number of threads nor `*`; expected NAME=N or NAME=*, as in `p=4`"))?,
        ),
    };
    Ok((name.trim().to_string(), count))
}

/// Gives the counts the names of the program's families: a count without a name is about the only
/// family that has one.
pub fn named(
    threads: &[(String, ThreadCount)],
    program: &Program,
) -> Result<Vec<(String, ThreadCount)>, String> {
    let families: Vec<&str> = (program.families.iter())
        .filter(|f| f.count != Count::One)
        .map(|f| f.name.as_str())
        .collect();
    let name = |given: &String| match (given.as_str(), families.as_slice()) {
        ("", [only]) => Ok((*only).to_string()),
        ("", []) => Err("`--threads`: the program has no family of threads".to_string()),
        ("", [first, ..]) => Err(format!(
            "`--threads`: there are several families; say which, as in `{first}=3`"
        )),
        (given, _) => Ok(given.to_string()),
    };
    threads
        .iter()
        .map(|(n, count)| Ok((name(n)?, *count)))
        .collect()
}

/// Fixes the number of threads of an array-based system, or leaves it open.
pub fn of_system(
    threads: &[(String, ThreadCount)],
    system: &mut ArraySystem,
) -> Result<(), String> {
    for (name, count) in threads {
        if !name.is_empty() {
            return Err(format!(
                "`--threads`: array-based systems have no family `{name}`; a number is enough, as in \
                 `--threads 3`"
            ));
        }
        system.threads = match count {
            ThreadCount::Fixed(0) => return Err("`--threads`: there is at least one thread".into()),
            ThreadCount::Fixed(n) => Some(*n),
            ThreadCount::Any => None,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_type_many_things() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        assert!(duration("fast").is_err());
        assert!(duration("-1s").is_err());
        assert!(duration("9e999s").is_err());
        assert_eq!(bytes("4G"), Ok(4 << 30));
        assert_eq!(bytes("512MiB"), Ok(512 << 20));
        assert_eq!(bytes("4194304"), Ok(4 << 20));
        assert!(bytes("100").is_err_and(|why| why.contains("`100M`")));
        assert!(bytes("100k").is_err());
        assert!(bytes("4X").is_err());
        assert_eq!(threads("p=4"), Ok(("p".into(), ThreadCount::Fixed(4))));
        assert_eq!(threads("p=*"), Ok(("p".into(), ThreadCount::Any)));
        assert!(threads("p").is_err());
        assert!(threads("p=-1").is_err());
    }
}
