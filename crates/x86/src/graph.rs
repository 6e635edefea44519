//! A thread as a graph of operations on words: between instructions and the model.

use crate::bits::{Base, E, VarId};
use std::collections::BTreeMap;
use wattle_model::program::Action;
use wattle_model::{Expr, Local, RegisterId};

/// A memory operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// 64 bits.
    pub address: E,
    pub bytes: u32,
    /// Part of a locked instruction.
    pub locked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Nop,
    Assign(VarId, E),
    Havoc(VarId),
    Load {
        to: VarId,
        at: Access,
    },
    Store {
        at: Access,
        value: E,
    },
    Assume(E),
    /// A false condition is a violation.
    Assert(E, String),
    /// Not a step: what we rely on. A program in which it is not seen to be true is refused.
    Require(E, String),
    /// All stores before are in memory before anything after.
    Fence,
    /// Nobody comes between; begins with an empty buffer.
    Begin,
    End,
    /// A step of the harness, which knows nothing of words.
    Model(Action),
    /// A value of the harness into a word.
    Import {
        to: VarId,
        value: Expr<Local>,
    },
    /// A word into a register of the harness.
    Export {
        to: RegisterId,
        value: E,
    },
}

#[derive(Clone, Debug)]
pub struct Edge {
    pub op: Op,
    pub to: usize,
    pub origin: Origin,
}

/// Where an operation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The instruction at this address.
    Code(u64),
    /// The harness.
    Text(wattle_model::Span),
}

#[derive(Clone, Debug, Default)]
pub struct Node {
    pub labels: Vec<String>,
    pub out: Vec<Edge>,
    /// What starts here.
    pub origin: Option<Origin>,
}

#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub entry: usize,
    pub vars: Vars,
}

/// Names and widths of variables.
#[derive(Clone, Debug)]
pub struct Vars {
    pub widths: Vec<u32>,
    pub names: Vec<String>,
    /// Words of eight bytes of the stack, by their offset.
    pub slots: BTreeMap<i64, VarId>,
    /// Variables have been split: `slots` no longer tells who holds what.
    pub settled: bool,
    /// Objects kept on the stack: whoever goes to offsets that far out must stay within one, from and to.
    pub kept: Vec<(i64, i64)>,
    /// Parts of the stack that are memory like any other, because other threads may get their addresses.
    pub shown: Vec<Shown>,
}

/// A part of the stack that is an object of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub start: i64,
    pub end: i64,
    pub object: usize,
}

/// The general registers come first, in the processor's order.
pub const REGISTERS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

pub const RAX: VarId = VarId(0);
pub const RDX: VarId = VarId(2);
pub const RSP: VarId = VarId(4);
pub const RBP: VarId = VarId(5);

/// Registers for the first six arguments.
pub const ARGUMENTS: [VarId; 6] = [VarId(7), VarId(6), VarId(2), VarId(1), VarId(8), VarId(9)];

/// Flags, and what comparisons ask of several flags together: `LT` is `SF ≠ OF`, `BE` is `CF ∨ ZF`, `LE`
/// is `ZF ∨ SF ≠ OF`. Kept apart, a comparison is found again as one.
pub const ZF: VarId = VarId(16);
pub const CF: VarId = VarId(17);
pub const SF: VarId = VarId(18);
pub const OF: VarId = VarId(19);
pub const PF: VarId = VarId(20);
pub const LT: VarId = VarId(21);
pub const BE: VarId = VarId(22);
pub const LE: VarId = VarId(23);
/// What `fs:[28h]` holds: compared with itself only.
pub const CANARY: VarId = VarId(24);

/// The vector registers follow, each as its lower and its upper half.
const VECTORS: u32 = 16;

/// The two halves of a vector register.
pub fn vector(number: u32) -> [VarId; 2] {
    let low = CANARY.0 + 1 + 2 * number;
    [VarId(low), VarId(low + 1)]
}

/// Everything an instruction can change: general registers, flags, vectors.
pub fn state() -> impl Iterator<Item = VarId> {
    let vectors = CANARY.0 + 1..=vector(VECTORS - 1)[1].0;
    (0..CANARY.0).chain(vectors).map(VarId)
}

const FLAGS: [&str; 8] = ["zf", "cf", "sf", "of", "pf", "lt", "be", "le"];

impl Default for Vars {
    fn default() -> Self {
        let mut vars = Vars {
            widths: vec![64; 16],
            names: REGISTERS.iter().map(|r| (*r).to_string()).collect(),
            slots: BTreeMap::new(),
            settled: false,
            kept: Vec::new(),
            shown: Vec::new(),
        };
        for f in FLAGS {
            vars.fresh(1, f);
        }
        vars.fresh(64, "canary");
        for n in 0..VECTORS {
            vars.fresh(64, &format!("xmm{n}"));
            vars.fresh(64, &format!("xmm{n}_high"));
        }
        vars
    }
}

