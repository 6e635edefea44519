//! Operators and types compared with wide arithmetic that cannot overflow.

use wattle_model::expr::ArithmeticError::{self, DivisionByZero, Overflow, ShiftOutOfRange};
use wattle_model::{Expr, Op1, Op2, Type};

const VALUES: &[i64] = &[
    i64::MIN,
    i64::MIN + 1,
    -65,
    -64,
    -8,
    -3,
    -2,
    -1,
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    62,
    63,
    64,
    65,
    255,
    256,
    1 << 40,
    i64::MAX - 1,
    i64::MAX,
];

const OPERATORS: &[Op2] = &[
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

/// Bit by bit, as on paper.
fn bitwise(a: i64, b: i64, bit: impl Fn(bool, bool) -> bool) -> i128 {
    let one = |i: u32| bit((a >> i) & 1 == 1, (b >> i) & 1 == 1);
    let low: i128 = (0..63).filter(|i| one(*i)).map(|i| 1i128 << i).sum();
    if one(63) { low - (1i128 << 63) } else { low }
}

fn expected(op: Op2, a: i64, b: i64) -> Result<i128, ArithmeticError> {
    let (x, y) = (i128::from(a), i128::from(b));
    let power = || (0..y).fold(1i128, |p, _| p * 2);
    Ok(match op {
        Op2::Add => x + y,
        Op2::Sub => x - y,
        Op2::Mul => x * y,
        Op2::Div | Op2::Rem if y == 0 => return Err(DivisionByZero),
        Op2::Div => x / y,
        Op2::Rem => x - y * (x / y),
        Op2::BitAnd => bitwise(a, b, |p, q| p && q),
        Op2::BitOr => bitwise(a, b, |p, q| p || q),
        Op2::BitXor => bitwise(a, b, |p, q| p != q),
        Op2::Shl | Op2::Shr if !(0..64).contains(&y) => return Err(ShiftOutOfRange),
        Op2::Shl => x * power(),
        Op2::Shr => x.div_euclid(power()),
        Op2::Eq => i128::from(x == y),
        Op2::Ne => i128::from(x != y),
        Op2::Lt => i128::from(x < y),
        Op2::Le => i128::from(x <= y),
        Op2::Gt => i128::from(x > y),
        Op2::Ge => i128::from(x >= y),
        Op2::And => i128::from(x != 0 && y != 0),
        Op2::Or => i128::from(x != 0 || y != 0),
    })
}

#[test]
fn binary_operators() {
    for op in OPERATORS {
        for a in VALUES {
            for b in VALUES {
                let wide = expected(*op, *a, *b);
                let fits = wide.and_then(|w| i64::try_from(w).map_err(|_| Overflow));
                let e: Expr<i64> = Expr::binary(*op, Expr::Atom(*a), Expr::Atom(*b));
                let value = e.eval(&|v: &i64| *v);
                assert_eq!(value, fits, "{a} {} {b}", op.symbol());
                // Constants are folded to the same.
                let folded: Expr<i64> = Expr::binary(*op, Expr::Const(*a), Expr::Const(*b));
                assert_eq!(folded.eval(&|v: &i64| *v), fits, "{a} {} {b}", op.symbol());
            }
        }
    }
}

/// The low bits, counted by hand.
fn low_bits(v: i64, bits: u32, signed: bool) -> i128 {
    let modulus = 1i128 << bits;
    let low = i128::from(v).rem_euclid(modulus);
    match signed && low >= modulus / 2 {
        true => low - modulus,
        false => low,
    }
}

#[test]
fn unary_operators_and_casts() {
    for a in VALUES {
        let unary = |op: Op1| Expr::unary(op, Expr::Atom(*a)).eval(&|v: &i64| *v);
        let negated = i64::try_from(-i128::from(*a)).map_err(|_| Overflow);
        assert_eq!(unary(Op1::Neg), negated, "-{a}");
        assert_eq!(unary(Op1::Not), Ok(i64::from(*a == 0)), "!{a}");
        assert_eq!(unary(Op1::BitNot).map(i128::from), Ok(-i128::from(*a) - 1));
        for bits in 1..=64u8 {
            for signed in [false, true] {
                if bits == 64 && !signed {
                    continue;
                }
                let value = unary(Op1::Wrap { bits, signed }).map(i128::from);
                let low = low_bits(*a, bits.into(), signed);
                assert_eq!(value, Ok(low), "{bits} bits of {a}, signed {signed}");
                let ty = Type::Wrap { bits, signed };
                assert_eq!(ty.admit(*a).map(i128::from), Some(low));
                let half = 1i128 << (bits - 1);
                let bounds = match signed {
                    true => (-half, half - 1),
                    false => (0, 2 * half - 1),
                };
                let told = ty.bounds().map(|(lo, hi)| (lo.into(), hi.into()));
                assert_eq!(told, Some(bounds), "{ty:?}");
            }
        }
    }
}

#[test]
fn ranges() {
    for lo in [-2, 0, 1] {
        for hi in [lo, lo + 1, lo + 3] {
            let ty = Type::Range { lo, hi };
            assert_eq!(ty.bounds(), Some((lo, hi)));
            for v in VALUES {
                let inside = (lo..=hi).contains(v).then_some(*v);
                assert_eq!(ty.admit(*v), inside, "{v} in {lo}..{hi}");
            }
        }
    }
    assert_eq!(Type::Int.admit(i64::MIN), Some(i64::MIN));
    assert_eq!(Type::Int.bounds(), None);
}

#[test]
fn what_is_not_needed_is_not_evaluated() {
    let bad = || Expr::binary(Op2::Div, Expr::Const(1), Expr::Atom(0));
    let value = |e: Expr<i64>| e.eval(&|v: &i64| *v);
    let two = || Expr::Atom(2);
    let zero = || Expr::Atom(0);
    assert_eq!(value(Expr::binary(Op2::And, zero(), bad())), Ok(0));
    assert_eq!(value(Expr::binary(Op2::And, two(), two())), Ok(1));
    assert_eq!(
        value(Expr::binary(Op2::And, two(), bad())),
        Err(DivisionByZero)
    );
    assert_eq!(
        value(Expr::binary(Op2::And, bad(), zero())),
        Err(DivisionByZero)
    );
    assert_eq!(value(Expr::binary(Op2::Or, two(), bad())), Ok(1));
    assert_eq!(value(Expr::binary(Op2::Or, zero(), two())), Ok(1));
    assert_eq!(
        value(Expr::binary(Op2::Or, zero(), bad())),
        Err(DivisionByZero)
    );
    assert_eq!(value(Expr::ite(two(), Expr::Atom(7), bad())), Ok(7));
    assert_eq!(value(Expr::ite(zero(), bad(), Expr::Atom(8))), Ok(8));
    assert_eq!(value(Expr::ite(zero(), two(), bad())), Err(DivisionByZero));
    // Both sides of the others.
    assert_eq!(
        value(Expr::binary(Op2::Mul, zero(), bad())),
        Err(DivisionByZero)
    );
}

#[test]
fn negation() {
    for a in VALUES {
        for b in VALUES {
            for op in OPERATORS {
                let e: Expr<i64> = Expr::binary(*op, Expr::Atom(*a), Expr::Atom(*b));
                let value = e.eval(&|v: &i64| *v).map(|v| i64::from(v == 0));
                let negated = e.negate().eval(&|v: &i64| *v);
                assert_eq!(negated, value, "!({a} {} {b})", op.symbol());
            }
        }
    }
}
