//! Whether facts that somebody else wrote mean something. They are audited whatever they say; but what
//! they name must be there, and values be compared with their like.

use super::assume::Rules;
use super::facts::{CellAt, Facts, MOMENTS, Moments, NOBODY, THREADS, Value};
use wattle_logic::Rel;
use wattle_model::array::CellType;

impl Facts {
    pub fn is_sound(&self, rules: &Rules<'_>) -> bool {
        let system = rules.system;
        let (threads, moments) = (self.threads.len(), self.reads.len());
        if threads + rules.more() > THREADS || moments > MOMENTS / 2 || self.pending.len() > 100 {
            return false;
        }
        let thread = |t: u8| usize::from(t) < threads;
        let place = |p: &CellAt| {
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
        self.for_each_value(rules, &mut |v| all.push(v));
        if !read.all(|fine| fine) || !stored.all(|fine| fine) || !all.iter().all(value) {
            return false;
        }
        let ty = |v: &Value| system.cell(self.cell_of(*v)).ty;
        let number = |v: &Value| matches!(ty(v), CellType::Int | CellType::Real);
        let among = self.among.iter().all(|(v, set)| {
            let values = self.all_values(system, *v);
            values.is_some_and(|all| *set != 0 && set & !all == 0)
        });
        let mut known = self.known.iter().map(|f| {
            let values: Vec<Value> = f.vars().iter().filter_map(|v| rules.value_of(*v)).collect();
            let numbers = values.iter().all(number);
            let equality = f.as_atom().is_some_and(|a| {
                let (term, rel) = (a.term(), a.rel());
                let two = matches!(term.coeffs(), [(_, a), (_, b)] if *a == -b);
                two && term.constant_part().is_zero() && matches!(rel, Rel::Eq | Rel::Ne)
            });
            let first = values.first().map(ty);
            first.is_some() && values.iter().all(|v| Some(ty(v)) == first) && (numbers || equality)
        });
        let lists = [&self.after_reads_of, &self.after_stores_of];
        let (to, elsewhere) = (&self.after_stores_to, &self.after_stores_elsewhere);
        let sets = lists.into_iter().flatten().chain(to.values());
        let sets = sets.chain(elsewhere.values()).chain([&self.last]);
        let mut sets = sets.chain(self.reads.iter().map(|r| &r.before));
        among
            && known.all(|fine| fine)
            && self.later.len() == threads
            && lists.iter().all(|list| list.len() == threads)
            && to.keys().all(place)
            && elsewhere
                .keys()
                .all(|c| usize::from(*c) < system.cells.len())
            && sets.all(|set: &Moments| set >> moments == 0)
    }
}
