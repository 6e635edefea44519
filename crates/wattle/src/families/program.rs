//! One property of a program with open families: `params`, `exact` and `counting` side by side.

use super::counting;
use super::small_worlds::{self, Sampled, Shown};
use super::{
    COUNTING, EXACT, PARAMS, decide, found, no_deadlocks, open, refusal, refuted, sampled,
    with_threads,
};
use crate::options::Options;
use crate::plan::race::{Ended, Runner, race};
use crate::{check, plan};
use wattle_auditor::{AuditPolicy, after_audit, audit_crowd, judge};
use wattle_evidence::{
    Answer, Broken, Certificate, Control, Progress, Proof, Reason, Refusal, Task, Unchecked,
    Unsound, Verdict,
};
use wattle_memory::MemoryModel;
use wattle_model::{CountedCrowd, Crowd, Instance, Program};
use wattle_params::Outcome;
use wattle_params::lower::{Lowered, lower};
use wattle_report::Finding;
use wattle_wsts::crowd::{self, CrowdAnswer};

/// About how many microseconds each works from one poll to the next.
const PARAMS_TICK: u64 = 500;
const EXACT_TICK: u64 = 700;
const COUNTING_TICK: u64 = 1000;
const SMALL_TICK: u64 = 600;

/// Polls that the first has for itself.
const HEAD_START: u64 = 4;

/// Threads in a family, and states, of small instances that are run before anything is proved.
const FIRST_LOOK: (u32, u64) = (3, 4_000);

/// Who runs small instances.
pub(super) const EXPLICIT: &str = "explicit";

/// Who can prove something for any number of threads, with the program as it reads it.
enum Prover {
    Params(Box<Lowered>),
    Exact(Box<Crowd>),
    Counting(Box<CountedCrowd>),
    /// Small instances: it breaks, and proves nothing.
    Small,
}

impl Prover {
    fn name(&self) -> &'static str {
        match self {
            Prover::Params(_) => PARAMS,
            Prover::Exact(_) => EXACT,
            Prover::Counting(_) => COUNTING,
            Prover::Small => EXPLICIT,
        }
    }

    fn tick(&self) -> u64 {
        match self {
            Prover::Params(_) => PARAMS_TICK,
            Prover::Exact(_) => EXACT_TICK,
            Prover::Counting(_) => COUNTING_TICK,
            Prover::Small => SMALL_TICK,
        }
    }
}

/// What a prover says, and the instance that shows a violation.
pub(super) type Told = Result<(Finding, Option<Instance>), Unsound>;

impl Ended for Told {
    fn is_decided(&self) -> bool {
        self.as_ref().map_or(true, |(f, _)| {
            matches!(
                f.judged.verdict,
                Verdict::Holds { .. } | Verdict::HoldsIf { .. } | Verdict::Violated { .. }
            )
        })
    }

    fn is_final(&self) -> bool {
        self.as_ref()
            .map_or(true, |(f, _)| plan::is_final(&f.judged))
    }
}

/// The names of those who take the question.
pub fn provers_named(program: &Program, question: Option<usize>) -> Vec<&'static str> {
    let (willing, _) = provers(program, question, &Options::default());
    willing.iter().map(Prover::name).collect()
}

/// Those who take the question, in the order of the plan, and why the others do not.
fn provers(
    program: &Program,
    question: Option<usize>,
    options: &Options,
) -> (Vec<Prover>, Vec<Reason>) {
    let (mut willing, mut refusals) = (Vec::new(), Vec::new());
    if options.deadlock {
        return (willing, vec![no_deadlocks()]);
    }
    let wanted = |name: &str| options.engine.as_deref().is_none_or(|e| e == name);
    if wanted(PARAMS) {
        match lower(program, question) {
            Ok(lowered) => willing.push(Prover::Params(Box::new(lowered))),
            Err(u) => refusals.push(refusal(u.span, &u.message, &u.hint)),
        }
    }
    if wanted(EXACT) {
        match program.crowd(question) {
            Ok(crowd) => willing.push(Prover::Exact(Box::new(crowd))),
            Err(n) => refusals.push(refusal(n.span, &n.message, &n.hint)),
        }
    }
    if wanted(COUNTING) {
        match (
            counting::untreated(program),
            program.counted_crowd(question),
        ) {
            (None, Ok(crowd)) => willing.push(Prover::Counting(Box::new(crowd))),
            (Some((span, why)), _) => refusals.push(refusal(span, why, "use atomic steps")),
            (None, Err(n)) => refusals.push(refusal(n.span, &n.message, &n.hint)),
        }
    }
    if let (true, true, Some(name)) = (willing.is_empty(), refusals.is_empty(), &options.engine) {
        let why = format!(
            "`{name}` is for a fixed number of threads; there are {PARAMS}, {EXACT} and {COUNTING}"
        );
        refusals.push(Reason::Refused(Refusal::new(why)));
    }
    (willing, refusals)
}

