//! The variables that stand for a related pair of states, and what the relation says of them.
//!
//! A variable for each thing that was asked about: a register or a cell by the index of its thread or
//! element, a thread's location, and what a cell holds in the system where the program's value does not
//! say it: a thread (anything, where the program has none), an amount of threads, an element of a
//! counter. Two indexes that turn out equal name one thing. There are at most 2³¹ − 1 threads.
//!
//! A counter is as many threads as have a true element. Of that only this is used: with one true element
//! it is at least 1, with two at least 2; if it is at least 1 some thread has a true element, if at least
//! 2 another has one too; and the same for false elements and what is left of all threads.

use super::super::symbols::Symbols;
use super::{Constant, Held, Validator, Variable};
use wattle_logic::{Formula, Int, Term, Var, and, eq, ge, implies, le, lt, ne, or};
use wattle_model::{Count, Expr, FamilyId, Init, Length, Program, RegionId, Type};

pub struct Table<'a> {
    program: &'a Program,
    /// How many threads each family has, and the number of its first thread in the system.
    pub counts: Vec<Term>,
    pub bases: Vec<Term>,
    pub total: Term,
    facts: Vec<Formula>,
    values: Vec<(Variable, Term, Var)>,
    cells: Vec<(Variable, Term, Var)>,
    /// What threads, by their number, see of a region's elements.
    seen: Vec<(RegionId, [Term; 2], Var)>,
    /// What the system's threads see there, as [`code`]s, where it is an amount of threads.
    seen_cells: Vec<(RegionId, [Term; 2], Var)>,
    /// Elements of counters, by the number of their thread; and which of these have a name of their own.
    elements: Vec<(Variable, Term, Var)>,
    witnesses: Vec<(Variable, Term)>,
    locations: Vec<(FamilyId, Term, Var)>,
    /// Thread numbers that have a name.
    pub named: Vec<Term>,
}

impl<'a> Table<'a> {
    pub fn new(program: &'a Program, d: &mut Symbols) -> Self {
        let mut facts = Vec::new();
        let (mut counts, mut bases) = (Vec::new(), Vec::new());
        let mut total = Term::constant(0);
        for family in &program.families {
            let count = match family.count {
                Count::One => Term::constant(1),
                Count::Fixed(n) => Term::constant(i64::from(n)),
                Count::Any => {
                    let n = d.fresh();
                    facts.push(and([ge(n, 0), le(n, MOST_THREADS)]));
                    n.into()
                }
            };
            bases.push(total.clone());
            total = total + &count;
            counts.push(count);
        }
        // A register that begins as a certain thread: where there is not that thread, but one with the
        // register, there is no instance.
        for (family, count) in program.families.iter().zip(&counts) {
            for r in &family.registers {
                if let (Type::Thread(f), Init::All(Expr::Const(c))) = (r.ty, &r.init) {
                    let there = lt(Term::constant(*c), counts[f.index()].clone());
                    facts.push(implies(&ge(count.clone(), 1), &there));
                }
            }
        }
        Table {
            program,
            counts,
            bases,
            total,
            facts,
            values: Vec::new(),
            cells: Vec::new(),
            seen: Vec::new(),
            seen_cells: Vec::new(),
            elements: Vec::new(),
            witnesses: Vec::new(),
            locations: Vec::new(),
            named: Vec::new(),
        }
    }

    pub fn facts(&self) -> &[Formula] {
        &self.facts
    }

    pub fn know(&mut self, fact: Formula) {
        self.facts.push(fact);
    }

    /// A thread of the family, as its index.
    pub fn thread(&mut self, d: &mut Symbols, family: FamilyId) -> Term {
        let index = Term::from(d.fresh());
        self.know(self.inside(family, &index));
        self.name(self.number(family, &index));
        index
    }

    /// The index is one of the family's.
    pub fn inside(&self, family: FamilyId, index: &Term) -> Formula {
        let count = self.counts[family.index()].clone();
        and([ge(index.clone(), 0), lt(index.clone(), count)])
    }

    /// The system's number of a family's thread, and back.
    pub fn number(&self, family: FamilyId, index: &Term) -> Term {
        &self.bases[family.index()] + index
    }

