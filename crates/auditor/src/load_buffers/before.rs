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
//! Store, send, block, lock and unlock need that no other thread holds the lock; so does a load under
//! SC. (A load served by the thread's own store waits with store buffers too. What a thread does while
//! another holds the lock depends on nothing but itself and could have come before the lock was taken,
//! so leaving that out adds no state.)
//!
//! After the snapshot nothing is sent, nothing waits, and a store leaves memory alone. Losing a sent
//! or hidden message starts from something the same configuration covers. Under SC a load reads
//! memory, a store writes it, and there are no messages.
//!
//! A thread that is not listed may have taken a step too. Before it the thread has whatever buffer it
//! likes; it is enough to look at the empty one, from which all that has no own message is covered,
//! and from there on what loses an own message is a predecessor of its own. Of such steps only those
//! matter that change memory where something is asked of it, or give the lock back.

#[cfg(test)]
mod tests;
use super::super::automata::{Automata, Effect, Transition, require};
use wattle_evidence::certificate::{
    LoadBufferConfig, LoadBufferMessage, LoadBufferThread, LocalState,
};
use wattle_memory::MemoryModel;
use wattle_model::{CellId, Roles, ThreadId};

pub fn predecessors(
    model: MemoryModel,
    automata: &Automata,
    roles: &Roles,
    config: &LoadBufferConfig,
) -> Vec<LoadBufferConfig> {
    let mut out = Vec::new();
    if config.after_snapshot {
        let mut before = config.clone();
        before.after_snapshot = false;
        out.push(before);
    }
    for (i, thread) in config.threads.iter().enumerate() {
        for transition in automata.into(thread.role.index(), &thread.local) {
            if model == MemoryModel::Sc {
                at_once(automata, config, i, transition, &mut out);
            } else {
                step(automata, config, i, transition, &mut out);
            }
        }
        if model != MemoryModel::Sc {
            lose(automata, config, i, &mut out);
            send(automata, config, i, &mut out);
        }
    }
    for role in roles.all() {
        let listed = config.threads.iter().any(|t| t.role.index() == role);
        if roles.is_open(role) || !listed {
            for transition in &automata.threads[role].transitions {
                unlisted(automata, config, role, transition, &mut out);
            }
        }
    }
    out
}

/// A thread of the role that is not listed took the step.
fn unlisted(
    automata: &Automata,
    config: &LoadBufferConfig,
    role: usize,
    transition: &Transition,
    out: &mut Vec<LoadBufferConfig>,
) {
    let asked = |c: &CellId| config.memory[c.index()].is_some();
    let matters = match &transition.effect {
        Effect::Store(cell, _) => asked(cell),
        Effect::Block { left, .. } => left.keys().any(asked),
        Effect::Unlock => config.others_unlocked,
        Effect::Nothing | Effect::Load(..) | Effect::Wait | Effect::Lock => false,
    };
    if !matters || config.after_snapshot || (config.others_unlocked && transition.to.holds) {
        return;
    }
    let mut before = config.clone();
    before.threads.push(LoadBufferThread {
        role: ThreadId::new(role),
        local: transition.from.certified(),
        buffer: Vec::new(),
    });
    let me = before.threads.len() - 1;
    if on_memory(automata, &mut before, me, &transition.effect) {
        out.push(before);
    }
}

/// Turns round what the step does to memory and the lock; `false` if it cannot have led here.
fn on_memory(
    automata: &Automata,
    before: &mut LoadBufferConfig,
    me: usize,
    effect: &Effect,
) -> bool {
    if let Effect::Nothing | Effect::Load(..) | Effect::Wait = effect {
        return true;
    }
    if !may_access(automata, before, me) {
        return false;
    }
    match effect {
        Effect::Store(cell, value) => {
            let written = require(&mut before.memory, *cell, *value);
            before.memory[cell.index()] = None;
            written
        }
        Effect::Block { found, left } => {
            let mut agrees = (left.iter()).all(|(c, v)| require(&mut before.memory, *c, *v));
            left.keys().for_each(|c| before.memory[c.index()] = None);
            agrees &= (found.iter()).all(|(c, v)| require(&mut before.memory, *c, *v));
            agrees
        }
        Effect::Nothing | Effect::Load(..) | Effect::Wait | Effect::Lock | Effect::Unlock => true,
    }
}

