//! Small random programs, and the obvious way to explore them.

pub mod explorer;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use wattle_model::graph::Action;
use wattle_model::program::{Family, Local, Place, Program, Region, Register, Step};
use wattle_model::{
    Condition, Count, Expr, FamilyId, Fence, Init, Length, Location, LocationId, Observation, Op2,
    Property, PropertyKind, RegionId, RegisterId, Section, Span, ThreadIndex, ThreadRef, Type,
};

/// A thread's text, small enough to shrink by leaving statements out.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    Do(Action<Local, Place>),
    If(Expr<Local>, Vec<Stmt>, Vec<Stmt>),
    Choose(Vec<Stmt>, Vec<Stmt>),
    While(Expr<Local>, Vec<Stmt>),
    Atomic(Section, Vec<Stmt>),
    Locked(Vec<Stmt>),
}

#[derive(Clone, Debug)]
pub struct Sample {
    pub regions: Vec<Region>,
    pub registers: Vec<Vec<Register>>,
    pub threads: Vec<Vec<Stmt>>,
    pub property: Property,
}

/// What the generator may use.
#[derive(Clone, Copy, Debug)]
pub struct Taste {
    /// Values outside ranges, failing assertions, indices outside arrays.
    pub faults: bool,
    /// Loads, stores and fences only, as in a litmus test.
    pub litmus: bool,
    pub threads: usize,
    pub statements: usize,
}

impl Taste {
    /// A mixed diet: every fourth program may fault, every third is a litmus test, every eighth has a
    /// third thread.
    pub fn number(n: u64) -> Taste {
        let third = n.is_multiple_of(8);
        Taste {
            faults: n.is_multiple_of(4),
            litmus: n.is_multiple_of(3),
            threads: if third { 3 } else { 2 },
            statements: if third { 3 } else { 4 },
        }
    }
}

pub fn rng(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}

struct Gen<'r> {
    rng: &'r mut SmallRng,
    taste: Taste,
    regions: usize,
    array: Option<u32>,
    registers: usize,
    /// Inside a loop that may run for ever: stores would pile up.
    looping: bool,
    atomic: bool,
    locked: bool,
}

pub fn sample(rng: &mut SmallRng, taste: Taste) -> Sample {
    let scalars = [1, 2, 2, 2, 3][rng.random_range(0..5)];
    let types = [
        Type::Range { lo: 0, hi: 2 },
        Type::Wrap {
            bits: 2,
            signed: false,
        },
        Type::Int,
        Type::Wrap {
            bits: 2,
            signed: true,
        },
    ];
    let named = |name: String, ty, init| Region {
        name,
        length: Length::Scalar,
        ty,
        init,
        span: Span::NONE,
    };
    let mut regions = Vec::new();
    for i in 0..scalars {
        let ty = types[rng.random_range(0..types.len())];
        let init = match rng.random_range(0..12) {
            0 if ty.bounds().is_some() => Init::Any,
            1 => Init::All(Expr::Const(1)),
            _ => Init::default(),
        };
        regions.push(named(format!("x{i}"), ty, init));
    }
    let array = rng.random_bool(0.2).then_some(2);
    if let Some(n) = array {
        let mut region = named("a".into(), types[1], Init::default());
        region.length = Length::Array(n);
        regions.push(region);
    }
    let mut all = Vec::new();
    let mut threads = Vec::new();
    let count = rng.random_range(2..=taste.threads);
    for _ in 0..count {
        let n = rng.random_range(2..=3);
        let mut registers = Vec::new();
        for i in 0..n {
            let ty = types[rng.random_range(1..types.len())];
            registers.push(Register {
                name: format!("r{i}"),
                ty,
                init: Init::default(),
                span: Span::NONE,
            });
        }
        let statements = rng.random_range(taste.statements - 2..=taste.statements);
        let mut g = Gen {
            rng,
            taste,
            regions: scalars,
            array,
            registers: n,
            looping: false,
            atomic: false,
            locked: false,
        };
        threads.push(g.block(statements, 2));
        all.push(registers);
    }
    let property = property(rng, &all, scalars);
    Sample {
        regions,
        registers: all,
        threads,
        property,
    }
}

