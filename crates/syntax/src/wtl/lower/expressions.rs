//! Expressions of threads. Reading shared memory is a step into a temporary, left to right;
//! `&&`, `||` and `?:` whose later parts read memory become branches, so that nothing is read that C
//! would not read.

use super::super::ast::{Ex, ExKind, Name};
use super::names::{Value, constant, nearest_sorted};
use super::statements::Body;
use crate::Diagnostic;
use wattle_model::program::Action;
use wattle_model::{Expr, Length, Local, Op1, Op2, Place, RegionId, RegisterId, Span, Type};

/// What a name means inside a thread.
pub(super) enum Meaning {
    Constant(Value),
    Register(RegisterId),
    /// And whether it is an array.
    Region(RegionId, bool),
    Unknown,
}

impl Body<'_, '_> {
    pub(super) fn meaning(&self, name: &str) -> Meaning {
        if let Some(v) = self.constants.get(name) {
            return Meaning::Constant(v.clone());
        }
        if let Some(r) = self.register_ids.get(name) {
            return Meaning::Register(*r);
        }
        if let Some((r, array)) = self.lowering.names.region(name) {
            return Meaning::Region(r, array);
        }
        match self.lowering.names.constants.get(name) {
            Some(c) => Meaning::Constant(Value {
                expr: Expr::Const(*c),
                named: true,
            }),
            None => Meaning::Unknown,
        }
    }

    pub(super) fn unknown(&mut self, name: &Name) {
        let text = &name.text;
        let mut d = if self.lowering.names.families.contains_key(text) {
            Diagnostic::error(name.span, format!("`{text}` is a family of threads"))
                .hint("a thread cannot look into another; share memory instead")
        } else {
            Diagnostic::error(name.span, format!("unknown name `{text}`"))
                .expected("a shared name, a register or a constant")
        };
        if d.hint.is_none() && !self.lowering.report.full() {
            let mut known: Vec<String> = self.lowering.names.known().map(str::to_string).collect();
            known.extend(self.register_ids.keys().cloned());
            known.extend(self.constants.keys().cloned());
            if let Some(n) = nearest_sorted(text, &known) {
                d = d.hint(format!("did you mean `{n}`?"));
            }
        }
        self.lowering.error(d);
    }

    /// Whether evaluating takes steps.
    pub(super) fn reads(&self, e: &Ex) -> bool {
        match &e.kind {
            ExKind::Name(name, index) => {
                matches!(self.meaning(&name.text), Meaning::Region(..))
                    || index.as_ref().is_some_and(|i| self.reads(i))
            }
            ExKind::AddressOf(_, index) => index.as_ref().is_some_and(|i| self.reads(i)),
            ExKind::Memory(_) | ExKind::Cas(..) | ExKind::Swap(..) | ExKind::FetchAdd(..) => true,
            ExKind::Unary(_, a) => self.reads(a),
            ExKind::Binary(_, a, b) => self.reads(a) || self.reads(b),
            ExKind::Later(..) | ExKind::Between(..) => false,
            ExKind::Ite(c, a, b) => self.reads(c) || self.reads(a) || self.reads(b),
            ExKind::Number(_)
            | ExKind::SelfIndex
            | ExKind::Count(_)
            | ExKind::Field(..)
            | ExKind::At(..) => false,
        }
    }

    /// Whether `!e` is better turned into exchanged targets.
    fn branches(&self, e: &Ex) -> bool {
        match &e.kind {
            ExKind::Binary(Op2::And | Op2::Or, _, b) => self.reads(b),
            ExKind::Unary(Op1::Not, a) => self.branches(a),
            _ => false,
        }
    }

