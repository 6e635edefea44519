//! What every thread at a place may know: how its registers and pending values go with each other and with the
//! cells that they come from or go to.
//!
//! A count that is changed under a lock is read into a register first: while the thread has the lock, the register
//! is the cell. Guessed are bounds of such differences, where more threads do not move them; what a thread turns out not to know is dropped.

use crate::sample::Samples;
use crate::split::{Split, Spot};
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::Comparison;
use wattle_evidence::certificate::counting::{Counted, Fact, Known, Local, Sum};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Thread};
use wattle_model::{CellId, Crowd, Expr, RegisterId};

/// How many are tried.
const MOST_KNOWN: usize = 600;

/// An array that is larger is not looked at cell by cell.
const MOST_CELLS: u32 = 4;

/// One of a thread's own less another, or less a cell.
type Pair = (Counted, Option<Counted>);

/// Where threads are, place by place: `at` says for each local state. Of two registers is tried, too, that they are
/// not further apart than these.
pub fn guess(
    crowd: &Crowd,
    samples: &Samples,
    split: &Split,
    at: &BTreeMap<u32, usize>,
    apart: &[i64],
) -> Vec<Known> {
    let threads = crowd.instance.threads.iter();
    let flows: Vec<Vec<BTreeSet<CellId>>> = threads.map(flows).collect();
    let pairs: Vec<Vec<Pair>> = (split.places.iter())
        .map(|(spot, _)| pairs(spot, split, samples, &flows[spot.role]))
        .collect();
    let mut seen: BTreeMap<(usize, Pair), [(i64, i64); 2]> = BTreeMap::new();
    for state in &samples.states {
        for l in &state.locals {
            let (place, local) = (at[l], &samples.locals[*l as usize]);
            for pair in &pairs[place] {
                let value = |c: &Counted| value(c, &state.cells, local);
                let v = value(&pair.0).saturating_sub(pair.1.as_ref().map_or(0, value));
                let both = seen.entry((place, *pair));
                let both = both.or_insert([(i64::MAX, i64::MIN); 2]);
                let fewer = state.threads < samples.most.max(2);
                for (lo, hi) in both.iter_mut().take(1 + usize::from(fewer)) {
                    (*lo, *hi) = ((*lo).min(v), (*hi).max(v));
                }
            }
        }
    }
    let mut known = Vec::new();
    for ((place, pair), [all, fewer]) in seen {
        let mut bound = |times: i64, constant: i64| {
            let other = pair.1.map(|c| (-times, c));
            let sum = Sum {
                sum: [(times, pair.0)].into_iter().chain(other).collect(),
                constant,
                is: Comparison::AtMostZero,
            };
            let (place, fact) = (place as u32, Fact(vec![sum]));
            known.push(Known { place, fact });
        };
        if all.0 == fewer.0 {
            bound(-1, all.0);
        }
        if all.1 == fewer.1 {
            bound(1, all.1.saturating_neg());
        }
        if let (Counted::Register(_), Some(Counted::Register(_))) = pair {
            apart.iter().for_each(|k| bound(1, -k));
            apart.iter().for_each(|k| bound(-1, -k));
        }
    }
    known.truncate(MOST_KNOWN);
    known
}

fn value(of: &Counted, cells: &[i64], local: &Local) -> i64 {
    match of {
        Counted::Cell(c) => cells[c.index()],
        Counted::Register(r) => local.registers[r.index()],
        Counted::Entry(e) => local.values[*e as usize],
        Counted::Place(_) => 0,
    }
}

/// What is compared of a thread at the spot: not what is told apart by value anyway.
fn pairs(spot: &Spot, split: &Split, samples: &Samples, flows: &[BTreeSet<CellId>]) -> Vec<Pair> {
    let (registers, entries) = split.by_value(spot);
    let live = &samples.live[spot.role][spot.location.index()];
    let open = (0..live.len()).filter(|r| live[*r] && !registers.contains(r));
    let mut own: Vec<(Counted, BTreeSet<CellId>)> = open
        .map(|r| (Counted::Register(RegisterId::new(r)), flows[r].clone()))
        .collect();
    for (e, (_, cell)) in spot.pending.entries.iter().enumerate() {
        if !entries.contains(&e) {
            own.push((Counted::Entry(e as u32), [*cell].into()));
        }
    }
    let mut pairs = Vec::new();
    for (n, (one, cells)) in own.iter().enumerate() {
        pairs.push((*one, None));
        pairs.extend(cells.iter().map(|c| (*one, Some(Counted::Cell(*c)))));
        pairs.extend(own[n + 1..].iter().map(|(other, _)| (*one, Some(*other))));
    }
    pairs
}

/// For each register the cells that it comes from or goes to.
fn flows(thread: &Thread) -> Vec<BTreeSet<CellId>> {
    let mut all = vec![BTreeSet::new(); thread.registers.len()];
    let cells = |place: &Address| match place {
        Address::Cell(c) => vec![*c],
        Address::Computed { base, length, .. } if *length <= MOST_CELLS => {
            let cells = base.index()..base.index() + *length as usize;
            cells.map(CellId::new).collect()
        }
        Address::Computed { .. } => Vec::new(),
    };
    let registers = |e: &Expr<RegisterId>| {
        let mut found = Vec::new();
        e.for_each_atom(&mut |r| found.push(r.index()));
        found
    };
    loop {
        let before = all.clone();
        for step in &thread.steps {
            match &step.action {
                Action::Load { register, place } => all[register.index()].extend(cells(place)),
                Action::Store { place, value } => {
                    for r in registers(value) {
                        all[r].extend(cells(place));
                    }
                }
                Action::Assign { register, value } => {
                    for r in registers(value) {
                        let more = all[r].clone();
                        all[register.index()].extend(more);
                    }
                }
                // What is compared goes with the same cells.
                Action::Assume(e) => {
                    let compared = registers(e);
                    let all_cells = compared.iter().flat_map(|r| all[*r].clone());
                    let all_cells: BTreeSet<CellId> = all_cells.collect();
                    for r in compared {
                        all[r].extend(&all_cells);
                    }
                }
                Action::Skip
                | Action::Havoc { .. }
                | Action::Assert { .. }
                | Action::Fence(_)
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Lock
                | Action::Unlock => {}
            }
        }
        if all == before {
            return all;
        }
    }
}
