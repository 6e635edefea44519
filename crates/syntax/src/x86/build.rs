//! Sections to a program with one family of any number of threads.

use super::ParseOptions;
use super::code::{Read, Reader};
use super::data::{Value, Variable, variable};
use super::init;
use super::property;
use super::sections::{Block, Section};
use crate::diagnostics::Diagnostic;
use crate::x86_core::{Arithmetic, Base, Cell, Code, ENOUGH, Machine, Name, Op, Size, lower};
use std::collections::BTreeMap;
use wattle_model::program::{Family, Length, Region};
use wattle_model::{Count, Expr, FamilyId, Init, Local, Program, RegisterId, Span, Type};

const FAMILY: FamilyId = FamilyId(0);

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

    pub fn machine(&self) -> Machine<'_> {
        Machine {
            cells: &self.cells,
            arithmetic: self.arithmetic,
            family: FAMILY,
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
            if x.op == Op::Cmpxchg {
                note(Name {
                    base: Base::A,
                    size: Size::Dword,
                    high: false,
                });
            }
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
    let variables = variables(blocks, diagnostics);
    let layout = Layout::new(&variables, arithmetic);
    let of = |section| blocks.iter().filter(move |b| b.section == section);
    for section in [Section::InitCode, Section::ThreadCode] {
        for again in of(section).skip(1) {
            let message = format!("there are two sections `{}`", section.name());
            diagnostics.push(Diagnostic::error(again.span, message));
        }
    }
    let Some(thread_code) = of(Section::ThreadCode).next() else {
        let d = Diagnostic::error(Span::NONE, "the program has no `thread_code`");
        diagnostics.push(d.expected("`begin thread_code … end thread_code`"));
        return None;
    };
    let mut memory: Vec<Option<Expr<Local>>> = variables.iter().map(initial).collect();
    if let Some(block) = of(Section::InitCode).next() {
        let read = Reader::new(&variables, options.mathematical, diagnostics).read(&block.lines);
        if read.started.is_none() {
            let d = Diagnostic::error(block.span, "the threads are never started");
            diagnostics.push(d.expected("`start_threads` at the end of this section"));
        }
        init::run(&read, &layout, &mut memory, diagnostics);
    }
    let Read { code, started } =
        Reader::new(&variables, options.mathematical, diagnostics).read(&thread_code.lines);
    if let Some((_, span)) = started {
        let message = "`start_threads` belongs to `init_code`";
        diagnostics.push(Diagnostic::error(span, message));
    }
    let asked: Vec<Name> = of(Section::UnsafeProp)
        .flat_map(|b| property::names(&b.lines))
        .collect();
    let widths = layout.widths(&code, &asked);
    let inits = unknown_registers(&code, diagnostics);
    let lowered = lower(&code, &widths, &inits, &layout.machine(), diagnostics);
    let mut registers = lowered.registers;
    for flag in &lowered.unset {
        registers[flag.index()].init = Init::Any;
        let message = "a jump reads a flag that nothing may have set; it may have any value";
        diagnostics.push(Diagnostic::warning(thread_code.span, message));
    }
    let mut program = Program::default();
    for (i, v) in variables.iter().enumerate() {
        program.regions.push(Region {
            name: v.name.clone(),
            length: if v.per_thread {
                Length::PerThread(FAMILY)
            } else {
                Length::Scalar
            },
            ty: layout.types[i],
            init: memory[i].clone().map_or(Init::Any, Init::All),
            span: v.span,
        });
    }
    let mut name = "t".to_string();
    while variables.iter().any(|v| v.name == name) {
        name.push('_');
    }
    program.families.push(Family {
        name,
        count: Count::Any,
        registers,
        locations: lowered.locations,
        steps: lowered.steps,
        entry: lowered.entry,
        span: thread_code.span,
    });
    let register = |n: Name| {
        let id = widths.keys().position(|b| *b == n.base)?;
        let whole = Expr::Atom(RegisterId::new(id));
        Some(match arithmetic {
            Arithmetic::Mathematical => whole,
            Arithmetic::Wrapping => n.read(whole, *widths.get(&n.base)?),
        })
    };
    for block in of(Section::UnsafeProp) {
        let mut reader = property::Reader::new(&layout, &code, &register);
        match reader.property(&block.lines, block.span) {
            Ok(p) => {
                for base in &reader.exposed {
                    if let Some(id) = widths.keys().position(|b| b == base) {
                        program.families[0].registers[id].init = Init::Any;
                    }
                }
                program.properties.push(p);
            }
            Err(d) => diagnostics.push(d),
        }
    }
    Some(program)
}

fn variables(blocks: &[Block<'_>], diagnostics: &mut Vec<Diagnostic>) -> Vec<Variable> {
    let mut all: Vec<Variable> = Vec::new();
    let mut first: BTreeMap<String, Span> = BTreeMap::new();
    for block in blocks {
        let per_thread = match block.section {
            Section::SharedData => false,
            Section::ThreadData => true,
            _ => continue,
        };
        for line in &block.lines {
            if diagnostics.len() >= ENOUGH {
                break;
            }
            match variable(line, per_thread) {
                Ok(v) => match first.get(&v.name) {
                    Some(first) => {
                        let message = format!("variable `{}` is declared twice", v.name);
                        let hint = format!("the other declaration is on line {}", first.line);
                        diagnostics.push(Diagnostic::error(v.span, message).hint(hint));
                    }
                    None => {
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

/// `None` for any value.
fn initial(v: &Variable) -> Option<Expr<Local>> {
    match v.value {
        Value::Number(n) => Some(Expr::Const(n)),
        Value::Count => Some(Expr::Atom(Local::Count(FAMILY))),
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
