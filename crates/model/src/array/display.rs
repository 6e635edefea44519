//! Array-based systems as Cubicle-W text. What is printed parses back to the same system.

use super::{
    Access, ArraySystem, CellType, Comparison, FenceKind, Formula, Literal, Quantified, Term,
    ThreadTerm, Transition, Update, UpdateIndex, Value,
};
use std::fmt::{self, Display, Formatter};

impl Display for ArraySystem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(n) = self.threads {
            writeln!(f, "number_procs {n}\n")?;
        }
        for t in &self.types {
            match t.constructors.is_empty() {
                true => writeln!(f, "type {}", t.name)?,
                false => writeln!(f, "type {} = {}", t.name, t.constructors.join(" | "))?,
            }
        }
        for c in &self.cells {
            let weak = if c.weak { "weak " } else { "" };
            let kind = match (c.constant, c.arity) {
                (true, _) => "const",
                (false, 0) => "var",
                (false, _) => "array",
            };
            let index = match c.arity {
                0 => "",
                1 => "[proc]",
                2 => "[proc, proc]",
                _ => "[proc, proc, proc]",
            };
            let ty = match c.ty {
                CellType::Bool => "bool",
                CellType::Int => "int",
                CellType::Real => "real",
                CellType::Thread => "proc",
                CellType::Declared(t) => &self.types[usize::from(t)].name,
            };
            writeln!(f, "{weak}{kind} {}{index} : {ty}", c.name)?;
        }
        let kinds = std::iter::once(("init", &self.init))
            .chain(self.assumed.iter().map(|q| ("invariant", q)))
            .chain(self.bad.iter().map(|q| ("unsafe", q)));
        for (keyword, q) in kinds {
            writeln!(f, "\n{keyword} {}", Shown(self, q))?;
        }
        for t in &self.transitions {
            write!(f, "\n{}", Shown(self, t))?;
        }
        Ok(())
    }
}

/// Something of a system, with the system that gives it names.
struct Shown<'a, T>(&'a ArraySystem, &'a T);

impl Display for Shown<'_, Quantified> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Shown(system, q) = self;
        let scope = Scope::new(system, &q.params);
        write!(f, "({}) {{ ", q.params.join(" "))?;
        scope.formula(f, &q.body, true)?;
        write!(f, " }}")
    }
}

impl Display for Shown<'_, Transition> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Shown(system, t) = self;
        let scope = Scope::new(system, &t.params);
        let params: Vec<String> = (0u8..)
            .zip(&t.params)
            .map(|(i, p)| match t.actor == Some(i) {
                true => format!("[{p}]"),
                false => p.clone(),
            })
            .collect();
        writeln!(f, "transition {} ({})", t.name, params.join(" "))?;
        write!(f, "requires {{ ")?;
        let fence = match t.fence {
            None => "",
            Some(FenceKind::Full) => "fence()",
            Some(FenceKind::Store) => "store_fence()",
        };
        match (t.guard.is_true(), t.fence.is_some()) {
            (true, false) => write!(f, "0 = 0")?,
            (true, true) => write!(f, "{fence}")?,
            (false, true) => {
                write!(f, "{fence} && ")?;
                scope.formula(f, &t.guard, false)?;
            }
            (false, false) => scope.formula(f, &t.guard, true)?,
        }
        writeln!(f, " }}\n{{")?;
        for u in &t.updates {
            scope.update(f, u)?;
        }
        writeln!(f, "}}")
    }
}

/// Names of threads in scope.
struct Scope<'a> {
    system: &'a ArraySystem,
    names: Vec<&'a str>,
}

impl<'a> Scope<'a> {
    fn new(system: &'a ArraySystem, params: &'a [String]) -> Self {
        Scope {
            system,
            names: params.iter().map(String::as_str).collect(),
        }
    }

    fn with(&self, more: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names = self.names.clone();
        names.extend(more);
        Scope {
            system: self.system,
            names,
        }
    }

    fn thread(&self, f: &mut Formatter<'_>, t: ThreadTerm) -> fmt::Result {
        match t {
            ThreadTerm::Param(i) => match self.names.get(usize::from(i)) {
                Some(n) => write!(f, "{n}"),
                None => write!(f, "thread_{i}"),
            },
            ThreadTerm::Constant(k) => write!(f, "#{k}"),
        }
    }

    fn access(&self, f: &mut Formatter<'_>, a: &Access) -> fmt::Result {
        if let Some(r) = a.reader {
            self.thread(f, r)?;
            write!(f, " @ ")?;
        }
        write!(f, "{}", self.system.cell(a.cell).name)?;
        for (i, t) in a.args.iter().enumerate() {
            write!(f, "{}", if i == 0 { "[" } else { ", " })?;
            self.thread(f, *t)?;
        }
        write!(f, "{}", if a.args.is_empty() { "" } else { "]" })
    }