    /// The value, after the steps that evaluating it takes. `None` if it was reported as wrong.
    pub(super) fn value(&mut self, e: &Ex) -> Option<Value> {
        if !self.lowering.spend(1) {
            return None;
        }
        Some(match &e.kind {
            ExKind::Number(n) => Value::spelled(Expr::Const(*n)),
            ExKind::SelfIndex => Value::spelled(Expr::Atom(Local::SelfIndex)),
            ExKind::Count(f) => {
                let family = self.lowering.names.family(f, self.lowering.report)?;
                Value::spelled(Expr::Atom(Local::Count(family)))
            }
            ExKind::AddressOf(name, index) => {
                let names = &self.lowering.names;
                let base = names.address(name, index.is_some(), self.lowering.report);
                match index {
                    None => base?,
                    Some(i) => {
                        let i = self.value(i);
                        Value::binary(Op2::Add, base?, i?)
                    }
                }
            }
            ExKind::Name(name, None) => match self.meaning(&name.text) {
                Meaning::Constant(v) => {
                    self.lowering.spend(u64::from(v.named));
                    v
                }
                Meaning::Register(r) => Value::spelled(Expr::Atom(Local::Register(r))),
                Meaning::Region(..) => self.load(e)?,
                Meaning::Unknown => {
                    self.unknown(name);
                    return None;
                }
            },
            ExKind::Name(_, Some(_)) | ExKind::Memory(_) => self.load(e)?,
            ExKind::Unary(Op1::Not, a) if self.branches(a) => self.truth(e)?,
            ExKind::Unary(op, a) => Value::unary(*op, self.value(a)?),
            ExKind::Binary(Op2::And | Op2::Or, _, b) if self.reads(b) => self.truth(e)?,
            ExKind::Binary(op, a, b) => {
                let a = self.value(a);
                let b = self.value(b);
                Value::binary(*op, a?, b?)
            }
            ExKind::Ite(c, a, b) if self.reads(a) || self.reads(b) => {
                self.alternative(e.span, c, a, b)?
            }
            ExKind::Ite(c, a, b) => {
                let c = self.value(c);
                let a = self.value(a);
                let b = self.value(b);
                Value::ite(c?, a?, b?)
            }
            ExKind::Cas(..) | ExKind::Swap(..) | ExKind::FetchAdd(..) => self.exchange(e, None)?,
            // Not read outside of formulas.
            ExKind::Later(..) | ExKind::Between(..) => return None,
            ExKind::Field(name, ..) | ExKind::At(name, ..) => {
                self.lowering.error(
                    Diagnostic::error(e.span, format!("a thread cannot look into `{}`", name.text))
                        .hint("only properties can; share memory instead"),
                );
                return None;
            }
        })
    }

    /// A place in memory, after the steps its index takes. Reports what is none.
    pub(super) fn place(&mut self, e: &Ex) -> Option<Place> {
        match &e.kind {
            ExKind::Memory(address) => Some(Place::Memory(self.value(address)?.expr)),
            ExKind::Name(name, index) => {
                let wrong = match (self.meaning(&name.text), index) {
                    (Meaning::Region(r, true), Some(i)) => {
                        return Some(Place::Region(r, self.value(i)?.expr));
                    }
                    (Meaning::Region(r, false), None) => {
                        return Some(Place::Region(r, Expr::Const(0)));
                    }
                    (Meaning::Unknown, _) => {
                        self.unknown(name);
                        return None;
                    }
                    (Meaning::Region(_, true), None) => Diagnostic::error(
                        e.span,
                        format!("`{}` is an array; which element?", name.text),
                    )
                    .hint(format!("write `{}[0]`", name.text)),
                    (Meaning::Region(_, false), Some(_)) => {
                        Diagnostic::error(e.span, format!("`{}` is not an array", name.text))
                    }
                    (Meaning::Register(_), Some(_)) => Diagnostic::error(
                        e.span,
                        format!(
                            "`{}` is a register; only shared memory has arrays",
                            name.text
                        ),
                    ),
                    (_, _) => {
                        Diagnostic::error(e.span, format!("`{}` is not shared memory", name.text))
                    }
                };
                self.lowering.error(wrong);
                None
            }
            _ => {
                self.lowering.error(
                    Diagnostic::error(e.span, "this is not a place in memory")
                        .expected("a shared name, an element of a shared array, or `*(address)`"),
                );
                None
            }
        }
    }

    pub(super) fn place_type(&self, place: &Place) -> Type {
        let shapes = &self.lowering.names.shapes;
        match place {
            Place::Region(r, _) => shapes.get(r.index()).map_or(Type::Int, |s| s.1),
            Place::Memory(_) => {
                let mut types = shapes.iter().map(|s: &(Length, Type)| s.1);
                let first = types.next().unwrap_or(Type::Int);
                types.fold(first, either)
            }
        }
    }

