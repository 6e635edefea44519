//! A query cache keyed by the set of assertions, whatever their order.

use crate::formula::Formula;
use crate::model::Model;
use crate::solver::{Answer, Refutation};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// Beyond this many entries the cache starts afresh.
const CAPACITY: usize = 1 << 16;

#[derive(Debug)]
enum Known {
    Sat(Model),
    Unsat(Vec<Formula>),
}

/// Answers by set of assertions. Proofs are not kept, and neither is `Unknown`.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: FxHashMap<u64, Vec<(Vec<Formula>, Known)>>,
    count: usize,
}

/// A hash that does not depend on the order.
fn key(assertions: &[Formula]) -> u64 {
    let mut sum = 0u64;
    for f in assertions {
        let mut hasher = FxHasher::default();
        f.hash(&mut hasher);
        sum = sum.wrapping_add(hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    }
    sum
}

impl Cache {
    pub(crate) fn get(&self, assertions: &[Formula]) -> Option<Answer> {
        let bucket = self.entries.get(&key(assertions))?;
        let same = |set: &Vec<Formula>| {
            set.len() == assertions.len()
                && assertions.iter().all(|f| set.contains(f))
                && set.iter().all(|f| assertions.contains(f))
        };
        let (_, known) = bucket.iter().find(|(set, _)| same(set))?;
        Some(match known {
            Known::Sat(model) => Answer::Sat(model.clone()),
            Known::Unsat(core) => {
                let mut positions: Vec<usize> = core
                    .iter()
                    .filter_map(|f| assertions.iter().position(|g| g == f))
                    .collect();
                positions.sort_unstable();
                positions.dedup();
                Answer::Unsat(Refutation {
                    core: positions,
                    proof: None,
                })
            }
        })
    }

    pub(crate) fn put(&mut self, assertions: &[Formula], answer: &Answer) {
        let known = match answer {
            Answer::Sat(model) => Known::Sat(model.clone()),
            Answer::Unsat(r) => {
                Known::Unsat(r.core.iter().map(|&i| assertions[i].clone()).collect())
            }
            Answer::Unknown(_) => return,
        };
        if self.count >= CAPACITY {
            self.entries.clear();
            self.count = 0;
        }
        self.count += 1;
        self.entries
            .entry(key(assertions))
            .or_default()
            .push((assertions.to_vec(), known));
    }
}
