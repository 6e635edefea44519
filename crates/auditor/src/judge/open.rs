//! Answers about any number of threads.

use super::{AuditPolicy, after_audit, unsound};
use crate::translation::{Translation, validate};
use crate::{AuditError, Solvers, audit_open, counting};
use wattle_evidence::{
    AnyNumber, Assumption, Certificate, Control, Judged, OpenProof, OpenTask, Progress, Proof,
    Reason, Scope, Unchecked, Unsound, Verdict,
};

/// The same for a proof about a system that was made from the program, after that was validated. What
/// is not treated leaves the translation to be trusted, which is told; what does not match counts for
/// nothing.
pub fn after_validation(
    engine: &'static str,
    result: Result<(), AuditError>,
) -> Result<Result<Option<Unchecked>, Reason>, Unsound> {
    match result {
        Ok(()) => Ok(Ok(None)),
        Err(AuditError::Stopped(stop)) => Ok(Ok(Some(Unchecked::Translation(stop.to_string())))),
        Err(AuditError::Refused(why)) => Ok(Ok(Some(Unchecked::Translation(why)))),
        Err(e @ AuditError::Translation(_)) => {
            Ok(Err(Reason::Other(format!("{engine} has a proof, but {e}"))))
        }
        Err(e) => Err(unsound(engine, e)),
    }
}

/// The same for a proof about any number of threads, which covers this much.
pub fn judge_open(
    task: &OpenTask<'_>,
    engine: &'static str,
    proof: OpenProof,
    mut scope: Scope,
    (policy, accepted): (AuditPolicy, impl Fn(&Assumption) -> bool),
    control: &Control<'_>,
) -> Result<Judged, Unsound> {
    let (certificate, translated) = (proof.certificate, proof.translated.as_deref());
    let mut assumptions = proof.assumptions;
    if let (Certificate::Counting(c), AnyNumber::Program(program)) = (&certificate, task.of) {
        counting::told(program, c, &mut scope, &mut assumptions);
    }
    // What a system claims of itself and was proved beside is audited like what it must not do.
    let claiming = match task.of {
        AnyNumber::Program(_) => None,
        AnyNumber::System(system) => {
            let claims = proof.claims.iter().filter_map(|i| system.assumed.get(*i));
            scope.invariants = claims.clone().map(|q| q.span.line).collect();
            let mut system = system.clone();
            system.bad.extend(claims.cloned());
            Some(system)
        }
    };
    let task = &OpenTask {
        of: claiming.as_ref().map_or(task.of, AnyNumber::System),
        ..*task
    };
    let audited = match policy {
        AuditPolicy::Never => Ok(Some(Unchecked::Off)),
        AuditPolicy::Always => {
            let own = Solvers::own();
            let result = audit_open(&own, task, &certificate, translated, control);
            match (
                after_audit(engine, result.map(|_| ()))?,
                task.of,
                translated,
            ) {
                (Ok(None), AnyNumber::Program(program), Some(t)) => {
                    let translation = Translation {
                        program,
                        property: task.question,
                        system: &t.system,
                        relation: &t.relation,
                        assumptions: &assumptions,
                    };
                    let result = validate(&own, &translation, control);
                    after_validation(engine, result.map(|_| ()))?
                }
                (audited, ..) => audited,
            }
        }
    };
    let judged = match audited {
        Ok(unchecked) => {
            let proof = Proof::Certificate(certificate);
            let verdict = Verdict::Holds { scope, proof };
            Judged { verdict, unchecked }
        }
        Err(reason) => Judged::checked(Verdict::Undecided {
            reason,
            so_far: Progress::default(),
        }),
    };
    // What may wrap around in the program did not in the proof; the first line has to say so.
    Ok(judged.assuming(assumptions, accepted))
}
