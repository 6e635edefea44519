//! A tree spells its own text and no other.

use super::super::{Collector, parser, spelled};

/// Parts of a program that mean different things, where a tree could be taken for another's.
const EXPRESSIONS: &[&str] = &[
    "a",
    "b",
    "-a",
    "!a",
    "~a",
    "*a",
    "- -a",
    "5",
    "-5",
    "-(5)",
    "0x15",
    "0b11",
    "true",
    "`true`",
    "none",
    "`none`",
    "self",
    "`self`",
    "a + b",
    "a - b",
    "a - -b",
    "a + b + c",
    "a + (b + c)",
    "a + b * c",
    "(a + b) * c",
    "((a + b)) * (c)",
    "a * b + c",
    "a - b - c",
    "a - (b - c)",
    "a << b + c",
    "(a << b) + c",
    "a & b == c",
    "a & (b == c)",
    "a == b & c",
    "a == b && c",
    "a && b || c",
    "a && (b || c)",
    "a || b && c",
    "(a || b) && c",
    "!a == b",
    "!(a == b)",
    "-a + b",
    "-(a + b)",
    "a ? b : c",
    "a ? b : c ? a : b",
    "(a ? b : c) ? a : b",
    "a ? (b ? a : c) : b",
    "a + (b ? a : c)",
    "a < b",
    "a <= b",
    "a > b",
    "(a < b) < c",
    "a < (b < c)",
    "u8(a)",
    "i8(a)",
    "u16(a)",
    "u8(a) + b",
    "u8(a + b)",
    "m[a]",
    "m[b]",
    "m[a] + b",
    "m[a + b]",
    "m[(a)]",
    "&a",
    "&m[a]",
    "&m[a] + b",
    "*(a)",
    "*a + b",
    "*(a + b)",
    "count(p)",
    "cas(a, b, c)",
    "cas(a, c, b)",
    "swap(a, b)",
    "fetch_add(a, b)",
    "any",
    "any 0..3",
    "any 0..-3",
    "any a..b + c",
    "call f()",
    "call f(a, b)",
    "call f((a), b)",
    "`u8`",
];

const STATEMENTS: &[&str] = &[
    "skip;",
    "stop;",
    "fence;",
    "fence store;",
    "lock;",
    "unlock;",
    "atomic { skip; }",
    "break;",
    "atomic buffered { skip; }",
    "atomic begin;",
    "atomic buffered begin;",
    "atomic end;",
    "continue;",
    "if a { skip; }",
    "if a { } else { skip; }",
    "if a { skip; } else { if b { } }",
    "{ skip; }",
    "if a { if b { } else { } }",
    "if a { if b { } } else { }",
    "while a { skip; }",
    "loop { skip; }",
    "choose { skip; } or { stop; }",
    "choose { skip; stop; }",
    "choose { skip; } { stop; }",
    "skip; stop;",
    "for i in 0..3 { skip; }",
    "for i in 0..2 { skip; }",
    "for j in 0..3 { skip; }",
    "await a;",
    "assume a;",
    "assert a;",
    "assert a, \"m\";",
    "assert a, \"n\";",
    "l: skip;",
    "l: m: skip;",
    "7: skip;",
    "goto l;",
    "goto 7;",
    "`skip` = a;",
    "let k = a;",
    "{ let k = a; }",
    "{ l: }",
    "{ }",
    "cas(a, b, c);",
];

const DECLARATIONS: &[&str] = &[
    "shared x;",
    "shared x: bool;",
    "shared x: u8;",
    "shared x: `u8`;",
    "shared x: 0..3;",
    "shared x: p;",
    "shared x = 1;",
    "shared x = any;",
    "shared x = `any`;",
    "shared x = {1};",
    "shared x = {1, 1};",
    "shared x[2];",
    "shared x[thread];",
    "shared x[`thread`];",
    "shared x, y;",
    "shared x; shared z;",
    "shared x: object(8);",
    "shared x: struct n;",
    "let x = 1;",
    "never x;",
    "always x;",
    "finally x;",
    "reachable x;",
    "never for p[i]: x;",
    "never for p[i], q[j]: x;",
    "never p@x;",
    "never p.x;",
    "never p[i]@x;",
    "never p[i].x;",
    "predicates { x; y; }",
    "predicates { x; } predicates { z; }",
    "ltl x;",
    "ltl G x;",
    "ltl F x;",
    "ltl G F x;",
    "ltl F G x;",
    "ltl G x U y;",
    "ltl G (x U y);",
    "ltl x U y U z;",
    "ltl (x U y) U z;",
    "ltl x R y;",
    "ltl x W y;",
    "ltl x -> y -> z;",
    "ltl (x -> y) -> z;",
    "ltl x U y && z;",
    "ltl x U (y && z);",
    "ltl G x == y;",
    "ltl (G x) == y;",
    "ltl !G x && y;",
    "ltl !(G x && y);",
    "ltl G U x;",
    "x ~> y;",
    "y ~> x;",
    "progress;",
    "thread p { }",
    "thread q { }",
    "thread p[2] { }",
    "thread p[*] { }",
    "thread p { local r; }",
    "thread p { local r; local s; }",
    "thread p { local r, t; }",
    "thread p { local r: 0..1; }",
    "thread p { let k = 1; local r; }",
    "object \"a.o\";",
    "object \"b.o\";",
    "skip f;",
    "havoc f;",
];

fn texts() -> Vec<String> {
    let expressions = EXPRESSIONS
        .iter()
        .map(|e| format!("thread p {{ r = {e}; }}"));
    let conditions = EXPRESSIONS
        .iter()
        .filter(|e| !["any", "call"].iter().any(|w| e.starts_with(w)));
    let conditions = conditions.map(|e| format!("thread p {{ if {e} {{ }} }}"));
    let statements = STATEMENTS
        .iter()
        .map(|s| format!("thread p {{ local r; {s} }}"));
    let all = expressions.chain(conditions).chain(statements);
    all.chain(DECLARATIONS.iter().map(|d| (*d).to_string()))
        .collect()
}

#[test]
fn a_tree_spells_its_own_text_and_no_other() {
    let texts = texts();
    for text in &texts {
        let mut report = Collector::default();
        let file = parser::parse(text, &mut report);
        assert_eq!(report.errors, 0, "{text}: {:?}", report.list);
        for other in &texts {
            let same = spelled::spells(&file, other).is_ok();
            assert_eq!(same, text == other, "the tree of\n{text}\nand\n{other}");
        }
    }
}

#[test]
fn blanks_comments_and_ways_to_write_a_thing_do_not_matter() {
    let same = [
        ("shared x;", "\u{feff}/* a /* b */ shared // c\n\tx;\r\n"),
        ("shared `a b`;", "shared `a\\u{20}b`;"),
        ("let x = 1_0;", "let x = 10;"),
        ("shared x: 0..3;", "shared x: 0..=3;"),
        ("shared x = {1, 2};", "shared x = {1, 2,};"),
        ("shared x;", "shared x: int;"),
        (
            "thread p { if a { } else { if b { } } }",
            "thread p { if a { } else if b { } }",
        ),
        ("predicates { x; }", "predicates { x }"),
    ];
    for (text, other) in same {
        let mut report = Collector::default();
        let file = parser::parse(text, &mut report);
        assert_eq!(report.errors, 0, "{text}");
        assert_eq!(spelled::spells(&file, other), Ok(()), "{text} and {other}");
    }
}
