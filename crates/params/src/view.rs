//! A machine that takes steps in the very order in which the backward search meets them.
//!
//! The search orders instructions by program order, coherence and reads-from; a read may then stand
//! after a store that it does not see yet. Here stores reach memory at once (under PSO when they
//! drain) and memory remembers its last values: a thread reads at any moment not before its latest
//! read, its own newer stores first. This is the load-buffer view of TSO with the buffers replaced by
//! moments of one history. Its states are what cubes with open reads speak of ([`crate::meets`]).
//!
//! Only for guesses: nothing that is reported rests on it.

use crate::forward::Limits;
use crate::machine::{Candidates, Entry, Event, Machine, State, Step};
use crate::symmetry::Symmetry;
use crate::work;
use rustc_hash::{FxHashSet, FxHasher};
use std::cell::Cell;
use std::hash::BuildHasherDefault;
use wattle_memory::MemoryModel;
use wattle_model::array::{CellType, FenceKind};

/// What is kept of memory's past, the threads' places in it and, under PSO, undrained stores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct View {
    /// All cells; weak ones as they were before `writes`.
    pub values: Box<[i64]>,
    /// What happened between one remembered moment and the next: who wrote which position, oldest
    /// first.
    pub writes: Vec<Vec<(u8, usize, i64)>>,
    /// For each thread the moment of its latest read: so many of the groups had been written.
    pub moments: Vec<u8>,
    /// PSO: what has not reached memory.
    pub buffers: Vec<Vec<Entry>>,
}

impl View {
    pub fn of(state: &State) -> View {
        View {
            values: state.values.clone(),
            writes: Vec::new(),
            moments: vec![0; state.buffers.len()],
            buffers: state.buffers.clone(),
        }
    }

    pub fn now(&self) -> usize {
        self.writes.len()
    }

    /// What a thread (0: nobody) sees of a cell at a moment.
    pub fn seen(&self, reader: u8, position: usize, moment: usize) -> i64 {
        let own = usize::from(reader)
            .checked_sub(1)
            .and_then(|r| self.buffers.get(r));
        let buffered = own.into_iter().flatten().rev().find_map(|e| match e {
            Entry::Writes(w) => w.iter().rev().find(|(p, _)| *p == position).map(|x| x.1),
            Entry::Mark => None,
        });
        let later = || {
            let list = self.writes[moment..].iter().rev();
            let mut list = list.flat_map(|g| g.iter().rev());
            list.find(|(t, p, _)| *t == reader && *p == position)
                .map(|x| x.2)
        };
        let memory = || {
            let list = self.writes[..moment].iter().rev();
            let mut list = list.flat_map(|g| g.iter().rev());
            list.find(|(_, p, _)| *p == position).map(|x| x.2)
        };
        buffered
            .or_else(later)
            .or_else(memory)
            .unwrap_or(self.values[position])
    }

    /// The state as one thread sees it at a moment: its own later stores are in its buffer.
    fn state_for(&self, thread: u8, moment: usize) -> State {
        let mut values = self.values.clone();
        for (_, p, v) in self.writes[..moment].iter().flatten() {
            values[*p] = *v;
        }
        let mut buffers = vec![Vec::new(); self.moments.len()];
        if thread > 0 {
            let own = self.writes[moment..]
                .iter()
                .flatten()
                .filter(|(t, ..)| *t == thread);
            let mut mine: Vec<Entry> = own.map(|(_, p, v)| Entry::Writes(vec![(*p, *v)])).collect();
            mine.extend(self.buffers[usize::from(thread) - 1].iter().cloned());
            buffers[usize::from(thread) - 1] = mine;
        }
        State { values, buffers }
    }

    fn push(&mut self, thread: u8, writes: &[(usize, i64)]) {
        self.writes
            .push(writes.iter().map(|(p, v)| (thread, *p, *v)).collect());
    }

