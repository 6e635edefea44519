//! Which registers matter where.

use crate::instance::Thread;

impl Thread {
    /// Per location, per register: whether its value may still be read, by a later step or by whoever
    /// looks at it there (`observed`). The classic backward analysis: a register that no path reads
    /// before writing it is dead, and states that differ only in dead registers are one state.
    pub fn live(&self, observed: Vec<Vec<bool>>) -> Vec<Vec<bool>> {
        let mut live = observed;
        let mut incoming = vec![Vec::new(); self.locations.len()];
        for step in &self.steps {
            incoming[step.target.index()].push(step);
        }
        // Every step contributes what it reads even if what follows it never changes.
        let mut waiting = vec![true; self.locations.len()];
        let mut work: Vec<usize> = (0..self.locations.len()).collect();
        while let Some(l) = work.pop() {
            waiting[l] = false;
            let after = live[l].clone();
            for step in &incoming[l] {
                let mut before = after.clone();
                if let Some(r) = step.action.written() {
                    before[r.index()] = false;
                }
                step.action.for_each_read(&mut |r| before[r.index()] = true);
                let source = step.source.index();
                let mut changed = false;
                for (known, new) in live[source].iter_mut().zip(before) {
                    changed |= new && !*known;
                    *known |= new;
                }
                if changed && !waiting[source] {
                    waiting[source] = true;
                    work.push(source);
                }
            }
        }
        live
    }
}
