//! The program as Promela, for Spin: a process for each thread, whose steps are options of one loop, and one
//! that looks at every state. Places are variables, so that formulas can name them.
//!
//! Numbers are C's there, of 32 bits: what may be larger is refused. An integer without bounds is kept in 16, and a
//! run that leaves them ends with an error of its own, `too_large`, which says nothing of the program.

use super::{System, Title, Transition, Var, Variable, refused, remark};
use std::fmt::Write;
use wattle_evidence::Refusal;
use wattle_model::instance::{Fact, Initial, Instance};
use wattle_model::{Expr, Formula, Op1, Op2, Span};

/// What an integer without bounds is kept in.
const PLAIN: (i128, i128) = (-32767, 32767);
/// More choices than this are not written down.
const MOST_CHOICES: i64 = 256;

/// The program and a question about it, or only its assertions and faults.
pub fn text(
    instance: &Instance,
    question: Option<usize>,
    title: &Title<'_>,
) -> Result<String, Refusal> {
    let system = System::new(instance, question)?;
    let printer = Printer::new(&system);
    let mut out = String::new();
    let reached = match system.minds_faults {
        true => "violated",
        false => "reached: the property holds",
    };
    let _ = writeln!(
        out,
        "/* {} under {}: {}\n   spin -run -O2 FILE: `assertion violated` with `violated` is a run, the property is {reached};\n   errors: 0 after a full search means that there is none. An error with `too_large` says nothing: a number\n   without bounds left {}..{}. */",
        remark(title.file),
        remark(title.memory),
        remark(title.property),
        PLAIN.0,
        PLAIN.1
    );
    out.push_str(&printer.threads()?);
    if let Some(target) = &system.target {
        let span = question.and_then(|q| instance.questions.get(q));
        let target = printer.expression(target, span.map_or(Span::NONE, |q| q.span), None)?;
        let started = printer.started();
        let _ = writeln!(
            out,
            "active proctype property() {{\nend: if\n  :: d_step {{ ({started}{target}) -> {VIOLATED} }}\n  fi\n}}"
        );
    }
    Ok(out)
}

/// The processes of the threads alone.
pub fn threads(instance: &Instance) -> Result<String, Refusal> {
    let system = System::new(instance, None)?;
    Printer::new(&system).threads()
}

/// A formula about them, for `ltl`. States inside of atomic blocks are none for us, but some for Spin, and so
/// are those before values were chosen: programs that have them are refused.
pub fn formula(
    instance: &Instance,
    formula: &Formula<Expr<Fact>>,
    span: Span,
) -> Result<String, Refusal> {
    let system = System::new(instance, None)?;
    let printer = Printer::new(&system);
    if system.has(Var::Inside) || !printer.started().is_empty() {
        let why = "atomic blocks and values chosen at the start are not written for formulas";
        return Err(refused(span, why));
    }
    printer.formula(formula, span)
}

const VIOLATED: &str = "violated = 1; assert(!violated)";

struct Printer<'s> {
    system: &'s System<'s>,
}

impl<'s> Printer<'s> {
    fn new(system: &'s System<'s>) -> Self {
        Printer { system }
    }

