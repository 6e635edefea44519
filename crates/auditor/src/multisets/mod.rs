//! Bases of configurations with multiset buffers.
//!
//! As for load buffers: every bad configuration is covered, no initial one is, and every predecessor
//! of what is covered is covered. The machine is the real one with buffers that forget the order of
//! stores, so it does everything TSO and PSO do.

mod before;

use super::automata::{Automata, local_covers, openness, widen};
use super::bad::for_each_bad;
use super::load_buffers::Made;
use super::{AuditError, Audited};
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::{BagOf, LocalState, MultisetConfig, Multisets};
use wattle_evidence::control::Control;
use wattle_evidence::task::Task;
use wattle_memory::MemoryModel;
use wattle_model::{CellId, Roles};

pub fn audit(
    task: &Task<'_>,
    certificate: &Multisets,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if task.model == MemoryModel::Sc {
        return Err(AuditError::WrongModel(MemoryModel::Tso));
    }
    if task.deadlock {
        return Err(AuditError::Other(
            "a basis says nothing about deadlocks".into(),
        ));
    }
    let (threads, cells) = (task.instance.threads.len(), task.instance.cells.len());
    let fits = |c: &MultisetConfig| {
        c.locals.len() == threads
            && c.memory.len() == cells
            && c.bags.len() == threads
            && c.bags.iter().all(|b| b.len() == cells)
    };
    if !certificate.basis.iter().all(fits) {
        return Err(AuditError::Other(
            "a configuration of another program".into(),
        ));
    }
    let automata = Automata::unfold(task, &Roles::fixed(task.instance), control)?;
    let cover = Cover::new(certificate);
    let starts = |c: &MultisetConfig| {
        c.bags.iter().flatten().all(Option::is_none)
            && automata.may_start(task, &c.locals, &c.memory)
    };
    if let Some(part) = certificate.basis.iter().position(starts) {
        let part = part as u64;
        return Err(AuditError::HasInitial { part });
    }
    for_each_bad(task, &automata, control, &mut |locals, memory, _| {
        let fault = |l: &LocalState| matches!(l, LocalState::At { fault: Some(_), .. });
        let only_final = task.question().is_some_and(|q| q.only_final);
        let final_only = only_final && !locals.iter().any(fault);
        let bad = MultisetConfig {
            bags: vec![vec![None; cells]; threads],
            locals,
            memory,
        };
        let ways = if final_only {
            vec![bad]
        } else {
            every_pending(&automata, bad)?
        };
        match ways.iter().all(|b| cover.covers(b)) {
            true => Ok(()),
            false => Err(AuditError::MissesBad),
        }
    })?;
    let mut made = Made::default();
    for (n, config) in certificate.basis.iter().enumerate() {
        for before in before::predecessors(&automata, config) {
            made.one_more(control)?;
            if !cover.covers(&before) {
                return Err(AuditError::NotClosed {
                    state: n as u64,
                    event: "a step from outside leads into what it covers, which".into(),
                });
            }
        }
    }
    Ok(Audited {
        checked: certificate.basis.len() as u64,
    })
}

/// The configuration with every choice of cells of which something is pending.
fn every_pending(
    automata: &Automata,
    bad: MultisetConfig,
) -> Result<Vec<MultisetConfig>, AuditError> {
    let mut ways = vec![bad];
    for t in 0..automata.threads.len() {
        for cell in (0..automata.values.len()).map(CellId::new) {
            if !automata.may_be_pending(&ways[0].locals[t], t, cell) {
                continue;
            }
            for i in 0..ways.len() {
                let mut way = ways[i].clone();
                way.bags[t][cell.index()] = Some(BagOf {
                    last: None,
                    others: Vec::new(),
                });
                ways.push(way);
            }
            if ways.len() > 1 << 16 {
                return Err(AuditError::Refused(
                    "too many ways for buffers to look".into(),
                ));
            }
        }
    }
    Ok(ways)
}

struct Cover<'c> {
    by_locals: BTreeMap<&'c [LocalState], Vec<&'c MultisetConfig>>,
    open: BTreeSet<Vec<u8>>,
}

impl<'c> Cover<'c> {
    fn new(certificate: &'c Multisets) -> Self {
        let mut cover = Cover {
            by_locals: BTreeMap::new(),
            open: BTreeSet::new(),
        };
        for config in &certificate.basis {
            cover
                .by_locals
                .entry(&config.locals)
                .or_default()
                .push(config);
            cover
                .open
                .insert(config.locals.iter().map(openness).collect());
        }
        cover
    }

    fn covers(&self, special: &MultisetConfig) -> bool {
        self.open.iter().any(|open| {
            let Some(general) = widen(&special.locals, open) else {
                return false;
            };
            let rows = self.by_locals.get(general.as_slice());
            rows.into_iter().flatten().any(|c| covers(c, special))
        })
    }
}

fn covers(general: &MultisetConfig, special: &MultisetConfig) -> bool {
    let bag = |(a, b): (&Option<BagOf>, &Option<BagOf>)| match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            let enough = |(v, n): &(i64, u32)| b.others.iter().any(|(w, m)| v == w && m >= n);
            (a.last.is_none() || a.last == b.last) && a.others.iter().all(enough)
        }
        _ => false,
    };
    (general.locals.iter().zip(&special.locals)).all(|(a, b)| local_covers(a, b))
        && (general.memory.iter().zip(&special.memory)).all(|(a, b)| a.is_none() || a == b)
        && (general.bags.iter().zip(&special.bags)).all(|(a, b)| a.iter().zip(b).all(bag))
}
