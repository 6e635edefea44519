//! What `show --as cubicle` prints, read by Cubicle's own grammar: that of its `lexer.mll` and `parser.mly`, with the words of
//! Cubicle-W (`weak`, `[p]`, `p @ X`, `fence()`). Cubicle itself is not at hand.

use crate::support::{Scratch, root, run};

const KEYWORDS: [&str; 24] = [
    "type",
    "init",
    "transition",
    "invariant",
    "requires",
    "array",
    "var",
    "const",
    "unsafe",
    "case",
    "forall_other",
    "exists_other",
    "forall",
    "exists",
    "predicate",
    "if",
    "then",
    "else",
    "not",
    "true",
    "false",
    "number_procs",
    "let",
    "in",
];

fn tokens(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\n', '\t', '\r']);
        let Some(first) = rest.chars().next() else {
            return all;
        };
        let run = |f: fn(char) -> bool| rest.find(|c| !f(c)).unwrap_or(rest.len());
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let negative = first == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        let signs = [
            "<=>", ":=", "<>", "<=", ">=", "=>", "||", "&&", "(", ")", ".", "?", "+", "-", "*",
            ":", "=", "<", ">", "[", "]", "{", "}", "|", ",", ";", "_", "@",
        ];
        let n = if first.is_ascii_alphabetic() {
            run(word)
        } else if first.is_ascii_digit() {
            run(|c| c.is_ascii_digit())
        } else if negative {
            1 + rest[1..]
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len() - 1)
        } else if first == '#' {
            1 + rest[1..]
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len() - 1)
        } else {
            let sign = signs.iter().find(|s| rest.starts_with(**s));
            sign.unwrap_or_else(|| panic!("no token: {}", &rest[..rest.len().min(40)]))
                .len()
        };
        all.push(rest[..n].to_string());
        rest = &rest[n..];
    }
}

struct Reader {
    tokens: Vec<String>,
    at: usize,
    processes: u32,
}

impl Reader {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn take(&mut self) -> String {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned().unwrap_or_default()
    }

    fn eat(&mut self, token: &str) -> bool {
        let there = self.peek() == token;
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, token: &str) {
        let from = self.at.saturating_sub(8);
        let there = self.eat(token);
        let seen: Vec<&str> = (self.tokens[from..].iter().take(12))
            .map(String::as_str)
            .collect();
        assert!(there, "`{token}` is missing in `{}`", seen.join(" "));
    }

    fn small(&mut self) -> String {
        let t = self.take();
        let fits = t.starts_with(|c: char| c.is_ascii_lowercase()) && !KEYWORDS.contains(&&*t);
        assert!(fits, "a small name: {t}");
        t
    }

    fn capital(&mut self) -> String {
        let t = self.take();
        assert!(
            t.starts_with(|c: char| c.is_ascii_uppercase()),
            "a capital name: {t}"
        );
        t
    }

    fn process(&mut self) {
        if let Some(number) = self.peek().strip_prefix('#') {
            let number: u32 = number.parse().expect("a number");
            assert!((1..=self.processes).contains(&number), "process {number}");
            self.at += 1;
            return;
        }
        self.small();
    }

    fn is_number(&self) -> bool {
        self.peek()
            .trim_start_matches('-')
            .starts_with(|c: char| c.is_ascii_digit())
    }

    fn system(&mut self) {
        if self.eat("number_procs") {
            self.processes = self.take().parse().expect("how many");
        }
        while self.eat("type") {
            self.small();
            if self.eat("=") {
                self.capital();
                while self.eat("|") {
                    self.capital();
                }
            }
        }
        loop {
            self.eat("weak");
            let array = match self.peek() {
                "var" | "const" => false,
                "array" => true,
                _ => break,
            };
            self.at += 1;
            self.capital();
            if array {
                self.expect("[");
                assert_eq!(self.take(), "proc");
                while self.eat(",") {
                    assert_eq!(self.take(), "proc");
                }
                self.expect("]");
            }
            self.expect(":");
            self.small();
        }
        while self.at < self.tokens.len() {
            match self.take().as_str() {
                "init" | "invariant" | "unsafe" => {
                    if self.eat("(") {
                        while !self.eat(")") {
                            self.small();
                        }
                    }
                    self.braced();
                }
                "transition" => self.transition(),
                other => panic!("a declaration: {other}"),
            }
        }
    }

    fn braced(&mut self) {
        self.expect("{");
        self.formula();
        self.expect("}");
    }

    fn transition(&mut self) {
        let name = self.take();
        assert!(!KEYWORDS.contains(&&*name) && name.starts_with(|c: char| c.is_ascii_alphabetic()));
        self.expect("(");
        while !self.eat(")") {
            let acts = self.eat("[");
            self.small();
            if acts {
                self.expect("]");
            }
        }
        self.expect("requires");
        self.braced();
        self.expect("{");
        while !self.eat("}") {
            self.capital();
            let array = self.eat("[");
            if array {
                self.process();
                while self.eat(",") {
                    self.process();
                }
                self.expect("]");
            }
            self.expect(":=");
            if self.eat("case") {
                while self.eat("|") {
                    if !self.eat("_") {
                        self.formula();
                    }
                    self.expect(":");
                    self.term();
                }
            } else if self.eat(".") || self.eat("?") {
                assert!(!array, "only what is no array gets any value");
            } else {
                self.term();
            }
            if !self.eat(";") {
                self.expect("}");
                return;
            }
        }
    }

