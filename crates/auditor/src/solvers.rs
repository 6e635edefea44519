//! Who answers an auditor's queries: our own solver, of which an "unsatisfiable" counts only with a
//! proof that checks, and on request Z3 as a second opinion on every one of them.

use super::AuditError;
use std::cell::{Cell, RefCell};
use wattle_evidence::control::Control;
use wattle_logic::{Answer, Formula, Limits, Model, Native, Solver, Z3, proof};

/// The solvers that are asked, and how often they were.
#[derive(Debug, Default)]
pub struct Solvers {
    second: Option<RefCell<Z3>>,
    asked: Cell<u64>,
}

/// Milliseconds that Z3 has for one query.
const PATIENCE: u32 = 20_000;

impl Solvers {
    /// Our own solver only.
    pub fn own() -> Self {
        Solvers::default()
    }

    /// Every query also goes to the installed `z3`; an error says why there is none.
    pub fn with_z3() -> std::io::Result<Self> {
        Ok(Solvers {
            second: Some(RefCell::new(Z3::start(PATIENCE)?)),
            asked: Cell::new(0),
        })
    }

    /// How many queries were put to every solver.
    pub fn asked(&self) -> u64 {
        self.asked.get()
    }

    /// Who was asked, for a person.
    pub fn describe(&self) -> String {
        match &self.second {
            Some(z3) => format!(
                "our own solver, whose proofs were checked, and Z3 {}",
                z3.borrow().version()
            ),
            None => "our own solver, whose proofs were checked".into(),
        }
    }

    /// Whether the conditions cannot hold together.
    pub(super) fn impossible(
        &self,
        query: &[Formula],
        work: u64,
        control: &Control<'_>,
    ) -> Result<bool, AuditError> {
        Ok(self.model(query, work, control)?.is_none())
    }

    /// How the conditions hold together, if they can.
    pub(super) fn model(
        &self,
        query: &[Formula],
        work: u64,
        control: &Control<'_>,
    ) -> Result<Option<Model>, AuditError> {
        self.asked.set(self.asked.get() + 1);
        let limits = Limits {
            work,
            ..Limits::default()
        };
        let model =
            match Native::with_limits(limits).check_while(query, &|| control.stop().is_none()) {
                Answer::Sat(model) => Some(model),
                Answer::Unknown(why) => {
                    if let Some(stop) = control.stop() {
                        return Err(stop.into());
                    }
                    let why = format!("a query was not decided: {why}");
                    return Err(AuditError::Refused(why));
                }
                Answer::Unsat(refutation) => {
                    let proof = refutation.proof.as_ref();
                    if proof.is_none_or(|p| proof::check(query, p).is_err()) {
                        let why = "the solver's proof does not check";
                        return Err(AuditError::Other(why.into()));
                    }
                    None
                }
            };
        if let Some(z3) = &self.second {
            second_opinion(&mut z3.borrow_mut(), query, model.is_none(), control)?;
        }
        Ok(model)
    }
}

fn second_opinion(
    z3: &mut Z3,
    query: &[Formula],
    impossible: bool,
    control: &Control<'_>,
) -> Result<(), AuditError> {
    let failed = |e: std::io::Error| AuditError::Refused(format!("z3 failed: {e}"));
    if let Some(left) = control.remaining() {
        let left = u32::try_from(left.as_millis()).unwrap_or(PATIENCE);
        z3.set_timeout(left.clamp(1, PATIENCE)).map_err(failed)?;
    }
    let said = z3.verdicts(&[query.to_vec()]).map_err(failed)?;
    match said.first().copied().flatten() {
        Some(satisfiable) if satisfiable != impossible => Ok(()),
        Some(_) => Err(AuditError::Other(format!(
            "Z3 disagrees: it says that a query is {}, our own solver that it is not",
            if impossible {
                "satisfiable"
            } else {
                "unsatisfiable"
            }
        ))),
        None => match control.stop() {
            Some(stop) => Err(stop.into()),
            None => Err(AuditError::Refused("Z3 gave up on a query".into())),
        },
    }
}
