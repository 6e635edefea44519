//! Which transitions may do what a chain does, and with which threads. That is only guessed here; whether
//! they do is looked at in [`chain`](super::chain).

use super::chain::Chains;
use super::system::{Related, Says};
use super::table::Table;
use super::{Held, Validator};
use wattle_logic::Term;
use wattle_model::array::{self, Access, Comparison, Literal, ThreadTerm, Transition};

/// Ways to name a transition's threads.
const NAMES: usize = 400;

impl<'a> Validator<'a> {
    /// The transitions that may act from the location.
    pub fn transitions(&self, c: &Chains<'_>) -> Vec<&'a Transition> {
        let cell = self.relation.locations[c.family.index()];
        let elsewhere = |f: &array::Formula| match f {
            array::Formula::Atom(Literal {
                left: array::Term::Read(a),
                op: Comparison::Eq,
                right: array::Term::Constructor(_, l),
            }) => {
                a.cell == cell
                    && a.args == [ThreadTerm::Param(0)]
                    && usize::from(*l) != c.start.index()
            }
            array::Formula::And(_)
            | array::Formula::Or(_)
            | array::Formula::Atom(_)
            | array::Formula::Others { .. } => false,
        };
        let all = self.system.transitions.iter();
        all.filter(|t| t.actor == Some(0))
            .filter(|t| match &t.guard {
                array::Formula::And(parts) => !parts.iter().any(elsewhere),
                f @ (array::Formula::Or(_)
                | array::Formula::Atom(_)
                | array::Formula::Others { .. }) => !elsewhere(f),
            })
            .collect()
    }

    /// Threads for the parameters after the first, which acts. Where the guard says in which cell of the
    /// acting thread a parameter is, it is that.
    pub fn names(&self, c: &mut Chains<'a>, t: &Transition) -> Vec<Vec<Term>> {
        let me = c.table.number(c.family, &c.me);
        let mut all = vec![vec![me.clone()]];
        for i in 1..t.params.len() {
            let held = self.named_by(c, &me, &t.guard, ThreadTerm::Param(i as u8));
            let candidates = match held {
                Some(t) => vec![t],
                None => c.table.candidates(orders(&t.guard)),
            };
            let longer = all.iter().flat_map(|some| {
                let others = candidates.iter().filter(|t| !some.contains(t));
                others.map(|t| [&some[..], std::slice::from_ref(t)].concat())
            });
            all = longer.take(NAMES).collect();
        }
        all.iter().map(|threads| threads[1..].to_vec()).collect()
    }

    fn named_by(
        &self,
        c: &mut Chains<'a>,
        me: &Term,
        guard: &array::Formula,
        param: ThreadTerm,
    ) -> Option<Term> {
        let array::Formula::And(parts) = guard else {
            return None;
        };
        let mut view = Related::new(self, &mut c.table, &mut c.d, vec![me.clone()]);
        parts.iter().find_map(|part| match part {
            array::Formula::Atom(Literal {
                left: array::Term::Read(a),
                op: Comparison::Eq,
                right: array::Term::Thread(t),
            }) if *t == param => view.held_thread(a),
            array::Formula::Atom(_)
            | array::Formula::And(_)
            | array::Formula::Or(_)
            | array::Formula::Others { .. } => None,
        })
    }
}

impl Related<'_, '_, '_> {
    /// The number of the thread that the program's variable names.
    fn held_thread(&mut self, access: &Access) -> Option<Term> {
        let threads = access.args.iter().map(|t| self.thread(*t).ok());
        let threads = threads.collect::<Option<Vec<Term>>>()?;
        let Ok(Says::Value(id, element)) = self.says(access.cell) else {
            return None;
        };
        let Held::Thread { family, .. } = self.table.held(id, element) else {
            return None;
        };
        let index = self.index(id, element, &threads).ok()?;
        let value = self.table.value(self.d, id, &index);
        Some(self.table.number(*family, &value))
    }
}

impl Table<'_> {
    /// Threads that may be meant where none is named: those met, and where their order matters the ends
    /// of families and the next ones.
    fn candidates(&self, ordered: bool) -> Vec<Term> {
        let mut all = self.named.clone();
        if !ordered {
            return all;
        }
        for (base, count) in self.bases.iter().zip(&self.counts) {
            all.push(base.clone());
            all.push(base + count - 1);
        }
        let next: Vec<Term> = self.named.iter().map(|n| n + 1).collect();
        all.extend(next);
        let mut found: Vec<Term> = Vec::new();
        for t in all {
            if !found.contains(&t) {
                found.push(t);
            }
        }
        found
    }
}

/// Whether the formula compares threads by their order.
fn orders(f: &array::Formula) -> bool {
    match f {
        array::Formula::And(parts) | array::Formula::Or(parts) => parts.iter().any(orders),
        array::Formula::Others { body, .. } => orders(body),
        array::Formula::Atom(Literal { left, op, right }) => {
            let thread = |t: &array::Term| match t {
                array::Term::Thread(_) => true,
                array::Term::Bool(_)
                | array::Term::Constructor(..)
                | array::Term::Read(_)
                | array::Term::Sum { .. } => false,
            };
            matches!(op, Comparison::Lt | Comparison::Le) && (thread(left) || thread(right))
        }
    }
}
