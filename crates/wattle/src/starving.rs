//! Safe but starving: nothing bad can happen, and yet somebody waits for ever.
//!
//! Where every property holds under a memory model and a demand on runs does not, the fences and locks of the program are
//! taken out, all and then one by one, and the demand is looked at again: if it holds then, what was taken out is
//! what makes the program starve.

use crate::options::Options;
use wattle_evidence::live::LiveTask;
use wattle_evidence::{Control, LiveAnswer, Unsound, Verdict};
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::{Instance, Span, StepId};
use wattle_report::Finding;

const SAFE: &str =
    "safe but starving: nothing that must not happen can, and yet somebody waits for ever";

/// More fences and locks are not taken out one by one.
const MOST_ALONE: usize = 8;

/// Puts a warning beside each demand that is broken where all else holds.
pub fn warn(
    instance: &Instance,
    options: &Options,
    control: &Control<'_>,
    results: &mut [Result<Finding, Unsound>],
) {
    for model in &options.models {
        let of_model = |f: &&Finding| f.model == *model;
        let mut states = (results.iter().flatten())
            .filter(of_model)
            .filter(|f| f.live.is_none())
            .peekable();
        let asked = states.peek().is_some_and(|f| f.question.is_some());
        if !states.all(|f| matches!(f.judged.verdict, Verdict::Holds { .. })) {
            continue;
        }
        for finding in results.iter_mut().flatten() {
            let broken = matches!(finding.judged.verdict, Verdict::Violated { .. });
            if let (true, true, Some(live)) = (broken, finding.model == *model, &finding.live) {
                let cause = cause(instance, *model, live.demand, options, control);
                let told = match (cause, asked) {
                    (Some(cause), _) => format!("{SAFE}; {cause}"),
                    (None, true) => SAFE.into(),
                    // Nobody said what must not happen.
                    (None, false) => continue,
                };
                finding.warnings.push(told);
            }
        }
    }
}

/// The fence or lock without which nobody would.
fn cause(
    instance: &Instance,
    model: MemoryModel,
    demand: usize,
    options: &Options,
    control: &Control<'_>,
) -> Option<String> {
    let holds_without = |out: &[(usize, StepId)]| {
        let mut less = instance.clone();
        for (t, s) in out {
            less.threads[*t].steps[s.index()].action = Action::Skip;
        }
        let task = LiveTask {
            instance: &less,
            model,
            demand,
            fairness: options.fairness,
        };
        matches!(wattle_liveness::run(&task, control).0, LiveAnswer::Holds(_))
    };
    let (fences, locks) = barriers(instance);
    for (what, groups) in [("fence", fences), ("lock", locks)] {
        let all: Vec<(usize, StepId)> = groups.iter().flat_map(|(_, g)| g.clone()).collect();
        if all.is_empty() || !holds_without(&all) {
            continue;
        }
        let alone = match groups.len() <= MOST_ALONE {
            true => groups.iter().find(|(_, g)| holds_without(g)),
            false => None,
        };
        return Some(match alone {
            Some((span, _)) if span.line > 0 => {
                format!("without the {what} in line {} nobody would", span.line)
            }
            Some(_) | None => format!("without the {what}s nobody would"),
        });
    }
    None
}

/// What stands at one place of the text, in every thread that has it.
type Group = (Span, Vec<(usize, StepId)>);

fn barriers(instance: &Instance) -> (Vec<Group>, Vec<Group>) {
    let (mut fences, mut locks): (Vec<Group>, Vec<Group>) = (Vec::new(), Vec::new());
    for (t, thread) in instance.threads.iter().enumerate() {
        // A lock goes with all its thread's unlocks.
        let unlocks: Vec<(usize, StepId)> = (0..thread.steps.len())
            .filter(|s| thread.steps[*s].action == Action::Unlock)
            .map(|s| (t, StepId::new(s)))
            .collect();
        for (s, step) in thread.steps.iter().enumerate() {
            let s = (t, StepId::new(s));
            let (groups, steps) = match step.action {
                Action::Fence(_) => (&mut fences, vec![s]),
                Action::Lock => (&mut locks, [vec![s], unlocks.clone()].concat()),
                Action::Skip
                | Action::Assign { .. }
                | Action::Havoc { .. }
                | Action::Assume(_)
                | Action::Assert { .. }
                | Action::Load { .. }
                | Action::Store { .. }
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Unlock => continue,
            };
            match groups.iter_mut().find(|(span, _)| *span == step.span) {
                Some((_, group)) => group.extend(steps),
                None => groups.push((step.span, steps)),
            }
        }
    }
    (fences, locks)
}

#[cfg(test)]
mod tests {
    use crate::options::Options;
    use wattle_memory::MemoryModel;

    fn warnings(text: &str) -> Vec<String> {
        let program = wattle_syntax::wtl::parse(text).program.expect("a program");
        let options = Options {
            models: vec![MemoryModel::Tso],
            ..Options::default()
        };
        let checked = crate::check::check(&program, &options).expect("it is checked");
        let results = checked.results.iter().flatten();
        let told = results.flat_map(|f| f.warnings.clone());
        told.filter(|w| w.contains("starving")).collect()
    }

    #[test]
    fn a_lock_that_is_kept_is_named() {
        let told = warnings(
            "shared x: bool, y: bool;
             thread p { lock; x = 1; await y == 1; unlock; }
             thread q { y = 1; critical: skip; }
             progress;",
        );
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("without the lock in line 2"), "{told:?}");
    }

    #[test]
    fn where_nothing_helps_it_is_only_said() {
        let told = warnings(
            "shared flag[2]: bool;
             thread p[2] {
                 flag[self] = 1;
                 fence;
                 await flag[1 - self] == 0;
                 critical: skip;
                 flag[self] = 0;
             }
             never p[i]@critical && p[j]@critical;
             progress;",
        );
        assert_eq!(told, [super::SAFE]);
    }

    #[test]
    fn programs_that_go_on_are_left_alone() {
        let told = warnings(
            "shared ready: bool;
             thread writer { ready = 1; }
             thread reader { await ready == 1; done: skip; }
             progress;",
        );
        assert!(told.is_empty(), "{told:?}");
    }
}