    /// Nobody reads at this moment, the last one excepted.
    fn without_moment(&self, moment: usize) -> View {
        let mut out = self.clone();
        let group = out.writes.remove(moment);
        match moment.checked_sub(1) {
            None => group.iter().for_each(|(_, p, v)| out.values[*p] = *v),
            Some(before) => {
                let earlier = &mut out.writes[before];
                earlier.retain(|(t, p, _)| !group.iter().any(|(u, q, _)| (t, p) == (u, q)));
                earlier.extend(group);
            }
        }
        for m in &mut out.moments {
            if usize::from(*m) > moment {
                *m -= 1;
            }
        }
        out
    }

    /// Forgets what no thread can read any more; if there are more than `most` groups left, one of
    /// the moments, each in turn.
    fn forget(mut self, most: usize, emit: &mut dyn FnMut(View)) {
        while !self.writes.is_empty() && self.moments.iter().all(|m| *m > 0) {
            self = self.without_moment(0);
        }
        match self.writes.len() > most {
            false => emit(self),
            true => (0..self.writes.len()).for_each(|m| self.without_moment(m).forget(most, emit)),
        }
    }
}

/// Every step from a view, with at most `most` writes remembered.
pub fn successors(
    machine: &Machine<'_>,
    view: &View,
    candidates: &Candidates,
    most: usize,
    emit: &mut dyn FnMut(View),
) {
    for thread in 1..=machine.threads {
        for moment in usize::from(view.moments[usize::from(thread) - 1])..=view.now() {
            taken_by(machine, view, (thread, moment), candidates, most, emit);
        }
    }
    taken_by(machine, view, (0, view.now()), candidates, most, emit);
    drains(machine, view, most, emit);
}

/// All steps of a thread at a moment.
fn taken_by(
    machine: &Machine<'_>,
    view: &View,
    (thread, moment): (u8, usize),
    candidates: &Candidates,
    most: usize,
    emit: &mut dyn FnMut(View),
) {
    let mut state = view.state_for(thread, moment);
    let steps: Vec<&Step> = machine.steps_by(thread, &state).collect();
    for step in steps {
        take(
            machine, view, &mut state, moment, step, candidates, most, emit,
        );
    }
}

/// The ways of one step with given threads.
pub fn steps_of(
    machine: &Machine<'_>,
    view: &View,
    step: (usize, &[u8]),
    candidates: &Candidates,
    most: usize,
    emit: &mut dyn FnMut(View),
) {
    let step = machine.step(step.0, step.1);
    let first = match usize::from(step.actor).checked_sub(1) {
        Some(t) => usize::from(view.moments[t]),
        None => view.now(),
    };
    for moment in first..=view.now() {
        let mut state = view.state_for(step.actor, moment);
        take(
            machine, view, &mut state, moment, &step, candidates, most, emit,
        );
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "one place of use, all of it needed"
)]
fn take(
    machine: &Machine<'_>,
    view: &View,
    state: &mut State,
    moment: usize,
    step: &Step,
    candidates: &Candidates,
    most: usize,
    emit: &mut dyn FnMut(View),
) {
    let (transition, thread) = (step.transition, step.actor);
    let t = &machine.system.transitions[transition];
    let weak = machine.model != MemoryModel::Sc;
    let reads = weak && machine.reads_weak(transition);
    let whole = weak && (t.fence == Some(FenceKind::Full) || machine.is_atomic(transition));
    let place = usize::from(thread).checked_sub(1);
    let first = place.map_or(view.now(), |p| usize::from(view.moments[p]));
    // A step that reads nothing has no moment of its own.
    if (whole && moment < view.now()) || (!reads && !whole && moment > first) {
        return;
    }
    let before = state.clone();
    machine.ways(state, step, candidates, &mut |_, next| {
        work::done(work::REMEMBERED);
        let state = &before;
        let mut out = view.clone();
        let mut direct = Vec::new();
        for (p, v) in next.values.iter().enumerate() {
            if weak && machine.is_weak(p) {
                if state.values[p] != *v {
                    direct.push((p, *v));
                }
            } else {
                out.values[p] = *v;
            }
        }
        if let Some(p) = place {
            if reads {
                out.moments[p] = moment as u8;
            }
            let own = &next.buffers[p];
            let before = state.buffers[p].len();
            match machine.model {
                MemoryModel::Pso => {
                    out.buffers[p].extend(own[before.min(own.len())..].iter().cloned());
                }
                MemoryModel::Sc | MemoryModel::Tso => {
                    for e in &own[before.min(own.len())..] {
                        if let Entry::Writes(w) = e {
                            out.push(thread, w);
                        }
                    }
                }
            }
            if !direct.is_empty() {
                out.push(thread, &direct);
            }
            if whole {
                out.moments[p] = out.now() as u8;
            }
        }
        out.forget(most, emit);
    });
}