    pub fn index(&self, family: FamilyId, number: &Term) -> Term {
        number - &self.bases[family.index()]
    }

    pub fn name(&mut self, number: Term) {
        if !self.named.contains(&number) {
            self.named.push(number);
        }
    }

    /// What the variable holds at the index (of its thread, or of its element).
    pub fn value(
        &mut self,
        d: &mut Symbols,
        v: &Validator<'_>,
        id: Variable,
        index: &Term,
    ) -> Term {
        let known = self.values.iter().find(|(i, t, _)| *i == id && t == index);
        if let Some((_, _, var)) = known {
            return (*var).into();
        }
        let var = d.fresh();
        let held = v.held(id, self.element(id, index));
        let fact = self.allowed(held, &var.into());
        self.know(fact);
        if let Some((lo, hi)) = v.type_of(id).bounds() {
            self.know(and([ge(var, lo), le(var, hi)]));
            d.range(var, lo, hi);
        }
        match held {
            Held::Few { values, .. } => {
                let numbers = values.iter().map(|c| c.number());
                if let Some(numbers) = numbers.collect::<Option<Vec<i64>>>() {
                    d.few(var, numbers);
                }
            }
            Held::Thread { family, .. } => self.name(self.number(*family, &var.into())),
            Held::Number {
                bounds: (Some(lo), Some(hi)),
                ..
            } => d.range(var, *lo, *hi),
            Held::Number { .. } | Held::Counter { .. } => {}
        }
        let same = same(&self.values, id, index, var);
        self.facts.extend(same);
        self.values.push((id, index.clone(), var));
        if let Held::Counter { .. } = held {
            self.witnesses_of(d, v, id, &var.into());
        }
        var.into()
    }

    /// What a thread sees of a region's element: a pending store of its own or memory, and either way a value
    /// that the relation allows. None for cells that hold threads, and where a counter is its elements.
    pub fn seen(
        &mut self,
        d: &mut Symbols,
        v: &Validator<'_>,
        region: RegionId,
        index: &Term,
        reader: &Term,
    ) -> Option<Term> {
        let at = [index.clone(), reader.clone()];
        let known = self.seen.iter().find(|(r, a, _)| *r == region && *a == at);
        if let Some((_, _, var)) = known {
            return Some((*var).into());
        }
        let id = Variable::Region(region);
        let held = v.held(id, self.element(id, index));
        let numbers = match held {
            Held::Few { values, .. } => {
                (values.iter().map(|c| c.number())).collect::<Option<Vec<i64>>>()
            }
            Held::Number { .. } => None,
            Held::Thread { .. } | Held::Counter { .. } => return None,
        };
        let var = d.fresh();
        let fact = self.allowed(held, &var.into());
        self.know(fact);
        if let Some((lo, hi)) = v.type_of(id).bounds() {
            self.know(and([ge(var, lo), le(var, hi)]));
            d.range(var, lo, hi);
        }
        if let Some(numbers) = numbers {
            d.few(var, numbers);
        }
        let same = seen_alike(&self.seen, region, &at, var);
        self.facts.extend(same);
        self.seen.push((region, at, var));
        Some(var.into())
    }

    /// What the system's thread sees there: one of the amounts that the value it stands for is.
    pub fn seen_constant(
        &mut self,
        d: &mut Symbols,
        v: &Validator<'_>,
        (region, at): (RegionId, [Term; 2]),
        values: &[Constant],
        value: &Term,
    ) -> Term {
        let mut known = self.seen_cells.iter();
        if let Some((_, _, var)) = known.find(|(r, a, _)| *r == region && *a == at) {
            return (*var).into();
        }
        let var = d.fresh();
        let one = values.iter();
        let one = or(one.map(|c| and([eq(var, code(v, *c)), self.is(*c, value)])));
        self.know(one);
        let same = seen_alike(&self.seen_cells, region, &at, var);
        self.facts.extend(same);
        self.seen_cells.push((region, at, var));
        var.into()
    }

