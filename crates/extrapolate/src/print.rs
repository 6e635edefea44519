//! The boolean program as text, in the output form of printz-2015 §5.5.
//!
//! `B_i` is the truth of predicate i, `T_i` its value before an assignment. Where the threads are and
//! what their buffers hold is in the labels, so a label stands for a location with a certain buffer.
//! Every move is one atomic section, and all moves of an atomic block of the program together are one; after a
//! move the predicates have values that are possible together. A region between `lock` and `unlock` is
//! not one section: others compute and fill their buffers meanwhile. `H_i` is whether process i holds
//! the lock, where the program has locks.
//!
//! A predicate about a register or a pending store that a thread does not have says nothing. Its
//! variable is false then, and `U_p_i` tells that it is process i that makes predicate p say nothing.
//! No condition rests on such a variable: its cubes want `!U_p_i` too. So programs have no more states than
//! what is known makes them have.

use crate::boolean::{Program, Transfer, Update};
use crate::check::{Checker, Splitting};
use crate::cube::{Bits, Cube};
use crate::sites::{Lock, Site, To};
use std::collections::BTreeSet;
use std::fmt::Write;
use wattle_evidence::Control;
use wattle_logic::{Formula, Symbols, Var, and, not};
use wattle_model::graph::Action;
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
    let locks = locks(program);
    let mute = Mute::of(program);
    let list = |letter: char| (0..count).map(move |i| format!("{letter}_{i}"));
    let mut shared: Vec<String> = list('B').chain(locks.iter().cloned()).collect();
    shared.extend(mute.all());
    let local: Vec<String> = list('T').collect();
    for (word, names) in [("shared", shared), ("local", local)] {
        let _ = writeln!(out, "{word} {};", names.join(", "));
    }
    out.push_str("\ninit\n");
    let start = Checker::new(program, Splitting::Assumptions).initial(control);
    // What is not pending has no value.
    let dead = program.dead.iter().map(|sites| sites[0]);
    let dead = dead.fold(Bits::default(), Bits::or);
    for i in 0..count {
        let value = match start.get(i) {
            _ if dead.get(i) => "0".into(),
            Some(v) => i32::from(v).to_string(),
            None => "*".into(),
        };
        let _ = writeln!(out, "    store B_{i} = {value};");
    }
    for name in &locks {
        let _ = writeln!(out, "    store {name} = 0;");
    }
    for (t, p) in mute.pairs() {
        let value = i32::from(program.dead[t.index()][0].get(p));
        let _ = writeln!(out, "    store {} = {value};", Mute::name(t, p));
    }
    let enforce = format!("assume(!({}));", mute.either(&program.enforce, 'B', None));
    let _ = writeln!(out, "    {enforce}");
    for t in program.system.instance.thread_ids() {
        let _ = writeln!(out, "\nprocess {}\n    {enforce}", t.0 + 1);
        for site in 0..program.graphs[t.index()].sites.len() {
            let moves = moves(program, t, site, &locks, control)?;
            at(program, &mute, (t, site), &moves, &mut out);
        }
    }
    if let Some(q) = question {
        let mut seen = vec![target(program, &mute, &q.target, control)?];
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

/// Who holds the lock, by process, if the program has locks.
fn locks(program: &Program<'_>) -> Vec<String> {
    let instance = program.system.instance;
    let mut steps = instance.threads.iter().flat_map(|t| &t.steps);
    match steps.any(|s| matches!(s.action, Action::Lock)) {
        true => instance
            .thread_ids()
            .map(|t| format!("H_{}", t.0 + 1))
            .collect(),
        false => Vec::new(),
    }
}

/// A move as it is printed.
struct Printed {
    transfer: Transfer,
    /// A condition on who holds the lock.
    when: Option<String>,
    /// What becomes of that.
    then: Option<String>,
    /// Whether it begins and ends outside of every atomic block.
    outside: (bool, bool),
}

/// The moves from a site. One that does the same whoever holds the lock is printed once.
fn moves(
    program: &mut Program<'_>,
    t: ThreadId,
    site: usize,
    locks: &[String],
    control: &Control<'_>,
) -> Result<Vec<Printed>, Halt> {
    // Who may hold the lock when the move is made, the move, and what becomes of the lock.
    let mut all: Vec<([bool; 3], Transfer, Option<Lock>)> = Vec::new();
    for (n, view) in [Lock::Free, Lock::Mine, Lock::Other]
        .into_iter()
        .enumerate()
    {
        if n > 0 && locks.is_empty() {
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
        let when = (!locks.is_empty() && views != [true; 3]).then(|| {
            let mine = &locks[t.index()];
            let none = locks.iter().map(|h| format!("!{h}"));
            let others = locks.iter().filter(|h| *h != mine).cloned();
            let cases = [
                none.collect::<Vec<_>>().join(" & "),
                mine.clone(),
                others.collect::<Vec<_>>().join(" | "),
            ];
            let cases = cases.into_iter().zip(views);
            let cases = cases.filter(|(case, view)| *view && !case.is_empty());
            cases.map(|(case, _)| case).collect::<Vec<_>>().join(" | ")
        });
        let then = match becomes {
            None | Some(Lock::Other) => None,
            Some(Lock::Free) => Some(format!("{} = 0", locks[t.index()])),
            Some(Lock::Mine) => Some(format!("{} = 1", locks[t.index()])),
        };
        let after = match transfer.to {
            To::Site { site, .. } => inside(site),
            To::Fault | To::Overflow => false,
        };
        Printed {
            transfer,
            when,
            then,
            outside: (!inside(site), !after),
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

/// The predicates that a thread can make say nothing, by thread.
struct Mute(Vec<Bits>);

impl Mute {
    fn of(program: &Program<'_>) -> Self {
        let ever = |sites: &Vec<Bits>| sites.iter().copied().fold(Bits::default(), Bits::or);
        Mute(program.dead.iter().map(ever).collect())
    }

    fn name(t: ThreadId, p: usize) -> String {
        format!("U_{p}_{}", t.0 + 1)
    }

    fn pairs(&self) -> impl Iterator<Item = (ThreadId, usize)> {
        let threads = self.0.iter().enumerate();
        threads.flat_map(|(t, all)| all.iter().map(move |p| (ThreadId::new(t), p)))
    }

    fn all(&self) -> impl Iterator<Item = String> {
        self.pairs().map(|(t, p)| Mute::name(t, p))
    }

    /// Who can make the predicate say nothing, besides the thread.
    fn others(&self, p: usize, but: Option<ThreadId>) -> impl Iterator<Item = String> {
        let pairs = self.pairs();
        let pairs = pairs.filter(move |(t, q)| *q == p && Some(*t) != but);
        pairs.map(|(t, p)| Mute::name(t, p))
    }

    /// A cube over the variables with this letter. All that it speaks of says something; of the thread's own
    /// that is known.
    fn shown(&self, cube: &Cube, letter: char, but: Option<ThreadId>) -> String {
        if cube.is_empty() {
            return "true".into();
        }
        let literals = cube.literals().map(|(p, v)| match v {
            true => format!("{letter}_{p}"),
            false => format!("!{letter}_{p}"),
        });
        let say = cube.literals().flat_map(|(p, _)| self.others(p, but));
        let say = say.map(|u| format!("!{u}"));
        literals.chain(say).collect::<Vec<_>>().join(" & ")
    }

    fn either(&self, cubes: &[Cube], letter: char, but: Option<ThreadId>) -> String {
        if cubes.is_empty() {
            return "false".into();
        }
        let all = cubes.iter().map(|c| self.shown(c, letter, but));
        all.collect::<Vec<_>>().join(" | ")
    }

    /// The value a predicate gets by a move of the thread: false if another one makes it say nothing.
    fn value(&self, t: ThreadId, p: usize, update: &Update) -> String {
        let (mut yes, mut no) = match update {
            Update::Known(v) if self.others(p, Some(t)).next().is_none() || !v => {
                return i32::from(*v).to_string();
            }
            Update::Known(_) => ("true".to_string(), "false".to_string()),
            Update::Copy(q, sign) => {
                let is = |v: bool| self.shown(&Cube::default().with(*q, v), 'T', Some(t));
                (is(*sign), is(!sign))
            }
            Update::Choose { yes, no } => {
                let one = |cubes: &[Cube]| self.either(cubes, 'T', Some(t));
                (one(yes), one(no))
            }
        };
        let mute: Vec<String> = self.others(p, Some(t)).collect();
        if !mute.is_empty() {
            let says: Vec<String> = mute.iter().map(|u| format!("!{u}")).collect();
            yes = match yes.as_str() {
                "true" => says.join(" & "),
                "false" => yes,
                _ => format!("({yes}) & {}", says.join(" & ")),
            };
            no = match no.as_str() {
                "false" => mute.join(" | "),
                _ => format!("{no} | {}", mute.join(" | ")),
            };
        }
        format!("choose({yes}, {no})")
    }
}

impl Update {
    /// The update by cubes that speak of something; the others are of no use.
    fn by(&self, speaks: &dyn Fn(&Cube) -> bool) -> Update {
        let some = |cubes: &[Cube]| cubes.iter().filter(|c| speaks(c)).copied().collect();
        match self {
            Update::Copy(q, _) if !speaks(&Cube::default().with(*q, true)) => Update::Choose {
                yes: Vec::new(),
                no: Vec::new(),
            },
            Update::Known(_) | Update::Copy(..) => self.clone(),
            Update::Choose { yes, no } => Update::Choose {
                yes: some(yes),
                no: some(no),
            },
        }
    }
}

fn at(
    program: &Program<'_>,
    mute: &Mute,
    (t, site): (ThreadId, usize),
    moves: &[Printed],
    out: &mut String,
) {
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
    let before = program.dead[t.index()][site];
    let speaks = |c: &Cube| c.known.and(before).is_empty();
    for (m, printed) in moves.iter().enumerate() {
        let transfer = &printed.transfer;
        let _ = writeln!(out, "L{site}_{m}:");
        if m < last {
            let _ = writeln!(out, "    if (*) goto L{site}_{};", m + 1);
        }
        if printed.outside.0 {
            out.push_str("    begin_atomic;\n");
        }
        if let Some(condition) = &printed.when {
            let _ = writeln!(out, "    assume({condition});");
        }
        if !transfer.refuted.is_empty() {
            let refuted = transfer.refuted.iter().filter(|c| speaks(c)).copied();
            let refuted = mute.either(&refuted.collect::<Vec<_>>(), 'B', Some(t));
            let _ = writeln!(out, "    assume(!({refuted}));");
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
        let after = match transfer.to {
            To::Site { site, .. } => program.dead[t.index()][site],
            To::Fault | To::Overflow => before,
        };
        for p in after.without(before).iter() {
            let _ = writeln!(out, "    store B_{p} = 0;");
            let _ = writeln!(out, "    store {} = 1;", Mute::name(t, p));
        }
        for p in before.without(after).iter() {
            let _ = writeln!(out, "    store {} = 0;", Mute::name(t, p));
        }
        // What is impossible is told as soon as all that it speaks of has its value.
        let mut waits: Bits = transfer.updates.iter().map(|(p, _)| *p).collect();
        for (p, update) in &transfer.updates {
            let _ = writeln!(
                out,
                "    store B_{p} = {};",
                mute.value(t, *p, &update.by(&speaks))
            );
            waits.set(*p, false);
            let told = |c: &&Cube| {
                let known = c.known;
                known.get(*p) && known.and(waits).is_empty() && known.and(after).is_empty()
            };
            let told: Vec<Cube> = program.enforce.iter().filter(told).copied().collect();
            if !told.is_empty() {
                let told = mute.either(&told, 'B', Some(t));
                let _ = writeln!(out, "    assume(!({told}));");
            }
        }
        for q in &read {
            let _ = writeln!(out, "    T_{q} = 0;");
        }
        if let Some(assignment) = &printed.then {
            let _ = writeln!(out, "    store {assignment};");
        }
        if printed.outside.1 {
            out.push_str("    end_atomic;\n");
        }
        match transfer.to {
            To::Site { site, .. } => drop(writeln!(out, "    goto L{site};")),
            To::Fault => out.push_str("    abort(\"fault\");\n"),
            To::Overflow => out.push_str("    abort(\"overflow\");\n"),
        }
    }
}

/// When the target may be seen: positions exactly, and for each case of them all that is said of data, as
/// a whole, by what the predicates cannot exclude.
fn target(
    program: &mut Program<'_>,
    mute: &Mute,
    e: &Expr<Fact>,
    control: &Control<'_>,
) -> Result<String, Halt> {
    let mut shown = Vec::new();
    for case in cases(program, e, true)? {
        let at = case.positions.iter();
        let at = at.map(|(t, places, there)| {
            position(program, *t, &|s| places.contains(&s.location), *there)
        });
        let mut all: Vec<String> = at.collect();
        if !case.data.is_empty() {
            let cubes = program.safe(&and(case.data), control)?;
            all.push(format!("!({})", mute.either(&cubes, 'B', None)));
        }
        shown.push(match all.is_empty() {
            true => "true".into(),
            false => all.join(" & "),
        });
    }
    Ok(match shown.is_empty() {
        true => "false".into(),
        false => format!("({})", shown.join(" | ")),
    })
}

/// One of the ways in which a target can be seen.
#[derive(Clone, Default)]
struct Case {
    positions: Vec<(ThreadId, Vec<LocationId>, bool)>,
    data: Vec<Formula>,
}

/// More are not written down.
const MOST_CASES: usize = 256;

fn cases(program: &Program<'_>, e: &Expr<Fact>, holds: bool) -> Result<Vec<Case>, Halt> {
    let mut positions = false;
    e.for_each_atom(&mut |fact| positions |= matches!(fact, Fact::At(..)));
    if !positions {
        let why = || Halt::Other("the property is not linear".into());
        let f: Formula = program.system.hint(e).ok_or_else(why)?;
        let data = vec![if holds { f } else { not(&f) }];
        return Ok(vec![Case {
            data,
            ..Case::default()
        }]);
    }
    let found = match e {
        Expr::Unary(Op1::Not, a) => cases(program, a, !holds)?,
        Expr::Binary(op @ (Op2::And | Op2::Or), a, b) => {
            let (a, b) = (cases(program, a, holds)?, cases(program, b, holds)?);
            match (*op == Op2::And) == holds {
                false => a.into_iter().chain(b).collect(),
                true => {
                    let both = |a: &Case, b: &Case| Case {
                        positions: [&a.positions[..], &b.positions].concat(),
                        data: [&a.data[..], &b.data].concat(),
                    };
                    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| both(a, b)));
                    pairs.take(MOST_CASES + 1).collect()
                }
            }
        }
        Expr::Atom(Fact::At(t, places)) => vec![Case {
            positions: vec![(*t, places.clone(), holds)],
            ..Case::default()
        }],
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
            let why = "the property calculates with positions";
            return Err(Halt::Other(why.into()));
        }
    };
    match found.len() > MOST_CASES {
        true => Err(Halt::Other("the property has too many cases".into())),
        false => Ok(found),
    }
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
