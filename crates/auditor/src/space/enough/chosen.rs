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

impl Enough {
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
    pub fn choose(&self, all: &[Made]) -> Option<Set> {
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
                if !seen && count < best.map_or(all.len() as u32, |(least, _)| least) {
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
