//! Tree to system: names, arities and types.

mod terms;

use super::names::Names;
use super::plain::{Alternative, Held, Plain, Plainer, Standing};
use super::tree::{self, Expr, Factor, File, Name, Predicate, Right};
use crate::Diagnostic;
use crate::diagnostics::nearest;
use std::collections::HashSet;
use wattle_model::Span;
use wattle_model::array::{
    ArrayIndex, ArraySystem, Branch, CellDecl, CellType, FenceKind, Formula, Quantified, Term,
    Transition, TypeDecl, Update, UpdateIndex, Value,
};

/// More constructors than this no engine treats as one type.
const CONSTRUCTORS: usize = 4096;

/// After as many errors nobody wants to know which names are alike, and comparing all takes long.
const ERRORS_WITH_HINTS: usize = 100;

pub fn resolve(file: &File, diagnostics: &mut Vec<Diagnostic>) -> ArraySystem {
    let mut r = Resolver {
        system: ArraySystem::default(),
        names: Names::default(),
        predicates: &file.predicates,
        scale: 1,
        diagnostics,
    };
    r.declarations(file);
    r.scale(file);
    if let [_, second, ..] = &file.init[..] {
        r.error(second.span, "there is more than one `init`");
    }
    match file.init.first() {
        Some(b) => r.system.init = r.block(b, "init").pop().unwrap_or_default(),
        None if !file.transitions.is_empty() => {
            let end = file.transitions[0].name.span;
            r.diagnostics
                .push(Diagnostic::error(end, "there is no `init`").expected("`init (p) { … }`"));
        }
        None => r.error(
            Span::new(0, 0, 1),
            "this is no Cubicle file: no `init`, no `transition`",
        ),
    }
    r.system.assumed = file
        .invariants
        .iter()
        .flat_map(|b| r.block(b, "invariant"))
        .collect();
    r.system.bad = (file.bad.iter().flat_map(|b| r.block(b, "unsafe"))).collect();
    let transitions = file.transitions.iter().flat_map(|t| r.transition(t));
    r.system.transitions = transitions.collect();
    if file.bad.is_empty() && !file.transitions.is_empty() {
        let at = file.transitions[0].name.span;
        r.diagnostics.push(
            Diagnostic::warning(at, "there is no `unsafe`: nothing can be violated")
                .hint("state what must never hold: `unsafe (p q) { PC[p] = CS && PC[q] = CS }`"),
        );
    }
    r.system
}

struct Resolver<'d> {
    system: ArraySystem,
    names: Names,
    predicates: &'d [Predicate],
    /// What all reals are multiplied by, so that they are whole.
    scale: i64,
    diagnostics: &'d mut Vec<Diagnostic>,
}

/// How parameters are called that only the guard binds, so that no update means them.
const UNWRITTEN: char = '·';

/// Threads in scope, and what may be said there.
#[derive(Default)]
struct Scope {
    names: Vec<String>,
    /// How many of them are parameters that were written, and how many are parameters.
    written: usize,
    params: usize,
    /// Cells whose thread was chosen.
    held: Vec<Held>,
    /// `p @ X` must name this thread, if there is one.
    actor: Option<u8>,
    readers: bool,
}

/// What a term is, before two sides are compared.
#[derive(Clone, Debug, PartialEq)]
enum Typed {
    Number(CellType, Term),
    /// A plain number fits `int` and `real`.
    Constant(i64),
    Other(CellType, Term),
}

