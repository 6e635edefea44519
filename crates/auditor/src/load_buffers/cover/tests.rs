//! Who may hold the lock, where a basis says that nobody else does.

use super::{Branch, Cover};
use std::collections::BTreeMap;
use wattle_evidence::certificate::{LoadBufferConfig, LoadBufferThread, LocalState};
use wattle_model::{LocationId, ThreadId};

/// Threads of these roles, each holding the lock or not.
fn config(threads: &[(usize, bool)], others_unlocked: bool) -> LoadBufferConfig {
    let thread = |(role, holds): &(usize, bool)| LoadBufferThread {
        role: ThreadId::new(*role),
        local: LocalState::At {
            location: LocationId::new(0),
            registers: Vec::new(),
            holds: *holds,
            fault: None,
        },
        buffer: Vec::new(),
    };
    LoadBufferConfig {
        threads: threads.iter().map(thread).collect(),
        memory: Vec::new(),
        others_unlocked,
        after_snapshot: false,
    }
}

#[test]
fn nobody_else_holds_the_lock() {
    let covers = |may_hold: &[(bool, bool)], general: &LoadBufferConfig, special: &_| {
        let may_hold = may_hold.iter().enumerate();
        let cover = Cover {
            names: BTreeMap::new(),
            branches: vec![Branch::default()],
            may_hold: may_hold.map(|(r, m)| (ThreadId::new(r), *m)).collect(),
        };
        cover.is_covered(general, special)
    };
    let (none, one) = (config(&[], true), config(&[(0, false)], true));
    let (yes, never, many) = ((true, false), (false, false), (true, true));
    // Whoever is not listed may hold it, if anybody of the role can.
    assert!(!covers(&[yes], &none, &config(&[], false)));
    assert!(covers(&[never], &none, &config(&[], false)));
    assert!(covers(&[yes], &none, &config(&[], true)));
    assert!(!covers(&[yes, yes], &one, &config(&[(0, false)], false)));
    assert!(covers(&[yes, never], &one, &config(&[(0, false)], false)));
    assert!(!covers(&[many], &one, &config(&[(0, false)], false)));
    // One that is listed holds it or does not.
    assert!(covers(&[yes], &none, &config(&[(0, false)], false)));
    assert!(!covers(&[yes], &none, &config(&[(0, true)], false)));
    assert!(!covers(&[yes], &none, &config(&[(0, true)], true)));
    let held = config(&[(0, true)], true);
    assert!(covers(&[yes], &held, &config(&[(0, true)], false)));
    assert!(!covers(&[yes, yes], &held, &config(&[(0, true)], false)));
    assert!(covers(
        &[yes, yes],
        &held,
        &config(&[(0, true), (1, false)], false)
    ));
    assert!(!covers(
        &[yes, yes],
        &one,
        &config(&[(0, false), (1, true)], false)
    ));
    // A basis that says nothing of others covers whatever they do.
    let silent = config(&[(0, false)], false);
    assert!(covers(
        &[many],
        &silent,
        &config(&[(0, false), (0, true)], false)
    ));
    assert!(covers(&[many], &silent, &config(&[(0, false)], true)));
}