impl Vars {
    pub fn fresh(&mut self, width: u32, name: &str) -> VarId {
        let id = VarId(u32::try_from(self.widths.len()).unwrap_or(u32::MAX));
        self.widths.push(width);
        self.names.push(name.to_string());
        id
    }

    pub fn width(&self, v: VarId) -> u32 {
        self.widths[v.0 as usize]
    }

    pub fn read(&self, v: VarId) -> E {
        E::Var(v, self.width(v))
    }

    /// The expression with each address of the stack said in one way: as one of an object if it is in that, and of
    /// the stack otherwise.
    pub fn placed(&self, e: &E) -> E {
        let E::Address(base, offset) = e else {
            return e.rebuilt(&|part| self.placed(part));
        };
        let of = |o: usize| self.shown.iter().find(|s| s.object == o);
        let at = match base {
            Base::Stack => Some(*offset),
            Base::Own(o) => of(*o).map(|s| s.start.wrapping_add(*offset)),
            _ => None,
        };
        let Some(at) = at else { return e.clone() };
        match self.shown.iter().find(|s| (s.start..s.end).contains(&at)) {
            Some(s) => E::Address(Base::Own(s.object), at - s.start),
            None => E::Address(Base::Stack, at),
        }
    }

    /// The word of the stack at an offset that is a multiple of eight.
    pub fn slot(&mut self, offset: i64) -> VarId {
        if let Some(v) = self.slots.get(&offset) {
            return *v;
        }
        let name = match offset < 0 {
            true => format!("stack_{}", offset.unsigned_abs()),
            false => format!("stack_above_{offset}"),
        };
        let v = self.fresh(64, &name);
        self.slots.insert(offset, v);
        v
    }
}

impl Op {
    /// The variable it gives a value.
    pub fn written(&self) -> Option<VarId> {
        match self {
            Op::Assign(v, _) | Op::Havoc(v) => Some(*v),
            Op::Load { to, .. } | Op::Import { to, .. } => Some(*to),
            Op::Nop
            | Op::Store { .. }
            | Op::Assume(_)
            | Op::Assert(..)
            | Op::Require(..)
            | Op::Fence
            | Op::Begin
            | Op::End
            | Op::Model(_)
            | Op::Export { .. } => None,
        }
    }

    /// The expressions it evaluates.
    pub fn expressions(&self) -> Vec<&E> {
        match self {
            Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e, _) | Op::Require(e, _) => vec![e],
            Op::Load { at, .. } => vec![&at.address],
            Op::Store { at, value } => vec![&at.address, value],
            Op::Export { value, .. } => vec![value],
            Op::Nop
            | Op::Havoc(_)
            | Op::Fence
            | Op::Begin
            | Op::End
            | Op::Model(_)
            | Op::Import { .. } => vec![],
        }
    }

    pub fn expressions_mut(&mut self) -> Vec<&mut E> {
        match self {
            Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e, _) | Op::Require(e, _) => vec![e],
            Op::Load { at, .. } => vec![&mut at.address],
            Op::Store { at, value } => vec![&mut at.address, value],
            Op::Export { value, .. } => vec![value],
            Op::Nop
            | Op::Havoc(_)
            | Op::Fence
            | Op::Begin
            | Op::End
            | Op::Model(_)
            | Op::Import { .. } => vec![],
        }
    }
}

impl Graph {
    pub fn node(&mut self) -> usize {
        self.nodes.push(Node::default());
        self.nodes.len() - 1
    }

    pub fn edge(&mut self, from: usize, op: Op, to: usize, origin: Origin) {
        self.nodes[from].out.push(Edge { op, to, origin });
    }

    /// An edge to a fresh node.
    pub fn then(&mut self, from: usize, op: Op, origin: Origin) -> usize {
        let to = self.node();
        self.edge(from, op, to, origin);
        to
    }

    /// Puts operations in place of the one on an edge.
    pub fn put_in_place(&mut self, node: usize, edge: usize, ops: Vec<Op>) {
        let Edge { to, origin, .. } = self.nodes[node].out[edge];
        let last = ops.len();
        let mut from = node;
        self.nodes[node].out[edge].op = Op::Nop;
        for (k, op) in ops.into_iter().enumerate() {
            let next = if k + 1 == last { to } else { self.node() };
            match k {
                0 => {
                    self.nodes[node].out[edge].op = op;
                    self.nodes[node].out[edge].to = next;
                }
                _ => self.edge(from, op, next, origin),
            }
            from = next;
        }
    }

    /// Nodes that can be reached, in an order that follows the edges.
    pub fn reached(&self) -> Vec<usize> {
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::new();
        let mut work = vec![self.entry];
        while let Some(n) = work.pop() {
            if std::mem::replace(&mut seen[n], true) {
                continue;
            }
            order.push(n);
            work.extend(self.nodes[n].out.iter().rev().map(|e| e.to));
        }
        order
    }
}
