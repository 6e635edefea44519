//! Text to tokens. Every byte of the text belongs to a token, a comment or white space; what is none
//! of these is reported once per run of odd characters and skipped.

use super::Collector;
use crate::Diagnostic;
use wattle_model::Span;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A plain identifier, which may be a keyword.
    Word(String),
    /// A name in backquotes: never a keyword.
    Quoted(String),
    /// At most 2⁶³ (so that the least number can be written with its sign).
    Number(u64),
    Text(String),
    /// Operators and punctuation.
    Sign(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Lexeme {
    pub token: Token,
    pub span: Span,
}

/// Longest first: the first that fits is taken.
const SIGNS: &[&str] = &[
    "..=", "..", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "+=", "-=", "{", "}", "[", "]",
    "(", ")", ";", ",", ":", "=", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", "?",
    "@", ".",
];

pub(super) fn lex(text: &str, diagnostics: &mut Collector) -> Vec<Lexeme> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        out: Vec::new(),
        diagnostics,
    };
    lexer.run();
    lexer.out
}

struct Lexer<'t, 'd> {
    text: &'t str,
    at: usize,
    line: usize,
    out: Vec<Lexeme>,
    diagnostics: &'d mut Collector,
}

impl Lexer<'_, '_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn push(&mut self, token: Token, start: usize, line: usize) {
        let span = Span::new(start, self.at, line);
        self.out.push(Lexeme { token, span });
    }

    fn error(&mut self, start: usize, line: usize, message: impl Into<String>) {
        let span = Span::new(start, self.at, line);
        self.diagnostics.push(Diagnostic::error(span, message));
    }

    fn run(&mut self) {
        let mut odd_until = usize::MAX;
        while let Some(b) = self.byte() {
            let (start, line) = (self.at, self.line);
            match b {
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'/' if self.rest().starts_with("//") => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                b'/' if self.rest().starts_with("/*") => self.comment(start, line),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    self.at += run_length(self.rest(), is_word);
                    let word = self.text[start..self.at].to_string();
                    self.push(Token::Word(word), start, line);
                }
                b'0'..=b'9' => self.number(start, line),
                b'"' | b'`' => self.quoted(b, start, line),
                _ => match SIGNS.iter().find(|s| self.rest().starts_with(**s)) {
                    Some(sign) => {
                        self.at += sign.len();
                        self.push(Token::Sign(sign), start, line);
                    }
                    None => {
                        let c = self.rest().chars().next().unwrap_or(' ');
                        self.at += c.len_utf8();
                        if start != odd_until && !c.is_whitespace() {
                            self.error(start, line, format!("unexpected character `{c}`"));
                        }
                        odd_until = self.at;
                    }
                },
            }
        }
        let (at, line) = (self.at, self.line);
        self.push(Token::End, at, line);
    }

    fn comment(&mut self, start: usize, line: usize) {
        match self.rest().find("*/") {
            Some(end) => {
                let lines = self.rest()[..end].bytes().filter(|b| *b == b'\n').count();
                self.line += lines;
                self.at += end + 2;
            }
            None => {
                self.at = start + 2;
                self.error(start, line, "this comment is never closed");
                self.at = self.text.len();
            }
        }
    }

    fn number(&mut self, start: usize, line: usize) {
        self.at += run_length(self.rest(), is_word);
        let digits = self.text[start..self.at].replace('_', "");
        let (radix, body) = match digits.get(..2) {
            Some("0x") => (16, &digits[2..]),
            Some("0b") => (2, &digits[2..]),
            _ => (10, &digits[..]),
        };
        let value = if body.is_empty() || !body.chars().all(|c| c.is_digit(radix)) {
            self.error(start, line, "this is neither a number nor a name");
            0
        } else {
            match u64::from_str_radix(body, radix) {
                Ok(v) if v <= 1 << 63 => v,
                _ => {
                    self.error(start, line, "this number does not fit 64 bits");
                    0
                }
            }
        };
        self.push(Token::Number(value), start, line);
    }

    /// A string or a quoted name; both end on their line.
    fn quoted(&mut self, quote: u8, start: usize, line: usize) {
        let mut value = String::new();
        self.at += 1;
        loop {
            let Some(c) = self.rest().chars().next().filter(|c| *c != '\n') else {
                let what = if quote == b'"' { "string" } else { "name" };
                self.error(start, line, format!("this quoted {what} is never closed"));
                break;
            };
            self.at += c.len_utf8();
            if c == char::from(quote) {
                break;
            }
            if c == '\\' {
                match self.escape() {
                    Some(c) => value.push(c),
                    None => self.error(self.at - 1, line, "unknown escape in quotes"),
                }
            } else {
                value.push(c);
            }
        }
        let token = if quote == b'"' {
            Token::Text(value)
        } else {
            Token::Quoted(value)
        };
        self.push(token, start, line);
    }

    /// After a backslash: `n`, `t`, a quote, a backslash, or `u{hex}`.
    fn escape(&mut self) -> Option<char> {
        let c = self.rest().chars().next().filter(|c| *c != '\n')?;
        self.at += c.len_utf8();
        match c {
            'n' => Some('\n'),
            't' => Some('\t'),
            '"' | '`' | '\\' => Some(c),
            'u' => {
                let hex = self.rest().strip_prefix('{')?;
                let n = run_length(hex, |b| b.is_ascii_hexdigit());
                let value = u32::from_str_radix(&hex[..n], 16).ok();
                let closed = hex[n..].starts_with('}');
                self.at += 1 + n + usize::from(closed);
                value.filter(|_| closed).and_then(char::from_u32)
            }
            _ => None,
        }
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

fn run_length(text: &str, keep: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|b| keep(*b)).count()
}

impl Token {
    /// The token as a message names it.
    pub fn shown(&self) -> String {
        match self {
            Token::Word(w) => format!("`{}`", clipped(w)),
            Token::Quoted(w) => format!("the name `{}`", clipped(w)),
            Token::Number(n) => format!("`{n}`"),
            Token::Text(_) => "a string".to_string(),
            Token::Sign(s) => format!("`{s}`"),
            Token::End => "end of the file".to_string(),
        }
    }
}

fn clipped(word: &str) -> String {
    match word.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &word[..at]),
        None => word.to_string(),
    }
}
