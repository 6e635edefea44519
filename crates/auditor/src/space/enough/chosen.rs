//! A set of processes for a state of a space. It is looked at before it is used ([`Enough::is_enough`]), so nobody has to trust
//! what is chosen here.

use super::{Enough, Made, Set};

/// How many events of a thread there are, and whether the question sees one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Events {
    steps: u32,
    drains: u32,
    seen_steps: bool,
    seen_drains: bool,
}

impl Events {
    fn of(self, drain: bool) -> (u32, bool) {
        match drain {
            true => (self.drains, self.seen_drains),
            false => (self.steps, self.seen_steps),
        }
    }
}

/// States after which it is known whether choosing is worth it.
const PATIENCE: u64 = 1 << 14;

/// How often something was left out.
#[derive(Debug, Default)]
pub struct Tried {
    states: u64,
    chosen: u64,
}

impl Enough {
    /// Whether to choose at all: not if it was tried often and hardly ever left something out.
    pub fn is_worth_it(&self) -> bool {
        self.tried.states < PATIENCE || self.tried.chosen * 8 >= self.tried.states
    }

    /// The least closed set around a process, and how many events it has; none if the question sees one of them, or if they are
    /// not fewer than so many.
    fn close(&self, events: &[Events], t: usize, drain: bool, fewer: u32) -> Option<(u32, Set)> {
        let mut set = Set::default();
        let mut work = [(0, false); 2 * Enough::MOST_THREADS];
        let (mut left, mut count) = (0, 0);
        let mut more = Some((t, drain));
        loop {
            if let Some((t, drain)) = more {
                let (own, seen) = events[t].of(drain);
                count += own;
                if seen || count >= fewer {
                    return None;
                }
                set.put(t, drain);
                work[left] = (t, drain);
                left += 1;
            } else {
                left -= 1;
            }
            if left == 0 {
                return Some((count, set));
            }
            let (t, drain) = work[left - 1];
            more = self.missing(set, t, drain);
        }
    }

    /// A closed set with an event, none that is seen, and few; none if that is everything.
    pub fn choose(&mut self, all: &[Made]) -> Option<Set> {
        let mut events = [Events::default(); Enough::MOST_THREADS];
        let events = &mut events[..self.now.len()];
        for made in all {
            let events = &mut events[made.thread];
            let (count, any) = match made.drain {
                true => (&mut events.drains, &mut events.seen_drains),
                false => (&mut events.steps, &mut events.seen_steps),
            };
            *count += 1;
            *any |= made.seen;
        }
        let mut best: Option<(u32, Set)> = None;
        let processes = (0..events.len()).flat_map(|t| [(t, false), (t, true)]);
        for (t, drain) in processes {
            let fewer = best.map_or(all.len() as u32, |(least, _)| least);
            if fewer > 1 && events[t].of(drain).0 > 0 {
                best = self.close(events, t, drain, fewer).or(best);
            }
        }
        self.tried.states += 1;
        self.tried.chosen += u64::from(best.is_some());
        best.map(|(_, set)| set)
    }
}
