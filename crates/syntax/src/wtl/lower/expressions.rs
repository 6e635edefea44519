//! Expressions of threads. Reading shared memory is a step into a temporary, left to right;
//! `&&`, `||` and `?:` whose later parts read memory become branches, so that nothing is read that C
//! would not read.

use super::super::ast::{Ex, ExKind, Name};
use super::names::{LOCAL, Value, computed, constant};
use super::refuse;
use super::statements::Body;
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
            Some(c) => Meaning::Constant(Value::named(*c)),
            None => Meaning::Unknown,
        }
    }

    fn unknown<T>(&mut self, name: &Name) -> Option<T> {
        let own = self.register_ids.keys().chain(self.constants.keys());
        let own = own.map(String::as_str);
        let d = refuse::unknown(&self.lowering.names, name, own, self.lowering.report);
        self.refuse(d)
    }

    /// Whether evaluating takes steps.
    pub(super) fn reads(&self, e: &Ex) -> bool {
        let own = match &e.kind {
            ExKind::Name(name, _) => matches!(self.meaning(&name.text), Meaning::Region(..)),
            ExKind::Memory(_) | ExKind::Cas(..) | ExKind::Swap(..) | ExKind::FetchAdd(..) => true,
            _ => false,
        };
        own || e.parts().into_iter().any(|e| self.reads(e))
    }

    /// Whether its truth takes branches, which `!` only exchanges.
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
        match &e.kind {
            ExKind::SelfIndex => Some(Value::spelled(Expr::Atom(Local::SelfIndex))),
            ExKind::Count(_) | ExKind::AddressOf(..) => {
                let index = e.parts().first().and_then(|i| self.value(i));
                let lowering = &mut *self.lowering;
                lowering.names.outside(e, index, LOCAL, lowering.report)
            }
            ExKind::Name(name, None) => match self.meaning(&name.text) {
                Meaning::Constant(v) => {
                    self.lowering.spend(u64::from(v.named));
                    Some(v)
                }
                Meaning::Register(r) => Some(Value::spelled(Expr::Atom(Local::Register(r)))),
                Meaning::Region(..) => self.load(e),
                Meaning::Unknown => self.unknown(name),
            },
            ExKind::Name(_, Some(_)) | ExKind::Memory(_) => self.load(e),
            _ if self.branches(e) => self.chosen(e.span, e, None),
            ExKind::Ite(c, a, b) if self.reads(a) || self.reads(b) => {
                self.chosen(e.span, c, Some((a, b)))
            }
            ExKind::Number(_) | ExKind::Unary(..) | ExKind::Binary(..) | ExKind::Ite(..) => {
                computed(e, |e| self.value(e))
            }
            ExKind::Cas(..) | ExKind::Swap(..) | ExKind::FetchAdd(..) => self.exchange(e, None),
            // Not read outside of formulas.
            ExKind::Later(..) | ExKind::Between(..) => self.refuse(refuse::speaks_of_runs(e)),
            ExKind::Field(name, ..) | ExKind::Seen(name, ..) | ExKind::At(name, ..) => {
                self.refuse(refuse::looks_into(e, name))
            }
        }
    }

    /// A place in memory, after the steps its index takes. Reports what is none.
    pub(super) fn place(&mut self, e: &Ex) -> Option<Place> {
        let (name, index) = match &e.kind {
            ExKind::Memory(address) => return Some(Place::Memory(self.value(address)?.expr)),
            ExKind::Name(name, index) => (name, index),
            _ => return self.refuse(refuse::no_place(e)),
        };
        let wrong = match (self.meaning(&name.text), index) {
            (Meaning::Region(r, true), Some(i)) => {
                return Some(Place::Region(r, self.value(i)?.expr));
            }
            (Meaning::Region(r, false), None) => return Some(Place::Region(r, Expr::Const(0))),
            (Meaning::Unknown, _) => return self.unknown(name),
            (Meaning::Region(_, array), _) => refuse::element(e.span, name, array),
            (Meaning::Register(_), Some(_)) => refuse::register_element(e.span, name),
            (Meaning::Register(_) | Meaning::Constant(_), _) => refuse::not_shared(e.span, name),
        };
        self.refuse(wrong)
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

    /// What must be branched on, in a temporary: one of the two values, or whether the condition is true.
    fn chosen(&mut self, span: Span, c: &Ex, values: Option<(&Ex, &Ex)>) -> Option<Value> {
        let ty = values.map_or(Type::BOOL, |(a, b)| either(self.guess(a), self.guess(b)));
        let register = self.temporary(ty);
        let (yes, no) = (self.graph.fresh(), self.graph.fresh());
        let join = self.graph.fresh();
        self.branch(c, yes, no)?;
        let (a, b) = values.unzip();
        for (at, value, truth) in [(yes, a, 1), (no, b, 0)] {
            self.at = at;
            let mark = self.temporaries.mark();
            let value = match value {
                Some(e) => self.value(e)?.expr,
                None => Expr::Const(truth),
            };
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
        yes: super::graph::Node,
        no: super::graph::Node,
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
