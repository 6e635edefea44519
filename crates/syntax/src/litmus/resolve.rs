//! Raw instructions to the core's: operand order, names, pointers that never change.

use super::header::Architecture;
use super::names::Locations;
use super::syntax::{Column, Declaration, Item, RawInstruction, RawMemory, RawOperand, Value};
use crate::diagnostics::Diagnostic;
use crate::x86_core::{
    Base, Code, Element, Immediate, Instruction, Label, Memory, Name, Op, Operand, Pointer,
    check_shape, operation_size,
};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::Span;

/// Which operand is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `mov EAX, 1`
    DestinationFirst,
    /// `movl $1, %eax`
    DestinationLast,
}

/// One order for the whole test: what the instructions themselves show, else what herd takes for
/// the architecture.
pub fn order(
    columns: &[Column],
    architecture: Architecture,
    diagnostics: &mut Vec<Diagnostic>,
) -> Order {
    let mut found: Option<(Order, Span)> = None;
    for x in columns.iter().flat_map(|c| &c.instructions) {
        let Some(shown) = shows(x) else { continue };
        match found {
            None => found = Some((shown, x.span)),
            Some((first, at)) if first != shown => {
                let message = "this instruction has its operands in the other order";
                let hint = format!("line {} decided the order of operands", at.line);
                diagnostics.push(Diagnostic::error(x.span, message).hint(hint));
            }
            Some(_) => {}
        }
    }
    match (found, architecture) {
        (Some((order, _)), _) => order,
        (None, Architecture::X86) => Order::DestinationFirst,
        (None, Architecture::X86_64) => Order::DestinationLast,
    }
}

fn shows(x: &RawInstruction) -> Option<Order> {
    let [(first, _), (second, _)] = x.operands.as_slice() else {
        return None;
    };
    let number = |o: &RawOperand| matches!(o, RawOperand::Number(_) | RawOperand::AddressOf(_));
    if number(first) {
        return Some(Order::DestinationLast);
    }
    if number(second) {
        return Some(Order::DestinationFirst);
    }
    let percent = |o: &RawOperand| match o {
        RawOperand::Register { percent, .. } => *percent,
        RawOperand::Memory(m) => m.percent,
        _ => false,
    };
    (percent(first) || percent(second)).then_some(Order::DestinationLast)
}

/// A register's initial address: location and element.
type Pointers = BTreeMap<Base, (String, u32)>;

pub struct Resolver<'a> {
    pub locations: &'a mut Locations,
    pub order: Order,
    pub diagnostics: &'a mut Vec<Diagnostic>,
}

