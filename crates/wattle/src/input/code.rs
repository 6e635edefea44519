//! Programs that are compiled code, or call it: files are found, assembled if need be, and read.

use super::{MAX_BYTES, Source, libraries, open};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use wattle_machine::{Image, Problem, link};
use wattle_syntax::Parsed;
use wattle_syntax::wtl::{self, Linked};

/// The program of a `.wtl` text; the code it calls is read, and listed after the source's text.
pub(super) fn program(source: &mut Source) -> Parsed {
    let Linked { mut parsed, link } = wtl::parse_linked(&source.text);
    let Some((_, span)) = link.objects.first() else {
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
    let mut paths: Vec<PathBuf> = link.objects.iter().map(|(file, _)| path(file)).collect();
    let mut read = match paths.as_slice() {
        [one] => image(one, &names),
        all => linked(all, &names),
    };
    for round in 0.. {
        let image = match read {
            Ok(image) => image,
            Err(p) => {
                let files: Vec<String> = (link.objects.iter())
                    .map(|(file, _)| format!("`{file}`"))
                    .collect();
                let what = format!("{}: {}", files.join(", "), p.what);
                let problem = Problem { what, ..p };
                parsed.diagnostics.push(link::diagnostic(*span, problem));
                return parsed;
            }
        };
        match wattle_machine::fill(program.clone(), &link, image, &source.text) {
            Ok(filled) => {
                source.text.push_str(&filled.listing.text);
                source.places = filled.listing.places;
                parsed.program = Some(filled.program);
                return parsed;
            }
            Err(unfilled) => {
                // Of an archive alone the member is taken that has what is called.
                let alone = paths.len() == 1 && archive(&paths[0]);
                let more = match round < MAX_LIBRARIES && !alone {
                    true => libraries::of(&unfilled.missing, &paths),
                    false => Vec::new(),
                };
                paths.extend(more.iter().cloned());
                // Who has no linker, or a library that it does not take, is told what is missing.
                let with = (!more.is_empty()).then(|| linked(&paths, &names).ok());
                let Some(image) = with.flatten() else {
                    parsed.diagnostics.extend(unfilled.diagnostics);
                    return parsed;
                };
                read = Ok(image);
            }
        }
    }
    parsed
}

/// How often functions are looked for that those just found call.
const MAX_LIBRARIES: usize = 8;

/// Reads a file of compiled code; assembly goes through the assembler of this machine.
pub(super) fn image(path: &Path, names: &[&str]) -> Result<Image, Problem> {
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
    // Archives may need one another.
    linker.arg("--start-group");
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
            let bytes = bytes(path)?;
            if !archive(path) {
                Image::read(&bytes, names)?;
            }
            linker.arg(plain(path));
        }
    }
    linker.arg("--end-group");
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
