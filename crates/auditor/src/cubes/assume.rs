//! Conditions become facts: one list of facts for each way a condition can be true.

use super::facts::{Facts, Impossible, NOBODY, Open, Part, Place, Possible, Relation, Set, Value};
use std::cell::Cell;
use wattle_memory::MemoryModel;
use wattle_model::array::{Access, ArraySystem, Comparison, Formula, Literal, Term, ThreadTerm};

/// The system and what is fixed about it.
pub struct Rules<'a> {
    pub system: &'a ArraySystem,
    pub model: MemoryModel,
    /// `#1`, …, `#constants` are threads of every instance.
    pub constants: u16,
    /// A cell that holds a thread may hold nobody.
    pub nobody: bool,
    /// Ways tried since the last look at the clock.
    pub work: Cell<u64>,
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
            work: Cell::new(0),
        }
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
        self.work.set(self.work.get() + 1);
        match (formula, positive) {
            (Formula::And(list), true) | (Formula::Or(list), false) => {
                let mut drafts = vec![draft];
                for f in list {
                    drafts = drafts
                        .into_iter()
                        .flat_map(|d| self.assume(d, f, positive, env, params))
                        .collect();
                }
                drafts
            }
            (Formula::Or(list), true) | (Formula::And(list), false) => list
                .iter()
                .flat_map(|f| self.assume(draft.clone(), f, positive, env, params))
                .collect(),
            (Formula::Atom(l), _) => {
                let mut draft = draft;
                match self.literal(&mut draft, l, positive, env) {
                    Ok(()) => vec![draft],
                    Err(Impossible) => Vec::new(),
                }
            }
            (Formula::ForallOther { body, .. }, true) => {
                let mut drafts = vec![draft];
                let threads = drafts[0].facts.threads.len() as u8;
                for t in (0..threads).filter(|t| !env[..params].contains(t)) {
                    let mut env = env.to_vec();
                    env.push(t);
                    drafts = drafts
                        .into_iter()
                        .flat_map(|d| self.assume(d, body, true, &env, params))
                        .collect();
                }
                drafts
            }
            (Formula::ForallOther { .. }, false) => vec![draft],
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

    pub fn place(&self, facts: &Facts, a: &Access, env: &[u8]) -> Option<Place> {
        let args: Option<Vec<u8>> = a.args.iter().map(|t| self.thread(facts, *t, env)).collect();
        Some(Place::new(a.cell, &args?))
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
        if let (
            Term::Sum { parts, constant },
            Term::Sum {
                parts: minus,
                constant: less,
            },
        ) = (left, right)
        {
            let mut terms = Vec::new();
            let signed = parts
                .iter()
                .map(|p| (1, p))
                .chain(minus.iter().map(|p| (-1, p)));
            for (sign, (c, a)) in signed {
                match (self.value(d, a, env), c.checked_mul(sign)) {
                    (Some(v), Some(c)) => terms.push((v, c)),
                    _ => return Ok(()),
                }
            }
            let relation = match op {
                Eq => Relation::Equal,
                Ne => Relation::Different,
                Lt => Relation::Less,
                Le => Relation::AtMost,
            };
            return match constant.checked_sub(*less) {
                Some(constant) => d.facts.constrain(terms, constant, relation),
                None => Ok(()),
            };
        }
        let equal = match op {
            Eq => true,
            Ne => false,
            Lt | Le => return Ok(()),
        };
        match (left, right) {
            (Term::Read(a), Term::Read(b)) => {
                let both = self.value(d, a, env).zip(self.value(d, b, env));
                both.map_or(Ok(()), |(a, b)| d.facts.relate(a, b, equal))
            }
            (Term::Read(a), c) | (c, Term::Read(a)) => {
                let Some(v) = self.value(d, a, env) else {
                    return Ok(());
                };
                let one = self.constant(&d.facts, c, env);
                match (one, d.facts.all_values(self.system, v)) {
                    (Some(one), _) if equal => d.facts.restrict(v, one),
                    (Some(one), Some(all)) => d.facts.restrict(v, all & !one),
                    _ => Ok(()),
                }
            }
            (a, b) => {
                let both = self
                    .constant(&d.facts, a, env)
                    .zip(self.constant(&d.facts, b, env));
                match both.is_none_or(|(a, b)| (a == b) == equal) {
                    true => Ok(()),
                    false => Err(Impossible),
                }
            }
        }
    }

    /// A constant's value, as a set of one.
    pub fn constant(&self, facts: &Facts, t: &Term, env: &[u8]) -> Option<Set> {
        match t {
            Term::Bool(b) => Some(1 << u32::from(*b)),
            Term::Constructor(_, c) => 1u128.checked_shl(u32::from(*c)),
            Term::Thread(t) => Some(1 << self.thread(facts, *t, env)?),
            Term::Read(_) | Term::Sum { .. } => None,
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
            Formula::ForallOther { .. } => None,
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
