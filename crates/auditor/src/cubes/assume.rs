//! Conditions become facts: one list of facts for each way a condition can be true.

use super::facts::{CellAt, Facts, Impossible, NOBODY, Open, Part, Possible, Value};
use super::query::{DENOMINATOR, Names};
use wattle_logic::{Formula as Fact, Rel, Term as Sum, Var, divides, eq, le, lt, ne, not};
use wattle_memory::MemoryModel;
use wattle_model::array::{
    Access, ArraySystem, CellType, Comparison, Formula, Literal, Term, ThreadTerm,
};

/// The system and what is fixed about it.
pub struct Rules<'a> {
    pub system: &'a ArraySystem,
    pub model: MemoryModel,
    /// `#1`, …, `#constants` are threads of every instance.
    pub constants: u16,
    /// A cell that holds a thread may hold nobody.
    pub nobody: bool,
    pub names: Names,
}

/// Facts in the making: the number of the moment that new weak reads belong to, and who reads.
#[derive(Clone, Debug)]
pub struct Draft {
    pub facts: Facts,
    pub moment: Option<u8>,
    pub actor: Option<u8>,
}

impl<'a> Rules<'a> {
    pub fn new(system: &'a ArraySystem, model: MemoryModel) -> Rules<'a> {
        Rules {
            system,
            model,
            constants: system.greatest_constant(),
            nobody: system.may_be_nobody(),
            names: Names::default(),
        }
    }

    /// How many threads steps, conditions and constants may add to those of a cube.
    pub fn more(&self) -> usize {
        let steps = self.system.transitions.iter().map(|t| t.params.len());
        let conditions = self.system.bad.iter().map(|q| q.params.len());
        usize::from(self.constants) + steps.chain(conditions).fold(1, usize::max)
    }

    /// Whether accesses to the cell are events of the memory model.
    pub fn weak(&self, cell: u16) -> bool {
        self.model != MemoryModel::Sc && self.system.cell(cell).weak
    }

    /// Whether some step puts stores of the cell into a buffer.
    pub fn buffers(&self, cell: u16) -> bool {
        let transitions = self.system.transitions.iter();
        let mut steps = transitions.filter(|t| !self.system.is_atomic(t));
        steps.any(|t| t.updates.iter().any(|u| u.cell == cell))
    }

    /// A draft whose weak reads happen at one new moment.
    pub fn draft(&self, mut facts: Facts, actor: Option<u8>) -> Draft {
        let new = facts.reads.len();
        facts.reads.push(Open {
            parts: Vec::new(),
            before: 1 << new,
        });
        Draft {
            facts,
            moment: Some(new as u8),
            actor,
        }
    }

    /// Every way the formula (or its negation) can hold. The first `params` threads of `env` are
    /// the parameters; `forall_other` is looked at for the threads there are, which is less than it
    /// says.
    pub fn assume(
        &self,
        draft: Draft,
        formula: &Formula,
        positive: bool,
        env: &[u8],
        params: usize,
    ) -> Vec<Draft> {
        match (formula, positive) {
            (Formula::And(list), true) | (Formula::Or(list), false) => {
                list.iter().fold(vec![draft], |drafts, f| {
                    let step = |d| self.assume(d, f, positive, env, params);
                    drafts.into_iter().flat_map(step).collect()
                })
            }
            (Formula::Or(list), true) | (Formula::And(list), false) => list
                .iter()
                .flat_map(|f| self.assume(draft.clone(), f, positive, env, params))
                .collect(),
            (Formula::Atom(l), _) => {
                let mut draft = draft;
                let possible = self.literal(&mut draft, l, positive, env).is_ok();
                possible.then_some(draft).into_iter().collect()
            }
            (Formula::Others { all, body, .. }, true) if *all => {
                let threads = 0..draft.facts.threads.len() as u8;
                let others = threads.filter(|t| !env[..params].contains(t));
                others.fold(vec![draft], |drafts, t| {
                    let env = [env, &[t]].concat();
                    let step = |d| self.assume(d, body, true, &env, params);
                    drafts.into_iter().flat_map(step).collect()
                })
            }
            (Formula::Others { .. }, _) => vec![draft],
        }
    }

    pub fn thread(&self, facts: &Facts, t: ThreadTerm, env: &[u8]) -> Option<u8> {
        match t {
            ThreadTerm::Param(i) => env.get(usize::from(i)).copied(),
            ThreadTerm::Constant(k) => {
                let i = facts.threads.iter().position(|c| *c == k)?;
                Some(i as u8)
            }
        }
    }

    pub fn place(&self, facts: &Facts, a: &Access, env: &[u8]) -> Option<CellAt> {
        let args: Option<Vec<u8>> = a.args.iter().map(|t| self.thread(facts, *t, env)).collect();
        Some(CellAt::new(a.cell, &args?))
    }

    /// What is read: a cell, or a part of the new moment.
    pub fn value(&self, draft: &mut Draft, a: &Access, env: &[u8]) -> Option<Value> {
        let place = self.place(&draft.facts, a, env)?;
        let Some(moment) = draft.moment.filter(|_| self.weak(a.cell)) else {
            return Some(Value::Cell(place));
        };
        let reader = match a.reader {
            Some(r) => self.thread(&draft.facts, r, env)?,
            None => draft.actor.unwrap_or(NOBODY),
        };
        let part = Part {
            reader,
            place,
            own: false,
        };
        let parts = &mut draft.facts.reads[usize::from(moment)].parts;
        let number = parts.iter().position(|p| *p == part).unwrap_or_else(|| {
            parts.push(part);
            parts.len() - 1
        });
        Some(Value::Read(moment, number as u8))
    }

    /// A literal that this does not understand is left out.
    fn literal(&self, d: &mut Draft, l: &Literal, positive: bool, env: &[u8]) -> Possible {
        use Comparison::{Eq, Le, Lt, Ne};
        let (left, right, op) = match (l.op, positive) {
            (op, true) => (&l.left, &l.right, op),
            (Eq, false) => (&l.left, &l.right, Ne),
            (Ne, false) => (&l.left, &l.right, Eq),
            (Lt, false) => (&l.right, &l.left, Le),
            (Le, false) => (&l.right, &l.left, Lt),
        };
        if let (Term::Thread(a), Term::Thread(b)) = (left, right) {
            let both = self
                .thread(&d.facts, *a, env)
                .zip(self.thread(&d.facts, *b, env));
            return match (both, op) {
                (None, _) => Ok(()),
                (Some((a, b)), Eq) if a == b => Ok(()),
                (Some((a, b)), Ne) if a != b => Ok(()),
                (Some((a, b)), Le) if a == b => Ok(()),
                (Some((a, b)), Lt | Le) => d.facts.order(a, b),
                _ => Err(Impossible),
            };
        }
        let numbers = matches!((left, right), (Term::Sum { .. }, Term::Sum { .. }));
        let mut cells = Vec::new();
        l.for_each_access(&mut |a| cells.push(a.cell));
        let Some(real) = self
            .are_real(&cells)
            .filter(|_| numbers || matches!(op, Eq | Ne))
        else {
            return Ok(());
        };
        let (left, right) = (
            self.term(d, left, real, env),
            self.term(d, right, real, env),
        );
        let Some(sum) = left.zip(right).map(|(a, b)| a - b) else {
            return Ok(());
        };
        let fact = match op {
            Eq => eq(sum, 0),
            Ne => ne(sum, 0),
            Lt => lt(sum, 0),
            Le => le(sum, 0),
        };
        d.facts.learn(self, fact)
    }

    /// Whether the numbers of the cells are real; nothing if some are and some are not.
    pub fn are_real(&self, cells: &[u16]) -> Option<bool> {
        let mut real = cells
            .iter()
            .map(|c| self.system.cell(*c).ty == CellType::Real);
        let first = real.next().unwrap_or(false);
        real.all(|r| r == first).then_some(first)
    }

    /// The term over the variables of values: constructors and threads are their numbers.
    pub fn term(&self, d: &mut Draft, t: &Term, real: bool, env: &[u8]) -> Option<Sum> {
        Some(match t {
            Term::Bool(b) => i64::from(*b).into(),
            Term::Constructor(_, c) => i64::from(*c).into(),
            Term::Thread(t) => i64::from(self.thread(&d.facts, *t, env)?).into(),
            Term::Read(a) => self.names.var(self.value(d, a, env)?).into(),
            Term::Sum { parts, constant } => {
                let mut sum = match real {
                    true => Sum::monomial(*constant, DENOMINATOR),
                    false => Sum::constant(*constant),
                };
                for (c, a) in parts {
                    sum = sum + Sum::monomial(*c, self.names.var(self.value(d, a, env)?));
                }
                sum
            }
        })
    }

    /// What the variable stands for; the denominator is no value.
    pub fn value_of(&self, v: Var) -> Option<Value> {
        self.names.value(v)
    }

    /// The comparison with other terms for its values.
    pub fn replaced(&self, fact: &Fact, new: &dyn Fn(Value) -> Sum) -> Fact {
        let Some(atom) = fact.as_atom() else {
            return fact.clone();
        };
        let term = atom.term().subst(&|v| self.value_of(v).map(new));
        match atom.rel() {
            Rel::Le => le(term, 0),
            Rel::Eq => eq(term, 0),
            Rel::Ne => ne(term, 0),
            Rel::Divides(m) => divides(m.clone(), term),
            Rel::NotDivides(m) => not(&divides(m.clone(), term)),
        }
    }

    /// Whether a condition holds, judging by threads alone.
    pub fn decided(&self, facts: &Facts, f: &Formula, env: &[u8]) -> Option<bool> {
        let list = |list: &[Formula], decisive: bool| {
            let parts: Vec<_> = list.iter().map(|f| self.decided(facts, f, env)).collect();
            if parts.contains(&Some(decisive)) {
                return Some(decisive);
            }
            parts.iter().all(Option::is_some).then_some(!decisive)
        };
        match f {
            Formula::And(parts) => list(parts, false),
            Formula::Or(parts) => list(parts, true),
            Formula::Others { .. } => None,
            Formula::Atom(l) => {
                let (Term::Thread(a), Term::Thread(b)) = (&l.left, &l.right) else {
                    return None;
                };
                let (a, b) = (self.thread(facts, *a, env)?, self.thread(facts, *b, env)?);
                let before = |a: u8, b: u8| {
                    let later = facts.later.get(usize::from(a));
                    later.is_some_and(|set| usize::from(b) < 16 && set & 1 << b != 0)
                };
                match l.op {
                    Comparison::Eq => Some(a == b),
                    Comparison::Ne => Some(a != b),
                    Comparison::Le if a == b => Some(true),
                    Comparison::Lt if a == b => Some(false),
                    Comparison::Lt | Comparison::Le if before(a, b) => Some(true),
                    Comparison::Lt | Comparison::Le if before(b, a) => Some(false),
                    Comparison::Lt | Comparison::Le => None,
                }
            }
        }
    }
}
