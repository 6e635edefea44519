//! From a file name to a model: reading, choosing the language, parsing. Every failure is a message
//! a person can act on.

mod code;
mod libraries;
pub mod marked;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use wattle_model::array::ArraySystem;
use wattle_model::{Program, Span};
use wattle_syntax::{Diagnostic, Language, Severity};

/// Larger files are refused: no program anyone wrote is that long.
pub const MAX_BYTES: u64 = 8 << 20;

/// The language of an input. Array-based systems are a model of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputLanguage {
    /// One of the languages for programs.
    Program(Language),
    /// Cubicle's: array-based systems.
    Cubicle,
    /// Compiled code with threads of its own: an object file, an archive, assembly.
    Code,
}

impl InputLanguage {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            InputLanguage::Program(l) => l.name(),
            InputLanguage::Cubicle => "cubicle",
            InputLanguage::Code => "object",
        }
    }

    /// The language called so, or with this extension.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "cubicle" | "cub" => Some(InputLanguage::Cubicle),
            "object" => Some(InputLanguage::Code),
            _ => Language::from_name(name)
                .or_else(|| Language::from_extension(name))
                .map(InputLanguage::Program),
        }
    }

    /// The language of a file, by its extension.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "cub" => Some(InputLanguage::Cubicle),
            "o" | "obj" | "a" | "rlib" | "s" | "S" => Some(InputLanguage::Code),
            other => Language::from_extension(other).map(InputLanguage::Program),
        }
    }

    /// Every language's name with its extension, as in `x86 (.asm)`.
    pub fn described() -> Vec<String> {
        let programs = Language::ALL.iter();
        let programs = programs.map(|l| format!("{} (.{})", l.name(), l.extensions().join(" .")));
        let others = ["cubicle (.cub)", "object (.o .a .s)"];
        programs.chain(others.map(String::from)).collect()
    }

    /// Every language's name.
    pub fn names() -> Vec<&'static str> {
        let programs = Language::ALL.iter().map(|l| l.name());
        programs.chain(["cubicle", "object"]).collect()
    }
}

/// A text and where it came from.
#[derive(Clone, Debug)]
pub struct Source {
    /// As given on the command line; `-` for standard input.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// The language it is read in.
    pub language: InputLanguage,
    /// x86 programs: mathematical integers instead of wrap-around.
    pub mathematical: bool,
    /// Lines of the text that come from compiled code, with the source they were compiled from.
    pub places: BTreeMap<u32, String>,
}

impl Source {
    /// The lines of compiled code a message speaks of (`:8`, `line 8`): source line, inlined frames and
    /// instruction.
    pub fn code_lines(&self, message: &str) -> String {
        let mut named = BTreeSet::new();
        for before in [":", "line "] {
            for (at, _) in message.match_indices(before) {
                let rest = &message[at + before.len()..];
                let end = rest.find(|c: char| !c.is_ascii_digit());
                let number = rest[..end.unwrap_or(rest.len())].parse::<u32>();
                named.extend(number.ok().filter(|n| self.places.contains_key(n)));
            }
        }
        let mut out = String::new();
        for n in named {
            if let Some(line) = self.text.lines().nth(n as usize - 1) {
                let word = if out.is_empty() { "code" } else { "" };
                out.push_str(&format!(
                    "{word:<5} {:<4} {}\n",
                    format!(":{n}"),
                    line.trim()
                ));
            }
        }
        out
    }

    /// A line of compiled code: the source file and the line in it, where they are known, and the line
    /// in words.
    pub fn code_line(&self, line: u32) -> Option<(Option<(String, u32)>, String)> {
        let place = self.places.get(&line)?;
        let known = place
            .rsplit_once(':')
            .and_then(|(file, n)| Some((file.to_string(), n.parse().ok()?)));
        let text = self.text.lines().nth((line as usize).checked_sub(1)?)?;
        Some((known, text.trim().to_string()))
    }
}

/// What a text means.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Threads over shared memory.
    Program(Program),
    /// An array-based system.
    System(Box<ArraySystem>),
}

/// Why there is no model.
#[derive(Clone, Debug)]
pub struct InputError {
    /// One sentence.
    pub reason: String,
    /// Messages that point into the source, rendered.
    pub messages: Vec<String>,
    /// The same as data.
    pub diagnostics: Vec<Located>,
}

/// A message and its place in the text.
#[derive(Clone, Debug)]
pub struct Located {
    /// The message.
    pub diagnostic: Diagnostic,
    /// Line and column, from 1.
    pub place: Option<(usize, usize)>,
}

