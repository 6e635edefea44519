//! Numbers that wrap around, as numbers that do not: a program whose runs follow those of another one.
//!
//! A ticket lock counts for ever, and what it does depends on the low bits of its counters alone. With fewer threads than
//! the counters have values it does what it would do if they never wrapped around. [`Program::unwrapped`] is the
//! program with such integers, and asserts that whatever is compared lies less than 2ⁿ apart (n: how many bits there are).
//!
//! ```text
//!     as it is          a ── step ──► b          values are those below, cut to n bits:
//!                       │             │          +, −, × and copies keep that; of two numbers less than
//!     unwrapped         A ── step ──► B          2ⁿ apart the low bits are the same iff the numbers are
//! ```
//!
//! *Lemma.* If no run of the unwrapped program with at most k threads breaks an assertion or has a fault, then every run of
//! the program with at most k threads is one of the unwrapped program: with the same steps, the same locations, and values that
//! are the same up to a multiple of 2ⁿ where they are unwrapped, and the same where they are not. By induction
//! on the steps. What an expression comes to is said by [`Kind`]; a guard that has no kind of its own is left out, and
//! such a value for a register may be anything, which only adds runs. So what no run of the one reaches, about
//! locations and values that are not unwrapped, no run of the other does.

use crate::expr::{Expr, Op1, Op2};
use crate::graph::{Action, Location};
use crate::ids::{LocationId, RegionId, RegisterId};
use crate::program::{Family, Init, Length, Local, Place, Program, Step};
use crate::property::Observation;
use crate::ty::Type;
use std::collections::{BTreeMap, BTreeSet};

/// What an expression of the unwrapped program says about the one it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The same value.
    Same,
    /// The same low bits.
    Low(u8),
    /// The same low bits, and there it is just these, read as signed or not.
    Cut(u8, bool),
    /// Nothing.
    Open,
    /// Nothing, and what it speaks of has to stay as it is.
    Lost,
}

/// What the assertions say that are not the program's own.
const APART: &str = "numbers too far apart to be compared by their low bits";

impl<A, P> Action<A, P> {
    /// What the unwrapped program asserts of numbers that are compared.
    pub fn apart(&self) -> Option<&Expr<A>> {
        let Action::Assert { condition, message } = self else {
            return None;
        };
        (message.as_deref() == Some(APART)).then_some(condition)
    }
}

type E = Expr<Local>;

/// Registers (by family) and regions that are unwrapped.
struct Unwrapped<'p> {
    program: &'p Program,
    regions: BTreeSet<RegionId>,
    /// With how many bits they hold: those of their types, or fewer where nothing wider is put into them.
    registers: BTreeMap<(usize, RegisterId), (u8, bool)>,
    /// What holds fewer than was thought.
    narrowed: BTreeMap<(usize, RegisterId), (u8, bool)>,
    family: usize,
    /// What has to stay as it is.
    kept: BTreeSet<(usize, RegisterId)>,
    kept_regions: BTreeSet<RegionId>,
    /// Differences that have to be small, and how small.
    compared: Vec<(E, i64)>,
    narrowest: u8,
}

impl Program {
    /// The same program over numbers that do not wrap around, as far as they are only added, copied and compared; none if
    /// there are no such numbers, or memory is addressed by numbers. With how many bits the narrowest of those have that are
    /// compared.
    #[must_use]
    pub fn unwrapped(&self) -> Option<(Program, u8)> {
        let wraps = |ty: Type| matches!(ty, Type::Wrap { .. });
        let fits = |ty: Type, init: &Init| match init {
            Init::All(Expr::Const(c)) => ty.admit(*c) == Some(*c),
            Init::Any => true,
            Init::All(_) | Init::Each(_) => false,
        };
        let mut all = Unwrapped {
            program: self,
            regions: BTreeSet::new(),
            registers: BTreeMap::new(),
            narrowed: BTreeMap::new(),
            family: 0,
            kept: BTreeSet::new(),
            kept_regions: BTreeSet::new(),
            compared: Vec::new(),
            narrowest: 64,
        };
        for (r, region) in self.regions.iter().enumerate() {
            if wraps(region.ty) && fits(region.ty, &region.init) {
                all.regions.insert(RegionId::new(r));
            }
        }
        for (f, family) in self.families.iter().enumerate() {
            for (r, register) in family.registers.iter().enumerate() {
                if let Some(cut) = bits(register.ty)
                    && fits(register.ty, &register.init)
                {
                    all.registers.insert((f, RegisterId::new(r)), cut);
                }
            }
        }
        all.leave_observed()?;
        loop {
            if all.regions.is_empty() {
                return None;
            }
            let program = all.made()?;
            if all.kept.is_empty() && all.kept_regions.is_empty() && all.narrowed.is_empty() {
                return Some((program, all.narrowest));
            }
            all.registers.extend(std::mem::take(&mut all.narrowed));
            for register in std::mem::take(&mut all.kept) {
                all.registers.remove(&register);
            }
            for region in std::mem::take(&mut all.kept_regions) {
                all.regions.remove(&region);
            }
        }
    }
}

