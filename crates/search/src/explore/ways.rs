//! How a state was reached.

use super::{Search, for_machine};
use crate::batch::Batch;
use crate::crew::Share;
use crate::expand::{Expand, Known, MOST_THREADS, Plain, Remembering};
use crate::store::ROOT;
use crate::tree::Tree;

impl Search<'_, '_> {
    /// The states on the way to one, from a first one on.
    pub(crate) fn way_to(&self, number: u32) -> Option<Vec<Vec<u64>>> {
        let mut numbers = vec![number];
        let mut at = number;
        while self.parent(at) != ROOT {
            at = self.parent(at);
            numbers.push(at);
        }
        numbers.reverse();
        match &self.tree {
            None => Some(
                numbers
                    .iter()
                    .map(|n| self.store.state(*n).to_vec())
                    .collect(),
            ),
            Some(tree) => for_machine!(self, unfold<>(tree, &numbers)),
        }
    }

    /// The same where states are not found by number: they are made again, as they were when they were found.
    fn unfold<E: Expand>(&self, tree: &Tree, numbers: &[u32]) -> Option<Vec<Vec<u64>>> {
        let alone = Share { number: 0, of: 1 };
        let mut expand = E::new(self.machine, self.order, alone);
        let mut notes = self.machine.notes();
        let mut batch = Batch::new(self.machine.words);
        let words = self.machine.words;
        let first = *numbers.first()? as usize;
        let mut states = vec![tree.roots.get(first * words..(first + 1) * words)?.to_vec()];
        let mut known = Known::NOTHING;
        for number in &numbers[1..] {
            let birth = tree.births.of(*number);
            batch.clear();
            batch.whole = birth.whole;
            if birth.whole {
                known = Known::NOTHING;
            }
            let (from, parent) = (states.last()?, [birth.parent]);
            // What cuts it short comes after what is looked for.
            let _ = expand.expand(
                self.machine,
                from,
                &parent,
                &[known],
                &mut notes,
                &mut batch,
            );
            let place = birth.place as usize;
            known = *batch.known.get(place)?;
            states.push(batch.state(place).to_vec());
        }
        Some(states)
    }
}
