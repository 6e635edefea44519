//! What may come before a store, where more stores to the cell are pending.

use super::predecessors;
use crate::automata::Automata;
use wattle_evidence::certificate::{BagOf, LocalState, MultisetConfig};
use wattle_evidence::{Control, Task};
use wattle_memory::MemoryModel;
use wattle_model::{LocationId, Roles};

/// The value stored last, if it is known, and the others with their numbers.
type Bag<'b> = (Option<i64>, &'b [(i64, u32)]);

#[test]
fn whatever_was_stored_last_is_among_the_others_now() {
    let text = "shared x: 0..2; thread p { x = 1; x = 2; a: skip; }";
    let program = wattle_syntax::wtl::parse(text).program.expect("it parses");
    let instance = program.instance().expect("an instance");
    let task = Task {
        instance: &instance,
        model: MemoryModel::Tso,
        question: None,
        deadlock: false,
    };
    let roles = Roles::fixed(&instance);
    let automata = Automata::unfold(&task, &roles, &Control::unlimited()).expect("few states");
    let thread = &instance.threads[0];
    let next = |l: LocationId| thread.step(thread.outgoing(l)[0]).target;
    let between = next(thread.entry);
    let after = next(between);
    let config = |location: LocationId, bag: Option<Bag<'_>>| {
        let bag = bag.map(|(last, others)| BagOf {
            last,
            others: others.to_vec(),
        });
        MultisetConfig {
            locals: vec![LocalState::At {
                location,
                registers: Vec::new(),
                holds: false,
                fault: None,
            }],
            memory: vec![None],
            bags: vec![vec![bag]],
        }
    };
    let cases: [(Bag<'_>, &[Option<Bag<'_>>]); 5] = [
        ((Some(2), &[]), &[None, Some((None, &[]))]),
        ((Some(1), &[]), &[]),
        (
            (None, &[(1, 1)]),
            &[Some((None, &[(1, 1)])), Some((Some(1), &[]))],
        ),
        (
            (None, &[(1, 2)]),
            &[Some((None, &[(1, 2)])), Some((Some(1), &[(1, 1)]))],
        ),
        (
            (Some(2), &[(1, 1), (2, 1)]),
            &[
                Some((None, &[(1, 1), (2, 1)])),
                Some((Some(1), &[(2, 1)])),
                Some((Some(2), &[(1, 1)])),
            ],
        ),
    ];
    for (now, earlier) in cases {
        let found: Vec<_> = predecessors(&automata, &config(after, Some(now))).collect();
        let wanted = earlier.iter().map(|bag| config(between, *bag));
        assert_eq!(found, wanted.collect::<Vec<_>>(), "{now:?}");
    }
}
