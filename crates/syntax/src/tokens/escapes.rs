//! What is written with a backslash in quotes.

use super::run;

/// What stands after a backslash — `n`, `t`, a quote, a backslash or `u{hex}` — and how many bytes it
/// takes.
pub(super) fn escape(rest: &str) -> (Option<char>, usize) {
    let Some(c) = rest.chars().next().filter(|c| *c != '\n') else {
        return (None, 0);
    };
    match c {
        'n' => (Some('\n'), 1),
        't' => (Some('\t'), 1),
        '"' | '`' | '\\' => (Some(c), 1),
        'u' if rest[1..].starts_with('{') => {
            let hex = &rest[2..];
            let n = run(hex, |c| c.is_ascii_hexdigit());
            let closed = hex[n..].starts_with('}');
            let value = u32::from_str_radix(&hex[..n], 16).ok();
            let value = value.filter(|_| closed).and_then(char::from_u32);
            (value, 2 + n + usize::from(closed))
        }
        _ => (None, c.len_utf8()),
    }
}

/// A quoted text with its escapes replaced; those without a meaning are left out.
pub(crate) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (c, n) = escape(&rest[at + 1..]);
        out.extend(c);
        rest = &rest[at + 1 + n..];
    }
    out.push_str(rest);
    out
}
