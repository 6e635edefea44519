//! Locks with levels, right and wrong in many ways: relatives of Peterson's filter lock, for whoever proves that
//! somebody stays behind on each level.

use super::Source;
use crate::rng::Rng;

/// What such a lock is written with, in the order of the text.
const PARTS: usize = 13;
type Parts = [&'static str; PARTS];

/// As it is known: levels are numbers from 1 on.
const NUMBERS: Parts = [
    "level[p], victim[p]: p = none",
    "l: int",
    "l = 1;",
    "while l < count(p) {",
    "level[self] = l; fence store;",
    "victim[l] = self;",
    "fence;",
    "q = 0;",
    "loop { if level[q] < l { break; } if victim[l] != self { break; } }",
    "q == count(p) - 1",
    "l = l + 1; }",
    "level[self] = 0;",
    "p[i]@cs && p[j]@cs",
];

/// The same with a level more, and levels that are numbered like threads.
const THREADS: Parts = [
    "level[p]: p = none, victim[p]: p = none",
    "l: p",
    "l = 0;",
    "loop {",
    "level[self] = l; fence store;",
    "victim[l] = self;",
    "fence;",
    "q = 0;",
    "loop { if level[q] < l { break; } if victim[l] != self { break; } }",
    "q == count(p) - 1",
    "if l == count(p) - 1 { break; } l = l + 1; }",
    "level[self] = none;",
    "p[i]@cs && p[j]@cs",
];

/// What may stand in the place of a part.
const INSTEAD: &[(usize, &str)] = &[
    (2, "l = 0;"),
    (2, "l = 2;"),
    (3, "while l < count(p) - 1 {"),
    (3, "while l <= 1 {"),
    (4, "level[self] = l;"),
    (4, "level[self] = l; fence;"),
    (4, "atomic { level[self] = l; }"),
    (4, "v = swap(level[self], l);"),
    (5, "v = swap(victim[l], self);"),
    (5, "victim[self] = l;"),
    (5, "if victim[l] == none { victim[l] = self; }"),
    (5, ""),
    (6, ""),
    (6, "fence store;"),
    (6, "skip;"),
    (7, "q = 1;"),
    (7, "q = l;"),
    (
        8,
        "loop { if level[q] <= l { break; } if victim[l] != self { break; } }",
    ),
    (
        8,
        "loop { if level[q] == l { break; } if victim[l] != self { break; } }",
    ),
    (
        8,
        "loop { if level[q] < l && q < self { break; } if victim[l] != self { break; } }",
    ),
    (
        8,
        "loop { if level[q] < l { break; } if victim[l] == q { break; } }",
    ),
    (
        8,
        "loop { if level[q] < l { break; } if victim[l] == self { break; } }",
    ),
    (
        8,
        "loop { if level[q] < l { break; } v = victim[l]; if v != self { break; } }",
    ),
    (
        8,
        "loop { v = victim[l]; if v != self { break; } if level[q] < l { break; } }",
    ),
    (
        8,
        "loop { if level[q] < l { break; } if v != self { break; } }",
    ),
    (
        8,
        "loop { if level[q] < l { break; } if victim[q] != self { break; } }",
    ),
    (8, "if level[q] >= l { await victim[l] != self; }"),
    (8, "loop { if level[q] < l { break; } }"),
    (9, "q == count(p) - 2"),
    (9, "q == self"),
    (
        10,
        "if l == count(p) - 1 { break; } if self == 1 { break; } l = l + 1; }",
    ),
    (
        10,
        "if l == count(p) - 1 { break; } if self == l { break; } l = l + 1; }",
    ),
    (11, ""),
    (11, "level[self] = 0; victim[0] = none;"),
    (11, "victim[0] = none; level[self] = 0;"),
    (11, "level[self] = 0; fence; l = 1; victim[l] = none;"),
    (12, "p[i]@cs && p[j]@cs && p[k]@cs"),
    (12, "p[i]@cs && p[j]@cs && p[k]@cs"),
];

fn text(parts: &Parts) -> String {
    let [
        cells,
        own,
        first,
        again,
        enter,
        behind,
        fence,
        scan,
        wait,
        last,
        next,
        leave,
        two,
    ] = parts;
    format!(
        "shared {cells};
thread p[*] {{ local q: p, {own}, v: p;
  loop {{ {first} {again} {enter} {behind} {fence} {scan}
    loop {{ if q != self {{ {wait} }} if {last} {{ break; }} q = q + 1; }}
    {next} cs: skip; {leave} }} }}
never {two};\n"
    )
}

/// The locks that are right.
pub fn filter_locks() -> [String; 2] {
    [text(&NUMBERS), text(&THREADS)]
}

/// One of them with a few parts replaced.
pub(super) fn climbing(seed: u64) -> Source {
    let mut rng = Rng::new(seed);
    let mut parts = [NUMBERS, THREADS][rng.below(2)];
    for _ in 0..rng.below(4) {
        let (at, with) = *rng.pick(INSTEAD);
        parts[at] = with;
    }
    Source {
        text: text(&parts),
        sugar: vec!["break", "if", "loop"],
    }
}
