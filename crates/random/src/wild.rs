//! Programs worth printing: any graph, any expression, names from other languages.

use crate::property;
use crate::rng::Rng;
use wattle_model::program::{Action, Register, Step};
use wattle_model::{
    Condition, Count, Expr, Family, FamilyId, Fence, Init, Length, Local, Location, LocationId,
    Op1, Op2, Place, Program, Region, RegionId, RegisterId, Section, Span, Type, validate,
};

const NAMES: &[&str] = &[
    "x",
    "flag",
    "$r1",
    "q0.1",
    "self",
    "u8",
    "int",
    "a b",
    "lock",
    "or",
    "_1",
    "12",
    "é",
    "i7",
    "back`quote",
    "new\nline",
    "shared",
    "count",
    "begin",
    "%eax",
    "ltl",
    "\\",
];

/// Any valid, canonical program. Running it makes no sense.
pub fn wild(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    // Most draws are valid; atomic blocks on one path only are not.
    for _ in 0..20 {
        let program = draw(&mut rng).canonical();
        if validate(&program).is_empty() {
            return program;
        }
    }
    Program::default()
}

/// A name of the list that nobody has yet.
fn name(rng: &mut Rng, taken: &mut Vec<String>) -> String {
    loop {
        let mut n = (*rng.pick(NAMES)).to_string();
        if taken.contains(&n) {
            n = format!("{n}{}", rng.below(100));
        }
        if !taken.contains(&n) {
            taken.push(n.clone());
            return n;
        }
    }
}

fn number(rng: &mut Rng) -> i64 {
    match rng.below(12) {
        0 => i64::MIN,
        1 => i64::MAX,
        2 | 3 => -rng.between(1, 9),
        _ => rng.between(0, 9),
    }
}

fn draw(rng: &mut Rng) -> Program {
    let mut program = Program::default();
    let mut taken = Vec::new();
    let families = rng.below(4);
    for _ in 0..rng.below(4) {
        let length = match rng.below(4) {
            0 => Length::Array(1 + rng.below(3) as u32),
            1 if families > 0 => Length::PerThread(FamilyId::new(rng.below(families))),
            _ => Length::Scalar,
        };
        let init = match (rng.below(5), length) {
            (0, _) => Init::Any,
            (1, _) => Init::All(fixed(rng, families)),
            (2, Length::Array(n)) => Init::Each((0..n).map(|_| fixed(rng, families)).collect()),
            (3, Length::PerThread(_)) => Init::Each(vec![fixed(rng, families)]),
            _ => Init::default(),
        };
        program.regions.push(Region {
            name: name(rng, &mut taken),
            length,
            ty: ty(rng, families),
            init,
            span: Span::NONE,
        });
    }
    let counts = [Count::One, Count::Fixed(1), Count::Fixed(3), Count::Any];
    for _ in 0..families {
        let name = name(rng, &mut taken);
        let count = *rng.pick(&counts);
        let family = graph(rng, name, count, &program, families);
        program.families.push(family);
    }
    if families > 0 {
        property::add(rng, 3, &mut program);
        for p in &mut program.properties {
            index_tricks(rng, &mut p.condition, &mut taken);
        }
        if rng.one_in(3) {
            let hint = program.properties[0].condition.clone();
            program.predicates.push(hint);
        }
    }
    program
}

/// Unused and reordered index variables, with odd names.
fn index_tricks(rng: &mut Rng, c: &mut Condition, taken: &mut Vec<String>) {
    for v in &mut c.indices {
        v.name = name(rng, taken);
    }
    if let Some(v) = c.indices.last().cloned()
        && rng.one_in(3)
    {
        let mut unused = v;
        unused.name = name(rng, taken);
        c.indices.push(unused);
    }
}

fn ty(rng: &mut Rng, families: usize) -> Type {
    match rng.below(6) {
        0 => Type::BOOL,
        1 => {
            let (a, b) = (number(rng), number(rng));
            Type::Range {
                lo: a.min(b),
                hi: a.max(b),
            }
        }
        2 => Type::Wrap {
            bits: 1 + rng.below(63) as u8,
            signed: rng.one_in(2),
        },
        3 => Type::Wrap {
            bits: 64,
            signed: true,
        },
        4 if families > 0 => Type::Thread(FamilyId::new(rng.below(families))),
        _ => Type::Int,
    }
}

/// An initial value.
fn fixed(rng: &mut Rng, families: usize) -> Expr<Local> {
    expr(rng, 2, &mut |rng| match rng.below(2) {
        0 if families > 0 => Local::Count(FamilyId::new(rng.below(families))),
        _ => Local::SelfIndex,
    })
}

