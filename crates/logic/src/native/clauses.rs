//! Clauses over literals: watched-literal propagation and first-UIP analysis
//! (MiniSat's, without restarts or deletion).

use crate::proof::FactId;

/// A literal: a boolean variable and its sign.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Lit(u32);

impl Lit {
    pub(super) fn new(var: usize, positive: bool) -> Lit {
        Lit((var as u32) << 1 | u32::from(!positive))
    }

    pub(super) fn var(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn negated(self) -> Lit {
        Lit(self.0 ^ 1)
    }

    fn positive(self) -> bool {
        self.0 & 1 == 0
    }
}

/// A clause and the fact that states it.
pub(super) struct Clause {
    /// Watched literals first.
    lits: Vec<Lit>,
    /// The literals in the order of the fact's disjuncts.
    pub(super) order: Vec<Lit>,
    pub(super) fact: FactId,
    /// The fact is the only literal itself, not a disjunction of one.
    pub(super) bare: bool,
}

/// What a conflict teaches.
pub(super) struct Lesson {
    /// The clause to learn, the literal it asserts first; none if the clauses
    /// contradict each other without any decision.
    pub(super) learnt: Vec<Lit>,
    /// The propagated literals to replay from the learnt clause's negation.
    pub(super) chain: Vec<Lit>,
    /// The level to go back to.
    pub(super) level: u32,
}

#[derive(Default)]
pub(super) struct Clauses {
    pub(super) list: Vec<Clause>,
    watches: Vec<Vec<u32>>,
    value: Vec<Option<bool>>,
    level: Vec<u32>,
    reason: Vec<Option<u32>>,
    activity: Vec<f64>,
    bump: f64,
    trail: Vec<Lit>,
    limits: Vec<usize>,
    head: usize,
}

impl Clauses {
    pub(super) fn add_var(&mut self) -> usize {
        self.watches.extend([Vec::new(), Vec::new()]);
        self.value.push(None);
        self.level.push(0);
        self.reason.push(None);
        self.activity.push(0.0);
        self.value.len() - 1
    }

    pub(super) fn value(&self, lit: Lit) -> Option<bool> {
        self.value[lit.var()].map(|v| v == lit.positive())
    }

    pub(super) fn activity(&self, lit: Lit) -> f64 {
        self.activity[lit.var()]
    }

    pub(super) fn trail(&self) -> &[Lit] {
        &self.trail
    }

    pub(super) fn reason(&self, lit: Lit) -> Option<&Clause> {
        self.reason[lit.var()].map(|c| &self.list[c as usize])
    }

    fn now(&self) -> u32 {
        self.limits.len() as u32
    }

    /// Makes `lit` true one level deeper.
    pub(super) fn decide(&mut self, lit: Lit) {
        self.limits.push(self.trail.len());
        self.assign(lit, None);
    }

    fn assign(&mut self, lit: Lit, reason: Option<u32>) {
        let var = lit.var();
        self.value[var] = Some(lit.positive());
        self.level[var] = self.now();
        self.reason[var] = reason;
        self.trail.push(lit);
    }

    pub(super) fn back_to(&mut self, level: u32) {
        let Some(&keep) = self.limits.get(level as usize) else {
            return;
        };
        for lit in self.trail.drain(keep..) {
            self.value[lit.var()] = None;
            self.reason[lit.var()] = None;
        }
        self.limits.truncate(level as usize);
        self.head = keep.min(self.head);
    }

    /// Adds a clause of different variables. `Err` with its number if it is
    /// false at present; if it is unit, its literal is propagated.
    pub(super) fn add(&mut self, order: Vec<Lit>, fact: FactId, bare: bool) -> Result<u32, u32> {
        let id = self.list.len() as u32;
        let mut lits = order.clone();
        // Unassigned and true ones first, then the deepest.
        let rank = |l: &Lit| match self.value(*l) {
            Some(false) => u64::from(u32::MAX - self.level[l.var()]) + 1,
            _ => 0,
        };
        lits.sort_by_key(rank);
        let (first, second) = (lits.first().copied(), lits.get(1).copied());
        for lit in lits.iter().take(2).filter(|_| lits.len() > 1) {
            self.watches[lit.index()].push(id);
        }
        self.list.push(Clause {
            lits,
            order,
            fact,
            bare,
        });
        let Some(first) = first else { return Err(id) };
        let rest_false = second.is_none_or(|l| self.value(l) == Some(false));
        match self.value(first) {
            Some(false) => return Err(id),
            None if rest_false => {
                // Where it became unit, not where we happen to be.
                let level = second.map_or(0, |l| self.level[l.var()]);
                self.back_to(level);
                self.assign(first, Some(id));
            }
            _ => {}
        }
        Ok(id)
    }

