//! What an attack is about so far, and what an event does to it.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    Read,
    Written,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Before,
    /// The attacker's stores, newest value per cell; the first one was to `delayed`.
    Delaying {
        attacker: usize,
        delayed: usize,
        private: BTreeMap<usize, u32>,
    },
    /// `debt`: the unit somebody is in has yet to show that it comes after the load.
    Committed {
        attacker: usize,
        delayed: usize,
        marks: BTreeMap<usize, Mark>,
        after: BTreeSet<usize>,
        debt: bool,
    },
    /// All that is missing is the end of the atomic block that this thread is in.
    Leaving(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Aside {
    pub phase: Phase,
    /// What the unit in debt has touched.
    pub unit: BTreeMap<usize, Mark>,
}

/// What a thread does, as far as the attack goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    Access {
        cell: usize,
        mark: Mark,
        /// In a unit, which may be an atomic block.
        inside: bool,
        atomic: bool,
    },
    /// Into a unit, and out of it.
    Enter,
    Leave,
    /// The attacker's: the first store, a later one, the load that overtakes them.
    Start {
        cell: usize,
        value: u32,
    },
    Keep {
        cell: usize,
        value: u32,
    },
    Commit {
        cell: usize,
    },
}

pub enum Admitted {
    No,
    Yes,
    Attack,
}

pub fn raise(marks: &mut BTreeMap<usize, Mark>, cell: usize, access: Mark) {
    let mark = marks.entry(cell).or_insert(access);
    *mark = (*mark).max(access);
}

impl Aside {
    pub fn after(&mut self, t: usize, deed: Deed) -> Admitted {
        match deed {
            Deed::Access {
                cell,
                mark,
                inside,
                atomic,
            } => match self.admit(t, cell, mark, inside) {
                Admitted::Attack if atomic => {
                    self.phase = Phase::Leaving(t);
                    self.unit.clear();
                    Admitted::Yes
                }
                admitted @ (Admitted::No | Admitted::Yes | Admitted::Attack) => admitted,
            },
            Deed::Enter => {
                if let Phase::Committed { after, debt, .. } = &mut self.phase {
                    *debt = !after.contains(&t);
                }
                Admitted::Yes
            }
            // A unit that is not after the load has no place here.
            Deed::Leave => match self.phase {
                Phase::Committed { debt: true, .. } => Admitted::No,
                Phase::Before
                | Phase::Delaying { .. }
                | Phase::Committed { debt: false, .. }
                | Phase::Leaving(_) => Admitted::Yes,
            },
            Deed::Start { cell, value } => {
                self.phase = Phase::Delaying {
                    attacker: t,
                    delayed: cell,
                    private: BTreeMap::from([(cell, value)]),
                };
                Admitted::Yes
            }
            Deed::Keep { cell, value } => {
                if let Phase::Delaying { private, .. } = &mut self.phase {
                    private.insert(cell, value);
                }
                Admitted::Yes
            }
            Deed::Commit { cell } => {
                let Phase::Delaying { delayed, .. } = self.phase else {
                    return Admitted::No;
                };
                self.phase = Phase::Committed {
                    attacker: t,
                    delayed,
                    marks: BTreeMap::from([(cell, Mark::Read)]),
                    after: BTreeSet::new(),
                    debt: false,
                };
                Admitted::Yes
            }
        }
    }

    /// Whether the access may happen where it does, and what it leaves behind.
    pub fn admit(&mut self, t: usize, cell: usize, access: Mark, inside: bool) -> Admitted {
        let Phase::Committed {
            delayed,
            marks,
            after,
            debt,
            ..
        } = &mut self.phase
        else {
            return Admitted::Yes;
        };
        if !after.contains(&t) {
            let conflict = match marks.get(&cell) {
                Some(Mark::Written) => true,
                Some(Mark::Read) => access == Mark::Written,
                None => false,
            };
            if conflict {
                after.insert(t);
                *debt = false;
                let touched = std::mem::take(&mut self.unit);
                if touched.contains_key(delayed) {
                    return Admitted::Attack;
                }
                for (c, m) in touched {
                    raise(marks, c, m);
                }
            } else if inside && *debt {
                raise(&mut self.unit, cell, access);
                return Admitted::Yes;
            } else {
                return Admitted::No;
            }
        }
        if cell == *delayed {
            return Admitted::Attack;
        }
        raise(marks, cell, access);
        Admitted::Yes
    }
}
