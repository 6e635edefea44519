//! Memory and registers along a path: which element a place names, and what a variable of a type
//! stores. What has no meaning breaks the thread.

use super::expr::{Alternatives, Identity, Linear, Val, symbolic};
use super::paths::{ME, Path};
use super::variables::{Holds, Variable};
use super::{Lowering, Refused, access, equal, refuse};
use wattle_model::array::{Access, Comparison, Formula, Literal, Term};
use wattle_model::program::Local;
use wattle_model::{Expr, FamilyId, Length, Place, RegionId, RegisterId, Span, Type};

/// What holds in a case, and the value stored then; no value is a fault.
type Admitted = (Vec<Formula>, Option<Val>);

impl Lowering<'_> {
    pub(super) fn assign(
        &mut self,
        f: FamilyId,
        path: Path,
        register: RegisterId,
        list: Alternatives,
        span: Span,
    ) -> Result<Vec<Path>, Refused> {
        let holds = self.variables.of(Variable::Register(f, register)).clone();
        let mut out = Vec::new();
        let ty = self.variables.type_of(Variable::Register(f, register));
        for (g, v) in list {
            for (h, v) in self.fit(v, &holds, span)? {
                for (range, v) in self.admit(ty, v, span)? {
                    let mut p = path.clone();
                    p.guards.extend(g.iter().chain(&h).cloned());
                    p.guards.extend(range);
                    match v {
                        Some(v) => {
                            p.any.remove(&register);
                            p.registers.insert(register, v);
                        }
                        None => p.broken = true,
                    }
                    out.push(p);
                }
            }
        }
        Ok(out)
    }

    /// A value as the type stores it, by cases; nothing where storing it is a fault.
    pub(super) fn admit(&self, ty: Type, v: Val, span: Span) -> Result<Vec<Admitted>, Refused> {
        let fixed = |c: i64| {
            let kept = if symbolic(c) { Some(c) } else { ty.admit(c) };
            kept.map(|c| Val::Number(Linear::constant(c)))
        };
        let whole = |v: Val| Ok(vec![(Vec::new(), Some(v))]);
        let l = match (ty, &v) {
            (Type::Range { .. } | Type::Wrap { .. }, Val::Number(l)) => l.clone(),
            (Type::Range { .. }, Val::Counter { .. }) => {
                return Err(refuse(
                    span,
                    "a number of threads is kept in a variable with a range",
                    "declare the variable without a range",
                ));
            }
            _ => return whole(v),
        };
        if l.parts.is_empty() {
            return Ok(vec![(Vec::new(), fixed(l.constant))]);
        }
        if let Some(a) = l.as_cell().filter(|a| self.few.contains_key(&a.cell)) {
            let same = |c: &i64| symbolic(*c) || ty.admit(*c) == Some(*c);
            let values = &self.few[&a.cell];
            if values.iter().all(same) {
                return whole(v);
            }
            let cases = values
                .iter()
                .map(|c| (vec![self.is_value(a, *c)], fixed(*c)));
            return Ok(cases.collect());
        }
        let Type::Range { lo, hi } = ty else {
            return whole(v);
        };
        if let Some(a) = l.as_cell()
            && self
                .ranges
                .get(&a.cell)
                .is_some_and(|r| lo <= r.0 && r.1 <= hi)
        {
            return whole(v);
        }
        let compare = |left: &Linear, op, right: &Linear| {
            Formula::Atom(Literal {
                left: left.term(),
                op,
                right: right.term(),
            })
        };
        let (lo, hi) = (Linear::constant(lo), Linear::constant(hi));
        let inside = vec![
            compare(&lo, Comparison::Le, &l),
            compare(&l, Comparison::Le, &hi),
        ];
        Ok(vec![
            (inside, Some(v)),
            (vec![compare(&l, Comparison::Lt, &lo)], None),
            (vec![compare(&hi, Comparison::Lt, &l)], None),
        ])
    }

    /// A value as a variable of this kind stores it.
    pub(super) fn fit(&self, v: Val, holds: &Holds, span: Span) -> Result<Alternatives, Refused> {
        match (holds, v) {
            (Holds::Threads(_), Val::Number(l)) if l.parts.is_empty() && l.constant == -1 => {
                Ok(vec![(Vec::new(), Val::Thread(Identity::None))])
            }
            (Holds::Threads(_), v @ Val::Thread(_)) => Ok(vec![(Vec::new(), v)]),
            (Holds::Threads(_), _) => Err(refuse(
                span,
                "thread identifiers and numbers are mixed",
                "use `none` or another identifier",
            )),
            (Holds::Numbers, Val::Number(l)) if symbolic(l.constant) => Err(refuse(
                span,
                "a number of threads is stored among other numbers",
                "count with `! as counter` or `= count(…)`, or fix the number of threads",
            )),
            (Holds::Numbers, Val::Number(l)) => {
                match l.as_cell().filter(|a| self.few.contains_key(&a.cell)) {
                    None => Ok(vec![(Vec::new(), Val::Number(l))]),
                    Some(a) => {
                        let cases = self.few[&a.cell].iter().filter_map(|c| {
                            let guard = equal(Term::Read(a.clone()), self.finite(*c)?);
                            Some((vec![guard], Val::Number(Linear::constant(*c))))
                        });
                        Ok(cases.collect())
                    }
                }
            }
            (_, Val::Thread(_)) => Err(refuse(
                span,
                "a thread identifier is used as a number",
                "declare the variable with the family as its type",
            )),
            (_, v) => Ok(vec![(Vec::new(), v)]),
        }
    }

    /// The element of a region that a place names, on each way to name it. Naming nothing breaks
    /// the thread.
    fn place(
        &mut self,
        f: FamilyId,
        path: Path,
        place: &Place,
        span: Span,
    ) -> Result<Vec<(Path, RegionId, Access)>, Refused> {
        let Place::Region(r, index) = place else {
            return Err(refuse(
                span,
                "computed addresses are not treated for any number of threads",
                "name the region",
            ));
        };
        let region = &self.program.regions[r.index()];
        let base = self.variables.cells[&Variable::Region(*r)];
        let wide = matches!(self.variables.of(Variable::Region(*r)), Holds::Threads(_));
        let mut out = Vec::new();
        match region.length {
            Length::Scalar => out.push((path, *r, access(base, &[]))),
            Length::Array(n) => {
                let list = self.path_value(f, &path, index, span)?;
                let mut cases = Vec::new();
                for (g, v) in list {
                    for (h, v) in self.fit(v, &Holds::Numbers, span)? {
                        cases.push((g.iter().cloned().chain(h).collect::<Vec<_>>(), v));
                    }
                }
                for (g, v) in cases {
                    let Val::Number(l) = v else { continue };
                    if !l.parts.is_empty() {
                        return Err(refuse(
                            span,
                            "an index that is an unbounded number",
                            "give it a small range",
                        ));
                    }
                    let mut p = path.clone();
                    p.guards.extend(g);
                    p.broken = !(0..i64::from(n)).contains(&l.constant);
                    let step = if wide { 2 } else { 1 };
                    let element = if p.broken {
                        0
                    } else {
                        l.constant as u16 * step
                    };
                    out.push((p, *r, access(base + element, &[])));
                }
            }
            Length::PerThread(of) => {
                for (g, v) in self.path_value(f, &path, index, span)? {
                    let mut p = path.clone();
                    p.guards.extend(g);
                    match v {
                        Val::Thread(Identity::Is(t)) if of == f => {
                            out.push((p, *r, access(base, &[t])))
                        }
                        Val::Thread(Identity::Is(_)) => {
                            return Err(refuse(
                                span,
                                format!(
                                    "`{}` is indexed by threads of another family",
                                    region.name
                                ),
                                format!(
                                    "its index is a thread of `{}`",
                                    self.program.families[of.index()].name
                                ),
                            ));
                        }
                        Val::Thread(Identity::None) => {
                            p.broken = true;
                            out.push((p, *r, access(base, &[ME])));
                        }
                        Val::Thread(Identity::Held { cell, none }) => {
                            let mut nobody = p.clone();
                            nobody
                                .guards
                                .push(equal(Term::Read(none.clone()), Term::Bool(true)));
                            nobody.broken = true;
                            out.push((nobody, *r, access(base, &[ME])));
                            for (q, t) in self.held(p, &cell, &none) {
                                out.push((q, *r, access(base, &[t])));
                            }
                        }
                        _ => {
                            return Err(refuse(
                                span,
                                format!("`{}` is indexed by a number", region.name),
                                "index it with `self` or a thread identifier",
                            ));
                        }
                    }
                }
            }
        }
        Ok(out)
    }

    pub(super) fn load(
        &mut self,
        f: FamilyId,
        path: Path,
        register: RegisterId,
        place: &Place,
        span: Span,
    ) -> Result<Vec<Path>, Refused> {
        let mut out = Vec::new();
        for (p, region, cell) in self.place(f, path, place, span)? {
            if p.broken {
                out.push(p);
                continue;
            }
            let written = p
                .writes
                .iter()
                .rev()
                .find(|(a, _)| *a == cell)
                .map(|(_, v)| v.clone());
            let v = match (written, self.variables.of(Variable::Region(region))) {
                (Some(v), _) => v,
                (None, Holds::Threads(_)) => {
                    let none = Access {
                        cell: cell.cell + 1,
                        ..cell.clone()
                    };
                    Val::Thread(Identity::Held { cell, none })
                }
                (None, Holds::Counter) => {
                    if p.counters.iter().any(|(r, _)| *r == region) {
                        return Err(refuse(
                            span,
                            "a counter is read after it was written in one step",
                            "use the register that was stored",
                        ));
                    }
                    Val::Counter { region, delta: 0 }
                }
                (None, _) => Val::Number(Linear::cell(cell)),
            };
            out.extend(self.assign(f, p, register, vec![(Vec::new(), v)], span)?);
        }
        Ok(out)
    }

    pub(super) fn store(
        &mut self,
        f: FamilyId,
        path: Path,
        place: &Place,
        value: &Expr<Local>,
        span: Span,
    ) -> Result<Vec<Path>, Refused> {
        let mut out = Vec::new();
        for (p, region, cell) in self.place(f, path, place, span)? {
            if p.broken {
                out.push(p);
                continue;
            }
            let holds = self.variables.of(Variable::Region(region)).clone();
            let ty = self.variables.type_of(Variable::Region(region));
            for (g, v) in self.path_value(f, &p, value, span)? {
                let mut p = p.clone();
                p.guards.extend(g);
                if holds == Holds::Counter {
                    out.extend(self.store_counter(f, p, region, v, span)?);
                    continue;
                }
                for (h, v) in self.fit(v, &holds, span)? {
                    for (range, v) in self.admit(ty, v, span)? {
                        let mut p = p.clone();
                        p.guards.extend(h.iter().cloned());
                        p.guards.extend(range);
                        match v {
                            Some(v) => {
                                p.writes.retain(|(a, _)| *a != cell);
                                p.writes.push((cell.clone(), v));
                            }
                            None => p.broken = true,
                        }
                        out.push(p);
                    }
                }
            }
        }
        Ok(out)
    }
}
