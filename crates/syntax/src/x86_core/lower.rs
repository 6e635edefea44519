//! One thread's instructions as a graph of steps.

use super::flags::{self, Flag, Flags};
use super::instruction::{Code, Instruction};
use super::mnemonic::Op;
use super::register::{Base, Size};
use super::thread::{Graph, Position, wrapping};
use crate::diagnostics::{Diagnostic, nearest};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::{Action, Register, Step};
use wattle_model::{
    Expr, FamilyId, Fence, Init, Local, Location, LocationId, RegisterId, Span, Type,
};

/// With so many diagnostics, no more are looked for: they would cost time and help nobody.
pub const ENOUGH: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Registers and cells keep their low bits.
    Wrapping,
    /// Registers and cells hold any integer.
    Mathematical,
}

/// What the translation knows of a region.
#[derive(Clone, Debug)]
pub struct Cell {
    pub name: String,
    pub width: Size,
    /// Counts threads: holds an exact number and only knows a few operations.
    pub counter: bool,
}

/// What all threads share.
pub struct Machine<'a> {
    pub cells: &'a [Cell],
    pub arithmetic: Arithmetic,
    /// The family the code belongs to, for the number of threads.
    pub family: FamilyId,
    /// How addresses look as numbers: first address and distance of neighbouring cells.
    pub addresses: (i64, i64),
    /// How register names are spelt.
    pub lower_case: bool,
}

pub struct Lowered {
    pub registers: Vec<Register>,
    /// Flags that may be read before any instruction sets them.
    pub unset: Vec<RegisterId>,
    pub locations: Vec<Location>,
    pub steps: Vec<Step>,
    pub entry: LocationId,
}

/// Translates the code. The widest part used of each register is given; the thread's first
/// registers are these, in order. Registers without an initial value start with 0.
pub fn lower(
    code: &Code,
    widths: &BTreeMap<Base, Size>,
    inits: &BTreeMap<Base, Init>,
    machine: &Machine<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Lowered {
    let mut labels = BTreeMap::new();
    for l in &code.labels {
        if let Some((_, first)) = labels.insert(l.name.as_str(), (l.at, l.span)) {
            let message = format!("label `{}` is defined twice", l.name);
            let hint = format!("the other definition is on line {}", first.line);
            diagnostics.push(Diagnostic::error(l.span, message).hint(hint));
        }
    }
    let targets: Vec<usize> = code
        .instructions
        .iter()
        .enumerate()
        .map(|(i, instruction)| match &instruction.target {
            Some((name, span)) => match labels.get(name.as_str()) {
                Some((at, _)) => *at,
                None => {
                    if diagnostics.len() < ENOUGH {
                        let known = labels.keys().copied();
                        diagnostics.push(undefined_label(name, *span, known));
                    }
                    i + 1
                }
            },
            None => i + 1,
        })
        .collect();
    let mut graph = Graph::default();
    graph
        .taken
        .extend(machine.cells.iter().map(|c| c.name.clone()));
    for (base, width) in widths {
        let (name, ty) = match machine.arithmetic {
            Arithmetic::Wrapping => (base.name(*width), wrapping(*width)),
            Arithmetic::Mathematical => (base.name(Size::Dword), Type::Int),
        };
        let name = if machine.lower_case {
            name.to_ascii_lowercase()
        } else {
            name
        };
        let init = inits.get(base).cloned().unwrap_or_default();
        graph.register(name, ty, init);
    }
    let mut thread = Translation::new(code, widths, machine, targets, graph);
    thread.run(diagnostics);
    let early = thread.live[0];
    let unset = early.iter().map(|f| thread.graph.flag(f)).collect();
    let (registers, locations, steps, entry) = thread.finish();
    Lowered {
        registers,
        unset,
        locations,
        steps,
        entry,
    }
}

fn undefined_label<'a>(name: &str, span: Span, all: impl Iterator<Item = &'a str>) -> Diagnostic {
    let d = Diagnostic::error(span, format!("there is no label `{name}`"));
    match nearest(name, all) {
        Some(near) => d.hint(format!("did you mean `{near}`?")),
        None => d.expected("a label of this thread"),
    }
}

