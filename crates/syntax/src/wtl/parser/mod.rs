//! Tokens to tree: recursive descent. A construct that cannot be read is reported where it goes
//! wrong and skipped to the next `;`, `}` or declaration, so that one slip hides no other.

mod expressions;
mod items;
mod statements;

use super::Collector;
use super::ast::{File, Name};
use super::token::{Lexeme, Token};
use crate::Diagnostic;
use wattle_model::{Span, validate::MAX_DEPTH};

/// Words that name nothing unless quoted. Words with a meaning only in one place (`lock;`, `or`,
/// `in`, `store`, `count(…)`, type names, …) are not among them.
pub(super) use wattle_model::print::RESERVED;

/// Blocks inside blocks. Expressions have [`MAX_DEPTH`].
const MAX_BLOCKS: u32 = 100;

/// The construct was reported and abandoned.
pub(super) struct Failed;

type Result<T> = std::result::Result<T, Failed>;

pub(super) fn parse(lexemes: Vec<Lexeme>, diagnostics: &mut Collector) -> File {
    let mut parser = Parser {
        lexemes,
        at: 0,
        blocks: 0,
        depth: 0,
        broken_declaration: false,
        diagnostics,
    };
    parser.file()
}

struct Parser<'d> {
    /// Ends with [`Token::End`].
    lexemes: Vec<Lexeme>,
    at: usize,
    blocks: u32,
    depth: u32,
    /// A declaration inside a thread could not be read.
    broken_declaration: bool,
    diagnostics: &'d mut Collector,
}

impl Parser<'_> {
    fn token(&self) -> &Token {
        &self.lexemes[self.at].token
    }

    fn ahead(&self, n: usize) -> &Token {
        let last = self.lexemes.len() - 1;
        &self.lexemes[(self.at + n).min(last)].token
    }

    fn span(&self) -> Span {
        self.lexemes[self.at].span
    }

    /// The span of the token before this one.
    fn last_span(&self) -> Span {
        self.lexemes[self.at.saturating_sub(1)].span
    }

    fn advance(&mut self) -> Lexeme {
        let lexeme = self.lexemes[self.at].clone();
        if self.at + 1 < self.lexemes.len() {
            self.at += 1;
        }
        lexeme
    }

    fn at_end(&self) -> bool {
        *self.token() == Token::End
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.token(), Token::Sign(s) if *s == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), Token::Word(w) if w == word)
    }

    fn ahead_is_sign(&self, n: usize, sign: &str) -> bool {
        matches!(self.ahead(n), Token::Sign(s) if *s == sign)
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn report(&mut self, d: Diagnostic) -> Failed {
        self.diagnostics.push(d);
        Failed
    }

    /// "unexpected …" at the current token.
    fn unexpected(&mut self, expected: &str) -> Failed {
        let message = format!("unexpected {}", self.token().shown());
        let span = self.span();
        self.report(Diagnostic::error(span, message).expected(expected))
    }

    fn expect(&mut self, sign: &str) -> Result<Span> {
        if self.is_sign(sign) {
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
        if sign == "{" && self.is_sign("=") {
            self.diagnostics.hint_last("equality is `==`");
        }
        Err(failed)
    }

    fn name(&mut self, expected: &str) -> Result<Name> {
        let span = self.span();
        match self.token().clone() {
            Token::Quoted(text) => {
                self.advance();
                if text.is_empty() {
                    return Err(self.report(Diagnostic::error(span, "a name may not be empty")));
                }
                Ok(Name { text, span })
            }
            Token::Word(text) if !RESERVED.contains(&text.as_str()) => {
                self.advance();
                Ok(Name { text, span })
            }
            Token::Word(text) => Err(self.report(
                Diagnostic::error(span, format!("`{text}` is a word of the language"))
                    .expected(expected)
                    .hint(format!("as a name, write it in backquotes: `` `{text}` ``")),
            )),
            _ => Err(self.unexpected(expected)),
        }
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
            match self.token() {
                Token::Sign(";") if open == 0 => {
                    self.advance();
                    return;
                }
                Token::Sign("{") => open += 1,
                Token::Sign("}") if open == 0 => return,
                Token::Sign("}") => {
                    open -= 1;
                    if open == 0 {
                        self.advance();
                        return;
                    }
                }
                Token::Word(w) if items::STARTS.contains(&w.as_str()) && open == 0 => return,
                _ => {}
            }
            self.advance();
        }
    }
}
