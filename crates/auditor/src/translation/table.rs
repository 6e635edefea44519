//! The variables that stand for a related pair of states, and what the relation says of them.
//!
//! A variable for each thing that was asked about: a register or a cell by the index of its thread or
//! element, a thread's location, and what a cell for threads holds in the system (anything, where the
//! program has none). Two indexes that turn out equal name one thing.

use super::super::symbols::Symbols;
use super::{Held, Validator, Variable};
use wattle_logic::{Formula, Term, Var, and, eq, ge, implies, le, lt, or};
use wattle_model::{Count, FamilyId, Length, Program};

pub struct Table<'a> {
    program: &'a Program,
    /// How many threads each family has, and the number of its first thread in the system.
    pub counts: Vec<Term>,
    pub bases: Vec<Term>,
    pub total: Term,
    facts: Vec<Formula>,
    values: Vec<(Variable, Term, Var)>,
    cells: Vec<(Variable, Term, Var)>,
    locations: Vec<(FamilyId, Term, Var)>,
    /// Thread numbers that have a name.
    named: Vec<Term>,
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
                    facts.push(ge(n, 0));
                    n.into()
                }
            };
            bases.push(total.clone());
            total = total + &count;
            counts.push(count);
        }
        Table {
            program,
            counts,
            bases,
            total,
            facts,
            values: Vec::new(),
            cells: Vec::new(),
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

    /// Threads that may be meant where none is named: those met, and the ends of families.
    pub fn candidates(&self) -> Vec<Term> {
        let mut all = self.named.clone();
        for (base, count) in self.bases.iter().zip(&self.counts) {
            all.push(base.clone());
            all.push(base + count - 1);
        }
        let next: Vec<Term> = self.named.iter().map(|n| n + 1).collect();
        all.extend(next);
        let mut found: Vec<Term> = Vec::new();
        for t in all {
            if !found.contains(&t) {
                found.push(t);
            }
        }
        found
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
            Held::Few { values, .. } => d.few(var, values.clone()),
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
            Held::Few { values, .. } => or(values.iter().map(|c| eq(value.clone(), *c))),
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

/// Equal indexes name one thing.
fn same<I: PartialEq>(known: &[(I, Term, Var)], id: I, index: &Term, var: Var) -> Vec<Formula> {
    let others = known.iter().filter(|(i, ..)| *i == id);
    others
        .map(|(_, t, w)| implies(&eq(index.clone(), t.clone()), &eq(var, *w)))
        .filter(|f| *f != Formula::True)
        .collect()
}
