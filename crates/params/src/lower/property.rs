//! What must not happen: the property, assertions, and steps that have no meaning.

use super::expr::{Identity, Linear, Val};
use super::paths::ME;
use super::variables::{Holds, Variable};
use super::{Lowering, Refused, access, equal, refuse};
use std::collections::BTreeSet;
use wattle_model::array::{Access, Formula, Quantified, Term, ThreadTerm};
use wattle_model::graph::Action;
use wattle_model::program::Local;
use wattle_model::{
    Count, Expr, FamilyId, IndexId, IndexVariable, Length, Observation, Op1, Op2, Program,
    PropertyKind, RegionId, RegisterId, Span, ThreadIndex, ThreadRef,
};

/// The program, with an index variable for every thread that is the only one of its family where a property
/// names it and there are other families.
pub(super) fn by_variables(program: &Program) -> Program {
    let mut program = program.clone();
    if program.families.len() < 2 {
        return program;
    }
    let families = &program.families;
    let only = |t: &ThreadRef| {
        let count = families[t.family.index()].count;
        t.index == ThreadIndex::Number(0) && matches!(count, Count::One | Count::Fixed(1))
    };
    for p in &mut program.properties {
        let mut indices = std::mem::take(&mut p.condition.indices);
        p.condition.expr = renamed(&p.condition.expr, &mut |t| {
            if only(t) {
                let known = indices.iter().position(|v| v.family == t.family);
                let i = known.unwrap_or_else(|| {
                    indices.push(IndexVariable {
                        name: families[t.family.index()].name.clone(),
                        family: t.family,
                    });
                    indices.len() - 1
                });
                t.index = ThreadIndex::Variable(IndexId::new(i));
            }
        });
        p.condition.indices = indices;
    }
    program
}

fn renamed(e: &Expr<Observation>, change: &mut dyn FnMut(&mut ThreadRef)) -> Expr<Observation> {
    let renamed: Result<_, std::convert::Infallible> = e.substitute(&mut |o| {
        let mut o = o.clone();
        match &mut o {
            Observation::Register(t, _) | Observation::At(t, _) => change(t),
            Observation::Seen(t, _, index) => {
                change(t);
                **index = renamed(index, change);
            }
            Observation::Cell(_, index) | Observation::Memory(index) => {
                **index = renamed(index, change);
            }
            Observation::Index(_) | Observation::Count(_) | Observation::AddressOf(_) => {}
        }
        Ok(Expr::Atom(o))
    });
    match renamed {
        Ok(e) => e,
    }
}

