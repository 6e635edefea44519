//! Casts that say what happens anyway.

use crate::graph::Action;
use crate::{Expr, Op1, Place, Program, Type};

impl Program {
    /// The same program without casts of what is assigned or stored to the type of where it goes: a
    /// wrap-around variable keeps the same low bits either way.
    #[must_use]
    pub fn without_outer_casts(&self) -> Program {
        let mut program = self.clone();
        let regions: Vec<Type> = program.regions.iter().map(|r| r.ty).collect();
        for family in &mut program.families {
            for step in &mut family.steps {
                let (value, ty) = match &mut step.action {
                    Action::Assign { register, value } => {
                        (value, family.registers[register.index()].ty)
                    }
                    Action::Store {
                        place: Place::Region(region, _),
                        value,
                    } => (value, regions[region.index()]),
                    Action::Store {
                        place: Place::Memory(_),
                        ..
                    }
                    | Action::Skip
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Load { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Lock
                    | Action::Unlock => continue,
                };
                while let Expr::Unary(Op1::Wrap { bits, signed }, inner) = value
                    && ty
                        == (Type::Wrap {
                            bits: *bits,
                            signed: *signed,
                        })
                {
                    *value = (**inner).clone();
                }
            }
        }
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The low bits of the low bits are the low bits.
    #[test]
    fn a_variable_casts_what_it_is_given() {
        for (bits, signed) in [(1, false), (3, true), (8, false), (31, true), (63, false)] {
            let (ty, cast) = (Type::Wrap { bits, signed }, Op1::Wrap { bits, signed });
            for v in [0, 1, -1, 5, 127, 128, 255, 256, i64::MAX, i64::MIN] {
                assert_eq!(cast.apply(v).ok().and_then(|c| ty.admit(c)), ty.admit(v));
            }
        }
    }
}
