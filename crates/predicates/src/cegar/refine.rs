//! From an abstract trace to a concrete one, or to the predicates that exclude it.
//!
//! The trace becomes one formula per step over indexed variables. If they can hold together, the
//! model is a run. If not, interpolants say what each prefix must be known to imply; their atoms are
//! the new predicates. Interpolants over constants (`next == 3`) never end on unbounded counters, so
//! the trace is first tried with the initial values forgotten except which unbounded variables are
//! equal: what refutes the trace then compares variables with each other.

use super::abstraction::{Halt, POLL};
use crate::reduce::{Cause, Move, System};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use wattle_evidence::{Control, Progress, Stop};
use wattle_logic::{
    Answer, Formula, Interpolation, Model, Native, Reason, Solver, Term, Var, and, eq,
    interpolants, weak_interpolants,
};
use wattle_memory::{Event, Start};
use wattle_model::instance::Initial;
use wattle_model::{CellId, RegisterId, Type};

/// A trace's steps with indexed variables.
pub struct Unrolled {
    formulas: Vec<Formula>,
    /// What each indexed variable is an index of.
    base: FxHashMap<Var, Var>,
    /// The index of each variable before each step.
    at: Vec<BTreeMap<Var, Var>>,
    start: BTreeMap<Var, Var>,
}

pub fn unroll(system: &System<'_>, initial: &Formula, moves: &[&Move], last: &Formula) -> Unrolled {
    let mut u = Unrolled {
        formulas: Vec::new(),
        base: FxHashMap::default(),
        at: Vec::new(),
        start: BTreeMap::new(),
    };
    let mut now: BTreeMap<Var, Var> = BTreeMap::new();
    let mut fresh = 0u32;
    let index = |u: &mut Unrolled, now: &mut BTreeMap<Var, Var>, fresh: &mut u32, v: Var| {
        *now.entry(v).or_insert_with(|| {
            let x = Var(*fresh);
            *fresh += 1;
            u.base.insert(x, v);
            x
        })
    };
    for v in initial.vars() {
        let x = index(&mut u, &mut now, &mut fresh, v);
        u.start.insert(v, x);
    }
    u.formulas.push(initial.rename(&|v| now[&v]));
    for mv in moves {
        now.remove(&system.choice());
        let mut used = mv.guard.vars();
        mv.updates
            .iter()
            .for_each(|(_, t)| t.collect_vars(&mut used));
        for v in &used {
            // Used and never assigned: it has its initial value, even if nothing constrains that.
            let unassigned = !now.contains_key(v);
            let x = index(&mut u, &mut now, &mut fresh, *v);
            if unassigned {
                u.start.insert(*v, x);
            }
        }
        u.at.push(now.clone());
        let old = now.clone();
        let mut parts = vec![mv.guard.rename(&|v| old[&v])];
        for (v, _) in &mv.updates {
            now.remove(v);
        }
        for (v, t) in &mv.updates {
            let x = index(&mut u, &mut now, &mut fresh, *v);
            parts.push(eq(x, t.subst(&|v| Some(Term::from(old[&v])))));
            parts.push(system.range(*v, &Term::from(x)));
        }
        u.formulas.push(and(parts));
    }
    now.remove(&system.choice());
    for v in last.vars() {
        let unassigned = !now.contains_key(&v);
        let x = index(&mut u, &mut now, &mut fresh, v);
        if unassigned {
            u.start.insert(v, x);
        }
    }
    u.at.push(now.clone());
    u.formulas.push(last.rename(&|v| now[&v]));
    u
}

pub enum Refined {
    /// A run: its start and events (a fault, if there is one, comes by the last).
    Run(Start, Vec<Event>),
    /// Formulas whose atoms exclude the trace; the more general first.
    Excluded(Vec<Vec<Formula>>),
}

pub fn refine(
    system: &System<'_>,
    initial: &Formula,
    moves: &[&Move],
    last: &Formula,
    ends_in_step: Option<&Move>,
    control: &Control<'_>,
) -> Result<Refined, Halt> {
    let mut solver = Polled {
        solver: Native::new(),
        control,
        asked: 0,
        polls: 0,
        stopped: None,
    };
    let refined = refine_with(&mut solver, system, initial, moves, last, ends_in_step);
    match refined {
        Ok(refined) if solver.stopped.is_none() => Ok(refined),
        other => match solver.stopped.or(control.stop()) {
            Some(stop) => Err(Halt::Stopped(stop)),
            None => other,
        },
    }
}

/// What a query takes besides: the trace's interpolants are made of its proof.
const QUERY: u64 = 256;

/// The solver, asked only while there is time.
struct Polled<'c> {
    solver: Native,
    control: &'c Control<'c>,
    asked: u64,
    polls: u64,
    stopped: Option<Stop>,
}

impl Solver for Polled<'_> {
    fn check(&mut self, assertions: &[Formula]) -> Answer {
        self.asked += 1;
        let work = self.solver.spent() + QUERY * self.asked;
        while self.stopped.is_none() && self.polls < work / POLL {
            self.polls += 1;
            let poll = self.control.poll("cegar", Progress::default());
            self.stopped = self.stopped.or(poll.err());
        }
        match self.stopped {
            Some(_) => Answer::Unknown(Reason::Stopped),
            None => {
                let control = self.control;
                let answer = (self.solver).check_while(assertions, &|| control.stop().is_none());
                if matches!(answer, Answer::Unknown(_)) {
                    self.stopped = control.stop();
                }
                answer
            }
        }
    }

    fn goes_on(&self) -> bool {
        self.stopped.is_none() && self.control.stop().is_none()
    }
}

