//! Formulas as engines take them: predicates put in, connectives and quantifiers taken apart.
//!
//! What a guard may say beyond conjunctions, disjunctions, comparisons and `forall_other` is said in
//! these:
//!
//! - `not`, `=>`, `<=>`, `if`, `true`, `false` by the laws of logic;
//! - *some thread* is a parameter or a thread that is none: one [`Alternative`] for each, the latter
//!   with one parameter more (parameters are different threads, so nothing is counted twice);
//! - *all threads* are the parameters and, by `forall_other`, those that are none; in `init`, whose
//!   parameters stand for all threads already, it is a parameter more;
//! - a cell that holds a thread is ordered by the thread it holds: `X < p` is *some q with X = q and
//!   q < p*. (A cell that holds nobody is in no order.)

use super::tree::{Expr, Factor, FenceWord, Name, Op, Predicate, Quantifier, Term};
use crate::Diagnostic;
use wattle_model::Span;

#[derive(Clone, Debug)]
pub enum Plain {
    And(Vec<Plain>),
    Or(Vec<Plain>),
    Compare(Term, Op, Term, Span),
    ForallOther(Name, Box<Plain>),
    Fence(FenceWord, Option<Name>, Span),
}

/// One of the ways a formula can hold: with these parameters more.
#[derive(Clone, Debug)]
pub struct Alternative {
    pub extra: Vec<Name>,
    pub body: Plain,
}

/// Where a formula stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Parameters stand for all threads.
    Init,
    /// Parameters stand for some different threads.
    Some,
    /// Nothing can be added to what is in scope.
    Condition,
}

/// Larger formulas nobody writes; predicates within predicates can make them.
const MOST_PARTS: usize = 50_000;
/// More ways to hold than these are no way to say it.
const MOST_ALTERNATIVES: usize = 256;
/// No name that is written has it.
const BOUND: char = '·';
/// Predicates within predicates.
const DEEPEST: usize = 32;

pub struct Plainer<'a> {
    pub predicates: &'a [Predicate],
    /// Whether a name is a cell that holds threads.
    pub holds_threads: &'a dyn Fn(&str) -> bool,
    pub place: Place,
    parts: usize,
    /// How many of the names in scope are parameters that were written: `_other` means none of them.
    written: usize,
    /// Variables bound so far.
    bound: usize,
}

/// The formula pushed inwards: no negation, no predicate. Every variable has a name that nobody can
/// write ([`Plainer::bind`]), so that nothing put in is captured.
#[derive(Clone, Debug)]
enum Normal {
    And(Vec<Normal>),
    Or(Vec<Normal>),
    Compare(Term, Op, Term, Span),
    Quantified(Quantifier, Vec<Name>, Box<Normal>),
    Fence(FenceWord, Option<Name>, Span),
}

/// The parameters more, and what is left to be said.
type Way = (Vec<Name>, Normal);
/// What names stand for inside predicates and quantifiers, innermost last.
type Meanings = Vec<(String, Term)>;
type Result<T> = std::result::Result<T, Box<Diagnostic>>;

fn refuse<T>(span: Span, message: &str, hint: &str) -> Result<T> {
    Err(Box::new(Diagnostic::error(span, message).hint(hint)))
}

fn of_name(name: &Name) -> Term {
    Term {
        parts: vec![(
            1,
            Factor::Named {
                reader: None,
                name: name.clone(),
                index: Vec::new(),
            },
        )],
        span: name.span,
    }
}

/// The name, if the term is nothing else.
fn as_name(term: &Term) -> Option<&Name> {
    match &term.parts[..] {
        [
            (
                1,
                Factor::Named {
                    reader: None,
                    name,
                    index,
                },
            ),
        ] if index.is_empty() => Some(name),
        _ => None,
    }
}

impl<'a> Plainer<'a> {
    pub fn new(
        predicates: &'a [Predicate],
        holds_threads: &'a dyn Fn(&str) -> bool,
        place: Place,
    ) -> Self {
        Plainer {
            predicates,
            holds_threads,
            place,
            parts: 0,
            written: 0,
            bound: 0,
        }
    }

