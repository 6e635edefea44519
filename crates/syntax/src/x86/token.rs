//! Tokens of one line. `;` starts a comment.

use crate::diagnostics::Diagnostic;
use crate::x86_core::ENOUGH;
use wattle_model::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Name,
    /// `$name`, without the sign.
    Thread,
    Number,
    Symbol,
    /// The end of the line.
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
        self.kind == Kind::Name && self.text.eq_ignore_ascii_case(word)
    }

    pub fn shown(&self) -> String {
        match self.kind {
            Kind::End => "the end of the line".to_string(),
            Kind::Thread => format!("`${}`", self.text),
            _ => format!("`{}`", self.text),
        }
    }
}

const SYMBOLS: [&str; 21] = [
    "&&", "||", "<>", "<=", ">=", "==", "!=", "<", ">", "=", "[", "]", ",", ":", "+", "-", "!",
    "(", ")", "*", "?",
];

/// The tokens of every line that has any, each line with its end mark.
pub fn lines<'t>(text: &'t str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Vec<Token<'t>>> {
    let mut all = Vec::new();
    let mut start = 0;
    for (number, line) in text.split('\n').enumerate() {
        let code = line.split(';').next().unwrap_or("");
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(first) = code[at..].chars().next() {
            let rest = &code[at..];
            let span = |n: usize| Span::new(start + at, start + at + n, number + 1);
            let (kind, skip, length) = match first {
                c if c.is_whitespace() || c == '\u{feff}' => {
                    at += c.len_utf8();
                    continue;
                }
                '$' if name_length(&rest[1..]) > 0 => (Kind::Thread, 1, name_length(&rest[1..])),
                c if c.is_ascii_digit() => {
                    let n = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
                    (Kind::Number, 0, n)
                }
                _ if name_length(rest) > 0 => (Kind::Name, 0, name_length(rest)),
                _ => match SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
                    Some(s) => (Kind::Symbol, 0, s.len()),
                    None => {
                        let n = first.len_utf8();
                        let shown = first.escape_debug();
                        let message = format!("the character `{shown}` has no meaning here");
                        if diagnostics.len() < ENOUGH {
                            diagnostics.push(Diagnostic::error(span(n), message));
                        }
                        at += n;
                        continue;
                    }
                },
            };
            tokens.push(Token {
                kind,
                text: &rest[skip..skip + length],
                span: span(skip + length),
            });
            at += skip + length;
        }
        if !tokens.is_empty() {
            let end = start + code.trim_end().len();
            tokens.push(Token {
                kind: Kind::End,
                text: "",
                span: Span::new(end, end, number + 1),
            });
            all.push(tokens);
        }
        start += line.len() + 1;
    }
    all
}

fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(c) if c.is_ascii_alphabetic() || matches!(c, b'_' | b'.') => {}
        _ => return 0,
    }
    let word = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.');
    bytes.iter().take_while(|c| word(c)).count()
}

/// `10`, `0x1F`, `1Fh`.
pub fn parse_number(text: &str) -> Option<i64> {
    let lower = text.to_ascii_lowercase();
    let value = if let Some(hex) = lower.strip_prefix("0x") {
        u64::from_str_radix(hex, 16).ok()?
    } else if let Some(hex) = lower.strip_suffix('h') {
        u64::from_str_radix(hex, 16).ok()?
    } else {
        lower.parse::<u64>().ok()?
    };
    Some(value as i64)
}
