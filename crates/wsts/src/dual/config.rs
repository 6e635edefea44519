//! Configurations with load buffers, and their order.

use crate::local::Local;
use wattle_evidence::certificate::{LoadBufferConfig, LoadBufferMessage, LoadBuffers};
use wattle_memory::automaton::Automata;
use wattle_model::CellId;

/// One message of a load buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// Sent by memory: the cell had this value.
    Sent(CellId, i64),
    /// The thread's own store, the newest of its cell in the buffer; the value may be open.
    Own(CellId, Option<i64>),
}

/// Stands for every configuration with these local states, this memory where it is given, and load
/// buffers that have the same own messages in the same order and these sent messages among others
/// between them. Buffers are written oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub locals: Vec<Local>,
    pub memory: Vec<Option<i64>>,
    pub buffers: Vec<Vec<Message>>,
    /// After the snapshot of memory.
    pub after: bool,
}

impl Config {
    pub fn covers(&self, other: &Config, automata: &Automata) -> bool {
        self.after == other.after
            && self
                .memory
                .iter()
                .zip(&other.memory)
                .all(|(a, b)| a.is_none() || a == b)
            && self
                .buffers
                .iter()
                .zip(&other.buffers)
                .all(|(a, b)| buffer_covers(a, b))
            && (self.locals.iter().zip(&other.locals))
                .zip(&automata.threads)
                .all(|((a, b), automaton)| a.covers(*b, automaton))
    }
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
    let configs = basis.map(|c| LoadBufferConfig {
        locals: (c.locals.iter().zip(&automata.threads))
            .map(|(l, automaton)| l.certified(automaton))
            .collect(),
        memory: c.memory.clone(),
        buffers: c
            .buffers
            .iter()
            .map(|b| {
                b.iter()
                    .map(|m| match *m {
                        Message::Sent(cell, value) => LoadBufferMessage::Sent { cell, value },
                        Message::Own(cell, value) => LoadBufferMessage::Own { cell, value },
                    })
                    .collect()
            })
            .collect(),
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
}
