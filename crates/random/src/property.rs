//! Properties about whatever the program has.

use crate::rng::Rng;
use wattle_model::{
    Condition, Count, Expr, FamilyId, IndexId, IndexVariable, Length, Observation, Op1, Op2,
    Program, Property, PropertyKind, RegionId, RegisterId, Span, ThreadIndex, ThreadRef,
};

/// Adds one or two properties.
pub(crate) fn add(rng: &mut Rng, greatest: i64, program: &mut Program) {
    for _ in 0..1 + rng.below(2) {
        let mut indices = Vec::new();
        let mut expr = atom(rng, greatest, program, &mut indices);
        for _ in 0..rng.below(3) {
            let op = *rng.pick(&[Op2::And, Op2::And, Op2::Or]);
            let more = atom(rng, greatest, program, &mut indices);
            expr = Expr::binary(op, expr, more);
        }
        let kinds = [
            PropertyKind::Never,
            PropertyKind::Always,
            PropertyKind::Finally,
            PropertyKind::Reachable,
        ];
        // Of any number of threads one cannot ask whether all have ended.
        let kind = match program.is_parameterised() {
            true => *rng.pick(&kinds[..2]),
            false => *rng.pick(&kinds),
        };
        if rng.one_in(4) {
            expr = Expr::unary(Op1::Not, expr);
        }
        program.properties.push(Property {
            kind,
            condition: Condition { indices, expr },
            span: Span::NONE,
        });
    }
}

/// A comparison of a cell or a register with a number, or a thread at a label.
fn atom(
    rng: &mut Rng,
    greatest: i64,
    program: &Program,
    indices: &mut Vec<IndexVariable>,
) -> Expr<Observation> {
    let seen = if program.regions.is_empty() || rng.one_in(2) {
        let f = rng.below(program.families.len());
        let family = &program.families[f];
        let index = match family.count {
            Count::One => ThreadIndex::Number(0),
            Count::Fixed(n) if indices.len() >= n as usize || rng.one_in(2) => {
                ThreadIndex::Number(rng.below(n as usize) as u32)
            }
            Count::Fixed(_) | Count::Any => {
                indices.push(IndexVariable {
                    name: format!("i{}", indices.len()),
                    family: FamilyId::new(f),
                });
                ThreadIndex::Variable(IndexId::new(indices.len() - 1))
            }
        };
        let thread = ThreadRef {
            family: FamilyId::new(f),
            index,
        };
        let labels: Vec<&String> = family.locations.iter().flat_map(|l| &l.labels).collect();
        if !labels.is_empty() && rng.one_in(2) {
            let label = (*rng.pick(&labels)).clone();
            return Expr::Atom(Observation::At(thread, label));
        }
        if family.registers.is_empty() {
            return Expr::Const(1);
        }
        let r = RegisterId::new(rng.below(family.registers.len()));
        Observation::Register(thread, r)
    } else {
        let r = rng.below(program.regions.len());
        let element = match program.regions[r].length {
            Length::Array(n) => rng.below(n as usize) as i64,
            Length::Scalar | Length::PerThread(_) => 0,
        };
        Observation::Cell(RegionId::new(r), Box::new(Expr::Const(element)))
    };
    let op = *rng.pick(&[Op2::Eq, Op2::Eq, Op2::Ne, Op2::Lt]);
    Expr::binary(op, Expr::Atom(seen), Expr::Const(rng.between(0, greatest)))
}