    /// The ways in which the formula can hold, with these names in scope.
    pub fn alternatives(&mut self, e: &Expr, scope: &[Name]) -> Result<Vec<Alternative>> {
        let normal = self.normal(e, false, &Vec::new(), 0)?;
        match self.place {
            Place::Init => {
                let mut extra = Vec::new();
                let body = self.for_all(normal, scope, &mut extra)?;
                Ok(vec![Alternative { extra, body }])
            }
            Place::Condition => {
                if let Some(span) = quantified(&normal) {
                    let hint = "split the transition and say it in `requires`";
                    let message = "a case condition cannot speak of all threads or of some thread";
                    return refuse(span, message, hint);
                }
                let (extra, body) = (Vec::new(), self.without_some(normal, scope)?);
                Ok(vec![Alternative { extra, body }])
            }
            Place::Some => {
                self.written = scope.len();
                let ways = self.ways(normal, scope)?.into_iter();
                let ways = ways.map(|(extra, body)| {
                    let body = self.without_some(body, &joined(scope, &extra))?;
                    Ok(Alternative { extra, body })
                });
                ways.collect()
            }
        }
    }

    /// A name of its own for a variable.
    fn bind(&mut self, variable: &Name) -> Name {
        self.bound += 1;
        Name {
            text: format!("{}{BOUND}{}", variable.text, self.bound),
            span: variable.span,
        }
    }

    fn count(&mut self, span: Span) -> Result<()> {
        self.parts += 1;
        match self.parts > MOST_PARTS {
            true => refuse(
                span,
                "with its predicates put in this formula is too large",
                "say less in one formula",
            ),
            false => Ok(()),
        }
    }

    fn normal(
        &mut self,
        e: &Expr,
        negated: bool,
        meanings: &Meanings,
        depth: usize,
    ) -> Result<Normal> {
        let truth = |b: bool| match b {
            true => Normal::And(Vec::new()),
            false => Normal::Or(Vec::new()),
        };
        let mut each = |list: &[&Expr], negations: &[bool]| {
            let parts = list.iter().zip(negations);
            let parts = parts.map(|(e, n)| self.normal(e, *n, meanings, depth));
            parts.collect::<Result<Vec<_>>>()
        };
        Ok(match e {
            Expr::Truth(b) => truth(*b != negated),
            Expr::Not(inner) => each(&[inner], &[!negated])?.remove(0),
            Expr::And(list) | Expr::Or(list) => {
                let all: Vec<&Expr> = list.iter().collect();
                let parts = each(&all, &vec![negated; all.len()])?;
                match matches!(e, Expr::And(_)) != negated {
                    true => Normal::And(parts),
                    false => Normal::Or(parts),
                }
            }
            Expr::Implies(a, b) => {
                let parts = each(&[a, b], &[!negated, negated])?;
                match negated {
                    true => Normal::And(parts),
                    false => Normal::Or(parts),
                }
            }
            Expr::Equivalent(a, b) => Normal::Or(vec![
                Normal::And(each(&[a, b], &[false, negated])?),
                Normal::And(each(&[a, b], &[true, !negated])?),
            ]),
            Expr::If(parts) => {
                let [condition, yes, no] = &**parts;
                Normal::Or(vec![
                    Normal::And(each(&[condition, yes], &[false, negated])?),
                    Normal::And(each(&[condition, no], &[true, negated])?),
                ])
            }
            Expr::Compare(l, op, r, span) => {
                self.count(*span)?;
                let op = if negated { op.negated() } else { *op };
                let (l, r) = (put_in(l, meanings)?, put_in(r, meanings)?);
                self.ordered(l, op, r, *span)
            }
            Expr::Fence(kind, thread, span) => {
                if negated {
                    let hint = "a fence waits; there is no opposite of it";
                    return refuse(*span, "a fence cannot be negated", hint);
                }
                let thread = thread.as_ref().map(|t| renamed(t, meanings)).transpose()?;
                Normal::Fence(*kind, thread, *span)
            }
            Expr::Quantified(quantifier, variables, body) => {
                let mut inner = meanings.clone();
                let mut fresh = Vec::new();
                for (i, v) in variables.iter().enumerate() {
                    if variables[..i].iter().any(|w| w.text == v.text) {
                        let hint = "variables of one quantifier are different threads";
                        return refuse(v.span, "this variable appears twice", hint);
                    }
                    let name = self.bind(v);
                    inner.push((v.text.clone(), of_name(&name)));
                    fresh.push(name);
                }
                let body = self.normal(body, negated, &inner, depth)?;
                let quantifier = Quantifier {
                    all: quantifier.all != negated,
                    ..*quantifier
                };
                Normal::Quantified(quantifier, fresh, Box::new(body))
            }
            Expr::Call(name, given) => self.call(name, given, negated, meanings, depth)?,
        })
    }

