//! Inputs from seeds: bytes, words, lines, splices, repetition, deep nesting, huge numbers.

use crate::seeds::{Seeds, words};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Inputs are cut to this many bytes.
const LONGEST: usize = 128 * 1024;

/// Things that parsers tend to trip over.
const NASTY: [&str; 34] = [
    "0",
    "-1",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "99999999999999999999999999",
    "1048577",
    "(",
    ")",
    "((((((((((((((((",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "`",
    "\\",
    "/*",
    "*/",
    "(*",
    "*)",
    "//",
    "#",
    ";",
    ":",
    "\0",
    "\u{feff}",
    "é",
    "\u{1f600}",
    "\r\n",
    "..",
];

/// The input with this number.
pub fn input(seeds: &Seeds, seed: u64, number: u64) -> String {
    let mut rng = SmallRng::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut bytes = pick(&seeds.texts, &mut rng).as_bytes().to_vec();
    // Mostly one or two changes: more of them leave few programs to look at.
    for _ in 0..=rng.random::<u8>().trailing_zeros() {
        step(&mut bytes, seeds, &mut rng);
        bytes.truncate(LONGEST);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn pick<'a>(all: &'a [String], rng: &mut SmallRng) -> &'a str {
    all.choose(rng).map_or("", String::as_str)
}

fn step(bytes: &mut Vec<u8>, seeds: &Seeds, rng: &mut SmallRng) {
    match rng.random_range(0..13) {
        0 => flip(bytes, rng),
        1 => {
            let (a, b) = range(bytes.len(), 200, rng);
            bytes.drain(a..b);
        }
        2 => {
            let (a, b) = range(bytes.len(), 400, rng);
            let copy = bytes[a..b].to_vec();
            insert(bytes, &copy, rng);
        }
        3 => bytes.truncate(rng.random_range(0..=bytes.len())),
        4 => splice(bytes, pick(&seeds.texts, rng).as_bytes(), rng),
        5 => {
            let word = pick(&seeds.words, rng).to_string();
            insert(bytes, word.as_bytes(), rng);
        }
        6 => insert(bytes, NASTY.choose(rng).unwrap_or(&"").as_bytes(), rng),
        7..=9 => replace_word(bytes, seeds, rng),
        10 => swap_words(bytes, rng),
        11 => repeat(bytes, seeds, rng),
        _ => line(bytes, rng),
    }
}

fn flip(bytes: &mut [u8], rng: &mut SmallRng) {
    if let Some(last) = bytes.len().checked_sub(1) {
        bytes[rng.random_range(0..=last)] ^= 1 << rng.random_range(0..8);
    }
}

fn range(length: usize, most: usize, rng: &mut SmallRng) -> (usize, usize) {
    let a = rng.random_range(0..=length);
    (a, (a + rng.random_range(0..=most)).min(length))
}

fn insert(bytes: &mut Vec<u8>, piece: &[u8], rng: &mut SmallRng) {
    let at = rng.random_range(0..=bytes.len());
    bytes.splice(at..at, piece.iter().copied());
}

/// The head of one text and the tail of another.
fn splice(bytes: &mut Vec<u8>, other: &[u8], rng: &mut SmallRng) {
    bytes.truncate(rng.random_range(0..=bytes.len()));
    bytes.extend_from_slice(&other[rng.random_range(0..=other.len())..]);
}

/// The place of some word.
fn word(bytes: &[u8], rng: &mut SmallRng) -> Option<(usize, usize)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let all: Vec<&str> = words(text).collect();
    let w = all.choose(rng)?;
    let start = w.as_ptr() as usize - text.as_ptr() as usize;
    Some((start, start + w.len()))
}

fn replace_word(bytes: &mut Vec<u8>, seeds: &Seeds, rng: &mut SmallRng) {
    let Some((a, b)) = word(bytes, rng) else {
        return;
    };
    let new = match rng.random_range(0..4) {
        0 => NASTY.choose(rng).unwrap_or(&"").to_string(),
        1 => rng.random_range(-3..70_000i64).to_string(),
        _ => pick(&seeds.words, rng).to_string(),
    };
    bytes.splice(a..b, new.into_bytes());
}

fn swap_words(bytes: &mut Vec<u8>, rng: &mut SmallRng) {
    let (Some(x), Some(y)) = (word(bytes, rng), word(bytes, rng)) else {
        return;
    };
    let (x, y) = (x.min(y), x.max(y));
    if x.1 <= y.0 {
        let (a, b) = (bytes[x.0..x.1].to_vec(), bytes[y.0..y.1].to_vec());
        bytes.splice(y.0..y.1, a);
        bytes.splice(x.0..x.1, b);
    }
}

/// A word or a few, many times: deep nesting, long chains.
fn repeat(bytes: &mut Vec<u8>, seeds: &Seeds, rng: &mut SmallRng) {
    let mut unit = String::new();
    for _ in 0..rng.random_range(1..=5) {
        let piece = match rng.random_range(0..3) {
            0 => NASTY.choose(rng).copied().unwrap_or(""),
            _ => pick(&seeds.words, rng),
        };
        unit.push_str(piece);
        unit.push(' ');
    }
    let times = *[3, 70, 500, 20_000].choose(rng).unwrap_or(&3);
    let times = times.min(LONGEST / 2 / unit.len().max(1));
    insert(bytes, unit.repeat(times).as_bytes(), rng);
}

/// A line deleted, doubled or moved.
fn line(bytes: &mut Vec<u8>, rng: &mut SmallRng) {
    let mut lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    if lines.is_empty() {
        return;
    }
    let a = rng.random_range(0..lines.len());
    match rng.random_range(0..3) {
        0 => drop(lines.remove(a)),
        1 => {
            let times = rng.random_range(1..=40);
            let copies: Vec<Vec<u8>> = vec![lines[a].clone(); times];
            lines.splice(a..a, copies);
        }
        _ => {
            let b = rng.random_range(0..lines.len());
            lines.swap(a, b);
        }
    }
    *bytes = lines.concat();
}
