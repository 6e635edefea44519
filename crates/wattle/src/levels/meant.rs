//! Which numbers say threads and which say levels, from what they are compared with and put into.

use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::levels::{Holds, Levels};
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::program::{Init, Length, Local, Place};
use wattle_model::{Count, Expr, Family, Op1, Op2, Program, RegionId, RegisterId, Type};

/// Certificates without who has reached and passed what.
pub fn guesses(program: &Program, model: MemoryModel) -> Vec<Levels> {
    let [family] = &program.families[..] else {
        return Vec::new();
    };
    if family.count != Count::Any {
        return Vec::new();
    }
    let meant = Meant::of(program);
    let mut all = Vec::new();
    for (r, region) in program.regions.iter().enumerate() {
        let (threads, levels) = (meant.root(THREADS), meant.index(r));
        let names_threads = meant.value(r) == threads;
        if !matches!(region.length, Length::PerThread(_)) || levels == threads || !names_threads {
            continue;
        }
        let own: BTreeSet<RegisterId> = (family.steps.iter())
            .filter_map(|s| match &s.action {
                Action::Store {
                    place: Place::Region(stored, Expr::Atom(Local::Register(own))),
                    ..
                } if stored.index() == r => Some(*own),
                _ => None,
            })
            .collect();
        for level in own {
            let registers = family.registers.iter().enumerate();
            let registers =
                registers.map(|(i, r)| match meant.mixed.contains(&RegisterId::new(i)) {
                    true => Holds::Mixed,
                    false => meant.holds(1 + i, levels, r.ty),
                });
            let registers: Vec<Holds> = registers.collect();
            let regions = program.regions.iter().enumerate();
            let regions = regions.map(|(i, region)| {
                let index = match region.length {
                    Length::Scalar | Length::Array(_) => Holds::Data,
                    Length::PerThread(_) if meant.index(i) == levels => Holds::Level,
                    Length::PerThread(_) => Holds::Thread,
                };
                let value = meant.node_of_value(i);
                (index, meant.holds(value, levels, region.ty))
            });
            let regions = regions.collect();
            let known = registers.iter();
            let known = known.map(|h| matches!(h, Holds::Level | Holds::Data | Holds::Mixed));
            all.push(Levels {
                model,
                known: known.collect(),
                registers,
                regions,
                level,
                behind: RegionId::new(r),
                skips: [false; 2],
                reached: Vec::new(),
                passed: Vec::new(),
            });
        }
    }
    all
}

/// What says threads, `self` above all. Then come registers, elements of regions and their indices.
const THREADS: usize = 0;

/// What is compared with, or put into, each other means the same.
struct Meant {
    registers: usize,
    regions: usize,
    parent: Vec<usize>,
    /// What is not only asked whether it is the same as another.
    ordered: BTreeSet<usize>,
    /// Registers into which different regions are loaded, and nothing else: what they mean changes.
    mixed: BTreeSet<RegisterId>,
}

/// Registers that are temporaries for loads of several regions.
fn mixed(family: &Family) -> BTreeSet<RegisterId> {
    let mut loaded: BTreeMap<RegisterId, BTreeSet<Option<RegionId>>> = BTreeMap::new();
    for step in &family.steps {
        let from = match &step.action {
            Action::Load {
                place: Place::Region(r, _),
                ..
            } => Some(*r),
            _ => None,
        };
        if let Some(to) = step.action.written() {
            loaded.entry(to).or_default().insert(from);
        }
    }
    let several = |from: &BTreeSet<_>| from.len() > 1 && !from.contains(&None);
    let all = loaded.into_iter().filter(|(_, from)| several(from));
    all.map(|(r, _)| r).collect()
}

impl Meant {
    fn of(program: &Program) -> Meant {
        let family = &program.families[0];
        let (registers, regions) = (family.registers.len(), program.regions.len());
        let mut meant = Meant {
            registers,
            regions,
            parent: (0..1 + registers + 2 * regions).collect(),
            ordered: BTreeSet::new(),
            mixed: mixed(family),
        };
        for (r, register) in family.registers.iter().enumerate() {
            if let (Init::All(e), false) =
                (&register.init, meant.mixed.contains(&RegisterId::new(r)))
            {
                meant.same(Some(1 + r), e);
            }
        }
        for step in &family.steps {
            let place = step.action.place().map(|place| match place {
                Place::Region(r, index) => {
                    let at = meant.node_of_index(r.index());
                    meant.same(Some(at), index);
                    meant.node_of_value(r.index())
                }
                Place::Memory(_) => THREADS,
            });
            let into = step.action.written().filter(|r| !meant.mixed.contains(r));
            let into = into.map(|r| 1 + r.index());
            if let (Some(a), Some(b)) = (place, into) {
                meant.join(a, b);
            }
            if let Some(e) = step.action.evaluated() {
                meant.same(place.or(into), e);
            }
        }
        meant
    }

    fn node_of_value(&self, region: usize) -> usize {
        1 + self.registers + region
    }

    fn node_of_index(&self, region: usize) -> usize {
        1 + self.registers + self.regions + region
    }

    fn value(&self, region: usize) -> usize {
        self.root(self.node_of_value(region))
    }

    fn index(&self, region: usize) -> usize {
        self.root(self.node_of_index(region))
    }

    fn root(&self, mut node: usize) -> usize {
        while self.parent[node] != node {
            node = self.parent[node];
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a.max(b)] = a.min(b);
    }

    fn same(&mut self, node: Option<usize>, e: &Expr<Local>) {
        if let (Some(a), Some(b)) = (node, self.meaning(e)) {
            self.join(a, b);
        }
    }

    /// What the expression's value is the same as.
    fn meaning(&mut self, e: &Expr<Local>) -> Option<usize> {
        match e {
            Expr::Const(_) | Expr::Atom(Local::Count(_) | Local::AddressOf(_)) => None,
            Expr::Atom(Local::SelfIndex) => Some(THREADS),
            Expr::Atom(Local::Register(r)) if self.mixed.contains(r) => None,
            Expr::Atom(Local::Register(r)) => Some(1 + r.index()),
            Expr::Unary(Op1::Not, a) => {
                self.meaning(a);
                None
            }
            Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, a) => self.meaning(a),
            Expr::Binary(Op2::And | Op2::Or, a, b) => {
                self.meaning(a);
                self.meaning(b);
                None
            }
            Expr::Binary(op, a, b) => {
                let (x, y) = (self.meaning(a), self.meaning(b));
                if let (Some(x), Some(y)) = (x, y) {
                    self.join(x, y);
                }
                let number = |e: &Expr<Local>| match e {
                    Expr::Const(c) => *c != -1,
                    Expr::Atom(Local::Register(_) | Local::SelfIndex) => false,
                    _ => true,
                };
                if !matches!(op, Op2::Eq | Op2::Ne) || number(a) || number(b) {
                    self.ordered.extend([x, y].into_iter().flatten());
                }
                (!op.is_logical()).then_some(x.or(y)).flatten()
            }
            Expr::Ite(c, a, b) => {
                self.meaning(c);
                let (x, y) = (self.meaning(a), self.meaning(b));
                if let (Some(x), Some(y)) = (x, y) {
                    self.join(x, y);
                }
                x.or(y)
            }
        }
    }

    fn holds(&self, node: usize, levels: usize, ty: Type) -> Holds {
        let root = self.root(node);
        let names = matches!(ty, Type::Thread(_));
        if root == levels {
            Holds::Level
        } else if names && !self.ordered.contains(&node) {
            Holds::Name
        } else if names || root == self.root(THREADS) {
            Holds::Thread
        } else {
            Holds::Data
        }
    }
}
