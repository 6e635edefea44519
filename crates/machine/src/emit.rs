//! The graph in the words of the model.
//!
//! A word of less than 64 bits is the number it has unsigned; a word of 64 bits is the number it has
//! signed, because the model's numbers have a sign. A pointer is the number of the element it points at,
//! −1 for null; a pointer to the one object there is, is 1, null 0.

use crate::bits::{Base, Cmp, E, VarId};
use crate::graph::{Access, Graph, Op, Origin};
use crate::layout::{Layout, type_of};
use crate::memory::{Kind, Target, Which, kind_of, spot};
use crate::world::{Object, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::{Action, Register, Step};
use wattle_model::{
    Expr, Family, Fence, Init, Local, Location, LocationId, Op2, Place, RegisterId, Section, Span,
    Type,
};
use wattle_x86::words::{M, Words, binary};

/// Pointers are no numbers; everything else is.
impl Words for Emit<'_> {
    fn variable(&self, v: VarId) -> Result<M, String> {
        match self.kinds.get(&v) {
            Some(Kind::Pointer(..)) => Err("a pointer is used as a number".to_string()),
            _ => self.register(v),
        }
    }

    fn signed(&self, v: VarId) -> bool {
        self.signs.contains(&v)
    }

    fn pointers(&self, op: Cmp, a: &E, b: &E) -> Option<Result<M, String>> {
        let pointed = |e: &E| match self.kind(e) {
            Kind::Pointer(t, o) => Some((t, o)),
            Kind::Null | Kind::Number | Kind::Mixed => None,
        };
        let to = pointed(a).or_else(|| pointed(b))?;
        let op = match op {
            Cmp::Eq => Op2::Eq,
            Cmp::Ne => Op2::Ne,
            Cmp::Ult | Cmp::Ule | Cmp::Slt | Cmp::Sle => {
                return Some(Err("an order of addresses is not supported".to_string()));
            }
        };
        let both = self
            .pointer(a, to)
            .and_then(|a| Ok((a, self.pointer(b, to)?)));
        Some(both.map(|(a, b)| binary(op, a, b)))
    }
}

pub struct Emit<'a> {
    pub objects: &'a [Object],
    pub layout: &'a Layout,
    pub kinds: BTreeMap<VarId, Kind>,
    pub registers: BTreeMap<VarId, RegisterId>,
    /// Variables that hold numbers with a sign.
    pub signs: BTreeSet<VarId>,
}

/// What each variable holds, from everything it is given.
pub fn kinds(
    graph: &Graph,
    load: &dyn Fn(&Access, &BTreeMap<VarId, Kind>) -> Kind,
) -> BTreeMap<VarId, Kind> {
    let mut kinds: BTreeMap<VarId, Kind> = BTreeMap::new();
    let order = graph.reached();
    loop {
        let mut changed = false;
        for edge in order.iter().flat_map(|n| &graph.nodes[*n].out) {
            let kind = match &edge.op {
                Op::Assign(_, e) => kind_of(e, &|v| kinds.get(&v).copied().unwrap_or(Kind::Null)),
                Op::Load { at, .. } => load(at, &kinds),
                _ => Kind::Number,
            };
            if let Some(v) = edge.op.written() {
                let known = kinds.get(&v).copied().unwrap_or(Kind::Null);
                let joined = known.join(kind);
                changed |= joined != known || !kinds.contains_key(&v);
                kinds.insert(v, joined);
            }
        }
        if !changed {
            return kinds;
        }
    }
}

