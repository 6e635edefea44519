//! Text to tokens. Every character belongs to a token, a comment or white space; what is none of
//! these is reported once per run of such characters and skipped.

use super::escapes::escape;
use super::{Kind, Token};
use crate::diagnostics::Diagnostic;
use wattle_model::Span;

/// What tokens a language has. Tried in this order: comments, marks, quotes, numbers, names, symbols.
pub(crate) struct Lexis {
    /// Longer symbols before their prefixes.
    pub symbols: &'static [&'static str],
    /// What starts a comment that ends with its line.
    pub line_comment: Option<&'static str>,
    pub comments: &'static [Comment],
    /// Characters that give what follows a kind of its own, and how many bytes of it belong to it.
    pub marks: &'static [(char, Length)],
    /// Quotes, each ended by the same character on its line, and whether `\` escapes.
    pub quotes: &'static [(char, Kind)],
    pub escapes: bool,
    pub number: Length,
    pub name: Length,
}

/// How many bytes of a text's start belong to a token; 0 if none starts there.
type Length = fn(&str) -> usize;

pub(crate) struct Comment {
    pub open: &'static str,
    pub close: &'static str,
    pub nests: bool,
}

impl Lexis {
    /// `/* … */`
    pub const C_COMMENT: Comment = Comment {
        open: "/*",
        close: "*/",
        nests: false,
    };
    /// `(* … *)`
    pub const ML_COMMENT: Comment = Comment {
        open: "(*",
        close: "*)",
        nests: true,
    };

    /// All tokens of a text, with an end mark.
    pub fn tokens<'t>(
        &'static self,
        text: &'t str,
        report: &mut dyn FnMut(Diagnostic),
    ) -> Vec<Token<'t>> {
        Scanner::new(self, text).tokens(report)
    }
}

