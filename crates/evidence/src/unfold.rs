//! Threads as automata for a task, within a budget. For engines; the auditor unfolds threads itself.

use crate::answer::{Reason, Refusal};
use crate::control::{Control, Progress};
use crate::task::Task;
use wattle_memory::automaton::{self, Automata, NotFinite, Observed};
use wattle_model::Roles;

/// Edges made between two polls; for any number of threads fewer, because `params`, which runs beside,
/// has most answers in less time than so many take.
const POLL: usize = 2048;
const POLL_OPEN: usize = 64;

impl Task<'_> {
    /// Unfolds the threads with the question's view of them. With `chaining`, edges that do nothing
    /// but move on are part of their successors.
    pub fn unfold(
        &self,
        engine: &'static str,
        chaining: bool,
        control: &Control<'_>,
    ) -> Result<Automata, Reason> {
        let roles = Roles::fixed(self.instance);
        self.unfold_roles(engine, chaining, &roles, control)
    }

    /// The same with threads that stand for others: those of one role have one automaton, which
    /// shows whatever the question sees of any of them.
    pub fn unfold_roles(
        &self,
        engine: &'static str,
        chaining: bool,
        roles: &Roles,
        control: &Control<'_>,
    ) -> Result<Automata, Reason> {
        let (seen, _) = automaton::observed(self.instance, self.question());
        let mut observed = vec![Observed::default(); seen.len()];
        for (t, seen) in seen.into_iter().enumerate() {
            let all = &mut observed[roles.of(t)];
            all.at.extend(seen.at);
            all.registers.extend(seen.registers);
        }
        for all in &mut observed {
            all.at.sort_unstable();
            all.at.dedup();
            all.registers.sort_unstable();
            all.registers.dedup();
        }
        for t in 0..observed.len() {
            observed[t] = observed[roles.of(t)].clone();
        }
        let open = roles.all().any(|r| roles.is_open(r));
        let every = if open { POLL_OPEN } else { POLL };
        let mut stop = None;
        let mut made = 0;
        let mut go_on = |edges: usize| {
            made += 1 + edges;
            if made >= every {
                made = 0;
                stop = control.poll(engine, Progress::default()).err();
            }
            stop.is_none()
        };
        let built = automaton::build(self.instance, &observed, chaining, &mut go_on);
        let mut automata = built.map_err(|NotFinite(why)| match stop {
            Some(stop) => Reason::Stopped {
                stop,
                stage: "unfolding threads".into(),
            },
            None => Reason::Refused(Refusal::new(why)),
        })?;
        for t in 0..automata.threads.len() {
            if roles.of(t) != t {
                automata.threads[t] = automata.threads[roles.of(t)].clone();
            }
        }
        Ok(automata)
    }
}
