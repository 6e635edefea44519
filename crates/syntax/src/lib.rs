//! Text to model. One folder per language; each offers `parse(text) -> Parsed`. Parsers never panic
//! and report every error of a file at once.

pub mod diagnostics;
pub mod edit;
pub mod gaps;

pub use diagnostics::{Diagnostic, Severity};

use wattle_model::Program;

/// What a front-end makes of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Present if and only if no diagnostic is an error. Valid and canonical.
    pub program: Option<Program>,
    pub diagnostics: Vec<Diagnostic>,
}

/// One line per language: name, what it is called on the command line, file extensions, parser.
macro_rules! languages {
    ($($name:ident $id:literal [$($extension:literal),*] $parse:path;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Language {
            $($name,)*
        }

        impl Language {
            pub const ALL: &[Language] = &[$(Language::$name,)*];

            /// The name used on the command line and in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Language::$name => $id,)*
                }
            }

            /// The language of files with this extension (without the dot).
            pub fn from_extension(extension: &str) -> Option<Language> {
                match extension {
                    $($($extension)|* => Some(Language::$name),)*
                    _ => None,
                }
            }

            /// The extensions of its files, without the dot.
            pub fn extensions(self) -> &'static [&'static str] {
                match self {
                    $(Language::$name => &[$($extension),*],)*
                }
            }

            pub fn from_name(name: &str) -> Option<Language> {
                Language::ALL.iter().copied().find(|l| l.name() == name)
            }
        }

        /// Parses a text of the given language.
        pub fn parse(language: Language, text: &str) -> Parsed {
            match language {
                $(Language::$name => $parse(text),)*
            }
        }
    };
}

pub mod bitchaku;
pub mod boolean;
pub mod cubicle;
mod flow;
pub mod imp;
mod infix;
pub mod litmus;
pub mod rmm;
mod tokens;
pub mod trencher;
pub mod wtl;
pub mod x86;
pub mod x86_core;

languages! {
    Wtl "wtl" ["wtl"] wtl::parse;
    Rmm "rmm" ["rmm"] rmm::parse;
    Litmus "litmus" ["litmus"] litmus::parse;
    X86 "x86" ["asm"] x86::parse;
    Bitchaku "bitchaku" ["bit"] bitchaku::parse;
    Boolean "boolean" ["bp"] boolean::parse;
    Imp "imp" ["imp"] imp::parse;
    Trencher "trencher" ["trench"] trencher::parse;
}
