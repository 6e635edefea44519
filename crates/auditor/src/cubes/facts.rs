//! What a cube says, as a list of facts. A cube describes the end of a run if, for some choice of
//! threads and moments, every fact is true of it. Fewer facts describe more; so leaving one out is
//! always safe where a predecessor is made, and never where a cube is looked up.

use super::assume::Rules;
use std::collections::{BTreeMap, BTreeSet};
use wattle_logic::{Formula, Rel};
use wattle_model::array::{ArraySystem, CellType};

/// A set of values: constructors, or threads of the cube and [`OTHER`].
pub type Set = u128;
/// A set of open reads.
pub type Moments = u64;

/// No thread of the cube.
pub const OTHER: Set = 1 << wattle_evidence::certificate::cubes::OTHER;
/// The reader that looks at memory itself.
pub const NOBODY: u8 = 0xff;
const NONE: u8 = 0xfe;
pub const MOMENTS: usize = 62;
pub const THREADS: usize = 16;

/// A scalar or an array's element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellAt {
    pub cell: u16,
    args: [u8; 3],
}

impl CellAt {
    pub fn new(cell: u16, args: &[u8]) -> CellAt {
        let arg = |i: usize| args.get(i).copied().unwrap_or(NONE);
        let args = [arg(0), arg(1), arg(2)];
        CellAt { cell, args }
    }

    pub fn args(&self) -> impl Iterator<Item = u8> + '_ {
        self.args.iter().copied().filter(|a| *a != NONE)
    }

    /// The same cell of other threads.
    pub fn renamed(self, threads: &[u8]) -> CellAt {
        let name = |a: u8| threads.get(usize::from(a)).copied().unwrap_or(NONE);
        CellAt {
            cell: self.cell,
            args: self.args.map(name),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Cell(CellAt),
    Read(u8, u8),
    Pending(u8),
    /// Any value of the type of this cell; the second number keeps them apart.
    Any(u16, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub reader: u8,
    pub place: CellAt,
    /// Only a store of the reader itself supplies the value.
    pub own: bool,
}

/// Reads of one moment, and the moments that are not earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    pub parts: Vec<Part>,
    pub before: Moments,
}

/// A store that has reached memory and whose step is yet to be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    pub thread: u8,
    pub place: CellAt,
    /// The next step met of the thread that stores to the place is the one.
    pub newest: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The constant a thread is, or 0.
    pub threads: Vec<u16>,
    /// For each thread the threads that come after it.
    pub later: Vec<u16>,
    pub among: BTreeMap<Value, Set>,
    /// What else is known of values, over their variables: equal ones, and numbers.
    pub known: BTreeSet<Formula>,
    pub reads: Vec<Open>,
    pub after_reads_of: Vec<Moments>,
    pub after_stores_of: Vec<Moments>,
    pub after_stores_to: BTreeMap<CellAt, Moments>,
    pub after_stores_elsewhere: BTreeMap<u16, Moments>,
    pub last: Moments,
    pub pending: Vec<Pending>,
    anys: u8,
}

/// The facts contradict each other: they describe nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible;

pub type Possible = Result<(), Impossible>;

pub fn bits(set: u16) -> impl Iterator<Item = usize> {
    (0..16).filter(move |i| set & 1 << i != 0)
}

impl Facts {
    /// Threads, order and moments of these facts, and nothing about values.
    pub fn without_values(&self) -> Facts {
        Facts {
            among: BTreeMap::new(),
            known: BTreeSet::new(),
            ..self.clone()
        }
    }

    /// One more thread, different from the others. Constants are the first threads, in order.
    pub fn join(&mut self, constant: u16) -> u8 {
        let new = self.threads.len();
        for set in self.among.values_mut().filter(|s| **s & OTHER != 0) {
            *set |= 1 << new;
        }
        let mut after = 0;
        for (i, other) in self.threads.iter().enumerate() {
            match (*other, constant) {
                (0, 0) => {}
                (0, _) => after |= 1 << i,
                (k, c) if c != 0 && c < k => after |= 1 << i,
                _ => self.later[i] |= 1 << new,
            }
        }
        self.threads.push(constant);
        self.later.push(after);
        self.after_reads_of.push(self.last);
        self.after_stores_of.push(0);
        for (cell, moments) in &self.after_stores_elsewhere {
            self.after_stores_to
                .insert(CellAt::new(*cell, &[new as u8]), *moments);
        }
        new as u8
    }

