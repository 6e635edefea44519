//! A state of a space, looked at part by part, and whether the events of a set are enough there.

use super::{Enough, Set};
use wattle_memory::Layout;
use wattle_memory::content::Content;
use wattle_model::instance::Thread;

/// An event that leads to another state.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    pub thread: usize,
    pub drain: bool,
    /// Its number among the moves.
    pub event: u32,
    /// The question sees it.
    pub seen: bool,
}

impl Enough {
    /// Looks at the parts of a state, one thread after the other.
    pub fn look<L: Layout, C: Content<Value = i64>>(
        &mut self,
        thread: &Thread,
        t: usize,
        number: u32,
        part: &crate::space::moves::Part<L::Buffer<C>>,
    ) {
        if t == 0 {
            self.now.clear();
        }
        if let Some(Some(facts)) = self.known[t].get(number as usize) {
            self.now.push(*facts);
            return;
        }
        let facts = self.facts::<L, C>(thread, t, part.at, &part.registers, &part.buffer);
        let known = &mut self.known[t];
        if known.len() <= number as usize {
            known.resize(number as usize + 1, None);
        }
        known[number as usize] = Some(facts);
        self.now.push(facts);
    }

    /// Whether the set is closed, has an event, and none that is seen.
    pub fn is_enough(&self, set: Set, all: &[Made]) -> bool {
        let mine = || all.iter().filter(|e| set.has(e.thread, e.drain));
        self.is_closed(set) && mine().next().is_some() && !mine().any(|e| e.seen)
    }
}
