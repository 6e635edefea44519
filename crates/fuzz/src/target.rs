//! What is fuzzed: the languages of the syntax crate, cubicle, whose model is another one, and files of
//! compiled code, written down as two hexadecimal digits a byte.

use std::fmt;
use wattle_syntax::Language;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Program(Language),
    Cubicle,
    Object,
}

impl Target {
    pub fn all() -> impl Iterator<Item = Target> {
        let programs = Language::ALL.iter().map(|l| Target::Program(*l));
        programs.chain([Target::Cubicle, Target::Object])
    }

    pub fn name(self) -> &'static str {
        match self {
            Target::Program(l) => l.name(),
            Target::Cubicle => "cubicle",
            Target::Object => "object",
        }
    }

    pub fn named(name: &str) -> Option<Target> {
        Target::all().find(|t| t.name() == name)
    }

    /// Whether a file of the examples or suites is a seed for this target.
    pub fn reads(self, folder: &str, extension: &str) -> bool {
        match self {
            Target::Cubicle => extension == "cub",
            // Seeds of its own.
            Target::Object => false,
            // The suite of this language keeps the extension of its tool.
            Target::Program(Language::Trencher) if extension == "txt" => {
                folder.contains("trencher")
            }
            Target::Program(l) => Language::from_extension(extension) == Some(l),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
