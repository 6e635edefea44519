//! One thread of a family, with symbols for what it reads: the world that its steps act on.

use super::super::symbols::{NotLinear, Symbols, Value};
use super::table::Table;
use super::{Validator, Variable};
use std::cell::Cell;
use wattle_logic::{Formula, Term, and, eq, ge, lt};
use wattle_memory::FaultKind;
use wattle_memory::rules::{Sight, Stuck, StuckIn, World};
use wattle_model::{Domain, FamilyId, Local, NoValue, Place, RegionId, RegisterId, Type, Valued};

pub struct Actor<'a, 'v, 't> {
    pub validator: &'a Validator<'v>,
    pub table: &'a mut Table<'t>,
    pub family: FamilyId,
    /// The thread's index in its family.
    pub me: Term,
    pub registers: Vec<Value>,
    /// Stores so far, oldest first.
    pub writes: Vec<(RegionId, Term, Term)>,
    /// Something on the way needed an empty buffer.
    pub needs_empty: Cell<bool>,
    pub fenced: bool,
    /// The variable whose type was asked for last is assumed not to wrap around.
    pub assumed: Cell<bool>,
}

impl<'a, 'v, 't> Actor<'a, 'v, 't> {
    pub fn new(
        validator: &'a Validator<'v>,
        table: &'a mut Table<'t>,
        family: FamilyId,
        me: &Term,
    ) -> Self {
        Actor {
            validator,
            table,
            family,
            me: me.clone(),
            registers: Vec::new(),
            writes: Vec::new(),
            needs_empty: Cell::new(false),
            fenced: false,
            assumed: Cell::new(false),
        }
    }
}

impl Sight<Symbols> for Actor<'_, '_, '_> {
    type Leaf = Local;

    fn leaf(&self, _: &mut Symbols, leaf: &Local) -> Valued<Symbols> {
        Ok(match leaf {
            Local::Register(r) => self.registers[r.index()].clone(),
            Local::SelfIndex => Value::Number(self.me.clone()),
            Local::Count(f) => Value::Number(self.table.counts[f.index()].clone()),
            Local::AddressOf(_) => {
                let why = NotLinear("addresses are not treated".into());
                return Err(NoValue::Refused(why));
            }
        })
    }

    /// The step is looked at where it is possible.
    fn is_empty(&self) -> bool {
        self.needs_empty.set(true);
        true
    }

    fn direct(&self) -> bool {
        false
    }

    fn lock_is_free(&self) -> bool {
        true
    }

    fn holds_lock(&self) -> bool {
        false
    }
}

impl World<Symbols> for Actor<'_, '_, '_> {
    type Place = Place;
    type Cell = (RegionId, Term);

    fn cell(
        &mut self,
        d: &mut Symbols,
        place: &Place,
    ) -> Result<(RegionId, Term), StuckIn<Symbols>> {
        let Place::Region(region, index) = place else {
            return Err(Stuck::Refused(NotLinear(
                "addresses are not treated".into(),
            )));
        };
        let index = index.evaluate(d, &mut |d: &mut Symbols, l| self.leaf(d, l))?;
        let index = Value::Number(d.term(index));
        match self.table.position(d, *region, &index) {
            Some(index) => Ok((*region, index)),
            None => Err(Stuck::Fault(FaultKind::IndexOutOfRange {
                index,
                length: 0,
            })),
        }
    }

    fn cell_type(&self, (region, _): &(RegionId, Term)) -> Type {
        self.type_of(Variable::Region(*region))
    }

    fn register_type(&self, register: RegisterId) -> Type {
        self.type_of(Variable::Register(self.family, register))
    }

    fn read(&mut self, d: &mut Symbols, (region, index): (RegionId, Term)) -> Valued<Symbols> {
        for (r, i, v) in self.writes.iter().rev() {
            if *r == region && d.decide(eq(i.clone(), index.clone())) {
                return Ok(Value::Number(v.clone()));
            }
        }
        let id = Variable::Region(region);
        let value = self.table.value(d, id, &index);
        Ok(Value::Number(value))
    }

    fn write(
        &mut self,
        d: &mut Symbols,
        (region, index): (RegionId, Term),
        value: Value,
    ) -> Result<(), StuckIn<Symbols>> {
        let value = d.term(value);
        self.writes.push((region, index, value));
        Ok(())
    }

    fn set(&mut self, register: RegisterId, value: Value) {
        self.registers[register.index()] = value;
    }

    fn store_fence(&mut self) {
        self.fenced = true;
    }

    fn lock(&mut self) {}

    fn unlock(&mut self) {}

    /// A thread's identifier is one of its family's, or none.
    fn admit(
        &mut self,
        d: &mut Symbols,
        ty: Type,
        value: Value,
    ) -> Result<Value, StuckIn<Symbols>> {
        let (lo, hi) = ty.bounds().unwrap_or((i64::MIN, i64::MAX));
        let admitted = match ty {
            Type::Thread(f) => {
                let v = d.term(value.clone());
                let most = self.table.counts[f.index()].clone();
                let fits = and([ge(v.clone(), -1), lt(v, most)]);
                d.decide(fits).then_some(value.clone())
            }
            Type::Wrap { .. } if self.assumed.get() => {
                if !d.within(&value, lo, hi) {
                    d.know(Formula::False);
                }
                Some(value.clone())
            }
            Type::Int | Type::Range { .. } | Type::Wrap { .. } => ty.admit_in(d, value.clone())?,
        };
        admitted.ok_or(Stuck::Fault(FaultKind::ValueOutOfRange { value, lo, hi }))
    }
}

impl Actor<'_, '_, '_> {
    fn type_of(&self, variable: Variable) -> Type {
        self.assumed.set(self.validator.assumed(variable));
        self.table.type_of(variable)
    }
}
