//! Formulas as engines take them: predicates put in, connectives and quantifiers taken apart.
//!
//! What a guard may say beyond conjunctions, disjunctions, comparisons and `forall_other` is said in
//! these:
//!
//! - `not`, `=>`, `<=>`, `if`, `true`, `false` by the laws of logic;
//! - *some thread* is a parameter or a thread that is none: one [`Alternative`] for each, the latter
//!   with one parameter more (parameters are different threads, so nothing is counted twice);
//! - *all threads* are the parameters and, by `forall_other`, those that are none; in `init`, whose
//!   parameters stand for all threads already, it is a parameter more; inside of it *some thread* is one of
//!   the parameters or, by `exists_other`, one that is none;
//! - a cell that holds a thread is ordered by the thread it holds: `X < p` is *some q with X = q and
//!   q < p*. (A cell that holds nobody is in no order.) Below *all threads* and in conditions of a `case` that
//!   thread is chosen for the whole transition, if only parameters say which cell it is ([`Held`]); else the order
//!   is left to the system ([`Plain::Ordered`]), with what follows for each thread.

use super::tree::{Expr, Factor, FenceWord, Name, Op, Predicate, Quantifier, Term};
use crate::Diagnostic;
use wattle_model::Span;

#[derive(Clone, Debug)]
pub enum Plain {
    And(Vec<Plain>),
    Or(Vec<Plain>),
    Compare(Term, Op, Term, Span),
    /// The order of cells that hold threads.
    Ordered(Term, Op, Term, Span),
    /// Of the threads that are no parameters all, or some.
    Others(bool, Name, Box<Plain>),
    Fence(FenceWord, Option<Name>, Span),
}

/// One of the ways a formula can hold: with these parameters more.
#[derive(Clone, Debug)]
pub struct Alternative {
    pub extra: Vec<Name>,
    pub body: Plain,
    pub held: Vec<Held>,
}

/// A cell and the thread in it, if there is one.
#[derive(Clone, Debug)]
pub struct Held {
    cell: Term,
    pub thread: Option<Name>,
}

