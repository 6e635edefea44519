//! The processor judges whole functions: random C functions are compiled, run natively, and read back from
//! their object. What the native run returns is what the harness must prove, and nothing else.
//!
//! One thread, so there is one run: what is compared are all passes between instruction and model.

use super::support::{Scratch, run};
use std::fmt::Write;
use std::process::Command;
use wattle_random::{Rng, setting};

const FIELDS: [(&str, &str); 8] = [
    ("a", "unsigned char"),
    ("b", "unsigned short"),
    ("c", "unsigned"),
    ("d", "unsigned long long"),
    ("e", "signed char"),
    ("f", "short"),
    ("g", "int"),
    ("h", "long long"),
];
const LOCALS: [&str; 3] = ["x", "y", "z"];

struct Writer(Rng);

impl Writer {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.0.below(from.len())]
    }

    fn field(&mut self) -> (&'static str, &'static str) {
        *self.0.pick(&FIELDS)
    }

    fn local(&mut self) -> &'static str {
        self.pick(&LOCALS)
    }

    /// An expression; numbers wrap around, and nothing in it is undefined.
    fn expression(&mut self, depth: u32) -> String {
        let kind = if depth == 0 { 0 } else { self.0.below(10) };
        if kind < 2 {
            return match self.0.below(4) {
                0 => self
                    .pick(&["0", "1", "3", "8", "255", "65535", "-1", "-128"])
                    .into(),
                1 | 2 => self.local().into(),
                _ => format!("s->{}", self.field().0),
            };
        }
        let (a, b) = (self.expression(depth - 1), self.expression(depth - 1));
        match kind {
            2..6 => {
                let wide = self.pick(&["unsigned", "unsigned", "unsigned long long"]);
                let op = self.pick(&["+", "-", "*", "&", "|", "^"]);
                format!("(({wide})({a}) {op} ({wide})({b}))")
            }
            6 => {
                let wide = self.pick(&["unsigned", "unsigned long long", "int", "short"]);
                format!("(({wide})({a}) >> {})", self.0.below(15))
            }
            7 => format!(
                "(({a}) {} ({b}))",
                self.pick(&["<", "<=", "==", "!=", ">", ">="])
            ),
            8 => format!("(({})({a}))", self.field().1),
            _ => {
                let c = self.expression(depth - 1);
                format!("(({c}) ? ({a}) : ({b}))")
            }
        }
    }

    fn statement(&mut self, depth: u32, loops: bool) -> String {
        let (to, e) = (self.local(), self.expression(1 + depth.min(1)));
        // Read-modify-writes of 1, 2, 4 and 8 bytes.
        let (field, ty) = self.field();
        match self.0.below(14) {
            12 if depth > 0 => {
                let mut cases = String::new();
                for n in 0..3 {
                    let stop = self.pick(&["break;", "break;", ""]);
                    write!(cases, "case {n}: {} {stop} ", self.statement(0, false)).unwrap();
                }
                format!("switch (((unsigned)({e})) & 3) {{ {cases}}}")
            }
            13 => format!("if (({e}) & 1) {to} = -{to}; else {to} -= u;"),
            0..4 => format!("{to} = {e};"),
            4..7 => format!("s->{field} = {e};"),
            7 if depth > 0 => {
                let (yes, no) = (
                    self.statement(depth - 1, loops),
                    self.statement(depth - 1, loops),
                );
                format!("if ({e}) {{ {yes} }} else {{ {no} }}")
            }
            8 if depth > 0 && loops => {
                let (rounds, body) = (1 + self.0.below(3), self.statement(depth - 1, false));
                format!("for (unsigned i = 0; i < {rounds}; i++) {{ {body} }}")
            }
            9 => {
                let op = self.pick(&["add", "sub", "and", "or", "xor"]);
                format!("{to} = __atomic_fetch_{op}(&s->{field}, {e}, __ATOMIC_SEQ_CST);")
            }
            10 => {
                format!("{to} = __atomic_exchange_n(&s->{field}, {e}, __ATOMIC_SEQ_CST);")
            }
            _ => format!(
                "{{ {ty} o = {to}; {to} = __atomic_compare_exchange_n(&s->{field}, &o, {e}, 0, \
                 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 1 : (unsigned)o; }}"
            ),
        }
    }

    fn function(&mut self, n: usize) -> String {
        let mut out = format!("unsigned f{n}(struct s *s, unsigned u) {{\n");
        for local in LOCALS {
            let ty = self.field().1;
            let first = self.pick(&["u", "s->c", "s->g", "0", "7"]);
            writeln!(out, "    {ty} {local} = {first};").unwrap();
        }
        for _ in 0..2 + self.0.below(6) {
            writeln!(out, "    {}", self.statement(2, true)).unwrap();
        }
        let fields = FIELDS.map(|(field, _)| format!("s->{field}"));
        let locals = LOCALS.map(String::from);
        // A few bits of one value: whatever else was computed nobody looks at, and what is left becomes narrow.
        if self.0.below(3) == 0 {
            let all = [&fields[..], &locals[..]].concat();
            let (one, bits) = (
                self.0.pick(&all).clone(),
                self.pick(&["1", "2", "127", "65535"]),
            );
            return out + &format!("    return (unsigned)({one}) & {bits};\n}}\n");
        }
        // All that was computed is in what is returned.
        writeln!(out, "    unsigned r = 0;").unwrap();
        for value in fields.iter().chain(&locals) {
            writeln!(
                out,
                "    r = r * 33u + (unsigned)({value}) + (unsigned)((unsigned long long){value} >> 32);"
            )
            .unwrap();
        }
        out + "    return r;\n}\n"
    }
}