fn property(rng: &mut SmallRng, registers: &[Vec<Register>], scalars: usize) -> Property {
    let atom = |rng: &mut SmallRng| {
        let t = rng.random_range(0..registers.len());
        let thread = ThreadRef {
            family: FamilyId::new(t),
            index: ThreadIndex::Number(0),
        };
        let equals = |o, v| Expr::binary(Op2::Eq, Expr::Atom(o), Expr::Const(v));
        match rng.random_range(0..3) {
            0 => Expr::Atom(Observation::At(
                thread,
                format!("l{}", rng.random_range(0..8)),
            )),
            1 => {
                let r = rng.random_range(0..registers[t].len());
                equals(
                    Observation::Register(thread, RegisterId::new(r)),
                    rng.random_range(0..3),
                )
            }
            _ => {
                let region = RegionId::new(rng.random_range(0..scalars));
                equals(
                    Observation::Cell(region, Box::new(Expr::Const(0))),
                    rng.random_range(0..3),
                )
            }
        }
    };
    let (a, b) = (atom(rng), atom(rng));
    let kinds = [
        PropertyKind::Never,
        PropertyKind::Never,
        PropertyKind::Never,
        PropertyKind::Reachable,
    ];
    Property {
        kind: kinds[rng.random_range(0..kinds.len())],
        condition: Condition {
            indices: Vec::new(),
            expr: Expr::binary(Op2::And, a, b),
        },
        span: Span::NONE,
    }
}

impl Gen<'_> {
    fn block(&mut self, n: usize, depth: usize) -> Vec<Stmt> {
        (0..n).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: usize) -> Stmt {
        let nested = depth > 0 && !self.taste.litmus && self.rng.random_bool(0.2);
        if !nested {
            return Stmt::Do(self.action());
        }
        match self.rng.random_range(0..8) {
            0 | 1 => {
                let c = self.condition();
                Stmt::If(c, self.block(1, depth - 1), self.block(1, depth - 1))
            }
            2 => Stmt::Choose(self.block(1, depth - 1), self.block(1, depth - 1)),
            3 => {
                let c = self.condition();
                let before = std::mem::replace(&mut self.looping, true);
                let body = self.block(1, depth - 1);
                self.looping = before;
                Stmt::While(c, body)
            }
            4 if !self.atomic => {
                self.atomic = true;
                let n = self.rng.random_range(1..=2);
                let body = self.block(n, depth - 1);
                self.atomic = false;
                let section = match self.rng.random_bool(0.5) {
                    true => Section::Drained,
                    false => Section::Buffered,
                };
                Stmt::Atomic(section, body)
            }
            _ if !self.atomic && !self.locked => {
                self.locked = true;
                let n = self.rng.random_range(1..=3);
                let body = self.block(n, depth - 1);
                self.locked = false;
                Stmt::Locked(body)
            }
            _ => Stmt::Do(Action::Skip),
        }
    }

    fn register(&mut self) -> RegisterId {
        RegisterId::new(self.rng.random_range(0..self.registers))
    }

    fn place(&mut self) -> Place {
        if let Some(n) = self.array
            && self.rng.random_bool(0.3)
        {
            let region = RegionId::new(self.regions);
            let index = if self.taste.faults && self.rng.random_bool(0.3) {
                Expr::Atom(Local::Register(self.register()))
            } else {
                let r = Expr::Atom(Local::Register(self.register()));
                Expr::binary(Op2::BitAnd, r, Expr::Const(i64::from(n) - 1))
            };
            return Place::Region(region, index);
        }
        let region = RegionId::new(self.rng.random_range(0..self.regions));
        Place::Region(region, Expr::Const(0))
    }

    fn value(&mut self) -> Expr<Local> {
        let r = Expr::Atom(Local::Register(self.register()));
        match self.rng.random_range(0..5) {
            0 | 1 => Expr::Const(self.rng.random_range(0..=2)),
            2 => r,
            // Only in straight lines, or unbounded integers would grow for ever.
            3 if !self.looping && self.taste.faults => Expr::binary(Op2::Add, r, Expr::Const(1)),
            _ => Expr::binary(
                Op2::BitXor,
                Expr::binary(Op2::BitAnd, r, Expr::Const(1)),
                Expr::Const(1),
            ),
        }
    }

    fn condition(&mut self) -> Expr<Local> {
        let r = Expr::Atom(Local::Register(self.register()));
        let op = [Op2::Eq, Op2::Ne, Op2::Lt][self.rng.random_range(0..3)];
        Expr::binary(op, r, Expr::Const(self.rng.random_range(0..=1)))
    }

    fn action(&mut self) -> Action<Local, Place> {
        let to = if self.taste.litmus { 0 } else { 14 };
        match self.rng.random_range(-14..to) {
            -14..=-13 => Action::Fence(if self.rng.random_bool(0.3) {
                Fence::Full
            } else {
                Fence::Store
            }),
            -12..=-7 => Action::Load {
                register: self.register(),
                place: self.place(),
            },
            -6..=-1 if !self.looping => Action::Store {
                place: self.place(),
                value: Expr::Const(self.rng.random_range(1..=2)),
            },
            -6..=3 => Action::Load {
                register: self.register(),
                place: self.place(),
            },
            4..=7 if !self.looping => Action::Store {
                place: self.place(),
                value: if self.taste.faults {
                    self.value()
                } else {
                    Expr::Const(self.rng.random_range(0..=2))
                },
            },
            4..=8 => Action::Assign {
                register: self.register(),
                value: self.value(),
            },
            9 => Action::Havoc {
                register: self.register(),
                range: Some((0, 1)),
            },
            10 => Action::Fence(if self.rng.random_bool(0.6) {
                Fence::Full
            } else {
                Fence::Store
            }),
            11 if self.taste.faults => Action::Assert {
                condition: self.condition(),
                message: None,
            },
            11 | 12 => Action::Assume(self.condition()),
            _ => Action::Skip,
        }
    }
}

