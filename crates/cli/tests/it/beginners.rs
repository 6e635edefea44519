//! The first mistakes of people who come from C: each gets one message, and the hint that helps.

use crate::support::{Scratch, run};

/// A program with a slip in the body of a thread.
fn body(slip: &str) -> String {
    format!("shared x, y;\nthread p {{\n    local r;\n    {slip}\n}}\nnever x == 7;\n")
}

/// The slip, what the message says, and what the hint does.
fn slips() -> Vec<(String, &'static str, &'static str)> {
    let file = |text: &str| text.to_string();
    vec![
        (
            body("for (i = 0; i < 3; i++) { x = 1; }"),
            "a `for` counts",
            "for i in 0..2",
        ),
        (
            body("for (int i = 0; i < 3; i++) x = 1;"),
            "a `for` counts",
            "for i in 0..2",
        ),
        (body("x++;"), "no operator `++`", "x = x + 1"),
        (body("++x;"), "no operator `++`", "fetch_add(x, 1)"),
        (body("x--;"), "no operator `--`", "fetch_add(x, -1)"),
        (body("x += 1;"), "no assignment operator", "x = x + 1"),
        (body("x -= 1;"), "no assignment operator", "x = x - 1"),
        (
            body("if (x = 1) { y = 1; }"),
            "unexpected `=`",
            "equality is `==`",
        ),
        (
            body("if x = 1 { y = 1; }"),
            "unexpected `=`",
            "equality is `==`",
        ),
        (body("x |= 2;"), "no assignment operator", "x = x | 1"),
        (body("x <<= 1;"), "no assignment operator", "atomic { … }"),
        (
            body("if x = 1 { y = 1; } else if x == 2 { y = 2; } else { y = 3; }"),
            "unexpected `=`",
            "equality is `==`",
        ),
        (
            body("while (x = 1) { y = 1; }"),
            "unexpected `=`",
            "equality is `==`",
        ),
        (
            body("for i = 0 to 3 { x = i; }"),
            "unexpected `=`",
            "for i in 0..2",
        ),
        (
            body("atomic x = x + 1;"),
            "unexpected `x`",
            "`atomic { x = x + 1; }`",
        ),
        (
            body("r = x.fetch_add(1);"),
            "`fetch_add` is a word of the language",
            "write `fetch_add(x, 1)`",
        ),
        (
            body("x = 'a';"),
            "unexpected character `'a'`",
            "values are numbers",
        ),
        (
            body("x = \"abc\";"),
            "unexpected text in quotes",
            "values are numbers",
        ),
        (body("x = 1.5;"), "unexpected `.`", "numbers are whole"),
        (
            file("shared atomic x;\nthread p { x = 1; }\n"),
            "`atomic` is a word of the language",
            "`shared x;`",
        ),
        (
            file("shared x;\nfn f() { x = 1; }\nthread p { x = 1; }\n"),
            "unexpected `fn`",
            "there are no functions here",
        ),
        (
            file("shared x;\nthread p { x = 1; }\nproperty: never x == 2;\n"),
            "unexpected `property`",
            "without a name",
        ),
        (body("int z;"), "do not begin with a type", "local x;"),
        (
            body("while (true) x = 1;"),
            "unexpected `x`",
            "braces are always needed",
        ),
        (
            body("if (x == 1) y = 1;"),
            "unexpected `y`",
            "braces are always needed",
        ),
        (
            body("while (x == 1);"),
            "unexpected `;`",
            "an empty body is `{ }`",
        ),
        (
            body("if x == 1 and y == 1 { skip; }"),
            "unexpected `and`",
            "and is `&&`",
        ),
        (body("return;"), "gives nothing back", "`stop;`"),
        (body("return 0;"), "gives nothing back", "`stop;`"),
        (body("fence();"), "unexpected `(`", "without parentheses"),
        (
            body("größe = 1;"),
            "letters that names do not have",
            "a to z",
        ),
        (
            body("do { x = 1; } while (y == 0);"),
            "there is no `do`",
            "loop {",
        ),
        (
            body("switch (x) { case 1: y = 1; }"),
            "there is no `switch`",
            "else if",
        ),
        (
            body("x := 1;"),
            "unexpected `=`",
            "an assignment is `x = 1;`",
        ),
        (
            body("r = CAS(x, 0, 1);"),
            "no function `CAS`",
            "did you mean `cas`?",
        ),
        (
            body("r = atomic_load(&x);"),
            "no function `atomic_load`",
            "a load is written `r = x;`",
        ),
        (
            body("atomic_store(&x, 1);"),
            "no function `atomic_store`",
            "a store is written `x = 1;`",
        ),
        (
            body("r = atomic_compare_exchange_strong(&x, 0, 1);"),
            "no function",
            "cas(x, old, new)",
        ),
        (
            body("pthread_mutex_lock(&x);"),
            "no function",
            "while swap(l, 1) == 1",
        ),
        (body("var z;"), "there is no `var`", "`local x;`"),
        (
            body("r = x.load(Ordering::Acquire);"),
            "unexpected `(`",
            "a load is written `r = x;`",
        ),
        (
            body("x.store(1);"),
            "unexpected `(`",
            "a store is written `x = 1;`",
        ),
        (body("p->next = 1;"), "unexpected `->`", "no pointers"),
        (
            body("for i in 0..1 { r = y[i][0]; }"),
            "unexpected `[`",
            "an array has one index",
        ),
        (
            file("shared x[2][2];\nthread p { x[0] = 1; }\n"),
            "unexpected `[`",
            "an array has one index",
        ),
        (
            file("struct node { int next; };\nshared x;\nthread p { x = 1; }\n"),
            "there is no `struct`",
            "each field is shared memory",
        ),
        (
            body("const N = 3;"),
            "do not begin with a type",
            "let N = 3;",
        ),
        (
            body("let s = x;"),
            "is shared memory",
            "`local r;` at the top",
        ),
        (
            body("x = 1u;"),
            "neither a number nor a name",
            "no suffix: `1`",
        ),
        (
            body("x = y = 1;"),
            "unexpected `=`",
            "one assignment in a statement",
        ),
        (body("x = 1, y = 1;"), "unexpected `,`", "separated by `;`"),
        (
            body("z = 1;"),
            "unknown name `z`",
            "declare it: `shared z;`",
        ),
        (
            body("for r in 0..2 { x = r; }"),
            "already the name",
            "declares its counter",
        ),
        (
            file("shared x;\nthread p() { x = 1; }\n"),
            "unexpected `(`",
            "a thread has no parameters",
        ),
        (
            file("shared int x;\nthread p { x = 1; }\n"),
            "unexpected `x`",
            "a type comes behind the name",
        ),
        (
            file("shared x;\nthread p { x = 1; }\nassert x == 1;\n"),
            "unexpected `assert`",
            "always",
        ),
        (
            file("shared x;\nthread p { critical: x = 1; }\nnever critical;\n"),
            "unknown name `critical`",
            "`critical` is a label: `p@critical`",
        ),
        (
            file("shared x;\nthread p { x = 1; }\nthread p { x = 2; }\n"),
            "declared twice",
            "thread p[2]",
        ),
        (
            file("shared x;\nthread p { local r; r = x }\nnever p.r == 1;\n"),
            "unexpected `}`",
            "ends with `;`",
        ),
        (
            file("shared x;\nthread p { x = 1; local r; r = x; }\nnever p.r == 2;\n"),
            "before the first statement",
            "to the top of the thread",
        ),
        (
            file("shared x: int[3];\nthread p { x[0] = 1; }\n"),
            "unexpected `[`",
            "`shared x[3];`",
        ),
        (
            file("int x;\nthread p { skip; }\n"),
            "do not begin with a type",
            "shared x",
        ),
        (
            file("shared x;\nthread p { x = 1; }\nnever x = 7;\n"),
            "unexpected `=`",
            "equality is `==`",
        ),
        (
            file("shared x;\nthread p {\n  if x == 1 { x = 2;\n}\nthread q { x = 1; }\n"),
            "unexpected `thread`",
            "the `{` in line 2 is still open here",
        ),
        (
            file(
                "shared x;\nthread p { loop { critical: x = 1; enter: skip; } }\nnever p@inside;\n",
            ),
            "no label `inside`",
            "it has `critical`, `enter`",
        ),
    ]
}

