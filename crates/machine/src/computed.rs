//! Jumps and calls to computed addresses: pointers to functions that are constants after all, and the
//! tables that `switch` and `match` become.
//!
//! What the expression is equal to is asked of the graph built so far. Code found later can only take
//! facts away; what was relied on is therefore written down as [`Op::Require`], and looked at again when
//! the graph is complete.

use crate::bits::{Base, Bin, E, VarId};
use crate::build::{Builder, Computed};
use crate::graph::{Access, Graph, Op, Origin};
use crate::lift::Next;
use crate::memory::{Fields, Kind, spot};
use crate::passes::{Solved, solve_within};
use std::collections::BTreeMap;

/// Larger tables are refused.
const MAX_ENTRIES: u64 = 256;
/// What may be spent on finding out what is known where; more is taken only by what could not be checked anyway.
const MAX_STEPS: u64 = 20_000_000;

impl Builder<'_> {
    /// Follows what is computed, once everything else is laid out.
    pub fn resolve(&mut self) {
        let mut waiting = std::mem::take(&mut self.computed);
        let mut steps = MAX_STEPS;
        loop {
            let (graph, objects) = (&mut self.graph, &self.world.objects);
            let solved = solve_within(graph, &Fields::default(), objects, &mut steps);
            let Some(solved) = solved else {
                return self.refuse_as_too_large(self.first());
            };
            let (now, later): (Vec<Computed>, Vec<Computed>) =
                (waiting.into_iter()).partition(|c| solved.facts[c.at].is_some());
            if now.is_empty() {
                // Nothing leads to the others.
                return;
            }
            for c in now {
                let address = c.on.address;
                if let Err(what) = self.one(c, &solved) {
                    self.refuse(address, what);
                }
            }
            self.run();
            waiting = later;
            waiting.append(&mut self.computed);
        }
    }

    fn one(&mut self, c: Computed, solved: &Solved) -> Result<(), String> {
        let (target, call) = match &c.next {
            Next::Call(e) => (e, true),
            Next::Jump(e) => (e, false),
            Next::Fall | Next::Branch(..) | Next::Return | Next::Trap(_) => return Ok(()),
        };
        let known = match &solved.facts[c.at] {
            Some(facts) => facts.put(target),
            None => return Ok(()),
        };
        let origin = Origin::Code(c.on.address);
        let why = "where this goes is not the same on all paths".to_string();
        if let E::Address(Base::Code, _) = known {
            let same = E::same(target.clone(), known.clone());
            let at = self.graph.then(c.at, Op::Require(same, why), origin);
            let next = match call {
                true => Next::Call(known),
                false => Next::Jump(known),
            };
            return self.follow(at, &next, c.after, c.on);
        }
        if call {
            return Err("a call of a computed address is not supported".into());
        }
        let Some(table) = self.table(c.at, &known, solved) else {
            return Err("a jump to a computed address is not supported".into());
        };
        // The number of the entry is kept: the register that holds it is often overwritten by the entry.
        let Edge { node, edge } = table.load;
        let index = self.graph.vars.fresh(64, "entry");
        let load = self.graph.nodes[node].out[edge].clone();
        let Op::Load { to, at } = load.op else {
            return Ok(());
        };
        let kept = self.graph.node();
        let relied = E::same(at.address, table.address);
        let kept = {
            self.graph.nodes[node].out[edge].op = Op::Require(relied, why.clone());
            self.graph.nodes[node].out[edge].to = kept;
            self.graph
                .then(kept, Op::Assign(index, table.index), load.origin)
        };
        self.graph.edge(kept, Op::Havoc(to), load.to, load.origin);
        let relied = E::same(target.clone(), known);
        let at = self.graph.then(c.at, Op::Require(relied, why), origin);
        let index = E::Var(index, 64);
        let mut none = E::bool(true);
        for (target, entries) in table.targets {
            let same = |k: &u64| E::same(index.clone(), E::constant(*k, 64));
            let one = entries
                .iter()
                .map(same)
                .reduce(E::or)
                .unwrap_or(E::bool(false));
            none = E::and(none, one.clone().inverted());
            let start = self.graph.then(at, Op::Assume(one), origin);
            let next = Next::Jump(E::Address(Base::Code, target as i64));
            self.follow(start, &next, c.after, c.on)?;
        }
        let past = self.graph.then(at, Op::Assume(none), origin);
        self.fail(past, "a jump past the end of its table".to_string(), origin);
        Ok(())
    }

    /// The table an address is read from: `base + table[index]`, or an entry itself.
    fn table(&self, at: usize, target: &E, solved: &Solved) -> Option<Table> {
        let start = |e: &E| match e {
            E::Address(Base::Object(o), k) => {
                Some(self.world.start_of(*o)?.wrapping_add(*k as u64))
            }
            _ => None,
        };
        let (entry, base, bytes) = match target {
            E::Var(v, 64) => (*v, 0, 8),
            E::Bin(Bin::Add, a, b) => {
                let (base, entry) = match (start(a), start(b)) {
                    (Some(base), None) => (base, b),
                    (None, Some(base)) => (base, a),
                    _ => return None,
                };
                match &**entry {
                    E::Sext(v, 64) => match **v {
                        E::Var(v, 32) => (v, base, 4),
                        _ => return None,
                    },
                    _ => return None,
                }
            }
            _ => return None,
        };
        let (load, access) = defined(&self.graph, at, entry)?;
        let facts = solved.facts[load.node].as_ref()?;
        let address = facts.put(&access.address);
        let place = spot(&address, &|_| Kind::Number)?;
        // Code that is not optimised looks up constants, too.
        let (index, stride) = place.index.unwrap_or((E::constant(0, 64), bytes));
        let object = self.world.objects.get(place.object)?;
        if stride != bytes || u64::from(access.bytes) != bytes || !object.constant {
            return None;
        }
        let first = self
            .world
            .start_of(place.object)?
            .wrapping_add(place.offset as u64);
        let guards = guards(&self.graph, load.node, solved);
        let image = &self.world.image;
        let function = image.symbol_at(self.graph.nodes[at].origin.and_then(code)?)?;
        // Another table may follow at once: entries are relative to where their own begins.
        let end = match bytes {
            4 => self.world.next_named(function, first),
            _ => None,
        };
        let mut targets: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for k in 0..MAX_ENTRIES.min(index.most().saturating_add(1)) {
            if excluded(&index, k, &guards) {
                continue;
            }
            let place = first.wrapping_add(k * stride);
            if image.relocatable && !image.addresses.contains(&place)
                || end.is_some_and(|end| end <= place)
            {
                break;
            }
            let mut value = 0u64;
            for b in (0..bytes).rev() {
                value = value << 8 | u64::from(image.byte(place.wrapping_add(b))?);
            }
            let target = match bytes {
                4 => base.wrapping_add(value as u32 as i32 as u64),
                _ => value,
            };
            if target.wrapping_sub(function.address) >= function.size {
                break;
            }
            targets.entry(target).or_default().push(k);
        }
        // Relied on is as little as will do: registers as they are there, but for what is constant. Code
        // found later may come here with other values in them.
        let constant = |v: VarId| match facts.put(&self.graph.vars.read(v)) {
            e @ (E::Address(..) | E::Const(..)) => Some(e),
            _ => None,
        };
        let less = access.address.replace(&constant);
        let (address, index) = match spot(&less, &|_| Kind::Number) {
            Some(s) if (s.object, s.offset) == (place.object, place.offset) => match s.index {
                Some((index, by)) if by == stride => (less, index),
                _ => (address, index),
            },
            _ => (address, index),
        };
        (!targets.is_empty()).then_some(Table {
            load,
            address,
            index,
            targets,
        })
    }
}

