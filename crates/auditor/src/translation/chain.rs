//! Chains of the program, each matched by transitions of the system.
//!
//! A list of steps is run over symbols; where it ends between two stops and no transition does just
//! that, every way to go on is tried, if the chain may go on there.

use super::super::AuditError;
use super::super::symbols::{Path, Symbols, Value};
use super::system::Related;
use super::table::Table;
use super::world::Actor;
use super::{Validator, Variable, between};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wattle_logic::{Formula, Term, Var, and, eq, ge, lt, not};
use wattle_memory::rules::{Stuck, enabled, perform};
use wattle_model::array::{self, FenceKind};
use wattle_model::graph::Action;
use wattle_model::{FamilyId, Fence, LocationId, RegionId, RegisterId, Span, StepId, Type};

/// Where a chain leads.
#[derive(Clone, Debug)]
pub struct Reached {
    pub start: LocationId,
    pub location: LocationId,
    pub registers: Vec<Term>,
    pub writes: Vec<(RegionId, Term, Term)>,
    /// The buffer was empty.
    pub needs_empty: bool,
    pub fenced: bool,
    /// Stores reached memory at once.
    pub atomic: bool,
}

/// How the last step of a list ends.
enum End {
    /// It is not possible, or one before it is not, or was a fault.
    Never,
    Fault {
        needs_empty: bool,
    },
    Reached(Reached),
    Refused(String),
}

/// What the system does for the end of a chain.
enum Matched {
    /// One of its transitions leads there.
    Leads,
    /// Nobody gets there, or the system is bad before.
    Never,
    Not,
}

/// A thread at a location, about to take a chain of steps.
pub struct Chains<'t> {
    pub family: FamilyId,
    pub start: LocationId,
    pub me: Term,
    before: Vec<Term>,
    pub d: Symbols,
    pub table: Table<'t>,
    /// The value that a step chooses as the n-th of its list.
    chosen: BTreeMap<(usize, StepId), Var>,
    ends: BTreeSet<LocationId>,
}

/// A chain longer than this is not followed.
const LONGEST: usize = 64;

impl<'a> Validator<'a> {
    /// From every location at which a thread of the family may stop.
    pub fn family(&mut self, family: FamilyId) -> Result<(), AuditError> {
        let entry = self.program.family(family).entry;
        let mut seen = BTreeSet::from([entry]);
        let mut work = VecDeque::from([entry]);
        while let Some(start) = work.pop_front() {
            let mut d = Symbols::default();
            let mut table = Table::new(self.program, self.relation, &mut d);
            let me = table.thread(&mut d, family);
            let place = table.location(&mut d, family, &me);
            table.know(eq(place, start.index() as i64));
            let registers = 0..self.program.family(family).registers.len();
            let before: Vec<Term> = registers
                .map(|r| {
                    let id = Variable::Register(family, RegisterId::new(r));
                    table.value(&mut d, id, &me)
                })
                .collect();
            for (r, value) in before.iter().enumerate() {
                table.know(self.within(family, start, RegisterId::new(r), value));
            }
            let mut chains = Chains {
                family,
                start,
                me,
                before,
                d,
                table,
                chosen: BTreeMap::new(),
                ends: BTreeSet::new(),
            };
            for step in self.outgoing(family, start) {
                self.chain(&mut chains, &mut vec![step])?;
            }
            let new = chains.ends.into_iter().filter(|l| seen.insert(*l));
            work.extend(new.collect::<Vec<_>>());
        }
        Ok(())
    }

    fn outgoing(&self, family: FamilyId, at: LocationId) -> Vec<StepId> {
        let steps = self.program.family(family).steps.iter().enumerate();
        let here = steps.filter(|(_, s)| s.source == at);
        here.map(|(i, _)| StepId::new(i)).collect()
    }

