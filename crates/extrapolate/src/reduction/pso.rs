//! One buffer per thread and cell (dan-2013, Fig. 5).

use super::thread::{Maker, Value, assign, binary, cells, joined, local, read};
use super::{Unreduced, located, place};
use std::collections::BTreeMap;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Step};
use wattle_model::{CellId, Expr, Op2, Place, RegisterId, Type};
use wattle_predicates::reduce::size;

struct Buffer {
    count: RegisterId,
    entries: Vec<RegisterId>,
    exact: bool,
}

type Buffers = BTreeMap<CellId, Buffer>;

pub fn thread(maker: &mut Maker<'_>, k: usize) -> Result<(), Unreduced> {
    let thread = maker.original;
    let mut buffers = Buffers::new();
    for c in (0..maker.instance.cells.len()).map(CellId::new) {
        let (entries, exact) = match size::bound_of(thread, c) {
            Some(0) => continue,
            Some(b) if b <= k => (b, true),
            _ => (k, false),
        };
        let cell = maker.instance.cell(c);
        let name = cell.name.replace('[', "_").replace(']', "");
        let counts = Type::Range {
            lo: 0,
            hi: entries as i64,
        };
        let count = maker.register(&format!("{name}_cnt"), counts);
        let entries = (1..=entries).map(|i| maker.register(&format!("{name}_{i}"), Type::Int));
        let entries = entries.collect();
        buffers.insert(
            c,
            Buffer {
                count,
                entries,
                exact,
            },
        );
    }
    if buffers.is_empty() {
        maker.unchanged();
        return Ok(());
    }
    let none = |b: &Buffer| binary(Op2::Eq, read(b.count), 0);
    let empty = joined(Op2::And, buffers.values().map(none));
    for step in &thread.steps {
        let direct = thread.direct[step.source.index()];
        match &step.action {
            Action::Load {
                register,
                place: address,
            } if !direct => load(maker, &buffers, step, *register, address),
            Action::Store {
                place: address,
                value,
            } if !direct => store(maker, &buffers, step, address, value)?,
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => {
                if !maker.waits(step, &empty) {
                    maker.keep(step);
                }
            }
        }
    }
    maker.ends(&empty);
    for (c, buffer) in &buffers {
        let (region, element) = located(maker.regions, *c);
        let pending = binary(Op2::Gt, read(buffer.count), 0);
        let drain = buffer.drain(Place::Region(region, Expr::Const(element)));
        maker.drains(&pending, &drain);
    }
    Ok(())
}

/// The address means this cell.
fn means(address: &Address, cell: CellId) -> Value {
    match address {
        Address::Cell(_) => Expr::Const(1),
        Address::Computed { base, index, .. } => {
            binary(Op2::Eq, local(index), i64::from(cell.0 - base.0))
        }
    }
}

/// Both, without what is always true.
fn also(a: Value, b: Value) -> Value {
    match a.as_const() {
        Some(1) => b,
        _ => joined(Op2::And, [a, b]),
    }
}

fn load(
    maker: &mut Maker<'_>,
    buffers: &Buffers,
    step: &Step,
    register: RegisterId,
    address: &Address,
) {
    let mut hits = Vec::new();
    for cell in cells(address) {
        let Some(buffer) = buffers.get(&cell) else {
            continue;
        };
        let pending = binary(Op2::Gt, read(buffer.count), 0);
        let hit = also(means(address, cell), pending);
        let forwarded = vec![
            Action::Assume(hit.clone()),
            assign(register, buffer.newest()),
        ];
        maker.steps(step.source, forwarded, step.target);
        hits.push(hit);
    }
    if hits.is_empty() {
        maker.keep(step);
        return;
    }
    let load = Action::Load {
        register,
        place: place(maker.regions, address),
    };
    let none = joined(Op2::Or, hits).negate();
    maker.steps(step.source, vec![Action::Assume(none), load], step.target);
}

fn store(
    maker: &mut Maker<'_>,
    buffers: &Buffers,
    step: &Step,
    address: &Address,
    value: &Expr<RegisterId>,
) -> Result<(), Unreduced> {
    let (stored, actions) = maker.evaluated(address, value)?;
    let ready = maker.beside(step.source);
    maker.steps(step.source, actions, ready);
    for cell in cells(address) {
        let Some(buffer) = buffers.get(&cell) else {
            continue;
        };
        let here = means(address, cell);
        let mut put = Vec::new();
        let full = binary(Op2::Eq, read(buffer.count), buffer.entries.len() as i64);
        if !buffer.exact {
            let room = also(here.clone(), full.clone().negate());
            put.push(Action::Assume(room));
            let in_section = maker.original.atomic[step.source.index()];
            maker.overflows(ready, also(here, full), in_section);
        } else if here.as_const().is_none() {
            put.push(Action::Assume(here));
        }
        put.push(assign(
            buffer.count,
            binary(Op2::Add, read(buffer.count), 1),
        ));
        for (i, entry) in buffer.entries.iter().enumerate() {
            let newest = binary(Op2::Eq, read(buffer.count), i as i64 + 1);
            put.push(assign(
                *entry,
                Expr::ite(newest, read(stored), read(*entry)),
            ));
        }
        put.push(assign(stored, Expr::Const(0)));
        maker.steps(ready, put, step.target);
    }
    Ok(())
}

impl Buffer {
    fn newest(&self) -> Value {
        let mut value = self.entries.first().map_or(Expr::Const(0), |e| read(*e));
        for (i, entry) in self.entries.iter().enumerate().skip(1) {
            let newest = binary(Op2::Eq, read(self.count), i as i64 + 1);
            value = Expr::ite(newest, read(*entry), value);
        }
        value
    }

    fn drain(&self, to: Place) -> Vec<wattle_model::program::Action> {
        let mut actions = Vec::new();
        if let Some(oldest) = self.entries.first() {
            actions.push(Action::Store {
                place: to,
                value: read(*oldest),
            });
        }
        for pair in self.entries.windows(2) {
            actions.push(assign(pair[0], read(pair[1])));
        }
        if let Some(last) = self.entries.last() {
            actions.push(assign(*last, Expr::Const(0)));
        }
        actions.push(assign(self.count, binary(Op2::Sub, read(self.count), 1)));
        actions
    }
}
