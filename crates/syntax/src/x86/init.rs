//! Code that runs before the threads start, run at once: what it leaves in memory are the initial
//! values. It is translated like a thread and its steps are followed on constants (and on the
//! number of threads, which is not known).

use super::build::Layout;
use super::code::Read;
use crate::diagnostics::Diagnostic;
use crate::x86_core::{Code, lower};
use wattle_model::program::{Action, Place};
use wattle_model::{Expr, FamilyId, Local, Span, Type};

const MAX_STEPS: usize = 10_000;

type Value = Expr<Local>;

/// Runs the code on memory. Messages go to the diagnostics; memory is then of no use.
pub fn run(
    read: &Read,
    layout: &Layout<'_>,
    memory: &mut [Vec<Option<Value>>],
    diagnostics: &mut Vec<Diagnostic>,
) {
    if let Some((at, span)) = read.started
        && at < read.code.instructions.len()
    {
        let message = "code after `start_threads` runs beside the threads, which is not supported";
        diagnostics.push(Diagnostic::error(span, message));
    }
    if let Err(d) = follow(&read.code, layout, memory, diagnostics) {
        diagnostics.push(d);
    }
}

fn follow(
    code: &Code,
    layout: &Layout<'_>,
    memory: &mut [Vec<Option<Value>>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    let widths = layout.widths(code, &[]);
    let before = diagnostics.len();
    let lowered = lower(
        code,
        &widths,
        &Default::default(),
        &layout.machine(FamilyId(0)),
        diagnostics,
    );
    if diagnostics.len() > before {
        return Ok(());
    }
    // General registers hold something nobody knows; scratch registers are written first.
    let mut registers: Vec<Option<Value>> = vec![None; widths.len()];
    registers.resize(lowered.registers.len(), Some(Expr::Const(0)));
    for flag in &lowered.unset {
        registers[flag.index()] = None;
    }
    let mut outgoing = vec![Vec::new(); lowered.locations.len()];
    for step in &lowered.steps {
        outgoing[step.source.index()].push(step);
    }
    let mut at = lowered.entry;
    for _ in 0..MAX_STEPS {
        let mut taken = None;
        for step in outgoing[at.index()].iter().copied() {
            match &step.action {
                Action::Assume(e) => {
                    if known(value(e, &registers, step.span)?, step.span)? != 0 {
                        taken = Some(step);
                        break;
                    }
                }
                _ => taken = Some(step),
            }
        }
        let Some(step) = taken else { return Ok(()) };
        match &step.action {
            Action::Assign { register, value: e } => {
                let v = value(e, &registers, step.span)?;
                let ty = lowered.registers[register.index()].ty;
                registers[register.index()] = Some(admit(v, ty));
            }
            Action::Load { register, place } => {
                let ty = lowered.registers[register.index()].ty;
                let (r, k) = cell(place, &registers, memory, step.span)?;
                let v = memory[r][k].clone().ok_or_else(|| {
                    let message = "this reads a variable that nothing has set";
                    Diagnostic::error(step.span, message)
                })?;
                registers[register.index()] = Some(admit(v, ty));
            }
            Action::Store { place, value: e } => {
                let v = value(e, &registers, step.span)?;
                let (r, k) = cell(place, &registers, memory, step.span)?;
                memory[r][k] = Some(admit(v, layout.types[r]));
            }
            _ => {}
        }
        at = step.target;
    }
    let message = format!("this code takes more than {MAX_STEPS} steps; does it end?");
    let span = code.instructions.first().map_or(Span::NONE, |i| i.span);
    Err(Diagnostic::error(span, message))
}

/// The variable and the element.
fn cell(
    place: &Place,
    registers: &[Option<Value>],
    memory: &[Vec<Option<Value>>],
    span: Span,
) -> Result<(usize, usize), Diagnostic> {
    let outside = || Diagnostic::error(span, "this is no element of the array");
    match place {
        Place::Region(r, index) => {
            let index = known(value(index, registers, span)?, span)?;
            let index = usize::try_from(index).map_err(|_| outside())?;
            let inside = index < memory[r.index()].len();
            inside.then_some((r.index(), index)).ok_or_else(outside)
        }
        Place::Memory(_) => Err(outside()),
    }
}

fn value(e: &Value, registers: &[Option<Value>], span: Span) -> Result<Value, Diagnostic> {
    e.substitute(&mut |leaf| match leaf {
        Local::Register(r) => registers[r.index()].clone().ok_or_else(|| {
            let message = "this reads a register or flag that nothing has set";
            Diagnostic::error(span, message)
        }),
        other => Ok(Expr::Atom(other.clone())),
    })
}

fn known(e: Value, span: Span) -> Result<i64, Diagnostic> {
    e.as_const().ok_or_else(|| {
        let message = "this depends on the number of threads or on an unknown initial value";
        Diagnostic::error(span, message)
    })
}

fn admit(v: Value, ty: Type) -> Value {
    match v {
        Expr::Const(c) => Expr::Const(ty.admit(c).unwrap_or(c)),
        v => v,
    }
}
