//! A parsed test as a program and a question about its final states.

use super::header::{Architecture, Header};
use super::names::Locations;
use super::resolve::{Resolver, order};
use super::syntax::{Column, Declaration, Item, Proposition, Quantifier, Question, Value};
use super::{LitmusTest, Observed};
use crate::diagnostics::Diagnostic;
use crate::flow::junction;
use crate::x86_core::{
    Arithmetic, Base, Cell, Code, Element, Machine, Name, Size, address, lower, operation_size,
};
use std::collections::BTreeMap;
use wattle_model::program::{Family, Length, Region};
use wattle_model::{
    Condition, Count, Expr, FamilyId, Init, Local, Observation, Op1, Op2, Program, Property,
    PropertyKind, RegionId, RegisterId, Span, ThreadIndex, ThreadRef, Type,
};

/// Addresses are numbers from here on, far from the small numbers that tests compute with.
const FIRST_ADDRESS: i64 = 0x1000_0000;

type Widths = BTreeMap<Base, Size>;

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
    let mut items = Items {
        header,
        columns,
        locations: &mut locations,
        names: Vec::new(),
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
        if x.op == crate::x86_core::Op::Cmpxchg {
            let size = operation_size(x).ok().flatten().unwrap_or(Size::Dword);
            note(Name {
                base: Base::A,
                size,
                high: false,
            });
        }
    }
    for n in names {
        if let Place::Register(t, name) = n.place
            && t == thread
        {
            note(name);
        }
    }
    widths
}

/// An item of the condition with its meaning.
#[derive(Clone, Debug)]
struct Named {
    item: Item,
    place: Place,
    shown: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Register(usize, Name),
    Cell(RegionId, u32),
}

/// Finds what the condition, `locations` and `filter` speak of.
struct Items<'a> {
    header: &'a Header,
    columns: &'a [Column],
    locations: &'a mut Locations,
    names: Vec<Named>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Items<'_> {
    fn collect(&mut self, q: &Question) {
        for (item, span) in &q.locations {
            self.item(item, *span, true);
        }
        self.proposition(&q.proposition, true);
        if let Some(f) = &q.filter {
            self.proposition(f, false);
        }
    }

    fn proposition(&mut self, p: &Proposition, shown: bool) {
        match p {
            Proposition::Atom {
                left, right, span, ..
            } => {
                self.item(left, *span, shown);
                match right {
                    Value::Item(item) => self.item(item, *span, shown),
                    Value::Address(name, _) if self.locations.get(name).is_none() => {
                        let known = self.locations.all.iter().map(|l| l.name.as_str());
                        let near = crate::diagnostics::nearest(name, known);
                        let d = Diagnostic::error(*span, format!("unknown location `{name}`"));
                        self.diagnostics.push(match near {
                            Some(near) => d.hint(format!("did you mean `{near}`?")),
                            None => d.expected("a number, or a location of this test"),
                        });
                    }
                    _ => {}
                }
            }
            Proposition::Not(p) => self.proposition(p, shown),
            Proposition::And(ps) | Proposition::Or(ps) => {
                ps.iter().for_each(|p| self.proposition(p, shown));
            }
            Proposition::Implies(a, b) => {
                self.proposition(a, shown);
                self.proposition(b, shown);
            }
        }
    }

    fn item(&mut self, item: &Item, span: Span, shown: bool) {
        let place = match item {
            Item::Register { thread, register } => self.register(*thread, register, span),
            Item::Cell { name, element } => self.cell(name, *element, span),
        };
        let Some(place) = place else { return };
        match self.names.iter_mut().find(|n| n.place == place) {
            Some(known) => known.shown |= shown,
            None => self.names.push(Named {
                item: item.clone(),
                place,
                shown,
            }),
        }
    }

    fn register(&mut self, thread: i64, register: &str, span: Span) -> Option<Place> {
        let Some(t) = self.columns.iter().position(|c| c.number == thread) else {
            let message = format!("there is no thread {thread}");
            let hint = match self.columns.len() {
                0 => "the test has no threads".to_string(),
                n => format!("the test has the {n} threads of its first row"),
            };
            self.diagnostics
                .push(Diagnostic::error(span, message).hint(hint));
            return None;
        };
        let Some(name) = Name::parse(register) else {
            let known: Vec<String> = Base::all()
                .flat_map(|b| [b.name(Size::Dword), b.name(Size::Qword)])
                .collect();
            let message = format!("thread {thread} has no register `{register}`");
            let d = Diagnostic::error(span, message);
            let near = crate::diagnostics::nearest(register, known.iter().map(String::as_str));
            self.diagnostics.push(match near {
                Some(near) => d.hint(format!("did you mean `{near}`?")),
                None => d.expected("a general register such as `EAX`"),
            });
            return None;
        };
        if self.header.architecture == Architecture::X86 && name.size == Size::Qword {
            let message = format!("register `{register}` has 64 bits, but the test is for X86");
            let hint = format!(
                "use `{}`, or write `X86_64` in the header",
                name.base.name(Size::Dword)
            );
            self.diagnostics
                .push(Diagnostic::error(span, message).hint(hint));
            return None;
        }
        Some(Place::Register(t, name))
    }

    fn cell(&mut self, name: &str, element: u32, span: Span) -> Option<Place> {
        let known = self.locations.get(name);
        let id = known.unwrap_or_else(|| {
            let message = format!("no thread uses location `{name}`, so it stays 0");
            let all = self.locations.all.iter().map(|l| l.name.as_str());
            let d = Diagnostic::warning(span, message);
            let d = match crate::diagnostics::nearest(name, all) {
                Some(near) => d.hint(format!("did you mean `{near}`?")),
                None => d,
            };
            self.diagnostics.push(d);
            self.locations.named(name, span)
        });
        let length = self.locations.location(id).length;
        if element >= length {
            let message = format!("`{name}` has {length} elements");
            self.diagnostics.push(Diagnostic::error(span, message));
            return None;
        }
        Some(Place::Cell(id, element))
    }

    /// Registers of the initial state must exist; they are not observed.
    fn declared_registers(&mut self, init: &[Declaration]) {
        for d in init {
            if let Item::Register { thread, register } = &d.item {
                self.register(*thread, register, d.span);
            }
        }
    }
}

