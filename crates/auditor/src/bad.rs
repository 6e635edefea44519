//! Every way to be bad, as local states of the threads and values of memory.

use super::AuditError;
use super::automata::{Automata, Local};
use super::facts::{cells_seen, threads_seen};
use wattle_evidence::certificate::LocalState;
use wattle_evidence::control::{Control, Meter, Progress};
use wattle_evidence::task::Task;
use wattle_memory::reference::{State, evaluate};
use wattle_model::instance::Fact;
use wattle_model::{Expr, Op1, Op2, ThreadId};

/// Takes local states, the memory looked at, and whether stores may be pending that cannot be thought of
/// as drained: because memory is looked at, or because a lock may be held.
pub type Visit<'v> =
    dyn FnMut(Vec<LocalState>, Vec<Option<i64>>, bool) -> Result<(), AuditError> + 'v;

/// Visits every fault, and every combination of local states (and memory, where the target reads
/// it) in which the target is true. Threads that a part of the target does not look at are open.
pub fn for_each_bad(
    task: &Task<'_>,
    automata: &Automata,
    control: &Control<'_>,
    visit: &mut Visit<'_>,
) -> Result<(), AuditError> {
    for (t, thread) in automata.threads.iter().enumerate() {
        for local in thread.states.iter().filter(|q| q.fault.is_some()) {
            let mut locals = vec![LocalState::Any; automata.threads.len()];
            locals[t] = local.certified();
            let memory = vec![None; task.instance.cells.len()];
            visit(locals, memory, automata.uses_lock)?;
        }
    }
    let Some(question) = task.question() else {
        return Ok(());
    };
    let mut parts = vec![&question.target];
    while let Some(part) = parts.pop() {
        match part {
            Expr::Binary(Op2::Or, a, b) => parts.extend([&**a, &**b]),
            part @ (Expr::Const(_)
            | Expr::Atom(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Ite(..)) => {
                let enumeration = Enumeration {
                    task,
                    automata,
                    control,
                    part,
                    cells: cells_seen(part).into_iter().collect(),
                    only_final: question.only_final,
                    early: early(part, automata.threads.len()),
                };
                enumeration.run(visit)?;
            }
        }
    }
    Ok(())
}

/// One disjunct of the target.
struct Enumeration<'e> {
    task: &'e Task<'e>,
    automata: &'e Automata,
    control: &'e Control<'e>,
    part: &'e Expr<Fact>,
    cells: Vec<usize>,
    only_final: bool,
    /// Per thread: conditions that must be true and look at no thread after it.
    early: Vec<Vec<&'e Expr<Fact>>>,
}

/// The conditions of a conjunction, each with the last thread it looks at. None if a value may be
/// missing somewhere: then each state has to be asked as a whole.
fn early(part: &Expr<Fact>, threads: usize) -> Vec<Vec<&Expr<Fact>>> {
    let mut early = vec![Vec::new(); threads];
    let mut left = vec![part];
    while let (true, Some(e)) = (always_has_a_value(part), left.pop()) {
        match e {
            Expr::Binary(Op2::And, a, b) => left.extend([&**b, &**a]),
            Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
                let mut reads_memory = false;
                e.for_each_atom(&mut |fact| {
                    reads_memory |=
                        matches!(fact, Fact::Cell(_) | Fact::Seen(..) | Fact::CellAt { .. });
                });
                let last = threads_seen(e).into_iter().max();
                if let (false, Some(last)) = (reads_memory, last) {
                    early[last.index()].push(e);
                }
            }
        }
    }
    early
}

