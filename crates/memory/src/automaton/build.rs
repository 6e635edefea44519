//! Unfolding threads into automata: a fixpoint over the values cells may hold.

use super::{Act, Automata, Automaton, Edge, LocalId, LocalState, NotFinite, Observed, chain};
use crate::fault::{Fault, FaultKind};
use crate::reference::MAX_CHOICE;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Initial, Thread};
use wattle_model::{CellId, Expr, Fence, Instance, LocationId, RegisterId, StepId, ThreadId, Type};

/// Past these sizes unfolding is given up.
const MAX_STATES: usize = 1 << 18;
const MAX_EDGES: usize = 1 << 21;
const MAX_VALUES: usize = 1 << 12;
/// Cells of unbounded integers that take more values than this are taken to be unbounded in fact.
const MAX_INTEGERS: usize = 1 << 8;

/// Unfolds every thread. `go_on` is asked now and then, and told how many edges were made since;
/// edges that do nothing but move on are chained into their successors unless `observed` could tell
/// (or `chaining` is off).
pub fn build(
    instance: &Instance,
    observed: &[Observed],
    chaining: bool,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Automata, NotFinite> {
    let mut builder = Builder::new(instance, observed)?;
    while let Some((t, q)) = builder.work.pop() {
        let made = builder.expand(t, q)?;
        if !go_on(made) {
            return Err(NotFinite("stopped while unfolding threads".into()));
        }
    }
    let mut threads = Vec::new();
    for (unfolded, observed) in builder.threads.into_iter().zip(observed) {
        let mut automaton = Automaton {
            states: unfolded.states,
            initial: unfolded.initial,
            edges: unfolded.edges.into_values().flatten().collect(),
            ..Automaton::default()
        };
        automaton.index();
        if chaining {
            chain::chain(&mut automaton, observed);
        }
        threads.push(automaton);
    }
    let list =
        |sets: Vec<BTreeSet<i64>>| sets.into_iter().map(|s| s.into_iter().collect()).collect();
    Ok(Automata {
        threads,
        values: list(builder.values),
        initial: builder.initial,
    })
}

/// One thread as far as it is unfolded. Edges are kept by source, because a state is expanded anew
/// when a cell it reads gains a value.
struct Unfolded {
    states: Vec<LocalState>,
    ids: FxHashMap<LocalState, LocalId>,
    initial: Vec<LocalId>,
    edges: BTreeMap<LocalId, Vec<Edge>>,
    live: Vec<Vec<bool>>,
    /// By state: whether it is on the list of work.
    waiting: Vec<bool>,
}

struct Builder<'i> {
    instance: &'i Instance,
    threads: Vec<Unfolded>,
    values: Vec<BTreeSet<i64>>,
    initial: Vec<Vec<i64>>,
    /// Local states that read the cell.
    readers: Vec<BTreeSet<(usize, LocalId)>>,
    work: Vec<(usize, LocalId)>,
    states: usize,
    edges: usize,
}

