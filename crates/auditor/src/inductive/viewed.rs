//! The same machine where buffers are known by views ([`views`](super::views)), those of some threads.

#[cfg(test)]
mod tests;
use super::super::AuditError;
use super::super::facts::cells_seen;
use super::super::symbols::Value;
use super::machine::{Any, Machine, Pending, Runs, State, Way};
use super::ranges::Ranges;
use super::stores::{PerThread, Stores};
use super::views::{Moment, Views, cells};
use super::{About, Queries, run};
use std::collections::BTreeMap;
use wattle_evidence::certificate::{ControlState, Inductive, PendingStores, View};
use wattle_evidence::task::Task;
use wattle_logic::Formula;
use wattle_memory::MemoryModel;
use wattle_memory::content::{Content, Drained, Entry, Full};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact};
use wattle_model::{CellId, Domain, Expr, StepId, ThreadId};

/// A buffer known by views, or the stores pending in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer {
    stores: Stores,
    views: Option<Views>,
}

pub struct Viewed<'i, const MODEL: usize> {
    machine: Machine<'i, PerThread<MODEL>, Buffer>,
    /// The cells of the views of threads whose buffers are known by views.
    views: BTreeMap<ThreadId, Vec<CellId>>,
}

/// Views of more buffers than this are not read together.
const TOGETHER: usize = 3;

/// An audit with such buffers.
pub fn audit<const MODEL: usize>(
    queries: Queries<'_>,
    task: &Task<'_>,
    certificate: &Inductive,
    about: About<'_>,
) -> Result<u64, AuditError> {
    let (instance, model) = (task.instance, MemoryModel::ALL[MODEL]);
    let viewed = certificate.views.iter().copied();
    let viewed: Vec<ThreadId> = viewed.filter(|t| about.threads.contains(t)).collect();
    let views = cells(instance, &viewed, &about.foreign)?;
    let bound = |t| (model, views.contains_key(&t));
    let bounds = instance.thread_ids().map(bound).collect();
    let machine = Machine::new(instance, bounds, &certificate.ranges)?;
    let machine = Viewed::<MODEL> { machine, views };
    run(queries, task, certificate, machine, about)
}

impl<const MODEL: usize> Viewed<'_, MODEL> {
    /// The state in the moment of the thread.
    fn at(&self, state: &State<Buffer>, t: ThreadId, moment: Moment) -> State<Buffer> {
        let mut state = state.clone();
        if let Some(views) = &mut state.buffers[t.index()].views {
            *views = views.at(moment, &state.memory);
        }
        state
    }

    /// In which moments of its thread's views the step must be looked at.
    fn moments(&self, t: ThreadId, s: StepId) -> Vec<Moment> {
        let Some(cells) = self.views.get(&t) else {
            return vec![Moment::Any];
        };
        let thread = self.machine.instance.thread(t);
        let step = thread.step(s);
        // Inside a drained block the buffer is empty and stores write memory.
        if thread.direct[step.source.index()] {
            return vec![Moment::Empty];
        }
        match &step.action {
            Action::Store { .. } => {
                let groups = self.groups(cells);
                let upper = groups.iter().cloned().map(Moment::UpperIsNewest);
                let both = groups.iter().cloned().map(Moment::BothAreNewest);
                [Moment::Any].into_iter().chain(upper).chain(both).collect()
            }
            Action::Fence(_) | Action::AtomicBegin(_) | Action::Lock | Action::Unlock => {
                vec![Moment::Any, Moment::Empty]
            }
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::AtomicEnd => vec![Moment::Any],
        }
    }

    /// The cells whose stores are in one order.
    fn groups(&self, cells: &[CellId]) -> Vec<Vec<CellId>> {
        match MemoryModel::ALL[MODEL] {
            MemoryModel::Pso => cells.iter().map(|c| vec![*c]).collect(),
            MemoryModel::Sc | MemoryModel::Tso => vec![cells.to_vec()],
        }
    }

    /// The readings for a step that may load from memory.
    fn loading(&self, state: &State<Buffer>, t: ThreadId, s: StepId) -> Vec<State<Buffer>> {
        let loaded = self.machine.instance.thread(t).step(s).action.loaded();
        let loaded = loaded.into_iter().flat_map(Address::extent);
        let loaded: Vec<CellId> = loaded.map(CellId::new).collect();
        let others = self.views.iter().filter(|(u, _)| **u != t);
        self.readings(state, others, &loaded)
    }

    /// The state, and with memory as the lower view of buffers that store to the cells.
    fn readings<'v>(
        &self,
        state: &State<Buffer>,
        views: impl Iterator<Item = (&'v ThreadId, &'v Vec<CellId>)>,
        loaded: &[CellId],
    ) -> Vec<State<Buffer>> {
        if self.views.is_empty() {
            return Vec::new();
        }
        let mut read = Vec::new();
        for (u, cells) in views {
            let groups = self.groups(cells).into_iter();
            let groups = groups.filter(|g| g.iter().any(|c| loaded.contains(c)));
            read.extend(groups.map(|g| (*u, g)));
        }
        let together = read.len() <= TOGETHER;
        let mut readings = vec![state.clone()];
        for (u, group) in read {
            let from = match together {
                true => readings.clone(),
                false => vec![state.clone()],
            };
            for mut reading in from {
                let Some(views) = reading.buffers[u.index()].views.clone() else {
                    continue;
                };
                for upper_is_lower in [false, true] {
                    let memory = views.of_memory(&group, upper_is_lower, &state.memory);
                    reading.buffers[u.index()].views = Some(memory);
                    readings.push(reading.clone());
                }
            }
        }
        readings
    }
}