    /// Everything that the steps may do, from the last of them on, is matched.
    fn chain(&mut self, c: &mut Chains<'a>, steps: &mut Vec<StepId>) -> Result<(), AuditError> {
        self.go_on()?;
        let family = self.program.family(c.family);
        let last = &family.steps[steps[steps.len() - 1].index()];
        let mut open = Vec::new();
        for Path { when, then } in self.run(c, steps)? {
            if when.contains(&Formula::False) {
                continue;
            }
            match then {
                End::Never => {}
                End::Refused(why) => return self.refused(last.span, &why),
                End::Fault { needs_empty } => {
                    if !self.breaks(c, when, needs_empty)? {
                        return self.unmatched(last.span, "a fault that the system does not know");
                    }
                }
                End::Reached(end) => open.push((when, end)),
            }
        }
        let inside = self.inside(c.family, steps);
        if !inside {
            let mut rest = Vec::new();
            for (when, end) in open {
                if !self.appears(c, steps, end.location) {
                    rest.push((when, end));
                    continue;
                }
                match self.matched(c, &when, &end, last.span)? {
                    Matched::Leads => {
                        c.ends.insert(end.location);
                    }
                    Matched::Never => {}
                    Matched::Not => rest.push((when, end)),
                }
            }
            open = rest;
        }
        if open.is_empty() {
            return Ok(());
        }
        let more = self.outgoing(c.family, last.target);
        if inside && more.is_empty() {
            return Ok(());
        }
        if steps.len() >= LONGEST || !(inside || self.goes_on(c, steps)) {
            return self.unmatched(
                last.span,
                "no transition of the system does what this step does",
            );
        }
        if !inside && !self.unnoticed(c.family, steps) {
            self.never_stuck(c, steps, &more, &open, last.span)?;
        }
        for step in more {
            steps.push(step);
            self.chain(c, steps)?;
            steps.pop();
        }
        Ok(())
    }

    /// Whether the list ends inside an atomic block.
    fn inside(&self, family: FamilyId, steps: &[StepId]) -> bool {
        let actions = steps
            .iter()
            .map(|s| &self.program.family(family).steps[s.index()].action);
        let section = actions.fold(None, |inside, a| a.section_after(inside));
        section.is_some()
    }

    /// Whether a chain may end at the location: what it left out of sight had those labels, too, of
    /// which the property wants the absence.
    fn appears(&self, c: &Chains<'_>, steps: &[StepId], at: LocationId) -> bool {
        let between = (1..steps.len()).filter(|n| !self.inside(c.family, &steps[..*n]));
        let family = self.program.family(c.family);
        let mut between = between.map(|n| family.steps[steps[n].index()].source);
        between.all(|l| self.absent(c.family, l) == self.absent(c.family, at))
    }

    /// Whether a chain may go on where it is: only local steps follow, nobody looks, and it has not
    /// been there.
    fn goes_on(&self, c: &Chains<'_>, steps: &[StepId]) -> bool {
        let family = self.program.family(c.family);
        let at = family.steps[steps[steps.len() - 1].index()].target;
        let outside: Vec<LocationId> = (0..steps.len())
            .filter(|n| !self.inside(c.family, &steps[..*n]))
            .map(|n| family.steps[steps[n].index()].source)
            .collect();
        let mut next = self.outgoing(c.family, at).into_iter().peekable();
        let watched = self.absent(c.family, at) == self.absent(c.family, c.start);
        !outside.contains(&at)
            && !self.observed(c.family, at)
            && watched
            && next.peek().is_some()
            && next.all(|s| self.local(c.family, &family.steps[s.index()].action))
    }

    fn local(&self, family: FamilyId, action: &wattle_model::program::Action) -> bool {
        match action {
            Action::Skip | Action::Assume(_) => true,
            Action::Assign { register, .. } => !self.register_observed(family, *register),
            Action::Havoc { .. }
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => false,
        }
    }