impl Resolver<'_> {
    pub fn thread(&mut self, column: &Column, init: &[Declaration]) -> Code {
        let mut code = Code::default();
        let kept: Vec<Option<Instruction>> = column
            .instructions
            .iter()
            .map(|raw| self.instruction(raw))
            .collect();
        // Labels keep their place when a broken instruction is left out.
        let mut moved = Vec::with_capacity(kept.len() + 1);
        for x in kept {
            moved.push(code.instructions.len());
            code.instructions.extend(x);
        }
        moved.push(code.instructions.len());
        for (name, at, span) in &column.labels {
            code.labels.push(Label {
                name: name.clone(),
                at: moved[*at],
                span: *span,
            });
        }
        let fixed = fixed_pointers(column.number, init, &code);
        for x in &mut code.instructions {
            self.follow(x, &fixed);
        }
        for x in &code.instructions {
            self.note_access(x);
        }
        code
    }

    fn instruction(&mut self, raw: &RawInstruction) -> Option<Instruction> {
        let mut operands = Vec::new();
        for (operand, span) in &raw.operands {
            match self.operand(operand, *span) {
                Ok(o) => operands.push(o),
                Err(d) => self.diagnostics.push(d),
            }
        }
        if operands.len() < raw.operands.len() {
            return None;
        }
        let several = operands.len() > 2 && self.order == Order::DestinationLast;
        if several || self.swapped(raw.op, &operands) {
            operands.reverse();
        }
        let x = Instruction {
            op: raw.op,
            suffix: raw.suffix,
            source: raw.source,
            lock: raw.lock,
            operands,
            target: raw.target.clone(),
            span: raw.span,
        };
        match check_shape(&x).and_then(|()| operation_size(&x).map(drop)) {
            Ok(()) => Some(x),
            Err(d) => {
                self.diagnostics.push(d);
                None
            }
        }
    }

    /// Whether the operands must be turned round to have the destination first.
    fn swapped(&self, op: Op, operands: &[Operand]) -> bool {
        let [first, second] = operands else {
            return false;
        };
        let memory = |o: &Operand| o.memory().is_some();
        match op {
            // The memory operand tells; herd and the assembler disagree on the order.
            Op::Xadd | Op::Cmpxchg if memory(first) || memory(second) => memory(second),
            Op::Cmov(_) if memory(first) || memory(second) => memory(first),
            _ => self.order == Order::DestinationLast,
        }
    }

    fn operand(&mut self, raw: &RawOperand, span: Span) -> Result<Operand, Diagnostic> {
        Ok(match raw {
            RawOperand::Register { name, .. } => Operand::Register(*name, span),
            RawOperand::Number(n) => Operand::Immediate(Immediate::Number(*n), span),
            RawOperand::AddressOf(name) => {
                let id = self.locations.named(name, span);
                self.locations.all[id.index()].pointed = true;
                Operand::Immediate(Immediate::Address(id), span)
            }
            RawOperand::Memory(m) => Operand::Memory(Memory {
                at: self.element(m, span)?,
                size: m.size,
                span,
            }),
        })
    }

    fn element(&mut self, m: &RawMemory, span: Span) -> Result<Element, Diagnostic> {
        match (&m.name, m.base) {
            (Some(name), None) if m.index.is_none() => self.at_offset(name, 0, m.offset, span),
            (None, Some(base)) => Ok(Element::Pointer(Pointer {
                base,
                index: m.index,
                offset: m.offset,
            })),
            (Some(name), base) => {
                let index = match (base, m.index) {
                    (Some(base), None) => (base, 1),
                    (None, Some(index)) => index,
                    _ => {
                        let message = "an element of an array has one index";
                        return Err(Diagnostic::error(span, message).hint(
                            "put the location's address into a register in the initial state",
                        ));
                    }
                };
                let region = self.locations.named(name, span);
                let size = (self.locations.location(region).declared).map_or(4, |(s, _)| s.bytes());
                if m.offset % size != 0 {
                    let message = format!("this address lies outside of `{name}`");
                    return Err(Diagnostic::error(span, message));
                }
                Ok(Element::Indexed {
                    region,
                    element: m.offset / size,
                    index,
                })
            }
            (None, None) => Err(
                Diagnostic::error(span, "numbers as addresses are not supported")
                    .expected("a location or a register"),
            ),
        }
    }

    /// Element `element` of the location, `offset` bytes on.
    fn at_offset(
        &mut self,
        name: &str,
        element: u32,
        offset: i64,
        span: Span,
    ) -> Result<Element, Diagnostic> {
        let id = self.locations.named(name, span);
        let l = self.locations.location(id);
        let size = l.declared.map_or(4, |(s, _)| s.bytes());
        let at = i64::from(element) + offset / size;
        if offset % size != 0 || at < 0 || at >= i64::from(l.length) {
            let message = format!("this address lies outside of `{name}`");
            let hint = match l.length {
                1 => format!("`{name}` has {size} bytes"),
                n => format!("`{name}` has {n} elements of {size} bytes"),
            };
            return Err(Diagnostic::error(span, message).hint(hint));
        }
        Ok(Element::Number(id, at as u32))
    }

    /// Replaces a pointer that never changes by what it points to.
    fn follow(&mut self, x: &mut Instruction, fixed: &Pointers) {
        for operand in &mut x.operands {
            let Operand::Memory(m) = operand else {
                continue;
            };
            let Element::Pointer(p) = &m.at else { continue };
            if p.index.is_some() {
                continue;
            }
            let (base, offset) = (p.base.base, p.offset);
            if let Some((name, element)) = fixed.get(&base) {
                match self.at_offset(name, *element, offset, m.span) {
                    Ok(at) => m.at = at,
                    Err(d) => self.diagnostics.push(d),
                }
            }
        }
    }

    fn note_access(&mut self, x: &Instruction) {
        let Some(m) = x.memory() else { return };
        let size = match x.op {
            Op::Lea => return,
            Op::Movzx | Op::Movsx => m.size.or(x.source),
            _ => operation_size(x).ok().flatten(),
        };
        match m.at.region() {
            Some(id) => self.locations.accessed(id, size),
            None => {
                let pointed = 0..self.locations.all.len();
                for i in pointed
                    .filter(|i| self.locations.all[*i].pointed)
                    .collect::<Vec<_>>()
                {
                    self.locations
                        .accessed(wattle_model::RegionId::new(i), size);
                }
            }
        }
    }
}

/// Registers that start as an address and are never written.
fn fixed_pointers(thread: i64, init: &[Declaration], code: &Code) -> Pointers {
    let written: BTreeSet<Base> = code
        .instructions
        .iter()
        .flat_map(Instruction::written)
        .collect();
    let mut fixed = Pointers::new();
    for d in init {
        let Item::Register {
            thread: t,
            register,
        } = &d.item
        else {
            continue;
        };
        let Some(name) = Name::parse(register).filter(|_| *t == thread) else {
            continue;
        };
        match d.values.as_slice() {
            [(Value::Address(location, element), _)] if !written.contains(&name.base) => {
                fixed.insert(name.base, (location.clone(), *element));
            }
            _ => {
                fixed.remove(&name.base);
            }
        }
    }
    fixed
}