    fn formula(&mut self) {
        loop {
            if self.eat("forall_other") {
                self.small();
                self.expect(".");
                return self.formula();
            }
            if self.eat("fence") {
                self.expect("(");
                self.expect(")");
            } else if self.eat("(") {
                self.formula();
                self.expect(")");
            } else {
                self.term();
                let op = self.take();
                assert!(
                    ["=", "<>", "<", "<=", ">", ">="].contains(&&*op),
                    "a comparison: {op}"
                );
                self.term();
            }
            if !self.eat("&&") && !self.eat("||") {
                return;
            }
        }
    }

    /// A process, or one cell, or a constant, or a cell and a constant.
    fn term(&mut self) {
        if self.is_number() {
            self.at += 1;
            return;
        }
        let begins = |c: char| c.is_ascii_lowercase() || c == '#';
        if self.peek().starts_with(begins) {
            self.process();
            if !self.eat("@") {
                return;
            }
        }
        self.capital();
        if self.eat("[") {
            self.process();
            while self.eat(",") {
                self.process();
            }
            self.expect("]");
        }
        if self.eat("+") || self.eat("-") {
            assert!(self.is_number(), "a number and no more: {}", self.peek());
            self.at += 1;
        }
    }
}

fn read_as_cubicle_does(text: &str) {
    let (tokens, at, processes) = (tokens(text), 0, 0);
    Reader {
        tokens,
        at,
        processes,
    }
    .system();
}

