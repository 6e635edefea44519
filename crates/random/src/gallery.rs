//! One small program for each part of the language: what every engine should be able to answer, or to
//! refuse, whatever random programs happen to use.
//!
//! A part of the language is put into five programs, two of a fixed number of threads and three of any
//! number, which are asked for something that holds, for something that does not, and (fixed) for
//! something that only relaxed memory breaks. The last two have little else in them and one
//! question each, for engines that only prove or only break.

use crate::source::Source;

/// Something to put in: declarations, a property of its own, statements, and what leaves no trace.
struct Part {
    shared: &'static str,
    local: &'static str,
    statements: &'static str,
    property: &'static str,
    sugar: &'static [&'static str],
}

const fn step(statements: &'static str) -> Part {
    Part {
        shared: "",
        local: "",
        statements,
        property: "",
        sugar: &[],
    }
}

const fn sweet(statements: &'static str, sugar: &'static [&'static str]) -> Part {
    Part {
        sugar,
        ..step(statements)
    }
}

const fn cell(shared: &'static str, statements: &'static str) -> Part {
    Part {
        shared,
        ..step(statements)
    }
}

const fn register(local: &'static str, statements: &'static str) -> Part {
    Part {
        local,
        ..step(statements)
    }
}

const fn asked(property: &'static str) -> Part {
    Part {
        property,
        ..step("skip;")
    }
}

/// Parts for any program: `s` is a register, `x` and `y` are cells, all from 0 to 3.
const PARTS: &[Part] = &[
    step("skip;"),
    step("s = 1;"),
    step("s = any 0..1;"),
    step("s = any;"),
    step("assume s == 0;"),
    step("assert s == 0;"),
    step("s = x;"),
    step("y = s;"),
    step("fence;"),
    step("fence store;"),
    step("atomic { s = x; x = s; }"),
    step("atomic buffered { s = x; x = s; }"),
    step("lock; s = x; x = s; unlock;"),
    step("s = -s;"),
    step("s = !s;"),
    step("s = ~s + 1;"),
    step("s = u2(s + 1);"),
    step("s = i3(s);"),
    step("s = s + 1;"),
    step("s = 1 - s;"),
    step("s = s * 2;"),
    step("s = s / 2;"),
    step("s = s % 2;"),
    step("s = s & 1;"),
    step("s = s | 1;"),
    step("s = s ^ 1;"),
    step("s = s << 1;"),
    step("s = s >> 1;"),
    // Of constants, for those who treat only what is linear.
    step("s = i3(1);"),
    step("s = 1 | 2;"),
    step("s = 1 << 1;"),
    step("assume s == 0 && s != 1;"),
    step("assume s < 1 || s <= 0;"),
    step("assume !(s > 1) && !(s >= 2);"),
    step("s = s == 0 ? 1 : 0;"),
    cell("z: int", "z = 1; s = z;"),
    cell("z: 0..2", "z = 2; s = z;"),
    cell("z: u2 = 3", "s = z; z = s + 1;"),
    cell("z: i2", "z = 1; s = 0;"),
    cell("z: 0..1 = any", "s = z;"),
    cell("z[2]: 0..3 = {1, 2}", "s = z[0];"),
    cell("z[2]: 0..3", "s = z[s];"),
    cell("z[2]: 0..3", "s = *(&z + 1);"),
    cell("z[2]: 0..3", "s = 0; *(&z) = 1;"),
    register("t: int", "t = 1;"),
    register("t: 0..2", "t = 2;"),
    register("t: u2 = 3", "t = t + 1;"),
    register("t: i2", "t = 1;"),
    sweet("let k = 1; s = k;", &["let"]),
    sweet("if s == 0 { s = 1; } else { s = 2; }", &["if", "else"]),
    sweet("while s < 2 { s = s + 1; }", &["while"]),
    sweet(
        "loop { if s == 1 { break; } s = 1; }",
        &["loop", "break", "if"],
    ),
    sweet(
        "loop { if s == 0 { s = 1; continue; } break; }",
        &["loop", "break", "continue", "if"],
    ),
    sweet("for n in 0..1 { s = n; }", &["for"]),
    sweet("choose { s = 1; } or { s = 2; }", &["choose"]),
    sweet("await s == 0;", &["await"]),
    sweet("goto on; on: skip;", &["goto"]),
    sweet("if s == 1 { stop; }", &["stop", "if"]),
    sweet("s = cas(x, 0, 1);", &["cas"]),
    sweet("s = swap(x, 1);", &["swap"]),
    sweet("s = fetch_add(x, 0);", &["fetch_add"]),
    sweet("atomic begin; s = x; atomic end;", &["atomic begin, end"]),
    asked("always x <= 3;"),
    asked("finally x == 1;"),
    asked("reachable x == 1;"),
    asked("never x == 7;"),
    asked("never *(&x) == 7;"),
    // The same, violated.
    asked("always x <= 0;"),
    asked("never *(&x) == 1;"),
    // Of a cell without stores, for those who refuse to look at memory while stores are pending.
    Part {
        property: "never *(&z) == 7;",
        ..cell("z: 0..3", "s = z;")
    },
    Part {
        property: "never z[1] == 1;",
        ..cell("z[2]: 0..3", "z[1] = 1;")
    },
    Part {
        property: "never z[1] == 3;",
        ..cell("z[2]: 0..3", "z[1] = 1;")
    },
    Part {
        property: "predicates { x == 0; }",
        sugar: &["predicates"],
        ..step("skip;")
    },
];

/// Parts that need a family `p`.
const FAMILY: &[Part] = &[
    step("assume self >= 0;"),
    step("if self == 0 { s = 1; }"),
    step("if count(p) == 0 { s = 1; }"),
    cell("z: p = none", "z = self;"),
    cell("z[p]: 0..3", "z[self] = 1;"),
    cell("z[p]: p = self", "skip;"),
    Part {
        property: "never p[i]@here && z[i] == 3;",
        ..cell("z[p]: 0..3", "z[self] = 1;")
    },
    Part {
        property: "thread o[*] { local r: 0..3; r = x; here: skip; }\nnever o[i]@here && o[i].r == 3;",
        ..step("skip;")
    },
    Part {
        property: "thread o[2] { here: skip; }\n\
                   never o[0]@here && x == 3;\nnever o[i]@here && i == 2;",
        ..register("t: o", "t = 1;")
    },
    cell("z = count(p)", "fetch_add(z, -1);"),
    register("t: p", "t = self;"),
    register("t: p = self", "skip;"),
    asked("never p[i].r == 3;"),
    asked("never p[i]::x == 3;"),
    asked("never p[i]@here && p[i]::x == 1;"),
    asked("never p[i]@here && p[j]@here && p[i].r == 3;"),
    asked("never p[i]@here && p[j]@here && p[k]@here && p[i].r == 3;"),
    asked("never p[i]@here && p[j]@here && i == j;"),
    asked("never p[0]@here && x == 3;"),
    asked("never count(p) == 0;"),
    // The same, violated.
    asked("never p[i]@here && p[j]@here && p[k]@here && x == 1;"),
    asked("never p[i]@here && i == 0;"),
    asked("never p[0]@here;"),
    asked("never p[i]@here && count(p) == 1;"),
    Part {
        property: "thread o[*] { local r: 0..3; r = x; here: skip; }\nnever o[i]@here && o[i].r == 1;",
        ..step("skip;")
    },
    // Of a fixed number of threads, for those who are not asked about deadlock.
    asked(
        "thread o[3] { local r: 0..3; r = x; here: skip; }\nnever o[i]@here && o[j]@here && o[k]@here && o[i].r == 0;",
    ),
    Part {
        property: "never for p[i], p[j]: p[i]@here && p[j]@here && x == 3;",
        sugar: &["announced index variables"],
        ..step("skip;")
    },
    Part {
        sugar: &["scan over threads", "loop", "break", "if"],
        ..register(
            "q: p",
            "q = 0; loop { if q == count(p) - 1 { break; } q = q + 1; }",
        )
    },
];

/// Programs with next to nothing in them, for engines that give up early where there are stores.
const WHOLE: &[&str] = &[
    "shared w: 0..1;
thread p[*] { atomic { assume w == 0; w = 1; } here: skip; atomic { w = 0; } }
never p[i]@here && count(p) == 0;
",
    "shared w: 0..1;
thread p[2] { atomic { assume w == 0; w = 1; } here: skip; atomic { w = 0; } }
never p[i]@here && p[j]@here;
",
    "shared w: u8;
thread p[*] { atomic { assume w == 0; w = 1; } here: skip; }
never p[i]@here && p[j]@here;
",
    "shared w: 0..1;
thread p[*] { atomic { assume w == 0; w = 1; } here: skip; }
thread o[*] { atomic { assume w == 0; w = 1; } here: skip; }
never p[i]@here && o[j]@here;
",
    "shared w: 0..1;
thread p[*] { atomic { assume w == 0; w = 1; } here: skip; }
thread q { atomic { assume w == 0; w = 1; } here: skip; }
never p[i]@here && q@here;
",
];

const IN_FORMS: u64 = GALLERY_FORMS * (PARTS.len() + FAMILY.len()) as u64;

/// The number of programs there are, and the n-th of them.
pub const GALLERY: u64 = IN_FORMS + WHOLE.len() as u64;
/// Programs for each part.
pub const GALLERY_FORMS: u64 = 5;

pub fn gallery(n: u64) -> Option<Source> {
    if let Some(whole) = n.checked_sub(IN_FORMS) {
        let text = WHOLE.get(usize::try_from(whole).ok()?)?.to_string();
        let sugar = Vec::new();
        return Some(Source { text, sugar });
    }
    let (part, form) = (usize::try_from(n / GALLERY_FORMS).ok()?, n % GALLERY_FORMS);
    let part = PARTS.iter().chain(FAMILY).nth(part)?;
    let text = match form {
        0 => fixed(part),
        1 if part.property.contains("p[k]") => family(part, "3", ""),
        1 => family(part, "2", ""),
        2 => family(part, "*", "never p[i]@here && p[i].r == 1;\n"),
        3 => guarded(part, "never p[i]@here && p[j]@here;"),
        _ => guarded(part, "never p[i]@here;"),
    };
    let sugar = part.sugar.to_vec();
    Some(Source { text, sugar })
}

fn declarations(part: &Part) -> (String, String) {
    let shared = match part.shared {
        "" => "shared x: 0..3, y: 0..3;\n".to_string(),
        more => format!("shared x: 0..3, y: 0..3, {more};\n"),
    };
    let local = match part.local {
        "" => "local r: 0..3, s: -4..7;".to_string(),
        more => format!("local r: 0..3, s: -4..7, {more};"),
    };
    (shared, local)
}

/// Two single threads, one of which has the part; where it needs a family, a family of one.
fn fixed(part: &Part) -> String {
    let (shared, local) = declarations(part);
    let statements = part.statements;
    let own = part.property;
    format!(
        "{shared}\
         thread p[1] {{ {local} x = 1; {statements} r = y; here: skip; }}\n\
         thread q {{ local r: 0..3; y = 1; r = x; here: skip; }}\n\
         never p[0]@here && q@here && p[0].r == 0 && q.r == 0;\n\
         never q@here && q.r == 0;\n\
         never q.r == 3;\n\
         {own}\n"
    )
}

fn family(part: &Part, count: &str, more: &str) -> String {
    let (shared, local) = declarations(part);
    let statements = part.statements;
    let own = part.property;
    format!(
        "{shared}\
         thread p[{count}] {{ {local} {statements} x = 1; r = y; y = 1; here: skip; }}\n\
         never p[i]@here && p[i].r == 3;\n\
         never p[i]@here && p[j]@here && p[i].r == 0 && p[j].r == 0;\n\
         {more}{own}\n"
    )
}

/// A spin lock behind the part: it keeps the threads apart, and every thread can get it.
fn guarded(part: &Part, question: &str) -> String {
    let (shared, local) = declarations(part);
    let statements = part.statements;
    let own = part.property;
    format!(
        "{shared}shared w: 0..1;\n\
         thread p[*] {{ {local} {statements} x = 1; atomic {{ assume w == 0; w = 1; }} here: skip; w = 0; }}\n\
         {question}\n\
         {own}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constructs::{CONSTRUCTS, SUGAR, constructs, question_constructs};
    use std::collections::BTreeSet;

    /// Everything parses, and every construct is in it.
    #[test]
    fn everything_is_shown() {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut wrong = Vec::new();
        for n in 0..GALLERY {
            let source = gallery(n).expect("a program");
            let parsed = wattle_syntax::wtl::parse(&source.text);
            let Some(program) = parsed.program else {
                wrong.push(format!("{}\n{:?}", source.text, parsed.diagnostics));
                continue;
            };
            seen.extend(constructs(&program));
            seen.extend(&source.sugar);
            for p in &program.properties {
                seen.extend(question_constructs(Some(p), false));
            }
            seen.extend(question_constructs(None, true));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let all = CONSTRUCTS.iter().chain(SUGAR);
        let missing: Vec<&&str> = all.filter(|c| !seen.contains(**c)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
