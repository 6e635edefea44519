//! When nobody can see that stores wait for the lock.
//!
//! While a thread holds the lock, the others go on under TSO past stores that cannot reach memory; under
//! SC they wait at the store. A state with somebody inside a lock region can thus be one of TSO and not
//! of SC although every complete run is one of SC. Nothing can tell if the states that are asked for
//! have nobody inside a region: from there all stores can reach memory.
//!
//! Faults never tell. What a thread does while another holds the lock (computing, storing into its
//! buffer) depends on nobody else, so all of it could have happened before the lock was taken, the fault
//! included; and the holder's own faults do not depend on it.

use super::{Fact, Instance, Question, Thread};
use crate::graph::Action;
use crate::{Expr, LocationId, Op2};

impl Instance {
    /// Whether the question cannot tell that stores wait for the lock.
    pub fn waiting_for_the_lock_is_unseen(&self, question: Option<&Question>) -> bool {
        let Some(q) = question else {
            return true;
        };
        self.threads.iter().enumerate().all(|(t, thread)| {
            let inside = thread.inside_regions();
            if !inside.contains(&true) {
                return true;
            }
            let asked = asked(&q.target, t, thread);
            let seen = |l: usize| asked[l] && (!q.only_final || thread.ended(LocationId::new(l)));
            !inside.iter().enumerate().any(|(l, i)| *i && seen(l))
        })
    }
}

/// Where the thread may be when the condition is true.
fn asked(e: &Expr<Fact>, t: usize, thread: &Thread) -> Vec<bool> {
    let join = |a: Vec<bool>, b: Vec<bool>, both: bool| {
        let pairs = a.into_iter().zip(b);
        pairs
            .map(|(a, b)| if both { a && b } else { a || b })
            .collect()
    };
    match e {
        Expr::Binary(op @ (Op2::And | Op2::Or), a, b) => {
            let (a, b) = (asked(a, t, thread), asked(b, t, thread));
            join(a, b, *op == Op2::And)
        }
        Expr::Atom(Fact::At(of, places)) if of.index() == t => {
            let all = 0..thread.locations.len();
            all.map(|l| places.contains(&LocationId::new(l))).collect()
        }
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
            vec![true; thread.locations.len()]
        }
    }
}

impl Thread {
    /// The locations where the thread may hold the lock.
    pub(super) fn inside_regions(&self) -> Vec<bool> {
        let mut inside = vec![false; self.locations.len()];
        let locks = self.steps.iter().filter(|s| s.action == Action::Lock);
        let mut work: Vec<LocationId> = locks.map(|s| s.target).collect();
        while let Some(l) = work.pop() {
            if std::mem::replace(&mut inside[l.index()], true) {
                continue;
            }
            let steps = self.outgoing[l.index()].iter().map(|s| self.step(*s));
            let on = steps.filter(|s| s.action != Action::Unlock);
            work.extend(on.map(|s| s.target));
        }
        inside
    }
}