impl Lowering<'_> {
    /// Notes what the property looks at, so that such states are not skipped.
    pub(super) fn observe(&mut self, property: Option<usize>) {
        let mut labels = Vec::new();
        if let Some(p) = property.and_then(|i| self.program.properties.get(i)) {
            p.condition.expr.for_each_atom(&mut |o| {
                if let Observation::At(_, l) = o {
                    labels.push(l.clone());
                }
            });
        }
        self.observed = labels;
        let property = property.and_then(|i| self.program.properties.get(i));
        if let Some(p) = property {
            let violated_if = matches!(p.kind, PropertyKind::Never | PropertyKind::Reachable);
            absent(&p.condition.expr, violated_if, &mut self.absent);
        }
        let indices = property.iter().flat_map(|p| &p.condition.indices);
        self.indices = indices.map(|v| v.family).collect();
    }

    /// Assertions and properties may look at any register.
    pub(super) fn register_observed(&self, f: FamilyId, r: RegisterId) -> bool {
        let mut found = false;
        for p in &self.program.properties {
            p.condition.expr.for_each_atom(&mut |o| {
                if let Observation::Register(t, s) = o {
                    found |= t.family == f && *s == r;
                }
            });
        }
        found
    }

    pub(super) fn bad(&mut self, property: Option<usize>) -> Result<(), Refused> {
        if let Some(p) = property.and_then(|i| self.program.properties.get(i)) {
            let positive = match p.kind {
                PropertyKind::Never => true,
                PropertyKind::Always => false,
                PropertyKind::Finally | PropertyKind::Reachable => {
                    return Err(refuse(
                        p.span,
                        format!("`{}` speaks of final states", p.kind.keyword()),
                        "only `never`, `always` and assertions are checked for any number of threads",
                    ));
                }
            };
            let params: Vec<String> = p.condition.indices.iter().map(|i| i.name.clone()).collect();
            let leaf = |o: &Observation| self.observation(o, p.span);
            let body = match self.whole(&p.condition.expr, positive, p.span)? {
                Some(f) => f,
                None => self.truth(&p.condition.expr, &leaf, positive, p.span)?,
            };
            let mut parts = vec![body];
            if let Some(cell) = self.family_cell() {
                for (i, v) in p.condition.indices.iter().enumerate() {
                    let a = access(cell, &[ThreadTerm::Param(i as u8)]);
                    parts.push(equal(Term::Read(a), self.family_value(v.family.index())));
                }
            }
            let body = Formula::And(parts).simplified();
            self.system.bad.push(Quantified {
                params,
                body,
                span: p.span,
            });
        }
        self.assertions()?;
        if let Some(cell) = self.broken {
            self.system.bad.push(Quantified {
                params: vec!["p".into()],
                body: equal(Term::Read(access(cell, &[ME])), Term::Bool(true)),
                span: Span::NONE,
            });
        }
        Ok(())
    }

    fn assertions(&mut self) -> Result<(), Refused> {
        for (f, family) in self.program.families.iter().enumerate() {
            for s in &family.steps {
                let Action::Assert { condition, .. } = &s.action else {
                    continue;
                };
                let id = FamilyId::new(f);
                let leaf = |l: &Local| match l {
                    Local::Register(r) => Ok(self.register(id, *r, ME)),
                    Local::SelfIndex => Ok(Val::Thread(Identity::Is(ME))),
                    Local::Count(_) => self.everybody(s.span),
                    Local::AddressOf(_) => Err(refuse(
                        s.span,
                        "addresses are not treated for any number of threads",
                        "name the region",
                    )),
                };
                let fails = self.truth(condition, &leaf, false, s.span)?;
                let here = equal(
                    Term::Read(access(f as u16, &[ME])),
                    Term::Constructor(f as u16, s.source.index() as u16),
                );
                let mut parts = vec![here, fails];
                if let Some(cell) = self.family_cell() {
                    parts.push(equal(Term::Read(access(cell, &[ME])), self.family_value(f)));
                }
                let body = Formula::And(parts).simplified();
                self.system.bad.push(Quantified {
                    params: vec!["p".into()],
                    body,
                    span: s.span,
                });
            }
        }
        Ok(())
    }

    /// Conditions on locations become formulas directly; `None` if the expression is of another
    /// shape.
    fn whole(
        &self,
        e: &Expr<Observation>,
        positive: bool,
        span: Span,
    ) -> Result<Option<Formula>, Refused> {
        Ok(match e {
            Expr::Atom(Observation::At(t, label)) => Some(self.at(t, label, positive, span)?),
            Expr::Unary(Op1::Not, a) => self.whole(a, !positive, span)?,
            Expr::Binary(op @ (Op2::And | Op2::Or), a, b) => {
                let mut parts = Vec::new();
                for x in [a, b] {
                    parts.push(match self.whole(x, positive, span)? {
                        Some(f) => f,
                        None => {
                            let leaf = |o: &Observation| self.observation(o, span);
                            self.truth(x, &leaf, positive, span)?
                        }
                    });
                }
                Some(match (*op == Op2::And) == positive {
                    true => Formula::And(parts).simplified(),
                    false => Formula::Or(parts),
                })
            }
            Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
                None
            }
        })
    }

    fn thread_of(&self, t: &ThreadRef, span: Span) -> Result<ThreadTerm, Refused> {
        match t.index {
            ThreadIndex::Variable(i) if self.indices.get(i.index()) == Some(&t.family) => {
                Ok(ThreadTerm::Param(i.index() as u8))
            }
            ThreadIndex::Variable(_) => Err(refuse(
                span,
                "an index variable stands for threads of two families",
                "use an index variable for each family",
            )),
            ThreadIndex::Number(n) if self.program.families.len() == 1 => {
                Ok(ThreadTerm::Constant(n as u16 + 1))
            }
            ThreadIndex::Number(_) => Err(refuse(
                span,
                "a property of one certain thread among several families",
                "use an index variable",
            )),
        }
    }

    fn at(
        &self,
        t: &ThreadRef,
        label: &str,
        positive: bool,
        span: Span,
    ) -> Result<Formula, Refused> {
        let thread = self.thread_of(t, span)?;
        let f = t.family.index();
        let family = &self.program.families[f];
        let places = family
            .locations
            .iter()
            .enumerate()
            .filter(|(_, l)| l.labels.iter().any(|x| x == label));
        let here = |l: usize| {
            let (cell, place) = (
                Term::Read(access(f as u16, &[thread])),
                Term::Constructor(f as u16, l as u16),
            );
            if positive {
                equal(cell, place)
            } else {
                super::different(cell, place)
            }
        };
        let list: Vec<Formula> = places.map(|(l, _)| here(l)).collect();
        Ok(if positive {
            Formula::Or(list).simplified()
        } else {
            Formula::And(list).simplified()
        })
    }

    fn observation(&self, o: &Observation, span: Span) -> Result<Val, Refused> {
        match o {
            Observation::Register(t, r) => {
                Ok(self.register(t.family, *r, self.thread_of(t, span)?))
            }
            Observation::Index(i) => Ok(Val::Thread(Identity::Is(ThreadTerm::Param(
                i.index() as u8
            )))),
            Observation::Cell(r, index) => self.cell_seen(*r, index, None, span),
            Observation::Seen(t, r, index) => {
                let reader = self.thread_of(t, span)?;
                self.cell_seen(*r, index, Some(reader), span)
            }
            Observation::Count(_) => self.everybody(span),
            Observation::At(..) => Err(refuse(
                span,
                "a location inside arithmetic",
                "use `&&` and `||`",
            )),
            Observation::Memory(_) | Observation::AddressOf(_) => Err(refuse(
                span,
                "addresses are not treated for any number of threads",
                "name the region",
            )),
        }
    }

    /// A cell's value in memory, or as the reader sees it.
    fn cell_seen(
        &self,
        r: RegionId,
        index: &Expr<Observation>,
        reader: Option<ThreadTerm>,
        span: Span,
    ) -> Result<Val, Refused> {
        let id = Variable::Region(r);
        let cell = self.variables.cells[&id];
        let a = match (self.program.regions[r.index()].length, index) {
            (Length::Scalar, _) => access(cell, &[]),
            (Length::PerThread(of), Expr::Atom(Observation::Index(i)))
                if self.indices.get(i.index()) == Some(&of) =>
            {
                access(cell, &[ThreadTerm::Param(i.index() as u8)])
            }
            (Length::Array(n), Expr::Const(c)) if (0..i64::from(n)).contains(c) => {
                let wide = matches!(self.variables.of(id), Holds::Threads(_));
                access(cell + *c as u16 * if wide { 2 } else { 1 }, &[])
            }
            (Length::PerThread(_) | Length::Array(_), _) => {
                return Err(refuse(
                    span,
                    "an index in a property that is no index variable",
                    "name the thread with an index variable",
                ));
            }
        };
        let a = Access { reader, ..a };
        Ok(match self.variables.of(id) {
            Holds::Threads(_) => {
                let none = Access {
                    cell: a.cell + 1,
                    ..a.clone()
                };
                Val::Thread(Identity::Held { cell: a, none })
            }
            Holds::Counter => {
                return Err(refuse(
                    span,
                    "a property of a counter",
                    "speak of locations and registers",
                ));
            }
            Holds::Few(_) | Holds::Numbers => Val::Number(Linear::cell(a)),
        })
    }
}

/// Families of which a violation may want a label's absence.
fn absent(e: &Expr<Observation>, wanted: bool, found: &mut BTreeSet<FamilyId>) {
    match e {
        Expr::Atom(Observation::At(t, _)) if !wanted => {
            found.insert(t.family);
        }
        Expr::Const(_) | Expr::Atom(_) => {}
        Expr::Unary(Op1::Not, a) => absent(a, !wanted, found),
        Expr::Binary(Op2::And | Op2::Or, a, b) => {
            absent(a, wanted, found);
            absent(b, wanted, found);
        }
        Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => e.for_each_atom(&mut |o| {
            if let Observation::At(t, _) = o {
                found.insert(t.family);
            }
        }),
    }
}
