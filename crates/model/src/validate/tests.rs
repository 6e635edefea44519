//! One test per rule: a valid program, broken in one way.

use super::{MAX_DEPTH, validate};
use crate::graph::{Action, Location};
use crate::program::{Count, Family, Init, Length, Local, Place, Program, Region, Register, Step};
use crate::property::{
    Condition, IndexVariable, Observation, Property, PropertyKind, ThreadIndex, ThreadRef,
};
use crate::{Expr, FamilyId, IndexId, LocationId, Op1, RegionId, RegisterId, Span, Type};

fn step(source: u32, target: u32, action: crate::program::Action) -> Step {
    Step {
        source: LocationId(source),
        target: LocationId(target),
        action,
        span: Span::NONE,
    }
}

fn family(name: &str, count: Count) -> Family {
    Family {
        name: name.into(),
        count,
        registers: vec![Register {
            name: "r".into(),
            ty: Type::Int,
            init: Init::default(),
            span: Span::NONE,
        }],
        locations: vec![
            Location {
                labels: vec!["start".into()],
                span: Span::NONE,
            },
            Location::default(),
            Location::default(),
        ],
        steps: vec![
            step(0, 1, Action::AtomicBegin(crate::graph::Section::Drained)),
            step(
                1,
                1,
                Action::Load {
                    register: RegisterId(0),
                    place: Place::Region(RegionId(0), Expr::Const(0)),
                },
            ),
            step(1, 2, Action::AtomicEnd),
        ],
        entry: LocationId(0),
        span: Span::NONE,
    }
}

fn region(name: &str, length: Length) -> Region {
    Region {
        name: name.into(),
        length,
        ty: Type::Int,
        init: Init::default(),
        span: Span::NONE,
    }
}

fn at(index: ThreadIndex) -> Expr<Observation> {
    let thread = ThreadRef {
        family: FamilyId(0),
        index,
    };
    Expr::Atom(Observation::At(thread, "start".into()))
}

fn valid() -> Program {
    Program {
        regions: vec![region("x", Length::Scalar), region("a", Length::Array(2))],
        families: vec![family("p", Count::Fixed(2)), family("q", Count::One)],
        properties: vec![Property {
            kind: PropertyKind::Never,
            condition: Condition {
                indices: vec![IndexVariable {
                    name: "i".into(),
                    family: FamilyId(0),
                }],
                expr: at(ThreadIndex::Variable(IndexId(0))),
            },
            span: Span::NONE,
        }],
        predicates: vec![],
        temporal: vec![],
    }
}

/// Breaking the valid program breaks exactly this rule.
fn breaks(rule: u8, change: impl FnOnce(&mut Program)) {
    let mut p = valid();
    change(&mut p);
    let found: Vec<u8> = validate(&p).iter().map(|i| i.rule).collect();
    assert!(!found.is_empty(), "rule {rule} was not noticed");
    assert!(found.iter().all(|r| *r == rule), "{:?}", validate(&p));
}

#[test]
fn the_example_is_valid() {
    assert_eq!(validate(&valid()), []);
    assert_eq!(validate(&Program::default()), []);
}

#[test]
fn rule_1_names_of_regions_and_families() {
    breaks(1, |p| p.regions[1].name = "x".into());
    breaks(1, |p| p.families[1].name = "x".into());
    breaks(1, |p| p.regions[0].name = String::new());
}

#[test]
fn rule_2_names_of_registers() {
    breaks(2, |p| p.families[0].registers[0].name = "x".into());
    breaks(2, |p| p.families[0].registers[0].name = String::new());
    breaks(2, |p| {
        let twice = p.families[0].registers[0].clone();
        p.families[0].registers.push(twice);
    });
}

#[test]
fn rule_3_names_of_index_variables() {
    let indices = |p: &mut Program| p.properties[0].condition.indices[0].clone();
    breaks(3, |p| {
        p.properties[0].condition.indices[0].name = "x".into()
    });
    breaks(3, |p| {
        p.properties[0].condition.indices[0].name = String::new()
    });
    breaks(3, |p| {
        let twice = indices(p);
        p.properties[0].condition.indices.push(twice);
    });
}

#[test]
fn rule_4_labels() {
    breaks(4, |p| {
        p.families[0].locations[0].labels.push("start".into())
    });
    breaks(4, |p| p.families[0].locations[1].labels.push(String::new()));
}

#[test]
fn rule_5_ranges() {
    breaks(5, |p| p.regions[0].ty = Type::Range { lo: 1, hi: 0 });
    breaks(5, |p| {
        let action = Action::Havoc {
            register: RegisterId(0),
            range: Some((1, 0)),
        };
        p.families[0].steps.push(step(1, 1, action));
    });
}

#[test]
fn rule_6_widths() {
    for (bits, signed) in [(0, false), (64, false), (0, true), (65, true)] {
        breaks(6, |p| p.regions[0].ty = Type::Wrap { bits, signed });
        breaks(6, |p| {
            let cast = Expr::unary(Op1::Wrap { bits, signed }, Expr::Const(1));
            p.families[0].steps.push(step(1, 1, Action::Assume(cast)));
        });
    }
}

