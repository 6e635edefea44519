//! Which cubes may describe some facts, and with which threads and moments. What is found here is looked at
//! in [`inside`](super::inside).

use super::assume::Rules;
use super::facts::{Facts, Set, Value};
use super::inside::{Choice, Chosen};
use std::collections::BTreeMap;
use wattle_logic::Formula;

/// A cube to look up, with what it asks for first.
pub struct Known {
    pub facts: Facts,
    needs: Vec<(u16, Set)>,
}

impl Known {
    pub fn new(rules: &Rules<'_>, facts: Facts) -> Known {
        let needs = facts.among.iter().filter_map(|(v, s)| match v {
            Value::Cell(p) if !facts.holds_thread(rules.system, *v) => Some((p.cell, *s)),
            Value::Cell(_) | Value::Read(..) | Value::Pending(_) | Value::Any(..) => None,
        });
        let needs = needs.collect();
        Known { facts, needs }
    }
}

/// Visits every choice whose order fits, until the visitor has seen enough.
pub fn each(
    rules: &Rules<'_>,
    known: &[Known],
    facts: &Facts,
    perhaps: bool,
    visit: &mut dyn FnMut(usize, &Choice) -> bool,
) {
    let mut sets: BTreeMap<u16, Vec<Set>> = BTreeMap::new();
    for (v, s) in &facts.among {
        if let Value::Cell(p) = v {
            sets.entry(p.cell).or_default().push(*s);
        }
    }
    // Cells that the facts do not speak of at all may hold anything.
    let offers = |(cell, wanted): &(u16, Set)| match sets.get(cell) {
        None => perhaps,
        Some(list) => list.iter().any(|s| set_fits(*wanted, Some(*s), perhaps)),
    };
    for (i, k) in known.iter().enumerate() {
        if !k.needs.iter().all(offers) {
            continue;
        }
        let mut search = Search {
            rules,
            cube: &k.facts,
            facts,
            choice: Choice::default(),
            perhaps,
            steps: 20_000,
            enough: false,
        };
        search.each(&mut |choice| visit(i, choice));
        if search.enough {
            return;
        }
    }
}

struct Search<'s, 'a> {
    rules: &'s Rules<'a>,
    cube: &'s Facts,
    facts: &'s Facts,
    choice: Choice,
    /// Values may be undecided.
    perhaps: bool,
    /// A cube that takes longer to compare does not count.
    steps: u32,
    /// The visitor has seen enough.
    enough: bool,
}

impl Search<'_, '_> {
    fn chosen(&self) -> Chosen<'_, '_> {
        Chosen {
            rules: self.rules,
            cube: self.cube,
            facts: self.facts,
            choice: &self.choice,
        }
    }

    fn each(&mut self, visit: &mut dyn FnMut(&Choice) -> bool) {
        if self.steps == 0 || self.enough {
            return;
        }
        self.steps -= 1;
        let t = self.choice.threads.len();
        if t == self.cube.threads.len() {
            if self.chosen().pending_fits() {
                self.moment(visit);
            }
            return;
        }
        for u in 0..self.facts.threads.len() as u8 {
            self.choice.threads.push(u);
            if self.chosen().thread_fits(t) && self.cells_fit(t) {
                self.each(visit);
            }
            self.choice.threads.pop();
        }
    }

    /// What can be said of cells as soon as thread `t` is chosen.
    fn cells_fit(&self, t: usize) -> bool {
        self.cube.among.iter().all(|(v, s)| {
            let Value::Cell(p) = v else { return true };
            let mine = p.args().any(|a| usize::from(a) == t);
            let ready = p.args().all(|a| usize::from(a) <= t);
            if !mine || !ready || self.cube.holds_thread(self.rules.system, *v) {
                return true;
            }
            let there = Value::Cell(p.renamed(&self.choice.threads));
            let known = self.facts.among.get(&there).copied();
            set_fits(*s, known, self.perhaps)
        })
    }

    fn moment(&mut self, visit: &mut dyn FnMut(&Choice) -> bool) {
        if self.steps == 0 || self.enough {
            return;
        }
        self.steps -= 1;
        let e = self.choice.moments.len();
        let Some(open) = self.cube.reads.get(e) else {
            if self.values_fit() {
                self.enough = !visit(&self.choice);
            }
            return;
        };
        for (f, there) in self.facts.reads.iter().enumerate() {
            let chosen = self.chosen();
            let parts = open.parts.iter().map(|p| {
                let place = there.parts.iter().position(|q| chosen.part_fits(p, q));
                place.map(|i| i as u8)
            });
            let parts: Option<Vec<u8>> = parts.collect();
            let Some(parts) = parts else { continue };
            self.choice.moments.push((f as u8, parts));
            self.moment(visit);
            self.choice.moments.pop();
        }
    }

    /// Values are among what is wanted, or may be; what is only compared may follow from numbers.
    fn values_fit(&self) -> bool {
        let (chosen, facts) = (self.chosen(), self.facts);
        let sets = self.cube.among.iter().all(|(v, s)| {
            let known = facts.among.get(&self.choice.value(*v)).copied();
            set_fits(chosen.wanted(*v, *s), known, self.perhaps)
        });
        let number = |v: &Value| facts.all_values(self.rules.system, *v).is_none();
        let follows = |f: &Formula| {
            let values = f.vars().into_iter().filter_map(|v| self.rules.value_of(v));
            let values: Vec<Value> = values.collect();
            let sets = values.iter().map(|v| facts.among.get(v));
            *f == Formula::True
                || facts.known.contains(f)
                || values.iter().any(number)
                || sets.into_iter().all(|s| s.is_some())
        };
        sets && (self.perhaps || chosen.known().iter().all(follows))
    }
}

/// Whether a value is among what is wanted, or may be.
fn set_fits(wanted: Set, known: Option<Set>, perhaps: bool) -> bool {
    match known {
        Some(k) if k & !wanted == 0 => true,
        Some(k) if k & wanted == 0 => false,
        _ => perhaps,
    }
}
