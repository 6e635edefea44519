//! Runs still to come: ordered trees of moves, as branches of one arena.
//!
//! A tree belongs to a state on the stack; its branches are sequences of moves to be made from there, in
//! this order. A *leaf* stands for every run that begins with its sequence.

use crate::moves::Move;

pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Branch {
    of: Move,
    first: u32,
    next: u32,
}

/// The branches of all trees.
#[derive(Default)]
pub struct Forest {
    branches: Vec<Branch>,
    free: u32,
    used: usize,
}

impl Forest {
    pub fn new() -> Self {
        Forest {
            branches: Vec::new(),
            free: NONE,
            used: 0,
        }
    }

    pub fn bytes(&self) -> u64 {
        (self.branches.capacity() * size_of::<Branch>()) as u64
    }

    pub fn make(&mut self, of: Move) -> u32 {
        let branch = Branch {
            of,
            first: NONE,
            next: NONE,
        };
        self.used += 1;
        match self.free {
            NONE => {
                self.branches.push(branch);
                self.branches.len() as u32 - 1
            }
            free => {
                let at = free as usize;
                self.free = self.branches[at].next;
                self.branches[at] = branch;
                free
            }
        }
    }

    #[inline]
    pub fn of(&self, branch: u32) -> Move {
        self.branches[branch as usize].of
    }

    /// The first branch after it.
    #[inline]
    pub fn first(&self, branch: u32) -> u32 {
        self.branches[branch as usize].first
    }

    /// The one beside it.
    #[inline]
    pub fn next(&self, branch: u32) -> u32 {
        self.branches[branch as usize].next
    }

    pub fn set_first(&mut self, branch: u32, first: u32) {
        self.branches[branch as usize].first = first;
    }

    pub fn set_next(&mut self, branch: u32, next: u32) {
        self.branches[branch as usize].next = next;
    }

    /// Takes the first of a row of branches out: its move, what comes after it, and the rest of the row.
    pub fn take(&mut self, head: u32) -> (Move, u32, u32) {
        let Branch { of, first, next } = self.branches[head as usize];
        self.branches[head as usize].next = self.free;
        self.free = head;
        self.used -= 1;
        (of, first, next)
    }
}
