//! From what an engine answered to what a person is told. Here, and only here, answers become
//! verdicts: traces are minimised and replayed, certificates audited, before anything is said.

use crate::translation::{Translation, validate};
use crate::{AuditError, Solvers, audit, audit_components, audit_open};
use wattle_evidence::{
    Answer, AnyNumber, Assumption, Broken, Certificate, Control, End, Judged, LiveAnswer, LiveTask,
    OpenProof, OpenTask, Progress, Proof, Reason, Scope, Stop, Task, Trace, TraceError, Unchecked,
    Unsound, Verdict, minimise,
};
use wattle_model::PropertyKind;

/// What the result of an audit makes of a proof: it counts (checked or not), or it does not, for a
/// reason, or it is wrong.
pub fn after_audit(
    engine: &'static str,
    result: Result<(), AuditError>,
) -> Result<Result<Option<Unchecked>, Reason>, Unsound> {
    match result {
        Ok(()) => Ok(Ok(None)),
        Err(AuditError::Stopped(stop)) => Ok(Ok(Some(Unchecked::Stopped(stop)))),
        // The auditor may have more to go through than the search had.
        Err(e @ AuditError::TooMany) => Ok(Ok(Some(Unchecked::Unable(e.to_string())))),
        Err(AuditError::Refused(why)) => Ok(Err(Reason::Other(format!(
            "{engine} has a proof, but it cannot be audited: {why}"
        )))),
        Err(e) => {
            let what = e.to_string();
            Err(Unsound { engine, what })
        }
    }
}

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
        Err(e) => {
            let what = e.to_string();
            Err(Unsound { engine, what })
        }
    }
}

/// Whether to re-check certificates before believing them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditPolicy {
    #[default]
    Always,
    /// The verdict says that it was not audited.
    Never,
}

pub fn judge(
    task: &Task<'_>,
    engine: &'static str,
    answer: Answer,
    policy: AuditPolicy,
    control: &Control<'_>,
) -> Result<Judged, Unsound> {
    let reaching_is_good = task
        .question()
        .is_some_and(|q| q.kind == PropertyKind::Reachable);
    let (so_far, settled) = (answer.effort(), answer.settles(task).is_some());
    let (verdict, unchecked) = match answer {
        // The run of an engine that stops at the first fault: another may get to the state.
        Answer::Reached { trace, .. } if !settled => {
            let met = match &trace.end {
                End::Fault(fault) => fault.kind.to_string(),
                End::Deadlock => "a deadlock".into(),
                End::Target => String::new(),
            };
            let reason = Reason::Other(format!(
                "{engine} met a fault ({met}) and looked no further; `--engine explicit` does"
            ));
            (Verdict::Undecided { reason, so_far }, None)
        }
        Answer::Reached { trace, .. } => {
            let verdict = match checked_trace(task, engine, trace, control)? {
                Err(stop) => {
                    let stage = format!("the replay of the run found by {engine}");
                    let reason = Reason::Stopped { stop, stage };
                    Verdict::Undecided { reason, so_far }
                }
                Ok(trace) if reaching_is_good => {
                    let (scope, proof) = (Scope::of(task), Proof::Witness(trace));
                    Verdict::Holds { scope, proof }
                }
                Ok(trace) => {
                    let because = Broken::Trace(trace);
                    Verdict::Violated { because }
                }
            };
            (verdict, None)
        }
        Answer::Unreachable { certificate, .. } => {
            let audited = match policy {
                AuditPolicy::Never => Ok(Some(Unchecked::Off)),
                AuditPolicy::Always => {
                    let result = audit(task, &certificate, control).map(|_| ());
                    after_audit(engine, result)?
                }
            };
            match audited {
                Ok(unchecked) if reaching_is_good => {
                    let because = Broken::NeverReached(certificate);
                    (Verdict::Violated { because }, unchecked)
                }
                Ok(unchecked) => {
                    let (scope, proof) = (Scope::of(task), Proof::Certificate(certificate));
                    (Verdict::Holds { scope, proof }, unchecked)
                }
                Err(reason) => (Verdict::Undecided { reason, so_far }, None),
            }
        }
        Answer::Bounded { limits, .. } => (Verdict::Bounded { limits }, None),
        Answer::Undecided { reason, .. } => (Verdict::Undecided { reason, so_far }, None),
    };
    Ok(Judged { verdict, unchecked })
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
    // What the certificate itself takes for granted is told, whatever the engine says.
    let told = |a: &Assumption| matches!(a, Assumption::NoWrap { .. });
    if let (Certificate::Counting(c), AnyNumber::Program(program)) = (&certificate, task.of)
        && c.no_wrap
        && !assumptions.iter().any(told)
    {
        let (_, variables) = program.with_wraps_as_faults();
        assumptions.push(Assumption::NoWrap { variables });
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

/// The same for demands on runs: lassos are replayed, certificates audited.
pub fn judge_live(
    task: &LiveTask<'_>,
    engine: &'static str,
    (answer, so_far): (LiveAnswer, Progress),
    policy: AuditPolicy,
    control: &Control<'_>,
) -> Result<Judged, Unsound> {
    let (verdict, unchecked) = match answer {
        LiveAnswer::Broken(lasso) => {
            lasso.check(task).map_err(|e| Unsound {
                engine,
                what: format!("its run does not replay: {e}"),
            })?;
            let because = Broken::Lasso(lasso);
            (Verdict::Violated { because }, None)
        }
        LiveAnswer::Fault(trace) => {
            let effort = so_far;
            let answer = Answer::Reached { trace, effort };
            return judge(&task.faults(), engine, answer, policy, control);
        }
        LiveAnswer::Holds(certificate) => {
            let audited = match policy {
                AuditPolicy::Never => Ok(Some(Unchecked::Off)),
                AuditPolicy::Always => {
                    let result = audit_components(task, &certificate, control).map(|_| ());
                    after_audit(engine, result)?
                }
            };
            match audited {
                Ok(unchecked) => {
                    let proof = Proof::Certificate(Certificate::Components(certificate));
                    // The buffers were followed to their end.
                    let scope = Scope {
                        unbounded: Vec::new(),
                        ..Scope::of(&task.faults())
                    };
                    (Verdict::Holds { scope, proof }, unchecked)
                }
                Err(reason) => (Verdict::Undecided { reason, so_far }, None),
            }
        }
        LiveAnswer::Bounded(limits) => (Verdict::Bounded { limits }, None),
        LiveAnswer::Undecided(reason) => (Verdict::Undecided { reason, so_far }, None),
    };
    Ok(Judged { verdict, unchecked })
}

fn checked_trace(
    task: &Task<'_>,
    engine: &'static str,
    trace: Trace,
    control: &Control<'_>,
) -> Result<Result<Trace, Stop>, Unsound> {
    let unsound = |e: TraceError| Unsound {
        engine,
        what: format!("its trace does not replay: {e}"),
    };
    match trace.check_within(task, control) {
        Ok(_) => {}
        Err(TraceError::Stopped(stop)) => return Ok(Err(stop)),
        Err(e) => return Err(unsound(e)),
    }
    let shorter = minimise(task, &trace, control);
    match shorter.check_within(task, control) {
        Ok(_) => Ok(Ok(shorter)),
        // The one given has been replayed.
        Err(TraceError::Stopped(_)) => Ok(Ok(trace)),
        Err(e) => Err(unsound(e)),
    }
}