impl Unwrapped<'_> {
    /// What a property looks at stays as it is.
    fn leave_observed(&mut self) -> Option<()> {
        let program = self.program;
        for property in &program.properties {
            let mut open = vec![&property.condition.expr];
            while let Some(e) = open.pop() {
                let mut by_number = false;
                e.for_each_atom(&mut |atom| match atom {
                    Observation::Cell(r, index) | Observation::Seen(_, r, index) => {
                        self.regions.remove(r);
                        open.push(index);
                    }
                    Observation::Register(t, r) => {
                        self.registers.remove(&(t.family.index(), *r));
                    }
                    Observation::Memory(_) => by_number = true,
                    Observation::At(..)
                    | Observation::Index(_)
                    | Observation::Count(_)
                    | Observation::AddressOf(_) => {}
                });
                if by_number {
                    return None;
                }
            }
        }
        Some(())
    }

    fn bits(&self, r: RegisterId) -> Option<(u8, bool)> {
        self.registers.get(&(self.family, r)).copied()
    }

    /// Whether the register may be given what an expression of this kind stands for. Whether that fits is decided by its
    /// type, so one that holds fewer bits has to be given just those.
    fn takes(&mut self, r: RegisterId, kind: Kind, image: Option<&E>) -> bool {
        let Some((n, signed)) = self.bits(r) else {
            return kind == Kind::Same;
        };
        let whole = self.is_whole(r);
        match kind {
            Kind::Same => whole || image.is_some_and(|e| fits(e, n, signed)),
            Kind::Low(m) | Kind::Cut(m, _) if whole && m >= n => true,
            Kind::Cut(m, false) if m < n => {
                let first = &self.program.families[self.family].registers[r.index()].init;
                let begins = matches!(first, Init::All(e) if fits(e, m, false));
                if begins {
                    self.narrowed.insert((self.family, r), (m, false));
                }
                begins
            }
            Kind::Cut(m, s) => (m, s) == (n, signed),
            Kind::Low(_) | Kind::Open | Kind::Lost => false,
        }
    }

    fn region_bits(&self, r: RegionId) -> Option<(u8, bool)> {
        let unwrapped = self.regions.contains(&r);
        unwrapped
            .then(|| bits(self.program.regions[r.index()].ty))
            .flatten()
    }

    /// The program with these unwrapped; what cannot be is noted.
    fn made(&mut self) -> Option<Program> {
        let mut program = self.program.clone();
        self.narrowest = 64;
        program.temporal.clear();
        program.predicates.clear();
        for r in &self.regions {
            program.regions[r.index()].ty = Type::Int;
        }
        for (f, r) in self.registers.keys() {
            program.families[*f].registers[r.index()].ty = Type::Int;
        }
        for (f, family) in program.families.iter_mut().enumerate() {
            self.family = f;
            let mut compared: Vec<Vec<(E, i64)>> = vec![Vec::new(); family.locations.len()];
            let mut read = BTreeSet::new();
            for step in &mut family.steps {
                step.action = self.action(&step.action)?;
                read.extend(reads(&step.action));
                compared[step.source.index()].append(&mut self.compared);
            }
            for step in &mut family.steps {
                if let Action::Havoc { register, .. } = step.action
                    && self.registers.contains_key(&(f, register))
                    && !read.contains(&register)
                {
                    step.action = Action::Skip;
                }
            }
            for (l, differences) in compared.into_iter().enumerate() {
                asserted(family, LocationId::new(l), differences);
            }
        }
        Some(program)
    }

    /// The same over other numbers; none where memory is addressed by numbers.
    fn action(&mut self, action: &Action<Local, Place>) -> Option<Action<Local, Place>> {
        Some(match action {
            Action::Assign { register, value } => {
                let (kind, image) = self.image(value);
                if !self.takes(*register, kind, Some(&image)) {
                    if kind != Kind::Lost && self.may_be_anything(*register) && !may_fail(value) {
                        return Some(self.anything(*register));
                    }
                    self.keep(value);
                    self.keep(&Expr::Atom(Local::Register(*register)));
                }
                Action::Assign {
                    register: *register,
                    value: image,
                }
            }
            Action::Havoc { register, range } => {
                if !self.is_whole(*register) {
                    self.keep(&Expr::Atom(Local::Register(*register)));
                }
                Action::Havoc {
                    register: *register,
                    range: range.or(self.register_type(*register).bounds()),
                }
            }
            Action::Assume(condition) => {
                let mut all = Vec::new();
                for part in conjuncts(condition) {
                    match self.image(part) {
                        (Kind::Same, image) => all.push(image),
                        (Kind::Low(_) | Kind::Cut(..) | Kind::Open, _) if !may_fail(part) => {}
                        (Kind::Low(_) | Kind::Cut(..) | Kind::Open | Kind::Lost, image) => {
                            self.keep(part);
                            all.push(image);
                        }
                    }
                }
                match all.into_iter().reduce(|a, b| Expr::binary(Op2::And, a, b)) {
                    Some(condition) => Action::Assume(condition),
                    None => Action::Skip,
                }
            }
            Action::Assert { condition, message } => Action::Assert {
                condition: self.same(condition),
                message: message.clone(),
            },
            Action::Load { register, place } => {
                let Place::Region(region, index) = place else {
                    return None;
                };
                let kind = match self.region_bits(*region) {
                    Some((n, signed)) => Kind::Cut(n, signed),
                    None => Kind::Same,
                };
                if !self.takes(*register, kind, None) {
                    // An index or a value that may be outside is not to be forgotten.
                    let scalar = self.program.region(*region).length == Length::Scalar;
                    if scalar && self.may_be_anything(*register) {
                        return Some(self.anything(*register));
                    }
                    self.kept_regions
                        .extend((kind != Kind::Same).then_some(*region));
                    self.keep(&Expr::Atom(Local::Register(*register)));
                }
                Action::Load {
                    register: *register,
                    place: Place::Region(*region, self.same(index)),
                }
            }
            Action::Store { place, value } => {
                let Place::Region(region, index) = place else {
                    return None;
                };
                let place = Place::Region(*region, self.same(index));
                let (kind, image) = self.image(value);
                match (self.region_bits(*region), kind) {
                    (_, Kind::Same) => {}
                    (Some((n, _)), Kind::Low(m) | Kind::Cut(m, _)) if m >= n => {}
                    (unwrapped, Kind::Low(_) | Kind::Cut(..) | Kind::Open | Kind::Lost) => {
                        self.keep(value);
                        self.kept_regions.extend(unwrapped.map(|_| *region));
                    }
                }
                Action::Store {
                    place,
                    value: image,
                }
            }
            Action::Skip
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => action.clone(),
        })
    }

    fn register_type(&self, r: RegisterId) -> Type {
        self.program.families[self.family].registers[r.index()].ty
    }

    /// Whether it holds what its type holds.
    fn is_whole(&self, register: RegisterId) -> bool {
        let own = bits(self.register_type(register));
        self.bits(register).is_none_or(|cut| own == Some(cut))
    }

    /// Whether any value of its type is one that it may have, and none a fault.
    fn may_be_anything(&self, register: RegisterId) -> bool {
        let ty = self.register_type(register);
        matches!(ty, Type::Wrap { .. } | Type::Int) && self.is_whole(register)
    }

    /// A register that holds whatever its type allows.
    fn anything(&self, register: RegisterId) -> Action<Local, Place> {
        Action::Havoc {
            register,
            range: self.register_type(register).bounds(),
        }
    }

    /// The same value as there, or what it speaks of has to stay as it is.
    fn same(&mut self, e: &E) -> E {
        let (kind, image) = self.image(e);
        if kind != Kind::Same {
            self.keep(e);
        }
        image
    }

    fn keep(&mut self, e: &E) {
        let family = self.family;
        e.for_each_atom(&mut |atom| {
            if let Local::Register(r) = atom
                && self.registers.contains_key(&(family, *r))
            {
                self.kept.insert((family, *r));
            }
        });
    }

    fn image(&mut self, e: &E) -> (Kind, E) {
        let before = self.compared.len();
        let (kind, image) = self.image_of(e);
        if matches!(kind, Kind::Open | Kind::Lost) {
            self.compared.truncate(before);
        }
        (kind, image)
    }

    fn image_of(&mut self, e: &E) -> (Kind, E) {
        match e {
            Expr::Const(_) => (Kind::Same, e.clone()),
            Expr::Atom(atom) => {
                let cut = match atom {
                    Local::Register(r) => self.bits(*r),
                    Local::SelfIndex | Local::Count(_) | Local::AddressOf(_) => None,
                };
                (cut.map_or(Kind::Same, |(n, s)| Kind::Cut(n, s)), e.clone())
            }
            Expr::Unary(op, a) => {
                let (kind, image) = self.image(a);
                let kept = Expr::unary(*op, image.clone());
                match (op, kind) {
                    (_, Kind::Same) => (Kind::Same, kept),
                    (_, Kind::Open | Kind::Lost) => (kind, kept),
                    (Op1::Neg, Kind::Low(n) | Kind::Cut(n, _)) => (Kind::Low(n), kept),
                    (Op1::Wrap { bits, signed }, Kind::Low(n) | Kind::Cut(n, _)) if *bits == n => {
                        (Kind::Cut(n, *signed), image)
                    }
                    // Fewer bits are the same there.
                    (Op1::Wrap { bits, .. }, Kind::Low(n) | Kind::Cut(n, _)) if *bits < n => {
                        (Kind::Same, kept)
                    }
                    // More bits hold what was cut, as it is.
                    (Op1::Wrap { .. }, Kind::Cut(n, false)) => (Kind::Cut(n, false), image),
                    (Op1::Wrap { signed: true, .. }, Kind::Cut(n, true)) => {
                        (Kind::Cut(n, true), image)
                    }
                    (Op1::Not | Op1::BitNot | Op1::Wrap { .. }, Kind::Low(_) | Kind::Cut(..)) => {
                        (Kind::Lost, kept)
                    }
                }
            }
            Expr::Binary(op, a, b) => {
                let ((ka, ia), (kb, ib)) = (self.image(a), self.image(b));
                let image = Expr::binary(*op, ia.clone(), ib.clone());
                (self.binary(*op, (ka, &ia), (kb, &ib)), image)
            }
            Expr::Ite(c, a, b) => {
                let (kc, ic) = self.image(c);
                let ((ka, ia), (kb, ib)) = (self.image(a), self.image(b));
                let kind = match (kc, ka, kb) {
                    (Kind::Lost, _, _) | (_, Kind::Lost, _) | (_, _, Kind::Lost) => Kind::Lost,
                    (Kind::Same, a, b) if a == b => a,
                    (Kind::Same, a, b) => match (low(a), low(b)) {
                        (Some(n), Some(m)) => Kind::Low(n.min(m)),
                        _ => Kind::Open,
                    },
                    (Kind::Low(_) | Kind::Cut(..) | Kind::Open, _, _) => Kind::Open,
                };
                (kind, Expr::ite(ic, ia, ib))
            }
        }
    }

    fn binary(&mut self, op: Op2, (a, ia): (Kind, &E), (b, ib): (Kind, &E)) -> Kind {
        match (a, b) {
            (Kind::Same, Kind::Same) => return Kind::Same,
            (Kind::Lost, _) | (_, Kind::Lost) => return Kind::Lost,
            (Kind::Open, _) | (_, Kind::Open) => return Kind::Open,
            (Kind::Same | Kind::Low(_) | Kind::Cut(..), _) => {}
        }
        match op {
            Op2::Add | Op2::Sub | Op2::Mul => match (low(a), low(b)) {
                (Some(n), Some(m)) => Kind::Low(n.min(m)),
                _ => Kind::Open,
            },
            Op2::Eq | Op2::Ne => {
                let cut = match (a, b) {
                    (Kind::Cut(n, s), Kind::Cut(m, t)) => ((n, s) == (m, t)).then_some(n),
                    (Kind::Cut(n, signed), Kind::Same) => fits(ib, n, signed).then_some(n),
                    (Kind::Same, Kind::Cut(n, signed)) => fits(ia, n, signed).then_some(n),
                    _ => None,
                };
                let Some(n) = cut else {
                    return Kind::Open;
                };
                self.narrowest = self.narrowest.min(n);
                let less = if n < 63 { (1i64 << n) - 1 } else { 1 << 62 };
                let difference = Expr::binary(Op2::Sub, ia.clone(), ib.clone());
                self.compared.push((difference, less));
                Kind::Same
            }
            Op2::BitAnd => {
                let cut = |kind: Kind, mask: &E| match (low(kind), mask.as_const()) {
                    (Some(n), Some(m)) => {
                        m >= 0 && m & m.wrapping_add(1) == 0 && 64 - m.leading_zeros() <= n.into()
                    }
                    _ => false,
                };
                let same = b == Kind::Same && cut(a, ib) || a == Kind::Same && cut(b, ia);
                if same { Kind::Same } else { Kind::Lost }
            }
            Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge | Op2::And | Op2::Or => Kind::Open,
            Op2::Div | Op2::Rem | Op2::BitOr | Op2::BitXor | Op2::Shl | Op2::Shr => Kind::Lost,
        }
    }
}

