//! Instructions to operations on words, which the core knows, and these to steps.

use super::flags;
use super::instruction::{Element, Immediate, Instruction, Memory, Operand};
use super::lower::{Arithmetic, Translation};
use super::operands::{Width, address};
use super::register::{Base, Name, Size};
use super::thread::Position;
use crate::diagnostics::Diagnostic;
use std::collections::BTreeMap;
use wattle_model::program::{Action, Place};
use wattle_model::{Expr, Fence, Local, Op2, RegionId, RegisterId, Section};
use wattle_x86::bits::{Bin, E, VarId};
use wattle_x86::graph::{self, Op as Step, REGISTERS};
use wattle_x86::instruction::{self as core, Op, Part};
use wattle_x86::meaning::{Meaning, Micro};
use wattle_x86::words::{M, Words};

/// What an instruction does.
#[derive(Default)]
pub(super) struct Done {
    pub ops: Vec<Micro>,
    /// With mathematical integers.
    pub exact: bool,
}

/// The number of threads, and from here on the addresses of cells, among variables.
const COUNT: VarId = VarId(1 << 30);

fn address_of(region: RegionId) -> VarId {
    VarId(COUNT.0 + 1 + region.0)
}

/// The core's variable of a general register.
pub(super) fn variable(base: Base) -> VarId {
    let name = base.name(Size::Qword).to_ascii_lowercase();
    let number = REGISTERS.iter().position(|r| *r == name).unwrap_or(0);
    VarId(number as u32)
}

/// What mathematical integers can be asked for.
fn arithmetical(op: Op) -> bool {
    matches!(
        op,
        Op::Mov
            | Op::Xchg
            | Op::UnlockedXchg
            | Op::Xadd
            | Op::Cmpxchg
            | Op::Add
            | Op::Sub
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::Cmp
            | Op::Test
            | Op::Inc
            | Op::Dec
            | Op::Not
            | Op::Neg
            | Op::Set(_)
            | Op::Cmov(_)
    )
}

