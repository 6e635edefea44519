//! Large and odd inputs are answered, quickly and without a panic.

use super::parse;
use std::fmt::Write;

#[test]
fn deep_nesting_is_refused() {
    let deep = 100_000;
    for text in [
        format!(
            "thread p {{ assume {}1{}; }}",
            "(".repeat(deep),
            ")".repeat(deep)
        ),
        format!("thread p {{ assume {}1; }}", "!".repeat(deep)),
        format!("thread p {{ assume 1{}; }}", " + 1".repeat(deep)),
        format!("thread p {{ assume 1{}; }}", " ? 1 : 1".repeat(deep)),
        format!(
            "shared x; thread p {{ assume {}0{}; }}",
            "x[".repeat(deep),
            "]".repeat(deep)
        ),
        format!(
            "thread p {{ {} skip; {} }}",
            "loop {".repeat(deep),
            "}".repeat(deep)
        ),
        format!("thread p {{ {} {{ }} }}", "if 1 { } else ".repeat(deep)),
        format!("never {}x", "p[".repeat(deep)),
        "thread p {".repeat(deep),
        "{".repeat(deep),
        "}".repeat(deep),
    ] {
        let parsed = parse(&text);
        assert!(parsed.program.is_none());
        assert!(!parsed.diagnostics.is_empty());
        let _ = parsed.render("deep.wtl", &text);
    }
}

#[test]
fn growth_is_refused() {
    let mut doubling = "thread p { let a0 = self;".to_string();
    for i in 0..200 {
        let _ = write!(doubling, " let a{} = a{i} + a{i};", i + 1);
    }
    doubling.push('}');
    for text in [
        "thread p { for i in 0..999999999999 { skip; } }",
        "thread p { for i in 0..999999999999 { } }",
        "thread p { for i in 0..9999 { for j in 0..9999 { skip; } } }",
        &doubling,
    ] {
        assert!(parse(text).program.is_none());
    }
}

#[test]
fn large_files_are_answered() {
    let lines = 50_000;
    let mut good = "shared x; thread p { local r;\n".to_string();
    for _ in 0..lines {
        good.push_str("r = x + r; x = 1;\n");
    }
    good.push('}');
    assert!(parse(&good).program.is_some());

    let mut names = String::new();
    for i in 0..lines {
        let _ = writeln!(
            names,
            "shared x{i}; thread p{i} {{ y{i} = 1; l: x{i} = 2; goto l; }}"
        );
    }
    let parsed = parse(&names);
    assert_eq!(parsed.diagnostics.len(), 101);

    let loads = format!("shared x; thread p {{ x = x{}; }}", " + x".repeat(lines));
    assert!(parse(&loads).program.is_none());
    let garbage = "€ ; 1 } { shared ".repeat(lines);
    assert!(parse(&garbage).program.is_none());
    let labels = (0..lines).fold("thread p {".to_string(), |mut t, i| {
        let _ = write!(t, " l{i}: goto l{};", (i * 7919) % lines);
        t
    });
    assert!(parse(&(labels + " }")).program.is_some());
}

#[test]
fn any_prefix_and_any_hole_is_answered() {
    let text = "let N = 2; shared a[N]: 0..3 = {1, any}, b: p = none; thread p[*] { local r: u8;
        l: choose { r = a[self] ? 1 : -0x1f; } or { atomic { b = cas(b, 1, 2); } }
        for i in 0..N - 1 { await !(b == 1 || *(&a[i]) > 2); } assert r == 0, \"w\\u{e9}\";
        7: goto 7; } never for p[i]: p[i]@l && p[0].r == `a`[i]; predicates { b == 0; }";
    for end in 0..text.len() {
        let _ = parse(&text[..end]);
        for width in [1, 2, 5] {
            let rest = text.get(end + width..).unwrap_or("");
            let holed = format!("{}{rest}", &text[..end]);
            let parsed = parse(&holed);
            assert_eq!(
                parsed.program.is_none(),
                parsed
                    .diagnostics
                    .iter()
                    .any(|d| { d.severity == crate::Severity::Error })
            );
            let _ = parsed.render("hole.wtl", &holed);
        }
    }
}
