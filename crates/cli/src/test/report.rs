//! What `wattle test` says.

use super::super::exit::Exit;
use super::super::format::Format;
use super::super::output;
use serde_json::{Value, json};
use std::fmt::Write;
use wattle::expect::Answer;
use wattle::input::InputError;
use wattle_report::formats::{github, junit};

/// One file.
pub struct Tested {
    pub file: String,
    pub cases: Vec<Case>,
    /// Why it could not be tested, with the messages.
    pub error: Option<InputError>,
}

/// One thing that is expected.
pub struct Case {
    /// `tso`, `tso property 2`, `without the fence in line 3`
    pub name: String,
    /// Nothing for the negative control, which wants a violation.
    pub expected: Option<Answer>,
    pub outcome: Outcome,
    pub seconds: f64,
}

pub enum Outcome {
    AsExpected,
    /// What came instead.
    Wrong(String),
    Undecided(String),
    /// Evidence did not check.
    Unsound(String),
}

impl Tested {
    pub fn new(file: &str) -> Self {
        Tested {
            file: file.into(),
            cases: Vec::new(),
            error: None,
        }
    }

    pub fn broken(file: &str, error: &InputError) -> Self {
        Tested {
            error: Some(error.clone()),
            ..Tested::new(file)
        }
    }
}

impl Case {
    fn exit(&self) -> Exit {
        match self.outcome {
            Outcome::AsExpected => Exit::Holds,
            Outcome::Wrong(_) => Exit::Violated,
            Outcome::Undecided(_) => Exit::Undecided,
            Outcome::Unsound(_) => Exit::Unsound,
        }
    }

    fn wanted(&self) -> &'static str {
        match self.expected {
            Some(Answer::Holds) => "holds",
            Some(Answer::Violated) | None => "violated",
        }
    }

    /// What came instead of what was expected.
    fn complaint(&self) -> Option<String> {
        let got = match &self.outcome {
            Outcome::AsExpected => return None,
            Outcome::Wrong(got) | Outcome::Undecided(got) | Outcome::Unsound(got) => got,
        };
        Some(match self.expected {
            Some(_) => format!("{}: {got}; expected: {}", self.name, self.wanted()),
            None => format!("{}: {got}; expected a violation", self.name),
        })
    }
}

pub struct Report {
    format: Format,
    quiet: bool,
    exit: Exit,
    files: usize,
    /// As expected, wrong, undecided, broken, without expectations.
    counts: [usize; 5],
    values: Vec<Value>,
    suites: Vec<junit::Suite>,
}

impl Report {
    pub fn new(format: Format, quiet: bool) -> Self {
        Report {
            format,
            quiet,
            exit: Exit::Holds,
            files: 0,
            counts: [0; 5],
            values: Vec::new(),
            suites: Vec::new(),
        }
    }

    /// One more file; says whether anybody still reads.
    pub fn add(&mut self, tested: Tested) -> bool {
        self.files += 1;
        for case in &tested.cases {
            self.exit = self.exit.max(case.exit());
            self.counts[match case.outcome {
                Outcome::AsExpected => 0,
                Outcome::Wrong(_) | Outcome::Unsound(_) => 1,
                Outcome::Undecided(_) => 2,
            }] += 1;
        }
        if let Some(e) = &tested.error {
            self.exit = self.exit.max(Exit::Input);
            self.counts[3] += 1;
            output::error(&tested.file, &e.reason, &e.messages);
        } else if tested.cases.is_empty() {
            self.counts[4] += 1;
        }
        match self.format {
            Format::Text => {
                let text = self.text(&tested);
                text.is_empty() || output::answer(&text)
            }
            Format::Github => {
                let complaints = tested.cases.iter().filter_map(Case::complaint);
                let errors = tested.error.iter().map(|e| e.reason.clone());
                let all = errors.chain(complaints);
                let all = all.map(|c| github::command("error", &tested.file, None, None, &c));
                output::answer(&all.collect::<String>())
            }
            Format::Junit => {
                self.suites.push(suite(&tested));
                true
            }
            Format::Json | Format::Sarif => {
                self.values.push(object(&tested));
                true
            }
        }
    }

