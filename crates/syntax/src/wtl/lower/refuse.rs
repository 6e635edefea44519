//! Why a program is refused, in words. Nothing here has a say in what an accepted program means: it only makes messages.

use super::super::ast::{Ex, ExKind, File, Label, Name, TypeEx};
use super::expressions::Meaning;
use super::names::Names;
use super::statements::Key;
use crate::Diagnostic;
use crate::diagnostics::nearest;
use crate::wtl::Collector;
use std::collections::{HashMap, HashSet};
use wattle_model::{Condition, Count, Expr, Family, Local, RegisterId, Span, Temporal};

/// Longer lists of labels are cut.
const MOST_LISTED: usize = 8;

fn error(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(span, message)
}

/// The names that are left out where nobody would read the hint.
fn did_you_mean<'a>(
    d: Diagnostic,
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    report: &Collector,
) -> Diagnostic {
    if report.full() {
        return d;
    }
    let mut names: Vec<&str> = names.into_iter().collect();
    // Ties must not depend on the order of a hash table.
    names.sort_unstable();
    match nearest(given, names) {
        Some(n) => d.hint(format!("did you mean `{n}`?")),
        None => d,
    }
}

fn keys<V>(map: &std::collections::HashMap<String, V>) -> impl Iterator<Item = &str> + use<'_, V> {
    map.keys().map(String::as_str)
}

pub(super) fn lost() -> Diagnostic {
    error(Span::NONE, "a part of the program was lost")
        .hint("this is a bug in Wattle; please report it with the file")
}

pub(super) fn too_large() -> Diagnostic {
    let message = "the program is too large once its loops are unrolled and constants put in";
    error(Span::NONE, message).hint("use `while` with a register instead of `for`")
}

/// The later one of two declarations of a name is the wrong one.
pub(super) fn declared_twice(file: &File, report: &mut Collector) {
    let lets = file.lets.iter().map(|l| &l.name);
    let threads = file.threads.iter().map(|t| &t.name);
    let shared = file.shared.iter().map(|d| &d.name);
    let mut all: Vec<&Name> = lets.chain(threads).chain(shared).collect();
    all.sort_by_key(|n| n.span.start);
    let mut seen: HashSet<&str> = HashSet::new();
    for name in all {
        if !seen.insert(&name.text) {
            let text = &name.text;
            let mut d = error(name.span, format!("`{text}` is declared twice"));
            if file.threads.iter().filter(|t| t.name.text == *text).count() > 1 {
                d = d.hint(format!(
                    "threads that do the same are one family: `thread {text}[2] {{ … }}`"
                ));
            }
            report.push(d);
        }
    }
}

pub(super) fn no_count(span: Span) -> Diagnostic {
    error(span, "this is no number of threads").expected("1 or more, or `*` for any number")
}

pub(super) fn no_length(span: Span) -> Diagnostic {
    error(span, "this is no length of an array").expected("1 to 4294967295")
}

pub(super) fn one_family(span: Span, families: usize) -> Diagnostic {
    let message = format!("`[thread]` needs exactly one family of threads; there are {families}");
    error(span, message).hint("put the name of the family in the brackets")
}

pub(super) fn empty_range((lo, hi): (&Ex, &Ex), (low, high): (i64, i64)) -> Diagnostic {
    let span = lo.span.to(hi.span);
    error(span, format!("the range {low}..{high} is empty"))
        .hint("both ends belong to a range, the smaller one first")
}

/// What is said of compiled code where there is none, or not as it has to be.
pub(super) fn objects(file: &File, report: &mut Collector) {
    for d in &file.shared {
        if !matches!(d.ty, TypeEx::Object(_) | TypeEx::Struct(_)) {
            continue;
        }
        if file.objects.is_empty() {
            let d = error(d.name.span, "objects are for compiled code");
            report.push(d.hint("name the file first: `object \"lock.o\";`"));
        }
        if matches!(d.init, super::super::ast::InitEx::Any) {
            let d = error(d.name.span, "the first bytes of an object are given");
            report.push(d.hint("write them as a list: `= {1, 0, 0, 0}`; bytes left out are 0"));
        }
    }
}

