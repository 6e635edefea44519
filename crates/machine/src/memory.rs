//! What addresses point at.
//!
//! A value is a *number* or a *pointer*: to one object, or to some element of an object that has several,
//! at a fixed offset, or null. Memory is cut into *fields*: an offset of an object and a width. What a
//! field holds is learnt from what is stored there, by all threads, until nothing changes. Whatever does
//! not fit this picture is refused, never guessed.

use crate::bits::{Base, Bin, E, VarId};
use crate::world::{Contents, Copies, Object};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// One object.
    Object(usize),
    /// Some element of an object that has several.
    Elements(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Zero: a number, or a pointer to nothing.
    Null,
    Number,
    /// To this offset of the target, or null.
    Pointer(Target, i64),
    /// No picture fits.
    Mixed,
}

impl Kind {
    pub fn join(self, other: Kind) -> Kind {
        match (self, other) {
            (a, b) if a == b => a,
            (Kind::Null, k) | (k, Kind::Null) => k,
            _ => Kind::Mixed,
        }
    }
}

/// A field: object and offset.
pub type Field = (usize, i64);

/// What is known of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    pub kinds: BTreeMap<Field, Kind>,
    /// Where something else is stored than what is there at first, if that is known of all: offset and bytes.
    pub written: Option<BTreeMap<usize, BTreeSet<(i64, u32)>>>,
}

/// As many bytes as no object has: from there on whoever may be stored to.
const EVERYWHERE: u32 = u32::MAX;
/// An index that is no larger leads upwards.
const UPWARDS: u64 = 1 << 40;

impl Fields {
    /// What is known where the harness stores to these objects, and nothing else does.
    pub fn of_harness(stored: &BTreeSet<usize>) -> Fields {
        let everywhere = BTreeSet::from([(0, EVERYWHERE)]);
        Fields {
            kinds: BTreeMap::new(),
            written: Some(stored.iter().map(|o| (*o, everywhere.clone())).collect()),
        }
    }

    /// What a load of a field gives.
    pub fn kind(&self, objects: &[Object], field: Field, bytes: u32) -> Kind {
        if bytes != 8 {
            return Kind::Number;
        }
        let initial = initial_kind(objects, field, bytes);
        self.kinds.get(&field).map_or(initial, |k| k.join(initial))
    }

    /// A store of a value of a kind; to nobody knows where without a spot. Bytes that are stored as they are at
    /// first are as if nobody stored them.
    pub fn learn(
        &mut self,
        objects: &[Object],
        to: Option<&Spot>,
        bytes: u32,
        (kind, value): (Kind, &E),
    ) {
        let Some(s) = to else {
            self.written = None;
            return;
        };
        if let Some(written) = &mut self.written {
            let all = written.entry(s.object).or_default();
            match (&s.index, value.as_const()) {
                (Some((index, _)), _) => {
                    let from = if index.most() <= UPWARDS { s.offset } else { 0 };
                    all.insert((from.max(0), EVERYWHERE));
                }
                (None, None) => drop(all.insert((s.offset, bytes))),
                (None, Some(value)) => {
                    let contents = &objects[s.object].contents;
                    let byte = |k: u32| {
                        let at = u64::try_from(s.offset + i64::from(k));
                        let same = |c: &Contents| {
                            let there = at.map(|at| (c.number(at, 1), c.has_address(at, 1)));
                            there == Ok((value >> (k * 8) & 0xff, false))
                        };
                        (!contents.iter().all(same)).then_some((s.offset + i64::from(k), 1))
                    };
                    all.extend((0..bytes).filter_map(byte));
                }
            }
        }
        if bytes == 8 {
            let known = self.kinds.entry((s.object, s.offset)).or_insert(Kind::Null);
            *known = known.join(kind);
        }
    }

    /// Whether everything the other one knows of is known here, too.
    pub fn covers(&self, other: &Fields) -> bool {
        let kinds = other.kinds.iter().all(|(f, k)| {
            let known = self.kinds.get(f).copied().unwrap_or(Kind::Null);
            known.join(*k) == known
        });
        kinds
            && match (&self.written, &other.written) {
                (None, _) => true,
                (Some(_), None) => false,
                // A store may have been taken apart since.
                (Some(mine), Some(all)) => all.iter().all(|(o, w)| {
                    let within = |(at, n): &(i64, u32), (from, all): &(i64, u32)| {
                        let end = at.saturating_add(i64::from(*n));
                        from <= at && (*all == EVERYWHERE || end <= from + i64::from(*all))
                    };
                    let known = mine.get(o);
                    w.iter()
                        .all(|p| known.is_some_and(|m| m.iter().any(|q| within(p, q))))
                }),
            }
    }

