//! `unsafe_prop`: what must never be reached, over different threads `$t1`, `$t2`, ….

use super::build::Layout;
use super::number;
use crate::diagnostics::{Diagnostic, nearest};
use crate::flow::junction;
use crate::tokens::{Cursor, Kind, Token};
use crate::x86_core::{Arithmetic, Base, Code, Name, Result, Size};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::expr::wrap;
use wattle_model::{
    Condition, Expr, FamilyId, IndexId, IndexVariable, Observation, Op1, Op2, Property,
    PropertyKind, RegionId, RegisterId, Span, ThreadIndex, ThreadRef, Type,
};

pub struct Reader<'a> {
    pub layout: &'a Layout<'a>,
    /// Positions of the thread's registers.
    pub register: &'a dyn Fn(Name) -> Option<Expr<RegisterId>>,
    indices: Vec<(String, String)>,
    /// Registers that a state may show before the thread has written them.
    pub exposed: BTreeSet<Base>,
    /// Registers and labels of threads in the current alternative.
    registers: BTreeSet<(IndexId, Base)>,
    labels: BTreeSet<(IndexId, usize)>,
    written: Vec<BTreeSet<Base>>,
    positions: BTreeMap<&'a str, usize>,
}

const FAMILY: FamilyId = FamilyId(0);
const MAX_INDICES: usize = 16;

