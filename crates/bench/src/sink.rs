//! Where tables go: lines for people as they are measured, and the same rows for programs.

use serde_json::Value;

/// Takes the lines of a table. A row is a line and what it says; a heading or a note is only a line.
pub struct Sink<'s>(&'s mut dyn FnMut(&str, Option<Value>));

impl<'s> Sink<'s> {
    pub fn new(to: &'s mut dyn FnMut(&str, Option<Value>)) -> Self {
        Sink(to)
    }

    /// A heading, a note or a sum.
    pub fn line(&mut self, text: &str) {
        (self.0)(text, None);
    }

    /// A measurement.
    pub fn row(&mut self, text: &str, row: Value) {
        (self.0)(text, Some(row));
    }
}
