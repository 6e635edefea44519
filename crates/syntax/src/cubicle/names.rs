//! Declared names, each found in one step however many there are.

use std::collections::HashMap;

/// Of two declarations with one name the first counts; the second is an error.
#[derive(Debug, Default)]
pub struct Names {
    cells: HashMap<String, usize>,
    types: HashMap<String, usize>,
    /// Type, and position in it.
    constructors: HashMap<String, (usize, usize)>,
}

impl Names {
    pub fn cell(&self, name: &str) -> Option<usize> {
        self.cells.get(name).copied()
    }

    pub fn type_of_name(&self, name: &str) -> Option<usize> {
        self.types.get(name).copied()
    }

    pub fn constructor(&self, name: &str) -> Option<(usize, usize)> {
        self.constructors.get(name).copied()
    }

    pub fn add_cell(&mut self, name: &str, number: usize) {
        self.cells.entry(name.to_string()).or_insert(number);
    }

    pub fn add_type(&mut self, name: &str, number: usize) {
        self.types.entry(name.to_string()).or_insert(number);
    }

    pub fn add_constructor(&mut self, name: &str, ty: usize, number: usize) {
        let entry = self.constructors.entry(name.to_string());
        entry.or_insert((ty, number));
    }
}
