//! Z3 as a second opinion: it can make an audit fail, and nothing else. And who was asked, for a person.

use super::Solvers;
use crate::AuditError;
use std::cell::{Cell, RefCell};
use wattle_evidence::control::Control;
use wattle_logic::{Formula, Z3};

/// Milliseconds that Z3 has for one query.
const PATIENCE: u32 = 20_000;

impl Solvers {
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
}

pub fn opinion(
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
