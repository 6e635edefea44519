//! Formulas and transitions of the system, read in a related pair of states.

use super::super::symbols::{Symbols, Value};
use super::chain::Reached;
use super::table::Table;
use super::{Constant, Held, Relation, Validator, Variable};
use wattle_logic::{Formula, Int, Term, and, eq, ge, iff, implies, le, lt, ne, not, or};
use wattle_model::array::{
    self, Access, CellType, Comparison, FenceKind, Literal, ThreadTerm, Transition, UpdateIndex,
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

/// What a transition writes. A value that is none is any of its type.
#[derive(Default)]
struct Updates {
    /// What is written, where, and the value.
    cells: Vec<(Says, Term, Option<Term>)>,
    /// Elements of counters: the thread (none: every one), and the element.
    counters: Vec<(RegionId, Option<Term>, bool)>,
}

/// A state of the system related to the table's, with threads for the variables in scope. What cells hold are
/// numbers: locations and families theirs, constants a code, false and true 0 and 1.
pub struct Related<'r, 'v, 't> {
    pub v: &'r Validator<'v>,
    pub table: &'r mut Table<'t>,
    pub d: &'r mut Symbols,
    pub threads: Vec<Term>,
    /// Whether threads' views of cells are read.
    pub sees: bool,
    /// Whether the first of the threads is broken.
    pub broken: bool,
}

impl Says {
    /// The element of memory that it is about.
    fn region(&self) -> Option<(RegionId, u32)> {
        match self {
            Says::Value(Variable::Region(r), e) | Says::None(Variable::Region(r), e) => {
                Some((*r, *e))
            }
            Says::Value(Variable::Register(..), _)
            | Says::None(Variable::Register(..), _)
            | Says::Location(_)
            | Says::Family
            | Says::Broken => None,
        }
    }
}

/// Every cell that stands for something, and what it says.
pub fn meanings(r: &Relation) -> Vec<(u16, Says)> {
    let locations = r.locations.iter().enumerate();
    let mut all: Vec<(u16, Says)> = locations
        .map(|(f, c)| (*c, Says::Location(FamilyId::new(f))))
        .collect();
    all.extend(r.family.map(|c| (c, Says::Family)));
    all.extend(r.broken.map(|c| (c, Says::Broken)));
    let mut add = |held: &Held, id: Variable, e: usize| {
        let says = [Says::Value(id, e as u32), Says::None(id, e as u32)];
        all.extend(held.cells().into_iter().zip(says));
    };
    for (f, registers) in r.registers.iter().enumerate() {
        for (n, held) in registers.iter().enumerate() {
            let id = Variable::Register(FamilyId::new(f), RegisterId::new(n));
            add(held, id, 0);
        }
    }
    for (n, region) in r.regions.iter().enumerate() {
        for (e, held) in region.iter().enumerate() {
            add(held, Variable::Region(RegionId::new(n)), e);
        }
    }
    all
}

impl<'r, 'v, 't> Related<'r, 'v, 't> {
    pub fn new(
        v: &'r Validator<'v>,
        table: &'r mut Table<'t>,
        d: &'r mut Symbols,
        threads: Vec<Term>,
    ) -> Self {
        Related {
            v,
            table,
            d,
            threads,
            sees: false,
            broken: false,
        }
    }