pub(crate) struct Scanner<'t> {
    lexis: &'static Lexis,
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Scanner<'t> {
    pub fn new(lexis: &'static Lexis, text: &'t str) -> Self {
        Scanner {
            lexis,
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
        let span = self.here(n);
        self.line += taken.bytes().filter(|b| *b == b'\n').count();
        self.at += n;
        (taken, span)
    }

    /// The next `n` bytes.
    pub fn here(&self, n: usize) -> Span {
        Span::new(self.at, self.at + n, self.line)
    }

    /// Skips white space and comments; false if there are none here.
    pub fn skip_blank(&mut self, report: &mut dyn FnMut(Diagnostic)) -> bool {
        let rest = self.rest();
        let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
        let n = run(rest, blank);
        self.take(n);
        if n > 0 {
            return true;
        }
        self.skip_comment(report)
    }

    pub fn skip_comment(&mut self, report: &mut dyn FnMut(Diagnostic)) -> bool {
        let rest = self.rest();
        if self.lexis.line_comment.is_some_and(|s| rest.starts_with(s)) {
            self.take(rest.find('\n').unwrap_or(rest.len()));
            return true;
        }
        let all = self.lexis.comments;
        let Some(comment) = all.iter().find(|c| rest.starts_with(c.open)) else {
            return false;
        };
        let (mut depth, mut n) = (1usize, comment.open.len());
        while depth > 0 && n < rest.len() {
            let tail = &rest.as_bytes()[n..];
            if tail.starts_with(comment.close.as_bytes()) {
                depth -= 1;
                n += comment.close.len();
            } else if comment.nests && tail.starts_with(comment.open.as_bytes()) {
                depth += 1;
                n += comment.open.len();
            } else {
                n += 1;
            }
        }
        if depth > 0 {
            let open = self.here(comment.open.len());
            let d = Diagnostic::error(open, "this comment is never closed");
            report(d.expected(format!("`{}`", comment.close)));
        }
        self.take(n);
        true
    }

    /// All tokens to the end of the text, with an end mark after the last that is not blank.
    pub fn tokens(mut self, report: &mut dyn FnMut(Diagnostic)) -> Vec<Token<'t>> {
        let mut tokens: Vec<Token<'t>> = Vec::new();
        let mut odd_until = usize::MAX;
        loop {
            while self.skip_blank(report) {}
            let rest = self.rest();
            let Some(first) = rest.chars().next() else {
                break;
            };
            let token = match self.token(rest, first) {
                Some((Kind::Text | Kind::Quoted, _, _)) => self.quoted(first, report),
                Some((kind, skip, length)) => {
                    let (text, span) = self.take(skip + length);
                    let text = &text[skip..];
                    Token { kind, text, span }
                }
                None => {
                    let follows = self.at == odd_until;
                    // A word with letters of another alphabet is one error, and one word.
                    let glued = tokens.last().is_some_and(|t: &Token<'_>| {
                        t.kind == Kind::Name && t.span.end as usize == self.at
                    });
                    let letters = |c: char| c.is_alphanumeric() || c == '_';
                    if first.is_alphabetic() {
                        let rest = rest.len() - rest.trim_start_matches(letters).len();
                        let start = match glued {
                            true => tokens.pop().map(|t| t.span),
                            false => None,
                        };
                        let (_, end) = self.take(rest);
                        let span = start.map_or(end, |s| s.to(end));
                        let text = &self.text[span.start as usize..span.end as usize];
                        let message = format!("`{text}` has letters that names do not have");
                        let hint = "names are made of the letters a to z, digits and `_`";
                        report(Diagnostic::error(span, message).hint(hint));
                        tokens.push(Token {
                            kind: Kind::Name,
                            text,
                            span,
                        });
                        continue;
                    }
                    let letter = quoted_letter(rest);
                    let (text, span) = self.take(letter.unwrap_or(first.len_utf8()));
                    if !follows {
                        let shown = match first.is_control() {
                            true => first.escape_debug().to_string(),
                            false => text.to_string(),
                        };
                        let message = format!("unexpected character `{shown}`");
                        let d = Diagnostic::error(span, message);
                        report(match letter {
                            Some(_) => d.hint("values are numbers"),
                            None => d,
                        });
                    }
                    if letter.is_some() {
                        let (kind, text) = (Kind::Number, "0");
                        tokens.push(Token { kind, text, span });
                        continue;
                    }
                    odd_until = self.at;
                    continue;
                }
            };
            tokens.push(token);
        }
        let end = self.text.trim_end().len();
        let after = self.text[end..].bytes().filter(|b| *b == b'\n').count();
        tokens.push(Token {
            kind: Kind::End,
            text: "the file",
            span: Span::new(end, end, self.line - after),
        });
        tokens
    }

    /// The kind of the token that starts here, how many bytes to leave out, how many to take.
    fn token(&self, rest: &str, first: char) -> Option<(Kind, usize, usize)> {
        let lexis = self.lexis;
        if let Some((mark, length)) = lexis.marks.iter().find(|(m, _)| *m == first) {
            let skip = mark.len_utf8();
            let n = length(&rest[skip..]);
            if n > 0 {
                return Some((Kind::Marked(*mark), skip, n));
            }
        }
        if let Some((_, kind)) = lexis.quotes.iter().find(|(q, _)| *q == first) {
            return Some((*kind, 0, 0));
        }
        for (kind, length) in [(Kind::Number, lexis.number), (Kind::Name, lexis.name)] {
            let n = length(rest);
            if n > 0 {
                return Some((kind, 0, n));
            }
        }
        let symbol = lexis.symbols.iter().find(|s| rest.starts_with(**s))?;
        Some((Kind::Symbol, 0, symbol.len()))
    }

    /// A string or a quoted name; both end on their line.
    fn quoted(&mut self, quote: char, report: &mut dyn FnMut(Diagnostic)) -> Token<'t> {
        let found = self.lexis.quotes.iter().find(|(q, _)| *q == quote);
        let kind = found.map_or(Kind::Text, |(_, kind)| *kind);
        let rest = self.rest();
        let mut n = quote.len_utf8();
        let start = n;
        while let Some(c) = rest[n..].chars().next().filter(|c| *c != '\n') {
            if c == quote {
                let (_, span) = self.take(n + quote.len_utf8());
                let text = &rest[start..n];
                return Token { kind, text, span };
            }
            n += c.len_utf8();
            if c == '\\' && self.lexis.escapes {
                let (found, length) = escape(&rest[n..]);
                if found.is_none() {
                    let span = Span::new(self.at + n, self.at + n + length, self.line);
                    report(Diagnostic::error(span, "unknown escape in quotes"));
                }
                n += length;
            }
        }
        let what = match kind {
            Kind::Quoted => "name",
            _ => "string",
        };
        let (_, span) = self.take(n);
        let message = format!("this quoted {what} is never closed");
        report(Diagnostic::error(span, message).expected(format!("`{quote}`")));
        let text = &rest[start..n];
        Token { kind, text, span }
    }
}

/// How many bytes from the start are such characters.
pub(crate) fn run(text: &str, keep: impl Fn(char) -> bool) -> usize {
    text.find(|c| !keep(c)).unwrap_or(text.len())
}

/// A character that may begin a word, and the run of others after it.
pub(crate) fn word(
    text: &str,
    begins: impl Fn(char) -> bool,
    keep: impl Fn(char) -> bool,
) -> usize {
    match text.chars().next() {
        Some(c) if begins(c) => c.len_utf8() + run(&text[c.len_utf8()..], keep),
        _ => 0,
    }
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

pub(crate) fn digits(text: &str) -> usize {
    run(text, |c| c.is_ascii_digit())
}

/// How long `'a'` or `'\n'` is, if the text begins with one.
fn quoted_letter(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    let letter = inner.strip_prefix('\\').unwrap_or(inner);
    let end = letter
        .chars()
        .next()
        .filter(|c| !c.is_control())?
        .len_utf8();
    let taken = inner.len() - letter.len() + end;
    inner[taken..].starts_with('\'').then_some(taken + 2)
}
