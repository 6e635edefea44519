use super::parse;
use expect_test::{Expect, expect};
use wattle_model::print::to_wtl;

fn messages(text: &str, expect: Expect) {
    expect.assert_eq(&parse(text).render("a.imp", text));
}

fn model(text: &str, expect: Expect) {
    let parsed = parse(text);
    let shown = parsed.program.as_ref().map(to_wtl).unwrap_or_default();
    expect.assert_eq(&format!("{}{shown}", parsed.render("a.imp", text)));
}

#[test]
fn skips_and_constant_conditions_cost_no_step() {
    model(
        "program Turn variables turn = x = 0
         process P begin
         1: while true do
              x := x;
         2:   while (turn ≠ 0) do 3: skip od;
         4:   skip;
         5:   turn := 1;
            od
         end
         never P@4 and turn = 1;",
        expect![[r#"
            shared turn;
            shared x;

            thread P {
                local x_copy;
                local turn_copy;
                `1`: 0: x_copy = x;
                x = x_copy;
                `2`: `3`: 2: turn_copy = turn;
                if turn_copy != 0 { goto 2; }
                `4`: `5`: turn = 1; goto 0;
            }

            never P@`4` && turn == 1;
        "#]],
    );
}

#[test]
fn every_statement() {
    model(
        "program All variables a = 0, b = -1; c = true
         process P begin
           if a + b * 2 = a then 1: a := 1 - b; else skip fi;
           if c then 2: fence fi;
           if 2 then a := 0 fi;
           while not (a < 1 or b >= 2) do b := b mod 2 od;
           while true do skip od
         end;
         proc Q begin end
         end
         always a <= 1",
        expect![[r#"
            shared a;
            shared b = -1;
            shared c = 1;

            thread P {
                local a_copy;
                local b_copy;
                local c_copy;
                a_copy = a;
                b_copy = b;
                if a_copy + b_copy * 2 == a_copy { } else { goto 5; }
                `1`: b_copy = b;
                a = 1 - b_copy;
                5: c_copy = c;
                if c_copy == 1 { } else { goto 8; }
                `2`: fence;
                8: a_copy = a;
                b_copy = b;
                if !(a_copy < 1 || b_copy >= 2) { } else { goto 13; }
                b_copy = b;
                b = b_copy % 2; goto 8;
                13: skip; goto 13;
            }

            thread Q {
            }

            always a <= 1;
        "#]],
    );
}

#[test]
fn wrong_language() {
    messages(
        "thread t\ninitial q0\nend\n",
        expect![[r#"
        error: unexpected `thread`
          --> a.imp:1:1
           |
         1 | thread t
           | ^^^^^^
           = expected: `program`
           = hint: an `.imp` file starts with `program NAME variables x = 0, y = 0`
    "#]],
    );
}

#[test]
fn truncated() {
    messages(
        "program A variables x = 0\nprocess P begin\n1: while x = 0 do\n2: x := ",
        expect![[r#"
        error: the file ends too early
          --> a.imp:4:8
           |
         4 | 2: x := 
           |        ^
           = expected: an expression

        error: the file ends too early
          --> a.imp:4:8
           |
         4 | 2: x := 
           |        ^
           = expected: `od`
           = hint: it closes the `while` of line 3

        error: the file ends too early
          --> a.imp:4:8
           |
         4 | 2: x := 
           |        ^
           = expected: `end`
           = hint: it closes the process of line 2
    "#]],
    );
}

#[test]
fn names() {
    messages(
        "program A variables flag = 0, flag = 1\nprocess P begin\n1: flak := 1;\n1: flag := turn + P;\nend\n\
         process P begin 2: flag = 1 end\nnever P@3 and R@1 and flog = 1\n",
        expect![[r#"
            error: unexpected `flag`
              --> a.imp:6:20
               |
             6 | process P begin 2: flag = 1 end
               |                    ^^^^
               = expected: a statement
               = hint: an assignment is written `x := …`

            error: the variable `flag` is declared twice
              --> a.imp:1:31
               |
             1 | program A variables flag = 0, flag = 1
               |                               ^^^^

            error: unknown variable `flak`
              --> a.imp:3:4
               |
             3 | 1: flak := 1;
               |    ^^^^
               = expected: a variable declared after `variables`
               = hint: did you mean `flag`?

            error: the label `1` is defined twice
              --> a.imp:4:1
               |
             4 | 1: flag := turn + P;
               | ^
               = hint: it is already at line 3

            error: unknown variable `turn`
              --> a.imp:4:12
               |
             4 | 1: flag := turn + P;
               |            ^^^^
               = expected: a variable declared after `variables`

            error: unknown variable `P`
              --> a.imp:4:19
               |
             4 | 1: flag := turn + P;
               |                   ^
               = expected: a variable declared after `variables`

            error: the name `P` is taken
              --> a.imp:6:9
               |
             6 | process P begin 2: flag = 1 end
               |         ^
               = expected: a name for the process that nothing else has

            error: process `P` has no label `3`
              --> a.imp:7:7
               |
             7 | never P@3 and R@1 and flog = 1
               |       ^^^

            error: there is no process `R`
              --> a.imp:7:15
               |
             7 | never P@3 and R@1 and flog = 1
               |               ^^^

            error: unknown variable `flog`
              --> a.imp:7:23
               |
             7 | never P@3 and R@1 and flog = 1
               |                       ^^^^
               = expected: a variable declared after `variables`
               = hint: did you mean `flag`?
        "#]],
    );
}

#[test]
fn broken_statements_are_all_reported() {
    messages(
        "program A variables x = 0\nprocess P begin\nskp;\nx := ;\nif x then skip od;\nx := 1 x := 2;\nend end process\n",
        expect![[r#"
            error: unexpected `skp`
              --> a.imp:3:1
               |
             3 | skp;
               | ^^^
               = expected: a statement
               = hint: did you mean `skip`?

            error: unexpected `;`
              --> a.imp:4:6
               |
             4 | x := ;
               |      ^
               = expected: an expression

            error: unexpected `od`
              --> a.imp:5:16
               |
             5 | if x then skip od;
               |                ^^
               = expected: `fi`
               = hint: it closes the `if` of line 5

            error: unexpected `x`
              --> a.imp:6:8
               |
             6 | x := 1 x := 2;
               |        ^
               = expected: `;`

            error: unexpected `end`
              --> a.imp:7:5
               |
             7 | end end process
               |     ^^^
               = expected: `process`, `never`, `always`, `assert` or the end of the file

            error: the file ends too early
              --> a.imp:7:16
               |
             7 | end end process
               |                ^
               = expected: a name for the process

            error: the file ends too early
              --> a.imp:7:16
               |
             7 | end end process
               |                ^
               = expected: `end`
               = hint: it closes the process of line 7
        "#]],
    );
}

#[test]
fn nesting_is_limited() {
    let text = format!(
        "program A variables x = 0 process P begin {}",
        "while x do ".repeat(50_000)
    );
    let parsed = parse(&text);
    assert!(parsed.program.is_none());
    assert_eq!(
        parsed.diagnostics.len(),
        1,
        "{}",
        parsed.render("a.imp", "")
    );
}

#[test]
fn assertions_about_whole_runs() {
    use wattle_model::TemporalKind;
    let process = "program A variables x = 0 process P begin 1: x := 1; 2: x := 0 end\n";
    let text = format!(
        "{process}assert(eventually(x = 1)); assert(leads(P@1, P@2));\nassert(progress); assert(always(x <= 1));"
    );
    let parsed = parse(&text);
    assert!(
        parsed.diagnostics.is_empty(),
        "{}",
        parsed.render("a.imp", &text)
    );
    let program = parsed.program.expect("a program");
    assert_eq!(program.properties.len(), 1);
    let [later, leads, progress] = program.temporal.as_slice() else {
        panic!("{:?}", program.temporal);
    };
    assert!(matches!(&later.kind, TemporalKind::Ltl(..)));
    assert!(matches!(&leads.kind, TemporalKind::LeadsTo(..)));
    assert_eq!(progress.kind, TemporalKind::Progress);
    for (wrong, message) in [
        ("assert(leads(x = 1));", "expected: `,`"),
        ("assert(eventually(y = 1));", "unknown variable `y`"),
        ("assert(leads(P@1, P@9));", "process `P` has no label `9`"),
        (
            "assert(x = 1);",
            "expected: `always`, `eventually`, `leads` or `progress`",
        ),
    ] {
        let text = format!("{process}{wrong}");
        let shown = parse(&text).render("a.imp", &text);
        assert!(shown.contains(message), "{wrong}: {shown}");
    }
}
