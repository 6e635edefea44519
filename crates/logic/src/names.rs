//! Names of variables.

use crate::term::Var;
use rustc_hash::FxHashMap;
use std::fmt;

/// `x7`: the name when no [`Symbols`] is at hand.
impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

/// Names of variables; variables are numbered in the order they are first named.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: Vec<String>,
    by_name: FxHashMap<String, Var>,
}

impl Symbols {
    /// No names.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// The variable with this name, made if need be.
    pub fn var(&mut self, name: &str) -> Var {
        if let Some(&v) = self.by_name.get(name) {
            return v;
        }
        let v = Var(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), v);
        v
    }

    /// A variable no one has named yet: `stem`, `stem'1`, `stem'2`, …
    pub fn fresh(&mut self, stem: &str) -> Var {
        if !self.by_name.contains_key(stem) {
            return self.var(stem);
        }
        let mut n = 1usize;
        loop {
            let name = format!("{stem}'{n}");
            if !self.by_name.contains_key(&name) {
                return self.var(&name);
            }
            n += 1;
        }
    }

    /// The variable with this name, if there is one.
    pub fn lookup(&self, name: &str) -> Option<Var> {
        self.by_name.get(name).copied()
    }

    /// The name of a variable, if it has one.
    pub fn name(&self, var: Var) -> Option<&str> {
        self.names.get(var.0 as usize).map(String::as_str)
    }

    /// How many variables are named.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