impl Emit<'_> {
    fn kind(&self, e: &E) -> Kind {
        match e.width() {
            64 => kind_of(e, &|v| self.kinds.get(&v).copied().unwrap_or(Kind::Number)),
            _ => Kind::Number,
        }
    }

    fn register(&self, v: VarId) -> Result<M, String> {
        match self.registers.get(&v) {
            Some(r) => Ok(Expr::Atom(Local::Register(*r))),
            None => Err("a value is used that was never computed".to_string()),
        }
    }

    /// A pointer to this target as a number.
    fn pointer(&self, e: &E, to: (Target, i64)) -> Result<M, String> {
        let (target, offset) = to;
        let several = matches!(target, Target::Elements(_));
        Ok(match e {
            E::Const(0, _) => Expr::Const(if several { -1 } else { 0 }),
            E::Address(base, o) if *o == offset => match (base, target) {
                (Base::Own(n), Target::Elements(m)) if *n == m => Expr::Atom(Local::SelfIndex),
                (Base::Element(n, k), Target::Elements(m)) if *n == m => Expr::Const(i64::from(*k)),
                (Base::Object(n), Target::Object(m)) if *n == m => Expr::Const(1),
                _ => return Err("pointers to different things are mixed".to_string()),
            },
            E::Var(v, _) => match self.kinds.get(v) {
                Some(Kind::Pointer(t, o)) if (*t, *o) == to => self.register(*v)?,
                Some(Kind::Null) => Expr::Const(if several { -1 } else { 0 }),
                _ => return Err("pointers to different places are mixed".to_string()),
            },
            E::Ite(c, a, b) => {
                Expr::ite(self.number(c)?, self.pointer(a, to)?, self.pointer(b, to)?)
            }
            _ => return Err("this computation with pointers is not supported".to_string()),
        })
    }

    /// A value of the kind that is wanted, for a place that cuts it to its width.
    fn value(&self, e: &E, kind: Kind, sign: bool) -> Result<M, String> {
        match kind {
            Kind::Pointer(t, o) => self.pointer(e, (t, o)),
            Kind::Null | Kind::Number => self.outer(e, sign),
            Kind::Mixed => match self.kind(e) {
                Kind::Null | Kind::Number => self.outer(e, sign),
                _ => Err("pointers and numbers are mixed in one place".to_string()),
            },
        }
    }

    /// The place of an access, its kind and sign, and what must hold before it.
    fn place(&self, at: &Access) -> Result<(Place, Kind, bool, Option<M>), String> {
        let of = |v: VarId| self.kinds.get(&v).copied().unwrap_or(Kind::Number);
        let Some(s) = spot(&at.address, &of) else {
            return Err(match self.kind(&at.address) {
                Kind::Null | Kind::Number => "a number is used as an address".to_string(),
                _ => "what this address points at is not known".to_string(),
            });
        };
        let Some(cell) = self.layout.cell(&s, at.bytes) else {
            return Err("this access fits no field".to_string());
        };
        let object = &self.objects[s.object];
        let guard = match &s.which {
            Which::Pointed(v) if !crate::memory::has_elements(object) => {
                Some(binary(Op2::Ne, self.register(*v)?, Expr::Const(0)))
            }
            _ => None,
        };
        let index = match (&s.index, cell.stride) {
            (Some((index, by)), Some(stride)) if *by == stride => {
                let index = self.number(index)?;
                match cell.element {
                    0 => index,
                    k => binary(Op2::Add, index, Expr::Const(k as i64)),
                }
            }
            (Some(_), _) => return Err("this index does not fit its array".to_string()),
            (None, Some(_)) => Expr::Const(cell.element as i64),
            (None, None) => match &s.which {
                Which::Only => Expr::Const(0),
                Which::Own => Expr::Atom(Local::SelfIndex),
                Which::Number(k) => Expr::Const(i64::from(*k)),
                Which::Pointed(v) if crate::memory::has_elements(object) => self.register(*v)?,
                Which::Pointed(_) => Expr::Const(0),
            },
        };
        if s.index.is_some() && crate::memory::has_elements(object) {
            return Err("an index behind a pointer from memory is not supported".to_string());
        }
        let sign = self.layout.signs.contains(&cell.region);
        Ok((Place::Region(cell.region, index), cell.kind, sign, guard))
    }

    /// One operation as steps.
    fn actions(&self, op: &Op) -> Result<Vec<Action>, String> {
        let message = |why: &str| Some(why.to_string());
        Ok(match op {
            Op::Nop => vec![Action::Skip],
            Op::Assign(v, e) => {
                let kind = self.kinds.get(v).copied().unwrap_or(Kind::Number);
                let register = self.registers[v];
                let value = self.value(e, kind, self.signs.contains(v))?;
                vec![Action::Assign { register, value }]
            }
            Op::Havoc(v) => vec![Action::Havoc {
                register: self.registers[v],
                range: None,
            }],
            Op::Load { to, at } => {
                let (place, _, _, guard) = self.place(at)?;
                let register = self.registers[to];
                guarded(guard, Action::Load { register, place })
            }
            Op::Store { at, value } => {
                let (place, kind, sign, guard) = self.place(at)?;
                let value = self.value(value, kind, sign)?;
                guarded(guard, Action::Store { place, value })
            }
            Op::Assume(e) => vec![Action::Assume(self.number(e)?)],
            Op::Assert(e, why) => vec![Action::Assert {
                condition: self.number(e)?,
                message: message(why),
            }],
            Op::Require(_, why) => return Err(why.clone()),
            Op::Fence => vec![Action::Fence(Fence::Full)],
            Op::Begin => vec![Action::AtomicBegin(Section::Drained)],
            Op::End => vec![Action::AtomicEnd],
            Op::Model(a) => vec![a.clone()],
            Op::Import { to, value } => vec![Action::Assign {
                register: self.registers[to],
                value: value.clone(),
            }],
            Op::Export { to, value } => vec![Action::Assign {
                register: *to,
                value: self.read(value, false)?,
            }],
        })
    }
}

fn guarded(guard: Option<M>, action: Action) -> Vec<Action> {
    let message = Some("a null pointer is followed".to_string());
    let check = guard.map(|condition| Action::Assert { condition, message });
    check.into_iter().chain([action]).collect()
}