    pub fn says(&self, cell: u16) -> Result<Says, Unread> {
        let found = self.v.meanings.iter().find(|(c, _)| *c == cell);
        found.map(|(_, says)| *says).ok_or_else(|| {
            let name = &self.v.system.cell(cell).name;
            format!("the cell `{name}` stands for nothing in the program")
        })
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

    /// What is true, as a number.
    fn truth(&mut self, f: Formula) -> Term {
        self.d.term(Value::Truth(f))
    }

    fn read(&mut self, access: &Access) -> Result<Term, Unread> {
        let threads = access.args.iter().map(|t| self.thread(*t));
        let threads = threads.collect::<Result<Vec<Term>, Unread>>()?;
        if let Some(reader) = access.reader {
            return self.seen_by(access.cell, &threads, reader);
        }
        Ok(match (self.says(access.cell)?, &threads[..]) {
            (Says::Location(f), [t]) => {
                let index = self.table.index(f, t);
                self.table.location(self.d, f, &index)
            }
            (Says::Family, [t]) => self.table.family(self.d, t),
            (Says::Broken, [t]) => i64::from(self.broken && *t == self.threads[0]).into(),
            (Says::Value(id, element), _) => match (self.table.held(id, element), &threads[..]) {
                (Held::Counter { .. }, [t]) => self.table.element_of(self.d, id, t),
                _ => {
                    let index = self.index(id, element, &threads)?;
                    self.old(id, &index)?.0
                }
            },
            (Says::None(id, element), _) => {
                let index = self.index(id, element, &threads)?;
                self.old(id, &index)?.1
            }
            (Says::Location(_) | Says::Family | Says::Broken, _) => {
                return Err("a cell with another number of indexes".into());
            }
        })
    }

    /// What a thread sees of a cell. Only what must not be asks that.
    fn seen_by(&mut self, cell: u16, threads: &[Term], reader: ThreadTerm) -> Result<Term, Unread> {
        let other = || Unread::from("another thread's view");
        if !self.sees {
            return Err(other());
        }
        let Says::Value(id @ Variable::Region(region), element) = self.says(cell)? else {
            return Err(other());
        };
        let reader = self.thread(reader)?;
        let index = self.index(id, element, threads)?;
        let seen = self.table.seen_cell(self.d, region, &index, &reader);
        seen.ok_or_else(other)
    }

    fn term(&mut self, term: &array::Term) -> Result<Term, Unread> {
        Ok(match term {
            array::Term::Bool(b) => i64::from(*b).into(),
            array::Term::Constructor(ty, k) => {
                let (constants, meant) = &self.v.relation.constants;
                if ty == constants {
                    let constant = meant.get(usize::from(*k)).copied();
                    self.table
                        .code(constant.ok_or("a constant without a meaning")?)
                } else {
                    i64::from(*k).into()
                }
            }
            array::Term::Thread(t) => self.thread(*t)?,
            array::Term::Read(a) => self.read(a)?,
            array::Term::Sum { parts, constant } => {
                let mut sum = Term::constant(*constant);
                for (k, a) in parts {
                    sum = sum + self.read(a)?.scaled(&Int::from(*k));
                }
                sum
            }
        })
    }

    /// The type of the term.
    fn kind(&self, term: &array::Term) -> Option<CellType> {
        let cell = |a: &Access| self.v.system.cell(a.cell).ty;
        Some(match term {
            array::Term::Bool(_) => CellType::Bool,
            array::Term::Constructor(ty, _) => CellType::Declared(*ty),
            array::Term::Thread(_) => CellType::Thread,
            array::Term::Read(a) => cell(a),
            array::Term::Sum { parts, .. } => {
                let all = parts.iter().all(|(_, a)| cell(a) == CellType::Int);
                return all.then_some(CellType::Int);
            }
        })
    }

    fn literal(&mut self, l: &Literal) -> Result<Formula, Unread> {
        let kind = self.kind(&l.left);
        let comparable = match kind {
            Some(CellType::Int | CellType::Thread) => true,
            // A code says which it is, not where it stands among the others.
            Some(CellType::Bool | CellType::Declared(_)) => {
                matches!(l.op, Comparison::Eq | Comparison::Ne)
            }
            Some(CellType::Real) | None => false,
        };
        if !comparable || kind != self.kind(&l.right) {
            return Err("a comparison of different things".into());
        }
        let (a, b) = (self.term(&l.left)?, self.term(&l.right)?);
        // One condition and its contrary: two numbers would be two conditions.
        if kind == Some(CellType::Bool) {
            let same = iff(&eq(a, 1), &eq(b, 1));
            return Ok(if l.op == Comparison::Eq {
                same
            } else {
                not(&same)
            });
        }
        Ok(match l.op {
            Comparison::Eq => eq(a, b),
            Comparison::Ne => ne(a, b),
            Comparison::Lt => lt(a, b),
            Comparison::Le => le(a, b),
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
            array::Formula::Others { all, body, .. } if *all && !body.speaks_of_others() => {
                let j = Term::from(self.d.fresh());
                let mut excused = vec![lt(j.clone(), 0), ge(j.clone(), self.table.total.clone())];
                excused.extend(self.threads.iter().map(|t| eq(j.clone(), t.clone())));
                self.threads.push(j);
                let body = self.formula(body);
                self.threads.pop();
                excused.push(body?);
                or(excused)
            }
            array::Formula::Others { .. } => return Err("several threads at once".into()),
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
            let branch = match &u.branches[..] {
                [branch] if branch.condition.is_true() => branch,
                _ => return Err("an update by cases".into()),
            };
            let says = self.says(u.cell)?;
            let value = match &branch.value {
                array::Value::Any => None,
                array::Value::Term(t) if self.kind(t) == Some(self.v.system.cell(u.cell).ty) => {
                    Some(self.term(t)?)
                }
                array::Value::Term(_) => return Err("a value of another kind".into()),
            };
            let mut threads = Vec::new();
            for i in &u.index {
                match i {
                    UpdateIndex::At(t) => threads.push(Some(self.thread(*t)?)),
                    UpdateIndex::Each(_) => threads.push(None),
                }
            }
            if let Says::Value(id @ Variable::Region(r), 0) = says
                && let Held::Counter { .. } = self.table.held(id, 0)
            {
                let [thread] = &threads[..] else {
                    return Err("a cell with another number of indexes".into());
                };
                let value = value.as_ref().and_then(|v| v.as_constant()?.to_i64());
                let value = value.ok_or("an element of a counter that is not known")?;
                all.counters.push((r, thread.clone(), value != 0));
                continue;
            }
            let threads: Option<Vec<Term>> = threads.into_iter().collect();
            let threads = threads.ok_or("an update of every thread")?;
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
    fn related(&self, held: &Held, value: &Term, [cell, none]: [&Option<Term>; 2]) -> Formula {
        let table = &*self.table;
        let cell_is = |t: Term| cell.as_ref().map_or(Formula::True, |c| eq(c.clone(), t));
        let same = match held {
            Held::Few { values, .. } => {
                let is = |c: &Constant| and([cell_is(table.code(*c)), table.is(*c, value)]);
                or(values.iter().map(is))
            }
            Held::Number { .. } => cell_is(value.clone()),
            Held::Thread { family, .. } => {
                let (nobody, same) = (eq(value.clone(), -1), cell_is(table.number(*family, value)));
                let flag = |n| {
                    none.as_ref()
                        .map_or(Formula::True, |none| eq(none.clone(), n))
                };
                or([
                    and([nobody.clone(), flag(1)]),
                    and([not(&nobody), flag(0), same]),
                ])
            }
            // Counters are compared as a whole.
            Held::Counter { .. } => Formula::False,
        };
        and([table.allowed(held, value), same])
    }

    /// Whether the first of the threads acts, and there is one for each parameter.
    fn fits(&self, t: &Transition) -> bool {
        t.actor == Some(0) && t.params.len() == self.threads.len()
    }

    /// Whether the transition breaks the acting thread.
    pub fn breaks(&mut self, t: &Transition) -> Result<bool, Unread> {
        let broken = (
            Says::Broken,
            self.threads[0].clone(),
            Some(Term::constant(1)),
        );
        Ok(self.fits(t) && self.updates(t)?.cells.contains(&broken))
    }

    /// When the transition is enabled and leads from the state to one that is related to where the chain leads.
    pub fn leads(
        &mut self,
        t: &Transition,
        family: FamilyId,
        me: &Term,
        end: &Reached,
    ) -> Result<Formula, Unread> {
        if !self.fits(t) || !self.ordered(t, end) {
            return Ok(Formula::False);
        }
        let Updates { cells, counters } = self.updates(t)?;
        let mut place = Term::constant(end.start.index() as i64);
        for (says, index, value) in &cells {
            match (says, value) {
                (Says::Location(f), Some(l)) if *f == family && index == me => place = l.clone(),
                (Says::Value(id, _) | Says::None(id, _), _) => match id {
                    Variable::Register(f, _) if *f != family || index != me => {
                        return Ok(Formula::False);
                    }
                    Variable::Register(..) | Variable::Region(_) => {}
                },
                (Says::Location(_) | Says::Family | Says::Broken, _) => return Ok(Formula::False),
            }
        }
        let mut all = vec![eq(place, end.location.index() as i64)];
        for (r, after) in end.registers.iter().enumerate() {
            let r = RegisterId::new(r);
            all.push(self.v.within(family, end.location, r, after));
            let writes = vec![(me.clone(), after.clone())];
            all.push(self.agree((Variable::Register(family, r), 0, me), writes, &cells)?);
        }
        match end.atomic {
            true => {
                self.memory(&cells, end, &mut all)?;
                self.counted(&counters, end, &mut all)?;
            }
            false => all.push(self.entry(&cells, &counters, end)?),
        }
        let leads = and(all);
        if leads == Formula::False {
            return Ok(leads);
        }
        Ok(and([leads, self.different(), self.formula(&t.guard)?]))
    }

    /// What the system's cells of a variable hold before: the value's and the flag's.
    fn old(&mut self, id: Variable, index: &Term) -> Result<(Term, Term), Unread> {
        let value = self.table.value(self.d, id, index);
        let cell = self.table.cell(self.d, id, index);
        let cell = cell.ok_or("a counter as a whole")?;
        let none = match self.table.held(id, self.table.element(id, index)) {
            Held::Thread { .. } => self.truth(eq(value, -1)),
            Held::Few { .. } | Held::Number { .. } | Held::Counter { .. } => Term::constant(0),
        };
        Ok((cell, none))
    }

    /// A variable and its cells are related after all writes, by cases of where these go.
    fn agree(
        &mut self,
        (id, element, index): (Variable, u32, &Term),
        writes: Vec<(Term, Term)>,
        updates: &[(Says, Term, Option<Term>)],
    ) -> Result<Formula, Unread> {
        let value = self.table.value(self.d, id, index);
        let of = |says: Says| {
            let own = updates.iter().filter(|(s, ..)| *s == says);
            own.map(|(_, i, v)| (i.clone(), v.clone()))
                .collect::<Vec<_>>()
        };
        let (cells, nones) = (of(Says::Value(id, element)), of(Says::None(id, element)));
        if cells.is_empty() && nones.is_empty() && writes.iter().all(|(_, v)| *v == value) {
            return Ok(Formula::True);
        }
        let (cell, none) = self.old(id, index)?;
        let held = self.table.held(id, element);
        let values = newest(index, writes, value);
        let (cells, nones) = (
            newest(index, cells, Some(cell)),
            newest(index, nones, Some(none)),
        );
        let mut all = Vec::new();
        for (c1, value) in &values {
            for (c2, cell) in &cells {
                for (c3, none) in &nones {
                    let when = and([c1.clone(), c2.clone(), c3.clone()]);
                    if when != Formula::False {
                        all.push(implies(&when, &self.related(held, value, [cell, none])));
                    }
                }
            }
        }
        Ok(and(all))
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
        updates: &[(Says, Term, Option<Term>)],
        counters: &[(RegionId, Option<Term>, bool)],
        end: &Reached,
    ) -> Result<Formula, Unread> {
        let weak = updates.iter().filter(|(s, ..)| s.region().is_some());
        let weak: Vec<_> = weak.collect();
        let (r, index, value) = match &end.writes[..] {
            [] => return Ok(Formula::from(weak.is_empty() && counters.is_empty())),
            [one] => one,
            _ => return Err("two stores in one chain".into()),
        };
        let id = Variable::Region(*r);
        let element = self.table.element(id, index);
        let held = self.table.held(id, element);
        if let Held::Counter { .. } = held {
            // Only as a whole: one element that changes says nothing of what a buffer's value is.
            return Ok(match counters {
                [(of, None, truth)] if of == r && weak.is_empty() => {
                    eq(value.clone(), self.all_or_none(*truth))
                }
                _ => Formula::False,
            });
        }
        let elsewhere = weak.iter().any(|(s, ..)| s.region() != Some((*r, element)));
        if elsewhere || !counters.is_empty() {
            return Ok(Formula::False);
        }
        let find = |says: Says| weak.iter().rfind(|w| w.0 == says).map(|w| &w.2);
        let found = [Says::Value(id, element), Says::None(id, element)].map(find);
        let [cell, none] = match (held, found) {
            (Held::Few { .. } | Held::Number { .. }, [Some(cell), None]) => [cell, &None],
            // Nobody has no number; whoever has one has both.
            (Held::Thread { .. }, [None, Some(none)]) if *none == Some(Term::constant(1)) => {
                [&None, none]
            }
            (Held::Thread { .. }, [Some(cell), Some(none)]) => [cell, none],
            _ => return Ok(Formula::False),
        };
        let there = weak.iter().map(|(_, i, _)| eq(i.clone(), index.clone()));
        Ok(and(there.chain([self.related(held, value, [cell, none])])))
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
        all: &mut Vec<Formula>,
    ) -> Result<(), Unread> {
        for (r, held) in self.v.relation.regions.iter().enumerate() {
            let (r, id) = (RegionId::new(r), Variable::Region(RegionId::new(r)));
            let written = end.writes.iter().rev().find(|(s, ..)| *s == r);
            let own: Vec<_> = counters.iter().filter(|(s, ..)| *s == r).collect();
            let counter = matches!(held.first(), Some(Held::Counter { .. }));
            if !counter || written.is_none() && own.is_empty() {
                continue;
            }
            let old = self.table.value(self.d, id, &Term::constant(0));
            let after = written.map_or_else(|| old.clone(), |(_, _, v)| v.clone());
            all.push(match &own[..] {
                [] => eq(after, old),
                [(_, None, truth)] => eq(after, self.all_or_none(*truth)),
                // One more or less, if the element was another.
                [(_, Some(t), truth)] => {
                    let element = self.table.element_of(self.d, id, t);
                    let same = eq(element, i64::from(*truth));
                    let other = eq(after.clone(), &old + if *truth { 1 } else { -1 });
                    or([
                        and([same.clone(), eq(after, old)]),
                        and([not(&same), other]),
                    ])
                }
                _ => return Err("several elements of a counter".into()),
            });
        }
        Ok(())
    }

    /// Memory after an atomic chain: every cell that the chain or the transition writes.
    fn memory(
        &mut self,
        updates: &[(Says, Term, Option<Term>)],
        end: &Reached,
        all: &mut Vec<Formula>,
    ) -> Result<(), Unread> {
        let mut touched: Vec<(RegionId, u32, Term)> = Vec::new();
        let written = end.writes.iter().map(|(r, i, _)| {
            let element = self.table.element(Variable::Region(*r), i);
            (*r, element, i.clone())
        });
        let updated = (updates.iter()).filter_map(|(s, i, _)| {
            let (r, element) = s.region()?;
            Some((r, element, i.clone()))
        });
        for place in written.chain(updated) {
            let held = self.table.held(Variable::Region(place.0), place.1);
            if !matches!(held, Held::Counter { .. }) && !touched.contains(&place) {
                touched.push(place);
            }
        }
        for (r, element, index) in touched {
            let writes = end.writes.iter().filter(|(s, ..)| *s == r);
            let writes = writes.map(|(_, i, v)| (i.clone(), v.clone())).collect();
            let place = (Variable::Region(r), element, &index);
            all.push(self.agree(place, writes, updates)?);
        }
        Ok(())
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
