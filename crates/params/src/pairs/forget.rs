//! What need not be remembered: a register that is written before it is read next, as its thread's
//! location tells, and an identifier that its flag says is none.
//!
//! What is forgotten may have any value, so a rule that forgets too much costs proofs, never soundness.
//! Whether something is forgotten depends on the state alone, not on how it was reached: views of one
//! state forget the same.

use crate::compile::{Compiled, CompiledTransition, Conj, Kind, Lit, New};
use wattle_model::array::{Access, ThreadTerm, UpdateIndex};

/// Where the one cell (of a thread, or a scalar) has one of the values, the other is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forget {
    pub when: u16,
    pub values: u128,
    pub cell: u16,
}

pub fn rules(compiled: &Compiled<'_>) -> Vec<Forget> {
    let mut out = location(compiled).map_or(Vec::new(), |at| dead(compiled, at));
    out.extend(nones(compiled));
    out
}

/// Identifiers come with a flag of the same name that says they are none.
fn nones(compiled: &Compiled<'_>) -> Vec<Forget> {
    let cells = &compiled.system.cells;
    let mut out = Vec::new();
    for (i, c) in cells.iter().enumerate() {
        for suffix in ["_none", "_null"] {
            let flag = format!("{}{suffix}", c.name);
            let flag = cells
                .iter()
                .position(|f| f.name == flag && f.arity == c.arity);
            if let Some(f) = flag.filter(|f| compiled.kinds[*f] == Kind::Finite(2) && c.arity < 2) {
                out.push(Forget {
                    when: f as u16,
                    values: 2,
                    cell: i as u16,
                });
            }
        }
    }
    out
}

fn owner(t: &CompiledTransition) -> u8 {
    t.actor.unwrap_or(0)
}

/// The values of the owner's cell that a transition may start from.
fn from(t: &CompiledTransition, cell: u16) -> u128 {
    t.guard.iter().fold(0, |all, conj| {
        let at = conj.iter().fold(u128::MAX, |m, l| match l {
            Lit::In(a, mask) if a.cell == cell && a.args == [ThreadTerm::Param(owner(t))] => {
                m & mask
            }
            Lit::In(..)
            | Lit::IsThread(..)
            | Lit::Same(..)
            | Lit::Threads(..)
            | Lit::Number(..) => m,
        });
        all | at
    })
}

/// The cell of which every transition says where its thread is.
fn location(compiled: &Compiled<'_>) -> Option<u16> {
    let telling = |i: usize| {
        compiled
            .transitions
            .iter()
            .filter(|t| t.params > 0)
            .all(|t| from(t, i as u16) != u128::MAX)
    };
    (0..compiled.kinds.len())
        .filter(|i| {
            let c = &compiled.system.cells[*i];
            c.arity == 1 && !c.weak && matches!(compiled.kinds[*i], Kind::Finite(n) if n > 2)
        })
        .find(|i| telling(*i))
        .map(|i| i as u16)
}

/// Everything the transition reads, with these guards.
pub(super) fn visit_reads<'t>(
    t: &'t CompiledTransition,
    guards: &'t [Conj],
    visit: &mut dyn FnMut(&'t Access),
) {
    let mut lit = |l: &'t Lit| match l {
        Lit::In(a, _) | Lit::IsThread(a, _, _) => visit(a),
        Lit::Same(a, b, _) => {
            visit(a);
            visit(b);
        }
        Lit::Threads(..) => {}
        Lit::Number(parts, ..) => parts.iter().for_each(|(_, a)| visit(a)),
    };
    guards.iter().flatten().for_each(&mut lit);
    t.universals
        .iter()
        .flat_map(|u| &u.body)
        .flatten()
        .for_each(&mut lit);
    for u in &t.updates {
        u.keeps.iter().flatten().for_each(&mut lit);
        u.writes.iter().flat_map(|(c, _)| c).for_each(&mut lit);
    }
    for (_, new) in t.updates.iter().flat_map(|u| &u.writes) {
        match new {
            New::Cell(a) => visit(a),
            New::Sum(parts, _) => parts.iter().for_each(|(_, a)| visit(a)),
            New::Value(_) | New::Thread(_) | New::Any => {}
        }
    }
}

/// Registers by location, backward to a fixed point.
fn dead(compiled: &Compiled<'_>, at: u16) -> Vec<Forget> {
    let places = match compiled.kind(at) {
        Kind::Finite(n) => n as usize,
        Kind::Thread | Kind::Abstract | Kind::Int | Kind::Real => return Vec::new(),
    };
    let mut shown = vec![false; compiled.kinds.len()];
    for q in &compiled.system.bad {
        q.body
            .for_each_access(&mut |a| shown[usize::from(a.cell)] = true);
    }
    let mut out = Vec::new();
    for cell in 0..compiled.kinds.len() as u16 {
        let c = compiled.system.cell(cell);
        if cell == at || c.arity != 1 || c.weak || c.constant || shown[usize::from(cell)] {
            continue;
        }
        let mut alive = vec![false; places];
        // What the transition does with the cell of its own thread; others may not look at all.
        let mut private = true;
        let mut uses = Vec::new();
        for t in &compiled.transitions {
            let me = [ThreadTerm::Param(owner(t))];
            let mut read = false;
            visit_reads(t, &t.guard, &mut |a| {
                if a.cell == cell {
                    read = true;
                    private &= a.args == me && t.params > 0;
                }
            });
            let updates = t.updates.iter().filter(|u| u.cell == cell);
            let own = [UpdateIndex::At(me[0])];
            private &= updates.clone().all(|u| u.index == own);
            let written = updates.clone().any(|u| u.keeps.is_empty());
            let mut to = 0;
            let moves: Vec<_> = t.updates.iter().filter(|u| u.cell == at).collect();
            for u in &moves {
                private &= u.index == own && u.keeps.is_empty();
                for (_, new) in &u.writes {
                    match new {
                        New::Value(m) => to |= m,
                        New::Thread(_) | New::Cell(_) | New::Sum(..) | New::Any => to = u128::MAX,
                    }
                }
            }
            let from = from(t, at);
            uses.push((
                from,
                if moves.is_empty() { from } else { to },
                read,
                written,
            ));
        }
        if !private {
            continue;
        }
        loop {
            let before = alive.clone();
            for (from, to, read, written) in &uses {
                let later = (0..places).any(|l| to >> l & 1 != 0 && alive[l]);
                if *read || (later && !written) {
                    let starts = (0..places).filter(|l| from >> l & 1 != 0);
                    starts.for_each(|l| alive[l] = true);
                }
            }
            if alive == before {
                break;
            }
        }
        let values = (0..places)
            .filter(|l| !alive[*l])
            .fold(0, |m, l| m | 1 << l);
        if values != 0 {
            out.push(Forget {
                when: at,
                values,
                cell,
            });
        }
    }
    out
}
