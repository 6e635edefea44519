//! Programs as text, over everything the language has.
//!
//! A text is made for a [`Profile`] from a seed, and depends on nothing else. Each seed first draws a
//! [`Taste`]: which parts of the language this program may use. A program that used a little of
//! everything would be refused by every engine for one thing or another, and would be too large to be
//! decided by brute force; many programs that each use a few things together use them all.
//!
//! Most values are made to fit where they are put, or every program would be a fault. What a program
//! really uses is told by [`constructs`](crate::constructs()), which looks at the program and not at
//! the intention.

mod climbing;
mod condition;
mod declare;
mod statement;
mod taste;
mod value;

pub use climbing::filter_locks;

use crate::rng::Rng;
use std::fmt;
use taste::Taste;

/// What kind of programs to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// A fixed number of threads; types with few values.
    Fixed,
    /// Families of any number of threads.
    Families,
    /// A fixed number of threads; mathematical integers and wide wrap-around types.
    Integers,
    /// Families that climb levels, for `levels`: relatives of one lock.
    Levels,
}

impl Profile {
    /// Those that use all of the language.
    pub const ALL: [Profile; 3] = [Profile::Fixed, Profile::Families, Profile::Integers];

    pub fn name(self) -> &'static str {
        match self {
            Profile::Fixed => "fixed",
            Profile::Families => "families",
            Profile::Integers => "integers",
            Profile::Levels => "levels",
        }
    }

    pub fn named(name: &str) -> Option<Profile> {
        let mut all = Profile::ALL.into_iter().chain([Profile::Levels]);
        all.find(|p| p.name() == name)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A random program, and which statements it was written with: those that leave no trace in the
/// model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub text: String,
    pub sugar: Vec<&'static str>,
}

/// The random program of a seed.
pub fn source(seed: u64, profile: Profile) -> Source {
    if profile == Profile::Levels {
        return climbing::climbing(seed);
    }
    let mut rng = Rng::new(seed);
    let taste = Taste::draw(&mut rng, profile);
    let mut writer = Writer {
        rng,
        taste,
        regions: Vec::new(),
        families: Vec::new(),
        own: 0,
        constants: Vec::new(),
        labels: 0,
        guarded: false,
        atomic: false,
        sugar: Vec::new(),
    };
    let text = writer.program();
    writer.sugar.sort_unstable();
    writer.sugar.dedup();
    Source {
        text,
        sugar: writer.sugar,
    }
}

/// The type of a cell or a register, as far as values are made for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int,
    Range(i64, i64),
    Wrap { bits: u8, signed: bool },
    Thread(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Scalar,
    Array(u32),
    PerThread(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    One,
    Fixed(u32),
    Open,
}

struct Shared {
    name: String,
    kind: Kind,
    size: Size,
}

struct Threads {
    name: String,
    number: Number,
    registers: Vec<(String, Kind)>,
    labels: Vec<String>,
}

struct Writer {
    rng: Rng,
    taste: Taste,
    regions: Vec<Shared>,
    families: Vec<Threads>,
    /// The family whose body is being written.
    own: usize,
    /// Names of constants and `for` variables in reach, with their greatest value.
    constants: Vec<(String, i64)>,
    labels: usize,
    /// Inside an atomic block or between lock and unlock.
    guarded: bool,
    atomic: bool,
    sugar: Vec<&'static str>,
}

impl Writer {
    fn program(&mut self) -> String {
        self.choose_families();
        self.choose_regions();
        let mut bodies = Vec::new();
        for f in 0..self.families.len() {
            self.own = f;
            bodies.push(self.family());
        }
        let mut text = String::new();
        for r in 0..self.regions.len() {
            let line = self.declaration(r);
            text += &format!("shared {line};\n");
        }
        for body in bodies {
            text += &body;
        }
        text + &self.properties()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.rng.one_in(n)
    }

    fn note(&mut self, what: &'static str) {
        self.sugar.push(what);
    }
}
