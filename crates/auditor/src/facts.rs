//! What a condition speaks of.

mod threads;

pub use threads::threads_seen;

use std::collections::BTreeSet;
use wattle_model::Expr;
use wattle_model::instance::Fact;

/// Every fact of a condition, those in indices too.
pub fn for_each_fact<'e>(e: &'e Expr<Fact>, visit: &mut dyn FnMut(&'e Fact)) {
    let mut inner = Vec::new();
    e.for_each_atom(&mut |fact| {
        visit(fact);
        if let Fact::CellAt { index, .. } = fact {
            inner.push(&**index);
        }
    });
    for index in inner {
        for_each_fact(index, visit);
    }
}

/// The cells that a condition may look at.
pub fn cells_seen(e: &Expr<Fact>) -> BTreeSet<usize> {
    let mut cells = BTreeSet::new();
    for_each_fact(e, &mut |fact| match fact {
        Fact::Cell(c) | Fact::Seen(_, c) => cells.extend([c.index()]),
        Fact::CellAt { base, length, .. } => {
            cells.extend(base.index()..base.index() + *length as usize);
        }
        Fact::Register(..) | Fact::At(..) => {}
    });
    cells
}
