//! PSO: a store's drain, met before the step that made the store. It serves every open read of other
//! threads but those that a store in the reader's own buffer hides it from; its value is whatever the
//! step will turn out to have stored.

use crate::build::{Becomes, Builder};
use crate::compile::Compiled;
use crate::cube::{Cube, THREADS};
use crate::memory::{Events, Part, Pending};
use crate::pre::{Predecessor, Predecessors, may_join};
use crate::slot::Slot;

/// Stands for a drain where a transition's number is expected.
pub const DRAIN: usize = usize::MAX;

/// Every drain by a thread of the cube or a new one that serves somebody else's open read.
pub fn drains(compiled: &Compiled<'_>, cube: &Cube, out: &mut Predecessors) {
    let mut cells: Vec<Slot> = cube
        .memory
        .events
        .iter()
        .flat_map(|e| &e.parts)
        .map(|p| p.cell)
        .collect();
    cells.sort_unstable();
    cells.dedup();
    if cells.is_empty() {
        return;
    }
    let mut base = cube.clone();
    base.doms.clear();
    base.rels.clear();
    base.ints.clear();
    base.reals.clear();
    for cell in cells {
        for t in 0..cube.threads() as u8 {
            by(compiled, cube, base.clone(), cell, t, out);
        }
        for fixed in 0..=compiled.constants {
            if !may_join(compiled, cube, fixed) {
                continue;
            }
            if cube.threads() >= THREADS {
                out.gave_up = true;
                return;
            }
            let mut joined = base.clone();
            let t = joined.add_thread(fixed);
            by(compiled, cube, joined, cell, t, out);
        }
    }
}

fn by(
    compiled: &Compiled<'_>,
    cube: &Cube,
    base: Cube,
    cell: Slot,
    thread: u8,
    out: &mut Predecessors,
) {
    // The thread's own reads may come from a newer store of its own; they wait for the step.
    let foreign = |p: &Part| p.cell == cell && p.reader != thread && !p.own;
    let events = cube.memory.events.iter().enumerate();
    let choosing: Vec<usize> = events
        .filter(|(_, e)| e.parts.iter().any(foreign))
        .map(|(i, _)| i)
        .collect();
    let pending = cube.memory.pending.len();
    if pending >= 200 {
        out.gave_up = true;
        return;
    }
    for choice in 1u32..1 << choosing.len().min(20) {
        let (mut served, mut hidden): (Events, Events) = (0, 0);
        for (i, e) in choosing.iter().enumerate() {
            match choice >> i & 1 {
                1 => served |= 1 << e,
                _ => hidden |= 1 << e,
            }
        }
        let Ok(mut b) = Builder::new(compiled, base.clone(), None) else {
            out.gave_up = true;
            return;
        };
        let memory = &mut b.cube.memory;
        let bound = memory.write_first[usize::from(thread)];
        let mut after = bound | memory.cell_first(cell);
        for (e, open) in memory.events.iter().enumerate() {
            if served & 1 << e != 0 {
                after |= open.after;
            }
        }
        if !memory.hide(hidden, &foreign) || hidden != 0 && !compiled.buffers(cell.array()) {
            continue;
        }
        memory.set_cell_first(cell, after);
        memory.pending.push(Pending {
            thread,
            cell,
            after,
            newest: served & bound != 0,
        });
        let becomes = |s: Slot| {
            let (e, p) = s.as_read()?;
            let part = cube.memory.events[e].parts[p];
            let taken = foreign(&part) && served & 1 << e != 0;
            taken.then_some(Becomes::Slot(Slot::pending(pending)))
        };
        if b.substitute(cube, &becomes).is_err() {
            continue;
        }
        let joined = b.cube.fixed[cube.threads()..].to_vec();
        if let Ok((cube, kept)) = b.finish() {
            out.list.push(Predecessor {
                cube,
                transition: DRAIN,
                args: vec![thread],
                joined,
                kept,
            });
        }
    }
}
