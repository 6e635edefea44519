//! One program, one engine, one memory model.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wattle::check::questions;
use wattle::{CheckError, Finding, MemoryModel, Options, Order, Proof, Run, Verdict, check_with};
use wattle_evidence::{Certificate, Reason};
use wattle_model::{Instance, Program};

/// An engine as the table names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    pub name: &'static str,
    /// As `--engine` wants it; `auto` has none.
    option: Option<&'static str>,
    order: Order,
}

impl Engine {
    /// Every engine there is, `explicit` in both orders, and `auto`.
    pub fn all() -> Vec<Engine> {
        let plain = |name| Engine {
            name,
            option: Some(name),
            order: Order::BreadthFirst,
        };
        let mut all: Vec<Engine> = wattle::plan::names().into_iter().map(plain).collect();
        all.push(Engine {
            name: "explicit, depth first",
            option: Some("explicit"),
            order: Order::DepthFirst,
        });
        all.push(Engine {
            name: "auto",
            option: None,
            order: Order::BreadthFirst,
        });
        all
    }

    /// The engine that the table names so.
    pub fn named(name: &str) -> Result<Engine, String> {
        let all = Engine::all();
        let names: Vec<&str> = all.iter().map(|e| e.name).collect();
        let wrong = format!("there is no engine `{name}`, only {}", names.join(", "));
        all.into_iter().find(|e| e.name == name).ok_or(wrong)
    }

    /// How a person asks it.
    pub fn command(&self) -> String {
        let engine = self.option.map(|e| format!(" --engine {e}"));
        let order = match self.order {
            Order::BreadthFirst => "",
            Order::DepthFirst => " --order dfs",
        };
        format!("{}{order}", engine.unwrap_or_default())
    }
}

/// What an engine may spend on one program.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Work on each question, as `--budget` has it: the same on every machine.
    pub work: u64,
    /// In case somebody does not look.
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            work: 100_000,
            time: Duration::from_secs(60),
        }
    }
}

/// Raised while the process has more memory than it may.
pub static OVER: AtomicBool = AtomicBool::new(false);

/// Where the process panicked last.
static PANICKED: Mutex<String> = Mutex::new(String::new());

/// From now on panics are told with the answers, with their place, and not at once.
pub fn tell_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map(|l| format!(" at {}:{}", l.file(), l.line()));
        *PANICKED.lock().unwrap_or_else(PoisonError::into_inner) = place.unwrap_or_default();
    }));
}

/// What was said about one question.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Holds,
    Violated,
    /// Not treated, by the engine's own word.
    Refused(String),
    /// With the reason.
    Undecided(String),
    /// The engine's evidence did not check: exit code 4.
    Unsound(String),
    Panicked(String),
}

/// What was said about all questions of the program, in their order.
pub struct Answers {
    pub said: Vec<Said>,
    /// The proof of what holds, by question.
    pub proofs: Vec<Option<Certificate>>,
    /// The instance that shows a violation of an open family, by question.
    pub shown: Vec<Option<Arc<Instance>>>,
}

/// In the warning that a proof for any number of threads was refuted by a small instance: the answer
/// told is right, the proof and its audit are not.
const REFUTED: &str = "had a proof of the opposite";

/// Puts all questions to the engine. Proofs are confirmed by small instances if it is said so.
pub fn ask(
    program: &Program,
    engine: &Engine,
    model: MemoryModel,
    deadlock: bool,
    (budget, confirm): (Budget, bool),
) -> Answers {
    let n = questions(program, deadlock).len();
    let all = |said: Said| Answers {
        said: vec![said; n],
        proofs: vec![None; n],
        shown: vec![None; n],
    };
    let options = Options {
        models: vec![model],
        engine: engine.option.map(String::from),
        order: engine.order,
        deadlock,
        timeout: Some(budget.time),
        budget: Some(budget.work),
        explain: false,
        confirm,
        ..Options::default()
    };
    let run = Run {
        cancel: Some(&OVER),
        sink: None,
    };
    let checked = match catch_unwind(AssertUnwindSafe(|| check_with(program, &options, &run))) {
        Ok(Ok(checked)) => checked,
        Ok(Err(e @ (CheckError::AnyNumber { .. } | CheckError::Instance(_)))) => {
            return all(Said::Refused(e.to_string()));
        }
        Ok(Err(e)) => return all(Said::Panicked(format!("it cannot be asked: {e}"))),
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            let place = PANICKED.lock().unwrap_or_else(PoisonError::into_inner);
            let text = text.unwrap_or("without a word");
            return all(Said::Panicked(format!("{text}{place}")));
        }
    };
    let said = checked.results.iter().map(|r| match r {
        Ok(finding) if finding.warnings.iter().any(|w| w.contains(REFUTED)) => {
            Said::Unsound("a proof that a run of a small instance refutes".to_string())
        }
        Ok(finding) => match &finding.judged.verdict {
            // Not a proof about the program's own numbers.
            Verdict::Holds { scope, .. } if !scope.assumptions.is_empty() => {
                Said::Undecided("it holds under an assumption".to_string())
            }
            Verdict::Holds { .. } => Said::Holds,
            Verdict::Violated { .. } => Said::Violated,
            Verdict::Undecided {
                reason: Reason::Refused(refusal),
                ..
            } => Said::Refused(refusal.why.clone()),
            // A proof under a condition says nothing about the program's own numbers.
            Verdict::HoldsIf { .. } => Said::Undecided("it holds under a condition".to_string()),
            Verdict::Bounded { .. } => Said::Undecided("a bound".to_string()),
            Verdict::Undecided { reason, .. } => {
                Said::Undecided(wattle_report::text::reason(reason, 0.0))
            }
        },
        Err(unsound) => Said::Unsound(unsound.what.clone()),
    });
    let said: Vec<Said> = said.collect();
    if said.len() != n {
        return all(Said::Panicked(format!(
            "{} answers to {n} questions",
            said.len()
        )));
    }
    let proof = |f: &Finding| match &f.judged.verdict {
        Verdict::Holds {
            proof: Proof::Certificate(c),
            ..
        } => Some(c.clone()),
        Verdict::Holds { .. }
        | Verdict::HoldsIf { .. }
        | Verdict::Violated { .. }
        | Verdict::Bounded { .. }
        | Verdict::Undecided { .. } => None,
    };
    let findings = checked.results.iter().map(|r| r.as_ref().ok());
    Answers {
        said,
        proofs: findings.clone().map(|f| f.and_then(proof)).collect(),
        shown: findings.map(|f| f.and_then(|f| f.shown.clone())).collect(),
    }
}
