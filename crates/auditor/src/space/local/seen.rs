//! What a question sees of a thread's steps.

use wattle_evidence::task::Task;
use wattle_model::instance::{Fact, Step};
use wattle_model::{Expr, LocationId, Op1, Op2};

pub struct Seen<'i> {
    /// Conditions that are looked at.
    pub conditions: Vec<&'i Expr<Fact>>,
    /// Per thread, locations that are told from all others.
    pub places: Vec<Vec<LocationId>>,
    /// Only final states are looked at.
    pub only_final: bool,
    /// What is looked at is looked for: where it becomes true nothing is lost.
    pub wanted: bool,
}

impl<'i> Seen<'i> {
    pub fn of(task: &Task<'i>) -> Self {
        let question = task.question();
        Seen {
            conditions: question.iter().map(|q| &q.target).collect(),
            places: vec![Vec::new(); task.instance.threads.len()],
            only_final: question.is_none_or(|q| q.only_final),
            wanted: true,
        }
    }

    /// The question has the same value before and after, or may be true after where it was not before; or
    /// nobody looks.
    pub fn is_unseen(&self, t: usize, step: &Step) -> bool {
        if self.only_final {
            return true;
        }
        let written = step.action.written();
        let place = |l: &LocationId| self.places[t].contains(l).then_some(*l);
        let keeps = |fact: &Fact, gains: bool| match fact {
            Fact::Cell(_) | Fact::CellAt { .. } => true,
            // A store changes what its thread sees.
            Fact::Seen(u, _) => u.index() != t,
            Fact::Register(u, r) => u.index() != t || Some(*r) != written,
            Fact::At(u, at) => {
                let (from, to) = (at.contains(&step.source), at.contains(&step.target));
                u.index() != t || from == to || gains && to
            }
        };
        place(&step.source) == place(&step.target)
            && self.conditions.iter().all(|e| {
                // What may have no value may get one.
                let wanted = (self.wanted && e.is_total()).then_some(true);
                stays(e, wanted, &keeps)
            })
    }
}

/// Whether an expression that is wanted (true, or false; or, if neither, for its value) stays so, if facts do: `keeps` says it
/// of one, where being true instead of false is no harm if `gains`.
fn stays(e: &Expr<Fact>, wanted: Option<bool>, keeps: &dyn Fn(&Fact, bool) -> bool) -> bool {
    match e {
        Expr::Const(_) => true,
        Expr::Atom(fact @ Fact::CellAt { index, .. }) => {
            keeps(fact, false) && stays(index, None, keeps)
        }
        Expr::Atom(fact @ (Fact::Cell(_) | Fact::Seen(..) | Fact::Register(..) | Fact::At(..))) => {
            keeps(fact, wanted == Some(true))
        }
        Expr::Unary(op, a) => {
            let inner = match op {
                Op1::Not => wanted.map(|w| !w),
                Op1::Neg | Op1::BitNot | Op1::Wrap { .. } => None,
            };
            stays(a, inner, keeps)
        }
        Expr::Binary(op, a, b) => {
            let inner = wanted.filter(|_| *op == Op2::And || *op == Op2::Or);
            stays(a, inner, keeps) && stays(b, inner, keeps)
        }
        Expr::Ite(c, a, b) => {
            stays(c, None, keeps) && stays(a, wanted, keeps) && stays(b, wanted, keeps)
        }
    }
}
