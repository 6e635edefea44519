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

use super::super::alone::{Alone, Effect, Transition, nobody_else_holds, require};
use crate::certificate::{LoadBufferConfig, LoadBufferMessage};
use wattle_model::CellId;

pub fn predecessors(alone: &Alone, config: &LoadBufferConfig) -> Vec<LoadBufferConfig> {
    let mut out = Vec::new();
    if config.after_snapshot {
        let mut before = config.clone();
        before.after_snapshot = false;
        out.push(before);
    }
    for t in 0..alone.threads.len() {
        for transition in alone.into(t, &config.locals[t]) {
            step(alone, config, t, transition, &mut out);
        }
        lose(alone, config, t, &mut out);
        send(config, t, &mut out);
    }
    out
}

fn lose(alone: &Alone, config: &LoadBufferConfig, t: usize, out: &mut Vec<LoadBufferConfig>) {
    for cell in (0..alone.values.len()).map(CellId::new) {
        if own(&config.buffers[t], cell).is_none()
            && alone.may_be_pending(&config.locals[t], t, cell)
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
        if require(&mut before.memory, *cell, *value) {
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
                if alone.uses_lock && !nobody_else_holds(&mut before.locals, t) {
                    return;
                }
                if !require(&mut before.memory, *cell, *value) {
                    return;
                }
                before.memory[cell.index()] = None;
            }
            if alone.may_be_pending(&before.locals[t], t, *cell) {
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
            if nobody_else_holds(&mut before.locals, t) {
                out.push(before);
            }
        }
        Effect::Block { found, left } => {
            if alone.uses_lock && !nobody_else_holds(&mut before.locals, t) {
                return;
            }
            let written = left
                .iter()
                .all(|(c, v)| require(&mut before.memory, *c, *v));
            left.keys().for_each(|c| before.memory[c.index()] = None);
            if written
                && found
                    .iter()
                    .all(|(c, v)| require(&mut before.memory, *c, *v))
            {
                out.push(before);
            }
        }
    }
}

fn own(buffer: &[LoadBufferMessage], cell: CellId) -> Option<usize> {
    let is_own =
        |m: &LoadBufferMessage| matches!(m, LoadBufferMessage::Own { cell: c, .. } if *c == cell);
    buffer.iter().position(is_own)
}
