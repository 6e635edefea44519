//! Characters to tokens. Comments `(* … *)` nest.

use crate::Diagnostic;
use wattle_model::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    Word(&'a str),
    Int(i64),
    /// A real number that is whole.
    Real(i64),
    /// `#3`
    Constant(&'a str),
    Symbol(&'static str),
    End,
}

/// Longest first.
const SYMBOLS: [&str; 26] = [
    ":=", "<>", "<=", ">=", "&&", "||", "!=", "(", ")", "{", "}", "[", "]", ",", ";", ":", "=",
    "<", ">", "|", "_", ".", "?", "@", "+", "-",
];

pub fn lex<'a>(text: &'a str, diagnostics: &mut Vec<Diagnostic>) -> Vec<(Token<'a>, Span)> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        if byte == b'\n' {
            line += 1;
            at += 1;
        } else if byte.is_ascii_whitespace() {
            at += 1;
        } else if bytes[at..].starts_with(b"(*") {
            let span = Span::new(at, at + 2, line);
            if !skip_comment(bytes, &mut at, &mut line) {
                diagnostics
                    .push(Diagnostic::error(span, "this comment is never closed").expected("`*)`"));
            }
        } else if byte.is_ascii_alphabetic() || (byte == b'_' && word_follows(bytes, at + 1)) {
            at = word_end(bytes, at);
            tokens.push((Token::Word(&text[start..at]), Span::new(start, at, line)));
        } else if byte.is_ascii_digit() {
            let token = number(text, &mut at);
            let span = Span::new(start, at, line);
            match token {
                Ok(t) => tokens.push((t, span)),
                Err(message) => {
                    diagnostics.push(Diagnostic::error(span, message));
                    tokens.push((Token::Int(0), span));
                }
            }
        } else if byte == b'#' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
            at += 1;
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            let span = Span::new(start, at, line);
            tokens.push((Token::Constant(&text[start..at]), span));
        } else if byte == b'*' {
            at += 1;
            tokens.push((Token::Symbol("*"), Span::new(start, at, line)));
        } else if let Some(s) = SYMBOLS.iter().find(|s| text[at..].starts_with(**s)) {
            at += s.len();
            tokens.push((Token::Symbol(s), Span::new(start, at, line)));
        } else {
            let c = text[at..].chars().next().unwrap_or(' ');
            at += c.len_utf8();
            let span = Span::new(start, at, line);
            diagnostics.push(Diagnostic::error(
                span,
                format!("unexpected character `{c}`"),
            ));
        }
    }
    tokens.push((Token::End, Span::new(text.len(), text.len(), line)));
    tokens
}

fn word_follows(bytes: &[u8], at: usize) -> bool {
    bytes
        .get(at)
        .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

fn word_end(bytes: &[u8], mut at: usize) -> usize {
    while word_follows(bytes, at) || bytes.get(at) == Some(&b'\'') {
        at += 1;
    }
    at
}

fn skip_comment(bytes: &[u8], at: &mut usize, line: &mut usize) -> bool {
    let mut depth = 0usize;
    while *at < bytes.len() {
        if bytes[*at..].starts_with(b"(*") {
            depth += 1;
            *at += 2;
        } else if bytes[*at..].starts_with(b"*)") {
            depth -= 1;
            *at += 2;
            if depth == 0 {
                return true;
            }
        } else {
            *line += usize::from(bytes[*at] == b'\n');
            *at += 1;
        }
    }
    false
}

fn number<'a>(text: &'a str, at: &mut usize) -> Result<Token<'a>, String> {
    let bytes = text.as_bytes();
    let start = *at;
    let digits = |at: &mut usize| {
        while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
            *at += 1;
        }
    };
    digits(at);
    let whole = text[start..*at].parse::<i64>();
    let real = bytes.get(*at) == Some(&b'.') && bytes.get(*at + 1).is_some_and(u8::is_ascii_digit);
    if real {
        *at += 1;
        let fraction = *at;
        digits(at);
        if text[fraction..*at].bytes().any(|b| b != b'0') {
            return Err(format!(
                "`{}` is not a whole number; only whole reals are supported",
                &text[start..*at]
            ));
        }
    }
    match whole {
        Ok(n) if real => Ok(Token::Real(n)),
        Ok(n) => Ok(Token::Int(n)),
        Err(_) => Err(format!("the number `{}` is too large", &text[start..*at])),
    }
}