/// Lowers statements to a graph.
struct Lower {
    locations: Vec<Location>,
    steps: Vec<Step>,
}

impl Lower {
    fn location(&mut self) -> LocationId {
        let labels = vec![format!("l{}", self.locations.len())];
        self.locations.push(Location {
            labels,
            span: Span::NONE,
        });
        LocationId::new(self.locations.len() - 1)
    }

    fn step(&mut self, source: LocationId, target: LocationId, action: Action<Local, Place>) {
        self.steps.push(Step {
            source,
            target,
            action,
            span: Span::NONE,
        });
    }

    fn block(&mut self, mut at: LocationId, block: &[Stmt]) -> LocationId {
        for s in block {
            at = self.statement(at, s);
        }
        at
    }

    fn branch(
        &mut self,
        at: LocationId,
        guard: Action<Local, Place>,
        body: &[Stmt],
        to: LocationId,
    ) {
        let inside = self.location();
        self.step(at, inside, guard);
        let end = self.block(inside, body);
        self.step(end, to, Action::Skip);
    }

    fn statement(&mut self, at: LocationId, s: &Stmt) -> LocationId {
        match s {
            Stmt::Do(action) => {
                let next = self.location();
                self.step(at, next, action.clone());
                next
            }
            Stmt::If(c, a, b) => {
                let next = self.location();
                self.branch(at, Action::Assume(c.clone()), a, next);
                self.branch(at, Action::Assume(c.clone().negate()), b, next);
                next
            }
            Stmt::Choose(a, b) => {
                let next = self.location();
                self.branch(at, Action::Skip, a, next);
                self.branch(at, Action::Skip, b, next);
                next
            }
            Stmt::While(c, body) => {
                let head = self.location();
                self.step(at, head, Action::Skip);
                self.branch(head, Action::Assume(c.clone()), body, head);
                let next = self.location();
                self.step(head, next, Action::Assume(c.clone().negate()));
                next
            }
            Stmt::Atomic(section, body) => {
                let begin = Action::AtomicBegin(*section);
                self.between(at, begin, body, Action::AtomicEnd)
            }
            Stmt::Locked(body) => self.between(at, Action::Lock, body, Action::Unlock),
        }
    }

    fn between(
        &mut self,
        at: LocationId,
        open: Action<Local, Place>,
        body: &[Stmt],
        close: Action<Local, Place>,
    ) -> LocationId {
        let inside = self.location();
        self.step(at, inside, open);
        let end = self.block(inside, body);
        let next = self.location();
        self.step(end, next, close);
        next
    }
}

