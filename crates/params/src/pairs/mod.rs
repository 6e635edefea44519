//! Forward: the set of views of two threads (after view abstraction: P. Abdulla, F. Haziza, L. Holík,
//! All for the price of few, 2013).
//!
//! A *view* is what two threads and memory look like: their cells, their buffers, scalars; of the other
//! threads only those are there that a cell of the two or a scalar names, and only by their place in the
//! order of threads. Numbers are known by their order too, among each other and with the constants of
//! the system. If the set of views contains the initial ones and is closed under what one of the two or
//! a third thread does, every two threads of every state look like a view; if no view is bad, nothing
//! is, for any number of threads.
//!
//! We deviate: cells that hold threads and numbers, the order of threads and buffers are in the views; a
//! row of equal entries in a buffer counts as one or more; of a thread that a step of another merely
//! reads nothing is known, unless all else failed: then it is a third thread (`precise`), or views have
//! of every thread that is named the cells with few values that others look at (`named`): so nodes
//! of a queue may change their owner.

pub mod assume;
pub mod forget;
pub mod merge;
pub mod saturate;
pub mod shape;
pub mod state;
pub mod step;
pub mod witness;

use crate::compile::Compiled;
use saturate::{Reach, Views, saturate};
use shape::Shape;
use state::Packed;
use wattle_evidence::certificate::views;
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

/// A closed set of views none of which is bad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    pub views: Vec<Packed>,
    anchors: Vec<i64>,
    forget: Vec<forget::Forget>,
    kept: Vec<u16>,
    witness: Option<witness::Witness>,
    precise: bool,
}

/// Why there is no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Such systems are not treated.
    Foreign,
    /// A view is bad; perhaps it is none of a state.
    Bad,
    TooMany,
    /// A buffer may be too long.
    Unbounded,
    Stopped,
}

/// Looks for a closed set of views.
pub fn prove(
    compiled: &Compiled<'_>,
    reach: Reach,
    stop: &dyn Fn() -> bool,
) -> Result<Proof, Failure> {
    let shape = Shape::new(compiled, reach.named, reach.witness).ok_or(Failure::Foreign)?;
    if reach.named && shape.kept.is_empty() {
        // The same as without.
        return Err(Failure::Bad);
    }
    let mut views = Vec::new();
    for solids in [1, 2] {
        views = match saturate(compiled, &shape, solids, reach, stop) {
            Views::Closed(views) => views,
            Views::Bad(_) => return Err(Failure::Bad),
            Views::TooMany => return Err(Failure::TooMany),
            Views::GaveUp => return Err(Failure::Unbounded),
            Views::Stopped => return Err(Failure::Stopped),
        };
    }
    views.sort_unstable();
    Ok(Proof {
        views,
        anchors: shape.anchors,
        forget: shape.forget,
        kept: shape.kept,
        witness: shape.witness,
        precise: reach.precise,
    })
}

/// The proof as a certificate.
pub fn certificate(system: &ArraySystem, model: MemoryModel, proof: &Proof) -> views::Views {
    let values = |bits: u128| (0..128).filter(|v| bits >> v & 1 != 0).collect();
    let rule = |f: &forget::Forget| views::Forget {
        when: f.when,
        values: values(f.values),
        cell: f.cell,
    };
    let mut out = views::Views {
        model,
        cells: system.cells.iter().map(|c| c.name.clone()).collect(),
        anchors: proof.anchors.clone(),
        forget: proof.forget.iter().map(rule).collect(),
        kept: proof.kept.clone(),
        witness: proof.witness.map(|w| views::Witness {
            cell: w.cell,
            values: values(w.values),
        }),
        precise: proof.precise,
        count: 0,
        views: Vec::new(),
    };
    proof.views.iter().for_each(|v| out.push(v));
    out
}
