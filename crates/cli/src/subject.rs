//! The one program a command is about: shared by the commands that take a single file.

use super::exit::Exit;
use super::{output, signals};
use clap::Args;
use std::io::Read;
use wattle::check::property_text;
use wattle::input::{self, InputError, InputLanguage, Source, Subject};
use wattle_evidence::file::Kept;
use wattle_evidence::{EvidenceFile, Refusal};
use wattle_model::{Counts, Instance, InstanceError, Program};

#[derive(Debug, Args)]
pub struct File {
    /// The program (`-` for standard input)
    #[arg(value_name = "FILE")]
    pub file: String,
    /// The input language, where the file's name does not tell it
    #[arg(long = "lang", value_name = "LANG", value_parser = language)]
    pub language: Option<InputLanguage>,
    /// x86 programs: mathematical integers instead of wrap-around
    #[arg(long)]
    pub mathematical: bool,
}

/// With what `--progress` demands.
fn demanding(program: &Program) -> Program {
    let options = wattle::Options {
        progress: true,
        ..wattle::Options::default()
    };
    wattle::runs::demanding(program, &options)
}

/// The property that evidence is about, as written; none if it is about assertions and faults only.
pub fn property<E: Kept>(program: &Program, kept: &EvidenceFile<E>) -> Option<String> {
    match kept.live {
        Some((demand, _)) => {
            let program = demanding(program);
            let demand = program.temporal.get(demand)?;
            Some(wattle_model::print::temporal(&program, demand))
        }
        None => kept.question.map(|q| property_text(program, q)),
    }
}

pub fn language(name: &str) -> Result<InputLanguage, String> {
    InputLanguage::from_name(name)
        .ok_or_else(|| format!("expected one of {}", InputLanguage::names().join(", ")))
}

impl File {
    /// Reads and parses; warnings are printed.
    pub fn load(&self) -> Result<(Source, Subject), Failure> {
        let loaded = load(&self.file, self.language, self.mathematical);
        let (source, subject, warnings) = loaded?;
        warnings.iter().for_each(|w| output::note(w));
        Ok((source, subject))
    }

    /// The program; array-based systems are refused.
    pub fn program(&self) -> Result<Program, Failure> {
        match self.load()?.1 {
            Subject::Program(program) => Ok(program),
            Subject::System(_) => Err(Failure::input(
                "this is an array-based system for any number of threads: it has no run of a fixed \
                 number of threads to show; `wattle check` asks whether it is safe",
            )),
        }
    }

    /// The instance that evidence about a demand speaks of: perhaps one with progress demanded.
    pub fn demanded<E: Kept>(
        &self,
        program: &Program,
        kept: &EvidenceFile<E>,
    ) -> Result<Instance, Failure> {
        let instance = self.instance(program, &kept.counts())?;
        if kept.live_task(&instance).is_ok() {
            return Ok(instance);
        }
        self.instance(&demanding(program), &kept.counts())
    }

    /// The program with its numbers of threads; one without threads is refused.
    pub fn instance(&self, program: &Program, counts: &Counts) -> Result<Instance, Failure> {
        match program.instantiate(counts) {
            Ok(instance) if instance.threads.is_empty() => {
                Err(Failure::input("the program has no threads"))
            }
            Ok(instance) => Ok(instance),
            Err(e) => {
                let hint = match &e {
                    InstanceError::Unfixed { family, .. } => {
                        format!("; `--threads {family}=2` takes two")
                    }
                    _ => String::new(),
                };
                Err(Failure::input(format!("{e}{hint}")))
            }
        }
    }
}

/// Reads and parses a file; warnings come beside.
pub fn load(
    name: &str,
    language: Option<InputLanguage>,
    mathematical: bool,
) -> Result<(Source, Subject, Vec<String>), InputError> {
    let mut source = Source {
        mathematical,
        ..signals::reading(|| input::read(name, language))?
    };
    let (subject, warnings) = input::parse(&mut source)?;
    Ok((source, subject, warnings))
}

/// Why there is no answer about a file.
pub struct Failure {
    pub exit: Exit,
    pub error: InputError,
    /// Another file that it is about.
    about: Option<String>,
}

impl Failure {
    pub fn new(exit: Exit, reason: impl Into<String>) -> Self {
        Failure {
            exit,
            error: InputError::new(reason),
            about: None,
        }
    }

    /// An engine cannot treat the program: at its place, if it has one.
    pub fn refused(source: &Source, refusal: &Refusal) -> Self {
        if !refusal.span.is_some() {
            return Failure::input(&refusal.why);
        }
        let message = [output::refused(refusal)];
        InputError::of_text("1 error".to_string(), &message, &source.name, &source.text).into()
    }

    /// It is about this file rather than the program.
    pub fn about(self, file: impl Into<String>) -> Self {
        Failure {
            about: Some(file.into()),
            ..self
        }
    }

    /// Tells it, where answers are JSON as one object; the exit it stands for.
    pub fn told(&self, command: &str, name: &str, json: bool) -> Exit {
        output::note(&self.note(name));
        if json {
            output::answer(&format!("{}\n", self.json(command, name)));
        }
        self.exit
    }

    pub fn input(reason: impl Into<String>) -> Self {
        Failure::new(Exit::Input, reason)
    }

    /// For standard error.
    pub fn note(&self, name: &str) -> String {
        let name = self.about.as_deref().unwrap_or(name);
        output::complaint(name, &self.error.reason, &self.error.messages)
    }

    /// The object that stands for the answer.
    pub fn json(&self, command: &str, name: &str) -> serde_json::Value {
        let diagnostics = self.error.diagnostics.iter().map(output::diagnostic);
        let mut value = serde_json::json!({
            "file": name,
            "verdict": null,
            "reason": match &self.about {
                Some(about) => format!("{about}: {}", self.error.reason),
                None => self.error.reason.clone(),
            },
            "errors": self.error.messages,
            "diagnostics": diagnostics.collect::<Vec<_>>(),
        });
        output::originated(command, &mut value);
        value
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Failure {
            exit: Exit::Input,
            error,
            about: None,
        }
    }
}

/// Reads evidence kept in a file.
pub fn evidence<E: wattle_evidence::file::Kept>(
    path: &str,
) -> Result<wattle_evidence::EvidenceFile<E>, Failure> {
    let failed = |reason: String| Failure::input(reason).about(path);
    let mut text = String::new();
    let read = input::open(path.as_ref()).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|e| failed(format!("cannot be read: {e}")))?;
    wattle_evidence::EvidenceFile::from_json(&text).map_err(|e| failed(e.to_string()))
}

/// The same for a run that goes on for ever; nothing if the file is of another kind.
pub fn lasso(
    path: &str,
) -> Result<Option<wattle_evidence::EvidenceFile<wattle_evidence::Lasso>>, Failure> {
    let mut text = String::new();
    let read = input::open(path.as_ref()).and_then(|mut file| file.read_to_string(&mut text));
    if read.is_err() {
        // The usual way says what is wrong.
        return Ok(None);
    }
    match wattle_evidence::EvidenceFile::from_json(&text) {
        Ok(kept) => Ok(Some(kept)),
        Err(wattle_evidence::FileError::WrongFormat { .. }) => Ok(None),
        Err(e) => Err(Failure::input(e.to_string()).about(path)),
    }
}