/// What items and conditions are in terms of the program.
struct Meaning<'a> {
    columns: &'a [Column],
    locations: &'a Locations,
    widths: &'a [Widths],
    addresses: (i64, i64),
}

impl Meaning<'_> {
    fn test(&self, q: &Question, names: &[Named], architecture: Architecture) -> LitmusTest {
        let mut names = names.to_vec();
        names.sort_by_key(|n| (!n.shown, self.sort_key(n)));
        let items = names
            .iter()
            .map(|n| Observed {
                name: self.name(n, architecture),
                value: self.observation(n.place),
            })
            .collect();
        let place = |item: &Item| names.iter().position(|n| self.same(n, item));
        let position = |item: &Item| match place(item) {
            Some(i) => Expr::Atom(i),
            None => Expr::Const(0),
        };
        let observation = |item: &Item| match place(item) {
            Some(i) => self.observation(names[i].place),
            None => Expr::Const(0),
        };
        let address_number = |r, element| {
            let (first, stride) = self.addresses;
            Expr::Const(first + stride * self.locations.cell(r, element))
        };
        let address_of = |r, element: u32| {
            let cell = Expr::Atom(Observation::AddressOf(r));
            let cell = match element {
                0 => cell,
                n => Expr::binary(Op2::Add, cell, Expr::Const(i64::from(n))),
            };
            address(self.addresses, cell)
        };
        let condition = |p: &Proposition| Condition {
            indices: Vec::new(),
            expr: self.expression(p, &observation, &address_of),
        };
        let ids = (0..self.locations.all.len()).map(RegionId::new);
        LitmusTest {
            quantifier: q.quantifier,
            shown: names.iter().filter(|n| n.shown).count(),
            items,
            proposition: self.expression(&q.proposition, &position, &address_number),
            item_filter: q
                .filter
                .as_ref()
                .map(|f| self.expression(f, &position, &address_number)),
            condition: condition(&q.proposition),
            filter: q.filter.as_ref().map(condition),
            text: self.text(q, &names, architecture),
            addresses: ids
                .filter(|id| self.locations.location(*id).pointed)
                .map(|id| {
                    let (first, stride) = self.addresses;
                    let name = self.locations.location(id).name.clone();
                    (first + stride * self.locations.cell(id, 0), name)
                })
                .collect(),
        }
    }

    /// Registers by thread, then locations by name, as herd sorts them.
    fn sort_key(&self, n: &Named) -> (i64, Option<Name>, String, u32) {
        match n.place {
            Place::Register(t, name) => (self.columns[t].number, Some(name), String::new(), 0),
            Place::Cell(r, element) => {
                let name = self.locations.location(r).name.clone();
                (i64::MAX, None, name, element)
            }
        }
    }

    fn same(&self, n: &Named, item: &Item) -> bool {
        match (n.place, item) {
            (Place::Register(t, name), Item::Register { thread, register }) => {
                self.columns[t].number == *thread && Name::parse(register) == Some(name)
            }
            (Place::Cell(r, e), Item::Cell { name, element }) => {
                self.locations.location(r).name == *name && e == *element
            }
            _ => false,
        }
    }

    fn name(&self, n: &Named, architecture: Architecture) -> String {
        match (n.place, &n.item) {
            (Place::Register(t, name), Item::Register { register, .. }) => {
                let shown = match architecture {
                    Architecture::X86 => name.text(),
                    Architecture::X86_64 => register.clone(),
                };
                format!("{}:{shown}", self.columns[t].number)
            }
            (Place::Cell(r, element), _) if self.locations.location(r).array => {
                format!("{}[{element}]", self.locations.location(r).name)
            }
            (Place::Cell(r, _), _) => format!("[{}]", self.locations.location(r).name),
            (Place::Register(..), Item::Cell { name, .. }) => name.clone(),
        }
    }

    fn observation(&self, place: Place) -> Expr<Observation> {
        match place {
            Place::Register(t, name) => {
                let thread = ThreadRef {
                    family: FamilyId::new(t),
                    index: ThreadIndex::Number(0),
                };
                let widths = &self.widths[t];
                let id = widths.keys().position(|b| *b == name.base).unwrap_or(0);
                let whole = Expr::Atom(Observation::Register(thread, RegisterId::new(id)));
                let width = widths.get(&name.base).copied().unwrap_or(name.size);
                name.read(whole, width)
            }
            Place::Cell(r, element) => {
                let index = Expr::Const(i64::from(element));
                Expr::Atom(Observation::Cell(r, Box::new(index)))
            }
        }
    }

    /// How a number written next to an item looks in it.
    fn fit(&self, item: &Item, n: i64) -> i64 {
        let (size, signed) = match item {
            Item::Register { register, .. } => {
                (Name::parse(register).map_or(Size::Qword, |n| n.size), true)
            }
            Item::Cell { name, .. } => match self.locations.get(name) {
                Some(id) => self.locations.width(id),
                None => (Size::Qword, true),
            },
        };
        let op = Op1::Wrap {
            bits: size.bits(),
            signed,
        };
        op.apply(n).unwrap_or(n)
    }

    fn expression<A>(
        &self,
        p: &Proposition,
        leaf: &dyn Fn(&Item) -> Expr<A>,
        address: &dyn Fn(RegionId, u32) -> Expr<A>,
    ) -> Expr<A> {
        let all = |ps: &[Proposition], op| {
            let parts = ps.iter().map(|p| self.expression(p, leaf, address));
            junction(op, parts.collect())
        };
        match p {
            Proposition::Atom {
                left, right, equal, ..
            } => {
                let right = match right {
                    Value::Number(n) => Expr::Const(self.fit(left, *n)),
                    Value::Address(name, element) => match self.locations.get(name) {
                        Some(r) => address(r, *element),
                        None => Expr::Const(0),
                    },
                    Value::Item(item) => leaf(item),
                };
                let op = if *equal { Op2::Eq } else { Op2::Ne };
                Expr::binary(op, leaf(left), right)
            }
            Proposition::Not(p) => self.expression(p, leaf, address).negate(),
            Proposition::And(ps) => all(ps, Op2::And).unwrap_or(Expr::TRUE),
            Proposition::Or(ps) => all(ps, Op2::Or).unwrap_or(Expr::FALSE),
            Proposition::Implies(a, b) => {
                let not = self.expression(a, leaf, address).negate();
                Expr::binary(Op2::Or, not, self.expression(b, leaf, address))
            }
        }
    }

    /// The condition as herd prints it.
    fn text(&self, q: &Question, names: &[Named], architecture: Architecture) -> String {
        let item = |item: &Item| {
            let found = names.iter().find(|n| self.same(n, item));
            found.map_or_else(String::new, |n| self.name(n, architecture))
        };
        let shown = super::show::proposition(&q.proposition, &item);
        format!("{} ({shown})", q.quantifier.keyword())
    }
}
