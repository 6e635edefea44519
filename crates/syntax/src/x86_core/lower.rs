//! One thread's instructions as a graph of steps.

use super::flags::{self, Flag, Flags, Outcome};
use super::instruction::{Code, Element, Immediate, Instruction, Memory, Operand, Pointer};
use super::mnemonic::{Condition, Op};
use super::register::{Base, Name, Size, wrapped};
use super::sizes::operation_size;
use super::thread::{Graph, Position, wrapping};
use crate::diagnostics::{Diagnostic, nearest};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::{Action, Place, Register, Step};
use wattle_model::{
    Expr, FamilyId, Fence, Init, Local, Location, LocationId, Op1, Op2, RegisterId, Span, Type,
};

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
                    diagnostics.push(undefined_label(name, *span, labels.keys().copied()));
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

struct Translation<'a> {
    code: &'a Code,
    machine: &'a Machine<'a>,
    widths: &'a BTreeMap<Base, Size>,
    targets: Vec<usize>,
    successors: Vec<Vec<usize>>,
    /// Instructions some jump leads to.
    joined: BTreeSet<usize>,
    labelled: BTreeSet<usize>,
    live: Vec<Flags>,
    graph: Graph,
    /// Flags that the next instruction, a jump, takes from operands instead of registers.
    fused: BTreeMap<Flag, Expr<Local>>,
}

/// What one instruction works on.
#[derive(Clone, Copy)]
struct Width {
    size: Size,
    /// Mathematical: no wrapping.
    exact: bool,
}