    pub fn all_threads(&self) -> Set {
        ((1 << self.threads.len()) - 1) | OTHER
    }

    pub fn any_value(&mut self, cell: u16) -> Value {
        self.anys += 1;
        Value::Any(cell, self.anys)
    }

    /// The cell whose type the value has.
    pub fn cell_of(&self, value: Value) -> u16 {
        match value {
            Value::Cell(p) => p.cell,
            Value::Read(e, p) => self.reads[usize::from(e)].parts[usize::from(p)].place.cell,
            Value::Pending(k) => self.pending[usize::from(k)].place.cell,
            Value::Any(cell, _) => cell,
        }
    }

    pub fn holds_thread(&self, system: &ArraySystem, value: Value) -> bool {
        system.cell(self.cell_of(value)).ty == CellType::Thread
    }

    /// All values there are, if they are finitely many.
    pub fn all_values(&self, system: &ArraySystem, value: Value) -> Option<Set> {
        match system.cell(self.cell_of(value)).ty {
            CellType::Thread => Some(self.all_threads()),
            ty @ (CellType::Bool | CellType::Int | CellType::Real | CellType::Declared(_)) => {
                system.values(ty).map(|n| (1 << n) - 1)
            }
        }
    }

    pub fn restrict(&mut self, value: Value, set: Set) -> Possible {
        let known = self.among.entry(value).or_insert(set);
        *known &= set;
        if *known == 0 {
            return Err(Impossible);
        }
        Ok(())
    }

    /// Adds a comparison. One of a value that has few with a constant says what it is among.
    pub fn learn(&mut self, rules: &Rules<'_>, fact: Formula) -> Possible {
        if fact == Formula::False {
            return Err(Impossible);
        }
        if let Some(atom) = fact.as_atom()
            && let ([(v, _)], equal) = (atom.term().coeffs(), *atom.rel() == Rel::Eq)
            && (equal || *atom.rel() == Rel::Ne)
            && let Some(value) = rules.value_of(*v)
            && let Some(all) = self.all_values(rules.system, value)
        {
            // The coefficient of a single variable is 1.
            return match (-atom.term().constant_part()).to_i64() {
                Some(n @ 0..127) if equal => self.restrict(value, 1 << n),
                Some(n @ 0..127) => self.restrict(value, all & !(1 << n)),
                // Left out: no set has it.
                _ => Ok(()),
            };
        }
        self.known.extend(fact.conjuncts().iter().cloned());
        Ok(())
    }

    /// Thread `a` comes before thread `b`.
    pub fn order(&mut self, a: u8, b: u8) -> Possible {
        let (a, b) = (usize::from(a), usize::from(b));
        if a == b || self.later[b] & 1 << a != 0 {
            return Err(Impossible);
        }
        let after = self.later[b] | 1 << b;
        for i in 0..self.threads.len() {
            if i == a || self.later[i] & 1 << a != 0 {
                self.later[i] |= after;
            }
        }
        Ok(())
    }

    pub fn stores_to(&self, place: CellAt) -> Moments {
        self.after_stores_to.get(&place).copied().unwrap_or(0)
    }

    /// Whatever is not later than one of `moments` is not later than `more` either.
    pub fn put_before(&mut self, moments: Moments, more: Moments) {
        let extend = |set: &mut Moments| {
            if *set & moments != 0 {
                *set |= more;
            }
        };
        self.reads.iter_mut().for_each(|r| extend(&mut r.before));
        self.after_reads_of.iter_mut().for_each(extend);
        self.after_stores_of.iter_mut().for_each(extend);
        self.after_stores_to.values_mut().for_each(extend);
        self.after_stores_elsewhere.values_mut().for_each(extend);
        extend(&mut self.last);
    }

    pub fn for_each_value(&self, rules: &Rules<'_>, visit: &mut dyn FnMut(Value)) {
        self.among.keys().for_each(|v| visit(*v));
        for v in self.known.iter().flat_map(Formula::vars) {
            rules.value_of(v).map(&mut *visit);
        }
    }
}
