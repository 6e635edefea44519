//! What a person reads when a litmus test is wrong.

use super::parse;
use expect_test::{Expect, expect};

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&parse(text).render("test.litmus", text));
}

/// Two threads of store buffering with one line replaced.
fn with(line: &str) -> String {
    format!(
        "X86 SB\n{{ x=0; y=0; }}\n P0          | P1          ;\n{line}\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n"
    )
}

#[test]
fn unknown_mnemonic() {
    check(
        &with(" MOOV [x],$1 | MOV [y],$1  ;"),
        expect![[r#"
        error: unknown instruction `MOOV`
          --> test.litmus:4:2
           |
         4 |  MOOV [x],$1 | MOV [y],$1  ;
           |  ^^^^
           = hint: did you mean `MOV`?
    "#]],
    );
}

#[test]
fn register_of_the_wrong_size() {
    check(
        &with(" MOVL [x],AL  | MOV EBX,CX  ;"),
        expect![[r#"
        error: register `AL` has 8 bits, but the mnemonic asks for 32
          --> test.litmus:4:11
           |
         4 |  MOVL [x],AL  | MOV EBX,CX  ;
           |           ^^
           = hint: use `EAX`

        error: register `CX` has 16 bits, but the other operand has 32
          --> test.litmus:4:25
           |
         4 |  MOVL [x],AL  | MOV EBX,CX  ;
           |                         ^^
           = hint: use `ECX`
    "#]],
    );
}

#[test]
fn undefined_label() {
    check(
        &with(" JMP done    | MOV [y],$1  ;"),
        expect![[r#"
        error: there is no label `done`
          --> test.litmus:4:6
           |
         4 |  JMP done    | MOV [y],$1  ;
           |      ^^^^
           = expected: a label of this thread
    "#]],
    );
}

#[test]
fn duplicate_label() {
    check(
        &with(" L: L: NOP   | MOV [y],$1  ;"),
        expect![[r#"
        error: label `L` is defined twice
          --> test.litmus:4:5
           |
         4 |  L: L: NOP   | MOV [y],$1  ;
           |     ^
           = hint: the other definition is on line 4
    "#]],
    );
}

#[test]
fn unbound_location() {
    let text = with(" MOV [x],$1  | MOV [y],$1  ;").replace("1:EAX=0", "1:EAX=z");
    check(
        &text,
        expect![[r#"
        error: unknown location `z`
          --> test.litmus:6:20
           |
         6 | exists (0:EAX=0 /\ 1:EAX=z)
           |                    ^^^^^^^
           = hint: did you mean `x`?
    "#]],
    );
}

#[test]
fn location_that_no_thread_uses() {
    let text = with(" MOV [x],$1  | MOV [y],$1  ;").replace("1:EAX=0", "flag=0");
    check(
        &text,
        expect![[r#"
        warning: no thread uses location `flag`, so it stays 0
          --> test.litmus:6:20
           |
         6 | exists (0:EAX=0 /\ flag=0)
           |                    ^^^^^^
    "#]],
    );
}

#[test]
fn condition_on_missing_registers() {
    let text = with(" MOV [x],$1  | MOV [y],$1  ;").replace(
        "exists (0:EAX=0 /\\ 1:EAX=0)",
        "exists (2:EAX=0 /\\ 1:EAY=0 /\\ 0:RAX=1)",
    );
    check(
        &text,
        expect![[r#"
        error: there is no thread 2
          --> test.litmus:6:9
           |
         6 | exists (2:EAX=0 /\ 1:EAY=0 /\ 0:RAX=1)
           |         ^^^^^^^
           = hint: the test has the 2 threads of its first row

        error: thread 1 has no register `EAY`
          --> test.litmus:6:20
           |
         6 | exists (2:EAX=0 /\ 1:EAY=0 /\ 0:RAX=1)
           |                    ^^^^^^^
           = hint: did you mean `EAX`?

        error: register `RAX` has 64 bits, but the test is for X86
          --> test.litmus:6:31
           |
         6 | exists (2:EAX=0 /\ 1:EAY=0 /\ 0:RAX=1)
           |                               ^^^^^^^
           = hint: use `EAX`, or write `X86_64` in the header
    "#]],
    );
}

#[test]
fn truncated_files() {
    let text = with(" MOV [x],$1  | MOV [y],$1  ;");
    check(
        &text[..14],
        expect![[r#"
            error: the initial state is not closed
              --> test.litmus:2:7
               |
             2 | { x=0; 
               |       ^
               = expected: `}`
               = hint: it was opened on line 2

            error: the file ends too early
              --> test.litmus:2:7
               |
             2 | { x=0; 
               |       ^
               = expected: a thread such as `P0`
        "#]],
    );
    check(
        &text[..70],
        expect![[r#"
        error: the row of instructions is not finished before the end of the file
          --> test.litmus:4:21
           |
         4 |  MOV [x],$1  | MOV [
           |                     ^
           = expected: `;`
    "#]],
    );
    check(
        &text[..text.len() - 4],
        expect![[r#"
        error: the file ends too early
          --> test.litmus:6:25
           |
         6 | exists (0:EAX=0 /\ 1:EAX
           |                         ^
           = expected: `=`
    "#]],
    );
}

#[test]
fn wrong_language() {
    check(
        "shared x;\nthread p { x = 1; }\n",
        expect![[r#"
        error: this is not an x86 litmus test
          --> test.litmus:1:1
           |
         1 | shared x;
           | ^^^^^^
           = expected: `X86 name` or `X86_64 name` on the first line
           = hint: name the language with `--lang` if the extension misleads
    "#]],
    );
    check(
        "AArch64 MP\n{ }\n P0 ;\n",
        expect![[r#"
        error: this is not an x86 litmus test
          --> test.litmus:1:1
           |
         1 | AArch64 MP
           | ^^^^^^^
           = expected: `X86 name` or `X86_64 name` on the first line
           = hint: litmus tests for `AArch64` are not supported, only x86 ones
    "#]],
    );
}

#[test]
fn several_errors_at_once() {
    check(
        "X86 many\n{ x=; 7 }\n P0 | P1 ;\n MOV $1,[x] | MOV [x],$1 | NOP ;\n ADD EAX | LOCK MOV [x],EAX ;\n MOV [x],[y] | MOV [x+9],$1 ;\n MOV EAX,x | MOV EAX,[7] ;\nexists x\n",
        expect![[r#"
            error: unexpected `;`
              --> test.litmus:2:5
               |
             2 | { x=; 7 }
               |     ^
               = expected: a register such as `0:EAX` or a location

            error: unexpected `7`
              --> test.litmus:2:7
               |
             2 | { x=; 7 }
               |       ^
               = expected: a register such as `0:EAX` or a location

            error: this instruction has its operands in the other order
              --> test.litmus:4:15
               |
             4 |  MOV $1,[x] | MOV [x],$1 | NOP ;
               |               ^^^^^^^^^^
               = hint: line 4 decided the order of operands

            error: a number cannot be written to
              --> test.litmus:4:23
               |
             4 |  MOV $1,[x] | MOV [x],$1 | NOP ;
               |                       ^^
               = expected: a register or a memory operand

            error: there are only 2 threads, but this is column 3
              --> test.litmus:4:28
               |
             4 |  MOV $1,[x] | MOV [x],$1 | NOP ;
               |                            ^^^

            error: this instruction takes 2 operands, but 1 is given
              --> test.litmus:5:2
               |
             5 |  ADD EAX | LOCK MOV [x],EAX ;
               |  ^^^^^^^

            error: `lock` needs an instruction that reads and writes memory
              --> test.litmus:5:12
               |
             5 |  ADD EAX | LOCK MOV [x],EAX ;
               |            ^^^^^^^^^^^^^^^^
               = hint: for a barrier write `mfence`

            error: an instruction has at most one memory operand
              --> test.litmus:6:2
               |
             6 |  MOV [x],[y] | MOV [x+9],$1 ;
               |  ^^^^^^^^^^^
               = hint: load one of them into a register first

            error: this instruction has its operands in the other order
              --> test.litmus:6:16
               |
             6 |  MOV [x],[y] | MOV [x+9],$1 ;
               |                ^^^^^^^^^^^^
               = hint: line 4 decided the order of operands

            error: this address lies outside of `x`
              --> test.litmus:6:20
               |
             6 |  MOV [x],[y] | MOV [x+9],$1 ;
               |                    ^^^^^
               = hint: `x` has 4 bytes

            error: unknown register `x`
              --> test.litmus:7:10
               |
             7 |  MOV EAX,x | MOV EAX,[7] ;
               |          ^
               = hint: the location is written `[x]`

            error: numbers as addresses are not supported
              --> test.litmus:7:22
               |
             7 |  MOV EAX,x | MOV EAX,[7] ;
               |                      ^^^
               = expected: a location or a register

            error: the file ends too early
              --> test.litmus:8:9
               |
             8 | exists x
               |         ^
               = expected: `=`
        "#]],
    );
}

#[test]
fn stores_to_parts_of_cells() {
    check(
        "X86_64 mixed\n{ int64_t x; }\n P0 | P1 ;\n movb $1,(x) | movq (x),%rax ;\nexists 1:rax=1\n",
        expect![[r#"
            error: this writes 8 bits of `x`, which is used with 64 bits elsewhere
              --> test.litmus:4:10
               |
             4 |  movb $1,(x) | movq (x),%rax ;
               |          ^^^
               = hint: stores to a part of a cell are not supported
        "#]],
    );
}

/// Forms of operands and instructions that compilers use: elements behind a name, narrow loads, bits.
#[test]
fn compiled_forms() {
    let text = "X86_64 forms\n{ int32_t t[4]={1,2,3,4}; uint8_t b=200; }\n P0 ;\n movl t+8(%rip),%eax ;\n movzbl b(%rip),%ecx ;\n movsbl b(%rip),%edx ;\n rep nop ;\n shll $2,%eax ;\n btsl $0,%eax ;\n lea 5(%rax),%rbx ;\n movl $1,%esi ;\n movl t(,%rsi,4),%edi ;\nforall (0:eax=13 /\\ 0:ecx=200 /\\ 0:edx=-56 /\\ 0:rbx=18 /\\ 0:edi=2)\n";
    let parsed = super::parse(text);
    assert!(
        parsed.program.is_some(),
        "{}",
        parsed.render("t.litmus", text)
    );
}