/// PSO: every drain.
pub fn drains(machine: &Machine<'_>, view: &View, most: usize, emit: &mut dyn FnMut(View)) {
    if machine.model != MemoryModel::Pso {
        return;
    }
    let state = State {
        values: view.values.clone(),
        buffers: view.buffers.clone(),
    };
    for (thread, entry) in machine.drains(&state) {
        let Some(next) = machine.apply(&state, &Event::Drain { thread, entry }) else {
            continue;
        };
        let mut out = view.clone();
        if let Entry::Writes(w) = &view.buffers[usize::from(thread) - 1][entry] {
            out.push(thread, w);
        }
        out.buffers = next.buffers;
        out.forget(most, emit);
    }
}

/// Views of a small instance, breadth-first, then along random walks if that was cut off.
pub fn explore(
    machine: &Machine<'_>,
    candidates: &Candidates,
    limits: Limits,
    walks: usize,
    stop: &dyn Fn() -> bool,
) -> Vec<View> {
    let (initial, _) = machine.initial(candidates);
    let every = initial.len().div_ceil(limits.starts.max(1)).max(1);
    let symmetry = machine.symmetry();
    if machine.model == MemoryModel::Sc {
        let run = |starts: &mut dyn Iterator<Item = &State>, limits: Limits, walks: usize| {
            let limits = (limits, walks);
            states(machine, &symmetry, candidates, starts, limits, stop)
        };
        let quiet = quiet(machine, candidates);
        let usual = &mut initial.iter().rev().step_by(every);
        if quiet.is_empty() {
            return run(usual, limits, walks);
        }
        let mut views = run(&mut quiet.iter(), limits, walks);
        let fewer = Limits {
            states: limits.states / 4,
            ..limits
        };
        views.extend(run(usual, fewer, walks / 4));
        return views;
    }
    let mut known: FxHashSet<View> = FxHashSet::default();
    let mut list: Vec<View> = Vec::new();
    let mut add = |v: View, list: &mut Vec<View>| {
        let v = symmetry.least(v);
        if known.insert(v.clone()) {
            list.push(v);
        }
    };
    for s in initial.iter().rev().step_by(every) {
        add(View::of(s), &mut list);
    }
    let fits = |v: &View| v.buffers.iter().all(|b| b.len() <= limits.buffer);
    let mut at = 0;
    while at < list.len() && list.len() < limits.states {
        if at % 256 == 0 && stop() {
            return list;
        }
        let view = list[at].clone();
        successors(machine, &view, candidates, limits.buffer, &mut |next| {
            if fits(&next) {
                add(next, &mut list);
            }
        });
        at += 1;
    }
    if at == list.len() {
        return list;
    }
    let mut random = random();
    let seen = list.len();
    for _ in 0..walks {
        if stop() {
            break;
        }
        let mut view = list[random(seen)].clone();
        for _ in 0..limits.depth {
            let mut next = Vec::new();
            successors(machine, &view, candidates, limits.buffer, &mut |v| {
                if fits(&v) {
                    next.push(v);
                }
            });
            if next.is_empty() {
                break;
            }
            view = next.swap_remove(random(next.len()));
            add(view.clone(), &mut list);
        }
    }
    list
}

