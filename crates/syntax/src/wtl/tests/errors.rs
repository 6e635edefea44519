//! What a person reads when something is wrong.

use super::parse;
use expect_test::{Expect, expect};

fn check(text: &str, expect: Expect) {
    let parsed = parse(text);
    assert!(parsed.program.is_none(), "no error was found");
    expect.assert_eq(&parsed.render("a.wtl", text));
}

#[test]
fn all_errors_at_once() {
    check(
        "shared flag[2], turn;
thread p[2] {
    let other = 1 - self;
    loop {
        flaq[self] = 1;
        turn = othr
        while flag == 1 && turn[0] == other { }
        critcal: skip;
        flag[self] = 0;
        goto criticl;
    }
}
never p[i]@critical && q@critical;
",
        expect![[r#"
            error: unknown name `flaq`
              --> a.wtl:5:9
               |
             5 |         flaq[self] = 1;
               |         ^^^^
               = expected: a shared name, a register or a constant
               = hint: did you mean `flag`?

            error: unknown name `othr`
              --> a.wtl:6:16
               |
             6 |         turn = othr
               |                ^^^^
               = expected: a shared name, a register or a constant
               = hint: did you mean `other`?

            error: a `;` is missing here
              --> a.wtl:6:20
               |
             6 |         turn = othr
               |                    ^
               = expected: `;`

            error: `flag` is an array; which element?
              --> a.wtl:7:15
               |
             7 |         while flag == 1 && turn[0] == other { }
               |               ^^^^
               = hint: write `flag[0]`

            error: there is no label `criticl` to go to
              --> a.wtl:10:14
               |
            10 |         goto criticl;
               |              ^^^^^^^
               = hint: did you mean `critcal`?

            error: `p` has no label `critical`
              --> a.wtl:13:12
               |
            13 | never p[i]@critical && q@critical;
               |            ^^^^^^^^
               = hint: did you mean `critcal`?

            error: there is no family of threads called `q`
              --> a.wtl:13:24
               |
            13 | never p[i]@critical && q@critical;
               |                        ^
               = hint: did you mean `p`?
        "#]],
    );
}

#[test]
fn missing_and_unexpected() {
    check(
        "thread p { skip }",
        expect![[r#"
            error: unexpected `}`
              --> a.wtl:1:17
               |
             1 | thread p { skip }
               |                 ^
               = expected: `;`
               = hint: every statement ends with `;`
        "#]],
    );
    check(
        "thread p { x == 1; }",
        expect![[r#"
        error: unexpected `;`
          --> a.wtl:1:18
           |
         1 | thread p { x == 1; }
           |                  ^
           = expected: `=`: a statement that starts with an expression is an assignment
    "#]],
    );
    check(
        "thread p { if 1 < 2 < 3 { } }",
        expect![[r#"
        error: comparisons do not chain
          --> a.wtl:1:17
           |
         1 | thread p { if 1 < 2 < 3 { } }
           |                 ^
           = hint: write `a < b && b < c`, or put one side in parentheses
    "#]],
    );
    check(
        "thread p { skp; }",
        expect![[r#"
        error: unexpected `;`
          --> a.wtl:1:12
           |
         1 | thread p { skp; }
           |            ^^^
           = expected: `=`: a statement that starts with an expression is an assignment
           = hint: did you mean `skip`?
    "#]],
    );
    check(
        "thread p { ; }",
        expect![[r#"
        error: an empty statement
          --> a.wtl:1:12
           |
         1 | thread p { ; }
           |            ^
           = hint: remove the `;`, or write `skip;` for a step that does nothing
    "#]],
    );
    check(
        "thread p { skip;",
        expect![[r#"
            error: the file ends too early
              --> a.wtl:1:17
               |
             1 | thread p { skip;
               |                 ^
               = expected: a statement, or `}` to close the block
               = hint: the `{` in line 1 is still open here
        "#]],
    );
    check(
        "shraed x;",
        expect![[r#"
            error: unexpected `shraed`
              --> a.wtl:1:1
               |
             1 | shraed x;
               | ^^^^^^
               = expected: a declaration (`shared`, `let`, `thread`, `never`, `always`, `finally`, `reachable`, `ltl`, `progress`, `predicates`)
               = hint: did you mean `shared`?
        "#]],
    );
    check(
        "shared while;",
        expect![[r#"
        error: `while` is a word of the language
          --> a.wtl:1:8
           |
         1 | shared while;
           |        ^^^^^
           = expected: a name to declare
           = hint: as a name, write it in backquotes: `` `while` ``
    "#]],
    );
    check(
        "thread p { } }",
        expect![[r#"
        error: this `}` closes nothing
          --> a.wtl:1:14
           |
         1 | thread p { } }
           |              ^
    "#]],
    );
    check(
        "shared x; thread p { x += 1; if x = 1 { } }",
        expect![[r#"
            error: there is no assignment operator of this kind
              --> a.wtl:1:24
               |
             1 | shared x; thread p { x += 1; if x = 1 { } }
               |                        ^^
               = hint: write `x = x + 1;`: a load and a store, or `fetch_add(x, 1);` to be atomic

            error: unexpected `=`
              --> a.wtl:1:35
               |
             1 | shared x; thread p { x += 1; if x = 1 { } }
               |                                   ^
               = expected: `{`
               = hint: equality is `==`
        "#]],
    );
    check(
        "thread p { € skip; }",
        expect![[r#"
        error: unexpected character `€`
          --> a.wtl:1:12
           |
         1 | thread p { € skip; }
           |            ^
    "#]],
    );
    check(
        "/* never closed",
        expect![[r#"
            error: this comment is never closed
              --> a.wtl:1:1
               |
             1 | /* never closed
               | ^^
               = expected: `*/`
        "#]],
    );
    check(
        "thread p { assert 1, \"open; }",
        expect![[r#"
            error: this quoted string is never closed
              --> a.wtl:1:22
               |
             1 | thread p { assert 1, "open; }
               |                      ^^^^^^^^
               = expected: `"`

            error: the file ends too early
              --> a.wtl:1:30
               |
             1 | thread p { assert 1, "open; }
               |                              ^
               = expected: `;`

            error: the file ends too early
              --> a.wtl:1:30
               |
             1 | thread p { assert 1, "open; }
               |                              ^
               = expected: a statement, or `}` to close the block
               = hint: the `{` in line 1 is still open here
        "#]],
    );
}

#[test]
fn meanings() {
    check(
        "shared x; shared x; thread x { }",
        expect![[r#"
            error: `x` is declared twice
              --> a.wtl:1:18
               |
             1 | shared x; shared x; thread x { }
               |                  ^

            error: `x` is declared twice
              --> a.wtl:1:28
               |
             1 | shared x; shared x; thread x { }
               |                            ^
        "#]],
    );
    check(
        "shared x; thread p { local x; let y = x; }",
        expect![[r#"
        error: `x` is already the name of shared memory
          --> a.wtl:1:28
           |
         1 | shared x; thread p { local x; let y = x; }
           |                            ^
           = hint: choose another name: nothing is shadowed

        error: `x` is a register; a constant is needed here
          --> a.wtl:1:39
           |
         1 | shared x; thread p { local x; let y = x; }
           |                                       ^
           = hint: declare a register with `local` and assign it
    "#]],
    );
    check(
        "thread p { local r; let y = r; y = 1; r[0] = 1; }",
        expect![[r#"
            error: `r` is a register; a constant is needed here
              --> a.wtl:1:29
               |
             1 | thread p { local r; let y = r; y = 1; r[0] = 1; }
               |                             ^
               = hint: declare a register with `local` and assign it

            error: `y` is a constant
              --> a.wtl:1:32
               |
             1 | thread p { local r; let y = r; y = 1; r[0] = 1; }
               |                                ^
               = hint: declare it with `local` to assign it

            error: `r` is a register; only shared memory has arrays
              --> a.wtl:1:39
               |
             1 | thread p { local r; let y = r; y = 1; r[0] = 1; }
               |                                       ^^^^
        "#]],
    );
    check(
        "thread p { break; goto nowhere; }",
        expect![[r#"
        error: `break` outside of a loop
          --> a.wtl:1:12
           |
         1 | thread p { break; goto nowhere; }
           |            ^^^^^^

        error: there is no label `nowhere` to go to
          --> a.wtl:1:24
           |
         1 | thread p { break; goto nowhere; }
           |                        ^^^^^^^
           = hint: labels of other threads and inside `for` cannot be reached
    "#]],
    );
    check(
        "thread p[2] { local r; q.r = 1; } never p.r == 1; never r == 1;",
        expect![[r#"
            error: this is not a place in memory
              --> a.wtl:1:24
               |
             1 | thread p[2] { local r; q.r = 1; } never p.r == 1; never r == 1;
               |                        ^^^
               = expected: a shared name, an element of a shared array, or `*(address)`

            error: `p` has several threads; which one?
              --> a.wtl:1:41
               |
             1 | thread p[2] { local r; q.r = 1; } never p.r == 1; never r == 1;
               |                                         ^^^
               = hint: `p[0]` is the first, `p[i]` any of them

            error: unknown name `r`
              --> a.wtl:1:57
               |
             1 | thread p[2] { local r; q.r = 1; } never p.r == 1; never r == 1;
               |                                                         ^
               = expected: a shared name, `thread.register` or `thread@label`
               = hint: `r` is a register: `p[i].r`
        "#]],
    );
    check(
        "shared x: 3..1; shared a[0]; thread p[0] { }",
        expect![[r#"
            error: the range 3..1 is empty
              --> a.wtl:1:11
               |
             1 | shared x: 3..1; shared a[0]; thread p[0] { }
               |           ^^^^
               = hint: both ends belong to a range, the smaller one first

            error: this is no length of an array
              --> a.wtl:1:26
               |
             1 | shared x: 3..1; shared a[0]; thread p[0] { }
               |                          ^
               = expected: 1 to 4294967295

            error: this is no number of threads
              --> a.wtl:1:39
               |
             1 | shared x: 3..1; shared a[0]; thread p[0] { }
               |                                       ^
               = expected: 1 or more, or `*` for any number
        "#]],
    );
    check(
        "shared x: u64; thread p { atomic begin; }",
        expect![[r#"
        error: 64 bits are no unsigned width; 1 to 63 are
          --> a.wtl:1:8
           |
         1 | shared x: u64; thread p { atomic begin; }
           |        ^

        error: `p` ends inside an atomic block
          --> a.wtl:1:41
           |
         1 | shared x: u64; thread p { atomic begin; }
           |                                         ^
    "#]],
    );
    check(
        "shared x: 0..1 = {1}, a[2] = {1, 2, 3}; thread p { }",
        expect![[r#"
            error: `x` is no array but starts with a list
              --> a.wtl:1:8
               |
             1 | shared x: 0..1 = {1}, a[2] = {1, 2, 3}; thread p { }
               |        ^

            error: `a` has 2 elements but 3 initial values
              --> a.wtl:1:23
               |
             1 | shared x: 0..1 = {1}, a[2] = {1, 2, 3}; thread p { }
               |                       ^
        "#]],
    );
    check(
        "shared b[thread]; thread p { } thread q { }",
        expect![[r#"
        error: `[thread]` needs exactly one family of threads; there are 2
          --> a.wtl:1:10
           |
         1 | shared b[thread]; thread p { } thread q { }
           |          ^^^^^^
           = hint: put the name of the family in the brackets
    "#]],
    );
    check(
        "thread p { atomic { lock; } }",
        expect![[r#"
        error: lock and unlock may not stand in an atomic block
          --> a.wtl:1:21
           |
         1 | thread p { atomic { lock; } }
           |                     ^^^^^
    "#]],
    );
    check(
        "thread p { a: skip; a: skip; goto a; 1: 1: skip; }",
        expect![[r#"
            error: several places are called `a`
              --> a.wtl:1:35
               |
             1 | thread p { a: skip; a: skip; goto a; 1: 1: skip; }
               |                                   ^

            error: the label 1 appears twice
              --> a.wtl:1:41
               |
             1 | thread p { a: skip; a: skip; goto a; 1: 1: skip; }
               |                                         ^
        "#]],
    );
    check(
        "thread p[2] { } never p[2]@x; never self == 1;",
        expect![[r#"
            error: `p` has no label `x`
              --> a.wtl:1:28
               |
             1 | thread p[2] { } never p[2]@x; never self == 1;
               |                            ^
               = hint: a label stands before a statement: `critical: skip;`

            error: `self` means nothing outside of a thread
              --> a.wtl:1:37
               |
             1 | thread p[2] { } never p[2]@x; never self == 1;
               |                                     ^^^^
               = hint: name the thread: `p[i].r`, with `i` for any thread of `p`
        "#]],
    );
    check(
        "thread p { skip; local r; }",
        expect![[r#"
        error: registers are declared before the first statement
          --> a.wtl:1:18
           |
         1 | thread p { skip; local r; }
           |                  ^^^^^
           = hint: move this line to the top of the thread
    "#]],
    );
    check(
        "thread p { r = cas(1, 2); } never swap(x, 1);",
        expect![[r#"
            error: `cas` has the wrong number of operands
              --> a.wtl:1:16
               |
             1 | thread p { r = cas(1, 2); } never swap(x, 1);
               |                ^^^^^^^^^
               = expected: `cas(place, old, new)`

            error: a property only looks; it cannot change memory
              --> a.wtl:1:35
               |
             1 | thread p { r = cas(1, 2); } never swap(x, 1);
               |                                   ^^^^^^^^^^
        "#]],
    );
}

#[test]
fn a_vacuous_property_is_a_warning() {
    let text = "thread p[1] { l: skip; } never p[i]@l && p[j]@l;";
    let parsed = parse(text);
    assert!(parsed.program.is_some());
    expect![[r#"
        warning: this says nothing: it needs 2 different threads of `p`, which has 1
          --> a.wtl:1:26
           |
         1 | thread p[1] { l: skip; } never p[i]@l && p[j]@l;
           |                          ^^^^^^^^^^^^^^^^^^^^^^^
    "#]]
    .assert_eq(&parsed.render("a.wtl", text));
}

#[test]
fn a_label_where_properties_do_not_look_is_a_warning() {
    let text = "shared x; thread p { atomic { in: x = 1; } out: skip; } never p@in || p@out;";
    let parsed = parse(text);
    assert!(parsed.program.is_some());
    expect![[r#"
        warning: `p` is at `in` inside an atomic block only, where properties do not look
          --> a.wtl:1:65
           |
         1 | shared x; thread p { atomic { in: x = 1; } out: skip; } never p@in || p@out;
           |                                                                 ^^
           = hint: put the label behind the block, or an `assert` into it
    "#]]
    .assert_eq(&parsed.render("a.wtl", text));
}
