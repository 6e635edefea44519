//! Which states a certificate about levels stands for, asked of the states of instances, gone through one by one.
//!
//! A state that is met and not stood for shows that the certificate, or its audit, is wrong.

use super::act::{Kept, Pending, State, few};
use super::line::{Line, Shape, Value};
use super::{Closed, Levels};
use crate::AuditError;
use std::collections::{BTreeMap, HashSet, VecDeque};
use wattle_evidence::certificate::levels::Holds;
use wattle_evidence::control::Control;
use wattle_memory::layout::Epochs;
use wattle_memory::reference::{self, Machine, Outcome};
use wattle_memory::{Exact, Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::{CellId, Instance, Length, Program, RegisterId, Type};

/// A state of one of the instances that the certificate does not stand for, among the first so many of each; states with
/// more pending stores of a thread are left out.
pub fn outside(
    program: &Program,
    certificate: &Levels,
    instances: &[Instance],
    (states, pending): (usize, usize),
    control: &Control<'_>,
) -> Result<Option<String>, AuditError> {
    let limits = (states, pending);
    match certificate.model {
        MemoryModel::Sc => all::<Sc>(program, certificate, instances, limits, control),
        MemoryModel::Tso => all::<Tso>(program, certificate, instances, limits, control),
        MemoryModel::Pso => all::<Pso>(program, certificate, instances, limits, control),
    }
}

fn all<L: Layout>(
    program: &Program,
    certificate: &Levels,
    instances: &[Instance],
    (states, pending): (usize, usize),
    control: &Control<'_>,
) -> Result<Option<String>, AuditError>
where
    L::Buffer<Exact>: Partly<Pending<L>>,
{
    let shapes = Shape::all();
    let mut closed = Vec::new();
    for shape in &shapes {
        closed.push(Closed::<L>::of(program, certificate, shape, 0, control)?);
    }
    for instance in instances {
        let refused = |_| AuditError::Refused("the instance cannot be run".into());
        let machine = Machine::<L, Exact>::new(instance, ()).map_err(refused)?;
        let starts = machine.starts().map_err(refused)?;
        let mut open: VecDeque<_> = starts.iter().map(|s| machine.initial(s)).collect();
        let mut seen: HashSet<_> = open.iter().cloned().collect();
        while let Some(state) = open.pop_front() {
            control.go_on()?;
            let kept = Looked::<L> {
                closed: &closed,
                program,
                instance,
                state: &state,
            };
            if let Some(what) = kept.outside() {
                return Ok(Some(what));
            }
            for event in machine.events(&state) {
                let Outcome::Next(next) = machine.apply(&state, &event) else {
                    continue;
                };
                let short = next
                    .buffers
                    .iter()
                    .all(|b| L::entries::<Exact>(b).len() <= pending);
                if short && seen.len() < states && seen.insert(next.clone()) {
                    open.push_back(next);
                }
            }
        }
    }
    Ok(None)
}

struct Looked<'a, 'c, L: Layout> {
    closed: &'a [Closed<'c, L>],
    program: &'a Program,
    instance: &'a Instance,
    state: &'a reference::State<L::Buffer<Exact>>,
}