    /// What comes first in a condition where values are chosen at the start.
    fn started(&self) -> &'static str {
        let mut all = self.system.variables.iter();
        match all.any(|v| v.init == Initial::Any) {
            true => "started && ",
            false => "",
        }
    }

    fn threads(&self) -> Result<String, Refusal> {
        let mut out = String::from("bit violated = 0;\nbit too_large = 0;\n");
        let started = self.started();
        for v in &self.system.variables {
            let value = match v.init {
                Initial::Value(value) => value,
                Initial::Any => v.ty.bounds().map_or(0, |(lo, _)| lo),
            };
            let (name, ty, source) = (&v.name, kept(v)?, remark(&v.source));
            let _ = writeln!(out, "{ty} {name} = {value}; /* {source} */");
        }
        if !started.is_empty() {
            out.push_str("bit started = 0;\nactive proctype start() {\n  atomic {\n");
            for v in self
                .system
                .variables
                .iter()
                .filter(|v| v.init == Initial::Any)
            {
                let values = choices(v.ty.bounds(), Span::NONE)?;
                let each = values.map(|value| format!(":: {} = {value} ", v.name));
                let _ = writeln!(out, "    if {}fi;", each.collect::<String>());
            }
            out.push_str("    started = 1\n  }\n}\n");
        }
        let mut steps = self.system.transitions.iter();
        for (t, thread) in self.system.instance.threads.iter().enumerate() {
            let _ = writeln!(
                out,
                "/* {} */\nactive proctype p{t}() {{\nend: do",
                remark(&thread.name)
            );
            for step in steps.by_ref().take(thread.steps.len()) {
                self.step(&mut out, step, started)?;
            }
            // A thread without steps blocks at once.
            out.push_str("  :: d_step { (false) -> skip }\n  od\n}\n");
        }
        Ok(out)
    }

    fn step(&self, out: &mut String, step: &Transition, started: &str) -> Result<(), Refusal> {
        let values: Vec<Option<i64>> = match step.chosen {
            None => vec![None],
            Some(range) => choices(range, step.span)?.map(Some).collect(),
        };
        let line = step.span.line;
        for chosen in values {
            let text = |e: &Expr<Var>| self.expression(e, step.span, chosen);
            let guard = format!("{started}{}", text(&step.guard)?);
            let (mut ok, mut when) = (String::new(), String::new());
            if step.ok != Expr::TRUE {
                ok = format!(" && {}", text(&step.ok)?);
                if self.system.minds_faults {
                    let fault = text(&step.ok)?;
                    let _ = writeln!(
                        out,
                        "  :: d_step {{ ({guard} && !{fault}) -> {VIOLATED} }} /* line {line}: a fault */"
                    );
                }
            }
            if step.when != Expr::TRUE {
                when = format!(" && {}", text(&step.when)?);
            }
            let mut effects = String::new();
            for (var, e) in &step.updates {
                let Some(v) = self.system.variable(*var) else {
                    continue;
                };
                let value = text(e)?;
                let fits = self
                    .range(e, chosen)
                    .is_some_and(|(lo, hi)| lo >= PLAIN.0 && hi <= PLAIN.1);
                if v.ty.bounds().is_none() && !fits {
                    let _ = write!(
                        effects,
                        "if :: ({value} < {} || {value} > {}) -> too_large = 1; assert(!too_large) :: else fi; ",
                        PLAIN.0, PLAIN.1
                    );
                }
                let _ = write!(effects, "{} = {value}; ", v.name);
            }
            let _ = writeln!(
                out,
                "  :: d_step {{ ({guard}{ok}{when}) -> {effects}}} /* line {line} */"
            );
        }
        Ok(())
    }

    fn range(&self, e: &Expr<Var>, chosen: Option<i64>) -> Option<(i128, i128)> {
        let mut bounds = self.system.bounds(Some(PLAIN));
        bounds.chosen = chosen.map(|c| (c, c));
        bounds.of(e)
    }

    /// In C's words; everything on the way must fit C's numbers.
    fn expression(&self, e: &Expr<Var>, at: Span, chosen: Option<i64>) -> Result<String, Refusal> {
        let int = (i128::from(i32::MIN) + 1, i128::from(i32::MAX));
        let fits = |e: &Expr<Var>| {
            let range = self.range(e, chosen);
            range.is_some_and(|(lo, hi)| lo >= int.0 && hi <= int.1)
        };
        if !fits(e) {
            return Err(refused(
                at,
                "a number here may need more than Promela's 32 bits",
            ));
        }
        let text = |e: &Expr<Var>| self.expression(e, at, chosen);
        Ok(match e {
            Expr::Const(c) => format!("({c})"),
            Expr::Atom(Var::Chosen) => format!("({})", chosen.unwrap_or(0)),
            Expr::Atom(var) => {
                let v = self.system.variable(*var);
                v.map_or_else(String::new, |v| v.name.clone())
            }
            Expr::Unary(Op1::Neg, a) => format!("(-{})", text(a)?),
            Expr::Unary(Op1::Not, a) => format!("(!{})", text(a)?),
            Expr::Unary(Op1::BitNot, a) => format!("(~{})", text(a)?),
            Expr::Unary(Op1::Wrap { bits, signed }, a) => {
                let inner = text(a)?;
                // The value itself where it fits: wide types are only refused where numbers are wide.
                if self.range(e, chosen) == self.range(a, chosen) {
                    return Ok(inner);
                }
                let mask = (1i64 << bits) - 1;
                match signed {
                    false => format!("({inner} & {mask})"),
                    true => {
                        let sign = 1i64 << (bits - 1);
                        format!("((({inner} & {mask}) ^ {sign}) - {sign})")
                    }
                }
            }
            Expr::Binary(op @ (Op2::Shl | Op2::Shr), a, by) => {
                let short = self.range(by, chosen);
                if !short.is_some_and(|(lo, hi)| lo >= 0 && hi <= 30) {
                    return Err(refused(at, "a shift here may be by more than 30 bits"));
                }
                // C does not say what a negative number shifted to the left is.
                match *op == Op2::Shl {
                    true => format!("({} * (1 << {}))", text(a)?, text(by)?),
                    false => format!("({} >> {})", text(a)?, text(by)?),
                }
            }
            Expr::Binary(op, a, b) => format!("({} {} {})", text(a)?, op.symbol(), text(b)?),
            Expr::Ite(c, a, b) => format!("({} -> {} : {})", text(c)?, text(a)?, text(b)?),
        })
    }

    fn formula(&self, f: &Formula<Expr<Fact>>, span: Span) -> Result<String, Refusal> {
        let sub = |f: &Formula<Expr<Fact>>| self.formula(f, span);
        let two = |f, word: &str, g| Ok(format!("({} {word} {})", sub(f)?, sub(g)?));
        match f {
            Formula::Now(e) => {
                let e = self.system.looked_at(e, span)?;
                self.expression(&e, span, None)
            }
            Formula::Not(f) => Ok(format!("(!{})", sub(f)?)),
            Formula::And(f, g) => two(f, "&&", g),
            Formula::Or(f, g) => two(f, "||", g),
            Formula::Implies(f, g) => two(f, "->", g),
            Formula::Globally(f) => Ok(format!("([] {})", sub(f)?)),
            Formula::Finally(f) => Ok(format!("(<> {})", sub(f)?)),
            Formula::Until(f, g) => two(f, "U", g),
            Formula::Release(f, g) => two(f, "V", g),
            Formula::WeakUntil(f, g) => two(f, "W", g),
        }
    }
}

