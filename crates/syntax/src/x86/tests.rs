//! What a person reads when an x86 program is wrong, and what some programs look like in `.wtl`.

use super::{ParseOptions, parse, parse_with};
use expect_test::{Expect, expect};
use wattle_model::print::to_wtl;

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&parse(text).render("test.asm", text));
}

fn program(code: &str) -> String {
    format!(
        "begin shared_data\nLock dd 1\nend shared_data\nbegin unsafe_prop\neip[$t1] = cs && eip[$t2] = cs\nend unsafe_prop\nbegin thread_code\n{code}\nend thread_code\n"
    )
}

#[test]
fn unknown_mnemonic() {
    check(
        &program("cs: lock decc dword [Lock]"),
        expect![[r#"
        error: unknown instruction `decc`
          --> test.asm:8:10
           |
         8 | cs: lock decc dword [Lock]
           |          ^^^^
           = hint: did you mean `dec`?
    "#]],
    );
}

#[test]
fn register_of_the_wrong_size() {
    check(
        &program("cs: mov eax, 0\nmov ax, dword [Lock]\nmov rax, ebx\nadd al, eax"),
        expect![[r#"
            error: register `AX` has 16 bits, but the memory operand has 32
              --> test.asm:9:5
               |
             9 | mov ax, dword [Lock]
               |     ^^
               = hint: use `EAX`

            error: register `EBX` has 32 bits, but the other operand has 64
              --> test.asm:10:10
               |
            10 | mov rax, ebx
               |          ^^^
               = hint: use `RBX`

            error: register `EAX` has 32 bits, but the other operand has 8
              --> test.asm:11:9
               |
            11 | add al, eax
               |         ^^^
               = hint: use `AL`
        "#]],
    );
}

#[test]
fn undefined_and_duplicate_labels() {
    check(
        &program("cs: jmp acquire\nretry: nop\ncs: jne rety"),
        expect![[r#"
            warning: a jump reads a flag that nothing may have set; it may have any value
              --> test.asm:7:1
               |
             7 | begin thread_code
               | ^^^^^^^^^^^^^^^^^

            error: there is no label `acquire`
              --> test.asm:8:9
               |
             8 | cs: jmp acquire
               |         ^^^^^^^
               = expected: a label of this thread

            error: label `cs` is defined twice
              --> test.asm:10:1
               |
            10 | cs: jne rety
               | ^^
               = hint: the other definition is on line 8

            error: there is no label `rety`
              --> test.asm:10:9
               |
            10 | cs: jne rety
               |         ^^^^
               = hint: did you mean `retry`?
        "#]],
    );
    check(
        &program("critical: nop"),
        expect![[r#"
        error: there is no label `cs`
          --> test.asm:5:12
           |
         5 | eip[$t1] = cs && eip[$t2] = cs
           |            ^^
           = expected: a label of `thread_code`
    "#]],
    );
}

#[test]
fn unbound_variables() {
    check(
        &program("cs: mov dword [Lok], 1\nmov eax, Lock\nmov [ebx], eax"),
        expect![[r#"
            error: there is no variable `Lok`
              --> test.asm:8:16
               |
             8 | cs: mov dword [Lok], 1
               |                ^^^
               = hint: did you mean `Lock`?

            error: unknown register `Lock`
              --> test.asm:9:10
               |
             9 | mov eax, Lock
               |          ^^^^
               = hint: the variable is written `[Lock]`

            error: there is no variable `ebx`
              --> test.asm:10:6
               |
            10 | mov [ebx], eax
               |      ^^^
               = hint: an address begins with a variable: `[array + eax*4]`
        "#]],
    );
    check(
        &program("cs: nop").replace("eip[$t2] = cs", "Lokc = 1 && $t1:Lock = 1"),
        expect![[r#"
            error: there is no variable `Lokc`
              --> test.asm:5:18
               |
             5 | eip[$t1] = cs && Lokc = 1 && $t1:Lock = 1
               |                  ^^^^
               = expected: a variable, or `eip[$t]` next to a label
        "#]],
    );
}

#[test]
fn truncated_file() {
    check(
        "begin shared_data\nLock dd 1\n",
        expect![[r#"
        error: this section is not closed
          --> test.asm:1:1
           |
         1 | begin shared_data
           | ^^^^^
           = expected: `end shared_data`

        error: the program has no `thread_code`
          --> test.asm
           = expected: `begin thread_code … end thread_code`
    "#]],
    );
    check(
        &program("cs: mov dword [Lock"),
        expect![[r#"
        error: the line ends too early
          --> test.asm:8:20
           |
         8 | cs: mov dword [Lock
           |                    ^
           = expected: `]`
    "#]],
    );
}

#[test]
fn wrong_language() {
    check(
        "X86 SB\n{ x=0; }\n P0 ;\n",
        expect![[r#"
        error: `X86` stands outside any section
          --> test.asm:1:1
           |
         1 | X86 SB
           | ^^^
           = expected: `begin shared_data`, `begin thread_code`, …
           = hint: name the language with `--lang` if this is not an x86 program with sections; what a compiler writes is read from `.s` and `.o` files
    "#]],
    );
    check(
        "",
        expect![[r#"
        error: the program has no `thread_code`
          --> test.asm
           = expected: `begin thread_code … end thread_code`
    "#]],
    );
}

#[test]
fn counters_know_little() {
    let text = "begin shared_data\nc dd 0 ! as counter\nd dd 3 ! as counter\nend\nbegin thread_code\nadd dword [c], 2\nmov eax, [c]\ncmp dword [c], 7\nmov dword [c], N\nend\n";
    check(
        text,
        expect![[r#"
        error: a counter starts with 0 or N
          --> test.asm:3:1
           |
         3 | d dd 3 ! as counter
           | ^

        error: `c` is a counter and cannot be used like this
          --> test.asm:6:5
           |
         6 | add dword [c], 2
           |     ^^^^^^^^^
           = expected: `inc`, `dec`, or `mov` and `cmp` with 0 or N
           = hint: drop `! as counter` to use it as an ordinary number

        error: `c` is a counter and cannot be used like this
          --> test.asm:7:10
           |
         7 | mov eax, [c]
           |          ^^^
           = expected: `inc`, `dec`, or `mov` and `cmp` with 0 or N
           = hint: drop `! as counter` to use it as an ordinary number

        error: `c` is a counter and cannot be used like this
          --> test.asm:8:5
           |
         8 | cmp dword [c], 7
           |     ^^^^^^^^^
           = expected: `inc`, `dec`, or `mov` and `cmp` with 0 or N
           = hint: drop `! as counter` to use it as an ordinary number
    "#]],
    );
}

#[test]
fn initial_code_must_be_constant() {
    let text = "begin shared_data\nx dd 0\nc dd N ! as counter\nend\nbegin init_code\nmov dword [x], eax\nend\nbegin thread_code\nnop\nend\n";
    check(
        text,
        expect![[r#"
        error: the threads are never started
          --> test.asm:5:1
           |
         5 | begin init_code
           | ^^^^^^^^^^^^^^^
           = expected: `start_threads` at the end of this section

        error: this reads a register or flag that nothing has set
          --> test.asm:6:1
           |
         6 | mov dword [x], eax
           | ^^^^^^^^^^^^^^^^^^
    "#]],
    );
    let text = "begin shared_data\nx dd 0\nend\nbegin init_code\nl: inc dword [x]\njmp l\nstart_threads\nend\nbegin thread_code\nnop\nend\n";
    check(
        text,
        expect![[r#"
        error: this code takes more than 10000 steps; does it end?
          --> test.asm:5:4
           |
         5 | l: inc dword [x]
           |    ^^^^^^^^^^^^^
    "#]],
    );
}

#[test]
fn registers_start_with_anything() {
    check(
        &program("cs: inc eax\njs cs"),
        expect![[r#"
        warning: `eax` may be read before it is written; it may have any value
          --> test.asm:8:5
           |
         8 | cs: inc eax
           |     ^^^^^^^
           = hint: write `mov eax, 0` first if it should start with 0
    "#]],
    );
    check(
        &program("js cs\ncs: nop"),
        expect![[r#"
        warning: a jump reads a flag that nothing may have set; it may have any value
          --> test.asm:7:1
           |
         7 | begin thread_code
           | ^^^^^^^^^^^^^^^^^
    "#]],
    );
}

#[test]
fn initial_code_runs_first() {
    let text = "begin shared_data\nx dd 0\ny dd 7\nend\nbegin thread_data\nmine dd 5\nend\nbegin init_code\nmov ecx, 3\nl: add dword [x], ecx\ndec ecx\njne l\nmov eax, [x]\nxchg eax, [y]\nstart_threads\nend\nbegin thread_code\nlock xadd dword [x], eax\nmov [mine + $t], eax\nend\n";
    let wtl = to_wtl(&parse(text).program.unwrap_or_default());
    expect![[r#"
        shared x: i32 = 6;
        shared y: i32 = 6;
        shared mine[t]: i32 = 5;

        thread t[*] {
            local eax: i32 = any;
            local tmp32: i32;
            atomic begin;
            tmp32 = x;
            x = tmp32 + eax;
            atomic end;
            eax = tmp32;
            mine[self] = eax;
        }
    "#]]
    .assert_eq(&wtl);
}

#[test]
fn counters_in_wtl() {
    let text = "begin shared_data\ncount dd N ! as counter\nend\nbegin thread_code\nlock dec dword [count]\njne spin\nmov dword [count], N\nspin: cmp dword [count], 0\nje spin\nend\n";
    expect![[r#"
        shared count = count(t);

        thread t[*] {
            local tmp;
            atomic begin;
            tmp = count;
            tmp = tmp - 1;
            count = tmp;
            atomic end;
            if tmp != 0 { } else { goto 9; }
            spin: 6: tmp = count;
            if tmp == 0 { goto 6; }
            stop;
            9: count = count(t); goto 6;
        }
    "#]]
    .assert_eq(&to_wtl(&parse(text).program.unwrap_or_default()));
}

#[test]
fn mathematical_integers() {
    let text = program("l: lock dec dword [Lock]\njns cs\njmp l\ncs: mov dword [Lock], 1");
    let options = ParseOptions { mathematical: true };
    let parsed = parse_with(&text, options);
    expect![[r#"
        shared Lock = 1;

        thread t[*] {
            local tmp;
            l: 0: atomic begin;
            tmp = Lock;
            tmp = tmp - 1;
            Lock = tmp;
            atomic end;
            if tmp >= 0 { } else { goto 0; }
            cs: Lock = 1;
        }

        never t[t1]@cs && t[t2]@cs;
    "#]]
    .assert_eq(&to_wtl(&parsed.program.unwrap_or_default()));
    let parsed = parse_with(
        &program("cs: cmp dword [Lock], 1\njp cs\nmov al, 1"),
        options,
    );
    expect![[r#"
        error: mathematical integers have no parity
          --> test.asm:1:1
           |
         1 | 
           | ^
           = hint: use wrap-around numbers

        error: register `al` is a part, which mathematical integers do not have
          --> test.asm:1:1
           |
         1 | 
           | ^
           = hint: use `eax`
    "#]]
    .assert_eq(&parsed.render("test.asm", ""));
}

/// `lock` is for what reads and writes memory.
#[test]
fn nothing_else_is_locked() {
    for code in ["lock nop\ncs: nop", "cs: lock jmp cs"] {
        let text = program(code);
        let shown = parse(&text).render("test.asm", &text);
        assert!(shown.contains("`lock` needs an instruction"), "{shown}");
    }
}

#[test]
fn condition_on_a_missing_register() {
    check(
        &program("cs: nop").replace("eip[$t2] = cs", "eex[$t2] = 1"),
        expect![[r#"
            error: there is no variable `eex`
              --> test.asm:5:18
               |
             5 | eip[$t1] = cs && eex[$t2] = 1
               |                  ^^^^^^^^
               = expected: a variable, or `eip[$t]` next to a label
        "#]],
    );
}

/// Several functions, arrays and what is wrong with them.
#[test]
fn functions_and_arrays() {
    let text = |data: &str, code: &str, property: &str| {
        format!(
            "begin shared_data\na dd 1, 2, 3\n{data}\nend shared_data\nbegin unsafe_prop\n{property}\nend unsafe_prop\n{code}\n"
        )
    };
    let two = "begin thread_code p\none: mov dword [a + 4], 5\nend\nbegin thread_code q 2\nmov ebx, 1\ntwo: mov eax, dword [a + ebx*4]\nend";
    let property = "eip[$x] = one && eip[$y] = two && eax[$y] = 7";
    let whole = text("", two, property);
    let parsed = parse(&whole);
    let shown = parsed.render("test.asm", &whole);
    let program = parsed.program.unwrap_or_else(|| panic!("{shown}"));
    expect![[r#"
        shared a[3]: i32 = {1, 2, 3};

        thread p[*] {
            local eax: i32;
            one: a[1] = 5;
        }

        thread q[2] {
            local eax: i32 = any;
            local ebx: i32;
            ebx = 1;
            two: eax = a[ebx];
        }

        never p[x]@one && q[y]@two && q[y].eax == 7;
    "#]]
    .assert_eq(&to_wtl(&program));
    let wrong = |data: &str, code: &str, property: &str, expected: &str| {
        let text = text(data, code, property);
        let said = parse(&text).render("test.asm", &text);
        assert!(said.contains(expected), "{said}");
    };
    let at = "eip[$x] = one";
    wrong("", two, "eax[$x] = 1", "what `$x` runs is not clear");
    wrong(
        "",
        two,
        "eip[$x] = one && eip[$x] = two",
        "cannot run two functions",
    );
    wrong(
        "",
        &two.replace("two:", "one:"),
        at,
        "label `one` is defined twice",
    );
    wrong("", &two.replace("code q 2", "code"), at, "give each a name");
    wrong(
        "",
        &two.replace("code q 2", "code q 0"),
        at,
        "no number of threads",
    );
    wrong(
        "",
        &two.replace("code q 2", "code p"),
        at,
        "two functions `p`",
    );
    wrong("n dd N", two, at, "several functions");
    wrong(
        "",
        &two.replace("[a + 4]", "[a + 12]"),
        at,
        "outside of `a`",
    );
    wrong("", &two.replace("[a + 4]", "[a + 2]"), at, "outside of `a`");
    wrong(
        "",
        &two.replace("[a + ebx*4]", "[a + ebx*3]"),
        at,
        "1, 2, 4 or 8 times",
    );
    wrong(
        "",
        &two.replace("[a + ebx*4]", "[a + bx]"),
        at,
        "32 or 64 bits",
    );
    wrong("b dd 1, ?", two, at, "all known at first, or none");
    wrong("b times 0 dd 1", two, at, "a number from 1 to");
    let data = "begin thread_data\nd dd 0\nend\n";
    wrong("", &format!("{data}{two}"), at, "whose data this is");
    let data = "begin thread_data q\nd dd 0\nend\n";
    let other = two.replace("[a + 4]", "[d]");
    wrong(
        "",
        &format!("{data}{other}"),
        at,
        "these threads have no `d`",
    );
}

/// A flag that the manual leaves undefined must not be read.
#[test]
fn undefined_flags() {
    let text = program("mov eax, 1\nmov ecx, 1\ncs: shl eax, cl\njc cs");
    let said = parse(&text).render("test.asm", &text);
    assert!(said.contains("leaves undefined"), "{said}");
}
