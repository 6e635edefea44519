//! `hierarchy`: approximations one after the other, each finer in another way (calin-2016, Algorithm 3.2).
//!
//! First buffers that are multisets: they forget the order of stores and know how many there are. What
//! they cannot reach is unreachable; a run that the real machine follows is a violation. Else the run needs stores
//! out of order, and buffers follow that keep the k oldest stores in order and the others as a set: k is 0
//! at first, which is the set abstraction, and grows by what spurious runs show ([`Coherent`]). Where
//! multisets cannot be told (they want finite data) the second half is all there is.

use crate::Coherent;
use wattle_evidence::{Answer, Control, Engine, Reason, Refusal, Task};
use wattle_wsts::Multiset;

#[derive(Clone, Copy, Debug)]
pub struct Hierarchy;

impl Engine for Hierarchy {
    fn name(&self) -> &'static str {
        "hierarchy"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        Multiset.accepts(task)?;
        Coherent::OldestK.accepts(task)
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        let before = match Multiset.run(task, control) {
            answer @ (Answer::Unreachable { .. } | Answer::Reached { .. }) => return answer,
            answer @ Answer::Undecided {
                reason: Reason::Stopped { .. },
                ..
            } => return answer,
            Answer::Bounded { effort, .. } | Answer::Undecided { effort, .. } => effort,
        };
        let mut answer = Coherent::OldestK.run(task, control);
        let (Answer::Unreachable { effort, .. }
        | Answer::Reached { effort, .. }
        | Answer::Bounded { effort, .. }
        | Answer::Undecided { effort, .. }) = &mut answer;
        effort.states += before.states;
        effort.memory = effort.memory.max(before.memory);
        answer
    }
}
