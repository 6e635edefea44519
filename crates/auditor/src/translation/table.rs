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

use super::super::symbols::{Symbols, Value};
use super::{Constant, Held, Relation, Variable, between, held};
use wattle_logic::{Formula, Int, Term, Var, and, eq, ge, iff, implies, le, lt, ne, or};
use wattle_model::{Count, Domain, Expr, FamilyId, Init, Length, Program, RegionId, Type};

/// What a variable stands for, at some index.
#[derive(Clone, Copy, PartialEq)]
enum Thing {
    Value(Variable),
    /// What the system's cell holds.
    Cell(Variable),
    /// What a thread, by its number, sees of an element; and what the system's thread does.
    Seen(RegionId),
    SeenCell(RegionId),
    /// An element of a counter, by the number of its thread.
    Element(Variable),
    /// The location of a thread of the family.
    Location(FamilyId),
    /// The family of a thread, by its number.
    Family,
}

pub struct Table<'a> {
    program: &'a Program,
    relation: &'a Relation,
    /// How many threads each family has, and the number of its first thread in the system.
    pub counts: Vec<Term>,
    pub bases: Vec<Term>,
    pub total: Term,
    facts: Vec<Formula>,
    entries: Vec<(Thing, Vec<Term>, Var)>,
    /// Threads whose elements of a counter have a name of their own.
    witnesses: Vec<(Variable, Term)>,
    /// Thread numbers that have a name.
    pub named: Vec<Term>,
}

