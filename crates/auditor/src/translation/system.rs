//! Formulas and transitions of the system, read in a related pair of states.

use super::super::symbols::Symbols;
use super::chain::Reached;
use super::table::{Table, code};
use super::{Held, Validator, Variable};
use wattle_logic::{Formula, Int, Term, and, eq, ge, iff, implies, le, lt, ne, not, or};
use wattle_model::array::{
    self, Access, Comparison, FenceKind, Literal, ThreadTerm, Transition, UpdateIndex,
};
use wattle_model::{FamilyId, Length, RegionId, RegisterId};

/// Why the system cannot be read.
pub type Unread = String;

/// What a cell of the system says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Location(FamilyId),
    Family,
    Broken,
    /// The variable (of an array, this element).
    Value(Variable, u32),
    /// Whether the variable names no thread.
    None(Variable, u32),
}

/// What a transition writes.
#[derive(Default)]
struct Updates {
    /// What is written, where, and the value.
    cells: Vec<(Says, Term, Seen)>,
    /// Elements of counters: the thread (none: every one), and the element.
    counters: Vec<(RegionId, Option<Term>, bool)>,
}

/// A term of the system.
#[derive(Clone, Debug)]
enum Seen {
    Number(Term),
    Truth(Formula),
    FamilyOf(Term),
    Family(u16),
    /// Any value of its type.
    Any,
}

/// A state of the system related to the table's, with threads for the variables in scope.
pub struct View<'r, 'v, 't> {
    pub v: &'r Validator<'v>,
    pub table: &'r mut Table<'t>,
    pub d: &'r mut Symbols,
    pub threads: Vec<Term>,
    /// Whether threads' views of cells are read.
    pub sees: bool,
}

