//! What is counted is true: proofs of programs that users would write, certificates that say too much, and
//! random programs compared with brute force.

mod agree;
mod forged;
mod proves;
mod unwrapped;

use wattle_auditor::counting::{Asked, Examination};
use wattle_auditor::{AuditError, Solvers, audit_counting};
use wattle_counting::{Granted, Judge, Outcome, Trouble, prove};
use wattle_evidence::Control;
use wattle_evidence::certificate::Counting;
use wattle_evidence::certificate::counting::{Claims, Gap, Place};
use wattle_memory::MemoryModel;
use wattle_model::Program;

struct Examined<'a>(Examination<'a>);

fn trouble(e: AuditError) -> Trouble {
    match e {
        AuditError::Stopped(stop) => Trouble::Stopped(stop),
        other => Trouble::Refused(other.to_string()),
    }
}

impl Judge for Examined<'_> {
    fn gap(&mut self, claims: Claims<'_>) -> Result<Option<Gap>, Trouble> {
        self.0.gap(claims).map_err(trouble)
    }

    fn allows(&mut self, claims: Claims<'_>) -> Result<Option<Gap>, Trouble> {
        self.0.allows(claims).map_err(trouble)
    }
}

fn read(text: &str) -> Program {
    let parsed = wattle_syntax::wtl::parse(text);
    match parsed.program {
        Some(program) => program,
        None => panic!("{text}: {:?}", parsed.diagnostics),
    }
}

fn counted(program: &Program, model: MemoryModel, property: Option<usize>) -> Outcome {
    granted(program, model, property, Granted::Nothing)
}

fn granted(
    program: &Program,
    model: MemoryModel,
    property: Option<usize>,
    granted: Granted,
) -> Outcome {
    let unwrapped = program.unwrapped().filter(|_| granted.unwrapped());
    let looked_at = unwrapped.as_ref().map_or(program, |(p, _)| p);
    let crowd = match looked_at.counted_crowd(property) {
        Ok(crowd) => crowd,
        Err(e) => return Outcome::Open(e.message),
    };
    let (solvers, control) = (Solvers::own(), Control::unlimited());
    let judge = |places: Vec<Place>| {
        let asked = Asked {
            program,
            model,
            property,
            no_wrap: granted.no_wrap(),
            at_most: granted.at_most(),
            unwrapped: granted.unwrapped(),
        };
        let examination = Examination::new(&solvers, &asked, places, &control);
        let examination = examination.map_err(trouble)?;
        Ok(Box::new(Examined(examination)) as Box<dyn Judge>)
    };
    prove(&crowd, model, granted, &control, &judge)
}

fn audited(
    program: &Program,
    model: MemoryModel,
    property: Option<usize>,
    certificate: &Counting,
) -> Result<(), AuditError> {
    let control = Control::unlimited();
    let own = Solvers::own();
    audit_counting(&own, program, model, property, certificate, &control).map(|_| ())
}

/// Every question of the program; without a property, whether there is a fault.
fn questions(program: &Program) -> Vec<Option<usize>> {
    match program.properties.len() {
        0 => vec![None],
        n => (0..n).map(Some).collect(),
    }
}