/// Compiles; false if there is no such compiler.
fn compiled(compiler: &str, flags: &[&str]) -> bool {
    match Command::new(compiler).args(flags).output() {
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{compiler} {flags:?}: {said}");
            true
        }
        Err(_) => {
            println!("skipped: there is no {compiler} here");
            false
        }
    }
}

fn judged(compiler: &str, level: &str, seed: u64) {
    let functions = setting("WATTLE_FUNCTIONS", 24) as usize;
    let seed = seed + 1000 * setting("WATTLE_SEED", 0);
    let scratch = Scratch::new();
    let mut writer = Writer(Rng::new(seed));
    let mut code = String::from("struct s {");
    FIELDS
        .iter()
        .for_each(|(field, ty)| write!(code, " {ty} {field};").unwrap());
    code += " };\n";
    for n in 0..functions {
        code += &writer.function(n);
    }
    let mut main = format!("{code}#include <stdio.h>\nint main(void) {{\n");
    let arguments: Vec<&str> = (0..functions)
        .map(|_| writer.pick(&["0", "1", "5", "255", "65536", "4294967295"]))
        .collect();
    for (n, argument) in arguments.iter().enumerate() {
        writeln!(
            main,
            "{{ struct s s = {{0}}; printf(\"%u\\n\", f{n}(&s, {argument}u)); }}"
        )
        .unwrap();
    }
    main += "return 0; }\n";
    let (code, main) = (scratch.file("code.c", code), scratch.file("main.c", main));
    let (object, native) = (scratch.path("code.o"), scratch.path("main"));
    // Plain registers only: vectors are not read.
    let mut flags = vec![level, "-g", "-w", "-fwrapv", "-fno-strict-aliasing"];
    match compiler {
        "clang" => flags.extend(["-fno-vectorize", "-fno-slp-vectorize"]),
        _ => flags.extend(["-fno-tree-vectorize", "-fno-tree-slp-vectorize"]),
    }
    let with = |more: [&str; 3]| -> bool {
        let all: Vec<&str> = flags.iter().copied().chain(more).collect();
        match more[2] == object {
            true => compiled(compiler, &[&all[..], &["-c"]].concat()),
            false => compiled(compiler, &all),
        }
    };
    if !with([&code, "-o", &object]) || !with([&main, "-o", &native]) {
        return;
    }
    let printed = Command::new(&native).output().expect("it runs");
    let printed = String::from_utf8(printed.stdout).unwrap();
    let values: Vec<&str> = printed.lines().collect();
    assert_eq!(values.len(), functions);
    let (mut right, mut refused) = (0, 0);
    for (n, (value, argument)) in values.iter().zip(&arguments).enumerate() {
        // Every other argument comes from memory, so that it is not put in as a constant.
        let (read, given) = match n % 2 {
            0 => ("", *argument),
            _ => ("u = given;", "u"),
        };
        let harness = |is: &str| {
            format!(
                "object \"code.o\";\nshared s: struct s, given: u32 = {argument};\nthread p {{\n    \
                 local r: u32, u: u32;\n    {read}\n    r = call f{n}(&s, {given});\n    \
                 assert r {is} {value}, \"another value\";\n}}\n"
            )
        };
        for (is, code) in [("==", 0), ("!=", 1)] {
            let file = scratch.file("code.wtl", harness(is));
            let ran = run(&["check", &file, "--engine", "explicit", "--model", "tso"]);
            let all = format!("{}{}", ran.out, ran.err);
            match ran.code {
                2 if !all.contains("bug in Wattle") => refused += 1,
                got => {
                    let text = std::fs::read_to_string(scratch.path("code.c")).unwrap();
                    assert_eq!(
                        got, code,
                        "f{n}({argument}) is {value}; {compiler} {level}:\n{all}\n{text}"
                    );
                    right += 1;
                }
            }
        }
    }
    println!("{compiler} {level}: {right} as the processor says, {refused} refused");
    assert!(right > 3 * refused, "{right} decided, {refused} refused");
}

#[test]
fn functions_of_gcc_do_what_the_processor_does() {
    for (n, level) in ["-O0", "-O1", "-O2", "-O3", "-Os"].into_iter().enumerate() {
        judged("gcc", level, 100 + n as u64);
    }
}

#[test]
fn functions_of_clang_do_what_the_processor_does() {
    for (n, level) in ["-O0", "-O2"].into_iter().enumerate() {
        judged("clang", level, 200 + n as u64);
    }
}