#[derive(Clone, Copy)]
struct Edge {
    node: usize,
    edge: usize,
}

struct Table {
    /// Where the entry is read.
    load: Edge,
    /// Its address there.
    address: E,
    index: E,
    /// Which entries lead where.
    targets: BTreeMap<u64, Vec<u64>>,
}

fn code(origin: Origin) -> Option<u64> {
    match origin {
        Origin::Code(address) => Some(address),
        Origin::Text(_) => None,
    }
}

/// The only edge to a node.
fn only_edge(graph: &Graph, to: usize) -> Option<Edge> {
    let mut all = (graph.nodes.iter().enumerate()).flat_map(|(node, n)| {
        let leads = n.out.iter().enumerate().filter(|(_, e)| e.to == to);
        leads.map(move |(edge, _)| Edge { node, edge })
    });
    let one = all.next()?;
    all.next().is_none().then_some(one)
}

/// The load that gave a variable its value, with nothing but one path from there.
fn defined(graph: &Graph, at: usize, v: VarId) -> Option<(Edge, Access)> {
    let mut at = at;
    for _ in 0..64 {
        let edge = only_edge(graph, at)?;
        let op = &graph.nodes[edge.node].out[edge.edge].op;
        match op {
            Op::Load { to, at } if *to == v => return Some((edge, at.clone())),
            op if op.written() == Some(v) => return None,
            _ => at = edge.node,
        }
    }
    None
}

/// Conditions on the way to a node.
fn guards(graph: &Graph, at: usize, solved: &Solved) -> Vec<E> {
    let mut at = at;
    let mut all = Vec::new();
    for _ in 0..256 {
        let Some(edge) = only_edge(graph, at) else {
            break;
        };
        let op = &graph.nodes[edge.node].out[edge.edge].op;
        if let (Op::Assume(c), Some(facts)) = (op, &solved.facts[edge.node]) {
            all.push(facts.put(c));
        }
        at = edge.node;
    }
    all
}

/// Whether an entry seems to be never taken. Entries left out lead to a failure, not to nothing.
fn excluded(index: &E, k: u64, guards: &[E]) -> bool {
    let vars = index.vars();
    let of = |_: VarId| k;
    vars.len() == 1
        && index.eval(&of) == Some(k)
        && guards
            .iter()
            .any(|g| g.vars() == vars && g.eval(&of) == Some(0))
}