impl<'i> Builder<'i> {
    fn new(instance: &'i Instance, observed: &[Observed]) -> Result<Self, NotFinite> {
        let buffered = |t: &&Thread| t.buffered_section().is_some();
        if let Some(thread) = instance.threads.iter().find(buffered) {
            return Err(NotFinite(format!(
                "`{}` has an atomic section that keeps its stores buffered, which is not unfolded",
                thread.name
            )));
        }
        let mut initial = Vec::new();
        for cell in &instance.cells {
            initial.push(initial_values(cell.init, cell.ty, &cell.name)?);
        }
        let mut builder = Builder {
            instance,
            threads: Vec::new(),
            values: initial
                .iter()
                .map(|v| v.iter().copied().collect())
                .collect(),
            initial,
            readers: vec![BTreeSet::new(); instance.cells.len()],
            work: Vec::new(),
            states: 0,
            edges: 0,
        };
        for (t, thread) in instance.threads.iter().enumerate() {
            builder.threads.push(Unfolded {
                states: Vec::new(),
                ids: FxHashMap::default(),
                initial: Vec::new(),
                edges: BTreeMap::new(),
                live: thread.live(vec![observed[t].reads(thread); thread.locations.len()]),
                waiting: Vec::new(),
            });
            let mut starts = vec![Vec::new()];
            for r in &thread.registers {
                let values = initial_values(r.init, r.ty, &r.name)?;
                if starts.len() * values.len() > MAX_VALUES {
                    return Err(NotFinite(format!(
                        "`{}` has too many initial states",
                        thread.name
                    )));
                }
                let longer = starts.iter().flat_map(|s| {
                    values.iter().map(move |v| {
                        let mut s: Vec<i64> = s.clone();
                        s.push(*v);
                        s
                    })
                });
                starts = longer.collect();
            }
            for registers in starts {
                let state = LocalState {
                    location: thread.entry,
                    registers,
                    holds: false,
                    fault: None,
                };
                let q = builder.state(t, state)?;
                if !builder.threads[t].initial.contains(&q) {
                    builder.threads[t].initial.push(q);
                }
            }
        }
        Ok(builder)
    }

    /// The number of a local state, dead registers erased; new ones are put on the list of work.
    fn state(&mut self, t: usize, mut state: LocalState) -> Result<LocalId, NotFinite> {
        let unfolded = &mut self.threads[t];
        let live = &unfolded.live[state.location.index()];
        for (value, live) in state.registers.iter_mut().zip(live) {
            if !live || state.fault.is_some() {
                *value = 0;
            }
        }
        if let Some(id) = unfolded.ids.get(&state) {
            return Ok(*id);
        }
        let id = unfolded.states.len() as LocalId;
        unfolded.ids.insert(state.clone(), id);
        unfolded.waiting.push(state.fault.is_none());
        if state.fault.is_none() {
            self.work.push((t, id));
        }
        unfolded.states.push(state);
        self.states += 1;
        if self.states > MAX_STATES {
            return Err(NotFinite(format!(
                "`{}` has too many local states: its data is not finite, or too large",
                self.instance.threads[t].name
            )));
        }
        Ok(id)
    }

    fn may_hold(&mut self, cell: CellId, value: i64) -> Result<(), NotFinite> {
        let limit = match self.instance.cell(cell).ty.bounds() {
            Some(_) => MAX_VALUES,
            None => MAX_INTEGERS,
        };
        let values = &mut self.values[cell.index()];
        if values.insert(value) {
            if values.len() > limit {
                let name = &self.instance.cell(cell).name;
                return Err(NotFinite(format!(
                    "`{name}` takes too many values: its data is not finite, or too large"
                )));
            }
            for &(t, q) in &self.readers[cell.index()] {
                if !std::mem::replace(&mut self.threads[t].waiting[q as usize], true) {
                    self.work.push((t, q));
                }
            }
        }
        Ok(())
    }

    fn readable(&mut self, t: usize, q: LocalId, cell: CellId) -> Vec<i64> {
        self.readers[cell.index()].insert((t, q));
        self.values[cell.index()].iter().copied().collect()
    }

    /// Gives the number of edges made.
    fn expand(&mut self, t: usize, q: LocalId) -> Result<usize, NotFinite> {
        self.threads[t].waiting[q as usize] = false;
        let thread = &self.instance.threads[t];
        let from = self.threads[t].states[q as usize].clone();
        let mut edges = Vec::new();
        for &s in thread.outgoing(from.location) {
            if matches!(thread.step(s).action, Action::AtomicBegin(_)) {
                self.block(t, q, &from, s, &mut edges)?;
            } else {
                self.step(t, q, &from, s, &mut edges)?;
            }
        }
        let made = edges.len();
        self.edges += made;
        if let Some(old) = self.threads[t].edges.insert(q, edges) {
            self.edges -= old.len();
        }
        if self.edges > MAX_EDGES {
            return Err(NotFinite(format!(
                "`{}` has too many local steps",
                thread.name
            )));
        }
        Ok(made)
    }

