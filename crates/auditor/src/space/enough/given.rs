//! A whole state, looked at to see whether a set that somebody else chose is closed.

use super::Enough;
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
}