    fn text(&self, tested: &Tested) -> String {
        let mut out = String::new();
        for case in &tested.cases {
            let word = match case.outcome {
                Outcome::Undecided(_) => "open  ",
                Outcome::AsExpected | Outcome::Wrong(_) | Outcome::Unsound(_) => "FAILED",
            };
            if let Some(complaint) = case.complaint() {
                let _ = writeln!(out, "{word}  {}: {complaint}", tested.file);
            }
        }
        if out.is_empty() && !tested.cases.is_empty() && !self.quiet {
            let said = tested.cases.iter().filter(|c| c.expected.is_some());
            let mut said: Vec<String> =
                said.map(|c| format!("{} {}", c.name, c.wanted())).collect();
            match tested.cases.len() - said.len() {
                0 => {}
                1 => said.push("1 control noticed".into()),
                n => said.push(format!("{n} controls noticed")),
            }
            let _ = writeln!(out, "ok      {}: {}", tested.file, said.join(", "));
        }
        out
    }

    pub fn finish(&self, empty: bool) -> Exit {
        let [fine, wrong, open, broken, silent] = self.counts;
        let mut exit = self.exit;
        match self.format {
            Format::Text => {
                let files = match self.files {
                    1 => "1 file".to_string(),
                    n => format!("{n} files"),
                };
                let mut line = format!("{files}: {fine} as expected");
                for (n, what) in [
                    (wrong, "not"),
                    (open, "not decided"),
                    (broken, "not read"),
                    (silent, "without an `expect:` line"),
                ] {
                    if n > 0 {
                        let _ = write!(line, ", {n} {what}");
                    }
                }
                output::answer(&format!("{line}\n"));
            }
            Format::Github => {}
            Format::Junit => {
                output::answer(&junit::document(&self.suites));
            }
            Format::Json | Format::Sarif => {
                let mut value = json!({
                    "files": self.values,
                    "as_expected": fine,
                    "not_as_expected": wrong,
                    "not_decided": open,
                    "not_read": broken,
                    "without_expectation": silent,
                });
                output::originated("test", &mut value);
                let text = serde_json::to_string_pretty(&value).unwrap_or_default();
                output::answer(&(text + "\n"));
            }
        }
        // A gate that looks at nothing must not be green.
        if !empty && fine + wrong + open + broken == 0 {
            let how = "add a line like `// expect: sc holds, tso violated`, or a wattle.toml";
            output::note(&format!(
                "error: nothing is expected of these files: {how}\n"
            ));
            exit = exit.max(Exit::Input);
        }
        exit
    }
}

fn object(tested: &Tested) -> Value {
    let case = |c: &Case| {
        let (outcome, got) = match &c.outcome {
            Outcome::AsExpected => ("as-expected", None),
            Outcome::Wrong(got) => ("wrong", Some(got)),
            Outcome::Undecided(got) => ("undecided", Some(got)),
            Outcome::Unsound(got) => ("unsound", Some(got)),
        };
        json!({
            "name": c.name,
            "control": c.expected.is_none(),
            "expected": c.wanted(),
            "outcome": outcome,
            "got": got,
            "seconds": c.seconds,
        })
    };
    let diagnostics = tested.error.iter().flat_map(|e| &e.diagnostics);
    json!({
        "file": tested.file,
        "cases": tested.cases.iter().map(case).collect::<Vec<_>>(),
        "reason": tested.error.as_ref().map(|e| &e.reason),
        "diagnostics": diagnostics.map(output::diagnostic).collect::<Vec<_>>(),
    })
}

fn suite(tested: &Tested) -> junit::Suite {
    let case = |c: &Case| junit::Case {
        name: match c.expected {
            Some(_) => format!("{} {}", c.name, c.wanted()),
            None => format!("{} something is violated", c.name),
        },
        seconds: c.seconds,
        outcome: match (&c.outcome, c.complaint()) {
            (Outcome::AsExpected, _) | (_, None) => junit::Outcome::Passed,
            (Outcome::Wrong(_), Some(why)) => junit::Outcome::Failed(why, String::new()),
            (Outcome::Undecided(_) | Outcome::Unsound(_), Some(why)) => {
                junit::Outcome::Error(why, String::new())
            }
        },
    };
    let broken = tested.error.iter().map(|e| junit::Case {
        name: "the program can be read".into(),
        seconds: 0.0,
        outcome: junit::Outcome::Error(e.reason.clone(), e.messages.join("\n")),
    });
    junit::Suite {
        name: tested.file.clone(),
        cases: broken.chain(tested.cases.iter().map(case)).collect(),
    }
}
