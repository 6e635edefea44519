//! Integers and words of 32 bits have the same flags where nothing overflows.

use super::*;
use crate::bits::VarId;
use crate::graph::{BE, CF, LE, LT, OF, RAX, RDX, SF, ZF};
use crate::instruction::Part;
use std::collections::BTreeMap;

/// The result of an instruction on two numbers, and the flags it leaves.
fn done(op: Op, numbers: [i64; 2], carry: u64, exact: bool) -> Vec<Option<u64>> {
    let width = if exact { 64 } else { 32 };
    let mut vars = Vars::default();
    let part = |register| {
        Operand::Register(Part {
            register,
            width,
            high: false,
        })
    };
    let mut held: BTreeMap<VarId, u64> = BTreeMap::from([(CF, carry)]);
    held.insert(RAX, numbers[0] as u64);
    held.insert(RDX, numbers[1] as u64);
    let mut meaning = Meaning::new(&mut vars);
    meaning.exact = exact;
    let operands = match op {
        Op::Inc | Op::Dec | Op::Neg => vec![part(RAX)],
        _ => vec![part(RAX), part(RDX)],
    };
    let i = Instruction {
        op,
        lock: false,
        operands,
    };
    meaning.instruction(&i).expect("it has a meaning");
    let mut unknown = Vec::new();
    for m in meaning.ops.clone() {
        let Micro::Op(Step::Assign(v, e)) = m else {
            panic!("registers only");
        };
        match e.eval(&|v| held.get(&v).copied().unwrap_or(0)) {
            Some(value) => {
                held.insert(v, value);
                unknown.retain(|u| *u != v);
            }
            None => unknown.push(v),
        }
    }
    let low = |v: VarId| held.get(&v).map(|n| n & 0xffff_ffff);
    let known = |v: &VarId| !unknown.contains(v);
    let all = [RAX, ZF, CF, SF, OF, LT, BE, LE];
    all.into_iter()
        .map(|v| Some(v).filter(known).and_then(low))
        .collect()
}

#[test]
fn flags_of_integers_are_those_of_words() {
    let ops = [
        Op::Add,
        Op::Sub,
        Op::Cmp,
        Op::Test,
        Op::And,
        Op::Inc,
        Op::Dec,
        Op::Neg,
        Op::Xadd,
    ];
    for op in ops {
        for a in [-130, -3, -2, -1, 0, 1, 2, 3, 100] {
            for b in [-70, -3, -2, -1, 0, 1, 2, 3, 100] {
                for carry in [0, 1] {
                    let [word, exact] = [false, true].map(|e| done(op, [a, b], carry, e));
                    assert_eq!(word, exact, "{op:?} {a} {b}, carry {carry}");
                }
            }
        }
    }
}
