//! Litmus tests and x86 programs: every file of the suite and every example parses, and what is
//! printed of it in `.wtl` parses to the same program; broken files never crash the parsers.

use std::path::{Path, PathBuf};
use wattle_model::print::to_wtl;
use wattle_syntax::{Language, Severity, parse};

fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let Ok(entries) = std::fs::read_dir(&root) else {
        println!("skipped: {folder} is not here");
        return Vec::new();
    };
    let paths = entries.filter_map(|e| Some(e.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|p| {
            let name = p.file_name().unwrap_or_default().to_string_lossy();
            let text = std::fs::read_to_string(p).expect("a readable file");
            (name.to_string(), text)
        })
        .collect()
}

fn all() -> Vec<(Language, String, String)> {
    let folders = [
        (
            Language::Litmus,
            "../../../shared/suites/litmus-x86",
            "litmus",
        ),
        (Language::Litmus, "../../examples/litmus", "litmus"),
        (Language::X86, "../../examples/x86", "asm"),
    ];
    let found = folders.iter().flat_map(|(language, folder, extension)| {
        let files = files(folder, extension);
        files
            .into_iter()
            .map(|(name, text)| (*language, name, text))
    });
    found.collect()
}

#[test]
fn printing_and_reading_gives_the_same_program() {
    for (language, name, text) in all() {
        let parsed = parse(language, &text);
        let shown = parsed.render(&name, &text);
        let program = parsed.program.unwrap_or_else(|| panic!("{shown}"));
        let wtl = to_wtl(&program);
        let again = parse(Language::Wtl, &wtl);
        let shown = again.render("printed.wtl", &wtl);
        let again = again
            .program
            .unwrap_or_else(|| panic!("{name}\n{shown}\n{wtl}"));
        assert_eq!(
            again.without_spans(),
            program.without_spans(),
            "{name}\n{wtl}"
        );
    }
}

/// A small generator, so that every run tries the same texts.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

#[test]
fn broken_files_give_messages() {
    let mut random = Random(7);
    let pieces = [
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ";",
        "|",
        ":",
        "=",
        "$",
        "%",
        "(*",
        "*)",
        "<<",
        "\\/",
        "/\\",
        "~",
        "exists",
        "P0",
        "0:EAX",
        "lock",
        "mov",
        "cmpxchg",
        "jmp L",
        "L:",
        "é",
        "\0",
        "99999999999999999999",
        "-9223372036854775808",
        "[RBX+8]",
        "0(%rax,%rbx,8)",
        "begin",
        "end",
        "$t",
        "N",
        "dd",
        "! as counter",
        "AL",
        "rax",
        "\n",
        "t[4096]",
        "&x",
        "=>",
        "not",
    ];
    for (language, name, text) in all().into_iter().step_by(3) {
        for _ in 0..40 {
            let mut chars: Vec<char> = text.chars().collect();
            for _ in 0..1 + random.below(4) {
                let at = random.below(chars.len());
                match random.below(4) {
                    0 => chars.truncate(at),
                    1 => drop(chars.drain(at..(at + random.below(9)).min(chars.len()))),
                    _ => {
                        let piece = pieces[random.below(pieces.len())];
                        chars.splice(at..at, piece.chars());
                    }
                }
            }
            let broken: String = chars.into_iter().collect();
            let parsed = parse(language, &broken);
            let errors = parsed
                .diagnostics
                .iter()
                .any(|d| d.severity == Severity::Error);
            assert_eq!(parsed.program.is_none(), errors, "{name}\n{broken}");
            // Rendering must cope with every span.
            let _ = parsed.render(&name, &broken);
            if let Some(p) = &parsed.program {
                let wtl = to_wtl(p);
                let again = parse(Language::Wtl, &wtl);
                let shown = again.render("printed.wtl", &wtl);
                let again = again
                    .program
                    .unwrap_or_else(|| panic!("{broken}\n{shown}\n{wtl}"));
                assert_eq!(again.without_spans(), p.without_spans(), "{broken}\n{wtl}");
            }
        }
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = "(".repeat(100_000);
    let text = format!("X86 deep\n{{ }}\n P0 ;\n NOP ;\nexists {deep}x=1");
    assert!(parse(Language::Litmus, &text).program.is_none());
    let text = format!(
        "X86 deep\n{{ }}\n P0 ;\n NOP ;\nexists {} x=1",
        "~".repeat(100_000)
    );
    assert!(parse(Language::Litmus, &text).program.is_none());
    let text = format!(
        "X86 deep\n{{ }}\n P0 ;\n NOP ;\nexists x=1{}",
        " => x=1".repeat(100_000)
    );
    assert!(parse(Language::Litmus, &text).program.is_none());
    let text = "(*".repeat(100_000);
    assert!(parse(Language::Litmus, &text).program.is_none());
}

/// Long files are read in time; what is too long is refused.
#[test]
fn long_files() {
    let many = |n: usize, line: &dyn Fn(usize) -> String| (0..n).map(line).collect::<String>();
    let n = 20_000;
    let back = many(n, &|i| format!(" L{i}: DEC EAX ;\n JNE L{} ;\n", i / 2));
    let test = format!("X86 long\n{{ }}\n P0 ;\n{back}exists true");
    assert!(parse(Language::Litmus, &test).program.is_some());
    let undefined = many(n, &|i| format!(" L{i}: JMP M{i} ;\n"));
    let test = format!("X86 long\n{{ }}\n P0 ;\n{undefined}exists true");
    assert!(parse(Language::Litmus, &test).program.is_none());
    let locations = many(n, &|i| format!(" MOV [x{i}],1 ;\n"));
    let test = format!("X86 long\n{{ }}\n P0 ;\n{locations}exists true");
    assert!(parse(Language::Litmus, &test).program.is_none());
    let atoms = many(n, &|i| format!(" /\\ x{}=1", i % 4000));
    let test = format!("X86 long\n{{ }}\n P0 ;\n NOP ;\nexists true{atoms}");
    assert!(parse(Language::Litmus, &test).program.is_some());
    let data = many(n, &|i| format!("x{i} dd 0\n"));
    let code = many(n, &|i| {
        format!("l{i}: mov eax, [x{i}]\ncmp eax, ebx\njne l{}\n", i / 3)
    });
    let property = many(n, &|i| format!(" && eip[$t] = l{i} && eax[$t] = {i}"));
    let test = format!(
        "begin shared_data\n{data}end\nbegin thread_code\n{code}end\nbegin unsafe_prop\nx0 = 1{property}\nend\n"
    );
    assert!(parse(Language::X86, &test).program.is_some());
    assert!(
        parse(Language::X86, &"@#".repeat(500_000))
            .program
            .is_none()
    );
    assert!(
        parse(
            Language::Litmus,
            &format!("X86 a\n{{ {}", "@ 7;".repeat(200_000))
        )
        .program
        .is_none()
    );
}
