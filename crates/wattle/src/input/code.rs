//! Programs that are compiled code, or call it: files are found, assembled if need be, and read.

use super::{InputError, MAX_BYTES, Source, open};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use wattle_machine::{Image, Problem, link, markers};
use wattle_model::Program;
use wattle_syntax::wtl::{self, Link, Linked};
use wattle_syntax::{Diagnostic, Parsed};

/// The program of a `.wtl` text; the code it calls is read, and listed after the source's text.
pub(super) fn program(source: &mut Source) -> Parsed {
    let Linked { mut parsed, link } = wtl::parse_linked(&source.text);
    let Some((file, span)) = link.objects.first() else {
        return parsed;
    };
    let Some(program) = parsed.program.take() else {
        return parsed;
    };
    if let Some((_, second)) = link.objects.get(1) {
        let d = Diagnostic::error(*second, "only one file of compiled code can be named");
        parsed
            .diagnostics
            .push(d.hint("put them together: `ld -r -o all.o a.o b.o`"));
        return parsed;
    }
    let folder = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    let path = match source.name.as_str() {
        "-" => PathBuf::from(file),
        _ => folder.join(file),
    };
    let names: Vec<&str> = link.calls.iter().map(|c| c.function.as_str()).collect();
    match image(&path, &names) {
        Ok(image) => filled(source, program, &link, image, &mut parsed),
        Err(p) => {
            let what = format!("`{file}`: {}", p.what);
            let problem = Problem { what, ..p };
            parsed.diagnostics.push(link::diagnostic(*span, problem));
        }
    }
    parsed
}

fn filled(source: &mut Source, program: Program, link: &Link, image: Image, parsed: &mut Parsed) {
    match wattle_machine::fill(program, link, image, &source.text) {
        Ok(filled) => {
            source.text.push_str(&filled.listing.text);
            source.places = filled.listing.places;
            parsed.program = Some(filled.program);
        }
        Err(more) => parsed.diagnostics.extend(more),
    }
}

/// The text that runs the thread functions of a file of compiled code: `wattle_thread_NAME` once,
/// `wattle_threads_NAME` any number of times, with the properties its section `.wattle` has.
pub(super) fn harness(name: &str) -> Result<String, InputError> {
    let path = Path::new(name);
    let told = |p: Problem| match p.hint {
        Some(hint) => InputError::new(format!("{}; {hint}", p.what)),
        None => InputError::new(p.what),
    };
    let image = image(path, &[]).map_err(told)?;
    let file = path.file_name().map(|f| f.to_string_lossy().into_owned());
    let mut text = format!("object {:?};\n", file.unwrap_or_default());
    let mut threads: Vec<(&str, bool, &str)> = (image.symbols.iter())
        .filter(|s| s.code)
        .filter_map(|s| markers::thread_name(&s.name).map(|(n, any)| (n, any, s.name.as_str())))
        .collect();
    threads.sort_unstable();
    threads.dedup();
    if threads.is_empty() {
        let hint = "write a `.wtl` file that calls its functions, or name some `wattle_thread_…`";
        return Err(InputError::new(format!("no function is a thread: {hint}")));
    }
    for (name, any, function) in &threads {
        let count = if *any { "[*]" } else { "" };
        text.push_str(&format!("thread {name}{count} {{ call {function}(); }}\n"));
    }
    let mut critical = image.externs.values().any(|n| n == "wattle_label_critical");
    for note in &image.notes {
        text.push_str(note.trim());
        text.push('\n');
        critical = false;
    }
    // Without a word about it, `critical` is where no two threads meet.
    if critical {
        text.push_str(&exclusion(&threads));
    }
    Ok(text)
}

fn exclusion(threads: &[(&str, bool, &str)]) -> String {
    let mut text = String::new();
    for (k, (a, any, _)) in threads.iter().enumerate() {
        if *any {
            text.push_str(&format!("never {a}[i]@critical && {a}[j]@critical;\n"));
        }
        let of = |name: &str, any: bool, i: &str| match any {
            true => format!("{name}[{i}]@critical"),
            false => format!("{name}@critical"),
        };
        for (b, other, _) in &threads[k + 1..] {
            text.push_str(&format!(
                "never {} && {};\n",
                of(a, *any, "i"),
                of(b, *other, "j")
            ));
        }
    }
    text
}

/// Reads a file of compiled code; assembly goes through the assembler of this machine.
fn image(path: &Path, names: &[&str]) -> Result<Image, Problem> {
    let assembly = path.extension().is_some_and(|e| e == "s" || e == "S");
    let bytes = match assembly {
        true => assembled(path)?,
        false => bytes(path)?,
    };
    Image::read(&bytes, names)
}

fn bytes(path: &Path) -> Result<Vec<u8>, Problem> {
    let limit = wattle_machine::image::MAX_BYTES;
    let cannot = |e: std::io::Error| {
        let problem = Problem::new(format!("cannot be read: {e}"));
        match e.kind() {
            std::io::ErrorKind::NotFound => {
                problem.hint("compile it first: `gcc -O2 -g -c lock.c`")
            }
            _ => problem,
        }
    };
    let mut bytes = Vec::new();
    let file = open(path).map_err(cannot)?;
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    Ok(bytes)
}

fn assembled(path: &Path) -> Result<Vec<u8>, Problem> {
    let source = bytes(path)?;
    if source.len() as u64 > MAX_BYTES {
        return Err(Problem::new(format!("larger than {} MB", MAX_BYTES >> 20)));
    }
    let unique = format!(
        "wattle-{}-{:?}.o",
        std::process::id(),
        std::thread::current().id()
    );
    let out = std::env::temp_dir().join(unique.replace(['(', ')'], ""));
    let done = Command::new("as")
        .arg("--64")
        .arg("-o")
        .arg(&out)
        .arg("--")
        .arg(path)
        .output();
    let done = done.map_err(|e| {
        Problem::new(format!("the assembler `as` cannot be run: {e}"))
            .hint("install binutils, or give an object file")
    })?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let said: Vec<&str> = said.lines().take(4).collect();
        return Err(Problem::new(format!(
            "the assembler says: {}",
            said.join("; ")
        )));
    }
    let read = bytes(&out);
    let _ = std::fs::remove_file(&out);
    read
}
