//! Instructions with names resolved, operands in the Intel order (destination first).

use super::mnemonic::Op;
use super::register::{Base, Name, Size};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::{RegionId, Span};

/// The instructions of one thread.
#[derive(Clone, Debug, Default)]
pub struct Code {
    pub instructions: Vec<Instruction>,
    pub labels: Vec<Label>,
}

/// A label in front of instruction number `at`; the number of instructions marks the end.
#[derive(Clone, Debug)]
pub struct Label {
    pub name: String,
    pub at: usize,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Instruction<O = Operand> {
    pub op: Op,
    /// The size the mnemonic's suffix names.
    pub suffix: Option<Size>,
    pub lock: bool,
    pub operands: Vec<O>,
    /// The label a jump names.
    pub target: Option<(String, Span)>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Operand {
    Register(Name, Span),
    Immediate(Immediate, Span),
    Memory(Memory),
}

#[derive(Clone, Copy, Debug)]
pub enum Immediate {
    Number(i64),
    /// How many threads there are.
    Count,
    Address(RegionId),
}

#[derive(Clone, Debug)]
pub struct Memory {
    pub at: Element,
    /// The size a keyword such as `dword` names.
    pub size: Option<Size>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Element {
    Number(RegionId, u32),
    /// The running thread's element.
    Own(RegionId),
    Pointer(Pointer),
}

/// `offset + base + index * scale`, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Pointer {
    pub base: Name,
    pub index: Option<(Name, i64)>,
    pub offset: i64,
}

impl Code {
    /// Where each label stands; the first of several of the same name.
    pub fn label_positions(&self) -> BTreeMap<&str, usize> {
        let mut positions = BTreeMap::new();
        for l in &self.labels {
            positions.entry(l.name.as_str()).or_insert(l.at);
        }
        positions
    }

    /// For each instruction (and the end), the registers that every path to it has written.
    pub fn written_before(&self) -> Vec<BTreeSet<Base>> {
        let labels = self.label_positions();
        let n = self.instructions.len();
        // `None`: not reached yet.
        let mut before: Vec<Option<BTreeSet<Base>>> = vec![None; n + 1];
        before[0] = Some(BTreeSet::new());
        let mut work = vec![0];
        while let Some(i) = work.pop() {
            let Some(x) = self.instructions.get(i) else {
                continue;
            };
            let mut after = before[i].clone().unwrap_or_default();
            after.extend(x.written());
            let target = x.target.as_ref();
            let jump = target.and_then(|(name, _)| labels.get(name.as_str()).copied());
            let next = (x.op != Op::Jmp).then_some(i + 1);
            for s in next.into_iter().chain(jump) {
                let met = match &before[s] {
                    Some(known) => known.intersection(&after).copied().collect(),
                    None => after.clone(),
                };
                if before[s].as_ref() != Some(&met) {
                    before[s] = Some(met);
                    work.push(s);
                }
            }
        }
        before.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Registers that may be read before they are written, in general.
    pub fn read_first(&self) -> BTreeSet<Base> {
        let labels = self.label_positions();
        let n = self.instructions.len();
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); n + 1];
        for (i, x) in self.instructions.iter().enumerate() {
            if x.op != Op::Jmp {
                before[i + 1].push(i);
            }
            let target = x.target.as_ref();
            if let Some(t) = target.and_then(|(name, _)| labels.get(name.as_str())) {
                before[*t].push(i);
            }
        }
        let mut live: Vec<BTreeSet<Base>> = vec![BTreeSet::new(); n + 1];
        let mut work: Vec<(usize, Base)> = Vec::new();
        for (i, x) in self.instructions.iter().enumerate() {
            work.extend(x.read().into_iter().map(|base| (i, base)));
        }
        while let Some((i, base)) = work.pop() {
            if live[i].insert(base) {
                let passes = |p: &&usize| !self.instructions[**p].written().contains(&base);
                work.extend(before[i].iter().filter(passes).map(|p| (*p, base)));
            }
        }
        live.swap_remove(0)
    }
}

impl Operand {
    pub fn span(&self) -> Span {
        match self {
            Operand::Register(_, span) | Operand::Immediate(_, span) => *span,
            Operand::Memory(m) => m.span,
        }
    }

    pub fn memory(&self) -> Option<&Memory> {
        match self {
            Operand::Memory(m) => Some(m),
            _ => None,
        }
    }
}

impl Instruction {
    pub fn memory(&self) -> Option<&Memory> {
        self.operands.iter().find_map(Operand::memory)
    }

    /// Whether memory, if it is an operand, is written.
    pub fn writes_memory(&self) -> bool {
        let first = matches!(self.operands.first(), Some(Operand::Memory(_)));
        match self.op {
            Op::Cmp | Op::Test | Op::Cmov(_) => false,
            Op::Xchg | Op::UnlockedXchg => self.memory().is_some(),
            _ => first,
        }
    }

    /// Every register named, also inside addresses, and the accumulator where it is implied.
    pub fn names(&self) -> Vec<Name> {
        let mut names = Vec::new();
        for operand in &self.operands {
            match operand {
                Operand::Register(n, _) => names.push(*n),
                Operand::Memory(Memory {
                    at: Element::Pointer(p),
                    ..
                }) => names.extend(p.names()),
                _ => {}
            }
        }
        names
    }

    /// Registers whose value after the instruction differs from before, in general.
    pub fn written(&self) -> BTreeSet<Base> {
        let mut written = BTreeSet::new();
        let register = |i: usize| match self.operands.get(i) {
            Some(Operand::Register(n, _)) => Some(n.base),
            _ => None,
        };
        if !matches!(self.op, Op::Cmp | Op::Test) {
            written.extend(register(0));
        }
        if matches!(self.op, Op::Xchg | Op::UnlockedXchg | Op::Xadd) {
            written.extend(register(1));
        }
        if self.op == Op::Cmpxchg {
            written.insert(Base::A);
        }
        written
    }

    /// Registers read before anything is written. Writing a part counts as reading the whole, and
    /// `xor r, r` as reading nothing.
    pub fn read(&self) -> BTreeSet<Base> {
        let mut read = BTreeSet::new();
        if let (Op::Xor | Op::Sub, [Operand::Register(a, _), Operand::Register(b, _)]) =
            (self.op, self.operands.as_slice())
            && a == b
        {
            return read;
        }
        for (i, operand) in self.operands.iter().enumerate() {
            match operand {
                Operand::Register(n, _) => {
                    let only_written = i == 0 && self.op == Op::Mov && n.size >= Size::Dword;
                    if !only_written {
                        read.insert(n.base);
                    }
                }
                Operand::Memory(Memory {
                    at: Element::Pointer(p),
                    ..
                }) => read.extend(p.names().iter().map(|n| n.base)),
                _ => {}
            }
        }
        if self.op == Op::Cmpxchg {
            read.insert(Base::A);
        }
        read
    }
}

impl Pointer {
    pub fn names(&self) -> Vec<Name> {
        let index = self.index.map(|(n, _)| n);
        std::iter::once(self.base).chain(index).collect()
    }
}
