//! What is left to the solver: facts about values as formulas over integers.
//!
//! Values of finite types are their numbers, threads of the facts 0, 1, … and other threads anything
//! else. A real number is a fraction; all have one denominator, which is itself an unknown. Every
//! "impossible" of the solver is taken only with a proof that checks.

use super::assume::Rules;
use super::facts::{Facts, Number, OTHER, Relation, Set, Value};
use super::inside::Choice;
use crate::{AuditError, Solvers};
use std::collections::BTreeMap;
use wattle_evidence::control::{Control, Progress};
use wattle_logic::{Formula, Term, Var, and, eq, ge, le, lt, ne, not, or};
use wattle_model::array::CellType;

/// What one query may take.
const WORK: u64 = 5_000_000;

pub struct Query<'c> {
    pub solvers: &'c Solvers,
    pub control: &'c Control<'c>,
    pub checked: u64,
}

/// Numbers for the unknowns of one query.
#[derive(Default)]
struct Names(BTreeMap<Value, Var>);

/// The denominator of all reals.
const DENOMINATOR: Var = Var(0);

impl Names {
    fn var(&mut self, v: Value) -> Var {
        let next = Var(self.0.len() as u32 + 1);
        *self.0.entry(v).or_insert(next)
    }
}

impl Query<'_> {
    pub fn poll(&self) -> Result<(), AuditError> {
        let progress = Progress {
            states: self.checked,
            ..Progress::default()
        };
        Ok(self.control.poll("audit", progress)?)
    }

    fn impossible(&self, formulas: &[Formula]) -> Result<bool, AuditError> {
        self.poll()?;
        self.solvers.impossible(formulas, WORK, self.control)
    }

    /// Whether no values fit the facts.
    pub fn contradictory(&self, rules: &Rules<'_>, facts: &Facts) -> Result<bool, AuditError> {
        self.covered(rules, facts, &[])
    }

    /// Whether whatever values fit the facts, they fit one of the cubes too.
    pub fn covered(
        &self,
        rules: &Rules<'_>,
        facts: &Facts,
        cubes: &[(&Facts, &Choice)],
    ) -> Result<bool, AuditError> {
        let mut names = Names::default();
        let mut query = vec![ge(DENOMINATOR, 1)];
        for (v, s) in &facts.among {
            query.push(among(rules, facts, &mut names, *v, *s));
        }
        for (a, b, equal) in &facts.same {
            query.push(same(&mut names, *a, *b, *equal));
        }
        let numbers = facts.numbers.iter();
        query.extend(numbers.filter_map(|n| number(rules, facts, &mut names, n)));
        for (cube, choice) in cubes {
            let mut parts = Vec::new();
            for (v, s) in &cube.among {
                let set = match cube.holds_thread(rules.system, *v) {
                    true => choice.threads_of(*s, facts),
                    false => *s,
                };
                parts.push(among(rules, facts, &mut names, choice.value(*v), set));
            }
            for (a, b, equal) in &cube.same {
                parts.push(same(&mut names, choice.value(*a), choice.value(*b), *equal));
            }
            let numbers: Option<Vec<Formula>> = choice
                .numbers(cube)
                .iter()
                .map(|n| number(rules, facts, &mut names, n))
                .collect();
            if let Some(numbers) = numbers {
                parts.extend(numbers);
                query.push(not(&and(parts)));
            }
        }
        // Values of finite types are among all there are.
        let values: Vec<Value> = names.0.keys().copied().collect();
        for v in values {
            if let Some(all) = facts.all_values(rules.system, v) {
                query.push(among(rules, facts, &mut names, v, all));
            }
        }
        self.impossible(&query)
    }
}

fn among(rules: &Rules<'_>, facts: &Facts, names: &mut Names, v: Value, set: Set) -> Formula {
    let x = names.var(v);
    let threads = facts.holds_thread(rules.system, v);
    let one = (0..127).filter(|i| set & 1 << i != 0).map(|i| eq(x, i));
    let n = facts.threads.len() as i64;
    let other = threads && set & OTHER != 0;
    or(one.chain(other.then(|| or([lt(x, 0), ge(x, n)]))))
}

fn same(names: &mut Names, a: Value, b: Value, equal: bool) -> Formula {
    let (a, b) = (names.var(a), names.var(b));
    match equal {
        true => eq(a, b),
        false => ne(a, b),
    }
}

/// Nothing if integers and reals are mixed.
fn number(rules: &Rules<'_>, facts: &Facts, names: &mut Names, n: &Number) -> Option<Formula> {
    let real = |v: &Value| rules.system.cell(facts.cell_of(*v)).ty == CellType::Real;
    let reals = n.terms.iter().filter(|(v, _)| real(v)).count();
    if reals != 0 && reals != n.terms.len() {
        return None;
    }
    let mut sum = match reals {
        0 => Term::constant(n.constant),
        _ => Term::monomial(n.constant, DENOMINATOR),
    };
    for (v, c) in &n.terms {
        sum = sum + Term::monomial(*c, names.var(*v));
    }
    Some(match n.relation {
        Relation::AtMost => le(sum, 0),
        Relation::Less => lt(sum, 0),
        Relation::Equal => eq(sum, 0),
        Relation::Different => ne(sum, 0),
    })
}
