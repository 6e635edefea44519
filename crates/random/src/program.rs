//! Programs worth running.

use crate::property;
use crate::rng::Rng;
use wattle_model::program::{Action, Register, Step};
use wattle_model::{
    Count, Expr, Family, Fence, Init, Length, Local, Location, LocationId, Op1, Op2, Place,
    Program, Region, RegionId, RegisterId, Span, Type,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    /// Threads run forward only: every run is finite.
    None,
    /// A loop that stores also fences, so that buffers stay bounded.
    Fenced,
    /// Buffers may grow without bound under TSO and PSO.
    Any,
}

/// What programs to make.
#[derive(Clone, Debug)]
pub struct Shape {
    /// At most this many threads (at least one).
    pub threads: usize,
    /// About this many statements per thread, at most.
    pub statements: usize,
    /// At most this many regions; an array counts once.
    pub regions: usize,
    pub registers: usize,
    /// Values are 0 to this.
    pub greatest: i64,
    pub arrays: bool,
    pub loops: Loops,
    /// Values out of range, indices out of bounds, divisions by zero and failing assertions may
    /// happen.
    pub faults: bool,
    /// Atomic blocks, `cas`, `swap`.
    pub atomics: bool,
    /// `lock` and `unlock`.
    pub locks: bool,
    pub fences: bool,
    /// Wrap-around types beside ranges.
    pub wraps: bool,
    /// Nondeterministic starts and choices of values.
    pub any: bool,
    /// Two threads of one family instead of two families, now and then.
    pub families: bool,
    /// The first family has any number of threads, which nothing tells apart.
    pub crowd: bool,
    pub properties: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            threads: 3,
            statements: 4,
            regions: 3,
            registers: 2,
            greatest: 2,
            arrays: true,
            loops: Loops::None,
            faults: false,
            atomics: true,
            locks: true,
            fences: true,
            wraps: true,
            any: true,
            families: true,
            crowd: false,
            properties: true,
        }
    }
}

/// A random program of the shape: valid and canonical. The same seed gives the same program.
pub fn program(seed: u64, shape: &Shape) -> Program {
    let mut rng = Rng::new(seed);
    let mut program = Program::default();
    for i in 0..1 + rng.below(shape.regions.max(1)) {
        let length = if shape.arrays && rng.one_in(4) {
            Length::Array(2)
        } else {
            Length::Scalar
        };
        program.regions.push(Region {
            name: ["x", "y", "z", "u", "v"]
                .get(i)
                .map_or_else(|| format!("x{i}"), |n| n.to_string()),
            length,
            ty: ty(&mut rng, shape),
            init: init(&mut rng, shape),
            span: Span::NONE,
        });
    }
    let mut threads = 1 + rng.below(shape.threads.max(1));
    while threads > 0 {
        let crowd = shape.crowd && program.families.is_empty();
        let double = !crowd && shape.families && threads >= 2 && rng.one_in(5);
        let count = match (crowd, double) {
            (true, _) => Count::Any,
            (_, true) => Count::Fixed(2),
            _ => Count::One,
        };
        threads -= if double { 2 } else { 1 };
        let name = format!("p{}", program.families.len());
        let family = Maker::new(&mut rng, shape, &program.regions).family(name, count);
        program.families.push(family);
    }
    if shape.properties {
        property::add(&mut rng, shape.greatest, &mut program);
    }
    program.canonical()
}

fn ty(rng: &mut Rng, shape: &Shape) -> Type {
    if shape.wraps && rng.one_in(4) {
        // Never wider than the range, so that what is read from it fits everywhere.
        let bits = (shape.greatest.max(1) as u64 + 1).ilog2() as u8;
        return Type::Wrap {
            bits,
            signed: false,
        };
    }
    Type::Range {
        lo: 0,
        hi: shape.greatest,
    }
}

fn init(rng: &mut Rng, shape: &Shape) -> Init {
    if shape.any && rng.one_in(12) {
        return Init::Any;
    }
    let value = if rng.one_in(4) {
        rng.between(0, shape.greatest)
    } else {
        0
    };
    Init::All(Expr::Const(value))
}

struct Maker<'m> {
    rng: &'m mut Rng,
    shape: &'m Shape,
    regions: &'m [Region],
    registers: Vec<Register>,
    locations: Vec<Location>,
    steps: Vec<Step>,
    /// Inside an atomic block or between lock and unlock.
    guarded: bool,
}

