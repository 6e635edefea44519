//! Conditions of properties and hints: what can be seen of a state from outside.

use super::super::ast::{Between, ConditionEx, Ex, ExKind, Later, Name, PropertyEx, TemporalEx};
use super::Lowering;
use super::names::{Value, nearest_sorted};
use crate::Diagnostic;
use std::collections::{BTreeMap, HashMap};
use wattle_model::{
    Condition, Count, Expr, Family, FamilyId, Formula, IndexId, IndexVariable, Observation, Op1,
    Op2, Property, RegisterId, Span, Temporal, TemporalKind, ThreadIndex, ThreadRef,
};

type Observed = Value<Observation>;

/// The variables of one condition.
#[derive(Default)]
struct Indices {
    list: Vec<IndexVariable>,
    ids: HashMap<String, IndexId>,
}

impl Lowering<'_> {
    pub(super) fn property(&mut self, p: &PropertyEx, families: &[Family]) -> Option<Property> {
        let condition = self.condition(&p.condition, families)?;
        let mut per_family: BTreeMap<FamilyId, u32> = BTreeMap::new();
        for v in &condition.indices {
            *per_family.entry(v.family).or_default() += 1;
        }
        for (f, wanted) in per_family {
            if let Some(Count::Fixed(n)) = self.names.counts.get(f.index())
                && *n < wanted
            {
                let name = &families[f.index()].name;
                let d = Diagnostic::warning(
                    p.span,
                    format!(
                        "this says nothing: it needs {wanted} different threads of `{name}`, which has {n}"
                    ),
                );
                self.report.push(d);
            }
        }
        Some(Property {
            kind: p.kind,
            condition,
            span: p.span,
        })
    }

    pub(super) fn temporal(
        &mut self,
        (t, span): &(TemporalEx, Span),
        families: &[Family],
    ) -> Option<Temporal> {
        let kind = match t {
            TemporalEx::Progress => TemporalKind::Progress,
            TemporalEx::Ltl(c) => {
                let indices = self.indices(c, &[&c.expr])?;
                let formula = self.formula(&c.expr, &indices, families)?;
                TemporalKind::Ltl(indices.list, formula)
            }
            TemporalEx::LeadsTo(c, to) => {
                let indices = self.indices(c, &[&c.expr, to])?;
                let expr = self.observed(&c.expr, &indices, families);
                let to = self.observed(to, &indices, families)?.expr;
                let expr = expr?.expr;
                let indices = indices.list;
                TemporalKind::LeadsTo(Condition { indices, expr }, to)
            }
        };
        Some(Temporal { kind, span: *span })
    }

    /// What has no operator of time in it is one condition.
    fn formula(
        &mut self,
        e: &Ex,
        indices: &Indices,
        families: &[Family],
    ) -> Option<Formula<Expr<Observation>>> {
        if !speaks_of_time(e) {
            return Some(Formula::Now(self.observed(e, indices, families)?.expr));
        }
        let mut one = |e: &Ex| self.formula(e, indices, families).map(Box::new);
        Some(match &e.kind {
            ExKind::Unary(Op1::Not, a) => Formula::Not(one(a)?),
            ExKind::Later(Later::Globally, a) => Formula::Globally(one(a)?),
            ExKind::Later(Later::Finally, a) => Formula::Finally(one(a)?),
            ExKind::Binary(op @ (Op2::And | Op2::Or), a, b) => {
                let (a, b) = (one(a), one(b));
                match op {
                    Op2::And => Formula::And(a?, b?),
                    _ => Formula::Or(a?, b?),
                }
            }
            ExKind::Between(op, a, b) => {
                let (a, b) = (one(a), one(b));
                let (a, b) = (a?, b?);
                match op {
                    Between::Until => Formula::Until(a, b),
                    Between::Release => Formula::Release(a, b),
                    Between::WeakUntil => Formula::WeakUntil(a, b),
                    Between::Implies => Formula::Implies(a, b),
                }
            }
            // Something else is computed with it: reported there.
            _ => {
                return self
                    .observed(e, indices, families)
                    .map(|v| Formula::Now(v.expr));
            }
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
    fn indices(&mut self, c: &ConditionEx, within: &[&Ex]) -> Option<Indices> {
        let mut indices = Indices::default();
        for (family, index) in &c.indices {
            let family = self.names.family(family, self.report)?;
            if indices.ids.contains_key(&index.text) {
                self.error(Diagnostic::error(
                    index.span,
                    format!("the index `{}` appears twice", index.text),
                ));
            }
            self.index_name(index);
            indices.add(index, family);
        }
        if c.indices.is_empty() {
            for e in within {
                self.find_indices(e, &mut indices);
            }
        }
        Some(indices)
    }

    fn index_name(&mut self, name: &Name) {
        if self.names.regions.contains_key(&name.text) {
            self.error(
                Diagnostic::error(
                    name.span,
                    format!("`{}` is shared memory, not a thread's index", name.text),
                )
                .hint("choose another name for the index, or write the number"),
            );
        }
    }

    /// Names in the brackets of a family are index variables, in order of appearance.
    fn find_indices(&mut self, e: &Ex, indices: &mut Indices) {
        match &e.kind {
            ExKind::Field(family, Some(i), _) | ExKind::At(family, Some(i), _) => {
                if let ExKind::Name(index, None) = &i.kind
                    && !self.names.constants.contains_key(&index.text)
                    && !indices.ids.contains_key(&index.text)
                    && let Some(f) = self.names.families.get(&family.text).copied()
                {
                    self.index_name(index);
                    indices.add(index, f);
                }
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

    fn observed(&mut self, e: &Ex, indices: &Indices, families: &[Family]) -> Option<Observed> {
        if !self.spend(1) {
            return None;
        }
        let atom = |o| Some(Value::spelled(Expr::Atom(o)));
        match &e.kind {
            ExKind::Number(n) => Some(Value::spelled(Expr::Const(*n))),
            ExKind::Count(f) => atom(Observation::Count(self.names.family(f, self.report)?)),
            ExKind::AddressOf(name, index) => {
                let base = self.names.address(name, index.is_some(), self.report);
                match index {
                    None => base,
                    Some(i) => {
                        let i = self.observed(i, indices, families);
                        Some(Value::binary(Op2::Add, base?, i?))
                    }
                }
            }
            ExKind::Memory(a) => {
                let a = self.observed(a, indices, families)?.expr;
                atom(Observation::Memory(a.into()))
            }
            ExKind::Name(name, index) => self.name_in_condition(e, name, index, indices, families),
            ExKind::Field(family, index, register) => {
                let thread = self.thread_ref(e, family, index.as_deref(), indices)?;
                let r = self.register_of(thread.family, register, families)?;
                atom(Observation::Register(thread, r))
            }
            ExKind::At(family, index, label) => {
                let thread = self.thread_ref(e, family, index.as_deref(), indices)?;
                self.label_of(thread.family, label, families)?;
                atom(Observation::At(thread, label.text.clone()))
            }
            ExKind::Unary(op, a) => Some(Value::unary(*op, self.observed(a, indices, families)?)),
            ExKind::Binary(op, a, b) => {
                let a = self.observed(a, indices, families);
                let b = self.observed(b, indices, families);
                Some(Value::binary(*op, a?, b?))
            }
            ExKind::Ite(c, a, b) => {
                let c = self.observed(c, indices, families);
                let a = self.observed(a, indices, families);
                let b = self.observed(b, indices, families);
                Some(Value::ite(c?, a?, b?))
            }
            ExKind::SelfIndex => {
                self.error(
                    Diagnostic::error(e.span, "`self` means nothing outside of a thread")
                        .hint("name the thread: `p[i].r`, with `i` for any thread of `p`"),
                );
                None
            }
            ExKind::Later(..) | ExKind::Between(..) => {
                self.error(
                    Diagnostic::error(
                        e.span,
                        "this speaks of a run, and one state is looked at here",
                    )
                    .hint(
                        "`G`, `F`, `U`, `R` and `W` may stand under `!`, `&&`, `||` and `->` only",
                    ),
                );
                None
            }
            ExKind::Cas(..) | ExKind::Swap(..) | ExKind::FetchAdd(..) => {
                self.error(Diagnostic::error(
                    e.span,
                    "a property only looks; it cannot change memory",
                ));
                None
            }
        }
    }

    fn name_in_condition(
        &mut self,
        e: &Ex,
        name: &Name,
        index: &Option<Box<Ex>>,
        indices: &Indices,
        families: &[Family],
    ) -> Option<Observed> {
        let text = &name.text;
        if index.is_none() {
            if let Some(v) = indices.ids.get(text) {
                return Some(Value::spelled(Expr::Atom(Observation::Index(*v))));
            }
            if let Some(c) = self.names.constants.get(text) {
                return Some(Value {
                    expr: Expr::Const(*c),
                    named: true,
                });
            }
        }
        if let Some((region, array)) = self.names.region(text) {
            let at = match (index, array) {
                (Some(i), true) => self.observed(i, indices, families)?.expr,
                (None, false) => Expr::Const(0),
                (None, true) => {
                    self.error(
                        Diagnostic::error(e.span, format!("`{text}` is an array; which element?"))
                            .hint(format!("write `{text}[0]`")),
                    );
                    return None;
                }
                (Some(_), false) => {
                    self.error(Diagnostic::error(
                        e.span,
                        format!("`{text}` is not an array"),
                    ));
                    return None;
                }
            };
            let cell = Observation::Cell(region, at.into());
            return Some(Value::spelled(Expr::Atom(cell)));
        }
        let mut d = Diagnostic::error(name.span, format!("unknown name `{text}`"))
            .expected("a shared name, `thread.register` or `thread@label`");
        let owner = families
            .iter()
            .find(|f| f.registers.iter().any(|r| r.name == *text));
        if let Some(f) = owner {
            let dot = if f.count == Count::One { "" } else { "[i]" };
            d = d.hint(format!("`{text}` is a register: `{}{dot}.{text}`", f.name));
        } else if self.names.families.contains_key(text) {
            d = d.hint(format!(
                "say what of it: `{text}@label` or `{text}.register`"
            ));
        } else if text.len() == 1 && families.iter().any(|f| f.count != Count::One) {
            d = d.hint(format!(
                "an index variable stands in the brackets of a family as well, or is announced: `for p[{text}]: …`"
            ));
        } else if !self.report.full() {
            let known: Vec<String> = self.names.known().map(str::to_string).collect();
            if let Some(n) = nearest_sorted(text, &known) {
                d = d.hint(format!("did you mean `{n}`?"));
            }
        }
        self.error(d);
        None
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
        let index = match index {
            None if single => ThreadIndex::Number(0),
            None => {
                self.error(
                    Diagnostic::error(
                        e.span,
                        format!("`{}` has several threads; which one?", family.text),
                    )
                    .hint(format!(
                        "`{0}[0]` is the first, `{0}[i]` any of them",
                        family.text
                    )),
                );
                return None;
            }
            Some(i) => {
                let variable = match &i.kind {
                    ExKind::Name(n, None) => indices.ids.get(&n.text),
                    _ => None,
                };
                match variable {
                    Some(v) => ThreadIndex::Variable(*v),
                    None => {
                        let given = self.names.number(i, &HashMap::new(), self.report)?;
                        match u32::try_from(given) {
                            Ok(n) => ThreadIndex::Number(n),
                            Err(_) => {
                                self.error(Diagnostic::error(i.span, "no thread has this number"));
                                return None;
                            }
                        }
                    }
                }
            }
        };
        Some(ThreadRef { family: id, index })
    }

    fn register_of(
        &mut self,
        family: FamilyId,
        name: &Name,
        families: &[Family],
    ) -> Option<RegisterId> {
        let f = &families[family.index()];
        let found = f.registers.iter().position(|r| r.name == name.text);
        if found.is_none() {
            let mut d = Diagnostic::error(
                name.span,
                format!("`{}` has no register `{}`", f.name, name.text),
            );
            if let Some(n) = nearest_sorted(&name.text, f.registers.iter().map(|r| &r.name)) {
                d = d.hint(format!("did you mean `{n}`?"));
            }
            self.error(d);
        }
        found.map(RegisterId::new)
    }

    fn label_of(&mut self, family: FamilyId, name: &Name, families: &[Family]) -> Option<()> {
        let f = &families[family.index()];
        let labels = || f.locations.iter().flat_map(|l| &l.labels);
        // The code may have it; the program is looked at again once it is known.
        if self.linked || labels().any(|l| *l == name.text) {
            return Some(());
        }
        let mut d = Diagnostic::error(
            name.span,
            format!("`{}` has no label `{}`", f.name, name.text),
        );
        if !self.report.full() {
            let mut known: Vec<String> = labels().map(|l| format!("`{l}`")).collect();
            known.sort();
            d = match (nearest_sorted(&name.text, labels()), known.len()) {
                (Some(n), _) => d.hint(format!("did you mean `{n}`?")),
                (None, 0) => d.hint("a label stands before a statement: `critical: skip;`"),
                (None, 1..=MOST_LISTED) => d.hint(format!("it has {}", known.join(", "))),
                (None, n) => {
                    let first = known[..MOST_LISTED].join(", ");
                    d.hint(format!("it has {first} and {} more", n - MOST_LISTED))
                }
            };
        }
        self.error(d);
        None
    }
}

/// Longer lists of labels are cut.
const MOST_LISTED: usize = 8;

/// Whether an operator of time is in it.
fn speaks_of_time(e: &Ex) -> bool {
    match &e.kind {
        ExKind::Later(..) | ExKind::Between(..) => true,
        ExKind::Number(_) | ExKind::SelfIndex | ExKind::Count(_) => false,
        ExKind::Name(_, i)
        | ExKind::AddressOf(_, i)
        | ExKind::Field(_, i, _)
        | ExKind::At(_, i, _) => i.as_deref().is_some_and(speaks_of_time),
        ExKind::Memory(a) | ExKind::Unary(_, a) => speaks_of_time(a),
        ExKind::Binary(_, a, b) | ExKind::Swap(a, b) | ExKind::FetchAdd(a, b) => {
            speaks_of_time(a) || speaks_of_time(b)
        }
        ExKind::Ite(a, b, c) | ExKind::Cas(a, b, c) => [a, b, c].iter().any(|e| speaks_of_time(e)),
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
