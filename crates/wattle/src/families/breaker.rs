//! Small instances beside the provers: with more and more threads, and more and more states of each.
//!
//! A bug may need four or six threads, and two or three may have more states than anyone sees. So every
//! number of threads gets the same share of each round, and rounds grow.

use super::open;
use super::program::{Asked, EXPLICIT, Told};
use super::small_worlds::{BUFFERED, Shown, run};
use wattle_evidence::{Control, Reason, Stop};
use wattle_memory::MemoryModel;
use wattle_search::question::Explored;

/// Most threads in a family.
const THREADS: u32 = 6;
/// States of each instance in the rounds.
const ROUNDS: [u64; 4] = [5_000, 20_000, 100_000, 400_000];
/// States of all of them.
const ALL_STATES: u64 = 2_000_000;

impl Asked<'_> {
    /// Looks for a violation; never a proof.
    pub(super) fn by_small(&self, control: &Control<'_>) -> Told {
        let (program, _) = super::small_worlds::fewer_choices(self.program);
        let mut complete = Vec::new();
        let mut why = Reason::Other(format!(
            "no run of up to {THREADS} threads was seen to break it"
        ));
        let mut left = ALL_STATES;
        'rounds: for states in ROUNDS {
            for counts in self.numbers(THREADS) {
                if complete.contains(&counts) {
                    continue;
                }
                let Ok(instance) = program.instantiate(&counts) else {
                    continue;
                };
                if instance.threads.is_empty() {
                    continue;
                }
                let task = self.task(&instance);
                let buffered = match self.model {
                    MemoryModel::Sc => 0,
                    MemoryModel::Tso | MemoryModel::Pso => BUFFERED[0],
                };
                let explored = run(&task, buffered.max(1), states.min(left), control);
                if let Ok((_, effort)) = &explored {
                    left = left.saturating_sub(effort.states);
                }
                match explored {
                    Ok((Explored::Bad(trace), effort)) => {
                        let shown = Shown {
                            instance,
                            trace,
                            effort,
                        };
                        return self.broken(shown, control);
                    }
                    Ok((Explored::Closed { .. } | Explored::Unclear(_) | Explored::Cut(_), _))
                    | Err(_) => complete.push(counts),
                    Ok((Explored::Stopped(Stop::Memory), _)) if control.stop().is_none() => {}
                    Ok((Explored::Stopped(stop), _)) => {
                        why = Reason::Stopped {
                            stop,
                            stage: EXPLICIT.into(),
                        };
                        break 'rounds;
                    }
                }
                if left == 0 {
                    break 'rounds;
                }
            }
        }
        let mut finding = open(self.model, self.question, self.options, why);
        finding.engine = EXPLICIT;
        Ok((finding, None))
    }
}
