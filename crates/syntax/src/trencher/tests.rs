use super::parse;
use expect_test::{Expect, expect};
use wattle_model::{Length, Program};

fn messages(text: &str, expect: Expect) {
    let parsed = parse(text);
    let shown: Vec<String> = parsed
        .diagnostics
        .iter()
        .map(|d| d.render("a.trench", text))
        .collect();
    expect.assert_eq(&shown.concat());
}

fn program(text: &str) -> Program {
    let parsed = parse(text);
    assert_eq!(parsed.diagnostics, []);
    parsed.program.expect("a program")
}

fn memory(text: &str) -> Length {
    program(text).regions[0].length
}

#[test]
fn a_counted_loop_bounds_its_addresses() {
    let text = "thread t\ninitial q0\n\
        transition q0 q1 local i 1\n\
        transition q1 q2 check <= i 5\n\
        transition q2 q3 write i i\n\
        transition q3 q1 local i + i 1\nend\n";
    assert_eq!(memory(text), Length::Array(6));
}

#[test]
fn pointers_in_memory_are_followed() {
    let text = "thread t\ninitial a\n\
        transition a b write 7 0\n\
        transition b c read p 0\n\
        transition c d read v + p 2\nend\n";
    assert_eq!(memory(text), Length::Array(10));
}

#[test]
fn unbounded_addresses_are_said() {
    messages(
        "thread t\ninitial a\ntransition a b read v i\ntransition b a local i + i 1\nend\n",
        expect![[r#"
            warning: the addresses used here could not be bounded; memory has 256 cells
              --> a.trench:3:1
               |
             3 | transition a b read v i
               | ^^^^^^^^^^^^^^^^^^^^^^^
               = hint: a run that leaves these cells is reported as a fault, not as a violation of the program's property
        "#]],
    );
}

#[test]
fn final_states_become_one_property() {
    let p = program(
        "thread a\ninitial q\nfinal r\ntransition q r noop\nend\n\
         thread b\ninitial q\nend\nthread c\ninitial q\nfinal q r\nend\n",
    );
    assert_eq!(p.properties.len(), 1);
    assert_eq!(p.families.len(), 3);
}

#[test]
fn wrong_language() {
    messages(
        "shared x;\nthread t {\n    x = 1;\n}\n",
        expect![[r#"
            error: this does not look like a trencher program
              --> a.trench:1:1
               |
             1 | shared x;
               | ^^^^^^
               = expected: `thread NAME`, `initial STATE`, `transition …` lines and `end`
        "#]],
    );
}

#[test]
fn truncated() {
    messages(
        "thread t\ninitial q0\ntransition q0 q1 write 1",
        expect![[r#"
        error: the line ends too early
          --> a.trench:3:25
           |
         3 | transition q0 q1 write 1
           |                         ^
           = expected: the address to write to
        error: thread `t` is not closed
          --> a.trench:1:8
           |
         1 | thread t
           |        ^
           = expected: `end` after its last transition
    "#]],
    );
}

#[test]
fn empty() {
    messages(
        "# nothing\n",
        expect![[r#"
        error: the file has no thread
          --> a.trench
           = expected: `thread NAME`, `initial STATE`, `transition …` lines and `end`
    "#]],
    );
}

#[test]
fn every_error_at_once() {
    messages(
        "thread t\ntransition q0 q1 wrote 1 0\ntransition q0 q1 local r r + 1\n\
         transition q0 q1 read 5 r\ntransition q1 q2 check == r 99999999999\nend\n\
         transition q1 q2 noop\nthread t\ninitial q\ninitial p\nthread u\ninitial q\nend\n",
        expect![[r#"
            error: unknown instruction `wrote`
              --> a.trench:2:18
               |
             2 | transition q0 q1 wrote 1 0
               |                  ^^^^^
               = expected: `write`, `read`, `mfence`, `local`, `check`, `noop`, `lock`, `unlock`
               = hint: did you mean `write`?
            error: `+` is one word too many
              --> a.trench:3:28
               |
             3 | transition q0 q1 local r r + 1
               |                            ^
               = expected: the end of the line
               = hint: expressions are in prefix notation: `+ r 1`, not `r + 1`
            error: `5` cannot be a register
              --> a.trench:4:23
               |
             4 | transition q0 q1 read 5 r
               |                       ^
               = expected: the name of a register
               = hint: `write` has the value before the address; `read` and `local` have the register first
            error: `99999999999` is not a 32-bit number
              --> a.trench:5:29
               |
             5 | transition q1 q2 check == r 99999999999
               |                             ^^^^^^^^^^^
            error: `transition` outside a thread
              --> a.trench:7:1
               |
             7 | transition q1 q2 noop
               | ^^^^^^^^^^
               = expected: `thread NAME`
            error: two threads are called `t`
              --> a.trench:8:8
               |
             8 | thread t
               |        ^
            error: thread `t` has two initial states
              --> a.trench:10:1
               |
            10 | initial p
               | ^^^^^^^^^
            error: a thread inside a thread
              --> a.trench:11:1
               |
            11 | thread u
               | ^^^^^^
               = hint: put `end` before this line to close `t`
            error: thread `t` has no initial state
              --> a.trench:1:8
               |
             1 | thread t
               |        ^
               = expected: `initial STATE`
        "#]],
    );
}

#[test]
fn deep_expressions_are_refused() {
    let text = format!(
        "thread t\ninitial q\ntransition q q check {} 1\nend\n",
        "! ".repeat(5000)
    );
    let parsed = parse(&text);
    assert!(parsed.program.is_none());
    assert_eq!(parsed.diagnostics.len(), 1);
}

#[test]
fn division_and_remainder() {
    let text = "thread t\ninitial a\n\
        transition a b local i / 7 2\n\
        transition b c read v + i % 5 3\nend\n";
    assert_eq!(memory(text), Length::Array(6));
}
