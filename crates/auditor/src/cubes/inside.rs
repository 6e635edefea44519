//! Whether what some facts describe is described by the certificate.
//!
//! A cube describes it if its threads and moments can be chosen among those of the facts so that
//! everything the cube says is known. Most often one cube does, seen by comparing; else the solver is
//! asked whether the values can be such that none of the fitting cubes does.

use super::assume::Rules;
use super::facts::{
    Facts, Moments, NOBODY, Number, OTHER, Pending, Place, Relation, Set, Value, bits,
};
use super::query::Query;
use crate::AuditError;
use std::collections::BTreeMap;
use wattle_memory::MemoryModel;

/// A cube to look up, with what it asks for first.
pub struct Known {
    pub facts: Facts,
    needs: Vec<(u16, Set)>,
}

/// How a cube's threads and moments are chosen.
#[derive(Clone, Debug)]
pub struct Choice {
    threads: Vec<u8>,
    /// For each moment one of the facts', and for its parts theirs.
    moments: Vec<(u8, Vec<u8>)>,
}

/// What is known about the values under a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Yes,
    /// All but the numbers.
    Numbers,
    Perhaps,
    No,
}

/// More choices than this and the solver is not asked.
const CHOICES: usize = 4000;

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

/// Whether the cubes describe everything the facts describe.
pub fn inside(
    rules: &Rules<'_>,
    known: &[Known],
    facts: &Facts,
    query: &mut Query<'_>,
) -> Result<bool, AuditError> {
    let mut sets: BTreeMap<u16, Vec<Set>> = BTreeMap::new();
    for (v, s) in &facts.among {
        if let Value::Cell(p) = v {
            sets.entry(p.cell).or_default().push(*s);
        }
    }
    let mut numeric = Vec::new();
    let offers = |need: &(u16, Set), fits: &dyn Fn(Set) -> bool| {
        sets.get(&need.0)
            .is_some_and(|list| list.iter().any(|s| fits(*s)))
    };
    for (i, k) in known.iter().enumerate() {
        if !k.needs.iter().all(|n| offers(n, &|s| s & !n.1 == 0)) {
            continue;
        }
        let mut found = false;
        Search::new(rules, &k.facts, facts).each(&mut |choice, fit| {
            if fit == Fit::Numbers {
                numeric.push((i, choice.clone()));
            }
            found = fit == Fit::Yes;
            !found && numeric.len() < CHOICES
        });
        if found {
            return Ok(true);
        }
    }
    for (i, choice) in &numeric {
        let numbers: Vec<Number> = choice.numbers(&known[*i].facts);
        if query.numbers_follow(rules, facts, &numbers)? {
            return Ok(true);
        }
    }
    let mut choices = Vec::new();
    for (i, k) in known.iter().enumerate() {
        if !k.needs.iter().all(|n| offers_some(&sets, n)) {
            continue;
        }
        Search::new(rules, &k.facts, facts)
            .perhaps()
            .each(&mut |choice, fit| {
                if fit != Fit::No {
                    choices.push((i, choice.clone()));
                }
                choices.len() < CHOICES
            });
    }
    let cubes: Vec<(&Facts, &Choice)> =
        choices.iter().map(|(i, c)| (&known[*i].facts, c)).collect();
    query.covered(rules, facts, &cubes)
}

/// Cells that the facts do not speak of at all may hold anything.
fn offers_some(sets: &BTreeMap<u16, Vec<Set>>, need: &(u16, Set)) -> bool {
    sets.get(&need.0)
        .is_none_or(|list| list.iter().any(|s| s & need.1 != 0))
}

impl Choice {
    /// A cube's value in terms of the facts.
    pub fn value(&self, v: Value) -> Value {
        match v {
            Value::Cell(p) => Value::Cell(p.renamed(&self.threads)),
            Value::Read(e, i) => {
                let (moment, parts) = &self.moments[usize::from(e)];
                Value::Read(*moment, parts[usize::from(i)])
            }
            v @ (Value::Pending(_) | Value::Any(..)) => v,
        }
    }

