//! Configurations with load buffers, and their order.

use wattle_evidence::certificate::{
    LoadBufferConfig, LoadBufferMessage, LoadBufferThread, LoadBuffers,
};
use wattle_memory::automaton::{Automata, LocalId};
use wattle_model::{CellId, ThreadId};

use crate::local::Local;

/// One message of a load buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// Sent by memory: the cell had this value.
    Sent(CellId, i64),
    /// The thread's own store, the newest of its cell in the buffer; the value may be open.
    Own(CellId, Option<i64>),
}

/// A thread that a configuration knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub role: usize,
    pub at: LocalId,
    /// Oldest message first.
    pub buffer: Vec<Message>,
}

/// Stands for every configuration with this memory where it is given in which different threads play
/// the roles listed, in these local states, and with load buffers that have the same own messages in
/// the same order and these sent messages among others between them. Of threads that are not listed
/// it says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// In a predecessor the same threads have the same positions; new ones come last.
    pub threads: Vec<Listed>,
    pub memory: Vec<Option<i64>>,
    /// Nobody who is not listed holds the lock. Always true if nobody else could.
    pub others_unlocked: bool,
    /// After the snapshot of memory.
    pub after: bool,
}

impl Config {
    pub fn covers(&self, other: &Config, automata: &Automata) -> bool {
        self.after == other.after
            && self.threads.len() <= other.threads.len()
            && self
                .memory
                .iter()
                .zip(&other.memory)
                .all(|(a, b)| a.is_none() || a == b)
            // A holder can only be matched with one: then none is left over.
            && (!self.others_unlocked
                || other.others_unlocked && other.holders(automata) <= self.holders(automata))
            && embeds(&self.threads, &other.threads)
    }

    /// How many of those listed hold the lock.
    fn holders(&self, automata: &Automata) -> usize {
        let holds = |t: &&Listed| automata.threads[t.role].states[t.at as usize].holds;
        self.threads.iter().filter(holds).count()
    }
}

/// Whether every thread of `general` has a thread of its own in `special`.
fn embeds(general: &[Listed], special: &[Listed]) -> bool {
    at_once(general, special).unwrap_or_else(|| {
        // By thread of `special`: the thread of `general` that has it.
        let mut taken: Vec<Option<usize>> = vec![None; special.len()];
        (0..general.len()).all(|i| {
            let mut tried = vec![false; special.len()];
            place(general, special, i, &mut taken, &mut tried)
        })
    })
}

/// The answer if taking the first that fits does, or if nothing fits at all: nearly always.
fn at_once(general: &[Listed], special: &[Listed]) -> Option<bool> {
    let mut taken = 0u64;
    for thread in general {
        let mut fits = false;
        let mut free = (0..special.len().min(64)).filter(|j| {
            let covers = thread_covers(thread, &special[*j]);
            fits |= covers;
            covers && taken >> j & 1 == 0
        });
        match free.next() {
            Some(j) => taken |= 1 << j,
            None if !fits && special.len() <= 64 => return Some(false),
            None => return None,
        }
    }
    Some(true)
}

/// Finds a place for thread `i`, moving others if need be (augmenting paths).
fn place(
    general: &[Listed],
    special: &[Listed],
    i: usize,
    taken: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    for j in 0..special.len() {
        if tried[j] || !thread_covers(&general[i], &special[j]) {
            continue;
        }
        tried[j] = true;
        let free = match taken[j] {
            None => true,
            Some(other) => place(general, special, other, taken, tried),
        };
        if free {
            taken[j] = Some(i);
            return true;
        }
    }
    false
}

fn thread_covers(general: &Listed, special: &Listed) -> bool {
    general.role == special.role
        && general.at == special.at
        && buffer_covers(&general.buffer, &special.buffer)
}

/// Whether `special` has the own messages of `general`, and between them at least its messages.
fn buffer_covers(general: &[Message], special: &[Message]) -> bool {
    let mut rest = special.iter();
    for wanted in general {
        loop {
            let Some(have) = rest.next() else {
                return false;
            };
            match (wanted, have) {
                (Message::Own(c, v), Message::Own(d, w)) => {
                    if c == d && (v.is_none() || v == w) {
                        break;
                    }
                    return false;
                }
                // The next own message must wait until this sent one is found.
                (Message::Sent(..), Message::Own(..)) => return false,
                (Message::Sent(..), Message::Sent(..)) if wanted == have => break,
                (_, Message::Sent(..)) => {}
            }
        }
    }
    rest.all(|m| matches!(m, Message::Sent(..)))
}

/// The basis in the program's own terms: locations and registers instead of automaton states.
pub fn certificate<'c>(
    automata: &Automata,
    basis: impl Iterator<Item = &'c Config>,
) -> LoadBuffers {
    let message = |m: &Message| match *m {
        Message::Sent(cell, value) => LoadBufferMessage::Sent { cell, value },
        Message::Own(cell, value) => LoadBufferMessage::Own { cell, value },
    };
    let thread = |t: &Listed| LoadBufferThread {
        role: ThreadId::new(t.role),
        local: Local::At(t.at).certified(&automata.threads[t.role]),
        buffer: t.buffer.iter().map(message).collect(),
    };
    let configs = basis.map(|c| LoadBufferConfig {
        threads: c.threads.iter().map(thread).collect(),
        memory: c.memory.clone(),
        others_unlocked: c.others_unlocked,
        after_snapshot: c.after,
    });
    LoadBuffers {
        basis: configs.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::Message::{Own, Sent};
    use super::*;

    const X: CellId = CellId(0);
    const Y: CellId = CellId(1);

    #[test]
    fn sent_messages_are_a_subword_between_own_ones() {
        let general = [Sent(Y, 1), Own(X, None)];
        assert!(buffer_covers(
            &general,
            &[Sent(Y, 0), Sent(Y, 1), Own(X, Some(2)), Sent(X, 2)]
        ));
        assert!(!buffer_covers(&general, &[Own(X, Some(2)), Sent(Y, 1)]));
        assert!(!buffer_covers(&general, &[Sent(Y, 1)]));
        assert!(!buffer_covers(&[Sent(Y, 1)], &[Sent(Y, 1), Own(X, None)]));
        assert!(!buffer_covers(&[Own(X, Some(1))], &[Own(X, None)]));
    }
    #[test]
    fn every_thread_needs_one_of_its_own() {
        let thread = |buffer: &[Message]| Listed {
            role: 0,
            at: 0,
            buffer: buffer.to_vec(),
        };
        let (any, x) = (thread(&[]), thread(&[Sent(X, 1)]));
        let both = [any.clone(), x.clone()];
        // The first could take either; it must leave the second its own.
        assert!(embeds(&both, &[x.clone(), any.clone()]));
        assert!(embeds(&both, &[x.clone(), x.clone()]));
        assert!(!embeds(&both, &[any.clone(), any.clone()]));
        assert!(!embeds(&both, &[x]));
        assert!(embeds(&[], &[any]));
    }
}
