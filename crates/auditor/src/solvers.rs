//! Who answers an auditor's queries: our own solver, of which an "unsatisfiable" counts only with a
//! proof that checks, and on request Z3 as a second opinion on every one of them.

mod second;

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

impl Solvers {
    /// Our own solver only.
    pub fn own() -> Self {
        Solvers::default()
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
            second::opinion(&mut z3.borrow_mut(), query, model.is_none(), control)?;
        }
        Ok(model)
    }
}