    /// What a place holds where nothing else is ever stored.
    pub fn constant(&self, objects: &[Object], s: &Spot, bytes: u32) -> Option<E> {
        let o = objects.get(s.object)?;
        // What is at first in variables of a thread is put there by its first steps.
        if o.stack.is_some() {
            return None;
        }
        let nowhere = BTreeMap::new();
        // What nobody can write is known before anything else is.
        let written = match &self.written {
            None if o.constant => &nowhere,
            written => written.as_ref()?,
        };
        let end = s.offset.checked_add(i64::from(bytes))?;
        if s.index.is_some() || s.offset < 0 || end as u64 > o.size {
            return None;
        }
        let touches = |(from, n): &(i64, u32)| {
            let until = match *n {
                EVERYWHERE => i64::MAX,
                n => from.saturating_add(i64::from(n)),
            };
            *from < end && s.offset < until
        };
        if written
            .get(&s.object)
            .is_some_and(|w| w.iter().any(touches))
        {
            return None;
        }
        let contents = match (&s.which, o.contents.as_slice()) {
            // Null may be followed: that is a step of its own.
            (Which::Pointed(_), _) => return None,
            (_, [all]) => all,
            (Which::Number(k), each) => each.get(*k as usize)?,
            (Which::Only | Which::Own, _) => return None,
        };
        let at = s.offset as u64;
        match contents.pointers.get(&at) {
            Some(Some((base, k))) if bytes == 8 => Some(E::Address(*base, *k)),
            Some(_) => None,
            None if contents.has_address(at, bytes) => None,
            None => Some(E::constant(contents.number(at, bytes), bytes * 8)),
        }
    }
}

fn initial_kind(objects: &[Object], (object, offset): Field, bytes: u32) -> Kind {
    let (Some(o), Ok(offset)) = (objects.get(object), u64::try_from(offset)) else {
        return Kind::Mixed;
    };
    let kind = |c: &Contents| match c.pointers.get(&offset) {
        Some(Some((base, k))) => match target_of(*base) {
            Some(target) => Kind::Pointer(target, *k),
            None => Kind::Mixed,
        },
        Some(None) => Kind::Mixed,
        None if c.has_address(offset, bytes) => Kind::Mixed,
        None if c.number(offset, bytes) == 0 => Kind::Null,
        None => Kind::Number,
    };
    o.contents.iter().map(kind).fold(Kind::Null, Kind::join)
}

/// Which element of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    Only,
    Own,
    Number(u32),
    /// The one a pointer in a variable points at; null is a fault.
    Pointed(VarId),
}

/// Where an access goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    pub object: usize,
    pub which: Which,
    pub offset: i64,
    /// What is added to the offset: a value of 64 bits, times a number of bytes.
    pub index: Option<(E, u64)>,
}

pub fn target_of(base: Base) -> Option<Target> {
    match base {
        Base::Object(o) => Some(Target::Object(o)),
        Base::Own(o) | Base::Element(o, _) => Some(Target::Elements(o)),
        Base::Stack | Base::Code => None,
    }
}

/// The kind of an expression of 64 bits, where variables have these kinds.
pub fn kind_of(e: &E, of: &impl Fn(VarId) -> Kind) -> Kind {
    match e {
        E::Const(0, 64) => Kind::Null,
        E::Address(base, offset) => match target_of(*base) {
            Some(target) => Kind::Pointer(target, *offset),
            None => Kind::Mixed,
        },
        E::Var(v, 64) => of(*v),
        E::Bin(Bin::Add, a, k) => match (kind_of(a, of), k.as_const()) {
            // Null plus something is no pointer any more.
            (Kind::Pointer(t, offset), Some(k)) => Kind::Pointer(t, offset.wrapping_add(k as i64)),
            (Kind::Mixed, _) => Kind::Mixed,
            (Kind::Pointer(..), None) => Kind::Mixed,
            _ => match kind_of(k, of) {
                Kind::Pointer(..) | Kind::Mixed => Kind::Mixed,
                _ => Kind::Number,
            },
        },
        E::Ite(_, a, b) => kind_of(a, of).join(kind_of(b, of)),
        // What is left of a pointer when part of it is overwritten is no pointer; whoever needs those
        // bits is refused when they are written down.
        E::Insert(..) => Kind::Number,
        E::Not(a) => match kind_of(a, of) {
            Kind::Pointer(..) | Kind::Mixed => Kind::Mixed,
            _ => Kind::Number,
        },
        E::Bin(_, a, b) => match (kind_of(a, of), kind_of(b, of)) {
            (Kind::Pointer(..) | Kind::Mixed, _) | (_, Kind::Pointer(..) | Kind::Mixed) => {
                Kind::Mixed
            }
            _ => Kind::Number,
        },
        _ => Kind::Number,
    }
}