/// One property of a program with an open number of threads. The instance that shows a violation
/// is kept in `shown`.
pub fn program(
    program: &Program,
    model: MemoryModel,
    question: Option<usize>,
    options: &Options,
    control: &Control<'_>,
    shown: &mut Option<Instance>,
) -> Result<Finding, Unsound> {
    let (mut willing, mut refusals) = provers(program, question, options);
    if options.engine.is_none() && !willing.is_empty() {
        willing.push(Prover::Small);
    }
    let runners = willing.into_iter().map(|engine| Runner {
        tick: engine.tick(),
        audit: engine.tick(),
        handicap: 1,
        head_start: HEAD_START,
        engine,
    });
    let runners: Vec<Runner<Prover>> = runners.collect();
    let asked = Asked {
        program,
        model,
        question,
        options,
        kept: shown.as_ref(),
    };
    let (threads, states) = FIRST_LOOK;
    if let Some((finding, instance)) = asked.small(threads, states, control)? {
        *shown = instance.or(shown.take());
        return Ok(finding);
    }
    let prove = |runner: &Runner<Prover>, control: &Control<'_>| match &runner.engine {
        Prover::Params(lowered) => asked.by_params(lowered, control),
        Prover::Exact(crowd) => asked.by_exact(crowd, control),
        Prover::Counting(crowd) => asked.by_counting(crowd, control),
        Prover::Small => asked.by_small(control),
    };
    let ended = match runners.is_empty() {
        true => Vec::new(),
        false => race(&runners, control, prove),
    };
    let mut best: Option<Finding> = None;
    for (i, told) in ended {
        let decided = told.is_decided();
        let (finding, instance) = told?;
        // That small instances show nothing is no reason.
        if !decided && matches!(runners[i].engine, Prover::Small) {
            continue;
        }
        if decided {
            let (finding, other) = asked.confirmed(finding, control)?;
            let instance = other.or(instance);
            let finding = with_number(finding, instance.as_ref());
            *shown = instance.or(shown.take());
            return Ok(finding);
        }
        best = Some(match best {
            Some(best) => both_undecided(best, finding),
            None => finding,
        });
    }
    // What nobody proves may be broken by a few more threads; beside provers they were run.
    let (threads, states) = (small_worlds::THREADS, small_worlds::STATES);
    if runners.is_empty()
        && let Some((finding, instance)) = asked.small(threads, states, control)?
    {
        *shown = instance.or(shown.take());
        return Ok(finding);
    }
    refusals.truncate(1);
    let why = refusals.pop();
    let why = why.unwrap_or_else(|| Reason::Other("nobody treats it".into()));
    Ok(best.unwrap_or_else(|| open(model, question, options, why)))
}

/// A violation, with the number of threads of the instance that shows it.
fn with_number(finding: Finding, instance: Option<&Instance>) -> Finding {
    let shown_with = instance.map(|i| i.threads.len());
    Finding {
        shown_with,
        ..finding
    }
}

/// Whoever ran out of a budget might have decided with more; otherwise both reasons are worth knowing.
fn both_undecided(a: Finding, b: Finding) -> Finding {
    let reason = |f: &Finding| match &f.judged.verdict {
        Verdict::Undecided { reason, .. } => Some(reason.clone()),
        _ => None,
    };
    let stopped = |f: &Finding| matches!(reason(f), Some(Reason::Stopped { .. }));
    match (stopped(&a), stopped(&b), reason(&a), reason(&b)) {
        (false, false, Some(why), Some(other)) => {
            let text = |r: &Reason| wattle_report::text::reason(r, 0.0);
            let all = format!(
                "{}: {}; {}: {}",
                a.engine,
                text(&why),
                b.engine,
                text(&other)
            );
            let mut both = a;
            both.judged.verdict = Verdict::Undecided {
                reason: Reason::Other(all),
                so_far: Progress::default(),
            };
            both
        }
        (false, true, ..) => b,
        _ => a,
    }
}