    /// A cube's set of threads in terms of the facts: threads not chosen are "other" ones.
    pub fn threads_of(&self, set: Set, facts: &Facts) -> Set {
        let mut out = set & OTHER;
        for u in 0..facts.threads.len() {
            let chosen = self.threads.iter().position(|t| usize::from(*t) == u);
            let allowed = chosen.map_or(set & OTHER != 0, |t| set & 1 << t != 0);
            out |= Set::from(allowed) << u;
        }
        out
    }

    pub fn numbers(&self, cube: &Facts) -> Vec<Number> {
        let renamed = cube.numbers.iter().map(|n| {
            let mut terms: Vec<_> = n.terms.iter().map(|(v, c)| (self.value(*v), *c)).collect();
            terms.sort();
            Number { terms, ..n.clone() }
        });
        renamed.collect()
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
}

impl<'s, 'a> Search<'s, 'a> {
    fn new(rules: &'s Rules<'a>, cube: &'s Facts, facts: &'s Facts) -> Self {
        let choice = Choice {
            threads: Vec::new(),
            moments: Vec::new(),
        };
        Search {
            rules,
            cube,
            facts,
            choice,
            perhaps: false,
            steps: 20_000,
        }
    }

    fn perhaps(mut self) -> Self {
        self.perhaps = true;
        self
    }

    /// Visits every choice whose order fits, until the visitor has seen enough.
    fn each(&mut self, visit: &mut dyn FnMut(&Choice, Fit) -> bool) -> bool {
        if self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        let t = self.choice.threads.len();
        if t == self.cube.threads.len() {
            return !self.pending_fits() || self.moment(visit);
        }
        for u in 0..self.facts.threads.len() as u8 {
            let constant = self.cube.threads[t] == self.facts.threads[usize::from(u)];
            if self.choice.threads.contains(&u) || !constant {
                continue;
            }
            self.choice.threads.push(u);
            let go_on = !self.thread_fits(t) || self.each(visit);
            self.choice.threads.pop();
            if !go_on {
                return false;
            }
        }
        true
    }

    /// What can be said as soon as thread `t` is chosen.
    fn thread_fits(&self, t: usize) -> bool {
        let chosen = |i: usize| usize::from(self.choice.threads[i]);
        let u = chosen(t);
        let ordered = (0..t).all(|i| {
            let holds = |a: usize, b: usize| self.facts.later[a] & 1 << b != 0;
            (self.cube.later[t] & 1 << i == 0 || holds(u, chosen(i)))
                && (self.cube.later[i] & 1 << t == 0 || holds(chosen(i), u))
        });
        ordered
            && self.cube.among.iter().all(|(v, s)| {
                let Value::Cell(p) = v else { return true };
                let mine = p.args().any(|a| usize::from(a) == t);
                let ready = p.args().all(|a| usize::from(a) <= t);
                if !mine || !ready || self.cube.holds_thread(self.rules.system, *v) {
                    return true;
                }
                let there = Value::Cell(p.renamed(&self.choice.threads));
                self.set_fits(*s, self.facts.among.get(&there).copied()) != Fit::No
            })
    }

    fn set_fits(&self, wanted: Set, known: Option<Set>) -> Fit {
        match known {
            Some(k) if k & !wanted == 0 => Fit::Yes,
            Some(k) if k & wanted == 0 => Fit::No,
            _ if self.perhaps => Fit::Perhaps,
            _ => Fit::No,
        }
    }

    /// Stores yet to be met must be the same; a cube that speaks of none leaves them open.
    fn pending_fits(&self) -> bool {
        let (wanted, known) = (&self.cube.pending, &self.facts.pending);
        let threads = &self.choice.threads;
        let same = |(x, y): (&Pending, &Pending)| {
            threads[usize::from(x.thread)] == y.thread
                && x.place.renamed(threads) == y.place
                && (y.newest || !x.newest)
        };
        wanted.is_empty() || wanted.len() == known.len() && wanted.iter().zip(known).all(same)
    }

