//! The program as constrained Horn clauses in SMT-LIB 2: for each control state (where all threads are) a predicate
//! over what memory and registers hold. Numbers are mathematical integers, so everything is exact: wrap-around is
//! a remainder.

use super::control::{self, Place};
use super::{System, Title, Transition, Var, Variable, refused};
use std::fmt::Write;
use wattle_evidence::Refusal;
use wattle_model::instance::{Initial, Instance};
use wattle_model::{Expr, Op1, Op2, Span};

/// The widest operands of bit operators that are written bit by bit.
const MOST_BITS: u32 = 16;
/// More control states than this are not written down.
const MOST_PLACES: usize = 20_000;

/// The program and a question about it, or only its assertions and faults.
pub fn text(
    instance: &Instance,
    question: Option<usize>,
    title: &Title<'_>,
) -> Result<String, Refusal> {
    let system = System::new(instance, question)?;
    let Some(places) = control::reachable(&system, MOST_PLACES) else {
        let why = format!(
            "more than {MOST_PLACES} control states are not written down; fewer threads have fewer"
        );
        return Err(refused(Span::NONE, why));
    };
    let printer = Printer {
        system: &system,
        control: control::variables(&system),
    };
    let remark = |text: &str| text.replace(['\n', '\r'], " ");
    let (sat, unsat) = match system.minds_faults {
        true => ("the property holds", "it is violated"),
        false => (
            "it is never reached: the property is violated",
            "it is reached: the property holds",
        ),
    };
    let mut out = format!(
        "; {} under {}: {}\n; sat: {sat}. unsat: {unsat}.\n(set-logic HORN)\n",
        remark(title.file),
        remark(title.memory),
        remark(title.property)
    );
    for v in printer.data() {
        let _ = writeln!(out, "; {}: {}", v.name, remark(&v.source));
    }
    let order: Vec<String> = (system.variables.iter())
        .filter(|v| control::is_control(v.var))
        .map(|v| remark(&v.source))
        .collect();
    let _ = writeln!(
        out,
        "; the numbers of a predicate's name: {}",
        order.join(", ")
    );
    let sorts = vec!["Int"; printer.data().count()].join(" ");
    for place in &places {
        let _ = writeln!(out, "(declare-fun {} ({sorts}) Bool)", name(place));
    }
    let mut first = Vec::new();
    for v in printer.data() {
        let bounds = match v.init {
            Initial::Value(value) => Some((value, value)),
            Initial::Any => v.ty.bounds(),
        };
        first.extend(bounds.map(|b| between(&v.name, b)));
    }
    let begun = printer.state(&control::first(&system), &[], Span::NONE)?;
    printer.clause(&mut out, None, &first, &begun);
    let span = question.and_then(|q| instance.questions.get(q));
    let span = span.map_or(Span::NONE, |q| q.span);
    for place in &places {
        let now = printer.state(place, &[], Span::NONE)?;
        for step in &system.transitions {
            printer.step(&mut out, step, (place, &now))?;
        }
        let target = system.target.as_ref().map(|t| printer.known(t, place));
        if let Some(target) = target.filter(|t| t.as_const() != Some(0)) {
            out.push_str("; what is asked\n");
            let target = printer.truth(&target, span)?;
            printer.clause(&mut out, None, &[now, target], "false");
        }
    }
    out.push_str("(check-sat)\n");
    Ok(out)
}

struct Printer<'s> {
    system: &'s System<'s>,
    control: Vec<Var>,
}

/// The predicate of a control state.
fn name(place: &Place) -> String {
    place.iter().fold(String::from("reached"), |mut name, at| {
        let _ = write!(name, "_{at}");
        name
    })
}

/// The value that a step chooses.
const CHOSEN: &str = "chosen";

