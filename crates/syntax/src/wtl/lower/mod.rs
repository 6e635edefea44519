//! Tree to model: names are resolved, loads become steps of their own, control becomes a graph.

mod conditions;
mod exchange;
mod expressions;
mod graph;
mod names;
mod statements;
mod temporaries;

use super::ast::{CountEx, Declared, File, InitEx, LengthEx, Name, TypeEx};
use super::{Collector, Link, Memory, Size};
use crate::Diagnostic;
use names::{Names, Value};
use std::collections::{HashMap, HashSet};
use wattle_model::{
    Count, Family, FamilyId, Init, Length, LocationId, Program, Region, RegionId, Type,
};

/// Steps and expression nodes of a whole file, after unrolling.
const MAX_WORK: u64 = 1 << 20;

pub(super) fn lower(file: &File, report: &mut Collector) -> (Program, Link) {
    let mut lowering = Lowering {
        names: Names::default(),
        report,
        work: 0,
        link: Link::default(),
        linked: !file.objects.is_empty(),
    };
    lowering.declare(file);
    let mut program = Program::default();
    for d in &file.shared {
        let region = lowering.region(d, file);
        program.regions.push(region);
    }
    for t in &file.threads {
        let family = lowering.thread(t);
        program.families.push(family);
    }
    lowering.link_declarations(file);
    for p in &file.properties {
        if let Some(property) = lowering.property(p, &program.families) {
            program.properties.push(property);
        }
    }
    for t in &file.temporal {
        if let Some(temporal) = lowering.temporal(t, &program.families) {
            program.temporal.push(temporal);
        }
    }
    for c in &file.predicates {
        if let Some(condition) = lowering.condition(c, &program.families) {
            if !condition.expr.is_linear() {
                lowering.error(crate::diagnostics::not_linear(c.expr.span));
            }
            program.predicates.push(condition);
        }
    }
    (program, lowering.link)
}

struct Lowering<'r> {
    names: Names,
    report: &'r mut Collector,
    work: u64,
    link: Link,
    /// The file speaks of object files: labels may be in there.
    linked: bool,
}

