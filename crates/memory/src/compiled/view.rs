//! What someone looking at states can see: the part of a state that reductions must not blur.

use wattle_model::instance::{Fact, Question};
use wattle_model::{CellId, Expr, Instance, LocationId, Op1, Op2, RegisterId, ThreadId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Only final states (all threads ended, buffers empty) are looked at.
    pub only_final: bool,
    /// Faults are looked for. Otherwise a step that is one is never taken: whoever looks for a final
    /// state has no use for it.
    pub faults: bool,
    pub cells: Vec<bool>,
    pub registers: Vec<Vec<bool>>,
    /// Per thread, the sets of locations (sorted) someone asks about.
    pub locations: Vec<Vec<Vec<LocationId>>>,
    /// Per thread and set: being there only helps. Where the target is true of a state, it is true of
    /// one that differs in the thread having come to the set.
    pub helps: Vec<Vec<bool>>,
    /// What is asked of states.
    pub target: Option<Expr<Fact>>,
    /// Cells and registers are read off by name, so that it matters which thread is which.
    pub by_name: bool,
}

/// Something to be read off a final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Observed {
    Cell(CellId),
    Register(ThreadId, RegisterId),
}

impl Watched {
    /// Nobody looks; faults are found all the same.
    pub fn nothing(instance: &Instance) -> Self {
        let threads = &instance.threads;
        Watched {
            only_final: true,
            faults: true,
            cells: vec![false; instance.cells.len()],
            registers: threads
                .iter()
                .map(|t| vec![false; t.registers.len()])
                .collect(),
            locations: vec![Vec::new(); threads.len()],
            helps: vec![Vec::new(); threads.len()],
            target: None,
            by_name: false,
        }
    }

    pub fn of_question(instance: &Instance, question: Option<&Question>) -> Self {
        let mut view = Watched::nothing(instance);
        if let Some(q) = question {
            view.only_final = q.only_final;
            view.faults = q.minds_faults();
            view.see(&q.target);
            view.help(&q.target);
            view.target = Some(q.target.clone());
        }
        view
    }

    /// Conditions that may be looked at any time.
    pub fn of_conditions(instance: &Instance, conditions: &[&Expr<Fact>]) -> Self {
        let mut view = Watched {
            only_final: false,
            ..Watched::nothing(instance)
        };
        for e in conditions {
            view.see(e);
        }
        view
    }

    pub fn of_final(instance: &Instance, observed: &[Observed]) -> Self {
        let mut view = Watched::nothing(instance);
        view.by_name = true;
        for o in observed {
            match *o {
                Observed::Cell(c) => view.cells[c.index()] = true,
                Observed::Register(t, r) => view.registers[t.index()][r.index()] = true,
            }
        }
        view
    }

    /// Whether a thread is at one of these locations (sorted) can be seen.
    pub fn see_place(&mut self, t: ThreadId, at: Vec<LocationId>) {
        let sets = &mut self.locations[t.index()];
        if !sets.contains(&at) {
            sets.push(at);
            self.helps[t.index()].push(false);
        }
    }

    fn see(&mut self, e: &Expr<Fact>) {
        let mut inner = Vec::new();
        e.for_each_atom(&mut |fact| match fact {
            Fact::Cell(c) | Fact::Seen(_, c) => self.cells[c.index()] = true,
            Fact::CellAt {
                base,
                length,
                index,
            } => {
                let first = base.index();
                self.cells[first..first + *length as usize].fill(true);
                inner.push(&**index);
            }
            Fact::Register(t, r) => self.registers[t.index()][r.index()] = true,
            Fact::At(t, at) => self.see_place(*t, at.clone()),
        });
        for e in inner {
            self.see(e);
        }
    }

    /// Finds the sets that only help. A target that may have no value is left alone: it could have one
    /// after the thread has moved.
    fn help(&mut self, target: &Expr<Fact>) {
        if !target.is_total() {
            return;
        }
        self.helps.iter_mut().for_each(|sets| sets.fill(true));
        hinders(target, Some(true), &mut |t, at| {
            let sets = &self.locations[t.index()];
            if let Some(i) = sets.iter().position(|set| set == at) {
                self.helps[t.index()][i] = false;
            }
        });
    }
}

/// Tells of sets of locations such that coming there may make an expression false, which is wanted to be
/// true or false, or whose value is used otherwise.
fn hinders(e: &Expr<Fact>, wanted: Option<bool>, tell: &mut dyn FnMut(ThreadId, &Vec<LocationId>)) {
    match e {
        Expr::Atom(Fact::At(t, at)) if wanted != Some(true) => tell(*t, at),
        Expr::Const(_)
        | Expr::Atom(
            Fact::At(..)
            | Fact::Cell(_)
            | Fact::Seen(..)
            | Fact::CellAt { .. }
            | Fact::Register(..),
        ) => {}
        Expr::Unary(Op1::Not, e) => hinders(e, wanted.map(|w| !w), tell),
        Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, e) => hinders(e, None, tell),
        Expr::Binary(Op2::And | Op2::Or, a, b) => {
            hinders(a, wanted, tell);
            hinders(b, wanted, tell);
        }
        Expr::Binary(_, a, b) => {
            hinders(a, None, tell);
            hinders(b, None, tell);
        }
        Expr::Ite(c, a, b) => {
            hinders(c, None, tell);
            hinders(a, wanted, tell);
            hinders(b, wanted, tell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_that_only_help() {
        let at = |l: u32| Expr::Atom(Fact::At(ThreadId(0), vec![LocationId(l)]));
        let (and, or) = (Op2::And, Op2::Or);
        let told = |e: &Expr<Fact>| {
            let mut told = Vec::new();
            hinders(e, Some(true), &mut |_, at| told.push(at[0].0));
            told
        };
        let both = Expr::binary(and, at(1), Expr::binary(or, at(2), at(3)));
        assert_eq!(told(&both), Vec::<u32>::new());
        let not = |e| Expr::unary(Op1::Not, e);
        assert_eq!(told(&not(both.clone())), vec![1, 2, 3]);
        assert_eq!(told(&not(not(both))), Vec::<u32>::new());
        let mixed = Expr::binary(and, at(1), not(Expr::binary(Op2::Eq, at(1), at(2))));
        assert_eq!(told(&mixed), vec![1, 2]);
        let either = Expr::Ite(Box::new(at(1)), Box::new(at(2)), Box::new(not(at(3))));
        assert_eq!(told(&either), vec![1, 3]);
    }
}
