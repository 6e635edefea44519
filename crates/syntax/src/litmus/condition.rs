//! `locations`, `filter` and the condition itself.
//!
//! Operators bind as in herd: `~` tightest, then `=>`, then `/\`, then `\/`.

use super::syntax::{Proposition, Quantifier, Question};
use super::values::{item, value};
use crate::diagnostics::Diagnostic;
use crate::tokens::{Cursor, Kind};
use crate::x86_core::Result;
use wattle_model::Span;

const MAX_DEPTH: usize = 128;

/// Whether the condition's part of the file starts here.
pub fn starts(c: &Cursor<'_>) -> bool {
    let t = c.peek();
    let word = t.kind == Kind::Name
        && matches!(
            t.text,
            "exists" | "forall" | "final" | "locations" | "filter" | "observed" | "not"
        );
    word || t.is("~") || t.is("(") || t.kind == Kind::End
}

/// Reads to the end of the file.
pub fn question(c: &mut Cursor<'_>, diagnostics: &mut Vec<Diagnostic>) -> Question {
    let mut q = Question {
        quantifier: Quantifier::Forall,
        proposition: Proposition::And(Vec::new()),
        locations: Vec::new(),
        filter: None,
        span: c.peek().span,
    };
    if let Err(d) = read(c, &mut q) {
        diagnostics.push(d);
    }
    q
}

fn read(c: &mut Cursor<'_>, q: &mut Question) -> Result<()> {
    if c.eat("locations") {
        c.expect("[")?;
        while !c.peek().is("]") {
            q.locations.push(item(c)?);
            // A type or a `*` may follow the name.
            while c.peek().kind == Kind::Name || c.peek().is("*") {
                c.take();
            }
            if !c.eat(";") && !c.peek().is("]") {
                return Err(c.unexpected("`;` or `]`"));
            }
        }
        c.expect("]")?;
        c.eat(";");
    }
    if c.eat("filter") {
        q.filter = Some(proposition(c, 0)?);
        c.eat(";");
    }
    q.span = c.peek().span;
    if c.at_end() {
        return Ok(());
    }
    q.quantifier = quantifier(c)?;
    let start = q.span;
    q.proposition = proposition(c, 0)?;
    q.span = start.to(c.peek().span);
    c.eat(";");
    if c.eat("with") {
        // `with tso: ~exists; …` says what some models were expected to answer.
        while c.peek().kind == Kind::Name && c.ahead(1).is(":") {
            c.take();
            c.take();
            let negated = c.eat("~");
            let word = c.peek();
            let known = word.is("exists") || (word.is("forall") && !negated);
            if !known {
                return Err(c.unexpected("`exists`, `~exists` or `forall`"));
            }
            c.take();
            c.eat(";");
        }
    }
    if c.at_end() {
        return Ok(());
    }
    Err(c.unexpected("the end of the test, `/\\` or `\\/`"))
}

fn quantifier(c: &mut Cursor<'_>) -> Result<Quantifier> {
    let t = c.peek();
    if t.is("(") {
        return Ok(Quantifier::Exists);
    }
    if t.is("~") || t.is("not") {
        c.take();
        c.expect("exists")?;
        return Ok(Quantifier::NotExists);
    }
    let q = match t.text {
        "exists" | "final" if t.kind == Kind::Name => Quantifier::Exists,
        "forall" if t.kind == Kind::Name => Quantifier::Forall,
        _ => return Err(c.unexpected("`exists`, `~exists` or `forall`")),
    };
    c.take();
    Ok(q)
}

fn proposition(c: &mut Cursor<'_>, depth: usize) -> Result<Proposition> {
    let mut parts = vec![conjunction(c, depth)?];
    while c.eat("\\/") {
        parts.push(conjunction(c, depth)?);
    }
    Ok(single(parts, Proposition::Or))
}

fn conjunction(c: &mut Cursor<'_>, depth: usize) -> Result<Proposition> {
    let mut parts = vec![implication(c, depth)?];
    while c.eat("/\\") {
        parts.push(implication(c, depth)?);
    }
    Ok(single(parts, Proposition::And))
}

fn single(
    mut parts: Vec<Proposition>,
    many: impl Fn(Vec<Proposition>) -> Proposition,
) -> Proposition {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            many(parts)
        }
        None => many(parts),
    }
}

fn implication(c: &mut Cursor<'_>, depth: usize) -> Result<Proposition> {
    let left = primary(c, depth)?;
    if c.eat("=>") {
        let right = implication(c, deeper(c, depth)?)?;
        return Ok(Proposition::Implies(Box::new(left), Box::new(right)));
    }
    Ok(left)
}

fn deeper(c: &Cursor<'_>, depth: usize) -> Result<usize> {
    if depth >= MAX_DEPTH {
        return Err(Diagnostic::error(
            c.peek().span,
            format!("the condition nests deeper than {MAX_DEPTH} levels"),
        ));
    }
    Ok(depth + 1)
}

fn primary(c: &mut Cursor<'_>, depth: usize) -> Result<Proposition> {
    let t = c.peek();
    if t.is("~") || t.is("not") {
        c.take();
        let depth = deeper(c, depth)?;
        return Ok(Proposition::Not(Box::new(primary(c, depth)?)));
    }
    if c.eat("true") {
        return Ok(Proposition::And(Vec::new()));
    }
    if c.eat("false") {
        return Ok(Proposition::Or(Vec::new()));
    }
    if t.is("(") {
        let depth = deeper(c, depth)?;
        c.take();
        let inner = proposition(c, depth)?;
        if c.at_end() {
            let message = "the condition ends inside a parenthesis";
            return Err(Diagnostic::error(t.span, message).expected("`)`"));
        }
        closed(c, ")")?;
        return Ok(inner);
    }
    atom(c)
}

/// What ends a condition; other languages join conditions with other signs.
fn closed(c: &mut Cursor<'_>, sign: &str) -> Result<()> {
    let t = c.peek();
    let ended = c.expect(sign).map(|_| ());
    ended.map_err(|d| match t.text {
        "&" | "&&" => d.hint("and is `/\\`"),
        "|" | "||" => d.hint("or is `\\/`"),
        _ => d,
    })
}

fn atom(c: &mut Cursor<'_>) -> Result<Proposition> {
    let (left, start) = item(c)?;
    let equal = if c.eat("=") || c.eat("==") {
        true
    } else if c.eat("!=") || c.eat("<>") {
        false
    } else {
        return Err(c.unexpected("`=`"));
    };
    if c.eat("{") {
        return elements(c, left, equal, start);
    }
    let (right, end) = value(c)?;
    Ok(Proposition::Atom {
        left,
        right,
        equal,
        span: start.to(end),
    })
}

/// `t = {1, 2}` compares every element.
fn elements(
    c: &mut Cursor<'_>,
    left: super::syntax::Item,
    equal: bool,
    span: Span,
) -> Result<Proposition> {
    let super::syntax::Item::Cell { name, .. } = left else {
        return Err(Diagnostic::error(span, "a register is no array"));
    };
    let mut parts = Vec::new();
    while !c.peek().is("}") {
        let (right, end) = value(c)?;
        let element = parts.len() as u32;
        parts.push(Proposition::Atom {
            left: super::syntax::Item::Cell {
                name: name.clone(),
                element,
            },
            right,
            equal: true,
            span: span.to(end),
        });
        if !c.eat(",") && !c.peek().is("}") {
            return Err(c.unexpected("`,` or `}`"));
        }
    }
    c.expect("}")?;
    let all = Proposition::And(parts);
    Ok(if equal {
        all
    } else {
        Proposition::Not(Box::new(all))
    })
}
