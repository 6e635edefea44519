//! A program under SC as Promela, the way an author would write it: places are labels, registers are local, an atomic
//! block is one.

use std::fmt::{Formatter, Write};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact, Initial, Instance, Step, Thread};
use wattle_model::{Expr, Formula, LocationId, RegisterId, Type};

/// The text, with the formula as `ltl f`; none if something in the program has no plain counterpart.
pub fn text(instance: &Instance, formula: &Formula<Expr<Fact>>) -> Option<String> {
    let mut out = String::new();
    let value = |i: &Initial| match i {
        Initial::Value(v) => Some(*v),
        Initial::Any => None,
    };
    let types = instance.cells.iter().map(|c| c.ty);
    let all: Option<Vec<i64>> = instance.cells.iter().map(|c| value(&c.init)).collect();
    let name = types.map(type_name).max().unwrap_or((0, "byte")).1;
    // A list has no negative numbers: they are written as the 16 bits they are kept in.
    let listed = |v: &i64| match (*v < 0, name) {
        (false, _) => Some(v.to_string()),
        (true, "short") => Some((v + (1 << 16)).to_string()),
        (true, _) => None,
    };
    let all: Option<Vec<String>> = all?.iter().map(listed).collect();
    let all = all?;
    let list = all.join(", ");
    writeln!(out, "{name} m[{}] = {{ {list} }};", all.len().max(1)).ok()?;
    for (t, thread) in instance.threads.iter().enumerate() {
        writeln!(out, "active proctype p{t}() {{").ok()?;
        for (r, given) in thread.registers.iter().enumerate() {
            let init = value(&given.init)?;
            writeln!(out, "  {} r{r} = {init};", type_name(given.ty).1).ok()?;
        }
        writeln!(out, "  goto L{};", thread.entry.index()).ok()?;
        for l in (0..thread.locations.len()).map(LocationId::new) {
            if !thread.atomic[l.index()] {
                location(&mut out, thread, l)?;
            }
        }
        writeln!(out, "}}").ok()?;
    }
    writeln!(out, "ltl f {{ {} }}", ltl(formula)?).ok()?;
    Some(out)
}

fn type_name(ty: Type) -> (u8, &'static str) {
    match ty.bounds() {
        Some((lo, hi)) if lo >= 0 && hi <= 255 => (0, "byte"),
        Some((lo, hi)) if lo >= -32768 && hi <= 32767 => (1, "short"),
        Some(_) | None => (2, "int"),
    }
}

fn location(out: &mut String, thread: &Thread, l: LocationId) -> Option<()> {
    let steps = thread.outgoing(l);
    if steps.is_empty() {
        return writeln!(out, "L{}: false;", l.index()).ok();
    }
    writeln!(out, "L{}: if", l.index()).ok()?;
    for s in steps {
        let step = thread.step(*s);
        if let Action::AtomicBegin(_) = step.action {
            write!(out, "  :: atomic {{ true; ").ok()?;
            block(out, thread, step.target)?;
            writeln!(out, " }}").ok()?;
        } else {
            let text = statement(step)?;
            writeln!(out, "  :: {text} -> goto L{}", step.target.index()).ok()?;
        }
    }
    writeln!(out, "  fi;").ok()
}

/// What is in an atomic block from a location on, and where it leads.
fn block(out: &mut String, thread: &Thread, l: LocationId) -> Option<()> {
    if !thread.atomic[l.index()] {
        return write!(out, "goto L{}", l.index()).ok();
    }
    match thread.outgoing(l) {
        [s] => {
            let step = thread.step(*s);
            if step.action != Action::AtomicEnd {
                write!(out, "{}; ", statement(step)?).ok()?;
            }
            block(out, thread, step.target)
        }
        steps => {
            write!(out, "if").ok()?;
            for s in steps {
                let step = thread.step(*s);
                write!(out, " :: {} -> ", statement(step)?).ok()?;
                block(out, thread, step.target)?;
            }
            write!(out, " fi").ok()
        }
    }
}

fn statement(step: &Step) -> Option<String> {
    Some(match &step.action {
        Action::Skip | Action::Fence(_) => "true".into(),
        Action::Assign { register, value } => format!("r{} = {}", register.index(), local(value)?),
        Action::Assume(e) => format!("({})", local(e)?),
        Action::Load { register, place } => format!("r{} = {}", register.index(), cell(place)?),
        Action::Store { place, value } => format!("{} = {}", cell(place)?, local(value)?),
        Action::Havoc { .. }
        | Action::Assert { .. }
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => return None,
    })
}

fn cell(place: &Address) -> Option<String> {
    Some(match place {
        Address::Cell(c) => format!("m[{}]", c.index()),
        Address::Computed { base, index, .. } => format!("m[{} + {}]", base.index(), local(index)?),
    })
}

/// Casts and choices are written differently there.
fn plain(text: String) -> Option<String> {
    let foreign = ["?", "u1(", "u2(", "u4(", "u8(", "i8("];
    (!foreign.iter().any(|f| text.contains(f))).then_some(text)
}

fn local(e: &Expr<RegisterId>) -> Option<String> {
    let leaf = |r: &RegisterId, f: &mut Formatter<'_>| write!(f, "r{}", r.index());
    plain(format!("({})", e.display(&leaf)))
}

fn ltl(f: &Formula<Expr<Fact>>) -> Option<String> {
    let two = |f, word, g| Some(format!("({} {word} {})", ltl(f)?, ltl(g)?));
    Some(match f {
        Formula::Now(e) => {
            let leaf = |fact: &Fact, f: &mut Formatter<'_>| match fact {
                Fact::Cell(c) => write!(f, "m[{}]", c.index()),
                Fact::At(t, at) => {
                    let (t, at) = (t.index(), at.iter());
                    let each: Vec<String> = at.map(|l| format!("p{t}@L{}", l.index())).collect();
                    write!(f, "({})", each.join(" || "))
                }
                Fact::Register(..) | Fact::Seen(..) | Fact::CellAt { .. } => f.write_str("?"),
            };
            return plain(format!("({})", e.display(&leaf)));
        }
        Formula::Not(f) => format!("(!{})", ltl(f)?),
        Formula::And(f, g) => return two(f, "&&", g),
        Formula::Or(f, g) => return two(f, "||", g),
        Formula::Implies(f, g) => return two(f, "->", g),
        Formula::Globally(f) => format!("([] {})", ltl(f)?),
        Formula::Finally(f) => format!("(<> {})", ltl(f)?),
        Formula::Until(f, g) => return two(f, "U", g),
        Formula::Release(f, g) => return two(f, "V", g),
        Formula::WeakUntil(f, g) => return two(f, "W", g),
    })
}
