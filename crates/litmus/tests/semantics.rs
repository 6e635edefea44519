//! Small tests of single instructions, addressing and syntax: the final states under TSO.

use wattle_evidence::Control;
use wattle_litmus::answer;
use wattle_memory::MemoryModel;
use wattle_syntax::litmus::parse_test;

/// The condition must hold, and both orders of thinking about it agree: as final states and as the
/// program's property is checked elsewhere.
fn check(text: &str) {
    let parsed = parse_test(text);
    let shown: String = parsed
        .diagnostics
        .iter()
        .map(|d| d.render("test.litmus", text))
        .collect();
    assert!(parsed.program.is_some(), "{shown}");
    let found = answer(&parsed, MemoryModel::Tso, &Control::unlimited());
    let found = found.unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(found.complete());
    assert!(found.summary.holds(), "{text}\n{}", found.summary);
}

/// One thread; the condition is a `forall`.
fn one(init: &str, code: &str, condition: &str) {
    let rows = code.replace('\n', " ;\n");
    check(&format!(
        "X86 one\n{{ {init} }}\n P0 ;\n {rows} ;\nforall ({condition})"
    ));
}

fn one64(init: &str, code: &str, condition: &str) {
    let rows = code.replace('\n', " ;\n");
    check(&format!(
        "X86_64 one\n{{ {init} }}\n P0 ;\n {rows} ;\nforall ({condition})"
    ));
}

#[test]
fn arithmetic_wraps_at_the_operand_size() {
    one("0:EAX=2147483647", "INC EAX", "0:EAX=-2147483648");
    one("0:EAX=2147483647", "INC EAX", "0:EAX=2147483648");
    one("0:EAX=1", "MOV AL,$255\nADD AL,$2", "0:EAX=1");
    one("0:EAX=258", "SUB AX,$259", "0:EAX=65535 /\\ 0:AX=-1");
    one("", "MOV [x],$0\nDEC [x]", "x=-1 /\\ [x]=4294967295");
    one(
        "0:EAX=5; 0:EBX=3",
        "AND EAX,EBX\nXOR EBX,EBX",
        "0:EAX=1 /\\ 0:EBX=0",
    );
    one("0:EAX=5", "NOT EAX\nNEG EAX", "0:EAX=6");
    one(
        "x=6",
        "MOV EAX,$3\nOR [x],EAX\nMOV EBX,[x]",
        "0:EBX=7 /\\ x=7",
    );
}

#[test]
fn parts_of_registers_share_bits() {
    one("0:EAX=4660", "MOV AH,$0", "0:EAX=52 /\\ 0:AL=52");
    one("0:EAX=4660", "MOV AL,AH", "0:EAX=4626");
    one64("0:RAX=-1", "movl $1,%eax", "0:RAX=1");
    one64("0:RAX=-1", "movw $1,%ax", "0:RAX=-65535");
    one64(
        "int64_t x=-1;",
        "movq (x),%rbx\nmovl %ebx,%ecx",
        "0:RCX=4294967295 /\\ 0:rbx=-1",
    );
}

#[test]
fn read_modify_write_instructions() {
    one("x=3; 0:EBX=4", "XADD [x],EBX", "x=7 /\\ 0:EBX=3");
    one("x=3; 0:EBX=4", "XCHG [x],EBX", "x=4 /\\ 0:EBX=3");
    one("x=3; 0:EBX=4", "XCHG EBX,[x]", "x=4 /\\ 0:EBX=3");
    one("0:EAX=1; 0:EBX=2", "XCHG EAX,EBX", "0:EAX=2 /\\ 0:EBX=1");
    one("0:EAX=1; 0:EBX=2", "XADD EAX,EBX", "0:EAX=3 /\\ 0:EBX=1");
    one("0:EAX=3", "XADD EAX,EAX", "0:EAX=6");
    one(
        "x=3; 0:EAX=3; 0:EBX=9",
        "LOCK CMPXCHG [x],EBX",
        "x=9 /\\ 0:EAX=3",
    );
    one(
        "x=4; 0:EAX=3; 0:EBX=9",
        "LOCK CMPXCHG [x],EBX",
        "x=4 /\\ 0:EAX=4",
    );
    one(
        "x=4; 0:EAX=3; 0:EBX=9",
        "CMPXCHG [x],EBX\nJE L\nMOV ECX,$1\nL:",
        "0:ECX=1",
    );
    one64("x=3; 0:EAX=3; 0:EBX=9", "lock cmpxchg %ebx,(x)", "x=9");
    one64("x=3; 0:EAX=3; 0:EBX=9", "lock\ncmpxchg (x),%ebx", "x=9");
    one("0:ECX=3; 0:EAX=3; 0:EBX=9", "CMPXCHG ECX,EBX", "0:ECX=9");
}