impl<'a> Table<'a> {
    pub fn new(program: &'a Program, relation: &'a Relation, d: &mut Symbols) -> Self {
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
            relation,
            counts,
            bases,
            total,
            facts,
            entries: Vec::new(),
            witnesses: Vec::new(),
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

    /// The thing's variable, and whether it is new. Equal indexes name one thing.
    fn entry(&mut self, d: &mut Symbols, thing: Thing, at: &[&Term]) -> (Var, bool) {
        let like = self.entries.iter().filter(|(t, ..)| *t == thing);
        let equal = |index: &[Term]| {
            let both = index.iter().zip(at);
            and(both.map(|(a, b)| eq(a.clone(), Term::clone(b))))
        };
        let mut same = Vec::new();
        for (_, index, var) in like {
            match equal(index) {
                Formula::True => return (*var, false),
                Formula::False => {}
                _ if !self.compared(thing, &index[0], at[0]) => {}
                when @ (Formula::Atom(_) | Formula::And(_) | Formula::Or(_)) => {
                    same.push((when, *var))
                }
            }
        }
        let new = d.fresh();
        self.facts
            .extend(same.iter().map(|(when, var)| implies(when, &eq(new, *var))));
        let at = at.iter().copied().cloned().collect();
        self.entries.push((thing, at, new));
        (new, true)
    }

    /// Two elements of a counter of whose threads nothing is known but that they are some need not be compared.
    fn compared(&self, thing: Thing, a: &Term, b: &Term) -> bool {
        let named = |id: Variable, t: &Term| {
            self.named.contains(t) || self.witnesses.contains(&(id, t.clone()))
        };
        match thing {
            Thing::Element(id) => named(id, a) || named(id, b),
            Thing::Value(_) | Thing::Cell(_) | Thing::Seen(_) => true,
            Thing::SeenCell(_) | Thing::Location(_) | Thing::Family => true,
        }
    }

    /// What the relation and its type say of a variable's value.
    fn typed(&mut self, d: &mut Symbols, id: Variable, held: &Held, var: Var) {
        let fact = self.allowed(held, &var.into());
        self.know(fact);
        if let Some((lo, hi)) = self.type_of(id).bounds() {
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
            Held::Number {
                bounds: (Some(lo), Some(hi)),
                ..
            } => d.range(var, *lo, *hi),
            Held::Number { .. } | Held::Thread { .. } | Held::Counter { .. } => {}
        }
    }

    /// What the variable holds at the index (of its thread, or of its element).
    pub fn value(&mut self, d: &mut Symbols, id: Variable, index: &Term) -> Term {
        let (var, new) = self.entry(d, Thing::Value(id), &[index]);
        if new {
            let held = self.held(id, self.element(id, index));
            self.typed(d, id, held, var);
            match held {
                Held::Thread { family, .. } => self.name(self.number(*family, &var.into())),
                Held::Counter { .. } => self.witnesses_of(d, id, &var.into()),
                Held::Few { .. } | Held::Number { .. } => {}
            }
        }
        var.into()
    }

    /// What a thread sees of a region's element: a pending store of its own or memory, and either way a value
    /// that the relation allows. None for cells that hold threads, and where a counter is its elements.
    pub fn seen(
        &mut self,
        d: &mut Symbols,
        region: RegionId,
        index: &Term,
        reader: &Term,
    ) -> Option<Term> {
        let id = Variable::Region(region);
        let held = self.held(id, self.element(id, index));
        if matches!(held, Held::Thread { .. } | Held::Counter { .. }) {
            return None;
        }
        let (var, new) = self.entry(d, Thing::Seen(region), &[index, reader]);
        if new {
            self.typed(d, id, held, var);
        }
        Some(var.into())
    }

    /// Threads with a true element, as far as the counter says that there are, and with a false one.
    fn witnesses_of(&mut self, d: &mut Symbols, id: Variable, value: &Term) {
        for truth in [true, false] {
            let many = match truth {
                true => value.clone(),
                false => &self.total - value,
            };
            let mut before: Option<Term> = None;
            for least in [1, 2] {
                let thread = Term::from(d.fresh());
                self.witnesses.push((id, thread.clone()));
                let element = self.element_of(d, id, &thread);
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
    pub fn element_of(&mut self, d: &mut Symbols, id: Variable, thread: &Term) -> Term {
        let value = self.value(d, id, &Term::constant(0));
        let others = self.entries.clone();
        let (var, new) = self.entry(d, Thing::Element(id), &[thread]);
        if !new {
            return var.into();
        }
        d.few(var, vec![0, 1]);
        self.know(and([ge(var, 0), le(var, 1)]));
        let left = &self.total - &value;
        let here = self.is_thread(thread);
        let one = |truth: i64, many: &Term| {
            let is = and([here.clone(), eq(var, truth)]);
            implies(&is, &ge(many.clone(), 1))
        };
        let mut facts = vec![one(1, &value), one(0, &left)];
        let others = others.iter().filter(|(i, ..)| *i == Thing::Element(id));
        let others = others.map(|(_, t, w)| (&t[0], w));
        for (t, w) in others.filter(|(t, _)| self.compared(Thing::Element(id), t, thread)) {
            let different = and([
                here.clone(),
                self.is_thread(t),
                ne(t.clone(), thread.clone()),
            ]);
            for (truth, many) in [(1, &value), (0, &left)] {
                let both = and([different.clone(), eq(var, truth), eq(*w, truth)]);
                facts.push(implies(&both, &ge(many.clone(), 2)));
            }
        }
        self.facts.extend(facts);
        var.into()
    }

    pub fn type_of(&self, variable: Variable) -> Type {
        match variable {
            Variable::Register(f, r) => self.program.family(f).registers[r.index()].ty,
            Variable::Region(r) => self.program.region(r).ty,
        }
    }

    pub fn held(&self, variable: Variable, element: u32) -> &'a Held {
        held(self.relation, variable, element)
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

    /// The element of a region that an index names, if there is one.
    pub fn position(&mut self, d: &mut Symbols, region: RegionId, index: &Value) -> Option<Term> {
        let length = match self.program.region(region).length {
            Length::Scalar => 1,
            Length::Array(n) => n,
            Length::PerThread(f) => {
                let term = d.term(index.clone());
                let inside = d.decide(self.inside(f, &term));
                inside.then(|| self.name(self.number(f, &term)))?;
                return Some(term);
            }
        };
        d.position(index, length).map(|i| i64::from(i).into())
    }

    /// What the relation says of a value.
    pub fn allowed(&self, held: &Held, value: &Term) -> Formula {
        match held {
            Held::Few { values, .. } => or(values.iter().map(|c| self.is(*c, value))),
            Held::Number { bounds, .. } => between(*bounds, value),
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

    /// A number for each constant: its own, and for amounts of threads numbers that no constant has.
    pub fn code(&self, constant: Constant) -> Term {
        let numbers = self.relation.constants.1.iter().filter_map(|c| c.number());
        let above = i128::from(numbers.max().unwrap_or(0));
        Term::constant(match constant {
            Constant::Number(n) => Int::from(n),
            Constant::SomeThreads => Int::from(above + 1),
            Constant::AllThreads => Int::from(above + 2),
            Constant::LessThanNone => Int::from(above + 3),
            Constant::MoreThanAll => Int::from(above + 4),
        })
    }

    /// What the system's cell of a variable holds: the value, or a [`code`] for it, or a thread's number, which for
    /// none is anything. A counter has a cell for each thread instead.
    pub fn cell(&mut self, d: &mut Symbols, id: Variable, index: &Term) -> Option<Term> {
        let value = self.value(d, id, index);
        self.stood_for(d, (id, Thing::Cell(id)), &[index], value)
    }

    /// The same of what the system's thread sees there.
    pub fn seen_cell(
        &mut self,
        d: &mut Symbols,
        region: RegionId,
        index: &Term,
        reader: &Term,
    ) -> Option<Term> {
        let value = self.seen(d, region, index, reader)?;
        let thing = (Variable::Region(region), Thing::SeenCell(region));
        self.stood_for(d, thing, &[index, reader], value)
    }

    fn stood_for(
        &mut self,
        d: &mut Symbols,
        (id, thing): (Variable, Thing),
        at: &[&Term],
        value: Term,
    ) -> Option<Term> {
        let held = self.held(id, self.element(id, at[0]));
        if is_plain(held) {
            return Some(value);
        }
        let (var, new) = self.entry(d, thing, at);
        let fact = match held {
            Held::Number { .. } | Held::Counter { .. } => return None,
            Held::Few { values, .. } => {
                let is = |c: &Constant| and([eq(var, self.code(*c)), self.is(*c, &value)]);
                or(values.iter().map(is))
            }
            Held::Thread { family, .. } => {
                let number = self.number(*family, &value);
                implies(&ge(value, 0), &eq(var, number))
            }
        };
        self.facts.extend(new.then_some(fact));
        Some(var.into())
    }

    /// Where a thread is.
    pub fn location(&mut self, d: &mut Symbols, family: FamilyId, index: &Term) -> Term {
        let (var, new) = self.entry(d, Thing::Location(family), &[index]);
        if new {
            let most = self.program.family(family).locations.len() as i64;
            self.know(and([ge(var, 0), lt(var, most)]));
        }
        var.into()
    }

    /// Which family a thread is of, by its number.
    pub fn family(&mut self, d: &mut Symbols, number: &Term) -> Term {
        let (var, new) = self.entry(d, Thing::Family, &[number]);
        for f in (0..self.counts.len()).filter(|_| new) {
            let family = FamilyId::new(f);
            let inside = self.inside(family, &self.index(family, number));
            self.know(iff(&eq(var, f as i64), &inside));
        }
        var.into()
    }
}

/// Nobody has more threads.
const MOST_THREADS: i64 = (1 << 31) - 1;

/// Whether the cell holds the number that the program has.
fn is_plain(held: &Held) -> bool {
    match held {
        Held::Few { values, .. } => values.iter().all(|c| c.number().is_some()),
        Held::Number { .. } => true,
        Held::Thread { .. } | Held::Counter { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cell that holds one constant holds no other.
    #[test]
    fn no_two_constants_have_the_same_code() {
        let program = wattle_syntax::wtl::parse("shared x; thread t { x = 1; }").program;
        let program = program.expect("it parses");
        for largest in -3..4 {
            let mut all: Vec<Constant> = (-3..=largest).map(Constant::Number).collect();
            all.extend([
                Constant::LessThanNone,
                Constant::SomeThreads,
                Constant::AllThreads,
                Constant::MoreThanAll,
            ]);
            let relation = Relation {
                constants: (0, all.clone()),
                ..Relation::default()
            };
            let table = Table::new(&program, &relation, &mut Symbols::default());
            let codes: Vec<Term> = all.iter().map(|c| table.code(*c)).collect();
            for (i, code) in codes.iter().enumerate() {
                assert!(!codes[..i].contains(code), "{:?} up to {largest}", all[i]);
            }
        }
    }
}
