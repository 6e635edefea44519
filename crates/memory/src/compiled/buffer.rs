//! Packed buffers: the pending stores of one thread in a row of slots, oldest first.
//!
//! Under PSO the row lists the epochs one after the other, each sorted by cell and then by age; a
//! mark on an entry says that it opens a new epoch. Unused slots are zero, so that equal buffers are
//! equal bits. This file has what is kept in order; [`super::blurred`] has contents that forget.

use super::blurred::Blur;
use super::pack::Field;
use super::run::Stuck;

#[derive(Clone, Debug, Default)]
pub struct Buffer {
    /// Number of entries.
    pub count: Field,
    /// Per slot: which cell (a position in `cells`), the value's bits, the epoch mark (1) and, in
    /// contents that forget, one more bit.
    pub which: Vec<Field>,
    pub value: Vec<Field>,
    pub mark: Vec<Field>,
    /// A store fence came after the newest entry.
    pub fenced: Field,
    /// Cells the thread may store to, sorted.
    pub cells: Vec<u32>,
    /// Per position in `cells`: its drains are nobody else's business.
    pub private: Vec<bool>,
    /// Sorted by cell (PSO), not by age alone (TSO).
    pub sorted: bool,
    /// How it differs from an exact buffer, if it does.
    pub blur: Option<Box<Blur>>,
    /// The mark's bit of entries whose order is forgotten, if there is one.
    pub loose: u64,
}

impl Buffer {
    #[inline]
    pub fn len(&self, state: &[u64]) -> usize {
        self.count.index(state)
    }

    #[inline]
    pub fn is_empty(&self, state: &[u64]) -> bool {
        self.count.raw(state) == 0
    }

    /// Whether a store fence is remembered.
    pub fn has_epochs(&self) -> bool {
        self.fenced.bits().1 != 0
    }

    /// Whether the entry in slot `i` opens an epoch.
    pub fn opens(&self, state: &[u64], i: usize) -> bool {
        self.has_epochs() && self.mark[i].raw(state) & 1 == 1
    }

    /// Whether the order of some entries is forgotten.
    pub fn forgets(&self) -> bool {
        self.blur.as_ref().is_some_and(|b| b.forgets())
    }

    #[inline]
    pub fn position(&self, cell: u32) -> Option<u64> {
        self.cells.binary_search(&cell).ok().map(|i| i as u64)
    }

    /// The bits of the newest pending store of the cell: the last in the row, whatever the content.
    #[inline]
    pub fn newest(&self, state: &[u64], cell: u32) -> Option<u64> {
        let n = self.len(state);
        if n == 0 {
            return None;
        }
        let which = self.position(cell)?;
        let newest = (0..n).rev().find(|i| self.which[*i].raw(state) == which);
        newest.map(|i| self.value[i].raw(state))
    }

    /// Takes an entry, or leaves the state as it was.
    #[inline]
    pub fn put(&self, state: &mut [u64], which: u64, value: u64) -> Result<(), Stuck> {
        match &self.blur {
            None => self.put_in_order(state, which, value),
            Some(blur) => self.put_blurred(blur, state, which, value),
        }
    }

    #[inline]
    pub(super) fn put_in_order(
        &self,
        state: &mut [u64],
        which: u64,
        value: u64,
    ) -> Result<(), Stuck> {
        let n = self.len(state);
        if n >= self.which.len() {
            return Err(Stuck::Full);
        }
        let mut at = n;
        let mut mark = 0;
        if self.sorted {
            if self.fenced.raw(state) == 1 {
                // A fence with nothing pending leaves no trace, so there is an older epoch.
                mark = 1;
                self.fenced.set_raw(state, 0);
            } else {
                while at > 0 && self.which[at - 1].raw(state) > which {
                    at -= 1;
                    // The entry before a mark belongs to an older epoch.
                    if self.mark[at].raw(state) == 1 {
                        self.mark[at].set_raw(state, 0);
                        mark = 1;
                        break;
                    }
                }
            }
            for i in (at..n).rev() {
                self.copy(state, i, i + 1);
            }
        }
        self.which[at].set_raw(state, which);
        self.value[at].set_raw(state, value);
        self.mark[at].set_raw(state, mark);
        self.count.set_raw(state, n as u64 + 1);
        Ok(())
    }

    #[inline]
    pub fn store_fence(&self, state: &mut [u64]) {
        if self.sorted && !self.is_empty(state) {
            self.fenced.set_raw(state, 1);
        }
    }

    /// Whether the entry in slot `i` may leave now: the oldest of its cell in the oldest epoch.
    #[inline]
    pub fn may_drain(&self, state: &[u64], i: usize) -> bool {
        if !self.sorted {
            return i == 0;
        }
        let which = self.which[i].raw(state);
        (1..=i).all(|j| self.mark[j].raw(state) == 0)
            && (i == 0 || self.which[i - 1].raw(state) != which)
    }

    /// Takes the entry out of slot `i`: position of its cell, and its bits.
    #[inline]
    pub fn take(&self, state: &mut [u64], i: usize) -> (u64, u64) {
        let n = self.len(state);
        let entry = (self.which[i].raw(state), self.value[i].raw(state));
        for j in i + 1..n {
            self.copy(state, j, j - 1);
        }
        self.which[n - 1].set_raw(state, 0);
        self.value[n - 1].set_raw(state, 0);
        self.mark[n - 1].set_raw(state, 0);
        // The oldest epoch has no mark.
        let mark = self.mark[0].raw(state) & self.loose;
        self.mark[0].set_raw(state, mark);
        self.count.set_raw(state, n as u64 - 1);
        if n == 1 {
            self.fenced.set_raw(state, 0);
        }
        entry
    }

    #[inline]
    pub(super) fn copy(&self, state: &mut [u64], from: usize, to: usize) {
        let which = self.which[from].raw(state);
        self.which[to].set_raw(state, which);
        let value = self.value[from].raw(state);
        self.value[to].set_raw(state, value);
        let mark = self.mark[from].raw(state);
        self.mark[to].set_raw(state, mark);
    }
}
