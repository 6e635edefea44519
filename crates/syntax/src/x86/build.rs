//! Sections to a program with one family for each function that threads run.

use super::ParseOptions;
use super::code::Reader;
use super::data::{Value, Variable, variable};
use super::init;
use super::property;
use super::sections::{Block, Section};
use super::views;
use crate::diagnostics::Diagnostic;
use crate::x86_core::{
    Arithmetic, Base, Cell, Code, ENOUGH, Machine, Name, Size, lower, parse_number,
};
use std::collections::BTreeMap;
use wattle_model::program::{Family, Length, Region};
use wattle_model::{Count, Expr, FamilyId, Init, Local, Program, RegisterId, Span, Type};

/// The data of a program, as the parts that need it see it.
pub struct Layout<'a> {
    pub variables: &'a [Variable],
    pub cells: Vec<Cell>,
    pub types: Vec<Type>,
    pub arithmetic: Arithmetic,
}

impl<'a> Layout<'a> {
    fn new(variables: &'a [Variable], arithmetic: Arithmetic) -> Self {
        let ty = |v: &Variable| match arithmetic {
            Arithmetic::Wrapping if !v.counter => Type::Wrap {
                bits: v.size.bits(),
                signed: true,
            },
            _ => Type::Int,
        };
        Layout {
            cells: variables
                .iter()
                .map(|v| Cell {
                    name: v.name.clone(),
                    width: v.size,
                    counter: v.counter,
                })
                .collect(),
            types: variables.iter().map(ty).collect(),
            variables,
            arithmetic,
        }
    }

    pub fn machine(&self, family: FamilyId) -> Machine<'_> {
        Machine {
            cells: &self.cells,
            arithmetic: self.arithmetic,
            family,
            addresses: (0, 1),
            lower_case: true,
        }
    }

    /// The widest part used of each register.
    pub fn widths(&self, code: &Code, more: &[Name]) -> BTreeMap<Base, Size> {
        let mut widths = BTreeMap::new();
        let mut note = |n: Name| {
            let w = widths.entry(n.base).or_insert(n.reach());
            *w = (*w).max(n.reach());
        };
        for x in &code.instructions {
            x.names().into_iter().for_each(&mut note);
        }
        more.iter().copied().for_each(note);
        widths
    }
}