impl<const MODEL: usize> Runs for Viewed<'_, MODEL> {
    type Buffer = Buffer;

    fn ranges(&self) -> &Ranges {
        self.machine.ranges()
    }

    fn any(&mut self, control: &ControlState) -> Result<Any<Buffer>, AuditError> {
        let (mut state, _) = self.machine.any(control)?;
        for (t, cells) in &self.views {
            let views = state.buffers[t.index()].views.as_mut();
            for map in views.into_iter().flat_map(|views| views.maps_mut()) {
                for c in cells {
                    let bounds = self.machine.instance.cell(*c).ty.bounds();
                    map.insert(*c, Value::from(self.machine.symbols.between(bounds)));
                }
            }
        }
        Ok((state, self.machine.symbols.facts().to_vec()))
    }

    fn ways_of(
        &mut self,
        state: &State<Buffer>,
        t: ThreadId,
    ) -> Result<Vec<Way<Buffer>>, AuditError> {
        let mut ways = Vec::new();
        if !self.machine.rules.may_act(state, t) {
            return Ok(ways);
        }
        for &s in self
            .machine
            .instance
            .thread(t)
            .outgoing(state.locations[t.index()])
        {
            for moment in self.moments(t, s) {
                let before = self.at(state, t, moment.clone());
                let readings = self.loading(&before, t, s);
                let first = ways.len();
                self.machine.step(&before, t, s, &mut ways)?;
                for way in &mut ways[first..] {
                    way.readings.clone_from(&readings);
                    if let Some(to) = &mut way.to
                        && let Some(views) = &mut to.buffers[t.index()].views
                    {
                        if moment == Moment::Empty {
                            views.are_memory(&to.memory);
                        }
                        views.moment = Moment::Any;
                    }
                }
            }
        }
        self.machine.drains(state, t, &mut ways)?;
        Ok(ways)
    }

    fn target(
        &mut self,
        state: &State<Buffer>,
        target: &Expr<Fact>,
    ) -> Result<Vec<Vec<Formula>>, AuditError> {
        self.machine.target(state, target)
    }

    fn looked_at(&self, state: &State<Buffer>, only_final: bool) -> bool {
        self.machine.looked_at(state, only_final)
    }

    /// Only states where all buffers are empty, if that is asked for.
    fn looking(
        &self,
        state: &State<Buffer>,
        target: &Expr<Fact>,
        only_final: bool,
    ) -> Vec<State<Buffer>> {
        if only_final {
            return vec![self.emptied(state.clone())];
        }
        let cells: Vec<CellId> = cells_seen(target).into_iter().map(CellId::new).collect();
        self.readings(state, self.views.iter(), &cells)
    }

    fn emptied(&self, state: State<Buffer>) -> State<Buffer> {
        let threads = self.views.keys();
        threads.fold(state, |state, t| self.at(&state, *t, Moment::Empty))
    }

    fn is_viewed(&self, cell: CellId) -> bool {
        self.views.values().any(|cells| cells.contains(&cell))
    }
}

