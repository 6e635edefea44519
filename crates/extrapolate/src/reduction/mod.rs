//! A program with its buffers as variables (dan-2013 §3, Fig. 5, and App. A.4, Fig. 12): what it does
//! under SC is what the original does under TSO or PSO with at most k entries per thread or per thread
//! and cell.
//!
//! Buffers get only the entries a path can fill (printz-2015 §4, with the models under their right
//! names). Where that bound is known no store can overflow; elsewhere a store into a full buffer sets
//! the thread's `overflow` and stops it, and the property `never … overflow == 1` says whether k was
//! enough: an overflow is no bug of the program.
//!
//! Deviations. The flush loop after every statement is a branch at every location, so a drain may come
//! at any time; inside an atomic section that keeps its stores buffered only the thread's own do, and inside one that writes
//! memory at once there are none. Entries move up when the oldest leaves and vacated
//! ones become 0: there is no pointer to the first entry that could run away (printz-2015, 4.3.4). A
//! fence waits. Steps in between that nobody else can see carry the labels of the location they leave.

mod pso;
mod thread;
mod tso;

use thread::Maker;
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact, Initial, Question};
use wattle_model::property::{Observation, ThreadIndex, ThreadRef};
use wattle_model::{
    CellId, Condition, Count, Expr, Family, FamilyId, Fence, Init, Instance, Length, Op2, Place,
    Program, Property, PropertyKind, Region, RegionId, RegisterId, Span, ThreadId,
};

/// Why there is no reduced program: one sentence, with what would work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreduced(pub String);

/// The name of the register that a store into a full buffer sets.
pub const OVERFLOW: &str = "overflow";

/// The program that under SC does what the instance does under the model with buffers of at most `k`
/// entries. `program` is what the instance was made of.
pub fn reduce(
    program: &Program,
    instance: &Instance,
    model: MemoryModel,
    k: usize,
) -> Result<Program, Unreduced> {
    let regions = regions(program, instance);
    let mut reduced = Program::default();
    let mut overflows = Vec::new();
    for t in instance.thread_ids() {
        let thread = instance.thread(t);
        refuse(thread, model)?;
        let mut maker = Maker::new(instance, t, &regions);
        match model {
            MemoryModel::Sc => maker.unchanged(),
            MemoryModel::Tso => tso::thread(&mut maker, k)?,
            MemoryModel::Pso => pso::thread(&mut maker, k)?,
        }
        let name = unique(&thread.name, |n| reduced.family_named(n).is_some());
        if let Some(register) = maker.overflow {
            overflows.push((t, register));
        }
        reduced.families.push(Family {
            name,
            count: Count::One,
            registers: maker.registers,
            locations: maker.locations,
            steps: maker.steps,
            entry: thread.entry,
            span: Span::NONE,
        });
    }
    let view = Words {
        instance,
        regions: &regions,
    };
    for q in &instance.questions {
        reduced.properties.push(view.property(q)?);
    }
    if let Some(condition) = overflowed(&overflows) {
        reduced.properties.push(Property {
            kind: PropertyKind::Never,
            condition: plain(condition),
            span: Span::NONE,
        });
    }
    for hint in &instance.predicates {
        reduced.predicates.push(plain(view.observed(hint)?));
    }
    reduced.regions = regions.into_iter().map(|r| r.region).collect();
    Ok(reduced.canonical())
}

fn refuse(thread: &wattle_model::instance::Thread, model: MemoryModel) -> Result<(), Unreduced> {
    let mut actions = thread.steps.iter().map(|s| &s.action);
    let store_fence = |a: &Action<_, _>| matches!(a, Action::Fence(Fence::Store));
    if model == MemoryModel::Pso && actions.any(store_fence) {
        return Err(Unreduced(format!(
            "`{}` has a store fence, whose epochs are not written as variables; `fence` would work",
            thread.name
        )));
    }
    Ok(())
}

/// The name, made longer until it is free.
fn unique(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = name.to_string();
    while taken(&name) {
        name.push('_');
    }
    name
}

/// A region of the original with the cells it became.
pub struct Cells {
    region: Region,
    base: u32,
    length: u32,
}

