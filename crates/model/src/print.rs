//! Any program in the words of `.wtl`.
//!
//! What is printed parses back to the same (canonical) program: every statement lowers to exactly
//! one step, jumps to none. Graphs become straight lines with numbered labels, which the language
//! keeps out of the model; a location with several steps is a `choose`, or an `if` where the steps
//! are a condition and its negation. Names that are no identifiers stand in backquotes.

use crate::graph::{Action, Fence, Section};
use crate::ids::{FamilyId, LocationId, RegionId};
use crate::program::{Count, Family, Init, Length, Local, Place, Program, Step};
use crate::property::{Condition, IndexVariable, Observation, ThreadIndex, ThreadRef};
use crate::temporal::{Formula, Temporal, TemporalKind};
use crate::ty::Type;
use crate::{Expr, IndexId};
use std::fmt::{self, Write};

/// Words of `.wtl` that are names only in backquotes.
pub const RESERVED: &[&str] = &[
    "shared",
    "local",
    "let",
    "thread",
    "if",
    "else",
    "while",
    "loop",
    "for",
    "break",
    "continue",
    "goto",
    "skip",
    "stop",
    "await",
    "assume",
    "assert",
    "choose",
    "any",
    "fence",
    "atomic",
    "self",
    "true",
    "false",
    "none",
    "cas",
    "swap",
    "fetch_add",
    "never",
    "always",
    "finally",
    "reachable",
    "ltl",
];

/// The program as text. Graphs are printed in canonical form.
pub fn to_wtl(program: &Program) -> String {
    let program = &program.canonical();
    let mut out = String::new();
    for r in &program.regions {
        let _ = write!(out, "shared {}", name(&r.name));
        match r.length {
            Length::Scalar => {}
            Length::Array(n) => drop(write!(out, "[{n}]")),
            Length::PerThread(f) => drop(write!(out, "[{}]", family_name(program, f))),
        }
        declare(program, r.ty, &r.init, &mut out);
        out.push_str(";\n");
    }
    for f in &program.families {
        if !out.is_empty() {
            out.push('\n');
        }
        family(program, f, &mut out);
    }
    if !program.properties.is_empty() {
        out.push('\n');
    }
    for p in &program.properties {
        let shown = condition(program, &p.condition);
        let _ = writeln!(out, "{} {shown};", p.kind.keyword());
    }
    if !program.temporal.is_empty() {
        out.push('\n');
    }
    for t in &program.temporal {
        let _ = writeln!(out, "{};", temporal(program, t));
    }
    if !program.predicates.is_empty() {
        out.push_str("\npredicates {\n");
        for c in &program.predicates {
            let _ = writeln!(out, "    {};", condition(program, c));
        }
        out.push_str("}\n");
    }
    out
}

/// `: type = init`, as far as they differ from the defaults.
fn declare(program: &Program, ty: Type, init: &Init, out: &mut String) {
    if ty != Type::Int {
        let _ = write!(out, ": {}", type_name(program, ty));
    }
    match init {
        Init::All(Expr::Const(0)) => {}
        Init::All(e) => drop(write!(out, " = {}", expression(program, None, e))),
        Init::Any => out.push_str(" = any"),
        Init::Each(es) => {
            let all = es.iter().map(|e| expression(program, None, e));
            let _ = write!(out, " = {{{}}}", all.collect::<Vec<_>>().join(", "));
        }
    }
}

fn type_name(program: &Program, ty: Type) -> String {
    match ty {
        Type::Int => "int".to_string(),
        Type::Range { lo, hi } => format!("{lo}..{hi}"),
        Type::Wrap { bits, signed } => format!("{}{bits}", if signed { 'i' } else { 'u' }),
        Type::Thread(f) => family_name(program, f),
    }
}

fn family_name(program: &Program, f: FamilyId) -> String {
    let found = program.families.get(f.index());
    found.map_or_else(|| f.to_string(), |f| name(&f.name))
}

fn region_name(program: &Program, r: RegionId) -> String {
    let found = program.regions.get(r.index());
    found.map_or_else(|| r.to_string(), |r| name(&r.name))
}

