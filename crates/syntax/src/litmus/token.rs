//! Tokens of everything after a litmus test's header. Comments `(* … *)` (nested) and `// …` and
//! blocks `<< … >>` are skipped.

use crate::diagnostics::Diagnostic;
use crate::x86_core::ENOUGH;
use wattle_model::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Name,
    /// `%name`, without the sign.
    Percent,
    /// Decimal or hexadecimal, perhaps negative.
    Number,
    /// `$…`, without the sign.
    Dollar,
    Text,
    Symbol,
    End,
}

#[derive(Clone, Copy, Debug)]
pub struct Token<'t> {
    pub kind: Kind,
    pub text: &'t str,
    pub span: Span,
}

impl Token<'_> {
    pub fn is(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Name && self.text == word
    }

    /// The token as an error message quotes it.
    pub fn shown(&self) -> String {
        match self.kind {
            Kind::End => "the end of the file".to_string(),
            Kind::Percent => format!("`%{}`", self.text),
            Kind::Dollar => format!("`${}`", self.text),
            _ => format!("`{}`", self.text),
        }
    }

    pub fn number(&self) -> Option<i64> {
        matches!(self.kind, Kind::Number | Kind::Dollar)
            .then(|| parse_number(self.text))
            .flatten()
    }
}

/// Decimal or `0x…`; numbers up to 2⁶⁴ are read modulo 2⁶⁴.
pub fn parse_number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let value = match hex {
        Some(h) => u64::from_str_radix(h, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    let value = value as i64;
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

const SYMBOLS: [&str; 25] = [
    "/\\", "\\/", "=>", "==", "!=", "<>", "{", "}", "(", ")", "[", "]", ";", ",", "|", ":", "=",
    "~", "&", "*", "+", "-", ".", "?", "@",
];

pub struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Self {
        Lexer {
            text,
            at: 0,
            line: 1,
        }
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Takes `n` bytes (a character boundary) and counts lines.
    pub fn take(&mut self, n: usize) -> (&'t str, Span) {
        let taken = &self.text[self.at..self.at + n];
        let span = Span::new(self.at, self.at + n, self.line);
        self.line += taken.bytes().filter(|b| *b == b'\n').count();
        self.at += n;
        (taken, span)
    }

    pub fn here(&self) -> Span {
        Span::new(self.at, self.at, self.line)
    }

    /// Skips the comment or block that starts here, if one does.
    pub fn skip_comment(&mut self, diagnostics: &mut Vec<Diagnostic>) -> bool {
        let rest = self.rest();
        if rest.starts_with("//") {
            let n = rest.find('\n').unwrap_or(rest.len());
            self.take(n);
            return true;
        }
        if rest.starts_with("<<") {
            let (n, closed) = match rest.find(">>") {
                Some(n) => (n + 2, true),
                None => (rest.len(), false),
            };
            let (_, span) = self.take(n);
            if !closed {
                let start = Span::new(
                    span.start as usize,
                    span.start as usize + 2,
                    span.line as usize,
                );
                diagnostics
                    .push(Diagnostic::error(start, "this block is not closed").expected("`>>`"));
            }
            return true;
        }
        if !rest.starts_with("(*") {
            return false;
        }
        let bytes = rest.as_bytes();
        let (mut depth, mut i) = (0usize, 0usize);
        while i < bytes.len() {
            match bytes.get(i..i + 2) {
                Some(b"(*") => {
                    depth += 1;
                    i += 2;
                }
                Some(b"*)") => {
                    depth -= 1;
                    i += 2;
                    if depth == 0 {
                        break;
                    }
                }
                _ => i += 1,
            }
        }
        let (_, span) = self.take(i.min(rest.len()));
        if depth > 0 {
            let start = Span::new(
                span.start as usize,
                span.start as usize + 2,
                span.line as usize,
            );
            diagnostics
                .push(Diagnostic::error(start, "this comment is not closed").expected("`*)`"));
        }
        true
    }

    /// All tokens to the end of the text, with an end mark.
    pub fn tokens(mut self, diagnostics: &mut Vec<Diagnostic>) -> Vec<Token<'t>> {
        let mut tokens = Vec::new();
        loop {
            if self.skip_comment(diagnostics) {
                continue;
            }
            let rest = self.rest();
            let Some(first) = rest.chars().next() else {
                break;
            };
            if first.is_whitespace() {
                self.take(first.len_utf8());
                continue;
            }
            let (kind, skip, length) = match first {
                '%' if name_length(&rest[1..]) > 0 => (Kind::Percent, 1, name_length(&rest[1..])),
                '$' if number_length(&rest[1..]) > 0 => {
                    (Kind::Dollar, 1, number_length(&rest[1..]))
                }
                '$' if name_length(&rest[1..]) > 0 => (Kind::Dollar, 1, name_length(&rest[1..])),
                '"' => {
                    let end = rest[1..].find('"').map_or(rest.len(), |n| n + 2);
                    (Kind::Text, 0, end)
                }
                _ if number_length(rest) > 0 => (Kind::Number, 0, number_length(rest)),
                _ if name_length(rest) > 0 => (Kind::Name, 0, name_length(rest)),
                _ => match SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
                    Some(s) => (Kind::Symbol, 0, s.len()),
                    None => {
                        let (text, span) = self.take(first.len_utf8());
                        let message = format!(
                            "the character `{}` has no meaning here",
                            text.escape_debug()
                        );
                        if diagnostics.len() < ENOUGH {
                            diagnostics.push(Diagnostic::error(span, message));
                        }
                        continue;
                    }
                },
            };
            let (text, span) = self.take(skip + length);
            let text = &text[skip..];
            tokens.push(Token { kind, text, span });
        }
        tokens.push(Token {
            kind: Kind::End,
            text: "",
            span: self.here(),
        });
        tokens
    }
}

fn number_length(text: &str) -> usize {
    let sign = usize::from(text.starts_with('-'));
    let digits = &text[sign..];
    let hex = digits.starts_with("0x") || digits.starts_with("0X");
    let (prefix, length) = if hex {
        let rest = &digits[2..];
        (2, rest.bytes().take_while(u8::is_ascii_hexdigit).count())
    } else {
        (0, digits.bytes().take_while(u8::is_ascii_digit).count())
    };
    if length == 0 {
        0
    } else {
        sign + prefix + length
    }
}

/// Letters, digits, `_`, `.`; also `-` and `/` between such.
fn name_length(text: &str) -> usize {
    let word = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(c) if c.is_ascii_alphabetic() || matches!(c, b'_' | b'.') => {}
        _ => return 0,
    }
    let mut n = 1;
    while let Some(c) = bytes.get(n) {
        let joined = matches!(c, b'-' | b'/' | b'.') && bytes.get(n + 1).is_some_and(|d| word(*d));
        if !word(*c) && !joined {
            break;
        }
        n += 1;
    }
    if n == 1 && bytes[0] == b'.' { 0 } else { n }
}