pub(super) struct Translation<'a> {
    pub(super) code: &'a Code,
    pub(super) machine: &'a Machine<'a>,
    pub(super) widths: &'a BTreeMap<Base, Size>,
    pub(super) targets: Vec<usize>,
    pub(super) successors: Vec<Vec<usize>>,
    /// Instructions some jump leads to.
    pub(super) joined: BTreeSet<usize>,
    pub(super) labelled: BTreeSet<usize>,
    pub(super) live: Vec<Flags>,
    pub(super) graph: Graph,
    /// Flags that the next instruction, a jump, takes from operands instead of registers.
    pub(super) fused: BTreeMap<Flag, Expr<Local>>,
}

impl<'a> Translation<'a> {
    fn new(
        code: &'a Code,
        widths: &'a BTreeMap<Base, Size>,
        machine: &'a Machine<'a>,
        targets: Vec<usize>,
        graph: Graph,
    ) -> Self {
        let successors: Vec<Vec<usize>> = code
            .instructions
            .iter()
            .enumerate()
            .map(|(i, instruction)| match instruction.op {
                Op::Jmp => vec![targets[i]],
                Op::Jcc(_) => vec![targets[i], i + 1],
                _ => vec![i + 1],
            })
            .collect();
        let jumps = code.instructions.iter().zip(&targets);
        let joined = jumps.filter(|(i, _)| i.op.is_jump()).map(|(_, t)| *t);
        Translation {
            live: flags::live(code, &successors),
            joined: joined.collect(),
            labelled: code.labels.iter().map(|l| l.at).collect(),
            code,
            machine,
            widths,
            targets,
            successors,
            graph,
            fused: BTreeMap::new(),
        }
    }

    fn run(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        let end = self.code.instructions.len();
        let last = self.code.instructions.last().map_or(Span::NONE, |i| i.span);
        self.graph.location((end, 0), last);
        for l in &self.code.labels {
            let span = self.code.instructions.get(l.at).map_or(l.span, |i| i.span);
            let location = self.graph.location((l.at, 0), span);
            if !location.labels.contains(&l.name) {
                location.labels.push(l.name.clone());
            }
        }
        for (i, instruction) in self.code.instructions.iter().enumerate() {
            if instruction.op == Op::Jmp && !self.labelled.contains(&i) && i != 0 {
                self.fused.clear();
                continue;
            }
            if let Err(d) = self.instruction(i, instruction) {
                diagnostics.push(d);
                self.fused.clear();
            }
        }
    }

    /// Where control goes after falling into instruction `i`; jumps without a label of their own
    /// are followed at once.
    pub(super) fn position(&self, i: usize) -> Position {
        match self.code.instructions.get(i) {
            Some(jump) if jump.op == Op::Jmp && i != 0 && !self.labelled.contains(&i) => {
                (self.targets[i], 0)
            }
            _ => (i, 0),
        }
    }

    fn finish(self) -> (Vec<Register>, Vec<Location>, Vec<Step>, LocationId) {
        self.graph.finish((0, 0))
    }

    fn instruction(&mut self, i: usize, x: &Instruction) -> Result<(), Diagnostic> {
        let fused = std::mem::take(&mut self.fused);
        let next = self.position(i + 1);
        let chain = |graph: &mut Graph, actions| graph.chain((i, 0), next, 1, actions, x.span);
        match x.op {
            Op::Jmp => {
                let to = self.position(self.targets[i]);
                self.graph.step((i, 0), to, Action::Skip, x.span);
                return Ok(());
            }
            Op::Jcc(c) => {
                let taken = self.condition(c, &fused);
                let to = self.position(self.targets[i]);
                let refused = taken.clone().negate();
                self.graph.step((i, 0), to, Action::Assume(taken), x.span);
                self.graph
                    .step((i, 0), next, Action::Assume(refused), x.span);
                return Ok(());
            }
            Op::Mfence => chain(&mut self.graph, vec![Action::Fence(Fence::Full)]),
            Op::Sfence => chain(&mut self.graph, vec![Action::Fence(Fence::Store)]),
            Op::Lfence | Op::Nop => chain(&mut self.graph, vec![]),
            Op::Cmpxchg => self.compare_exchange(i, x)?,
            _ => {
                let actions = self.straight(i, x)?;
                chain(&mut self.graph, actions);
            }
        }
        Ok(())
    }
}
