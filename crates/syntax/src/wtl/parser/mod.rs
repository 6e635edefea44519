//! Tokens to tree: recursive descent. A construct that cannot be read is reported where it goes
//! wrong and skipped to the next `;`, `}` or declaration, so that one slip hides no other.

mod expressions;
mod items;
mod slips;
mod statements;

use super::Collector;
use super::ast::{File, Name};
use crate::Diagnostic;
use crate::tokens::{Cursor, Kind, Lexis, Token, is_word, run, unescape, word};
use wattle_model::{Span, validate::MAX_DEPTH};

/// Words that name nothing unless quoted. Words with a meaning only in one place (`lock;`, `or`,
/// `in`, `store`, `count(…)`, type names, …) are not among them.
pub(super) use wattle_model::print::RESERVED;

/// Blocks inside blocks. Expressions have [`MAX_DEPTH`].
const MAX_BLOCKS: u32 = 100;

/// The construct was reported and abandoned.
pub(super) struct Failed;

type Result<T> = std::result::Result<T, Failed>;

const LEXIS: Lexis = Lexis {
    symbols: &[
        "..=", "..", "->", "~>", "::", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "+=", "-=",
        "{", "}", "[", "]", "(", ")", ";", ",", ":", "=", "<", ">", "+", "-", "*", "/", "%", "&",
        "|", "^", "!", "~", "?", "@", ".",
    ],
    line_comment: Some("//"),
    comments: &[Lexis::C_COMMENT],
    marks: &[],
    quotes: &[('"', Kind::Text), ('`', Kind::Quoted)],
    escapes: true,
    // What is stuck to digits belongs to them, right or wrong.
    number: |text| word(text, |c| c.is_ascii_digit(), is_word),
    name: |text| run(text, is_word),
};

pub(super) fn parse(text: &str, diagnostics: &mut Collector) -> File {
    let before = diagnostics.errors;
    let tokens = LEXIS.tokens(text, &mut |d| diagnostics.push(d));
    // A name that could not be read is not unknown as well.
    let odd = diagnostics.errors > before;
    let mut parser = Parser {
        cursor: Cursor::new(tokens),
        blocks: 0,
        depth: 0,
        broken_declaration: odd,
        formula: false,
        diagnostics,
    };
    parser.file()
}

struct Parser<'t, 'd> {
    cursor: Cursor<'t>,
    blocks: u32,
    depth: u32,
    /// A declaration inside a thread could not be read.
    broken_declaration: bool,
    /// Operators of time are read.
    formula: bool,
    diagnostics: &'d mut Collector,
}

impl<'t> Parser<'t, '_> {
    fn token(&self) -> Token<'t> {
        self.cursor.peek()
    }

    fn span(&self) -> Span {
        self.token().span
    }

    /// The span of the token before this one.
    fn last_span(&self) -> Span {
        self.cursor.last_span()
    }

    fn advance(&mut self) -> Token<'t> {
        self.cursor.take()
    }

    fn at_end(&self) -> bool {
        self.cursor.at_end()
    }

    fn at(&self, text: &str) -> bool {
        self.cursor.at(text)
    }

    fn eat(&mut self, text: &str) -> bool {
        self.cursor.eat(text)
    }

    fn report(&mut self, d: Diagnostic) -> Failed {
        self.diagnostics.push(d);
        Failed
    }

    /// "unexpected …" at the current token.
    fn unexpected(&mut self, expected: &str) -> Failed {
        let d = self.cursor.unexpected(expected);
        self.report(d)
    }

    fn expect(&mut self, sign: &str) -> Result<Span> {
        if self.at(sign) {
            return Ok(self.advance().span);
        }
        // A missing `;` is best shown where it is missing.
        if sign == ";" && self.last_span().line < self.span().line {
            let after = self.last_span();
            let place = Span {
                start: after.end,
                end: after.end + 1,
                line: after.line,
            };
            // Read on as if it were there: the next line is most likely a statement of its own.
            self.diagnostics
                .push(Diagnostic::error(place, "a `;` is missing here").expected("`;`"));
            return Ok(place);
        }
        let failed = self.unexpected(&format!("`{sign}`"));
        if let Some(hint) = self.slip(sign) {
            self.diagnostics.hint_last(hint);
        }
        Err(failed)
    }

    fn name(&mut self, expected: &str) -> Result<Name> {
        let span = self.span();
        let text = self.token().text;
        match self.token().kind {
            Kind::Quoted => {
                self.advance();
                let text = unescape(text);
                if text.is_empty() {
                    return Err(self.report(Diagnostic::error(span, "a name may not be empty")));
                }
                Ok(Name { text, span })
            }
            Kind::Name if !RESERVED.contains(&text) => {
                self.advance();
                let text = text.to_string();
                Ok(Name { text, span })
            }
            Kind::Name => {
                let quoted = || format!("as a name, write it in backquotes: `` `{text}` ``");
                let hint = self.reserved().unwrap_or_else(quoted);
                Err(self.report(
                    Diagnostic::error(span, format!("`{text}` is a word of the language"))
                        .expected(expected)
                        .hint(hint),
                ))
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// At most 2⁶³, so that the least number can be written with its sign.
    fn number(&mut self) -> u64 {
        let t = self.advance();
        let digits = t.text.replace('_', "");
        let (radix, body) = match digits.get(..2) {
            Some("0x") => (16, &digits[2..]),
            Some("0b") => (2, &digits[2..]),
            _ => (10, &digits[..]),
        };
        let valid = !body.is_empty() && body.chars().all(|c| c.is_digit(radix));
        let value = u64::from_str_radix(body, radix).ok();
        value.filter(|v| *v <= 1 << 63).unwrap_or_else(|| {
            let message = match valid {
                true => "this number does not fit 64 bits",
                false => "this is neither a number nor a name",
            };
            let mut d = Diagnostic::error(t.span, message);
            let plain = digits.trim_end_matches(['u', 'U', 'l', 'L']);
            if !valid && plain.bytes().all(|b| b.is_ascii_digit()) {
                d = d.hint(format!("numbers have no suffix: `{plain}`"));
            }
            self.report(d);
            0
        })
    }

    /// Counts one level of nesting in expressions.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn too_deep(&mut self) -> Failed {
        let span = self.span();
        self.report(
            Diagnostic::error(
                span,
                format!("this expression is nested more than {MAX_DEPTH} levels deep"),
            )
            .hint("compute parts of it into registers first"),
        )
    }

    /// Skips to just after the next `;`, or to a `}` that closes the current block, without
    /// leaving it.
    fn recover(&mut self) {
        let mut open = 0usize;
        while !self.at_end() {
            let t = self.token();
            match (t.kind, t.text) {
                (Kind::Symbol, ";") if open == 0 => {
                    self.advance();
                    return;
                }
                (Kind::Symbol, "{") => open += 1,
                (Kind::Symbol, "}") if open == 0 => return,
                (Kind::Symbol, "}") => {
                    open -= 1;
                    if open == 0 {
                        self.advance();
                        return;
                    }
                }
                (Kind::Name, w) if items::STARTS.contains(&w) && open == 0 => return,
                _ => {}
            }
            self.advance();
        }
    }
}

impl Collector {
    /// Adds a hint to the latest diagnostic, unless it has one.
    pub(super) fn hint_last(&mut self, hint: &str) {
        if let Some(d) = self.list.last_mut() {
            d.hint.get_or_insert_with(|| hint.to_string());
        }
    }
}
