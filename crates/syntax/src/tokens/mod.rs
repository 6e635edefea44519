//! What every front-end but one reads through: tokens, a [`Lexis`] that says what a language's tokens
//! are, a [`Cursor`] over them, and a [`Reader`], a cursor that collects messages. (The words of a
//! `.trench` line stand between blanks and need none of it.)

mod cursor;
mod escapes;
mod lexis;
mod reader;

pub(crate) use cursor::{Cursor, lines};
pub(crate) use escapes::unescape;
pub(crate) use lexis::{Comment, Lexis, Scanner, digits, is_word, run, word};
pub(crate) use reader::{Labelled, Named, Reader, Reported, note};

use wattle_model::Span;

/// Statements and parentheses nested deeper than this are refused: parsers recurse.
pub(crate) const MAX_NESTING: usize = 60;
/// Taller expressions are refused: the model's own operations on expressions recurse.
pub(crate) const MAX_HEIGHT: usize = 120;
/// After this many errors the rest of a file is not worth reporting.
pub(crate) const MAX_ERRORS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Name,
    /// A name in quotes, without them: never a keyword. Escapes are as written.
    Quoted,
    Number,
    /// A name or number behind one of the language's marks (`%`, `$`, `#`), without it.
    Marked(char),
    Symbol,
    /// A string in double quotes, without them. Escapes are as written.
    Text,
    /// The text is what has ended: `the file` or `the line`.
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'t> {
    pub kind: Kind,
    pub text: &'t str,
    pub span: Span,
}

impl Token<'_> {
    /// Whether this is the symbol or keyword.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Symbol | Kind::Name) && self.text == text
    }

    /// Whether this is the keyword, in capitals or not.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Name && self.text.eq_ignore_ascii_case(word)
    }

    /// The token as a message names it.
    pub fn shown(&self) -> String {
        match self.kind {
            Kind::End => format!("the end of {}", self.text),
            Kind::Text => "text in quotes".to_string(),
            Kind::Quoted => format!("the name `{}`", clip(&unescape(self.text))),
            Kind::Marked(mark) => format!("`{mark}{}`", clip(self.text)),
            Kind::Name | Kind::Number | Kind::Symbol => format!("`{}`", clip(self.text)),
        }
    }
}

/// A name short enough for a message.
pub(crate) fn clip(name: &str) -> String {
    match name.char_indices().nth(40) {
        Some((i, _)) => format!("{}…", &name[..i]),
        None => name.to_string(),
    }
}
