//! Whether facts that somebody else wrote mean something. They are audited whatever they say; but what
//! they name must be there, and values be compared with their like.

use super::facts::{Facts, MOMENTS, Moments, NOBODY, Place, Value};
use wattle_model::array::{ArraySystem, CellType};

/// Most threads a cube of a certificate may have: steps and constants add more.
const MOST: usize = 12;

impl Facts {
    pub fn is_sound(&self, system: &ArraySystem) -> bool {
        let (threads, moments) = (self.threads.len(), self.reads.len());
        if threads > MOST || moments > MOMENTS / 2 || self.pending.len() > 100 {
            return false;
        }
        let thread = |t: u8| usize::from(t) < threads;
        let place = |p: &Place| {
            let cell = system.cells.get(usize::from(p.cell));
            cell.is_some_and(|c| p.args().count() == usize::from(c.arity)) && p.args().all(thread)
        };
        let value = |v: &Value| match v {
            Value::Cell(p) => place(p),
            Value::Read(e, p) => {
                let open = self.reads.get(usize::from(*e));
                open.is_some_and(|r| usize::from(*p) < r.parts.len())
            }
            Value::Pending(k) => usize::from(*k) < self.pending.len(),
            Value::Any(..) => false,
        };
        let parts = self.reads.iter().flat_map(|r| &r.parts);
        let mut read = parts.map(|p| (p.reader == NOBODY || thread(p.reader)) && place(&p.place));
        let mut stored = self
            .pending
            .iter()
            .map(|p| thread(p.thread) && place(&p.place));
        let mut all = Vec::new();
        self.for_each_value(&mut |v| all.push(v));
        if !read.all(|fine| fine) || !stored.all(|fine| fine) || !all.iter().all(value) {
            return false;
        }
        let ty = |v: &Value| system.cell(self.cell_of(*v)).ty;
        let number = |v: &Value| matches!(ty(v), CellType::Int | CellType::Real);
        let among = self.among.iter().all(|(v, set)| {
            let values = self.all_values(system, *v);
            values.is_some_and(|all| *set != 0 && set & !all == 0)
        });
        let mut same = self.same.iter();
        let same = same.all(|(a, b, _)| ty(a) == ty(b) && !number(a));
        let mut terms = self.numbers.iter().flat_map(|n| &n.terms);
        let lists = [&self.after_reads_of, &self.after_stores_of];
        let (to, elsewhere) = (&self.after_stores_to, &self.after_stores_elsewhere);
        let sets = lists.into_iter().flatten().chain(to.values());
        let sets = sets.chain(elsewhere.values()).chain([&self.last]);
        let mut sets = sets.chain(self.reads.iter().map(|r| &r.before));
        among
            && same
            && terms.all(|(v, _)| number(v))
            && self.later.len() == threads
            && lists.iter().all(|list| list.len() == threads)
            && to.keys().all(place)
            && elsewhere
                .keys()
                .all(|c| usize::from(*c) < system.cells.len())
            && sets.all(|set: &Moments| set >> moments == 0)
    }
}