/// `JL` after comparing the least with the greatest number must not look at a wrapped difference.
#[test]
fn conditional_jumps() {
    let cases = [
        ("JE", "5", "5", true),
        ("JE", "5", "6", false),
        ("JNE", "5", "6", true),
        ("JZ", "0", "0", true),
        ("JL", "-2147483648", "2147483647", true),
        ("JLT", "-2147483648", "2147483647", true),
        ("JG", "2147483647", "-2147483648", true),
        ("JGT", "1", "1", false),
        ("JGE", "1", "1", true),
        ("JLE", "-3", "-3", true),
        ("JLE", "3", "-3", false),
        ("JB", "1", "-1", true),
        ("JA", "-1", "1", true),
        ("JAE", "1", "1", true),
        ("JBE", "2", "1", false),
        ("JS", "2147483647", "-2147483648", true),
        ("JNS", "2147483647", "-2147483648", false),
        ("JO", "2147483647", "-2147483648", true),
        ("JNO", "3", "4", true),
        ("JC", "3", "4", true),
    ];
    for (jump, a, b, taken) in cases {
        let taken = i32::from(taken);
        let code = format!("MOV ECX,$1\nCMP EAX,EBX\n{jump} L\nMOV ECX,$0\nL: NOP");
        one(
            &format!("0:EAX={a}; 0:EBX={b}"),
            &code,
            &format!("0:ECX={taken}"),
        );
        // The same with the flags kept over another instruction, and with memory.
        let code =
            format!("MOV ECX,$1\nCMP [x],EBX\nMOV EBX,$77\nNOP\n{jump} L\nMOV ECX,$0\nL: NOP");
        one(
            &format!("x={a}; 0:EBX={b}"),
            &code,
            &format!("0:ECX={taken}"),
        );
    }
}

#[test]
fn flags_of_results() {
    one(
        "0:EAX=1",
        "MOV ECX,$0\nL: INC ECX\nDEC EAX\nJNS L",
        "0:ECX=2",
    );
    one(
        "0:EAX=3",
        "MOV ECX,$0\nL: INC ECX\nSUB EAX,$1\nJG L",
        "0:ECX=3",
    );
    one(
        "0:EAX=2147483647",
        "ADD EAX,$1\nJL L\nMOV ECX,$1\nL:",
        "0:ECX=1",
    );
    one(
        "0:EAX=2147483647",
        "ADD EAX,$1\nJS L\nMOV ECX,$1\nL:",
        "0:ECX=0",
    );
    one("0:EAX=-1", "ADD EAX,$1\nJC L\nMOV ECX,$1\nL:", "0:ECX=0");
    // INC keeps the carry.
    one(
        "0:EAX=0; 0:EBX=1",
        "CMP EAX,EBX\nINC EBX\nJC L\nMOV ECX,$1\nL:",
        "0:ECX=0",
    );
    one("0:EAX=12", "TEST EAX,$3\nJE L\nMOV ECX,$1\nL:", "0:ECX=0");
    one(
        "0:EAX=1; 0:EBX=2",
        "CMP EAX,EBX\nSETL CL\nSETNB DL",
        "0:ECX=1 /\\ 0:EDX=0",
    );
    one(
        "0:EAX=1; 0:EBX=2; x=9",
        "CMP EAX,EBX\nCMOVC EDX,[x]\nCMOVG EBX,EAX",
        "0:EDX=9 /\\ 0:EBX=2",
    );
    one(
        "x=1",
        "LOCK DEC [x]\nJE L\nMOV ECX,$1\nL:",
        "0:ECX=0 /\\ x=0",
    );
}

