//! The first lines: architecture, name, doc string, `Key=value` lines, up to the initial state.

use super::token::Lexer;
use crate::diagnostics::{Diagnostic, nearest};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    X86,
    X86_64,
}

pub struct Header {
    pub architecture: Architecture,
    pub name: String,
}

/// Other first words of litmus tests.
const OTHERS: [&str; 14] = [
    "AArch64", "ARM", "PPC", "RISCV", "MIPS", "C", "CPP", "LISA", "Bell", "BPF", "JAVA", "ASL",
    "PTX", "SPARC",
];

/// Reads the header and stops at the `{` of the initial state.
pub fn header(lexer: &mut Lexer<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<Header> {
    skip_blank(lexer, diagnostics);
    let word = lexer.rest();
    let length = word
        .find(|c: char| c.is_whitespace() || c == '{')
        .unwrap_or(word.len());
    let (word, span) = lexer.take(length);
    let architecture = match word.to_ascii_uppercase().as_str() {
        "X86" => Architecture::X86,
        "X86_64" => Architecture::X86_64,
        _ => {
            diagnostics.push(wrong_language(word, span));
            return None;
        }
    };
    let rest = lexer.rest();
    let line = rest.find('\n').unwrap_or(rest.len());
    let start = rest[..line].len() - rest[..line].trim_start().len();
    lexer.take(start);
    let rest = lexer.rest();
    let length = rest
        .find(|c: char| c.is_whitespace() || c == '{' || c == '"')
        .unwrap_or(rest.len());
    let (name, _) = lexer.take(length);
    let name = name.to_string();
    to_brace(lexer, diagnostics).then_some(Header { architecture, name })
}

fn wrong_language(word: &str, span: wattle_model::Span) -> Diagnostic {
    let d = Diagnostic::error(span, "this is not an x86 litmus test")
        .expected("`X86 name` or `X86_64 name` on the first line");
    if OTHERS.contains(&word) {
        return d.hint(format!(
            "litmus tests for `{word}` are not supported, only x86 ones"
        ));
    }
    match nearest(word, ["X86", "X86_64"]) {
        Some(near) => d.hint(format!("did you mean `{near}`?")),
        None => d.hint("name the language with `--lang` if the extension misleads"),
    }
}

fn skip_blank(lexer: &mut Lexer<'_>, diagnostics: &mut Vec<Diagnostic>) {
    loop {
        let rest = lexer.rest();
        match rest.chars().next() {
            Some(c) if c.is_whitespace() || c == '\u{feff}' => {
                lexer.take(c.len_utf8());
            }
            _ if lexer.skip_comment(diagnostics) => {}
            _ => return,
        }
    }
}

/// Skips doc strings and metadata. Only a `{` ends them.
fn to_brace(lexer: &mut Lexer<'_>, diagnostics: &mut Vec<Diagnostic>) -> bool {
    let mut fresh_line = false;
    loop {
        let rest = lexer.rest();
        let Some(c) = rest.chars().next() else {
            let d = Diagnostic::error(lexer.here(), "the test ends before its initial state");
            diagnostics.push(d.expected("`{ … }`"));
            return false;
        };
        if c == '{' {
            return true;
        }
        if fresh_line && is_metadata(rest) {
            let n = rest.find('\n').unwrap_or(rest.len());
            lexer.take(n);
        } else if c == '"' {
            let n = rest[1..].find('"').map_or(rest.len(), |n| n + 2);
            lexer.take(n);
        } else if !lexer.skip_comment(diagnostics) {
            lexer.take(c.len_utf8());
            if !c.is_whitespace() {
                fresh_line = false;
            }
        }
        if c == '\n' {
            fresh_line = true;
        }
    }
}

/// Whether a line `Key=…` starts here.
fn is_metadata(rest: &str) -> bool {
    let word = rest
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
        .count();
    word > 0
        && rest[word..]
            .trim_start_matches([' ', '\t'])
            .starts_with('=')
}
