//! Threads to a model: one family each, one array for memory, one `never` for the final states.

use super::addresses::{self, Addresses, address};
use super::read::{Instruction, Thread, Transition};
use crate::diagnostics::Diagnostic;
use crate::flow::junction;
use wattle_model::program::{Action, Local, Register, Step};
use wattle_model::{
    Condition, Count, Expr, Family, FamilyId, Fence, Init, Length, Location, LocationId,
    Observation, Op2, Place, Program, Property, PropertyKind, Region, RegionId, Span, ThreadIndex,
    ThreadRef, Type,
};

/// Cells memory gets when some address could not be bounded.
const UNBOUNDED: i64 = 256;
/// No array is longer.
const LONGEST: i64 = 1 << 16;

const MEMORY: RegionId = RegionId(0);

pub(super) fn program(threads: &[Thread], diagnostics: &mut Vec<Diagnostic>) -> Program {
    let length = memory_length(&addresses::analyse(threads), threads, diagnostics);
    let taken = |name: &str| {
        threads
            .iter()
            .any(|t| t.name == name || t.registers.contains_key(name))
    };
    let mut name = "mem".to_string();
    while taken(&name) {
        name.push('_');
    }
    Program {
        regions: vec![Region {
            name,
            length: Length::Array(length),
            ty: Type::Int,
            init: Init::default(),
            span: Span::NONE,
        }],
        families: threads.iter().map(family).collect(),
        properties: property(threads).into_iter().collect(),
        temporal: Vec::new(),
        predicates: Vec::new(),
    }
}

fn memory_length(found: &Addresses, threads: &[Thread], out: &mut Vec<Diagnostic>) -> u32 {
    let top = found.known.last().map_or(0, |a| a.saturating_add(1)).max(1);
    let mut length = top;
    let computed = || {
        let all = threads.iter().flat_map(|t| &t.transitions);
        let hit = |t: &&Transition| address(&t.instruction).is_some_and(|a| a.as_const().is_none());
        all.filter(hit).map(|t| t.span).next().unwrap_or(Span::NONE)
    };
    if found.unbounded {
        length = length.max(UNBOUNDED);
        let message =
            format!("the addresses used here could not be bounded; memory has {length} cells");
        out.push(Diagnostic::warning(computed(), message).hint(
            "a run that leaves these cells is reported as a fault, not as a violation of the program's property",
        ));
    }
    if length > LONGEST {
        length = LONGEST;
        let message = format!(
            "memory is cut off at {LONGEST} cells, but address {} is used",
            top - 1
        );
        out.push(Diagnostic::warning(computed(), message));
    }
    if let Some(a) = found.known.first().filter(|a| **a < 0) {
        let message = format!("the address {a} is negative; using it is a fault");
        out.push(Diagnostic::warning(computed(), message));
    }
    u32::try_from(length).unwrap_or(1)
}

fn family(t: &Thread) -> Family {
    // A state is where its first transition is.
    let mut spans = vec![Span::NONE; t.states.len()];
    for transition in t.transitions.iter().rev() {
        spans[transition.source] = transition.span;
    }
    let locations = t.states.keys().zip(spans).map(|(name, span)| Location {
        labels: vec![name.clone()],
        span,
    });
    let registers = t.registers.iter().map(|(name, span)| Register {
        name: name.clone(),
        ty: Type::Int,
        init: Init::default(),
        span: *span,
    });
    Family {
        name: t.name.clone(),
        count: Count::One,
        registers: registers.collect(),
        locations: locations.collect(),
        steps: t.transitions.iter().map(step).collect(),
        entry: LocationId::new(t.initial.unwrap_or(0)),
        span: t.span,
    }
}

fn step(t: &Transition) -> Step {
    let place = |address: &Expr<Local>| Place::Region(MEMORY, address.clone());
    let action = match &t.instruction {
        Instruction::Write { value, address } => Action::Store {
            place: place(address),
            value: value.clone(),
        },
        Instruction::Read { register, address } => Action::Load {
            register: *register,
            place: place(address),
        },
        Instruction::Assign { register, value } => Action::Assign {
            register: *register,
            value: value.clone(),
        },
        Instruction::Check(e) => Action::Assume(e.clone()),
        Instruction::Fence => Action::Fence(Fence::Full),
        Instruction::Noop => Action::Skip,
        Instruction::Lock => Action::Lock,
        Instruction::Unlock => Action::Unlock,
    };
    Step {
        source: LocationId::new(t.source),
        target: LocationId::new(t.target),
        action,
        span: t.span,
    }
}

/// Never every thread in one of its final states at once; threads without final states may be
/// anywhere.
fn property(threads: &[Thread]) -> Option<Property> {
    let mut all = Vec::new();
    let mut span = Span::NONE;
    for (i, t) in threads.iter().enumerate() {
        let mut finals: Vec<_> = t
            .finals
            .iter()
            .filter_map(|s| t.states.get_index(*s))
            .collect();
        finals.sort_by_key(|(_, span)| **span);
        finals.dedup();
        let here = finals.iter().map(|(name, _)| {
            let thread = ThreadRef {
                family: FamilyId::new(i),
                index: ThreadIndex::Number(0),
            };
            Expr::Atom(Observation::At(thread, (*name).clone()))
        });
        all.extend(junction(Op2::Or, here.collect()));
        if let Some((_, first)) = finals.first().filter(|_| !span.is_some()) {
            span = **first;
        }
    }
    Some(Property {
        kind: PropertyKind::Never,
        condition: Condition {
            indices: Vec::new(),
            expr: junction(Op2::And, all)?,
        },
        span,
    })
}
