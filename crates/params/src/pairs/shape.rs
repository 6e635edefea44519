//! What states of a system look like, and what in them may be forgotten.

use super::forget::{Forget, rules, visit_reads};
use super::state::{NOBODY, State, UNKNOWN};
use super::witness::Witness;
use crate::compile::{Compiled, Kind, Lit, New};
use wattle_memory::MemoryModel;
use wattle_model::array::{Comparison, ThreadTerm, UpdateIndex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// This many values.
    Finite(u32),
    Thread,
    Int,
    /// Reals, and values that can only be compared.
    Other,
}

pub struct Cell {
    pub arity: usize,
    pub sort: Sort,
    /// Stores go through buffers.
    pub weak: bool,
    /// Its number among those of its arity.
    pub index: usize,
}

pub struct Shape {
    pub cells: Vec<Cell>,
    /// Constants that numbers are compared with.
    pub anchors: Vec<i64>,
    /// How many scalars, elements for each thread, elements for each two.
    pub scalars: usize,
    pub singles: usize,
    pub doubles: usize,
    /// Threads are compared by order.
    pub ordered: bool,
    pub nobody: bool,
    /// There are buffers.
    pub buffered: bool,
    pub pso: bool,
    pub forget: Vec<Forget>,
    /// Cells of which the elements of ghosts are in a view too.
    pub kept: Vec<u16>,
    /// The last two scalars are the witnesses.
    pub witness: Option<Witness>,
    sorts: [Vec<Sort>; 4],
}

impl Shape {
    /// `None` if views say nothing about such systems.
    pub fn new(compiled: &Compiled<'_>, named: bool, witness: Option<Witness>) -> Option<Shape> {
        if compiled.constants > 0 || compiled.system.cells.len() > 250 || compiled.is_vague() {
            return None;
        }
        let mut counts = [0; 3];
        let buffered = compiled.model != MemoryModel::Sc;
        let mut cells = Vec::new();
        for (c, kind) in compiled.system.cells.iter().zip(&compiled.kinds) {
            let arity = usize::from(c.arity);
            cells.push(Cell {
                arity,
                sort: match kind {
                    Kind::Finite(n) => Sort::Finite(*n),
                    Kind::Thread => Sort::Thread,
                    Kind::Int => Sort::Int,
                    Kind::Real | Kind::Abstract => Sort::Other,
                },
                weak: buffered && c.weak,
                index: *counts.get(arity)?,
            });
            counts[arity] += 1;
        }
        for _ in witness.iter().flat_map(|_| 0..2) {
            cells.push(Cell {
                arity: 0,
                sort: Sort::Thread,
                weak: false,
                index: counts[0],
            });
            counts[0] += 1;
        }
        for t in &compiled.transitions {
            let everywhere = |u: &crate::compile::CompiledUpdate| {
                cells[usize::from(u.cell)].weak
                    && u.index.iter().any(|i| matches!(i, UpdateIndex::Each(_)))
            };
            if !t.atomic && t.updates.iter().any(everywhere) {
                return None;
            }
        }
        for t in &compiled.system.transitions {
            let weak = compiled.system.reads_weak(t) || compiled.system.writes_weak(t);
            if buffered && t.actor.is_none() && (weak || t.fence.is_some()) {
                return None;
            }
        }
        let mut shape = Shape {
            cells,
            anchors: Vec::new(),
            scalars: counts[0],
            singles: counts[1],
            doubles: counts[2],
            ordered: false,
            nobody: compiled.nobody,
            buffered,
            pso: compiled.model == MemoryModel::Pso,
            forget: rules(compiled),
            kept: Vec::new(),
            witness,
            sorts: Default::default(),
        };
        shape.look(compiled)?;
        if named {
            shape.kept = shape.pointed_at(compiled);
        }
        if let Some(w) = witness {
            let pointed_at = shape.pointed_at(compiled);
            (shape.ordered && pointed_at.contains(&w.cell)).then_some(())?;
        }
        for n in 1..4 {
            shape.sorts[n] = shape.sorts_of(n);
        }
        Some(shape)
    }

    /// Cells with few values that somebody reads or writes for another thread.
    fn pointed_at(&self, compiled: &Compiled<'_>) -> Vec<u16> {
        let mut foreign = vec![false; self.cells.len()];
        let mut everywhere = vec![false; self.cells.len()];
        for t in &compiled.transitions {
            let me = ThreadTerm::Param(t.actor.unwrap_or(0));
            visit_reads(t, &t.guard, &mut |a| {
                foreign[usize::from(a.cell)] |= a.args.iter().any(|x| *x != me);
            });
            for u in &t.updates {
                let at = usize::from(u.cell);
                foreign[at] |= u.index.iter().any(|i| *i != UpdateIndex::At(me));
                everywhere[at] |= u.index.iter().any(|i| matches!(i, UpdateIndex::Each(_)));
            }
        }
        let kept = |c: &u16| {
            let (i, cell) = (usize::from(*c), &self.cells[usize::from(*c)]);
            let few = matches!(cell.sort, Sort::Finite(_)) && cell.arity == 1;
            few && foreign[i] && !everywhere[i] && self.forget.iter().all(|f| f.cell != *c)
        };
        (0..self.cells.len() as u16).filter(kept).collect()
    }

