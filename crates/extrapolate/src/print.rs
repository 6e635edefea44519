//! The boolean program as text, in the output form of printz-2015 §5.5.
//!
//! `B_i` is the truth of predicate i, `T_i` its value before an assignment. Where the threads are and
//! what their buffers hold is in the labels, so a label stands for a location with a certain buffer.
//! `holder` is the process that holds the lock and `alone` the one inside an atomic block of the
//! program (0 if there is none); they are printed where the program has locks or atomic blocks. Every
//! move is one atomic section; after it the predicates have values that are possible together.

use crate::boolean::{Program, Transfer, Update};
use crate::check::{Checker, Splitting};
use crate::cube::{Bits, Cube};
use crate::sites::{Lock, Site, To};
use std::collections::BTreeSet;
use std::fmt::Write;
use wattle_evidence::Control;
use wattle_logic::{Formula, Symbols, Var, not};
use wattle_model::graph::Action;
use wattle_model::instance::{Fact, Question};
use wattle_model::{Expr, Op1, Op2, ThreadId};
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
    let control_state = ControlState::of(program);
    let list = |letter: char| (0..count).map(move |i| format!("{letter}_{i}"));
    let shared: Vec<String> = list('B').chain(control_state.names()).collect();
    let local: Vec<String> = list('T').collect();
    for (word, names) in [("shared", shared), ("local", local)] {
        let _ = writeln!(out, "{word} {};", names.join(", "));
    }
    out.push_str("\ninit\n");
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
    for name in control_state.names() {
        let _ = writeln!(out, "    store {name} = 0;");
    }
    let enforce = format!("assume(!({}));", either(&program.enforce, 'B'));
    let _ = writeln!(out, "    {enforce}");
    for t in program.system.instance.thread_ids() {
        let _ = writeln!(out, "\nprocess {}\n    {enforce}", t.0 + 1);
        for site in 0..program.graphs[t.index()].sites.len() {
            let moves = moves(program, t, site, control_state, control)?;
            at(program, t, site, &moves, &mut out);
        }
    }
    if let Some(q) = question {
        let mut seen = vec![target(program, &q.target, true, control)?];
        if control_state.blocks {
            seen.push("alone = 0".into());
        }
        if q.only_final {
            seen.extend(program.system.instance.thread_ids().map(|t| {
                let thread = program.system.instance.thread(t);
                let ended = |s: &Site| thread.ended(s.location) && s.pending.slots.is_empty();
                position(program, t, &ended, true)
            }));
        }
        let _ = writeln!(out, "\nassert(always(!({})))", seen.join(" & "));
    }
    Ok(out)
}

/// What the printed program must keep besides labels and predicates.
#[derive(Clone, Copy)]
struct ControlState {
    locks: bool,
    blocks: bool,
}

impl ControlState {
    fn of(program: &Program<'_>) -> Self {
        let threads = || program.system.instance.threads.iter();
        let mut steps = threads().flat_map(|t| &t.steps);
        ControlState {
            locks: steps.any(|s| matches!(s.action, Action::Lock)),
            blocks: threads().any(|t| t.atomic.contains(&true)),
        }
    }

    fn names(self) -> impl Iterator<Item = String> {
        let all = [(self.locks, "holder"), (self.blocks, "alone")];
        let used = all.into_iter().filter(|(used, _)| *used);
        used.map(|(_, name)| name.to_string())
    }
}

/// A move as it is printed.
struct Printed {
    transfer: Transfer,
    /// Conditions on `holder` and `alone`.
    when: Vec<String>,
    /// What becomes of them.
    then: Vec<String>,
}