impl Translation<'_> {
    /// What an instruction does, with registers as wide as they are kept.
    pub(super) fn operations(&mut self, x: &Instruction) -> Result<Done, Diagnostic> {
        let w = self.width(x)?;
        let plain = matches!(
            x.op,
            Op::Nop | Op::Mfence | Op::Sfence | Op::Lfence | Op::Jmp | Op::Jcc(_)
        );
        if w.exact && !plain && !arithmetical(x.op) {
            let message = "mathematical integers have no bits and no parts";
            return Err(Diagnostic::error(x.span, message).hint("use wrap-around numbers"));
        }
        let refuse = |why: String| Diagnostic::error(x.span, why);
        let mut operands = Vec::new();
        if !plain {
            for (k, o) in x.operands.iter().enumerate() {
                operands.push(self.found(x, k, o, w)?);
            }
        }
        let instruction = core::Instruction {
            op: x.op,
            lock: x.lock,
            operands,
        };
        let mut meaning = Meaning::new(&mut self.vars);
        meaning.exact = w.exact;
        meaning.instruction(&instruction).map_err(refuse)?;
        let ops = meaning.ops;
        // Every access is to the operand that was written down.
        let own = instruction.operands.iter().find_map(|o| match o {
            core::Operand::Memory(m) => Some(m.address.clone()),
            core::Operand::Register(_) | core::Operand::Value(_) => None,
        });
        let elsewhere = |m: &Micro| match m {
            Micro::Op(Step::Load { at, .. } | Step::Store { at, .. }) => {
                Some(&at.address) != own.as_ref()
            }
            _ => false,
        };
        if ops.iter().any(elsewhere) {
            let why = "a bit of memory whose number is in a register may be in another cell";
            return Err(refuse(why.to_string()).hint("write the bit's number, or load the cell"));
        }
        let ops = flags::of_stored(self.narrowed(ops), &mut self.vars);
        Ok(Done {
            ops,
            exact: w.exact,
        })
    }

    fn found(
        &self,
        x: &Instruction,
        k: usize,
        o: &Operand,
        w: Width,
    ) -> Result<core::Operand, Diagnostic> {
        let bits = if w.exact {
            64
        } else {
            u32::from(w.size.bits())
        };
        Ok(match o {
            Operand::Register(n, _) => core::Operand::Register(Part {
                register: variable(n.base),
                width: if w.exact {
                    64
                } else {
                    u32::from(n.size.bits())
                },
                high: n.high,
            }),
            Operand::Immediate(Immediate::Number(n), _) => {
                let shift = matches!(x.op, Op::Shl | Op::Shr | Op::Sar | Op::Rol | Op::Ror);
                let bits = if shift && k == 1 { 8 } else { bits };
                core::Operand::Value(E::constant(*n as u64, bits))
            }
            Operand::Immediate(Immediate::Count, _) => core::Operand::Value(E::Var(COUNT, bits)),
            Operand::Immediate(Immediate::Address(r), _) => {
                core::Operand::Value(E::Var(address_of(*r), bits))
            }
            Operand::Memory(m) => core::Operand::Memory(core::Memory {
                address: self.address(m, x)?,
                bytes: match (w.exact, x.op) {
                    (true, _) => 8,
                    (false, Op::Lea) => 8,
                    (false, _) => self.memory_size(x, m, w)?.bytes() as u32,
                },
            }),
        })
    }

    /// An address as a number.
    fn address(&self, m: &Memory, x: &Instruction) -> Result<E, Diagnostic> {
        let cell = |r: RegionId, element: u32| {
            let first = E::Var(address_of(r), 64);
            first.plus(i64::from(element) * self.machine.addresses.1)
        };
        let sum = |start: E, terms: &[(Name, i64)]| {
            terms.iter().fold(start, |sum, (n, by)| {
                let w = u32::from(n.size.bits());
                let value = E::Var(variable(n.base), 64).extract(0, w).zext(64);
                let scaled = E::bin(Bin::Mul, value, E::constant(*by as u64, 64));
                E::sum(scaled, sum)
            })
        };
        match &m.at {
            Element::Number(r, k) => Ok(cell(*r, *k)),
            Element::Own(_) | Element::Indexed { .. } if x.op == Op::Lea => {
                let message = "only the address of a shared variable is a number here";
                Err(Diagnostic::error(m.span, message))
            }
            Element::Own(r) => Ok(cell(*r, 0)),
            Element::Indexed { region, index, .. } => Ok(sum(cell(*region, 0), &[*index])),
            Element::Pointer(p) => {
                let mut terms = vec![(p.base, 1)];
                terms.extend(p.index);
                Ok(sum(E::constant(p.offset as u64, 64), &terms))
            }
        }
    }

    /// Registers are as wide as the widest part that is used; the rest is nobody's.
    fn narrowed(&self, ops: Vec<Micro>) -> Vec<Micro> {
        let kept: BTreeMap<VarId, u32> = (self.widths.iter())
            .map(|(base, size)| (variable(*base), self.kept(*size)))
            .collect();
        let cut = |e: E| e.replace(&|v| Some(E::Var(v, *kept.get(&v)?).zext(64)));
        narrow(ops, &cut, &|v| kept.get(&v).copied())
    }

    fn kept(&self, size: Size) -> u32 {
        match self.machine.arithmetic {
            Arithmetic::Mathematical => 64,
            Arithmetic::Wrapping => u32::from(size.bits()),
        }
    }

    /// Steps of an instruction, from one place to another.
    pub(super) fn steps(
        &mut self,
        i: usize,
        x: &Instruction,
        (ops, exact): (Vec<Micro>, bool),
        to: Position,
    ) -> Result<(Temporaries, bool), Diagnostic> {
        let mut next = 1;
        let mut temporaries = Temporaries::default();
        let ops = loads(ops);
        self.lay((i, 0), x, &ops, to, &mut next, (&mut temporaries, exact))?;
        Ok((temporaries, exact))
    }

    fn lay(
        &mut self,
        from: Position,
        x: &Instruction,
        ops: &[Micro],
        to: Position,
        next: &mut usize,
        (temporaries, exact): (&mut Temporaries, bool),
    ) -> Result<(), Diagnostic> {
        let mut actions = Vec::new();
        for (k, op) in ops.iter().enumerate() {
            match op {
                Micro::Op(op) => actions.push(self.action(x, op, temporaries, exact)?),
                Micro::If(condition, yes, no) => {
                    let condition = self.said(condition, x, temporaries, exact)?;
                    let fork = if actions.is_empty() {
                        from
                    } else {
                        let fork = (from.0, *next + actions.len() - 1);
                        let first = std::mem::replace(next, fork.1 + 1);
                        self.graph.chain(from, fork, first, actions, x.span);
                        fork
                    };
                    for (test, branch) in [(condition.clone(), yes), (condition.negate(), no)] {
                        let start = (from.0, *next);
                        *next += 1;
                        self.graph.step(fork, start, Action::Assume(test), x.span);
                        let rest: Vec<Micro> =
                            branch.iter().chain(&ops[k + 1..]).cloned().collect();
                        self.lay(start, x, &rest, to, next, (temporaries, exact))?;
                    }
                    return Ok(());
                }
                Micro::Either(_) => {
                    let message = "vectors are not supported";
                    return Err(Diagnostic::error(x.span, message));
                }
            }
        }
        let first = *next;
        *next += actions.len();
        self.graph.chain(from, to, first, actions, x.span);
        Ok(())
    }

    fn action(
        &mut self,
        x: &Instruction,
        op: &Step,
        temporaries: &mut Temporaries,
        exact: bool,
    ) -> Result<Action, Diagnostic> {
        Ok(match op {
            Step::Assign(v, e) => {
                let value = self.said(e, x, temporaries, exact)?;
                let register = self.holder(*v, e.width(), temporaries, exact);
                Action::Assign { register, value }
            }
            Step::Load { to, at } => {
                let place = self.memory_place(x);
                let register = self.holder(*to, at.bytes * 8, temporaries, exact);
                Action::Load { register, place }
            }
            Step::Store { value, .. } => {
                let place = self.memory_place(x);
                let value = self.said(value, x, temporaries, exact)?;
                Action::Store { place, value }
            }
            Step::Assume(e) => Action::Assume(self.said(e, x, temporaries, exact)?),
            Step::Fence => Action::Fence(Fence::Full),
            Step::Begin => Action::AtomicBegin(Section::Drained),
            Step::End => Action::AtomicEnd,
            Step::Model(action) => action.clone(),
            Step::Nop => Action::Skip,
            Step::Havoc(_)
            | Step::Assert(..)
            | Step::Require(..)
            | Step::Import { .. }
            | Step::Export { .. } => {
                let message = "this instruction is not supported here";
                return Err(Diagnostic::error(x.span, message));
            }
        })
    }

    fn memory_place(&self, x: &Instruction) -> Place {
        match x.memory() {
            Some(m) => self.place(m),
            None => Place::Memory(Expr::Const(-1)),
        }
    }

    /// The register of the model that holds a variable.
    fn holder(
        &mut self,
        v: VarId,
        width: u32,
        temporaries: &mut Temporaries,
        exact: bool,
    ) -> RegisterId {
        let general = self.widths.keys().position(|b| variable(*b) == v);
        if let Some(number) = general {
            return RegisterId::new(number);
        }
        if graph::state().any(|s| s == v) {
            return self.graph.flag(v);
        }
        if let Some(r) = temporaries.held.get(&v) {
            return *r;
        }
        let size = (!exact || width == 1).then_some(width);
        let used = temporaries.used.entry(size).or_insert(0);
        let r = self.graph.temporary(size, *used);
        *used += 1;
        temporaries.held.insert(v, r);
        r
    }

    /// An expression in the numbers of the model.
    pub(super) fn said(
        &mut self,
        e: &E,
        x: &Instruction,
        temporaries: &mut Temporaries,
        exact: bool,
    ) -> Result<M, Diagnostic> {
        let mut held = BTreeMap::new();
        let mut widths = BTreeMap::new();
        e.for_each(&mut |part| {
            if let E::Var(v, w) = part {
                widths.insert(*v, *w);
            }
        });
        for (v, width) in widths {
            let value = if v == COUNT {
                Expr::Atom(Local::Count(self.machine.family))
            } else if v > COUNT {
                let region = RegionId(v.0 - COUNT.0 - 1);
                address(self.machine.addresses, Expr::Atom(Local::AddressOf(region)))
            } else {
                let r = self.holder(v, width, temporaries, exact);
                Expr::Atom(Local::Register(r))
            };
            held.insert(v, value);
        }
        let numbers = Numbers { held, exact };
        let undefined = "a flag is read later that this instruction leaves undefined";
        numbers.outer(e, true).map_err(|why| match exact {
            true => Diagnostic::error(x.span, "mathematical integers have no parity")
                .hint("use wrap-around numbers"),
            false if e.is_unknown() => Diagnostic::error(x.span, undefined),
            false => Diagnostic::error(x.span, why),
        })
    }
}