impl Resolver<'_> {
    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(span, message));
    }

    fn declarations(&mut self, file: &File) {
        self.system.threads = file.threads.map(|(n, _)| n);
        for (name, constructors) in &file.types {
            if constructors.len() > CONSTRUCTORS {
                self.error(
                    name.span,
                    format!("type `{}` has too many constructors", name.text),
                );
            }
            self.fresh(name, "type");
            let number = self.system.types.len();
            self.names.add_type(&name.text, number);
            let constructors = &constructors[..constructors.len().min(CONSTRUCTORS)];
            for (i, c) in constructors.iter().enumerate() {
                self.fresh(c, "constructor");
                self.names.add_constructor(&c.text, number, i);
            }
            self.system.types.push(TypeDecl {
                name: name.text.clone(),
                constructors: constructors.iter().map(|c| c.text.clone()).collect(),
            });
        }
        for c in &file.cells {
            self.fresh(&c.name, "variable");
            for i in &c.indices {
                if i.text != "proc" {
                    self.diagnostics.push(
                        Diagnostic::error(
                            i.span,
                            format!("arrays cannot be indexed by `{}`", i.text),
                        )
                        .expected("`proc`"),
                    );
                }
            }
            if c.indices.len() > 3 {
                self.error(c.name.span, "arrays have at most three indices");
            }
            let ty = self.cell_type(&c.ty);
            self.names.add_cell(&c.name.text, self.system.cells.len());
            self.system.cells.push(CellDecl {
                name: c.name.text.clone(),
                arity: c.indices.len().min(3) as u8,
                ty,
                weak: c.weak,
                constant: c.constant,
                span: c.name.span,
            });
        }
        if self.system.cells.len() > usize::from(u16::MAX / 2) || self.system.types.len() > 4096 {
            self.error(Span::new(0, 0, 1), "the file declares too many names");
            self.system.cells.truncate(usize::from(u16::MAX / 2));
        }
    }

    /// The least common denominator of the file's reals.
    fn scale(&mut self, file: &File) {
        let mut largest = 1;
        file.for_each_factor(&mut |f| {
            if let Factor::Real(_, d) = f {
                // Denominators are powers of ten.
                largest = largest.max(*d);
            }
        });
        self.scale = largest;
        let mut seen = HashSet::new();
        for p in &file.predicates {
            if !seen.insert(&p.name.text) {
                self.error(p.name.span, format!("`{}` is declared twice", p.name.text));
            }
        }
    }

    fn fresh(&mut self, name: &Name, what: &str) {
        let used = self.names.cell(&name.text).is_some()
            || self.constructor(&name.text).is_some()
            || (what == "type" && self.names.type_of_name(&name.text).is_some());
        if used {
            self.error(name.span, format!("`{}` is declared twice", name.text));
        }
    }

    fn cell_type(&mut self, name: &Name) -> CellType {
        match name.text.as_str() {
            "bool" => CellType::Bool,
            "int" => CellType::Int,
            "real" => CellType::Real,
            "proc" => CellType::Thread,
            other => match self.names.type_of_name(other) {
                Some(t) => CellType::Declared(t as u16),
                None => {
                    let declared = self.system.types.iter().map(|t| t.name.as_str());
                    let candidates = declared.chain(["bool", "int", "real", "proc"]);
                    let d = Diagnostic::error(name.span, format!("unknown type `{other}`"))
                        .expected("`bool`, `int`, `real`, `proc` or a declared type");
                    let d = self.hinted(d, other, candidates);
                    self.diagnostics.push(d);
                    CellType::Int
                }
            },
        }
    }

    fn constructor(&self, name: &str) -> Option<(CellType, Term)> {
        match name {
            "True" => return Some((CellType::Bool, Term::Bool(true))),
            "False" => return Some((CellType::Bool, Term::Bool(false))),
            _ => {}
        }
        let (t, c) = self.names.constructor(name)?;
        let (t, c) = (t as u16, c as u16);
        Some((CellType::Declared(t), Term::Constructor(t, c)))
    }

    /// Adds the name that was probably meant.
    fn hinted<'a>(
        &self,
        d: Diagnostic,
        given: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Diagnostic {
        if self.diagnostics.len() >= ERRORS_WITH_HINTS {
            return d;
        }
        match nearest(given, known) {
            Some(n) => d.hint(format!("did you mean `{n}`?")),
            None => d,
        }
    }

    fn params(&mut self, params: &[Name]) -> Vec<String> {
        let mut seen = HashSet::new();
        for p in params {
            if !seen.insert(&p.text) {
                self.error(p.span, format!("parameter `{}` appears twice", p.text));
            }
        }
        if let Some(p) = params.get(16) {
            self.error(p.span, "at most 16 parameters are supported");
        }
        params.iter().take(16).map(|p| p.text.clone()).collect()
    }

    /// The ways in which a formula can hold; none if it is wrong.
    fn ways(
        &mut self,
        e: &Expr,
        scope: &[Name],
        place: Standing,
        also: (Vec<Held>, &[&Expr]),
    ) -> Vec<Alternative> {
        let (names, system) = (&self.names, &self.system);
        let holds_threads = |name: &str| {
            let cell = names.cell(name).and_then(|c| system.cells.get(c));
            cell.is_some_and(|c| c.ty == CellType::Thread)
        };
        let mut plainer = Plainer::new(self.predicates, &holds_threads, place);
        plainer.nobody = system.may_be_nobody();
        let conditions;
        (plainer.held, conditions) = also;
        for c in conditions {
            // What is wrong in it is told when it is read.
            let _ = plainer.needed(c, scope);
        }
        plainer.alternatives(e, scope).unwrap_or_else(|d| {
            self.diagnostics.push(*d);
            Vec::new()
        })
    }

    fn block(&mut self, b: &tree::Block, what: &str) -> Vec<Quantified> {
        let place = match what {
            "init" => Standing::Init,
            _ => Standing::Some,
        };
        let ways = self.ways(&b.body, &b.params, place, (Vec::new(), &[]));
        ways.iter()
            .map(|way| {
                let names: Vec<Name> = b.params.iter().chain(&way.extra).cloned().collect();
                let params = self.params(&names);
                let scope = Scope {
                    names: params.clone(),
                    readers: what != "init",
                    ..Scope::default()
                };
                let mut fence = None;
                let body = self.formula(&way.body, &scope, &mut fence, false);
                if fence.is_some() {
                    self.error(b.span, format!("`fence` has no meaning in `{what}`"));
                }
                Quantified {
                    params,
                    body,
                    span: b.span,
                }
            })
            .collect()
    }

    /// One for each way in which the guard can hold.
    fn transition(&mut self, t: &tree::Transition) -> Vec<Transition> {
        let updates = t.updates.iter().flat_map(|u| match &u.value {
            tree::UpdateValue::Plain(_) => &[][..],
            tree::UpdateValue::Case(list) => &list[..],
        });
        let conditions: Vec<&Expr> = updates.filter_map(|(c, _)| c.as_ref()).collect();
        let guard = t.guard.as_ref().unwrap_or(&Expr::Truth(true));
        let ways = self.ways(guard, &t.params, Standing::Some, (Vec::new(), &conditions));
        let numbered = ways.iter().enumerate();
        let all = numbered.map(|(i, way)| {
            let mut one = self.one_transition(t, way);
            if i > 0 {
                one.name = format!("{}_{}", one.name, i + 1);
            }
            one
        });
        all.collect()
    }

    fn one_transition(&mut self, t: &tree::Transition, way: &Alternative) -> Transition {
        let names: Vec<Name> = t.params.iter().chain(&way.extra).cloned().collect();
        let mut params = self.params(&names);
        let weak = self.system.has_weak_cells();
        let named =
            named_actor(t, &way.body).and_then(|n| params.iter().position(|p| *p == n.text));
        let first = (weak && !params.is_empty()).then_some(0);
        let actor = t.bracketed.or(named).or(first).map(|i| i as u8);
        let mut scope = Scope {
            names: params.clone(),
            written: t.params.len(),
            params: params.len(),
            held: way.held.clone(),
            actor,
            readers: true,
        };
        let mut fence = None;
        let guard = self.formula(&way.body, &scope, &mut fence, true);
        // What the guard binds means nothing in updates, which may bind the same name.
        let bound: Vec<&Name> = t.updates.iter().flat_map(|u| &u.index).collect();
        for i in t.params.len()..params.len() {
            scope.names[i] = format!("{UNWRITTEN}{i}");
            for h in &mut scope.held {
                let thread = h.thread.as_mut().filter(|n| n.text == names[i].text);
                thread
                    .into_iter()
                    .for_each(|n| n.text.clone_from(&scope.names[i]));
            }
            while bound.iter().any(|n| n.text == params[i]) || params[..i].contains(&params[i]) {
                params[i] += "_2";
            }
        }
        let mut updates = Vec::new();
        for u in &t.updates {
            if let Some(update) = self.update(u, &scope, &updates) {
                updates.push(update);
            }
        }
        let mut seen = HashSet::new();
        for u in &t.updates {
            let index: Vec<&str> = u.index.iter().map(|n| n.text.as_str()).collect();
            if !seen.insert((&u.cell.text, index)) {
                self.error(
                    u.span,
                    format!("`{}` is updated twice in one transition", u.cell.text),
                );
            }
        }
        let result = Transition {
            name: t.name.text.clone(),
            params,
            actor,
            fence,
            guard,
            updates,
            span: t.name.span,
        };
        let touches =
            self.system.reads_weak(&result) || self.system.writes_weak(&result) || fence.is_some();
        if touches && actor.is_none() {
            self.diagnostics.push(
                Diagnostic::error(
                    t.name.span,
                    format!(
                        "transition `{}` uses weak memory but no thread acts",
                        t.name.text
                    ),
                )
                .hint("give it a parameter: `transition t ([p]) …`"),
            );
        }
        result
    }

    fn update(&mut self, u: &tree::Update, scope: &Scope, _before: &[Update]) -> Option<Update> {
        let cell = self.find_cell(&u.cell, "a variable or an array")?;
        let decl = self.system.cell(cell).clone();
        if decl.constant {
            self.error(
                u.cell.span,
                format!("`{}` is a constant and cannot be updated", decl.name),
            );
        }
        if let Some(w) = &u.writer {
            self.check_reader(w, scope);
        }
        if u.index.len() != usize::from(decl.arity) {
            self.arity(&u.cell, &decl, u.index.len());
            return None;
        }
        let case = matches!(u.value, tree::UpdateValue::Case(_));
        let mut names = scope.names.clone();
        let mut index = Vec::new();
        for n in &u.index {
            let known = n.text.starts_with('#') || scope.names.contains(&n.text);
            if known || !case {
                index.push(UpdateIndex::At(self.thread(n, scope)?));
            } else {
                names.push(n.text.clone());
                index.push(UpdateIndex::Each(n.text.clone()));
            }
        }
        let inner = Scope {
            names,
            held: scope.held.clone(),
            ..*scope
        };
        let mut branches = Vec::new();
        match &u.value {
            tree::UpdateValue::Plain(r) => {
                let value = self.right(r, decl.ty, &inner, u.span)?;
                branches.push(Branch {
                    condition: Formula::TRUE,
                    value,
                });
            }
            tree::UpdateValue::Case(list) => {
                for (condition, r) in list {
                    let mut fence = None;
                    let condition = match condition {
                        None => Formula::TRUE,
                        Some(c) => self.condition(c, &inner, &mut fence),
                    };
                    if fence.is_some() {
                        self.error(u.span, "`fence` has no meaning in a case condition");
                    }
                    let value = self.right(r, decl.ty, &inner, u.span)?;
                    branches.push(Branch { condition, value });
                }
            }
        }
        Some(Update {
            cell,
            index,
            branches,
            span: u.span,
        })
    }

    fn condition(&mut self, c: &Expr, scope: &Scope, fence: &mut Option<FenceKind>) -> Formula {
        let names = scope.names.iter().map(|text| Name {
            text: text.clone(),
            span: Span::NONE,
        });
        let place = Standing::Condition(scope.written, scope.params);
        let names: Vec<Name> = names.collect();
        let ways = self.ways(c, &names, place, (scope.held.clone(), &[]));
        match ways.first() {
            Some(way) => self.formula(&way.body, scope, fence, true),
            None => Formula::TRUE,
        }
    }

    fn right(&mut self, r: &Right, ty: CellType, scope: &Scope, span: Span) -> Option<Value> {
        let Right::Term(t) = r else {
            return Some(Value::Any);
        };
        let typed = self.term(t, scope)?;
        match self.coerce(typed, ty) {
            Ok(term) => Some(Value::Term(term)),
            Err(found) => {
                let (wanted, found) = (self.type_name(ty), found.map(|f| self.type_name(f)));
                let found = found.unwrap_or_else(|| "a number".into());
                self.diagnostics.push(Diagnostic::error(
                    if t.span.is_some() { t.span } else { span },
                    format!("a value of type `{wanted}` is needed, this is {found}"),
                ));
                None
            }
        }
    }

    fn coerce(&self, typed: Typed, ty: CellType) -> Result<Term, Option<CellType>> {
        match typed {
            Typed::Constant(c) if matches!(ty, CellType::Int | CellType::Real) => {
                let scale = if ty == CellType::Real { self.scale } else { 1 };
                Ok(Term::Sum {
                    parts: Vec::new(),
                    constant: c.checked_mul(scale).ok_or(None)?,
                })
            }
            Typed::Constant(_) => Err(None),
            Typed::Number(t, term) | Typed::Other(t, term) => match t == ty {
                true => Ok(term),
                false => Err(Some(t)),
            },
        }
    }

    fn type_name(&self, ty: CellType) -> String {
        match ty {
            CellType::Bool => "bool".into(),
            CellType::Int => "int".into(),
            CellType::Real => "real".into(),
            CellType::Thread => "proc".into(),
            CellType::Declared(t) => self.system.types[usize::from(t)].name.clone(),
        }
    }

    fn find_cell(&mut self, name: &Name, expected: &str) -> Option<ArrayIndex> {
        let found = self.names.cell(&name.text);
        let found = found.filter(|i| *i < self.system.cells.len());
        if found.is_none() {
            let known = self.system.cells.iter().map(|c| c.name.as_str());
            let d = Diagnostic::error(name.span, format!("unknown name `{}`", name.text))
                .expected(expected);
            let d = self.hinted(d, &name.text, known.chain(["True", "False"]));
            self.diagnostics.push(d);
        }
        found.map(|i| i as ArrayIndex)
    }

    fn arity(&mut self, name: &Name, decl: &CellDecl, given: usize) {
        self.error(
            name.span,
            format!(
                "`{}` has {} index(es), {} given",
                decl.name, decl.arity, given
            ),
        );
    }
}

/// The thread named by some `p @ …` of an older transition.
fn named_actor<'t>(t: &'t tree::Transition, guard: &'t Plain) -> Option<&'t Name> {
    fn in_term(t: &tree::Term) -> Option<&Name> {
        t.parts.iter().find_map(|(_, f)| match f {
            Factor::Named { reader, .. } => reader.as_ref(),
            _ => None,
        })
    }
    fn in_formula(e: &Plain) -> Option<&Name> {
        match e {
            Plain::And(l) | Plain::Or(l) => l.iter().find_map(in_formula),
            Plain::Compare(a, _, b, _) | Plain::Ordered(a, _, b, _) => {
                in_term(a).or_else(|| in_term(b))
            }
            Plain::Others(_, _, b) => in_formula(b),
            Plain::Fence(_, t, _) => t.as_ref(),
        }
    }
    let writer = t.updates.iter().find_map(|u| u.writer.as_ref());
    writer.or_else(|| in_formula(guard))
}
