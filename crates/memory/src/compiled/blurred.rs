//! Packed buffers that forget: the same row of slots, in an order of its own.
//!
//! What the reference machine calls a content is a *group* here: the whole row under TSO, the entries
//! of one cell in one epoch under PSO. A group has entries in order, oldest first, and *loose* ones,
//! of which the order is forgotten: behind them (the oldest k are kept), before them (the newest k),
//! or alone (set and multiset). Loose entries are sorted by cell and by value, but the last-added
//! entry of a cell is the last of its cell. So equal buffers are equal bits here too, the newest value
//! of a cell is the last in the row as in exact buffers, and nothing is stored to say which it is.
//!
//! Sets have each entry once and multisets as often as it was put; a multiset, which has no bound,
//! reports a store that finds no slot like an exact buffer does. Sets over finite data need no more
//! slots than there are entries: there a store that finds none asks for a longer row
//! ([`Stuck::Short`]).

use super::buffer::Buffer;
use super::run::Stuck;
use crate::content::{Content, Keeps, OldestK};
use crate::layout::Bounds;

/// How a buffer forgets, or what it does not take.
#[derive(Clone, Debug)]
pub struct Blur {
    keeps: Keeps,
    /// k of the thread's buffer (TSO), or of the buffer of each position in `cells` (PSO).
    thread: usize,
    cells: Vec<usize>,
    /// Epochs kept apart.
    epochs: usize,
    /// The mark's bits: the entry opens an epoch, and it is loose. Without a bit for it all are loose.
    opens: u64,
    pub loose: u64,
}

/// How an entry can leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// It reaches memory and is gone.
    pub removed: bool,
    /// It reaches memory and stays.
    pub kept: bool,
}

impl Blur {
    /// `None` for exact buffers. `fences` if there are epochs to keep apart.
    pub fn new(
        keeps: Keeps,
        bounds: Option<&Bounds<usize>>,
        cells: &[u32],
        fences: bool,
    ) -> Option<Self> {
        if keeps == Keeps::Exact {
            return None;
        }
        let k = |c: &u32| bounds.map_or(0, |b| b.cells[*c as usize]);
        let cells: Vec<usize> = cells.iter().map(k).collect();
        let thread = bounds.map_or(0, |b| b.thread);
        let epochs = match keeps {
            Keeps::Exact | Keeps::AtMost => usize::MAX,
            Keeps::Multiset => 1,
            Keeps::Oldest | Keeps::Newest => OldestK::epochs(thread),
        };
        let ordered = thread > 0 || cells.iter().any(|k| *k > 0);
        let opens = u64::from(fences && epochs > 1);
        let loose = match keeps {
            Keeps::Oldest | Keeps::Newest if ordered => 1 << opens,
            Keeps::Exact | Keeps::Multiset | Keeps::Oldest | Keeps::Newest | Keeps::AtMost => 0,
        };
        Some(Blur {
            keeps,
            thread,
            cells,
            epochs,
            opens,
            loose,
        })
    }

    /// Different marks an entry can have.
    pub fn marks(&self) -> usize {
        (self.opens | self.loose) as usize + 1
    }

    pub fn has_epochs(&self) -> bool {
        self.opens != 0
    }

    pub fn forgets(&self) -> bool {
        self.keeps.is_abstract()
    }

    fn is_set(&self) -> bool {
        self.keeps.is_finite()
    }
}

/// Where an entry goes among loose ones: the entries of its cell, and the one that is equal to it.
struct Insertion {
    first: usize,
    end: usize,
    same: Option<usize>,
}