    /// Whether nobody can tell that the steps were taken.
    fn unnoticed(&self, family: FamilyId, steps: &[StepId]) -> bool {
        let actions = steps
            .iter()
            .map(|s| &self.program.family(family).steps[s.index()].action);
        actions.into_iter().all(|a| match a {
            Action::Skip | Action::Assume(_) | Action::Assert { .. } => true,
            Action::Fence(Fence::Full) | Action::AtomicBegin(_) | Action::AtomicEnd => true,
            Action::Assign { register, .. }
            | Action::Havoc { register, .. }
            | Action::Load { register, .. } => !self.register_observed(family, *register),
            Action::Store { .. } | Action::Fence(Fence::Store) | Action::Lock | Action::Unlock => {
                false
            }
        })
    }

    /// Wherever the steps lead, one of the next is enabled.
    fn never_stuck(
        &mut self,
        c: &mut Chains<'a>,
        steps: &mut Vec<StepId>,
        more: &[StepId],
        open: &[(Vec<Formula>, Reached)],
        span: Span,
    ) -> Result<(), AuditError> {
        let mut ways = Vec::new();
        for step in more {
            steps.push(*step);
            for Path { when, then } in self.run(c, steps)? {
                match then {
                    End::Never | End::Refused(_) => {}
                    End::Fault { .. } | End::Reached(_) => ways.push(not(&and(when))),
                }
            }
            steps.pop();
        }
        for (when, _) in open {
            let query = [when.clone(), ways.clone()].concat();
            if !self.impossible(&c.table, &c.d, query)? {
                return self.unmatched(
                    span,
                    "what was done here could be seen, and the thread be stuck",
                );
            }
        }
        Ok(())
    }

    /// Runs the steps over symbols.
    fn run(&mut self, c: &mut Chains<'a>, steps: &[StepId]) -> Result<Vec<Path<End>>, AuditError> {
        let family = self.program.family(c.family);
        for (n, s) in steps.iter().enumerate() {
            if let Action::Havoc { register, range } = &family.steps[s.index()].action
                && !c.chosen.contains_key(&(n, *s))
            {
                let v = c.d.fresh();
                c.chosen.insert((n, *s), v);
                let ty = c.table.type_of(Variable::Register(c.family, *register));
                let bounds = range.or(ty.bounds()).map(|(lo, hi)| (Some(lo), Some(hi)));
                c.table.know(match (range, ty) {
                    (None, Type::Thread(f)) => {
                        let most = c.table.counts[f.index()].clone();
                        and([ge(v, -1), lt(v, most)])
                    }
                    (_, Type::Thread(_) | Type::Int | Type::Range { .. } | Type::Wrap { .. }) => {
                        between(bounds.unwrap_or_default(), &v.into())
                    }
                });
            }
        }
        let validator = &*self;
        let (table, me, before, chosen) = (&mut c.table, &c.me, &c.before, &c.chosen);
        let (of, start) = (c.family, c.start);
        let paths = c.d.explore(|d| {
            let mut actor = Actor::new(validator, &mut *table, of, me);
            actor.registers = before.iter().cloned().map(Value::Number).collect();
            for (n, s) in steps.iter().enumerate() {
                let action = &family.steps[s.index()].action;
                if !enabled(d, &actor, action) {
                    return End::Never;
                }
                let value = chosen.get(&(n, *s)).map(|v| Value::from(*v));
                match perform(d, &mut actor, action, value) {
                    Ok(()) => {}
                    Err(Stuck::Fault(_)) if n + 1 < steps.len() => return End::Never,
                    Err(Stuck::Fault(_)) => {
                        let needs_empty = actor.needs_empty.get();
                        return End::Fault { needs_empty };
                    }
                    Err(Stuck::Full) => return End::Refused("a buffer is full".into()),
                    Err(Stuck::Refused(why)) => return End::Refused(why.0),
                }
            }
            let atomic = validator.inside(of, &steps[..1]);
            let last = &family.steps[steps[steps.len() - 1].index()];
            End::Reached(Reached {
                start,
                location: last.target,
                registers: actor.registers.into_iter().map(|v| d.term(v)).collect(),
                writes: actor.writes,
                needs_empty: actor.needs_empty.get(),
                fenced: actor.fenced,
                atomic,
            })
        });
        Ok(paths?)
    }