pub(super) fn no_size(span: Span) -> Diagnostic {
    error(span, "this is no size of an object").expected("1 to 1048576 bytes")
}

pub(super) fn no_family(names: &Names, name: &Name, report: &Collector) -> Diagnostic {
    let message = format!("there is no family of threads called `{}`", name.text);
    did_you_mean(
        error(name.span, message),
        &name.text,
        keys(&names.families),
        report,
    )
}

pub(super) fn not_constant(names: &Names, name: &Name, report: &Collector) -> Diagnostic {
    let text = &name.text;
    if names.regions.contains_key(text) {
        let message = format!("`{text}` is shared memory; a constant is needed here");
        let hint = "what is read is kept in a register: `local r;` at the top, then `r = x;`";
        return error(name.span, message).hint(hint);
    }
    if names.families.contains_key(text) {
        let message = format!("`{text}` is a family of threads; a constant is needed here");
        let hint = format!("the number of its threads is `count({text})`");
        return error(name.span, message).hint(hint);
    }
    let d = error(name.span, format!("unknown constant `{text}`"));
    let d = did_you_mean(d, text, keys(&names.constants), report);
    match d.hint {
        Some(_) => d,
        None => d.hint("constants are declared with `let`"),
    }
}

/// A register is mentioned in what should be a constant.
pub(super) fn register_as_constant(
    e: &Ex,
    registers: &HashMap<String, RegisterId>,
) -> Option<Diagnostic> {
    let name = match &e.kind {
        ExKind::Name(name, _) if registers.contains_key(&name.text) => name,
        ExKind::Unary(..) | ExKind::Binary(..) | ExKind::Ite(..) => {
            let mut parts = e.parts().into_iter();
            return parts.find_map(|e| register_as_constant(e, registers));
        }
        _ => return None,
    };
    let message = format!("`{}` is a register; a constant is needed here", name.text);
    Some(error(name.span, message).hint("declare a register with `local` and assign it"))
}

pub(super) fn reads(e: &Ex) -> Diagnostic {
    error(
        e.span,
        "this must be a constant, but it reads memory or a thread",
    )
}

pub(super) fn not_known(e: &Ex) -> Diagnostic {
    error(
        e.span,
        "this must be a number that is known before the program runs",
    )
}

/// Constants are put in wherever they are used: large ones would multiply.
const MAX_CONSTANT: usize = 64;

pub(super) fn too_many_operands(e: &Expr<Local>, span: Span) -> Option<Diagnostic> {
    let message = format!("this constant has more than {MAX_CONSTANT} operands once put in");
    (nodes(e) > MAX_CONSTANT).then(|| error(span, message))
}

fn nodes(e: &Expr<Local>) -> usize {
    match e {
        Expr::Const(_) | Expr::Atom(_) => 1,
        Expr::Unary(_, a) => 1 + nodes(a),
        Expr::Binary(_, a, b) => 1 + nodes(a) + nodes(b),
        Expr::Ite(c, a, b) => 1 + nodes(c) + nodes(a) + nodes(b),
    }
}

pub(super) fn no_address(name: &Name) -> Diagnostic {
    error(name.span, format!("`{}` is not shared memory", name.text))
        .expected("a shared name after `&`")
}

/// An element of what has none, or none of what has some.
pub(super) fn element(span: Span, name: &Name, array: bool) -> Diagnostic {
    let text = &name.text;
    match array {
        true => error(span, format!("`{text}` is an array; which element?"))
            .hint(format!("write `{text}[0]`")),
        false => error(span, format!("`{text}` is not an array")),
    }
}

pub(super) fn register_element(span: Span, name: &Name) -> Diagnostic {
    let message = format!(
        "`{}` is a register; only shared memory has arrays",
        name.text
    );
    error(span, message)
}

