//! A set of states written down, and events as a person would name them. Nobody trusts a list: it is audited when
//! it is read.

use super::local::{Local, Reduction};
use super::moves::{self, Effect, Move};
use super::{AuditError, Buffer, Space, exact_bounds};
use rustc_hash::FxHashSet;
use wattle_evidence::certificate::{ClosedStates, Coded, Shortened};
use wattle_evidence::control::Control;
use wattle_evidence::task::Task;
use wattle_memory::content::Content;
use wattle_memory::reference::State;
use wattle_memory::{Exact, Layout};
use wattle_model::{CellId, LocationId, ThreadId};

/// Every state that has to be in a certificate, written down.
pub fn list<L: Coded>(
    task: &Task<'_>,
    most: u64,
    control: &Control<'_>,
) -> Result<ClosedStates, AuditError> {
    let alone = moves::alone(task.instance)?;
    let bounds = exact_bounds(task.instance);
    let reduction = Reduction::most(task, true);
    let mut space = Space::<L, Exact>::new(task, &alone, &bounds, reduction, control)?;
    space.most = Some(most);
    space.begin()?;
    space.run()?;
    let (mut numbers, mut rows) = (Vec::new(), Vec::new());
    for i in 0..space.rows.len() {
        space.poll(8 * numbers.len() as u64)?;
        let begin = numbers.len();
        L::encode(&space.state(space.rows.row(i)), &mut numbers);
        rows.push(begin..numbers.len());
    }
    rows.sort_unstable_by(|a, b| numbers[a.clone()].cmp(&numbers[b.clone()]));
    let mut set = ClosedStates::new(L::MODEL);
    set.shortened = space.moves.reduction.claims();
    for row in rows {
        set.push(&numbers[row]);
    }
    Ok(set.finish())
}

impl Reduction {
    /// The same as a claim.
    pub fn claims(&self) -> Shortened {
        let local = |l: &Vec<Local>| {
            let all = (0..l.len()).filter(|i| l[*i] != Local::No);
            all.map(LocationId::new).collect()
        };
        let private = |p: &FxHashSet<CellId>| {
            let mut all: Vec<CellId> = p.iter().copied().collect();
            all.sort_unstable();
            all
        };
        Shortened {
            local: self.local.iter().map(local).collect(),
            private: self.private.iter().map(private).collect(),
        }
    }
}

impl<L: Layout, C: Content<Value = i64>> Space<'_, L, C> {
    /// The state of a row.
    fn state(&self, row: &[u64]) -> State<Buffer<L, C>> {
        let n = self.threads();
        let parts = (0..n).map(|t| self.moves.part(t, self.rows.get(row, t)));
        let values = self.moves.values.iter().enumerate();
        State {
            locations: parts.clone().map(|p| p.at).collect(),
            registers: parts.clone().map(|p| p.registers.clone()).collect(),
            memory: values
                .map(|(c, v)| v.all[self.rows.get(row, n + 1 + c) as usize])
                .collect(),
            buffers: parts.map(|p| p.buffer.clone()).collect(),
            holder: (self.rows.get(row, n).checked_sub(1)).map(ThreadId),
        }
    }

    /// An event as a person would name it.
    pub(super) fn named(&self, t: usize, a_move: &Move) -> String {
        let thread = &self.task.instance.threads[t];
        match (a_move.step, a_move.effect) {
            (None, Effect::Drain { cell, value, .. }) => {
                let value = self.moves.values[cell as usize].all[value as usize];
                let cell = &self.task.instance.cells[cell as usize].name;
                format!("the drain of {cell} = {value} of {}", thread.name)
            }
            (step, _) => {
                let line = step.map_or(0, |s| thread.step(s).span.line);
                format!("a step of {} (line {line})", thread.name)
            }
        }
    }
}
