//! The steps of the attack search.

use super::Goal;
use super::excluded::Excluded;
use super::plan::{Plan, drains};
use super::state::{Phase, READ, Shape, Values, WRITTEN, Work};
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Step};
use wattle_model::{Expr, Fence, RegisterId, StepId, Type};

/// How a state was reached from its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub thread: u32,
    pub step: StepId,
    pub value: Option<i64>,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Under SC: a store reaches memory at once.
    Plain,
    /// The attacker's store stays in its buffer; the first one starts the attack.
    Delayed,
    /// The access that overtakes the first delayed store.
    Commit,
}

/// What a step leads to.
pub(super) enum Next {
    Go(Work, Label),
    /// The step completes the attack.
    Success(Label),
}

pub(super) struct Steps<'p, 'i> {
    pub plan: &'p Plan<'i>,
    pub shape: Shape,
    pub values: Values,
    pub excluded: Excluded,
    /// A computation left the machine's 64 bits: the search has no verdict.
    pub overflow: bool,
}

/// Why a step has no next state.
enum Stuck {
    Fault,
    Overflow,
}

impl Steps<'_, '_> {
    /// Every step from the state.
    pub fn successors(&mut self, state: &Work, out: &mut Vec<Next>) {
        let threads = self.plan.threads.len();
        let frozen = |t: usize| state.phase() == Phase::Committed && state.attacker() == t;
        let at = |t: usize| self.plan.threads[t].inside.get(state.location(t)).copied();
        let mine: Vec<bool> = (0..threads)
            .map(|t| !frozen(t) && at(t).is_some())
            .collect();
        let alone = (0..threads).find(|t| mine[*t] && at(*t) == Some(true));
        if let Some(t) = alone {
            self.thread(state, t, true, out);
            return;
        }
        let able: Vec<usize> = (0..threads).filter(|t| mine[*t]).collect();
        for &t in &able {
            if self.plan.threads[t].quick[state.location(t)] {
                self.thread(state, t, false, out);
                // A thread that waits for its own registers waits for ever: the others go on.
                if !out.is_empty() {
                    return;
                }
            }
        }
        for &t in &able {
            if !self.plan.threads[t].quick[state.location(t)] {
                self.thread(state, t, false, out);
            }
        }
    }

