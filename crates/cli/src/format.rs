//! In which form answers are printed.

use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// One object per file, an array for several
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, for test reports
    Junit,
    /// Annotations of a change on GitHub
    Github,
}

#[derive(Debug, Args)]
pub struct Formatted {
    /// The form of the answers
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl Formatted {
    pub fn get(&self) -> Format {
        match self.json {
            true => Format::Json,
            false => self.format,
        }
    }
}
