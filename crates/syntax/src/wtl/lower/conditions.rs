//! Conditions of properties and hints: what can be seen of a state from outside.

use super::super::ast::{ConditionEx, Ex, ExKind, Name, PropertyEx};
use super::Lowering;
use super::names::{Value, computed};
use super::refuse;
use std::collections::HashMap;
use wattle_model::{
    Condition, Count, Expr, Family, FamilyId, IndexId, IndexVariable, Observation, Property,
    RegionId, RegisterId, ThreadIndex, ThreadRef,
};

type Observed = Value<Observation>;

/// The variables of one condition.
#[derive(Default)]
pub(super) struct Indices {
    pub list: Vec<IndexVariable>,
    ids: HashMap<String, IndexId>,
}

impl Lowering<'_> {
    pub(super) fn property(&mut self, p: &PropertyEx, families: &[Family]) -> Option<Property> {
        let condition = self.condition(&p.condition, families)?;
        let counts = &self.names.counts;
        refuse::too_few_threads(&condition, counts, families, p.span, self.report);
        Some(Property {
            kind: p.kind,
            condition,
            span: p.span,
        })
    }

    pub(super) fn condition(&mut self, c: &ConditionEx, families: &[Family]) -> Option<Condition> {
        let indices = self.indices(c, &[&c.expr])?;
        let expr = self.observed(&c.expr, &indices, families)?.expr;
        Some(Condition {
            indices: indices.list,
            expr,
        })
    }

    /// The variables that are announced, or else those that are found.
    pub(super) fn indices(&mut self, c: &ConditionEx, within: &[&Ex]) -> Option<Indices> {
        let mut indices = Indices::default();
        for (family, index) in &c.indices {
            let family = self.names.family(family, self.report)?;
            if indices.ids.contains_key(&index.text) {
                self.report.push(refuse::index_twice(index));
            }
            refuse::index_name(&self.names, index, self.report);
            indices.add(index, family);
        }
        if c.indices.is_empty() {
            for e in within {
                self.find_indices(e, &mut indices);
            }
        }
        Some(indices)
    }

    /// Names in the brackets of a family are index variables, in order of appearance.
    fn find_indices(&mut self, e: &Ex, indices: &mut Indices) {
        match &e.kind {
            ExKind::Seen(family, i, _, j) => {
                if let Some(i) = i {
                    self.find_index(family, i, indices);
                }
                if let Some(j) = j {
                    self.find_indices(j, indices);
                }
            }
            ExKind::Field(family, Some(i), _) | ExKind::At(family, Some(i), _) => {
                self.find_index(family, i, indices);
            }
            ExKind::Name(_, Some(a))
            | ExKind::AddressOf(_, Some(a))
            | ExKind::Memory(a)
            | ExKind::Unary(_, a)
            | ExKind::Later(_, a) => self.find_indices(a, indices),
            ExKind::Binary(_, a, b) | ExKind::Between(_, a, b) => {
                self.find_indices(a, indices);
                self.find_indices(b, indices);
            }
            ExKind::Ite(a, b, c) => {
                for e in [a, b, c] {
                    self.find_indices(e, indices);
                }
            }
            _ => {}
        }
    }

    fn find_index(&mut self, family: &Name, i: &Ex, indices: &mut Indices) {
        if let ExKind::Name(index, None) = &i.kind
            && !self.names.constants.contains_key(&index.text)
            && !indices.ids.contains_key(&index.text)
            && let Some(f) = self.names.families.get(&family.text).copied()
        {
            refuse::index_name(&self.names, index, self.report);
            indices.add(index, f);
        }
    }

    pub(super) fn observed(
        &mut self,
        e: &Ex,
        indices: &Indices,
        families: &[Family],
    ) -> Option<Observed> {
        if !self.spend(1) {
            return None;
        }
        let atom = |o| Some(Value::spelled(Expr::Atom(o)));
        match &e.kind {
            ExKind::Count(_) | ExKind::AddressOf(_, None) => {
                self.names.outside(e, self.report, |_, _| None)
            }
            ExKind::AddressOf(_, Some(i)) => {
                let i = self.observed(i, indices, families);
                self.names.outside(e, self.report, |_, _| i)
            }
            ExKind::Memory(a) => {
                let a = self.observed(a, indices, families)?.expr;
                atom(Observation::Memory(a.into()))
            }
            ExKind::Name(name, index) => {
                self.name_in_condition(e, name, index.as_deref(), indices, families)
            }
            ExKind::Field(family, index, register) => {
                let thread = self.thread_ref(e, family, index.as_deref(), indices)?;
                let f = &families[thread.family.index()];
                match f.registers.iter().position(|r| r.name == register.text) {
                    Some(r) => atom(Observation::Register(thread, RegisterId::new(r))),
                    None => self.refuse(refuse::no_register(f, register, self.report)),
                }
            }
            ExKind::Seen(family, index, name, element) => {
                let thread = self.thread_ref(e, family, index.as_deref(), indices)?;
                let (region, at) = self.element(e, name, element.as_deref(), indices, families)?;
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
                let thread = self.thread_ref(e, family, index.as_deref(), indices)?;
                let f = &families[thread.family.index()];
                // The code may have it; the program is looked at again once it is known.
                let mut labels = f.locations.iter().flat_map(|l| &l.labels);
                match self.linked || labels.any(|l| *l == label.text) {
                    true => atom(Observation::At(thread, label.text.clone())),
                    false => self.refuse(refuse::label_missing(f, label, self.report)),
                }
            }
            ExKind::Number(_) | ExKind::Unary(..) | ExKind::Binary(..) | ExKind::Ite(..) => {
                computed(e, |e| self.observed(e, indices, families))
            }
            ExKind::SelfIndex => self.refuse(refuse::outside_thread(e)),
            ExKind::Later(..) | ExKind::Between(..) => self.refuse(refuse::speaks_of_runs(e)),
            ExKind::Cas(..) | ExKind::Swap(..) | ExKind::FetchAdd(..) => {
                self.refuse(refuse::changes_memory(e))
            }
        }
    }

    fn name_in_condition(
        &mut self,
        e: &Ex,
        name: &Name,
        index: Option<&Ex>,
        indices: &Indices,
        families: &[Family],
    ) -> Option<Observed> {
        let text = &name.text;
        let atom = |o| Some(Value::spelled(Expr::Atom(o)));
        if index.is_none() {
            if let Some(v) = indices.ids.get(text) {
                return atom(Observation::Index(*v));
            }
            if let Some(c) = self.names.constants.get(text) {
                return Some(Value::named(*c));
            }
        }
        let (region, at) = self.element(e, name, index, indices, families)?;
        atom(Observation::Cell(region, at.into()))
    }

    /// A variable in memory, and which element of it.
    fn element(
        &mut self,
        e: &Ex,
        name: &Name,
        index: Option<&Ex>,
        indices: &Indices,
        families: &[Family],
    ) -> Option<(RegionId, Expr<Observation>)> {
        let text = &name.text;
        let at = match (self.names.region(text), index) {
            (Some((_, true)), Some(i)) => self.observed(i, indices, families)?.expr,
            (Some((_, false)), None) => Expr::Const(0),
            (Some((_, array)), _) => return self.refuse(refuse::element(e.span, name, array)),
            (None, _) => {
                let d = refuse::unknown_outside(&self.names, name, families, self.report);
                return self.refuse(d);
            }
        };
        let (region, _) = self.names.region(text)?;
        Some((region, at))
    }

    fn thread_ref(
        &mut self,
        e: &Ex,
        family: &Name,
        index: Option<&Ex>,
        indices: &Indices,
    ) -> Option<ThreadRef> {
        let id = self.names.family(family, self.report)?;
        let single = self.names.counts.get(id.index()) == Some(&Count::One);
        let variable = match index.map(|i| &i.kind) {
            Some(ExKind::Name(n, None)) => indices.ids.get(&n.text),
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

impl Indices {
    fn add(&mut self, name: &Name, family: FamilyId) {
        let id = IndexId::new(self.list.len());
        self.ids.entry(name.text.clone()).or_insert(id);
        self.list.push(IndexVariable {
            name: name.text.clone(),
            family,
        });
    }
}
