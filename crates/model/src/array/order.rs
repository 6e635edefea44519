//! Whether a thread's stores can reach memory in another order than they were made in.
//!
//! Under PSO an entry may pass an older one of its thread unless they share a cell, or a store fence is
//! between them. If every buffered store is followed, as far as the thread's own control goes, by a
//! fence, an atomic transition or a store of a cell it wrote itself, then at any time only the oldest
//! entry can drain: PSO does what TSO does.

use super::{
    Access, ArrayIndex, ArraySystem, CellType, Comparison, Formula, Literal, Term, ThreadTerm,
    Transition, UpdateIndex, Value,
};
use std::collections::{BTreeMap, BTreeSet};

/// More states of a thread's control than this are not followed.
const MOST: usize = 10_000;

/// What is known of the acting thread's own finite cells.
type Known = BTreeMap<ArrayIndex, Term>;

impl ArraySystem {
    /// Whether stores of a thread always reach memory in order, so that PSO is TSO.
    pub fn stores_in_order(&self) -> bool {
        let control = self.control();
        let stores = self.transitions.iter().filter(|t| self.buffers(t));
        stores.into_iter().all(|s| self.followed(s, &control))
    }

    /// Whether the transition puts something into its thread's buffer.
    fn buffers(&self, t: &Transition) -> bool {
        t.actor.is_some() && self.writes_weak(t) && !self.is_atomic(t)
    }

    /// Finite arrays in which every thread writes its own element only.
    fn control(&self) -> BTreeSet<ArrayIndex> {
        let finite = |ty: CellType| self.values(ty).is_some();
        let cells = self.cells.iter().enumerate();
        let mut own: BTreeSet<ArrayIndex> = cells
            .filter(|(_, c)| c.arity == 1 && !c.weak && finite(c.ty))
            .map(|(i, _)| i as ArrayIndex)
            .collect();
        for t in &self.transitions {
            for u in &t.updates {
                let mine = t.actor.map(|a| UpdateIndex::At(ThreadTerm::Param(a)));
                if mine.is_none_or(|mine| u.index != [mine]) {
                    own.remove(&u.cell);
                }
            }
        }
        own
    }

    /// Whether the next store after `s` cannot pass it, on every way.
    fn followed(&self, s: &Transition, control: &BTreeSet<ArrayIndex>) -> bool {
        let Some(first) = after(s, &Known::new(), control) else {
            return true;
        };
        let mut seen = BTreeSet::from([first.clone()]);
        let mut work = vec![first];
        while let Some(known) = work.pop() {
            for t in self.transitions.iter().filter(|t| t.actor.is_some()) {
                let Some(next) = after(t, &known, control) else {
                    continue;
                };
                // A fence of either kind is passed by no store.
                if t.fence.is_some() || self.is_atomic(t) {
                    continue;
                }
                if self.buffers(t) {
                    if !self.share(s, t) {
                        return false;
                    }
                } else if seen.insert(next.clone()) {
                    work.push(next);
                }
            }
            if seen.len() > MOST {
                return false;
            }
        }
        true
    }

    /// Whether both certainly write one and the same cell.
    fn share(&self, s: &Transition, t: &Transition) -> bool {
        let cells = self.surely(s);
        self.surely(t).iter().any(|c| cells.contains(c))
    }

    /// The weak cells a transition writes whatever the state: scalars, and the thread's own elements.
    fn surely(&self, t: &Transition) -> BTreeSet<ArrayIndex> {
        let mine = t.actor.map(ThreadTerm::Param);
        let own = |i: &UpdateIndex| matches!(i, UpdateIndex::At(p) if Some(*p) == mine);
        let certain = t.updates.iter().filter(|u| {
            let always = u.branches.first().is_some_and(|b| b.condition.is_true());
            self.cell(u.cell).weak && always && u.index.iter().all(own)
        });
        certain.map(|u| u.cell).collect()
    }
}

/// What is known after the transition, or nothing if it cannot be taken now.
fn after(t: &Transition, known: &Known, control: &BTreeSet<ArrayIndex>) -> Option<Known> {
    let mut now = known.clone();
    if !assume(&t.guard, t, control, &mut now) {
        return None;
    }
    for u in t.updates.iter().filter(|u| control.contains(&u.cell)) {
        let value = match &u.branches[..] {
            [b] if b.condition.is_true() => match &b.value {
                Value::Term(v) if is_constant(v) => Some(v.clone()),
                Value::Term(_) | Value::Any => None,
            },
            _ => None,
        };
        match value {
            Some(v) => now.insert(u.cell, v),
            None => now.remove(&u.cell),
        };
    }
    Some(now)
}

