//! Where things are: process numbers, memory regions, domains, and what values expressions can have.

use super::ast::{Declaration, Domain, File, Leaf};
use crate::diagnostics::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::Local;
use wattle_model::{Expr, FamilyId, Init, Length, Op1, Op2, Region, RegionId, Type};

/// The processes of one `process(n)` block: numbers `first .. first + count`.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub index: usize,
    pub first: i64,
    pub count: u32,
}

/// The memory of a program.
pub(super) struct Memory {
    pub regions: Vec<Region>,
    /// Global data come first, one cell each, so a region's number is its address.
    pub globals: BTreeMap<String, RegionId>,
    pub domains: Vec<Domain>,
    data: BTreeMap<String, Data>,
    pub blocks: Vec<Block>,
    pub names: Names,
}

/// Where per-process data of one name live.
enum Data {
    /// Every process has them, with one domain: an array indexed by process number.
    Everywhere(RegionId),
    /// A region per block that declares them.
    PerBlock(BTreeMap<usize, RegionId>),
}

/// Names already given to regions and families; registers must differ from them.
#[derive(Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    pub fn unique(&mut self, wanted: &str) -> String {
        let name = self.free(wanted, &[]);
        self.0.insert(name.clone());
        name
    }

    /// A name like the wanted one that is neither taken nor among the others.
    pub fn free(&self, wanted: &str, others: &[String]) -> String {
        let mut name = wanted.to_string();
        while self.0.contains(&name) || others.contains(&name) {
            name.push('_');
        }
        name
    }
}

pub(super) fn ty(domain: Domain) -> Type {
    domain.map_or(Type::Int, |(lo, hi)| Type::Range { lo, hi })
}

pub(super) fn init(d: &Declaration) -> Init {
    d.init.map_or(Init::Any, |v| Init::All(Expr::Const(v)))
}

impl Memory {
    pub fn new(file: &File) -> Memory {
        let mut blocks = Vec::new();
        let mut first = 0;
        for (index, p) in file.processes.iter().enumerate() {
            blocks.push(Block {
                index,
                first,
                count: p.count,
            });
            first += i64::from(p.count);
        }
        let mut memory = Memory {
            regions: Vec::new(),
            globals: BTreeMap::new(),
            domains: Vec::new(),
            data: BTreeMap::new(),
            blocks,
            names: Names::default(),
        };
        for d in &file.globals {
            let id = memory.region(d, d.name.clone(), Length::Scalar, init(d));
            memory.globals.insert(d.name.clone(), id);
        }
        let total = u32::try_from(first).unwrap_or(u32::MAX);
        let all = file.processes.iter().flat_map(|p| &p.data);
        for d in all {
            if !memory.data.contains_key(&d.name) {
                let data = memory.place(file, d, total);
                memory.data.insert(d.name.clone(), data);
            }
        }
        memory
    }

    fn region(&mut self, d: &Declaration, name: String, length: Length, init: Init) -> RegionId {
        let id = RegionId::new(self.regions.len());
        self.domains.push(d.domain);
        let name = self.names.unique(&name);
        self.regions.push(Region {
            name,
            length,
            ty: ty(d.domain),
            init,
            span: d.span,
        });
        id
    }

    fn place(&mut self, file: &File, d: &Declaration, total: u32) -> Data {
        let of = |p: &super::ast::Process| p.data.iter().find(|x| x.name == d.name).cloned();
        let found: Vec<Option<Declaration>> = file.processes.iter().map(of).collect();
        let alike = |x: &Option<Declaration>| {
            x.as_ref()
                .is_some_and(|x| x.domain == d.domain && x.init.is_some() == d.init.is_some())
        };
        if found.iter().all(alike) {
            let values = found.iter().flatten().zip(&file.processes);
            let values = values.flat_map(|(x, p)| (0..p.count).map(|_| x.init));
            let values: Option<Vec<_>> = values.map(|v| v.map(Expr::Const)).collect();
            let init = match values {
                Some(v) if v.windows(2).any(|w| w[0] != w[1]) => Init::Each(v),
                _ => init(d),
            };
            let length = match (file.processes.len(), total) {
                (1, 2..) => Length::PerThread(FamilyId(0)),
                (1, _) => Length::Scalar,
                _ => Length::Array(total),
            };
            return Data::Everywhere(self.region(d, d.name.clone(), length, init));
        }
        let mut regions = BTreeMap::new();
        for (b, x) in found.iter().enumerate() {
            if let Some(x) = x {
                let length = match self.blocks[b].count {
                    1 => Length::Scalar,
                    _ => Length::PerThread(FamilyId::new(b)),
                };
                let name = format!("{}_{}", x.name, self.blocks[b].first);
                regions.insert(b, self.region(x, name, length, init(x)));
            }
        }
        Data::PerBlock(regions)
    }

    /// The cell of per-process data that process number `owner` has. `owner` is constant, or varies
    /// within the block `own`.
    pub fn data(
        &self,
        name: &str,
        owner: &Expr<Local>,
        own: Block,
    ) -> Option<(RegionId, Expr<Local>)> {
        let block = match owner.as_const() {
            Some(p) => *self.blocks.iter().find(|b| b.holds(p))?,
            None => own,
        };
        match self.data.get(name)? {
            Data::Everywhere(r) => Some((*r, owner.clone())),
            Data::PerBlock(regions) => {
                let r = regions.get(&block.index)?;
                Some((*r, shifted(owner, block.first)))
            }
        }
    }

    pub fn data_names(&self) -> impl Iterator<Item = &str> {
        self.data.keys().map(String::as_str)
    }
}

