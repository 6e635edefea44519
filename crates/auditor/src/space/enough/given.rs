//! Whether a set of processes that somebody else chose is closed.

use super::{Enough, Set};
use wattle_memory::reference::State;
use wattle_memory::{Exact, Layout};
use wattle_model::Instance;

impl Enough {
    /// Looks at a whole state.
    pub fn look_at<L: Layout>(&mut self, instance: &Instance, state: &State<L::Buffer<Exact>>) {
        let now = instance.threads.iter().enumerate().map(|(t, thread)| {
            let (at, registers) = (state.locations[t], &state.registers[t]);
            self.facts::<L, Exact>(thread, t, at, registers, &state.buffers[t])
        });
        self.now = now.collect();
    }

    /// Whether a set is closed in the state looked at.
    pub fn is_closed(&self, set: Set) -> bool {
        let all = (0..self.now.len()).flat_map(|t| [(t, false), (t, true)]);
        let mut members = all.filter(|(t, drain)| set.has(*t, *drain));
        members.all(|(t, drain)| {
            let empty = drain && !self.now[t].pends;
            !empty && self.missing(set, t, drain).is_none()
        })
    }
}
