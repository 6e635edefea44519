//! Tree to model: names are resolved, loads become steps of their own, control becomes a graph.

mod calls;
mod conditions;
mod exchange;
mod expressions;
mod gaps;
mod graph;
mod names;
mod refuse;
mod statements;
mod temporal;
mod temporaries;

use super::ast::{CountEx, Declared, Ex, ExKind, File, InitEx, LengthEx, TypeEx};
use super::{Collector, Link};
use crate::Diagnostic;
use crate::gaps::Gap;
use conditions::Indices;
use names::{Constants, Names};
use wattle_model::{
    Count, Expr, Family, FamilyId, Init, Length, Program, Region, RegionId, Span, Type,
};

/// Steps and expression nodes of a whole file, after unrolling.
const MAX_WORK: u64 = 1 << 20;

pub(super) fn lower(file: &File, report: &mut Collector) -> (Program, Link, Vec<Vec<Gap>>) {
    let mut lowering = Lowering {
        names: Names::default(),
        report,
        work: 0,
        link: Link::default(),
        linked: !file.objects.is_empty(),
        lost: false,
        gaps: Vec::new(),
        families: Vec::new(),
        indices: Indices::default(),
    };
    lowering.declare(file);
    let mut program = Program::default();
    for (d, (length, ty)) in file.shared.iter().zip(lowering.names.shapes.clone()) {
        program.regions.push(Region {
            name: d.name.text.clone(),
            length,
            ty,
            init: lowering.init(&d.init),
            span: d.name.span,
        });
    }
    for (t, count) in file.threads.iter().zip(lowering.names.counts.clone()) {
        let family = statements::family(&mut lowering, t, count);
        lowering.families.push(family);
    }
    lowering.link_declarations(file);
    for p in &file.properties {
        program.properties.extend(lowering.property(p));
    }
    for t in &file.temporal {
        program.temporal.extend(lowering.temporal(t));
    }
    for c in &file.predicates {
        let condition = lowering.condition(c);
        refuse::not_linear(condition.as_ref(), c.expr.span, lowering.report);
        program.predicates.extend(condition);
    }
    program.families = lowering.families;
    let made = program.properties.len() + program.temporal.len() + program.predicates.len();
    let asked = file.properties.len() + file.temporal.len() + file.predicates.len();
    // What is left out was reported; were it not, it would be missing without a word.
    if (lowering.lost || made != asked) && lowering.report.errors == 0 {
        lowering.report.push(refuse::lost());
    }
    (program, lowering.link, lowering.gaps)
}

struct Lowering<'r> {
    names: Names,
    report: &'r mut Collector,
    work: u64,
    link: Link,
    /// The file speaks of object files: labels may be in there.
    linked: bool,
    /// Something could not be made.
    lost: bool,
    /// Places of the text, family by family.
    gaps: Vec<Vec<Gap>>,
    /// Those that are made.
    families: Vec<Family>,
    indices: Indices,
}

impl Lowering<'_> {
    /// No program is made of the file; what follows only finds more errors.
    fn refuse<T>(&mut self, d: Diagnostic) -> Option<T> {
        self.report.push(d);
        None
    }

    /// Counts work; false once the file has grown too large (reported once).
    fn spend(&mut self, work: u64) -> bool {
        let before = self.work;
        self.work = self.work.saturating_add(work);
        if before <= MAX_WORK && self.work > MAX_WORK {
            self.report.push(refuse::too_large());
        }
        self.work <= MAX_WORK
    }

    /// Families (types and lengths speak of them), constants, the shapes of memory.
    fn declare(&mut self, file: &File) {
        refuse::declared_twice(file, self.report);
        for (i, t) in file.threads.iter().enumerate() {
            let name = t.name.text.clone();
            self.names.families.entry(name).or_insert(FamilyId::new(i));
        }
        for constant in &file.lets {
            let value = self.number(&constant.value).unwrap_or(0);
            let name = constant.name.text.clone();
            self.names.constants.entry(name).or_insert(value);
        }
        for t in &file.threads {
            let count = match &t.count {
                CountEx::One => Count::One,
                CountEx::Any => Count::Any,
                CountEx::Fixed(e) => Count::Fixed(self.amount(e, refuse::no_count)),
            };
            self.names.counts.push(count);
        }
        for (i, d) in file.shared.iter().enumerate() {
            let name = d.name.text.clone();
            self.names.regions.entry(name).or_insert(RegionId::new(i));
            let length = self.length(d, file.threads.len());
            let ty = self.ty(&d.ty);
            self.names.shapes.push((length, ty));
        }
    }

    fn number(&mut self, e: &Ex) -> Option<i64> {
        self.names.number(e, &Constants::new(), self.report)
    }

    /// One or more.
    fn amount(&mut self, e: &Ex, wrong: fn(Span) -> Diagnostic) -> u32 {
        let given = self.number(e).map(u32::try_from);
        match given {
            Some(Ok(n)) if n > 0 => n,
            Some(_) => self.refuse(wrong(e.span)).unwrap_or(1),
            None => 1,
        }
    }

    /// Both ends belong to it; none is empty.
    fn range(&mut self, lo: &Ex, hi: &Ex, inner: &Constants) -> Option<(i64, i64)> {
        let low = self.names.number(lo, inner, self.report);
        let high = self.names.number(hi, inner, self.report);
        let range = (low?, high?);
        if range.0 > range.1 {
            return self.refuse(refuse::empty_range((lo, hi), range));
        }
        Some(range)
    }

    fn length(&mut self, d: &Declared, families: usize) -> Length {
        match &d.length {
            LengthEx::Scalar => Length::Scalar,
            LengthEx::Thread(span) => {
                if families != 1 {
                    self.report.push(refuse::one_family(*span, families));
                }
                Length::PerThread(FamilyId(0))
            }
            LengthEx::Array(e) => {
                if let ExKind::Name(n, None) = &e.kind
                    && let Some(f) = self.names.families.get(&n.text)
                {
                    return Length::PerThread(*f);
                }
                Length::Array(self.amount(e, refuse::no_length))
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
            TypeEx::Family(n) => {
                let family = self.names.family(n, self.report);
                family.map_or(Type::Int, Type::Thread)
            }
            TypeEx::Range(lo, hi) => {
                let range = self.range(lo, hi, &Constants::new());
                range.map_or(Type::Int, |(lo, hi)| Type::Range { lo, hi })
            }
        }
    }

    fn init(&mut self, init: &InitEx) -> Init {
        let mut value = |e| {
            let v = self.names.fixed(e, &Constants::new(), self.report);
            v.map_or(Expr::Const(0), |v| v.expr)
        };
        match init {
            InitEx::Zero => Init::default(),
            InitEx::Any => Init::Any,
            InitEx::All(e) => Init::All(value(e)),
            InitEx::Each(es) => Init::Each(es.iter().map(value).collect()),
        }
    }
}
