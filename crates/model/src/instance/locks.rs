//! When nobody can see that stores wait for the lock.
//!
//! While a thread holds the lock, the others go on under TSO past stores that cannot reach memory; under
//! SC they wait at the store. A state with somebody inside a lock region can thus be one of TSO and not
//! of SC although every complete run is one of SC. Nothing can tell if
//!
//! - the states that are asked for have nobody inside a region: from there all stores can reach memory;
//! - whoever is inside can always leave, whatever the others do ([`Thread::can_leave`]): then a fault of
//!   another thread meanwhile is one after the region too.

use super::{Fact, Instance, Question, Thread};
use crate::graph::Action;
use crate::{Expr, LocationId, Op2};

impl Instance {
    /// Whether neither the question nor a fault can tell that stores wait for the lock.
    pub fn waiting_for_the_lock_is_unseen(&self, question: Option<&Question>) -> bool {
        self.threads.iter().enumerate().all(|(t, thread)| {
            let inside = thread.inside_regions();
            let none = !inside.contains(&true);
            let unasked = || match question {
                None => true,
                Some(q) => {
                    let asked = asked(&q.target, t, thread);
                    let seen =
                        |l: usize| asked[l] && (!q.only_final || thread.ended(LocationId::new(l)));
                    !inside.iter().enumerate().any(|(l, i)| *i && seen(l))
                }
            };
            none || unasked() && thread.can_leave(&inside)
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
        _ => vec![true; thread.locations.len()],
    }
}

impl Thread {
    /// The locations where the thread may hold the lock.
    fn inside_regions(&self) -> Vec<bool> {
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

    /// From everywhere inside a region the thread alone reaches the end of it: there are no loops, and a
    /// step that waits has its counterpart beside it.
    fn can_leave(&self, inside: &[bool]) -> bool {
        let leaves = |l: usize, sure: &[bool]| {
            let steps = || self.outgoing[l].iter().map(|s| self.step(*s));
            let goes_on = steps().all(|s| match s.action {
                Action::Unlock => true,
                Action::Lock => false,
                _ => sure[s.target.index()],
            });
            let never_waits = steps().any(|s| match &s.action {
                Action::Lock => false,
                Action::Assume(e) => {
                    let opposite = e.clone().negate();
                    steps().any(|o| o.action == Action::Assume(opposite.clone()))
                }
                _ => true,
            });
            goes_on && never_waits
        };
        // Those from which all ways end, found from the ends on: a loop is never reached.
        let mut sure = vec![false; inside.len()];
        let mut more = true;
        while std::mem::take(&mut more) {
            for l in (0..inside.len()).rev() {
                if inside[l] && !sure[l] && leaves(l, &sure) {
                    sure[l] = true;
                    more = true;
                }
            }
        }
        inside.iter().zip(&sure).all(|(i, s)| !i || *s)
    }
}
