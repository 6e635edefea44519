//! Threads as automata for a task, within a budget. For engines; the auditor unfolds threads itself.

use crate::answer::{Reason, Refusal};
use crate::control::{Control, Progress};
use crate::task::Task;
use wattle_memory::automaton::{self, Automata, NotFinite};

/// Edges made between two polls.
const POLL: usize = 2048;

impl Task<'_> {
    /// Unfolds the threads with the question's view of them. With `chaining`, edges that do nothing
    /// but move on are part of their successors.
    pub fn unfold(
        &self,
        engine: &'static str,
        chaining: bool,
        control: &Control<'_>,
    ) -> Result<Automata, Reason> {
        let (observed, _) = automaton::observed(self.instance, self.question());
        let mut stop = None;
        let mut made = 0;
        let mut go_on = |edges: usize| {
            made += 1 + edges;
            if made >= POLL {
                made = 0;
                stop = control.poll(engine, Progress::default()).err();
            }
            stop.is_none()
        };
        let built = automaton::build(self.instance, &observed, chaining, &mut go_on);
        built.map_err(|NotFinite(why)| match stop {
            Some(stop) => Reason::Stopped {
                stop,
                stage: "unfolding threads".into(),
            },
            None => Reason::Refused(Refusal::new(why)),
        })
    }
}