/// The memory that a graph is about.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    pub objects: &'a [Object],
    pub layout: &'a Layout,
    /// Names that are taken.
    pub regions: &'a BTreeSet<String>,
}

/// Replaces a family's graph and adds the registers it needs.
pub fn emit(
    family: &mut Family,
    graph: &Graph,
    kinds: BTreeMap<VarId, Kind>,
    signs: &BTreeSet<VarId>,
    memory: Memory<'_>,
    span: &dyn Fn(Origin) -> Span,
) -> Result<(), Vec<Refusal>> {
    let Memory {
        objects,
        layout,
        regions,
    } = memory;
    let order = graph.reached();
    let mut refusals: BTreeSet<Refusal> = BTreeSet::new();
    let mut taken: BTreeSet<String> = regions.clone();
    taken.extend(family.registers.iter().map(|r| r.name.clone()));
    let mut registers = BTreeMap::new();
    let edges = || order.iter().flat_map(|n| &graph.nodes[*n].out);
    let used: BTreeSet<VarId> = edges().filter_map(|e| e.op.written()).collect();
    let early = crate::passes::live_at_entry(graph);
    // A value from outside may have more bits than are kept of it: they are cut off, which is no fault.
    let cut: BTreeSet<VarId> = edges()
        .filter(|e| matches!(e.op, Op::Load { .. } | Op::Import { .. }))
        .filter_map(|e| e.op.written())
        .collect();
    for v in used {
        let kind = kinds.get(&v).copied().unwrap_or(Kind::Number);
        let ty = match type_of(kind, graph.vars.width(v), signs.contains(&v), objects) {
            Type::BOOL if cut.contains(&v) && !matches!(kind, Kind::Pointer(..)) => Type::Wrap {
                bits: 1,
                signed: false,
            },
            ty => ty,
        };
        registers.insert(v, RegisterId::new(family.registers.len()));
        let several = matches!(kind, Kind::Pointer(Target::Elements(_), _));
        family.registers.push(Register {
            name: name(
                &graph.vars.names[v.0 as usize],
                graph.vars.width(v),
                &mut taken,
            ),
            ty,
            init: match (early.contains(&v), several) {
                // Read before it is written, on some path: anything may be there.
                (true, _) => Init::Any,
                (false, true) => Init::All(Expr::Const(-1)),
                (false, false) => Init::default(),
            },
            span: Span::NONE,
        });
    }
    let emit = Emit {
        objects,
        layout,
        kinds,
        registers,
        signs: signs.clone(),
    };
    let mut number: BTreeMap<usize, LocationId> = BTreeMap::new();
    let mut locations: Vec<Location> = Vec::new();
    for n in &order {
        number.insert(*n, LocationId::new(locations.len()));
        let node = &graph.nodes[*n];
        let origin = node.origin.or(node.out.first().map(|e| e.origin));
        locations.push(Location {
            labels: node.labels.clone(),
            span: origin.map_or(Span::NONE, span),
        });
    }
    let mut steps = Vec::new();
    for n in &order {
        for edge in &graph.nodes[*n].out {
            let actions = match emit.actions(&edge.op) {
                Ok(actions) => actions,
                Err(what) => {
                    refusals.insert(match edge.origin {
                        Origin::Code(address) => Refusal::at(address, what),
                        Origin::Text(_) => Refusal {
                            address: None,
                            what,
                        },
                    });
                    continue;
                }
            };
            let mut source = number[n];
            let last = actions.len() - 1;
            for (k, action) in actions.into_iter().enumerate() {
                let target = match k == last {
                    true => number[&edge.to],
                    false => {
                        locations.push(Location {
                            labels: Vec::new(),
                            span: span(edge.origin),
                        });
                        LocationId::new(locations.len() - 1)
                    }
                };
                steps.push(Step {
                    source,
                    target,
                    action,
                    span: span(edge.origin),
                });
                source = target;
            }
        }
    }
    family.entry = number[&graph.entry];
    family.locations = locations;
    family.steps = steps;
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(refusals.into_iter().collect()),
    }
}

/// A name for a register of the model: as the processor calls the part that is kept.
fn name(base: &str, width: u32, taken: &mut BTreeSet<String>) -> String {
    let letters = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp"];
    let part = match (letters.contains(&base), width) {
        (true, 32) => format!("e{}", &base[1..]),
        (true, 16) => base[1..].to_string(),
        (true, 8 | 1) if base.ends_with('x') => format!("{}l", &base[1..2]),
        (true, 8 | 1) => format!("{}l", &base[1..]),
        _ => base.to_string(),
    };
    let mut tried = part.clone();
    let mut k = 1;
    while !taken.insert(tried.clone()) {
        k += 1;
        tried = format!("{part}_{k}");
    }
    tried
}
