//! `cas`, `swap` and `fetch_add`: an atomic block of a load and a store. Operands are evaluated
//! before it, left to right.

use super::super::ast::{Ex, ExKind};
use super::names::Value;
use super::statements::Body;
use wattle_model::program::Action;
use wattle_model::{Expr, Local, Op2, Place, RegisterId, Span, Type};

impl Body<'_, '_> {
    /// The old value (`swap`, `fetch_add`) or whether it was exchanged (`cas`). The old value is
    /// read straight into `wanted` if nothing stands against it.
    pub(super) fn exchange(&mut self, e: &Ex, wanted: Option<RegisterId>) -> Option<Value> {
        let (place, operands): (&Ex, Vec<&Ex>) = match &e.kind {
            ExKind::Cas(p, old, new) => (p, vec![old, new]),
            ExKind::Swap(p, v) | ExKind::FetchAdd(p, v) => (p, vec![v]),
            _ => return None,
        };
        let place = self.place(place);
        let values = self.values(operands);
        let (place, values) = (place?, values?);
        let ty = self.place_type(&place);
        let direct = wanted.filter(|r| {
            let own = self.registers[r.index()].ty;
            let fits = own == ty || own == Type::Int;
            let index = match &place {
                Place::Region(_, i) | Place::Memory(i) => i,
            };
            fits && !values.iter().chain([index]).any(|v| mentions(v, *r))
        });
        let register = direct.unwrap_or_else(|| self.temporary(ty));
        let old = || Expr::Atom(Local::Register(register));
        self.enter_atomic(e.span);
        self.emit(
            Action::Load {
                register,
                place: place.clone(),
            },
            e.span,
        );
        let result = match &e.kind {
            ExKind::Cas(..) => {
                let equal = Expr::binary(Op2::Eq, old(), values[0].clone());
                self.store_if(&equal, place, values[1].clone(), e.span);
                equal
            }
            ExKind::FetchAdd(..) => {
                let value = Expr::binary(Op2::Add, old(), values[0].clone());
                self.emit(Action::Store { place, value }, e.span);
                old()
            }
            _ => {
                let value = values[0].clone();
                self.emit(Action::Store { place, value }, e.span);
                old()
            }
        };
        self.leave_atomic(e.span);
        Some(Value::spelled(result))
    }

    fn store_if(&mut self, equal: &Expr<Local>, place: Place, value: Expr<Local>, span: Span) {
        let from = self.at;
        let join = self.graph.fresh();
        self.emit(Action::Assume(equal.clone()), span);
        self.emit_to(Action::Store { place, value }, join, span);
        self.at = from;
        self.emit_to(Action::Assume(equal.clone().negate()), join, span);
        self.at = join;
    }

    /// Inside an atomic block there is nothing more to do.
    pub(super) fn enter_atomic(&mut self, span: Span) {
        if self.atomic == 0 {
            self.emit(Action::AtomicBegin(wattle_model::Section::Drained), span);
        }
        self.atomic += 1;
    }

    pub(super) fn leave_atomic(&mut self, span: Span) {
        self.atomic -= 1;
        if self.atomic == 0 {
            self.emit(Action::AtomicEnd, span);
        }
    }
}

fn mentions(e: &Expr<Local>, r: RegisterId) -> bool {
    let mut found = false;
    e.for_each_atom(&mut |a| found |= *a == Local::Register(r));
    found
}