    pub(super) fn temporary(&mut self, ty: Type) -> RegisterId {
        let (own, names) = (&self.register_ids, &self.lowering.names);
        let taken = |name: &str| {
            own.contains_key(name)
                || names.regions.contains_key(name)
                || names.constants.contains_key(name)
        };
        self.temporaries.take(ty, &mut self.registers, taken)
    }

    fn load(&mut self, e: &Ex) -> Option<Value> {
        let place = self.place(e)?;
        let register = self.temporary(self.place_type(&place));
        self.emit(Action::Load { register, place }, e.span);
        Some(Value::spelled(Expr::Atom(Local::Register(register))))
    }

    /// A condition that must be branched on, as 0 or 1 in a temporary.
    fn truth(&mut self, e: &Ex) -> Option<Value> {
        let result = self.temporary(Type::BOOL);
        let (yes, no) = (self.graph.fresh(), self.graph.fresh());
        let join = self.graph.fresh();
        self.branch(e, yes, no)?;
        for (at, value) in [(yes, 1), (no, 0)] {
            self.at = at;
            let value = Expr::Const(value);
            self.emit_to(
                Action::Assign {
                    register: result,
                    value,
                },
                join,
                e.span,
            );
        }
        self.at = join;
        Some(Value::spelled(Expr::Atom(Local::Register(result))))
    }

    fn alternative(&mut self, span: Span, c: &Ex, a: &Ex, b: &Ex) -> Option<Value> {
        let ty = either(self.guess(a), self.guess(b));
        let register = self.temporary(ty);
        let (yes, no) = (self.graph.fresh(), self.graph.fresh());
        let join = self.graph.fresh();
        self.branch(c, yes, no)?;
        for (at, part) in [(yes, a), (no, b)] {
            self.at = at;
            let mark = self.temporaries.mark();
            let value = self.value(part)?.expr;
            self.temporaries.release(mark);
            self.emit_to(Action::Assign { register, value }, join, span);
        }
        self.at = join;
        Some(Value::spelled(Expr::Atom(Local::Register(register))))
    }

    /// A type that holds every value of the expression, if one is easily seen.
    fn guess(&self, e: &Ex) -> Type {
        match &e.kind {
            ExKind::Number(n) => Type::Range { lo: *n, hi: *n },
            ExKind::Name(name, _) => match self.meaning(&name.text) {
                Meaning::Region(r, _) => self.place_type(&Place::Region(r, Expr::Const(0))),
                Meaning::Register(r) => self.registers[r.index()].ty,
                _ => Type::Int,
            },
            ExKind::Unary(Op1::Not, _) | ExKind::Cas(..) => Type::BOOL,
            ExKind::Unary(Op1::Wrap { bits, signed }, _) => Type::Wrap {
                bits: *bits,
                signed: *signed,
            },
            ExKind::Binary(op, ..) if op.is_logical() => Type::BOOL,
            _ => Type::Int,
        }
    }

    /// Goes to `yes` where the condition is true and to `no` where it is false.
    pub(super) fn branch(
        &mut self,
        e: &Ex,
        yes: super::graph::Place,
        no: super::graph::Place,
    ) -> Option<()> {
        match &e.kind {
            ExKind::Binary(op @ (Op2::And | Op2::Or), a, b) if self.reads(b) => {
                let middle = self.graph.fresh();
                if *op == Op2::And {
                    self.branch(a, middle, no)?;
                } else {
                    self.branch(a, yes, middle)?;
                }
                self.at = middle;
                self.branch(b, yes, no)
            }
            ExKind::Unary(Op1::Not, a) if self.branches(a) => self.branch(a, no, yes),
            _ => {
                let mark = self.temporaries.mark();
                let value = self.value(e)?.expr;
                self.temporaries.release(mark);
                match constant(&value) {
                    Some(c) => self.jump(if c != 0 { yes } else { no }, e.span),
                    None => {
                        let from = self.at;
                        let otherwise = value.clone().negate();
                        self.emit_to(Action::Assume(value), yes, e.span);
                        self.at = from;
                        self.emit_to(Action::Assume(otherwise), no, e.span);
                    }
                }
                Some(())
            }
        }
    }
}

/// A type for values of either type.
fn either(a: Type, b: Type) -> Type {
    if a == b {
        return a;
    }
    match (a.bounds(), b.bounds()) {
        (Some(x), Some(y)) => Type::Range {
            lo: x.0.min(y.0),
            hi: x.1.max(y.1),
        },
        _ => Type::Int,
    }
}
