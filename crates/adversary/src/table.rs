//! How often a verdict was compared, for each construct, engine and memory model.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use wattle_memory::MemoryModel;
use wattle_random::{CONSTRUCTS, SUGAR};

/// What became of the questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub holds: u64,
    pub violated: u64,
    pub refused: u64,
    pub undecided: u64,
}

impl Counted {
    pub const HOLDS: Counted = Counted {
        holds: 1,
        violated: 0,
        refused: 0,
        undecided: 0,
    };
    pub const VIOLATED: Counted = Counted {
        holds: 0,
        violated: 1,
        refused: 0,
        undecided: 0,
    };
    pub const REFUSED: Counted = Counted {
        holds: 0,
        violated: 0,
        refused: 1,
        undecided: 0,
    };
    pub const UNDECIDED: Counted = Counted {
        holds: 0,
        violated: 0,
        refused: 0,
        undecided: 1,
    };

    fn add(&mut self, other: Counted) {
        self.holds += other.holds;
        self.violated += other.violated;
        self.refused += other.refused;
        self.undecided += other.undecided;
    }

    fn compared(self) -> u64 {
        self.holds + self.violated
    }

    /// Refused whenever it was asked.
    fn is_refused(self) -> bool {
        self.refused > 0 && self.compared() + self.undecided == 0
    }

    fn is_empty(self) -> bool {
        self.compared() == 0 && !self.is_refused()
    }

    fn text(self) -> String {
        match self.compared() {
            0 if self.is_refused() => "refused".into(),
            0 if self.undecided > 0 => "EMPTY?".into(),
            0 => "EMPTY".into(),
            n => n.to_string(),
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// By construct, then by engine and model (`explicit on tso`).
    cells: BTreeMap<String, BTreeMap<String, Counted>>,
    /// All questions, by engine and model.
    all: BTreeMap<String, Counted>,
    /// Why engines refused or did not decide, in their words, and how often.
    reasons: BTreeMap<String, u64>,
    /// Seconds spent, by engine.
    seconds: BTreeMap<String, f64>,
    pub programs: u64,
    /// States the judge has looked at.
    pub states: u64,
    /// How often a proof was put to a violated neighbour, and audited to the end.
    #[serde(default)]
    pub put_to_others: u64,
}

fn column(engine: &str, model: MemoryModel) -> String {
    format!("{engine} on {}", model.keyword())
}

impl Table {
    /// The table of one program, still empty.
    pub fn of_one() -> Table {
        Table {
            programs: 1,
            ..Table::default()
        }
    }

    pub fn judged(&mut self, states: usize) {
        self.states += states as u64;
    }

    pub fn put_to_others(&mut self, audits: usize) {
        self.put_to_others += audits as u64;
    }

    pub fn gave(&mut self, engine: &str, why: &str) {
        // Names and numbers of the program are no reasons of their own.
        let why: String = why
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .take(120)
            .collect();
        *self.reasons.entry(format!("{engine}: {why}")).or_default() += 1;
    }

    pub fn took(&mut self, engine: &str, time: Duration) {
        *self.seconds.entry(engine.to_string()).or_default() += time.as_secs_f64();
    }

    pub fn count(
        &mut self,
        rows: impl Iterator<Item = &'static str>,
        engine: &str,
        model: MemoryModel,
        cell: Counted,
    ) {
        let column = column(engine, model);
        for row in rows {
            let row = self.cells.entry(row.to_string()).or_default();
            row.entry(column.clone()).or_default().add(cell);
        }
        self.all.entry(column).or_default().add(cell);
    }

    pub fn merge(&mut self, other: &Table) {
        for (row, columns) in &other.cells {
            let row = self.cells.entry(row.clone()).or_default();
            for (column, cell) in columns {
                row.entry(column.clone()).or_default().add(*cell);
            }
        }
        for (column, cell) in &other.all {
            self.all.entry(column.clone()).or_default().add(*cell);
        }
        for (why, n) in &other.reasons {
            *self.reasons.entry(why.clone()).or_default() += n;
        }
        for (engine, time) in &other.seconds {
            *self.seconds.entry(engine.clone()).or_default() += time;
        }
        self.programs += other.programs;
        self.states += other.states;
        self.put_to_others += other.put_to_others;
    }

    fn cell(&self, row: &str, engine: &str, model: MemoryModel) -> Counted {
        let row = self.cells.get(row);
        let cell = row.and_then(|r| r.get(&column(engine, model)));
        cell.copied().unwrap_or_default()
    }

    /// The cells nobody filled: construct, engine and model.
    pub fn empty(&self, engines: &[&str]) -> Vec<String> {
        let mut empty = Vec::new();
        for row in CONSTRUCTS.iter().chain(SUGAR) {
            for engine in engines {
                for model in MemoryModel::ALL {
                    if self.cell(row, engine, model).is_empty() {
                        empty.push(format!("`{row}` by {engine} on {model}"));
                    }
                }
            }
        }
        empty
    }

    /// One row for each construct, one column for each engine, three numbers (SC TSO PSO) in each.
    pub fn text(&self, engines: &[&str]) -> String {
        let width = CONSTRUCTS
            .iter()
            .chain(SUGAR)
            .map(|r| r.len())
            .max()
            .unwrap_or(0);
        let cells = |row: &str, engine: &str| -> String {
            let of = |m: &MemoryModel| self.cell(row, engine, *m);
            match MemoryModel::ALL.iter().all(|m| of(m).is_refused()) {
                true => "refused".to_string(),
                false => MemoryModel::ALL
                    .iter()
                    .map(of)
                    .map(Counted::text)
                    .collect::<Vec<_>>()
                    .join(" "),
            }
        };
        let rows: Vec<&str> = CONSTRUCTS.iter().chain(SUGAR).copied().collect();
        let wide = |engine: &&str| {
            let all = rows.iter().map(|r| cells(r, engine).len());
            all.chain([engine.len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = engines.iter().map(wide).collect();
        let mut text = format!("{:width$}", "compared on SC, TSO, PSO");
        for (engine, w) in engines.iter().zip(&widths) {
            let _ = write!(text, "  {engine:>w$}");
        }
        text.push('\n');
        for row in &rows {
            let _ = write!(text, "{row:width$}");
            for (engine, w) in engines.iter().zip(&widths) {
                let _ = write!(text, "  {:>w$}", cells(row, engine));
            }
            text.push('\n');
        }
        text
    }

    /// What became of all questions, engine by engine.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for (column, c) in &self.all {
            let Counted {
                holds,
                violated,
                refused,
                undecided,
            } = *c;
            let _ = writeln!(
                text,
                "{column}: {holds} hold, {violated} violated, {undecided} undecided, {refused} refused"
            );
        }
        for (engine, time) in &self.seconds {
            let _ = writeln!(text, "{engine}: {time:.1} s");
        }
        text
    }

    /// Why engines refused or did not decide, the commonest reasons first.
    pub fn reasons(&self) -> String {
        let mut all: Vec<(&String, &u64)> = self.reasons.iter().collect();
        all.sort_by_key(|(why, n)| (std::cmp::Reverse(**n), *why));
        all.iter()
            .map(|(why, n)| format!("{n:8}  {why}\n"))
            .collect()
    }
}
