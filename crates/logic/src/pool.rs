//! Model pools: most implication queries are not valid, and a stored model
//! shows it without a solver.

use crate::formula::Formula;
use crate::model::Model;

/// Satisfying assignments worth trying again, the most recently useful first.
#[derive(Clone, Debug)]
pub struct Pool {
    models: Vec<Model>,
    capacity: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Pool::with_capacity(256)
    }
}

impl Pool {
    /// An empty pool of the default capacity.
    pub fn new() -> Pool {
        Pool::default()
    }

    /// An empty pool that forgets the least useful model beyond `capacity`.
    pub fn with_capacity(capacity: usize) -> Pool {
        Pool {
            models: Vec::new(),
            capacity: capacity.max(1),
        }
    }

    /// Keeps a model.
    pub fn add(&mut self, model: Model) {
        if !self.models.contains(&model) {
            self.models.truncate(self.capacity - 1);
            self.models.insert(0, model);
        }
    }

    /// A pooled model of all `formulas`, if there is one.
    pub fn find(&mut self, formulas: &[Formula]) -> Option<&Model> {
        self.promote(|m| formulas.iter().all(|f| f.eval(m)))
    }

    /// A pooled model of all premises but not of the conclusion.
    pub fn refute(&mut self, premises: &[Formula], conclusion: &Formula) -> Option<&Model> {
        self.promote(|m| !conclusion.eval(m) && premises.iter().all(|f| f.eval(m)))
    }

    fn promote(&mut self, test: impl Fn(&Model) -> bool) -> Option<&Model> {
        let at = self.models.iter().position(test)?;
        let model = self.models.remove(at);
        self.models.insert(0, model);
        self.models.first()
    }

    /// The models.
    pub fn models(&self) -> &[Model] {
        &self.models
    }
}

/// A literal of a cube: the predicate's position and whether it holds.
pub type CubeLiteral = (usize, bool);

/// Models with the truth of a fixed list of predicates as bits: whether some
/// model lies in a cube is then a few word operations per model.
#[derive(Clone, Debug, Default)]
pub struct TruthTable {
    predicates: Vec<Formula>,
    words: usize,
    models: Vec<Model>,
    bits: Vec<u64>,
}

impl TruthTable {
    /// An empty table for these predicates.
    pub fn new(predicates: Vec<Formula>) -> TruthTable {
        let words = predicates.len().div_ceil(64).max(1);
        TruthTable {
            predicates,
            words,
            models: Vec::new(),
            bits: Vec::new(),
        }
    }

    /// The predicates.
    pub fn predicates(&self) -> &[Formula] {
        &self.predicates
    }

    /// The models, in the order they came.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Evaluates and keeps a model; `false` if one with the same truth values is
    /// there already.
    pub fn add(&mut self, model: Model) -> bool {
        let mut row = vec![0u64; self.words];
        for (i, p) in self.predicates.iter().enumerate() {
            if p.eval(&model) {
                row[i / 64] |= 1 << (i % 64);
            }
        }
        if self.bits.chunks(self.words).any(|old| old == row) {
            return false;
        }
        self.bits.extend(row);
        self.models.push(model);
        true
    }

    /// Whether predicate `i` holds in model `m`.
    pub fn holds(&self, m: usize, i: usize) -> bool {
        self.bits[m * self.words + i / 64] >> (i % 64) & 1 == 1
    }

    /// A model in the cube, by its position.
    pub fn find(&self, cube: &[CubeLiteral]) -> Option<usize> {
        let mut mask = vec![0u64; self.words];
        let mut want = vec![0u64; self.words];
        for &(i, value) in cube {
            let (word, bit) = (i / 64, 1 << (i % 64));
            if mask[word] & bit != 0 && (want[word] & bit != 0) != value {
                return None;
            }
            mask[word] |= bit;
            if value {
                want[word] |= bit;
            }
        }
        let fits = |row: &[u64]| {
            row.iter()
                .zip(&mask)
                .zip(&want)
                .all(|((r, m), w)| r & m == *w)
        };
        self.bits.chunks(self.words).position(fits)
    }
}