#[test]
fn rule_7_what_is_mentioned_exists() {
    breaks(7, |p| p.regions[0].ty = Type::Thread(FamilyId(9)));
    breaks(7, |p| p.regions[1].length = Length::PerThread(FamilyId(9)));
    breaks(7, |p| {
        let place = Place::Region(RegionId(9), Expr::Const(0));
        let value = Expr::Atom(Local::AddressOf(RegionId(9)));
        let store = Action::Store { place, value };
        p.families[0].steps.push(step(1, 1, store));
    });
    breaks(7, |p| {
        let count = Expr::Atom(Observation::Count(FamilyId(9)));
        p.properties[0].condition.expr = count;
    });
}

#[test]
fn rule_8_sizes() {
    breaks(8, |p| p.regions[1].length = Length::Array(0));
    breaks(8, |p| p.regions[1].length = Length::Array(u32::MAX));
    breaks(8, |p| p.families[0].count = Count::Fixed(0));
}

#[test]
fn rule_9_initial_values_are_constant() {
    breaks(9, |p| {
        p.regions[0].init = Init::All(Expr::Atom(Local::Register(RegisterId(0))));
    });
}

#[test]
fn rule_10_lists_of_initial_values() {
    breaks(10, |p| p.regions[1].init = Init::Each(vec![Expr::Const(0)]));
    breaks(10, |p| p.regions[0].init = Init::Each(vec![Expr::Const(0)]));
    breaks(10, |p| {
        p.families[0].registers[0].init = Init::Each(vec![Expr::Const(0)]);
    });
}

#[test]
fn rule_11_registers_exist() {
    let gone = || Expr::Atom(Local::Register(RegisterId(7)));
    breaks(11, |p| {
        p.families[0].steps.push(step(1, 1, Action::Assume(gone())));
    });
    breaks(11, |p| {
        let value = Expr::Const(0);
        let register = RegisterId(7);
        let assign = Action::Assign { register, value };
        p.families[0].steps.push(step(1, 1, assign));
    });
}

#[test]
fn rule_12_depth() {
    let mut deep: Expr<Local> = Expr::Const(1);
    let mut seen: Expr<Observation> = Expr::Const(1);
    for n in 0..MAX_DEPTH {
        deep = Expr::unary(Op1::Neg, deep);
        // Half of the depth is inside indices.
        seen = if n % 2 == 0 {
            Expr::unary(Op1::Neg, seen)
        } else {
            Expr::Atom(Observation::Memory(Box::new(seen)))
        };
    }
    breaks(12, |p| {
        p.families[0].steps.push(step(1, 1, Action::Assume(deep)));
    });
    breaks(12, |p| p.properties[0].condition.expr = seen);
}

#[test]
fn rule_13_scalars_have_index_0() {
    breaks(13, |p| {
        let place = Place::Region(RegionId(0), Expr::Const(1));
        let register = RegisterId(0);
        let load = Action::Load { register, place };
        p.families[0].steps.push(step(1, 1, load));
    });
    breaks(13, |p| {
        let cell = Observation::Cell(RegionId(0), Box::new(Expr::Const(1)));
        p.properties[0].condition.expr = Expr::Atom(cell);
    });
}

#[test]
fn rule_14_locations_exist() {
    breaks(14, |p| p.families[1].entry = LocationId(9));
    breaks(14, |p| p.families[1].steps[2].target = LocationId(9));
}

#[test]
fn rule_15_atomic_blocks() {
    breaks(15, |p| {
        p.families[0].steps.push(step(
            1,
            1,
            Action::AtomicBegin(crate::graph::Section::Drained),
        ))
    });
    breaks(15, |p| {
        p.families[0].steps.push(step(2, 2, Action::AtomicEnd))
    });
    breaks(15, |p| p.families[0].steps.push(step(0, 1, Action::Skip)));
    breaks(15, |p| p.families[0].steps.truncate(1));
}

#[test]
fn rule_16_locks_outside_of_atomic_blocks() {
    breaks(16, |p| p.families[0].steps.push(step(1, 1, Action::Lock)));
    breaks(16, |p| p.families[0].steps.push(step(1, 1, Action::Unlock)));
}

#[test]
fn rule_17_what_properties_mention_exists() {
    breaks(17, |p| {
        p.properties[0].condition.expr = at(ThreadIndex::Number(2))
    });
    breaks(17, |p| {
        p.properties[0].condition.expr = at(ThreadIndex::Variable(IndexId(3)));
    });
    breaks(17, |p| p.families[0].locations[0].labels.clear());
    breaks(17, |p| {
        let thread = ThreadRef {
            family: FamilyId(1),
            index: ThreadIndex::Number(1),
        };
        let register = Observation::Register(thread, RegisterId(0));
        p.properties[0].condition.expr = Expr::Atom(register);
    });
    breaks(17, |p| {
        let thread = ThreadRef {
            family: FamilyId(1),
            index: ThreadIndex::Variable(IndexId(0)),
        };
        let register = Observation::Register(thread, RegisterId(0));
        p.properties[0].condition.expr = Expr::Atom(register);
    });
    breaks(17, |p| {
        p.properties[0].condition.expr = Expr::Atom(Observation::Index(IndexId(1)));
    });
}

#[test]
fn rule_18_single_threads_have_no_index() {
    breaks(18, |p| {
        p.properties[0].condition.indices[0].family = FamilyId(1);
        p.properties[0].condition.expr = Expr::Const(1);
    });
}
