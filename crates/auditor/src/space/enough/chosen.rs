//! A closed set of processes, chosen in a state of a space.

use super::{Enough, Set};
use wattle_memory::Layout;
use wattle_memory::content::Content;
use wattle_model::instance::Thread;

/// How many events of a thread there are, and whether the question sees one of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events {
    pub steps: u32,
    pub drains: u32,
    pub seen_steps: bool,
    pub seen_drains: bool,
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

    /// The least closed set around a process.
    fn close(&self, t: usize, drain: bool) -> Set {
        let mut set = Set::default();
        set.put(t, drain);
        let mut work = vec![(t, drain)];
        while let Some(member) = work.last() {
            match self.missing(set, member.0, member.1) {
                Some((u, drain)) => {
                    set.put(u, drain);
                    work.push((u, drain));
                }
                None => {
                    work.pop();
                }
            }
        }
        set
    }

    /// A closed set with an event, none that is seen, and few; none if that is everything.
    pub fn choose(&self, events: &[Events]) -> Option<Set> {
        let everything: u32 = events.iter().map(|e| e.steps + e.drains).sum();
        let mut best: Option<(u32, Set)> = None;
        for (t, mine) in events.iter().enumerate() {
            for (drain, count) in [(false, mine.steps), (true, mine.drains)] {
                if count == 0 {
                    continue;
                }
                let set = self.close(t, drain);
                let (mut count, mut seen) = (0, false);
                for (u, e) in events.iter().enumerate() {
                    if set.has(u, false) {
                        count += e.steps;
                        seen |= e.seen_steps;
                    }
                    if set.has(u, true) {
                        count += e.drains;
                        seen |= e.seen_drains;
                    }
                }
                if !seen && count < best.map_or(everything, |(least, _)| least) {
                    best = Some((count, set));
                    if count == 1 {
                        return Some(set);
                    }
                }
            }
        }
        best.map(|(_, set)| set)
    }
}
