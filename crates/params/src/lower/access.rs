//! Memory and registers along a path: which element a place names, and what a variable of a type
//! stores. What has no meaning breaks the thread.

use super::amount::{Amount, Share, fits};
use super::expr::{Alternatives, Identity, Linear, Val};
use super::paths::{ME, Path};
use super::variables::{Holds, Variable};
use super::{Lowering, Refused, access, equal, refuse};
use std::collections::BTreeSet;
use wattle_model::array::{Access, Comparison, Formula, Literal, Term};
use wattle_model::program::Local;
use wattle_model::{Expr, FamilyId, Length, Place, Region, RegionId, RegisterId, Span, Type};

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
                    match v.filter(|v| foreseen(&holds, v)) {
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
        let whole = |v: Val| Ok(vec![(Vec::new(), Some(v))]);
        let narrow = match ty {
            Type::Int | Type::Thread(_) => false,
            Type::Range { .. } => true,
            Type::Wrap { bits, signed } => !fits(bits, signed),
        };
        let l = match (ty, v) {
            (Type::Int | Type::Thread(_), v) => return whole(v),
            (Type::Range { .. } | Type::Wrap { .. }, Val::Number(l)) => l,
            (Type::Range { .. } | Type::Wrap { .. }, Val::Share(s)) if !s.counts() => {
                return Err(refuse(
                    span,
                    "what may have lost count of threads is kept in a variable in which it may not fit",
                    "declare the variable without a range",
                ));
            }
            (Type::Range { .. }, Val::Share(s)) => {
                // It depends on how many threads there are.
                return Ok(vec![(Vec::new(), Some(Val::Share(s))), (Vec::new(), None)]);
            }
            (Type::Range { .. } | Type::Wrap { .. }, Val::Share(_) | Val::Counter { .. })
                if narrow =>
            {
                return Err(refuse(
                    span,
                    "a number of threads is kept in a variable in which it may not fit",
                    "declare the variable without a range",
                ));
            }
            (Type::Range { .. } | Type::Wrap { .. }, Val::Thread(_)) => {
                return Err(refuse(
                    span,
                    "a thread identifier is kept in a variable in which it may not fit",
                    "declare the variable with the family as its type",
                ));
            }
            (Type::Range { .. } | Type::Wrap { .. }, v @ (Val::Share(_) | Val::Counter { .. })) => {
                return whole(v);
            }
        };
        let fixed = |c: Amount| c.admitted(ty).map(Val::from);
        if l.parts.is_empty() {
            return Ok(vec![(Vec::new(), fixed(Amount::Number(l.constant)))]);
        }
        let v = Val::Number(l.clone());
        if let Some(a) = l.as_cell().filter(|a| self.few.contains_key(&a.cell)) {
            let same = |c: &Amount| c.number().is_some() && c.admitted(ty) == Some(*c);
            let values = &self.few[&a.cell];
            if values.iter().all(same) {
                return whole(v);
            }
            let mut cases = Vec::new();
            for c in values {
                let here = self.is_value(a, *c);
                for (mut g, v) in self.admit(ty, (*c).into(), span)? {
                    g.push(here.clone());
                    cases.push((g, v));
                }
            }
            return Ok(cases);
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
            (Holds::Numbers, Val::Share(_) | Val::Counter { .. }) => Err(among_numbers(span)),
            (Holds::Numbers, Val::Number(l)) => {
                match l.as_cell().filter(|a| self.few.contains_key(&a.cell)) {
                    None => Ok(vec![(Vec::new(), Val::Number(l))]),
                    Some(a) => {
                        let mut cases = Vec::new();
                        for c in &self.few[&a.cell] {
                            let Amount::Number(n) = c else {
                                return Err(among_numbers(span));
                            };
                            let number = Val::Number(Linear::constant(*n));
                            cases.push((vec![self.is_value(a, *c)], number));
                        }
                        Ok(cases)
                    }
                }
            }
            (Holds::Few(_) | Holds::Numbers | Holds::Counter, Val::Thread(_)) => Err(refuse(
                span,
                "a thread identifier is used as a number",
                "declare the variable with the family as its type",
            )),
            (Holds::Few(values), Val::Number(l)) if loses_count(values) && l.parts.is_empty() => {
                let all = Share::of(l.constant).into_iter();
                Ok(all.map(|a| (Vec::new(), a.into())).collect())
            }
            (
                Holds::Few(_) | Holds::Counter,
                v @ (Val::Number(_) | Val::Share(_) | Val::Counter { .. }),
            ) => Ok(vec![(Vec::new(), v)]),
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
                    let Val::Number(l) = v else {
                        return Err(among_numbers(span));
                    };
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
                if self.family_of(f, index).is_some_and(|g| g != of) {
                    return Err(self.other_family(region, of, span));
                }
                for (g, v) in self.path_value(f, &path, index, span)? {
                    let mut p = path.clone();
                    p.guards.extend(g);
                    match v {
                        Val::Thread(Identity::Is(t)) => {
                            out.push((p, *r, access(base, &[t])));
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
                        Val::Number(_) | Val::Share(_) | Val::Counter { .. } => {
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

    /// The family whose threads the expression names, if it names some.
    pub(super) fn family_of(&self, f: FamilyId, e: &Expr<Local>) -> Option<FamilyId> {
        let mut found = None;
        e.for_each_atom(&mut |l| {
            let of = match l {
                Local::SelfIndex => Some(f),
                Local::Register(r) => match self.variables.of(Variable::Register(f, *r)) {
                    Holds::Threads(g) => Some(*g),
                    Holds::Few(_) | Holds::Numbers | Holds::Counter => None,
                },
                Local::Count(_) | Local::AddressOf(_) => None,
            };
            found = found.or(of);
        });
        found
    }

    fn other_family(&self, region: &Region, of: FamilyId, span: Span) -> Refused {
        refuse(
            span,
            format!("`{}` is indexed by threads of another family", region.name),
            format!(
                "its index is a thread of `{}`",
                self.program.family(of).name
            ),
        )
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
                (None, Holds::Few(_) | Holds::Numbers) => Val::Number(Linear::cell(cell)),
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
                        match v.filter(|v| foreseen(&holds, v)) {
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

/// Whether the variable may have lost count of threads: then every number but 0 is an amount of them.
fn loses_count(values: &BTreeSet<Amount>) -> bool {
    values.iter().any(|v| match v {
        Amount::Threads(share) => !share.counts(),
        Amount::Number(_) => false,
    })
}

/// Whether a finite variable has the value. Where it has not, which only counts of threads lead to, the
/// system goes no further: what happens then is not known.
fn foreseen(holds: &Holds, v: &Val) -> bool {
    let Holds::Few(set) = holds else { return true };
    match v {
        Val::Number(l) if l.parts.is_empty() => set.contains(&Amount::Number(l.constant)),
        Val::Share(s) => set.contains(&Amount::Threads(*s)),
        Val::Number(_) | Val::Thread(_) | Val::Counter { .. } => true,
    }
}

fn among_numbers(span: Span) -> Refused {
    refuse(
        span,
        "a number of threads is stored among other numbers",
        "count with `! as counter` or `= count(…)`, or fix the number of threads",
    )
}
