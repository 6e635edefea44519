//! Whether what some facts describe is described by the certificate.
//!
//! A cube describes it if its threads and moments can be chosen among those of the facts so that
//! everything the cube says is known. Most often one cube does, seen by comparing; else the solver is
//! asked whether the values can be such that none of the fitting cubes does. Which cubes and choices are
//! looked at is for [`guess`](super::guess).

use super::assume::Rules;
use super::facts::{CellAt, Facts, Moments, NOBODY, OTHER, Part, Pending, Set, Value, bits};
use super::guess::{self, Known};
use super::query::Query;
use crate::AuditError;
use wattle_logic::Formula;
use wattle_memory::MemoryModel;

/// How a cube's threads and moments are chosen.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub threads: Vec<u8>,
    /// For each moment one of the facts', and for its parts theirs.
    pub moments: Vec<(u8, Vec<u8>)>,
}

/// More choices than this and the solver is not asked.
const CHOICES: usize = 4000;

/// Whether the cubes describe everything the facts describe.
pub fn inside(
    rules: &Rules<'_>,
    known: &[Known],
    facts: &Facts,
    query: &mut Query<'_>,
) -> Result<bool, AuditError> {
    let (mut found, mut alone, mut together) = (false, Vec::new(), Vec::new());
    guess::each(rules, known, facts, false, &mut |i, choice| {
        let chosen = Chosen::new(rules, &known[i], facts, choice);
        if chosen.fits() {
            found = chosen.is_known();
            alone.push((i, choice.clone()));
        }
        !found && alone.len() < CHOICES
    });
    if found {
        return Ok(true);
    }
    for (i, choice) in &alone {
        if query.covered(
            rules,
            facts,
            &[Chosen::new(rules, &known[*i], facts, choice)],
        )? {
            return Ok(true);
        }
    }
    guess::each(rules, known, facts, true, &mut |i, choice| {
        if Chosen::new(rules, &known[i], facts, choice).fits() {
            together.push((i, choice.clone()));
        }
        together.len() < CHOICES
    });
    let cubes = together.iter();
    let cubes: Vec<_> = cubes
        .map(|(i, choice)| Chosen::new(rules, &known[*i], facts, choice))
        .collect();
    query.covered(rules, facts, &cubes)
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
}

/// A cube with a choice of threads and moments, of all or of the first of them.
pub struct Chosen<'s, 'a> {
    pub rules: &'s Rules<'a>,
    pub cube: &'s Facts,
    pub facts: &'s Facts,
    pub choice: &'s Choice,
}

impl<'s, 'a> Chosen<'s, 'a> {
    fn new(rules: &'s Rules<'a>, known: &'s Known, facts: &'s Facts, choice: &'s Choice) -> Self {
        Chosen {
            rules,
            cube: &known.facts,
            facts,
            choice,
        }
    }

    /// Whether everything is chosen and the order fits.
    fn fits(&self) -> bool {
        let (cube, choice) = (self.cube, self.choice);
        let mut moments = choice.moments.iter().zip(&cube.reads);
        choice.threads.len() == cube.threads.len()
            && choice.moments.len() == cube.reads.len()
            && (0..cube.threads.len()).all(|t| self.thread_fits(t))
            && moments.all(|((f, parts), open)| {
                let there = self.facts.reads.get(usize::from(*f));
                let chosen = |i: &u8| there?.parts.get(usize::from(*i));
                let mut both = parts.iter().map(chosen).zip(&open.parts);
                parts.len() == open.parts.len()
                    && both.all(|(q, p)| q.is_some_and(|q| self.part_fits(p, q)))
            })
            && self.pending_fits()
            && self.order_fits()
    }

    /// Whether a thread is another one than those before it, and comes after whom it should.
    pub fn thread_fits(&self, t: usize) -> bool {
        let chosen = |i: usize| usize::from(self.choice.threads[i]);
        let u = chosen(t);
        self.facts.threads.get(u) == self.cube.threads.get(t)
            && (0..t).all(|i| {
                let holds = |a: usize, b: usize| self.facts.later[a] & 1 << b != 0;
                chosen(i) != u
                    && (self.cube.later[t] & 1 << i == 0 || holds(u, chosen(i)))
                    && (self.cube.later[i] & 1 << t == 0 || holds(chosen(i), u))
            })
    }

    /// A part of the cube's open reads is known as this one of the facts.
    pub fn part_fits(&self, p: &Part, q: &Part) -> bool {
        let reader = match p.reader {
            NOBODY => NOBODY,
            r => self.choice.threads[usize::from(r)],
        };
        let place = p.place.renamed(&self.choice.threads);
        q.reader == reader && q.place == place && (q.own || !p.own)
    }

    /// Stores yet to be met must be the same; a cube that speaks of none leaves them open.
    pub fn pending_fits(&self) -> bool {
        let (wanted, known) = (&self.cube.pending, &self.facts.pending);
        let threads = &self.choice.threads;
        let same = |(x, y): (&Pending, &Pending)| {
            threads[usize::from(x.thread)] == y.thread
                && x.place.renamed(threads) == y.place
                && (y.newest || !x.newest)
        };
        wanted.is_empty() || wanted.len() == known.len() && wanted.iter().zip(known).all(same)
    }

    /// Everything the cube says about the order of moments is known.
    pub fn order_fits(&self) -> bool {
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
                    && others.all(|u| within(*s, facts.stores_to(CellAt::new(*cell, &[u as u8]))))
            })
            && within(cube.last, facts.last)
    }

    /// Whether everything the cube says about values is known.
    pub fn is_known(&self) -> bool {
        let mut sets = self.cube.among.iter();
        let mut rest = self.known().into_iter();
        sets.all(|(v, set)| {
            let known = self.facts.among.get(&self.choice.value(*v));
            known.is_some_and(|k| k & !self.wanted(*v, *set) == 0)
        }) && rest.all(|f| f == Formula::True || self.facts.known.contains(&f))
    }

    /// What a value of the cube is among, in terms of the facts.
    pub fn wanted(&self, v: Value, set: Set) -> Set {
        match self.cube.holds_thread(self.rules.system, v) {
            true => self.choice.threads_of(set, self.facts),
            false => set,
        }
    }

    /// What else the cube says of values, in terms of the facts.
    pub fn known(&self) -> Vec<Formula> {
        let there = |v: Value| self.rules.names.var(self.choice.value(v)).into();
        let known = self.cube.known.iter();
        known.map(|f| self.rules.replaced(f, &there)).collect()
    }
}
