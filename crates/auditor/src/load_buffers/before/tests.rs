//! What may come before a store, where an older one to the cell is hidden behind it.

use super::predecessors;
use crate::automata::Automata;
use wattle_evidence::certificate::{
    LoadBufferConfig, LoadBufferMessage, LoadBufferThread, LocalState,
};
use wattle_evidence::{Control, Task};
use wattle_memory::MemoryModel;
use wattle_model::{CellId, LocationId, Roles, ThreadId};

#[test]
fn an_older_store_may_be_hidden_anywhere() {
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
    let config = |location: LocationId, buffer: &[LoadBufferMessage]| LoadBufferConfig {
        threads: vec![LoadBufferThread {
            role: ThreadId::new(0),
            local: LocalState::At {
                location,
                registers: Vec::new(),
                holds: false,
                fault: None,
            },
            buffer: buffer.to_vec(),
        }],
        memory: vec![None],
        others_unlocked: false,
        after_snapshot: false,
    };
    let cell = CellId::new(0);
    let own = |value: Option<i64>| LoadBufferMessage::Own { cell, value };
    let sent = LoadBufferMessage::Sent { cell, value: 0 };
    let hidden = own(None);
    let cases: [(&[LoadBufferMessage], &[&[LoadBufferMessage]]); 3] = [
        (&[own(Some(2))], &[&[hidden], &[]]),
        (&[own(Some(1))], &[]),
        (
            &[sent, own(None)],
            &[&[hidden, sent], &[sent, hidden], &[sent]],
        ),
    ];
    for (now, earlier) in cases {
        let found = predecessors(MemoryModel::Tso, &automata, &roles, &config(after, now));
        let found = found.into_iter().filter(|c| *c != config(after, now));
        let wanted = earlier.iter().map(|buffer| config(between, buffer));
        assert_eq!(
            found.collect::<Vec<_>>(),
            wanted.collect::<Vec<_>>(),
            "{now:?}"
        );
    }
}
