//! Parts of a program that have nothing to do with each other.
//!
//! Two threads belong together if one writes a cell that the other touches. What is left apart can be
//! looked at apart: a run of the whole, with the events of other threads left out, is a run of the part alone
//! ([`Instance::alone`]), since nothing it reads or waits for is changed by others; the lock, and atomic
//! blocks of others, can only keep it waiting. The other way round, runs of parts one after the other are a run
//! of the whole, unless one of them keeps the lock or stops inside an atomic block.

use super::{Fact, Instance};
use crate::graph::Action;
use crate::{CellId, Expr, Op1, Op2, ThreadId};

/// More ways for a condition to be true are not told apart.
const MOST: usize = 4096;

impl Instance {
    /// The program in which only these threads do anything; the others have ended before they began. Threads,
    /// registers and cells keep their numbers. It has no questions.
    pub fn alone(&self, threads: &[ThreadId]) -> Instance {
        let mut part = Instance {
            questions: Vec::new(),
            demands: Vec::new(),
            predicates: Vec::new(),
            ..self.clone()
        };
        for t in self.thread_ids().filter(|t| !threads.contains(t)) {
            let idle = &mut part.threads[t.index()];
            idle.steps.clear();
            idle.outgoing.iter_mut().for_each(Vec::clear);
        }
        part
    }

    /// The threads that do something, by what belongs together; so do those that are named together. Sorted.
    pub fn parts(&self, together: &[Vec<ThreadId>]) -> Vec<Vec<ThreadId>> {
        let mut of: Vec<usize> = (0..self.threads.len()).collect();
        for (touching, written) in self.users() {
            if written {
                join(&mut of, &touching);
            }
        }
        for threads in together {
            join(&mut of, threads);
        }
        let mut parts: Vec<(usize, Vec<ThreadId>)> = Vec::new();
        for t in self.thread_ids() {
            if self.thread(t).steps.is_empty() {
                continue;
            }
            let root = root(&of, t.index());
            match parts.iter_mut().find(|(r, _)| *r == root) {
                Some((_, part)) => part.push(t),
                None => parts.push((root, vec![t])),
            }
        }
        parts.into_iter().map(|(_, part)| part).collect()
    }

    /// The threads whose doings a condition sees: what it says of them, and the cells they write.
    pub fn seen_by(&self, condition: &Expr<Fact>) -> Vec<ThreadId> {
        let mut threads = Vec::new();
        let mut cells = vec![false; self.cells.len()];
        look(condition, &mut threads, &mut cells);
        for t in self.thread_ids() {
            let writes = self.thread(t).steps.iter().any(|s| match &s.action {
                Action::Store { place, .. } => cells[place.extent()].contains(&true),
                Action::Skip
                | Action::Assign { .. }
                | Action::Havoc { .. }
                | Action::Assume(_)
                | Action::Assert { .. }
                | Action::Load { .. }
                | Action::Fence(_)
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Lock
                | Action::Unlock => false,
            });
            if writes {
                threads.push(t);
            }
        }
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Whether a thread takes the lock.
    pub fn locks(&self) -> bool {
        let mut steps = self.threads.iter().flat_map(|t| &t.steps);
        steps.any(|s| s.action == Action::Lock)
    }

    /// Per cell, the threads that touch it, and whether one of them writes it.
    fn users(&self) -> Vec<(Vec<ThreadId>, bool)> {
        let mut users = vec![(Vec::new(), false); self.cells.len()];
        for t in self.thread_ids() {
            for step in &self.thread(t).steps {
                let (place, writes) = match &step.action {
                    Action::Load { place, .. } => (place, false),
                    Action::Store { place, .. } => (place, true),
                    Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Lock
                    | Action::Unlock => continue,
                };
                for (touching, written) in &mut users[place.extent()] {
                    *written |= writes;
                    if touching.last() != Some(&t) {
                        touching.push(t);
                    }
                }
            }
        }
        users
    }
}

fn root(of: &[usize], mut t: usize) -> usize {
    while of[t] != t {
        t = of[t];
    }
    t
}

fn join(of: &mut [usize], threads: &[ThreadId]) {
    let Some((first, rest)) = threads.split_first() else {
        return;
    };
    for t in rest {
        let (a, b) = (root(of, first.index()), root(of, t.index()));
        of[a.max(b)] = a.min(b);
    }
}

fn look(e: &Expr<Fact>, threads: &mut Vec<ThreadId>, cells: &mut [bool]) {
    e.for_each_atom(&mut |fact| match fact {
        Fact::Cell(c) => cells[c.index()] = true,
        Fact::CellAt {
            base,
            length,
            index,
        } => {
            let all = CellId(base.0).index();
            cells[all..all + *length as usize].fill(true);
            look(index, threads, cells);
        }
        Fact::Seen(t, c) => {
            threads.push(*t);
            cells[c.index()] = true;
        }
        Fact::Register(t, _) | Fact::At(t, _) => threads.push(*t),
    });
}

impl Expr<Fact> {
    /// The ways in which a condition can be true: it is true where all of one of them are. A condition that
    /// may have no value, or has too many ways, is its own and only one.
    pub fn ways(&self) -> Vec<Vec<Expr<Fact>>> {
        let ways = match self.is_total() {
            true => ways(self, true),
            false => None,
        };
        ways.unwrap_or_else(|| vec![vec![self.clone()]])
    }

    /// Whether it has a value in every state.
    pub fn is_total(&self) -> bool {
        match self {
            Expr::Const(_) => true,
            Expr::Atom(Fact::Cell(_) | Fact::Seen(..) | Fact::Register(..) | Fact::At(..)) => true,
            Expr::Atom(Fact::CellAt { .. }) => false,
            Expr::Unary(Op1::Not, e) => e.is_total(),
            Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, _) => false,
            Expr::Binary(op, a, b) => op.is_logical() && a.is_total() && b.is_total(),
            Expr::Ite(c, a, b) => c.is_total() && a.is_total() && b.is_total(),
        }
    }
}

/// The ways in which an expression can be true, or false.
fn ways(e: &Expr<Fact>, truth: bool) -> Option<Vec<Vec<Expr<Fact>>>> {
    match (e, truth) {
        (Expr::Unary(Op1::Not, e), _) => ways(e, !truth),
        (Expr::Binary(Op2::Or, a, b), true) | (Expr::Binary(Op2::And, a, b), false) => {
            let mut all = ways(a, truth)?;
            all.extend(ways(b, truth)?);
            (all.len() <= MOST).then_some(all)
        }
        (Expr::Binary(Op2::And, a, b), true) | (Expr::Binary(Op2::Or, a, b), false) => {
            let (left, right) = (ways(a, truth)?, ways(b, truth)?);
            if left.len().saturating_mul(right.len()) > MOST {
                return None;
            }
            let pair = |l: &Vec<Expr<Fact>>, r: &Vec<Expr<Fact>>| [l.clone(), r.clone()].concat();
            let pairs = left
                .iter()
                .flat_map(|l| right.iter().map(move |r| pair(l, r)));
            Some(pairs.collect())
        }
        (_, true) => Some(vec![vec![e.clone()]]),
        (_, false) => Some(vec![vec![e.clone().negate()]]),
    }
}
