//! Objects of which each thread only touches its own.
//!
//! `shared own[t]: object(8)` that the code gets as `&own[self]` and in no other way, and that nothing else
//! looks at, is memory others could only come to if the code told them where it is. As long as it does not,
//! such an object is words of the thread's stack, as variables of threads are (see `thread`): a pointer kept
//! there is a pointer in a variable, and a count nobody needs is gone. Where that does not work out (its
//! address is stored, an index goes into it) the object is shared like any other.

use crate::bits::{Base, E};
use crate::world::{Copies, World};
use std::collections::BTreeSet;
use wattle_model::{Expr, FamilyId, Init, Length, Local, Op2, Place, Program, RegionId};
use wattle_syntax::wtl::{self, Link};

/// Objects lie above this, seen from where the stack begins, each with as much room around it as no offset
/// of an instruction leads across by accident.
pub const START: i64 = 1 << 41;
const ROOM: i64 = 1 << 33;
/// Larger objects are shared.
const MAX_BYTES: u64 = 4096;

/// Where the object with this number is.
pub fn place(number: usize) -> i64 {
    START + ROOM * (number as i64 + 1)
}

/// Regions that may be kept by their threads. `looked` are those the program itself looks at.
pub fn candidates(
    program: &Program,
    link: &Link,
    looked: &BTreeSet<RegionId>,
) -> BTreeSet<RegionId> {
    let mut all: BTreeSet<RegionId> = link.memory.iter().map(|m| m.region).collect();
    all.retain(|r| !looked.contains(r));
    let mut shared = |e: &Expr<Local>| {
        e.for_each_atom(&mut |a| {
            if let Local::AddressOf(r) = a {
                all.remove(r);
            }
        });
    };
    let mut own: Vec<(FamilyId, RegionId)> = Vec::new();
    for (f, family) in program.families.iter().enumerate() {
        for r in &family.registers {
            match &r.init {
                Init::All(e) => shared(e),
                Init::Each(each) => each.iter().for_each(&mut shared),
                Init::Any => {}
            }
        }
        for s in &family.steps {
            let Some(call) = wtl::as_hole(&s.action) else {
                s.action.evaluated().into_iter().for_each(&mut shared);
                match s.action.place() {
                    Some(Place::Region(_, index)) => shared(index),
                    Some(Place::Memory(_)) => return BTreeSet::new(),
                    None => {}
                }
                continue;
            };
            for a in &link.calls[call].arguments {
                match a {
                    Expr::Binary(Op2::Add, region, me) if is_own(region, me) => {
                        if let Expr::Atom(Local::AddressOf(r)) = **region {
                            own.push((FamilyId::new(f), r));
                        }
                    }
                    a => shared(a),
                }
            }
        }
    }
    for (f, r) in own {
        if program.region(r).length != Length::PerThread(f) {
            all.remove(&r);
        }
    }
    all
}

fn is_own(region: &Expr<Local>, me: &Expr<Local>) -> bool {
    matches!(region, Expr::Atom(Local::AddressOf(_))) && matches!(me, Expr::Atom(Local::SelfIndex))
}

/// Keeps an object as words of the thread, if it is one of those and small enough.
pub fn keep(world: &mut World, object: usize) {
    let o = &world.objects[object];
    let may = o.region.is_some_and(|r| world.keep.contains(&r));
    if may && o.size <= MAX_BYTES && matches!(o.copies, Copies::PerThread(_)) {
        let at = place(world.kept.len());
        world.kept.insert(object, at);
    }
}

/// What each word of a family's objects holds at first; the last one may be part of a word.
pub fn words(world: &World, family: FamilyId) -> Vec<(E, E)> {
    let mut all = Vec::new();
    for (k, at) in &world.kept {
        let o = &world.objects[*k];
        if o.copies != Copies::PerThread(family) {
            continue;
        }
        for offset in (0..o.size).step_by(8) {
            let place = E::Address(Base::Stack, at + offset as i64);
            let bytes = (o.size - offset).min(8) as u32;
            let value = o.contents[0].number(offset, bytes);
            all.push((place, E::constant(value, bytes * 8)));
        }
    }
    all
}