    fn call(
        &mut self,
        name: &Name,
        given: &[Term],
        negated: bool,
        meanings: &Meanings,
        depth: usize,
    ) -> Result<Normal> {
        self.count(name.span)?;
        let predicates = self.predicates;
        let Some(predicate) = predicates.iter().find(|p| p.name.text == name.text) else {
            let message = format!("there is no predicate `{}`", name.text);
            return refuse(
                name.span,
                &message,
                "declare it: `predicate name (x, y) { … }`",
            );
        };
        if depth >= DEEPEST {
            let message = format!("predicate `{}` is nested too deeply", name.text);
            return refuse(name.span, &message, "predicates cannot use themselves");
        }
        if predicate.params.len() != given.len() {
            let wanted = predicate.params.len();
            let message = format!(
                "`{}` has {wanted} parameter(s), {} given",
                name.text,
                given.len()
            );
            return refuse(name.span, &message, "give one value for each");
        }
        let params = predicate.params.iter().zip(given);
        let inner = params.map(|(p, t)| Ok((p.text.clone(), put_in(t, meanings)?)));
        let inner: Meanings = inner.collect::<Result<_>>()?;
        self.normal(&predicate.body, negated, &inner, depth + 1)
    }

    /// An order between cells that hold threads is one between threads.
    fn ordered(&mut self, l: Term, op: Op, r: Term, span: Span) -> Normal {
        let cells = self.holds_threads;
        let holds = |t: &Term| match &t.parts[..] {
            [(1, Factor::Named { name, .. })] => cells(&name.text),
            _ => false,
        };
        if !op.orders() || self.place != Place::Some || !(holds(&l) || holds(&r)) {
            return Normal::Compare(l, op, r, span);
        }
        let (mut variables, mut parts) = (Vec::new(), Vec::new());
        let mut bound = |t: Term| {
            if !holds(&t) {
                return t;
            }
            let q = self.bind(&Name {
                text: "q".into(),
                span: t.span,
            });
            let thread = of_name(&q);
            parts.push(Normal::Compare(thread.clone(), Op::Eq, t, span));
            variables.push(q);
            thread
        };
        let (l, r) = (bound(l), bound(r));
        parts.push(Normal::Compare(l, op, r, span));
        let some = Quantifier {
            all: false,
            other: false,
        };
        // Both cells may hold the same thread: one quantifier for each.
        variables
            .into_iter()
            .fold(Normal::And(parts), |body, variable| {
                Normal::Quantified(some, vec![variable], Box::new(body))
            })
    }