/// The type that a variable is kept in.
fn kept(v: &Variable) -> Result<&'static str, Refusal> {
    let (lo, hi) = v.ty.bounds().unwrap_or((PLAIN.0 as i64, PLAIN.1 as i64));
    let fits = |value: i64| (lo..=hi).contains(&value);
    if !matches!(v.init, Initial::Value(value) if fits(value)) && v.init != Initial::Any {
        let why = format!(
            "`{}` begins with a number that Promela's 16 bits do not have",
            v.source
        );
        return Err(refused(Span::NONE, why));
    }
    match (lo, hi) {
        (0.., ..=255) => Ok("byte"),
        (-32768.., ..=32767) => Ok("short"),
        (-2_147_483_647.., ..=2_147_483_647) => Ok("int"),
        _ => {
            let why = format!("`{}` has more values than Promela's 32 bits", v.source);
            Err(refused(Span::NONE, why))
        }
    }
}

/// Values to choose from, few enough to write each.
fn choices(range: Option<(i64, i64)>, at: Span) -> Result<std::ops::RangeInclusive<i64>, Refusal> {
    match range {
        Some((lo, hi)) if hi.checked_sub(lo).is_some_and(|n| n < MOST_CHOICES) => Ok(lo..=hi),
        _ => {
            let why =
                format!("more than {MOST_CHOICES} values to choose from are not written down");
            Err(refused(at, why))
        }
    }
}
