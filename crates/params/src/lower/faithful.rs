//! Whether a system says of small instances what the program does.
//!
//! The proof is about the array-based system, the user about the program. Both machines are written
//! down independently as specifications: the reference machine of programs and the machine of
//! array-based systems. Here both run with the same few threads, every reachable state is read in the
//! program's words (locations, registers, memory), and the two sets are compared. States in which some
//! thread is in the middle of what the system does in one step are left out, but whether they are bad
//! is not.
//!
//! Buffers longer than a bound are not followed by either, and a system whose states are too many is
//! not compared: this is a test, with every example and every proof as its input, and no proof.

use super::amount::Amount;
use super::variables::{Holds, Variable, Variables, constant};
use super::{Lowered, Lowering};
use crate::machine::{self, Candidates, Machine};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::hash::Hash;
use wattle_memory::content::Exact;
use wattle_memory::layout::{Layout, Pso, Sc, Tso};
use wattle_memory::{MemoryModel, reference};
use wattle_model::instance::Counts;
use wattle_model::{
    Count, FamilyId, Init, Instance, Length, LocationId, Program, PropertyKind, RegionId,
    RegisterId, Type,
};

/// How the system's cells say what the program's variables hold.
#[derive(Clone, Debug)]
pub(crate) struct Meaning {
    pub(super) variables: Variables,
    pub(super) broken: Option<u16>,
    pub(super) family: Option<u16>,
    /// For each family, where a thread stops whatever it did before.
    pub(super) stops: Vec<BTreeSet<LocationId>>,
}

impl Meaning {
    pub(super) fn of(lowering: &Lowering<'_>) -> Self {
        let families = 0..lowering.program.families.len();
        let stops = families.map(|f| lowering.stops(FamilyId::new(f)));
        Meaning {
            variables: lowering.variables.clone(),
            broken: lowering.broken,
            family: lowering.family_cell(),
            stops: stops.collect(),
        }
    }
}

impl Lowering<'_> {
    fn stops(&self, f: FamilyId) -> BTreeSet<LocationId> {
        let family = &self.program.families[f.index()];
        let all = (0..family.locations.len()).map(LocationId::new);
        all.filter(|l| self.always_stops(f, *l)).collect()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// States of the system; if there are more, nothing is compared.
    pub states: usize,
    /// States of the program.
    pub program_states: usize,
    /// Pending stores of a thread.
    pub buffer: usize,
}

/// What came out of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// So many different states of the program, all known to the system. `exact` if the system has
    /// no others and agrees on whether something is bad, as far as that was looked at.
    /// `bad`: some state or step of the program is a violation.
    Same {
        states: usize,
        exact: bool,
        bad: bool,
    },
    /// A state of the program that the system does not have, or a violation that it does not see.
    Different(String),
    /// Too large, or not to be run.
    TooLarge,
}

/// A state in the program's words.
type Word = Vec<i64>;

/// Values that are not compared.
const UNKNOWN: i64 = i64::MIN;

/// Compares the program with its system, with so many threads in each open family.
pub fn compare(
    program: &Program,
    lowered: &Lowered,
    question: Option<usize>,
    model: MemoryModel,
    threads: u32,
    limits: Limits,
    stop: &dyn Fn() -> bool,
) -> Comparison {
    let mut program = program.clone();
    mathematical(&mut program, &lowered.meaning.variables);
    let mut counts = Counts::default();
    for f in &program.families {
        if f.count == Count::Any {
            counts.0.insert(f.name.clone(), threads);
        }
    }
    let Ok(instance) = program.instantiate(&counts) else {
        return Comparison::TooLarge;
    };
    let n = u8::try_from(instance.threads.len()).unwrap_or(u8::MAX);
    if n == 0 || n > 5 {
        return Comparison::TooLarge;
    }
    let words = Words {
        program: &program,
        instance: &instance,
        meaning: &lowered.meaning,
        question,
    };
    let Some(System { known, bad, broken }) = words.of_system(lowered, model, n, limits, stop)
    else {
        return Comparison::TooLarge;
    };
    let seen = match model {
        MemoryModel::Sc => words.of_program::<Sc>(limits, stop),
        MemoryModel::Tso => words.of_program::<Tso>(limits, stop),
        MemoryModel::Pso => words.of_program::<Pso>(limits, stop),
    };
    let Some(seen) = seen else {
        return Comparison::TooLarge;
    };
    if let Some(what) = seen.bad.filter(|_| !bad) {
        let what = format!("with {n} threads: {what}, which the system does not see");
        return Comparison::Different(what);
    }
    let mut missing: Vec<&Word> = seen.words.iter().filter(|w| !known.contains(*w)).collect();
    missing.sort_unstable();
    // Where a thread breaks the system goes no further, and proves nothing.
    if let Some(w) = missing.first().filter(|_| !broken) {
        let what = words.tell(w);
        let what = format!("with {n} threads the program reaches {what}, the system does not");
        return Comparison::Different(what);
    }
    let exact =
        !seen.complete || known.len() == seen.words.len() && (seen.found_bad == bad || seen.faulty);
    Comparison::Same {
        states: seen.words.len(),
        exact,
        bad: seen.found_bad,
    }
}