/// Where a formula stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Parameters stand for all threads.
    Init,
    /// Parameters stand for some different threads.
    Some,
    /// Nothing can be added to what is in scope. So many names are parameters that were written, and so many are
    /// parameters.
    Condition(usize, usize),
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
    pub place: Standing,
    /// Cells may hold nobody.
    pub nobody: bool,
    /// Cells whose thread is chosen, or is to be.
    pub held: Vec<Held>,
    parts: usize,
    /// How many of the names in scope are parameters, when all are chosen.
    params: usize,
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
    /// A cell that holds threads is one of the two at least.
    Ordered(Term, Op, Term, Span),
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
        place: Standing,
    ) -> Self {
        Plainer {
            predicates,
            holds_threads,
            place,
            nobody: false,
            held: Vec::new(),
            parts: 0,
            params: usize::MAX,
            written: 0,
            bound: 0,
        }
    }

    /// The ways in which the formula can hold, with these names in scope.
    pub fn alternatives(&mut self, e: &Expr, scope: &[Name]) -> Result<Vec<Alternative>> {
        let normal = self.normal(e, false, &Vec::new(), 0)?;
        match self.place {
            Standing::Init => {
                let mut extra = Vec::new();
                let body = self.for_all(normal, scope, &mut extra)?;
                let held = Vec::new();
                Ok(vec![Alternative { extra, body, held }])
            }
            Standing::Condition(written, params) => {
                (self.written, self.params) = (written, params);
                let (extra, held) = (Vec::new(), Vec::new());
                let body = self.without_some(normal, scope)?;
                Ok(vec![Alternative { extra, body, held }])
            }
            Standing::Some => {
                self.written = scope.len();
                self.choose(&normal, false);
                let chosen = self.held.clone().into_iter();
                let chosen: Vec<Normal> = chosen.map(|h| self.chosen(h.cell)).collect();
                let whole = joined(&[normal], &chosen);
                let ways = self.ways(Normal::And(whole), scope)?.into_iter();
                let ways = ways.map(|(extra, body)| {
                    let scope = joined(scope, &extra);
                    for h in &mut self.held {
                        h.thread = thread_in(&body, &h.cell, &scope);
                    }
                    self.params = scope.len();
                    let body = self.without_some(body, &scope)?;
                    let held = self.held.clone();
                    Ok(Alternative { extra, body, held })
                });
                ways.collect()
            }
        }
    }

    /// The cells that parameters name and whose order a condition of a `case` needs: a guard has to choose
    /// the threads in them.
    pub fn needed(&mut self, condition: &Expr, params: &[Name]) -> Result<()> {
        let normal = self.normal(condition, false, &Vec::new(), 0)?;
        let before = self.held.len();
        self.choose(&normal, true);
        let of_params = |h: &Held| index(&h.cell).all(|n| params.iter().any(|p| p.text == n.text));
        let new = self.held.split_off(before);
        self.held.extend(new.into_iter().filter(of_params));
        Ok(())
    }

    /// Notes the cells whose order matters where no parameter can be added, and that nothing bound names.
    fn choose(&mut self, n: &Normal, fixed: bool) {
        match n {
            Normal::And(list) | Normal::Or(list) => {
                list.iter().for_each(|n| self.choose(n, fixed));
            }
            Normal::Quantified(quantifier, _, body) => self.choose(body, fixed || quantifier.all),
            Normal::Ordered(l, _, r, _) if fixed => {
                for cell in [l, r] {
                    let free = index(cell).all(|n| !n.text.contains(BOUND));
                    if free && self.holds(cell) && !self.held.iter().any(|h| same(&h.cell, cell)) {
                        self.held.push(Held {
                            cell: cell.clone(),
                            thread: None,
                        });
                    }
                }
            }
            Normal::Ordered(..) | Normal::Compare(..) | Normal::Fence(..) => {}
        }
    }

    /// Some thread is in the cell; or none, if there may be none.
    fn chosen(&mut self, cell: Term) -> Normal {
        let mut ways = vec![self.is_some(false, &cell)];
        if self.nobody {
            ways.push(self.is_some(true, &cell));
        }
        Normal::Or(ways)
    }

    /// The cell holds some thread, or (`none`) no thread.
    fn is_some(&mut self, none: bool, cell: &Term) -> Normal {
        let q = self.bind(&called_q(cell.span));
        let op = if none { Op::Ne } else { Op::Eq };
        let body = Normal::Compare(of_name(&q), op, cell.clone(), cell.span);
        let quantifier = Quantifier {
            all: none,
            other: false,
        };
        Normal::Quantified(quantifier, vec![q], Box::new(body))
    }

    fn holds(&self, t: &Term) -> bool {
        match &t.parts[..] {
            [(1, Factor::Named { name, .. })] => (self.holds_threads)(&name.text),
            _ => false,
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

    fn ordered(&self, l: Term, op: Op, r: Term, span: Span) -> Normal {
        match op.orders() && self.place != Standing::Init && (self.holds(&l) || self.holds(&r)) {
            true => Normal::Ordered(l, op, r, span),
            false => Normal::Compare(l, op, r, span),
        }
    }

    /// An order between cells that hold threads is one between threads: between some that are in them, or (`all`)
    /// between all that are.
    fn between(&mut self, all: bool, [l, r]: [Term; 2], op: Op, span: Span) -> Normal {
        let (mut variables, mut parts) = (Vec::new(), Vec::new());
        let equal = if all { Op::Ne } else { Op::Eq };
        let mut bound = |t: Term| {
            if !self.holds(&t) {
                return t;
            }
            let q = self.bind(&called_q(t.span));
            let thread = of_name(&q);
            parts.push(Normal::Compare(thread.clone(), equal, t, span));
            variables.push(q);
            thread
        };
        let (l, r) = (bound(l), bound(r));
        parts.push(Normal::Compare(l, op, r, span));
        let quantifier = Quantifier { all, other: false };
        let body = match all {
            true => Normal::Or(parts),
            false => Normal::And(parts),
        };
        // Both cells may hold the same thread: one quantifier for each.
        variables.into_iter().fold(body, |body, variable| {
            Normal::Quantified(quantifier, vec![variable], Box::new(body))
        })
    }

    /// The order where no parameter can be added.
    fn fixed_order(
        &mut self,
        l: Term,
        op: Op,
        r: Term,
        span: Span,
        scope: &[Name],
    ) -> Result<Plain> {
        let put = |t: Term| {
            let known = self.held.iter().find(|h| same(&h.cell, &t));
            known.map_or(Some(t), |h| h.thread.as_ref().map(of_name))
        };
        let (Some(l), Some(r)) = (put(l), put(r)) else {
            // Nobody is in no order.
            return Ok(Plain::Or(Vec::new()));
        };
        let cells: Vec<Term> = [&l, &r]
            .into_iter()
            .filter(|t| self.holds(t))
            .cloned()
            .collect();
        if cells.is_empty() {
            return Ok(Plain::Compare(l, op, r, span));
        }
        let mut parts = vec![Plain::Ordered(l.clone(), op, r.clone(), span)];
        // Conditions of a `case` are negated, too: there it would be of no use.
        if !matches!(self.place, Standing::Condition(..)) {
            let each = self.between(true, [l, r], op, span);
            parts.push(self.without_some(each, scope)?);
        }
        for cell in if self.nobody { &cells[..] } else { &[] } {
            let somebody = self.is_some(false, cell);
            parts.push(self.without_some(somebody, scope)?);
        }
        Ok(Plain::And(parts))
    }

    /// In `init`: universal quantifiers become parameters, which stand for all threads, equal ones too.
    fn for_all(&mut self, n: Normal, scope: &[Name], extra: &mut Vec<Name>) -> Result<Plain> {
        Ok(match n {
            Normal::And(list) => Plain::And(self.for_all_of(list, scope, extra)?),
            Normal::Or(list) => Plain::Or(self.for_all_of(list, scope, extra)?),
            Normal::Compare(l, op, r, span) | Normal::Ordered(l, op, r, span) => {
                Plain::Compare(l, op, r, span)
            }
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
            Normal::Ordered(l, op, r, span) => {
                let some = self.between(false, [l, r], op, span);
                self.ways(some, scope)?
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
        let params = &scope[..self.params.min(scope.len())];
        match quantifier.other {
            true => &params[self.written..],
            false => params,
        }
    }

    /// Quantifiers: parameters one by one, and all (or some) other threads.
    fn without_some(&mut self, n: Normal, scope: &[Name]) -> Result<Plain> {
        Ok(match n {
            Normal::And(list) => Plain::And(self.each_without_some(list, scope)?),
            Normal::Or(list) => Plain::Or(self.each_without_some(list, scope)?),
            Normal::Compare(l, op, r, span) => {
                self.count(span)?;
                Plain::Compare(l, op, r, span)
            }
            Normal::Ordered(l, op, r, span) => self.fixed_order(l, op, r, span, scope)?,
            Normal::Fence(kind, thread, span) => Plain::Fence(kind, thread, span),
            Normal::Quantified(quantifier, variables, body) => {
                let (variable, body) = one_by_one(quantifier, &variables, *body);
                let mut parts = Vec::new();
                for known in self.known(quantifier, scope) {
                    let meanings = vec![(variable.text.clone(), of_name(known))];
                    let body = rename(body.clone(), &meanings)?;
                    parts.push(self.without_some(body, scope)?);
                }
                let name = called(&variable, |text| scope.iter().any(|n| n.text == text));
                let mut inner = scope.to_vec();
                inner.push(name.clone());
                let body = rename(body, &vec![(variable.text.clone(), of_name(&name))])?;
                let body = self.without_some(body, &inner)?;
                parts.push(Plain::Others(quantifier.all, name, Box::new(body)));
                match (parts.len(), quantifier.all) {
                    (1, _) => parts.remove(0),
                    (_, true) => Plain::And(parts),
                    (_, false) => Plain::Or(parts),
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
        Normal::Or(list) => list.iter().any(quantified),
        Normal::Quantified(quantifier, ..) => !quantifier.all,
        Normal::Ordered(..) => true,
        Normal::Compare(..) | Normal::Fence(..) => false,
    }
}

/// Whether threads are meant that have no name.
fn quantified(n: &Normal) -> bool {
    match n {
        Normal::And(list) | Normal::Or(list) => list.iter().any(quantified),
        Normal::Quantified(..) | Normal::Ordered(..) => true,
        Normal::Compare(..) | Normal::Fence(..) => false,
    }
}

/// The first variable, and what is said of it: for all (or some) threads that the others may be, which are
/// different from it.
fn one_by_one(quantifier: Quantifier, variables: &[Name], body: Normal) -> (Name, Normal) {
    let (first, rest) = (variables[0].clone(), &variables[1..]);
    if rest.is_empty() {
        return (first, body);
    }
    let op = if quantifier.all { Op::Eq } else { Op::Ne };
    let apart = |v: &Name| Normal::Compare(of_name(&first), op, of_name(v), v.span);
    let parts = joined(&rest.iter().map(apart).collect::<Vec<_>>(), &[body]);
    let body = match quantifier.all {
        true => Normal::Or(parts),
        false => Normal::And(parts),
    };
    let inner = Normal::Quantified(quantifier, rest.to_vec(), Box::new(body));
    (first, inner)
}

fn called_q(span: Span) -> Name {
    Name {
        text: "q".into(),
        span,
    }
}

/// The threads that name a cell, its reader among them.
fn index(cell: &Term) -> impl Iterator<Item = &Name> {
    cell.parts.iter().flat_map(|(_, f)| match f {
        Factor::Named { reader, index, .. } => index.iter().chain(reader).collect(),
        Factor::Number(_) | Factor::Real(..) => Vec::new(),
    })
}

/// Whether both are one and the same cell, or name.
fn same(a: &Term, b: &Term) -> bool {
    let name = |t: &Term| match &t.parts[..] {
        [(1, Factor::Named { name, .. })] => Some(name.text.clone()),
        _ => None,
    };
    let names = |t: &Term| index(t).map(|n| n.text.clone()).collect::<Vec<_>>();
    name(a).is_some() && name(a) == name(b) && names(a) == names(b)
}

/// The thread in scope that is in the cell, as the formula says.
fn thread_in(n: &Normal, cell: &Term, scope: &[Name]) -> Option<Name> {
    match n {
        Normal::And(list) => list.iter().find_map(|n| thread_in(n, cell, scope)),
        Normal::Compare(l, Op::Eq, r, _) => {
            let sides = [(l, r), (r, l)].into_iter();
            let mut threads = sides.filter(|(_, b)| same(b, cell)).map(|(a, _)| a);
            let known = |n: &&Name| scope.iter().any(|s| s.text == n.text);
            threads.find_map(|a| as_name(a).filter(known).cloned())
        }
        Normal::Or(_)
        | Normal::Compare(..)
        | Normal::Ordered(..)
        | Normal::Quantified(..)
        | Normal::Fence(..) => None,
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
        Normal::Ordered(l, op, r, span) => {
            Normal::Ordered(put_in(&l, meanings)?, op, put_in(&r, meanings)?, span)
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