/// Whatever of the examples has a form for Cubicle.
#[test]
fn examples_are_printed_in_cubicles_grammar() {
    let mut printed = 0;
    for folder in [
        "examples/x86",
        "examples",
        "examples/families",
        "examples/cubicle",
    ] {
        let Ok(entries) = std::fs::read_dir(root().join(folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let kind = path
                .extension()
                .and_then(|e| e.to_str())
                .unwrap_or_default();
            if !["asm", "wtl"].contains(&kind) {
                continue;
            }
            let shown = run(&["show", &path.display().to_string(), "--as", "cubicle"]);
            assert!(
                shown.code == 0 || shown.code == 2,
                "{}: {}",
                path.display(),
                shown.err
            );
            if shown.code == 0 {
                println!("{}", path.display());
                read_as_cubicle_does(&shown.out);
                printed += 1;
            }
        }
    }
    assert!(printed > 20, "{printed}");
}

/// Names that are keywords, capital where they must not be, or in letters that Cubicle does not know; any value; views; a
/// store fence. Each is printed in Cubicle's grammar and keeps its meaning, as far as our own reader tells.
#[test]
fn awkward_programs_are_printed_in_cubicles_grammar() {
    let s = Scratch::new();
    let asm = |property: &str, code: &str| {
        format!(
            "begin shared_data\nType dd 0\nend shared_data\nbegin thread_data\nmy dd 0\nend thread_data\n\
             begin unsafe_prop\n{property}\nend unsafe_prop\nbegin init_code\nstart_threads\nend init_code\n\
             begin thread_code\n{code}\nend thread_code\n"
        )
    };
    let names = asm(
        "eip[$T1] = In && eip[$not] = In && my[$T1] = 1",
        "a: mov dword [my], 1\nmov ebx, [Type]\nIn: nop\njmp a",
    );
    let fenced = asm(
        "eip[$t] = past && $u:my[$t] = 0",
        "mov dword [my], 1\nsfence\nmfence\npast: nop",
    );
    let pending = asm(
        "eip[$t] = past && $u:Type = 0",
        "mov dword [Type], 1\npast: nop",
    );
    let any = "shared x: 0..2; thread Proc[*] { local v: 0..2; v = any; x = v; `in`: skip; } \
        never Proc[In]@`in` && x == 2;";
    let unnamed = "shared `my x`: bool; thread `in`[*] { `my x` = 1; end: skip; } never `in`[i]@end && `my x` == 0;";
    let files = [
        ("names.asm", names.as_str()),
        ("fenced.asm", &fenced),
        ("pending.asm", &pending),
        ("any.wtl", any),
        ("unnamed.wtl", unnamed),
    ];
    for (name, text) in files {
        let file = s.file(name, text);
        let shown = run(&["show", &file, "--as", "cubicle"]);
        assert_eq!(shown.code, 0, "{name}: {}", shown.err);
        read_as_cubicle_does(&shown.out);
        let system = s.file("shown.cub", &shown.out);
        let [before, after] = [&file, &system].map(|f| run(&["check", f, "-q"]).code);
        assert!(before < 2, "{name}: {before}");
        assert_eq!(before, after, "{name}\n{}", shown.out);
    }
}

/// The paper's instructions on words of which nothing is known, before every jump.
#[test]
fn sums_and_flags_are_printed_in_cubicles_grammar() {
    let s = Scratch::new();
    let asm = |code: &str| {
        format!(
            "begin shared_data\nx dd 0\ny dd ?\nend shared_data\nbegin unsafe_prop\neip[$t] = bad\nend unsafe_prop\n\
             begin init_code\nstart_threads\nend init_code\nbegin thread_code\n{code}\nbad: nop\nfin: nop\n\
             end thread_code\n"
        )
    };
    let instructions = [
        "lock xadd [x], eax",
        "xadd eax, ebx",
        "add [x], eax",
        "sub eax, [y]",
        "not dword [y]",
        "lock inc dword [x]",
        "cmp [y], eax",
    ];
    for i in instructions {
        for jump in ["jle", "jb", "ja", "jo", "js", "jc"] {
            let file = s.file("one.asm", asm(&format!("{i}\n{jump} fin")));
            let shown = run(&["show", &file, "--as", "cubicle"]);
            assert_eq!(shown.code, 0, "{i}, {jump}: {}", shown.err);
            read_as_cubicle_does(&shown.out);
        }
        let file = s.file("one.asm", asm(&format!("{i}\njp fin")));
        let shown = run(&["show", &file, "--as", "cubicle"]);
        let reason = shown.err.contains("no parity");
        let flags = i.starts_with("not");
        assert!(
            shown.code == 0 && flags || shown.code == 2 && reason,
            "{i}: {}",
            shown.err
        );
    }
}

/// Counters that are counted in one step are arrays of booleans there, as in the paper, and what holds is proved of them.
#[test]
fn counters_are_printed_as_arrays() {
    let s = Scratch::new();
    for name in [
        "from_zero_with_zero",
        "from_zero_with_all",
        "from_all_with_zero",
        "from_all_with_all",
    ] {
        let file = root().join(format!("examples/x86/counter_{name}_lock.asm"));
        let shown = run(&["show", &file.display().to_string(), "--as", "cubicle"]);
        let array = shown.out.contains("weak array M_c[proc] : bool");
        assert!(array, "{name}: {}", shown.out);
        let system = s.file("counter.cub", &shown.out);
        let r = run(&["check", &system, "-q"]);
        assert_eq!(r.code, 0, "{name}: {}", r.out);
    }
}

/// A thread of more locations than the search takes is printed all the same.
#[test]
fn long_threads_are_printed_in_cubicles_grammar() {
    let s = Scratch::new();
    let stores = "mov dword [x], 1\n".repeat(200);
    let text = format!(
        "begin shared_data\nx dd 0\nend shared_data\nbegin unsafe_prop\neip[$t] = bad\nend unsafe_prop\n\
         begin init_code\nstart_threads\nend init_code\nbegin thread_code\n{stores}bad: nop\nend thread_code\n"
    );
    let file = s.file("long.asm", &text);
    let shown = run(&["show", &file, "--as", "cubicle"]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    read_as_cubicle_does(&shown.out);
}

/// A sum is counted in steps of one: what the program reaches the printed system reaches, and nothing else.
#[test]
fn counted_sums_are_what_they_are() {
    let s = Scratch::new();
    let asm = |wanted: i64| {
        format!(
            "begin shared_data\nx dd 1\nend shared_data\nbegin unsafe_prop\nx = {wanted} && eip[$t] = fin\n\
             end unsafe_prop\nbegin init_code\nstart_threads\nend init_code\nbegin thread_code\nmov eax, 2\n\
             lock add [x], eax\nsub eax, [x]\nlock xadd [x], eax\nfin: jmp fin\nend thread_code\n"
        )
    };
    // 1 + 2 is 3, 2 - 3 is -1, 3 - 1 is 2.
    for (wanted, code) in [(2, 1), (4, 0)] {
        let file = s.file("sums.asm", asm(wanted));
        let shown = run(&["show", &file, "--as", "cubicle"]);
        assert_eq!(shown.code, 0, "{}", shown.err);
        read_as_cubicle_does(&shown.out);
        assert!(shown.out.contains("Part_"), "{}", shown.out);
        let one = ["--threads", "t=1"];
        let program = run(&[&["check", &file, "-q"][..], &one].concat());
        assert_eq!(program.code, code, "{wanted}: {}", program.out);
        let system = s.file("sums.cub", &shown.out);
        let printed = run(&["check", &system, "-q", "--threads", "1", "--budget", "2000"]);
        // The counters have no end, so nothing may be found within a budget.
        let agrees = printed.code == code || code == 0 && printed.code == 3;
        assert!(agrees, "{wanted}: {}", printed.out);
    }
}

/// What Cubicle has no words for is refused, with the reason.
#[test]
fn what_cubicle_cannot_say_is_refused() {
    let s = Scratch::new();
    let any = "shared x; thread t[*] { local a: int; a = any; x = a; } never x < 0;";
    let r = run(&["show", &s.file("any.wtl", any), "--as", "cubicle"]);
    assert_eq!(r.code, 2, "{}", r.out);
    assert!(r.err.contains("Cubicle"), "{}", r.err);
}
