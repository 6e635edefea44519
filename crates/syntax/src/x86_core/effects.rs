//! What each instruction does, as steps.

use super::flags::{self, Flag, Flags, Outcome};
use super::instruction::{Instruction, Operand};
use super::lower::Translation;
use super::mnemonic::{Condition, Op};
use super::operands::{Width, temporary};
use super::register::{Base, Name};
use crate::diagnostics::Diagnostic;
use std::collections::BTreeMap;
use wattle_model::program::Action;
use wattle_model::{Expr, Local, Op1, Op2};

impl Translation<'_> {
    /// Instructions without a branch of their own.
    pub(super) fn straight(
        &mut self,
        i: usize,
        x: &Instruction,
    ) -> Result<Vec<Action>, Diagnostic> {
        let w = self.width(x)?;
        let mut actions = Vec::new();
        let locked = x.lock || (x.op == Op::Xchg && x.memory().is_some());
        match (x.op, x.operands.as_slice()) {
            (Op::Mov, [Operand::Register(n, _), Operand::Memory(m)]) => {
                let place = self.place(m);
                if self.whole(*n) || w.exact {
                    let register = self.id(*n);
                    actions.push(Action::Load { register, place });
                } else {
                    let value = self.load(&mut actions, m, w);
                    actions.push(self.assign(*n, value));
                }
            }
            (Op::Mov, [Operand::Memory(m), source]) => {
                let value = self.value(source, w);
                let place = self.place(m);
                actions.push(Action::Store { place, value });
            }
            (Op::Mov, [Operand::Register(n, _), source]) => {
                let value = self.value(source, w);
                actions.push(self.assign(*n, value));
            }
            (Op::Cmp | Op::Test, [a, b]) => {
                let a = self.operand(&mut actions, a, w);
                let b = self.operand(&mut actions, b, w);
                let outcome = match x.op {
                    Op::Cmp => Outcome::Difference(a, b),
                    _ if a == b => Outcome::Logic(a),
                    _ => Outcome::Logic(Expr::binary(Op2::BitAnd, a, b)),
                };
                self.keep_flags(i, x, &outcome, w, None, &mut actions)?;
            }
            (Op::Xchg | Op::UnlockedXchg, [Operand::Register(a, _), Operand::Register(b, _)]) => {
                let t = self.graph.temporary(w.wrap());
                let value = self.read(*a);
                actions.push(Action::Assign { register: t, value });
                let value = self.read(*b);
                actions.push(self.assign(*a, value));
                actions.push(self.assign(*b, temporary(t)));
            }
            (
                Op::Xchg | Op::UnlockedXchg,
                [Operand::Register(n, _), Operand::Memory(m)]
                | [Operand::Memory(m), Operand::Register(n, _)],
            ) => {
                begin(locked, &mut actions);
                let old = self.load(&mut actions, m, w);
                let (value, place) = (self.read(*n), self.place(m));
                actions.push(Action::Store { place, value });
                end(locked, &mut actions);
                actions.push(self.assign(*n, old));
            }
            (Op::Xadd, [Operand::Memory(m), Operand::Register(n, _)]) => {
                begin(locked, &mut actions);
                let old = self.load(&mut actions, m, w);
                let outcome = Outcome::Sum(old.clone(), self.read(*n));
                self.keep_flags(i, x, &outcome, w, None, &mut actions)?;
                self.fused.clear();
                let value = Expr::binary(Op2::Add, old.clone(), self.read(*n));
                let place = self.place(m);
                actions.push(Action::Store { place, value });
                end(locked, &mut actions);
                actions.push(self.assign(*n, old));
            }
            (Op::Xadd, [Operand::Register(a, _), Operand::Register(b, _)]) => {
                let (va, vb) = (self.read(*a), self.read(*b));
                let outcome = Outcome::Sum(va.clone(), vb.clone());
                self.keep_flags(i, x, &outcome, w, None, &mut actions)?;
                self.fused.clear();
                let t = self.graph.temporary(w.wrap());
                let value = Expr::binary(Op2::Add, va.clone(), vb);
                actions.push(Action::Assign { register: t, value });
                actions.push(self.assign(*b, va));
                actions.push(self.assign(*a, temporary(t)));
            }
            (Op::Set(c), [target]) => {
                let value = self.condition(c, &BTreeMap::new());
                match target {
                    Operand::Memory(m) => {
                        let place = self.place(m);
                        actions.push(Action::Store { place, value });
                    }
                    Operand::Register(n, _) => actions.push(self.assign(*n, value)),
                    Operand::Immediate(..) => {}
                }
            }
            (Op::Cmov(c), [Operand::Register(n, _), source]) => {
                let source = self.operand(&mut actions, source, w);
                let taken = self.condition(c, &BTreeMap::new());
                let value = Expr::ite(taken, source, self.read(*n));
                actions.push(self.assign(*n, value));
            }
            (_, [target, rest @ ..]) => self.modify(i, x, w, target, rest.first(), &mut actions)?,
            (_, []) => {}
        }
        Ok(actions)
    }

    /// `add`, `sub`, `and`, `or`, `xor`, `inc`, `dec`, `not`, `neg`.
    pub(super) fn modify(
        &mut self,
        i: usize,
        x: &Instruction,
        w: Width,
        target: &Operand,
        source: Option<&Operand>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Diagnostic> {
        let in_memory = target.memory().is_some();
        let locked = x.lock && in_memory;
        begin(locked, actions);
        let old = self.operand(actions, target, w);
        let other = match source {
            Some(o) => self.operand(actions, o, w),
            None => Expr::Const(1),
        };
        let same = source.is_some() && old == other && !in_memory;
        let binary = |op| Expr::binary(op, old.clone(), other.clone());
        let (value, outcome) = match x.op {
            Op::Xor | Op::Sub if same => (Expr::Const(0), Outcome::Logic(Expr::Const(0))),
            Op::And => (binary(Op2::BitAnd), Outcome::Logic(binary(Op2::BitAnd))),
            Op::Or => (binary(Op2::BitOr), Outcome::Logic(binary(Op2::BitOr))),
            Op::Xor => (binary(Op2::BitXor), Outcome::Logic(binary(Op2::BitXor))),
            Op::Sub | Op::Dec => (
                binary(Op2::Sub),
                Outcome::Difference(old.clone(), other.clone()),
            ),
            Op::Neg => (
                flags::negated(old.clone()),
                Outcome::Difference(Expr::Const(0), old.clone()),
            ),
            Op::Not => {
                let value = Expr::unary(Op1::BitNot, old.clone());
                (value.clone(), Outcome::Logic(value))
            }
            _ => (binary(Op2::Add), Outcome::Sum(old.clone(), other.clone())),
        };
        match target {
            Operand::Memory(m) => {
                let t = self.graph.temporary(w.wrap());
                self.keep_flags(i, x, &outcome, w, Some(temporary(t)), actions)?;
                actions.push(Action::Assign { register: t, value });
                let place = self.place(m);
                actions.push(Action::Store {
                    place,
                    value: temporary(t),
                });
            }
            Operand::Register(n, _) => {
                let result = self.read(*n);
                self.keep_flags(i, x, &outcome, w, Some(result), actions)?;
                actions.push(self.assign(*n, value));
            }
            Operand::Immediate(..) => {}
        }
        end(locked, actions);
        Ok(())
    }

    /// `cmpxchg`: compares the accumulator with the first operand; equal stores the second there,
    /// different loads the first into the accumulator.
    pub(super) fn compare_exchange(&mut self, i: usize, x: &Instruction) -> Result<(), Diagnostic> {
        let w = self.width(x)?;
        let [target, Operand::Register(new, _)] = x.operands.as_slice() else {
            return Ok(());
        };
        let accumulator = Name {
            base: Base::A,
            size: w.size,
            high: false,
        };
        let locked = x.lock && target.memory().is_some();
        let t = self.graph.temporary(w.wrap());
        let mut actions = Vec::new();
        begin(locked, &mut actions);
        match target {
            Operand::Memory(m) => {
                self.load(&mut actions, m, w);
            }
            other => {
                let value = self.value(other, w);
                actions.push(Action::Assign { register: t, value });
            }
        }
        let outcome = Outcome::Difference(self.read(accumulator), temporary(t));
        let live = flags::after(i, &self.live, &self.successors);
        let zero = live.contains(Flag::Zero);
        self.assign_flags(
            live.without(Flags::of(&[Flag::Zero])),
            x,
            &outcome,
            w,
            &mut actions,
        )?;
        let fork = (i, actions.len());
        let next = self.position(i + 1);
        self.graph.chain((i, 0), fork, 1, actions, x.span);
        let equal = Expr::binary(Op2::Eq, self.read(accumulator), temporary(t));
        for success in [true, false] {
            let mut branch = Vec::new();
            let test = if success {
                equal.clone()
            } else {
                equal.clone().negate()
            };
            branch.push(Action::Assume(test));
            if zero {
                branch.push(Action::Assign {
                    register: self.graph.flag(Flag::Zero),
                    value: Expr::Const(i64::from(success)),
                });
            }
            match (target, success) {
                (Operand::Memory(m), true) => {
                    let (place, value) = (self.place(m), self.read(*new));
                    branch.push(Action::Store { place, value });
                }
                (Operand::Memory(m), false) => {
                    if !locked {
                        let place = self.place(m);
                        let value = temporary(t);
                        branch.push(Action::Store { place, value });
                    }
                    branch.push(self.assign(accumulator, temporary(t)));
                }
                (Operand::Register(n, _), true) => {
                    let value = self.read(*new);
                    branch.push(self.assign(*n, value));
                }
                (_, false) => branch.push(self.assign(accumulator, temporary(t))),
                (Operand::Immediate(..), true) => {}
            }
            end(locked, &mut branch);
            let first = fork.1 + if success { 1 } else { 20 };
            self.graph.chain(fork, next, first, branch, x.span);
        }
        Ok(())
    }

    /// Stores the flags that are read later, and hands those the next jump needs to it directly
    /// where possible. `result` is where the result will be; without one nothing is written.
    pub(super) fn keep_flags(
        &mut self,
        i: usize,
        x: &Instruction,
        outcome: &Outcome,
        w: Width,
        result: Option<Expr<Local>>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Diagnostic> {
        let sets = x.op.sets();
        let live = flags::after(i, &self.live, &self.successors);
        let jump = self.code.instructions.get(i + 1);
        let only_here = !self.joined.contains(&(i + 1));
        let mut store = live;
        if let Some(Instruction { op: Op::Jcc(c), .. }) = jump
            && only_here
            && !matches!(x.op, Op::Xadd)
        {
            store = flags::after(i + 1, &self.live, &self.successors);
            for flag in c.needs().iter().filter(|f| sets.contains(*f)) {
                let fused = match &result {
                    Some(r) => outcome.after(flag, r, w.exact),
                    None => outcome.before(flag, w.wrap()),
                };
                match fused {
                    Some(e) => {
                        self.fused.insert(flag, e);
                    }
                    None => store = store.union(Flags::of(&[flag])),
                }
            }
        }
        let store = store.without(Flags::ALL.without(sets));
        self.assign_flags(store, x, outcome, w, actions)
    }

    pub(super) fn assign_flags(
        &mut self,
        store: Flags,
        x: &Instruction,
        outcome: &Outcome,
        w: Width,
        actions: &mut Vec<Action>,
    ) -> Result<(), Diagnostic> {
        for flag in store.iter() {
            let Some(value) = outcome.before(flag, w.wrap()) else {
                return Err(Diagnostic::error(
                    x.span,
                    "mathematical integers have no carry, no overflow and no parity",
                )
                .hint("use signed comparisons, or wrap-around numbers"));
            };
            let register = self.graph.flag(flag);
            actions.push(Action::Assign { register, value });
        }
        Ok(())
    }

    pub(super) fn condition(
        &mut self,
        c: Condition,
        fused: &BTreeMap<Flag, Expr<Local>>,
    ) -> Expr<Local> {
        for flag in c.needs().iter().filter(|f| !fused.contains_key(f)) {
            self.graph.flag(flag);
        }
        c.expr(|flag| match fused.get(&flag) {
            Some(e) => e.clone(),
            None => self.graph.flag_value(flag),
        })
    }
}

fn begin(locked: bool, actions: &mut Vec<Action>) {
    if locked {
        actions.push(Action::AtomicBegin(wattle_model::Section::Drained));
    }
}

fn end(locked: bool, actions: &mut Vec<Action>) {
    if locked {
        actions.push(Action::AtomicEnd);
    }
}