impl Width {
    fn wrap(self) -> Option<Size> {
        (!self.exact).then_some(self.size)
    }
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
    fn position(&self, i: usize) -> Position {
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

    /// Instructions without a branch of their own.
    fn straight(&mut self, i: usize, x: &Instruction) -> Result<Vec<Action>, Diagnostic> {
        let w = self.width(x)?;
        let mut actions = Vec::new();
        let locked = x.lock || (x.op == Op::Xchg && x.memory().is_some());
        match (x.op, x.operands.as_slice()) {
            (Op::Mov, [Operand::Register(n, _), Operand::Memory(m)]) => {
                let place = self.place(m, w);
                if self.whole(*n) && !w.exact || w.exact {
                    let register = self.id(*n);
                    actions.push(Action::Load { register, place });
                } else {
                    let value = self.load(&mut actions, m, w);
                    actions.push(self.assign(*n, value));
                }
            }
            (Op::Mov, [Operand::Memory(m), source]) => {
                let value = self.value(source, w);
                let place = self.place(m, w);
                actions.push(Action::Store { place, value });
            }
            (Op::Mov, [Operand::Register(n, _), source]) => {
                let value = self.value(source, w);
                actions.push(self.assign(*n, value));
            }
            (Op::Cmp | Op::Test, [a, b]) => {
                let a = self.operand(&mut actions, a, w);
                let b = self.operand(&mut actions, b, w);
                let outcome = match x.op {
                    Op::Cmp => Outcome::Difference(a, b),
                    _ if a == b => Outcome::Logic(a),
                    _ => Outcome::Logic(Expr::binary(Op2::BitAnd, a, b)),
                };
                self.keep_flags(i, x, &outcome, w, None, &mut actions)?;
            }
            (Op::Xchg | Op::UnlockedXchg, [Operand::Register(a, _), Operand::Register(b, _)]) => {
                let t = self.graph.temporary(w.wrap());
                let value = self.read(*a);
                actions.push(Action::Assign { register: t, value });
                let value = self.read(*b);
                actions.push(self.assign(*a, value));
                actions.push(self.assign(*b, temporary(t)));
            }
            (
                Op::Xchg | Op::UnlockedXchg,
                [Operand::Register(n, _), Operand::Memory(m)]
                | [Operand::Memory(m), Operand::Register(n, _)],
            ) => {
                begin(locked, &mut actions);
                let old = self.load(&mut actions, m, w);
                let (value, place) = (self.read(*n), self.place(m, w));
                actions.push(Action::Store { place, value });
                end(locked, &mut actions);
                actions.push(self.assign(*n, old));
            }
            (Op::Xadd, [Operand::Memory(m), Operand::Register(n, _)]) => {
                begin(locked, &mut actions);
                let old = self.load(&mut actions, m, w);
                let outcome = Outcome::Sum(old.clone(), self.read(*n));
                self.keep_flags(i, x, &outcome, w, None, &mut actions)?;
                self.fused.clear();
                let value = Expr::binary(Op2::Add, old.clone(), self.read(*n));
                let place = self.place(m, w);
                actions.push(Action::Store { place, value });
                end(locked, &mut actions);
                actions.push(self.assign(*n, old));
            }
            (Op::Xadd, [Operand::Register(a, _), Operand::Register(b, _)]) => {
                let (va, vb) = (self.read(*a), self.read(*b));
                let outcome = Outcome::Sum(va.clone(), vb.clone());
                self.keep_flags(i, x, &outcome, w, None, &mut actions)?;
                self.fused.clear();
                let t = self.graph.temporary(w.wrap());
                let value = Expr::binary(Op2::Add, va.clone(), vb);
                actions.push(Action::Assign { register: t, value });
                actions.push(self.assign(*b, va));
                actions.push(self.assign(*a, temporary(t)));
            }
            (Op::Set(c), [target]) => {
                let value = self.condition(c, &BTreeMap::new());
                match target {
                    Operand::Memory(m) => {
                        let place = self.place(m, w);
                        actions.push(Action::Store { place, value });
                    }
                    Operand::Register(n, _) => actions.push(self.assign(*n, value)),
                    Operand::Immediate(..) => {}
                }
            }
            (Op::Cmov(c), [Operand::Register(n, _), source]) => {
                let source = self.operand(&mut actions, source, w);
                let taken = self.condition(c, &BTreeMap::new());
                let value = Expr::ite(taken, source, self.read(*n));
                actions.push(self.assign(*n, value));
            }
            (_, [target, rest @ ..]) => self.modify(i, x, w, target, rest.first(), &mut actions)?,
            (_, []) => {}
        }
        Ok(actions)
    }

    /// `add`, `sub`, `and`, `or`, `xor`, `inc`, `dec`, `not`, `neg`.
    fn modify(
        &mut self,
        i: usize,
        x: &Instruction,
        w: Width,
        target: &Operand,
        source: Option<&Operand>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Diagnostic> {
        let in_memory = target.memory().is_some();
        let locked = x.lock && in_memory;
        begin(locked, actions);
        let old = self.operand(actions, target, w);
        let other = match source {
            Some(o) => self.operand(actions, o, w),
            None => Expr::Const(1),
        };
        let same = source.is_some() && old == other && !in_memory;
        let binary = |op| Expr::binary(op, old.clone(), other.clone());
        let (value, outcome) = match x.op {
            Op::Xor | Op::Sub if same => (Expr::Const(0), Outcome::Logic(Expr::Const(0))),
            Op::And => (binary(Op2::BitAnd), Outcome::Logic(binary(Op2::BitAnd))),
            Op::Or => (binary(Op2::BitOr), Outcome::Logic(binary(Op2::BitOr))),
            Op::Xor => (binary(Op2::BitXor), Outcome::Logic(binary(Op2::BitXor))),
            Op::Sub | Op::Dec => (
                binary(Op2::Sub),
                Outcome::Difference(old.clone(), other.clone()),
            ),
            Op::Neg => (
                flags::negated(old.clone()),
                Outcome::Difference(Expr::Const(0), old.clone()),
            ),
            Op::Not => {
                let value = Expr::unary(Op1::BitNot, old.clone());
                (value.clone(), Outcome::Logic(value))
            }
            _ => (binary(Op2::Add), Outcome::Sum(old.clone(), other.clone())),
        };
        match target {
            Operand::Memory(m) => {
                let t = self.graph.temporary(w.wrap());
                self.keep_flags(i, x, &outcome, w, Some(temporary(t)), actions)?;
                actions.push(Action::Assign { register: t, value });
                let place = self.place(m, w);
                actions.push(Action::Store {
                    place,
                    value: temporary(t),
                });
            }
            Operand::Register(n, _) => {
                let result = self.read(*n);
                self.keep_flags(i, x, &outcome, w, Some(result), actions)?;
                actions.push(self.assign(*n, value));
            }
            Operand::Immediate(..) => {}
        }
        end(locked, actions);
        Ok(())
    }

    /// `cmpxchg`: compares the accumulator with the first operand; equal stores the second there,
    /// different loads the first into the accumulator.
    fn compare_exchange(&mut self, i: usize, x: &Instruction) -> Result<(), Diagnostic> {
        let w = self.width(x)?;
        let [target, Operand::Register(new, _)] = x.operands.as_slice() else {
            return Ok(());
        };
        let accumulator = Name {
            base: Base::A,
            size: w.size,
            high: false,
        };
        let locked = x.lock && target.memory().is_some();
        let t = self.graph.temporary(w.wrap());
        let mut actions = Vec::new();
        begin(locked, &mut actions);
        match target {
            Operand::Memory(m) => {
                self.load(&mut actions, m, w);
            }
            other => {
                let value = self.value(other, w);
                actions.push(Action::Assign { register: t, value });
            }
        }
        let outcome = Outcome::Difference(self.read(accumulator), temporary(t));
        let live = flags::after(i, &self.live, &self.successors);
        let zero = live.contains(Flag::Zero);
        self.assign_flags(
            live.without(Flags::of(&[Flag::Zero])),
            x,
            &outcome,
            w,
            &mut actions,
        )?;
        let fork = (i, actions.len());
        let next = self.position(i + 1);
        self.graph.chain((i, 0), fork, 1, actions, x.span);
        let equal = Expr::binary(Op2::Eq, self.read(accumulator), temporary(t));
        for success in [true, false] {
            let mut branch = Vec::new();
            let test = if success {
                equal.clone()
            } else {
                equal.clone().negate()
            };
            branch.push(Action::Assume(test));
            if zero {
                branch.push(Action::Assign {
                    register: self.graph.flag(Flag::Zero),
                    value: Expr::Const(i64::from(success)),
                });
            }
            match (target, success) {
                (Operand::Memory(m), true) => {
                    let (place, value) = (self.place(m, w), self.read(*new));
                    branch.push(Action::Store { place, value });
                }
                (Operand::Memory(m), false) => {
                    if !locked {
                        let place = self.place(m, w);
                        let value = temporary(t);
                        branch.push(Action::Store { place, value });
                    }
                    branch.push(self.assign(accumulator, temporary(t)));
                }
                (Operand::Register(n, _), true) => {
                    let value = self.read(*new);
                    branch.push(self.assign(*n, value));
                }
                (_, false) => branch.push(self.assign(accumulator, temporary(t))),
                (Operand::Immediate(..), true) => {}
            }
            end(locked, &mut branch);
            let first = fork.1 + if success { 1 } else { 20 };
            self.graph.chain(fork, next, first, branch, x.span);
        }
        Ok(())
    }

    /// Stores the flags that are read later, and hands those the next jump needs to it directly
    /// where possible. `result` is where the result will be; without one nothing is written.
    fn keep_flags(
        &mut self,
        i: usize,
        x: &Instruction,
        outcome: &Outcome,
        w: Width,
        result: Option<Expr<Local>>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Diagnostic> {
        let sets = x.op.sets();
        let live = flags::after(i, &self.live, &self.successors);
        let jump = self.code.instructions.get(i + 1);
        let only_here = !self.joined.contains(&(i + 1));
        let mut store = live;
        if let Some(Instruction { op: Op::Jcc(c), .. }) = jump
            && only_here
            && !matches!(x.op, Op::Xadd)
        {
            store = flags::after(i + 1, &self.live, &self.successors);
            for flag in c.needs().iter().filter(|f| sets.contains(*f)) {
                let fused = match &result {
                    Some(r) => outcome.after(flag, r, w.exact),
                    None => outcome.before(flag, w.wrap()),
                };
                match fused {
                    Some(e) => {
                        self.fused.insert(flag, e);
                    }
                    None => store = store.union(Flags::of(&[flag])),
                }
            }
        }
        let store = store.without(Flags::ALL.without(sets));
        self.assign_flags(store, x, outcome, w, actions)
    }

    fn assign_flags(
        &mut self,
        store: Flags,
        x: &Instruction,
        outcome: &Outcome,
        w: Width,
        actions: &mut Vec<Action>,
    ) -> Result<(), Diagnostic> {
        for flag in store.iter() {
            let Some(value) = outcome.before(flag, w.wrap()) else {
                return Err(Diagnostic::error(
                    x.span,
                    "mathematical integers have no carry and no overflow",
                )
                .hint("use signed comparisons, or wrap-around numbers"));
            };
            let register = self.graph.flag(flag);
            actions.push(Action::Assign { register, value });
        }
        Ok(())
    }

    fn condition(&mut self, c: Condition, fused: &BTreeMap<Flag, Expr<Local>>) -> Expr<Local> {
        for flag in c.needs().iter().filter(|f| !fused.contains_key(f)) {
            self.graph.flag(flag);
        }
        c.expr(|flag| match fused.get(&flag) {
            Some(e) => e.clone(),
            None => self.graph.flag_value(flag),
        })
    }

    /// Loads a memory operand into the scratch register.
    fn load(&mut self, actions: &mut Vec<Action>, m: &Memory, w: Width) -> Expr<Local> {
        let register = self.graph.temporary(w.wrap());
        let place = self.place(m, w);
        actions.push(Action::Load { register, place });
        temporary(register)
    }

    fn operand(&mut self, actions: &mut Vec<Action>, o: &Operand, w: Width) -> Expr<Local> {
        match o {
            Operand::Memory(m) => self.load(actions, m, w),
            _ => self.value(o, w),
        }
    }

    /// The value of an operand that is not in memory.
    fn value(&self, o: &Operand, w: Width) -> Expr<Local> {
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

    fn id(&self, n: Name) -> RegisterId {
        RegisterId::new(self.widths.keys().position(|b| *b == n.base).unwrap_or(0))
    }

    fn whole(&self, n: Name) -> bool {
        !n.high && self.widths.get(&n.base) == Some(&n.size)
    }

    fn read(&self, n: Name) -> Expr<Local> {
        let whole = Expr::Atom(Local::Register(self.id(n)));
        match self.machine.arithmetic {
            Arithmetic::Mathematical => whole,
            Arithmetic::Wrapping => {
                let width = self.widths.get(&n.base).copied().unwrap_or(n.size);
                n.read(whole, width)
            }
        }
    }

    fn assign(&self, n: Name, value: Expr<Local>) -> Action {
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

    fn place(&self, m: &Memory, _: Width) -> Place {
        match &m.at {
            Element::Number(r, i) => Place::Region(*r, Expr::Const(i64::from(*i))),
            Element::Own(r) => Place::Region(*r, Expr::Atom(Local::SelfIndex)),
            Element::Pointer(p) => Place::Memory(self.cell_number(p)),
        }
    }

    /// The flat cell an address falls on; between two cells there is none.
    fn cell_number(&self, p: &Pointer) -> Expr<Local> {
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
    fn width(&self, x: &Instruction) -> Result<Width, Diagnostic> {
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

fn temporary(r: RegisterId) -> Expr<Local> {
    Expr::Atom(Local::Register(r))
}

fn begin(locked: bool, actions: &mut Vec<Action>) {
    if locked {
        actions.push(Action::AtomicBegin);
    }
}

fn end(locked: bool, actions: &mut Vec<Action>) {
    if locked {
        actions.push(Action::AtomicEnd);
    }
}