impl Buffer {
    pub(super) fn put_blurred(
        &self,
        blur: &Blur,
        state: &mut [u64],
        which: u64,
        value: u64,
    ) -> Result<(), Stuck> {
        let n = self.len(state);
        let room = n < self.which.len();
        let k = match self.sorted {
            true => blur.cells[which as usize],
            false => blur.thread,
        };
        if blur.keeps == Keeps::AtMost {
            let counts = |i: &usize| !self.sorted || self.which[*i].raw(state) == which;
            return match (0..n).filter(counts).count() < k {
                true if room => self.put_in_order(state, which, value),
                true => Err(Stuck::Short),
                false => Err(Stuck::Full),
            };
        }
        let (first, end, opens) = self.group(blur, state, which);
        let is_loose = |i: usize| self.is_loose(state, i);
        let ordered = match blur.keeps {
            Keeps::Oldest => (first..end).take_while(|i| !is_loose(*i)).count(),
            Keeps::Newest => (first..end).rev().take_while(|i| !is_loose(*i)).count(),
            Keeps::Exact | Keeps::Multiset | Keeps::AtMost => 0,
        };
        let in_order = match blur.keeps {
            Keeps::Oldest => ordered < k && first + ordered == end,
            Keeps::Newest => k > 0,
            Keeps::Exact | Keeps::Multiset | Keeps::AtMost => false,
        };
        if !room {
            // A set that has the entry needs no slot for it.
            let loose = first
                + if blur.keeps == Keeps::Oldest {
                    ordered
                } else {
                    0
                };
            let place = self.place(state, loose, end, which, value);
            return match place.same {
                Some(same) if blur.is_set() && !in_order => {
                    self.make_last(state, &place, same);
                    self.fenced.set_raw(state, 0);
                    Ok(())
                }
                _ if blur.is_set() => Err(Stuck::Short),
                _ => Err(Stuck::Full),
            };
        }
        self.fenced.set_raw(state, 0);
        self.insert(blur, state, end, (which, value), opens, !in_order);
        match (in_order, blur.keeps) {
            (false, Keeps::Oldest) => self.absorb(blur, state, first + ordered, end),
            (false, _) => self.absorb(blur, state, first, end),
            (true, Keeps::Newest) if ordered == k => {
                let oldest = end - ordered;
                self.loosen(state, oldest);
                self.absorb(blur, state, first, oldest);
            }
            (true, _) => {}
        }
        Ok(())
    }

    /// The group a store of the cell enters, from slot to slot, and whether it opens an epoch.
    fn group(&self, blur: &Blur, state: &[u64], which: u64) -> (usize, usize, bool) {
        let n = self.len(state);
        if !self.sorted {
            return (0, n, false);
        }
        let opens = |i: &usize| self.opens(state, *i);
        let epochs = 1 + (0..n).filter(opens).count();
        if self.fenced.raw(state) == 1 && epochs < blur.epochs {
            return (n, n, true);
        }
        let epoch = (0..n).rev().find(opens).unwrap_or(0);
        let before = |w: u64| epoch + (epoch..n).filter(|i| self.which[*i].raw(state) < w).count();
        (before(which), before(which + 1), false)
    }

    pub(super) fn is_loose(&self, state: &[u64], i: usize) -> bool {
        self.loose == 0 || self.mark[i].raw(state) & self.loose != 0
    }

    fn loosen(&self, state: &mut [u64], i: usize) {
        let mark = self.mark[i].raw(state);
        self.mark[i].set_raw(state, mark | self.loose);
    }

    /// A new entry in slot `at`, at the end of its group.
    fn insert(
        &self,
        blur: &Blur,
        state: &mut [u64],
        at: usize,
        (which, value): (u64, u64),
        opens: bool,
        loose: bool,
    ) {
        let n = self.len(state);
        for i in (at..n).rev() {
            self.copy(state, i, i + 1);
        }
        // Who is now the first of its epoch says so. Behind the last entry of the row no epoch begins
        // unless this store opens it; nor does one begin behind this epoch, the newest.
        let mut mark = if opens { blur.opens } else { 0 };
        if at < n {
            let next = self.mark[at + 1].raw(state);
            mark = next & blur.opens;
            self.mark[at + 1].set_raw(state, next & !blur.opens);
        }
        if loose {
            mark |= self.loose;
        }
        self.which[at].set_raw(state, which);
        self.value[at].set_raw(state, value);
        self.mark[at].set_raw(state, mark);
        self.count.set_raw(state, n as u64 + 1);
    }

