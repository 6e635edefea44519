//! `counting` in the plan: the engine guesses facts, the auditor's examination judges them.

use super::program::{Asked, Told};
use super::{COUNTING, open};
use wattle_auditor::counting::{self as auditor, Examination};
use wattle_auditor::{AuditError, AuditPolicy, Solvers, after_audit, audit_counting};
use wattle_counting::{Judge, Outcome, Samples, Trouble, prove};
use wattle_evidence::certificate::Counting;
use wattle_evidence::certificate::counting::{Fact, Gap, Place};
use wattle_evidence::{
    Assumption, Certificate, Control, Progress, Proof, Reason, Unchecked, Verdict,
};
use wattle_memory::MemoryModel;
use wattle_model::graph::{Action, Section};
use wattle_model::{CountedCrowd, Program, Span};

/// What facts about places are never about, and where it is.
pub(super) fn untreated(program: &Program) -> Option<(Span, &'static str)> {
    let mut steps = program.families.iter().flat_map(|f| &f.steps);
    steps.find_map(|step| match step.action {
        Action::Lock | Action::Unlock => Some((step.span, "`lock` is not counted")),
        Action::AtomicBegin(Section::Buffered) => Some((
            step.span,
            "an atomic section that keeps its stores buffered is not counted",
        )),
        Action::AtomicBegin(Section::Drained)
        | Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Load { .. }
        | Action::Store { .. }
        | Action::Fence(_)
        | Action::AtomicEnd => None,
    })
}

/// What one query about guesses may take: others wait for it.
const WORK: u64 = 500_000;

struct Examined<'a>(Examination<'a>);

fn trouble(e: AuditError) -> Trouble {
    match e {
        AuditError::Stopped(stop) => Trouble::Stopped(stop),
        other => Trouble::Refused(other.to_string()),
    }
}

impl Judge for Examined<'_> {
    fn gap(&mut self, facts: &[Fact]) -> Result<Option<Gap>, Trouble> {
        self.0.gap(facts).map_err(trouble)
    }

    fn allows(&mut self, facts: &[Fact]) -> Result<Option<Gap>, Trouble> {
        self.0.allows(facts).map_err(trouble)
    }
}

impl Asked<'_> {
    pub(super) fn by_counting(&self, counted: &CountedCrowd, control: &Control<'_>) -> Told {
        let (model, question, options) = (self.model, self.question, self.options);
        let mut finding = open(model, question, options, Reason::Other(String::new()));
        finding.engine = COUNTING;
        if model != MemoryModel::Sc {
            finding.scope.unbounded.push("store buffers".into());
        }
        // Numbers that wrap around are taken as they are first, then for granted not to.
        let (_, wraps) = self.program.with_wraps_as_faults();
        let mut outcome = self.facts(counted, false, control);
        if matches!(outcome, Outcome::Open(_)) && !wraps.is_empty() {
            outcome = self.facts(counted, true, control);
        }
        let undecided = |reason: Reason| Verdict::Undecided {
            reason,
            so_far: Progress::default(),
        };
        let mut assumptions = Vec::new();
        finding.judged.verdict = match outcome {
            Outcome::Stopped(stop) => undecided(Reason::Stopped {
                stop,
                stage: COUNTING.into(),
            }),
            Outcome::Open(why) => undecided(Reason::Other(why)),
            Outcome::Proved(certificate) => {
                finding.states = certificate.facts.len() as u64;
                if certificate.no_wrap {
                    assumptions.push(Assumption::NoWrap { variables: wraps });
                }
                let result = match options.audit {
                    AuditPolicy::Never => Ok(Some(Unchecked::Off)),
                    AuditPolicy::Always => {
                        let program = self.program;
                        let solvers = Solvers::own();
                        let audited = audit_counting(
                            &solvers,
                            program,
                            model,
                            question,
                            &certificate,
                            control,
                        );
                        after_audit(COUNTING, audited.map(|_| ()))?
                    }
                };
                match result {
                    Err(reason) => undecided(reason),
                    Ok(unchecked) => {
                        finding.judged.unchecked = unchecked;
                        Verdict::Holds {
                            scope: finding.scope.clone(),
                            proof: Proof::Certificate(Certificate::Counting(certificate)),
                        }
                    }
                }
            }
        };
        finding.judged = finding.judged.assuming(assumptions, |a| options.accepts(a));
        finding.seconds = control.elapsed().as_secs_f64();
        Ok((finding, None))
    }

    fn facts(&self, counted: &CountedCrowd, no_wrap: bool, control: &Control<'_>) -> Outcome {
        let asked = auditor::Asked {
            program: self.program,
            model: self.model,
            property: self.question,
            no_wrap,
        };
        let solvers = Solvers::own();
        let judge = |places: Vec<Place>| {
            let examination = Examination::new(&solvers, &asked, places, control);
            let examination = examination.map_err(trouble)?;
            Ok(Box::new(Examined(examination.with_work(WORK))) as Box<dyn Judge>)
        };
        prove(counted, self.model, no_wrap, control, &judge)
    }

    /// A state of a small instance that the facts do not stand for.
    pub(super) fn uncounted(
        &self,
        certificate: &Counting,
        control: &Control<'_>,
    ) -> Option<String> {
        if certificate.no_wrap {
            return None;
        }
        let counted = self.program.counted_crowd(self.question).ok()?;
        let samples = Samples::take(&counted, self.model, control).ok()?;
        samples.states.iter().find_map(|state| {
            let locals = state.locals.iter();
            let locals: Vec<_> = locals.map(|l| &samples.locals[*l as usize]).collect();
            certificate.excludes(&state.cells, &locals)
        })
    }
}
