//! Where the events of a transition stand in the order of memory, and which cells it writes.

use super::{Hit, Job};
use crate::build::Builder;
use crate::compile::{Conj, Lit};
use crate::cube::{Consistent, Contradiction, Cube};
use crate::memory::{Events, Pending};
use crate::slot::Slot;
use wattle_memory::MemoryModel;
use wattle_model::array::{Comparison, FenceKind, ThreadTerm, UpdateIndex};

impl<'c, 'a> Job<'c, 'a> {
    /// Places the transition's events in the global order; a cycle is a contradiction.
    pub(super) fn order(
        &self,
        b: &mut Builder<'c, 'a>,
        hits: &[Hit],
        served: Events,
        unserved: Events,
    ) -> Consistent {
        let Some(p) = self.actor.map(usize::from) else {
            return Ok(());
        };
        let written = self.written_cells(b, hits);
        let everywhere = self.written_elsewhere(b);
        let event = b.event();
        let read: Vec<Slot> = b.cube.memory.events[event]
            .parts
            .iter()
            .map(|p| p.cell)
            .collect();
        let fence = self.t.fence == Some(FenceKind::Full);
        let pso = self.compiled.model == MemoryModel::Pso;
        if pso && !self.t.atomic {
            return self.order_pso(b, hits, &read, unserved);
        }
        if pso
            && b.cube
                .memory
                .pending
                .iter()
                .any(|x| usize::from(x.thread) == p)
        {
            return Err(Contradiction);
        }
        self.own_stores_left(b, hits)?;
        let memory = &mut b.cube.memory;
        let own: Events = 1 << event;
        let mut after: Events = 0;
        if !written.is_empty() || !everywhere.is_empty() || served != 0 {
            after |= memory.write_first[p];
            written.iter().for_each(|c| after |= memory.cell_first(*c));
            for (e, open) in memory.events.iter().enumerate() {
                if served & 1 << e != 0 {
                    after |= open.after;
                }
            }
        }
        if !read.is_empty() || self.t.atomic {
            after |= memory.read_first[p] | memory.last;
            read.iter().for_each(|c| after |= memory.cell_first(*c));
        }
        if after & unserved != 0 {
            return Err(Contradiction);
        }
        // The transition's reads and writes are at one moment if it has both.
        let here = if read.is_empty() { after } else { after | own };
        memory.events[event].after = here | own;
        memory.extend_after(unserved, here);
        memory.read_first[p] |= here;
        if !written.is_empty() || !everywhere.is_empty() {
            memory.write_first[p] |= here;
        }
        written.iter().for_each(|c| memory.set_cell_first(*c, here));
        for array in everywhere {
            match memory.others_first.iter_mut().find(|(a, _)| *a == array) {
                Some((_, s)) => *s |= here,
                None => memory.others_first.push((array, here)),
            }
        }
        if self.t.atomic || fence {
            memory.write_first[p] = match pso {
                true => memory.all(),
                false => memory.read_first[p] | memory.last,
            };
        }
        Ok(())
    }

    /// PSO: at a fence or an atomic step nothing is in the thread's buffer, so no later read of it
    /// waits for an older store there. The step itself may store after its fence.
    fn own_stores_left(&self, b: &Builder<'c, 'a>, hits: &[Hit]) -> Consistent {
        let old = self.cube.memory.events.iter().enumerate();
        let waiting = old.flat_map(|(e, open)| (0..open.parts.len()).map(move |p| (e, p)));
        for (e, p) in waiting {
            let part = b.cube.memory.events[e].parts[p];
            let stored = !self.t.atomic && hits.iter().any(|h| (h.0, h.1) == (e, p));
            if part.own && Some(part.reader) == self.actor && !stored {
                return Err(Contradiction);
            }
        }
        Ok(())
    }

