//! A parsed test as a program and a question about its final states.

use super::LitmusTest;
use super::header::{Architecture, Header};
use super::items::{Items, Named, Subject};
use super::meaning::Meaning;
use super::names::Locations;
use super::resolve::{Resolver, order};
use super::syntax::{Column, Declaration, Item, Quantifier, Question, Value};
use crate::diagnostics::Diagnostic;
use crate::flow::junction;
use crate::x86_core::{
    Arithmetic, Base, Cell, Code, ENOUGH, Element, Machine, Name, Size, address, lower,
    operation_size,
};
use std::collections::BTreeMap;
use wattle_model::program::{Family, Length, Region};
use wattle_model::{
    Condition, Count, Expr, FamilyId, Init, Local, Op2, Program, Property, PropertyKind, RegionId,
    Span, Type,
};

/// Addresses are numbers from here on, far from the small numbers that tests compute with.
const FIRST_ADDRESS: i64 = 0x1000_0000;

/// More are refused: nobody would read the answer.
pub const MAX_LOCATIONS: usize = 4096;

pub type Widths = BTreeMap<Base, Size>;

pub fn build(
    header: &Header,
    init: &[Declaration],
    columns: &[Column],
    question: &Question,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Program, LitmusTest)> {
    let pointer = match header.architecture {
        Architecture::X86 => Size::Dword,
        Architecture::X86_64 => Size::Qword,
    };
    let mut locations = Locations::default();
    locations.declare(init, pointer, diagnostics);
    let order = order(columns, header.architecture, diagnostics);
    let codes: Vec<Code> = columns
        .iter()
        .map(|column| {
            Resolver {
                locations: &mut locations,
                order,
                diagnostics,
            }
            .thread(column, init)
        })
        .collect();
    if locations.all.len() > MAX_LOCATIONS {
        let message = format!("a test has at most {MAX_LOCATIONS} locations");
        diagnostics.push(Diagnostic::error(question.span, message));
        return None;
    }
    let mut items = Items {
        header,
        columns,
        locations: &mut locations,
        names: Vec::new(),
        index: BTreeMap::new(),
        diagnostics,
    };
    items.collect(question);
    items.declared_registers(init);
    let names = std::mem::take(&mut items.names);
    let widths: Vec<Widths> = (0..columns.len())
        .map(|t| widths(t, &codes[t], &names))
        .collect();
    let stride = stride(&locations, &codes, diagnostics);
    let cells: Vec<Cell> = (0..locations.all.len())
        .map(|i| Cell {
            name: locations.all[i].name.clone(),
            width: locations.width(RegionId::new(i)).0,
            counter: false,
        })
        .collect();
    let mut program = Program::default();
    let addresses = (FIRST_ADDRESS, stride);
    for i in 0..locations.all.len() {
        let region = region(&locations, RegionId::new(i), addresses);
        program.regions.push(region);
    }
    for (t, column) in columns.iter().enumerate() {
        let machine = Machine {
            cells: &cells,
            arithmetic: Arithmetic::Wrapping,
            family: FamilyId::new(t),
            addresses,
            lower_case: false,
        };
        let inits = inits(column.number, init, &widths[t], &locations, addresses);
        let lowered = lower(&codes[t], &widths[t], &inits, &machine, diagnostics);
        program.families.push(Family {
            name: format!("P{}", column.number),
            count: Count::One,
            registers: lowered.registers,
            locations: lowered.locations,
            steps: lowered.steps,
            entry: lowered.entry,
            span: column.span,
        });
    }
    if diagnostics
        .iter()
        .any(|d| d.severity == crate::Severity::Error)
    {
        return None;
    }
    let meaning = Meaning {
        columns,
        locations: &locations,
        widths: &widths,
        addresses,
    };
    let test = meaning.test(question, &names, header.architecture);
    program.properties.push(property(&test, question.span));
    Some((program, test))
}

/// What a final-state question is as a property.
fn property(test: &LitmusTest, span: Span) -> Property {
    let condition = test.condition.expr.clone();
    let filter = test.filter.as_ref().map(|c| c.expr.clone());
    let (kind, expr) = match test.quantifier {
        Quantifier::Exists => {
            let all = filter.into_iter().chain([condition]).collect();
            (PropertyKind::Reachable, junction(Op2::And, all))
        }
        Quantifier::Forall => {
            let outside = filter.map(Expr::negate);
            let any = outside.into_iter().chain([condition]).collect();
            (PropertyKind::Finally, junction(Op2::Or, any))
        }
        Quantifier::NotExists => {
            let outside = filter.map(Expr::negate);
            let any = outside.into_iter().chain([condition.negate()]).collect();
            (PropertyKind::Finally, junction(Op2::Or, any))
        }
    };
    Property {
        kind,
        condition: Condition {
            indices: Vec::new(),
            expr: expr.unwrap_or(Expr::TRUE),
        },
        span,
    }
}

