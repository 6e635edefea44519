//! A finished path as a transition of the system.

use super::amount::Amount;
use super::expr::{Identity, Val};
use super::paths::{CounterWrite, ME, Path};
use super::variables::{Holds, Variable};
use super::{Lowering, Refused, access, equal, refuse};
use wattle_model::array::{
    Access, Branch, CellType, FenceKind, Formula, Term, Transition, Update, UpdateIndex, Value,
};
use wattle_model::{FamilyId, LocationId, Span};

impl Lowering<'_> {
    /// The flag of threads that did what has no meaning.
    fn broken_cell(&mut self) -> u16 {
        if let Some(c) = self.broken {
            return c;
        }
        let cell = self.cell("Broken".into(), 1, CellType::Bool, false, Span::NONE);
        if let Formula::And(list) = &mut self.system.init.body {
            list.push(equal(Term::Read(access(cell, &[ME])), Term::Bool(false)));
        }
        self.broken = Some(cell);
        cell
    }

    pub(super) fn emit(
        &mut self,
        f: FamilyId,
        start: LocationId,
        path: Path,
    ) -> Result<(), Refused> {
        let place = |l: LocationId| Term::Constructor(f.index() as u16, l.index() as u16);
        let at = access(f.index() as u16, &[ME]);
        let mut guard = vec![equal(Term::Read(at.clone()), place(start))];
        if let Some(family) = self.family_cell() {
            guard.push(equal(
                Term::Read(access(family, &[ME])),
                self.family_value(f.index()),
            ));
        }
        guard.extend(path.guards.iter().cloned());
        guard.extend(self.everyone(&path));
        let mut updates = Vec::new();
        let set = |a: &Access, value: Value| Update {
            cell: a.cell,
            index: a.args.iter().map(|t| UpdateIndex::At(*t)).collect(),
            branches: vec![Branch {
                condition: Formula::TRUE,
                value,
            }],
            span: path.span,
        };
        if path.broken {
            let cell = self.broken_cell();
            updates.push(set(&access(cell, &[ME]), Value::Term(Term::Bool(true))));
        } else {
            if path.at != start {
                updates.push(set(&at, Value::Term(place(path.at))));
            }
            for (r, v) in &path.registers {
                let cell = access(self.variables.cells[&Variable::Register(f, *r)], &[ME]);
                for (a, t) in self.stored(&cell, v, path.span)? {
                    if t != Term::Read(a.clone()) {
                        updates.push(set(&a, Value::Term(t)));
                    }
                }
            }
            for r in &path.any {
                let id = Variable::Register(f, *r);
                let cell = access(self.variables.cells[&id], &[ME]);
                if matches!(self.variables.of(id), Holds::Threads(_)) {
                    let none = Access {
                        cell: cell.cell + 1,
                        ..cell.clone()
                    };
                    updates.push(set(&none, Value::Any));
                }
                updates.push(set(&cell, Value::Any));
            }
            for (cell, v) in &path.writes {
                for (a, t) in self.stored(cell, v, path.span)? {
                    updates.push(set(&a, Value::Term(t)));
                }
            }
            for (region, write) in &path.counters {
                let cell = self.variables.cells[&Variable::Region(*region)];
                updates.push(match write {
                    CounterWrite::One(t, b) => {
                        set(&access(cell, &[*t]), Value::Term(Term::Bool(*b)))
                    }
                    CounterWrite::All(b) => Update {
                        cell,
                        index: vec![UpdateIndex::Each("j".into())],
                        branches: vec![Branch {
                            condition: Formula::TRUE,
                            value: Value::Term(Term::Bool(*b)),
                        }],
                        span: path.span,
                    },
                });
            }
        }
        let mut transition = Transition {
            name: format!(
                "{}_{}_{}",
                self.program.families[f.index()].name,
                start.index(),
                self.system.transitions.len()
            ),
            params: path.params,
            actor: Some(0),
            fence: path.fence,
            guard: Formula::And(guard),
            updates,
            span: path.span,
        };
        if path.atomic {
            transition.fence = Some(FenceKind::Full);
            let system = &self.system;
            // Only a transition that reads and writes weak cells bypasses the buffer.
            if system.writes_weak(&transition) && !system.reads_weak(&transition) {
                let update = transition.updates.iter().find(|u| system.cell(u.cell).weak);
                let read = update.map(|u| {
                    let args = u.index.iter().map(|i| match i {
                        UpdateIndex::At(t) => *t,
                        UpdateIndex::Each(_) => ME,
                    });
                    let a = Access {
                        cell: u.cell,
                        args: args.collect(),
                        reader: None,
                    };
                    match system.cell(u.cell).ty {
                        CellType::Int | CellType::Real => Term::Sum {
                            parts: vec![(1, a)],
                            constant: 0,
                        },
                        CellType::Bool | CellType::Thread | CellType::Declared(_) => Term::Read(a),
                    }
                });
                if let (Some(t), Formula::And(list)) = (read, &mut transition.guard) {
                    list.push(equal(t.clone(), t));
                }
            }
        }
        self.system.transitions.push(transition);
        Ok(())
    }

    /// What is stored in which cells for a value.
    fn stored(&self, cell: &Access, v: &Val, span: Span) -> Result<Vec<(Access, Term)>, Refused> {
        let none = Access {
            cell: cell.cell + 1,
            ..cell.clone()
        };
        Ok(match v {
            Val::Number(l) => {
                let finite = self.few.contains_key(&cell.cell);
                let term = match (finite, l.as_cell()) {
                    (true, Some(a)) => Term::Read(a.clone()),
                    (true, None) if l.parts.is_empty() => {
                        match self.finite(Amount::Number(l.constant)) {
                            Some(t) => t,
                            None => {
                                return Err(refuse(
                                    span,
                                    "a value that was not foreseen",
                                    "please report this program",
                                ));
                            }
                        }
                    }
                    (true, None) => {
                        return Err(refuse(
                            span,
                            "a value that was not foreseen",
                            "please report this program",
                        ));
                    }
                    (false, _) => l.term(),
                };
                vec![(cell.clone(), term)]
            }
            Val::Thread(Identity::None) => vec![(none, Term::Bool(true))],
            Val::Thread(Identity::Is(t)) => {
                vec![(cell.clone(), Term::Thread(*t)), (none, Term::Bool(false))]
            }
            Val::Thread(Identity::Held { cell: c, none: n }) => vec![
                (cell.clone(), Term::Read(c.clone())),
                (none, Term::Read(n.clone())),
            ],
            Val::Share(s) => match self.finite(Amount::Threads(*s)) {
                Some(t) => vec![(cell.clone(), t)],
                None => {
                    return Err(refuse(
                        span,
                        "a number of threads is stored among other numbers",
                        "count with `! as counter` or `= count(…)`, or fix the number of threads",
                    ));
                }
            },
            Val::Counter { .. } => {
                return Err(refuse(
                    span,
                    "a counter is stored in the middle of a step",
                    "store it where it was counted",
                ));
            }
        })
    }
}
