//! A proof as a certificate: views, or the cubes that no other cube covers, in the words of the system.

use crate::check::Proof;
use crate::cube::{Cube, Mask, OTHER};
use crate::lin::{Lin, Op};
use crate::memory::{Events, NOBODY};
use crate::slot::Slot;
use crate::{pairs, search};
use wattle_evidence::certificate::{Certificate, Cubes, cubes};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

pub fn certificate(system: &ArraySystem, model: MemoryModel, proof: &Proof) -> Certificate {
    match proof {
        Proof::Cubes(proof) => Certificate::Cubes(written(system, model, proof)),
        Proof::Views(proof) => Certificate::Views(pairs::certificate(system, model, proof)),
    }
}

fn written(system: &ArraySystem, model: MemoryModel, proof: &search::Proof) -> Cubes {
    Cubes {
        model,
        cells: system.cells.iter().map(|c| c.name.clone()).collect(),
        cubes: proof.live().map(cube).collect(),
    }
}

fn cube(c: &Cube) -> cubes::Cube {
    let threads = c.threads() as u8;
    let pairs = (0..threads).flat_map(|a| (0..threads).map(move |b| (a, b)));
    let m = &c.memory;
    let events = !m.events.is_empty();
    cubes::Cube {
        threads: c.fixed.clone(),
        ordered: pairs
            .filter(|(a, b)| c.before[usize::from(*a)] & 1 << b != 0)
            .collect(),
        among: c
            .doms
            .iter()
            .map(|(s, m)| (value(*s), members(*m)))
            .collect(),
        same: c
            .rels
            .iter()
            .map(|(a, b, e)| (value(*a), value(*b), *e))
            .collect(),
        numbers: c.ints.iter().chain(&c.reals).map(number).collect(),
        reads: m
            .events
            .iter()
            .map(|e| cubes::OpenReads {
                parts: e
                    .parts
                    .iter()
                    .map(|p| cubes::ReadPart {
                        reader: (p.reader != NOBODY).then_some(p.reader),
                        place: place(p.cell),
                        own: p.own,
                    })
                    .collect(),
                before: moments(e.after),
            })
            .collect(),
        after_reads_of: each(events, &m.read_first),
        after_stores_of: each(events, &m.write_first),
        after_stores_to: m
            .cell_first
            .iter()
            .map(|(s, e)| (place(*s), moments(*e)))
            .collect(),
        after_stores_elsewhere: m
            .others_first
            .iter()
            .map(|(a, e)| (*a, moments(*e)))
            .collect(),
        last: moments(m.last),
        pending: m
            .pending
            .iter()
            .map(|p| cubes::PendingStore {
                thread: p.thread,
                place: place(p.cell),
                newest: p.newest,
            })
            .collect(),
    }
}

fn each(any: bool, sets: &[Events]) -> Vec<Vec<u8>> {
    match any {
        true => sets.iter().map(|s| moments(*s)).collect(),
        false => Vec::new(),
    }
}

fn moments(set: Events) -> Vec<u8> {
    (0..64).filter(|e| set & 1 << e != 0).collect()
}

fn members(mask: Mask) -> Vec<u8> {
    let other = (mask & OTHER != 0).then_some(cubes::OTHER);
    let named = (0..cubes::OTHER).filter(|i| mask & 1 << i != 0);
    named.chain(other).collect()
}

fn place(slot: Slot) -> cubes::CellOf {
    cubes::CellOf {
        cell: slot.array(),
        of: slot.args().collect(),
    }
}

fn value(slot: Slot) -> cubes::Value {
    match (slot.as_read(), slot.as_pending()) {
        (Some((e, p)), _) => cubes::Value::Read(e as u8, p as u8),
        (_, Some(k)) => cubes::Value::Pending(k as u8),
        _ => cubes::Value::Cell(place(slot)),
    }
}

fn number(l: &Lin) -> cubes::Number {
    cubes::Number {
        terms: l.terms.iter().map(|(s, c)| (*c, value(*s))).collect(),
        constant: l.constant,
        relation: match l.op {
            Op::Le => cubes::Relation::AtMost,
            Op::Lt => cubes::Relation::Less,
            Op::Eq => cubes::Relation::Equal,
            Op::Ne => cubes::Relation::Different,
        },
    }
}