impl Sample {
    pub fn program(&self) -> Program {
        let families = self.threads.iter().enumerate().map(|(i, body)| {
            let mut lower = Lower {
                locations: Vec::new(),
                steps: Vec::new(),
            };
            let entry = lower.location();
            lower.block(entry, body);
            Family {
                name: format!("p{i}"),
                count: Count::One,
                registers: self.registers[i].clone(),
                locations: lower.locations,
                steps: lower.steps,
                entry,
                span: Span::NONE,
            }
        });
        Program {
            regions: self.regions.clone(),
            families: families.collect(),
            properties: vec![self.property.clone()],
            temporal: Vec::new(),
            predicates: Vec::new(),
        }
    }

    /// A full fence after every store outside atomic blocks.
    pub fn fenced(&self) -> Sample {
        fn walk(block: &[Stmt]) -> Vec<Stmt> {
            let mut out = Vec::new();
            for s in block {
                out.push(match s {
                    Stmt::Do(a) => Stmt::Do(a.clone()),
                    Stmt::If(c, a, b) => Stmt::If(c.clone(), walk(a), walk(b)),
                    Stmt::Choose(a, b) => Stmt::Choose(walk(a), walk(b)),
                    Stmt::While(c, a) => Stmt::While(c.clone(), walk(a)),
                    Stmt::Atomic(Section::Drained, a) => Stmt::Atomic(Section::Drained, a.clone()),
                    Stmt::Atomic(Section::Buffered, a) => Stmt::Atomic(Section::Buffered, walk(a)),
                    Stmt::Locked(a) => Stmt::Locked(walk(a)),
                });
                if matches!(s, Stmt::Do(Action::Store { .. })) {
                    out.push(Stmt::Do(Action::Fence(Fence::Full)));
                }
            }
            out
        }
        let mut fenced = self.clone();
        for t in &mut fenced.threads {
            *t = walk(t);
        }
        fenced
    }

    /// The smallest sample that still fails, found by leaving out one statement at a time.
    pub fn shrink(&self, fails: &dyn Fn(&Sample) -> bool) -> Sample {
        let mut best = self.clone();
        'again: loop {
            for smaller in best.smaller() {
                if fails(&smaller) {
                    best = smaller;
                    continue 'again;
                }
            }
            return best;
        }
    }

    fn smaller(&self) -> Vec<Sample> {
        fn variants(block: &[Stmt]) -> Vec<Vec<Stmt>> {
            let mut out = Vec::new();
            for (i, s) in block.iter().enumerate() {
                let with = |middle: Vec<Stmt>| {
                    let mut b = block[..i].to_vec();
                    b.extend(middle);
                    b.extend_from_slice(&block[i + 1..]);
                    b
                };
                out.push(with(Vec::new()));
                match s {
                    Stmt::Do(_) => {}
                    Stmt::If(c, a, b) => {
                        out.extend([with(a.clone()), with(b.clone())]);
                        for v in variants(a) {
                            out.push(with(vec![Stmt::If(c.clone(), v, b.clone())]));
                        }
                        for v in variants(b) {
                            out.push(with(vec![Stmt::If(c.clone(), a.clone(), v)]));
                        }
                    }
                    Stmt::Choose(a, b) => out.extend([with(a.clone()), with(b.clone())]),
                    Stmt::While(c, a) => {
                        out.push(with(a.clone()));
                        for v in variants(a) {
                            out.push(with(vec![Stmt::While(c.clone(), v)]));
                        }
                    }
                    Stmt::Atomic(s, a) => {
                        for v in variants(a) {
                            out.push(with(vec![Stmt::Atomic(*s, v)]));
                        }
                    }
                    Stmt::Locked(a) => {
                        for v in variants(a) {
                            out.push(with(vec![Stmt::Locked(v)]));
                        }
                    }
                }
            }
            out
        }
        let mut out = Vec::new();
        for t in 0..self.threads.len() {
            for v in variants(&self.threads[t]) {
                let mut s = self.clone();
                s.threads[t] = v;
                out.push(s);
            }
        }
        out
    }
}
