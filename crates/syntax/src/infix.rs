//! Infix expressions as the languages of the papers write them: `=` and `==` are equality, `and`,
//! `&`, `&&` and `∧` are conjunction, and so on. Precedence climbing; what a leaf is, each language
//! says.

use crate::tokens::{Cursor, MAX_HEIGHT, Reported};
use wattle_model::{Expr, Op1, Op2};

/// Symbols of such expressions, for [`crate::tokens::Lexis`]; longer ones first.
pub(crate) const SYMBOLS: &[&str] = &[
    ":=", "==", "!=", "<>", "<=", ">=", "&&", "||", "≠", "≤", "≥", "∧", "∨", "¬", "=", "<", ">",
    "&", "|", "!", "+", "-", "*", "/", "%", "(", ")", ",", ";", ":", "@", ".",
];

type Leaf<'a, 't, L> = &'a mut dyn FnMut(&mut Cursor<'t>) -> Result<Expr<L>, Reported>;

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
    c: &mut Cursor<'t>,
    leaf: Leaf<'_, 't, L>,
) -> Result<Expr<L>, Reported> {
    Ok(climb(c, leaf, 0)?.0)
}

/// The expression up to the first operator that binds weaker than `level`, and its height.
fn climb<'t, L>(
    c: &mut Cursor<'t>,
    leaf: Leaf<'_, 't, L>,
    level: u8,
) -> Result<(Expr<L>, usize), Reported> {
    let (mut left, mut height) = operand(c, leaf)?;
    while let Some(op) = binary(c.peek().text).filter(|op| op.precedence() >= level) {
        let at = c.take().span;
        c.enter()?;
        let right = climb(c, leaf, op.precedence() + 1);
        c.leave();
        let (right, other) = right?;
        height = 1 + height.max(other);
        if height > MAX_HEIGHT {
            let message = format!("an expression of more than {MAX_HEIGHT} operators in a row");
            return Err(c.error(at, message));
        }
        left = Expr::binary(op, left, right);
    }
    Ok((left, height))
}

fn operand<'t, L>(c: &mut Cursor<'t>, leaf: Leaf<'_, 't, L>) -> Result<(Expr<L>, usize), Reported> {
    let t = c.peek();
    let op = match t.text {
        "!" | "not" | "¬" => Op1::Not,
        "-" => Op1::Neg,
        "(" => {
            c.take();
            c.enter()?;
            let inner = climb(c, leaf, 0);
            c.leave();
            let inner = inner?;
            c.expect(")")?;
            return Ok(inner);
        }
        _ => return Ok((leaf(c)?, 1)),
    };
    c.take();
    c.enter()?;
    // `!` and `-` bind tighter than every binary operator.
    let inner = operand(c, leaf);
    c.leave();
    let (inner, height) = inner?;
    Ok(match (op, inner) {
        (Op1::Neg, Expr::Const(n)) => (Expr::Const(-n), 1),
        (op, inner) => (Expr::unary(op, inner), height + 1),
    })
}
