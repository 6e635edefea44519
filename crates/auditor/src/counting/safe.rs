//! What the property forbids, for every choice of places of the threads that it names.

use super::super::AuditError;
use super::super::facts::threads_seen;
use super::super::inductive::machine::{Pending, Runs};
use super::moves::{Buffer, Own, Symbolic, terms};
use wattle_logic::{Formula, Term, and, ge};
use wattle_memory::Layout;
use wattle_model::Expr;
use wattle_model::instance::Fact;

/// A forbidden state: memory, the threads that the property names, each at its place, and when it is one.
pub struct Bad {
    pub threads: Vec<(usize, Own)>,
    pub cells: Vec<Term>,
    pub when: Vec<Formula>,
}

/// More choices than this are refused.
const MOST: usize = 1 << 16;

impl<L: Layout> Symbolic<'_, L>
where
    Buffer<L>: Pending<Bound = ()>,
{
    pub fn bad(&mut self) -> Result<Vec<Bad>, AuditError> {
        let Some(question) = self.crowd.instance.questions.first() else {
            return Ok(Vec::new());
        };
        if question.only_final {
            let why = "facts about places say nothing about final states";
            return Err(AuditError::Refused(why.into()));
        }
        let mut choices = vec![(Vec::new(), question.target.clone())];
        for t in threads_seen(&question.target) {
            let t = t.index();
            let mut longer = Vec::new();
            for (at, target) in choices {
                self.control.go_on()?;
                for p in 0..self.places.len() {
                    if self.places[p].role.index() != self.crowd.roles.of(t) {
                        continue;
                    }
                    // What locations alone say comes first.
                    let location = self.places[p].location;
                    let here = located(&target, t, location)?;
                    if here.as_const() == Some(0) {
                        continue;
                    }
                    let mut at: Vec<(usize, usize)> = at.clone();
                    at.push((t, p));
                    longer.push((at, here));
                    if longer.len() > MOST {
                        return Err(AuditError::TooMany);
                    }
                }
            }
            choices = longer;
        }
        let mut all = Vec::new();
        for (at, _) in choices {
            self.control.go_on()?;
            let (state, mut known) = self.state(&at)?;
            for (_, p) in &at {
                let as_many = at.iter().filter(|(_, q)| q == p).count() as i64;
                known.push(ge(self.counts[*p], as_many));
            }
            let cells = terms(&state.memory)?;
            let threads = at.iter().map(|(t, p)| Ok((*p, self.own(&state, *t)?)));
            let threads: Vec<(usize, Own)> = threads.collect::<Result<_, AuditError>>()?;
            for when in self.machine.target(&state, &question.target)? {
                let all_of = and(known.iter().cloned().chain(when));
                if all_of != Formula::False {
                    all.push(Bad {
                        threads: threads.clone(),
                        cells: cells.clone(),
                        when: all_of.conjuncts().to_vec(),
                    });
                }
            }
        }
        Ok(all)
    }
}

/// The target where the thread is at the location.
fn located(
    target: &Expr<Fact>,
    t: usize,
    location: wattle_model::LocationId,
) -> Result<Expr<Fact>, AuditError> {
    target.substitute(&mut |fact| {
        Ok(match fact {
            Fact::At(u, all) if u.index() == t => {
                Expr::Const(i64::from(all.binary_search(&location).is_ok()))
            }
            Fact::CellAt {
                base,
                length,
                index,
            } => Expr::Atom(Fact::CellAt {
                base: *base,
                length: *length,
                index: Box::new(located(index, t, location)?),
            }),
            Fact::At(..) | Fact::Cell(_) | Fact::Seen(..) | Fact::Register(..) => {
                Expr::Atom(fact.clone())
            }
        })
    })
}