impl<'s> Printer<'s> {
    /// What predicates are about.
    fn data(&self) -> impl Iterator<Item = &'s Variable> {
        let all = self.system.variables.iter();
        all.filter(|v| !control::is_control(v.var))
    }

    fn known(&self, e: &Expr<Var>, place: &Place) -> Expr<Var> {
        control::known(e, &self.control, place)
    }

    fn clause(&self, out: &mut String, chosen: Option<&str>, body: &[String], head: &str) {
        let names = self.data().map(|v| v.name.as_str());
        let all: Vec<String> = (names.chain(chosen))
            .map(|name| format!("({name} Int)"))
            .collect();
        let clause = format!("(=> (and true {}) {head})", body.join(" "));
        let _ = match all.is_empty() {
            true => writeln!(out, "(assert {clause})"),
            false => writeln!(out, "(assert (forall ({})\n  {clause}))", all.join(" ")),
        };
    }

    /// What a step does in a control state.
    fn step(
        &self,
        out: &mut String,
        step: &Transition,
        (place, now): (&Place, &str),
    ) -> Result<(), Refusal> {
        let guard = self.known(&step.guard, place);
        if guard.as_const() == Some(0) {
            return Ok(());
        }
        let _ = writeln!(out, "; line {}", step.span.line);
        let mut body = vec![now.to_string(), self.truth(&guard, step.span)?];
        let range = step.chosen.flatten();
        body.extend(range.map(|r| between(CHOSEN, r)));
        let chosen = step.chosen.map(|_| CHOSEN);
        if step.ok != Expr::TRUE {
            let ok = self.truth(&step.ok, step.span)?;
            if self.system.minds_faults {
                let fault = [body.clone(), vec![format!("(not {ok})")]].concat();
                self.clause(out, chosen, &fault, "false");
            }
            body.push(ok);
        }
        if step.when != Expr::TRUE {
            body.push(self.truth(&step.when, step.span)?);
        }
        let there = control::moved(&step.updates, &self.control, place);
        let next = self.state(&there, &step.updates, step.span)?;
        self.clause(out, chosen, &body, &next);
        Ok(())
    }

    /// The predicate of a control state after some updates of data.
    fn state(
        &self,
        place: &Place,
        updates: &[(Var, Expr<Var>)],
        at: Span,
    ) -> Result<String, Refusal> {
        let mut values = Vec::new();
        for v in self.data() {
            let update = updates.iter().find(|(var, _)| *var == v.var);
            values.push(match update {
                Some((_, e)) => self.term(e, at)?,
                None => v.name.clone(),
            });
        }
        Ok(match values.is_empty() {
            true => name(place),
            false => format!("({} {})", name(place), values.join(" ")),
        })
    }

    fn truth(&self, e: &Expr<Var>, at: Span) -> Result<String, Refusal> {
        Ok(match e {
            Expr::Const(c) => (*c != 0).to_string(),
            Expr::Unary(Op1::Not, a) => format!("(not {})", self.truth(a, at)?),
            Expr::Binary(op, a, b) => {
                let word = match op {
                    Op2::And | Op2::Or => {
                        let word = if *op == Op2::And { "and" } else { "or" };
                        return Ok(format!(
                            "({word} {} {})",
                            self.truth(a, at)?,
                            self.truth(b, at)?
                        ));
                    }
                    Op2::Eq => "=",
                    Op2::Ne => "distinct",
                    Op2::Lt => "<",
                    Op2::Le => "<=",
                    Op2::Gt => ">",
                    Op2::Ge => ">=",
                    Op2::Add
                    | Op2::Sub
                    | Op2::Mul
                    | Op2::Div
                    | Op2::Rem
                    | Op2::BitAnd
                    | Op2::BitOr
                    | Op2::BitXor
                    | Op2::Shl
                    | Op2::Shr => return Ok(format!("(distinct {} 0)", self.term(e, at)?)),
                };
                format!("({word} {} {})", self.term(a, at)?, self.term(b, at)?)
            }
            Expr::Ite(c, a, b) => format!(
                "(ite {} {} {})",
                self.truth(c, at)?,
                self.truth(a, at)?,
                self.truth(b, at)?
            ),
            Expr::Atom(_) | Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, _) => {
                format!("(distinct {} 0)", self.term(e, at)?)
            }
        })
    }

    fn term(&self, e: &Expr<Var>, at: Span) -> Result<String, Refusal> {
        Ok(match e {
            Expr::Const(c) => number(i128::from(*c)),
            Expr::Atom(Var::Chosen) => CHOSEN.into(),
            Expr::Atom(var) => {
                let v = self.system.variable(*var);
                v.map_or_else(String::new, |v| v.name.clone())
            }
            Expr::Unary(Op1::Not, _) => format!("(ite {} 1 0)", self.truth(e, at)?),
            Expr::Unary(Op1::Neg, a) => format!("(- {})", self.term(a, at)?),
            Expr::Unary(Op1::BitNot, a) => format!("(- (- 1) {})", self.term(a, at)?),
            Expr::Unary(Op1::Wrap { bits, signed }, a) => {
                let inner = self.term(a, at)?;
                let bounds = self.system.bounds(None);
                if bounds.of(a).is_some() && bounds.of(a) == bounds.of(e) {
                    return Ok(inner);
                }
                let all = 1i128 << bits;
                match signed {
                    false => format!("(mod {inner} {all})"),
                    true => format!("(- (mod (+ {inner} {h}) {all}) {h})", h = all / 2),
                }
            }
            Expr::Binary(op, a, b) => self.binary(e, *op, (a, b), at)?,
            Expr::Ite(c, a, b) => format!(
                "(ite {} {} {})",
                self.truth(c, at)?,
                self.term(a, at)?,
                self.term(b, at)?
            ),
        })
    }

    fn binary(
        &self,
        e: &Expr<Var>,
        op: Op2,
        (a, b): (&Expr<Var>, &Expr<Var>),
        at: Span,
    ) -> Result<String, Refusal> {
        if op.is_logical() {
            return Ok(format!("(ite {} 1 0)", self.truth(e, at)?));
        }
        let (x, y) = (self.term(a, at)?, self.term(b, at)?);
        Ok(match op {
            Op2::Add => format!("(+ {x} {y})"),
            Op2::Sub => format!("(- {x} {y})"),
            Op2::Mul => format!("(* {x} {y})"),
            // There, remainders are never negative; ours have the sign of the dividend.
            Op2::Div => format!("(ite (>= {x} 0) (div {x} {y}) (- (div (- {x}) {y})))"),
            Op2::Rem => format!("(ite (>= {x} 0) (mod {x} {y}) (- (mod (- {x}) {y})))"),
            Op2::Shl | Op2::Shr => {
                // Which of the shifts that are no fault it is.
                let (lo, hi) = self.system.bounds(None).of(b).unwrap_or((0, 63));
                let word = if op == Op2::Shl { "*" } else { "div" };
                let by = |s: i128| format!("({word} {x} {})", 1i128 << s);
                let (lo, hi) = (lo.clamp(0, 63), hi.clamp(0, 63));
                let last = by(hi);
                (lo..hi).rev().fold(last, |rest, s| {
                    format!("(ite (= {y} {s}) {} {rest})", by(s))
                })
            }
            Op2::BitAnd => self.bits((op, "and"), (a, &x), (b, &y), at)?,
            Op2::BitOr => self.bits((op, "or"), (a, &x), (b, &y), at)?,
            Op2::BitXor => self.bits((op, "xor"), (a, &x), (b, &y), at)?,
            Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge | Op2::And | Op2::Or => {
                format!("(ite {} 1 0)", self.truth(e, at)?)
            }
        })
    }

    /// Bit by bit, where there are few; the low bits of a number are a remainder.
    fn bits(
        &self,
        (op, word): (Op2, &str),
        (a, x): (&Expr<Var>, &str),
        (b, y): (&Expr<Var>, &str),
        at: Span,
    ) -> Result<String, Refusal> {
        let mask = |e: &Expr<Var>| e.as_const().filter(|c| *c > 0 && (c + 1) & c == 0);
        if op == Op2::BitAnd {
            if let Some(m) = mask(b) {
                return Ok(format!("(mod {x} {})", m + 1));
            }
            if let Some(m) = mask(a) {
                return Ok(format!("(mod {y} {})", m + 1));
            }
        }
        let bounds = self.system.bounds(None);
        let width = |e: &Expr<Var>| {
            let (lo, hi) = bounds.of(e)?;
            (lo >= 0).then(|| 128 - hi.leading_zeros())
        };
        let wide = match (width(a), width(b)) {
            (Some(a), Some(b)) if a.max(b) <= MOST_BITS => a.max(b),
            _ => {
                let why = format!(
                    "`{}` of numbers that may be negative or have more than {MOST_BITS} bits has no words in linear arithmetic",
                    op.symbol()
                );
                return Err(refused(at, why));
            }
        };
        let bit = |v: &str, i: u32| format!("(= (mod (div {v} {}) 2) 1)", 1u64 << i);
        let each = (0..wide)
            .map(|i| format!("(ite ({word} {} {}) {} 0)", bit(x, i), bit(y, i), 1u64 << i));
        Ok(format!("(+ 0 0 {})", each.collect::<Vec<_>>().join(" ")))
    }
}

fn between(name: &str, (lo, hi): (i64, i64)) -> String {
    let (least, most) = (number(i128::from(lo)), number(i128::from(hi)));
    match lo == hi {
        true => format!("(= {name} {least})"),
        false => format!("(<= {least} {name} {most})"),
    }
}

/// There are no negative numerals.
fn number(n: i128) -> String {
    match n < 0 {
        true => format!("(- {})", -n),
        false => n.to_string(),
    }
}
