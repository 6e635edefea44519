//! Infix expressions as the languages of the papers write them: `=` and `==` are equality, `and`,
//! `&`, `&&` and `∧` are conjunction, and so on. Precedence climbing; what a leaf is besides a number
//! or a truth value, each language says.

use crate::tokens::{Kind, Lexis, MAX_HEIGHT, Reader, Reported, digits, word};
use wattle_model::{Expr, Op1, Op2};

/// The tokens of the languages with such expressions.
pub(crate) const LEXIS: Lexis = Lexis {
    symbols: &[
        ":=", "==", "!=", "<>", "<=", ">=", "&&", "||", "≠", "≤", "≥", "∧", "∨", "¬", "=", "<",
        ">", "&", "|", "!", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", ";", ":", "@", ".",
    ],
    line_comment: Some("//"),
    comments: &[Lexis::C_COMMENT],
    marks: &[],
    quotes: &[('"', Kind::Text)],
    escapes: false,
    number: digits,
    name: |text| word(text, begins_name, |c| begins_name(c) || c.is_numeric()),
};

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// What `assert(…)` says.
pub(crate) enum Asserted<L> {
    Always(Expr<L>),
    /// At some time of every run.
    Eventually(Expr<L>),
    /// Whenever the one, at that time or later the other.
    Leads(Expr<L>, Expr<L>),
    Progress,
}

/// The rest of `assert(always(b))`, `assert(eventually(b))`, `assert(leads(b, b))` or `assert(progress)`.
pub(crate) fn asserted<'t, L>(
    c: &mut Reader<'t>,
    leaf: Leaf<'_, 't, L>,
) -> Result<Asserted<L>, Reported> {
    c.expect("(")?;
    let word = c.peek().text;
    if !["always", "eventually", "leads", "progress"].contains(&word) {
        return Err(c.unexpected("`always`, `eventually`, `leads` or `progress`"));
    }
    c.take();
    if word == "progress" {
        c.expect(")")?;
        return Ok(Asserted::Progress);
    }
    c.expect("(")?;
    let first = expression(c, leaf)?;
    let asserted = match word {
        "always" => Asserted::Always(first),
        "eventually" => Asserted::Eventually(first),
        _ => {
            c.expect(",")?;
            Asserted::Leads(first, expression(c, leaf)?)
        }
    };
    c.expect(")")?;
    c.expect(")")?;
    Ok(asserted)
}

type Leaf<'a, 't, L> = &'a mut dyn FnMut(&mut Reader<'t>) -> Result<Expr<L>, Reported>;

fn binary(word: &str) -> Option<Op2> {
    Some(match word {
        "or" | "|" | "||" | "∨" => Op2::Or,
        "and" | "&" | "&&" | "∧" => Op2::And,
        "=" | "==" => Op2::Eq,
        "!=" | "<>" | "≠" => Op2::Ne,
        "<" => Op2::Lt,
        "<=" | "≤" => Op2::Le,
        ">" => Op2::Gt,
        ">=" | "≥" => Op2::Ge,
        "+" => Op2::Add,
        "-" => Op2::Sub,
        "*" => Op2::Mul,
        "/" => Op2::Div,
        "%" | "mod" => Op2::Rem,
        _ => return None,
    })
}

/// An expression; `leaf` reads what is neither an operator nor a parenthesis.
pub(crate) fn expression<'t, L>(
    c: &mut Reader<'t>,
    leaf: Leaf<'_, 't, L>,
) -> Result<Expr<L>, Reported> {
    Ok(climb(c, leaf, 0)?.0)
}

/// The expression up to the first operator that binds weaker than `level`, and its height.
fn climb<'t, L>(
    c: &mut Reader<'t>,
    leaf: Leaf<'_, 't, L>,
    level: u8,
) -> Result<(Expr<L>, usize), Reported> {
    let (mut left, mut height) = operand(c, leaf)?;
    while let Some(op) = binary(c.peek().text).filter(|op| op.precedence() >= level) {
        let at = c.take().span;
        let (right, other) = c.nested(|c| climb(c, leaf, op.precedence() + 1))?;
        height = 1 + height.max(other);
        if height > MAX_HEIGHT {
            let message = format!("an expression of more than {MAX_HEIGHT} operators in a row");
            return Err(c.error(at, message));
        }
        left = Expr::binary(op, left, right);
    }
    Ok((left, height))
}

fn operand<'t, L>(c: &mut Reader<'t>, leaf: Leaf<'_, 't, L>) -> Result<(Expr<L>, usize), Reported> {
    let t = c.peek();
    let op = match t.text {
        "!" | "not" | "¬" => Op1::Not,
        "-" => Op1::Neg,
        "(" => {
            c.take();
            let inner = c.nested(|c| climb(c, leaf, 0))?;
            c.expect(")")?;
            return Ok(inner);
        }
        _ if t.kind == Kind::Number => return Ok((Expr::Const(c.number("a number")?), 1)),
        _ if c.eat("true") => return Ok((Expr::TRUE, 1)),
        _ if c.eat("false") => return Ok((Expr::FALSE, 1)),
        _ => return Ok((leaf(c)?, 1)),
    };
    c.take();
    // `!` and `-` bind tighter than every binary operator.
    let (inner, height) = c.nested(|c| operand(c, leaf))?;
    Ok(match (op, inner) {
        (Op1::Neg, Expr::Const(n)) => (Expr::Const(-n), 1),
        (op, inner) => (Expr::unary(op, inner), height + 1),
    })
}
