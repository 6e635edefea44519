//! `macro f(x, y) … endmacro`, expanded on tokens before parsing. A macro may call others but not
//! itself, and the expansion of a file is bounded: doubling macros would otherwise fill memory.

use crate::diagnostics::Diagnostic;
use crate::tokens::{Kind, Token, clip};
use std::collections::BTreeMap;
use wattle_model::Span;

/// Tokens and calls an expansion may have in all.
const MAX_WORK: usize = 200_000;
/// Macros that call macros that call macros …
const MAX_CALLS: usize = 50;

struct Macro<'t> {
    parameters: Vec<&'t str>,
    body: Vec<Token<'t>>,
}

struct Expander<'t, 'd> {
    macros: BTreeMap<&'t str, Macro<'t>>,
    out: Vec<Token<'t>>,
    work: usize,
    diagnostics: &'d mut Vec<Diagnostic>,
}

/// The tokens with every macro definition taken out and every call replaced.
pub(super) fn expand<'t>(
    tokens: &[Token<'t>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Token<'t>> {
    let mut e = Expander {
        macros: BTreeMap::new(),
        out: Vec::with_capacity(tokens.len()),
        work: MAX_WORK,
        diagnostics,
    };
    e.run(tokens, &mut Vec::new());
    let mut out = e.out;
    if out.last().is_none_or(|t| t.kind != Kind::End) {
        out.extend(tokens.last());
    }
    out
}

impl<'t> Expander<'t, '_> {
    /// Appends the expansion of the tokens; `active` names the macros being expanded.
    fn run(&mut self, tokens: &[Token<'t>], active: &mut Vec<&'t str>) {
        let mut i = 0;
        while i < tokens.len() {
            let t = tokens[i];
            if self.spend(1, t.span) {
                return;
            }
            let named = t.kind == Kind::Name;
            if named && t.text == "macro" {
                i = self.define(tokens, i, active);
            } else if named && self.macros.contains_key(t.text) {
                i = self.call(tokens, i, active);
            } else {
                self.out.push(t);
                i += 1;
            }
        }
    }

    /// Whether there is no work left (said once).
    fn spend(&mut self, amount: usize, span: Span) -> bool {
        if self.work == 0 {
            return true;
        }
        self.work = self.work.saturating_sub(amount);
        if self.work == 0 {
            self.error(span, "the macros of this file expand to too many tokens");
        }
        self.work == 0
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(span, message));
    }

    /// Reads a definition that starts at `i`; returns where it ends.
    fn define(&mut self, tokens: &[Token<'t>], i: usize, active: &[&'t str]) -> usize {
        let start = tokens[i].span;
        if !active.is_empty() {
            self.error(start, "a macro defined inside a macro");
        }
        let is_end = |t: &Token<'_>| t.kind == Kind::Name && t.text == "endmacro";
        let length = tokens[i..]
            .iter()
            .position(|t| is_end(t) || t.kind == Kind::End);
        let end = i + length.unwrap_or(tokens.len() - i);
        if !tokens.get(end).is_some_and(is_end) {
            self.diagnostics
                .push(Diagnostic::error(start, "a macro without an end").expected("`endmacro`"));
            return end;
        }
        let inside = &tokens[i + 1..end];
        let symbol = |n: usize, s: &str| inside.get(n).is_some_and(|t| t.text == s);
        let Some(name) = inside
            .first()
            .filter(|t| t.kind == Kind::Name && symbol(1, "("))
        else {
            self.diagnostics.push(
                Diagnostic::error(start, "a macro without a name")
                    .expected("`macro NAME(PARAMETERS) … endmacro`"),
            );
            return end + 1;
        };
        let mut parameters = Vec::new();
        let mut n = 2;
        while !symbol(n, ")") {
            match inside.get(n) {
                Some(t) if t.kind == Kind::Name && !parameters.contains(&t.text) => {
                    parameters.push(t.text);
                }
                t => {
                    let span = t.map_or(name.span, |t| t.span);
                    let found = t.map_or("the end of the macro".to_string(), Token::shown);
                    let message = format!("unexpected {found} among the parameters of a macro");
                    let d = Diagnostic::error(span, message);
                    self.diagnostics
                        .push(d.expected("a new name for each parameter"));
                    return end + 1;
                }
            }
            n += 1;
            n += usize::from(symbol(n, ","));
        }
        if self.macros.contains_key(name.text) {
            let message = format!("two macros are called `{}`", clip(name.text));
            self.error(name.span, message);
            return end + 1;
        }
        let body = inside[n + 1..].to_vec();
        self.macros.insert(name.text, Macro { parameters, body });
        end + 1
    }

    /// Expands the call that starts at `i`; returns where it ends.
    fn call(&mut self, tokens: &[Token<'t>], i: usize, active: &mut Vec<&'t str>) -> usize {
        let name = tokens[i];
        let (arguments, end) = match arguments(tokens, i + 1) {
            Ok(found) => found,
            Err(span) => {
                let message = format!("the call of macro `{}` is not closed", clip(name.text));
                let d = Diagnostic::error(span, message);
                self.diagnostics
                    .push(d.expected("`(`, arguments separated by `,`, and `)`"));
                return i + 1;
            }
        };
        if active.contains(&name.text) || active.len() >= MAX_CALLS {
            let message = format!("macro `{}` calls itself", clip(name.text));
            self.error(name.span, message);
            return end;
        }
        let Some(found) = self.macros.get(name.text) else {
            return end;
        };
        if found.parameters.len() != arguments.len() {
            let (wanted, given) = (found.parameters.len(), arguments.len());
            let message = format!(
                "macro `{}` takes {wanted} arguments, not {given}",
                clip(name.text)
            );
            self.error(name.span, message);
            return end;
        }
        let mut body = Vec::new();
        let mut cost = 0;
        for t in &found.body {
            let parameter = found.parameters.iter().position(|p| *p == t.text);
            match parameter.filter(|_| t.kind == Kind::Name) {
                Some(p) => body.extend_from_slice(arguments[p]),
                None => body.push(*t),
            }
            if body.len() > self.work {
                break;
            }
            cost = body.len();
        }
        if self.spend(cost / 8 + 1, name.span) || body.len() > self.work {
            self.spend(usize::MAX, name.span);
            return tokens.len();
        }
        active.push(name.text);
        self.run(&body, active);
        active.pop();
        end
    }
}

type Arguments<'a, 't> = (Vec<&'a [Token<'t>]>, usize);

/// The arguments of a call, and where it ends.
fn arguments<'a, 't>(tokens: &'a [Token<'t>], open: usize) -> Result<Arguments<'a, 't>, Span> {
    let span = tokens
        .get(open)
        .or(tokens.last())
        .map_or(Span::NONE, |t| t.span);
    if tokens.get(open).is_none_or(|t| t.text != "(") {
        return Err(span);
    }
    let mut arguments = Vec::new();
    let (mut depth, mut start) = (1usize, open + 1);
    for (i, t) in tokens.iter().enumerate().skip(open + 1) {
        match t.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && t.text == ",") {
            if depth == 1 || i > start || !arguments.is_empty() {
                arguments.push(&tokens[start..i]);
            }
            start = i + 1;
        }
        if depth == 0 {
            return Ok((arguments, i + 1));
        }
        if t.kind == Kind::End {
            break;
        }
    }
    Err(span)
}
