//! One thread's instructions as a graph of steps.

use super::effects::{Done, Temporaries};
use super::flags;
use super::instruction::{Code, Instruction};
use super::register::{Base, Size};
use super::thread::{Graph, Position, wrapping};
use crate::diagnostics::{Diagnostic, nearest};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::{Action, Register, Step};
use wattle_model::{FamilyId, Init, Location, LocationId, RegisterId, Span, Type};
use wattle_x86::bits::{E, VarId};
use wattle_x86::graph::Vars;
use wattle_x86::instruction::Op;
use wattle_x86::meaning::Micro;

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
    let early = std::mem::take(&mut thread.live[0]);
    let unset = early.into_iter().map(|f| thread.graph.flag(f)).collect();
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
    /// The flags that are read before they are set, from each instruction on.
    pub(super) live: Vec<BTreeSet<VarId>>,
    pub(super) vars: Vars,
    pub(super) graph: Graph,
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
            live: vec![BTreeSet::new(); code.instructions.len() + 1],
            joined: joined.collect(),
            labelled: code.labels.iter().map(|l| l.at).collect(),
            code,
            machine,
            widths,
            targets,
            successors,
            vars: Vars::default(),
            graph,
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
        let code = self.code;
        // What is wrong is told once, and has no steps.
        let mut wrong = BTreeSet::new();
        let mut exact = Vec::new();
        let mut ops: Vec<Vec<Micro>> = Vec::new();
        for (i, x) in code.instructions.iter().enumerate() {
            let done = self.operations(x).unwrap_or_else(|d| {
                diagnostics.push(d);
                wrong.insert(i);
                Done::default()
            });
            exact.push(done.exact);
            ops.push(done.ops);
        }
        let mut fused = self.fused(&ops);
        self.flags(&ops, &fused);
        let mut before = (Temporaries::default(), false);
        for (i, x) in code.instructions.iter().enumerate() {
            let skipped = x.op == Op::Jmp && !self.labelled.contains(&i) && i != 0;
            if skipped || wrong.contains(&i) {
                continue;
            }
            let (kept, _) = flags::needed(&ops[i], &self.after(i));
            let mut jump = fused.remove(&(i + 1));
            let kept = flags::settled(kept, &mut jump);
            let done = self.instruction(i, x, (kept, exact[i]), fused.get(&i), &mut before);
            fused.extend(jump.map(|e| (i + 1, e)));
            match done {
                Ok(after) => before = after,
                Err(d) => diagnostics.push(d),
            }
        }
    }

    /// What jumps take from operands instead of flags: where nothing else leads to a jump but the
    /// instruction before it.
    fn fused(&self, ops: &[Vec<Micro>]) -> BTreeMap<usize, E> {
        let jumps = (self.code.instructions.iter().enumerate().skip(1))
            .filter(|(i, _)| !self.joined.contains(i));
        let said = jumps.filter_map(|(i, x)| match x.op {
            Op::Jcc(c) => Some((i, flags::afterwards(c.flag(), &ops[i - 1])?)),
            _ => None,
        });
        said.collect()
    }

    /// Which flags are read from each instruction on.
    fn flags(&mut self, ops: &[Vec<Micro>], fused: &BTreeMap<usize, E>) {
        let n = self.code.instructions.len();
        let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); n + 1];
        for (i, next) in self.successors.iter().enumerate() {
            for s in next {
                predecessors[*s].push(i);
            }
        }
        // Each instruction is looked at again only when a successor has gained a flag.
        let mut work: Vec<usize> = (0..n).collect();
        while let Some(i) = work.pop() {
            let (_, mut before) = flags::needed(&ops[i], &self.after(i));
            if let Op::Jcc(c) = self.code.instructions[i].op
                && !fused.contains_key(&i)
            {
                before.insert(c.flag());
            }
            if before != self.live[i] {
                self.live[i] = before;
                work.extend(&predecessors[i]);
            }
        }
    }

    /// The flags that are read after an instruction.
    fn after(&self, i: usize) -> BTreeSet<VarId> {
        let next = self.successors[i].iter();
        next.flat_map(|s| self.live[*s].iter().copied()).collect()
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

    /// Steps of one instruction; the scratch registers it leaves something in, and whether that is exact,
    /// are given back for the jump that may follow.
    fn instruction(
        &mut self,
        i: usize,
        x: &Instruction,
        ops: (Vec<Micro>, bool),
        fused: Option<&E>,
        before: &mut (Temporaries, bool),
    ) -> Result<(Temporaries, bool), Diagnostic> {
        let next = self.position(i + 1);
        match x.op {
            Op::Jmp => {
                let to = self.position(self.targets[i]);
                self.graph.step((i, 0), to, Action::Skip, x.span);
                Ok(Default::default())
            }
            Op::Jcc(c) => {
                let value = match fused {
                    Some(e) => e.clone(),
                    None => E::Var(c.flag(), 1),
                };
                let (temporaries, exact) = before;
                let taken = self.said(&value, x, temporaries, *exact)?;
                let taken = if c.negated { taken.negate() } else { taken };
                let to = self.position(self.targets[i]);
                let refused = taken.clone().negate();
                self.graph.step((i, 0), to, Action::Assume(taken), x.span);
                self.graph
                    .step((i, 0), next, Action::Assume(refused), x.span);
                Ok(Default::default())
            }
            _ => self.steps(i, x, ops, next),
        }
    }
}
