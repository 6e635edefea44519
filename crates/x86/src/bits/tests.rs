//! Random expressions: simplified, and said in the words of the model, they mean the same.

use super::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const OPS: [Bin; 13] = [
    Bin::Add,
    Bin::Sub,
    Bin::Mul,
    Bin::Udiv,
    Bin::Urem,
    Bin::Sdiv,
    Bin::Srem,
    Bin::And,
    Bin::Or,
    Bin::Xor,
    Bin::Shl,
    Bin::Shr,
    Bin::Sar,
];
const TESTS: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Ult, Cmp::Ule, Cmp::Slt, Cmp::Sle];

fn number(rng: &mut SmallRng) -> u64 {
    let n: u64 = rng.random();
    match rng.random_range(0..4) {
        0 => n & 3,
        1 => (n & 3).wrapping_neg(),
        2 => 1 << (n & 63),
        _ => n,
    }
}

/// An expression as the constructors make it, and as it is written.
fn random(rng: &mut SmallRng, w: u32, depth: u32) -> (E, E) {
    let leaf = depth == 0 || rng.random_range(0..5) == 0;
    if leaf {
        let e = match rng.random_range(0..3) {
            0 => E::constant(number(rng), w),
            _ => E::Var(VarId(w * 4 + rng.random_range(0..3)), w),
        };
        return (e.clone(), e);
    }
    let pair = |rng: &mut SmallRng, w| (random(rng, w, depth - 1), random(rng, w, depth - 1));
    let widths = [1, 8, 16, 32, 64];
    match rng.random_range(0..9) {
        8 if w > 1 => {
            // Put together from two parts, with something added or compared.
            let low = rng.random_range(1..w);
            let (a, x) = random(rng, low, depth.min(2) - 1);
            let (b, y) = random(rng, w - low, depth.min(2) - 1);
            let raw = E::Insert(Box::new(E::Zext(Box::new(x), w)), Box::new(y), low);
            (a.zext(w).insert(b, low), raw)
        }
        0..3 => {
            let op = OPS[rng.random_range(0..OPS.len())];
            let ((a, x), (b, y)) = pair(rng, w);
            (E::bin(op, a, b), E::Bin(op, Box::new(x), Box::new(y)))
        }
        3 => {
            let (a, x) = random(rng, w, depth - 1);
            (a.inverted(), E::Not(Box::new(x)))
        }
        4 if w == 1 => {
            let op = TESTS[rng.random_range(0..6)];
            let v = widths[rng.random_range(0..5)];
            let ((a, x), (b, y)) = pair(rng, v);
            (E::test(op, a, b), E::Cmp(op, Box::new(x), Box::new(y)))
        }
        4 | 5 => {
            let wider: Vec<u32> = widths.into_iter().filter(|v| *v > w).collect();
            let narrower: Vec<u32> = widths.into_iter().filter(|v| *v < w).collect();
            if !wider.is_empty() && rng.random() {
                let v = wider[rng.random_range(0..wider.len())];
                let low = rng.random_range(0..=v - w);
                let (a, x) = random(rng, v, depth - 1);
                (a.extract(low, w), E::Extract(Box::new(x), low, w))
            } else if narrower.is_empty() {
                random(rng, w, depth - 1)
            } else {
                let v = narrower[rng.random_range(0..narrower.len())];
                let (a, x) = random(rng, v, depth - 1);
                match rng.random() {
                    true => (a.zext(w), E::Zext(Box::new(x), w)),
                    false => (a.sext(w), E::Sext(Box::new(x), w)),
                }
            }
        }
        6 if w > 8 => {
            let low = rng.random_range(0..=w - 8);
            let (a, x) = random(rng, w, depth - 1);
            let (b, y) = random(rng, 8, depth - 1);
            (a.insert(b, low), E::Insert(Box::new(x), Box::new(y), low))
        }
        _ => {
            let (c, z) = random(rng, 1, depth - 1);
            let ((a, x), (b, y)) = pair(rng, w);
            let raw = E::Ite(Box::new(z), Box::new(x), Box::new(y));
            (E::ite(c, a, b), raw)
        }
    }
}

#[test]
fn simplified_means_the_same() {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut compared = 0;
    for _ in 0..60_000 {
        let w = [1, 8, 16, 32, 64][rng.random_range(0..5)];
        let (simple, raw) = random(&mut rng, w, 4);
        assert_eq!(simple.width(), raw.width(), "{raw} became {simple}");
        for _ in 0..4 {
            let values: Vec<u64> = (0..300).map(|_| number(&mut rng)).collect();
            let of = |v: VarId| values[v.0 as usize];
            if let Some(value) = raw.eval(&of) {
                assert_eq!(simple.eval(&of), Some(value), "{raw} became {simple}");
                assert!(
                    value <= raw.most() && value <= simple.most(),
                    "{raw}: {simple}"
                );
                #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
                crate::words::agrees(&simple, &of, value);
                compared += 1;
            }
        }
    }
    assert!(compared > 100_000, "{compared}");
}
