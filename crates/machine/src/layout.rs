//! Objects as regions of the model: a field is a region, and so is an array of fields.
//!
//! Every access says which bytes of which object it means. Accesses of the same bytes share a region;
//! accesses that overlap without being the same are refused, with both places, and so is what is not
//! aligned: only aligned accesses are one step for other processors.

use crate::bits::{Base, E, VarId};
use crate::graph::Access;
use crate::memory::{Fields, Kind, Spot, Target, spot};
use crate::world::{Contents, Copies, Object, Refusal, World};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::{Expr, Init, Length, Program, Region, RegionId, Type};

/// One access of shared memory.
#[derive(Clone, Debug)]
pub struct Seen {
    pub spot: Spot,
    pub bytes: u32,
    pub address: Option<u64>,
    pub load: bool,
}

/// Fields of the same width at regular distances.
#[derive(Clone, Debug)]
struct Group {
    offset: i64,
    bytes: u32,
    /// Distance and number of elements; absent for a single field.
    elements: Option<(u64, u64)>,
    address: Option<u64>,
    region: RegionId,
}

impl Group {
    fn end(&self) -> i64 {
        match self.elements {
            None => self.offset + i64::from(self.bytes),
            Some((stride, n)) => self.offset + (stride * (n - 1)) as i64 + i64::from(self.bytes),
        }
    }

    /// The element at an offset.
    fn element(&self, offset: i64, bytes: u32) -> Option<u64> {
        let distance = u64::try_from(offset - self.offset).ok()?;
        match self.elements {
            _ if bytes != self.bytes => None,
            None => (distance == 0).then_some(0),
            Some((stride, n)) => {
                (distance % stride == 0 && distance / stride < n).then(|| distance / stride)
            }
        }
    }

