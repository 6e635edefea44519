//! Tree to system: names, arities and types.

use super::names::Names;
use super::tree::{self, Expr, Factor, FenceWord, File, Name, Op, Right};
use crate::Diagnostic;
use crate::diagnostics::nearest;
use std::collections::{HashMap, HashSet};
use wattle_model::Span;
use wattle_model::array::{
    Access, ArrayIndex, ArraySystem, Branch, CellDecl, CellType, Comparison, FenceKind, Formula,
    Literal, Quantified, Term, ThreadTerm, Transition, TypeDecl, Update, UpdateIndex, Value,
};

/// More constructors than this no engine treats as one type.
const CONSTRUCTORS: usize = 4096;

/// After as many errors nobody wants to know which names are alike, and comparing all takes long.
const ERRORS_WITH_HINTS: usize = 100;

pub fn resolve(file: &File, diagnostics: &mut Vec<Diagnostic>) -> ArraySystem {
    let mut r = Resolver {
        system: ArraySystem::default(),
        names: Names::default(),
        diagnostics,
    };
    r.declarations(file);
    if let [_, second, ..] = &file.init[..] {
        r.error(second.span, "there is more than one `init`");
    }
    match file.init.first() {
        Some(b) => r.system.init = r.block(b, "init"),
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
        .map(|b| r.block(b, "invariant"))
        .collect();
    r.system.bad = file.bad.iter().map(|b| r.block(b, "unsafe")).collect();
    r.system.transitions = file.transitions.iter().map(|t| r.transition(t)).collect();
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
    diagnostics: &'d mut Vec<Diagnostic>,
}

/// Threads in scope, and what may be said there.
struct Scope {
    names: Vec<String>,
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
            if c.indices.len() > 2 {
                self.error(c.name.span, "arrays have at most two indices");
            }
            let ty = self.cell_type(&c.ty);
            self.names.add_cell(&c.name.text, self.system.cells.len());
            self.system.cells.push(CellDecl {
                name: c.name.text.clone(),
                arity: c.indices.len().min(2) as u8,
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

    fn block(&mut self, b: &tree::Block, what: &str) -> Quantified {
        let params = self.params(&b.params);
        let scope = Scope {
            names: params.clone(),
            actor: None,
            readers: what != "init",
        };
        let mut fence = None;
        let body = self.formula(&b.body, &scope, &mut fence, false);
        if fence.is_some() {
            self.error(b.span, format!("`fence` has no meaning in `{what}`"));
        }
        Quantified {
            params,
            body,
            span: b.span,
        }
    }

    fn transition(&mut self, t: &tree::Transition) -> Transition {
        let params = self.params(&t.params);
        let weak = self.system.has_weak_cells();
        let named = named_actor(t).and_then(|n| params.iter().position(|p| *p == n.text));
        let first = (weak && !params.is_empty()).then_some(0);
        let actor = t.bracketed.or(named).or(first).map(|i| i as u8);
        let scope = Scope {
            names: params.clone(),
            actor,
            readers: true,
        };
        let mut fence = None;
        let guard = match &t.guard {
            None => Formula::TRUE,
            Some(g) => self.formula(g, &scope, &mut fence, true),
        };
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
            actor: scope.actor,
            readers: scope.readers,
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
                        Some(c) => self.formula(c, &inner, &mut fence, false),
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
            Typed::Constant(c) if matches!(ty, CellType::Int | CellType::Real) => Ok(Term::Sum {
                parts: Vec::new(),
                constant: c,
            }),
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
            let d = self.hinted(d, &name.text, known);
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

    fn thread(&mut self, name: &Name, scope: &Scope) -> Option<ThreadTerm> {
        if let Some(digits) = name.text.strip_prefix('#') {
            let number = digits.parse::<u16>().ok().filter(|k| *k >= 1);
            let Some(k) = number else {
                self.error(
                    name.span,
                    format!("`{}` is no thread: they are counted from #1", name.text),
                );
                return None;
            };
            if let Some(n) = self.system.threads.filter(|n| u32::from(k) > *n) {
                self.error(
                    name.span,
                    format!("there is no thread `#{k}`: `number_procs` is {n}"),
                );
                return None;
            }
            return Some(ThreadTerm::Constant(k));
        }
        let found = scope.names.iter().rposition(|n| *n == name.text);
        if found.is_none() {
            let d = Diagnostic::error(name.span, format!("unknown thread `{}`", name.text))
                .expected("a parameter, a bound variable or a constant such as `#1`");
            let d = self.hinted(d, &name.text, scope.names.iter().map(String::as_str));
            self.diagnostics.push(d);
        }
        found.map(|i| ThreadTerm::Param(i as u8))
    }

    /// In a transition only the acting thread reads and writes weak memory.
    fn check_reader(&mut self, reader: &Name, scope: &Scope) {
        if let (Some(t), Some(a)) = (self.thread(reader, scope), scope.actor)
            && t != ThreadTerm::Param(a)
        {
            self.diagnostics.push(
                Diagnostic::error(
                    reader.span,
                    format!("`{}` does not act in this transition", reader.text),
                )
                .hint(format!(
                    "all weak reads and writes are by `{}`",
                    scope.names[usize::from(a)]
                )),
            );
        }
    }

    fn formula(
        &mut self,
        e: &Expr,
        scope: &Scope,
        fence: &mut Option<FenceKind>,
        top: bool,
    ) -> Formula {
        match e {
            Expr::And(list) => {
                let parts = list.iter().map(|p| self.formula(p, scope, fence, top));
                Formula::And(parts.filter(|f| !f.is_true()).collect::<Vec<_>>()).simplified()
            }
            Expr::Or(list) => {
                let mut inner = None;
                let parts: Vec<_> = list
                    .iter()
                    .map(|p| self.formula(p, scope, &mut inner, false))
                    .collect();
                if inner.is_some() {
                    let span = first_span(e);
                    self.diagnostics.push(
                        Diagnostic::error(span, "a fence cannot stand inside `||`")
                            .hint("split the transition in two"),
                    );
                }
                Formula::Or(parts)
            }
            Expr::Fence(kind, thread, _) => {
                if let Some(t) = thread {
                    self.check_reader(t, scope);
                }
                let kind = match kind {
                    FenceWord::Full => FenceKind::Full,
                    FenceWord::Store => FenceKind::Store,
                };
                *fence = Some(fence.map_or(kind, |f| f.min(kind)));
                Formula::TRUE
            }
            Expr::Forall(variable, body) => {
                if !top {
                    self.diagnostics.push(
                        Diagnostic::error(
                            variable.span,
                            "`forall_other` may only stand in the top conjunction of a guard",
                        )
                        .hint("split the transition, one for each case"),
                    );
                }
                let mut names = scope.names.clone();
                if names.contains(&variable.text) {
                    self.error(
                        variable.span,
                        format!("`{}` is already a parameter here", variable.text),
                    );
                }
                names.push(variable.text.clone());
                let inner = Scope {
                    names,
                    actor: scope.actor,
                    readers: scope.readers,
                };
                let body = self.formula(body, &inner, fence, false);
                if body.is_true() {
                    return body;
                }
                Formula::ForallOther {
                    variable: variable.text.clone(),
                    body: Box::new(body),
                }
            }
            Expr::Compare(l, op, r, span) => self.compare(l, *op, r, *span, scope),
        }
    }

    fn compare(
        &mut self,
        l: &tree::Term,
        op: Op,
        r: &tree::Term,
        span: Span,
        scope: &Scope,
    ) -> Formula {
        let (l, r, op) = match op {
            Op::Gt => (r, l, Comparison::Lt),
            Op::Ge => (r, l, Comparison::Le),
            Op::Lt => (l, r, Comparison::Lt),
            Op::Le => (l, r, Comparison::Le),
            Op::Eq => (l, r, Comparison::Eq),
            Op::Ne => (l, r, Comparison::Ne),
        };
        let (left, right) = (self.term(l, scope), self.term(r, scope));
        let (Some(left), Some(right)) = (left, right) else {
            return Formula::TRUE;
        };
        if let (Typed::Constant(a), Typed::Constant(b)) = (&left, &right) {
            let holds = match op {
                Comparison::Eq => a == b,
                Comparison::Ne => a != b,
                Comparison::Lt => a < b,
                Comparison::Le => a <= b,
            };
            return if holds {
                Formula::TRUE
            } else {
                Formula::Or(Vec::new())
            };
        }
        let ty = match (&left, &right) {
            (Typed::Number(t, _) | Typed::Other(t, _), _) => *t,
            (_, Typed::Number(t, _) | Typed::Other(t, _)) => *t,
            _ => CellType::Int,
        };
        let (Ok(left), Ok(right)) = (
            self.coerce(left.clone(), ty),
            self.coerce(right.clone(), ty),
        ) else {
            let name = |r: &Self, t: &Typed| match t {
                Typed::Number(t, _) | Typed::Other(t, _) => r.type_name(*t),
                Typed::Constant(_) => "int".into(),
            };
            let (a, b) = (name(self, &left), name(self, &right));
            self.error(span, format!("`{a}` is compared with `{b}`"));
            return Formula::TRUE;
        };
        let ordered = matches!(op, Comparison::Lt | Comparison::Le);
        let numbers = matches!(ty, CellType::Int | CellType::Real);
        if ordered && ty == CellType::Thread {
            let both = matches!((&left, &right), (Term::Thread(_), Term::Thread(_)));
            if !both {
                self.diagnostics.push(
                    Diagnostic::error(
                        span,
                        "only parameters can be ordered, not cells that hold threads",
                    )
                    .hint("bind the cell's value first: add a parameter q and require `X = q`"),
                );
            }
        } else if ordered && !numbers {
            let name = self.type_name(ty);
            self.error(span, format!("values of type `{name}` have no order"));
        }
        Formula::Atom(Literal { left, op, right })
    }

    fn term(&mut self, t: &tree::Term, scope: &Scope) -> Option<Typed> {
        if let [
            (
                1,
                Factor::Named {
                    reader,
                    name,
                    index,
                },
            ),
        ] = &t.parts[..]
        {
            return self.named(reader.as_ref(), name, index, scope);
        }
        let (mut parts, mut constant, mut ty): (Vec<(i64, Access)>, i64, Option<CellType>) =
            (Vec::new(), 0, None);
        for (c, f) in &t.parts {
            match f {
                Factor::Number(n) => {
                    constant = c.checked_mul(*n).and_then(|x| constant.checked_add(x))?
                }
                Factor::Real(n) => {
                    constant = c.checked_mul(*n).and_then(|x| constant.checked_add(x))?;
                    if ty == Some(CellType::Int) {
                        self.error(t.span, "`int` and `real` are mixed");
                    }
                    ty = Some(CellType::Real);
                }
                Factor::Named {
                    reader,
                    name,
                    index,
                } => match self.named(reader.as_ref(), name, index, scope)? {
                    Typed::Number(n, Term::Sum { parts: p, .. }) => {
                        if ty.is_some_and(|t| t != n) {
                            self.error(t.span, "`int` and `real` are mixed");
                        }
                        ty = Some(n);
                        parts.extend(p.into_iter().map(|(k, a)| (k * c, a)));
                    }
                    Typed::Other(CellType::Thread, _) => {
                        self.diagnostics.push(
                            Diagnostic::error(
                                name.span,
                                "thread identifiers cannot be added or subtracted",
                            )
                            .hint("threads can only be compared; use another array to count"),
                        );
                        return None;
                    }
                    _ => {
                        self.error(name.span, format!("`{}` is not a number", name.text));
                        return None;
                    }
                },
            }
        }
        match ty {
            None if parts.is_empty() => Some(Typed::Constant(constant)),
            ty => Some(Typed::Number(
                ty.unwrap_or(CellType::Int),
                merged(parts, constant),
            )),
        }
    }

    fn named(
        &mut self,
        reader: Option<&Name>,
        name: &Name,
        index: &[Name],
        scope: &Scope,
    ) -> Option<Typed> {
        let is_cell = self.names.cell(&name.text).is_some();
        if !is_cell && index.is_empty() && reader.is_none() {
            if let Some((ty, term)) = self.constructor(&name.text) {
                return Some(Typed::Other(ty, term));
            }
            let lower = name
                .text
                .starts_with(|c: char| c.is_ascii_lowercase() || c == '#');
            if lower || scope.names.contains(&name.text) {
                let t = self.thread(name, scope)?;
                return Some(Typed::Other(CellType::Thread, Term::Thread(t)));
            }
        }
        let cell = self.find_cell(name, "a variable, an array, a constructor or a thread")?;
        let decl = self.system.cell(cell).clone();
        if index.len() != usize::from(decl.arity) {
            self.arity(name, &decl, index.len());
            return None;
        }
        let args = index
            .iter()
            .map(|i| self.thread(i, scope))
            .collect::<Option<Vec<_>>>()?;
        let mut read_by = None;
        if let Some(r) = reader {
            if !decl.weak {
                self.error(
                    r.span,
                    format!("`{}` is not weak: `@` has no meaning", decl.name),
                );
            } else if !scope.readers {
                self.error(r.span, "`@` has no meaning in `init`");
            } else if scope.actor.is_some() {
                self.check_reader(r, scope);
            } else {
                read_by = Some(self.thread(r, scope)?);
            }
        }
        let access = Access {
            cell,
            args,
            reader: read_by,
        };
        Some(match decl.ty {
            CellType::Int | CellType::Real => Typed::Number(
                decl.ty,
                Term::Sum {
                    parts: vec![(1, access)],
                    constant: 0,
                },
            ),
            ty => Typed::Other(ty, Term::Read(access)),
        })
    }
}

/// The same cell twice in a sum becomes one part.
fn merged(parts: Vec<(i64, Access)>, constant: i64) -> Term {
    let mut out: Vec<(i64, Access)> = Vec::new();
    let mut places: HashMap<Access, usize> = HashMap::new();
    for (c, a) in parts {
        match places.get(&a) {
            Some(i) => out[*i].0 += c,
            None => {
                places.insert(a.clone(), out.len());
                out.push((c, a));
            }
        }
    }
    out.retain(|(c, _)| *c != 0);
    Term::Sum {
        parts: out,
        constant,
    }
}

/// The thread named by some `p @ …` of an older transition.
fn named_actor(t: &tree::Transition) -> Option<&Name> {
    fn in_term(t: &tree::Term) -> Option<&Name> {
        t.parts.iter().find_map(|(_, f)| match f {
            Factor::Named { reader, .. } => reader.as_ref(),
            _ => None,
        })
    }
    fn in_expr(e: &Expr) -> Option<&Name> {
        match e {
            Expr::And(l) | Expr::Or(l) => l.iter().find_map(in_expr),
            Expr::Compare(a, _, b, _) => in_term(a).or_else(|| in_term(b)),
            Expr::Forall(_, b) => in_expr(b),
            Expr::Fence(_, t, _) => t.as_ref(),
        }
    }
    let writer = t.updates.iter().find_map(|u| u.writer.as_ref());
    writer.or_else(|| t.guard.as_ref().and_then(in_expr))
}

fn first_span(e: &Expr) -> Span {
    match e {
        Expr::And(l) | Expr::Or(l) => l.first().map_or(Span::NONE, first_span),
        Expr::Compare(_, _, _, s) | Expr::Fence(_, _, s) => *s,
        Expr::Forall(v, _) => v.span,
    }
}