fn refine_with(
    solver: &mut Polled<'_>,
    system: &System<'_>,
    initial: &Formula,
    moves: &[&Move],
    last: &Formula,
    ends_in_step: Option<&Move>,
) -> Result<Refined, Halt> {
    let u = unroll(system, initial, moves, last);
    let mut excluded = Vec::new();
    // Relations between variables before constants.
    let relational = relational_start(system);
    if let Some(start) = &relational {
        let general = unroll(system, start, moves, last);
        if let Interpolation::Sequence(s) = weak_interpolants(solver, &general.formulas) {
            excluded.push(general.back(&s));
        }
    }
    let model = match weak_interpolants(solver, &u.formulas) {
        Interpolation::Sequence(s) => {
            excluded.push(u.back(&s));
            None
        }
        Interpolation::Feasible(model) => Some(model),
        Interpolation::Unknown(_) => None,
    };
    if let Some(model) = model {
        return run(system, &u, moves, ends_in_step, &model);
    }
    match interpolants(solver, &u.formulas) {
        Interpolation::Sequence(s) => excluded.push(u.back(&s)),
        Interpolation::Feasible(model) => return run(system, &u, moves, ends_in_step, &model),
        Interpolation::Unknown(reason) if excluded.is_empty() => return Err(Halt::Unknown(reason)),
        Interpolation::Unknown(_) => {}
    }
    Ok(Refined::Excluded(excluded))
}

impl Unrolled {
    /// Indexed variables back to those of the system.
    fn back(&self, sequence: &[Formula]) -> Vec<Formula> {
        let name = |v: Var| self.base.get(&v).copied().unwrap_or(v);
        sequence.iter().map(|f| f.rename(&name)).collect()
    }
}

/// The initial state with the values of unbounded cells and registers forgotten, but not which of
/// them are equal; `None` if nothing is forgotten.
fn relational_start(system: &System<'_>) -> Option<Formula> {
    let instance = system.instance;
    let mut groups: BTreeMap<i64, Vec<Var>> = BTreeMap::new();
    let mut parts = Vec::new();
    let (first, _) = system.initial();
    let open = system.unbounded_variables(&first);
    let mut place = |v: Var, init: Initial, ty: Type| match (init, ty) {
        (Initial::Value(c), _) if open.contains(&v) => groups.entry(c).or_default().push(v),
        (Initial::Value(c), _) => parts.push(eq(v, c)),
        (Initial::Any, ty) => parts.push(crate::reduce::admits(ty, &Term::from(v))),
    };
    for (c, cell) in instance.cells.iter().enumerate() {
        place(system.cell(CellId::new(c)), cell.init, cell.ty);
    }
    for t in instance.thread_ids() {
        for (r, reg) in instance.thread(t).registers.iter().enumerate() {
            place(system.register(t, RegisterId::new(r)), reg.init, reg.ty);
        }
    }
    if groups.is_empty() {
        return None;
    }
    for group in groups.values() {
        parts.extend(group.windows(2).map(|w| eq(w[0], w[1])));
    }
    Some(and(parts))
}

/// The run that a model of the unrolled trace describes.
fn run(
    system: &System<'_>,
    u: &Unrolled,
    moves: &[&Move],
    last: Option<&Move>,
    model: &Model,
) -> Result<Refined, Halt> {
    let big = || Halt::Other("a value of the run does not fit the machine's 64 bits".into());
    let number = |x: Option<&Var>| match x {
        Some(x) => model.value(*x).to_i64().ok_or_else(big),
        None => Ok(0),
    };
    let instance = system.instance;
    let given = |v: Var, init: Initial| match init {
        Initial::Value(c) => Ok(c),
        Initial::Any => number(u.start.get(&v)),
    };
    let mut start = Start {
        memory: Vec::new(),
        registers: vec![Vec::new(); instance.threads.len()],
    };
    for (c, cell) in instance.cells.iter().enumerate() {
        start
            .memory
            .push(given(system.cell(CellId::new(c)), cell.init)?);
    }
    for t in instance.thread_ids() {
        for (r, reg) in instance.thread(t).registers.iter().enumerate() {
            let v = system.register(t, RegisterId::new(r));
            start.registers[t.index()].push(given(v, reg.init)?);
        }
    }
    let mut events = Vec::new();
    for (i, mv) in moves.iter().copied().chain(last).enumerate() {
        let at = &u.at[i];
        events.push(match mv.cause {
            Cause::Step(step, chooses) => Event::Step {
                thread: mv.thread,
                step,
                value: match chooses {
                    true => Some(number(at.get(&system.choice()))?),
                    false => None,
                },
            },
            Cause::Drain(position, cell) => Event::Drain {
                thread: mv.thread,
                cell,
                value: number(at.get(&system.entry(mv.thread, position)))?,
                keep: false,
            },
        });
    }
    Ok(Refined::Run(start, events))
}
