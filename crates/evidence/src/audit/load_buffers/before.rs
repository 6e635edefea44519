//! The rules of the load-buffer machine turned round: what may come just before something that a
//! configuration covers, as far as the configuration does not cover it anyway.
//!
//! Forward, for a thread with buffer `w` (oldest message first):
//!
//! | rule | change |
//! |---|---|
//! | store v to x | memory x = v, `w` becomes `w·own(x,v)`; an own x in `w` is hidden from then on |
//! | send x | `w` becomes `w·sent(x, memory x)` |
//! | lose | `m·w` becomes `w` |
//! | load v from x | the own x in `w` is v; or there is none and `w` begins with `sent(x,v)` |
//! | fence, block, lock, unlock | `w` is empty |
//!
//! After the snapshot nothing is sent, nothing waits, and a store leaves memory alone. Losing a sent
//! or hidden message starts from something the same configuration covers.

use super::unfold::{Alone, Effect, Transition};
use crate::certificate::{LoadBufferConfig, LoadBufferMessage, LocalState};
use wattle_model::CellId;

pub fn predecessors(alone: &Alone, config: &LoadBufferConfig) -> Vec<LoadBufferConfig> {
    let mut out = Vec::new();
    if config.after_snapshot {
        let mut before = config.clone();
        before.after_snapshot = false;
        out.push(before);
    }
    for (t, thread) in alone.threads.iter().enumerate() {
        match &config.locals[t] {
            at @ LocalState::At { .. } => {
                for transition in thread.into.get(at).into_iter().flatten() {
                    step(alone, config, t, transition, &mut out);
                }
            }
            open => {
                for transition in &thread.transitions {
                    if super::local_covers(open, &transition.to.certified()) {
                        step(alone, config, t, transition, &mut out);
                    }
                }
            }
        }
        lose(alone, config, t, &mut out);
        send(config, t, &mut out);
    }
    out
}

fn lose(alone: &Alone, config: &LoadBufferConfig, t: usize, out: &mut Vec<LoadBufferConfig>) {
    for cell in (0..alone.values.len()).map(CellId::new) {
        if own(&config.buffers[t], cell).is_none() && may_be_own(alone, &config.locals[t], t, cell)
        {
            let mut before = config.clone();
            before.buffers[t].insert(0, LoadBufferMessage::Own { cell, value: None });
            out.push(before);
        }
    }
}

fn send(config: &LoadBufferConfig, t: usize, out: &mut Vec<LoadBufferConfig>) {
    if config.after_snapshot {
        return;
    }
    if let Some(LoadBufferMessage::Sent { cell, value }) = config.buffers[t].last() {
        let mut before = config.clone();
        before.buffers[t].pop();
        if require(&mut before, *cell, *value) {
            out.push(before);
        }
    }
}

fn step(
    alone: &Alone,
    config: &LoadBufferConfig,
    t: usize,
    transition: &Transition,
    out: &mut Vec<LoadBufferConfig>,
) {
    let mut before = config.clone();
    before.locals[t] = transition.from.certified();
    let empty = config.buffers[t].is_empty();
    match &transition.effect {
        Effect::Nothing => out.push(before),
        Effect::Load(cell, value) => {
            match own(&config.buffers[t], *cell) {
                Some(i) => {
                    let LoadBufferMessage::Own { value: known, .. } = config.buffers[t][i] else {
                        return;
                    };
                    if known.is_some_and(|k| k != *value) {
                        return;
                    }
                    let (cell, value) = (*cell, Some(*value));
                    before.buffers[t][i] = LoadBufferMessage::Own { cell, value };
                }
                None => {
                    let (cell, value) = (*cell, *value);
                    let read = LoadBufferMessage::Sent { cell, value };
                    if config.buffers[t].first() != Some(&read) {
                        before.buffers[t].insert(0, read);
                    }
                }
            }
            out.push(before);
        }
        Effect::Store(cell, value) => {
            let Some(LoadBufferMessage::Own {
                cell: c,
                value: known,
            }) = before.buffers[t].pop()
            else {
                return;
            };
            if c != *cell || known.is_some_and(|k| k != *value) {
                return;
            }
            if !config.after_snapshot {
                if alone.uses_lock && !nobody_else_holds(&mut before, t) {
                    return;
                }
                if !require(&mut before, *cell, *value) {
                    return;
                }
                before.memory[cell.index()] = None;
            }
            if may_be_own(alone, &before.locals[t], t, *cell) {
                for i in 0..=before.buffers[t].len() {
                    let mut hidden = before.clone();
                    let own = LoadBufferMessage::Own {
                        cell: *cell,
                        value: None,
                    };
                    hidden.buffers[t].insert(i, own);
                    out.push(hidden);
                }
            }
            out.push(before);
        }
        _ if !empty || config.after_snapshot => {}
        Effect::Wait => out.push(before),
        Effect::Lock | Effect::Unlock => {
            if nobody_else_holds(&mut before, t) {
                out.push(before);
            }
        }
        Effect::Block { found, left } => {
            if alone.uses_lock && !nobody_else_holds(&mut before, t) {
                return;
            }
            let written = left.iter().all(|(c, v)| require(&mut before, *c, *v));
            left.keys().for_each(|c| before.memory[c.index()] = None);
            if written && found.iter().all(|(c, v)| require(&mut before, *c, *v)) {
                out.push(before);
            }
        }
    }
}

/// Makes the configuration ask for this value; `false` if it asks for another.
fn require(config: &mut LoadBufferConfig, cell: CellId, value: i64) -> bool {
    let known = &mut config.memory[cell.index()];
    let agrees = known.is_none_or(|k| k == value);
    *known = Some(value);
    agrees
}

/// Leaves out that another thread holds the lock; `false` if one does.
fn nobody_else_holds(config: &mut LoadBufferConfig, t: usize) -> bool {
    for (u, local) in config.locals.iter_mut().enumerate() {
        match local {
            _ if u == t => {}
            LocalState::At { holds: true, .. } => return false,
            LocalState::Any => *local = LocalState::WithoutLock,
            LocalState::At { .. } | LocalState::WithoutLock => {}
        }
    }
    true
}

fn own(buffer: &[LoadBufferMessage], cell: CellId) -> Option<usize> {
    let is_own =
        |m: &LoadBufferMessage| matches!(m, LoadBufferMessage::Own { cell: c, .. } if *c == cell);
    buffer.iter().position(is_own)
}

/// Whether the thread can have an own message of the cell there at all: only if some way to that
/// local state stores to the cell with nothing on the way that waits for an empty buffer.
fn may_be_own(alone: &Alone, local: &LocalState, t: usize, cell: CellId) -> bool {
    let pending = &alone.threads[t].pending;
    match local {
        at @ LocalState::At { .. } => pending.get(at).is_some_and(|cells| cells.contains(&cell)),
        _ => pending.values().any(|cells| cells.contains(&cell)),
    }
}