    /// The same under PSO for steps that are not atomic: each written cell has a moment of its own.
    fn order_pso(
        &self,
        b: &mut Builder<'c, 'a>,
        hits: &[Hit],
        read: &[Slot],
        unserved: Events,
    ) -> Consistent {
        let Some(p) = self.actor.map(usize::from) else {
            return Ok(());
        };
        let written = self.written_cells(b, hits);
        let event = b.event();
        let own: Events = 1 << event;
        let fence = self.t.fence == Some(FenceKind::Full);
        if fence {
            self.own_stores_left(b, hits)?;
            // Nothing of the thread is pending at a fence but what this very step stores.
            let list = &b.cube.memory.pending;
            let foreign =
                |k: usize| usize::from(list[k].thread) == p && self.met(list[k].cell) != Some(k);
            let unwritten = |x: &Pending| usize::from(x.thread) == p && !written.contains(&x.cell);
            if (0..list.len()).any(foreign) || list.iter().any(unwritten) {
                return Err(Contradiction);
            }
        }
        for cell in &written {
            if let Some(k) = self.met(*cell) {
                let after = b.cube.memory.pending[k].after;
                b.cube.memory.read_first[p] |= after;
            }
        }
        // Open reads come before a drain that serves nobody, which comes before a later fence.
        let bound = b.cube.memory.write_first[p];
        if bound & unserved != 0 {
            return Err(Contradiction);
        }
        if unserved != 0 {
            b.cube.memory.extend_after(unserved, bound);
        }
        let memory = &mut b.cube.memory;
        if !read.is_empty() {
            let mut after = memory.read_first[p] | memory.last;
            read.iter().for_each(|c| after |= memory.cell_first(*c));
            memory.events[event].after = after | own;
            memory.read_first[p] |= after | own;
        }
        if fence {
            memory.write_first[p] = memory.all();
        }
        Ok(())
    }

    /// Weak cells that are certainly written: those of hits, and those written whatever the state.
    fn written_cells(&self, b: &Builder<'c, 'a>, hits: &[Hit]) -> Vec<Slot> {
        let mut cells: Vec<Slot> = hits
            .iter()
            .map(|h| self.cube.memory.events[h.0].parts[h.1].cell)
            .collect();
        let threads = b.cube.threads() as u8;
        for u in self.t.updates.iter().filter(|u| self.compiled.weak(u.cell)) {
            let mut tuples: Vec<Vec<u8>> = vec![Vec::new()];
            for i in &u.index {
                let options: Vec<u8> = match i {
                    UpdateIndex::Each(_) => (0..threads).collect(),
                    UpdateIndex::At(ThreadTerm::Param(p)) => vec![self.args[usize::from(*p)]],
                    UpdateIndex::At(ThreadTerm::Constant(k)) => b
                        .cube
                        .fixed
                        .iter()
                        .position(|f| f == k)
                        .map(|i| i as u8)
                        .into_iter()
                        .collect(),
                };
                tuples = tuples
                    .iter()
                    .flat_map(|t| {
                        options
                            .iter()
                            .map(move |o| t.iter().copied().chain([*o]).collect())
                    })
                    .collect();
            }
            for tuple in tuples {
                let mut env = self.args.clone();
                for (i, arg) in u.index.iter().zip(&tuple) {
                    if matches!(i, UpdateIndex::Each(_)) {
                        env.push(*arg);
                    }
                }
                if u.writes.iter().any(|(c, _)| certain(c, &env, &b.cube)) {
                    cells.push(Slot::cell(u.cell, &tuple));
                }
            }
        }
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    /// Weak arrays whose elements of threads outside the cube are all written.
    fn written_elsewhere(&self, b: &Builder<'c, 'a>) -> Vec<u16> {
        let outside = b.cube.threads() as u8;
        self.t
            .updates
            .iter()
            .filter(|u| {
                self.compiled.weak(u.cell) && matches!(&u.index[..], [UpdateIndex::Each(_)])
            })
            .filter(|u| {
                let mut env = self.args.clone();
                env.push(outside);
                u.writes.iter().any(|(c, _)| certain(c, &env, &b.cube))
            })
            .map(|u| u.cell)
            .collect()
    }
}

/// Whether a condition holds whatever the state, judging by threads alone.
fn certain(conj: &Conj, env: &[u8], cube: &Cube) -> bool {
    conj.iter().all(|l| match l {
        Lit::Threads(a, b, op) => {
            let number = |t: &ThreadTerm| match t {
                ThreadTerm::Param(i) => Some(env[usize::from(*i)]),
                ThreadTerm::Constant(k) => cube.fixed.iter().position(|f| f == k).map(|i| i as u8),
            };
            match (number(a), number(b), op) {
                (Some(a), Some(b), Comparison::Eq) => a == b,
                (Some(a), Some(b), Comparison::Ne) => a != b,
                (Some(a), Some(b), _) => {
                    let known = |x: u8| usize::from(x) < cube.threads();
                    known(a) && known(b) && cube.before[usize::from(a)] & 1 << b != 0
                        || (a == b && *op == Comparison::Le)
                }
                _ => false,
            }
        }
        Lit::Number(parts, c, op, _) if parts.is_empty() => match op {
            crate::lin::Op::Le => *c <= 0,
            crate::lin::Op::Lt => *c < 0,
            crate::lin::Op::Eq => *c == 0,
            crate::lin::Op::Ne => *c != 0,
        },
        Lit::In(..) | Lit::IsThread(..) | Lit::Same(..) | Lit::Number(..) => false,
    })
}
