//! Tokens of everything after a litmus test's header.

use crate::tokens::{Comment, Kind, Lexis};

pub const LEXIS: Lexis = Lexis {
    symbols: &[
        "/\\", "\\/", "=>", "==", "!=", "<>", "{", "}", "(", ")", "[", "]", ";", ",", "|", ":",
        "=", "~", "&", "*", "+", "-", ".", "?", "@",
    ],
    line_comment: Some("//"),
    comments: &[
        Lexis::ML_COMMENT,
        Comment {
            open: "<<",
            close: ">>",
            nests: false,
        },
    ],
    marks: &[('%', name_length), ('$', immediate_length)],
    quotes: &[('"', Kind::Text)],
    escapes: false,
    number: number_length,
    name: name_length,
};

fn immediate_length(text: &str) -> usize {
    number_length(text).max(name_length(text))
}

/// Decimal or hexadecimal, perhaps negative.
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