    /// The system with the chain's thread for the first parameter, and others.
    fn view<'r>(
        &'r self,
        (family, me): (FamilyId, &Term),
        (table, d): (&'r mut Table<'a>, &'r mut Symbols),
        others: Vec<Term>,
    ) -> Related<'r, 'a, 'a> {
        let me = table.number(family, me);
        Related::new(self, table, d, [vec![me], others].concat())
    }

    /// Whether the chain's end is reached by a transition, wherever its condition holds.
    fn matched(
        &mut self,
        c: &mut Chains<'a>,
        when: &[Formula],
        end: &Reached,
        span: Span,
    ) -> Result<Matched, AuditError> {
        let mut query = when.to_vec();
        for t in self.transitions(c) {
            self.go_on()?;
            for others in self.names(c, t) {
                let mut view = self.view((c.family, &c.me), (&mut c.table, &mut c.d), others);
                match view.leads(t, c.family, &c.me, end) {
                    Ok(Formula::False) => {}
                    Ok(leads) => query.push(not(&leads)),
                    Err(why) => return self.refused(span, &why),
                }
            }
        }
        // Where nobody stops, nobody starts.
        let matched = match query.len() > when.len() {
            true => Matched::Leads,
            false => Matched::Never,
        };
        if self.impossible(&c.table, &c.d, query.clone())? {
            return Ok(matched);
        }
        query.extend(self.not_bad(c, end.needs_empty));
        Ok(match self.impossible(&c.table, &c.d, query)? {
            true => matched,
            false => Matched::Not,
        })
    }

    /// Whether a fault breaks the thread in the system, or the state is bad already.
    fn breaks(
        &mut self,
        c: &mut Chains<'a>,
        mut when: Vec<Formula>,
        needs_empty: bool,
    ) -> Result<bool, AuditError> {
        when.extend(self.not_bad(c, needs_empty));
        self.impossible(&c.table, &c.d, when)
    }

    /// That the system cannot break the thread here and the state is not bad. Where this is false the
    /// system has something bad, whatever the program does.
    fn not_bad(&self, c: &mut Chains<'a>, needs_empty: bool) -> Vec<Formula> {
        let mut all = Vec::new();
        // Whether it is bad that a thread is broken, whatever else is so.
        let mut view = self.view((c.family, &c.me), (&mut c.table, &mut c.d), Vec::new());
        view.broken = true;
        let mut alone = self.system.bad.iter().filter(|b| b.params.len() == 1);
        let told = alone.any(|b| view.formula(&b.body) == Ok(Formula::True));
        for t in self.transitions(c) {
            let empty = self.system.is_atomic(t) || t.fence == Some(FenceKind::Full);
            if !told || (empty && !needs_empty) {
                continue;
            }
            for others in self.names(c, t) {
                let mut view = self.view((c.family, &c.me), (&mut c.table, &mut c.d), others);
                // What cannot be read does not break anybody.
                if let Ok(true) = view.breaks(t)
                    && let Ok(guard) = view.formula(&t.guard)
                {
                    all.push(not(&and([view.different(), guard])));
                }
            }
        }
        // The thread's view of memory is not memory.
        let weak = |a: &array::Access| self.system.cell(a.cell).weak;
        for bad in &self.system.bad {
            let mut sees = false;
            bad.body.for_each_access(&mut |a| sees |= weak(a));
            // Others are nobody's fault.
            if sees || bad.params.len() > 1 {
                continue;
            }
            let mut view = self.view((c.family, &c.me), (&mut c.table, &mut c.d), Vec::new());
            if let Ok(f) = view.formula(&bad.body) {
                all.push(not(&f));
            }
        }
        all.retain(|f| *f != Formula::True);
        all
    }
}
