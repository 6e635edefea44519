//! Conditions as herd prints them: `0:EAX=1 /\ ([x]=1 \/ [y]=2)`.

use super::syntax::{Item, Proposition, Value};

pub fn proposition(p: &Proposition, item: &dyn Fn(&Item) -> String) -> String {
    show(p, 0, item)
}

/// `level` 0 admits everything, 1 no `\/`, 2 no `/\` either, 3 only atoms and negations.
fn show(p: &Proposition, level: u8, item: &dyn Fn(&Item) -> String) -> String {
    let (text, own) = match p {
        Proposition::Atom {
            left, right, equal, ..
        } => {
            let right = match right {
                Value::Number(n) => n.to_string(),
                Value::Address(name, 0) => name.clone(),
                Value::Address(name, n) => format!("{name}[{n}]"),
                Value::Item(i) => item(i),
            };
            let left = item(left);
            if *equal {
                (format!("{left}={right}"), 4)
            } else {
                (format!("not ({left}={right})"), 4)
            }
        }
        Proposition::Not(p) => (format!("not ({})", show(p, 0, item)), 4),
        Proposition::And(ps) if ps.is_empty() => ("true".to_string(), 4),
        Proposition::Or(ps) if ps.is_empty() => ("false".to_string(), 4),
        Proposition::And(ps) => {
            let parts: Vec<String> = ps.iter().map(|p| show(p, 2, item)).collect();
            (parts.join(" /\\ "), 1)
        }
        Proposition::Or(ps) => {
            let parts: Vec<String> = ps.iter().map(|p| show(p, 1, item)).collect();
            (parts.join(" \\/ "), 0)
        }
        Proposition::Implies(a, b) => {
            let text = format!("{} => {}", show(a, 3, item), show(b, 2, item));
            (text, 2)
        }
    };
    if own < level {
        format!("({text})")
    } else {
        text
    }
}