fn bits(ty: Type) -> Option<(u8, bool)> {
    match ty {
        Type::Wrap { bits, signed } => Some((bits, signed)),
        Type::Int | Type::Range { .. } | Type::Thread(_) => None,
    }
}

/// How many low bits are the same.
fn low(kind: Kind) -> Option<u8> {
    match kind {
        Kind::Same => Some(u8::MAX),
        Kind::Low(n) | Kind::Cut(n, _) => Some(n),
        Kind::Open | Kind::Lost => None,
    }
}

/// Whether it is a number that is not cut.
fn fits(e: &E, bits: u8, signed: bool) -> bool {
    let ty = Type::Wrap { bits, signed };
    e.as_const().is_some_and(|c| ty.admit(c) == Some(c))
}

/// Whether it may have no value at all.
fn may_fail(e: &E) -> bool {
    match e {
        Expr::Const(_) | Expr::Atom(_) => false,
        Expr::Unary(_, a) => may_fail(a),
        Expr::Binary(op, a, b) => {
            matches!(op, Op2::Div | Op2::Rem | Op2::Shl | Op2::Shr) || may_fail(a) || may_fail(b)
        }
        Expr::Ite(c, a, b) => [c, a, b].into_iter().any(|e| may_fail(e)),
    }
}

/// The registers that the action reads.
fn reads(action: &Action<Local, Place>) -> BTreeSet<RegisterId> {
    let mut read = BTreeSet::new();
    let index = action.place().map(|place| match place {
        Place::Region(_, e) | Place::Memory(e) => e,
    });
    for e in action.evaluated().into_iter().chain(index) {
        e.for_each_atom(&mut |atom| {
            if let Local::Register(r) = atom {
                read.insert(*r);
            }
        });
    }
    read
}

