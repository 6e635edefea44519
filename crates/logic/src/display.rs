//! Formulas as a person would write them: `x < y`, `2*x + y <= 3`, `2 | x + 1`.

use crate::atom::{Atom, Rel};
use crate::formula::Formula;
use crate::int::Int;
use crate::names::Symbols;
use crate::term::{Term, Var};
use std::fmt::{self, Display, Formatter};

struct Shown<'a, T>(&'a T, Option<&'a Symbols>);

impl Term {
    /// The term with the user's names.
    pub fn display<'a>(&'a self, symbols: &'a Symbols) -> impl Display + 'a {
        Shown(self, Some(symbols))
    }
}

impl Atom {
    /// The atom with the user's names.
    pub fn display<'a>(&'a self, symbols: &'a Symbols) -> impl Display + 'a {
        Shown(self, Some(symbols))
    }
}

impl Formula {
    /// The formula with the user's names.
    pub fn display<'a>(&'a self, symbols: &'a Symbols) -> impl Display + 'a {
        Shown(self, Some(symbols))
    }
}

macro_rules! plain_display {
    ($($t:ty),*) => {$(
        impl Display for $t {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                Shown(self, None).fmt(f)
            }
        }
    )*};
}

plain_display!(Term, Atom, Formula);

fn name(f: &mut Formatter<'_>, v: Var, symbols: Option<&Symbols>) -> fmt::Result {
    match symbols.and_then(|s| s.name(v)) {
        Some(n) => f.write_str(n),
        None => v.fmt(f),
    }
}

fn sum<'a>(
    f: &mut Formatter<'_>,
    monomials: impl Iterator<Item = (Var, &'a Int)>,
    constant: &Int,
    flip: bool,
    symbols: Option<&Symbols>,
) -> fmt::Result {
    let mut first = true;
    for (v, a) in monomials {
        let a = if flip { -a } else { a.clone() };
        match (first, a.is_negative()) {
            (true, true) => f.write_str("-")?,
            (true, false) => {}
            (false, true) => f.write_str(" - ")?,
            (false, false) => f.write_str(" + ")?,
        }
        if !a.is_unit() {
            write!(f, "{}*", a.abs())?;
        }
        name(f, v, symbols)?;
        first = false;
    }
    if first {
        write!(f, "{constant}")
    } else if constant.is_zero() {
        Ok(())
    } else {
        write!(
            f,
            " {} {}",
            if constant.is_negative() { "-" } else { "+" },
            constant.abs()
        )
    }
}

impl Display for Shown<'_, Term> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Shown(term, symbols) = self;
        sum(
            f,
            term.coeffs().iter().map(|(v, a)| (*v, a)),
            term.constant_part(),
            false,
            *symbols,
        )
    }
}

impl Display for Shown<'_, Atom> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Shown(atom, symbols) = self;
        let term = atom.term();
        match atom.rel() {
            Rel::Divides(m) => return write!(f, "{m} | {}", Shown(term, *symbols)),
            Rel::NotDivides(m) => return write!(f, "not {m} | {}", Shown(term, *symbols)),
            Rel::Le | Rel::Eq | Rel::Ne => {}
        }
        let side = |positive: bool| {
            term.coeffs()
                .iter()
                .filter(move |(_, a)| a.is_positive() == positive)
                .map(|(v, a)| (*v, a))
        };
        let c = term.constant_part();
        let (two_sided, flip) = (
            side(true).next().is_some() && side(false).next().is_some(),
            side(true).next().is_none(),
        );
        let strict = two_sided && *atom.rel() == Rel::Le && c.is_one();
        let op = match atom.rel() {
            Rel::Eq => "==",
            Rel::Ne => "!=",
            _ if strict => "<",
            _ if flip => ">=",
            Rel::Le | Rel::Divides(_) | Rel::NotDivides(_) => "<=",
        };
        // Constants stay positive: on the left if positive, on the right else.
        let (left, right) = match (strict, two_sided, flip) {
            (true, ..) => (Int::ZERO, Int::ZERO),
            (_, false, false) => (Int::ZERO, -c),
            (_, false, true) => (Int::ZERO, c.clone()),
            (_, true, _) if c.is_positive() => (c.clone(), Int::ZERO),
            (_, true, _) => (Int::ZERO, -c),
        };
        sum(f, side(!flip), &left, flip, *symbols)?;
        write!(f, " {op} ")?;
        sum(f, side(flip), &right, true, *symbols)
    }
}

impl Display for Shown<'_, Formula> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Shown(formula, symbols) = self;
        let (parts, op) = match formula {
            Formula::True => return f.write_str("true"),
            Formula::False => return f.write_str("false"),
            Formula::Atom(a) => return Shown(&**a, *symbols).fmt(f),
            Formula::And(parts) => (parts, " && "),
            Formula::Or(parts) => (parts, " || "),
        };
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                f.write_str(op)?;
            }
            match part {
                Formula::And(_) | Formula::Or(_) => write!(f, "({})", Shown(part, *symbols))?,
                Formula::True | Formula::False | Formula::Atom(_) => {
                    Shown(part, *symbols).fmt(f)?
                }
            }
        }
        Ok(())
    }
}