    /// Exchanges entries of one group; epochs stay where they begin.
    fn swap(&self, state: &mut [u64], i: usize, j: usize) {
        for fields in [&self.which, &self.value] {
            let (a, b) = (fields[i].raw(state), fields[j].raw(state));
            fields[i].set_raw(state, b);
            fields[j].set_raw(state, a);
        }
    }

    /// Among the loose entries from `first` to `end`.
    fn place(&self, state: &[u64], first: usize, end: usize, which: u64, value: u64) -> Insertion {
        let of = |i: usize| self.which[i].raw(state);
        let before = (first..end).take_while(|i| of(*i) < which).count();
        let mine = (first + before..end)
            .take_while(|i| of(*i) == which)
            .count();
        let (first, end) = (first + before, first + before + mine);
        Insertion {
            first,
            end,
            same: (first..end).find(|i| self.value[*i].raw(state) == value),
        }
    }

    /// The last-added entry of the cell is no longer the last-added one: it goes where its value
    /// belongs.
    fn settle_last(&self, state: &mut [u64], first: usize, end: usize) {
        let value = |state: &[u64], i: usize| self.value[i].raw(state);
        let mut i = end;
        while i > first + 1 && value(state, i - 2) > value(state, i - 1) {
            self.swap(state, i - 2, i - 1);
            i -= 1;
        }
    }

    /// An entry that is there becomes the last-added one of its cell.
    fn make_last(&self, state: &mut [u64], place: &Insertion, same: usize) {
        if same + 1 == place.end {
            return;
        }
        for i in same..place.end - 1 {
            self.swap(state, i, i + 1);
        }
        self.settle_last(state, place.first, place.end - 1);
    }

    /// The loose entry in slot `at` was added to those from `first` up to it.
    fn absorb(&self, blur: &Blur, state: &mut [u64], first: usize, at: usize) {
        let (which, value) = (self.which[at].raw(state), self.value[at].raw(state));
        let place = self.place(state, first, at, which, value);
        if let (Some(same), true) = (place.same, blur.is_set()) {
            self.make_last(state, &place, same);
            self.take(state, at);
            return;
        }
        self.settle_last(state, place.first, place.end);
        for i in (place.end..at).rev() {
            self.swap(state, i, i + 1);
        }
    }

    /// How the entry in slot `i` can leave.
    pub(super) fn leaves(&self, state: &[u64], i: usize) -> Leaves {
        let (removed, kept) = match &self.blur {
            None => (self.may_drain(state, i), false),
            Some(blur) if blur.keeps == Keeps::AtMost => (self.may_drain(state, i), false),
            Some(blur) => self.leaves_blurred(blur, state, i),
        };
        Leaves { removed, kept }
    }

    fn leaves_blurred(&self, blur: &Blur, state: &[u64], i: usize) -> (bool, bool) {
        let opens = |i: usize| self.opens(state, i);
        if (1..=i).any(opens) {
            return (false, false);
        }
        let which = |i: usize| self.which[i].raw(state);
        let first = match self.sorted {
            false => 0,
            true => i - (0..i).rev().take_while(|j| which(*j) == which(i)).count(),
        };
        let loose = |i: usize| self.is_loose(state, i);
        if !loose(i) || !loose(first) {
            return (i == first, false);
        }
        let next = i + 1;
        let last = next >= self.len(state)
            || which(next) != which(i)
            || !loose(next)
            || (self.sorted && opens(next));
        let alone = i == first || which(i - 1) != which(i);
        let value = |i: usize| self.value[i].raw(state);
        // Copies leave one like the other.
        let copy = !alone && !last && value(i - 1) == value(i);
        ((!last || alone) && !copy, blur.is_set())
    }
}