impl InputError {
    /// One sentence, about no place.
    pub fn new(reason: impl Into<String>) -> Self {
        InputError {
            reason: reason.into(),
            messages: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    /// What is wrong with a text; `name` is the file's.
    pub fn of_text(
        reason: impl Into<String>,
        diagnostics: &[Diagnostic],
        name: &str,
        text: &str,
    ) -> Self {
        let located = |d: &Diagnostic| Located {
            diagnostic: d.clone(),
            place: d.position(text),
        };
        InputError {
            reason: reason.into(),
            messages: render(diagnostics, name, text),
            diagnostics: diagnostics.iter().take(MAX_MESSAGES).map(located).collect(),
        }
    }
}

/// What to do with a file whose language is not known.
fn unclear(path: &Path) -> InputError {
    if path.is_dir() {
        return InputError::new("this is a directory; one program is needed here");
    }
    if let Err(e) = fs::metadata(path) {
        return InputError::new(format!("cannot be read: {e}"));
    }
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    let compiled = match extension {
        "c" => "cc -O2 -g -c",
        "cc" | "cpp" | "cxx" => "c++ -O2 -g -c",
        "rs" => "rustc -O -g --emit obj --crate-type lib",
        _ => {
            let names = InputLanguage::names().join(", ");
            return InputError::new(format!(
                "the language is not clear from the file's name; use --lang (one of {names})"
            ));
        }
    };
    InputError::new(format!(
        "C, C++ and Rust are checked as the compiler emitted them: `{compiled} {}`, then `wattle check` \
         on the object (docs/languages/from-a-c-lock.md), or on a program in .wtl (docs/atomics.md)",
        path.display()
    ))
}

/// Reads a file (or standard input for `-`).
pub fn read(name: &str, language: Option<InputLanguage>) -> Result<Source, InputError> {
    let path = Path::new(name);
    let language = match (language, name) {
        (Some(language), _) => language,
        (None, "-") => {
            let names = InputLanguage::names().join(", ");
            let text = format!("standard input needs --lang (one of {names})");
            return Err(InputError::new(text));
        }
        (None, _) => InputLanguage::from_path(path).ok_or_else(|| unclear(path))?,
    };
    if language == InputLanguage::Code {
        if name == "-" {
            return Err(InputError::new(
                "compiled code is not read from standard input",
            ));
        }
        return Ok(Source {
            name: name.to_string(),
            text: marked::harness(name)?,
            language,
            mathematical: false,
            places: BTreeMap::new(),
        });
    }
    let too_large = || {
        let limit = MAX_BYTES >> 20;
        InputError::new(format!("the file is larger than {limit} MB"))
    };
    let mut bytes = Vec::new();
    let cannot = |e: std::io::Error| InputError::new(format!("cannot be read: {e}"));
    let count = if name == "-" {
        let mut limited = std::io::stdin().lock().take(MAX_BYTES + 1);
        limited.read_to_end(&mut bytes).map_err(cannot)?
    } else {
        let file = open(path).map_err(cannot)?;
        let mut limited = file.take(MAX_BYTES + 1);
        limited.read_to_end(&mut bytes).map_err(cannot)?
    };
    if count as u64 > MAX_BYTES {
        return Err(too_large());
    }
    let text = String::from_utf8(bytes)
        .map_err(|e| InputError::new(not_utf8(e.as_bytes(), e.utf8_error().valid_up_to())))?;
    // Some editors begin a file with a byte order mark; it is no part of the program.
    let text = text
        .strip_prefix('\u{feff}')
        .map_or(text.clone(), str::to_string);
    if text.trim().is_empty() {
        return Err(InputError::new("the file is empty"));
    }
    if text.contains('\r') && !text.contains('\n') {
        let why = "its lines end in a carriage return alone, and so are one line; \
                   `tr '\\r' '\\n'` makes lines of them";
        return Err(InputError::new(why));
    }
    Ok(Source {
        name: name.to_string(),
        text,
        language,
        mathematical: false,
        places: BTreeMap::new(),
    })
}

/// Opens a file that has an end. Opening a pipe waits for somebody to write, reading a device may go on
/// for ever.
pub fn open(path: &Path) -> std::io::Result<fs::File> {
    let kind = fs::metadata(path)?.file_type();
    let what = match (kind.is_file(), kind.is_dir()) {
        (true, _) => return fs::File::open(path),
        (_, true) => "it is a directory",
        _ => "it is a pipe or a device, not a file; `-` with --lang reads standard input",
    };
    Err(std::io::Error::other(what))
}

/// Parses. Warnings come beside the model. Compiled code that the program calls is listed after the text.
pub fn parse(source: &mut Source) -> Result<(Subject, Vec<String>), InputError> {
    let (subject, diagnostics) = match source.language {
        InputLanguage::Program(language) => {
            let parsed = match language {
                Language::X86 => {
                    let mathematical = source.mathematical;
                    let options = wattle_syntax::x86::ParseOptions { mathematical };
                    wattle_syntax::x86::parse_with(&source.text, options)
                }
                Language::Wtl => code::program(source),
                language => wattle_syntax::parse(language, &source.text),
            };
            (parsed.program.map(Subject::Program), parsed.diagnostics)
        }
        InputLanguage::Code => {
            let parsed = code::program(source);
            (parsed.program.map(Subject::Program), parsed.diagnostics)
        }
        InputLanguage::Cubicle => {
            let parsed = wattle_syntax::cubicle::parse(&source.text);
            let system = parsed.system.map(|s| Subject::System(Box::new(s)));
            (system, parsed.diagnostics)
        }
    };
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
    let count = errors.count();
    let (name, text) = (&source.name, &source.text);
    match subject {
        Some(subject) => Ok((subject, render(&diagnostics, name, text))),
        None => {
            let c = |line: &str| line.trim_start().starts_with("#include");
            if text.lines().any(c) {
                let why = format!(
                    "this is no {} program; it reads as C",
                    source.language.name()
                );
                let hint = "compiled code is checked: `cc -O2 -g -c lock.c`, then `wattle check` on the \
                            object (docs/languages/from-a-c-lock.md)";
                let told = Diagnostic::error(Span::NONE, why.as_str()).hint(hint);
                return Err(InputError::of_text(why, &[told], name, text));
            }
            if let Some(other) = reads_as(source) {
                let (given, other) = (source.language.name(), other.name());
                let why = format!("this is no {given} program; it reads as {other}");
                let hint = format!("`--lang {other}`, or the file extension of that language");
                let told = Diagnostic::error(Span::NONE, why.as_str()).hint(hint);
                return Err(InputError::of_text(why, &[told], name, text));
            }
            let reason = match count {
                1 => "1 error".to_string(),
                n => format!("{n} errors"),
            };
            Err(InputError::of_text(reason, &diagnostics, name, text))
        }
    }
}

/// The other language that a text is without a single error, if there is one.
fn reads_as(source: &Source) -> Option<InputLanguage> {
    if source.text.len() > SNIFFED {
        return None;
    }
    let others = Language::ALL.iter().copied().map(InputLanguage::Program);
    let mut others = others.filter(|l| *l != source.language);
    others.find(|l| match l {
        InputLanguage::Program(l) => {
            let parsed = wattle_syntax::parse(*l, &source.text);
            // An empty program may be read into many a text.
            parsed.program.is_some_and(|p| !p.families.is_empty())
        }
        InputLanguage::Cubicle | InputLanguage::Code => false,
    })
}

/// Longer texts are not read as anything else.
const SNIFFED: usize = 1 << 16;

/// More messages than this about one file help nobody.
const MAX_MESSAGES: usize = 100;

fn render(diagnostics: &[Diagnostic], name: &str, text: &str) -> Vec<String> {
    let shown = diagnostics.iter().take(MAX_MESSAGES);
    let mut messages: Vec<String> = shown.map(|d| d.render(name, text)).collect();
    if diagnostics.len() > MAX_MESSAGES {
        messages.push(format!("… and {} more\n", diagnostics.len() - MAX_MESSAGES));
    }
    messages
}

/// Replaces directories by the programs in them, sorted by name, at any depth.
pub fn expand(names: &[String]) -> (Vec<String>, Vec<(String, InputError)>) {
    let mut files = Vec::new();
    let mut errors = Vec::new();
    for name in names {
        if name == "-" || !Path::new(name).is_dir() {
            files.push(name.clone());
            continue;
        }
        let (mut found, before) = (Vec::new(), errors.len());
        walk(Path::new(name), &mut found, &mut errors, &mut Vec::new());
        if found.is_empty() && errors.len() == before {
            let reason = "there are no programs in this directory";
            errors.push((name.clone(), InputError::new(reason)));
        }
        found.sort();
        files.extend(found.iter().map(|p| p.display().to_string()));
    }
    (files, errors)
}

/// What cannot be read is told and does not hide the rest. Pipes and devices are no programs, whatever
/// they are called. `inside` are the directories that this one is in, by their true names: a link back
/// to one of them would lead round in a circle.
fn walk(
    directory: &Path,
    found: &mut Vec<PathBuf>,
    errors: &mut Vec<(String, InputError)>,
    inside: &mut Vec<PathBuf>,
) {
    let true_name = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
    if inside.contains(&true_name) {
        return;
    }
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) => {
            let reason = format!("cannot be read: {e}");
            errors.push((directory.display().to_string(), InputError::new(reason)));
            return;
        }
    };
    inside.push(true_name);
    for path in entries.flatten().map(|e| e.path()) {
        let kind = fs::metadata(&path).map(|m| m.file_type());
        match kind {
            Ok(kind) if kind.is_dir() => walk(&path, found, errors, inside),
            Ok(kind) if !kind.is_file() => {}
            // A link that leads nowhere is told when it is opened.
            _ if InputLanguage::from_path(&path).is_some_and(|l| l != InputLanguage::Code) => {
                found.push(path);
            }
            _ => {}
        }
    }
    inside.pop();
}

/// Where a text stops being UTF-8, and what makes it UTF-8.
fn not_utf8(bytes: &[u8], at: usize) -> String {
    let before = String::from_utf8_lossy(&bytes[..at]);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    match bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        true => "this is text in UTF-16; `iconv -f utf-16 -t utf-8` makes it UTF-8".to_string(),
        false => format!(
            "this is not text in UTF-8 (from line {line}, column {column} on); from Latin-1, \
             `iconv -f latin1 -t utf-8` makes it so"
        ),
    }
}
