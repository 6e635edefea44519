//! A name for a model that two readings of the same program share: evidence kept in a file says
//! which program it is about, so that a wrong file is told before it confuses anyone.
//!
//! The name is the SHA-256 of the model as JSON: fields in the order of their declaration, no places in
//! the text and nothing that follows from the rest. No map of the model has an order of its own.

use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use wattle_model::Instance;
use wattle_model::array::ArraySystem;

pub fn fingerprint(instance: &Instance) -> String {
    of(instance)
}

/// The same for an array-based system.
pub fn fingerprint_of_system(system: &ArraySystem) -> String {
    of(system)
}

fn of(model: &impl Serialize) -> String {
    let mut hash = Hashing(Sha256::new());
    // A model has no keys that are not strings, and a hash takes every byte.
    let _ = serde_json::to_writer(&mut hash, model);
    let mut name = String::new();
    for byte in hash.0.finalize() {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

struct Hashing(Sha256);

impl std::io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::fingerprint;
    use wattle_model::{Instance, Span};

    /// The places in a text do not matter; the last thing that is serialised does.
    #[test]
    fn a_name_is_for_what_a_program_does() {
        let empty = Instance {
            cells: Vec::new(),
            threads: Vec::new(),
            questions: Vec::new(),
            demands: Vec::new(),
            predicates: Vec::new(),
        };
        let asked = |span| Instance {
            questions: vec![wattle_model::instance::Question {
                kind: wattle_model::PropertyKind::Never,
                target: wattle_model::Expr::FALSE,
                only_final: false,
                span,
            }],
            ..empty.clone()
        };
        let hinted = Instance {
            predicates: vec![wattle_model::Expr::TRUE],
            ..empty.clone()
        };
        let here = fingerprint(&asked(Span::NONE));
        assert_eq!(here, fingerprint(&asked(Span::new(3, 9, 2))));
        assert_eq!(here.len(), 64);
        let names = [here, fingerprint(&empty), fingerprint(&hinted)];
        assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
    }
}