fn expr(rng: &mut Rng, depth: usize, leaf: &mut dyn FnMut(&mut Rng) -> Local) -> Expr<Local> {
    const BINARY: &[Op2] = &[
        Op2::Add,
        Op2::Sub,
        Op2::Mul,
        Op2::Div,
        Op2::Rem,
        Op2::BitAnd,
        Op2::BitOr,
        Op2::BitXor,
        Op2::Shl,
        Op2::Shr,
        Op2::Eq,
        Op2::Ne,
        Op2::Lt,
        Op2::Le,
        Op2::Gt,
        Op2::Ge,
        Op2::And,
        Op2::Or,
    ];
    if depth == 0 || rng.one_in(3) {
        if rng.one_in(3) {
            return Expr::Const(number(rng));
        }
        return Expr::Atom(leaf(rng));
    }
    match rng.below(10) {
        0 => Expr::unary(Op1::Neg, expr(rng, depth - 1, leaf)),
        1 => Expr::unary(Op1::Not, expr(rng, depth - 1, leaf)),
        2 => Expr::unary(Op1::BitNot, expr(rng, depth - 1, leaf)),
        3 => {
            let op = Op1::Wrap {
                bits: 1 + rng.below(63) as u8,
                signed: rng.one_in(2),
            };
            Expr::unary(op, expr(rng, depth - 1, leaf))
        }
        4 => Expr::ite(
            expr(rng, depth - 1, leaf),
            expr(rng, depth - 1, leaf),
            expr(rng, depth - 1, leaf),
        ),
        _ => {
            let op = *rng.pick(BINARY);
            Expr::binary(op, expr(rng, depth - 1, leaf), expr(rng, depth - 1, leaf))
        }
    }
}

fn graph(rng: &mut Rng, own: String, count: Count, program: &Program, families: usize) -> Family {
    let mut taken: Vec<String> = program.regions.iter().map(|r| r.name.clone()).collect();
    let registers: Vec<Register> = (0..rng.below(4))
        .map(|_| Register {
            name: name(rng, &mut taken),
            ty: ty(rng, families),
            init: match rng.below(3) {
                0 => Init::All(fixed(rng, families)),
                1 => Init::Any,
                _ => Init::default(),
            },
            span: Span::NONE,
        })
        .collect();
    let n = 1 + rng.below(7);
    let locations = (0..n)
        .map(|_| Location {
            labels: (0..rng.below(6).saturating_sub(3))
                .map(|_| (*rng.pick(NAMES)).to_string())
                .collect(),
            span: Span::NONE,
        })
        .collect();
    let mut steps = Vec::new();
    for _ in 0..rng.below(2 * n + 1) {
        let source = LocationId::new(rng.below(n));
        let target = LocationId::new(rng.below(n));
        let mut add = |action| {
            steps.push(Step {
                source,
                target,
                action,
                span: Span::NONE,
            });
        };
        let action = action(rng, program, &registers, families);
        if let Action::Assume(c) = &action
            && rng.one_in(2)
        {
            add(Action::Assume(c.clone().negate()));
        }
        add(action);
    }
    Family {
        name: own,
        count,
        registers,
        locations,
        steps,
        entry: LocationId::new(rng.below(n)),
        span: Span::NONE,
    }
}

fn action(rng: &mut Rng, program: &Program, registers: &[Register], families: usize) -> Action {
    let (r, m) = (registers.len(), program.regions.len());
    let value = |rng: &mut Rng| {
        expr(rng, 3, &mut |rng| match rng.below(6) {
            0 if families > 0 => Local::Count(FamilyId::new(rng.below(families))),
            1 if m > 0 => Local::AddressOf(RegionId::new(rng.below(m))),
            2 | 3 if r > 0 => Local::Register(RegisterId::new(rng.below(r))),
            _ => Local::SelfIndex,
        })
    };
    let place = |rng: &mut Rng| {
        if m == 0 || rng.one_in(4) {
            return Place::Memory(value(rng));
        }
        let id = rng.below(m);
        let index = match program.regions[id].length {
            Length::Scalar => Expr::Const(0),
            Length::Array(_) | Length::PerThread(_) => value(rng),
        };
        Place::Region(RegionId::new(id), index)
    };
    match rng.below(12) {
        0 => Action::Fence(Fence::Full),
        1 => Action::Fence(Fence::Store),
        2 => Action::Lock,
        3 => Action::Unlock,
        4 if rng.one_in(2) => Action::AtomicBegin(match rng.one_in(2) {
            true => Section::Drained,
            false => Section::Buffered,
        }),
        4 => Action::AtomicEnd,
        5 => Action::Assert {
            condition: value(rng),
            message: rng
                .one_in(2)
                .then(|| "a \"message\"\n\twith\\odd `signs`".to_string()),
        },
        6 | 7 => Action::Assume(value(rng)),
        8 if r > 0 => Action::Assign {
            register: RegisterId::new(rng.below(r)),
            value: value(rng),
        },
        9 if r > 0 => Action::Havoc {
            register: RegisterId::new(rng.below(r)),
            range: rng.one_in(2).then(|| (-3, rng.between(-3, 5))),
        },
        10 if r > 0 => Action::Load {
            register: RegisterId::new(rng.below(r)),
            place: place(rng),
        },
        11 => Action::Store {
            place: place(rng),
            value: value(rng),
        },
        _ => Action::Skip,
    }
}
