//! The threads that a condition speaks of.

use super::for_each_fact;
use std::collections::BTreeSet;
use wattle_model::instance::Fact;
use wattle_model::{Expr, ThreadId};

pub fn threads_seen(e: &Expr<Fact>) -> BTreeSet<ThreadId> {
    let mut threads = BTreeSet::new();
    for_each_fact(e, &mut |fact| match fact {
        Fact::Register(t, _) | Fact::At(t, _) | Fact::Seen(t, _) => threads.extend([*t]),
        Fact::Cell(_) | Fact::CellAt { .. } => {}
    });
    threads
}