    /// Constants and comparisons by order.
    fn look(&mut self, compiled: &Compiled<'_>) -> Option<()> {
        let (mut anchors, mut ordered) = (Vec::new(), false);
        let mut lit = |l: &Lit| match l {
            Lit::Threads(_, _, op) => ordered |= matches!(op, Comparison::Lt | Comparison::Le),
            Lit::Number(parts, c, _, _) if parts.len() == 1 => {
                anchors.extend(c.checked_neg());
                anchors.push(*c);
            }
            Lit::In(..) | Lit::IsThread(..) | Lit::Same(..) | Lit::Number(..) => {}
        };
        compiled.init.iter().flatten().for_each(&mut lit);
        for q in &compiled.system.bad {
            compiled
                .dnf(&q.body, q.span)
                .ok()?
                .iter()
                .flatten()
                .for_each(&mut lit);
        }
        for t in &compiled.transitions {
            t.guard.iter().flatten().for_each(&mut lit);
            t.universals
                .iter()
                .flat_map(|u| &u.body)
                .flatten()
                .for_each(&mut lit);
            for u in &t.updates {
                u.keeps.iter().flatten().for_each(&mut lit);
                u.writes.iter().flat_map(|(c, _)| c).for_each(&mut lit);
            }
        }
        for t in &compiled.transitions {
            for (_, new) in t.updates.iter().flat_map(|u| &u.writes) {
                if let New::Sum(parts, c) = new
                    && parts.is_empty()
                {
                    anchors.push(*c);
                }
            }
        }
        anchors.sort_unstable();
        anchors.dedup();
        self.ordered = ordered;
        self.anchors = anchors;
        (self.anchors.len() <= 40).then_some(())
    }

    fn sorts_of(&self, solids: usize) -> Vec<Sort> {
        let of = |arity: usize| {
            let cells = self.cells.iter().filter(move |c| c.arity == arity);
            cells.map(|c| c.sort)
        };
        let mut out = vec![Sort::Thread; solids];
        out.extend(self.anchors.iter().map(|_| Sort::Int));
        out.extend(of(0));
        (0..solids).for_each(|_| out.extend(of(1)));
        for s in of(2) {
            out.extend(std::iter::repeat_n(s, solids * solids));
        }
        out
    }

    pub fn sorts(&self, solids: usize) -> &[Sort] {
        &self.sorts[solids]
    }

    /// Where an element of solid threads is kept.
    pub fn position(&self, solids: usize, cell: u16, args: &[usize]) -> usize {
        let c = &self.cells[usize::from(cell)];
        let scalars = solids + self.anchors.len();
        let own = scalars + self.scalars;
        match args {
            [] => scalars + c.index,
            [t] => own + t * self.singles + c.index,
            _ => own + solids * self.singles + (c.index * solids + args[0]) * solids + args[1],
        }
    }

    /// Whether views may have the cell of other threads than the two.
    pub fn watched(&self, cell: u16) -> bool {
        self.kept.contains(&cell) || self.witness.is_some_and(|w| w.cell == cell)
    }

    /// The witnesses, and where the first is kept; the last is next to it.
    pub fn witness_at(&self, solids: usize) -> Option<(Witness, usize)> {
        let at = solids + self.anchors.len() + self.scalars;
        self.witness.map(|w| (w, at - 2))
    }

    /// Where the constant stands.
    pub fn anchor(&self, state: &State, constant: i64) -> Option<u32> {
        let i = self.anchors.binary_search(&constant).ok()?;
        Some(state.vals[state.solids() + i])
    }

    /// The constant that stands there.
    pub fn constant(&self, state: &State, value: u32) -> Option<i64> {
        let n = state.solids();
        let at = &state.vals[n..n + self.anchors.len()];
        Some(self.anchors[at.iter().position(|v| *v == value)?])
    }

    /// Applies the rules, in order; a cell that is forgotten counts as one that has the values. Says what
    /// is forgotten, or which value must be known first.
    pub fn forget(&self, state: &mut State) -> Result<Vec<bool>, usize> {
        let n = state.solids();
        let mut gone = vec![false; state.vals.len()];
        for rule in &self.forget {
            let arity = self.cells[usize::from(rule.when)].arity;
            for t in 0..if arity == 0 { 1 } else { n } {
                let args: &[usize] = if arity == 0 { &[] } else { &[t] };
                let when = self.position(n, rule.when, args);
                let place = self.position(n, rule.cell, args);
                match state.vals[when] {
                    UNKNOWN if !gone[when] => return Err(when),
                    v if gone[when] || v < NOBODY && rule.values >> v & 1 != 0 => {
                        gone[place] = true;
                        state.vals[place] = UNKNOWN;
                    }
                    _ => {}
                }
            }
        }
        Ok(gone)
    }
}