impl Block {
    fn holds(self, process: i64) -> bool {
        (self.first..self.first + i64::from(self.count)).contains(&process)
    }

    /// The process's own number.
    pub fn me(self) -> Expr<Local> {
        if self.count == 1 {
            return Expr::Const(self.first);
        }
        match self.first {
            0 => Expr::Atom(Local::SelfIndex),
            f => Expr::binary(Op2::Add, Expr::Const(f), Expr::Atom(Local::SelfIndex)),
        }
    }

    /// The number of the `k`-th other process: `k` if that is less than one's own, else `k + 1`.
    pub fn other(self, k: u32) -> Expr<Local> {
        let k = i64::from(k);
        if k < self.first {
            return Expr::Const(k);
        }
        if k - self.first >= i64::from(self.count) - 1 {
            return Expr::Const(k + 1);
        }
        let before = Expr::binary(
            Op2::Lt,
            Expr::Const(k - self.first),
            Expr::Atom(Local::SelfIndex),
        );
        Expr::ite(before, Expr::Const(k), Expr::Const(k + 1))
    }

    /// An expression in the model's leaves. Unknown registers go to `unknown`.
    pub fn resolve<E>(
        self,
        e: &Expr<Leaf>,
        register: &mut impl FnMut(&Leaf) -> Result<Expr<Local>, E>,
    ) -> Result<Expr<Local>, E> {
        e.substitute(&mut |leaf| match leaf {
            Leaf::Me => Ok(self.me()),
            Leaf::Other(k) => Ok(self.other(*k)),
            leaf => register(leaf),
        })
    }
}

/// `e − by`, folded.
fn shifted(e: &Expr<Local>, by: i64) -> Expr<Local> {
    match e {
        Expr::Const(c) => Expr::Const(c - by),
        Expr::Ite(c, a, b) => Expr::ite((**c).clone(), shifted(a, by), shifted(b, by)),
        Expr::Binary(Op2::Add, a, b) if a.as_const() == Some(by) => (**b).clone(),
        e if by == 0 => e.clone(),
        e => Expr::binary(Op2::Sub, e.clone(), Expr::Const(by)),
    }
}

/// The least and greatest value an arithmetic expression can have; `None` if unbounded.
pub(super) fn range(e: &Expr<Local>, leaf: &dyn Fn(&Local) -> Domain) -> Domain {
    let narrow = |lo: i128, hi: i128| Some((i64::try_from(lo).ok()?, i64::try_from(hi).ok()?));
    let wide = |(lo, hi): (i64, i64)| (i128::from(lo), i128::from(hi));
    match e {
        Expr::Const(c) => Some((*c, *c)),
        Expr::Atom(a) => leaf(a),
        Expr::Unary(Op1::Neg, a) => {
            let (lo, hi) = wide(range(a, leaf)?);
            narrow(-hi, -lo)
        }
        Expr::Unary(..) => e.is_logical().then_some((0, 1)),
        Expr::Binary(op, a, b) => {
            if op.is_logical() {
                return Some((0, 1));
            }
            let (a, b) = (wide(range(a, leaf)?), wide(range(b, leaf)?));
            match op {
                Op2::Add => narrow(a.0 + b.0, a.1 + b.1),
                Op2::Sub => narrow(a.0 - b.1, a.1 - b.0),
                _ => None,
            }
        }
        Expr::Ite(_, a, b) => hull([range(a, leaf), range(b, leaf)]),
    }
}

/// The least domain that holds all of them.
pub(super) fn hull(domains: impl IntoIterator<Item = Domain>) -> Domain {
    let mut all: Domain = None;
    for d in domains {
        let (lo, hi) = d?;
        all = Some(all.map_or((lo, hi), |(l, h)| (l.min(lo), h.max(hi))));
    }
    all
}

/// Whether every value of `inner` is in `outer`.
pub(super) fn within(inner: Domain, outer: Domain) -> bool {
    match (inner, outer) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some((a, b)), Some((lo, hi))) => lo <= a && b <= hi,
    }
}

/// The condition that a value is in a domain; `None` if its range shows that it always is.
pub(super) fn membership(value: &Expr<Local>, of: Domain, domain: Domain) -> Option<Expr<Local>> {
    let (lo, hi) = domain?;
    if within(of, domain) {
        return None;
    }
    if let Some(c) = value.as_const() {
        return Some(Expr::Const(i64::from(lo <= c && c <= hi)));
    }
    let low = (of.is_none_or(|(a, _)| a < lo))
        .then(|| Expr::binary(Op2::Le, Expr::Const(lo), value.clone()));
    let high = (of.is_none_or(|(_, b)| b > hi))
        .then(|| Expr::binary(Op2::Le, value.clone(), Expr::Const(hi)));
    crate::flow::junction(Op2::And, low.into_iter().chain(high).collect())
}

/// A message about a name nobody declared.
pub(super) fn unknown<'a>(
    what: &str,
    name: &str,
    span: wattle_model::Span,
    known: impl Iterator<Item = &'a str>,
) -> Diagnostic {
    let shown = crate::tokens::clip(name);
    let mut d = Diagnostic::error(span, format!("unknown {what} `{shown}`"));
    let sigil = if name.starts_with('$') { "$" } else { "" };
    // Everything is near a name of one letter.
    if name.chars().count() > 1 + sigil.len() {
        let near = crate::diagnostics::nearest(&name[sigil.len()..], known);
        d.hint = near.map(|n| format!("did you mean `{sigil}{n}`?"));
    }
    d
}