fn regions(program: &Program, instance: &Instance) -> Vec<Cells> {
    let mut all = Vec::new();
    for (r, region) in program.regions.iter().enumerate() {
        let mine = |c: &&(usize, &wattle_model::instance::Cell)| c.1.region == RegionId::new(r);
        let cells: Vec<(usize, _)> = instance.cells.iter().enumerate().collect();
        let cells: Vec<_> = cells.iter().filter(mine).collect();
        let length = cells.len() as u32;
        let values: Option<Vec<Expr<_>>> = cells
            .iter()
            .map(|(_, c)| match c.init {
                Initial::Value(v) => Some(Expr::Const(v)),
                Initial::Any => None,
            })
            .collect();
        let init = match values {
            None => Init::Any,
            Some(v) if v.windows(2).all(|w| w[0] == w[1]) => {
                Init::All(v.into_iter().next().unwrap_or(Expr::Const(0)))
            }
            Some(v) => Init::Each(v),
        };
        all.push(Cells {
            region: Region {
                name: region.name.clone(),
                length: match region.length {
                    Length::Scalar => Length::Scalar,
                    Length::Array(_) | Length::PerThread(_) => Length::Array(length),
                },
                ty: cells.first().map_or(region.ty, |(_, c)| c.ty),
                init,
                span: Span::NONE,
            },
            base: cells.first().map_or(0, |(i, _)| *i as u32),
            length,
        });
    }
    all
}

/// The region a cell lies in, and where in it.
fn located(regions: &[Cells], cell: CellId) -> (RegionId, i64) {
    let holds = |r: &Cells| (r.base..r.base + r.length).contains(&cell.0);
    let at = regions.iter().position(holds).unwrap_or(0);
    let element = cell.0 - regions.get(at).map_or(0, |r| r.base);
    (RegionId::new(at), i64::from(element))
}

/// The region that starts at the cell and is that long.
fn spanning(regions: &[Cells], base: CellId, length: u32) -> Option<RegionId> {
    let same = |r: &Cells| r.base == base.0 && r.length == length;
    regions.iter().position(same).map(RegionId::new)
}

/// The address in the words of the program.
fn place(regions: &[Cells], address: &Address) -> Place {
    match address {
        Address::Cell(c) => {
            let (region, element) = located(regions, *c);
            Place::Region(region, Expr::Const(element))
        }
        Address::Computed {
            base,
            length,
            index,
        } => {
            let index = thread::local(index);
            match spanning(regions, *base, *length) {
                Some(region) => Place::Region(region, index),
                None => Place::Memory(index),
            }
        }
    }
}

fn plain(expr: Expr<Observation>) -> Condition {
    Condition {
        indices: Vec::new(),
        expr,
    }
}

fn reference(t: ThreadId) -> ThreadRef {
    ThreadRef {
        family: FamilyId(t.0),
        index: ThreadIndex::Number(0),
    }
}

fn overflowed(registers: &[(ThreadId, RegisterId)]) -> Option<Expr<Observation>> {
    let one = |(t, r): &(ThreadId, RegisterId)| {
        let register = Expr::Atom(Observation::Register(reference(*t), *r));
        Expr::binary(Op2::Eq, register, Expr::Const(1))
    };
    let all = registers.iter().map(one);
    all.reduce(|a, b| Expr::binary(Op2::Or, a, b))
}

/// Questions and hints in the words of the program.
struct Words<'v> {
    instance: &'v Instance,
    regions: &'v [Cells],
}

impl Words<'_> {
    fn property(&self, q: &Question) -> Result<Property, Unreduced> {
        let target = self.observed(&q.target)?;
        let (kind, expr) = match q.kind {
            PropertyKind::Never | PropertyKind::Always => (PropertyKind::Never, target),
            PropertyKind::Finally => (PropertyKind::Finally, target.negate()),
            PropertyKind::Reachable => (PropertyKind::Reachable, target),
        };
        Ok(Property {
            kind,
            condition: plain(expr),
            span: Span::NONE,
        })
    }

    fn observed(&self, e: &Expr<Fact>) -> Result<Expr<Observation>, Unreduced> {
        e.substitute(&mut |fact| {
            Ok(Expr::Atom(match fact {
                Fact::Cell(c) => {
                    let (region, element) = located(self.regions, *c);
                    Observation::Cell(region, Box::new(Expr::Const(element)))
                }
                Fact::CellAt {
                    base,
                    length,
                    index,
                } => {
                    let index = Box::new(self.observed(index)?);
                    match spanning(self.regions, *base, *length) {
                        Some(region) => Observation::Cell(region, index),
                        None => Observation::Memory(index),
                    }
                }
                Fact::Seen(..) => {
                    let why = "the property sees pending stores, which are variables here";
                    return Err(Unreduced(why.into()));
                }
                Fact::Register(t, r) => Observation::Register(reference(*t), *r),
                Fact::At(t, at) => {
                    let locations = &self.instance.thread(*t).locations;
                    let marked = |label: &String| {
                        let has = |l: &usize| locations[*l].labels.contains(label);
                        let marked: Vec<usize> = (0..locations.len()).filter(has).collect();
                        marked.iter().copied().eq(at.iter().map(|l| l.index()))
                    };
                    let mut labels = locations.iter().flat_map(|l| &l.labels);
                    match labels.find(|l| marked(l)) {
                        Some(label) => Observation::At(reference(*t), label.clone()),
                        None => return Ok(Expr::Const(0)),
                    }
                }
            }))
        })
    }
}
