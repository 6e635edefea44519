//! The rules of the machine with multiset buffers turned round.
//!
//! Forward, per thread and cell, a bag is nothing or a last-added value `l` with others `o`:
//!
//! | rule | change |
//! |---|---|
//! | store v | nothing becomes `v, {}`; `l, o` becomes `v, o + {l}` |
//! | drain an other w | `l, o + {w}` becomes `l, o`; memory is w |
//! | drain the last | `l, {}` becomes nothing; memory is l |
//! | load v | the last is v; or nothing is pending and memory is v |
//! | fence, block, lock, unlock | nothing is pending of any cell |
//!
//! Drains, loads, blocks, lock and unlock need that no other thread holds the lock.

#[cfg(test)]
mod tests;
use super::super::automata::{Automata, Effect, Transition, nobody_else_holds, require};
use wattle_evidence::certificate::{BagOf, MultisetConfig};
use wattle_model::CellId;

pub fn predecessors(
    automata: &Automata,
    config: &MultisetConfig,
) -> impl Iterator<Item = MultisetConfig> {
    let mut out = Vec::new();
    for t in 0..automata.threads.len() {
        for transition in automata.into(t, &config.locals[t]) {
            step(automata, config, t, transition, &mut out);
        }
        for cell in (0..automata.values.len()).map(CellId::new) {
            drain(automata, config, t, cell, &mut out);
        }
    }
    out.into_iter()
}

fn drain(
    automata: &Automata,
    config: &MultisetConfig,
    t: usize,
    cell: CellId,
    out: &mut Vec<MultisetConfig>,
) {
    let mut before = config.clone();
    let possible = automata.may_be_pending(&config.locals[t], t, cell);
    if !possible || automata.uses_lock && !nobody_else_holds(&mut before.locals, t) {
        return;
    }
    let seen = before.memory[cell.index()].take();
    let bag = &mut before.bags[t][cell.index()];
    match (bag, seen) {
        (bag @ None, last) => {
            let others = Vec::new();
            *bag = Some(BagOf { last, others });
        }
        (Some(bag), Some(v)) => match bag.others.iter_mut().find(|(w, _)| *w == v) {
            Some((_, n)) => *n += 1,
            None => bag.others.push((v, 1)),
        },
        // One more pending store than the configuration asks for: covered by itself.
        (Some(_), None) => return,
    }
    out.push(before);
}

fn step(
    automata: &Automata,
    config: &MultisetConfig,
    t: usize,
    transition: &Transition,
    out: &mut Vec<MultisetConfig>,
) {
    let mut before = config.clone();
    before.locals[t] = transition.from.certified();
    match &transition.effect {
        Effect::Nothing => out.push(before),
        Effect::Load(cell, value) => {
            if automata.uses_lock && !nobody_else_holds(&mut before.locals, t) {
                return;
            }
            let agrees = match &mut before.bags[t][cell.index()] {
                None => require(&mut before.memory, *cell, *value),
                Some(bag) => {
                    let agrees = bag.last.is_none_or(|l| l == *value);
                    bag.last = Some(*value);
                    agrees
                }
            };
            if agrees {
                out.push(before);
            }
        }
        Effect::Store(cell, value) => {
            let Some(bag) = &config.bags[t][cell.index()] else {
                return;
            };
            if bag.last.is_some_and(|l| l != *value) {
                return;
            }
            if bag.others.is_empty() {
                before.bags[t][cell.index()] = None;
                out.push(before.clone());
            }
            if !automata.may_be_pending(&before.locals[t], t, *cell) {
                return;
            }
            let mut earlier = vec![BagOf {
                last: None,
                others: bag.others.clone(),
            }];
            for (i, (v, _)) in bag.others.iter().enumerate() {
                let mut others = bag.others.clone();
                others[i].1 -= 1;
                others.retain(|(_, n)| *n > 0);
                earlier.push(BagOf {
                    last: Some(*v),
                    others,
                });
            }
            for bag in earlier {
                before.bags[t][cell.index()] = Some(bag);
                out.push(before.clone());
            }
        }
        _ if config.bags[t].iter().any(Option::is_some) => {}
        Effect::Wait => out.push(before),
        Effect::Lock | Effect::Unlock => {
            if nobody_else_holds(&mut before.locals, t) {
                out.push(before);
            }
        }
        Effect::Block { found, left } => {
            if automata.uses_lock && !nobody_else_holds(&mut before.locals, t) {
                return;
            }
            let memory = &mut before.memory;
            let written = left.iter().all(|(c, v)| require(memory, *c, *v));
            left.keys().for_each(|c| memory[c.index()] = None);
            if written && found.iter().all(|(c, v)| require(memory, *c, *v)) {
                out.push(before);
            }
        }
    }
}