    fn term(&self, f: &mut Formatter<'_>, t: &Term) -> fmt::Result {
        match t {
            Term::Bool(b) => write!(f, "{}", if *b { "True" } else { "False" }),
            Term::Constructor(ty, c) => {
                let ty = &self.system.types[usize::from(*ty)];
                write!(f, "{}", ty.constructors[usize::from(*c)])
            }
            Term::Thread(t) => self.thread(f, *t),
            Term::Read(a) => self.access(f, a),
            Term::Sum { parts, constant } => self.sum(f, parts, *constant),
        }
    }

    fn sum(&self, f: &mut Formatter<'_>, parts: &[(i64, Access)], constant: i64) -> fmt::Result {
        for (i, (c, a)) in parts.iter().enumerate() {
            match (i, *c) {
                (0, 1) => {}
                (0, c) => write!(f, "{c} * ")?,
                (_, 1) => write!(f, " + ")?,
                (_, -1) => write!(f, " - ")?,
                (_, c) if c < 0 => write!(f, " - {} * ", c.unsigned_abs())?,
                (_, c) => write!(f, " + {c} * ")?,
            }
            self.access(f, a)?;
        }
        match (parts.is_empty(), constant) {
            (true, c) => write!(f, "{c}"),
            (false, 0) => Ok(()),
            (false, c) if c < 0 => write!(f, " - {}", c.unsigned_abs()),
            (false, c) => write!(f, " + {c}"),
        }
    }

    fn literal(&self, f: &mut Formatter<'_>, l: &Literal) -> fmt::Result {
        self.term(f, &l.left)?;
        let op = match l.op {
            Comparison::Eq => "=",
            Comparison::Ne => "<>",
            Comparison::Lt => "<",
            Comparison::Le => "<=",
        };
        write!(f, " {op} ")?;
        self.term(f, &l.right)
    }

    /// Parentheses around anything that is not at the top.
    fn formula(&self, f: &mut Formatter<'_>, formula: &'a Formula, top: bool) -> fmt::Result {
        let (list, separator, empty) = match formula {
            Formula::Atom(l) => return self.literal(f, l),
            Formula::Others {
                all,
                variable,
                body,
            } => {
                let word = if *all { "forall_other" } else { "exists_other" };
                write!(f, "{}{word} {variable}. (", if top { "" } else { "(" })?;
                let inner = self.with([variable.as_str()]);
                inner.formula(f, body, true)?;
                return write!(f, "{}", if top { ")" } else { "))" });
            }
            Formula::And(list) => (list, " && ", "0 = 0"),
            Formula::Or(list) => (list, " || ", "0 = 1"),
        };
        match list.len() {
            0 => return write!(f, "{empty}"),
            1 => return self.formula(f, &list[0], top),
            _ => {}
        }
        write!(f, "{}", if top { "" } else { "(" })?;
        for (i, part) in list.iter().enumerate() {
            write!(f, "{}", if i == 0 { "" } else { separator })?;
            self.formula(f, part, false)?;
        }
        write!(f, "{}", if top { "" } else { ")" })
    }

    fn update(&self, f: &mut Formatter<'_>, u: &'a Update) -> fmt::Result {
        let each = u.index.iter().filter_map(|i| match i {
            UpdateIndex::Each(n) => Some(n.as_str()),
            UpdateIndex::At(_) => None,
        });
        let inner = self.with(each);
        write!(f, "  {}", self.system.cell(u.cell).name)?;
        for (i, index) in u.index.iter().enumerate() {
            write!(f, "{}", if i == 0 { "[" } else { ", " })?;
            match index {
                UpdateIndex::Each(n) => write!(f, "{n}")?,
                UpdateIndex::At(t) => self.thread(f, *t)?,
            }
        }
        write!(f, "{} := ", if u.index.is_empty() { "" } else { "]" })?;
        let plain = u.branches.len() == 1
            && u.branches[0].condition.is_true()
            && !u.index.iter().any(|i| matches!(i, UpdateIndex::Each(_)));
        if plain {
            inner.value(f, &u.branches[0].value)?;
            return writeln!(f, ";");
        }
        write!(f, "case")?;
        for b in &u.branches {
            write!(f, "\n    | ")?;
            match b.condition.is_true() {
                true => write!(f, "_")?,
                false => inner.formula(f, &b.condition, true)?,
            }
            write!(f, " : ")?;
            inner.value(f, &b.value)?;
        }
        writeln!(f, ";")
    }

    fn value(&self, f: &mut Formatter<'_>, v: &Value) -> fmt::Result {
        match v {
            Value::Any => write!(f, "."),
            Value::Term(t) => self.term(f, t),
        }
    }
}
