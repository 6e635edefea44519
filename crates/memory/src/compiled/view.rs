//! What someone looking at states can see: the part of a state that reductions must not blur.

use wattle_model::instance::{Fact, Question};
use wattle_model::{CellId, Expr, Instance, LocationId, RegisterId, ThreadId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Only final states (all threads ended, buffers empty) are looked at.
    pub only_final: bool,
    /// Faults are looked for. Otherwise a step that is one is never taken: whoever looks for a final
    /// state has no use for it.
    pub faults: bool,
    pub cells: Vec<bool>,
    pub registers: Vec<Vec<bool>>,
    /// Per thread, the sets of locations (sorted) someone asks about.
    pub locations: Vec<Vec<Vec<LocationId>>>,
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

impl View {
    /// Nobody looks; faults are found all the same.
    pub fn nothing(instance: &Instance) -> Self {
        let threads = &instance.threads;
        View {
            only_final: true,
            faults: true,
            cells: vec![false; instance.cells.len()],
            registers: threads
                .iter()
                .map(|t| vec![false; t.registers.len()])
                .collect(),
            locations: vec![Vec::new(); threads.len()],
            target: None,
            by_name: false,
        }
    }

    pub fn of_question(instance: &Instance, question: Option<&Question>) -> Self {
        let mut view = View::nothing(instance);
        if let Some(q) = question {
            view.only_final = q.only_final;
            view.faults = q.minds_faults();
            view.see(&q.target);
            view.target = Some(q.target.clone());
        }
        view
    }

    /// Conditions that may be looked at any time.
    pub fn of_conditions(instance: &Instance, conditions: &[&Expr<Fact>]) -> Self {
        let mut view = View {
            only_final: false,
            ..View::nothing(instance)
        };
        for e in conditions {
            view.see(e);
        }
        view
    }

    pub fn of_final(instance: &Instance, observed: &[Observed]) -> Self {
        let mut view = View::nothing(instance);
        view.by_name = true;
        for o in observed {
            match *o {
                Observed::Cell(c) => view.cells[c.index()] = true,
                Observed::Register(t, r) => view.registers[t.index()][r.index()] = true,
            }
        }
        view
    }

    fn see(&mut self, e: &Expr<Fact>) {
        let mut inner = Vec::new();
        e.for_each_atom(&mut |fact| match fact {
            Fact::Cell(c) => self.cells[c.index()] = true,
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
            Fact::At(t, at) => {
                let sets = &mut self.locations[t.index()];
                if !sets.contains(at) {
                    sets.push(at.clone());
                }
            }
        });
        for e in inner {
            self.see(e);
        }
    }
}
