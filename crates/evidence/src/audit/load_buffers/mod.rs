//! Bases of configurations with load buffers.
//!
//! The basis proves what it says if it covers every bad configuration, covers no initial one, and
//! covers every predecessor of whatever it covers: then no run of the load-buffer machine leads from
//! an initial configuration to a bad one, and that machine reaches the local states TSO reaches
//! (Abdulla, Atig, Bouajjani, Ngo 2016).
//!
//! [`unfold`] lists what each thread can do on its own, [`before`] turns every rule of the
//! load-buffer machine round. Both are written for this purpose alone.

mod before;
mod unfold;

use super::{AuditError, Audited};
use crate::certificate::{LoadBufferConfig, LoadBufferMessage, LoadBuffers, LocalState};
use crate::control::{Control, Progress};
use crate::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use unfold::{Alone, Local};
use wattle_memory::MemoryModel;
use wattle_memory::reference::{State, evaluate};
use wattle_model::instance::{Fact, Initial};
use wattle_model::{CellId, Expr, Op2, ThreadId};

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
    let auditor = Auditor {
        task,
        control,
        alone: &alone,
        cover: Cover::new(certificate),
    };
    auditor.initial_is_not_covered()?;
    auditor.bad_is_covered()?;
    for (n, config) in certificate.basis.iter().enumerate() {
        control.poll(
            "audit",
            Progress {
                states: n as u64,
                ..Progress::default()
            },
        )?;
        for before in before::predecessors(&alone, config) {
            if !auditor.cover.covers(&before) {
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
            let mut general = special.locals.clone();
            for (local, open) in general.iter_mut().zip(open) {
                let widened = match open {
                    0 => continue,
                    1 => LocalState::WithoutLock,
                    _ => LocalState::Any,
                };
                if !local_covers(&widened, local) {
                    return false;
                }
                *local = widened;
            }
            let rows = self.by_locals.get(general.as_slice());
            rows.into_iter().flatten().any(|c| covers(c, special))
        })
    }
}

fn openness(local: &LocalState) -> u8 {
    match local {
        LocalState::At { .. } => 0,
        LocalState::WithoutLock => 1,
        LocalState::Any => 2,
    }
}

