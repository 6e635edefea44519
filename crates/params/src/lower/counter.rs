//! Counters of threads (conchon-2017 §4): as many elements of a boolean array are true as the
//! counter counts. A counter is set to 0 or to the number of threads, counted up or down by one in
//! an atomic step, and looked at only to see whether it is 0, all, or something between.
//!
//! The paper has rules for counting in two steps as well: an element is found in one and changed in the
//! other. They leave alone what others did to the rest of the array, while on the machine the whole number
//! is put back; so they miss violations (examples/x86/counter_put_back.asm). Such a counter is an amount of threads
//! here, which may lose count ([`Share`]).

use super::amount::{Amount, Share};
use super::expr::Val;
use super::paths::{CounterWrite, ME, Path};
use super::scan::Every;
use super::variables::Variable;
use super::{Lowering, Refused, access, equal, refuse};
use wattle_model::array::{Formula, Term, ThreadTerm};
use wattle_model::{FamilyId, RegionId, Span};

const NONE: Amount = Amount::Number(0);
const SOME: Amount = Amount::Threads(Share::Some);
const ALL: Amount = Amount::Threads(Share::All);

impl Lowering<'_> {
    pub(super) fn store_counter(
        &mut self,
        _f: FamilyId,
        mut path: Path,
        region: RegionId,
        v: Val,
        span: Span,
    ) -> Result<Vec<Path>, Refused> {
        match v {
            Val::Number(l) if l.parts.is_empty() && l.constant == 0 => {
                path.counters.retain(|(r, _)| *r != region);
                path.counters.push((region, CounterWrite::All(false)));
                Ok(vec![path])
            }
            Val::Share(Share::All) => {
                path.counters.retain(|(r, _)| *r != region);
                path.counters.push((region, CounterWrite::All(true)));
                Ok(vec![path])
            }
            Val::Counter {
                region: from,
                delta,
            } if from == region && path.atomic => {
                if delta == 0 {
                    return Ok(vec![path]);
                }
                Ok(self.count(path, region, delta))
            }
            Val::Number(_)
            | Val::Share(Share::Negative | Share::Some | Share::More)
            | Val::Thread(_)
            | Val::Counter { .. } => Err(refuse(
                span,
                "a counter can only be set to 0 or to the number of threads, or counted up or down by one atomically",
                "use `lock inc` and `lock dec`, or an ordinary number",
            )),
        }
    }

    /// Sorts every register that holds a counter into 0, some and all.
    pub(super) fn settle_counters(
        &mut self,
        _f: FamilyId,
        path: Path,
    ) -> Result<Vec<Path>, Refused> {
        let found = path.registers.values().find_map(|v| match v {
            Val::Counter { region, delta } => Some((*region, *delta)),
            Val::Number(_) | Val::Thread(_) | Val::Share(_) => None,
        });
        let Some((region, delta)) = found else {
            return Ok(vec![path]);
        };
        let sorted = match delta {
            0 => self.look(path, region),
            _ => {
                let mut out = self.count(path, region, delta);
                out.iter_mut()
                    .for_each(|p| p.counters.retain(|(r, _)| *r != region));
                out
            }
        };
        let mut out = Vec::new();
        for p in sorted {
            out.extend(self.settle_counters(_f, p)?);
        }
        Ok(out)
    }

    pub(super) fn element(&self, region: RegionId, t: ThreadTerm, value: bool) -> Formula {
        let cell = self.variables.cells[&Variable::Region(region)];
        equal(Term::Read(access(cell, &[t])), Term::Bool(value))
    }

    fn known(&self, mut path: Path, region: RegionId, delta: i64, value: Amount) -> Path {
        for v in path.registers.values_mut() {
            if *v == (Val::Counter { region, delta }) {
                *v = value.into();
            }
        }
        path
    }

    /// The counter is 0, all, or between.
    fn look(&mut self, path: Path, region: RegionId) -> Vec<Path> {
        let mut out = Vec::new();
        for (value, b) in [(NONE, false), (ALL, true)] {
            let mut p = self.known(path.clone(), region, 0, value);
            p.every.push((Vec::new(), Every::Element(region, b)));
            out.push(p);
        }
        for (p, _) in self.with(path, region, true) {
            for (p, _) in self.with(p, region, false) {
                out.push(self.known(p, region, 0, SOME));
            }
        }
        out
    }

    /// A thread with such an element: one that is known to have it, or any.
    fn with(&self, path: Path, region: RegionId, value: bool) -> Vec<(Path, ThreadTerm)> {
        let named = (0..path.params.len()).map(|i| ThreadTerm::Param(i as u8));
        let mut known = named.filter(|t| path.guards.contains(&self.element(region, *t, value)));
        if let Some(t) = known.next() {
            return vec![(path, t)];
        }
        let mut all = self.pick(path, &[]);
        for (p, t) in &mut all {
            p.guards.push(self.element(region, *t, value));
        }
        all.retain(|(p, _)| !self.contradictory(p));
        all
    }

    /// One element changes; what is left decides the result. Which one changes means nothing, so it
    /// is the thread's own if that can change: then an element tells what its thread has done.
    /// Counting below 0 or above all breaks the thread.
    fn count(&mut self, path: Path, region: RegionId, delta: i64) -> Vec<Path> {
        let from = delta < 0;
        let end = if delta < 0 { NONE } else { ALL };
        let mut out = Vec::new();
        let mut stuck = self.known(path.clone(), region, delta, NONE);
        stuck
            .every
            .push((Vec::new(), Every::Element(region, !from)));
        stuck.broken = true;
        out.push(stuck);
        for (p, changed) in self.pick(path, &[]) {
            let mut p = p;
            if changed != ME {
                p.guards.push(self.element(region, ME, !from));
            }
            p.guards.push(self.element(region, changed, from));
            p.counters.push((region, CounterWrite::One(changed, !from)));
            // It was the last one.
            let mut last = self.known(p.clone(), region, delta, end);
            last.every
                .push((vec![changed], Every::Element(region, !from)));
            out.push(last);
            for (mut p, another) in self.pick(p, &[changed]) {
                p.guards.push(self.element(region, another, from));
                out.push(self.known(p, region, delta, SOME));
            }
        }
        out
    }

    /// A thread: one that is named already, or a new one.
    pub(super) fn pick(&self, path: Path, not: &[ThreadTerm]) -> Vec<(Path, ThreadTerm)> {
        let mut out = Vec::new();
        for i in 0..=path.params.len() {
            let t = ThreadTerm::Param(i as u8);
            if not.contains(&t) {
                continue;
            }
            let mut p = path.clone();
            if i == path.params.len() {
                p.params.push(format!("q{i}"));
            }
            out.push((p, t));
        }
        out
    }
}
