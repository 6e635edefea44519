//! The steps of the attack search.

use super::Goal;
use super::plan::{AttackPlan, drains};
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
    /// The access of another thread that closes the cycle.
    Conflict,
}

/// What a step leads to.
pub(super) enum Next {
    Go(Work, Label),
    /// The step completes the attack.
    Success(Label),
}

/// What becomes of an access.
enum Touch {
    /// It may not happen here.
    Not,
    Goes,
    /// It closes the cycle.
    Closes,
}

pub(super) struct Steps<'p, 'i> {
    pub plan: &'p AttackPlan<'i>,
    pub shape: Shape,
    pub values: Values,
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
        let can_start = |t: usize| self.plan.threads[t].can_start[state.location(t)];
        // Before an attack, only states from where one may still start are of interest.
        if state.phase() == Phase::Before && !(0..threads).any(can_start) {
            return;
        }
        let frozen = |t: usize| {
            !matches!(state.phase(), Phase::Before | Phase::Delaying) && state.attacker() == t
        };
        let able: Vec<usize> = (0..threads).filter(|t| !frozen(*t)).collect();
        if let Some(t) = able.iter().find(|t| self.inside(state, **t)) {
            self.thread(state, *t, out);
            return;
        }
        for &t in &able {
            if self.plan.threads[t].quick[state.location(t)] {
                self.thread(state, t, out);
                // A thread that waits for its own registers waits for ever: the others go on.
                if !out.is_empty() {
                    return;
                }
            }
        }
        for &t in &able {
            if !self.plan.threads[t].quick[state.location(t)] {
                self.thread(state, t, out);
            }
        }
    }

    /// The thread is inside a unit.
    fn inside(&self, state: &Work, t: usize) -> bool {
        state.holder() == Some(t) || self.atomic(t, state.location(t))
    }

    fn atomic(&self, t: usize, location: usize) -> bool {
        self.plan.instance.threads[t].atomic[location]
    }

    fn thread(&mut self, state: &Work, t: usize, out: &mut Vec<Next>) {
        let thread = &self.plan.instance.threads[t];
        let outgoing = &thread.outgoing[state.location(t)];
        for s in outgoing {
            let step = &thread.steps[s.index()];
            match &step.action {
                Action::Havoc { register, range } => {
                    let ty = thread.registers[register.index()].ty;
                    if let Some((lo, hi)) = range.or(ty.bounds()) {
                        for v in lo..=hi {
                            self.take(state, t, *s, step, Some(v), out);
                        }
                    }
                }
                Action::Skip
                | Action::Assign { .. }
                | Action::Assume(_)
                | Action::Assert { .. }
                | Action::Load { .. }
                | Action::Store { .. }
                | Action::Fence(_)
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Lock
                | Action::Unlock => self.take(state, t, *s, step, None, out),
            }
        }
    }

    fn take(
        &mut self,
        state: &Work,
        t: usize,
        s: StepId,
        step: &Step,
        value: Option<i64>,
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
        let result = match &step.action {
            Action::Load { register, place } => {
                self.load(state, t, step, *register, place, label, out)
            }
            Action::Store { place, value } => self.store(state, t, step, place, value, label, out),
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => self.other(state, t, step, value).map(|next| {
                if let Some(next) = next {
                    let left = !self.atomic(t, step.target.index());
                    out.push(match state.phase() {
                        Phase::Leaving if left => Next::Success(label(Kind::Plain)),
                        Phase::Before | Phase::Delaying | Phase::Committed | Phase::Leaving => {
                            Next::Go(next, label(Kind::Plain))
                        }
                    });
                }
            }),
        };
        if let Err(Stuck::Overflow) = result {
            self.overflow = true;
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
        let committed = state.phase() == Phase::Committed;
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
            Action::AtomicBegin(_) | Action::AtomicEnd => {}
            Action::Lock => {
                if state.holder().is_some() {
                    return Ok(None);
                }
                next.set_holder(Some(t));
            }
            Action::Unlock => {
                if state.holder() != Some(t) {
                    return Ok(None);
                }
                next.set_holder(None);
            }
            Action::Load { .. } | Action::Store { .. } => return Ok(None),
        }
        let target = step.target.index();
        let inside = next.holder() == Some(t) || self.atomic(t, target);
        match (self.inside(state, t), inside) {
            (false, true) => next.set_debt(committed && !next.flag(t) && !self.is_race()),
            // A unit that is not after the load must not come here.
            (true, false) if state.debt() => return Ok(None),
            (true, false) | (false, false) | (true, true) => {}
        }
        if self.is_race() && committed && !inside {
            // The very next event must be the conflicting store.
            return Ok(None);
        }
        let attacking = state.phase() == Phase::Delaying && state.attacker() == t;
        if attacking && !self.plan.threads[t].can_commit[target] {
            return Ok(None);
        }
        self.arrive(&mut next, t, target);
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
        let word = private.unwrap_or(state.memory(&self.shape, c));
        let v = self.values.decode(word);
        let mut next = state.clone();
        let read = self.set(&mut next, t, register, v);
        if attacking && private.is_none() && read.is_ok() {
            self.commit(state, c, None, label(Kind::Commit), out);
        }
        if attacking && !self.plan.threads[t].can_commit[step.target.index()] {
            return Ok(());
        }
        match self.touch(state, &mut next, t, c, READ) {
            Touch::Not => {}
            // A fault ends the run, unless it is one inside a block, which is then not entered.
            Touch::Closes if read.is_err() && self.atomic(t, step.source.index()) => {}
            Touch::Closes => self.closes(next, t, step, label, out),
            Touch::Goes => {
                read?;
                self.arrive(&mut next, t, step.target.index());
                out.push(Next::Go(next, label(Kind::Plain)));
            }
        }
        Ok(())
    }

    /// The access completes the attack; inside an atomic block it does so when that is left.
    fn closes(
        &self,
        mut next: Work,
        t: usize,
        step: &Step,
        label: impl Fn(Kind) -> Label,
        out: &mut Vec<Next>,
    ) {
        let label = label(Kind::Conflict);
        if self.atomic(t, step.source.index()) {
            next.leave(&self.shape);
            self.arrive(&mut next, t, step.target.index());
            out.push(Next::Go(next, label));
        } else {
            out.push(Next::Success(label));
        }
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
        label: impl Fn(Kind) -> Label,
        out: &mut Vec<Next>,
    ) -> Result<(), Stuck> {
        let c = self.address(state, t, place)?;
        let v = self.eval(state, t, value)?;
        let v = admit(self.plan.instance.cells[c].ty, v)?;
        let word = self.values.encode(v);
        let target = step.target.index();
        let attacking = state.phase() == Phase::Delaying && state.attacker() == t;
        let pso = self.plan.options.model == MemoryModel::Pso;
        let starts = state.phase() == Phase::Before && !self.inside(state, t);
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
            if !pso || !overtakes {
                return Ok(());
            }
            self.commit(state, c, Some(word), label(Kind::Commit), out);
        }
        let mut next = state.clone();
        next.set_memory(&self.shape, c, word);
        match self.touch(state, &mut next, t, c, WRITTEN) {
            Touch::Not => {}
            Touch::Closes => self.closes(next, t, step, label, out),
            Touch::Goes => {
                self.arrive(&mut next, t, target);
                out.push(Next::Go(next, label(Kind::Plain)));
            }
        }
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
                || (others.into_iter()).any(|u| plan[u].touches[state.location(u)].has(c)))
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
        let plan = &self.plan.threads;
        let others = || (0..plan.len()).filter(|u| *u != me);
        let of = |u: usize, write: bool, c: usize| {
            let set = if write {
                &plan[u].writes
            } else {
                &plan[u].touches
            };
            set[state.location(u)].has(c)
        };
        if !others().any(|u| of(u, stored.is_none(), c)) {
            return;
        }
        let touched = self.is_race() || others().any(|u| of(u, false, state.delayed()));
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

    /// Accounts for an access after the load.
    fn touch(&self, state: &Work, next: &mut Work, t: usize, c: usize, access: u32) -> Touch {
        let shape = &self.shape;
        if state.phase() != Phase::Committed {
            return Touch::Goes;
        }
        let mark = state.mark(shape, c);
        let conflict = mark == WRITTEN || (mark == READ && access == WRITTEN);
        let inside = self.inside(state, t);
        if self.is_race() {
            // Inside a unit the store may still come.
            return match (conflict, inside) {
                (true, _) => Touch::Closes,
                (false, true) => Touch::Goes,
                (false, false) => Touch::Not,
            };
        }
        let s = state.delayed();
        if !state.flag(t) {
            if conflict {
                next.set_flag(t);
                if inside {
                    next.set_debt(false);
                    if next.merge_foot(shape, s) {
                        return Touch::Closes;
                    }
                }
            } else if inside && state.debt() {
                next.raise_foot(shape, c, access);
                return Touch::Goes;
            } else {
                return Touch::Not;
            }
        }
        next.raise_mark(shape, c, access);
        match c == s {
            true => Touch::Closes,
            false => Touch::Goes,
        }
    }

    /// Moves the thread on and forgets the registers it will not read again.
    fn arrive(&self, next: &mut Work, t: usize, target: usize) {
        next.set_location(t, target);
        for r in &self.plan.threads[t].dead[target] {
            next.set_register(&self.shape, t, *r as usize, 0);
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
            wattle_model::ArithmeticError::DivisionByZero
            | wattle_model::ArithmeticError::ShiftOutOfRange => Stuck::Fault,
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
