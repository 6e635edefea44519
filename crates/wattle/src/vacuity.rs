//! Proofs that say nothing: a label in the property that no thread ever reaches.

use crate::options::Options;
use crate::plan;
use std::collections::BTreeMap;
use std::time::Duration;
use wattle_auditor::AuditPolicy;
use wattle_evidence::certificate::Explored;
use wattle_evidence::{Certificate, Control, Proof, Task, Verdict};
use wattle_model::instance::{Fact, Question};
use wattle_model::{Expr, Instance, LocationId, Op2, PropertyKind, ThreadId};

/// What looking for unreachable labels may cost where the proof does not show it.
const BUDGET: Duration = Duration::from_secs(2);

/// The places of one label: every thread whose being there the property asks about.
type Places = Vec<(ThreadId, Vec<LocationId>)>;

/// One sentence for every label of the property that is never reached.
pub fn warnings(
    task: &Task<'_>,
    verdict: &Verdict,
    options: &Options,
    control: &Control<'_>,
) -> Vec<String> {
    let (Some(question), Verdict::Holds { proof, .. }) = (task.question(), verdict) else {
        return Vec::new();
    };
    let Proof::Certificate(certificate) = proof else {
        return Vec::new();
    };
    let mut labels: BTreeMap<String, Places> = BTreeMap::new();
    question.target.for_each_atom(&mut |fact| {
        if let Fact::At(t, at) = fact {
            let name = label(task.instance, *t, at);
            let places = labels.entry(name).or_default();
            if !places.iter().any(|(thread, _)| thread == t) {
                places.push((*t, at.clone()));
            }
        }
    });
    labels.retain(|_, places| match certificate {
        Certificate::Explored(Explored {
            unreached: Some(unreached),
            ..
        }) => places.iter().all(|p| unreached.contains(p)),
        // No second search for those who want none.
        _ => options.audit == AuditPolicy::Always && never(task, places, options, control),
    });
    let sentence = |name: String| {
        format!("no thread ever reaches `{name}`, so the property may hold for no good reason")
    };
    labels.into_keys().map(sentence).collect()
}

fn label(instance: &Instance, t: ThreadId, at: &[LocationId]) -> String {
    let thread = instance.thread(t);
    let labels = at.first().map(|l| &thread.locations[l.index()].labels);
    let label = labels.and_then(|l| l.first());
    label.cloned().unwrap_or_else(|| "a label".into())
}

/// Asks the engines whether a thread can get there.
fn never(task: &Task<'_>, places: &Places, options: &Options, control: &Control<'_>) -> bool {
    let there = |(t, at): &(ThreadId, Vec<LocationId>)| Expr::Atom(Fact::At(*t, at.clone()));
    let target = places
        .iter()
        .map(there)
        .reduce(|a, b| Expr::binary(Op2::Or, a, b));
    let Some(target) = target else { return false };
    let mut instance = task.instance.clone();
    instance.questions = vec![Question {
        kind: PropertyKind::Never,
        target,
        only_final: false,
        span: wattle_model::Span::NONE,
    }];
    let asked = Task {
        instance: &instance,
        question: Some(0),
        deadlock: false,
        ..*task
    };
    // A warning needs no proof.
    let options = Options {
        audit: AuditPolicy::Never,
        ..options.clone()
    };
    let outcome = plan::run(&asked, &options, &control.stage(BUDGET));
    outcome.is_ok_and(|o| matches!(o.judged.verdict, Verdict::Holds { .. }))
}
