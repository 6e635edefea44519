//! The boolean program as text, in the output form of printz-2015 §5.5.
//!
//! `B_i` is the truth of predicate i, `T_i` its value before an assignment. Where the threads are and
//! what their buffers hold is in the labels, so a label stands for a location with a certain buffer.

use crate::boolean::{Program, Update};
use crate::check::{Checker, Splitting};
use crate::cube::{Bits, Cube};
use crate::sites::To;
use std::collections::BTreeSet;
use std::fmt::Write;
use wattle_evidence::Control;
use wattle_logic::{Formula, Symbols, Var, not};
use wattle_model::instance::{Fact, Question};
use wattle_model::{Expr, LocationId, Op1, Op2, ThreadId};
use wattle_predicates::cegar::abstraction::Halt;
use wattle_predicates::reduce::Symbol;

/// The program, all of its moves abstracted. `question` becomes the assertion.
pub fn program(
    program: &mut Program<'_>,
    question: Option<&Question>,
    control: &Control<'_>,
) -> Result<String, Halt> {
    let mut out = String::new();
    let count = program.vocabulary.len();
    let names = names(program);
    for (i, p) in program.vocabulary.all.iter().enumerate() {
        let _ = writeln!(out, "// B_{i}: {}", p.formula.display(&names));
    }
    let list = |letter: char| {
        let all = (0..count).map(|i| format!("{letter}_{i}"));
        all.collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(out, "shared {};\nlocal {};\n\ninit", list('B'), list('T'));
    let start = Checker::new(program, Splitting::Assumptions).initial(control);
    // What is not pending has no value.
    let dead = program.dead.iter().map(|sites| sites[0]);
    let start = start.forget(dead.fold(Bits::default(), Bits::or));
    for i in 0..count {
        let value = match start.get(i) {
            Some(v) => i32::from(v).to_string(),
            None => "*".into(),
        };
        let _ = writeln!(out, "    store B_{i} = {value};");
    }
    let enforce = format!("assume(!({}));", either(&program.enforce, 'B'));
    let _ = writeln!(out, "    {enforce}");
    for t in program.system.instance.thread_ids() {
        let _ = writeln!(out, "\nprocess {}\n    {enforce}", t.0 + 1);
        for site in 0..program.graphs[t.index()].sites.len() {
            at(program, t, site, &mut out, control)?;
        }
    }
    if let Some(q) = question {
        let bad = target(program, &q.target, true, control)?;
        let _ = writeln!(out, "\nassert(always(!({bad})))");
    }
    Ok(out)
}

fn names(program: &Program<'_>) -> Symbols {
    let vars = program.vocabulary.all.iter().flat_map(|p| &p.vars);
    let most = vars.max().map_or(0, |v| v.0 + 1);
    let instance = program.system.instance;
    let mut names = Symbols::new();
    for v in (0..most).map(Var) {
        names.fresh(&match program.system.symbol(v) {
            Symbol::Register(t, r) => {
                let thread = instance.thread(t);
                format!("{}.{}", thread.name, thread.registers[r.index()].name)
            }
            Symbol::Cell(c) => instance.cell(c).name.clone(),
            Symbol::Choice => "any".into(),
            Symbol::Entry(t, i) => format!("{}.rhs_{}", instance.thread(t).name, i + 1),
        });
    }
    names
}

/// A cube over the variables with this letter.
fn shown(cube: &Cube, letter: char) -> String {
    if cube.is_empty() {
        return "true".into();
    }
    let literals = cube.literals().map(|(p, v)| match v {
        true => format!("{letter}_{p}"),
        false => format!("!{letter}_{p}"),
    });
    literals.collect::<Vec<_>>().join(" & ")
}

fn either(cubes: &[Cube], letter: char) -> String {
    if cubes.is_empty() {
        return "false".into();
    }
    let all = cubes.iter().map(|c| shown(c, letter));
    all.collect::<Vec<_>>().join(" | ")
}

fn at(
    program: &mut Program<'_>,
    t: ThreadId,
    site: usize,
    out: &mut String,
    control: &Control<'_>,
) -> Result<(), Halt> {
    let transfers = program.transfers(t, site, 0, control)?;
    let here = &program.graphs[t.index()].sites[site];
    let instance = program.system.instance;
    let pending = here.pending.slots.iter();
    let pending: Vec<&str> = pending
        .map(|s| instance.cell(s.cell).name.as_str())
        .collect();
    let labels = instance.thread(t).locations[here.location.index()]
        .labels
        .join(", ");
    let _ = writeln!(
        out,
        "L{site}: nop; // {} {labels} [{}]",
        here.location,
        pending.join(" ")
    );
    let last = transfers.len().saturating_sub(1);
    for (m, transfer) in transfers.iter().enumerate() {
        let _ = writeln!(out, "L{site}_{m}:");
        if m < last {
            let _ = writeln!(out, "    if (*) goto L{site}_{};", m + 1);
        }
        let _ = writeln!(out, "    begin_atomic;");
        if !transfer.refuted.is_empty() {
            let _ = writeln!(out, "    assume(!({}));", either(&transfer.refuted, 'B'));
        }
        let mut read = BTreeSet::new();
        for (_, update) in &transfer.updates {
            match update {
                Update::Known(_) => {}
                Update::Copy(q, _) => drop(read.insert(*q)),
                Update::Choose { yes, no } => {
                    let cubes = yes.iter().chain(no);
                    read.extend(cubes.flat_map(|c| c.known.iter()));
                }
            }
        }
        for q in &read {
            let _ = writeln!(out, "    load T_{q} = B_{q};");
        }
        for (p, update) in &transfer.updates {
            let value = match update {
                Update::Known(v) => i32::from(*v).to_string(),
                Update::Copy(q, true) => format!("choose(T_{q}, !T_{q})"),
                Update::Copy(q, false) => format!("choose(!T_{q}, T_{q})"),
                Update::Choose { yes, no } => {
                    format!("choose({}, {})", either(yes, 'T'), either(no, 'T'))
                }
            };
            let _ = writeln!(out, "    store B_{p} = {value};");
        }
        for q in &read {
            let _ = writeln!(out, "    T_{q} = 0;");
        }
        let _ = writeln!(out, "    end_atomic;");
        match transfer.to {
            To::Site { site, .. } => drop(writeln!(out, "    goto L{site};")),
            To::Fault => out.push_str("    abort(\"fault\");\n"),
            To::Overflow => out.push_str("    abort(\"overflow\");\n"),
        }
    }
    Ok(())
}

/// When the target may be seen: positions exactly, data by what the predicates cannot exclude.
fn target(
    program: &mut Program<'_>,
    e: &Expr<Fact>,
    holds: bool,
    control: &Control<'_>,
) -> Result<String, Halt> {
    Ok(match e {
        Expr::Unary(Op1::Not, a) => target(program, a, !holds, control)?,
        Expr::Binary(op @ (Op2::And | Op2::Or), a, b) => {
            let sign = if (*op == Op2::And) == holds { '&' } else { '|' };
            let a = target(program, a, holds, control)?;
            let b = target(program, b, holds, control)?;
            format!("({a} {sign} {b})")
        }
        Expr::Atom(Fact::At(t, places)) => position(program, *t, places, holds),
        e => {
            let why = || Halt::Other("the property mixes positions and values".into());
            let f: Formula = program.system.hint(e).ok_or_else(why)?;
            let f = if holds { f } else { not(&f) };
            let cubes = program.safe(&f, control)?;
            format!("!({})", either(&cubes, 'B'))
        }
    })
}

fn position(program: &Program<'_>, t: ThreadId, places: &[LocationId], holds: bool) -> String {
    let sites = program.graphs[t.index()].sites.iter().enumerate();
    let there = sites.filter(|(_, s)| places.contains(&s.location));
    let pcs = there.map(|(n, _)| format!("pc({}) = L{n}", t.0 + 1));
    let any = pcs.collect::<Vec<_>>().join(" | ");
    match (any.is_empty(), holds) {
        (true, _) => (!holds).to_string(),
        (_, true) => format!("({any})"),
        (_, false) => format!("!({any})"),
    }
}