    /// Threads with a true element, as far as the counter says that there are, and with a false one.
    fn witnesses_of(&mut self, d: &mut Symbols, v: &Validator<'_>, id: Variable, value: &Term) {
        for truth in [true, false] {
            let many = match truth {
                true => value.clone(),
                false => &self.total - value,
            };
            let mut before: Option<Term> = None;
            for least in [1, 2] {
                let thread = Term::from(d.fresh());
                self.witnesses.push((id, thread.clone()));
                let element = self.element_of(d, v, id, &thread);
                let is = eq(element, i64::from(truth));
                let other = before.map_or(Formula::True, |t| ne(t, thread.clone()));
                let there = and([self.is_thread(&thread), is, other]);
                self.know(implies(&ge(many.clone(), least), &there));
                self.name(thread.clone());
                before = Some(thread);
            }
        }
    }

    fn is_thread(&self, number: &Term) -> Formula {
        and([
            ge(number.clone(), 0),
            lt(number.clone(), self.total.clone()),
        ])
    }

    /// The element of a counter at a thread's number: 0 or 1.
    pub fn element_of(
        &mut self,
        d: &mut Symbols,
        v: &Validator<'_>,
        id: Variable,
        thread: &Term,
    ) -> Term {
        let value = self.value(d, v, id, &Term::constant(0));
        let known = self.elements.iter();
        let mut known = known.filter(|(i, t, _)| *i == id && t == thread);
        if let Some((_, _, var)) = known.next() {
            return (*var).into();
        }
        let var = d.fresh();
        d.few(var, vec![0, 1]);
        self.know(and([ge(var, 0), le(var, 1)]));
        let left = &self.total - &value;
        let here = self.is_thread(thread);
        let one = |truth: i64, many: &Term| {
            let is = and([here.clone(), eq(var, truth)]);
            implies(&is, &ge(many.clone(), 1))
        };
        let mut facts = vec![one(1, &value), one(0, &left)];
        // Two threads of which nothing is known but that they are some need not be compared.
        let named = |t: &Term| self.named.contains(t) || self.witnesses.contains(&(id, t.clone()));
        let others = self.elements.iter().filter(|(i, ..)| *i == id);
        for (_, t, w) in others.filter(|(_, t, _)| named(t) || named(thread)) {
            let different = and([
                here.clone(),
                self.is_thread(t),
                ne(t.clone(), thread.clone()),
            ]);
            for (truth, many) in [(1, &value), (0, &left)] {
                let both = and([different.clone(), eq(var, truth), eq(*w, truth)]);
                facts.push(implies(&both, &ge(many.clone(), 2)));
            }
            facts.push(implies(&eq(t.clone(), thread.clone()), &eq(var, *w)));
        }
        self.facts.extend(facts);
        self.elements.push((id, thread.clone(), var));
        var.into()
    }

    /// Which element of its cells an index means.
    pub fn element(&self, id: Variable, index: &Term) -> u32 {
        let array = match id {
            Variable::Region(r) => matches!(self.program.region(r).length, Length::Array(_)),
            Variable::Register(..) => false,
        };
        let constant = index.as_constant().and_then(|i| i.to_i64());
        match (array, constant) {
            (true, Some(i)) => u32::try_from(i).unwrap_or(0),
            _ => 0,
        }
    }

    /// What the relation says of a value.
    pub fn allowed(&self, held: &Held, value: &Term) -> Formula {
        match held {
            Held::Few { values, .. } => or(values.iter().map(|c| self.is(*c, value))),
            Held::Number {
                bounds: (lo, hi), ..
            } => {
                let lo = lo.map(|lo| ge(value.clone(), lo));
                let hi = hi.map(|hi| le(value.clone(), hi));
                and(lo.into_iter().chain(hi))
            }
            Held::Thread { family, .. } => or([eq(value.clone(), -1), self.inside(*family, value)]),
            Held::Counter { .. } => {
                and([ge(value.clone(), 0), le(value.clone(), self.total.clone())])
            }
        }
    }