/// One property of a program for any number of threads.
pub(super) struct Asked<'a> {
    pub(super) program: &'a Program,
    pub(super) model: MemoryModel,
    pub(super) question: Option<usize>,
    pub(super) options: &'a Options,
    /// The instance on which another property was shown to be violated.
    pub(super) kept: Option<&'a Instance>,
}

impl Asked<'_> {
    fn by_params(&self, lowered: &Lowered, control: &Control<'_>) -> Told {
        let (model, question, options) = (self.model, self.question, self.options);
        let (outcome, stopped) = decide(&lowered.system, model, control);
        if let Outcome::Violated(run) = &outcome {
            return self.violated(u32::from(run.threads), control);
        }
        let outcome = (outcome, stopped);
        let mut finding = found(&lowered.system, model, question, options, control, outcome)?;
        // What may wrap around in the program did not in the proof; the first line has to say so.
        finding.judged = finding
            .judged
            .assuming(lowered.assumptions(), |a| options.accepts(a));
        finding.seconds = control.elapsed().as_secs_f64();
        Ok((finding, None))
    }

    fn by_exact(&self, crowd: &Crowd, control: &Control<'_>) -> Told {
        let (model, question, options) = (self.model, self.question, self.options);
        let mut finding = open(model, question, options, Reason::Other(String::new()));
        finding.engine = EXACT;
        if model != MemoryModel::Sc {
            finding.scope.unbounded.push("store buffers".into());
        }
        let answer = crowd::decide(self.program, crowd, model, question, control);
        let undecided = |reason: Reason| Verdict::Undecided {
            reason,
            so_far: Progress::default(),
        };
        finding.judged.verdict = match answer {
            CrowdAnswer::Undecided { reason, effort } => {
                finding.states = effort.states;
                undecided(reason)
            }
            CrowdAnswer::Reached {
                instance,
                trace,
                effort,
            } => {
                if self.kept.is_some() {
                    let most = instance.threads.len() as u32;
                    return self.violated(most, control);
                }
                let task = self.task(&instance);
                let answer = Answer::Reached { trace, effort };
                let judged = judge(&task, EXACT, answer, options.audit, control)?;
                let outcome = plan::Outcome {
                    engine: EXACT,
                    judged,
                    effort,
                };
                let finding = check::tell(&task, outcome, &[], options, control);
                return Ok((finding, Some(*instance)));
            }
            CrowdAnswer::Unreachable {
                certificate,
                effort,
            } => {
                finding.states = effort.states;
                let result = match (&certificate, options.audit) {
                    (_, AuditPolicy::Never) => Ok(Some(Unchecked::Off)),
                    (Certificate::LoadBuffers(basis), AuditPolicy::Always) => {
                        let result = audit_crowd(self.program, model, question, basis, control);
                        after_audit(EXACT, result.map(|_| ()))?
                    }
                    (other, AuditPolicy::Always) => {
                        let what = format!("its proof is of another kind: {}", other.describe());
                        return Err(Unsound {
                            engine: EXACT,
                            what,
                        });
                    }
                };
                match result {
                    Err(reason) => undecided(reason),
                    Ok(unchecked) => {
                        finding.judged.unchecked = unchecked;
                        Verdict::Holds {
                            scope: finding.scope.clone(),
                            proof: Proof::Certificate(certificate),
                        }
                    }
                }
            }
        };
        finding.seconds = control.elapsed().as_secs_f64();
        Ok((finding, None))
    }

    pub(super) fn task<'i>(&self, instance: &'i Instance) -> Task<'i> {
        Task {
            instance,
            model: self.model,
            question: self.question,
            deadlock: self.options.deadlock,
        }
    }

    /// A violation that small instances show, unless an engine was asked for by name.
    fn small(
        &self,
        threads: u32,
        states: u64,
        control: &Control<'_>,
    ) -> Result<Option<(Finding, Option<Instance>)>, Unsound> {
        if self.options.engine.is_some() {
            return Ok(None);
        }
        match self.sample(threads, states, control) {
            Sampled::Fine(_) => Ok(None),
            Sampled::Broken(run) => {
                let (finding, instance) = self.broken(*run, control)?;
                let finding = with_number(finding, instance.as_ref());
                Ok(Some((finding, instance)))
            }
        }
    }

    /// A proof after small instances were run: what they show comes first.
    fn confirmed(&self, mut finding: Finding, control: &Control<'_>) -> Told {
        let (proved, certain) = match finding.judged.verdict {
            Verdict::Holds { .. } => (true, true),
            Verdict::HoldsIf { .. } => (true, false),
            Verdict::Violated { .. } | Verdict::Bounded { .. } | Verdict::Undecided { .. } => {
                (false, false)
            }
        };
        if !proved || finding.judged.unchecked == Some(Unchecked::Off) {
            return Ok((finding, None));
        }
        match self.sample(small_worlds::THREADS, small_worlds::STATES, control) {
            Sampled::Fine(worlds) => {
                if let Verdict::Holds {
                    proof: Proof::Certificate(certificate),
                    ..
                } = &finding.judged.verdict
                    && let Some(what) = self.members(certificate, control)
                {
                    let engine = finding.engine;
                    return Err(Unsound { engine, what });
                }
                sampled(&mut finding, worlds);
                finding.seconds = control.elapsed().as_secs_f64();
                Ok((finding, None))
            }
            Sampled::Broken(run) => {
                let engine = finding.engine;
                let (mut finding, instance) = self.broken(*run, control)?;
                // A proof under a condition is not refuted: the condition is.
                if certain {
                    finding.warnings.push(refuted(engine));
                }
                Ok((finding, instance))
            }
        }
    }

    /// A run of a small instance, replayed and told.
    pub(super) fn broken(&self, run: Shown, control: &Control<'_>) -> Told {
        let Shown {
            instance,
            trace,
            effort,
        } = run;
        let task = self.task(&instance);
        let answer = Answer::Reached { trace, effort };
        let judged = judge(&task, EXPLICIT, answer, self.options.audit, control)?;
        let outcome = plan::Outcome {
            engine: EXPLICIT,
            judged,
            effort,
        };
        let mut finding = check::tell(&task, outcome, &[], self.options, control);
        let same = |kept: &Instance| kept.threads.len() == instance.threads.len();
        if self.kept.is_none_or(same) {
            return Ok((finding, Some(instance)));
        }
        // Traces of several properties are told about one instance; this one has another.
        let with = super::threads(instance.threads.len() as u32);
        if let Some(trace) = finding.trace() {
            let style = wattle_report::text::Style::PLAIN;
            let text = wattle_report::text::trace_text(&task, trace, finding.why.as_ref(), style);
            let first = format!("with {with}:");
            let lines = std::iter::once(first).chain(text.lines().map(str::to_string));
            let lines: Vec<String> = lines.collect();
            // A run that is wanted to be there is no violation.
            finding.judged.verdict = match finding.judged.verdict {
                Verdict::Holds { .. } | Verdict::HoldsIf { .. } => {
                    let why = format!(
                        "a run with {with} gets there, but another property is shown with another \
                         number of threads; ask for this one in a file of its own"
                    );
                    let reason = Reason::Other(why);
                    let so_far = effort;
                    Verdict::Undecided { reason, so_far }
                }
                Verdict::Violated { .. } => {
                    let because = Broken::Run(lines);
                    Verdict::Violated { because }
                }
                same @ (Verdict::Bounded { .. } | Verdict::Undecided { .. }) => same,
            };
        }
        Ok((finding, None))
    }

    /// Shows a violation on the program itself: with as many threads as the run has, or a few more (a
    /// counter that leaves its range counts as a violation of the system, not of the program).
    fn violated(&self, least: u32, control: &Control<'_>) -> Told {
        // Any engine for instances may show it.
        let options = &Options {
            engine: None,
            ..self.options.clone()
        };
        for n in least..=least.max(3) {
            let kept = self.kept.cloned();
            let instance = kept.or_else(|| with_threads(self.program, options, n).ok());
            let Some(instance) = instance else {
                break;
            };
            let finding = check::one(&self.task(&instance), &[], options, control)?;
            if matches!(finding.judged.verdict, Verdict::Violated { .. }) {
                return Ok((finding, Some(instance)));
            }
            if self.kept.is_some() {
                break;
            }
        }
        let why = "the search for any number of threads found a violation that small instances do not show";
        let reason = Reason::Other(why.into());
        Ok((open(self.model, self.question, self.options, reason), None))
    }
}