impl<L: Layout> Looked<'_, '_, L>
where
    L::Buffer<Exact>: Partly<Pending<L>>,
{
    fn outside(&self) -> Option<String> {
        let n = self.state.locations.len();
        // The stores of one thread alone are taken to be in memory at once.
        if n == 1 && !L::is_empty::<Exact>(&self.state.buffers[0]) {
            return None;
        }
        let mut pairs: Vec<Vec<usize>> = vec![vec![0]];
        if n > 1 {
            let all = (0..n).flat_map(|i| (0..n).map(move |j| vec![i, j]));
            pairs = all.filter(|p| p[0] != p[1]).collect();
        }
        for (pair, level) in pairs.iter().flat_map(|p| (0..n).map(move |m| (p, m))) {
            let fits = |c: &&Closed<'_, L>| {
                let points = &c.shape.threads.points;
                let more = pair.iter().max().is_some_and(|last| last + 1 < n);
                let line = &c.shape.threads;
                points.len() == pair.len()
                    && c.shape.ends == [level == 0, level + 1 == n]
                    && (pair.len() < 2 || (points[0] < points[1]) == (pair[0] < pair[1]))
                    && line.is_gap(line.inner().end - 1) == more
            };
            let found = self.closed.iter().find(fits)?;
            if pair
                .iter()
                .any(|t| found.around.mixes(self.state.locations[*t]))
            {
                continue;
            }
            let kept = self.kept(found, pair, level);
            if !kept
                .as_ref()
                .is_some_and(|kept| found.states.contains(kept))
            {
                return Some(format!(
                    "threads {pair:?} and level {level} of {n} look like nothing it stands for"
                ));
            }
        }
        None
    }

    fn kept(
        &self,
        closed: &Closed<'_, L>,
        pair: &[usize],
        level: usize,
    ) -> Option<State<Pending<L>>> {
        let (around, n) = (&closed.around, self.state.locations.len() as i64);
        let pair64: Vec<i64> = pair.iter().map(|t| *t as i64).collect();
        let value = |(ty, holds): (Type, Holds), v: i64| {
            let threads = |v| slot(&closed.shape.threads, &pair64, n, v);
            Some(match holds {
                Holds::Data if few(ty).is_none() => Value::Any,
                Holds::Data => Value::Number(v),
                Holds::Thread => Value::Thread(threads(v)?),
                Holds::Level => Value::Level(slot(&closed.shape.levels, &[level as i64], n, v)?),
                Holds::Name if v == -1 => Value::Number(-1),
                Holds::Name if pair64.contains(&v) => Value::Thread(threads(v)?),
                Holds::Name => Value::Other,
                // Where nobody reads it.
                Holds::Mixed => Value::Number(-1),
            })
        };
        let cell = |c: CellId| {
            let cell = &self.instance.cells[c.index()];
            let element = cell.element as usize;
            let region = self.program.region(cell.region);
            let each = matches!(region.length, Length::PerThread(_));
            let point = match around.regions[cell.region.index()].0 {
                Holds::Level => (element == level).then_some(0),
                Holds::Data | Holds::Mixed => (!each).then_some(0),
                Holds::Thread | Holds::Name => pair.iter().position(|t| *t == element),
            };
            let point = if each { point } else { Some(0) }?;
            let at = around
                .cells
                .iter()
                .position(|c| *c == (cell.region, point))?;
            Some((
                CellId::new(at),
                (region.ty, around.regions[cell.region.index()].1),
            ))
        };
        let mut threads = Vec::new();
        for t in pair {
            let registers = self.state.registers[*t].iter().enumerate();
            let registers =
                registers.map(|(r, v)| value(around.register_type(RegisterId::new(r)), *v));
            threads.push(Kept {
                location: self.state.locations[*t],
                registers: registers.collect::<Option<_>>()?,
                pending: self.state.buffers[*t].partly(&|(c, v)| {
                    let (at, of) = cell(c)?;
                    Some((at, value(of, v)?))
                }),
            });
        }
        let mut memory = vec![Value::Number(0); around.cells.len()];
        for (c, v) in self.state.memory.iter().enumerate() {
            if let Some((at, of)) = cell(CellId::new(c)) {
                memory[at.index()] = value(of, *v)?;
            }
        }
        Some(closed.forget(State { threads, memory }))
    }
}

/// Where a number is among n.
fn slot(line: &Line, points: &[i64], n: i64, v: i64) -> Option<u8> {
    let inner = line.inner();
    Some(match v {
        ..-1 => 0,
        -1 => 1,
        _ if v == n => inner.end,
        _ if v > n => inner.end + 1,
        _ => match points.iter().position(|p| *p == v) {
            Some(p) => line.points[p],
            None => {
                let before = points.iter().filter(|p| **p < v).count();
                let so_far = |s: &u8| line.points.iter().filter(|p| *p < s).count();
                let mut gaps = inner.filter(|s| line.is_gap(*s));
                gaps.find(|s| so_far(s) == before)?
            }
        },
    })
}

type Part<'p> = &'p dyn Fn((CellId, i64)) -> Option<(CellId, Value)>;

/// A buffer without the stores that are not kept.
trait Partly<B> {
    fn partly(&self, part: Part<'_>) -> B;
}

impl Partly<()> for () {
    fn partly(&self, _: Part<'_>) {}
}

impl Partly<Exact<Value>> for Exact {
    fn partly(&self, part: Part<'_>) -> Exact<Value> {
        Exact(self.0.iter().filter_map(|e| part(*e)).collect())
    }
}

impl Partly<Epochs<Exact<Value>>> for Epochs<Exact> {
    /// What was dropped opened an epoch: so would the next that is kept.
    fn partly(&self, part: Part<'_>) -> Epochs<Exact<Value>> {
        let mut epochs = Vec::new();
        let mut fenced = self.fenced;
        for epoch in &self.epochs {
            let mut kept = BTreeMap::new();
            for content in epoch.values() {
                let content = content.partly(part);
                let first = content.0.first().map(|(c, _)| *c);
                kept.extend(first.map(|c| (c, content)));
            }
            match kept.is_empty() {
                true => fenced = true,
                false => {
                    fenced = self.fenced;
                    epochs.push(kept);
                }
            }
        }
        fenced &= !epochs.is_empty();
        Epochs { epochs, fenced }
    }
}