/// Scratch registers of one instruction.
#[derive(Default)]
pub(super) struct Temporaries {
    held: BTreeMap<VarId, RegisterId>,
    /// How many there are of each width; `None` holds mathematical integers.
    used: BTreeMap<Option<u32>, usize>,
}

struct Numbers {
    held: BTreeMap<VarId, M>,
    exact: bool,
}

impl Words for Numbers {
    fn variable(&self, v: VarId) -> Result<M, String> {
        let unknown = || "a value is used that was never computed".to_string();
        self.held.get(&v).cloned().ok_or_else(unknown)
    }

    fn signed(&self, _: VarId) -> bool {
        true
    }

    fn exact(&self) -> bool {
        self.exact
    }
}

/// Puts narrower registers in.
fn narrow(
    ops: Vec<Micro>,
    cut: &impl Fn(E) -> E,
    kept: &impl Fn(VarId) -> Option<u32>,
) -> Vec<Micro> {
    let one = |mut op: Step| {
        for e in op.expressions_mut() {
            *e = cut(e.clone());
        }
        if let Step::Assign(v, e) = &mut op
            && let Some(w) = kept(*v)
        {
            *e = e.clone().extract(0, w);
        }
        op
    };
    let all = ops.into_iter().map(|m| match m {
        Micro::Op(op) => Micro::Op(one(op)),
        Micro::If(c, yes, no) => Micro::If(cut(c), narrow(yes, cut, kept), narrow(no, cut, kept)),
        Micro::Either(orders) => {
            let orders = orders.into_iter();
            Micro::Either(orders.map(|o| o.into_iter().map(one).collect()).collect())
        }
    });
    all.collect()
}

/// A value that is read only to be put into a register is read into it.
fn loads(mut ops: Vec<Micro>) -> Vec<Micro> {
    let [
        ..,
        Micro::Op(Step::Load { to, .. }),
        Micro::Op(Step::Assign(v, E::Var(from, _))),
    ] = ops.as_slice()
    else {
        return ops;
    };
    if to != from || graph::state().all(|s| s != *v) {
        return ops;
    }
    let v = *v;
    ops.pop();
    if let Some(Micro::Op(Step::Load { to, .. })) = ops.last_mut() {
        *to = v;
    }
    ops
}

/// Places between two cells do not exist.
pub(super) fn divided(from: M, by: i64) -> M {
    let rest = Expr::binary(Op2::Rem, from.clone(), Expr::Const(by));
    let aligned = Expr::binary(Op2::Eq, rest, Expr::Const(0));
    let number = Expr::binary(Op2::Div, from, Expr::Const(by));
    Expr::ite(aligned, number, Expr::Const(-1))
}
