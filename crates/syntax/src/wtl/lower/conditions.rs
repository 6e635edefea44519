//! Conditions of properties and hints: what can be seen of a state from outside.

use super::super::ast::{ConditionEx, Ex, ExKind, Name, PropertyEx};
use super::Lowering;
use super::names::{Value, computed};
use super::refuse;
use std::collections::HashMap;
use wattle_model::{
    Condition, Count, Expr, FamilyId, IndexId, IndexVariable, Observation, Property, RegionId,
    RegisterId, ThreadIndex, ThreadRef,
};

type Observed = Value<Observation>;

/// The variables of the condition that is read.
#[derive(Default)]
pub(super) struct Indices {
    pub list: Vec<IndexVariable>,
    ids: HashMap<String, IndexId>,
}

impl Lowering<'_> {
    pub(super) fn property(&mut self, p: &PropertyEx) -> Option<Property> {
        let condition = self.condition(&p.condition)?;
        let counts = &self.names.counts;
        refuse::too_few_threads(&condition, counts, &self.families, p.span, self.report);
        Some(Property {
            kind: p.kind,
            condition,
            span: p.span,
        })
    }

    pub(super) fn condition(&mut self, c: &ConditionEx) -> Option<Condition> {
        self.announce(c, &[&c.expr])?;
        let expr = self.observed(&c.expr)?.expr;
        Some(Condition {
            indices: self.indices.list.clone(),
            expr,
        })
    }

    /// The variables that are announced, or else those that are found.
    pub(super) fn announce(&mut self, c: &ConditionEx, within: &[&Ex]) -> Option<()> {
        self.indices = Indices::default();
        for (family, index) in &c.indices {
            let family = self.names.family(family, self.report)?;
            if self.indices.ids.contains_key(&index.text) {
                self.report.push(refuse::index_twice(index));
            }
            self.announce_index(index, family);
        }
        if c.indices.is_empty() {
            within.iter().for_each(|e| self.find_indices(e));
        }
        Some(())
    }

    /// Names in the brackets of a family are index variables, in order of appearance.
    fn find_indices(&mut self, e: &Ex) {
        if let ExKind::Field(family, Some(i), _)
        | ExKind::At(family, Some(i), _)
        | ExKind::Seen(family, Some(i), ..) = &e.kind
            && let ExKind::Name(index, None) = &i.kind
            && !self.names.constants.contains_key(&index.text)
            && !self.indices.ids.contains_key(&index.text)
            && let Some(f) = self.names.families.get(&family.text).copied()
        {
            self.announce_index(index, f);
        }
        e.parts().into_iter().for_each(|e| self.find_indices(e));
    }

    fn announce_index(&mut self, name: &Name, family: FamilyId) {
        refuse::index_name(&self.names, name, self.report);
        let id = IndexId::new(self.indices.list.len());
        let ids = &mut self.indices.ids;
        ids.entry(name.text.clone()).or_insert(id);
        self.indices.list.push(IndexVariable {
            name: name.text.clone(),
            family,
        });
    }

    pub(super) fn observed(&mut self, e: &Ex) -> Option<Observed> {
        if !self.spend(1) {
            return None;
        }
        let atom = |o| Some(Value::spelled(Expr::Atom(o)));
        match &e.kind {
            ExKind::Count(_) | ExKind::AddressOf(..) => {
                let index = e.parts().first().and_then(|i| self.observed(i));
                let leaves = (
                    Observation::AddressOf as fn(_) -> _,
                    Observation::Count as _,
                );
                self.names.outside(e, index, leaves, self.report)
            }
            ExKind::Memory(a) => {
                let a = self.observed(a)?.expr;
                atom(Observation::Memory(a.into()))
            }
            ExKind::Name(name, index) => {
                if let (None, Some(v)) = (index, self.indices.ids.get(&name.text)) {
                    return atom(Observation::Index(*v));
                }
                if let (None, Some(c)) = (index, self.names.constants.get(&name.text)) {
                    return Some(Value::named(*c));
                }
                let (region, at) = self.element(e, name, index.as_deref())?;
                atom(Observation::Cell(region, at.into()))
            }
            ExKind::Field(family, index, register) => {
                let thread = self.thread_ref(e, family, index.as_deref())?;
                let f = &self.families[thread.family.index()];
                match f.registers.iter().position(|r| r.name == register.text) {
                    Some(r) => atom(Observation::Register(thread, RegisterId::new(r))),
                    None => self.refuse(refuse::no_register(f, register, self.report)),
                }
            }
            ExKind::Seen(family, index, name, element) => {
                let thread = self.thread_ref(e, family, index.as_deref())?;
                let (region, at) = self.element(e, name, element.as_deref())?;
                match at {
                    Expr::Const(_) | Expr::Atom(Observation::Index(_)) => {
                        atom(Observation::Seen(thread, region, at.into()))
                    }
                    Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
                        self.refuse(refuse::sees_which(e))
                    }
                }
            }
            ExKind::At(family, index, label) => {
                let thread = self.thread_ref(e, family, index.as_deref())?;
                let f = &self.families[thread.family.index()];
                // The code may have it; the program is looked at again once it is known.
                refuse::label_unseen(f, label, self.report);
                match self.linked || f.locations.iter().any(|l| l.labels.contains(&label.text)) {
                    true => atom(Observation::At(thread, label.text.clone())),
                    false => self.refuse(refuse::label_missing(f, label, self.report)),
                }
            }
            ExKind::Number(_) | ExKind::Unary(..) | ExKind::Binary(..) | ExKind::Ite(..) => {
                computed(e, |e| self.observed(e))
            }
            ExKind::SelfIndex => self.refuse(refuse::outside_thread(e)),
            ExKind::Later(..) | ExKind::Between(..) => self.refuse(refuse::speaks_of_runs(e)),
            ExKind::Cas(..) | ExKind::Swap(..) | ExKind::FetchAdd(..) => {
                self.refuse(refuse::changes_memory(e))
            }
        }
    }

    /// A variable in memory, and which element of it.
    fn element(
        &mut self,
        e: &Ex,
        name: &Name,
        index: Option<&Ex>,
    ) -> Option<(RegionId, Expr<Observation>)> {
        let d = match (self.names.region(&name.text), index) {
            (Some((region, true)), Some(i)) => return Some((region, self.observed(i)?.expr)),
            (Some((region, false)), None) => return Some((region, Expr::Const(0))),
            (Some((_, array)), _) => refuse::element(e.span, name, array),
            (None, _) => refuse::unknown_outside(&self.names, name, &self.families, self.report),
        };
        self.refuse(d)
    }

    fn thread_ref(&mut self, e: &Ex, family: &Name, index: Option<&Ex>) -> Option<ThreadRef> {
        let id = self.names.family(family, self.report)?;
        let single = self.names.counts.get(id.index()) == Some(&Count::One);
        let variable = match index.map(|i| &i.kind) {
            Some(ExKind::Name(n, None)) => self.indices.ids.get(&n.text),
            _ => None,
        };
        let index = match (index, variable) {
            (None, _) if single => ThreadIndex::Number(0),
            (None, _) => return self.refuse(refuse::which_thread(e.span, family)),
            (Some(_), Some(v)) => ThreadIndex::Variable(*v),
            (Some(i), None) => match u32::try_from(self.number(i)?) {
                Ok(n) => ThreadIndex::Number(n),
                Err(_) => return self.refuse(refuse::no_thread(i.span)),
            },
        };
        Some(ThreadRef { family: id, index })
    }
}
