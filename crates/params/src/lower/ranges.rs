//! Between which bounds the numbers of registers and regions lie: which wrap-around variables may wrap
//! around, and which casts change nothing.
//!
//! Every step is run over intervals until nothing changes: registers at each location, with the
//! conditions on the way; regions whatever the order of steps. A bound that still moves after some rounds
//! is taken to be none. What a variable stores lies in its type: outside a range is a fault, and a
//! wrap-around type either holds the value as it is or is on the list of those that may wrap. Nothing here
//! is trusted: the bounds are part of the relation that the auditor checks.

use super::interval::{Interval, of_type, value};
use super::variables::Variable;
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::graph::Action;
use wattle_model::program::Local;
use wattle_model::{
    Expr, FamilyId, Init, LocationId, Op1, Op2, Place, Program, RegionId, RegisterId, Type,
};

/// Rounds before bounds that move are given up.
const ROUNDS: usize = 40;

/// The registers of a thread.
type Registers = Vec<Interval>;

/// The bounds of all variables, and those wrap-around ones of which it is not known that what they
/// store fits.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    regions: Vec<Interval>,
    /// For each family and location; nothing where no thread gets.
    at: Vec<Vec<Option<Registers>>>,
    pub may_wrap: BTreeSet<Variable>,
    types: BTreeMap<Variable, Type>,
}

impl Ranges {
    pub fn infer(program: &Program) -> Self {
        let mut ranges = Ranges::default();
        for (r, region) in program.regions.iter().enumerate() {
            let id = Variable::Region(RegionId::new(r));
            ranges.types.insert(id, region.ty);
            let first = ranges.admitted(id, start(region.ty, &region.init));
            ranges.regions.push(first);
        }
        for (f, family) in program.families.iter().enumerate() {
            let mut entry = Vec::new();
            for (r, register) in family.registers.iter().enumerate() {
                let id = Variable::Register(FamilyId::new(f), RegisterId::new(r));
                ranges.types.insert(id, register.ty);
                entry.push(ranges.admitted(id, start(register.ty, &register.init)));
            }
            let mut at = vec![None; family.locations.len()];
            at[family.entry.index()] = Some(entry);
            ranges.at.push(at);
        }
        for round in 0.. {
            let before = (ranges.regions.clone(), ranges.at.clone());
            for (f, family) in program.families.iter().enumerate() {
                for s in &family.steps {
                    let Some(registers) = ranges.at[f][s.source.index()].clone() else {
                        continue;
                    };
                    let next = ranges.step(FamilyId::new(f), registers, &s.action);
                    let target = &mut ranges.at[f][s.target.index()];
                    *target = either(target.take(), next);
                }
            }
            if (&ranges.regions, &ranges.at) == (&before.0, &before.1) {
                break;
            }
            if round >= ROUNDS {
                ranges.widen(&before.0, &before.1);
            }
        }
        ranges
    }

    /// Bounds that still move are none.
    fn widen(&mut self, regions: &[Interval], at: &[Vec<Option<Registers>>]) {
        let still = |now: &mut Interval, then: Interval, ty: Option<&Type>| {
            *now = Interval {
                lo: now.lo.filter(|_| now.lo == then.lo),
                hi: now.hi.filter(|_| now.hi == then.hi),
            };
            *now = now.within(ty.map_or(Interval::ALL, |ty| of_type(*ty)));
        };
        for (r, now) in self.regions.iter_mut().enumerate() {
            let id = Variable::Region(RegionId::new(r));
            still(now, regions[r], self.types.get(&id));
        }
        for (f, (family, then)) in self.at.iter_mut().zip(at).enumerate() {
            for (now, then) in family.iter_mut().zip(then) {
                let (Some(now), Some(then)) = (now, then) else {
                    continue;
                };
                for (r, (now, then)) in now.iter_mut().zip(then).enumerate() {
                    let id = Variable::Register(FamilyId::new(f), RegisterId::new(r));
                    still(now, *then, self.types.get(&id));
                }
            }
        }
    }

    /// The bounds of a variable, wherever its thread is.
    pub fn get(&self, id: Variable) -> Interval {
        match id {
            Variable::Region(r) => self.regions[r.index()],
            Variable::Register(f, r) => {
                let all = self.at[f.index()].iter().flatten();
                let all = all.map(|registers| registers[r.index()]);
                all.reduce(Interval::join).unwrap_or(Interval::ALL)
            }
        }
    }

