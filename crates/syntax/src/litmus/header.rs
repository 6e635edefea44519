//! The first lines: architecture, name, doc string, `Key=value` lines, up to the initial state.

use crate::diagnostics::{Diagnostic, nearest};
use crate::tokens::Scanner;

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
pub fn header(scanner: &mut Scanner<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<Header> {
    while scanner.skip_blank(&mut |d| diagnostics.push(d)) {}
    let word = scanner.rest();
    let length = word
        .find(|c: char| c.is_whitespace() || c == '{')
        .unwrap_or(word.len());
    let (word, span) = scanner.take(length);
    let architecture = match word.to_ascii_uppercase().as_str() {
        "X86" => Architecture::X86,
        "X86_64" => Architecture::X86_64,
        _ => {
            diagnostics.push(wrong_language(word, span));
            return None;
        }
    };
    let rest = scanner.rest();
    let line = rest.find('\n').unwrap_or(rest.len());
    let start = rest[..line].len() - rest[..line].trim_start().len();
    scanner.take(start);
    let rest = scanner.rest();
    let length = rest
        .find(|c: char| c.is_whitespace() || c == '{' || c == '"')
        .unwrap_or(rest.len());
    let (name, _) = scanner.take(length);
    let name = name.to_string();
    to_brace(scanner, diagnostics).then_some(Header { architecture, name })
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

/// Skips doc strings and metadata. Only a `{` ends them.
fn to_brace(scanner: &mut Scanner<'_>, diagnostics: &mut Vec<Diagnostic>) -> bool {
    let mut fresh_line = false;
    loop {
        let rest = scanner.rest();
        let Some(c) = rest.chars().next() else {
            let d = Diagnostic::error(scanner.here(0), "the test ends before its initial state");
            diagnostics.push(d.expected("`{ … }`"));
            return false;
        };
        if c == '{' {
            return true;
        }
        if fresh_line && is_metadata(rest) {
            let n = rest.find('\n').unwrap_or(rest.len());
            scanner.take(n);
        } else if c == '"' {
            let n = rest[1..].find('"').map_or(rest.len(), |n| n + 2);
            scanner.take(n);
        } else if !scanner.skip_comment(&mut |d| diagnostics.push(d)) {
            scanner.take(c.len_utf8());
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
