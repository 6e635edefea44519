//! Operands: their values, the memory they name, and on how many bits an instruction works.

use super::effects::divided;
use super::instruction::{Element, Immediate, Instruction, Memory, Operand, Pointer};
use super::lower::{Arithmetic, Cell, Translation};
use super::register::{Name, Size};
use super::sizes::operation_size;
use crate::diagnostics::Diagnostic;
use wattle_model::program::Place;
use wattle_model::{Expr, Local, Op2, RegisterId};
use wattle_x86::instruction::Op;

/// What one instruction works on.
#[derive(Clone, Copy)]
pub(super) struct Width {
    pub size: Size,
    /// Mathematical: no wrapping.
    pub exact: bool,
}

impl Translation<'_> {
    pub(super) fn id(&self, n: Name) -> RegisterId {
        RegisterId::new(self.widths.keys().position(|b| *b == n.base).unwrap_or(0))
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

    pub(super) fn place(&self, m: &Memory) -> Place {
        match &m.at {
            Element::Number(r, i) => Place::Region(*r, Expr::Const(i64::from(*i))),
            Element::Own(r) => Place::Region(*r, Expr::Atom(Local::SelfIndex)),
            Element::Indexed {
                region,
                element,
                index: (name, by),
            } => {
                let cell = self.machine.cells[region.index()].width.bytes();
                let times = |by: i64| match by {
                    1 => self.read(*name),
                    by => Expr::binary(Op2::Mul, self.read(*name), Expr::Const(by)),
                };
                let plus = |index: Expr<Local>, k: i64| match k {
                    0 => index,
                    k => Expr::binary(Op2::Add, index, Expr::Const(k)),
                };
                let index = match by % cell {
                    0 => plus(times(by / cell), *element),
                    _ => divided(plus(times(*by), element * cell), cell),
                };
                Place::Region(*region, index)
            }
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
        divided(from, stride)
    }

    /// On how many bits the instruction works, with the memory operand's own width checked.
    pub(super) fn width(&self, x: &Instruction) -> Result<Width, Diagnostic> {
        let stated = operation_size(x)?;
        let exact = self.machine.arithmetic == Arithmetic::Mathematical;
        let whole = |size: Option<Size>| Width {
            size: size.unwrap_or(Size::Dword),
            exact,
        };
        let Some(m) = x.memory().filter(|_| x.op != Op::Lea) else {
            return Ok(whole(stated));
        };
        let Some(region) = m.at.region() else {
            return Ok(whole(stated));
        };
        let cell = &self.machine.cells[region.index()];
        if cell.counter {
            counter_use(x, m, cell)?;
            return Ok(Width {
                size: cell.width,
                exact: true,
            });
        }
        let w = whole(Some(stated.unwrap_or(cell.width)));
        let size = self.memory_size(x, m, w)?;
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
        Ok(w)
    }

    /// How much of memory is accessed: what the instruction works on, or what it widens.
    pub(super) fn memory_size(
        &self,
        x: &Instruction,
        m: &Memory,
        w: Width,
    ) -> Result<Size, Diagnostic> {
        if !matches!(x.op, Op::Movzx | Op::Movsx) {
            return Ok(w.size);
        }
        let cell = m.at.region().map(|r| self.machine.cells[r.index()].width);
        match m.size.or(x.source).or(cell) {
            Some(size) if size < w.size => Ok(size),
            _ => {
                let message = "how many bits are widened is not said, or they are too many";
                Err(Diagnostic::error(m.span, message).expected("`byte`, `word` or `dword`"))
            }
        }
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
