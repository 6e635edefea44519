//! Assignments of integers to variables.

use crate::int::Int;
use crate::names::Symbols;
use crate::term::Var;
use std::collections::BTreeMap;
use std::fmt;

/// An integer for every variable: those listed, zero for all others.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Model {
    values: BTreeMap<Var, Int>,
}

static ZERO: Int = Int::ZERO;

impl Model {
    /// All variables zero.
    pub fn new() -> Model {
        Model::default()
    }

    /// The value of a variable; zero if the model does not list it.
    pub fn value(&self, var: Var) -> &Int {
        self.values.get(&var).unwrap_or(&ZERO)
    }

    /// The value of a variable, if the model lists it.
    pub fn get(&self, var: Var) -> Option<&Int> {
        self.values.get(&var)
    }

    /// Sets a value.
    pub fn set(&mut self, var: Var, value: impl Into<Int>) {
        self.values.insert(var, value.into());
    }

    /// Forgets a variable (it then reads as zero).
    pub fn forget(&mut self, var: Var) {
        self.values.remove(&var);
    }

    /// The listed variables with their values, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Var, &Int)> {
        self.values.iter().map(|(v, i)| (*v, i))
    }

    /// `x = 1, y = 2` with the user's names.
    pub fn display<'a>(&'a self, symbols: &'a Symbols) -> impl fmt::Display + 'a {
        Shown(self, Some(symbols))
    }
}

impl FromIterator<(Var, Int)> for Model {
    fn from_iter<T: IntoIterator<Item = (Var, Int)>>(iter: T) -> Self {
        Model {
            values: iter.into_iter().collect(),
        }
    }
}

struct Shown<'a>(&'a Model, Option<&'a Symbols>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (v, value)) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            match self.1.and_then(|s| s.name(v)) {
                Some(name) => write!(f, "{name} = {value}")?,
                None => write!(f, "{v} = {value}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self, None).fmt(f)
    }
}
