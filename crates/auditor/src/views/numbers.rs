//! What numbers may be of which only the order is known, among each other and with the constants that every view
//! has.
//!
//! Whole numbers are asked about together, without others between them. A number that is not whole is a
//! fraction; all have one denominator, which is itself an unknown. What the solver does not prove to be
//! impossible is possible.

use super::assume::Logic;
use super::world::{Pos, World};
use wattle_logic::{Term, Var, eq, ge, le, lt, ne, not};
use wattle_model::array::Comparison;

/// A sum of numbers, by their ranks, as it is compared with a constant; the ranks of the constants, how many numbers there
/// are, and whether they are whole.
pub type Question = (
    Vec<(i64, usize)>,
    (Comparison, bool, i64),
    Vec<usize>,
    usize,
    bool,
);

const DENOMINATOR: Var = Var(0);

impl Logic<'_> {
    /// Whether the sum may compare so (or not so) with the bound.
    pub fn possible(
        &self,
        w: &World,
        sum: &[(i64, Pos)],
        compared: (Comparison, bool, i64),
        whole: bool,
    ) -> bool {
        let mut all = match whole {
            true => self.frame.integers(w),
            false => self.frame.positions(w, false),
        };
        all.extend(sum.iter().map(|s| s.1));
        all.sort_unstable();
        all.dedup();
        let rank = |p: &Pos| all.partition_point(|x| x < p);
        let question: Question = (
            sum.iter().map(|(k, p)| (*k, rank(p))).collect(),
            compared,
            w.anchors.iter().map(rank).collect(),
            all.len(),
            whole,
        );
        if let Some(known) = self.answers.borrow().get(&question) {
            return *known;
        }
        let answer = self.ask(&question);
        self.answers.borrow_mut().insert(question, answer);
        answer
    }

    fn ask(&self, (sum, (op, yes, bound), anchors, many, whole): &Question) -> bool {
        let number = |rank: usize| Var(rank as u32 + 1);
        let constant = |c: i64| match whole {
            true => Term::constant(c),
            false => Term::monomial(c, DENOMINATOR),
        };
        let mut query = vec![ge(DENOMINATOR, 1)];
        query.extend((1..*many).map(|i| lt(number(i - 1), number(i))));
        let fixed = anchors.iter().zip(&self.frame.anchors);
        query.extend(fixed.map(|(i, c)| eq(number(*i), constant(*c))));
        let parts = sum.iter().map(|(k, i)| Term::monomial(*k, number(*i)));
        let sum = parts.fold(Term::default(), |sum, part| sum + part);
        let bound = constant(*bound);
        let holds = match op {
            Comparison::Eq => eq(sum, bound),
            Comparison::Ne => ne(sum, bound),
            Comparison::Lt => lt(sum, bound),
            Comparison::Le => le(sum, bound),
        };
        query.push(if *yes { holds } else { not(&holds) });
        !(self.impossible)(&query)
    }
}
