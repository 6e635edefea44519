//! The same machine where buffers are kept small, or known by views ([`views`](super::views)).

use super::super::AuditError;
use super::super::facts::cells_seen;
use super::super::symbols::Value;
use super::buffer::{Buffer, Keep, Keeping, PerThread};
use super::machine::{Any, Machine, Runs, State, Way};
use super::ranges::Ranges;
use super::views::{Moment, among, cells};
use super::{About, Queries, corrupt, run};
use std::collections::BTreeMap;
use wattle_evidence::certificate::{ControlState, Inductive, Quantity};
use wattle_evidence::task::Task;
use wattle_logic::Formula;
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::Fact;
use wattle_model::{CellId, Expr, Instance, StepId, ThreadId};

pub struct Small<'i, 'k, const MODEL: usize> {
    machine: Machine<'i, PerThread<MODEL>, Buffer<'k>>,
    /// The cells of the views of threads whose buffers are known by views.
    views: BTreeMap<ThreadId, Vec<CellId>>,
}

/// Views of more buffers than this are not read together.
const TOGETHER: usize = 3;

/// An audit with such buffers.
pub fn audit(
    queries: Queries<'_>,
    task: &Task<'_>,
    certificate: &Inductive,
    about: About<'_>,
) -> Result<u64, AuditError> {
    let instance = task.instance;
    let threads = instance.threads.len();
    let keeps = match &certificate.blur {
        None => vec![None; threads],
        Some(blur) if certificate.views.is_empty() => {
            Keep::all(blur, threads, instance.cells.len())?
        }
        Some(_) => return Err(corrupt("buffers both blurred and known by views")),
    };
    let viewed = certificate.views.iter().copied();
    let viewed: Vec<ThreadId> = viewed.filter(|t| about.threads.contains(t)).collect();
    let views = cells(instance, &viewed, &about.foreign)?;
    let ranges = &certificate.ranges;
    match task.model {
        MemoryModel::Sc => {
            let machine = Small::<0>::new(instance, &keeps, ranges, views)?;
            run(queries, task, certificate, machine, about)
        }
        MemoryModel::Tso => {
            let machine = Small::<1>::new(instance, &keeps, ranges, views)?;
            run(queries, task, certificate, machine, about)
        }
        MemoryModel::Pso => {
            let machine = Small::<2>::new(instance, &keeps, ranges, views)?;
            run(queries, task, certificate, machine, about)
        }
    }
}

impl<'i, 'k, const MODEL: usize> Small<'i, 'k, MODEL> {
    /// With the cells of the views of the threads whose buffers are known so.
    pub fn new(
        instance: &'i Instance,
        keeps: &'k [Option<Keep>],
        ranges: &[(Quantity, Option<i64>, Option<i64>)],
        views: BTreeMap<ThreadId, Vec<CellId>>,
    ) -> Result<Self, AuditError> {
        let model = MemoryModel::ALL[MODEL];
        let keep = |(t, keep): (usize, &'k Option<Keep>)| Keeping {
            model,
            keep: keep.as_ref(),
            viewed: views.contains_key(&ThreadId::new(t)),
        };
        let bounds = keeps.iter().enumerate().map(keep).collect();
        let machine = Machine::new(instance, bounds, ranges)?;
        Ok(Small { machine, views })
    }

    /// The state in the moment of the thread.
    fn at(&self, state: &State<Buffer<'k>>, t: ThreadId, moment: Moment) -> State<Buffer<'k>> {
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
    fn loading(&self, state: &State<Buffer<'k>>, t: ThreadId, s: StepId) -> Vec<State<Buffer<'k>>> {
        let loaded = self.machine.instance.thread(t).step(s).action.loaded();
        let loaded = loaded.map_or_else(Vec::new, among);
        let others = self.views.iter().filter(|(u, _)| **u != t);
        self.readings(state, others, &loaded)
    }

    /// The state, and with memory as the lower view of buffers that store to the cells.
    fn readings<'v>(
        &self,
        state: &State<Buffer<'k>>,
        views: impl Iterator<Item = (&'v ThreadId, &'v Vec<CellId>)>,
        loaded: &[CellId],
    ) -> Vec<State<Buffer<'k>>> {
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

impl<'k, const MODEL: usize> Runs for Small<'_, 'k, MODEL> {
    type Buffer = Buffer<'k>;

    fn ranges(&self) -> &Ranges {
        self.machine.ranges()
    }

    fn any(&mut self, control: &ControlState) -> Result<Any<Buffer<'k>>, AuditError> {
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
        state: &State<Buffer<'k>>,
        t: ThreadId,
    ) -> Result<Vec<Way<Buffer<'k>>>, AuditError> {
        if self.views.is_empty() {
            return self.machine.ways_of(state, t);
        }
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
        state: &State<Buffer<'k>>,
        target: &Expr<Fact>,
    ) -> Result<Vec<Vec<Formula>>, AuditError> {
        self.machine.target(state, target)
    }

    fn looked_at(&self, state: &State<Buffer<'k>>, only_final: bool) -> bool {
        self.machine.looked_at(state, only_final)
    }

    /// Only states where all buffers are empty, if that is asked for.
    fn looking(
        &self,
        state: &State<Buffer<'k>>,
        target: &Expr<Fact>,
        only_final: bool,
    ) -> Vec<State<Buffer<'k>>> {
        if self.views.is_empty() {
            return Vec::new();
        }
        if only_final {
            return vec![self.emptied(state.clone())];
        }
        let cells: Vec<CellId> = cells_seen(target).into_iter().map(CellId::new).collect();
        self.readings(state, self.views.iter(), &cells)
    }

    fn emptied(&self, state: State<Buffer<'k>>) -> State<Buffer<'k>> {
        let threads = self.views.keys();
        threads.fold(state, |state, t| self.at(&state, *t, Moment::Empty))
    }

    fn is_viewed(&self, cell: CellId) -> bool {
        self.views.values().any(|cells| cells.contains(&cell))
    }
}