#[test]
fn each_slip_is_one_error_with_a_hint() {
    let s = Scratch::new();
    for (i, (text, message, hint)) in slips().into_iter().enumerate() {
        let r = run(&["check", &s.file(&format!("{i}.wtl"), &text)]);
        assert_eq!(r.code, 2, "{text}{}", r.out);
        assert_eq!(r.err.matches("error: ").count(), 2, "{text}{}", r.err);
        assert!(r.err.contains(message), "{text}{}", r.err);
        let told = r.err.lines().find(|l| l.contains("= hint: "));
        assert!(told.is_some_and(|l| l.contains(hint)), "{text}{}", r.err);
    }
}

/// The same of other languages.
#[test]
fn slips_in_other_languages() {
    let rows = |rows: &str, condition: &str| {
        format!("X86 SB\n{{ x=0; y=0; }}\n P0 | P1 ;\n{rows}{condition}\n")
    };
    let cub = |value: &str, equal: &str| {
        format!(
            "array A[proc] : bool\ninit (z) {{ A[z] = False }}\nunsafe (z) {{ A[z] = {value} }}\n\
             transition t (i)\nrequires {{ A[i] {equal} False }}\n{{ A[i] := True }}\n"
        )
    };
    let load = " MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\n";
    let unended = " MOV [x],$1 | MOV [y],$1 \n MOV EAX,[y] | MOV EAX,[x] ;\n";
    let slips = [
        (
            "litmus",
            rows(load, "exists (0:EAX=0 && 1:EAX=0)"),
            "and is `/\\`",
        ),
        (
            "litmus",
            rows(unended, "exists (0:EAX=0)"),
            "every row ends with `;`",
        ),
        ("cub", cub("Tru", "="), "did you mean `True`?"),
        ("cub", cub("True", "=="), "equality is `=`"),
        ("asm", "  mov eax, 1\n".to_string(), "`.s` and `.o` files"),
    ];
    let s = Scratch::new();
    for (i, (language, text, hint)) in slips.into_iter().enumerate() {
        let r = run(&["check", &s.file(&format!("{i}.{language}"), &text)]);
        assert_eq!(r.code, 2, "{text}{}", r.out);
        assert!(r.err.contains(hint), "{text}{}", r.err);
    }
}