impl<'m> Maker<'m> {
    fn new(rng: &'m mut Rng, shape: &'m Shape, regions: &'m [Region]) -> Self {
        Maker {
            rng,
            shape,
            regions,
            registers: Vec::new(),
            locations: Vec::new(),
            steps: Vec::new(),
            guarded: false,
        }
    }

    fn family(mut self, name: String, count: Count) -> Family {
        for i in 0..1 + self.rng.below(self.shape.registers.max(1)) {
            self.registers.push(Register {
                name: format!("r{i}"),
                ty: ty(self.rng, self.shape),
                init: init(self.rng, self.shape),
                span: Span::NONE,
            });
        }
        let entry = self.location();
        let statements = 1 + self.rng.below(self.shape.statements.max(1));
        self.block(entry, statements, 0);
        for i in 0..self.locations.len() {
            if self.rng.one_in(6) {
                let label = format!("l{}", i % 3);
                self.locations[i].labels.push(label);
            }
        }
        Family {
            name,
            count,
            registers: self.registers,
            locations: self.locations,
            steps: self.steps,
            entry,
            span: Span::NONE,
        }
    }

    fn location(&mut self) -> LocationId {
        self.locations.push(Location::default());
        LocationId::new(self.locations.len() - 1)
    }

    fn step_to(&mut self, source: LocationId, target: LocationId, action: Action) {
        self.steps.push(Step {
            source,
            target,
            action,
            span: Span::NONE,
        });
    }

    fn step(&mut self, source: LocationId, action: Action) -> LocationId {
        let target = self.location();
        self.step_to(source, target, action);
        target
    }

    fn block(&mut self, mut at: LocationId, statements: usize, depth: usize) -> LocationId {
        for _ in 0..statements {
            at = self.statement(at, depth);
        }
        at
    }

    fn statement(&mut self, at: LocationId, depth: usize) -> LocationId {
        match self.rng.below(20) {
            0..=5 => {
                let action = self.store();
                self.step(at, action)
            }
            6..=10 => {
                let action = self.load();
                self.step(at, action)
            }
            11 => {
                let register = self.register();
                let action = if self.shape.any && self.rng.one_in(3) {
                    let hi = self.rng.between(0, self.shape.greatest);
                    Action::Havoc {
                        register,
                        range: (!self.rng.one_in(3)).then_some((0, hi)),
                    }
                } else {
                    let value = self.value();
                    Action::Assign { register, value }
                };
                self.step(at, action)
            }
            12 if self.shape.fences && !self.guarded => {
                let kind = if self.rng.one_in(3) {
                    Fence::Store
                } else {
                    Fence::Full
                };
                self.step(at, Action::Fence(kind))
            }
            13 if self.shape.atomics && !self.guarded => self.atomic(at),
            // Also in place of fences and atomic blocks, where there are none.
            12..=14 if self.shape.locks && !self.guarded => {
                let at = self.step(at, Action::Lock);
                self.guarded = true;
                let n = 1 + self.rng.below(2);
                let at = self.block(at, n, 9);
                self.guarded = false;
                self.step(at, Action::Unlock)
            }
            15 if self.rng.one_in(3) => {
                let condition = self.test();
                if self.shape.faults && self.rng.one_in(2) {
                    let message = Some("odd".to_string());
                    return self.step(at, Action::Assert { condition, message });
                }
                self.step(at, Action::Assume(condition))
            }
            16 | 17 if depth < 2 => self.branch(at, depth),
            18 if depth < 2 && self.shape.loops != Loops::None && !self.guarded => {
                self.repeat(at, depth)
            }
            19 if self.rng.one_in(4) => self.step(at, Action::Skip),
            _ => {
                let action = self.store();
                self.step(at, action)
            }
        }
    }

    fn branch(&mut self, at: LocationId, depth: usize) -> LocationId {
        let join = self.location();
        let condition = self.test();
        let choose = self.rng.one_in(3);
        for yes in [true, false] {
            let first = match (choose, yes) {
                (true, _) => self.load(),
                (_, true) => Action::Assume(condition.clone()),
                (_, false) => Action::Assume(condition.clone().negate()),
            };
            let inner = self.step(at, first);
            let n = self.rng.below(3);
            let end = self.block(inner, n, depth + 1);
            self.step_to(end, join, Action::Skip);
        }
        join
    }

