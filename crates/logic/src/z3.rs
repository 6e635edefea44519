//! Z3 as a second opinion.
//!
//! One `z3 -in` process answers all queries over SMT-LIB 2 text. That costs a
//! pipe per query but needs neither bindings nor a cargo feature, works with
//! whatever version is installed, and a crash of the other solver is an
//! `Unknown` here.

use crate::formula::Formula;
use crate::int::Int;
use crate::model::Model;
use crate::smt2::{query_smt2, variables};
use crate::solver::{Answer, Reason, Refutation, Solver};
use crate::term::Var;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running `z3` process.
#[derive(Debug)]
pub struct Z3 {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    version: String,
}

impl Z3 {
    /// Starts the `z3` found on the search path; it gives up on a query after so
    /// many milliseconds.
    pub fn start(timeout: u32) -> io::Result<Z3> {
        let mut child = Command::new("z3")
            .args(["-in", "-smt2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let missing = || io::Error::other("z3 has no pipes");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        let mut z3 = Z3 {
            child,
            input: Some(input),
            output,
            version: String::new(),
        };
        z3.send("(get-info :version)\n(set-logic QF_LIA)\n")?;
        z3.set_timeout(timeout)?;
        // `(:version "4.8.12")`
        let line = z3.line()?;
        let version = line.split('"').nth(1);
        z3.version = version
            .ok_or_else(|| io::Error::other(line.clone()))?
            .into();
        Ok(z3)
    }

    /// The version it says it is.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// From now on it gives up on a query after so many milliseconds.
    pub fn set_timeout(&mut self, timeout: u32) -> io::Result<()> {
        self.send(&format!("(set-option :timeout {timeout})\n"))
    }

    fn send(&mut self, text: &str) -> io::Result<()> {
        let input = self
            .input
            .as_mut()
            .ok_or_else(|| io::Error::other("z3 is gone"))?;
        input.write_all(text.as_bytes())?;
        input.flush()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(io::Error::other("z3 ended early"));
        }
        Ok(line.trim().to_owned())
    }

    /// The verdicts of many queries, sent in one go: `Some(true)` satisfiable,
    /// `Some(false)` not, `None` unknown.
    pub fn verdicts(&mut self, queries: &[Vec<Formula>]) -> io::Result<Vec<Option<bool>>> {
        let mut out = Vec::with_capacity(queries.len());
        // Chunks small enough that neither pipe can fill while we write.
        for chunk in queries.chunks(64) {
            let texts = chunk
                .iter()
                .map(|q| format!("(push)\n{}(pop)\n", query_smt2(q)));
            self.send(&texts.collect::<String>())?;
            for _ in chunk {
                out.push(match self.line()?.as_str() {
                    "sat" => Some(true),
                    "unsat" => Some(false),
                    "unknown" | "timeout" => None,
                    other => return Err(io::Error::other(other.to_owned())),
                });
            }
        }
        Ok(out)
    }

    fn ask(&mut self, assertions: &[Formula]) -> io::Result<Answer> {
        self.send(&format!("(push)\n{}", query_smt2(assertions)))?;
        let answer = match self.line()?.as_str() {
            "sat" => Answer::Sat(self.model(assertions)?),
            "unsat" => Answer::Unsat(Refutation {
                core: (0..assertions.len()).collect(),
                proof: None,
            }),
            other => Answer::Unknown(Reason::External(other.to_owned())),
        };
        self.send("(pop)\n")?;
        Ok(answer)
    }

    /// Asks for the values one by one: `((x3 (- 7)))`.
    fn model(&mut self, assertions: &[Formula]) -> io::Result<Model> {
        let vars: Vec<Var> = variables(assertions).into_iter().collect();
        let mut model = Model::new();
        for v in vars {
            self.send(&format!("(get-value ({v}))\n"))?;
            let line = self.line()?;
            let words: Vec<&str> = line
                .split(['(', ')', ' '])
                .filter(|w| !w.is_empty())
                .collect();
            let value: Option<Int> = match words.as_slice() {
                [_, "-", digits] => digits.parse::<Int>().ok().map(|i| -i),
                [_, digits] => digits.parse().ok(),
                _ => None,
            };
            model.set(v, value.ok_or_else(|| io::Error::other(line.clone()))?);
        }
        Ok(model)
    }
}

impl Solver for Z3 {
    /// The core is all assertions, and there is no proof.
    fn check(&mut self, assertions: &[Formula]) -> Answer {
        match self.ask(assertions) {
            Ok(answer) => answer,
            Err(e) => Answer::Unknown(Reason::External(e.to_string())),
        }
    }
}

impl Drop for Z3 {
    fn drop(&mut self) {
        // Closing its input ends it; a process that is already gone is fine too.
        self.input = None;
        let _ = self.child.wait();
    }
}
