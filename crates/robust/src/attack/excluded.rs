//! Sequences of steps an attack must not follow exactly: lazy reachability has dealt with them.

use rustc_hash::FxHashMap;
use wattle_model::{StepId, ThreadId};

/// A sequence of an attacker's steps, from the delayed store to the access that overtakes it.
pub type Sequence = (ThreadId, Vec<StepId>);

/// The sequences as a tree; node 0 is "on none of them".
#[derive(Default)]
pub(super) struct Excluded {
    next: FxHashMap<(u32, ThreadId, StepId), u32>,
    last: Vec<bool>,
}

impl Excluded {
    pub fn new(sequences: &[Sequence]) -> Self {
        let mut tree = Excluded {
            next: FxHashMap::default(),
            last: vec![false],
        };
        for (t, steps) in sequences {
            let mut at = 0;
            for s in steps {
                let fresh = tree.last.len() as u32;
                at = *tree.next.entry((at, *t, *s)).or_insert(fresh);
                if at == fresh {
                    tree.last.push(false);
                }
            }
            tree.last[at as usize] = true;
        }
        tree
    }

    /// The first step of an attack.
    pub fn start(&self, t: usize, s: StepId) -> u32 {
        self.follow(0, t, s)
    }

    /// A later one; whoever has left the tree stays out.
    pub fn step(&self, at: u32, t: usize, s: StepId) -> u32 {
        if at == 0 { 0 } else { self.follow(at, t, s) }
    }

    fn follow(&self, at: u32, t: usize, s: StepId) -> u32 {
        let key = (at, ThreadId::new(t), s);
        self.next.get(&key).copied().unwrap_or(0)
    }

    /// Whether committing with this step completes an excluded sequence.
    pub fn forbids(&self, at: u32, t: usize, s: StepId) -> bool {
        self.last[self.step(at, t, s) as usize]
    }
}