    /// In `init`: universal quantifiers become parameters, which stand for all threads, equal ones too.
    fn for_all(&mut self, n: Normal, scope: &[Name], extra: &mut Vec<Name>) -> Result<Plain> {
        Ok(match n {
            Normal::And(list) => Plain::And(self.for_all_of(list, scope, extra)?),
            Normal::Or(list) => Plain::Or(self.for_all_of(list, scope, extra)?),
            Normal::Compare(l, op, r, span) => Plain::Compare(l, op, r, span),
            Normal::Fence(kind, thread, span) => Plain::Fence(kind, thread, span),
            Normal::Quantified(quantifier, variables, body) => {
                let span = variables[0].span;
                if !quantifier.all {
                    let hint = "say of all threads what holds at the start";
                    return refuse(span, "`init` cannot say that there is some thread", hint);
                }
                let mut parts = Vec::new();
                let mut meanings = Vec::new();
                let mut threads: Vec<Name> = match quantifier.other {
                    true => scope.to_vec(),
                    false => Vec::new(),
                };
                for v in &variables {
                    let taken = |text: &str| scope.iter().chain(&*extra).any(|n| n.text == text);
                    let name = called(v, taken);
                    for other in &threads {
                        let same = (of_name(&name), of_name(other));
                        parts.push(Plain::Compare(same.0, Op::Eq, same.1, v.span));
                    }
                    meanings.push((v.text.clone(), of_name(&name)));
                    threads.push(name.clone());
                    extra.push(name);
                }
                let body = rename(*body, &meanings)?;
                parts.push(self.for_all(body, scope, extra)?);
                match parts.len() {
                    1 => parts.remove(0),
                    _ => Plain::Or(parts),
                }
            }
        })
    }

    fn for_all_of(
        &mut self,
        list: Vec<Normal>,
        scope: &[Name],
        extra: &mut Vec<Name>,
    ) -> Result<Vec<Plain>> {
        let parts = list.into_iter().map(|n| self.for_all(n, scope, extra));
        parts.collect()
    }

    /// Existential quantifiers outwards, each with all threads it may speak of; what is left has only
    /// conjunctions above its universal ones. Those are taken apart when all parameters are known
    /// ([`Plainer::without_some`]): a thread that was chosen is one of *all* threads wherever it was chosen.
    fn ways(&mut self, n: Normal, scope: &[Name]) -> Result<Vec<Way>> {
        if !splits(&n) {
            return Ok(vec![(Vec::new(), n)]);
        }
        let found = match n {
            Normal::Or(list) => {
                let mut all = Vec::new();
                for part in list {
                    all.extend(self.ways(part, scope)?);
                }
                all
            }
            Normal::And(list) => {
                let mut all: Vec<(Vec<Name>, Vec<Normal>)> = vec![(Vec::new(), Vec::new())];
                for part in list {
                    let mut next = Vec::new();
                    for (extra, so_far) in all {
                        let names = joined(scope, &extra);
                        for (more, body) in self.ways(part.clone(), &names)? {
                            next.push((joined(&extra, &more), joined(&so_far, &[body])));
                        }
                    }
                    all = next;
                }
                let all = all.into_iter();
                all.map(|(extra, parts)| (extra, Normal::And(parts)))
                    .collect()
            }
            Normal::Quantified(quantifier, variables, body) => {
                self.some(quantifier, &variables, *body, scope)?
            }
            Normal::Compare(..) | Normal::Fence(..) => Vec::new(),
        };
        if found.len() > MOST_ALTERNATIVES {
            let span = scope.first().map_or(Span::NONE, |n| n.span);
            return refuse(
                span,
                "this speaks of threads in too many ways",
                "name the threads as parameters",
            );
        }
        Ok(found)
    }