/// Bytes between neighbouring cells; arrays that pointers run through must agree on it.
fn stride(locations: &Locations, codes: &[Code], diagnostics: &mut Vec<Diagnostic>) -> i64 {
    let ids = (0..locations.all.len()).map(RegionId::new);
    let arrays: Vec<RegionId> = ids
        .clone()
        .filter(|id| locations.location(*id).array)
        .collect();
    let sizes: Vec<i64> = arrays
        .iter()
        .map(|id| locations.width(*id).0.bytes())
        .collect();
    let stride = sizes.first().copied().unwrap_or(8);
    for x in codes.iter().flat_map(|c| &c.instructions) {
        let Some(m) = x.memory() else { continue };
        if diagnostics.len() >= ENOUGH {
            break;
        }
        if !matches!(m.at, Element::Pointer(_)) {
            continue;
        }
        if sizes.iter().any(|s| *s != stride) {
            let message =
                "pointers and arrays of different element sizes are not supported together";
            diagnostics.push(Diagnostic::error(m.span, message));
        }
        let size = operation_size(x).ok().flatten().unwrap_or(Size::Dword);
        for id in ids.clone().filter(|id| locations.location(*id).pointed) {
            let width = locations.width(id).0;
            if width != size {
                let message = format!(
                    "this accesses {} bits, but may point to `{}`, which has {}",
                    size.bits(),
                    locations.location(id).name,
                    width.bits()
                );
                diagnostics.push(Diagnostic::error(m.span, message));
            }
        }
    }
    stride
}

fn region(locations: &Locations, id: RegionId, addresses: (i64, i64)) -> Region {
    let l = locations.location(id);
    let (size, signed) = locations.width(id);
    let value = |v: &Value| match v {
        Value::Number(n) => Expr::Const(*n),
        Value::Address(name, element) => initial_address(locations, name, *element, addresses),
        Value::Item(_) => Expr::Const(0),
    };
    let mut values: Vec<Expr<Local>> = l.values.iter().map(|(v, _)| value(v)).collect();
    let init = match (l.array, values.len()) {
        (_, 0) => Init::default(),
        (false, _) => Init::All(values.swap_remove(0)),
        (true, _) => Init::Each(values),
    };
    Region {
        name: l.name.clone(),
        length: if l.array {
            Length::Array(l.length)
        } else {
            Length::Scalar
        },
        ty: Type::Wrap {
            bits: size.bits(),
            signed,
        },
        init,
        span: l.span,
    }
}

fn initial_address(
    locations: &Locations,
    name: &str,
    element: u32,
    addresses: (i64, i64),
) -> Expr<Local> {
    let Some(id) = locations.get(name) else {
        return Expr::Const(0);
    };
    let first = Expr::Atom(Local::AddressOf(id));
    let cell = match element {
        0 => first,
        n => Expr::binary(Op2::Add, first, Expr::Const(i64::from(n))),
    };
    address(addresses, cell)
}

/// The registers' initial values.
fn inits(
    thread: i64,
    init: &[Declaration],
    widths: &Widths,
    locations: &Locations,
    addresses: (i64, i64),
) -> BTreeMap<Base, Init> {
    let mut inits = BTreeMap::new();
    for d in init {
        let Item::Register {
            thread: t,
            register,
        } = &d.item
        else {
            continue;
        };
        let Some(name) = Name::parse(register).filter(|_| *t == thread) else {
            continue;
        };
        let Some(width) = widths.get(&name.base) else {
            continue;
        };
        let value = match d.values.first() {
            Some((Value::Number(n), _)) => {
                let whole = name.write(Expr::Const(0), *width, Expr::Const(*n));
                let value = whole.eval(&|_: &Local| 0).unwrap_or(*n);
                Expr::Const(value)
            }
            Some((Value::Address(location, element), _)) => {
                initial_address(locations, location, *element, addresses)
            }
            _ => Expr::Const(0),
        };
        inits.insert(name.base, Init::All(value));
    }
    inits
}

/// The widest part of each register that the code or a question names.
fn widths(thread: usize, code: &Code, names: &[Named]) -> Widths {
    let mut widths = Widths::new();
    let mut note = |n: Name| {
        let w = widths.entry(n.base).or_insert(n.reach());
        *w = (*w).max(n.reach());
    };
    for x in &code.instructions {
        x.names().into_iter().for_each(&mut note);
    }
    for n in names {
        if let Subject::Register(t, name) = n.place
            && t == thread
        {
            note(name);
        }
    }
    widths
}