/// The name, in backquotes if it would not be read as a name.
pub fn name(text: &str) -> String {
    let mut bytes = text.bytes();
    let first = bytes.next().unwrap_or(b'0');
    let plain = (first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !RESERVED.contains(&text)
        && !is_type_word(text);
    if plain {
        text.to_string()
    } else {
        quoted(text, '`')
    }
}

fn is_type_word(text: &str) -> bool {
    let digits = text.strip_prefix(['u', 'i']).unwrap_or("-");
    matches!(text, "int" | "bool")
        || (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn quoted(text: &str, quote: char) -> String {
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// A register expression; `family` tells the registers' names.
pub fn expression(program: &Program, family: Option<&Family>, e: &Expr<Local>) -> String {
    let leaf = |a: &Local, f: &mut fmt::Formatter<'_>| match a {
        Local::Register(r) => match family.and_then(|f| f.registers.get(r.index())) {
            Some(register) => f.write_str(&name(&register.name)),
            None => write!(f, "{r}"),
        },
        Local::SelfIndex => f.write_str("self"),
        Local::Count(of) => write!(f, "count({})", family_name(program, *of)),
        Local::AddressOf(r) => write!(f, "&{}", region_name(program, *r)),
    };
    e.display(&leaf).to_string()
}

fn place(program: &Program, family: &Family, place: &Place) -> String {
    match place {
        Place::Region(r, index) => {
            let shown = region_name(program, *r);
            match program.regions.get(r.index()).map(|r| r.length) {
                Some(Length::Scalar) => shown,
                _ => format!("{shown}[{}]", expression(program, Some(family), index)),
            }
        }
        Place::Memory(e) => format!("*({})", expression(program, Some(family), e)),
    }
}

/// One step as a statement, without its final semicolon.
pub fn action(program: &Program, family: &Family, action: &crate::program::Action) -> String {
    let shown = |e: &Expr<Local>| expression(program, Some(family), e);
    let register = |r: &crate::RegisterId| match family.registers.get(r.index()) {
        Some(register) => name(&register.name),
        None => r.to_string(),
    };
    match action {
        Action::Skip => "skip".to_string(),
        Action::Assign { register: r, value } => format!("{} = {}", register(r), shown(value)),
        Action::Havoc { register: r, range } => match range {
            Some((lo, hi)) => format!("{} = any {lo}..{hi}", register(r)),
            None => format!("{} = any", register(r)),
        },
        Action::Assume(e) => format!("assume {}", shown(e)),
        Action::Assert { condition, message } => match message {
            Some(m) => format!("assert {}, {}", shown(condition), quoted(m, '"')),
            None => format!("assert {}", shown(condition)),
        },
        Action::Load {
            register: r,
            place: p,
        } => {
            format!("{} = {}", register(r), place(program, family, p))
        }
        Action::Store { place: p, value } => {
            format!("{} = {}", place(program, family, p), shown(value))
        }
        Action::Fence(Fence::Full) => "fence".to_string(),
        Action::Fence(Fence::Store) => "fence store".to_string(),
        Action::AtomicBegin(Section::Drained) => "atomic begin".to_string(),
        Action::AtomicBegin(Section::Buffered) => "atomic buffered begin".to_string(),
        Action::AtomicEnd => "atomic end".to_string(),
        Action::Lock => "lock".to_string(),
        Action::Unlock => "unlock".to_string(),
    }
}

fn family(program: &Program, f: &Family, out: &mut String) {
    let count = match f.count {
        Count::One => String::new(),
        Count::Fixed(n) => format!("[{n}]"),
        Count::Any => "[*]".to_string(),
    };
    let _ = writeln!(out, "thread {}{count} {{", name(&f.name));
    for r in &f.registers {
        let _ = write!(out, "    local {}", name(&r.name));
        declare(program, r.ty, &r.init, out);
        out.push_str(";\n");
    }
    let mut outgoing: Vec<Vec<&Step>> = vec![Vec::new(); f.locations.len()];
    for s in &f.steps {
        outgoing[s.source.index()].push(s);
    }
    // Labels are printed only where some jump needs them.
    let mut wanted = vec![false; f.locations.len()];
    let mut body: Vec<String> = Vec::with_capacity(f.locations.len());
    for (l, steps) in outgoing.iter().enumerate() {
        let last = l + 1 == f.locations.len();
        let mut jump = |target: LocationId| {
            if target.index() == l + 1 {
                return String::new();
            }
            wanted[target.index()] = true;
            format!("goto {};", target.0)
        };
        body.push(match steps[..] {
            [] if last => String::new(),
            [] => "stop;".to_string(),
            [s] => join(&action(program, f, &s.action), &jump(s.target)),
            [a, b] if alternative(a, b).is_some() => {
                let shown = alternative(a, b).map(|c| expression(program, Some(f), c));
                let yes = jump(a.target);
                let no = jump(b.target);
                let mut text = format!("if {} {}", shown.unwrap_or_default(), braced(&yes));
                if !no.is_empty() {
                    let _ = write!(text, " else {}", braced(&no));
                }
                text
            }
            _ => {
                let branches = steps.iter().map(|s| {
                    let inner = join(&action(program, f, &s.action), &jump(s.target));
                    braced(&inner)
                });
                format!("choose {}", branches.collect::<Vec<_>>().join(" or "))
            }
        });
    }
    for (l, text) in body.iter().enumerate() {
        let mut line = String::new();
        for label in &f.locations[l].labels {
            let _ = write!(line, "{}: ", name(label));
        }
        if wanted[l] {
            let _ = write!(line, "{l}: ");
        }
        line.push_str(text);
        if !line.is_empty() {
            let _ = writeln!(out, "    {}", line.trim_end());
        }
    }
    out.push_str("}\n");
}

fn join(statement: &str, jump: &str) -> String {
    if jump.is_empty() {
        format!("{statement};")
    } else {
        format!("{statement}; {jump}")
    }
}

fn braced(inner: &str) -> String {
    if inner.is_empty() {
        "{ }".to_string()
    } else {
        format!("{{ {inner} }}")
    }
}

/// The condition, if the two steps are what `if` makes. A condition without leaves is no branch:
/// the parser decides it at once.
fn alternative<'s>(a: &'s Step, b: &Step) -> Option<&'s Expr<Local>> {
    let (Action::Assume(yes), Action::Assume(no)) = (&a.action, &b.action) else {
        return None;
    };
    let mut leaves = false;
    yes.for_each_atom(&mut |_| leaves = true);
    (leaves && *no == yes.clone().negate()).then_some(yes)
}

/// A demand on runs, as it is written but for the `;`.
pub fn temporal(program: &Program, t: &Temporal) -> String {
    let announce = |indices: &[IndexVariable]| {
        let mut found: Vec<IndexId> = Vec::new();
        t.for_each_condition(&mut |e| first_uses(e, &mut found));
        announced(program, indices, &found)
    };
    match &t.kind {
        TemporalKind::Progress => "progress".into(),
        TemporalKind::LeadsTo(from, to) => format!(
            "{}{} ~> {}",
            announce(&from.indices),
            observed(program, &from.indices, &from.expr),
            observed(program, &from.indices, to)
        ),
        TemporalKind::Ltl(indices, f) => {
            format!("ltl {}{}", announce(indices), formula(program, indices, f))
        }
    }
}

fn formula(program: &Program, indices: &[IndexVariable], f: &Formula<Expr<Observation>>) -> String {
    let sub = |f: &Formula<Expr<Observation>>| match f {
        Formula::Now(_) => format!("({})", formula(program, indices, f)),
        Formula::Not(_) | Formula::Globally(_) | Formula::Finally(_) => {
            formula(program, indices, f)
        }
        Formula::And(..)
        | Formula::Or(..)
        | Formula::Implies(..)
        | Formula::Until(..)
        | Formula::Release(..)
        | Formula::WeakUntil(..) => format!("({})", formula(program, indices, f)),
    };
    match f {
        Formula::Now(e) => observed(program, indices, e),
        Formula::Not(f) => format!("!{}", sub(f)),
        Formula::Globally(f) => format!("G {}", sub(f)),
        Formula::Finally(f) => format!("F {}", sub(f)),
        Formula::And(f, g) => format!("{} && {}", sub(f), sub(g)),
        Formula::Or(f, g) => format!("{} || {}", sub(f), sub(g)),
        Formula::Implies(f, g) => format!("{} -> {}", sub(f), sub(g)),
        Formula::Until(f, g) => format!("{} U {}", sub(f), sub(g)),
        Formula::Release(f, g) => format!("{} R {}", sub(f), sub(g)),
        Formula::WeakUntil(f, g) => format!("{} W {}", sub(f), sub(g)),
    }
}

/// A condition, with its index variables announced where reading it would not find the same ones.
pub fn condition(program: &Program, c: &Condition) -> String {
    let mut found: Vec<IndexId> = Vec::new();
    first_uses(&c.expr, &mut found);
    let shown = observed(program, &c.indices, &c.expr);
    format!("{}{shown}", announced(program, &c.indices, &found))
}

/// `for p[i]: `, unless the variables are found in this order.
fn announced(program: &Program, indices: &[IndexVariable], found: &[IndexId]) -> String {
    let implied = found
        .iter()
        .copied()
        .eq((0..indices.len()).map(IndexId::new));
    if implied {
        return String::new();
    }
    let named = indices
        .iter()
        .map(|v| format!("{}[{}]", family_name(program, v.family), name(&v.name)));
    format!("for {}: ", named.collect::<Vec<_>>().join(", "))
}

/// Index variables in the order in which they first stand in brackets.
fn first_uses(e: &Expr<Observation>, found: &mut Vec<IndexId>) {
    fn thread(t: &ThreadRef, found: &mut Vec<IndexId>) {
        if let ThreadIndex::Variable(v) = t.index
            && !found.contains(&v)
        {
            found.push(v);
        }
    }
    e.for_each_atom(&mut |o| match o {
        Observation::Register(t, _) | Observation::At(t, _) => thread(t, found),
        Observation::Seen(t, _, e) => {
            thread(t, found);
            first_uses(e, found);
        }
        Observation::Cell(_, e) | Observation::Memory(e) => first_uses(e, found),
        // As a number it must have stood in brackets before.
        Observation::Index(v) if !found.contains(v) => found.push(IndexId(u32::MAX)),
        Observation::AddressOf(_) | Observation::Index(_) | Observation::Count(_) => {}
    });
}

fn observed(program: &Program, indices: &[IndexVariable], e: &Expr<Observation>) -> String {
    let variable = |v: &IndexId| match indices.get(v.index()) {
        Some(v) => name(&v.name),
        None => v.to_string(),
    };
    let thread = |t: &ThreadRef| {
        let shown = family_name(program, t.family);
        let single = program
            .families
            .get(t.family.index())
            .is_some_and(|f| f.count == Count::One);
        match &t.index {
            ThreadIndex::Number(_) if single => shown,
            ThreadIndex::Number(n) => format!("{shown}[{n}]"),
            ThreadIndex::Variable(v) => format!("{shown}[{}]", variable(v)),
        }
    };
    let cell = |r: RegionId, index: &Expr<Observation>| {
        let shown = region_name(program, r);
        match program.regions.get(r.index()).map(|r| r.length) {
            Some(Length::Scalar) => shown,
            _ => format!("{shown}[{}]", observed(program, indices, index)),
        }
    };
    let leaf = |o: &Observation, f: &mut fmt::Formatter<'_>| match o {
        Observation::Cell(r, index) => f.write_str(&cell(*r, index)),
        Observation::Seen(t, r, index) => write!(f, "{}::{}", thread(t), cell(*r, index)),
        Observation::Memory(e) => write!(f, "*({})", observed(program, indices, e)),
        Observation::AddressOf(r) => write!(f, "&{}", region_name(program, *r)),
        Observation::Register(t, r) => {
            let family = program.families.get(t.family.index());
            let register = match family.and_then(|f| f.registers.get(r.index())) {
                Some(r) => name(&r.name),
                None => r.to_string(),
            };
            write!(f, "{}.{register}", thread(t))
        }
        Observation::At(t, label) => write!(f, "{}@{}", thread(t), name(label)),
        Observation::Index(v) => f.write_str(&variable(v)),
        Observation::Count(of) => write!(f, "count({})", family_name(program, *of)),
    };
    e.display(&leaf).to_string()
}