    /// Draws all unit conclusions; `Err` with a clause that became false.
    pub(super) fn propagate(&mut self) -> Result<(), u32> {
        while let Some(&lit) = self.trail.get(self.head) {
            self.head += 1;
            let falsified = lit.negated();
            let mut watching = std::mem::take(&mut self.watches[falsified.index()]);
            let mut at = 0;
            let mut conflict = None;
            'clauses: while at < watching.len() {
                let id = watching[at];
                let clause = &mut self.list[id as usize];
                if clause.lits[0] == falsified {
                    clause.lits.swap(0, 1);
                }
                let first = clause.lits[0];
                let is_true =
                    |l: Lit, values: &[Option<bool>]| values[l.var()] == Some(l.positive());
                let is_false =
                    |l: Lit, values: &[Option<bool>]| values[l.var()] == Some(!l.positive());
                if is_true(first, &self.value) {
                    at += 1;
                    continue;
                }
                for k in 2..clause.lits.len() {
                    if !is_false(clause.lits[k], &self.value) {
                        clause.lits.swap(1, k);
                        self.watches[clause.lits[1].index()].push(id);
                        watching.swap_remove(at);
                        continue 'clauses;
                    }
                }
                if is_false(first, &self.value) {
                    conflict = Some(id);
                    break;
                }
                self.assign(first, Some(id));
                at += 1;
            }
            self.watches[falsified.index()] = watching;
            if let Some(id) = conflict {
                self.head = self.trail.len();
                return Err(id);
            }
        }
        Ok(())
    }

    /// Analyses a false clause, after going back to where it became false.
    pub(super) fn analyse(&mut self, conflict: u32) -> Lesson {
        let lits = self.list[conflict as usize].order.iter();
        let level = lits.map(|l| self.level[l.var()]).max().unwrap_or(0);
        self.back_to(level);
        self.bump = if self.bump == 0.0 {
            1.0
        } else {
            self.bump * 1.05
        };
        if self.bump > 1e100 {
            self.activity.iter_mut().for_each(|a| *a *= 1e-100);
            self.bump *= 1e-100;
        }
        let learnt = if level == 0 {
            Vec::new()
        } else {
            self.first_uip(conflict, level)
        };
        let others = learnt.iter().skip(1);
        let back = others.map(|l| self.level[l.var()]).max().unwrap_or(0);
        let chain = self.chain(conflict, &learnt);
        Lesson {
            learnt,
            chain,
            level: back,
        }
    }

    /// Resolves `conflict` with reasons until one literal of `level` is left,
    /// which comes first.
    fn first_uip(&mut self, conflict: u32, level: u32) -> Vec<Lit> {
        let mut marked = vec![false; self.value.len()];
        let mut learnt = Vec::new();
        let mut open = 0;
        let mut clause = conflict;
        let mut at = self.trail.len();
        loop {
            for &l in &self.list[clause as usize].order {
                let var = l.var();
                if marked[var] || self.level[var] == 0 {
                    continue;
                }
                marked[var] = true;
                self.activity[var] += self.bump;
                if self.level[var] == level {
                    open += 1;
                } else {
                    learnt.push(l);
                }
            }
            while at > 0 && !marked[self.trail[at - 1].var()] {
                at -= 1;
            }
            let Some(lit) = at.checked_sub(1).map(|i| self.trail[i]) else {
                return learnt;
            };
            at -= 1;
            open -= 1;
            match self.reason[lit.var()] {
                Some(reason) if open > 0 => clause = reason,
                _ => {
                    learnt.insert(0, lit.negated());
                    return learnt;
                }
            }
        }
    }

    /// The propagations that refute `conflict` from the negation of `learnt`, in
    /// the order they happened.
    fn chain(&self, conflict: u32, learnt: &[Lit]) -> Vec<Lit> {
        let mut needed = vec![false; self.value.len()];
        for l in &self.list[conflict as usize].order {
            needed[l.var()] = true;
        }
        let mut chain = Vec::new();
        for &lit in self.trail.iter().rev() {
            if !needed[lit.var()] || learnt.contains(&lit.negated()) {
                continue;
            }
            if let Some(reason) = self.reason(lit) {
                reason.order.iter().for_each(|l| needed[l.var()] = true);
                chain.push(lit);
            }
        }
        chain.reverse();
        chain
    }
}
