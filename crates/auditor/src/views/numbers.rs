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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Solvers;
    use crate::views::world::{Frame, ROOM};
    use std::collections::BTreeMap;
    use wattle_evidence::certificate::Views;
    use wattle_evidence::control::Control;
    use wattle_memory::MemoryModel;
    use wattle_model::Span;
    use wattle_model::array::{ArraySystem, CellDecl, CellType};

    const ANCHORS: [i64; 2] = [-1, 2];

    fn system(ty: CellType) -> ArraySystem {
        let cell = |name: &str| CellDecl {
            name: name.into(),
            arity: 0,
            ty,
            weak: false,
            constant: false,
            span: Span::NONE,
        };
        ArraySystem {
            cells: ["x", "y", "z"].map(cell).to_vec(),
            ..ArraySystem::default()
        }
    }

    /// Comparisons of a sum of up to three numbers with a bound, or their contraries.
    fn comparisons() -> Vec<([i64; 3], Comparison, bool, i64)> {
        let mut all = Vec::new();
        for sum in [
            [1, 0, 0],
            [-1, 0, 0],
            [1, -1, 0],
            [0, 1, -1],
            [1, 1, -1],
            [2, -1, 0],
        ] {
            for op in [
                Comparison::Eq,
                Comparison::Ne,
                Comparison::Lt,
                Comparison::Le,
            ] {
                for yes in [true, false] {
                    all.extend((-2..=3).map(|bound| (sum, op, yes, bound)));
                }
            }
        }
        all
    }

    /// All that numbers do is possible; and of one whole number, or the difference of two, nothing else is: where none of
    /// all those in the same order compares so, it is impossible.
    #[test]
    fn what_numbers_do_is_possible() {
        for (ty, unit) in [(CellType::Int, 1), (CellType::Real, 2)] {
            let system = system(ty);
            let certificate = Views {
                model: MemoryModel::Sc,
                cells: Vec::new(),
                anchors: ANCHORS.to_vec(),
                forget: Vec::new(),
                kept: Vec::new(),
                witness: None,
                precise: false,
                count: 0,
                views: Vec::new(),
            };
            let frame = Frame::new(&system, MemoryModel::Sc, &certificate).expect("a frame");
            let (solvers, control) = (Solvers::own(), Control::unlimited());
            let impossible = |query: &[wattle_logic::Formula]| {
                matches!(solvers.impossible(query, 100_000, &control), Ok(true))
            };
            let logic = Logic::new(&frame, true, &impossible);
            let mut seen: BTreeMap<(Vec<Pos>, usize), bool> = BTreeMap::new();
            for code in 0..19 * 19 * 19 {
                let values = [code % 19, code / 19 % 19, code / 361].map(|v: i64| v - 9);
                let mut all: Vec<i64> = values.to_vec();
                all.extend(ANCHORS.map(|a| a * unit));
                all.sort_unstable();
                all.dedup();
                let place = |v: i64| (all.partition_point(|x| *x < v) as Pos + 1) * ROOM;
                let mut w = frame.blank(1);
                w.anchors = ANCHORS.map(|a| place(a * unit)).to_vec();
                for (c, v) in values.iter().enumerate() {
                    w.memory[c][0] = place(*v);
                }
                let at = values.map(place);
                let order: Vec<Pos> = at.iter().chain(&w.anchors).copied().collect();
                for (i, (sum, op, yes, bound)) in comparisons().into_iter().enumerate() {
                    let total: i64 = sum.iter().zip(values).map(|(k, v)| k * v).sum();
                    let bounded = bound * unit;
                    let holds = match op {
                        Comparison::Eq => total == bounded,
                        Comparison::Ne => total != bounded,
                        Comparison::Lt => total < bounded,
                        Comparison::Le => total <= bounded,
                    } == yes;
                    *seen.entry((order.clone(), i)).or_default() |= holds;
                    if holds {
                        let parts = sum.iter().zip(at).filter(|(k, _)| **k != 0);
                        let parts: Vec<(i64, Pos)> = parts.map(|(k, p)| (*k, p)).collect();
                        let possible = logic.possible(&w, &parts, (op, yes, bound), unit == 1);
                        assert!(possible, "{values:?} {sum:?} {op:?} {yes} {bound}");
                    }
                }
            }
            let far = |i: usize| [[1, 1, -1], [2, -1, 0]].contains(&comparisons()[i].0);
            for ((order, i), may) in seen.iter().filter(|((_, i), _)| unit == 1 && !far(*i)) {
                let (sum, op, yes, bound) = comparisons()[*i];
                let mut w = frame.blank(1);
                w.anchors = order[3..].to_vec();
                (0..3).for_each(|c| w.memory[c][0] = order[c]);
                let parts = sum.iter().zip(order).filter(|(k, _)| **k != 0);
                let parts: Vec<(i64, Pos)> = parts.map(|(k, p)| (*k, *p)).collect();
                let possible = logic.possible(&w, &parts, (op, yes, bound), true);
                assert_eq!(possible, *may, "{order:?} {sum:?} {op:?} {yes} {bound}");
            }
        }
    }
}
