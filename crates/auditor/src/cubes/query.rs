//! What is left to the solver: facts about values as formulas over integers.
//!
//! Values of finite types are their numbers, threads of the facts 0, 1, … and other threads anything
//! else. A real number is a fraction; all have one denominator, which is itself an unknown. Every
//! "impossible" of the solver is taken only with a proof that checks.

use super::assume::Rules;
use super::facts::{Facts, OTHER, Set, Value};
use super::inside::Chosen;
use crate::{AuditError, Solvers};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::control::{Control, Progress};
use wattle_logic::{Formula, Var, and, eq, ge, lt, not, or};

/// What one query may take.
const WORK: u64 = 5_000_000;
/// Steps turned round from one poll to the next; a query takes as long as many.
const STEPS: u64 = 16;

pub struct Query<'c> {
    pub solvers: &'c Solvers,
    pub control: &'c Control<'c>,
    pub checked: u64,
    pub steps: Cell<u64>,
}

/// A variable for each value, the same wherever it is spoken of.
#[derive(Default)]
pub struct Names(RefCell<(BTreeMap<Value, Var>, Vec<Value>)>);

/// The denominator of all reals.
pub const DENOMINATOR: Var = Var(0);

impl Names {
    pub fn var(&self, v: Value) -> Var {
        let (vars, values) = &mut *self.0.borrow_mut();
        *vars.entry(v).or_insert_with(|| {
            values.push(v);
            Var(values.len() as u32)
        })
    }

    pub fn value(&self, v: Var) -> Option<Value> {
        let before = v.0.checked_sub(1)?;
        self.0.borrow().1.get(before as usize).copied()
    }
}

impl Query<'_> {
    pub fn step(&self) -> Result<(), AuditError> {
        self.steps.set(self.steps.get() + 1);
        let due = self.steps.get().is_multiple_of(STEPS);
        if due { self.poll() } else { Ok(()) }
    }

    fn poll(&self) -> Result<(), AuditError> {
        Ok(self.control.poll("audit", Progress::of(self.checked))?)
    }

    fn impossible(&self, formulas: &[Formula]) -> Result<bool, AuditError> {
        self.poll()?;
        self.solvers.impossible(formulas, WORK, self.control)
    }

    /// Whether whatever values fit the facts, they fit one of the cubes too; without cubes, whether none fit.
    pub fn covered(
        &self,
        rules: &Rules<'_>,
        facts: &Facts,
        cubes: &[Chosen<'_, '_>],
    ) -> Result<bool, AuditError> {
        let mut query = vec![ge(DENOMINATOR, 1)];
        let sets = facts.among.iter();
        query.extend(sets.map(|(v, s)| among(rules, facts, *v, *s)));
        query.extend(facts.known.iter().cloned());
        for c in cubes {
            let sets = c.cube.among.iter();
            let sets = sets.map(|(v, s)| among(rules, facts, c.choice.value(*v), c.wanted(*v, *s)));
            query.push(not(&and(sets.chain(c.known()))));
        }
        // Values of finite types are among all there are.
        let mut vars = BTreeSet::new();
        query.iter().for_each(|f| f.collect_vars(&mut vars));
        for value in vars.into_iter().filter_map(|v| rules.value_of(v)) {
            let all = facts.all_values(rules.system, value);
            query.extend(all.map(|all| among(rules, facts, value, all)));
        }
        self.impossible(&query)
    }
}

pub fn among(rules: &Rules<'_>, facts: &Facts, v: Value, set: Set) -> Formula {
    let x = rules.names.var(v);
    let threads = facts.holds_thread(rules.system, v);
    let one = (0..127).filter(|i| set & 1 << i != 0).map(|i| eq(x, i));
    let n = facts.threads.len() as i64;
    let other = threads && set & OTHER != 0;
    or(one.chain(other.then(|| or([lt(x, 0), ge(x, n)]))))
}