    /// The value is what the constant says.
    pub fn is(&self, constant: Constant, value: &Term) -> Formula {
        match constant {
            Constant::Number(n) => eq(value.clone(), n),
            Constant::LessThanNone => lt(value.clone(), 0),
            Constant::MoreThanAll => lt(self.total.clone(), value.clone()),
            Constant::SomeThreads => {
                and([ge(value.clone(), 1), lt(value.clone(), self.total.clone())])
            }
            Constant::AllThreads => and([
                eq(value.clone(), self.total.clone()),
                ge(self.total.clone(), 1),
            ]),
        }
    }

    /// What the system's cell of a variable with amounts of threads holds, as a [`code`].
    pub fn constant(
        &mut self,
        d: &mut Symbols,
        v: &Validator<'_>,
        id: Variable,
        index: &Term,
        values: &[Constant],
    ) -> Term {
        let known = self.cells.iter().find(|(i, t, _)| *i == id && t == index);
        if let Some((_, _, var)) = known {
            return (*var).into();
        }
        let value = self.value(d, v, id, index);
        let var = d.fresh();
        let all = values
            .iter()
            .map(|c| and([eq(var, code(v, *c)), self.is(*c, &value)]));
        let one = or(all);
        self.know(one);
        let same = same(&self.cells, id, index, var);
        self.facts.extend(same);
        self.cells.push((id, index.clone(), var));
        var.into()
    }

    /// What the system's cell for a thread holds: that thread's number, or anything for none.
    pub fn cell(
        &mut self,
        d: &mut Symbols,
        v: &Validator<'_>,
        id: Variable,
        index: &Term,
        family: FamilyId,
    ) -> Term {
        let known = self.cells.iter().find(|(i, t, _)| *i == id && t == index);
        if let Some((_, _, var)) = known {
            return (*var).into();
        }
        let value = self.value(d, v, id, index);
        let var = d.fresh();
        let number = self.number(family, &value);
        self.know(implies(&ge(value, 0), &eq(var, number)));
        let same = same(&self.cells, id, index, var);
        self.facts.extend(same);
        self.cells.push((id, index.clone(), var));
        var.into()
    }

    /// Where a thread is.
    pub fn location(&mut self, d: &mut Symbols, family: FamilyId, index: &Term) -> Term {
        let known = self.locations.iter();
        let mut known = known.filter(|(f, t, _)| *f == family && t == index);
        if let Some((_, _, var)) = known.next() {
            return (*var).into();
        }
        let var = d.fresh();
        let most = self.program.family(family).locations.len() as i64;
        self.know(and([ge(var, 0), lt(var, most)]));
        let same = same(&self.locations, family, index, var);
        self.facts.extend(same);
        self.locations.push((family, index.clone(), var));
        var.into()
    }
}

/// Nobody has more threads.
const MOST_THREADS: i64 = (1 << 31) - 1;

/// A number for each constant: its own, and for amounts of threads numbers that no constant has.
pub fn code(v: &Validator<'_>, constant: Constant) -> Term {
    let numbers = v.relation.constants.1.iter().filter_map(|c| c.number());
    let above = |n: i64| Int::from(i128::from(numbers.clone().max().unwrap_or(0)) + i128::from(n));
    Term::constant(match constant {
        Constant::Number(n) => Int::from(n),
        Constant::SomeThreads => above(1),
        Constant::AllThreads => above(2),
        Constant::LessThanNone => above(3),
        Constant::MoreThanAll => above(4),
    })
}

/// A thread sees one thing in one place.
fn seen_alike(
    known: &[(RegionId, [Term; 2], Var)],
    region: RegionId,
    [index, reader]: &[Term; 2],
    var: Var,
) -> Vec<Formula> {
    let others = known.iter().filter(|(r, ..)| *r == region);
    others
        .map(|(_, [i, by], w)| {
            let same = and([eq(i.clone(), index.clone()), eq(by.clone(), reader.clone())]);
            implies(&same, &eq(var, *w))
        })
        .collect()
}

/// Equal indexes name one thing.
fn same<I: PartialEq>(known: &[(I, Term, Var)], id: I, index: &Term, var: Var) -> Vec<Formula> {
    let others = known.iter().filter(|(i, ..)| *i == id);
    others
        .map(|(_, t, w)| implies(&eq(index.clone(), t.clone()), &eq(var, *w)))
        .filter(|f| *f != Formula::True)
        .collect()
}