/// Wrap-around numbers as the proof takes them, which [`Lowered::may_wrap`] says.
fn mathematical(program: &mut Program, variables: &Variables) {
    let unbounded = |id: Variable, ty: &mut Type| {
        if matches!(ty, Type::Wrap { .. }) && *variables.of(id) == Holds::Numbers {
            *ty = Type::Int;
        }
    };
    for (r, region) in program.regions.iter_mut().enumerate() {
        unbounded(Variable::Region(RegionId::new(r)), &mut region.ty);
    }
    for (f, family) in program.families.iter_mut().enumerate() {
        for (r, register) in family.registers.iter_mut().enumerate() {
            let id = Variable::Register(FamilyId::new(f), RegisterId::new(r));
            unbounded(id, &mut register.ty);
        }
    }
}

struct Words<'w> {
    program: &'w Program,
    instance: &'w Instance,
    meaning: &'w Meaning,
    question: Option<usize>,
}

/// What the system does.
struct System {
    known: FxHashSet<Word>,
    bad: bool,
    /// Some thread took a step that has no meaning.
    broken: bool,
}

/// What the program does.
struct Seen {
    words: FxHashSet<Word>,
    bad: Option<String>,
    found_bad: bool,
    /// A step had no meaning: the system may see that in more states.
    faulty: bool,
    complete: bool,
}

