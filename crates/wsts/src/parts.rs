//! An index of configurations by what they are made of.
//!
//! Every configuration has a list of *parts* (numbers, sorted, perhaps repeated) such that one can
//! only cover another if its parts are among the other's. The index is a tree along these lists (a
//! set-trie), so that a look for whatever might cover a configuration follows only lists that are
//! part of its own.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// A part; different ones may share a number, which costs time only.
pub type Part = u64;

/// The number of a part.
pub fn part(of: impl Hash) -> Part {
    let mut hasher = FxHasher::default();
    of.hash(&mut hasher);
    hasher.finish()
}

#[derive(Default)]
struct Branch {
    further: FxHashMap<Part, u32>,
    here: Vec<u32>,
}

pub struct Parts {
    branches: Vec<Branch>,
}

impl Default for Parts {
    fn default() -> Self {
        Parts {
            branches: vec![Branch::default()],
        }
    }
}

impl Parts {
    /// Those with exactly this list, for adding to and taking from.
    pub fn exactly(&mut self, list: &[Part]) -> &mut Vec<u32> {
        let mut at = 0;
        for part in list {
            let next = self.branches.len() as u32;
            at = *self.branches[at].further.entry(*part).or_insert(next) as usize;
            if at == next as usize {
                self.branches.push(Branch::default());
            }
        }
        &mut self.branches[at].here
    }

    /// Whether the test holds for one whose list is part of this one.
    pub fn any_within(&self, list: &[Part], test: impl Fn(u32) -> bool) -> bool {
        let mut left = vec![(0usize, 0usize)];
        while let Some((at, from)) = left.pop() {
            let branch = &self.branches[at];
            if branch.here.iter().any(|n| test(*n)) {
                return true;
            }
            if branch.further.is_empty() {
                continue;
            }
            for i in from..list.len() {
                // Of equal parts the first will do.
                if (i == from || list[i] != list[i - 1])
                    && let Some(next) = branch.further.get(&list[i])
                {
                    left.push((*next as usize, i + 1));
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_made_of_some_of_the_parts() {
        let mut parts = Parts::default();
        for (n, list) in [&[][..], &[1, 3], &[3, 3], &[1, 2, 3]].iter().enumerate() {
            parts.exactly(list).push(n as u32);
        }
        let found = |list: &[Part]| -> Vec<u32> {
            (0..4)
                .filter(|n| parts.any_within(list, |m| m == *n))
                .collect()
        };
        assert_eq!(found(&[]), [0]);
        assert_eq!(found(&[1, 2, 3]), [0, 1, 3]);
        assert_eq!(found(&[1, 3, 3]), [0, 1, 2]);
        assert_eq!(found(&[2, 3]), [0]);
    }
}
