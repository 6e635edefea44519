//! Programs that are compiled code, or call it: files are found, assembled if need be, and read.

use super::{InputError, MAX_BYTES, Source, open};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use wattle_machine::{Image, Problem, link, markers};
use wattle_model::Program;
use wattle_syntax::Parsed;
use wattle_syntax::wtl::{self, Link, Linked};

/// The program of a `.wtl` text; the code it calls is read, and listed after the source's text.
pub(super) fn program(source: &mut Source) -> Parsed {
    let Linked { mut parsed, link } = wtl::parse_linked(&source.text);
    let Some((file, span)) = link.objects.first() else {
        return parsed;
    };
    let Some(program) = parsed.program.take() else {
        return parsed;
    };
    let folder = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    let path = |file: &String| match source.name.as_str() {
        "-" => PathBuf::from(file),
        _ => folder.join(file),
    };
    let names: Vec<&str> = link.calls.iter().map(|c| c.function.as_str()).collect();
    let read = match link.objects.as_slice() {
        [_] => image(&path(file), &names),
        all => {
            let paths: Vec<PathBuf> = all.iter().map(|(file, _)| path(file)).collect();
            linked(&paths, &names)
        }
    };
    match read {
        Ok(image) => filled(source, program, &link, image, &mut parsed),
        Err(p) => {
            let files: Vec<String> = (link.objects.iter())
                .map(|(file, _)| format!("`{file}`"))
                .collect();
            let what = format!("{}: {}", files.join(", "), p.what);
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
    let out = Temporary::new("assembled");
    let mut assembler = Command::new("as");
    assembler.args(["--64", "-o"]).arg(&out.0).arg(plain(path));
    run(assembler, "the assembler `as`")?;
    bytes(&out.0)
}

/// Several files as one, by the linker of this machine; of archives, the members that are needed.
fn linked(paths: &[PathBuf], names: &[&str]) -> Result<Image, Problem> {
    let mut linker = Command::new("ld");
    let out = Temporary::new("linked");
    linker.args(["-r", "-o"]).arg(&out.0);
    for name in names {
        linker.arg(format!("--undefined={name}"));
    }
    let mut assembled_files = Vec::new();
    for (k, path) in paths.iter().enumerate() {
        if path.extension().is_some_and(|e| e == "s" || e == "S") {
            let file = Temporary::new(&format!("part-{k}"));
            let cannot = |e: std::io::Error| Problem::new(format!("cannot be written: {e}"));
            std::fs::write(&file.0, assembled(path)?).map_err(cannot)?;
            linker.arg(&file.0);
            assembled_files.push(file);
        } else {
            // Missing files and files that are none of compiled code are named before the linker sees them.
            Image::read(&bytes(path)?, names)
                .map(drop)
                .or_else(|p| match archive(path) {
                    true => Ok(()),
                    false => Err(p),
                })?;
            linker.arg(plain(path));
        }
    }
    run(linker, "the linker `ld`")?;
    Image::read(&bytes(&out.0)?, names)
}

/// A path that no tool takes for an option.
fn plain(path: &Path) -> PathBuf {
    match path.is_relative() {
        true => Path::new(".").join(path),
        false => path.to_path_buf(),
    }
}

fn archive(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "a" || e == "rlib")
}

/// Runs a tool of this machine; what it says is told.
fn run(mut command: Command, name: &str) -> Result<(), Problem> {
    let done = command.output().map_err(|e| {
        Problem::new(format!("{name} cannot be run: {e}"))
            .hint("install binutils, or give one object file")
    })?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let said: Vec<&str> = said.lines().take(4).collect();
        return Err(Problem::new(format!("{name} says: {}", said.join("; "))));
    }
    Ok(())
}

/// A file that is gone when it is no longer needed.
struct Temporary(PathBuf);

impl Temporary {
    fn new(what: &str) -> Temporary {
        let thread = format!("{:?}", std::thread::current().id());
        let name = format!("wattle-{}-{thread}-{what}.o", std::process::id());
        Temporary(std::env::temp_dir().join(name.replace(['(', ')'], "")))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