pub fn build(
    blocks: &[Block<'_>],
    options: ParseOptions,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Program> {
    let arithmetic = if options.mathematical {
        Arithmetic::Mathematical
    } else {
        Arithmetic::Wrapping
    };
    let functions = functions(blocks, diagnostics);
    let variables = variables(blocks, &functions, diagnostics);
    let layout = Layout::new(&variables, arithmetic);
    let of = |section| blocks.iter().filter(move |b| b.section == section);
    for again in of(Section::InitCode).skip(1) {
        let message = "there are two sections `init_code`";
        diagnostics.push(Diagnostic::error(again.span, message));
    }
    if functions.is_empty() {
        let d = Diagnostic::error(Span::NONE, "the program has no `thread_code`");
        diagnostics.push(d.expected("`begin thread_code … end thread_code`"));
        return None;
    }
    let counted = functions.len() == 1;
    let mut memory: Vec<Vec<Option<Expr<Local>>>> = (variables.iter())
        .map(|v| v.values.iter().map(initial).collect())
        .collect();
    if let Some(block) = of(Section::InitCode).next() {
        let whose = (None, counted);
        let read =
            Reader::new(&variables, options.mathematical, whose, diagnostics).read(&block.lines);
        if read.started.is_none() {
            let d = Diagnostic::error(block.span, "the threads are never started");
            diagnostics.push(d.expected("`start_threads` at the end of this section"));
        }
        init::run(&read, &layout, &mut memory, diagnostics);
    }
    let asked: Vec<Name> = of(Section::UnsafeProp)
        .flat_map(|b| property::names(&b.lines))
        .collect();
    let mut program = Program::default();
    for (i, v) in variables.iter().enumerate() {
        program.regions.push(Region {
            name: v.name.clone(),
            length: match (v.of, v.values.len()) {
                (Some(family), _) => Length::PerThread(family),
                (None, 1) => Length::Scalar,
                (None, n) => Length::Array(n as u32),
            },
            ty: layout.types[i],
            init: first_values(&memory[i], v, diagnostics),
            span: v.span,
        });
    }
    let mut codes = Vec::new();
    let mut taken: BTreeMap<String, Span> = BTreeMap::new();
    for (k, f) in functions.iter().enumerate() {
        let family = FamilyId::new(k);
        let whose = (Some(family), counted);
        let read =
            Reader::new(&variables, options.mathematical, whose, diagnostics).read(&f.block.lines);
        if let Some((_, span)) = read.started {
            let message = "`start_threads` belongs to `init_code`";
            diagnostics.push(Diagnostic::error(span, message));
        }
        // Properties tell functions by their labels.
        for l in read.code.labels.iter().filter(|_| !counted) {
            let first = *taken.entry(l.name.clone()).or_insert(l.span);
            if first != l.span {
                let message = format!("label `{}` is defined twice", l.name);
                let hint = format!("the other definition is on line {}", first.line);
                diagnostics.push(Diagnostic::error(l.span, message).hint(hint));
            }
        }
        let code = read.code;
        let widths = layout.widths(&code, &asked);
        let inits = unknown_registers(&code, diagnostics);
        let lowered = lower(&code, &widths, &inits, &layout.machine(family), diagnostics);
        let mut registers = lowered.registers;
        for flag in &lowered.unset {
            registers[flag.index()].init = Init::Any;
            let message = "a jump reads a flag that nothing may have set; it may have any value";
            diagnostics.push(Diagnostic::warning(f.block.span, message));
        }
        program.families.push(Family {
            name: f.name.clone(),
            count: f.count,
            registers,
            locations: lowered.locations,
            steps: lowered.steps,
            entry: lowered.entry,
            span: f.block.span,
        });
        codes.push((code, widths));
    }
    type Place<'a> = Box<dyn Fn(Name) -> Option<Expr<RegisterId>> + 'a>;
    let places: Vec<Place<'_>> = (codes.iter())
        .map(|(_, widths)| -> Place<'_> {
            Box::new(move |n: Name| {
                let id = widths.keys().position(|b| *b == n.base)?;
                let whole = Expr::Atom(RegisterId::new(id));
                Some(match arithmetic {
                    Arithmetic::Mathematical => whole,
                    Arithmetic::Wrapping => n.read(whole, *widths.get(&n.base)?),
                })
            })
        })
        .collect();
    let seen: Vec<property::Function<'_>> = (functions.iter().zip(&codes).zip(&places))
        .map(|((f, (code, _)), place)| property::Function::new(&f.name, code, place))
        .collect();
    for block in of(Section::UnsafeProp) {
        let mut reader = property::Reader::new(&layout, &seen);
        match reader.property(&block.lines, block.span) {
            Ok(p) => {
                for (runs, base) in &reader.exposed {
                    if let Some(id) = codes[*runs].1.keys().position(|b| b == base) {
                        program.families[*runs].registers[id].init = Init::Any;
                    }
                }
                program.properties.push(p);
            }
            Err(d) => diagnostics.push(d),
        }
    }
    views::settle(&mut program);
    Some(program)
}

/// What threads run.
struct Function<'b, 't> {
    name: String,
    count: Count,
    block: &'b Block<'t>,
}

fn functions<'b, 't>(
    blocks: &'b [Block<'t>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Function<'b, 't>> {
    let mut all: Vec<Function<'b, 't>> = Vec::new();
    for block in blocks.iter().filter(|b| b.section == Section::ThreadCode) {
        let count = match &block.count {
            None => Count::Any,
            Some(t) => match parse_number(t.text).and_then(|n| u32::try_from(n).ok()) {
                Some(n) if n > 0 => Count::Fixed(n),
                _ => {
                    let message = "this is no number of threads";
                    diagnostics.push(Diagnostic::error(t.span, message));
                    Count::Any
                }
            },
        };
        if block.name.is_none() && !all.is_empty() {
            let message = "there are two sections `thread_code`";
            let hint = "give each a name: `begin thread_code writer`";
            diagnostics.push(Diagnostic::error(block.span, message).hint(hint));
        }
        let name = block.name.map_or("t", |t| t.text).to_string();
        if let (Some(t), true) = (block.name, all.iter().any(|f| f.name == name)) {
            let message = format!("there are two functions `{name}`");
            diagnostics.push(Diagnostic::error(t.span, message));
        }
        all.push(Function { name, count, block });
    }
    all
}

/// The initial values of a variable: all known, or none.
fn first_values(
    values: &[Option<Expr<Local>>],
    v: &Variable,
    diagnostics: &mut Vec<Diagnostic>,
) -> Init {
    let known: Option<Vec<Expr<Local>>> = values.iter().cloned().collect();
    match known {
        Some(mut all) if all.len() == 1 => Init::All(all.swap_remove(0)),
        Some(all) => Init::Each(all),
        None => {
            if values.iter().any(Option::is_some) {
                let message = "elements of an array are all known at first, or none is";
                diagnostics.push(Diagnostic::error(v.span, message));
            }
            Init::Any
        }
    }
}

fn variables(
    blocks: &[Block<'_>],
    functions: &[Function<'_, '_>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Variable> {
    let mut all: Vec<Variable> = Vec::new();
    let mut first: BTreeMap<String, Span> = BTreeMap::new();
    for block in blocks {
        let of = match block.section {
            Section::SharedData => None,
            Section::ThreadData => Some(whose(block, functions, diagnostics)),
            Section::InitCode | Section::ThreadCode | Section::UnsafeProp => continue,
        };
        for line in &block.lines {
            if diagnostics.len() >= ENOUGH {
                break;
            }
            match variable(line, of) {
                Ok(v) => match first.get(&v.name) {
                    Some(first) => {
                        let message = format!("variable `{}` is declared twice", v.name);
                        let hint = format!("the other declaration is on line {}", first.line);
                        diagnostics.push(Diagnostic::error(v.span, message).hint(hint));
                    }
                    None => {
                        if functions.len() > 1 && v.values.contains(&Value::Count) {
                            let message = "how many threads are meant is not clear: there are several functions";
                            diagnostics.push(Diagnostic::error(v.span, message));
                        }
                        first.insert(v.name.clone(), v.span);
                        all.push(v);
                    }
                },
                Err(d) => diagnostics.push(d),
            }
        }
    }
    all
}

/// The family whose threads have this data.
fn whose(
    block: &Block<'_>,
    functions: &[Function<'_, '_>],
    diagnostics: &mut Vec<Diagnostic>,
) -> FamilyId {
    let named = |name: &str| functions.iter().position(|f| f.name == name);
    let found = match (&block.name, functions) {
        (Some(t), _) => named(t.text),
        (None, [_]) => Some(0),
        (None, _) => None,
    };
    found.map(FamilyId::new).unwrap_or_else(|| {
        if !functions.is_empty() {
            let message = "whose data this is is not clear";
            let d = Diagnostic::error(block.span, message);
            diagnostics.push(d.expected("the name of a function: `begin thread_data writer`"));
        }
        FamilyId(0)
    })
}

/// `None` for any value.
fn initial(v: &Value) -> Option<Expr<Local>> {
    match v {
        Value::Number(n) => Some(Expr::Const(*n)),
        Value::Count => Some(Expr::Atom(Local::Count(FamilyId(0)))),
        Value::Any => None,
    }
}

/// Registers start with whatever the machine left in them (conchon-2017 §3).
fn unknown_registers(code: &Code, diagnostics: &mut Vec<Diagnostic>) -> BTreeMap<Base, Init> {
    let mut inits = BTreeMap::new();
    for base in code.read_first() {
        let mut users = code.instructions.iter();
        let user = users.find(|x| x.read().contains(&base));
        let name = base.name(Size::Dword).to_ascii_lowercase();
        let message = format!("`{name}` may be read before it is written; it may have any value");
        let span = user.map_or(Span::NONE, |x| x.span);
        let hint = format!("write `mov {name}, 0` first if it should start with 0");
        diagnostics.push(Diagnostic::warning(span, message).hint(hint));
        inits.insert(base, Init::Any);
    }
    inits
}