    fn overlaps(&self, other: &Group) -> bool {
        if self.end() <= other.offset || other.end() <= self.offset {
            return false;
        }
        match (self.elements, other.elements) {
            // Fields of the elements of one array of structures.
            (Some((s, _)), Some((t, _))) if s == t => {
                let a = self.offset.rem_euclid(s as i64);
                let b = other.offset.rem_euclid(s as i64);
                a < b + i64::from(other.bytes) && b < a + i64::from(self.bytes)
            }
            (Some((s, n)), None) => (0..n).any(|k| {
                let at = self.offset + (s * k) as i64;
                at < other.end() && other.offset < at + i64::from(self.bytes)
            }),
            (None, Some(_)) => other.overlaps(self),
            _ => true,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Layout {
    groups: BTreeMap<usize, Vec<Group>>,
    pub types: BTreeMap<RegionId, Kind>,
    /// Regions that hold numbers with a sign.
    pub signs: BTreeSet<RegionId>,
}

/// Where an access is in the model: a region and an index in it, if it is an array of its own.
pub struct Cell {
    pub region: RegionId,
    /// First element and distance, for a field of an array.
    pub element: u64,
    pub stride: Option<u64>,
    pub kind: Kind,
}

impl Layout {
    pub fn cell(&self, spot: &Spot, bytes: u32) -> Option<Cell> {
        let groups = self.groups.get(&spot.object)?;
        groups.iter().find_map(|g| {
            let element = g.element(spot.offset, bytes)?;
            if spot.index.is_some() && g.elements.is_none() {
                return None;
            }
            Some(Cell {
                region: g.region,
                element,
                stride: g.elements.map(|(s, _)| s),
                kind: self.types[&g.region],
            })
        })
    }
}

/// Lays out all objects that are accessed; their regions are added to the program.
pub fn layout(
    seen: &[Seen],
    fields: &Fields,
    world: &World,
    program: &mut Program,
) -> Result<Layout, Vec<Refusal>> {
    let mut refusals = Vec::new();
    let mut layout = Layout::default();
    let refuse = |address: Option<u64>, what: String| Refusal { address, what };
    for s in seen {
        let o = &world.objects[s.spot.object];
        let aligned = s.spot.offset.rem_euclid(i64::from(s.bytes)) == 0
            && s.spot
                .index
                .as_ref()
                .is_none_or(|(_, stride)| stride % u64::from(s.bytes) == 0);
        let end = s.spot.offset.checked_add(i64::from(s.bytes));
        let inside = s.spot.offset >= 0 && end.is_some_and(|e| e as u64 <= o.size);
        if !inside {
            let what = format!(
                "{} bytes at offset {} are outside of `{}`, which has {}",
                s.bytes, s.spot.offset, o.name, o.size
            );
            refusals.push(refuse(s.address, what));
            continue;
        }
        if !aligned {
            let what = format!(
                "{} bytes at offset {} of `{}` are not aligned",
                s.bytes, s.spot.offset, o.name
            );
            refusals.push(refuse(s.address, what));
            continue;
        }
        if s.spot.index.is_some() && o.copies != Copies::One {
            let what = format!(
                "an index into `{}`, of which there are several, is not supported",
                o.name
            );
            refusals.push(refuse(s.address, what));
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    // Arrays first: single fields may be their elements.
    let (arrays, singles): (Vec<&Seen>, Vec<&Seen>) =
        seen.iter().partition(|s| s.spot.index.is_some());
    for s in arrays.into_iter().chain(singles) {
        let o = &world.objects[s.spot.object];
        let groups = layout.groups.entry(s.spot.object).or_default();
        let fresh = Group {
            offset: s.spot.offset,
            bytes: s.bytes,
            elements: s.spot.index.as_ref().map(|(index, stride)| {
                let room = (o.size - s.spot.offset as u64 - u64::from(s.bytes)) / stride;
                (*stride, room.min(largest(index)) + 1)
            }),
            address: s.address,
            region: RegionId(0),
        };
        match fresh.elements {
            None if groups
                .iter()
                .any(|g| g.element(fresh.offset, fresh.bytes).is_some()) =>
            {
                continue;
            }
            Some((stride, n)) => {
                // The same array, seen from another element: the union of both.
                let same = groups.iter_mut().find(|g| {
                    g.bytes == fresh.bytes
                        && g.elements.is_some_and(|(s, _)| s == stride)
                        && (g.offset - fresh.offset).rem_euclid(stride as i64) == 0
                        && g.overlaps(&fresh)
                });
                if let Some(g) = same {
                    let start = g.offset.min(fresh.offset);
                    let end = g
                        .end()
                        .max(fresh.offset + (stride * (n - 1)) as i64 + i64::from(fresh.bytes));
                    let count = (end - start - i64::from(g.bytes)) as u64 / stride + 1;
                    g.offset = start;
                    g.elements = Some((stride, count));
                    continue;
                }
            }
            None => {}
        }
        if let Some(other) = groups.iter().find(|g| g.overlaps(&fresh)) {
            let there = match other.address {
                Some(a) => format!("{} (`{}`)", world.source(a), world.text(a)),
                None => "elsewhere".to_string(),
            };
            let what = format!(
                "{} bytes at offset {} of `{}` overlap {} bytes at offset {} accessed at {there}; accesses of \
                 different sizes to one place are not supported",
                fresh.bytes, fresh.offset, o.name, other.bytes, other.offset
            );
            refusals.push(refuse(s.address, what));
            continue;
        }
        groups.push(fresh);
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    for (object, groups) in &mut layout.groups {
        groups.sort_by_key(|g| g.offset);
        let alone = groups.len() == 1 && groups[0].offset == 0;
        for g in groups {
            let o = &world.objects[*object];
            let kind = match g.elements {
                None => fields.kind(&world.objects, (*object, g.offset), g.bytes),
                Some(_) => Kind::Number,
            };
            // What the program declared is its first field.
            let declared = o.region.filter(|_| g.offset == 0);
            let name = match (declared, alone) {
                (Some(_), _) => o.name.clone(),
                (None, true) => unused(program, &o.name),
                (None, false) => unused(program, &format!("{}_{}", o.name, g.offset)),
            };
            g.region = declared.unwrap_or(RegionId::new(program.regions.len()));
            layout.types.insert(g.region, kind);
            let region = Region {
                name,
                length: match (o.copies, g.elements) {
                    (Copies::One, None) => Length::Scalar,
                    (Copies::One, Some((_, n))) => {
                        Length::Array(u32::try_from(n).unwrap_or(u32::MAX))
                    }
                    (Copies::PerThread(f), _) => Length::PerThread(f),
                    (Copies::Array(n), _) => Length::Array(n),
                },
                ty: type_of(kind, g.bytes * 8, false, &world.objects),
                init: initial(o, g, kind),
                span: o.span,
            };
            match declared {
                Some(r) => program.regions[r.index()] = region,
                None => program.regions.push(region),
            }
        }
    }
    // Memory nobody looks at.
    for (k, o) in world.objects.iter().enumerate() {
        let first = layout
            .groups
            .get(&k)
            .is_some_and(|g| g.iter().any(|g| g.offset == 0));
        if let (Some(r), false) = (o.region, first) {
            program.regions[r.index()].ty = Type::BOOL;
            program.regions[r.index()].init = Init::default();
            if world.kept.contains_key(&k) {
                program.regions[r.index()].length = Length::Scalar;
            }
        }
    }
    Ok(layout)
}

/// The largest value of an index: where few values go in, of all that come out.
fn largest(index: &E) -> u64 {
    let mut width = None;
    index.for_each(&mut |e| {
        if let E::Var(_, w) = e {
            width = Some(*w);
        }
    });
    let most = index.most();
    match width {
        Some(width) if width <= 8 && index.vars().len() == 1 => {
            let values = (0..1u64 << width).map(|v| index.eval(&|_| v));
            let largest = values.map(|v| v.unwrap_or(u64::MAX)).max();
            largest.map_or(most, |v| v.min(most))
        }
        _ => most,
    }
}

impl Layout {
    /// The region an access goes to, if it holds numbers.
    pub fn numbers(&self, at: &Access, kinds: &BTreeMap<VarId, Kind>) -> Option<RegionId> {
        let of = |v: VarId| kinds.get(&v).copied().unwrap_or(Kind::Number);
        let cell = self.cell(&spot(&at.address, &of)?, at.bytes)?;
        matches!(cell.kind, Kind::Null | Kind::Number).then_some(cell.region)
    }

    /// Gives regions the sign and the bits they need.
    pub fn settle(
        &mut self,
        signs: BTreeSet<RegionId>,
        bits: &BTreeMap<RegionId, u32>,
        program: &mut Program,
    ) {
        for r in self.types.keys() {
            let region = &mut program.regions[r.index()];
            let Type::Wrap { bits: all, .. } = region.ty else {
                continue;
            };
            if all == 64 && bits.get(r).is_none_or(|b| *b >= 64) {
                continue;
            }
            let kept = bits
                .get(r)
                .map_or(all, |b| all.min((*b).clamp(1, 63) as u8));
            let signed = kept == all && signs.contains(r);
            if signed {
                self.signs.insert(*r);
            }
            region.ty = Type::Wrap { bits: kept, signed };
            let ty = region.ty;
            let cut = |e: &Expr<wattle_model::Local>| match e.as_const().and_then(|c| ty.admit(c)) {
                Some(c) => Expr::Const(c),
                None => e.clone(),
            };
            region.init = match &region.init {
                Init::All(e) => Init::All(cut(e)),
                Init::Each(all) => Init::Each(all.iter().map(cut).collect()),
                Init::Any => Init::Any,
            };
        }
    }
}

/// A name no region or family has.
fn unused(program: &Program, name: &str) -> String {
    let taken = |n: &str| program.region_named(n).is_some() || program.family_named(n).is_some();
    let mut tried = name.to_string();
    let mut k = 1;
    while taken(&tried) {
        k += 1;
        tried = format!("{name}_{k}");
    }
    tried
}

/// The type of a word: pointers are numbers of elements, words of 64 bits are read as signed.
pub fn type_of(kind: Kind, width: u32, signed: bool, objects: &[Object]) -> Type {
    match kind {
        Kind::Pointer(Target::Elements(o), _) => match objects[o].copies {
            Copies::PerThread(f) => Type::Thread(f),
            Copies::Array(n) => Type::Range {
                lo: -1,
                hi: i64::from(n) - 1,
            },
            Copies::One => Type::BOOL,
        },
        Kind::Pointer(Target::Object(_), _) => Type::BOOL,
        Kind::Null | Kind::Number | Kind::Mixed => match width {
            1 => Type::BOOL,
            64 => Type::Wrap {
                bits: 64,
                signed: true,
            },
            w => Type::Wrap {
                bits: w as u8,
                signed,
            },
        },
    }
}

fn initial(o: &Object, g: &Group, kind: Kind) -> Init {
    let at = |c: &Contents, offset: i64| {
        let offset = u64::try_from(offset).unwrap_or(u64::MAX);
        let address = c.pointers.get(&offset).copied().flatten();
        Expr::Const(match (kind, address) {
            (Kind::Pointer(Target::Elements(_), _), Some((Base::Element(_, k), _))) => i64::from(k),
            // Only null is there at first.
            (Kind::Pointer(Target::Elements(_), _), _) => -1,
            (Kind::Pointer(Target::Object(_), _), address) => i64::from(address.is_some()),
            (Kind::Null | Kind::Number | Kind::Mixed, _) => c.number(offset, g.bytes) as i64,
        })
    };
    let all: Vec<_> = match g.elements {
        None => o.contents.iter().map(|c| at(c, g.offset)).collect(),
        Some((stride, n)) => {
            let c = &o.contents[0];
            let offset = |k: u64| g.offset + (stride * k) as i64;
            (0..n).map(|k| at(c, offset(k))).collect()
        }
    };
    match all.iter().all(|e| *e == all[0]) {
        true => Init::All(all[0].clone()),
        false => Init::Each(all),
    }
}
