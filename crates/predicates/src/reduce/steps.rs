//! The moves of the reduced system: steps of threads, and drains.

use super::expr::NO_WRAP;
use super::expr::{Cases, Unfit, truth, values};
use super::ranges::Interval;
use super::{Cause, Move, Next, Shape, Slot, System, admits, inside};
use std::cell::Cell;
use wattle_logic::{Formula, Term, Var, and, eq, ge, gt, le, lt, not, or};
use wattle_memory::MemoryModel;
use wattle_memory::reference::MAX_CHOICE;
use wattle_model::graph::{Action, Section};
use wattle_model::instance::Address;
use wattle_model::{CellId, Fence, RegisterId, StepId, ThreadId, Type};

/// A value that may wrap around more often than this is refused.
const MAX_ROUNDS: i64 = 4;

/// Arrays longer than this are refused where an index is computed: each element is a case.
const MAX_ARRAY: u32 = 64;

impl System<'_> {
    /// Every move that leaves the shape.
    pub fn moves(&self, shape: &Shape) -> Result<Vec<Move>, Unfit> {
        let mut moves = Vec::new();
        let alone = self.alone(shape);
        for t in self.instance.thread_ids() {
            if alone.is_some_and(|a| a != t) {
                continue;
            }
            let at = shape.locations[t.index()];
            for &s in self.instance.thread(t).outgoing(at) {
                self.step(shape, t, s, &mut moves)?;
            }
            if shape.holder.is_none_or(|h| h == t) {
                self.drains(shape, t, &mut moves);
            }
        }
        moves.retain(|m| m.guard != Formula::False);
        Ok(moves)
    }

    fn drains(&self, shape: &Shape, t: ThreadId, moves: &mut Vec<Move>) {
        let slots = &shape.pending[t.index()].slots;
        let blur = self.blur_of(t);
        for (i, slot) in slots.iter().enumerate() {
            let may = match self.model {
                MemoryModel::Tso if blur.is_none() => i == 0,
                MemoryModel::Sc | MemoryModel::Tso | MemoryModel::Pso => {
                    slot.epoch == slots[0].epoch && slots[..i].iter().all(|s| s.cell != slot.cell)
                }
            };
            if !may {
                continue;
            }
            let mut add = |guard: Formula, updates: Vec<(Var, Term)>, next: Shape| {
                moves.push(Move {
                    thread: t,
                    cause: Cause::Drain(i, slot.cell),
                    guard,
                    updates,
                    next: Next::To(next),
                    case: 0,
                });
            };
            if let Some(blur) = blur {
                let value = Term::from(self.choice());
                let range = inside(self.ranges.cells[slot.cell.index()], &value);
                for class in (0..u32::BITS).filter(|n| slot.before & 1 << n != 0) {
                    let among = inside(blur.class(slot.cell, class as usize), &value);
                    let guard = and([range.clone(), among]);
                    let updates = vec![(self.cell(slot.cell), value.clone())];
                    add(guard, updates, shape.clone());
                }
            }
            let mut next = shape.clone();
            let pending = &mut next.pending[t.index()];
            pending.slots.remove(i);
            if let Some(oldest) = pending.slots.first().map(|s| s.epoch) {
                pending.slots.iter_mut().for_each(|s| s.epoch -= oldest);
            } else {
                pending.fenced = false;
            }
            let mut updates = vec![(self.cell(slot.cell), self.entry(t, i).into())];
            for j in i + 1..slots.len() {
                updates.push((self.entry(t, j - 1), self.entry(t, j).into()));
            }
            add(Formula::True, updates, next);
        }
    }

    pub(super) fn step(
        &self,
        shape: &Shape,
        t: ThreadId,
        s: StepId,
        moves: &mut Vec<Move>,
    ) -> Result<(), Unfit> {
        let thread = self.instance.thread(t);
        let step = thread.step(s);
        let me = t.index();
        let pending = &shape.pending[me];
        let quiet = pending.slots.is_empty();
        let may_access = shape.holder.is_none_or(|h| h == t);
        let mut next = shape.clone();
        next.locations[me] = step.target;
        let leaf = self.read(|r: &RegisterId| Ok(Term::from(self.register(t, *r))));
        let case = Cell::new(0);
        let mut add = |guard: Formula, updates: Vec<(Var, Term)>, next: Next| {
            let chooses = matches!(step.action, Action::Havoc { .. });
            moves.push(Move {
                thread: t,
                cause: Cause::Step(s, chooses),
                guard,
                updates,
                next,
                case: case.get(),
            });
            case.set(case.get() + 1);
        };
        match &step.action {
            Action::Skip | Action::AtomicEnd => add(Formula::True, vec![], Next::To(next)),
            Action::Fence(Fence::Store) => {
                if self.model == MemoryModel::Pso {
                    next.pending[me].fenced = !quiet;
                }
                add(Formula::True, vec![], Next::To(next));
            }
            Action::Fence(Fence::Full) if quiet => add(Formula::True, vec![], Next::To(next)),
            Action::AtomicBegin(section)
                if (quiet || *section == Section::Buffered) && may_access =>
            {
                add(Formula::True, vec![], Next::To(next));
            }
            Action::Lock if quiet && shape.holder.is_none() => {
                next.holder = Some(t);
                add(Formula::True, vec![], Next::To(next));
            }
            Action::Unlock if quiet && shape.holder == Some(t) => {
                next.holder = None;
                add(Formula::True, vec![], Next::To(next));
            }
            Action::Fence(Fence::Full) | Action::AtomicBegin(_) | Action::Lock | Action::Unlock => {
            }
            Action::Assume(e) => add(truth(e, &leaf)?, vec![], Next::To(next)),
            Action::Assert { condition, .. } => {
                let holds = truth(condition, &leaf)?;
                add(not(&holds), vec![], Next::Fault);
                add(holds, vec![], Next::To(next));
            }
            Action::Assign { register, value } => {
                let ty = thread.registers[register.index()].ty;
                let cases = values(value, &leaf)?;
                self.set(self.register(t, *register), ty, cases, next, &mut add)?;
            }
            Action::Havoc { register, range } => {
                let reg = &thread.registers[register.index()];
                let (lo, hi) = match range.or(reg.ty.bounds()) {
                    Some((lo, hi)) if hi.abs_diff(lo) < MAX_CHOICE => (lo, hi),
                    _ => {
                        let why = format!("`{}` may take too many values", reg.name);
                        let hint = "a choice from a range, as in `choose(0..9)`, would work";
                        return Err(Unfit::new(why, hint));
                    }
                };
                let c = self.choice();
                let cases = vec![(and([ge(c, lo), le(c, hi)]), Term::from(c))];
                self.set(self.register(t, *register), reg.ty, cases, next, &mut add)?;
            }
            Action::Load { .. } if !may_access => {}
            Action::Load { register, place } => {
                let (cells, outside) = self.place(t, place)?;
                add(outside, vec![], Next::Fault);
                let ty = thread.registers[register.index()].ty;
                for (guard, cell) in cells {
                    let newest = pending.slots.iter().rposition(|s| s.cell == cell);
                    let from = newest.map_or(self.cell(cell), |i| self.entry(t, i));
                    let cases = vec![(guard, Term::from(from))];
                    let to = self.register(t, *register);
                    // What a cell of the type holds is a value of the type.
                    let same = ty == self.instance.cell(cell).ty;
                    let wraps = matches!(ty, Type::Wrap { .. });
                    let ty = if same && wraps { Type::Int } else { ty };
                    self.set(to, ty, cases, next.clone(), &mut add)?;
                }
            }
            Action::Store { place, value } => {
                if self.model == MemoryModel::Sc && !may_access {
                    return Ok(());
                }
                let direct = self.model == MemoryModel::Sc || thread.direct[step.source.index()];
                let (cells, outside) = self.place(t, place)?;
                add(outside, vec![], Next::Fault);
                let value = values(value, &leaf)?;
                for (guard, cell) in cells {
                    let ty = self.instance.cell(cell).ty;
                    let cases = value.iter();
                    let cases: Cases = cases
                        .map(|(g, v)| (and([g.clone(), guard.clone()]), v.clone()))
                        .collect();
                    if direct {
                        self.set(self.cell(cell), ty, cases, next.clone(), &mut add)?;
                    } else {
                        self.put((t, &case), cell, ty, cases, &next, &mut add)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// `to` takes one of the values, if its type admits it.
    fn set(
        &self,
        to: Var,
        ty: Type,
        cases: Cases,
        next: Shape,
        add: &mut dyn FnMut(Formula, Vec<(Var, Term)>, Next),
    ) -> Result<(), Unfit> {
        for (guard, value) in self.wrapped(ty, cases)? {
            let fits = admits(ty, &value);
            add(and([guard.clone(), not(&fits)]), vec![], Next::Fault);
            let guard = and([guard, fits]);
            add(guard, vec![(to, value)], Next::To(next.clone()));
        }
        Ok(())
    }

    /// What a type that wraps around keeps of the values, by how often they went round.
    pub(super) fn wrapped(&self, ty: Type, cases: Cases) -> Result<Cases, Unfit> {
        let Type::Wrap { bits, .. } = ty else {
            return Ok(cases);
        };
        let far = || Unfit::new("a value wraps around too often to follow", NO_WRAP);
        let (lo, hi) = ty.bounds().filter(|_| bits < 63).ok_or_else(far)?;
        let size = 1i64 << bits;
        let mut out = Vec::new();
        for (guard, value) in cases {
            let within = self.interval_of(&value);
            let (least, most) = within.lo.zip(within.hi).ok_or_else(far)?;
            let round = |of: i64| Some(of.checked_sub(lo)?.div_euclid(size));
            let (first, last) = round(least).zip(round(most)).ok_or_else(far)?;
            if last - first >= MAX_ROUNDS {
                return Err(far());
            }
            for round in first..=last {
                let value = value.clone() - size.checked_mul(round).ok_or_else(far)?;
                let here = and([ge(value.clone(), lo), le(value.clone(), hi)]);
                out.push((and([guard.clone(), here]), value));
            }
        }
        Ok(out)
    }

    /// What every value of the term keeps to.
    fn interval_of(&self, term: &Term) -> Interval {
        let mut sum = Interval::exactly(term.constant_part().to_i64());
        for (v, k) in term.coeffs() {
            let of = self.interval_of_variable(*v).times(k.to_i64());
            sum = sum.plus(of);
        }
        sum
    }

    fn put(
        &self,
        (t, case): (ThreadId, &Cell<u32>),
        cell: CellId,
        ty: Type,
        cases: Cases,
        next: &Shape,
        add: &mut dyn FnMut(Formula, Vec<(Var, Term)>, Next),
    ) -> Result<(), Unfit> {
        let pending = &next.pending[t.index()];
        let slots = &pending.slots;
        let per_cell = self.model == MemoryModel::Pso;
        let held = slots.iter().filter(|s| !per_cell || s.cell == cell).count();
        let full = held >= self.bounds[t.index()].0;
        let newest = slots.last().map_or(0, |s| s.epoch);
        let slot = Slot {
            epoch: newest + u32::from(per_cell && pending.fenced && !slots.is_empty()),
            cell,
            before: 0,
        };
        let at = match per_cell {
            true => slots.partition_point(|s| (s.epoch, s.cell) <= (slot.epoch, cell)),
            false => slots.len(),
        };
        let mut after = next.clone();
        after.pending[t.index()].slots.insert(at, slot);
        after.pending[t.index()].fenced = false;
        for (guard, value) in self.wrapped(ty, cases)? {
            let fits = admits(ty, &value);
            add(and([guard.clone(), not(&fits)]), vec![], Next::Fault);
            let guard = and([guard, fits]);
            if let Some(blur) = self.blur_of(t) {
                let entries = slots.iter().enumerate();
                let filling = entries.map(|(i, s)| (*s, Term::from(self.entry(t, i))));
                let fifo = (t.index(), !per_cell);
                let ways = blur.put(fifo, pending, filling.collect(), cell, value);
                for (n, (when, filling)) in ways.into_iter().enumerate() {
                    if n > 0 {
                        case.set(case.get() - 1);
                    }
                    let mut small = next.clone();
                    small.pending[t.index()].slots = filling.iter().map(|(s, _)| *s).collect();
                    small.pending[t.index()].fenced = false;
                    let values = filling.into_iter().enumerate();
                    let mut updates: Vec<_> =
                        values.map(|(i, (_, v))| (self.entry(t, i), v)).collect();
                    updates.retain(|(v, value)| *value != Term::from(*v));
                    add(and([guard.clone(), when]), updates, Next::To(small));
                }
                continue;
            }
            if full {
                add(guard, vec![], Next::Overflow);
                continue;
            }
            let mut updates = vec![(self.entry(t, at), value)];
            for i in at..slots.len() {
                updates.push((self.entry(t, i + 1), self.entry(t, i).into()));
            }
            add(guard, updates, Next::To(after.clone()));
        }
        Ok(())
    }

    /// The cells an address may mean, and when it means none.
    fn place(
        &self,
        t: ThreadId,
        place: &Address,
    ) -> Result<(Vec<(Formula, CellId)>, Formula), Unfit> {
        let (base, length, index) = match place {
            Address::Cell(c) => return Ok((vec![(Formula::True, *c)], Formula::False)),
            Address::Computed {
                base,
                length,
                index,
            } => (base, *length, index),
        };
        if length > MAX_ARRAY {
            let why = format!("it computes an index into more than {MAX_ARRAY} cells");
            let hint = "an array of at most 64 cells would work, or indices that are numbers";
            return Err(Unfit::new(why, hint));
        }
        let leaf = self.read(|r: &RegisterId| Ok(Term::from(self.register(t, *r))));
        let cases = values(index, &leaf)?;
        let mut cells = Vec::new();
        let mut outside = Vec::new();
        for (guard, term) in cases {
            let below = lt(term.clone(), 0);
            let above = gt(term.clone(), i64::from(length) - 1);
            outside.push(and([guard.clone(), or([below, above])]));
            for i in 0..length {
                let here = and([guard.clone(), eq(term.clone(), i64::from(i))]);
                if here != Formula::False {
                    cells.push((here, CellId(base.0 + i)));
                }
            }
        }
        Ok((cells, or(outside)))
    }
}