fn always_has_a_value(e: &Expr<Fact>) -> bool {
    match e {
        Expr::Const(_) | Expr::Atom(Fact::Cell(_) | Fact::Register(..) | Fact::At(..)) => true,
        Expr::Atom(Fact::CellAt { .. } | Fact::Seen(..)) => false,
        Expr::Unary(Op1::Not, a) => always_has_a_value(a),
        Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, _) => false,
        Expr::Binary(op, a, b) => match op {
            Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge | Op2::And | Op2::Or => {
                always_has_a_value(a) && always_has_a_value(b)
            }
            Op2::Add
            | Op2::Sub
            | Op2::Mul
            | Op2::Div
            | Op2::Rem
            | Op2::BitAnd
            | Op2::BitOr
            | Op2::BitXor
            | Op2::Shl
            | Op2::Shr => false,
        },
        Expr::Ite(c, a, b) => [c, a, b].into_iter().all(|e| always_has_a_value(e)),
    }
}

impl<'e> Enumeration<'e> {
    fn run(&self, visit: &mut Visit<'_>) -> Result<(), AuditError> {
        let seen = threads_seen(self.part);
        let looks_at = |t: usize| self.only_final || seen.contains(&ThreadId::new(t));
        // There are as many memories as cells have values together.
        let meter = Meter::new(self.control);
        self.combinations(&looks_at, &mut Vec::new(), &mut |chosen| {
            let instance = self.task.instance;
            let mut located = chosen.iter().zip(&instance.threads);
            if self.only_final && !located.all(|(q, thread)| thread.ended(q.location)) {
                return Ok(());
            }
            let mut memory = vec![0; instance.cells.len()];
            self.memories(&self.cells, &mut memory, &mut |memory| {
                meter.spend(16)?;
                let state = State::<()> {
                    locations: chosen.iter().map(|q| q.location).collect(),
                    registers: chosen.iter().map(|q| q.registers.clone()).collect(),
                    memory: memory.to_vec(),
                    buffers: Vec::new(),
                    holder: None,
                };
                match evaluate(&state, self.part) {
                    Ok(0) => Ok(()),
                    Ok(_) => {
                        let known = |c: usize| self.cells.contains(&c).then(|| memory[c]);
                        let locals = chosen.iter().enumerate().map(|(t, q)| match looks_at(t) {
                            true => q.certified(),
                            false => LocalState::Any,
                        });
                        let looks = !self.cells.is_empty() || self.automata.uses_lock;
                        let snapshot = !self.only_final && looks;
                        visit(
                            locals.collect(),
                            (0..memory.len()).map(known).collect(),
                            snapshot,
                        )
                    }
                    Err(kind) => Err(AuditError::NoValue {
                        state: 0,
                        why: kind.to_string(),
                    }),
                }
            })
        })
    }

    /// Every choice of one local state for each thread that is looked at; the others stand at one of
    /// theirs.
    fn combinations(
        &self,
        looks_at: &dyn Fn(usize) -> bool,
        chosen: &mut Vec<&'e Local>,
        visit: &mut dyn FnMut(&[&'e Local]) -> Result<(), AuditError>,
    ) -> Result<(), AuditError> {
        let Some(thread) = self.automata.threads.get(chosen.len()) else {
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
            if self.early[chosen.len() - 1].is_empty() || self.may_be_true(chosen)? {
                self.combinations(looks_at, chosen, visit)?;
            }
            chosen.pop();
        }
        Ok(())
    }

    /// Whether all conditions hold that look at no thread after the last one chosen.
    fn may_be_true(&self, chosen: &[&'e Local]) -> Result<bool, AuditError> {
        let state = State::<()> {
            locations: chosen.iter().map(|q| q.location).collect(),
            registers: chosen.iter().map(|q| q.registers.clone()).collect(),
            memory: Vec::new(),
            buffers: Vec::new(),
            holder: None,
        };
        for e in &self.early[chosen.len() - 1] {
            match evaluate(&state, e) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(kind) => {
                    let why = kind.to_string();
                    return Err(AuditError::NoValue { state: 0, why });
                }
            }
        }
        Ok(true)
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
        for v in &self.automata.values[*cell] {
            memory[*cell] = *v;
            self.memories(rest, memory, visit)?;
        }
        Ok(())
    }
}
