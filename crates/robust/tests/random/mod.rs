//! Small acyclic programs: lists of accesses with a branch now and then.

use rand::Rng;
use rand::rngs::SmallRng;
use wattle_model::program::{Action, Local, Register, Step};
use wattle_model::{
    Count, Expr, Family, Fence, Init, Length, Location, LocationId, Op2, Place, Program, Region,
    RegionId, RegisterId, Span, Type,
};

#[derive(Clone, Copy)]
pub struct Shape {
    threads: usize,
    steps: usize,
    atomic: bool,
    locks: bool,
}

impl Shape {
    pub fn plain(threads: usize, steps: usize) -> Self {
        Shape {
            threads,
            steps,
            atomic: false,
            locks: false,
        }
    }

    pub fn atomic(self) -> Self {
        Shape {
            atomic: true,
            ..self
        }
    }

    pub fn locks(self) -> Self {
        Shape {
            locks: true,
            ..self
        }
    }
}

struct Thread<'r> {
    rng: &'r mut SmallRng,
    cells: u32,
    steps: Vec<Step>,
    next: usize,
}

impl Thread<'_> {
    fn push(&mut self, action: Action) {
        let (source, target) = (LocationId::new(self.next), LocationId::new(self.next + 1));
        self.steps.push(Step {
            source,
            target,
            action,
            span: Span::NONE,
        });
        self.next += 1;
    }

    fn place(&mut self) -> Place {
        Place::Region(
            RegionId(self.rng.random_range(0..self.cells)),
            Expr::Const(0),
        )
    }

    fn access(&mut self) {
        let place = self.place();
        let register = RegisterId(self.rng.random_range(0..2));
        if self.rng.random_bool(0.5) {
            self.push(Action::Load { register, place });
        } else {
            let value = if self.rng.random_bool(0.7) {
                Expr::Const(self.rng.random_range(0..3))
            } else {
                Expr::Atom(Local::Register(register))
            };
            self.push(Action::Store { place, value });
        }
    }

    fn statement(&mut self, shape: Shape) {
        match self.rng.random_range(0..20) {
            0..=12 => self.access(),
            13 => self.push(Action::Fence(Fence::Full)),
            14 => self.push(Action::Fence(Fence::Store)),
            15 => {
                // Sometimes passes, sometimes ends the thread, sometimes branches.
                let register = RegisterId(self.rng.random_range(0..2));
                let value = Expr::Const(self.rng.random_range(0..2));
                let test = Expr::binary(Op2::Eq, Expr::Atom(Local::Register(register)), value);
                if self.rng.random_bool(0.5) {
                    self.push(Action::Assume(test));
                } else {
                    let here = LocationId::new(self.next);
                    let join = LocationId::new(self.next + 2);
                    self.push(Action::Assume(test.clone()));
                    self.access();
                    self.steps.push(Step {
                        source: here,
                        target: join,
                        action: Action::Assume(test.negate()),
                        span: Span::NONE,
                    });
                }
            }
            16..=17 if shape.atomic => {
                self.push(Action::AtomicBegin(wattle_model::Section::Drained));
                for _ in 0..self.rng.random_range(1..4) {
                    self.access();
                }
                if self.rng.random_bool(0.3) {
                    // It may get stuck.
                    let register = Expr::Atom(Local::Register(RegisterId(0)));
                    let value = Expr::Const(self.rng.random_range(0..2));
                    self.push(Action::Assume(Expr::binary(Op2::Eq, register, value)));
                }
                self.push(Action::AtomicEnd);
            }
            _ if shape.locks => {
                self.push(Action::Lock);
                let accesses = self.rng.random_range(1..4);
                let nested = shape.atomic && self.rng.random_bool(0.5);
                let begin = if nested {
                    self.rng.random_range(0..accesses)
                } else {
                    accesses
                };
                for i in 0..accesses {
                    if i == begin {
                        self.push(Action::AtomicBegin(wattle_model::Section::Drained));
                    }
                    self.access();
                }
                if nested {
                    self.push(Action::AtomicEnd);
                    if self.rng.random_bool(0.3) {
                        self.access();
                    }
                }
                self.push(Action::Unlock);
            }
            _ => self.access(),
        }
    }
}

pub fn program(rng: &mut SmallRng, shape: Shape) -> Program {
    let cells = rng.random_range(2..4);
    let regions = (0..cells).map(|c| Region {
        name: ["x", "y", "z"][c as usize].to_string(),
        length: Length::Scalar,
        ty: Type::Range { lo: 0, hi: 3 },
        init: Init::default(),
        span: Span::NONE,
    });
    let regions = regions.collect();
    let mut families = Vec::new();
    for t in 0..shape.threads {
        let mut thread = Thread {
            rng,
            cells,
            steps: Vec::new(),
            next: 0,
        };
        let steps = thread.rng.random_range(shape.steps.min(2)..=shape.steps);
        for _ in 0..steps {
            thread.statement(shape);
        }
        let (steps, last) = (thread.steps, thread.next);
        families.push(Family {
            name: format!("t{t}"),
            count: Count::One,
            registers: ["a", "b"]
                .map(|name| Register {
                    name: name.to_string(),
                    ty: Type::Range { lo: 0, hi: 3 },
                    init: Init::default(),
                    span: Span::NONE,
                })
                .to_vec(),
            locations: vec![Location::default(); last + 1],
            steps,
            entry: LocationId(0),
            span: Span::NONE,
        });
    }
    Program {
        regions,
        families,
        properties: Vec::new(),
        temporal: Vec::new(),
        predicates: Vec::new(),
    }
    .canonical()
}