    /// One step outside an atomic block.
    fn step(
        &mut self,
        t: usize,
        q: LocalId,
        from: &LocalState,
        s: StepId,
        edges: &mut Vec<Edge>,
    ) -> Result<(), NotFinite> {
        let thread = &self.instance.threads[t];
        let registers = &from.registers;
        let next = |registers: Vec<i64>| LocalState {
            location: thread.step(s).target,
            registers,
            ..from.clone()
        };
        let mut out: Vec<(Act, Option<i64>, Result<LocalState, FaultKind>)> = Vec::new();
        match &thread.step(s).action {
            Action::Load { register, place } => match address(registers, place) {
                Err(kind) => out.push((Act::Local, None, Err(kind))),
                Ok(cell) => {
                    for v in self.readable(t, q, cell) {
                        let set = set(thread, registers, *register, v).map(next);
                        out.push((Act::Load(cell, v), None, set));
                    }
                }
            },
            Action::Store { place, value } => match self.store(registers, place, value) {
                Err(kind) => out.push((Act::Local, None, Err(kind))),
                Ok((cell, v)) => {
                    self.may_hold(cell, v)?;
                    out.push((Act::Store(cell, v), None, Ok(next(registers.clone()))));
                }
            },
            Action::Fence(Fence::Full) => {
                out.push((Act::Fence, None, Ok(next(registers.clone()))));
            }
            Action::Fence(Fence::Store) => {
                out.push((Act::StoreFence, None, Ok(next(registers.clone()))));
            }
            // Nobody holds it twice, and only the holder lets go: other ways are blocked for good.
            Action::Lock if !from.holds => {
                let state = LocalState {
                    holds: true,
                    ..next(registers.clone())
                };
                out.push((Act::Lock, None, Ok(state)));
            }
            Action::Unlock if from.holds => {
                let state = LocalState {
                    holds: false,
                    ..next(registers.clone())
                };
                out.push((Act::Unlock, None, Ok(state)));
            }
            Action::Lock | Action::Unlock => {}
            action @ (Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::AtomicBegin(_)
            | Action::AtomicEnd) => {
                for (choice, result) in local(thread, registers, action)? {
                    out.push((Act::Local, choice, result.map(next)));
                }
            }
        }
        for (act, choice, result) in out {
            let state = result.unwrap_or_else(|kind| fault(from, t, s, kind));
            let target = self.state(t, state)?;
            edges.push(Edge {
                source: q,
                target,
                act,
                steps: vec![(s, choice)],
            });
        }
        Ok(())
    }

    fn store(
        &self,
        registers: &[i64],
        place: &Address,
        value: &Expr<RegisterId>,
    ) -> Result<(CellId, i64), FaultKind> {
        let cell = address(registers, place)?;
        let v = eval(registers, value)?;
        Ok((cell, admit(self.instance.cell(cell).ty, v)?))
    }