    /// The threads that the variables may be, one after the other.
    fn some(
        &mut self,
        quantifier: Quantifier,
        variables: &[Name],
        body: Normal,
        scope: &[Name],
    ) -> Result<Vec<Way>> {
        let span = variables[0].span;
        if quantifier.all {
            let hint = "say it with parameters, or for one thread at a time";
            return refuse(
                span,
                "for all threads there is some thread: not treated",
                hint,
            );
        }
        let mut choices: Vec<(Vec<Name>, Vec<Name>)> = vec![(Vec::new(), Vec::new())];
        for v in variables {
            let mut next = Vec::new();
            for (chosen, extra) in choices {
                for known in self.known(quantifier, scope) {
                    if chosen.iter().all(|c| c.text != known.text) {
                        let chosen = joined(&chosen, std::slice::from_ref(known));
                        next.push((chosen, extra.clone()));
                    }
                }
                let taken = |text: &str| scope.iter().chain(&extra).any(|n| n.text == text);
                let name = called(v, taken);
                let (mut chosen, mut extra) = (chosen, extra.clone());
                chosen.push(name.clone());
                extra.push(name);
                next.push((chosen, extra));
            }
            choices = next;
            if choices.len() > MOST_ALTERNATIVES {
                let hint = "name the threads as parameters";
                return refuse(span, "this speaks of some thread in too many ways", hint);
            }
        }
        let mut all = Vec::new();
        for (chosen, extra) in choices {
            let meanings = variables.iter().zip(&chosen);
            let meanings = meanings.map(|(v, c)| (v.text.clone(), of_name(c)));
            let body = rename(body.clone(), &meanings.collect())?;
            for (more, body) in self.ways(body, &joined(scope, &extra))? {
                all.push((joined(&extra, &more), body));
            }
        }
        Ok(all)
    }

    /// The threads in scope that a quantifier speaks of.
    fn known<'s>(&self, quantifier: Quantifier, scope: &'s [Name]) -> &'s [Name] {
        match quantifier.other {
            true => &scope[self.written..],
            false => scope,
        }
    }

    /// Universal quantifiers: parameters one by one, and all other threads.
    fn without_some(&mut self, n: Normal, scope: &[Name]) -> Result<Plain> {
        Ok(match n {
            Normal::And(list) => Plain::And(self.each_without_some(list, scope)?),
            Normal::Or(list) => Plain::Or(self.each_without_some(list, scope)?),
            Normal::Compare(l, op, r, span) => {
                self.count(span)?;
                Plain::Compare(l, op, r, span)
            }
            Normal::Fence(kind, thread, span) => Plain::Fence(kind, thread, span),
            Normal::Quantified(quantifier, variables, body) => {
                let pairs = "all pairs of threads cannot be meant here";
                let hint = "one thread that is no parameter at a time";
                let [variable] = &variables[..] else {
                    return refuse(variables[0].span, pairs, hint);
                };
                let mut parts = Vec::new();
                for known in self.known(quantifier, scope) {
                    let meanings = vec![(variable.text.clone(), of_name(known))];
                    let body = rename((*body).clone(), &meanings)?;
                    parts.push(self.without_some(body, scope)?);
                }
                let name = called(variable, |text| scope.iter().any(|n| n.text == text));
                let mut inner = scope.to_vec();
                inner.push(name.clone());
                let body = rename(*body, &vec![(variable.text.clone(), of_name(&name))])?;
                let body = self.without_some(body, &inner)?;
                if speaks_of_others(&body) {
                    return refuse(variable.span, pairs, hint);
                }
                parts.push(Plain::ForallOther(name, Box::new(body)));
                match parts.len() {
                    1 => parts.remove(0),
                    _ => Plain::And(parts),
                }
            }
        })
    }

    fn each_without_some(&mut self, list: Vec<Normal>, scope: &[Name]) -> Result<Vec<Plain>> {
        let parts = list.into_iter().map(|n| self.without_some(n, scope));
        parts.collect()
    }
}

/// What a bound variable is called in the end: as written, if that is not taken.
fn called(variable: &Name, taken: impl Fn(&str) -> bool) -> Name {
    let written = variable.text.split(BOUND).next().unwrap_or("q");
    let mut text = written.to_string();
    let mut number = 1u32;
    while taken(&text) {
        number += 1;
        text = format!("{written}_{number}");
    }
    Name {
        text,
        span: variable.span,
    }
}

