//! One buffer per thread: entry i is an address `lhs_i` and a value `rhs_i` (dan-2013, Fig. 12).

use super::thread::{Maker, Value, assign, binary, cells, joined, local, read};
use super::{Unreduced, place};
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Step};
use wattle_model::{Expr, Op2, Place, RegisterId, Type};
use wattle_predicates::reduce::size;

struct Buffer {
    count: RegisterId,
    /// Address and value of each entry, the oldest first.
    entries: Vec<(RegisterId, RegisterId)>,
    /// No path can fill more.
    exact: bool,
}

pub fn thread(maker: &mut Maker<'_>, k: usize) -> Result<(), Unreduced> {
    let thread = maker.original;
    let bound = size::bound(thread, MemoryModel::Tso, maker.instance.cells.len());
    let (entries, exact) = match bound {
        Some(b) if b <= k => (b, true),
        _ => (k, false),
    };
    if entries == 0 && exact {
        maker.unchanged();
        return Ok(());
    }
    let range = |hi: usize| Type::Range {
        lo: 0,
        hi: hi as i64,
    };
    let addresses = range(maker.instance.cells.len().saturating_sub(1));
    let buffer = Buffer {
        count: maker.register("cnt", range(entries)),
        entries: (1..=entries)
            .map(|i| {
                let lhs = maker.register(&format!("lhs_{i}"), addresses);
                (lhs, maker.register(&format!("rhs_{i}"), Type::Int))
            })
            .collect(),
        exact,
    };
    let empty = binary(Op2::Eq, read(buffer.count), 0);
    for step in &thread.steps {
        let direct = thread.direct[step.source.index()];
        match &step.action {
            Action::Load {
                register,
                place: address,
            } if !direct => buffer.load(maker, step, *register, address),
            Action::Store {
                place: address,
                value,
            } if !direct => buffer.store(maker, step, address, value)?,
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
    let pending = binary(Op2::Gt, read(buffer.count), 0);
    maker.drains(&pending, &buffer.drain());
    Ok(())
}

fn flat(address: &Address) -> Value {
    match address {
        Address::Cell(c) => Expr::Const(i64::from(c.0)),
        Address::Computed { base, index, .. } => match base.0 {
            0 => local(index),
            base => binary(Op2::Add, local(index), i64::from(base)),
        },
    }
}

impl Buffer {
    /// Entry `i` exists and is one of the address.
    fn hit(&self, i: usize, address: &Address) -> Value {
        let there = binary(Op2::Gt, read(self.count), i as i64);
        let same = binary(Op2::Eq, read(self.entries[i].0), flat(address));
        joined(Op2::And, [there, same])
    }

    fn load(&self, maker: &mut Maker<'_>, step: &Step, register: RegisterId, address: &Address) {
        let stores = maker.original.steps.iter().any(|s| {
 matches!(&s.action, Action::Store { place, .. } if cells(place).any(|c| size::may_be(address, c)))
 });
        if !stores || self.entries.is_empty() {
            maker.keep(step);
            return;
        }
        let hits = (0..self.entries.len()).map(|i| self.hit(i, address));
        let any = joined(Op2::Or, hits);
        let mut value = read(self.entries[0].1);
        for i in 1..self.entries.len() {
            value = Expr::ite(self.hit(i, address), read(self.entries[i].1), value);
        }
        let forwarded = vec![Action::Assume(any.clone()), assign(register, value)];
        maker.steps(step.source, forwarded, step.target);
        let load = Action::Load {
            register,
            place: place(maker.regions, address),
        };
        let from_memory = vec![Action::Assume(any.negate()), load];
        maker.steps(step.source, from_memory, step.target);
    }

    fn store(
        &self,
        maker: &mut Maker<'_>,
        step: &Step,
        address: &Address,
        value: &Expr<RegisterId>,
    ) -> Result<(), Unreduced> {
        let (stored, actions) = maker.evaluated(address, value)?;
        let ready = maker.beside(step.source);
        maker.steps(step.source, actions, ready);
        let mut put = Vec::new();
        if !self.exact {
            let full = binary(Op2::Eq, read(self.count), self.entries.len() as i64);
            put.push(Action::Assume(full.clone().negate()));
            maker.overflows(ready, full, maker.original.atomic[step.source.index()]);
        }
        put.push(assign(self.count, binary(Op2::Add, read(self.count), 1)));
        for (i, (lhs, rhs)) in self.entries.iter().enumerate() {
            let newest = binary(Op2::Eq, read(self.count), i as i64 + 1);
            let lhs_after = Expr::ite(newest.clone(), flat(address), read(*lhs));
            put.push(assign(*lhs, lhs_after));
            put.push(assign(*rhs, Expr::ite(newest, read(stored), read(*rhs))));
        }
        put.push(assign(stored, Expr::Const(0)));
        maker.steps(ready, put, step.target);
        Ok(())
    }

    /// The oldest entry reaches memory and the others move up.
    fn drain(&self) -> Vec<wattle_model::program::Action> {
        let Some((lhs, rhs)) = self.entries.first() else {
            return Vec::new();
        };
        let mut actions = vec![Action::Store {
            place: Place::Memory(read(*lhs)),
            value: read(*rhs),
        }];
        for pair in self.entries.windows(2) {
            actions.push(assign(pair[0].0, read(pair[1].0)));
            actions.push(assign(pair[0].1, read(pair[1].1)));
        }
        if let Some((lhs, rhs)) = self.entries.last() {
            actions.push(assign(*lhs, Expr::Const(0)));
            actions.push(assign(*rhs, Expr::Const(0)));
        }
        actions.push(assign(self.count, binary(Op2::Sub, read(self.count), 1)));
        actions
    }
}
