use super::parse;
use expect_test::{Expect, expect};
use wattle_model::print::to_wtl;

fn messages(text: &str, expect: Expect) {
    expect.assert_eq(&parse(text).render("a.rmm", text));
}

fn model(text: &str, expect: Expect) {
    let parsed = parse(text);
    let shown = parsed.program.as_ref().map(to_wtl).unwrap_or_default();
    expect.assert_eq(&format!("{}{shown}", parsed.render("a.rmm", text)));
}

#[test]
fn others_are_counted_without_oneself() {
    model(
        "forbidden A A A process(3) data x = 0 : [0:2] text A: write: x[1] := me; read: x[my] = other 0",
        expect![[r#"
            shared x[P]: 0..2;

            thread P[3] {
                local seen: 0..2;
                A: x[1 < self ? 1 : 2] = self;
                seen = x[self];
                assume seen == (0 < self ? 0 : 1);
            }

            never P[0]@A && P[1]@A && P[2]@A;
        "#]],
    );
}

#[test]
fn data_of_some_processes_only() {
    model(
        "forbidden A * process data x = 1 text A: read: y[0] = 0 process data y = 0 : [0:1] text write: x[0] := @ 1",
        expect![[r#"
            shared x_0 = 1;
            shared y_1: 0..1;

            thread P0 {
                local seen: 0..1;
                A: seen = y_1;
                assume seen == 0;
            }

            thread P1 {
                x_0 = 1;
            }

            never P0@A;
        "#]],
    );
}

#[test]
fn a_step_out_of_its_domain_cannot_be_taken() {
    model(
        "forbidden A data x = 0 : [0:1], y = 5 process registers $r = 0 : [0:3] text
         A: $r := $r + 1; write: x := $r; write: x := 2; read: $r := y; cas(x, 0, $r)",
        expect![[r#"
            shared x: 0..1;
            shared y = 5;

            thread P0 {
                local r: 0..3;
                local seen;
                local seen_: 0..1;
                A: assume r + 1 <= 3;
                r = r + 1;
                assume r <= 1;
                x = r;
                assume 0;
                x = 2;
                seen = y;
                assume 0 <= seen && seen <= 3;
                r = seen;
                assume r <= 1;
                atomic begin;
                seen_ = x;
                assume seen_ == 0;
                x = r;
                atomic end;
            }

            never P0@A;
        "#]],
    );
}

#[test]
fn addresses_count_the_globals() {
    model(
        "forbidden A data x = 0 : [0:1], y = 0 : [0:3] process registers $r = 0 : [0:3], $q = 0 : [0:1]
         text A: write: [$r] := 1; write: [$q] := $r; read: $r := [$q + 1]; write: [1] := 3",
        expect![[r#"
            shared x: 0..1;
            shared y: 0..3;

            thread P0 {
                local r: 0..3;
                local q: 0..1;
                A: assume r <= 1;
                *(r) = 1;
                assume q != 0 || r <= 1;
                *(q) = r;
                assume q + 1 <= 1;
                r = *(q + 1);
                y = 3;
            }

            never P0@A;
        "#]],
    );
}

#[test]
fn statements() {
    model(
        "forbidden A ; B predicates $r = 0; $r < $s
         data x = * : [0:1]
         process registers $r = * : Z, $s = -1 : [-1:1]
         text
         A: if $r = 0 && [$s < 1 || not true] then goto B else { nop; fence };
         while $r != 0 do { read: $r := x; llfence };
         either { goto A or ssfence or C: assume: $s >= 0 };
         locked { write: x := 1; read: x = 1 or nop };
         locked write: x := 0; slocked write: x := 1; syncwr: x := 0; syncrd: x = 1;
         B: nop",
        expect![[r#"
            shared x: 0..1 = any;

            thread P0 {
                local r = any;
                local s: -1..1 = -1;
                local seen: 0..1;
                A: 0: if r == 0 && s < 1 { } else { goto 3; }
                B: 1: skip;
                stop;
                3: skip;
                fence;
                5: if r != 0 { } else { goto 8; }
                r = x;
                skip; goto 5;
                8: choose { skip; goto 0; } or { fence store; } or { skip; goto 25; }
                9: atomic begin;
                choose { x = 1; } or { skip; goto 13; }
                seen = x;
                assume seen == 1;
                13: atomic end;
                atomic begin;
                x = 0;
                atomic end;
                fence store;
                x = 1;
                fence store;
                atomic begin;
                x = 0;
                atomic end;
                seen = x;
                assume seen == 1; goto 1;
                C: 25: assume s >= 0; goto 9;
            }

            never P0@A;
            never P0@B;

            predicates {
                P0.r == 0;
                P0.r < P0.s;
            }
        "#]],
    );
}

#[test]
fn macros() {
    model(
        "macro N() 2 endmacro
         macro set(v, e) write: v := e + N() endmacro
         forbidden A data x = 0 process text A: set(x, (1 + 1)); set(x, N())",
        expect![[r#"
            shared x;

            thread P0 {
                A: x = 4;
                x = 4;
            }

            never P0@A;
        "#]],
    );
}

#[test]
fn wrong_language() {
    messages(
        "shared x;\nthread t { x = 1; }\n",
        expect![[r#"
        error: unexpected `shared`
          --> a.rmm:1:1
           |
         1 | shared x;
           | ^^^^^^
           = expected: `forbidden`
           = hint: a `.rmm` file starts with `forbidden` and the tuples of labels to exclude
    "#]],
    );
}

#[test]
fn truncated() {
    messages(
        "forbidden CS\nprocess\ntext\n  CS: either { read: x",
        expect![[r#"
            error: the file ends too early
              --> a.rmm:4:23
               |
             4 |   CS: either { read: x
               |                       ^
               = expected: `=`

            error: the file ends too early
              --> a.rmm:4:23
               |
             4 |   CS: either { read: x
               |                       ^
               = expected: `}`
               = hint: it closes the `{` of line 4
        "#]],
    );
}

#[test]
fn labels() {
    messages(
        "forbidden CS LOOP\nprocess\ntext\n L: nop;\n L: nop;\n goto M;\n CT: nop\nprocess text LOOPS: nop\n",
        expect![[r#"
            error: the label `L` is defined twice
              --> a.rmm:5:2
               |
             5 |  L: nop;
               |  ^
               = hint: it is already at line 4

            error: unknown label `M`
              --> a.rmm:6:7
               |
             6 |  goto M;
               |       ^

            error: unknown label in process `P0`: `CS`
              --> a.rmm:1:11
               |
             1 | forbidden CS LOOP
               |           ^^
               = hint: did you mean `CT`?

            error: unknown label in process `P1`: `LOOP`
              --> a.rmm:1:14
               |
             1 | forbidden CS LOOP
               |              ^^^^
               = hint: did you mean `LOOPS`?
        "#]],
    );
}

#[test]
fn names() {
    messages(
        "forbidden A A\ndata flag = 0\nprocess data mine = 0 registers $r0 = 0 text\n\
         A: read: $r1 := flag;\n write: flap := $r0;\n write: mine := 1;\n $r0 := flag;\n\
         write: mine[1] := 0;\n write: [7] := 0\n\
         process text A: nop\n",
        expect![[r#"
            error: `flag` cannot be used in an expression
              --> a.rmm:7:9
               |
             7 |  $r0 := flag;
               |         ^^^^
               = hint: expressions speak of registers; `read: $r := x` loads a variable

            error: unknown register `$r1`
              --> a.rmm:4:10
               |
             4 | A: read: $r1 := flag;
               |          ^^^
               = expected: a register declared under `registers`
               = hint: did you mean `$r0`?

            error: unknown variable `flap`
              --> a.rmm:5:9
               |
             5 |  write: flap := $r0;
               |         ^^^^
               = expected: a variable declared under `data`
               = hint: did you mean `flag`?

            error: unknown variable `mine`
              --> a.rmm:6:9
               |
             6 |  write: mine := 1;
               |         ^^^^
               = expected: a variable declared under `data`
               = hint: each process has its own: `mine[my]` or `mine[0]`

            error: there is only one other process
              --> a.rmm:8:8
               |
             8 | write: mine[1] := 0;
               |        ^^^^
               = expected: `[my]`, or `[k]` with k counting the others from 0

            error: this address is not that of any variable
              --> a.rmm:9:9
               |
             9 |  write: [7] := 0
               |         ^^^
               = hint: `[e]` counts the 1 variables of the global `data` from 0
        "#]],
    );
}

#[test]
fn declarations() {
    messages(
        "forbidden A A\ndata x = 3 : [0:2] y = 0 : [2:1]\nprocess(0)\n registers r = 0 $s = 1 $s = 2\ntext A: nop\n",
        expect![[r#"
            error: `x` starts with 3, outside its domain 0 to 2
              --> a.rmm:2:6
               |
             2 | data x = 3 : [0:2] y = 0 : [2:1]
               |      ^

            error: the domain 2 to 1 is empty
              --> a.rmm:2:28
               |
             2 | data x = 3 : [0:2] y = 0 : [2:1]
               |                            ^^^^^

            error: 0 copies of a process (1 to 1000 are possible)
              --> a.rmm:3:9
               |
             3 | process(0)
               |         ^

            error: `r` is not a register
              --> a.rmm:4:12
               |
             4 |  registers r = 0 $s = 1 $s = 2
               |            ^
               = hint: names of registers start with `$`, names of variables do not

            error: `$s` is declared twice
              --> a.rmm:4:25
               |
             4 |  registers r = 0 $s = 1 $s = 2
               |                         ^^

            error: a forbidden tuple of 2 labels for 1 processes
              --> a.rmm:1:11
               |
             1 | forbidden A A
               |           ^^^
               = expected: a label or `*` for each process, in order
        "#]],
    );
}

#[test]
fn broken_statements_are_all_reported() {
    messages(
        "forbidden A\nprocess registers $r = 0 text\nA: wrote: x := 1;\n $r = 1;\n if $r then nop;\n either { nop; or nop } ;\n $r := 99999999999999999999;\n nop nop\n",
        expect![[r#"
            error: unexpected `wrote`
              --> a.rmm:3:4
               |
             3 | A: wrote: x := 1;
               |    ^^^^^
               = expected: a statement

            error: unexpected `=`
              --> a.rmm:4:5
               |
             4 |  $r = 1;
               |     ^
               = expected: `:=`

            error: unexpected `then`
              --> a.rmm:5:8
               |
             5 |  if $r then nop;
               |        ^^^^
               = expected: a comparison: `=`, `!=`, `<`, `>`, `<=` or `>=`

            error: the number `99999999999999999999` is too large
              --> a.rmm:7:8
               |
             7 |  $r := 99999999999999999999;
               |        ^^^^^^^^^^^^^^^^^^^^

            error: unexpected `nop`
              --> a.rmm:8:6
               |
             8 |  nop nop
               |      ^^^
               = expected: `;` and another statement, `process` or the end of the file
        "#]],
    );
}

#[test]
fn broken_macros() {
    messages(
        "macro f(x x) nop endmacro\nmacro g(y) h(y) endmacro macro h(y) g(y) endmacro\n\
         forbidden A process text A: g(1); h(1, 2); g(\n",
        expect![[r#"
            error: unexpected `x` among the parameters of a macro
              --> a.rmm:1:11
               |
             1 | macro f(x x) nop endmacro
               |           ^
               = expected: a new name for each parameter

            error: macro `g` calls itself
              --> a.rmm:2:37
               |
             2 | macro g(y) h(y) endmacro macro h(y) g(y) endmacro
               |                                     ^

            error: macro `h` takes 1 arguments, not 2
              --> a.rmm:3:35
               |
             3 | forbidden A process text A: g(1); h(1, 2); g(
               |                                   ^

            error: the call of macro `g` is not closed
              --> a.rmm:3:45
               |
             3 | forbidden A process text A: g(1); h(1, 2); g(
               |                                             ^
               = expected: `(`, arguments separated by `,`, and `)`
        "#]],
    );
}

#[test]
fn macros_cannot_explode() {
    let mut text = String::from("macro m0() endmacro\n");
    for i in 1..64 {
        text += &format!("macro m{i}() m{0}() m{0}() endmacro\n", i - 1);
    }
    text += "forbidden A process text A: nop; m63() nop\n";
    let parsed = parse(&text);
    assert!(parsed.program.is_none());
}

#[test]
fn nesting_is_limited() {
    let text = format!("forbidden A process text A: {}nop", "{".repeat(100_000));
    let parsed = parse(&text);
    assert!(parsed.program.is_none());
    assert_eq!(
        parsed.diagnostics.len(),
        1,
        "{}",
        parsed.render("a.rmm", "")
    );
}