pub(super) fn not_shared(span: Span, name: &Name) -> Diagnostic {
    error(span, format!("`{}` is not shared memory", name.text))
}

pub(super) fn no_place(e: &Ex) -> Diagnostic {
    error(e.span, "this is not a place in memory")
        .expected("a shared name, an element of a shared array, or `*(address)`")
}

/// A name in a thread, with those of its registers and constants.
pub(super) fn unknown<'a>(
    names: &'a Names,
    name: &Name,
    own: impl Iterator<Item = &'a str>,
    report: &Collector,
) -> Diagnostic {
    let text = &name.text;
    if names.families.contains_key(text) {
        return error(name.span, format!("`{text}` is a family of threads"))
            .hint("a thread cannot look into another; share memory instead");
    }
    let d = error(name.span, format!("unknown name `{text}`"))
        .expected("a shared name, a register or a constant");
    // Between names of one letter nothing is near.
    let far = text.chars().count() <= 1;
    let d = did_you_mean(d, text, known(names).chain(own).filter(|_| !far), report);
    match d.hint.is_some() || report.full() {
        true => d,
        false => d.hint(format!(
            "declare it: `shared {text};` is memory, `local {text};` in the thread a register"
        )),
    }
}

fn known(names: &Names) -> impl Iterator<Item = &str> {
    keys(&names.regions).chain(keys(&names.constants))
}

pub(super) fn looks_into(e: &Ex, name: &Name) -> Diagnostic {
    error(e.span, format!("a thread cannot look into `{}`", name.text))
        .hint("only properties can; share memory instead")
}

pub(super) fn register_array(name: &Name) -> Diagnostic {
    error(name.span, "registers are no arrays").hint("use a shared array, or several registers")
}

/// `counter`: of a `for`.
/// The name means something already.
pub(super) fn shadows(name: &Name, meaning: &Meaning, counter: bool) -> Option<Diagnostic> {
    let what = match meaning {
        Meaning::Unknown => return None,
        Meaning::Constant(_) => "a constant",
        Meaning::Register(_) => "a register",
        Meaning::Region(..) => "shared memory",
    };
    let message = format!("`{}` is already the name of {what}", name.text);
    Some(error(name.span, message).hint(match counter {
        true => "a `for` declares its counter: leave it out of `local`, or choose another name",
        false => "choose another name: nothing is shadowed",
    }))
}

fn label(label: &Label) -> (String, Span) {
    match label {
        Label::Named(n) => (n.text.clone(), n.span),
        Label::Numbered(n, at) => (n.to_string(), *at),
    }
}

pub(super) fn label_twice(of: &Label) -> Diagnostic {
    let (name, at) = label(of);
    error(at, format!("the label {name} appears twice"))
}

pub(super) fn label_ambiguous(of: &Label) -> Diagnostic {
    let (name, at) = label(of);
    error(at, format!("several places are called `{name}`"))
}

pub(super) fn no_label<'a>(
    of: &Label,
    known: impl Iterator<Item = &'a Key>,
    report: &Collector,
) -> Diagnostic {
    let (name, at) = label(of);
    let known = known.filter_map(|k| match k {
        Key::Named(n) => Some(&n[..]),
        Key::Numbered(_) => None,
    });
    let d = error(at, format!("there is no label `{name}` to go to"));
    let d = did_you_mean(d, &name, known, report);
    match d.hint.is_some() || report.full() {
        true => d,
        false => d.hint("labels of other threads and inside `for` cannot be reached"),
    }
}

pub(super) fn outside_loop(span: Span, breaks: bool) -> Diagnostic {
    let word = if breaks { "break" } else { "continue" };
    error(span, format!("`{word}` outside of a loop"))
}

pub(super) fn constant_assigned(span: Span, name: &Name) -> Diagnostic {
    error(span, format!("`{}` is a constant", name.text))
        .hint("declare it with `local` to assign it")
}