/// The moves from a site. One that does the same whoever holds the lock is printed once.
fn moves(
    program: &mut Program<'_>,
    t: ThreadId,
    site: usize,
    kept: ControlState,
    control: &Control<'_>,
) -> Result<Vec<Printed>, Halt> {
    let me = t.0 + 1;
    // Who may hold the lock when the move is made, the move, and what becomes of the lock.
    let mut all: Vec<([bool; 3], Transfer, Option<Lock>)> = Vec::new();
    for (n, view) in [Lock::Free, Lock::Mine, Lock::Other]
        .into_iter()
        .enumerate()
    {
        if n > 0 && !kept.locks {
            continue;
        }
        for transfer in program.transfers(t, site, n, control)?.iter() {
            let becomes = match transfer.to {
                To::Site { lock, .. } if lock != view => Some(lock),
                To::Site { .. } | To::Fault | To::Overflow => None,
            };
            let same = |other: &Transfer| {
                let to = match (other.to, transfer.to) {
                    (To::Site { site: a, .. }, To::Site { site: b, .. }) => a == b,
                    (a, b) => a == b,
                };
                to && other.refuted == transfer.refuted && other.updates == transfer.updates
            };
            match all.iter_mut().find(|(_, o, b)| *b == becomes && same(o)) {
                Some((views, ..)) => views[n] = true,
                None => {
                    let mut views = [false; 3];
                    views[n] = true;
                    all.push((views, transfer.clone(), becomes));
                }
            }
        }
    }
    let thread = program.system.instance.thread(t);
    let sites = &program.graphs[t.index()].sites;
    let inside = |site: usize| thread.atomic[sites[site].location.index()];
    let print = |(views, transfer, becomes): ([bool; 3], Transfer, Option<Lock>)| {
        let (mut when, mut then) = (Vec::new(), Vec::new());
        if kept.locks && views != [true; 3] {
            let cases = ["holder = 0".to_string(), format!("holder = {me}")];
            let other = format!("(holder != 0 & holder != {me})");
            let cases = cases.into_iter().chain([other]).zip(views);
            let cases = cases.filter(|(_, view)| *view).map(|(case, _)| case);
            when.push(cases.collect::<Vec<_>>().join(" | "));
        }
        match becomes {
            None | Some(Lock::Other) => {}
            Some(Lock::Free) => then.push("holder = 0".into()),
            Some(Lock::Mine) => then.push(format!("holder = {me}")),
        }
        let after = match transfer.to {
            To::Site { site, .. } => inside(site),
            To::Fault | To::Overflow => false,
        };
        if kept.blocks && !inside(site) {
            when.push("alone = 0".into());
        }
        match (inside(site), after) {
            (false, true) => then.push(format!("alone = {me}")),
            (true, false) => then.push("alone = 0".into()),
            (true, true) | (false, false) => {}
        }
        Printed {
            transfer,
            when,
            then,
        }
    };
    Ok(all.into_iter().map(print).collect())
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

fn at(program: &Program<'_>, t: ThreadId, site: usize, moves: &[Printed], out: &mut String) {
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
    if moves.is_empty() {
        out.push_str("    assume(false);\n");
    }
    let last = moves.len().saturating_sub(1);
    for (m, printed) in moves.iter().enumerate() {
        let transfer = &printed.transfer;
        let _ = writeln!(out, "L{site}_{m}:");
        if m < last {
            let _ = writeln!(out, "    if (*) goto L{site}_{};", m + 1);
        }
        let _ = writeln!(out, "    begin_atomic;");
        for condition in &printed.when {
            let _ = writeln!(out, "    assume({condition});");
        }
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
        for p in transfer.forgotten.iter() {
            let _ = writeln!(out, "    store B_{p} = choose(false, false);");
        }
        for q in &read {
            let _ = writeln!(out, "    T_{q} = 0;");
        }
        for assignment in &printed.then {
            let _ = writeln!(out, "    store {assignment};");
        }
        if !program.enforce.is_empty() {
            let _ = writeln!(out, "    assume(!({}));", either(&program.enforce, 'B'));
        }
        let _ = writeln!(out, "    end_atomic;");
        match transfer.to {
            To::Site { site, .. } => drop(writeln!(out, "    goto L{site};")),
            To::Fault => out.push_str("    abort(\"fault\");\n"),
            To::Overflow => out.push_str("    abort(\"overflow\");\n"),
        }
    }
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
        Expr::Atom(Fact::At(t, places)) => {
            position(program, *t, &|s| places.contains(&s.location), holds)
        }
        e @ (Expr::Const(_)
        | Expr::Atom(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Ite(..)) => {
            let why = || Halt::Other("the property mixes positions and values".into());
            let f: Formula = program.system.hint(e).ok_or_else(why)?;
            let f = if holds { f } else { not(&f) };
            let cubes = program.safe(&f, control)?;
            format!("!({})", either(&cubes, 'B'))
        }
    })
}

/// The process is at one of the sites chosen, or not.
fn position(
    program: &Program<'_>,
    t: ThreadId,
    chosen: &dyn Fn(&Site) -> bool,
    holds: bool,
) -> String {
    let sites = program.graphs[t.index()].sites.iter().enumerate();
    let there = sites.filter(|(_, s)| chosen(s));
    let pcs = there.map(|(n, _)| format!("pc({}) = L{n}", t.0 + 1));
    let any = pcs.collect::<Vec<_>>().join(" | ");
    match (any.is_empty(), holds) {
        (true, _) => (!holds).to_string(),
        (_, true) => format!("({any})"),
        (_, false) => format!("!({any})"),
    }
}