    fn moment(&mut self, visit: &mut dyn FnMut(&Choice, Fit) -> bool) -> bool {
        if self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        let e = self.choice.moments.len();
        let Some(open) = self.cube.reads.get(e) else {
            return match self.order_fits() {
                true => {
                    let fit = self.values_fit();
                    fit == Fit::No || visit(&self.choice, fit)
                }
                false => true,
            };
        };
        for (f, there) in self.facts.reads.iter().enumerate() {
            let parts: Option<Vec<u8>> = open
                .parts
                .iter()
                .map(|p| {
                    let reader = match p.reader {
                        NOBODY => NOBODY,
                        r => self.choice.threads[usize::from(r)],
                    };
                    let place = p.place.renamed(&self.choice.threads);
                    let same = |q: &super::facts::Part| {
                        q.reader == reader && q.place == place && (q.own || !p.own)
                    };
                    there.parts.iter().position(same).map(|i| i as u8)
                })
                .collect();
            let Some(parts) = parts else { continue };
            self.choice.moments.push((f as u8, parts));
            let go_on = self.moment(visit);
            self.choice.moments.pop();
            if !go_on {
                return false;
            }
        }
        true
    }

    /// Everything the cube says about the order of moments is known.
    fn order_fits(&self) -> bool {
        let (cube, facts) = (self.cube, self.facts);
        let image = |set: Moments| {
            let chosen = self.choice.moments.iter().enumerate();
            chosen.fold(0, |m: Moments, (e, (f, _))| m | (set >> e & 1) << f)
        };
        let within = |a: Moments, b: Moments| image(a) & !b == 0;
        let chosen = |t: usize| usize::from(self.choice.threads[t]);
        let moments = cube.reads.iter().enumerate().all(|(e, open)| {
            let there = usize::from(self.choice.moments[e].0);
            within(open.before, facts.reads[there].before)
        });
        let stores = (0..cube.threads.len())
            .all(|t| within(cube.after_stores_of[t], facts.after_stores_of[chosen(t)]));
        if !moments || !stores {
            return false;
        }
        // Told in the order of time, whatever is met later is before all that is known.
        if self.rules.model == MemoryModel::Pso {
            return true;
        }
        (0..cube.threads.len())
            .all(|t| within(cube.after_reads_of[t], facts.after_reads_of[chosen(t)]))
            && cube.after_stores_to.iter().all(|(p, s)| {
                let there = p.renamed(&self.choice.threads);
                within(*s, facts.stores_to(there))
            })
            && cube.after_stores_elsewhere.iter().all(|(cell, s)| {
                let there = facts.after_stores_elsewhere.get(cell).copied().unwrap_or(0);
                let all = bits((1u32 << facts.threads.len()).wrapping_sub(1) as u16);
                let mut others = all.filter(|u| !self.choice.threads.contains(&(*u as u8)));
                within(*s, there)
                    && others.all(|u| within(*s, facts.stores_to(Place::new(*cell, &[u as u8]))))
            })
            && within(cube.last, facts.last)
    }

    fn values_fit(&self) -> Fit {
        let mut fit = Fit::Yes;
        for (v, s) in &self.cube.among {
            let wanted = match self.cube.holds_thread(self.rules.system, *v) {
                true => self.choice.threads_of(*s, self.facts),
                false => *s,
            };
            let there = self.choice.value(*v);
            match self.set_fits(wanted, self.facts.among.get(&there).copied()) {
                Fit::Yes => {}
                Fit::No => return Fit::No,
                Fit::Numbers | Fit::Perhaps => fit = Fit::Perhaps,
            }
        }
        for (a, b, equal) in &self.cube.same {
            let (a, b) = (self.choice.value(*a), self.choice.value(*b));
            let known = a == b && *equal || self.facts.same.contains(&(a.min(b), a.max(b), *equal));
            let sets = self.facts.among.get(&a).zip(self.facts.among.get(&b));
            let decided = sets.is_some_and(|(x, y)| match equal {
                true => x == y && x.count_ones() == 1 && *x != OTHER,
                false => x & y == 0,
            });
            match known || decided {
                true => {}
                false if self.perhaps => fit = Fit::Perhaps,
                false => return Fit::No,
            }
        }
        let follows = |n: &Number| {
            self.facts.numbers.iter().any(|k| {
                k.terms == n.terms
                    && k.relation == n.relation
                    && match n.relation {
                        Relation::AtMost | Relation::Less => k.constant >= n.constant,
                        Relation::Equal | Relation::Different => k.constant == n.constant,
                    }
            })
        };
        if fit == Fit::Yes && !self.choice.numbers(self.cube).iter().all(follows) {
            fit = Fit::Numbers;
        }
        fit
    }
}
