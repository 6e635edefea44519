//! From the certificate to facts, which are looked at afterwards ([`sound`](super::sound)).

use super::assume::Rules;
use super::facts::{
    CellAt, Facts, MOMENTS, Moments, NOBODY, Open, Part, Pending, Set, THREADS, Value,
};
use super::query::DENOMINATOR;
use wattle_evidence::certificate::{Corrupt, cubes};
use wattle_logic::{Term, eq, le, lt, ne};
use wattle_model::array::CellType;

pub fn facts(rules: &Rules<'_>, cube: &cubes::Cube) -> Result<Facts, Corrupt> {
    let facts = Reader { rules, cube }.facts();
    facts.ok_or(Corrupt("a cube names something that is not there"))
}

struct Reader<'a> {
    rules: &'a Rules<'a>,
    cube: &'a cubes::Cube,
}

impl Reader<'_> {
    fn facts(&self) -> Option<Facts> {
        let cube = self.cube;
        let mut facts = Facts::default();
        if cube.threads.len() >= THREADS || cube.reads.len() >= MOMENTS {
            return None;
        }
        for t in &cube.threads {
            if *t != 0 && facts.threads.contains(t) {
                return None;
            }
            facts.join(*t);
        }
        for (a, b) in &cube.ordered {
            facts.order(self.thread(*a)?, self.thread(*b)?).ok()?;
        }
        for r in &cube.reads {
            let parts: Option<Vec<Part>> = r.parts.iter().map(|p| self.part(p)).collect();
            let before = self.moments(&r.before)? | 1 << facts.reads.len();
            facts.reads.push(Open {
                parts: parts?,
                before,
            });
        }
        for p in &cube.pending {
            facts.pending.push(Pending {
                thread: self.thread(p.thread)?,
                place: self.place(&p.place)?,
                newest: p.newest,
            });
        }
        facts.last = self.moments(&cube.last)?;
        for (list, into) in [
            (&cube.after_reads_of, &mut facts.after_reads_of),
            (&cube.after_stores_of, &mut facts.after_stores_of),
        ] {
            if list.len() > into.len() {
                return None;
            }
            for (moments, set) in list.iter().zip(into) {
                *set = self.moments(moments)?;
            }
        }
        for (cell, moments) in &cube.after_stores_elsewhere {
            self.rules.system.cells.get(usize::from(*cell))?;
            let set = self.moments(moments)?;
            facts.after_stores_elsewhere.insert(*cell, set);
        }
        for (place, moments) in &cube.after_stores_to {
            let set = self.moments(moments)?;
            facts.after_stores_to.insert(self.place(place)?, set);
        }
        self.values(&mut facts)?;
        Some(facts)
    }

    fn values(&self, facts: &mut Facts) -> Option<()> {
        for (v, set) in &self.cube.among {
            let v = self.value(facts, v)?;
            let all = facts.all_values(self.rules.system, v)?;
            let mut mask: Set = 0;
            for n in set {
                mask |= 1u128.checked_shl(u32::from(*n))? & all;
            }
            facts.restrict(v, mask).ok()?;
        }
        for (a, b, equal) in &self.cube.same {
            let (a, b) = (self.value(facts, a)?, self.value(facts, b)?);
            // Numbers are compared by sums, and others with their like.
            let [x, y] = [a, b].map(|v| self.ty(facts, v));
            if x != y || is_number(x) {
                return None;
            }
            let [a, b] = [a, b].map(|v| self.rules.names.var(v));
            let fact = if *equal { eq(a, b) } else { ne(a, b) };
            facts.learn(self.rules, fact).ok()?;
        }
        for n in &self.cube.numbers {
            let mut values = Vec::new();
            for (c, v) in &n.terms {
                values.push((*c, self.value(facts, v)?));
            }
            if !values.iter().all(|(_, v)| is_number(self.ty(facts, *v))) {
                return None;
            }
            let cells: Vec<u16> = values.iter().map(|(_, v)| facts.cell_of(*v)).collect();
            let mut sum = match self.rules.are_real(&cells)? {
                true => Term::monomial(n.constant, DENOMINATOR),
                false => Term::constant(n.constant),
            };
            for (c, v) in values {
                sum = sum + Term::monomial(c, self.rules.names.var(v));
            }
            let fact = match n.relation {
                cubes::Relation::AtMost => le(sum, 0),
                cubes::Relation::Less => lt(sum, 0),
                cubes::Relation::Equal => eq(sum, 0),
                cubes::Relation::Different => ne(sum, 0),
            };
            facts.learn(self.rules, fact).ok()?;
        }
        Some(())
    }

    fn ty(&self, facts: &Facts, v: Value) -> CellType {
        self.rules.system.cell(facts.cell_of(v)).ty
    }

    fn thread(&self, t: u8) -> Option<u8> {
        (usize::from(t) < self.cube.threads.len()).then_some(t)
    }

    fn place(&self, p: &cubes::CellOf) -> Option<CellAt> {
        let cell = self.rules.system.cells.get(usize::from(p.cell))?;
        let known = p.of.iter().all(|t| self.thread(*t).is_some());
        (known && p.of.len() == usize::from(cell.arity)).then(|| CellAt::new(p.cell, &p.of))
    }

    fn part(&self, p: &cubes::ReadPart) -> Option<Part> {
        Some(Part {
            reader: p.reader.map_or(Some(NOBODY), |r| self.thread(r))?,
            place: self.place(&p.place)?,
            own: p.own,
        })
    }

    fn moments(&self, list: &[u8]) -> Option<Moments> {
        list.iter().try_fold(0, |set, m| {
            (usize::from(*m) < self.cube.reads.len()).then(|| set | 1 << m)
        })
    }

    fn value(&self, facts: &Facts, v: &cubes::Value) -> Option<Value> {
        match v {
            cubes::Value::Cell(p) => self.place(p).map(Value::Cell),
            cubes::Value::Read(e, p) => {
                facts
                    .reads
                    .get(usize::from(*e))?
                    .parts
                    .get(usize::from(*p))?;
                Some(Value::Read(*e, *p))
            }
            cubes::Value::Pending(k) => {
                facts.pending.get(usize::from(*k))?;
                Some(Value::Pending(*k))
            }
        }
    }
}

fn is_number(ty: CellType) -> bool {
    matches!(ty, CellType::Int | CellType::Real)
}