    /// The bounds of a register at a location.
    pub fn at(&self, f: FamilyId, location: LocationId, r: RegisterId) -> Interval {
        let here = self.at[f.index()][location.index()].as_ref();
        here.map_or(Interval::ALL, |registers| registers[r.index()])
    }

    /// The program without casts that change nothing.
    pub fn without_idle_casts(&self, program: &Program) -> Program {
        let mut program = program.clone();
        for (f, family) in program.families.iter_mut().enumerate() {
            for s in &mut family.steps {
                let Some(registers) = &self.at[f][s.source.index()] else {
                    continue;
                };
                let leaf = |l: &Local| leaf(registers, l);
                let (place, own) = match &mut s.action {
                    Action::Assign { value, .. } => (None, Some(value)),
                    Action::Assume(e) | Action::Assert { condition: e, .. } => (None, Some(e)),
                    Action::Load { place, .. } => (Some(place), None),
                    Action::Store { place, value } => (Some(place), Some(value)),
                    Action::Skip
                    | Action::Havoc { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Lock
                    | Action::Unlock => (None, None),
                };
                let index = place.map(|place| match place {
                    Place::Region(_, e) | Place::Memory(e) => e,
                });
                for e in own.into_iter().chain(index) {
                    *e = without_casts(e, &leaf);
                }
            }
        }
        program
    }

    /// What a variable holds after it was given this.
    fn admitted(&mut self, id: Variable, what: Interval) -> Interval {
        let ty = self.types.get(&id).copied().unwrap_or(Type::Int);
        let holds = of_type(ty);
        match ty {
            Type::Wrap { .. } if !what.inside(holds) => {
                self.may_wrap.insert(id);
                holds
            }
            Type::Int | Type::Range { .. } | Type::Wrap { .. } | Type::Thread(_) => {
                what.within(holds)
            }
        }
    }

    fn store(&mut self, region: RegionId, what: Interval) {
        let what = self.admitted(Variable::Region(region), what);
        let old = &mut self.regions[region.index()];
        *old = old.join(what);
    }

    /// The registers after the step, if it can be taken.
    fn step(
        &mut self,
        f: FamilyId,
        mut registers: Registers,
        action: &Action<Local, Place>,
    ) -> Option<Registers> {
        let of = |e: &Expr<Local>, registers: &Registers| value(e, &|l| leaf(registers, l));
        let (register, what) = match action {
            Action::Assign { register, value } => (*register, of(value, &registers)),
            Action::Havoc { register, range } => {
                let ty = self.types.get(&Variable::Register(f, *register));
                let all = ty.map_or(Interval::ALL, |ty| of_type(*ty));
                (
                    *register,
                    range.map_or(all, |(lo, hi)| Interval::of(lo, hi)),
                )
            }
            Action::Load { register, place } => {
                let what = match place {
                    Place::Region(r, _) => self.regions[r.index()],
                    Place::Memory(_) => Interval::ALL,
                };
                (*register, what)
            }
            Action::Store { place, value } => {
                let what = of(value, &registers);
                match place {
                    Place::Region(r, _) => self.store(*r, what),
                    // It may be anywhere.
                    Place::Memory(_) => {
                        for r in 0..self.regions.len() {
                            self.store(RegionId::new(r), Interval::ALL);
                        }
                    }
                }
                return Some(registers);
            }
            Action::Assume(e) | Action::Assert { condition: e, .. } => {
                return where_true(registers, e, true);
            }
            Action::Skip
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => return Some(registers),
        };
        registers[register.index()] = self.admitted(Variable::Register(f, register), what);
        Some(registers)
    }
}

fn start(ty: Type, init: &Init) -> Interval {
    let none = |_: &Local| Interval::ALL;
    match init {
        Init::Any => of_type(ty),
        Init::All(e) => value(e, &none),
        Init::Each(list) => {
            let each = list.iter().map(|e| value(e, &none));
            each.reduce(Interval::join).unwrap_or(Interval::ALL)
        }
    }
}

fn leaf(registers: &Registers, l: &Local) -> Interval {
    match l {
        Local::Register(r) => registers[r.index()],
        Local::SelfIndex | Local::Count(_) => Interval {
            lo: Some(0),
            hi: None,
        },
        Local::AddressOf(_) => Interval::ALL,
    }
}

/// What holds on one of two ways.
fn either(a: Option<Registers>, b: Option<Registers>) -> Option<Registers> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.into_iter().zip(b).map(|(x, y)| x.join(y)).collect()),
        (a, b) => a.or(b),
    }
}