impl Words<'_> {
    /// The system's states, and whether one is bad; nothing if they are too many.
    fn of_system(
        &self,
        lowered: &Lowered,
        model: MemoryModel,
        n: u8,
        limits: Limits,
        stop: &dyn Fn() -> bool,
    ) -> Option<System> {
        let system = &lowered.system;
        let machine = Machine::new(system, model, n);
        let candidates = Candidates {
            limit: limits.states,
            ..Candidates::of(system)
        };
        // The thread in a cell that starts with `none` says nothing: one will do.
        let nobody = self.nobody();
        let idle = |position: usize| nobody.contains(&machine.cell_at(position).0);
        let wish = |position: usize| idle(position).then(|| vec![1]);
        let (starts, complete) = machine.initial_among(&candidates, &wish);
        let any = |t: &wattle_model::array::Transition| {
            let branches = t.updates.iter().flat_map(|u| &u.branches);
            branches
                .into_iter()
                .any(|b| b.value == wattle_model::array::Value::Any)
        };
        if !complete || system.transitions.iter().any(any) {
            return None;
        }
        let broken = |s: &machine::State| {
            let cell = self.meaning.broken;
            cell.is_some_and(|c| (1..=n).any(|t| s.values[machine.position(c, &[t])] != 0))
        };
        let pending = |b: &Vec<machine::Entry>| {
            let writes = b.iter().filter(|e| **e != machine::Entry::Mark);
            writes.count()
        };
        let starts = starts.into_iter().filter(|s| !machine.excluded(s));
        let starts = starts.filter(|s| self.order(&machine, s).is_some());
        let reached = closure(starts.collect(), limits.states, stop, |s, next| {
            if broken(s) {
                return;
            }
            machine.successors(s, &candidates, &mut |_, t| {
                if t.buffers.iter().all(|b| pending(b) <= limits.buffer) {
                    next.push(t);
                }
            });
        });
        let (states, complete) = reached;
        if !complete {
            return None;
        }
        let bad = states.iter().any(|s| machine.bad(s).is_some());
        let whole = states.iter().filter(|s| !broken(s));
        let known = whole.filter_map(|s| self.of_state(&machine, s)).collect();
        Some(System {
            known,
            bad,
            broken: states.iter().any(broken),
        })
    }

    /// Thread cells of variables that start with `none`.
    fn nobody(&self) -> BTreeSet<u16> {
        let variables = &self.meaning.variables;
        let mut cells = BTreeSet::new();
        let mut add = |id: Variable, init: &Init, elements: u16| {
            let threads = matches!(variables.of(id), Holds::Threads(_));
            if threads && matches!(init, Init::All(e) if constant(e) == Some(-1)) {
                cells.extend((0..elements).map(|e| variables.cells[&id] + 2 * e));
            }
        };
        for (r, region) in self.program.regions.iter().enumerate() {
            let elements = match region.length {
                Length::Array(n) => n as u16,
                Length::Scalar | Length::PerThread(_) => 1,
            };
            add(Variable::Region(RegionId::new(r)), &region.init, elements);
        }
        for (f, family) in self.program.families.iter().enumerate() {
            for (r, register) in family.registers.iter().enumerate() {
                let id = Variable::Register(FamilyId::new(f), RegisterId::new(r));
                add(id, &register.init, 1);
            }
        }
        cells
    }

    /// The system's threads in the order of the instance's, if they are as many of each family.
    fn order(&self, machine: &Machine<'_>, s: &machine::State) -> Option<Vec<u8>> {
        let family = |t: u8| match self.meaning.family {
            None => 0,
            Some(c) => s.values[machine.position(c, &[t])],
        };
        let mut threads: Vec<u8> = (1..=machine.threads).collect();
        threads.sort_by_key(|t| (family(*t), *t));
        let mut both = threads.iter().zip(&self.instance.threads);
        let fits = both.all(|(t, of)| family(*t) == of.family.index() as i64);
        fits.then_some(threads)
    }

    /// A state of the system, unless a thread is between two stops.
    fn of_state(&self, machine: &Machine<'_>, s: &machine::State) -> Option<Word> {
        let order = self.order(machine, s)?;
        let families = self.instance.threads.iter().map(|t| t.family);
        let families: Vec<FamilyId> = families.collect();
        // The number of a thread in its family.
        let index = |id: i64, of: FamilyId| {
            let at = order.iter().position(|t| i64::from(*t) == id);
            let first = families.iter().position(|f| *f == of);
            match (at, first) {
                (Some(at), Some(first)) if families[at] == of => (at - first) as i64,
                _ => -2,
            }
        };
        let value = |id: Variable, cell: u16, args: &[u8]| {
            let read = |c: u16| s.values[machine.position(c, args)];
            match self.meaning.variables.of(id) {
                h if unclear(h) => UNKNOWN,
                Holds::Few(_) => {
                    let constructor = usize::try_from(read(cell)).unwrap_or(usize::MAX);
                    let values = &self.meaning.variables.values;
                    let value = values.get(constructor).copied();
                    value.and_then(Amount::number).unwrap_or(UNKNOWN)
                }
                Holds::Numbers => read(cell),
                Holds::Threads(_) if read(cell + 1) != 0 => -1,
                Holds::Threads(of) => index(read(cell), *of),
                Holds::Counter => {
                    let all = 1..=machine.threads;
                    all.map(|t| s.values[machine.position(cell, &[t])]).sum()
                }
            }
        };
        let cells = &self.meaning.variables.cells;
        let mut word = Vec::new();
        for (t, family) in order.iter().zip(&families) {
            let location = s.values[machine.position(family.index() as u16, &[*t])];
            let location = LocationId::new(usize::try_from(location).ok()?);
            if !self.meaning.stops[family.index()].contains(&location) {
                return None;
            }
            word.push(location.index() as i64);
            for r in 0..self.program.family(*family).registers.len() {
                let id = Variable::Register(*family, RegisterId::new(r));
                word.push(value(id, cells[&id], &[*t]));
            }
        }
        for (r, region) in self.program.regions.iter().enumerate() {
            let id = Variable::Region(RegionId::new(r));
            let wide = matches!(self.meaning.variables.of(id), Holds::Threads(_));
            match region.length {
                Length::Scalar => word.push(value(id, cells[&id], &[])),
                Length::Array(n) => {
                    let step = if wide { 2 } else { 1 };
                    let each = (0..n as u16).map(|e| value(id, cells[&id] + e * step, &[]));
                    word.extend(each);
                }
                Length::PerThread(of) => {
                    let own = order.iter().zip(&families).filter(|(_, f)| **f == of);
                    word.extend(own.map(|(t, _)| value(id, cells[&id], &[*t])));
                }
            }
        }
        Some(word)
    }

    fn of_program<L: Layout>(&self, limits: Limits, stop: &dyn Fn() -> bool) -> Option<Seen> {
        let machine = reference::Machine::<L, Exact>::new(self.instance, ()).ok()?;
        let starts = machine.starts().ok()?;
        let starts = starts.iter().map(|s| machine.initial(s)).collect();
        let (mut bad, mut faulty) = (None, false);
        let question = self.question.and_then(|q| self.instance.questions.get(q));
        let question = question.filter(|q| {
            !q.only_final && matches!(q.kind, PropertyKind::Never | PropertyKind::Always)
        });
        let (states, complete) = closure(starts, limits.program_states, stop, |s, next| {
            for event in machine.events(s) {
                match machine.apply(s, &event) {
                    reference::Outcome::Next(t) => {
                        let pending = |b| L::entries::<Exact>(b).len() <= limits.buffer;
                        if t.buffers.iter().all(pending) {
                            next.push(t);
                        }
                    }
                    reference::Outcome::Fault(fault) => {
                        faulty = true;
                        bad.get_or_insert(format!("{:?}", fault.kind));
                    }
                    reference::Outcome::Full(_) => {}
                }
            }
        });
        let mut words = FxHashSet::default();
        let mut found_bad = faulty;
        for s in states.iter().filter(|s| machine.inside_atomic(s).is_none()) {
            let holds = |q: &wattle_model::instance::Question| {
                reference::evaluate(s, &q.target).is_ok_and(|v| v != 0)
            };
            if question.is_some_and(holds) {
                found_bad = true;
                bad.get_or_insert("the property is violated".to_string());
            }
            words.extend(self.of_reference(s));
        }
        Some(Seen {
            words,
            bad,
            found_bad,
            faulty,
            complete,
        })
    }

    fn of_reference<B>(&self, s: &reference::State<B>) -> Option<Word> {
        let known = |id: Variable, v: i64| match unclear(self.meaning.variables.of(id)) {
            true => UNKNOWN,
            false => v,
        };
        let mut word = Vec::new();
        for (t, thread) in self.instance.threads.iter().enumerate() {
            let location = s.locations[t];
            if !self.meaning.stops[thread.family.index()].contains(&location) {
                return None;
            }
            word.push(location.index() as i64);
            for r in 0..self.program.family(thread.family).registers.len() {
                let id = Variable::Register(thread.family, RegisterId::new(r));
                word.push(known(id, s.registers[t][r]));
            }
        }
        for (cell, v) in self.instance.cells.iter().zip(&s.memory) {
            word.push(known(Variable::Region(cell.region), *v));
        }
        Some(word)
    }

    /// `t0 at line 4, x = 1`
    fn tell(&self, word: &Word) -> String {
        let mut parts = Vec::new();
        let mut values = word.iter();
        for thread in &self.instance.threads {
            let family = self.program.family(thread.family);
            let at = values.next().copied().unwrap_or_default();
            let location = usize::try_from(at)
                .ok()
                .and_then(|l| family.locations.get(l));
            let line = location.map_or(0, |l| l.span.line);
            parts.push(format!("{} at l{at} (line {line})", thread.name));
            for (r, v) in family.registers.iter().zip(values.by_ref()) {
                parts.push(format!("{} = {v}", r.name));
            }
        }
        for (cell, v) in self.instance.cells.iter().zip(values) {
            parts.push(format!("{} = {v}", cell.name));
        }
        parts.join(", ")
    }
}

/// Whether only a part of the value is kept.
fn unclear(holds: &Holds) -> bool {
    matches!(holds, Holds::Few(set) if set.iter().any(|v| v.number().is_none()))
}

/// All states reachable, up to a number of them, and whether these are all.
pub(super) fn closure<S: Clone + Eq + Hash>(
    starts: Vec<S>,
    limit: usize,
    stop: &dyn Fn() -> bool,
    mut successors: impl FnMut(&S, &mut Vec<S>),
) -> (Vec<S>, bool) {
    let mut known: FxHashSet<S> = FxHashSet::default();
    let mut states: Vec<S> = Vec::new();
    let mut next = starts;
    let mut at = 0;
    loop {
        for s in next.drain(..) {
            if known.insert(s.clone()) {
                states.push(s);
            }
        }
        if at == states.len() {
            return (states, true);
        }
        if states.len() > limit || (at.is_multiple_of(256) && stop()) {
            return (states, false);
        }
        successors(&states[at], &mut next);
        at += 1;
    }
}
