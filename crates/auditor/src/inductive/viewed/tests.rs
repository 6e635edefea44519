//! What buffers hold that are listed or known by views, and when a target looks at them.

use super::{Buffer, Viewed};
use crate::inductive::machine::{Machine, Pending, Runs};
use crate::inductive::stores::Stores;
use crate::inductive::views::cells;
use crate::symbols::{Symbols, Value};
use std::collections::BTreeMap;
use wattle_evidence::certificate::{ControlState, PendingStores};
use wattle_logic::Term;
use wattle_memory::MemoryModel;
use wattle_memory::content::Content;
use wattle_model::{CellId, Instance, ThreadId};

fn read(text: &str) -> Instance {
    let program = wattle_syntax::wtl::parse(text).program;
    program
        .and_then(|p| p.instance().ok())
        .expect("an instance")
}

fn value(n: i64) -> Value {
    Value::Number(Term::constant(n))
}

#[test]
fn a_fence_orders_the_stores_before_it() {
    let (x, y) = (CellId::new(0), CellId::new(1));
    let mut stores = Stores::default();
    stores.store_fence();
    assert!(!stores.fenced, "there is nothing to order");
    stores.put(false, (x, value(1)));
    stores.put(false, (y, value(1)));
    assert_eq!(stores.epochs.len(), 1);
    stores.store_fence();
    assert!(stores.fenced);
    stores.put(false, (y, value(2)));
    assert_eq!((stores.epochs.len(), stores.fenced), (2, false));
}

#[test]
fn stores_are_in_one_order_under_tso_only() {
    for (model, epochs) in [(MemoryModel::Tso, 2), (MemoryModel::Pso, 1)] {
        let bound = (model, false);
        let mut buffer = Buffer::empty(bound);
        for cell in [0, 1] {
            let entry = (CellId::new(cell), value(1));
            assert!(buffer.put(&mut Symbols::default(), bound, entry).is_ok());
        }
        assert_eq!(buffer.stores.epochs.len(), epochs, "{model}");
    }
}

#[test]
fn nothing_is_pending_under_sc_and_nothing_is_listed_of_views() {
    let none = PendingStores::default();
    let one = PendingStores {
        entries: vec![(0, CellId::new(0))],
        ..PendingStores::default()
    };
    for model in MemoryModel::ALL {
        let sc = model == MemoryModel::Sc;
        for viewed in [false, true] {
            let bound = (model, viewed);
            let empty = <Buffer as Pending>::read(&none, bound, Vec::new());
            assert_eq!(empty.is_some(), !(sc && viewed), "{bound:?}");
            let full = <Buffer as Pending>::read(&one, bound, vec![value(1)]);
            assert_eq!(full.is_some(), !(sc || viewed), "{bound:?}");
        }
    }
}

/// On the way a buffer may hold anything; only at the end is it empty.
#[test]
fn a_target_looks_at_any_buffer() {
    let instance = read("shared x, y; thread p { x = 1; y = 1; } never x == 0 && y == 1;");
    let p = ThreadId::new(0);
    let views = cells(&instance, &[p], &[]).expect("nobody else stores");
    let bounds = vec![(MemoryModel::Tso, true)];
    let machine = Machine::new(&instance, bounds, &[]).expect("no ranges");
    let mut viewed = Viewed::<1> { machine, views };
    let control = ControlState {
        locations: vec![instance.thread(p).entry],
        buffers: vec![PendingStores::default()],
        holder: None,
    };
    let (state, _) = viewed.any(&control).expect("a state");
    let target = &instance.questions[0].target;
    let on_the_way = viewed.looking(&state, target, false);
    assert!(on_the_way.contains(&state) && on_the_way.len() > 1);
    assert!(on_the_way.iter().all(|s| !s.buffers[0].is_empty()));
    let at_the_end = viewed.looking(&state, target, true);
    assert!(at_the_end.len() == 1 && at_the_end[0].buffers[0].is_empty());
}

#[test]
fn views_are_of_cells_that_nobody_else_stores_to() {
    let (p, q) = (ThreadId::new(0), ThreadId::new(1));
    let shared = "shared x, y; thread p { x = 1; } thread q { local r; r = x; y = 1; }";
    let both = shared.replace("y = 1", "x = 2");
    let own = BTreeMap::from([(p, vec![CellId::new(0)])]);
    assert_eq!(cells(&read(shared), &[p], &[]), Ok(own.clone()));
    assert!(cells(&read(&both), &[p], &[]).is_err());
    assert!(cells(&read(&both), &[q], &[]).is_err());
    assert_eq!(cells(&read(&both), &[p], &[CellId::new(0)]), Ok(own));
    assert!(cells(&read(shared), &[ThreadId::new(2)], &[]).is_err());
}
