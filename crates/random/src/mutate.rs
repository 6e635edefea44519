//! Broken texts: what a parser must survive.

use crate::rng::Rng;

/// Pieces that parsers may trip over.
const PIECES: &[&str] = &[
    "",
    " ",
    "\n",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ":",
    ",",
    "=",
    "==",
    "..",
    "&&",
    "||",
    "-",
    "*",
    "@",
    ".",
    "`",
    "\"",
    "/*",
    "//",
    "(*",
    "0",
    "-1",
    "9223372036854775808",
    "99999999999999999999",
    "0x",
    "é",
    "\u{0}",
    "\u{202e}",
    "\\",
    "%",
    "#",
    "<<",
    "~",
];

/// The text with one to four changes: a piece cut out, doubled, moved, or replaced.
pub fn mutate(text: &str, rng: &mut Rng) -> String {
    let mut text = text.to_string();
    for _ in 0..1 + rng.below(4) {
        let (a, b) = range(&text, rng);
        let piece = match rng.below(5) {
            0 => String::new(),
            1 => text[a..b].repeat(2),
            2 => {
                let (c, d) = range(&text, rng);
                text[c..d].to_string()
            }
            _ => (*rng.pick(PIECES)).to_string(),
        };
        text.replace_range(a..b, &piece);
    }
    text
}

/// A random part: a few characters, a line, or now and then anything.
fn range(text: &str, rng: &mut Rng) -> (usize, usize) {
    let mut a = rng.below(text.len() + 1);
    let length = match rng.below(8) {
        0 => rng.below(text.len() + 1),
        1 | 2 => rng.below(40),
        _ => rng.below(6),
    };
    let mut b = (a + length).min(text.len());
    while !text.is_char_boundary(a) {
        a -= 1;
    }
    while !text.is_char_boundary(b) {
        b += 1;
    }
    (a, b)
}