/// Initial states in which nobody is wherever `init` leaves a thread open, and the same value wherever it leaves
/// one open of a type without values. What is there matters to few steps, and all states are met again for
/// every choice: a sample of them would not go deep. None if nothing is left open.
fn quiet(machine: &Machine<'_>, candidates: &Candidates) -> Vec<State> {
    let system = machine.system;
    let open = Cell::new(false);
    let (all, _) = machine.initial_among(candidates, &|position| {
        let ty = machine.type_at(position);
        let quiet = match ty {
            CellType::Thread => true,
            CellType::Declared(_) => system.values(ty).is_none(),
            CellType::Bool | CellType::Int | CellType::Real => false,
        };
        open.set(open.get() || quiet);
        quiet.then(|| vec![0])
    });
    if open.get() { all } else { Vec::new() }
}

/// The same numbers every time, less than what is asked for.
fn random() -> impl FnMut(usize) -> usize {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    move |n: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n.max(1)
    }
}

/// The same without buffers, where a view is a state.
fn states(
    machine: &Machine<'_>,
    symmetry: &Symmetry,
    candidates: &Candidates,
    starts: &mut dyn Iterator<Item = &State>,
    (limits, walks): (Limits, usize),
    stop: &dyn Fn() -> bool,
) -> Vec<View> {
    type Known = indexmap::IndexSet<Box<[i64]>, BuildHasherDefault<FxHasher>>;
    let mut known = Known::default();
    let mut least = Vec::new();
    let mut add = |s: &State, known: &mut Known| {
        symmetry.least_values(&s.values, &mut least);
        if !known.contains(least.as_slice()) {
            known.insert(least.as_slice().into());
        }
    };
    starts.for_each(|s| add(s, &mut known));
    let mut state = State {
        values: Box::default(),
        buffers: vec![Vec::new(); usize::from(machine.threads)],
    };
    let mut at = 0;
    while at < known.len() && known.len() < limits.states && !(at % 256 == 0 && stop()) {
        state.values = known[at].clone();
        machine.successors(&mut state, candidates, &mut |_, next| add(next, &mut known));
        at += 1;
    }
    let (mut random, seen) = (random(), known.len());
    for _ in 0..if at == seen { 0 } else { walks } {
        if stop() {
            break;
        }
        state.values = known[random(seen)].clone();
        for _ in 0..limits.depth {
            let mut next = Vec::new();
            machine.successors(&mut state, candidates, &mut |_, s| next.push(s.clone()));
            if next.is_empty() {
                break;
            }
            state = next.swap_remove(random(next.len()));
            add(&state, &mut known);
        }
    }
    let view = |values| View {
        values,
        writes: Vec::new(),
        moments: vec![0; usize::from(machine.threads)],
        buffers: vec![Vec::new(); usize::from(machine.threads)],
    };
    known.into_iter().map(view).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the first cell in states of two threads.
    fn first_cell(text: &str) -> Vec<i64> {
        let parsed = wattle_syntax::cubicle::parse(text);
        let system = parsed.system.expect("a system");
        let machine = Machine::new(&system, MemoryModel::Sc, 2);
        let limits = Limits {
            states: 100,
            buffer: 0,
            depth: 10,
            starts: 8,
        };
        let candidates = Candidates::of(&system);
        let views = explore(&machine, &candidates, limits, 0, &|| false);
        let mut seen: Vec<i64> = views.iter().map(|v| v.values[0]).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    /// A system with one scalar that `init` says so much of.
    fn with(scalar: &str, said: &str) -> String {
        format!(
            "type t = A | B
            var {scalar}
            array S[proc] : t
            init (p) {{ {said} S[p] = A }}
            unsafe (p) {{ S[p] = B }}
            transition t1 (p) requires {{ S[p] = A }} {{ S[p] := A; }}"
        )
    }

    #[test]
    fn a_thread_left_open_is_nobody_at_first_and_then_anybody() {
        let seen = first_cell(&with("Last : proc", ""));
        assert!(seen.contains(&0) && seen.iter().any(|v| *v > 0), "{seen:?}");
    }

    #[test]
    fn what_init_says_is_not_left_open() {
        assert_eq!(first_cell(&with("Last : bool", "Last = True &&")).len(), 1);
    }
}