    /// An atomic block: every path from its begin to its end is one edge.
    fn block(
        &mut self,
        t: usize,
        q: LocalId,
        from: &LocalState,
        begin: StepId,
        edges: &mut Vec<Edge>,
    ) -> Result<(), NotFinite> {
        let thread = &self.instance.threads[t];
        let mut seen = BTreeSet::new();
        let mut work = vec![Inside {
            location: thread.step(begin).target,
            registers: from.registers.clone(),
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            steps: vec![(begin, None)],
        }];
        while let Some(at) = work.pop() {
            let key = (
                at.location,
                at.registers.clone(),
                at.reads.clone(),
                at.writes.clone(),
            );
            if !seen.insert(key) {
                continue;
            }
            if seen.len() > MAX_VALUES * 4 {
                let name = &thread.name;
                return Err(NotFinite(format!(
                    "an atomic block of `{name}` has too many paths"
                )));
            }
            for &s in thread.outgoing(at.location) {
                for way in self.inside(t, q, &at, s)? {
                    let (reads, writes) = (way.reads, way.writes);
                    let mut steps = at.steps.clone();
                    steps.push((s, way.choice));
                    let end = matches!(thread.step(s).action, Action::AtomicEnd);
                    match way.registers {
                        Ok(registers) if !end => work.push(Inside {
                            location: thread.step(s).target,
                            registers,
                            reads,
                            writes,
                            steps,
                        }),
                        result => {
                            let state = match result {
                                Ok(registers) => {
                                    for (c, v) in &writes {
                                        self.may_hold(*c, *v)?;
                                    }
                                    LocalState {
                                        location: thread.step(s).target,
                                        registers,
                                        ..from.clone()
                                    }
                                }
                                Err(kind) => fault(from, t, s, kind),
                            };
                            let target = self.state(t, state)?;
                            edges.push(Edge {
                                source: q,
                                target,
                                act: Act::Atomic {
                                    reads: reads.into_iter().collect(),
                                    writes: writes.into_iter().collect(),
                                },
                                steps,
                            });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The ways one step inside a block can go.
    fn inside(
        &mut self,
        t: usize,
        q: LocalId,
        at: &Inside,
        s: StepId,
    ) -> Result<Vec<Way>, NotFinite> {
        let thread = &self.instance.threads[t];
        let (reads, writes) = (&at.reads, &at.writes);
        let same = |registers| Way {
            registers,
            reads: reads.clone(),
            writes: writes.clone(),
            choice: None,
        };
        Ok(match &thread.step(s).action {
            Action::Load { register, place } => match address(&at.registers, place) {
                Err(kind) => vec![same(Err(kind))],
                Ok(cell) => match writes.get(&cell).or(reads.get(&cell)) {
                    Some(v) => vec![same(set(thread, &at.registers, *register, *v))],
                    None => {
                        let readable = self.readable(t, q, cell).into_iter();
                        let ways = readable.map(|v| {
                            let mut reads = reads.clone();
                            reads.insert(cell, v);
                            Way {
                                reads,
                                ..same(set(thread, &at.registers, *register, v))
                            }
                        });
                        ways.collect()
                    }
                },
            },
            Action::Store { place, value } => match self.store(&at.registers, place, value) {
                Err(kind) => vec![same(Err(kind))],
                Ok((cell, v)) => {
                    let mut writes = writes.clone();
                    writes.insert(cell, v);
                    vec![Way {
                        writes,
                        ..same(Ok(at.registers.clone()))
                    }]
                }
            },
            Action::Fence(_) | Action::AtomicEnd => vec![same(Ok(at.registers.clone()))],
            Action::Lock | Action::Unlock | Action::AtomicBegin(_) => {
                let name = &thread.name;
                return Err(NotFinite(format!("`{name}` locks inside an atomic block")));
            }
            action @ (Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }) => {
                let ways = local(thread, &at.registers, action)?.into_iter();
                let ways = ways.map(|(choice, registers)| Way {
                    choice,
                    ..same(registers)
                });
                ways.collect()
            }
        })
    }
}

/// One way to go on inside an atomic block: registers (or a fault), the values found and left in
/// memory so far, and the nondeterministic choice made.
struct Way {
    registers: Result<Vec<i64>, FaultKind>,
    reads: BTreeMap<CellId, i64>,
    writes: BTreeMap<CellId, i64>,
    choice: Option<i64>,
}

/// A point inside an atomic block.
struct Inside {
    location: LocationId,
    registers: Vec<i64>,
    reads: BTreeMap<CellId, i64>,
    writes: BTreeMap<CellId, i64>,
    steps: Vec<(StepId, Option<i64>)>,
}

fn fault(from: &LocalState, t: usize, step: StepId, kind: FaultKind) -> LocalState {
    let thread = ThreadId::new(t);
    LocalState {
        fault: Some(Fault { thread, step, kind }),
        ..from.clone()
    }
}

/// A nondeterministic choice, if one was made, and the registers after it.
type LocalWay = (Option<i64>, Result<Vec<i64>, FaultKind>);

/// The ways a step that touches only registers can go; none if it is blocked.
fn local<P>(
    thread: &Thread,
    registers: &[i64],
    action: &Action<RegisterId, P>,
) -> Result<Vec<LocalWay>, NotFinite> {
    let same = || registers.to_vec();
    Ok(match action {
        Action::Assign { register, value } => {
            let v = eval(registers, value);
            let v = v.and_then(|v| set(thread, registers, *register, v));
            vec![(None, v)]
        }
        Action::Havoc { register, range } => {
            let r = &thread.registers[register.index()];
            let (lo, hi) = range
                .or(r.ty.bounds())
                .filter(|(lo, hi)| hi.abs_diff(*lo) < MAX_CHOICE)
                .ok_or_else(|| NotFinite(format!("`{}` may take too many values", r.name)))?;
            let each = (lo..=hi).map(|v| (Some(v), set(thread, registers, *register, v)));
            each.collect()
        }
        Action::Assume(e) => match eval(registers, e) {
            Ok(0) => vec![],
            Ok(_) => vec![(None, Ok(same()))],
            Err(kind) => vec![(None, Err(kind))],
        },
        Action::Assert { condition, message } => {
            let result = match eval(registers, condition) {
                Ok(0) => Err(FaultKind::Assertion {
                    message: message.clone(),
                }),
                Ok(_) => Ok(same()),
                Err(kind) => Err(kind),
            };
            vec![(None, result)]
        }
        Action::Skip | Action::Fence(_) | Action::AtomicBegin(_) | Action::AtomicEnd => {
            vec![(None, Ok(same()))]
        }
        Action::Load { .. } | Action::Store { .. } | Action::Lock | Action::Unlock => {
            return Err(NotFinite("a memory step is taken for a local one".into()));
        }
    })
}

fn set(thread: &Thread, registers: &[i64], r: RegisterId, v: i64) -> Result<Vec<i64>, FaultKind> {
    let mut next = registers.to_vec();
    next[r.index()] = admit(thread.registers[r.index()].ty, v)?;
    Ok(next)
}

fn eval(registers: &[i64], e: &Expr<RegisterId>) -> Result<i64, FaultKind> {
    Ok(e.eval(&|r: &RegisterId| registers[r.index()])?)
}

fn address(registers: &[i64], place: &Address) -> Result<CellId, FaultKind> {
    match place {
        Address::Cell(c) => Ok(*c),
        Address::Computed {
            base,
            length,
            index,
        } => {
            let index = eval(registers, index)?;
            let length = *length;
            let inside = u32::try_from(index).ok().filter(|i| *i < length);
            let cell = inside.map(|i| CellId(base.0 + i));
            cell.ok_or(FaultKind::IndexOutOfRange { index, length })
        }
    }
}

fn admit(ty: Type, value: i64) -> Result<i64, FaultKind> {
    let (lo, hi) = ty.bounds().unwrap_or((i64::MIN, i64::MAX));
    ty.admit(value)
        .ok_or(FaultKind::ValueOutOfRange { value, lo, hi })
}

fn initial_values(init: Initial, ty: Type, name: &str) -> Result<Vec<i64>, NotFinite> {
    match init {
        Initial::Value(v) => Ok(vec![v]),
        Initial::Any => {
            let bounds = ty.bounds();
            let (lo, hi) = bounds
                .filter(|(lo, hi)| hi.abs_diff(*lo) < MAX_VALUES as u64)
                .ok_or_else(|| NotFinite(format!("`{name}` starts with any of too many values")))?;
            Ok((lo..=hi).collect())
        }
    }
}