/// The registers where the condition is true, or false; nothing if it cannot be.
fn where_true(mut registers: Registers, e: &Expr<Local>, wanted: bool) -> Option<Registers> {
    match e {
        Expr::Const(c) => ((*c != 0) == wanted).then_some(registers),
        Expr::Unary(Op1::Not, a) => where_true(registers, a, !wanted),
        Expr::Binary(op @ (Op2::And | Op2::Or), a, b) => match (*op == Op2::And) == wanted {
            true => where_true(where_true(registers, a, wanted)?, b, wanted),
            false => either(
                where_true(registers.clone(), a, wanted),
                where_true(registers, b, wanted),
            ),
        },
        Expr::Binary(op, a, b) => {
            let of = |e: &Expr<Local>, registers: &Registers| value(e, &|l| leaf(registers, l));
            let (left, right) = (of(a, &registers), of(b, &registers));
            for (side, own, op, other) in [(a, left, *op, right), (b, right, turned(*op), left)] {
                let Expr::Atom(Local::Register(r)) = &**side else {
                    continue;
                };
                let now = compared(own, op, other, wanted);
                if now.is_empty() {
                    return None;
                }
                registers[r.index()] = now;
            }
            Some(registers)
        }
        Expr::Atom(_) | Expr::Unary(..) | Expr::Ite(..) => Some(registers),
    }
}

/// The comparison with its sides exchanged.
fn turned(op: Op2) -> Op2 {
    match op {
        Op2::Lt => Op2::Gt,
        Op2::Le => Op2::Ge,
        Op2::Gt => Op2::Lt,
        Op2::Ge => Op2::Le,
        Op2::Eq
        | Op2::Ne
        | Op2::Add
        | Op2::Sub
        | Op2::Mul
        | Op2::Div
        | Op2::Rem
        | Op2::BitAnd
        | Op2::BitOr
        | Op2::BitXor
        | Op2::Shl
        | Op2::Shr
        | Op2::And
        | Op2::Or => op,
    }
}

/// What of the left side makes the comparison come out as wanted.
fn compared(own: Interval, op: Op2, other: Interval, wanted: bool) -> Interval {
    match (op, wanted) {
        (Op2::Eq, true) | (Op2::Ne, false) => own.below(other, false).above(other, false),
        (Op2::Eq, false) | (Op2::Ne, true) => own.without(other),
        (Op2::Lt, true) | (Op2::Ge, false) => own.below(other, true),
        (Op2::Le, true) | (Op2::Gt, false) => own.below(other, false),
        (Op2::Gt, true) | (Op2::Le, false) => own.above(other, true),
        (Op2::Ge, true) | (Op2::Lt, false) => own.above(other, false),
        (
            Op2::Add
            | Op2::Sub
            | Op2::Mul
            | Op2::Div
            | Op2::Rem
            | Op2::BitAnd
            | Op2::BitOr
            | Op2::BitXor
            | Op2::Shl
            | Op2::Shr
            | Op2::And
            | Op2::Or,
            _,
        ) => own,
    }
}

fn without_casts(e: &Expr<Local>, leaf: &dyn Fn(&Local) -> Interval) -> Expr<Local> {
    let of = |e: &Expr<Local>| without_casts(e, leaf);
    match e {
        Expr::Const(_) | Expr::Atom(_) => e.clone(),
        Expr::Unary(Op1::Wrap { bits, signed }, a) => {
            let (bits, signed) = (*bits, *signed);
            match value(a, leaf).inside(of_type(Type::Wrap { bits, signed })) {
                true => of(a),
                false => Expr::unary(Op1::Wrap { bits, signed }, of(a)),
            }
        }
        Expr::Unary(op, a) => Expr::unary(*op, of(a)),
        Expr::Binary(op, a, b) => Expr::binary(*op, of(a), of(b)),
        Expr::Ite(c, a, b) => Expr::ite(of(c), of(a), of(b)),
    }
}