/// Whether, and why, this cannot be a call.
pub(super) fn call(
    linked: bool,
    inside: bool,
    function: &Name,
    arguments: usize,
    span: Span,
) -> Option<Diagnostic> {
    if !linked {
        let d = error(function.span, "there is no compiled code to call");
        return Some(d.hint("name the file first: `object \"lock.o\";`"));
    }
    if inside {
        let message = "compiled code cannot be called in an atomic block";
        return Some(error(span, message));
    }
    (arguments > 6).then(|| error(span, "a call has at most 6 arguments"))
}

pub(super) fn result_register(span: Span) -> Diagnostic {
    error(span, "the result of a call goes into a register").hint("declare one with `local`")
}

/// A property that speaks of more threads than there are says nothing.
pub(super) fn too_few_threads(
    condition: &Condition,
    counts: &[Count],
    families: &[Family],
    span: Span,
    report: &mut Collector,
) {
    for (i, f) in families.iter().enumerate() {
        let indices = condition.indices.iter();
        let wanted = indices.filter(|v| v.family.index() == i).count();
        if let Some(Count::Fixed(n)) = counts.get(i)
            && (*n as usize) < wanted
        {
            let name = &f.name;
            let message = format!(
                "this says nothing: it needs {wanted} different threads of `{name}`, which has {n}"
            );
            report.push(Diagnostic::warning(span, message));
        }
    }
}

pub(super) fn index_twice(index: &Name) -> Diagnostic {
    error(
        index.span,
        format!("the index `{}` appears twice", index.text),
    )
}

/// The name of an index that memory has.
pub(super) fn index_name(names: &Names, name: &Name, report: &mut Collector) {
    if names.regions.contains_key(&name.text) {
        let message = format!("`{}` is shared memory, not a thread's index", name.text);
        let hint = "choose another name for the index, or write the number";
        report.push(error(name.span, message).hint(hint));
    }
}

pub(super) fn outside_thread(e: &Ex) -> Diagnostic {
    error(e.span, "`self` means nothing outside of a thread")
        .hint("name the thread: `p[i].r`, with `i` for any thread of `p`")
}

pub(super) fn speaks_of_runs(e: &Ex) -> Diagnostic {
    let message = "this speaks of a run, and one state is looked at here";
    let hint = "`G`, `F`, `U`, `R` and `W` may stand under `!`, `&&`, `||` and `->` only";
    error(e.span, message).hint(hint)
}

pub(super) fn sees_in_the_long_run(t: &Temporal, report: &mut Collector) {
    let mut sees = false;
    t.for_each_condition(&mut |e| sees |= e.sees_buffers());
    if sees {
        let message = "what a thread sees of its pending stores is asked of one state";
        let hint = "`never` and `always` can ask it; here name the variable alone";
        report.push(error(t.span, message).hint(hint));
    }
}

pub(super) fn sees_which(e: &Ex) -> Diagnostic {
    let message = "what a thread sees is asked of one element";
    error(e.span, message).hint("its index is a number or an index variable")
}

pub(super) fn changes_memory(e: &Ex) -> Diagnostic {
    error(e.span, "a property only looks; it cannot change memory")
}

/// A name in a property.
pub(super) fn unknown_outside(
    names: &Names,
    name: &Name,
    families: &[Family],
    report: &Collector,
) -> Diagnostic {
    let text = &name.text;
    let d = error(name.span, format!("unknown name `{text}`"))
        .expected("a shared name, `thread.register` or `thread@label`");
    let owner = families
        .iter()
        .find(|f| f.registers.iter().any(|r| r.name == *text));
    if let Some(f) = owner {
        let dot = if f.count == Count::One { "" } else { "[i]" };
        return d.hint(format!("`{text}` is a register: `{}{dot}.{text}`", f.name));
    }
    if names.families.contains_key(text) {
        return d.hint(format!(
            "say what of it: `{text}@label` or `{text}.register`"
        ));
    }
    let labelled = |f: &&Family| f.locations.iter().any(|l| l.labels.contains(text));
    if let Some(f) = families.iter().find(labelled) {
        let index = if f.count == Count::One { "" } else { "[i]" };
        return d.hint(format!("`{text}` is a label: `{}{index}@{text}`", f.name));
    }
    if text.len() == 1 && families.iter().any(|f| f.count != Count::One) {
        return d.hint(format!(
            "an index variable stands in the brackets of a family as well, or is announced: `for p[{text}]: …`"
        ));
    }
    did_you_mean(d, text, known(names), report)
}