/// Where an address points.
pub fn spot(address: &E, of: &impl Fn(VarId) -> Kind) -> Option<Spot> {
    let simple = |e: &E| -> Option<Spot> {
        let (object, which, offset) = match e {
            E::Address(base, offset) => match *base {
                Base::Object(o) => (o, Which::Only, *offset),
                Base::Own(o) => (o, Which::Own, *offset),
                Base::Element(o, n) => (o, Which::Number(n), *offset),
                Base::Stack | Base::Code => return None,
            },
            E::Var(v, 64) => match of(*v) {
                Kind::Pointer(Target::Elements(o), k) => (o, Which::Pointed(*v), k),
                Kind::Pointer(Target::Object(o), k) => (o, Which::Pointed(*v), k),
                _ => return None,
            },
            _ => return None,
        };
        Some(Spot {
            object,
            which,
            offset,
            index: None,
        })
    };
    if let Some(s) = simple(address) {
        return Some(s);
    }
    let E::Bin(Bin::Add, a, b) = address else {
        return None;
    };
    if let Some(k) = b.as_const() {
        let mut s = spot(a, of)?;
        s.offset = s.offset.checked_add(k as i64)?;
        return Some(s);
    }
    let (mut s, index) = match (spot(a, of), spot(b, of)) {
        (Some(s), None) => (s, b),
        (None, Some(s)) => (s, a),
        _ => return None,
    };
    if s.index.is_some() {
        return None;
    }
    let (index, stride) = match &**index {
        E::Bin(Bin::Shl, x, k) if k.as_const().is_some_and(|k| k < 20) => {
            ((**x).clone(), 1 << k.as_const().unwrap_or(0))
        }
        E::Bin(Bin::Mul, x, k) if k.as_const().is_some_and(|k| k > 0 && k < 1 << 20) => {
            ((**x).clone(), k.as_const().unwrap_or(1))
        }
        // A shift of a narrower word that cannot overflow.
        E::Zext(inner, 64) => match &**inner {
            E::Bin(Bin::Shl, x, k)
                if k.as_const().is_some_and(|k| k < 20)
                    && x.most() <= crate::bits::mask(x.width()) >> k.as_const().unwrap_or(0) =>
            {
                ((**x).clone().zext(64), 1 << k.as_const().unwrap_or(0))
            }
            _ => ((**index).clone(), 1),
        },
        _ => ((**index).clone(), 1),
    };
    // A sum of a narrower word that cannot wrap around is the same sum of 64 bits.
    let index = match index {
        E::Zext(inner, 64) => match *inner {
            E::Bin(Bin::Add, x, k)
                if k.as_const().is_some_and(|k| {
                    let sum = x.most().checked_add(k);
                    sum.is_some_and(|s| s <= crate::bits::mask(x.width()))
                }) =>
            {
                let k = k.as_const().unwrap_or(0) as i64;
                x.zext(64).plus(k)
            }
            inner => inner.zext(64),
        },
        index => index,
    };
    // A constant in the index is part of the offset: addresses are sums up to multiples of 2⁶⁴.
    s.index = Some(match index {
        E::Bin(Bin::Add, x, k) if k.as_const().is_some() => {
            let k = k.as_const().unwrap_or(0) as i64;
            s.offset = s
                .offset
                .checked_add(k.checked_mul(i64::try_from(stride).ok()?)?)?;
            (*x, stride)
        }
        index => (index, stride),
    });
    Some(s)
}

/// Whether an address is null, or a field of a structure at null.
pub fn follows_null(address: &E, of: &impl Fn(VarId) -> Kind) -> bool {
    match address {
        E::Const(c, _) => *c < 4096,
        E::Var(v, 64) => of(*v) == Kind::Null,
        E::Bin(Bin::Add, a, k) => k.as_const().is_some_and(|k| k < 4096) && follows_null(a, of),
        _ => false,
    }
}

/// Whether a pointer into this object may be one of several.
pub fn has_elements(o: &Object) -> bool {
    o.copies != Copies::One
}