impl View<'_, '_, '_> {
    pub fn says(&self, cell: u16) -> Result<Says, Unread> {
        let r = self.v.relation;
        if let Some(f) = r.locations.iter().position(|c| *c == cell) {
            return Ok(Says::Location(FamilyId::new(f)));
        }
        if r.family == Some(cell) {
            return Ok(Says::Family);
        }
        if r.broken == Some(cell) {
            return Ok(Says::Broken);
        }
        let of = |held: &Held, id: Variable, element: u32| match held {
            Held::Few { cell: c, .. }
            | Held::Number { cell: c, .. }
            | Held::Counter { cell: c } => (*c == cell).then_some(Says::Value(id, element)),
            Held::Thread { cell: c, .. } if *c == cell => Some(Says::Value(id, element)),
            Held::Thread { none, .. } => (*none == cell).then_some(Says::None(id, element)),
        };
        for (f, registers) in r.registers.iter().enumerate() {
            for (n, held) in registers.iter().enumerate() {
                let id = Variable::Register(FamilyId::new(f), RegisterId::new(n));
                if let Some(says) = of(held, id, 0) {
                    return Ok(says);
                }
            }
        }
        for (n, region) in r.regions.iter().enumerate() {
            for (e, held) in region.iter().enumerate() {
                let id = Variable::Region(RegionId::new(n));
                if let Some(says) = of(held, id, e as u32) {
                    return Ok(says);
                }
            }
        }
        let name = &self.v.system.cell(cell).name;
        Err(format!(
            "the cell `{name}` stands for nothing in the program"
        ))
    }

    pub fn thread(&self, t: ThreadTerm) -> Result<Term, Unread> {
        match t {
            ThreadTerm::Param(i) => {
                let known = self.threads.get(usize::from(i)).cloned();
                known.ok_or_else(|| "a thread without a name".into())
            }
            ThreadTerm::Constant(k) => Ok(Term::constant(i64::from(k) - 1)),
        }
    }

    /// The index in the program of what threads name.
    pub fn index(&self, id: Variable, element: u32, threads: &[Term]) -> Result<Term, Unread> {
        let family = match id {
            Variable::Register(f, _) => Some(f),
            Variable::Region(r) => match self.v.program.region(r).length {
                Length::PerThread(f) => Some(f),
                Length::Scalar | Length::Array(_) => None,
            },
        };
        match (family, threads) {
            (Some(f), [t]) => Ok(self.table.index(f, t)),
            (None, []) => Ok(Term::constant(i64::from(element))),
            _ => Err("a cell with another number of indexes".into()),
        }
    }

    fn read(&mut self, access: &Access) -> Result<Seen, Unread> {
        let threads = access.args.iter().map(|t| self.thread(*t));
        let threads = threads.collect::<Result<Vec<Term>, Unread>>()?;
        if let Some(reader) = access.reader {
            return self.seen_by(access.cell, &threads, reader);
        }
        Ok(match (self.says(access.cell)?, &threads[..]) {
            (Says::Location(f), [t]) => {
                let index = self.table.index(f, t);
                Seen::Number(self.table.location(self.d, f, &index))
            }
            (Says::Family, [t]) => Seen::FamilyOf(t.clone()),
            (Says::Broken, [_]) => Seen::Truth(Formula::False),
            (Says::Value(id, element), _) => match (self.v.held(id, element), &threads[..]) {
                (Held::Counter { .. }, [t]) => {
                    let element = self.table.element_of(self.d, self.v, id, t);
                    Seen::Truth(eq(element, 1))
                }
                _ => {
                    let index = self.index(id, element, &threads)?;
                    self.old(id, &index)?.0
                }
            },
            (Says::None(id, element), _) => {
                let index = self.index(id, element, &threads)?;
                let value = self.table.value(self.d, self.v, id, &index);
                Seen::Truth(eq(value, -1))
            }
            (Says::Location(_) | Says::Family | Says::Broken, _) => {
                return Err("a cell with another number of indexes".into());
            }
        })
    }

    /// What a thread sees of a cell. Only what must not be asks that.
    fn seen_by(&mut self, cell: u16, threads: &[Term], reader: ThreadTerm) -> Result<Seen, Unread> {
        let other = || Unread::from("another thread's view");
        if !self.sees {
            return Err(other());
        }
        let Says::Value(id @ Variable::Region(region), element) = self.says(cell)? else {
            return Err(other());
        };
        let reader = self.thread(reader)?;
        let index = self.index(id, element, threads)?;
        let seen = self.table.seen(self.d, self.v, region, &index, &reader);
        let seen = seen.ok_or_else(other)?;
        Ok(Seen::Number(match self.v.held(id, element) {
            Held::Few { values, .. } if values.iter().any(|c| c.number().is_none()) => {
                let place = (region, [index, reader]);
                (self.table).seen_constant(self.d, self.v, place, values, &seen)
            }
            Held::Few { .. } | Held::Number { .. } | Held::Thread { .. } | Held::Counter { .. } => {
                seen
            }
        }))
    }

    fn term(&mut self, term: &array::Term) -> Result<Seen, Unread> {
        Ok(match term {
            array::Term::Bool(b) => Seen::Truth((*b).into()),
            array::Term::Constructor(ty, k) => {
                let r = self.v.relation;
                let is = |cell: u16| self.v.system.cell(cell).ty == array::CellType::Declared(*ty);
                if *ty == r.constants.0 {
                    let constant = r.constants.1.get(usize::from(*k)).copied();
                    let constant = constant.ok_or("a constant without a meaning")?;
                    Seen::Number(code(self.v, constant))
                } else if r.locations.iter().any(|c| is(*c)) {
                    Seen::Number(Term::constant(i64::from(*k)))
                } else if r.family.is_some_and(is) {
                    Seen::Family(*k)
                } else {
                    return Err("a constant of another type".into());
                }
            }
            array::Term::Thread(t) => Seen::Number(self.thread(*t)?),
            array::Term::Read(a) => self.read(a)?,
            array::Term::Sum { parts, constant } => {
                let mut sum = Term::constant(*constant);
                for (k, a) in parts {
                    match self.read(a)? {
                        Seen::Number(t) => sum = sum + t.scaled(&Int::from(*k)),
                        Seen::Truth(_) | Seen::FamilyOf(_) | Seen::Family(_) | Seen::Any => {
                            return Err("a sum of what is no number".into());
                        }
                    }
                }
                Seen::Number(sum)
            }
        })
    }

    fn literal(&mut self, l: &Literal) -> Result<Formula, Unread> {
        let (left, right) = (self.term(&l.left)?, self.term(&l.right)?);
        Ok(match (left, l.op, right) {
            (Seen::Number(a), Comparison::Eq, Seen::Number(b)) => eq(a, b),
            (Seen::Number(a), Comparison::Ne, Seen::Number(b)) => ne(a, b),
            (Seen::Number(a), Comparison::Lt, Seen::Number(b)) => lt(a, b),
            (Seen::Number(a), Comparison::Le, Seen::Number(b)) => le(a, b),
            (Seen::Truth(f), Comparison::Eq, Seen::Truth(g)) => iff(&f, &g),
            (Seen::Truth(f), Comparison::Ne, Seen::Truth(g)) => not(&iff(&f, &g)),
            (Seen::FamilyOf(t), op @ (Comparison::Eq | Comparison::Ne), Seen::Family(f)) => {
                let f = FamilyId::new(usize::from(f));
                let index = self.table.index(f, &t);
                let is = self.table.inside(f, &index);
                if op == Comparison::Eq { is } else { not(&is) }
            }
            _ => return Err("a comparison of different things".into()),
        })
    }

    /// The formula; a `forall_other` as its claim about one thread of which nothing is known, so that
    /// only the formula's *negation* may be asked for.
    pub fn formula(&mut self, f: &array::Formula) -> Result<Formula, Unread> {
        Ok(match f {
            array::Formula::And(parts) => {
                let mut all = Vec::new();
                for p in parts {
                    let p = self.formula(p)?;
                    if p == Formula::False {
                        return Ok(Formula::False);
                    }
                    all.push(p);
                }
                and(all)
            }
            array::Formula::Or(parts) => {
                let all = parts.iter().map(|p| self.formula(p));
                or(all.collect::<Result<Vec<_>, _>>()?)
            }
            array::Formula::Atom(l) => self.literal(l)?,
            array::Formula::ForallOther { body, .. } => {
                let j = Term::from(self.d.fresh());
                let mut excused = vec![lt(j.clone(), 0), ge(j.clone(), self.table.total.clone())];
                excused.extend(self.threads.iter().map(|t| eq(j.clone(), t.clone())));
                self.threads.push(j);
                let body = self.formula(body);
                self.threads.pop();
                excused.push(body?);
                or(excused)
            }
        })
    }

    /// The threads in scope are different threads.
    pub fn different(&self) -> Formula {
        let mut all = Vec::new();
        for (i, t) in self.threads.iter().enumerate() {
            all.push(ge(t.clone(), 0));
            all.push(lt(t.clone(), self.table.total.clone()));
            all.extend(self.threads[..i].iter().map(|u| ne(t.clone(), u.clone())));
        }
        and(all)
    }

    /// A transition's new values.
    fn updates(&mut self, t: &Transition) -> Result<Updates, Unread> {
        let mut all = Updates::default();
        for u in &t.updates {
            let [branch] = &u.branches[..] else {
                return Err("an update by cases".into());
            };
            if !branch.condition.is_true() {
                return Err("an update by cases".into());
            }
            let says = self.says(u.cell)?;
            let value = match &branch.value {
                array::Value::Term(t) => self.term(t)?,
                array::Value::Any => Seen::Any,
            };
            if let Says::Value(id @ Variable::Region(r), 0) = says
                && let Held::Counter { .. } = self.v.held(id, 0)
            {
                let truth = match value {
                    Seen::Truth(Formula::True) => true,
                    Seen::Truth(Formula::False) => false,
                    Seen::Truth(_)
                    | Seen::Number(_)
                    | Seen::FamilyOf(_)
                    | Seen::Family(_)
                    | Seen::Any => {
                        return Err("an element of a counter that is not known".into());
                    }
                };
                let thread = match &u.index[..] {
                    [UpdateIndex::At(t)] => Some(self.thread(*t)?),
                    [UpdateIndex::Each(_)] => None,
                    _ => return Err("a cell with another number of indexes".into()),
                };
                all.counters.push((r, thread, truth));
                continue;
            }
            let mut threads = Vec::new();
            for i in &u.index {
                match i {
                    UpdateIndex::At(t) => threads.push(self.thread(*t)?),
                    UpdateIndex::Each(_) => return Err("an update of every thread".into()),
                }
            }
            let index = match (says, &threads[..]) {
                (Says::Location(f), [t]) => self.table.index(f, t),
                (Says::Value(id, element) | Says::None(id, element), _) => {
                    self.index(id, element, &threads)?
                }
                (Says::Broken, [t]) => t.clone(),
                _ => return Err("an update of what never changes".into()),
            };
            all.cells.push((says, index, value));
        }
        Ok(all)
    }

    /// The value in the program and those of its cells are related.
    fn related(
        &self,
        held: &Held,
        value: &Term,
        cell: &Seen,
        none: &Seen,
    ) -> Result<Formula, Unread> {
        let allowed = self.table.allowed(held, value);
        let same = match (held, cell, none) {
            (Held::Few { values, .. }, Seen::Number(t), _) => {
                let is = |c| and([eq(t.clone(), code(self.v, c)), self.table.is(c, value)]);
                or(values.iter().map(|c| is(*c)))
            }
            (Held::Number { .. }, Seen::Number(t), _) => eq(value.clone(), t.clone()),
            (Held::Few { .. } | Held::Number { .. }, Seen::Any, _) => Formula::True,
            (Held::Thread { family, .. }, cell, none @ (Seen::Truth(_) | Seen::Any)) => {
                let number = self.table.number(*family, value);
                let same = match cell {
                    Seen::Number(t) => eq(number, t.clone()),
                    Seen::Any => Formula::True,
                    Seen::Truth(_) | Seen::FamilyOf(_) | Seen::Family(_) => Formula::False,
                };
                let nobody = eq(value.clone(), -1);
                match none {
                    Seen::Truth(none) => or([
                        and([nobody.clone(), none.clone()]),
                        and([not(&nobody), not(none), same]),
                    ]),
                    // Whichever it is to be.
                    Seen::Any | Seen::Number(_) | Seen::FamilyOf(_) | Seen::Family(_) => {
                        or([nobody, same])
                    }
                }
            }
            _ => return Err("a value of another kind".into()),
        };
        Ok(and([allowed, same]))
    }

    /// Whether the first of the threads acts, and there is one for each parameter.
    fn fits(&self, t: &Transition) -> bool {
        t.actor == Some(0) && t.params.len() == self.threads.len()
    }

    /// Whether the transition breaks the acting thread.
    pub fn breaks(&mut self, t: &Transition) -> Result<bool, Unread> {
        let actor = self.threads[0].clone();
        let broken = |(says, index, value): &(Says, Term, Seen)| {
            *says == Says::Broken && *index == actor && matches!(value, Seen::Truth(Formula::True))
        };
        Ok(self.fits(t) && self.updates(t)?.cells.iter().any(broken))
    }

    /// When the transition leads from the state to one that is related to where the chain leads.
    pub fn leads(
        &mut self,
        t: &Transition,
        family: FamilyId,
        me: &Term,
        before: &[Term],
        end: &Reached,
    ) -> Result<Formula, Unread> {
        if !self.fits(t) || !self.ordered(t, end) {
            return Ok(Formula::False);
        }
        let Updates {
            cells: updates,
            counters,
        } = self.updates(t)?;
        let start = Term::constant(end.start.index() as i64);
        let mut all = Vec::new();
        let mut place = start;
        for (says, index, value) in &updates {
            match (says, value) {
                (Says::Location(f), Seen::Number(l)) if *f == family && index == me => {
                    place = l.clone();
                }
                (Says::Value(Variable::Register(f, _), _), _)
                | (Says::None(Variable::Register(f, _), _), _)
                    if *f == family && index == me => {}
                (Says::Value(Variable::Region(_), _) | Says::None(Variable::Region(_), _), _) => {}
                _ => return Ok(Formula::False),
            }
        }
        all.push(eq(place, end.location.index() as i64));
        for (r, after) in end.registers.iter().enumerate() {
            let id = Variable::Register(family, RegisterId::new(r));
            let held = self.v.held(id, 0);
            all.push(
                self.v
                    .within(family, end.location, RegisterId::new(r), after),
            );
            let written = |says: Says| updates.iter().rev().find(|(s, ..)| *s == says);
            let (cell, none) = (written(Says::Value(id, 0)), written(Says::None(id, 0)));
            if cell.is_none() && none.is_none() && *after == before[r] {
                continue;
            }
            let cell = match cell {
                Some((_, _, v)) => v.clone(),
                None => self.old(id, me)?.0,
            };
            let none = match none {
                Some((_, _, v)) => v.clone(),
                None => self.old(id, me)?.1,
            };
            all.push(self.related(held, after, &cell, &none)?);
        }
        all.push(match end.atomic {
            true => self.memory(&updates, end)?,
            false => self.entry(&updates, &counters, end)?,
        });
        if end.atomic {
            all.push(self.counted(&counters, end)?);
        }
        Ok(and(all))
    }

    /// What the system's cells of a variable hold before: the value's and the flag's.
    fn old(&mut self, id: Variable, index: &Term) -> Result<(Seen, Seen), Unread> {
        let value = self.table.value(self.d, self.v, id, index);
        let element = self.table.element(id, index);
        let cell = match self.v.held(id, element) {
            Held::Few { values, .. } if values.iter().all(|c| c.number().is_some()) => {
                value.clone()
            }
            Held::Few { values, .. } => self.table.constant(self.d, self.v, id, index, values),
            Held::Number { .. } => value.clone(),
            Held::Thread { family, .. } => self.table.cell(self.d, self.v, id, index, *family),
            Held::Counter { .. } => return Err("a counter as a whole".into()),
        };
        Ok((Seen::Number(cell), Seen::Truth(eq(value, -1))))
    }

    /// Whether the transition treats the buffer as the chain does.
    fn ordered(&self, t: &Transition, end: &Reached) -> bool {
        let system = self.v.system;
        let direct = system.is_atomic(t);
        let empty = direct || t.fence == Some(FenceKind::Full);
        let fence = match (t.fence, end.atomic) {
            // In an empty buffer there is nothing to order.
            (_, true) => true,
            (Some(FenceKind::Store), false) => end.fenced,
            (Some(FenceKind::Full) | None, false) => !end.fenced,
        };
        let writes = system.writes_weak(t);
        (!empty || end.needs_empty) && fence && (!writes || direct == end.atomic)
    }

    /// A buffered store: the transition writes this cell and no other.
    fn entry(
        &mut self,
        updates: &[(Says, Term, Seen)],
        counters: &[(RegionId, Option<Term>, bool)],
        end: &Reached,
    ) -> Result<Formula, Unread> {
        let region = |s: &Says| match s {
            Says::Value(Variable::Region(r), e) | Says::None(Variable::Region(r), e) => {
                Some((*r, *e))
            }
            Says::Value(Variable::Register(..), _)
            | Says::None(Variable::Register(..), _)
            | Says::Location(_)
            | Says::Family
            | Says::Broken => None,
        };
        let weak: Vec<_> = updates
            .iter()
            .filter_map(|(s, i, v)| Some((region(s)?, s, i, v)))
            .collect();
        let (r, index, value) = match &end.writes[..] {
            [] => return Ok(Formula::from(weak.is_empty() && counters.is_empty())),
            [one] => one,
            _ => return Err("two stores in one chain".into()),
        };
        let id = Variable::Region(*r);
        if let Held::Counter { .. } = self.v.held(id, 0) {
            // Only as a whole: one element that changes says nothing of what a buffer's value is.
            return Ok(match counters {
                [(of, None, truth)] if of == r && weak.is_empty() => {
                    eq(value.clone(), self.all_or_none(*truth))
                }
                _ => Formula::False,
            });
        }
        if !counters.is_empty() {
            return Ok(Formula::False);
        }
        let element = self.table.element(id, index);
        let mut all = Vec::new();
        for ((of, e), _, i, _) in &weak {
            if (*of, *e) != (*r, element) {
                return Ok(Formula::False);
            }
            all.push(eq((*i).clone(), index.clone()));
        }
        let find = |says: Says| weak.iter().find(|w| *w.1 == says).map(|w| w.3.clone());
        let cell = find(Says::Value(id, element));
        let none = find(Says::None(id, element));
        let held = self.v.held(id, element);
        let (cell, none) = match (held, cell, none) {
            (Held::Few { .. } | Held::Number { .. }, Some(cell), None) => {
                (cell, Seen::Truth(Formula::False))
            }
            // Nobody has no number; whoever has one has both.
            (Held::Thread { .. }, None, Some(none @ Seen::Truth(Formula::True))) => {
                (Seen::Any, none)
            }
            (Held::Thread { .. }, Some(cell), Some(none)) => (cell, none),
            _ => return Ok(Formula::False),
        };
        all.push(self.related(held, value, &cell, &none)?);
        Ok(and(all))
    }

    fn all_or_none(&self, truth: bool) -> Term {
        match truth {
            true => self.table.total.clone(),
            false => Term::constant(0),
        }
    }

    /// Counters after an atomic chain: each is as many threads as have a true element then.
    fn counted(
        &mut self,
        counters: &[(RegionId, Option<Term>, bool)],
        end: &Reached,
    ) -> Result<Formula, Unread> {
        let mut all = Vec::new();
        for r in 0..self.v.program.regions.len() {
            let (r, id) = (RegionId::new(r), Variable::Region(RegionId::new(r)));
            let Some(Held::Counter { .. }) = self.v.relation.regions[r.index()].first() else {
                continue;
            };
            let written = end.writes.iter().rev().find(|(s, ..)| *s == r);
            let own: Vec<_> = counters.iter().filter(|(s, ..)| *s == r).collect();
            if written.is_none() && own.is_empty() {
                continue;
            }
            let old = self.table.value(self.d, self.v, id, &Term::constant(0));
            let after = written.map_or_else(|| old.clone(), |(_, _, v)| v.clone());
            all.push(match &own[..] {
                [] => eq(after, old),
                [(_, None, truth)] => eq(after, self.all_or_none(*truth)),
                [(_, Some(t), truth)] => {
                    let element = self.table.element_of(self.d, self.v, id, t);
                    let same = eq(element, i64::from(*truth));
                    let more = if *truth {
                        old.clone() + 1
                    } else {
                        old.clone() - 1
                    };
                    or([
                        and([same.clone(), eq(after.clone(), old)]),
                        and([not(&same), eq(after, more)]),
                    ])
                }
                _ => return Err("several elements of a counter".into()),
            });
        }
        Ok(and(all))
    }

    /// Memory after an atomic chain: every cell that the chain or the transition writes.
    fn memory(&mut self, updates: &[(Says, Term, Seen)], end: &Reached) -> Result<Formula, Unread> {
        let mut touched: Vec<(RegionId, u32, Term)> = Vec::new();
        let mut add = |r: RegionId, e: u32, i: &Term| {
            if !touched.iter().any(|(s, f, j)| (*s, *f) == (r, e) && j == i) {
                touched.push((r, e, i.clone()));
            }
        };
        let counter = |r: RegionId| {
            let held = self.v.relation.regions[r.index()].first();
            matches!(held, Some(Held::Counter { .. }))
        };
        for (r, i, _) in end.writes.iter().filter(|(r, ..)| !counter(*r)) {
            add(*r, self.table.element(Variable::Region(*r), i), i);
        }
        for (s, i, _) in updates {
            match s {
                Says::Value(Variable::Region(r), e) | Says::None(Variable::Region(r), e) => {
                    add(*r, *e, i);
                }
                Says::Value(Variable::Register(..), _)
                | Says::None(Variable::Register(..), _)
                | Says::Location(_)
                | Says::Family
                | Says::Broken => {}
            }
        }
        let mut all = Vec::new();
        for (r, element, index) in touched {
            let id = Variable::Region(r);
            let (old_cell, old_none) = self.old(id, &index)?;
            let old = self.table.value(self.d, self.v, id, &index);
            let writes = end.writes.iter().filter(|(s, ..)| *s == r);
            let writes: Vec<_> = writes.map(|(_, i, v)| (i.clone(), v.clone())).collect();
            let of = |says: Says| {
                let own = updates.iter().filter(|(s, ..)| *s == says);
                own.map(|(_, i, v)| (i.clone(), v.clone()))
                    .collect::<Vec<_>>()
            };
            let values = newest(&index, writes, old);
            let cells = newest(&index, of(Says::Value(id, element)), old_cell);
            let nones = newest(&index, of(Says::None(id, element)), old_none);
            let held = self.v.held(id, element);
            for (c1, value) in &values {
                for (c2, cell) in &cells {
                    for (c3, none) in &nones {
                        let when = and([c1.clone(), c2.clone(), c3.clone()]);
                        if when != Formula::False {
                            let same = self.related(held, value, cell, none)?;
                            all.push(implies(&when, &same));
                        }
                    }
                }
            }
        }
        Ok(and(all))
    }
}

/// What an index holds after writes, by cases.
fn newest<V>(index: &Term, writes: Vec<(Term, V)>, old: V) -> Vec<(Formula, V)> {
    let mut cases = Vec::new();
    let mut none_newer = Formula::True;
    for (i, v) in writes.into_iter().rev() {
        let here = eq(i, index.clone());
        cases.push((and([none_newer.clone(), here.clone()]), v));
        none_newer = and([none_newer, not(&here)]);
    }
    cases.push((none_newer, old));
    cases
}