pub(super) fn which_thread(span: Span, family: &Name) -> Diagnostic {
    let text = &family.text;
    error(span, format!("`{text}` has several threads; which one?"))
        .hint(format!("`{text}[0]` is the first, `{text}[i]` any of them"))
}

pub(super) fn no_thread(span: Span) -> Diagnostic {
    error(span, "no thread has this number")
}

pub(super) fn no_register(f: &Family, name: &Name, report: &Collector) -> Diagnostic {
    let message = format!("`{}` has no register `{}`", f.name, name.text);
    let names = f.registers.iter().map(|r| &r.name[..]);
    did_you_mean(error(name.span, message), &name.text, names, report)
}

/// A label inside an atomic block is a place where no property sees a thread.
pub(super) fn label_unseen(f: &Family, name: &Name, report: &mut Collector) {
    let inside = inside_blocks(f);
    let here = (f.locations.iter().zip(&inside)).filter(|(l, _)| l.labels.contains(&name.text));
    let seen: Vec<bool> = here.filter_map(|(_, inside)| *inside).collect();
    if !seen.is_empty() && seen.iter().all(|inside| *inside) {
        let (family, label) = (&f.name, &name.text);
        let message = format!(
            "`{family}` is at `{label}` inside an atomic block only, where properties do not look"
        );
        let hint = "put the label behind the block, or an `assert` into it";
        report.push(Diagnostic::warning(name.span, message).hint(hint));
    }
}

/// Of each location that a thread can get to, whether it is inside an atomic block.
fn inside_blocks(f: &Family) -> Vec<Option<bool>> {
    let mut sections = vec![None; f.locations.len()];
    let mut next: HashMap<_, Vec<_>> = HashMap::new();
    for s in &f.steps {
        next.entry(s.source).or_default().push(s);
    }
    let mut work = vec![(f.entry, None)];
    while let Some((at, section)) = work.pop() {
        if sections[at.index()].is_none() {
            sections[at.index()] = Some(section);
            let steps = next.get(&at).into_iter().flatten();
            work.extend(steps.map(|s| (s.target, s.action.section_after(section))));
        }
    }
    let inside = sections.into_iter().map(|s| s.map(|s| s.is_some()));
    inside.collect()
}

pub(super) fn label_missing(f: &Family, name: &Name, report: &Collector) -> Diagnostic {
    let labels = || f.locations.iter().flat_map(|l| &l.labels);
    let d = error(
        name.span,
        format!("`{}` has no label `{}`", f.name, name.text),
    );
    let d = did_you_mean(d, &name.text, labels().map(String::as_str), report);
    if d.hint.is_some() || report.full() {
        return d;
    }
    let mut known: Vec<String> = labels().map(|l| format!("`{l}`")).collect();
    known.sort();
    match known.len() {
        0 => d.hint("a label stands before a statement: `critical: skip;`"),
        1..=MOST_LISTED => d.hint(format!("it has {}", known.join(", "))),
        n => {
            let first = known[..MOST_LISTED].join(", ");
            d.hint(format!("it has {first} and {} more", n - MOST_LISTED))
        }
    }
}

pub(super) fn not_linear(c: Option<&Condition>, span: Span, report: &mut Collector) {
    if c.is_some_and(|c| !c.expr.is_linear()) {
        report.push(crate::diagnostics::not_linear(span));
    }
}