#[test]
fn addresses() {
    one("0:EBX=x; x=7", "MOV EAX,[EBX]", "0:EAX=7");
    one64(
        "0:RBX=x; x=7",
        "movl (%rbx),%eax\nmovl $8,(%rbx)",
        "0:EAX=7 /\\ x=8 /\\ 0:RBX=x",
    );
    one64(
        "int64_t t[2]={1,-1}; 0:rax=t; 0:rbx=1; int64_t 0:rcx;",
        "movq 0(%rax,%rbx,8),%rcx",
        "0:rcx=-1",
    );
    one64(
        "int64_t t[2]={1,-1}; 0:rax=t;",
        "movq 8(%rax),%rcx",
        "0:rcx=-1 /\\ t={1,-1} /\\ t[1]=-1",
    );
    one64(
        "int t[3]={1,2,3}; 0:rax=t;",
        "addq $4,%rax\nmovl (%rax),%ecx",
        "0:ecx=2",
    );
    one64(
        "int* p=&x; x=5; y=6",
        "movq (p),%rax\nmovl (%rax),%ecx\nmovq $y,%rbx\nmovq %rbx,(p)",
        "0:ecx=5 /\\ p=y /\\ 0:RAX=x",
    );
    // A pointer that another thread changes.
    check(
        "X86_64 pointers\n{ int* p=&x; x=1; y=2; 0:RBX=y; }\n P0 | P1 ;\n movq %rbx,(p) | movq (p),%rax ;\n | movl (%rax),%ecx ;\nlocations [1:rax;]\nforall (1:rax=x /\\ 1:ecx=1 \\/ 1:rax=y /\\ 1:ecx=2)",
    );
}

#[test]
fn both_orders_of_operands() {
    check(
        "X86 att\n{ }\n P0 | P1 ;\n movl $1,(x) | movl $1,(y) ;\n mfence | mfence ;\n movl (y),%eax | movl (x),%eax ;\n~exists (0:EAX=0 /\\ 1:EAX=0)",
    );
    check("X86_64 herd\n{ }\n P0 ;\n MOV $3,RAX ;\n MOV RAX,[x] ;\nforall ([x]=3)");
    check("X86_64 intel\n{ }\n P0 ;\n MOV [x],$3 ;\n MOV EAX,[x] ;\nforall (0:EAX=3)");
    check(
        "X86 sizes\n{ int8_t y; uint16_t z=65535; }\n P0 ;\n MOV dword ptr [x],3 ;\n MOVB [y],-1 ;\n MOV AX,[z] ;\n INC word [z] ;\nforall (x=3 /\\ y=-1 /\\ y=255 /\\ 0:AX=-1 /\\ z=0)",
    );
}

#[test]
fn locks_are_atomic_and_drain() {
    let test = |op: &str, states: &str| {
        check(&format!(
            "X86 counter\n{{ }}\n P0 | P1 ;\n {op} [x] | {op} [x] ;\n{states}"
        ));
    };
    test("LOCK INC", "forall (x=2)");
    test("INC", "exists (x=1)");
    check(
        "X86 sb\n{ 0:EAX=1; 1:EAX=1 }\n P0 | P1 ;\n XCHG [x],EAX | XCHG [y],EAX ;\n MOV EBX,[y] | MOV EBX,[x] ;\n~exists (0:EBX=0 /\\ 1:EBX=0)",
    );
    check(
        "X86 sb\n{ 0:EAX=1; 1:EAX=1 }\n P0 | P1 ;\n UXCH [x],EAX | UXCH [y],EAX ;\n MOV EBX,[y] | MOV EBX,[x] ;\nexists (0:EBX=0 /\\ 1:EBX=0)",
    );
    check(
        "X86 fences\n{ }\n P0 | P1 ;\n MOV [x],1 | MOV [y],1 ;\n SFENCE | LFENCE ;\n MOV EBX,[y] | MOV EBX,[x] ;\nexists (0:EBX=0 /\\ 1:EBX=0)",
    );
}

#[test]
fn conditions_and_filters() {
    let sb = |end: &str| {
        check(&format!(
            "X86 SB\n(* nested (* comment *) *)\n{{ x=0; }};\n P0 | P1 ; // rows\n MOV [x],1 | MOV [y],1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\n{end}\n<<\nskipped\n>>"
        ));
    };
    sb("filter (0:EAX=1)\nforall (0:EAX=1)");
    sb("filter x=2 ~exists true");
    sb("locations [x;y;] forall true");
    sb("exists 0:EAX=1:EAX /\\ 0:EAX=0");
    sb("forall (not (0:EAX=0) => x=1)");
    sb("forall 0:EAX <> 2 /\\ 1:EAX != 2 /\\ ~(x=2 \\/ false)");
    sb("final (P0:EAX = 0 /\\ P1:EAX = 0);\nwith\ntso: ~exists;\ndefault: exists;");
    sb("(0:EAX=0 /\\ 1:EAX=0)");
    sb("~ exists (0:EAX=3);");
    sb("not exists (0:EAX=3)");
}