/// Adds what a guard says of the thread's own cells; says whether it can hold.
fn assume(f: &Formula, t: &Transition, control: &BTreeSet<ArrayIndex>, known: &mut Known) -> bool {
    match f {
        Formula::And(parts) => parts.iter().all(|p| assume(p, t, control, known)),
        Formula::Atom(Literal { left, op, right }) => {
            let own = |term: &Term| match term {
                Term::Read(Access { cell, args, .. }) => {
                    let mine = t.actor.map(ThreadTerm::Param);
                    let fits = control.contains(cell) && args.first().copied() == mine;
                    fits.then_some(*cell)
                }
                Term::Bool(_) | Term::Constructor(..) | Term::Thread(_) | Term::Sum { .. } => None,
            };
            let (cell, value) = match (own(left), own(right)) {
                (Some(c), _) if is_constant(right) => (c, right),
                (_, Some(c)) if is_constant(left) => (c, left),
                _ => return true,
            };
            match (op, known.get(&cell)) {
                (Comparison::Eq, Some(v)) => v == value,
                (Comparison::Ne, Some(v)) => v != value,
                (Comparison::Eq, None) => {
                    known.insert(cell, value.clone());
                    true
                }
                _ => true,
            }
        }
        Formula::Or(_) | Formula::Others { .. } => true,
    }
}

fn is_constant(t: &Term) -> bool {
    matches!(t, Term::Bool(_) | Term::Constructor(..))
}

#[cfg(test)]
mod tests {
    use super::super::{Branch, CellDecl, FenceKind, Quantified, TypeDecl, Update};
    use super::*;
    use crate::span::Span;

    const ME: ThreadTerm = ThreadTerm::Param(0);

    /// `L0 → L1` writes the first cell, `L1 → L0` the second.
    fn system(fence: Option<FenceKind>, cells: [ArrayIndex; 2]) -> ArraySystem {
        let cell = |name: &str, arity, ty, weak| CellDecl {
            name: name.into(),
            arity,
            ty,
            weak,
            constant: false,
            span: Span::NONE,
        };
        let set = |cell, index: Vec<UpdateIndex>, value| Update {
            cell,
            index,
            branches: vec![Branch {
                condition: Formula::TRUE,
                value: Value::Term(value),
            }],
            span: Span::NONE,
        };
        let at = |l| {
            Formula::Atom(Literal {
                left: Term::Read(Access {
                    cell: 0,
                    args: vec![ME],
                    reader: None,
                }),
                op: Comparison::Eq,
                right: Term::Constructor(0, l),
            })
        };
        let step = |from: u16, to: u16, fence, written: Option<ArrayIndex>| {
            let mut updates = vec![set(0, vec![UpdateIndex::At(ME)], Term::Constructor(0, to))];
            updates.extend(written.map(|c| set(c, Vec::new(), Term::Bool(true))));
            Transition {
                name: format!("t{from}"),
                params: vec!["p".into()],
                actor: Some(0),
                fence,
                guard: at(from),
                updates,
                span: Span::NONE,
            }
        };
        ArraySystem {
            types: vec![TypeDecl {
                name: "loc".into(),
                constructors: (0..4).map(|i| format!("L{i}")).collect(),
            }],
            cells: vec![
                cell("PC", 1, CellType::Declared(0), false),
                cell("X", 0, CellType::Bool, true),
                cell("Y", 0, CellType::Bool, true),
            ],
            threads: None,
            init: Quantified::default(),
            assumed: Vec::new(),
            bad: Vec::new(),
            transitions: vec![
                step(0, 1, None, Some(cells[0])),
                step(1, 2, fence, None),
                step(2, 3, None, Some(cells[1])),
                step(3, 0, Some(FenceKind::Full), None),
            ],
        }
    }

    #[test]
    fn fences_keep_the_order() {
        assert!(!system(None, [1, 2]).stores_in_order());
        assert!(system(Some(FenceKind::Full), [1, 2]).stores_in_order());
        assert!(system(Some(FenceKind::Store), [1, 2]).stores_in_order());
        assert!(system(None, [1, 1]).stores_in_order());
    }
}