/// Registers a property speaks of, so that the threads have them.
pub fn names(lines: &[Vec<Token<'_>>]) -> Vec<Name> {
    let mut found = Vec::new();
    for line in lines {
        for pair in line.windows(2) {
            if pair[0].kind == Kind::Name && pair[1].is("[") {
                found.extend(Name::parse(pair[0].text));
            }
        }
    }
    found
}

enum Term {
    Eip(ThreadRef, Span),
    /// A value, and on how many bits if it wraps around.
    Value(Expr<Observation>, Option<u8>),
    Number(i64, Span),
    /// A name that may be a label.
    Name(String, Span),
}

/// A value compared with a number of the same width. Values are read as signed; a number that only
/// fits unsigned makes the comparison an unsigned one.
fn same_width(
    value: Expr<Observation>,
    bits: Option<u8>,
    op: Op2,
    number: i64,
    span: Span,
) -> Result<(Expr<Observation>, Expr<Observation>)> {
    let Some(bits) = bits else {
        return Ok((value, Expr::Const(number)));
    };
    let fits = |signed: bool| Type::Wrap { bits, signed }.admit(number) == Some(number);
    if fits(true) {
        return Ok((value, Expr::Const(number)));
    }
    if !fits(false) {
        let message = format!("{number} does not fit the {bits} bits it is compared with");
        return Err(Diagnostic::error(span, message));
    }
    if matches!(op, Op2::Eq | Op2::Ne) {
        return Ok((value, Expr::Const(wrap(number, bits, true))));
    }
    let unsigned = Op1::Wrap {
        bits,
        signed: false,
    };
    Ok((Expr::unary(unsigned, value), Expr::Const(number)))
}

impl<'a> Reader<'a> {
    pub fn new(
        layout: &'a Layout<'a>,
        code: &'a Code,
        register: &'a dyn Fn(Name) -> Option<Expr<RegisterId>>,
    ) -> Self {
        Reader {
            layout,
            register,
            indices: Vec::new(),
            exposed: BTreeSet::new(),
            registers: BTreeSet::new(),
            labels: BTreeSet::new(),
            written: code.written_before(),
            positions: code.label_positions(),
        }
    }

    /// Notes which registers of an alternative may be seen before they are written: those without
    /// a label of the same thread beside them that says otherwise.
    fn end_alternative(&mut self) {
        let labels = std::mem::take(&mut self.labels);
        for (thread, base) in std::mem::take(&mut self.registers) {
            let covered = labels
                .iter()
                .any(|(t, at)| *t == thread && self.written[*at].contains(&base));
            if !covered {
                self.exposed.insert(base);
            }
        }
    }

    pub fn property(&mut self, lines: &[Vec<Token<'_>>], span: Span) -> Result<Property> {
        let mut tokens: Vec<Token<'_>> = Vec::new();
        for line in lines {
            if tokens.last().is_some_and(|t| t.kind == Kind::End) {
                tokens.pop();
            }
            tokens.extend(line);
        }
        if tokens.is_empty() {
            return Err(Diagnostic::error(span, "this section is empty")
                .expected("conditions such as `eip[$t1] = cs && eip[$t2] = cs`"));
        }
        let mut c = Cursor::new(tokens.clone());
        let mut alternatives = Vec::new();
        loop {
            let mut parts = vec![self.atom(&mut c)?];
            while c.eat("&&") {
                parts.push(self.atom(&mut c)?);
            }
            alternatives.extend(junction(Op2::And, parts));
            self.end_alternative();
            if !c.eat("||") {
                break;
            }
        }
        c.finish("`&&` or `||`")?;
        let whole = tokens[0].span.to(tokens[tokens.len() - 1].span);
        Ok(Property {
            kind: PropertyKind::Never,
            condition: Condition {
                indices: self
                    .indices
                    .iter()
                    .map(|(_, name)| IndexVariable {
                        name: name.clone(),
                        family: FAMILY,
                    })
                    .collect(),
                expr: junction(Op2::Or, alternatives).unwrap_or(Expr::FALSE),
            },
            span: whole,
        })
    }

    fn atom(&mut self, c: &mut Cursor<'_>) -> Result<Expr<Observation>> {
        let left = self.term(c)?;
        let t = c.peek();
        let op = match t.text {
            "=" | "==" => Op2::Eq,
            "<>" | "!=" => Op2::Ne,
            "<" => Op2::Lt,
            ">" => Op2::Gt,
            "<=" => Op2::Le,
            ">=" => Op2::Ge,
            _ => return Err(c.unexpected("`=`, `<>`, `<`, `>`, `<=` or `>=`")),
        };
        c.take();
        let right = self.term(c)?;
        match (left, right) {
            (Term::Eip(thread, _), Term::Name(label, span))
            | (Term::Name(label, span), Term::Eip(thread, _)) => {
                self.check_label(&label, span)?;
                let here = match thread.index {
                    ThreadIndex::Variable(i) => Some((i, self.positions[label.as_str()])),
                    ThreadIndex::Number(_) => None,
                };
                let at = Expr::Atom(Observation::At(thread, label));
                match op {
                    Op2::Eq => {
                        self.labels.extend(here);
                        Ok(at)
                    }
                    Op2::Ne => Ok(at.negate()),
                    _ => Err(
                        Diagnostic::error(t.span, "places in the code have no order")
                            .expected("`=` or `<>`"),
                    ),
                }
            }
            (Term::Eip(_, span), _) | (_, Term::Eip(_, span)) => {
                Err(Diagnostic::error(span, "`eip` is compared with a label"))
            }
            (Term::Number(n, span), other) => {
                let (value, bits) = self.value(other)?;
                let (value, n) = same_width(value, bits, op, n, span)?;
                Ok(Expr::binary(op, n, value))
            }
            (other, Term::Number(n, span)) => {
                let (value, bits) = self.value(other)?;
                let (value, n) = same_width(value, bits, op, n, span)?;
                Ok(Expr::binary(op, value, n))
            }
            (left, right) => {
                let (left, right) = (self.value(left)?.0, self.value(right)?.0);
                Ok(Expr::binary(op, left, right))
            }
        }
    }

    fn value(&self, t: Term) -> Result<(Expr<Observation>, Option<u8>)> {
        match t {
            Term::Value(e, bits) => Ok((e, bits)),
            Term::Number(n, _) => Ok((Expr::Const(n), None)),
            Term::Name(name, span) => self.cell(&name, Expr::Const(0), false, span),
            Term::Eip(_, span) => Err(Diagnostic::error(span, "`eip` is compared with a label")),
        }
    }

    fn check_label(&self, label: &str, span: Span) -> Result<()> {
        if self.positions.contains_key(label) {
            return Ok(());
        }
        let d = Diagnostic::error(span, format!("there is no label `{label}`"));
        Err(match nearest(label, self.positions.keys().copied()) {
            Some(near) => d.hint(format!("did you mean `{near}`?")),
            None => d.expected("a label of `thread_code`"),
        })
    }

    /// `eip[$t]`, `eax[$t]`, `x`, `x[$t]`, `$t:x`, `$t:x[$u]`, a number, `N`.
    fn term(&mut self, c: &mut Cursor<'_>) -> Result<Term> {
        let span = c.peek().span;
        if let Some(n) = number(c)? {
            return Ok(Term::Number(n, span));
        }
        if c.peek().kind == Kind::Marked('$') {
            return self.seen(c);
        }
        let t = c.name("`eip[$t]`, a register, a variable or a number")?;
        if !c.eat("[") {
            if t.text == "N" {
                return Ok(Term::Value(Expr::Atom(Observation::Count(FAMILY)), None));
            }
            return Ok(Term::Name(t.text.to_string(), t.span));
        }
        let thread = c.peek();
        if thread.kind != Kind::Marked('$') {
            return Err(c.unexpected("a thread such as `$t1`"));
        }
        c.take();
        let end = c.expect("]")?;
        let span = t.span.to(end);
        let index = self.index(thread)?;
        let thread = ThreadRef {
            family: FAMILY,
            index: ThreadIndex::Variable(index),
        };
        if t.is_word("eip") {
            return Ok(Term::Eip(thread, span));
        }
        if let Some(name) = Name::parse(t.text) {
            let found = (self.register)(name).filter(|_| name.size <= Size::Dword);
            let Some(e) = found else {
                let message = format!("the threads have no register `{}`", t.text);
                return Err(Diagnostic::error(span, message).expected("a 32-bit register"));
            };
            self.registers.insert((index, name.base));
            let observed: std::result::Result<_, Diagnostic> =
                e.substitute(&mut |r| Ok(Expr::Atom(Observation::Register(thread.clone(), *r))));
            let bits = match self.layout.arithmetic {
                Arithmetic::Wrapping => Some(name.size.bits()),
                Arithmetic::Mathematical => None,
            };
            return Ok(Term::Value(observed?, bits));
        }
        let own = Expr::Atom(Observation::Index(index));
        let (value, bits) = self.cell(t.text, own, true, span)?;
        Ok(Term::Value(value, bits))
    }

    /// `$t:x`, `$t:x[$u]`: what the thread would load, its newest pending store of the variable or else memory.
    fn seen(&mut self, c: &mut Cursor<'_>) -> Result<Term> {
        let thread = c.take();
        let reader = ThreadRef {
            family: FAMILY,
            index: ThreadIndex::Variable(self.index(thread)?),
        };
        c.expect(":")?;
        let name = c.name("a variable")?;
        let (mut owner, mut span) = (None, thread.span.to(name.span));
        if c.eat("[") {
            let thread = c.peek();
            if thread.kind != Kind::Marked('$') {
                return Err(c.unexpected("a thread such as `$t1`"));
            }
            c.take();
            owner = Some(self.index(thread)?);
            span = span.to(c.expect("]")?);
        }
        let element = owner.map_or(Expr::Const(0), |o| Expr::Atom(Observation::Index(o)));
        let (value, bits) = self.cell(name.text, element, owner.is_some(), span)?;
        let seen: std::result::Result<_, std::convert::Infallible> = value.substitute(&mut |o| {
            Ok(Expr::Atom(match o {
                Observation::Cell(r, index) => Observation::Seen(reader.clone(), *r, index.clone()),
                other => other.clone(),
            }))
        });
        let Ok(seen) = seen;
        Ok(Term::Value(seen, bits))
    }

    fn cell(
        &self,
        name: &str,
        index: Expr<Observation>,
        per_thread: bool,
        span: Span,
    ) -> Result<(Expr<Observation>, Option<u8>)> {
        let variables = self.layout.variables;
        let Some(i) = variables.iter().position(|v| v.name == name) else {
            let d = Diagnostic::error(span, format!("there is no variable `{name}`"));
            return Err(
                match nearest(name, variables.iter().map(|v| v.name.as_str())) {
                    Some(near) => d.hint(format!("did you mean `{near}`?")),
                    None => d.expected("a variable, or `eip[$t]` next to a label"),
                },
            );
        };
        if variables[i].per_thread != per_thread {
            let d = Diagnostic::error(span, format!("`{name}` is used like what it is not"));
            return Err(if per_thread {
                d.hint(format!("it is shared: write `{name}` without a thread"))
            } else {
                d.hint(format!("every thread has one: write `{name}[$t]`"))
            });
        }
        let id = RegionId::new(i);
        let bits = match self.layout.types[i] {
            Type::Wrap { bits, .. } => Some(bits),
            Type::Int | Type::Range { .. } | Type::Thread(_) => None,
        };
        Ok((Expr::Atom(Observation::Cell(id, Box::new(index))), bits))
    }

    fn index(&mut self, t: Token<'_>) -> Result<IndexId> {
        let name = t.text;
        if let Some(i) = self.indices.iter().position(|(n, _)| n == name) {
            return Ok(IndexId::new(i));
        }
        if self.indices.len() >= MAX_INDICES {
            let message = format!("a property speaks of at most {MAX_INDICES} threads");
            return Err(Diagnostic::error(t.span, message));
        }
        let mut shown = name.to_string();
        let variables = self.layout.variables;
        while variables.iter().any(|v| v.name == shown)
            || self.indices.iter().any(|(_, s)| *s == shown)
        {
            shown.push('_');
        }
        self.indices.push((name.to_string(), shown));
        Ok(IndexId::new(self.indices.len() - 1))
    }
}
