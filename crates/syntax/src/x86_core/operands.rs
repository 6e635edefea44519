//! Operands: their values, the memory they name, and on how many bits an instruction works.

use super::instruction::{Element, Immediate, Instruction, Memory, Operand, Pointer};
use super::lower::{Arithmetic, Cell, Translation};
use super::mnemonic::Op;
use super::register::{Name, Size, wrapped};
use super::sizes::operation_size;
use crate::diagnostics::Diagnostic;
use wattle_model::program::{Action, Place};
use wattle_model::{Expr, Local, Op2, RegisterId};

/// What one instruction works on.
#[derive(Clone, Copy)]
pub(super) struct Width {
    pub size: Size,
    /// Mathematical: no wrapping.
    pub exact: bool,
}

impl Width {
    pub fn wrap(self) -> Option<Size> {
        (!self.exact).then_some(self.size)
    }
}

impl Translation<'_> {
    /// Loads a memory operand into the scratch register.
    pub(super) fn load(&mut self, actions: &mut Vec<Action>, m: &Memory, w: Width) -> Expr<Local> {
        let register = self.graph.temporary(w.wrap());
        let place = self.place(m);
        actions.push(Action::Load { register, place });
        temporary(register)
    }

    pub(super) fn operand(
        &mut self,
        actions: &mut Vec<Action>,
        o: &Operand,
        w: Width,
    ) -> Expr<Local> {
        match o {
            Operand::Memory(m) => self.load(actions, m, w),
            _ => self.value(o, w),
        }
    }

    /// The value of an operand that is not in memory.
    pub(super) fn value(&self, o: &Operand, w: Width) -> Expr<Local> {
        match o {
            Operand::Register(n, _) => self.read(*n),
            Operand::Immediate(Immediate::Number(n), _) => match w.wrap() {
                Some(size) => wrapped(Expr::Const(*n), size, true),
                None => Expr::Const(*n),
            },
            Operand::Immediate(Immediate::Count, _) => {
                Expr::Atom(Local::Count(self.machine.family))
            }
            Operand::Immediate(Immediate::Address(r), _) => {
                address(self.machine.addresses, Expr::Atom(Local::AddressOf(*r)))
            }
            Operand::Memory(_) => Expr::Const(0),
        }
    }

    pub(super) fn id(&self, n: Name) -> RegisterId {
        RegisterId::new(self.widths.keys().position(|b| *b == n.base).unwrap_or(0))
    }

    pub(super) fn whole(&self, n: Name) -> bool {
        !n.high && self.widths.get(&n.base) == Some(&n.size)
    }

    pub(super) fn read(&self, n: Name) -> Expr<Local> {
        let whole = Expr::Atom(Local::Register(self.id(n)));
        match self.machine.arithmetic {
            Arithmetic::Mathematical => whole,
            Arithmetic::Wrapping => {
                let width = self.widths.get(&n.base).copied().unwrap_or(n.size);
                n.read(whole, width)
            }
        }
    }

    pub(super) fn assign(&self, n: Name, value: Expr<Local>) -> Action {
        let register = self.id(n);
        let whole = Expr::Atom(Local::Register(register));
        let value = match self.machine.arithmetic {
            Arithmetic::Mathematical => value,
            Arithmetic::Wrapping => {
                let width = self.widths.get(&n.base).copied().unwrap_or(n.size);
                n.write(whole, width, value)
            }
        };
        Action::Assign { register, value }
    }

    pub(super) fn place(&self, m: &Memory) -> Place {
        match &m.at {
            Element::Number(r, i) => Place::Region(*r, Expr::Const(i64::from(*i))),
            Element::Own(r) => Place::Region(*r, Expr::Atom(Local::SelfIndex)),
            Element::Pointer(p) => Place::Memory(self.cell_number(p)),
        }
    }

    /// The flat cell an address falls on; between two cells there is none.
    pub(super) fn cell_number(&self, p: &Pointer) -> Expr<Local> {
        let (first, stride) = self.machine.addresses;
        let mut at = self.read(p.base);
        if let Some((index, scale)) = p.index {
            let scaled = Expr::binary(Op2::Mul, self.read(index), Expr::Const(scale));
            at = Expr::binary(Op2::Add, at, scaled);
        }
        let from = Expr::binary(Op2::Sub, at, Expr::Const(first.saturating_sub(p.offset)));
        let rest = Expr::binary(Op2::Rem, from.clone(), Expr::Const(stride));
        let aligned = Expr::binary(Op2::Eq, rest, Expr::Const(0));
        let number = Expr::binary(Op2::Div, from, Expr::Const(stride));
        Expr::ite(aligned, number, Expr::Const(-1))
    }

    /// On how many bits the instruction works, with the memory operand's own width checked.
    pub(super) fn width(&self, x: &Instruction) -> Result<Width, Diagnostic> {
        let stated = operation_size(x)?;
        let exact = self.machine.arithmetic == Arithmetic::Mathematical;
        let Some(m) = x.memory() else {
            let size = stated.unwrap_or(Size::Dword);
            return Ok(Width { size, exact });
        };
        let region = match &m.at {
            Element::Number(r, _) | Element::Own(r) => *r,
            Element::Pointer(_) => {
                let size = stated.unwrap_or(Size::Dword);
                return Ok(Width { size, exact });
            }
        };
        let cell = &self.machine.cells[region.index()];
        if cell.counter {
            counter_use(x, m, cell)?;
            return Ok(Width {
                size: cell.width,
                exact: true,
            });
        }
        let size = stated.unwrap_or(cell.width);
        let (bits, has) = (size.bits(), cell.width.bits());
        if size > cell.width {
            let message = format!(
                "this accesses {bits} bits of `{}`, which has {has}",
                cell.name
            );
            return Err(Diagnostic::error(m.span, message));
        }
        if size < cell.width && x.writes_memory() {
            let message = format!(
                "this writes {bits} bits of `{}`, which is used with {has} bits elsewhere",
                cell.name
            );
            return Err(Diagnostic::error(m.span, message)
                .hint("stores to a part of a cell are not supported"));
        }
        Ok(Width { size, exact })
    }
}

/// A counter knows `inc`, `dec`, `mov [c], 0|N` and `cmp [c], 0|N` (conchon-2017 §4).
fn counter_use(x: &Instruction, m: &Memory, cell: &Cell) -> Result<(), Diagnostic> {
    let fine = match (x.op, x.operands.as_slice()) {
        (Op::Inc | Op::Dec, _) => true,
        (Op::Mov | Op::Cmp, [Operand::Memory(_), Operand::Immediate(value, _)]) => {
            matches!(value, Immediate::Number(0) | Immediate::Count)
        }
        _ => false,
    };
    if fine {
        return Ok(());
    }
    let message = format!("`{}` is a counter and cannot be used like this", cell.name);
    Err(Diagnostic::error(m.span, message)
        .expected("`inc`, `dec`, or `mov` and `cmp` with 0 or N")
        .hint("drop `! as counter` to use it as an ordinary number"))
}
/// The address of a cell as a number.
pub fn address<A>((first, stride): (i64, i64), cell: Expr<A>) -> Expr<A> {
    let scaled = Expr::binary(Op2::Mul, cell, Expr::Const(stride));
    Expr::binary(Op2::Add, scaled, Expr::Const(first))
}
pub(super) fn temporary(r: RegisterId) -> Expr<Local> {
    Expr::Atom(Local::Register(r))
}