#[test]
fn texts_in_other_encodings() {
    let s = Scratch::new();
    let latin = b"shared x;\n// gr\xf6\xdfe\nthread p { x = 1; }\n";
    let r = run(&["check", &s.file("latin.wtl", latin)]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("line 2, column 6"), "{}", r.err);
    let r = run(&["check", &s.file("wide.wtl", b"\xff\xfes\0h\0a\0")]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("UTF-16"), "{}", r.err);
}

#[test]
fn another_language_is_recognised() {
    let s = Scratch::new();
    let text = "X86 SB\n{ x=0; y=0; }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0)\n";
    let r = run(&["check", &s.file("sb.wtl", text)]);
    assert_eq!(r.code, 2);
    assert!(r.err.lines().count() < 6, "{}", r.err);
    assert!(r.err.contains("it reads as litmus"), "{}", r.err);
    assert!(r.err.contains("--lang litmus"), "{}", r.err);
    let text = "#include <stdatomic.h>\natomic_int x;\nint main(void) { return 0; }\n";
    let r = run(&["check", &s.file("lock.wtl", text)]);
    assert_eq!(r.code, 2);
    assert!(r.err.lines().count() < 6, "{}", r.err);
    assert!(r.err.contains("it reads as C"), "{}", r.err);
    assert!(r.err.contains("cc -O2 -g -c"), "{}", r.err);
    let r = run(&[
        "check",
        &s.file("cr.wtl", "// one\rshared x;\rthread p { x = 1; }\r"),
    ]);
    assert!(r.err.contains("carriage return"), "{}", r.err);
}

#[test]
fn never_where_the_end_was_meant() {
    let s = Scratch::new();
    let text = "shared x, y;\nthread p { local r; x = 1; r = y; }\nthread q { local s; y = 1; s = x; }\nnever p.r == 0 && q.s == 0;\n";
    let r = run(&["check", &s.file("sb.wtl", text)]);
    assert_eq!(r.code, 1);
    assert!(r.out.contains("write `finally !(…)`"), "{}", r.out);
}
