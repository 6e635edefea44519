//! The first and the last thread, in the order of threads, whose element of a cell has one of some values.
//!
//! A certificate may have these two in every view, as two scalars that nobody reads or writes. What they
//! are is determined by memory: with T the set of threads whose element has one of the values, its least and
//! its greatest, none if T is empty. So all views of a state agree on them.
//!
//! After stores, T loses the threads whose element is changed to another value and gets those whose
//! element is changed to one of the values. If T was empty, it has the latter only. Else its least is what
//! it was, unless that was lost: then, if there are others, it is one of those up to the greatest; of these
//! all that are named and one between each two of them are gone through. The same for the greatest.

use super::assume::Logic;
use super::world::{ANY, Frame, NONE, Pos, Store, World};
use wattle_evidence::certificate::views::Witness;
use wattle_model::array::{ArraySystem, CellDecl, CellType, UpdateIndex};

/// Whether it is one of the values.
pub fn has(witness: &Witness, value: Pos) -> bool {
    witness.values.iter().any(|v| Pos::from(*v) == value)
}

/// The system with the two scalars last.
pub fn extended(system: &ArraySystem) -> ArraySystem {
    let mut out = system.clone();
    for name in ["first", "last"] {
        out.cells.push(CellDecl {
            name: format!("the {name} witness"),
            arity: 0,
            ty: CellType::Thread,
            weak: false,
            constant: false,
            span: system.init.span,
        });
    }
    out
}

/// Whether elements of a cell can be known for threads that are only named: one for each thread, few
/// values, and no step writes all of them.
pub fn can_be_kept(system: &ArraySystem, cell: u16) -> bool {
    let decl = system.cells.get(usize::from(cell));
    let few = decl.is_some_and(|c| c.arity == 1 && system.values(c.ty).is_some());
    let updates = system.transitions.iter().flat_map(|t| &t.updates);
    let mut updates = updates.filter(|u| u.cell == cell);
    few && !updates.any(|u| u.index.iter().any(|i| matches!(i, UpdateIndex::Each(_))))
}

impl Frame<'_> {
    /// Where the first is; the last is the next.
    fn first(&self) -> usize {
        self.system.cells.len() - 2
    }

    pub fn set_witnesses(&self, w: &mut World, two: [Pos; 2]) {
        if self.witness.is_some() {
            let at = self.first();
            (w.memory[at][0], w.memory[at + 1][0]) = (two[0], two[1]);
        }
    }

    /// Whether what is known of threads agrees with who the witnesses are.
    pub fn agrees(&self, w: &World) -> bool {
        let Some(witness) = &self.witness else {
            return true;
        };
        let (first, last) = (w.memory[self.first()][0], w.memory[self.first() + 1][0]);
        let cell = usize::from(witness.cell);
        let whole = w.me.iter().copied().zip(w.memory[cell].iter().copied());
        let looked = w.looked.iter().filter(|l| l.0 == witness.cell);
        let mut all = whole.chain(looked.map(|l| (l.1[0], l.2)));
        let none = first == NONE;
        none == (last == NONE)
            && (none || first <= last)
            && all.all(|(thread, value)| match value {
                ANY => true,
                v if has(witness, v) => !none && (first..=last).contains(&thread),
                _ => thread != first && thread != last,
            })
    }
}

impl Logic<'_> {
    /// The worlds after stores that have reached memory, with all who may be the witnesses.
    pub fn witnessed(&self, w: World, stores: &[Store]) -> Vec<World> {
        let Some(witness) = &self.frame.witness else {
            return vec![w];
        };
        let at = self.frame.first();
        let (first, last) = (w.memory[at][0], w.memory[at + 1][0]);
        let (mut lost, mut new): (Vec<Pos>, Vec<Pos>) = (Vec::new(), Vec::new());
        for s in stores.iter().filter(|s| s.cell == witness.cell) {
            if s.value == ANY {
                self.cramped.set(true);
            }
            // A later store to the same element counts.
            let thread = s.of[0];
            lost.retain(|t| *t != thread);
            new.retain(|t| *t != thread);
            match has(witness, s.value) {
                true => new.push(thread),
                false => lost.push(thread),
            }
        }
        let only = (
            new.iter().min().copied().unwrap_or(NONE),
            new.iter().max().copied().unwrap_or(NONE),
        );
        let without = [first, last].map(|t| lost.contains(&t));
        if without == [true; 2] && first != last {
            // Two threads between the same two others would be missed.
            self.cramped.set(true);
        }
        let mut named = self.frame.positions(&w, true);
        let between = self.strangers(&named);
        named.extend(between);
        named.retain(|t| (first..=last).contains(t) && !lost.contains(t));
        let lows = if without[0] {
            named.clone()
        } else {
            vec![first]
        };
        let highs = if without[1] { named } else { vec![last] };
        let mut pairs = Vec::new();
        if first == NONE || without == [true; 2] {
            pairs.push(only);
        }
        if first != NONE {
            for low in &lows {
                for high in highs.iter().filter(|h| low <= *h) {
                    let least = new.iter().fold(*low, |a, b| a.min(*b));
                    let most = new.iter().fold(*high, |a, b| a.max(*b));
                    pairs.push((least, most));
                }
            }
        }
        let with = |(first, last): (Pos, Pos)| {
            let mut next = w.clone();
            self.frame.set_witnesses(&mut next, [first, last]);
            next
        };
        let all = pairs.into_iter().map(with);
        all.filter(|w| self.frame.agrees(w)).collect()
    }
}