impl Content for Buffer {
    /// The memory model, and whether only views are known.
    type Bound = (MemoryModel, bool);
    type Value = Value;

    fn empty((model, viewed): Self::Bound) -> Self {
        Buffer {
            stores: Stores {
                plain: model == MemoryModel::Tso,
                ..Stores::default()
            },
            views: viewed.then(Views::default),
        }
    }

    fn put<D: Domain<Value = Value>>(
        &mut self,
        _: &mut D,
        (model, _): Self::Bound,
        entry: Entry<Value>,
    ) -> Result<(), Full> {
        match &mut self.views {
            Some(views) => views.put(entry.0, entry.1),
            None => self.stores.put(model == MemoryModel::Tso, entry),
        }
        Ok(())
    }

    /// With views it says nothing: what it orders may then happen in any order.
    fn store_fence(&mut self) {
        self.stores.store_fence();
    }

    fn newest(&self, cell: CellId) -> Option<Value> {
        match &self.views {
            Some(views) => views.newest.get(&cell).cloned(),
            None => self.stores.newest(cell),
        }
    }

    fn drains(&self) -> Vec<Drained<Self, Value>> {
        let oldest = self.stores.oldest();
        let drained = oldest.map(|(cell, (_, value))| Drained {
            entry: (cell, value.clone()),
            keep: false,
            rest: Buffer {
                stores: self.stores.without(cell),
                views: None,
            },
        });
        drained.collect()
    }

    fn is_empty(&self) -> bool {
        match &self.views {
            Some(views) => views.moment == Moment::Empty,
            None => self.stores.epochs.is_empty(),
        }
    }

    fn entries(&self) -> Vec<Entry<Value>> {
        let values = self.values().into_iter();
        values.map(|(c, v)| (c, v.clone())).collect()
    }
}

impl Pending for Buffer {
    type Bound = (MemoryModel, bool);

    fn read(listed: &PendingStores, bound: Self::Bound, values: Vec<Value>) -> Option<Self> {
        let empty = Buffer::empty(bound);
        let stores = Stores::read(listed, empty.stores.plain, values)?;
        let before = stores.written().before;
        let fits = match bound {
            (MemoryModel::Sc, viewed) => !viewed && stores.epochs.is_empty(),
            (MemoryModel::Tso | MemoryModel::Pso, viewed) => !viewed || stores.epochs.is_empty(),
        };
        (fits && before.is_empty()).then_some(Buffer { stores, ..empty })
    }

    fn written(&self) -> PendingStores {
        self.stores.written()
    }

    fn listed(&self) -> Vec<(u32, CellId, &Value)> {
        self.stores.listed()
    }

    fn for_each(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.stores.for_each(change);
        let views = self.views.iter_mut().flat_map(Views::maps_mut);
        views.flat_map(BTreeMap::values_mut).for_each(change);
    }

    fn values(&self) -> Vec<(CellId, &Value)> {
        let listed = self.stores.listed().into_iter();
        let mut all: Vec<_> = listed.map(|(_, c, v)| (c, v)).collect();
        let views = self.views.iter().flat_map(Views::maps);
        all.extend(views.flatten().map(|(c, v)| (*c, v)));
        all
    }

    fn view(&self, which: View, cell: CellId) -> Option<&Value> {
        self.views.as_ref()?.get(which, cell)
    }
}
