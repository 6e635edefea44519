//! Formulas and terms: who reads what, and of which type it is.

use super::super::plain::Plain;
use super::super::tree::{self, Factor, FenceWord, Name, Op};
use super::{Resolver, Scope, Typed, UNWRITTEN};
use crate::Diagnostic;
use std::collections::HashMap;
use wattle_model::Span;
use wattle_model::array::{
    Access, CellType, Comparison, FenceKind, Formula, Literal, Term, ThreadTerm,
};

impl Resolver<'_> {
    pub(super) fn thread(&mut self, name: &Name, scope: &Scope) -> Option<ThreadTerm> {
        if let Some(digits) = name.text.strip_prefix('#') {
            let number = digits.parse::<u16>().ok().filter(|k| *k >= 1);
            let Some(k) = number else {
                self.error(
                    name.span,
                    format!("`{}` is no thread: they are counted from #1", name.text),
                );
                return None;
            };
            if let Some(n) = self.system.threads.filter(|n| u32::from(k) > *n) {
                self.error(
                    name.span,
                    format!("there is no thread `#{k}`: `number_procs` is {n}"),
                );
                return None;
            }
            return Some(ThreadTerm::Constant(k));
        }
        let found = scope.names.iter().rposition(|n| *n == name.text);
        if found.is_none() {
            let d = Diagnostic::error(name.span, format!("unknown thread `{}`", name.text))
                .expected("a parameter, a bound variable or a constant such as `#1`");
            let known = scope.names.iter().map(String::as_str);
            let d = self.hinted(d, &name.text, known.filter(|n| !n.starts_with(UNWRITTEN)));
            self.diagnostics.push(d);
        }
        found.map(|i| ThreadTerm::Param(i as u8))
    }

    /// In a transition only the acting thread reads and writes weak memory.
    pub(super) fn check_reader(&mut self, reader: &Name, scope: &Scope) {
        if let (Some(t), Some(a)) = (self.thread(reader, scope), scope.actor)
            && t != ThreadTerm::Param(a)
        {
            self.diagnostics.push(
                Diagnostic::error(
                    reader.span,
                    format!("`{}` does not act in this transition", reader.text),
                )
                .hint(format!(
                    "all weak reads and writes are by `{}`",
                    scope.names[usize::from(a)]
                )),
            );
        }
    }

    pub(super) fn formula(
        &mut self,
        e: &Plain,
        scope: &Scope,
        fence: &mut Option<FenceKind>,
        others: bool,
    ) -> Formula {
        match e {
            Plain::And(list) => {
                let parts = list.iter().map(|p| self.formula(p, scope, fence, others));
                Formula::And(parts.filter(|f| !f.is_true()).collect::<Vec<_>>()).simplified()
            }
            Plain::Or(list) => {
                let mut inner = None;
                let parts: Vec<_> = list
                    .iter()
                    .map(|p| self.formula(p, scope, &mut inner, others))
                    .collect();
                if inner.is_some() {
                    let span = first_span(e);
                    self.diagnostics.push(
                        Diagnostic::error(span, "a fence cannot stand inside `||`")
                            .hint("split the transition in two"),
                    );
                }
                Formula::Or(parts)
            }
            Plain::Fence(kind, thread, _) => {
                if let Some(t) = thread {
                    self.check_reader(t, scope);
                }
                let kind = match kind {
                    FenceWord::Full => FenceKind::Full,
                    FenceWord::Store => FenceKind::Store,
                };
                *fence = Some(fence.map_or(kind, |f| f.min(kind)));
                Formula::TRUE
            }
            Plain::Others(all, variable, body) => {
                if !others {
                    self.diagnostics.push(
                        Diagnostic::error(variable.span, "all threads cannot be meant here")
                            .hint("only `requires` and `init` can say something of all threads"),
                    );
                }
                let mut names = scope.names.clone();
                names.push(variable.text.clone());
                let inner = Scope {
                    names,
                    held: Vec::new(),
                    ..*scope
                };
                let before = *fence;
                let body = self.formula(body, &inner, fence, others);
                if !all && *fence != before {
                    let message = "a fence belongs to the transition, not to some thread";
                    self.error(variable.span, message);
                }
                if body.is_true() && *all {
                    return body;
                }
                Formula::Others {
                    all: *all,
                    variable: variable.text.clone(),
                    body: Box::new(body),
                }
            }
            Plain::Compare(l, op, r, span) => self.compare(l, *op, r, *span, scope, false),
            Plain::Ordered(l, op, r, span) => self.compare(l, *op, r, *span, scope, true),
        }
    }

    pub(super) fn compare(
        &mut self,
        l: &tree::Term,
        op: Op,
        r: &tree::Term,
        span: Span,
        scope: &Scope,
        held: bool,
    ) -> Formula {
        let (l, r, op) = match op {
            Op::Gt => (r, l, Comparison::Lt),
            Op::Ge => (r, l, Comparison::Le),
            Op::Lt => (l, r, Comparison::Lt),
            Op::Le => (l, r, Comparison::Le),
            Op::Eq => (l, r, Comparison::Eq),
            Op::Ne => (l, r, Comparison::Ne),
        };
        let (left, right) = (self.term(l, scope), self.term(r, scope));
        let (Some(left), Some(right)) = (left, right) else {
            return Formula::TRUE;
        };
        if let (Typed::Constant(a), Typed::Constant(b)) = (&left, &right) {
            let holds = match op {
                Comparison::Eq => a == b,
                Comparison::Ne => a != b,
                Comparison::Lt => a < b,
                Comparison::Le => a <= b,
            };
            return if holds {
                Formula::TRUE
            } else {
                Formula::Or(Vec::new())
            };
        }
        let ty = match (&left, &right) {
            (Typed::Number(t, _) | Typed::Other(t, _), _) => *t,
            (_, Typed::Number(t, _) | Typed::Other(t, _)) => *t,
            _ => CellType::Int,
        };
        let (Ok(left), Ok(right)) = (
            self.coerce(left.clone(), ty),
            self.coerce(right.clone(), ty),
        ) else {
            let name = |r: &Self, t: &Typed| match t {
                Typed::Number(t, _) | Typed::Other(t, _) => r.type_name(*t),
                Typed::Constant(_) => "int".into(),
            };
            let (a, b) = (name(self, &left), name(self, &right));
            self.error(span, format!("`{a}` is compared with `{b}`"));
            return Formula::TRUE;
        };
        let ordered = matches!(op, Comparison::Lt | Comparison::Le);
        let numbers = matches!(ty, CellType::Int | CellType::Real);
        if ordered && ty == CellType::Thread {
            let both = matches!((&left, &right), (Term::Thread(_), Term::Thread(_)));
            if !both && !held {
                self.diagnostics.push(
                    Diagnostic::error(
                        span,
                        "only parameters can be ordered, not cells that hold threads",
                    )
                    .hint("bind the cell's value first: add a parameter q and require `X = q`"),
                );
            }
        } else if ordered && !numbers {
            let name = self.type_name(ty);
            self.error(span, format!("values of type `{name}` have no order"));
        }
        Formula::Atom(Literal { left, op, right })
    }

    pub(super) fn term(&mut self, t: &tree::Term, scope: &Scope) -> Option<Typed> {
        if let [
            (
                1,
                Factor::Named {
                    reader,
                    name,
                    index,
                },
            ),
        ] = &t.parts[..]
        {
            return self.named(reader.as_ref(), name, index, scope);
        }
        let (mut parts, mut constant, mut ty): (Vec<(i64, Access)>, i64, Option<CellType>) =
            (Vec::new(), 0, None);
        // What is known to be real is scaled already.
        let mut scaled = 0i64;
        let times = |a: i64, b: i64, to: i64| a.checked_mul(b)?.checked_add(to);
        for (c, f) in &t.parts {
            match f {
                Factor::Number(n) => constant = self.fitting(times(*c, *n, constant), t.span)?,
                Factor::Real(n, d) => {
                    let whole = times(*n, self.scale / d, 0).and_then(|n| times(*c, n, scaled));
                    scaled = self.fitting(whole, t.span)?;
                    if ty == Some(CellType::Int) {
                        self.error(t.span, "`int` and `real` are mixed");
                    }
                    ty = Some(CellType::Real);
                }
                Factor::Named {
                    reader,
                    name,
                    index,
                } => match self.named(reader.as_ref(), name, index, scope)? {
                    Typed::Number(n, Term::Sum { parts: p, .. }) => {
                        if ty.is_some_and(|t| t != n) {
                            self.error(t.span, "`int` and `real` are mixed");
                        }
                        ty = Some(n);
                        parts.extend(p.into_iter().map(|(k, a)| (k * c, a)));
                    }
                    Typed::Other(CellType::Thread, _) => {
                        self.diagnostics.push(
                            Diagnostic::error(
                                name.span,
                                "thread identifiers cannot be added or subtracted",
                            )
                            .hint("threads can only be compared; use another array to count"),
                        );
                        return None;
                    }
                    _ => {
                        self.error(name.span, format!("`{}` is not a number", name.text));
                        return None;
                    }
                },
            }
        }
        match ty {
            None if parts.is_empty() => Some(Typed::Constant(constant)),
            Some(CellType::Real) => {
                let whole = self.fitting(times(constant, self.scale, scaled), t.span)?;
                Some(Typed::Number(CellType::Real, merged(parts, whole)))
            }
            ty => Some(Typed::Number(
                ty.unwrap_or(CellType::Int),
                merged(parts, constant),
            )),
        }
    }

    fn fitting(&mut self, number: Option<i64>, span: Span) -> Option<i64> {
        if number.is_none() {
            self.error(span, "this number is too large");
        }
        number
    }

    pub(super) fn named(
        &mut self,
        reader: Option<&Name>,
        name: &Name,
        index: &[Name],
        scope: &Scope,
    ) -> Option<Typed> {
        let is_cell = self.names.cell(&name.text).is_some();
        if !is_cell && index.is_empty() && reader.is_none() {
            if let Some((ty, term)) = self.constructor(&name.text) {
                return Some(Typed::Other(ty, term));
            }
            let lower = name
                .text
                .starts_with(|c: char| c.is_ascii_lowercase() || c == '#');
            if lower || scope.names.contains(&name.text) {
                let t = self.thread(name, scope)?;
                return Some(Typed::Other(CellType::Thread, Term::Thread(t)));
            }
        }
        let cell = self.find_cell(name, "a variable, an array, a constructor or a thread")?;
        let decl = self.system.cell(cell).clone();
        if index.len() != usize::from(decl.arity) {
            self.arity(name, &decl, index.len());
            return None;
        }
        let args = index
            .iter()
            .map(|i| self.thread(i, scope))
            .collect::<Option<Vec<_>>>()?;
        let mut read_by = None;
        if let Some(r) = reader {
            if !decl.weak {
                self.error(
                    r.span,
                    format!("`{}` is not weak: `@` has no meaning", decl.name),
                );
            } else if !scope.readers {
                self.error(r.span, "`@` has no meaning in `init`");
            } else if scope.actor.is_some() {
                self.check_reader(r, scope);
            } else {
                read_by = Some(self.thread(r, scope)?);
            }
        }
        let access = Access {
            cell,
            args,
            reader: read_by,
        };
        Some(match decl.ty {
            CellType::Int | CellType::Real => Typed::Number(
                decl.ty,
                Term::Sum {
                    parts: vec![(1, access)],
                    constant: 0,
                },
            ),
            ty => Typed::Other(ty, Term::Read(access)),
        })
    }
}

/// The same cell twice in a sum becomes one part.
fn merged(parts: Vec<(i64, Access)>, constant: i64) -> Term {
    let mut out: Vec<(i64, Access)> = Vec::new();
    let mut places: HashMap<Access, usize> = HashMap::new();
    for (c, a) in parts {
        match places.get(&a) {
            Some(i) => out[*i].0 += c,
            None => {
                places.insert(a.clone(), out.len());
                out.push((c, a));
            }
        }
    }
    out.retain(|(c, _)| *c != 0);
    Term::Sum {
        parts: out,
        constant,
    }
}

fn first_span(e: &Plain) -> Span {
    match e {
        Plain::And(l) | Plain::Or(l) => l.first().map_or(Span::NONE, first_span),
        Plain::Compare(_, _, _, s) | Plain::Ordered(_, _, _, s) | Plain::Fence(_, _, s) => *s,
        Plain::Others(_, v, _) => v.span,
    }
}