impl Lowering<'_> {
    fn error(&mut self, d: Diagnostic) {
        self.report.push(d);
    }

    /// Counts work; false once the file has grown too large (reported once).
    fn spend(&mut self, work: u64) -> bool {
        let before = self.work;
        self.work = self.work.saturating_add(work);
        if before <= MAX_WORK && self.work > MAX_WORK {
            self.report.push(
                Diagnostic::error(
                    wattle_model::Span::NONE,
                    "the program is too large once its loops are unrolled and constants put in",
                )
                .hint("use `while` with a register instead of `for`"),
            );
        }
        self.work <= MAX_WORK
    }

    /// Families (types and lengths speak of them), constants, the shapes of memory.
    fn declare(&mut self, file: &File) {
        self.declared_twice(file);
        let nothing = HashMap::new();
        for (i, t) in file.threads.iter().enumerate() {
            let name = t.name.text.clone();
            self.names.families.entry(name).or_insert(FamilyId::new(i));
        }
        for constant in &file.lets {
            let value = self.names.number(&constant.value, &nothing, self.report);
            let name = constant.name.text.clone();
            self.names
                .constants
                .entry(name)
                .or_insert(value.unwrap_or(0));
        }
        for t in &file.threads {
            let count = match &t.count {
                CountEx::One => Count::One,
                CountEx::Any => Count::Any,
                CountEx::Fixed(e) => {
                    let given = self.names.number(e, &nothing, self.report);
                    match given.map(u32::try_from) {
                        Some(Ok(n)) if n > 0 => Count::Fixed(n),
                        None => Count::Fixed(1),
                        Some(_) => {
                            self.error(
                                Diagnostic::error(e.span, "this is no number of threads")
                                    .expected("1 or more, or `*` for any number"),
                            );
                            Count::Fixed(1)
                        }
                    }
                }
            };
            self.names.counts.push(count);
        }
        for (i, d) in file.shared.iter().enumerate() {
            let name = d.name.text.clone();
            self.names.regions.entry(name).or_insert(RegionId::new(i));
            let length = self.length(d, file);
            let ty = self.ty(&d.ty);
            self.names.shapes.push((length, ty));
        }
    }

    /// Object files, what lies in memory for them, functions they lack.
    fn link_declarations(&mut self, file: &File) {
        let named = |n: &Name| (n.text.clone(), n.span);
        self.link.objects = file.objects.iter().map(named).collect();
        for (i, d) in file.shared.iter().enumerate() {
            let size = match &d.ty {
                TypeEx::Object(e) => {
                    let size = self.names.number(e, &HashMap::new(), self.report);
                    match size {
                        Some(n) if (1..=1 << 20).contains(&n) => Size::Bytes(n as u64),
                        Some(_) => {
                            self.error(
                                Diagnostic::error(e.span, "this is no size of an object")
                                    .expected("1 to 1048576 bytes"),
                            );
                            continue;
                        }
                        None => continue,
                    }
                }
                TypeEx::Struct(n) => Size::Struct(n.text.clone()),
                TypeEx::Int
                | TypeEx::Bool
                | TypeEx::Range(..)
                | TypeEx::Wrap { .. }
                | TypeEx::Family(_) => continue,
            };
            if file.objects.is_empty() {
                self.error(
                    Diagnostic::error(d.name.span, "objects are for compiled code")
                        .hint("name the file first: `object \"lock.o\";`"),
                );
            }
            if matches!(d.init, InitEx::Any) {
                self.error(
                    Diagnostic::error(d.name.span, "the first bytes of an object are given")
                        .hint("write them as a list: `= {1, 0, 0, 0}`; bytes left out are 0"),
                );
            }
            self.link.memory.push(Memory {
                region: RegionId::new(i),
                size,
                span: d.name.span,
            });
        }
        for (name, havoc) in &file.skipped {
            self.link.skipped.push((name.text.clone(), *havoc));
        }
    }

    /// The later one of two declarations of a name is the wrong one.
    fn declared_twice(&mut self, file: &File) {
        let lets = file.lets.iter().map(|l| &l.name);
        let threads = file.threads.iter().map(|t| &t.name);
        let shared = file.shared.iter().map(|d| &d.name);
        let mut all: Vec<&Name> = lets.chain(threads).chain(shared).collect();
        all.sort_by_key(|n| n.span.start);
        let mut seen: HashSet<&str> = HashSet::new();
        for name in all {
            if !seen.insert(&name.text) {
                self.error(Diagnostic::error(
                    name.span,
                    format!("`{}` is declared twice", name.text),
                ));
            }
        }
    }

    fn length(&mut self, d: &Declared, file: &File) -> Length {
        match &d.length {
            LengthEx::Scalar => Length::Scalar,
            LengthEx::Thread(span) => {
                if file.threads.len() != 1 {
                    self.error(
                        Diagnostic::error(
                            *span,
                            format!(
                                "`[thread]` needs exactly one family of threads; there are {}",
                                file.threads.len()
                            ),
                        )
                        .hint("put the name of the family in the brackets"),
                    );
                }
                Length::PerThread(FamilyId(0))
            }
            LengthEx::Array(e) => {
                if let super::ast::ExKind::Name(n, None) = &e.kind
                    && let Some(f) = self.names.families.get(&n.text)
                {
                    return Length::PerThread(*f);
                }
                let given = self.names.number(e, &HashMap::new(), self.report);
                match given.map(u32::try_from) {
                    Some(Ok(n)) if n > 0 => Length::Array(n),
                    None => Length::Array(1),
                    Some(_) => {
                        self.error(
                            Diagnostic::error(e.span, "this is no length of an array")
                                .expected("1 or more"),
                        );
                        Length::Array(1)
                    }
                }
            }
        }
    }

    fn ty(&mut self, ty: &TypeEx) -> Type {
        match ty {
            TypeEx::Int => Type::Int,
            TypeEx::Bool => Type::BOOL,
            // Settled when the code is known.
            TypeEx::Object(_) | TypeEx::Struct(_) => Type::Int,
            TypeEx::Wrap { bits, signed } => Type::Wrap {
                bits: *bits,
                signed: *signed,
            },
            TypeEx::Family(n) => match self.names.family(n, self.report) {
                Some(f) => Type::Thread(f),
                None => Type::Int,
            },
            TypeEx::Range(lo, hi) => {
                let nothing = HashMap::new();
                let low = self.names.number(lo, &nothing, self.report);
                let high = self.names.number(hi, &nothing, self.report);
                match (low, high) {
                    (Some(l), Some(h)) if l <= h => Type::Range { lo: l, hi: h },
                    (Some(l), Some(h)) => {
                        self.error(
                            Diagnostic::error(
                                lo.span.to(hi.span),
                                format!("the range {l}..{h} is empty"),
                            )
                            .hint("both ends belong to a range, the smaller one first"),
                        );
                        Type::Int
                    }
                    _ => Type::Int,
                }
            }
        }
    }

    fn init(&mut self, init: &InitEx) -> Init {
        let nothing: HashMap<String, Value> = HashMap::new();
        let mut value = |e| {
            let v = self.names.fixed(e, &nothing, self.report);
            v.map_or(wattle_model::Expr::Const(0), |v| v.expr)
        };
        match init {
            InitEx::Zero => Init::default(),
            InitEx::Any => Init::Any,
            InitEx::All(e) => Init::All(value(e)),
            InitEx::Each(es) => Init::Each(es.iter().map(value).collect()),
        }
    }

    fn region(&mut self, d: &Declared, file: &File) -> Region {
        let known = self.names.regions.get(&d.name.text);
        let shape = known.and_then(|r| self.names.shapes.get(r.index()).copied());
        let (length, ty) = shape.unwrap_or_else(|| (self.length(d, file), Type::Int));
        Region {
            name: d.name.text.clone(),
            length,
            ty,
            init: self.init(&d.init),
            span: d.name.span,
        }
    }

    fn thread(&mut self, t: &super::ast::ThreadEx) -> Family {
        let count = self.names.families.get(&t.name.text);
        let count = count.and_then(|f| self.names.counts.get(f.index()).copied());
        let (registers, locations, steps, entry) = statements::body(self, t);
        Family {
            name: t.name.text.clone(),
            count: count.unwrap_or(Count::One),
            registers,
            locations,
            steps,
            entry: LocationId::new(entry.index()),
            span: t.span,
        }
    }
}