fn conjuncts(e: &E) -> Vec<&E> {
    match e {
        Expr::Binary(Op2::And, a, b) => [conjuncts(a), conjuncts(b)].concat(),
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
            vec![e]
        }
    }
}

/// What is compared on the way out of the location is looked at there, in one more step.
fn asserted(family: &mut Family, at: LocationId, differences: Vec<(E, i64)>) {
    let near = |(difference, most): (E, i64)| {
        let most = |d: E| Expr::binary(Op2::Le, d, Expr::Const(most));
        let other = Expr::unary(Op1::Neg, difference.clone());
        Expr::binary(Op2::And, most(difference), most(other))
    };
    let mut all: Vec<E> = Vec::new();
    for e in differences.into_iter().map(near) {
        if !all.contains(&e) {
            all.push(e);
        }
    }
    let Some(condition) = (all.into_iter()).reduce(|a, b| Expr::binary(Op2::And, a, b)) else {
        return;
    };
    let behind = LocationId::new(family.locations.len());
    let location: &Location = &family.locations[at.index()];
    let (location, span) = (location.clone(), location.span);
    family.locations.push(location);
    for step in family.steps.iter_mut().filter(|s| s.source == at) {
        step.source = behind;
    }
    family.steps.push(Step {
        source: at,
        target: behind,
        action: Action::Assert {
            condition,
            message: Some(APART.into()),
        },
        span,
    });
}