    fn thread(&mut self, state: &Work, t: usize, inside: bool, out: &mut Vec<Next>) {
        let thread = &self.plan.instance.threads[t];
        let outgoing = &thread.outgoing[state.location(t)];
        for s in outgoing {
            let step = &thread.steps[s.index()];
            match &step.action {
                Action::Havoc { register, range } => {
                    let ty = thread.registers[register.index()].ty;
                    if let Some((lo, hi)) = range.or(ty.bounds()) {
                        for v in lo..=hi {
                            self.take(state, t, *s, step, Some(v), inside, out);
                        }
                    }
                }
                _ => self.take(state, t, *s, step, None, inside, out),
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one step, in its place and context"
    )]
    fn take(
        &mut self,
        state: &Work,
        t: usize,
        s: StepId,
        step: &Step,
        value: Option<i64>,
        inside: bool,
        out: &mut Vec<Next>,
    ) {
        let label = |kind| Label {
            thread: t as u32,
            step: s,
            value,
            kind,
        };
        let attacking = state.phase() == Phase::Delaying && state.attacker() == t;
        if attacking && drains(&step.action) {
            return;
        }
        let before = out.len();
        let result = match &step.action {
            Action::Load { register, place } => {
                self.load(state, t, step, *register, place, label, out)
            }
            Action::Store { place, value } => {
                self.store(state, t, step, place, value, inside, label, out)
            }
            _ => self.other(state, t, step, value).map(|next| {
                if let Some(next) = next {
                    out.push(Next::Go(next, label(Kind::Plain)));
                }
            }),
        };
        if let Err(Stuck::Overflow) = result {
            self.overflow = true;
        }
        // Where the attacker now is among the excluded sequences.
        for next in &mut out[before..] {
            if let Next::Go(work, l) = next
                && work.phase() == Phase::Delaying
                && work.attacker() == t
            {
                let node = match attacking {
                    true => self.excluded.step(state.node(), t, l.step),
                    false => self.excluded.start(t, l.step),
                };
                work.set_node(node);
            }
        }
    }

    /// Steps that touch no cell.
    fn other(
        &mut self,
        state: &Work,
        t: usize,
        step: &Step,
        value: Option<i64>,
    ) -> Result<Option<Work>, Stuck> {
        let mut next = state.clone();
        let plan = &self.plan.threads[t];
        let committed = state.phase() == Phase::Committed;
        let unlocked = state.holder().is_none_or(|h| h == t);
        // What was seen of a lock region matters only while it is open.
        let closes = |next: &mut Work, shape: &Shape| match committed {
            true => next.clear_flag(next.attacker()),
            false => next.clear_flags(shape),
        };
        let begins = |next: &mut Work, shape: &Shape| {
            next.clear_foot(shape);
            next.set_debt(committed && !next.flag(t) && !self.is_race());
        };
        match &step.action {
            Action::Skip | Action::Fence(Fence::Full) => {}
            Action::Fence(Fence::Store) => {
                if state.phase() == Phase::Delaying && state.attacker() == t {
                    next.set_ordered();
                }
            }
            Action::Assign { register, value } => {
                let v = self.eval(state, t, value)?;
                self.set(&mut next, t, *register, v)?;
            }
            Action::Havoc { register, .. } => {
                self.set(&mut next, t, *register, value.unwrap_or(0))?;
            }
            Action::Assume(e) => {
                if self.eval(state, t, e)? == 0 {
                    return Ok(None);
                }
            }
            Action::Assert { condition, .. } => {
                if self.eval(state, t, condition)? == 0 {
                    return Err(Stuck::Fault);
                }
            }
            Action::AtomicBegin if unlocked => begins(&mut next, &self.shape),
            Action::Lock if state.holder().is_none() => {
                begins(&mut next, &self.shape);
                // A store that overtakes (PSO) comes before or after a region, never into it: in the
                // race it is followed by the region as a whole.
                if self.is_race() && committed && self.plan.options.model == MemoryModel::Pso {
                    next.set_flag(t);
                }
                if !plan.locks_are_units {
                    next.set_holder(Some(t));
                }
            }
            Action::Unlock if plan.locks_are_units || state.holder() == Some(t) => {
                if state.debt() || (plan.locks_are_units && !plan.inside[state.location(t)]) {
                    return Ok(None);
                }
                next.set_holder(None);
                next.clear_foot(&self.shape);
                closes(&mut next, &self.shape);
                if self.is_race() {
                    next.clear_flag(t);
                }
            }
            // A unit that is not after the load must not come here; nobody looks inside a race.
            Action::AtomicEnd if !state.debt() => next.clear_foot(&self.shape),
            _ => return Ok(None),
        }
        if self.is_race() && committed && !plan.inside[step.target.index()] && !next.flag(t) {
            // The very next event must be the conflicting store.
            return Ok(None);
        }
        let attacking = state.phase() == Phase::Delaying && state.attacker() == t;
        if attacking && !plan.can_commit[step.target.index()] {
            return Ok(None);
        }
        self.arrive(&mut next, t, step.target.index());
        Ok(Some(next))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one step, in its place and context"
    )]
    fn load(
        &mut self,
        state: &Work,
        t: usize,
        step: &Step,
        register: RegisterId,
        place: &Address,
        label: impl Fn(Kind) -> Label,
        out: &mut Vec<Next>,
    ) -> Result<(), Stuck> {
        let c = self.address(state, t, place)?;
        let attacking = state.phase() == Phase::Delaying && state.attacker() == t;
        let private = state.private(&self.shape, c).filter(|_| attacking);
        if attacking && private.is_none() {
            self.commit(state, c, None, label(Kind::Commit), out);
        }
        if attacking && !self.plan.threads[t].can_commit[step.target.index()] {
            return Ok(());
        }
        let mut next = state.clone();
        if !self.touch(state, &mut next, t, c, READ, label(Kind::Plain), out) {
            return Ok(());
        }
        let word = private.unwrap_or(state.memory(&self.shape, c));
        let v = self.values.decode(word);
        let target = match self.set(&mut next, t, register, v) {
            Ok(()) => step.target.index(),
            // The access happened; the thread ends there.
            Err(_) => self.plan.instance.threads[t].locations.len(),
        };
        self.arrive(&mut next, t, target);
        out.push(Next::Go(next, label(Kind::Plain)));
        Ok(())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one step, in its place and context"
    )]
    fn store(
        &mut self,
        state: &Work,
        t: usize,
        step: &Step,
        place: &Address,
        value: &Expr<RegisterId>,
        inside: bool,
        label: impl Fn(Kind) -> Label,
        out: &mut Vec<Next>,
    ) -> Result<(), Stuck> {
        let c = self.address(state, t, place)?;
        let v = self.eval(state, t, value)?;
        let v = admit(self.plan.instance.cells[c].ty, v)?;
        let word = self.values.encode(v);
        let unlocked = state.holder().is_none_or(|h| h == t);
        let target = step.target.index();
        let attacking = state.phase() == Phase::Delaying && state.attacker() == t;
        let pso = self.plan.options.model == MemoryModel::Pso;
        // An attack starts, or goes on. Under TSO a thread that holds the lock has nothing to overtake
        // with: nobody can overwrite what it loads. Under PSO its stores can overtake each other.
        let free = pso || state.holder() != Some(t);
        let starts = state.phase() == Phase::Before && !inside && free;
        if (starts && self.promising(state, t, c, target)) || attacking {
            let mut next = state.clone();
            if starts {
                next.start(t, c);
            }
            next.set_private(&self.shape, c, word);
            self.arrive(&mut next, t, target);
            if self.plan.threads[t].can_commit[target] {
                out.push(Next::Go(next, label(Kind::Delayed)));
            }
        }
        if attacking {
            let overtakes =
                c != state.delayed() && state.private(&self.shape, c).is_none() && !state.ordered();
            if !pso || !unlocked || !overtakes {
                return Ok(());
            }
            self.commit(state, c, Some(word), label(Kind::Commit), out);
        } else if !unlocked {
            return Ok(());
        }
        let mut next = state.clone();
        if !self.touch(state, &mut next, t, c, WRITTEN, label(Kind::Plain), out) {
            return Ok(());
        }
        next.set_memory(&self.shape, c, word);
        self.arrive(&mut next, t, target);
        out.push(Next::Go(next, label(Kind::Plain)));
        Ok(())
    }

    fn is_race(&self) -> bool {
        self.plan.options.goal == Goal::Triangular
    }

    /// Whether delaying a store to `c` could lead anywhere.
    fn promising(&self, state: &Work, t: usize, c: usize, target: usize) -> bool {
        let plan = &self.plan.threads;
        let others = (0..plan.len()).filter(|u| *u != t);
        plan[t].can_commit[target]
            && (self.is_race()
                || self.region_counts(state, t, c)
                || others.into_iter().any(|u| {
                    self.reach(state, u)
                        .is_some_and(|l| plan[u].touches[l].has(c))
                }))
    }

    /// An open lock region that the attacker has seen, or that has touched the delayed cell, may
    /// close the cycle without another access of that cell.
    fn region_counts(&self, state: &Work, attacker: usize, delayed: usize) -> bool {
        state.flag(attacker) || state.foot(&self.shape, delayed) != 0
    }

    /// Where the thread is, unless it has stopped at a fault.
    fn reach(&self, state: &Work, t: usize) -> Option<usize> {
        let l = state.location(t);
        (l < self.plan.threads[t].inside.len()).then_some(l)
    }

    /// The attacker overtakes its first delayed store: with a load, or by storing a value (PSO).
    fn commit(
        &mut self,
        state: &Work,
        c: usize,
        stored: Option<u32>,
        label: Label,
        out: &mut Vec<Next>,
    ) {
        let me = state.attacker();
        if self.excluded.forbids(state.node(), me, label.step) {
            return;
        }
        let plan = &self.plan.threads;
        let others = || (0..plan.len()).filter(|u| *u != me);
        let of = |u: usize, write: bool, c: usize| {
            self.reach(state, u).is_some_and(|l| {
                let set = if write {
                    &plan[u].writes
                } else {
                    &plan[u].touches
                };
                set[l].has(c)
            })
        };
        if !others().any(|u| of(u, stored.is_none(), c)) {
            return;
        }
        let touched = self.is_race()
            || self.region_counts(state, me, state.delayed())
            || others().any(|u| of(u, false, state.delayed()));
        if !touched {
            return;
        }
        let mut next = state.clone();
        next.commit(&self.shape);
        match stored {
            None => next.raise_mark(&self.shape, c, READ),
            Some(word) => {
                next.raise_mark(&self.shape, c, WRITTEN);
                next.set_memory(&self.shape, c, word);
            }
        }
        out.push(Next::Go(next, label));
    }

    /// Accounts for an access after the load. False if it may not happen here.
    #[expect(
        clippy::too_many_arguments,
        reason = "one access, in its place and context"
    )]
    fn touch(
        &self,
        state: &Work,
        next: &mut Work,
        t: usize,
        c: usize,
        access: u32,
        label: Label,
        out: &mut Vec<Next>,
    ) -> bool {
        let shape = &self.shape;
        if state.phase() != Phase::Committed {
            let attacking = state.phase() == Phase::Delaying && state.attacker() == t;
            if state.holder() == Some(t) {
                next.raise_foot(shape, c, access);
            } else if state.foot(shape, c) == WRITTEN && !attacking {
                next.set_flag(t);
            }
            return true;
        }
        let mark = state.mark(shape, c);
        let conflict = mark == WRITTEN || (mark == READ && access == WRITTEN);
        if self.is_race() {
            if conflict {
                out.push(Next::Success(label));
            }
            // Inside a unit the store may still come.
            let inside = self.plan.threads[t].inside[state.location(t)] || state.flag(t);
            return !conflict && inside;
        }
        let in_region = state.holder() == Some(t) || self.plan.threads[t].inside[state.location(t)];
        let s = state.delayed();
        if !state.flag(t) {
            // What a region in debt has written is after the load if the region is.
            let guessed = state.debt() && !in_region && state.foot(shape, c) == WRITTEN;
            if conflict || guessed {
                next.set_flag(t);
                if in_region {
                    // The region was open when the attacker stored, and is both before the store
                    // (the attacker had seen it) and after the load.
                    let around = !state.debt() && state.flag(state.attacker());
                    next.set_debt(false);
                    if next.merge_foot(shape, s) || around {
                        out.push(Next::Success(label));
                        return false;
                    }
                }
            } else if in_region && state.debt() {
                next.raise_foot(shape, c, access);
                return true;
            } else {
                return false;
            }
        }
        next.raise_mark(shape, c, access);
        if c == s {
            out.push(Next::Success(label));
            return false;
        }
        true
    }

    /// Moves the thread on and forgets the registers it will not read again.
    fn arrive(&self, next: &mut Work, t: usize, target: usize) {
        next.set_location(t, target);
        let registers = self.plan.instance.threads[t].registers.len();
        match self.plan.threads[t].dead.get(target) {
            Some(dead) => {
                for r in dead {
                    next.set_register(&self.shape, t, *r as usize, 0);
                }
            }
            None => (0..registers).for_each(|r| next.set_register(&self.shape, t, r, 0)),
        }
    }

    fn set(&mut self, next: &mut Work, t: usize, r: RegisterId, v: i64) -> Result<(), Stuck> {
        let v = admit(self.plan.instance.threads[t].registers[r.index()].ty, v)?;
        let word = self.values.encode(v);
        next.set_register(&self.shape, t, r.index(), word);
        Ok(())
    }

    fn eval(&self, state: &Work, t: usize, e: &Expr<RegisterId>) -> Result<i64, Stuck> {
        let read = |r: &RegisterId| {
            self.values
                .decode(state.register(&self.shape, t, r.index()))
        };
        e.eval(&read).map_err(|e| match e {
            wattle_model::ArithmeticError::Overflow => Stuck::Overflow,
            _ => Stuck::Fault,
        })
    }

    fn address(&self, state: &Work, t: usize, place: &Address) -> Result<usize, Stuck> {
        match place {
            Address::Cell(c) => Ok(c.index()),
            Address::Computed {
                base,
                length,
                index,
            } => {
                let index = self.eval(state, t, index)?;
                let inside = u32::try_from(index).ok().filter(|i| i < length);
                inside
                    .map(|i| base.index() + i as usize)
                    .ok_or(Stuck::Fault)
            }
        }
    }
}

fn admit(ty: Type, v: i64) -> Result<i64, Stuck> {
    ty.admit(v).ok_or(Stuck::Fault)
}
