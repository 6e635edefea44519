//! Bases of configurations with load buffers.
//!
//! The basis proves what it says if it covers every bad configuration, covers no initial one, and
//! covers every predecessor of whatever it covers: then no run of the load-buffer machine leads from
//! an initial configuration to a bad one, and that machine reaches the local states TSO reaches
//! (Abdulla, Atig, Bouajjani, Ngo 2016).
//!
//! [`super::alone`] lists what each thread can do on its own, [`before`] turns every rule of the
//! load-buffer machine round. Both are written for this purpose alone.

mod before;

use super::alone::{Alone, local_covers, openness, widen};
use super::bad::for_each_bad;
use super::{AuditError, Audited};
use crate::certificate::{LoadBufferConfig, LoadBufferMessage, LoadBuffers, LocalState};
use crate::control::{Control, Progress};
use crate::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use wattle_memory::MemoryModel;
use wattle_model::CellId;

pub fn audit(
    task: &Task<'_>,
    certificate: &LoadBuffers,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if task.model != MemoryModel::Tso {
        return Err(AuditError::WrongModel(MemoryModel::Tso));
    }
    if task.deadlock {
        return Err(AuditError::Other(
            "a basis says nothing about deadlocks".into(),
        ));
    }
    let (threads, cells) = (task.instance.threads.len(), task.instance.cells.len());
    let fits = |c: &LoadBufferConfig| {
        c.locals.len() == threads && c.buffers.len() == threads && c.memory.len() == cells
    };
    if !certificate.basis.iter().all(fits) {
        return Err(AuditError::Other(
            "a configuration of another program".into(),
        ));
    }
    let alone = Alone::unfold(task, control)?;
    let cover = Cover::new(certificate);
    let empty = |c: &LoadBufferConfig| c.buffers.iter().all(Vec::is_empty);
    let starts = |c: &&LoadBufferConfig| {
        !c.after_snapshot && empty(c) && alone.may_start(task, &c.locals, &c.memory)
    };
    if certificate.basis.iter().any(|c| starts(&c)) {
        return Err(AuditError::MissesInitial);
    }
    for_each_bad(task, &alone, control, &mut |locals, memory, snapshot| {
        let bad = LoadBufferConfig {
            buffers: vec![Vec::new(); locals.len()],
            locals,
            memory,
            after_snapshot: snapshot,
        };
        match cover.covers(&bad) {
            true => Ok(()),
            false => Err(AuditError::Other(
                "a bad configuration is not covered".into(),
            )),
        }
    })?;
    for (n, config) in certificate.basis.iter().enumerate() {
        control.poll(
            "audit",
            Progress {
                states: n as u64,
                ..Progress::default()
            },
        )?;
        for before in before::predecessors(&alone, config) {
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

/// The basis, looked up by what it says of the threads.
struct Cover<'c> {
    by_locals: BTreeMap<&'c [LocalState], Vec<&'c LoadBufferConfig>>,
    /// Which threads are left open, for every way that occurs.
    open: BTreeSet<Vec<u8>>,
}

impl<'c> Cover<'c> {
    fn new(certificate: &'c LoadBuffers) -> Self {
        let mut cover = Cover {
            by_locals: BTreeMap::new(),
            open: BTreeSet::new(),
        };
        for config in &certificate.basis {
            let rows = cover.by_locals.entry(&config.locals).or_default();
            rows.push(config);
            cover
                .open
                .insert(config.locals.iter().map(openness).collect());
        }
        cover
    }

    fn covers(&self, special: &LoadBufferConfig) -> bool {
        self.open.iter().any(|open| {
            let Some(general) = widen(&special.locals, open) else {
                return false;
            };
            let rows = self.by_locals.get(general.as_slice());
            rows.into_iter().flatten().any(|c| covers(c, special))
        })
    }
}

fn covers(general: &LoadBufferConfig, special: &LoadBufferConfig) -> bool {
    general.after_snapshot == special.after_snapshot
        && (general.locals.iter().zip(&special.locals)).all(|(a, b)| local_covers(a, b))
        && (general.memory.iter().zip(&special.memory)).all(|(a, b)| a.is_none() || a == b)
        && (general.buffers.iter().zip(&special.buffers)).all(|(a, b)| buffer_covers(a, b))
}

/// Splits both buffers at their own messages: those must agree, and the pieces between them must be
/// subwords.
fn buffer_covers(general: &[LoadBufferMessage], special: &[LoadBufferMessage]) -> bool {
    let (own_a, pieces_a) = split(general);
    let (own_b, pieces_b) = split(special);
    let agree = |(a, b): (&Own, &Own)| a.0 == b.0 && (a.1.is_none() || a.1 == b.1);
    own_a.len() == own_b.len()
        && own_a.iter().zip(&own_b).all(agree)
        && pieces_a
            .iter()
            .zip(&pieces_b)
            .all(|(a, b)| is_subword(a, b))
}

type Own = (CellId, Option<i64>);
type Sent = (CellId, i64);

fn split(buffer: &[LoadBufferMessage]) -> (Vec<Own>, Vec<Vec<Sent>>) {
    let (mut own, mut pieces) = (Vec::new(), vec![Vec::new()]);
    for message in buffer {
        match *message {
            LoadBufferMessage::Own { cell, value } => {
                own.push((cell, value));
                pieces.push(Vec::new());
            }
            LoadBufferMessage::Sent { cell, value } => {
                if let Some(piece) = pieces.last_mut() {
                    piece.push((cell, value));
                }
            }
        }
    }
    (own, pieces)
}

fn is_subword(a: &[Sent], b: &[Sent]) -> bool {
    let mut rest = b.iter();
    a.iter().all(|wanted| rest.any(|have| have == wanted))
}