/// Leaves out that somebody else holds the lock; `false` if one listed does.
fn may_access(automata: &Automata, config: &mut LoadBufferConfig, me: usize) -> bool {
    if !automata.uses_lock {
        return true;
    }
    config.others_unlocked = true;
    let holds = |t: &LoadBufferThread| matches!(t.local, LocalState::At { holds: true, .. });
    let mut others = config.threads.iter().enumerate().filter(|(i, _)| *i != me);
    !others.any(|(_, t)| holds(t))
}

/// A listed thread took a step under SC.
fn at_once(
    automata: &Automata,
    config: &LoadBufferConfig,
    i: usize,
    transition: &Transition,
    out: &mut Vec<LoadBufferConfig>,
) {
    let mut before = config.clone();
    before.threads[i].local = transition.from.certified();
    let possible = match &transition.effect {
        Effect::Load(cell, value) => {
            may_access(automata, &mut before, i) && require(&mut before.memory, *cell, *value)
        }
        effect @ (Effect::Nothing
        | Effect::Store(..)
        | Effect::Wait
        | Effect::Block { .. }
        | Effect::Lock
        | Effect::Unlock) => on_memory(automata, &mut before, i, effect),
    };
    if possible {
        out.push(before);
    }
}

fn lose(automata: &Automata, config: &LoadBufferConfig, i: usize, out: &mut Vec<LoadBufferConfig>) {
    let LoadBufferThread {
        role,
        local,
        buffer,
    } = &config.threads[i];
    for cell in (0..automata.values.len()).map(CellId::new) {
        if own(buffer, cell).is_none() && automata.may_be_pending(local, role.index(), cell) {
            let mut before = config.clone();
            let lost = LoadBufferMessage::Own { cell, value: None };
            before.threads[i].buffer.insert(0, lost);
            out.push(before);
        }
    }
}

fn send(automata: &Automata, config: &LoadBufferConfig, i: usize, out: &mut Vec<LoadBufferConfig>) {
    if config.after_snapshot {
        return;
    }
    if let Some(LoadBufferMessage::Sent { cell, value }) = config.threads[i].buffer.last() {
        let mut before = config.clone();
        before.threads[i].buffer.pop();
        if may_access(automata, &mut before, i) && require(&mut before.memory, *cell, *value) {
            out.push(before);
        }
    }
}

/// A listed thread took a step under TSO.
fn step(
    automata: &Automata,
    config: &LoadBufferConfig,
    i: usize,
    transition: &Transition,
    out: &mut Vec<LoadBufferConfig>,
) {
    let mut before = config.clone();
    before.threads[i].local = transition.from.certified();
    let buffer = &config.threads[i].buffer;
    match &transition.effect {
        Effect::Nothing => out.push(before),
        Effect::Load(cell, value) => {
            match own(buffer, *cell) {
                Some(n) => {
                    let LoadBufferMessage::Own { value: known, .. } = buffer[n] else {
                        return;
                    };
                    if known.is_some_and(|k| k != *value) {
                        return;
                    }
                    let (cell, value) = (*cell, Some(*value));
                    before.threads[i].buffer[n] = LoadBufferMessage::Own { cell, value };
                }
                None => {
                    let (cell, value) = (*cell, *value);
                    let read = LoadBufferMessage::Sent { cell, value };
                    if buffer.first() != Some(&read) {
                        before.threads[i].buffer.insert(0, read);
                    }
                }
            }
            out.push(before);
        }
        Effect::Store(cell, value) => {
            let newest = before.threads[i].buffer.pop();
            let Some(LoadBufferMessage::Own { cell: c, value: k }) = newest else {
                return;
            };
            if c != *cell || k.is_some_and(|k| k != *value) {
                return;
            }
            if !config.after_snapshot && !on_memory(automata, &mut before, i, &transition.effect) {
                return;
            }
            let LoadBufferThread { role, local, .. } = &before.threads[i];
            if automata.may_be_pending(local, role.index(), *cell) {
                for n in 0..=before.threads[i].buffer.len() {
                    let mut hidden = before.clone();
                    let own = LoadBufferMessage::Own {
                        cell: *cell,
                        value: None,
                    };
                    hidden.threads[i].buffer.insert(n, own);
                    out.push(hidden);
                }
            }
            out.push(before);
        }
        effect @ (Effect::Wait | Effect::Block { .. } | Effect::Lock | Effect::Unlock) => {
            let empty = buffer.is_empty() && !config.after_snapshot;
            if empty && on_memory(automata, &mut before, i, effect) {
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
