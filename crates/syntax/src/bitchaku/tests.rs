use super::parse;
use expect_test::{Expect, expect};
use wattle_model::print::to_wtl;

fn messages(text: &str, expect: Expect) {
    expect.assert_eq(&parse(text).render("a.bit", text));
}

fn model(text: &str, expect: Expect) {
    let parsed = parse(text);
    let shown = parsed.program.as_ref().map(to_wtl).unwrap_or_default();
    expect.assert_eq(&format!("{}{shown}", parsed.render("a.bit", text)));
}

#[test]
fn every_statement() {
    model(
        "beginit store X = 1 + 1; store Y = *; endinit
         process 1: // comment
         1: store X = l + 2 * 3; load l = X; l = -l; flush; fence; nop;
         2: if (l = 0 & !(m >= 2) | false) goto 1; else m = 1; endif;
         if (*) abort(\"bad\"); endif;
         if (* && l > 0) /* nothing */ endif;
         begin_atomic; load m = Y; store Y = m + 1; end_atomic; assume(m != 2);
         goto done;
         done: nop;
         process 7:
         3: load a = X; goto 3;
         assert(always(!(pc(1) = done & pc(7) != 3) | X <= Y + a(7)))",
        expect![[r#"
            shared X = 2;
            shared Y = any;

            thread p1 {
                local l;
                local m;
                local choice0;
                `1`: 0: X = l + 6;
                l = X;
                l = -l;
                skip;
                fence;
                skip;
                `2`: if l == 0 && !(m >= 2) { goto 0; }
                m = 1;
                choose { skip; } or { skip; goto 11; }
                assert 0, "bad";
                stop;
                11: choice0 = any 0..1;
                if choice0 && l > 0 { }
                atomic buffered begin;
                m = Y;
                Y = m + 1;
                atomic end;
                assume m != 2;
                done: skip;
            }

            thread p7 {
                local a;
                `3`: 0: a = X; goto 0;
            }

            always !(p1@done && !p7@`3`) || X <= Y + p7.a;
        "#]],
    );
}

#[test]
fn wrong_language() {
    messages(
        "forbidden CS CS\nprocess text CS: nop\n",
        expect![[r#"
        error: unexpected `forbidden`
          --> a.bit:1:1
           |
         1 | forbidden CS CS
           | ^^^^^^^^^
           = expected: `beginit`
           = hint: a `.bit` file starts with `beginit`, the initial stores and `endinit`

        error: unexpected `text`
          --> a.bit:2:9
           |
         2 | process text CS: nop
           |         ^^^^
           = expected: the number of the process
    "#]],
    );
}

#[test]
fn truncated() {
    messages(
        "beginit\n  store X = 0;\nendinit\nprocess 1:\n1: load l = X;\n   if (l = 0)\n      store X =",
        expect![[r#"
            error: the file ends too early
              --> a.bit:7:16
               |
             7 |       store X =
               |                ^
               = expected: an expression

            error: the file ends too early
              --> a.bit:7:16
               |
             7 |       store X =
               |                ^
               = expected: `endif`
               = hint: it closes the `if` of line 6
        "#]],
    );
}

#[test]
fn labels() {
    messages(
        "beginit store X = 0; endinit\nprocess 1:\n10: nop;\n10: nop;\n11: 12: nop;\ngoto 20;\n\
         assert(always(pc(1) = 13 | pc(2) = 10 | pc(1) < 10))\n",
        expect![[r#"
            error: unexpected `12`
              --> a.bit:5:5
               |
             5 | 11: 12: nop;
               |     ^^
               = expected: a statement after the label
               = hint: a statement has at most one label; give the second one a `nop;`

            error: the label `10` is defined twice
              --> a.bit:4:1
               |
             4 | 10: nop;
               | ^^
               = hint: it is already at line 3

            error: unknown label `20`
              --> a.bit:6:6
               |
             6 | goto 20;
               |      ^^
               = expected: a label of the same process
               = hint: did you mean `10`?

            error: process 1 has no label `13`
              --> a.bit:7:15
               |
             7 | assert(always(pc(1) = 13 | pc(2) = 10 | pc(1) < 10))
               |               ^^^^^
               = hint: its labels are: 10, 11

            error: there is no process 2
              --> a.bit:7:28
               |
             7 | assert(always(pc(1) = 13 | pc(2) = 10 | pc(1) < 10))
               |                            ^^^^^

            error: a position that is not compared with a label
              --> a.bit:7:41
               |
             7 | assert(always(pc(1) = 13 | pc(2) = 10 | pc(1) < 10))
               |                                         ^^^^^
               = expected: `pc(i) = l` or `pc(i) != l`
        "#]],
    );
}

#[test]
fn names() {
    messages(
        "beginit store Flag = 0; store N = X; endinit\nprocess 1:\nstore Flags = 1;\nload r = Flg;\n\
         Flag = 1;\nr = Flag + 1;\nr = rr;\nload N = r;\nr = *;\nprocess 1: nop;\n\
         assert(always(Flug = 0 & s(1) = 0 & r(1) = 0))\n",
        expect![[r#"
            error: the initial value of `N` is not a constant
              --> a.bit:1:25
               |
             1 | beginit store Flag = 0; store N = X; endinit
               |                         ^^^^^^^^^^^^
               = expected: a number or `*`

            error: unknown shared variable `Flags`
              --> a.bit:3:7
               |
             3 | store Flags = 1;
               |       ^^^^^
               = expected: a variable stored to between `beginit` and `endinit`
               = hint: did you mean `Flag`?

            error: unknown shared variable `Flg`
              --> a.bit:4:10
               |
             4 | load r = Flg;
               |          ^^^
               = expected: a variable stored to between `beginit` and `endinit`
               = hint: did you mean `Flag`?

            error: `Flag` is a shared variable
              --> a.bit:5:1
               |
             5 | Flag = 1;
               | ^^^^
               = expected: a local variable
               = hint: `load l = Flag;` reads it, `store Flag = …;` writes it

            error: `Flag` is a shared variable
              --> a.bit:6:5
               |
             6 | r = Flag + 1;
               |     ^^^^
               = expected: a local variable
               = hint: `load l = Flag;` reads it, `store Flag = …;` writes it

            error: unknown variable `rr`
              --> a.bit:7:5
               |
             7 | r = rr;
               |     ^^
               = expected: a local variable that some statement of the process assigns
               = hint: did you mean `r`?

            error: `N` is a shared variable
              --> a.bit:8:6
               |
             8 | load N = r;
               |      ^
               = expected: a local variable
               = hint: `load l = N;` reads it, `store N = …;` writes it

            error: unknown shared variable `r`
              --> a.bit:8:10
               |
             8 | load N = r;
               |          ^
               = expected: a variable stored to between `beginit` and `endinit`

            error: `*` is a truth value, not an integer
              --> a.bit:9:5
               |
             9 | r = *;
               |     ^
               = hint: choose between two assignments with `if (*)`

            error: two processes have the number 1
              --> a.bit:10:1
               |
            10 | process 1: nop;
               | ^^^^^^^^^

            error: unknown shared variable `Flug`
              --> a.bit:11:15
               |
            11 | assert(always(Flug = 0 & s(1) = 0 & r(1) = 0))
               |               ^^^^
               = expected: a shared variable, `pc(i)`, or `x(i)` for a local of process `i`
               = hint: did you mean `Flag`?

            error: process 1 has no local variable `s`
              --> a.bit:11:26
               |
            11 | assert(always(Flug = 0 & s(1) = 0 & r(1) = 0))
               |                          ^^^^
        "#]],
    );
}

#[test]
fn broken_statements_are_all_reported() {
    messages(
        "beginit store X = 0 endinit\nprocess 1:\nstroe X = 1;\nl := 1;\nif l = 0 nop; endif;\n\
         abort(no);\nend_atomic;\nnop\nassert(X = 0)\n",
        expect![[r#"
            error: unexpected `endinit`
              --> a.bit:1:21
               |
             1 | beginit store X = 0 endinit
               |                     ^^^^^^^
               = expected: `;`

            error: unexpected `stroe`
              --> a.bit:3:1
               |
             3 | stroe X = 1;
               | ^^^^^
               = expected: a statement

            error: unexpected `l`
              --> a.bit:4:1
               |
             4 | l := 1;
               | ^
               = expected: a statement

            error: unexpected `l`
              --> a.bit:5:4
               |
             5 | if l = 0 nop; endif;
               |    ^
               = expected: `(`

            error: unexpected `assert`
              --> a.bit:9:1
               |
             9 | assert(X = 0)
               | ^^^^^^
               = expected: `;`

            error: unexpected `X`
              --> a.bit:9:8
               |
             9 | assert(X = 0)
               |        ^
               = expected: `always`, `eventually`, `leads` or `progress`
        "#]],
    );
}

#[test]
fn nesting_is_limited() {
    for deep in [
        "if (*) ",
        "if ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
    ] {
        let text = format!("beginit endinit process 1: {}nop;", deep.repeat(20_000));
        let parsed = parse(&text);
        assert!(parsed.program.is_none());
        assert_eq!(
            parsed.diagnostics.len(),
            1,
            "{}",
            parsed.render("a.bit", "")
        );
    }
}

#[test]
fn several_instances_of_a_process() {
    model(
        "beginit store X = 0; endinit
         process 1[*]:
         1: begin_atomic; load r = X; store X = r + 1; fence; end_atomic;
         predicate(X >= 0); predicate(X > r);
         cs: nop;
         process 2[2]: load s = X; predicate(s = r(1, k));
         assert(always(!(pc(1, i) = cs & pc(1, j) = cs) | s(2, k) = X))",
        expect![[r#"
            shared X;

            thread p1[*] {
                local r;
                `1`: atomic buffered begin;
                r = X;
                X = r + 1;
                fence;
                atomic end;
                cs: skip;
            }

            thread p2[2] {
                local s;
                s = X;
            }

            always !(p1[i]@cs && p1[j]@cs) || p2[k].s == X;

            predicates {
                X >= 0;
                X > p1[own_1].r;
                p2[own_2].s == p1[k].r;
            }
        "#]],
    );
}

#[test]
fn predicates_stand_anywhere() {
    model(
        "predicate(X = 0);
         beginit store X = 0; predicate(X = 1); store Y = 0; endinit
         predicate(Y = 0);
         process 1:
         predicate(r = 1);
         1: load r = X;
         if (r = 0) predicate(r = 2); nop; else store X = 1; predicate(r = 3); endif;
         process 2:
         begin_atomic; load r = Y; predicate(r = 4); store Y = r; end_atomic;
         assert(always(X < 9));
         predicate(r(1) = r(2))",
        expect![[r#"
            shared X;
            shared Y;

            thread p1 {
                local r;
                `1`: r = X;
                if r == 0 { } else { goto 4; }
                skip;
                3: stop;
                4: X = 1; goto 3;
            }

            thread p2 {
                local r;
                atomic buffered begin;
                r = Y;
                Y = r;
                atomic end;
            }

            always X < 9;

            predicates {
                X == 0;
                X == 1;
                Y == 0;
                p1.r == 1;
                p1.r == 2;
                p1.r == 3;
                p2.r == 4;
                p1.r == p2.r;
            }
        "#]],
    );
}

#[test]
fn integers_and_truth_values_are_two_things() {
    messages(
        "beginit store X = 0; endinit
         process 1:
         load r = X; if (r) nop; endif; r = r > 1; store X = (r = 1) + 2;
         1: if (r + 2 & r = 1) nop; endif;
         predicate(r = X & q = 1);
         process 2[3]: 1: nop;
         assert(always(!(pc(2) = 1) & pc(1, i) != 1 & pc(2, 7) = 1 & (X = 1) = 3))",
        expect![[r#"
            error: an integer where a condition is needed
              --> a.bit:3:26
               |
             3 |          load r = X; if (r) nop; endif; r = r > 1; store X = (r = 1) + 2;
               |                          ^
               = hint: compare it: `x != 0`

            error: a condition where an integer is needed
              --> a.bit:3:45
               |
             3 |          load r = X; if (r) nop; endif; r = r > 1; store X = (r = 1) + 2;
               |                                             ^
               = hint: choose with `if`: `if (b) x = 1; else x = 0; endif;`

            error: a condition where an integer is needed
              --> a.bit:3:63
               |
             3 |          load r = X; if (r) nop; endif; r = r > 1; store X = (r = 1) + 2;
               |                                                               ^
               = hint: choose with `if`: `if (b) x = 1; else x = 0; endif;`

            error: an integer where a condition is needed
              --> a.bit:4:17
               |
             4 |          1: if (r + 2 & r = 1) nop; endif;
               |                 ^
               = hint: compare it: `x != 0`

            error: an integer where a condition is needed
              --> a.bit:7:10
               |
             7 |          assert(always(!(pc(2) = 1) & pc(1, i) != 1 & pc(2, 7) = 1 & (X = 1) = 3))
               |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
               = hint: compare it: `x != 0`

            error: process 2 has several instances
              --> a.bit:7:26
               |
             7 |          assert(always(!(pc(2) = 1) & pc(1, i) != 1 & pc(2, 7) = 1 & (X = 1) = 3))
               |                          ^^^^^
               = hint: say which: `pc(2, i)`; different names are different ones

            error: process 1 has one instance
              --> a.bit:7:39
               |
             7 |          assert(always(!(pc(2) = 1) & pc(1, i) != 1 & pc(2, 7) = 1 & (X = 1) = 3))
               |                                       ^^^^^^^^
               = hint: `process 1[*]:` has any number of them

            error: process 2 has no instance 7
              --> a.bit:7:55
               |
             7 |          assert(always(!(pc(2) = 1) & pc(1, i) != 1 & pc(2, 7) = 1 & (X = 1) = 3))
               |                                                       ^^^^^^^^
               = hint: they are 0 to 2

            error: process 1 has no local variable `q`
              --> a.bit:5:28
               |
             5 |          predicate(r = X & q = 1);
               |                            ^
        "#]],
    );
}

#[test]
fn assertions_about_whole_runs() {
    use wattle_model::TemporalKind;
    let processes = "beginit store X = 0; endinit process 1[2]: 1: store X = 1; 2: nop;\n";
    let text = format!(
        "{processes}assert(eventually(X = 1)) assert(leads(pc(1, i) = 1, pc(1, i) = 2));\nassert(progress)"
    );
    let parsed = parse(&text);
    assert!(
        parsed.diagnostics.is_empty(),
        "{}",
        parsed.render("a.bit", &text)
    );
    let demands = parsed.program.expect("a program").temporal;
    let [later, leads, progress] = demands.as_slice() else {
        panic!("{demands:?}");
    };
    assert!(matches!(&later.kind, TemporalKind::Ltl(indices, _) if indices.is_empty()));
    assert!(matches!(&leads.kind, TemporalKind::LeadsTo(from, _) if from.indices.len() == 1));
    assert_eq!(progress.kind, TemporalKind::Progress);
    for (wrong, message) in [
        ("assert(leads(X = 1))", "expected: `,`"),
        (
            "assert(eventually(X))",
            "an integer where a condition is needed",
        ),
        (
            "assert(leads(pc(1, 0) = 7, X = 1))",
            "process 1 has no label `7`",
        ),
        (
            "assert(next(X = 1))",
            "expected: `always`, `eventually`, `leads` or `progress`",
        ),
    ] {
        let text = format!("{processes}{wrong}");
        let shown = parse(&text).render("a.bit", &text);
        assert!(shown.contains(message), "{wrong}: {shown}");
    }
}