    fn repeat(&mut self, at: LocationId, depth: usize) -> LocationId {
        // The head is a place of its own: `at` may be where something else branches.
        let head = self.step(at, Action::Skip);
        let condition = self.test();
        let load = self.load();
        let tested = self.step(head, load);
        let inner = self.step(tested, Action::Assume(condition.clone()));
        let after = self.step(tested, Action::Assume(condition.negate()));
        let before = self.steps.len();
        let n = 1 + self.rng.below(2);
        let end = self.block(inner, n, depth + 1);
        let stores = self.steps[before..]
            .iter()
            .any(|s| matches!(s.action, Action::Store { .. }));
        if stores && self.shape.loops == Loops::Fenced {
            self.step_to(end, head, Action::Fence(Fence::Full));
        } else {
            self.step_to(end, head, Action::Skip);
        }
        after
    }

    fn atomic(&mut self, at: LocationId) -> LocationId {
        let section = match self.rng.one_in(3) {
            true => wattle_model::Section::Buffered,
            false => wattle_model::Section::Drained,
        };
        let at = self.step(at, Action::AtomicBegin(section));
        let place = self.place();
        let register = self.register();
        let value = match self.rng.below(3) {
            0 => self.value(),
            _ => Expr::Const(self.rng.between(0, self.shape.greatest)),
        };
        let load = Action::Load {
            register,
            place: place.clone(),
        };
        let loaded = self.step(at, load);
        let store = Action::Store { place, value };
        let end = if self.rng.one_in(2) {
            self.step(loaded, store)
        } else {
            let old = self.rng.between(0, self.shape.greatest);
            let equal = Expr::binary(
                Op2::Eq,
                Expr::Atom(Local::Register(register)),
                Expr::Const(old),
            );
            let yes = self.step(loaded, Action::Assume(equal.clone()));
            let end = self.step(yes, store);
            self.step_to(loaded, end, Action::Assume(equal.negate()));
            end
        };
        self.step(end, Action::AtomicEnd)
    }

    fn load(&mut self) -> Action {
        Action::Load {
            register: self.register(),
            place: self.place(),
        }
    }

    fn store(&mut self) -> Action {
        Action::Store {
            place: self.place(),
            value: self.value(),
        }
    }

    fn register(&mut self) -> RegisterId {
        RegisterId::new(self.rng.below(self.registers.len()))
    }

    fn leaf(&mut self) -> Expr<Local> {
        Expr::Atom(Local::Register(self.register()))
    }

    fn place(&mut self) -> Place {
        let r = self.rng.below(self.regions.len());
        let id = RegionId::new(r);
        let length = match self.regions[r].length {
            Length::Scalar => return Place::Region(id, Expr::Const(0)),
            Length::Array(n) => i64::from(n),
            Length::PerThread(_) => 1,
        };
        let index = match self.rng.below(4) {
            0 if self.shape.faults => self.leaf(),
            0 | 1 => Expr::binary(Op2::Rem, self.leaf(), Expr::Const(length)),
            _ => Expr::Const(self.rng.between(0, length - 1)),
        };
        if self.rng.one_in(8) {
            let base = Expr::Atom(Local::AddressOf(id));
            return Place::Memory(Expr::binary(Op2::Add, base, index));
        }
        Place::Region(id, index)
    }

    /// A value in range, unless faults are wanted.
    fn value(&mut self) -> Expr<Local> {
        let size = self.shape.greatest + 1;
        let reduced = |e| Expr::binary(Op2::Rem, e, Expr::Const(size));
        match self.rng.below(8) {
            0..=3 => Expr::Const(self.rng.between(0, self.shape.greatest)),
            4 => reduced(self.leaf()),
            5 => {
                let c = Expr::Const(self.rng.between(0, self.shape.greatest));
                let sum = Expr::binary(Op2::Add, self.leaf(), c);
                if self.shape.faults && self.rng.one_in(4) {
                    return sum;
                }
                reduced(sum)
            }
            6 => self.test(),
            _ if self.shape.faults && self.rng.one_in(4) => {
                Expr::binary(Op2::Div, Expr::Const(1), self.leaf())
            }
            _ => Expr::unary(
                Op1::Wrap {
                    bits: 1,
                    signed: false,
                },
                Expr::binary(Op2::Sub, self.leaf(), Expr::Const(1)),
            ),
        }
    }

    fn test(&mut self) -> Expr<Local> {
        let c = Expr::Const(self.rng.between(0, self.shape.greatest));
        let op = *self.rng.pick(&[Op2::Eq, Op2::Ne, Op2::Lt, Op2::Ge]);
        let test = Expr::binary(op, self.leaf(), c);
        if !self.shape.crowd && self.rng.one_in(8) {
            let other = Expr::binary(Op2::Eq, Expr::Atom(Local::SelfIndex), self.leaf());
            let op = *self.rng.pick(&[Op2::And, Op2::Or]);
            return Expr::binary(op, test, other);
        }
        test
    }
}