fn joined<T: Clone>(some: &[T], more: &[T]) -> Vec<T> {
    some.iter().chain(more).cloned().collect()
}

/// Whether a formula holds in several ways: some thread is meant somewhere, or all threads below `||`.
fn splits(n: &Normal) -> bool {
    match n {
        Normal::And(list) => list.iter().any(splits),
        Normal::Or(list) => list.iter().any(|n| quantified(n).is_some()),
        Normal::Quantified(quantifier, _, body) => !quantifier.all || splits(body),
        Normal::Compare(..) | Normal::Fence(..) => false,
    }
}

/// Where the first quantifier is.
fn quantified(n: &Normal) -> Option<Span> {
    match n {
        Normal::And(list) | Normal::Or(list) => list.iter().find_map(quantified),
        Normal::Quantified(_, variables, _) => variables.first().map(|v| v.span),
        Normal::Compare(..) | Normal::Fence(..) => None,
    }
}

fn speaks_of_others(p: &Plain) -> bool {
    match p {
        Plain::And(list) | Plain::Or(list) => list.iter().any(speaks_of_others),
        Plain::ForallOther(..) => true,
        Plain::Compare(..) | Plain::Fence(..) => false,
    }
}

/// Names replaced by what they stand for.
fn rename(n: Normal, meanings: &Meanings) -> Result<Normal> {
    let each = |list: Vec<Normal>| {
        let parts = list.into_iter().map(|n| rename(n, meanings));
        parts.collect::<Result<Vec<_>>>()
    };
    Ok(match n {
        Normal::And(list) => Normal::And(each(list)?),
        Normal::Or(list) => Normal::Or(each(list)?),
        Normal::Compare(l, op, r, span) => {
            Normal::Compare(put_in(&l, meanings)?, op, put_in(&r, meanings)?, span)
        }
        Normal::Fence(kind, thread, span) => {
            let thread = thread.as_ref().map(|t| renamed(t, meanings)).transpose()?;
            Normal::Fence(kind, thread, span)
        }
        Normal::Quantified(quantifier, names, body) => {
            Normal::Quantified(quantifier, names, Box::new(rename(*body, meanings)?))
        }
    })
}

fn meaning<'m>(name: &Name, meanings: &'m Meanings) -> Option<&'m Term> {
    let found = meanings.iter().rev().find(|(text, _)| *text == name.text);
    found.map(|(_, term)| term)
}

/// A thread that must stay one.
fn renamed(name: &Name, meanings: &Meanings) -> Result<Name> {
    match meaning(name, meanings) {
        None => Ok(name.clone()),
        Some(term) => match as_name(term) {
            Some(thread) => Ok(thread.clone()),
            None => {
                let message = format!("`{}` stands for something that is no thread", name.text);
                refuse(term.span, &message, "give a thread here")
            }
        },
    }
}

fn put_in(term: &Term, meanings: &Meanings) -> Result<Term> {
    let mut parts = Vec::new();
    for (coefficient, factor) in &term.parts {
        match factor {
            Factor::Number(_) | Factor::Real(..) => parts.push((*coefficient, factor.clone())),
            Factor::Named {
                reader,
                name,
                index,
            } => {
                let stands_for = meaning(name, meanings).filter(|_| index.is_empty());
                if let (Some(stands_for), None) = (stands_for, reader) {
                    for (c, f) in &stands_for.parts {
                        match c.checked_mul(*coefficient) {
                            Some(c) => parts.push((c, f.clone())),
                            None => return refuse(term.span, "a number is too large", "use less"),
                        }
                    }
                    continue;
                }
                let reader = reader.as_ref().map(|r| renamed(r, meanings)).transpose()?;
                let index = index.iter().map(|i| renamed(i, meanings));
                let named = Factor::Named {
                    reader,
                    name: name.clone(),
                    index: index.collect::<Result<_>>()?,
                };
                parts.push((*coefficient, named));
            }
        }
    }
    Ok(Term {
        parts,
        span: term.span,
    })
}