fn local_covers(general: &LocalState, special: &LocalState) -> bool {
    match (general, special) {
        (LocalState::Any, _) | (LocalState::WithoutLock, LocalState::WithoutLock) => true,
        (LocalState::WithoutLock, LocalState::At { holds, .. }) => !holds,
        (a, b) => a == b,
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

struct Auditor<'a> {
    task: &'a Task<'a>,
    control: &'a Control<'a>,
    alone: &'a Alone,
    cover: Cover<'a>,
}

impl Auditor<'_> {
    /// No configuration of the basis covers one with initial locals and memory and empty buffers.
    fn initial_is_not_covered(&self) -> Result<(), AuditError> {
        let starts_in = |config: &LoadBufferConfig| {
            let locals = config
                .locals
                .iter()
                .zip(&self.alone.threads)
                .all(|(l, thread)| {
                    let mut initial = thread.initial.iter();
                    initial.any(|q| local_covers(l, &q.certified()))
                });
            let memory = config
                .memory
                .iter()
                .zip(&self.task.instance.cells)
                .all(|(m, cell)| {
                    m.is_none_or(|v| match cell.init {
                        Initial::Value(w) => v == w,
                        Initial::Any => cell.ty.admit(v) == Some(v),
                    })
                });
            let empty = config.buffers.iter().all(Vec::is_empty);
            locals && memory && empty && !config.after_snapshot
        };
        let rows = self.cover.by_locals.values().flatten();
        match rows.copied().find(|c| starts_in(c)) {
            Some(_) => Err(AuditError::MissesInitial),
            None => Ok(()),
        }
    }

    /// Every combination of local states (and memory, where the target reads it) that is bad is
    /// covered, and so is every fault.
    fn bad_is_covered(&self) -> Result<(), AuditError> {
        for (t, thread) in self.alone.threads.iter().enumerate() {
            for local in thread.states.iter().filter(|q| q.fault.is_some()) {
                let mut locals = vec![LocalState::Any; self.alone.threads.len()];
                locals[t] = local.certified();
                self.must_cover(locals, vec![None; self.task.instance.cells.len()], false)?;
            }
        }
        let Some(question) = self.task.question() else {
            return Ok(());
        };
        let mut parts = vec![&question.target];
        while let Some(part) = parts.pop() {
            match part {
                Expr::Binary(Op2::Or, a, b) => parts.extend([&**a, &**b]),
                part => self.bad_part_is_covered(part, question.only_final)?,
            }
        }
        Ok(())
    }

    /// One disjunct of the target. Threads it does not look at may be anywhere.
    fn bad_part_is_covered(&self, part: &Expr<Fact>, only_final: bool) -> Result<(), AuditError> {
        let instance = self.task.instance;
        let cells = self.alone.cells_read(part);
        let snapshot = !only_final && !cells.is_empty();
        let seen = unfold::threads_seen(part);
        let looks_at = |t: usize| only_final || seen.contains(&ThreadId::new(t));
        self.combinations(&looks_at, &mut Vec::new(), &mut |chosen| {
            let mut located = chosen.iter().zip(&instance.threads);
            if only_final && !located.all(|(q, thread)| thread.ended(q.location)) {
                return Ok(());
            }
            let mut memory = vec![0; instance.cells.len()];
            self.memories(&cells, &mut memory, &mut |memory| {
                let state = State::<()> {
                    locations: chosen.iter().map(|q| q.location).collect(),
                    registers: chosen.iter().map(|q| q.registers.clone()).collect(),
                    memory: memory.to_vec(),
                    buffers: Vec::new(),
                    holder: None,
                };
                match evaluate(&state, part) {
                    Ok(0) => Ok(()),
                    Ok(_) => {
                        let known = |c: usize| cells.contains(&c).then(|| memory[c]);
                        let memory = (0..memory.len()).map(known).collect();
                        let locals = chosen.iter().enumerate().map(|(t, q)| match looks_at(t) {
                            true => q.certified(),
                            false => LocalState::Any,
                        });
                        self.must_cover(locals.collect(), memory, snapshot)
                    }
                    Err(kind) => Err(AuditError::NoValue {
                        state: 0,
                        why: kind.to_string(),
                    }),
                }
            })
        })
    }

    fn must_cover(
        &self,
        locals: Vec<LocalState>,
        memory: Vec<Option<i64>>,
        after_snapshot: bool,
    ) -> Result<(), AuditError> {
        let bad = LoadBufferConfig {
            buffers: vec![Vec::new(); locals.len()],
            locals,
            memory,
            after_snapshot,
        };
        if self.cover.covers(&bad) {
            return Ok(());
        }
        Err(AuditError::Other(
            "a bad configuration is not covered".into(),
        ))
    }

    /// Every choice of one local state for each thread that is looked at; the others stand at one of
    /// theirs.
    fn combinations<'q>(
        &'q self,
        looks_at: &dyn Fn(usize) -> bool,
        chosen: &mut Vec<&'q Local>,
        visit: &mut dyn FnMut(&[&'q Local]) -> Result<(), AuditError>,
    ) -> Result<(), AuditError> {
        let Some(thread) = self.alone.threads.get(chosen.len()) else {
            return visit(chosen);
        };
        self.control.poll("audit", Progress::default())?;
        let all = if looks_at(chosen.len()) {
            usize::MAX
        } else {
            1
        };
        for local in thread.states.iter().filter(|q| q.fault.is_none()).take(all) {
            chosen.push(local);
            self.combinations(looks_at, chosen, visit)?;
            chosen.pop();
        }
        Ok(())
    }

    fn memories(
        &self,
        cells: &[usize],
        memory: &mut Vec<i64>,
        visit: &mut dyn FnMut(&[i64]) -> Result<(), AuditError>,
    ) -> Result<(), AuditError> {
        let Some((cell, rest)) = cells.split_first() else {
            return visit(memory);
        };
        for v in &self.alone.values[*cell] {
            memory[*cell] = *v;
            self.memories(rest, memory, visit)?;
        }
        Ok(())
    }
}
