//! The graph of one thread while it is built: registers on demand, locations in program order.

use super::register::Size;
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::{Action, Register, Step};
use wattle_model::{Init, Location, LocationId, RegisterId, Span, Type};
use wattle_x86::bits::VarId;
use wattle_x86::graph::Vars;

/// Where a location stands: instruction number, then step number within the instruction.
pub type Position = (usize, usize);

#[derive(Default)]
pub struct Graph {
    /// Names that registers must not take.
    pub taken: BTreeSet<String>,
    pub registers: Vec<Register>,
    temporaries: BTreeMap<(Option<u32>, usize), RegisterId>,
    flags: BTreeMap<VarId, RegisterId>,
    locations: BTreeMap<Position, Location>,
    steps: Vec<(Position, Position, Action, Span)>,
}

impl Graph {
    pub fn register(&mut self, mut name: String, ty: Type, init: Init) -> RegisterId {
        while !self.taken.insert(name.clone()) {
            name.push('_');
        }
        self.registers.push(Register {
            name,
            ty,
            init,
            span: Span::NONE,
        });
        RegisterId::new(self.registers.len() - 1)
    }

    /// The scratch registers of a width; `None` holds mathematical integers.
    pub fn temporary(&mut self, width: Option<u32>, number: usize) -> RegisterId {
        if let Some(r) = self.temporaries.get(&(width, number)) {
            return *r;
        }
        let (name, ty) = match width {
            Some(1) => ("bit".to_string(), Type::BOOL),
            Some(w) => {
                let bits = w as u8;
                let ty = Type::Wrap { bits, signed: true };
                (format!("tmp{bits}"), ty)
            }
            None => ("tmp".to_string(), Type::Int),
        };
        let name = match number {
            0 => name,
            n => format!("{name}_{}", n + 1),
        };
        let r = self.register(name, ty, Init::default());
        self.temporaries.insert((width, number), r);
        r
    }

    pub fn flag(&mut self, flag: VarId) -> RegisterId {
        if let Some(r) = self.flags.get(&flag) {
            return *r;
        }
        let name = Vars::default().names[flag.0 as usize].clone();
        let r = self.register(name, Type::BOOL, Init::default());
        self.flags.insert(flag, r);
        r
    }

    pub fn location(&mut self, at: Position, span: Span) -> &mut Location {
        self.locations.entry(at).or_insert_with(|| Location {
            labels: Vec::new(),
            span,
        })
    }

    pub fn step(&mut self, from: Position, to: Position, action: Action, span: Span) {
        self.location(from, span);
        self.steps.push((from, to, action, span));
    }

    /// Actions one after the other. Positions inside the instruction start at `first`.
    pub fn chain(
        &mut self,
        from: Position,
        to: Position,
        first: usize,
        actions: Vec<Action>,
        span: Span,
    ) {
        let mut at = from;
        let last = actions.len().saturating_sub(1);
        if actions.is_empty() {
            self.step(from, to, Action::Skip, span);
        }
        for (k, action) in actions.into_iter().enumerate() {
            let next = if k == last { to } else { (from.0, first + k) };
            self.step(at, next, action, span);
            at = next;
        }
    }

    /// Locations and steps, without what can neither be reached nor named.
    pub fn finish(self, entry: Position) -> (Vec<Register>, Vec<Location>, Vec<Step>, LocationId) {
        let mut keep: BTreeMap<Position, bool> =
            self.locations.keys().map(|p| (*p, false)).collect();
        let labelled = self.locations.iter().filter(|(_, l)| !l.labels.is_empty());
        let mut work: Vec<Position> = labelled.map(|(p, _)| *p).collect();
        work.push(entry);
        let mut outgoing: BTreeMap<Position, Vec<Position>> = BTreeMap::new();
        for (from, to, ..) in &self.steps {
            outgoing.entry(*from).or_default().push(*to);
        }
        while let Some(p) = work.pop() {
            if !std::mem::replace(keep.entry(p).or_insert(false), true) {
                work.extend(outgoing.get(&p).into_iter().flatten());
            }
        }
        let kept = keep.iter().filter(|(_, k)| **k).map(|(p, _)| *p);
        let number: BTreeMap<Position, LocationId> = kept
            .enumerate()
            .map(|(i, p)| (p, LocationId::new(i)))
            .collect();
        let mut named = self.locations;
        let locations = number
            .keys()
            .map(|p| named.remove(p).unwrap_or_default())
            .collect();
        let mut steps: Vec<(Position, Step)> = Vec::new();
        for (from, to, action, span) in self.steps {
            if let (Some(source), Some(target)) = (number.get(&from), number.get(&to)) {
                let step = Step {
                    source: *source,
                    target: *target,
                    action,
                    span,
                };
                steps.push((from, step));
            }
        }
        steps.sort_by_key(|(from, _)| *from);
        let steps = steps.into_iter().map(|(_, s)| s).collect();
        let entry = number.get(&entry).copied().unwrap_or(LocationId(0));
        (self.registers, locations, steps, entry)
    }
}

pub fn wrapping(size: Size) -> Type {
    Type::Wrap {
        bits: size.bits(),
        signed: true,
    }
}
