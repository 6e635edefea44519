//! Instructions with names resolved, operands in the Intel order (destination first).

use super::register::{Base, Name, Size};
use super::sizes::operation_size;
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::{RegionId, Span};
use wattle_x86::instruction::Op;

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
    /// The size of what is read, where the mnemonic names that too (`movzbl`).
    pub source: Option<Size>,
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
    /// So many bytes behind this element of an array: a register times a number.
    Indexed {
        region: RegionId,
        element: i64,
        index: (Name, i64),
    },
    Pointer(Pointer),
}

impl Element {
    /// The region it lies in, where that is said.
    pub fn region(&self) -> Option<RegionId> {
        match self {
            Element::Number(r, _) | Element::Own(r) => Some(*r),
            Element::Indexed { region, .. } => Some(*region),
            Element::Pointer(_) => None,
        }
    }

    /// Registers an address is made of.
    fn names(&self) -> Vec<Name> {
        match self {
            Element::Number(..) | Element::Own(_) => Vec::new(),
            Element::Indexed { index, .. } => vec![index.0],
            Element::Pointer(p) => p.names(),
        }
    }
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
            Op::Cmp | Op::Test | Op::Bt | Op::Mul | Op::Imul | Op::Lea | Op::Cmov(_) => false,
            Op::Xchg | Op::UnlockedXchg => self.memory().is_some(),
            _ => first,
        }
    }

    /// The accumulator, and the data register with it, where the instruction works on them unasked.
    fn implied(&self) -> Vec<Name> {
        let name = |base, bits: u32| Name {
            base,
            size: match bits {
                8 => Size::Byte,
                16 => Size::Word,
                32 => Size::Dword,
                _ => Size::Qword,
            },
            high: false,
        };
        let size = || operation_size(self).ok().flatten().unwrap_or(Size::Dword);
        let bits = |size: Size| u32::from(size.bits());
        match self.op {
            Op::Cmpxchg => vec![name(Base::A, bits(size()))],
            Op::Widen(w) => vec![name(Base::A, w)],
            Op::Spread(w) => vec![name(Base::A, w), name(Base::D, w)],
            Op::Mul | Op::Imul if self.operands.len() == 1 => match size() {
                Size::Byte => vec![name(Base::A, 16)],
                s => vec![name(Base::A, bits(s)), name(Base::D, bits(s))],
            },
            _ => Vec::new(),
        }
    }

    /// Every register named, also inside addresses, and those that are implied.
    pub fn names(&self) -> Vec<Name> {
        let mut names = Vec::new();
        for operand in &self.operands {
            match operand {
                Operand::Register(n, _) => names.push(*n),
                Operand::Memory(m) => names.extend(m.at.names()),
                Operand::Immediate(..) => {}
            }
        }
        names.extend(self.implied());
        names
    }

    /// Registers whose value after the instruction differs from before, in general.
    pub fn written(&self) -> BTreeSet<Base> {
        let mut written = BTreeSet::new();
        let register = |i: usize| match self.operands.get(i) {
            Some(Operand::Register(n, _)) => Some(n.base),
            _ => None,
        };
        let kept = matches!(self.op, Op::Cmp | Op::Test | Op::Bt | Op::Mul)
            || self.op == Op::Imul && self.operands.len() == 1;
        if !kept {
            written.extend(register(0));
        }
        if matches!(self.op, Op::Xchg | Op::UnlockedXchg | Op::Xadd) {
            written.extend(register(1));
        }
        match self.op {
            Op::Spread(_) => drop(written.insert(Base::D)),
            _ => written.extend(self.implied().iter().map(|n| n.base)),
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
                    let moves = matches!(self.op, Op::Mov | Op::Movzx | Op::Movsx | Op::Lea);
                    let moves = moves || self.op == Op::Imul && self.operands.len() == 3;
                    let only_written = i == 0 && moves && n.size >= Size::Dword;
                    if !only_written {
                        read.insert(n.base);
                    }
                }
                Operand::Memory(m) => read.extend(m.at.names().iter().map(|n| n.base)),
                Operand::Immediate(..) => {}
            }
        }
        if !self.implied().is_empty() {
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
